//! The logs that a process appends to: one of each core, and one of what lives beside them.

use systole_core::core::CoreId;
use systole_core::journal::{AppendError, Batch, Journal, JournalError, JournalErrorKind, Recovered, Step, Tail};
use systole_core::vocab::Partitions;

/// The ends of the logs of a process.
#[derive(Debug)]
pub struct Logs {
    beside: Tail,
    cores: Vec<(CoreId, Tail)>,
}

impl Logs {
    /// The logs of a start in that epoch, with cores that own these partitions.
    pub fn begin(epoch: u32, cores: impl IntoIterator<Item = (CoreId, Partitions)>) -> Self {
        let cores = cores.into_iter().map(|(core, partitions)| (core, Tail::begin(partitions, epoch))).collect();
        Self { beside: Tail::begin(Partitions::default(), epoch), cores }
    }

    /// Adds a step of a core to a batch, or of what lives beside the cores. Returns `false` if the core has no log: it
    /// was fenced, and the step is dropped.
    pub fn put(&self, batch: &mut Batch, core: Option<CoreId>, step: Step) -> bool {
        let tail = match core {
            None => Some(self.beside),
            Some(core) => self.of(core),
        };
        tail.inspect(|&tail| batch.push(tail, step)).is_some()
    }

    /// Appends a batch, and again without the steps of cores that were fenced: these have no log from now on. Returns
    /// them.
    ///
    /// # Errors
    /// [`JournalError`]: nothing more can be written. So it is if what lives beside the cores is fenced, because another
    /// process has started the organism.
    pub fn append(&mut self, journal: &mut dyn Journal, batch: &mut Batch) -> Result<Vec<CoreId>, JournalError> {
        let mut lost = Vec::new();
        while !batch.is_empty() {
            match journal.append(batch) {
                Ok(()) => {
                    batch.tails().iter().for_each(|tail| self.advance(tail));
                    break;
                }
                Err(error) => {
                    let fenced = self.fence(error)?;
                    batch.drop_logs(&fenced.iter().map(|(_, tail)| *tail).collect::<Vec<_>>());
                    lost.extend(fenced.into_iter().map(|(core, _)| core));
                }
            }
        }
        Ok(lost)
    }

    /// Takes partitions over for a core.
    ///
    /// # Errors
    /// [`JournalError`] if they can't be read.
    pub fn adopt(
        &mut self,
        journal: &mut dyn Journal,
        core: CoreId,
        partitions: &Partitions,
    ) -> Result<Recovered, JournalError> {
        let recovered = journal.adopt(partitions)?;
        self.cores.push((core, Tail::begin(*partitions, recovered.epoch)));
        Ok(recovered)
    }

    /// Gives the partitions of a core up. Returns whether they were its own until now.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn release(&mut self, journal: &mut dyn Journal, core: CoreId) -> Result<bool, JournalError> {
        let Some(tail) = self.of(core) else { return Ok(false) };
        match journal.release(&tail) {
            Ok(()) => {
                self.cores.retain(|(of, _)| *of != core);
                Ok(true)
            }
            Err(error) => self.fence(error).map(|_| false),
        }
    }

    fn of(&self, core: CoreId) -> Option<Tail> {
        self.cores.iter().find(|(of, _)| *of == core).map(|(_, tail)| *tail)
    }

    fn advance(&mut self, tail: &Tail) {
        let cores = self.cores.iter_mut().map(|(_, tail)| tail);
        cores.chain([&mut self.beside]).filter(|log| log.is_of(tail)).for_each(|log| log.position += 1);
    }

    /// Forgets the logs that an error names, and returns them.
    fn fence(&mut self, error: AppendError) -> Result<Vec<(CoreId, Tail)>, JournalError> {
        let fenced = match error {
            AppendError::Failed(error) => return Err(error),
            AppendError::Fenced(fenced) => fenced,
        };
        let is_fenced = |tail: &Tail| fenced.iter().any(|fenced| fenced.is_of(tail));
        let lost: Vec<_> = self.cores.extract_if(.., |(_, tail)| is_fenced(tail)).collect();
        // An answer that names none of these logs would come again for ever.
        if is_fenced(&self.beside) || lost.is_empty() {
            let message = "another process has started the organism, and writes its journal: end this one";
            return Err(JournalError::new(JournalErrorKind::Fenced, message));
        }
        Ok(lost)
    }
}
