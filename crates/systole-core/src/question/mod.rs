//! Layer 2, questions to people: who may answer one, who sees to it, and how it ends, as a deterministic state machine.
//!
//! [`Question::handle`] takes one [`QuestionAct`] of an [`Answerer`]. It returns the [`QuestionNote`] of a change that a
//! restart must not undo, or a [`QuestionRefusal`]. [`Question::recover`] makes the state out of such records again. No
//! clock and no document are here: time comes in with each act, and an entrance judges an answer before.
//!
//! ```text
//!           show              claim                 answer -> answered
//! waiting -------> shown <-----------> claimed -- + decline -> declined
//!    |              |       release     |    ^      withdraw -> withdrawn
//!    +--------------+-------------------+    | claim over: another person takes it
//!      answer, decline, withdraw, claim      +-------
//! ```
//!
//! Invariants:
//! - A question ends once. The first end counts; a later one is refused with the first, which names who answered.
//! - An answer holds once it is the answer of the thread, in whose step it is written. A thread that is over before withdraws
//!   the question, so no party may learn of an answer before ([`Output::Taken`](crate::core::Output::Taken)).
//! - Only a party that the question is addressed to claims, answers or declines it.
//! - As long as a party has claimed it, no other one answers or declines it. A claim has no time limit: another party that
//!   may answer takes it over, or an operator releases it, so no absent person blocks a question.
//! - Changes are bounded ([`CHANGES`]), since each is written.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::vocab::{Name, Time};

/// Most claims and releases of a question. Past it they are refused; an answer is not.
pub const CHANGES: usize = 1000;

/// A party that acts on questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerer {
    /// The name.
    pub name: Name,
    /// True for an operator of the organism.
    pub is_operator: bool,
}

impl Answerer {
    /// An operator of that name.
    pub fn operator(name: Name) -> Self {
        Self { name, is_operator: true }
    }
}

/// The parties that may answer the questions of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addressees {
    /// People by name.
    pub people: BTreeSet<Name>,
    /// True if operators may, too.
    pub operators: bool,
}

impl Addressees {
    /// Operators alone.
    pub const fn operators() -> Self {
        Self { people: BTreeSet::new(), operators: true }
    }

    /// Returns whether a party may answer.
    pub fn include(&self, by: &Answerer) -> bool {
        if by.is_operator { self.operators } else { self.people.contains(&by.name) }
    }
}

/// State of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionState {
    /// Nobody who may answer has seen it since the start.
    Waiting,
    /// A party that may answer has seen it.
    Shown,
    /// A party sees to it.
    Claimed {
        /// The party.
        by: Name,
        /// The time of its claim.
        at: Time,
    },
    /// It was answered.
    Answered {
        /// The party.
        by: Name,
        /// The time.
        at: Time,
    },
    /// The answer was declined.
    Declined {
        /// The party.
        by: Name,
        /// The time.
        at: Time,
    },
    /// The caller gave up, the deadline has passed, or the organism ended.
    Withdrawn,
}

impl QuestionState {
    /// The name of the state.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Shown => "shown",
            Self::Claimed { .. } => "claimed",
            Self::Answered { .. } => "answered",
            Self::Declined { .. } => "declined",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Returns whether the question has ended.
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::Declined { .. } | Self::Withdrawn)
    }

    /// The party that claimed it, answered it or declined to, and the time.
    pub const fn party(&self) -> Option<(&Name, Time)> {
        match self {
            Self::Claimed { by, at } | Self::Answered { by, at } | Self::Declined { by, at } => Some((by, *at)),
            Self::Waiting | Self::Shown | Self::Withdrawn => None,
        }
    }
}

/// An act on a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAct {
    /// A party looks at it.
    Show,
    /// An attempt begins to announce it where people look; an operator says so, whatever its state.
    TryToAnnounce(Attempts),
    /// It was announced, or the attempts are used up; an operator says so, whatever its state.
    Announce,
    /// A party takes it on; `over`: also from another one.
    Claim {
        /// True to take it from another party.
        over: bool,
    },
    /// A party gives it back; an operator also for another one.
    Release,
    /// A party answers with this text, which an entrance has judged.
    Answer {
        /// XML.
        text: Arc<str>,
    },
    /// A party declines to answer.
    Decline {
        /// The reason, which the caller gets.
        reason: Arc<str>,
    },
}

/// A change of a question that a restart must not undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionNote {
    /// The party.
    #[serde(deserialize_with = "name")]
    pub by: Name,
    /// The time, in nanoseconds since 1970.
    pub at: u64,
    /// The change.
    #[serde(flatten)]
    pub done: Done,
}

