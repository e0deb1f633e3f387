//! The lease of a node on an organism: when to ask the database for it, when to begin, and when to stop.
//!
//! Several nodes may run one organism, and one of them does at a time: the one that has the lease, a row in the database
//! with an end by the database's clock. [`Lease`] is the machine of one node. It knows the node's own steady clock, and the
//! answers of the database; it reads neither a clock nor a database.
//!
//! Always:
//! - A node believes that it has the lease for [`usable`] of its length at most, from *before* the question was sent that
//!   the database has granted. So a slow answer, a process that was stopped and clocks that differ can't stretch it: where
//!   one node believes it, no other does, as long as no clock runs faster than another by more than a fifth.
//! - A grant that is answered too late begins nothing.
//! - One question is under way at a time; a late answer to an earlier one has no effect.
//!
//! Not here: the fence. The log of the journal refuses appends of an earlier epoch by itself, whatever a node believes.

use std::sync::Arc;
use std::time::Duration;

/// The part of a lease in which its node works: the rest is for the end of that work, and for clocks that differ.
#[must_use]
pub fn usable(length: Duration) -> Duration {
    length * 4 / 5
}

/// The pause between two questions of a node, if nothing has changed.
#[must_use]
pub fn interval(length: Duration) -> Duration {
    length / 3
}

/// The shortest pause between two questions, however often the node is poked.
const SHORTEST: Duration = Duration::from_millis(100);

/// A question to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// The state of the lease.
    Look,
    /// The lease, if it has ended.
    Take,
    /// More time for the lease of that term.
    Renew {
        /// The term.
        term: i64,
    },
    /// The end of the lease of that term, at once.
    Release {
        /// The term.
        term: i64,
    },
}

/// The lease as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The name of the node that has it, or had it last.
    pub node: Arc<str>,
    /// The URL by which the other nodes reach that one.
    pub url: Arc<str>,
    /// The random id of the node's process.
    pub process: u128,
    /// Its number: each taking of the lease has one of its own.
    pub term: i64,
    /// The time that is left of it by the clock of the database, when that answered.
    pub left: Duration,
    /// True if it was handed over, and did not end by itself.
    pub handed_over: bool,
}

impl Holder {
    /// Returns whether the lease had not ended when the database answered.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.left.is_zero()
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The node has the lease now, of that term. The lease before it is the one that ended.
    Taken {
        /// The term.
        term: i64,
        /// The lease that ended, if there was one.
        before: Option<Holder>,
    },
    /// The lease has its whole length again.
    Renewed,
    /// The lease has ended.
    Released,
    /// Nothing has changed: the lease as it is; none if there was none yet.
    Found(Option<Holder>),
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The time has come, or may have.
    Tick,
    /// The answer to the question of that number.
    Answered(u64, Answer),
    /// There will be no answer to the question of that number; the database may have done what was asked.
    Unanswered(u64),
    /// The node stands by: it is to take the lease when it can.
    StandBy,
    /// The node takes no lease from now on.
    Leave,
    /// The node takes no lease for that time: it has had one, and could do nothing with it.
    Rest(Duration),
    /// The organism of the node has ended in order: the lease is to end, too.
    Release,
    /// The lease may have changed: the next question comes earlier.
    Poke,
}

/// Effect of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the database. An earlier question that is under way is given up.
    Ask(u64, Ask),
    /// The node has the lease, and may work until that time of its clock.
    Begin {
        /// The term.
        term: i64,
        /// The end, unless the lease is renewed.
        until: Duration,
        /// The lease that ended, if there was one.
        before: Option<Holder>,
    },
    /// The node may work until that time.
    Extend(Duration),
    /// The node has the lease no more, and may do nothing.
    End(End),
    /// The lease was given up, or has ended by itself before the database has confirmed that.
    Released,
    /// The lease as the database has it.
    Found(Option<Holder>),
}

/// Reason why a node has the lease no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The database did not confirm it in time.
    Lapsed,
    /// The database has another one.
    Lost,
}

/// A question under way.
#[derive(Debug, Clone, Copy)]
struct Asked {
    number: u64,
    ask: Ask,
    /// The time before it was sent.
    at: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Without,
    Holding {
        term: i64,
        until: Duration,
    },
    /// The work has ended; the lease has not yet, as far as is known. `until`: it ends by itself.
    Releasing {
        term: i64,
        until: Duration,
    },
}

/// The machine of one node. Times are those of the node's steady clock.
#[derive(Debug)]
pub struct Lease {
    length: Duration,
    process: u128,
    state: State,
    /// True if the node takes the lease when it can.
    stands_by: bool,
    rests_until: Duration,
    asked: Option<Asked>,
    /// The time before the last question was sent.
    last: Option<Duration>,
    /// The time of the next question.
    next: Duration,
    number: u64,
}

impl Lease {
    /// The machine of a process with that random id, for leases of that length.
    #[must_use]
    pub fn new(length: Duration, process: u128) -> Self {
        Self {
            length,
            process,
            state: State::Without,
            stands_by: false,
            rests_until: Duration::ZERO,
            asked: None,
            last: None,
            next: Duration::ZERO,
            number: 0,
        }
    }

