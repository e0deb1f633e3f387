//! Operations: the one way to act on a running organism and to look into it.
//!
//! The library, the gateway and the program are thin over this. An [`Act`] goes through the machines as an input of the core,
//! and is durable where the organism is; each is an event and a line of the log, with the operator who did it. A look reads the
//! present from the cores, and the past from the journal, into the same records; [`Past`] does so where no organism runs.

mod act;
mod look;
mod past;
mod question;
mod record;
mod schedule;

pub use act::{Act, ActError, Asked, Letters, Outcome};
pub use look::{LookError, Wanted};
pub use past::Past;
pub use record::{
    ActRecord, ConversationRecord, LetterRecord, ListenerRecord, MailboxRecord, MessageKind, MessageRecord, Page,
    RestRecord, ScheduleRecord, TaskRecord, ThreadRecord, TickRecord,
};

#[cfg(feature = "gateway")]
pub(crate) use act::SIGN_OUT;
pub use question::{AnswerRecord, QuestionError, QuestionPage, QuestionRecord, QuestionStateRecord, Questions};
pub use systole_core::question::{Answerer, QuestionRefusal, QuestionState};
use systole_core::vocab::{Name, ThreadId};

use crate::runtime::Organism;

/// Acts and looks of one operator. [`Questions`] has those on questions to people.
#[derive(Debug, Clone)]
pub struct Operations<'a> {
    organism: &'a Organism,
    by: Name,
}

impl Organism {
    /// Returns the operations of an operator, whose name stands in the events of the acts.
    pub fn operations(&self, by: Name) -> Operations<'_> {
        Operations { organism: self, by }
    }

    /// Cancels a conversation, or one thread of it, as an operator: see [`Act::Cancel`].
    ///
    /// # Errors
    /// [`ActError`] if it is not open.
    ///
    /// # Cancel safety
    /// Once polled, it is cancelled even if the future is dropped.
    pub async fn cancel(&self, conversation: ThreadId) -> Result<(), ActError> {
        self.operations(Name::system()).cancel(conversation, conversation).await
    }
}
