//! A job: a listener with a [task inbox](systole_core::inbox). A registry: a listener with the inboxes of all jobs that register
//! with it while the organism runs.
//!
//! Others submit tasks to it, its owner takes them on, in payloads of [`systole_core::inbox::payload`]. A task that is waited
//! for is an open child of the submitting thread: `submit` is answered when it has ended, and when that thread is
//! cancelled, so is the task. What comes of a detached one opens a new conversation at its submitter.
//!
//! What survives: the inbox lives in the [`Job`], not in its actor, so a panic of the actor loses nothing. In a
//! [durable](OrganismBuilder::durable) organism it lives in the journal too: a change and the note that the handler has
//! made it are one transaction, so that each message changes the inbox once, and whoever waited for a task waits again
//! after a start. What the journal holds of a job then counts, whatever the [`Job`] held. What is sent to a submitter
//! (the result of a detached task, an event, a question) is sent once: after a start it is the call that was made before,
//! with all that came of it (`Contract::reattaches`).

mod actor;
mod board;
mod inboxes;
mod outbox;
mod place;
mod recover;
mod registry;
mod setting;
mod shared;

use std::fmt;
use std::sync::Arc;

pub use board::{BoardError, TaskBoard};
use bytes::Bytes;
pub use registry::JobRegistry;
use setting::{Setting, contract, install, settings};
use shared::{Shared, failure};

use super::builder::OrganismBuilder;
use crate::shell::raw::LocalBoxFuture;
use crate::shell::thread::Thread;
use systole_core::core::{Contract, Failure, Routing};
use systole_core::inbox::{Change, Event, InboxError, InboxLimits, Principal, TaskInbox};
use systole_core::vocab::{Name, Time};

/// A listener with an inbox. Clones are the same job.
///
/// ```
/// use systole::inbox::payload::{Complete, ResultPayload, Submit};
/// use systole::prelude::*;
/// use systole::shell::inbox::Job;
///
/// let reviews = Job::new("reviews", "reviewer")?;
/// let organism = reviews
///     .install(Organism::builder("office"))
///     .client("writer", |c| c.calls::<Submit>())
///     .client("reviewer", |c| c.calls::<Complete>())
///     .start()?;
/// let (writer, reviewer) = (organism.client("writer")?, organism.client("reviewer")?);
/// let result = block_on(async {
///     let submitted = writer.ask_any(call_to("reviews", Submit::new("Read chapter 3.")));
///     let reviewed = async {
///         // A real reviewer is a listener, and reads `reviews.render_pending_context()`.
///         let id = loop {
///             if let Some(id) = reviews.read(|inbox| inbox.pending().next().map(|task| task.id)) {
///                 break id;
///             }
///             tokio::task::yield_now().await;
///         };
///         reviewer.ask_to("reviews", Complete { id, text: "Two typos.".into() }).await
///     };
///     tokio::join!(submitted, reviewed).0
/// })?;
/// assert_eq!(result.decode::<ResultPayload>()?.text, "Two typos.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Job {
    shared: Arc<Shared<TaskInbox>>,
    setting: Setting,
}

impl Job {
    /// A job with an empty inbox that somebody owns: a listener or a client, by name.
    ///
    /// # Errors
    /// [`InboxError::Empty`] and [`InboxError::Name`] if one of the two is no name.
    pub fn new(name: &str, owner: &str) -> Result<Self, InboxError> {
        TaskInbox::new(name, Principal::parse(owner)?).map(Self::of)
    }

    /// A job whose name was checked.
    pub fn named(name: Name, owner: Principal) -> Self {
        Self::of(TaskInbox::named(name, owner))
    }

    /// A job with that inbox: one with other limits, or one from before. What was accepted before is accepted still
    /// ([`TaskInbox::release`] gives it back), and what was waited for is detached: nobody waits for it any more.
    pub fn of(mut inbox: TaskInbox) -> Self {
        inbox.detach_all();
        Self { shared: Arc::new(Shared::new(inbox.job().clone(), inbox)), setting: Setting::default() }
    }

    /// Registers the listener.
    #[must_use]
    pub fn install(&self, builder: OrganismBuilder) -> OrganismBuilder {
        install(&self.shared, &self.setting, builder, |contract| contract)
    }

    /// What the listener promises and may do.
    pub fn contract(&self) -> Contract {
        contract(&self.shared, &self.setting, |contract| contract)
    }

    /// Looks at the inbox. Nothing else happens to it meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&TaskInbox) -> T) -> T {
        read(&self.shared.lock().inboxes)
    }

    /// Changes the inbox from a handler of the same organism: its owner moves a task without a message, or hands in what
    /// it keeps with its tasks, in one transaction with the change. A handler that is run again after a crash has done
    /// it already. The change is there when this returns, and durable when the future is done; a refused one changes
    /// nothing.
    ///
    /// `state` is any bytes, such as how far a model has come; the last ones count, and [`state`](Self::state) gives
    /// them back, at the next start too.
    ///
    /// # Errors
    /// What `act` refuses, as a fault; a fault if this is not the handler's own thread, or the journal fails.
    pub fn act(
        &self,
        thread: &Thread,
        state: Option<Bytes>,
        act: impl FnOnce(&mut TaskInbox, Time) -> Result<Change, InboxError>,
    ) -> LocalBoxFuture<Result<(), Failure>> {
        let acted = self.shared.act(thread, state, |inbox, now| Ok((act(inbox, now).map_err(failure)?, ())));
        Box::pin(async move { Ok(acted?.1.durable().await?) })
    }

    /// What the owner handed in last.
    pub fn state(&self) -> Option<Bytes> {
        self.shared.lock().state.clone()
    }

    /// Gives the accepted tasks back: they are pending again. For a program whose owner starts anew, and has forgotten
    /// what it worked on.
    pub fn release(&self, now: Time) {
        self.shared.try_change(|inbox| Ok(inbox.release(now)));
    }

    /// The pending tasks as Markdown that a model reads: see [`TaskInbox::render_pending_context`].
    pub fn render_pending_context(&self) -> String {
        self.read(TaskInbox::render_pending_context)
    }

    /// The inbox as JSON: see [`TaskInbox::export`].
    pub fn export(&self) -> String {
        self.read(TaskInbox::export)
    }

    /// The bounds on the inbox.
    pub fn limits(&self) -> InboxLimits {
        self.read(|inbox| inbox.limits().clone())
    }
}

settings!(Job);

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("inbox", &self.shared.lock().inboxes).finish_non_exhaustive()
    }
}
