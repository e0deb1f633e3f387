//! Principals that take turns, wherever their work waits: on Queue 1, in the run queue, for a slot of a listener.
//!
//! Each principal has a line of its own, first in, first out. Each turn takes one item of the principal at the head, which
//! then goes to the tail if it has more. So the first item of each waits for one turn of each other principal at most,
//! however much those have waiting.

use std::collections::VecDeque;

use super::blueprint::ClientId;

/// The party whose conversation an item belongs to: a client, or the organism itself (`<boot>` and redriven dead letters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Principal(u32);

impl Principal {
    pub(super) const ORGANISM: Self = Self(0);
}

impl From<Option<ClientId>> for Principal {
    fn from(client: Option<ClientId>) -> Self {
        client.map_or(Self::ORGANISM, |ClientId(client)| Self(client + 1))
    }
}

/// The lines of the principals, and the order of their turns.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    lines: Vec<VecDeque<T>>,
    /// The principals whose lines are not empty.
    turns: VecDeque<Principal>,
}

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Self { lines: Vec::new(), turns: VecDeque::new() }
    }
}

impl<T> Rounds<T> {
    /// Puts an item at the end of the line of a principal.
    pub(super) fn push(&mut self, principal: Principal, item: T) {
        let place = principal.0 as usize;
        if self.lines.len() <= place {
            self.lines.resize_with(place + 1, VecDeque::new);
        }
        let line = &mut self.lines[place];
        if line.is_empty() {
            self.turns.push_back(principal);
        }
        line.push_back(item);
    }

    /// Takes the next item of a principal that `may` go, with that principal; others keep their turns.
    pub(super) fn pop_of(&mut self, may: impl Fn(Principal) -> bool) -> Option<(Principal, T)> {
        let at = self.turns.iter().position(|principal| may(*principal))?;
        let principal = self.turns.remove(at)?;
        let line = &mut self.lines[principal.0 as usize];
        let item = line.pop_front()?;
        if !line.is_empty() {
            self.turns.push_back(principal);
        }
        Some((principal, item))
    }

    /// Takes from the line of the principal whose turn it is. A line that `take` empties without a result has no turn.
    pub(super) fn take<R>(&mut self, mut take: impl FnMut(&mut VecDeque<T>) -> Option<R>) -> Option<R> {
        while let Some(principal) = self.turns.pop_front() {
            let line = &mut self.lines[principal.0 as usize];
            let mut taken = None;
            while taken.is_none() && !line.is_empty() {
                taken = take(line);
            }
            if !line.is_empty() {
                self.turns.push_back(principal);
            }
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Takes the next item.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.take(VecDeque::pop_front)
    }

    /// Keeps the items for which `keep` holds.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let Self { lines, turns } = self;
        turns.retain(|principal| {
            let line = &mut lines[principal.0 as usize];
            line.retain(&mut keep);
            !line.is_empty()
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}
