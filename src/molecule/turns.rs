//! The row that an answer without a row is for, if there is exactly one that it can be for.
//!
//! The SDK answers a peer at the `source_id` of a row. That is the row's own id, so such an answer names its row. The
//! SDK answers a person with `notify`, which has no addressee. So `canvas_user` is shown on the rows of one person per
//! workspace alone, whom the journal has ([`AddresseeRecord`](systole_core::journal::AddresseeRecord)), and on one row
//! at a time; rows of other people are answered at their `source_id`, like those of peers. `notify` without a row can't
//! reach another person.
//!
//! When that person's row was passed over without an answer, or was shown twice before it had one, a later `notify` can
//! be meant for it or for the next row. From then on the rows of that person are answered at their `source_id`, too.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use systole_core::vocab::{MessageId, Name};

/// Turn of each workspace. It is lost when the process ends: then `notify` has to name its row until one is shown.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<Name, Turn>>);

#[derive(Default)]
struct Turn {
    /// The row that was shown as the person's, and has no answer yet.
    shown: Option<Shown>,
    /// True if a `notify` without a row can be meant for a row that is not `shown`.
    doubtful: bool,
}

#[derive(Clone, Copy)]
struct Shown {
    row: MessageId,
    again: bool,
}

impl Turns {
    /// Notes that the workspace is shown the oldest unanswered row of that person. Returns true if `notify` answers it.
    pub(super) fn show(&self, workspace: &Name, row: MessageId) -> bool {
        self.with(workspace, |turn| {
            match &mut turn.shown {
                Some(shown) if shown.row == row => shown.again = true,
                Some(_) => turn.doubt(),
                None => turn.shown = Some(Shown { row, again: false }).filter(|_| !turn.doubtful),
            }
            turn.shown.is_some()
        })
    }

    /// Notes that a row of that person was skipped without an answer.
    pub(super) fn pass(&self, workspace: &Name) {
        self.with(workspace, Turn::doubt);
    }

    /// The row that `notify` answers without naming it.
    pub(super) fn shown(&self, workspace: &Name) -> Option<MessageId> {
        self.with(workspace, |turn| turn.shown.map(|shown| shown.row))
    }

    /// Notes that a row has its answer.
    pub(super) fn answered(&self, workspace: &Name, row: MessageId) {
        self.with(workspace, |turn| {
            if let Some(shown) = turn.shown.take_if(|shown| shown.row == row) {
                turn.doubtful |= shown.again;
            }
        });
    }

    fn with<T>(&self, workspace: &Name, what: impl FnOnce(&mut Turn) -> T) -> T {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        what(turns.entry(workspace.clone()).or_default())
    }
}

impl Turn {
    fn doubt(&mut self) {
        (self.shown, self.doubtful) = (None, true);
    }
}
