//! The row of an answer that names none, where only one can be meant.
//!
//! The SDK answers a peer at the `source_id` of a row. That is the row's own id, so such an answer names its row. The
//! SDK answers a person with `notify`, which has no addressee. So `canvas_user` is shown on the rows of one person per
//! workspace alone, and on one row at a time; rows of other people are answered at their `source_id`, like those of peers.
//!
//! A late `notify` can be meant for a row that was shown before. So the journal has the person, and how often a row was
//! shown ([`Show`](systole_core::mailbox::MailboxInput::Show)): once a `notify` could be for two rows, it is for none,
//! also after a restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use systole_core::vocab::{MessageId, Name};

/// The row of each workspace that `notify` answers. It is lost when the process ends: then `notify` has to name its row
/// until one is shown.
#[derive(Default)]
pub(super) struct ShownRows(Mutex<HashMap<Name, MessageId>>);

impl ShownRows {
    /// Notes the row that `notify` answers, if it answers any.
    pub(super) fn set(&self, workspace: &Name, row: Option<MessageId>) {
        match row {
            Some(row) => drop(self.lock().insert(workspace.clone(), row)),
            None => drop(self.lock().remove(workspace)),
        }
    }

    /// The row that `notify` answers without naming it.
    pub(super) fn shown(&self, workspace: &Name) -> Option<MessageId> {
        self.lock().get(workspace).copied()
    }

    /// Notes that a row has its answer.
    pub(super) fn answered(&self, workspace: &Name, row: MessageId) {
        let mut shown = self.lock();
        if shown.get(workspace) == Some(&row) {
            shown.remove(workspace);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, MessageId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
