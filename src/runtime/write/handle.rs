//! The journal as the shards use it, and the right to close it.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use systole_core::core::{CoreId, Input};
use systole_core::journal::{Batch, Journal, JournalError, JournalErrorKind, Recovered, Step};
use systole_core::vocab::{Partitions, Time};

use super::appender::{Ending, Following, Recoverable};
use crate::journal::{JournalFeeder, JournalSender, JournalWriter, Logs, Lost, Written};
use crate::runtime::shard::breakdown::Breakdown;
use crate::runtime::shard::command::{Command, Links};
use crate::runtime::start::StartError;
use systole_store::clock::Clock;

/// The writer of all cores' steps in the journal. Dropping it closes nothing: that is [`JournalKeeper`]'s.
pub(crate) struct JournalHandle {
    mode: WriteMode,
    /// True if a shard failed: its work may be the reason.
    torn: AtomicBool,
    /// True if the organism ends, leaving open work to its next start.
    sealed: AtomicBool,
    /// Parts beside the cores, which follow the cores' steps.
    recoverables: OnceLock<Vec<Arc<dyn Recoverable>>>,
}

/// The right to close the journal, which the shards share: when the last of them has ended, the journal is closed in
/// order, unless one of them failed.
///
/// No other part has it. Closing waits for the journal's thread, which calls back into the parts beside the cores, so a
/// part that closed the journal under a lock of its own would wait for ever.
pub(crate) struct JournalKeeper(Arc<JournalHandle>);

enum WriteMode {
    /// Writes on the own thread of the shard, since a simulated clock allows no other threads. Steps that belong to no
    /// shard are written when that thread handles its next command, so that the sender goes on before the step is
    /// durable, as elsewhere.
    Here { journal: Mutex<OwnJournal>, beside: Mutex<VecDeque<(Step, Written)>>, links: Links },
    /// Writes on a thread of its own.
    Writer { sender: JournalSender, writer: Mutex<Option<JournalWriter>> },
}

/// A journal that a shard writes, and tidies behind a step.
struct OwnJournal {
    journal: Box<dyn Journal>,
    logs: Logs,
    /// Time of the next search for rows past their retention.
    tidy: Time,
}

impl OwnJournal {
    /// Writes a step of a core, or of what lives beside the cores.
    fn append(&mut self, core: Option<CoreId>, step: Step) -> Result<(), Lost> {
        let (now, mut batch) = (step.at, Batch::default());
        let is_known = self.logs.put(&mut batch, core, step);
        let fenced = self.logs.append(self.journal.as_mut(), &mut batch).map_err(Lost::Failed)?;
        if !is_known || !fenced.is_empty() {
            return Err(Lost::Fenced);
        }
        if now >= self.tidy {
            while self.journal.tidy(now).map_err(Lost::Failed)? {}
            self.tidy = now.after(self.journal.tidy_interval());
        }
        Ok(())
    }
}

impl JournalHandle {
    /// Writes on the threads of the shards.
    pub(crate) fn here(journal: Box<dyn Journal>, logs: Logs, links: Links) -> Self {
        let journal = OwnJournal { journal, logs, tidy: Time::default() };
        Self::new(WriteMode::Here { journal: Mutex::new(journal), beside: Mutex::default(), links })
    }

    /// Writes on a thread of its own, which reports to the shards. The journal was recovered in that epoch, for cores that
    /// own these partitions.
    pub(crate) fn beside(
        journal: Box<dyn Journal>,
        epoch: u32,
        cores: impl IntoIterator<Item = (CoreId, Partitions)>,
        clock: Clock,
        links: Links,
    ) -> Result<Self, StartError> {
        let told = move |core: CoreId, written: Result<u64, Lost>| match written {
            Ok(number) => drop(links.send(core, Command::Core(Input::Appended { number }))),
            Err(lost) => lose(&links, core, lost),
        };
        let writer = JournalWriter::start(journal, epoch, cores, clock, Box::new(told));
        let writer = writer.map_err(StartError::Thread)?;
        let mode = WriteMode::Writer { sender: writer.sender(), writer: Mutex::new(Some(writer)) };
        Ok(Self::new(mode))
    }

    fn new(mode: WriteMode) -> Self {
        Self { mode, torn: AtomicBool::new(false), sealed: AtomicBool::new(false), recoverables: OnceLock::new() }
    }

    /// Registers the recoverables that follow the cores' steps.
    pub(crate) fn tell(&self, recoverables: Vec<Arc<dyn Recoverable>>) {
        // An organism starts only once.
        let _ = self.recoverables.set(recoverables);
    }

    /// Writes a step of a core; returns the input for the core if the step is durable already.
    pub(crate) fn append(&self, core: CoreId, number: u64, step: Step) -> Option<Input> {
        self.write_beside();
        let recoverables = self.recoverables.get().into_iter().flatten();
        let following: Vec<Following> =
            recoverables.filter_map(|recoverable| recoverable.clone().follow(&step.ops)).collect();
        let appended = self.write(core, number, step);
        following.into_iter().for_each(|follow| follow());
        appended
    }

    fn write(&self, core: CoreId, number: u64, step: Step) -> Option<Input> {
        match &self.mode {
            WriteMode::Here { journal, links, .. } => {
                let written = journal.lock().unwrap_or_else(PoisonError::into_inner).append(Some(core), step);
                written.map_err(|lost| lose(links, core, lost)).ok().map(|()| Input::Appended { number })
            }
            WriteMode::Writer { sender, .. } => {
                sender.send(core, number, step);
                None
            }
        }
    }

