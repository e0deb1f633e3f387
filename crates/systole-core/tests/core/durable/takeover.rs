//! Takeovers: cores give partitions up, and others take them over, while the rest goes on.

use systole_core::core::{CoreId, Directory, Input};
use systole_core::vocab::{Partition, Partitions};

use super::simulation::{Simulation, start_shard};

/// The cores of one start and their partitions.
#[derive(Default)]
pub(crate) struct Takeovers {
    pub(crate) directory: Directory,
    /// The number of cores that the organism started with: these stay.
    founders: usize,
    served: Vec<Partitions>,
    /// Cores that give partitions up, until nothing of those is left there.
    leaving: Vec<(usize, Partitions)>,
    /// Partitions without a core.
    waiting: Vec<Partitions>,
    /// Cores that are no more.
    gone: Vec<usize>,
    pub(crate) count: u64,
    /// Handlers that started while partitions had no core.
    pub(crate) meanwhile: u64,
}

impl Takeovers {
    /// Begins a life of the organism with so many cores.
    pub(crate) fn begin(&mut self, directory: Directory, shares: &[Partitions]) {
        let Self { count, meanwhile, .. } = *self;
        let (founders, served) = (shares.len(), shares.to_vec());
        *self = Self { directory, founders, served, count, meanwhile, ..Self::default() };
    }

    pub(crate) fn is_gone(&self, core: usize) -> bool {
        self.gone.contains(&core)
    }

    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn are_over(&self) -> bool {
        self.leaving.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn started(&mut self) {
        self.meanwhile += u64::from(!self.are_over());
    }
}

impl Simulation {
    /// The cores that are not gone.
    pub(crate) fn present(&self) -> Vec<usize> {
        (0..self.cores.len()).filter(|core| !self.takeovers.is_gone(*core)).collect()
    }

    pub(crate) fn some_core(&mut self) -> usize {
        let present = self.present();
        present[self.random.below(present.len())]
    }

    /// A core gives its partitions up.
    pub(crate) fn release(&mut self) {
        let core = self.some_core();
        let partitions = std::mem::take(&mut self.takeovers.served[core]);
        if partitions.is_empty() {
            return;
        }
        self.say(|| format!("release of {core}"));
        self.takeovers.leaving.push((core, partitions));
        self.serial.releases(core);
        self.input(core, Input::Release);
    }

    /// Another process takes partitions of a core over: all of them, or some.
    pub(crate) fn steal(&mut self) {
        let core = self.some_core();
        let served = self.takeovers.served[core];
        let some = 1 + self.random.below(3);
        let stolen: Partitions = served.iter().filter(|partition| usize::from(partition.0) % some == 0).collect();
        self.say(|| format!("{} partitions of {core} are stolen", stolen.iter().count()));
        self.store.steal(&stolen);
    }

    /// Tells cores that were fenced.
    pub(crate) fn tell_fenced(&mut self) {
        while let Some(core) = self.store.fenced() {
            self.say(|| format!("{core} is fenced"));
            let partitions = std::mem::take(&mut self.takeovers.served[core]);
            if !partitions.is_empty() {
                self.takeovers.leaving.push((core, partitions));
            }
            self.serial.releases(core);
            self.input(core, Input::Fenced);
        }
    }

    /// Takes the partitions from cores that are done with them.
    pub(crate) fn hand_over(&mut self) {
        for (core, partitions) in std::mem::take(&mut self.takeovers.leaving) {
            if !self.cores[core].has_left() {
                self.takeovers.leaving.push((core, partitions));
                continue;
            }
            self.say(|| format!("{core} has left"));
            assert!(self.handlers.iter().all(|handler| handler.shard != core), "a handler of {core} runs on");
            self.store.release(core);
            self.takeovers.waiting.push(partitions);
            if core >= self.takeovers.founders {
                self.takeovers.gone.push(core);
            }
        }
    }

    /// A new core takes partitions over, all that wait together or half of them.
    pub(crate) fn adopt(&mut self) {
        // Changes and moves exclude each other.
        while self.begin() {}
        let Some(waiting) = self.takeovers.waiting.pop() else { return };
        let half = |odd: bool| waiting.iter().filter(|partition| odd == partition.0.is_multiple_of(2)).collect();
        let [taken, left]: [Partitions; 2] = match self.random.once_in(2) {
            true => [half(true), half(false)],
            false => [waiting, Partitions::default()],
        };
        if !left.is_empty() {
            self.takeovers.waiting.push(left);
        }
        if taken.is_empty() {
            return;
        }
        let core = self.cores.len();
        self.say(|| {
            format!("{core} takes {:?} over", taken.iter().map(|Partition(number)| number).collect::<Vec<_>>())
        });
        let recovered = self.store.adopt(core, &taken);
        self.recorded.clone_from(&self.store.decided);
        let place = (CoreId(core as u16), self.takeovers.founders as u16, taken);
        let started = start_shard(&self.blueprint, recovered, place, &self.takeovers.directory, self.now);
        self.cores.push(started);
        self.told.push(0);
        self.takeovers.served.push(taken);
        self.takeovers.count += 1;
    }
}