impl QuestionNote {
    /// The state of the question that the change ended; none if it ended none.
    pub fn end(&self) -> Option<QuestionState> {
        let (by, at) = (self.by.clone(), Time::from_nanos(self.at));
        match self.done {
            Done::Answered { .. } => Some(QuestionState::Answered { by, at }),
            Done::Declined { .. } => Some(QuestionState::Declined { by, at }),
            Done::Tried(_) | Done::Announced | Done::Claimed | Done::Released => None,
        }
    }
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let text = String::deserialize(deserializer)?;
    // An operator at the terminal has the name of the system, which is reserved.
    if text == Name::system().as_str() { Ok(Name::system()) } else { Name::parse(&text).map_err(D::Error::custom) }
}

/// The deed of a party with a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case")]
pub enum Done {
    /// It began to announce the question.
    Tried(Attempts),
    /// It announced the question, or gave that up.
    Announced,
    /// It claimed the question.
    Claimed,
    /// It released the question.
    Released,
    /// It answered.
    Answered {
        /// XML.
        text: Arc<str>,
    },
    /// It declined to answer.
    Declined {
        /// The reason.
        reason: Arc<str>,
    },
}

/// Attempts to announce a question, over restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// The number of those that were begun.
    pub attempts: u32,
    /// Milliseconds that those before took, with the waits between them.
    pub spent: u64,
}

/// The reason why an act on a question had no effect.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionRefusal {
    /// The question is for other parties.
    #[error("the question is for others")]
    NotAddressed,
    /// Another party has claimed it.
    #[error("{by} has claimed the question at {at}: ask {by}, or take it over")]
    Claimed {
        /// The party.
        by: Name,
        /// The time of its claim.
        at: Time,
    },
    /// No party has claimed it.
    #[error("no party has claimed the question")]
    NotClaimed,
    /// It has ended.
    #[error("{}", ended(.0))]
    Over(QuestionState),
    /// It was claimed and released too often.
    #[error("the question was claimed and released {CHANGES} times: answer it")]
    TooOften,
}

crate::vocab::debug_is_display!(QuestionRefusal);

fn ended(state: &QuestionState) -> String {
    match state {
        QuestionState::Answered { by, at } => format!("the question was answered by {by} at {at}: one answer counts"),
        QuestionState::Declined { by, at } => format!("the question was declined by {by} at {at}"),
        _ => "the question was withdrawn: its caller has given up, or its deadline has passed".to_owned(),
    }
}

/// A question to people.
#[derive(Debug, Clone)]
pub struct Question {
    addressees: Arc<Addressees>,
    state: QuestionState,
    changes: usize,
    attempts: Attempts,
    is_announced: bool,
}

impl Question {
    /// Makes a question that waits.
    pub const fn new(addressees: Arc<Addressees>) -> Self {
        Self {
            addressees,
            state: QuestionState::Waiting,
            changes: 0,
            attempts: Attempts { attempts: 0, spent: 0 },
            is_announced: false,
        }
    }