    /// Returns whether the node may work at that time.
    #[must_use]
    pub fn may_work(&self, now: Duration) -> bool {
        matches!(self.state, State::Holding { until, .. } if now < until)
    }

    /// The time of the next [`Input::Tick`].
    #[must_use]
    pub fn next_tick(&self) -> Duration {
        let question = self.asked.map_or(self.next, |asked| asked.at + interval(self.length));
        match self.state {
            State::Without => question,
            State::Holding { until, .. } | State::Releasing { until, .. } => question.min(until),
        }
    }

    /// Handles an input at a time.
    pub fn handle(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.lapse(now, &mut effects);
        match input {
            Input::Tick => {}
            Input::Answered(number, answer) => {
                if let Some(asked) = self.asked.take_if(|asked| asked.number == number) {
                    self.answered(asked, answer, now, &mut effects);
                }
            }
            Input::Unanswered(number) => {
                if self.asked.take_if(|asked| asked.number == number).is_some() {
                    self.next = now + self.retry();
                }
            }
            Input::StandBy => {
                self.stands_by = true;
                self.soon(now);
            }
            Input::Leave => self.stands_by = false,
            Input::Rest(time) => self.rests_until = now + time,
            Input::Release => match self.state {
                State::Holding { term, until } => {
                    self.state = State::Releasing { term, until };
                    // A renewal under way could prolong what is released.
                    (self.asked, self.next) = (None, now);
                }
                State::Without => effects.push(Effect::Released),
                State::Releasing { .. } => {}
            },
            Input::Poke => self.soon(now),
        }
        self.ask(now, &mut effects);
        effects
    }

    /// Ends a lease whose time is over.
    fn lapse(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        match self.state {
            State::Holding { until, .. } if now >= until => effects.push(Effect::End(End::Lapsed)),
            State::Releasing { until, .. } if now >= until => effects.push(Effect::Released),
            State::Holding { .. } | State::Releasing { .. } | State::Without => return,
        }
        (self.state, self.next) = (State::Without, now);
    }

    fn answered(&mut self, asked: Asked, answer: Answer, now: Duration, effects: &mut Vec<Effect>) {
        let until = asked.at + usable(self.length);
        self.next = asked.at + interval(self.length);
        match (asked.ask, answer) {
            (Ask::Take, Answer::Taken { term, before }) => {
                if now >= until {
                    // The database has a lease for this process that is as good as over: the next question finds it.
                    self.next = now;
                } else if self.stands_by {
                    self.stands_by = false;
                    self.state = State::Holding { term, until };
                    effects.push(Effect::Begin { term, until, before });
                } else {
                    self.state = State::Releasing { term, until };
                    self.next = now;
                }
            }
            (Ask::Renew { term }, Answer::Renewed) => {
                if let State::Holding { term: of, until: held } = &mut self.state
                    && *of == term
                {
                    *held = until.max(*held);
                    effects.push(Effect::Extend(*held));
                }
            }
            (Ask::Release { .. }, _) => {
                if let State::Releasing { .. } = self.state {
                    self.state = State::Without;
                    effects.push(Effect::Released);
                }
            }
            (ask, Answer::Found(found)) => {
                if let (Ask::Renew { .. }, State::Holding { .. }) = (ask, self.state) {
                    self.state = State::Without;
                    self.next = now;
                    effects.push(Effect::End(End::Lost));
                }
                let left = found.as_ref().map_or(Duration::ZERO, |holder| holder.left);
                // One that has ended is taken by the next question, unless another node was faster.
                if self.state == State::Without {
                    self.next = self.next.min(now + left.max(self.retry()));
                }
                effects.push(Effect::Found(found));
            }
            // The database answers no question so.
            (_, Answer::Taken { .. } | Answer::Renewed | Answer::Released) => {}
        }
    }

    /// The pause before a question is repeated.
    fn retry(&self) -> Duration {
        (self.length / 40).max(SHORTEST)
    }

    /// Lets the next question come as soon as may be.
    fn soon(&mut self, now: Duration) {
        let earliest = self.last.map_or(now, |last| last + SHORTEST);
        self.next = self.next.min(earliest.max(now));
    }

    /// Asks, if the time for it has come.
    fn ask(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        match self.asked {
            Some(asked) if now < asked.at + interval(self.length) => return,
            None if now < self.next => return,
            Some(_) | None => {}
        }
        let ask = match self.state {
            State::Holding { term, .. } => Ask::Renew { term },
            State::Releasing { term, .. } => Ask::Release { term },
            State::Without if self.stands_by && now >= self.rests_until => Ask::Take,
            State::Without => Ask::Look,
        };
        self.number += 1;
        let number = self.number;
        (self.asked, self.last) = (Some(Asked { number, ask, at: now }), Some(now));
        effects.push(Effect::Ask(number, ask));
    }

    /// Returns whether a lease is one of this process.
    #[must_use]
    pub fn is_mine(&self, holder: &Holder) -> bool {
        holder.process == self.process
    }
}
