//! Logs: what an owner of partitions appends to, and the fence between owners.
//!
//! The owner of partitions has one log for all of them, from the epoch in which it took them over. An append names the
//! position that it follows. Whoever takes one of the partitions over begins an epoch, and from then on the store
//! refuses appends to the log of the owner before: the epoch tells owners apart, and the position a repeated, delayed or
//! lost append from the next one.

use super::{JournalError, JournalErrorKind, Step};
use crate::vocab::Partitions;

/// The end of a log, as its owner knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tail {
    /// The partitions whose conversations are in the log; none for the log of what lives beside the cores.
    pub partitions: Partitions,
    /// The epoch in which the owner took them over.
    pub epoch: u32,
    /// The number of appends to the log so far.
    pub position: u64,
}

impl Tail {
    /// The begin of the log of an owner that has taken these partitions over in that epoch.
    pub fn begin(partitions: Partitions, epoch: u32) -> Self {
        Self { partitions, epoch, position: 0 }
    }

    /// Returns whether another tail is one of the same log, at any position.
    pub fn is_of(&self, other: &Self) -> bool {
        (self.epoch, self.partitions) == (other.epoch, other.partitions)
    }
}

/// Steps to append, in order, each behind the end of its log: written as a whole or not at all.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    tails: Vec<Tail>,
    steps: Vec<Step>,
    /// The index of the tail of each step.
    logs: Vec<usize>,
}

impl Batch {
    /// Steps of one log.
    pub fn of(tail: Tail, steps: Vec<Step>) -> Self {
        Self { tails: vec![tail], logs: vec![0; steps.len()], steps }
    }

    /// Adds a step of a log with that end.
    pub fn push(&mut self, tail: Tail, step: Step) {
        let known = self.tails.iter().position(|other| other.is_of(&tail));
        let log = known.unwrap_or_else(|| {
            self.tails.push(tail);
            self.tails.len() - 1
        });
        self.steps.push(step);
        self.logs.push(log);
    }

    /// The logs, with the positions that the batch follows. Each moves on by one with the append.
    pub fn tails(&self) -> &[Tail] {
        &self.tails
    }

    /// The steps of all logs, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Lists the steps, each with its log.
    pub fn entries(&self) -> impl Iterator<Item = (&Tail, &Step)> {
        self.logs.iter().map(|&log| &self.tails[log]).zip(&self.steps)
    }

    /// Returns whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Takes all steps out.
    pub fn clear(&mut self) {
        self.tails.clear();
        self.steps.clear();
        self.logs.clear();
    }

    /// Takes the steps of some logs out.
    pub fn drop_logs(&mut self, logs: &[Tail]) {
        let (all, steps) = (std::mem::take(&mut self.logs), std::mem::take(&mut self.steps));
        for (log, step) in all.into_iter().zip(steps) {
            if !logs.iter().any(|dropped| dropped.is_of(&self.tails[log])) {
                self.steps.push(step);
                self.logs.push(log);
            }
        }
        // The indices of the others stay; a tail without steps would still move on.
        let tails = std::mem::take(&mut self.tails);
        let kept = |tail: &Tail| !logs.iter().any(|dropped| dropped.is_of(tail));
        let moved: Vec<_> =
            tails.iter().scan(0, |next, tail| Some(std::mem::replace(next, *next + usize::from(kept(tail))))).collect();
        self.logs.iter_mut().for_each(|log| *log = moved[*log]);
        self.tails = tails.into_iter().filter(kept).collect();
    }
}

/// Failure to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// These logs have another end, or another owner has taken partitions of them over. Nothing of the batch was written;
    /// steps of other logs can be.
    Fenced(Vec<Tail>),
    /// Nothing of the batch was written, as far as the store can tell, and nothing more can be.
    Failed(JournalError),
}

impl From<JournalError> for AppendError {
    fn from(error: JournalError) -> Self {
        Self::Failed(error)
    }
}

impl From<AppendError> for JournalError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Failed(error) => error,
            AppendError::Fenced(_) => {
                let message = "another process has taken over what this one appends to";
                Self::new(JournalErrorKind::Fenced, message)
            }
        }
    }
}

/// The ends of all logs, as a store knows them that one process has to itself.
#[derive(Debug, Clone)]
pub struct Heads {
    /// The log of what lives beside the cores.
    beside: Tail,
    logs: Vec<Tail>,
    /// Partitions whose last owner gave them up in order.
    released: Partitions,
}

impl Default for Heads {
    /// The logs before the first start.
    fn default() -> Self {
        Self::begin(0)
    }
}

impl Heads {
    /// Begins one log of all partitions, which parts at the first appends of those who own shares of it, and one of what
    /// lives beside the cores.
    pub fn begin(epoch: u32) -> Self {
        Self {
            beside: Tail::begin(Partitions::default(), epoch),
            logs: vec![Tail::begin(Partitions::ALL, epoch)],
            released: Partitions::default(),
        }
    }

    /// Begins the log of an owner that takes partitions over: the logs that they were in are fenced. Returns whether the
    /// owner before did not give all of them up in order.
    pub fn adopt(&mut self, partitions: Partitions, epoch: u32) -> bool {
        let crashed = !self.released.contains_all(&partitions);
        for log in &mut self.logs {
            // Owners may not have appended to their shares of it yet.
            if log.position == 0 {
                log.partitions = log.partitions.without(&partitions);
            }
        }
        self.logs.retain(|log| !log.partitions.meets(&partitions));
        self.logs.push(Tail::begin(partitions, epoch));
        self.released = self.released.without(&partitions);
        crashed
    }

    /// Checks that logs have these ends.
    ///
    /// # Errors
    /// [`AppendError::Fenced`] with those that don't.
    pub fn check(&mut self, tails: &[Tail]) -> Result<(), AppendError> {
        let fenced: Vec<_> = tails.iter().filter(|tail| self.find(tail).is_none()).copied().collect();
        if fenced.is_empty() { Ok(()) } else { Err(AppendError::Fenced(fenced)) }
    }

    /// Moves logs that were checked on by one append.
    pub fn advance(&mut self, tails: &[Tail]) {
        for tail in tails {
            self.find(tail).into_iter().for_each(|head| head.position += 1);
        }
    }

    /// Ends the log of an owner that gives its partitions up in order.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn release(&mut self, tail: &Tail) -> Result<(), AppendError> {
        self.check(&[*tail])?;
        self.logs.retain(|log| log != tail);
        self.released = self.released.with(&tail.partitions);
        Ok(())
    }

    /// The end of the log of what lives beside the cores.
    pub fn beside(&self) -> Tail {
        self.beside
    }

    fn find(&mut self, tail: &Tail) -> Option<&mut Tail> {
        if tail.partitions.is_empty() {
            return Some(&mut self.beside).filter(|beside| *beside == tail);
        }
        if let Some(at) = self.logs.iter().position(|log| log == tail) {
            return Some(&mut self.logs[at]);
        }
        let whole = |log: &&mut Tail| {
            (log.epoch, log.position, tail.position) == (tail.epoch, 0, 0)
                && log.partitions.contains_all(&tail.partitions)
        };
        let log = self.logs.iter_mut().find(whole)?;
        log.partitions = log.partitions.without(&tail.partitions);
        self.logs.push(*tail);
        self.logs.last_mut()
    }
}
