use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use systole_core::core::{Input, ShardId};
use systole_core::journal::{Journal, JournalError, Step};

use super::breakdown::Breakdown;
use super::journal::{Durability, JournalSender, JournalWriter, Written};
use super::ledger::{Following, Resident};
use super::link::{Command, Links};
use super::start::StartError;

/// Whoever writes the steps of all shards into the journal.
///
/// Shards share it; when the last of them has ended, the journal is closed in order, unless one of them failed.
pub(super) struct Scribe {
    hand: Hand,
    /// Whether a shard failed: what ran there may be the reason.
    torn: AtomicBool,
    /// Whether the organism ends: what is under way is left to its next start.
    sealed: AtomicBool,
    /// What lives beside the cores, and hears of their steps.
    residents: OnceLock<Vec<Arc<dyn Resident>>>,
}

enum Hand {
    /// On the shard's own thread: on a simulated clock nothing may happen elsewhere. Steps that are no shard's are written
    /// when that thread comes to it, so that there, too, the sender goes on before the step is durable.
    Here { journal: Mutex<Box<dyn Journal>>, beside: Mutex<VecDeque<(Step, Written)>>, links: Links },
    /// On a thread of its own.
    Writer { sender: JournalSender, writer: Mutex<Option<JournalWriter>> },
}

impl Scribe {
    /// Writes on the threads of the shards.
    pub(super) fn here(journal: Box<dyn Journal>, links: Links) -> Arc<Self> {
        Arc::new(Self::new(Hand::Here { journal: Mutex::new(journal), beside: Mutex::default(), links }))
    }

    /// Writes on a thread of its own, which tells the shards how far it is.
    pub(super) fn beside(
        journal: Box<dyn Journal>,
        durability: Durability,
        links: Links,
    ) -> Result<Arc<Self>, StartError> {
        let shards = links.shards().collect();
        let told = move |shard: ShardId, written: Result<u64, JournalError>| match written {
            Ok(number) => drop(links.send(shard, Command::Core(Input::Appended { number }))),
            Err(error) => links.break_down(Breakdown::Journal(error)),
        };
        let writer = JournalWriter::start(journal, durability, shards, Box::new(told)).map_err(StartError::Thread)?;
        let hand = Hand::Writer { sender: writer.sender(), writer: Mutex::new(Some(writer)) };
        Ok(Arc::new(Self::new(hand)))
    }

    fn new(hand: Hand) -> Self {
        Self { hand, torn: AtomicBool::new(false), sealed: AtomicBool::new(false), residents: OnceLock::new() }
    }

    /// Tells these of the steps of the cores.
    pub(super) fn tell(&self, residents: Vec<Arc<dyn Resident>>) {
        // An organism starts once.
        let _ = self.residents.set(residents);
    }

    /// Has a step of a shard written. What the core is to be told at once, if it is done already.
    pub(super) fn append(&self, shard: ShardId, number: u64, step: Step) -> Option<Input> {
        self.write_beside();
        let residents = self.residents.get().into_iter().flatten();
        let following: Vec<Following> = residents.filter_map(|resident| resident.clone().follow(&step.ops)).collect();
        let appended = self.write(shard, number, step);
        following.into_iter().for_each(|follow| follow());
        appended
    }

    fn write(&self, shard: ShardId, number: u64, step: Step) -> Option<Input> {
        match &self.hand {
            Hand::Here { journal, links, .. } => {
                let written = journal.lock().unwrap_or_else(PoisonError::into_inner).append(&[step]);
                match written {
                    Ok(()) => Some(Input::Appended { number }),
                    Err(error) => {
                        links.break_down(Breakdown::Journal(error));
                        None
                    }
                }
            }
            Hand::Writer { sender, .. } => {
                sender.send(shard, number, step);
                None
            }
        }
    }

    /// Has what a shard appended written, now that it has nothing else to do.
    pub(super) fn flush(&self) {
        if let Hand::Writer { sender, .. } = &self.hand {
            sender.flush();
        }
    }

    /// Has a step written that is no shard's, between what was handed over before and after. `written` is called when it
    /// is, and dropped if it won't be.
    pub(super) fn append_beside(&self, step: Step, written: Written) {
        match &self.hand {
            Hand::Here { beside, links, .. } => {
                beside.lock().unwrap_or_else(PoisonError::into_inner).push_back((step, written));
                // On a simulated clock there is one. Where it has ended, the end of this writes what is left.
                for shard in links.shards().take(1) {
                    links.send(shard, Command::Beside);
                }
            }
            Hand::Writer { sender, .. } => sender.send_beside(step, written),
        }
    }

    /// Writes the steps that are no shard's and were handed over so far, where that is the shard's work.
    pub(super) fn write_beside(&self) {
        let Hand::Here { journal, beside, links } = &self.hand else { return };
        let next = || beside.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some((step, written)) = next() {
            let appended = journal.lock().unwrap_or_else(PoisonError::into_inner).append(&[step]);
            match appended {
                Ok(()) => written(),
                Err(error) => {
                    self.seal();
                    links.break_down(Breakdown::Journal(error));
                }
            }
        }
    }

    /// A shard has failed.
    pub(super) fn tear(&self) {
        self.torn.store(true, Ordering::Release);
        self.seal();
    }

    /// The organism ends: nobody gives up what its next start takes up.
    pub(super) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// Whether the organism ends.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }
}

impl Drop for Scribe {
    fn drop(&mut self) {
        if self.torn.load(Ordering::Acquire) || std::thread::panicking() {
            return;
        }
        self.write_beside();
        let closed = match &mut self.hand {
            Hand::Here { journal, .. } => journal.get_mut().unwrap_or_else(PoisonError::into_inner).close(),
            Hand::Writer { writer, .. } => {
                let writer = writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
                writer.map_or(Ok(()), JournalWriter::close)
            }
        };
        if let Err(error) = closed {
            tracing::error!(%error, "the journal could not be closed: the next start takes it up as after a crash");
        }
    }
}
