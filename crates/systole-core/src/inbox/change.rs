//! Changes of an inbox, for its journal and its subscribers.

use super::event::TaskEvent;
use crate::vocab::{Name, TaskId};

/// The changes of a method of an inbox: events, and the tasks to write to the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "a journal writes the records, and subscribers get the events"]
pub struct InboxChange {
    /// The events, in order. They are never reported again.
    pub events: Vec<TaskEvent>,
    /// The changed tasks, by inbox and id.
    pub saved: Vec<(Name, TaskId)>,
    /// The deleted tasks, by inbox and id.
    pub removed: Vec<(Name, TaskId)>,
}

impl InboxChange {
    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a later change behind this one.
    pub fn append(&mut self, mut more: Self) {
        self.events.append(&mut more.events);
        self.saved.append(&mut more.saved);
        self.removed.append(&mut more.removed);
    }
}
