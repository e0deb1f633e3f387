use super::event::Event;
use crate::vocab::{Name, TaskId};

/// The changes of a method of an inbox: events, and the tasks that have to be written down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "a journal writes the records, and subscribers get the events"]
pub struct Change {
    /// The events, in order. They are never told again.
    pub events: Vec<Event>,
    /// The tasks that are not what they were, by inbox and id.
    pub saved: Vec<(Name, TaskId)>,
    /// The tasks that are not kept any longer, by inbox and id.
    pub removed: Vec<(Name, TaskId)>,
}

impl Change {
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
