//! The values that the handler of a message recorded, over all its runs.
//!
//! A run gets the values of the runs before it with its message, durable ones alone, so it learns nothing twice that later
//! actions may depend on. What it records stands behind them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use serde_json::value::RawValue;
use systole_core::vocab::Fault;

use super::line::Recorded;
use crate::runtime::RunContext;

/// The values of a message.
pub(super) struct Records {
    made: Vec<Recorded>,
    /// Values on their way into the journal, in order: the index of each note, the label that the process gave it, and
    /// its name.
    writing: VecDeque<(u32, String, String)>,
}

impl Records {
    /// Takes the values that the handler recorded before a restart of the organism.
    pub(super) fn of(context: &RunContext) -> Result<Self, Fault> {
        let made = context.thread().notes()?;
        Ok(Self {
            made: made.into_iter().map(|(name, value)| Recorded { name, value }).collect(),
            writing: VecDeque::new(),
        })
    }

    /// All values, in order.
    pub(super) fn all(&self) -> &[Recorded] {
        &self.made
    }

    /// Records a value.
    pub(super) fn make(
        &mut self,
        label: String,
        name: String,
        value: Box<RawValue>,
        context: &RunContext,
    ) -> Result<(), Fault> {
        let index = context.thread().send_note(&name, &value)?;
        self.made.push(Recorded { name: name.clone(), value });
        self.writing.push_back((index, label, name));
        Ok(())
    }

    /// The next value that is durable: its label and its name.
    pub(super) fn poll(&mut self, context: &RunContext, cx: &mut Context<'_>) -> Poll<(String, String)> {
        let Some((index, ..)) = self.writing.front() else { return Poll::Pending };
        match context.thread().poll_note(*index, cx) {
            Poll::Ready(()) => {
                self.writing.pop_front().map_or(Poll::Pending, |(_, label, name)| Poll::Ready((label, name)))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Waits until all values are durable, for another run.
    pub(super) async fn durable(&mut self, context: &RunContext) {
        while !self.writing.is_empty() {
            poll_fn(|cx| self.poll(context, cx)).await;
        }
    }
}