    /// Makes a question of the changes before a restart, in their order.
    pub fn recover<'a>(addressees: Arc<Addressees>, records: impl IntoIterator<Item = &'a QuestionNote>) -> Self {
        let mut question = Self::new(addressees);
        for record in records {
            let (by, at) = (record.by.clone(), Time::from_nanos(record.at));
            question.state = match &record.done {
                Done::Tried(attempts) => {
                    question.attempts = *attempts;
                    continue;
                }
                Done::Announced => {
                    question.is_announced = true;
                    continue;
                }
                Done::Claimed => QuestionState::Claimed { by, at },
                Done::Released => QuestionState::Shown,
                // Written with the end of its message alone: a question that is open has none.
                Done::Answered { .. } | Done::Declined { .. } => continue,
            };
            question.changes += 1;
        }
        // The organism may have given a person the right away meanwhile.
        if let QuestionState::Claimed { by, .. } = &question.state
            && !question.addressees.operators
            && !question.addressees.people.contains(by)
        {
            question.state = QuestionState::Shown;
        }
        question
    }

    /// The parties that may answer it.
    pub fn addressees(&self) -> &Addressees {
        &self.addressees
    }

    /// Returns the state.
    pub const fn state(&self) -> &QuestionState {
        &self.state
    }

    /// The attempts to announce it.
    pub const fn attempts(&self) -> Attempts {
        self.attempts
    }

    /// Returns whether it was announced, or that was given up.
    pub const fn is_announced(&self) -> bool {
        self.is_announced
    }

    /// Returns whether a party may look at it: one that may answer it, or an operator.
    pub fn is_seen_by(&self, by: &Answerer) -> bool {
        by.is_operator || self.addressees.include(by)
    }

    /// Checks whether an act would have an effect, without one.
    ///
    /// # Errors
    /// [`QuestionRefusal`].
    pub fn check(&self, act: &QuestionAct, by: &Answerer) -> Result<(), QuestionRefusal> {
        let is_of_operators = match act {
            QuestionAct::Release | QuestionAct::Show | QuestionAct::Announce | QuestionAct::TryToAnnounce(_) => true,
            QuestionAct::Claim { .. } | QuestionAct::Answer { .. } | QuestionAct::Decline { .. } => false,
        };
        let releases = is_of_operators && by.is_operator;
        if !releases && !self.addressees.include(by) {
            return Err(QuestionRefusal::NotAddressed);
        }
        match (&self.state, act) {
            (_, QuestionAct::Show) => Ok(()),
            (_, QuestionAct::Announce | QuestionAct::TryToAnnounce(_)) if !by.is_operator => {
                Err(QuestionRefusal::NotAddressed)
            }
            (over, _) if over.is_over() => Err(QuestionRefusal::Over(over.clone())),
            (_, QuestionAct::Announce | QuestionAct::TryToAnnounce(_)) => Ok(()),
            (QuestionState::Claimed { by: one, at }, act) if *one != by.name => match act {
                QuestionAct::Claim { over: true } => self.bounded(),
                QuestionAct::Release if by.is_operator => self.bounded(),
                _ => Err(QuestionRefusal::Claimed { by: one.clone(), at: *at }),
            },
            (QuestionState::Claimed { .. }, QuestionAct::Release) => self.bounded(),
            (_, QuestionAct::Release) => Err(QuestionRefusal::NotClaimed),
            (_, QuestionAct::Claim { .. }) => self.bounded(),
            (_, QuestionAct::Answer { .. } | QuestionAct::Decline { .. }) => Ok(()),
        }
    }

    const fn bounded(&self) -> Result<(), QuestionRefusal> {
        if self.changes < CHANGES { Ok(()) } else { Err(QuestionRefusal::TooOften) }
    }

    /// Takes an act. Returns the record of its change; none if it changed nothing that is kept.
    ///
    /// # Errors
    /// [`QuestionRefusal`]; then nothing has changed.
    pub fn handle(
        &mut self,
        act: QuestionAct,
        by: &Answerer,
        now: Time,
    ) -> Result<Option<QuestionNote>, QuestionRefusal> {
        self.check(&act, by)?;
        let party = || (by.name.clone(), now);
        let (state, done) = match act {
            QuestionAct::Show => {
                if self.state == QuestionState::Waiting && self.addressees.include(by) {
                    self.state = QuestionState::Shown;
                }
                return Ok(None);
            }
            QuestionAct::TryToAnnounce(attempts) => {
                self.attempts = attempts;
                let (by, at) = (by.name.clone(), now.as_nanos());
                return Ok(Some(QuestionNote { by, at, done: Done::Tried(attempts) }));
            }
            QuestionAct::Announce => {
                let is_new = !std::mem::replace(&mut self.is_announced, true);
                let (by, at) = (by.name.clone(), now.as_nanos());
                return Ok(is_new.then_some(QuestionNote { by, at, done: Done::Announced }));
            }
            QuestionAct::Claim { .. } => {
                if self.state.party().is_some_and(|(one, _)| *one == by.name) {
                    return Ok(None);
                }
                let (by, at) = party();
                (QuestionState::Claimed { by, at }, Done::Claimed)
            }
            QuestionAct::Release => (QuestionState::Shown, Done::Released),
            QuestionAct::Answer { text } => {
                let (by, at) = party();
                (QuestionState::Answered { by, at }, Done::Answered { text })
            }
            QuestionAct::Decline { reason } => {
                let (by, at) = party();
                (QuestionState::Declined { by, at }, Done::Declined { reason })
            }
        };
        self.state = state;
        self.changes += 1;
        Ok(Some(QuestionNote { by: by.name.clone(), at: now.as_nanos(), done }))
    }

    /// Withdraws it: its thread is over. An answer that the thread didn't take doesn't count.
    pub fn withdraw(&mut self) {
        self.state = QuestionState::Withdrawn;
    }
}
