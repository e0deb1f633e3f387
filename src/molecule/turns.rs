//! Which row an answer is for: the SDK says the text alone, and whom it goes to.
//!
//! An agent sees to the rows of a page in their order, and answers each before the next. So the answers to a person, and
//! those to each peer, go to the rows of the last page in that order; without one, to the oldest that waits. A page that
//! comes once more brings its rows once more: an answer to a row that has one is no answer to the next.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::rows::Row;
use crate::vocab::{MessageId, Name};

/// Messages of each workspace that are known again when they come twice.
const KNOWN: usize = 256;

/// Where each workspace is. It is forgotten when the process ends: then answers go to what waits.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<Name, Turn>>);

#[derive(Default)]
struct Turn {
    /// The rows of the last page that can be answered.
    open: VecDeque<(Whose, MessageId)>,
    /// What was answered under which id of the agent's own.
    answered: VecDeque<(String, MessageId)>,
}

/// Whose a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// A person's.
    Person,
    /// That listener's.
    Peer(Name),
}

impl Whose {
    /// Whether a row is theirs.
    pub(super) fn owns(&self, row: &Row) -> bool {
        match self {
            Self::Person => row.is_persons(),
            Self::Peer(name) => row.is_peers(name),
        }
    }
}

impl Turns {
    /// A workspace was shown a page.
    pub(super) fn show(&self, workspace: &Name, page: &[Row]) {
        let whose = |row: &Row| match row.is_persons() {
            true => Some(Whose::Person),
            false => Name::parse(&row.sender.name).ok().map(Whose::Peer),
        };
        let questions = page.iter().filter(|row| row.is_question());
        let open = questions.filter_map(|row| Some((whose(row)?, row.item.record.id))).collect::<VecDeque<_>>();
        if !page.is_empty() {
            self.with(workspace, |turn| turn.open = open);
        }
    }

    /// The row of the page that comes next.
    pub(super) fn next(&self, workspace: &Name, of: &Whose) -> Option<MessageId> {
        self.with(workspace, |turn| {
            let at = turn.open.iter().position(|(whose, _)| whose == of)?;
            turn.open.remove(at).map(|(_, id)| id)
        })
    }

    /// A row has its answer.
    pub(super) fn answered(&self, workspace: &Name, row: MessageId, under: Option<String>) {
        self.with(workspace, |turn| {
            turn.open.retain(|(_, id)| *id != row);
            turn.answered.extend(under.map(|key| (key, row)));
            if turn.answered.len() > KNOWN {
                turn.answered.pop_front();
            }
        });
    }

    /// The row that was answered under that id before.
    pub(super) fn before(&self, workspace: &Name, key: &str) -> Option<MessageId> {
        self.with(workspace, |turn| turn.answered.iter().find(|(known, _)| known == key).map(|(_, row)| *row))
    }

    fn with<T>(&self, workspace: &Name, what: impl FnOnce(&mut Turn) -> T) -> T {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        what(turns.entry(workspace.clone()).or_default())
    }
}