    /// Takes partitions over for a core, and reads their records, once the steps handed over before are written.
    ///
    /// # Errors
    /// [`JournalError`] if the journal can't be read, which breaks the organism down, or is closed.
    pub(crate) async fn adopt(&self, core: CoreId, partitions: Partitions) -> Result<Recovered, JournalError> {
        match &self.mode {
            WriteMode::Here { journal, links, .. } => {
                self.write_beside();
                let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                let OwnJournal { journal, logs, .. } = &mut *journal;
                let adopted = logs.adopt(journal.as_mut(), core, &partitions);
                adopted.inspect_err(|error| links.break_down(Breakdown::Journal(error.clone())))
            }
            WriteMode::Writer { sender, .. } => {
                let (tell, told) = tokio::sync::oneshot::channel();
                // The caller may have dropped its future.
                sender.adopt(core, partitions, Box::new(|recovered| drop(tell.send(recovered))));
                let message = "the journal has failed, or the organism has ended";
                told.await.map_err(|_| JournalError::new(JournalErrorKind::Closed, message))
            }
        }
    }

    /// Gives the partitions of a core up, once the steps handed over before are written. `released` is called then, or
    /// dropped if the journal fails.
    pub(crate) fn release(&self, core: CoreId, released: Written) {
        match &self.mode {
            WriteMode::Here { journal, links, .. } => {
                self.write_beside();
                let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                let OwnJournal { journal, logs, .. } = &mut *journal;
                match logs.release(journal.as_mut(), core) {
                    Ok(_) => released(),
                    Err(error) => links.break_down(Breakdown::Journal(error)),
                }
            }
            WriteMode::Writer { sender, .. } => sender.release(core, released),
        }
    }

    /// Tells the parts beside the cores of conversations that a core takes over.
    pub(crate) fn take_over(&self, recovered: &Recovered) {
        self.recoverables.get().into_iter().flatten().for_each(|recoverable| recoverable.take_over(recovered));
    }

    /// Returns the feeder of the journal's tables; none where they always have all steps.
    pub(crate) fn feeder(&self) -> Option<JournalFeeder> {
        match &self.mode {
            // Each step is a transaction of its own, which the journal writes to its tables.
            WriteMode::Here { .. } => None,
            WriteMode::Writer { sender, .. } => Some(sender.feeder()),
        }
    }

    /// Writes the steps of a shard that has no other work.
    pub(crate) fn flush(&self) {
        if let WriteMode::Writer { sender, .. } = &self.mode {
            sender.flush();
        }
    }

    /// Writes a step that belongs to no core, between the steps handed over before and after. `written` is called
    /// afterwards, or dropped if the step won't be written.
    ///
    /// # Errors
    /// [`Ending`]: handlers are dropped from now on, and the next start runs them again. A step that rests on their
    /// absence must not be written.
    pub(crate) fn append_beside(&self, step: Step, written: Written) -> Result<(), Ending> {
        if self.is_sealed() {
            return Err(Ending);
        }
        match &self.mode {
            WriteMode::Here { beside, links, .. } => {
                beside.lock().unwrap_or_else(PoisonError::into_inner).push_back((step, written));
                // A simulated organism has one shard. Once that has ended, its keeper writes the rest.
                for shard in links.shards().take(1) {
                    links.send(shard, Command::Beside);
                }
            }
            WriteMode::Writer { sender, .. } => sender.send_beside(step, written),
        }
        Ok(())
    }

    /// Writes the waiting steps that belong to no core, if that is the shard's work.
    pub(crate) fn write_beside(&self) {
        let WriteMode::Here { journal, beside, links } = &self.mode else { return };
        let next = || beside.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some((step, written)) = next() {
            let appended = journal.lock().unwrap_or_else(PoisonError::into_inner).append(None, step);
            match appended {
                Ok(()) => written(),
                Err(lost) => {
                    self.seal();
                    links.shards().take(1).for_each(|shard| lose(links, shard, lost.clone()));
                }
            }
        }
    }

    /// Notes that a shard has failed.
    pub(crate) fn tear(&self) {
        self.torn.store(true, Ordering::Release);
        self.seal();
    }

    /// Notes that the organism ends: no part may drop work that its next start continues.
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    /// Returns whether the organism ends.
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }
}

/// Tells a core that nothing more of it is written; an organism that can't write at all breaks down.
fn lose(links: &Links, core: CoreId, lost: Lost) {
    match lost {
        Lost::Fenced => drop(links.send(core, Command::Core(Input::Fenced))),
        Lost::Failed(error) => links.break_down(Breakdown::Journal(error)),
    }
}

impl JournalKeeper {
    pub(crate) fn of(handle: JournalHandle) -> Arc<Self> {
        Arc::new(Self(Arc::new(handle)))
    }

    /// Returns the handle, for parts that must not close the journal.
    pub(crate) fn handle(&self) -> &Arc<JournalHandle> {
        &self.0
    }
}

impl Deref for JournalKeeper {
    type Target = JournalHandle;

    fn deref(&self) -> &JournalHandle {
        &self.0
    }
}

impl Drop for JournalKeeper {
    fn drop(&mut self) {
        self.seal();
        if self.torn.load(Ordering::Acquire) || std::thread::panicking() {
            return;
        }
        self.write_beside();
        let closed = match &self.mode {
            WriteMode::Here { journal, .. } => journal.lock().unwrap_or_else(PoisonError::into_inner).journal.close(),
            WriteMode::Writer { writer, .. } => {
                let writer = writer.lock().unwrap_or_else(PoisonError::into_inner).take();
                writer.map_or(Ok(()), JournalWriter::close)
            }
        };
        if let Err(error) = closed {
            tracing::error!(%error, "the journal could not be closed: the next start recovers it as after a crash");
        }
    }
}
