//! The cores of a shard: the one that it starts with, which stays, and those that take partitions over while it runs.

use systole_core::core::{Core, CoreId, Counts, Input, Output};
use systole_core::vocab::{Partitions, Time};
use tokio::sync::oneshot;

/// The cores of a shard.
pub(super) struct Cores {
    /// The first is the one that the shard started with.
    list: Vec<Served>,
    /// The core whose turn it is.
    turn: usize,
    /// The fates of the messages of cores that are gone.
    gone: Counts,
}

struct Served {
    id: CoreId,
    core: Core,
    partitions: Partitions,
    /// Gets the partitions when nothing of them is left in the core, which gives them up.
    leaving: Option<oneshot::Sender<Partitions>>,
}

impl Cores {
    pub(super) fn new(id: CoreId, core: Core, partitions: Partitions) -> Self {
        Self { list: vec![Served { id, core, partitions, leaving: None }], turn: 0, gone: Counts::default() }
    }

    /// Adds a core that has taken partitions over.
    #[cfg(feature = "testing")]
    pub(super) fn add(&mut self, id: CoreId, core: Core, partitions: Partitions) {
        self.list.push(Served { id, core, partitions, leaving: None });
    }

    /// Hands an input to its core, or to each core of the shard what concerns all of them.
    pub(super) fn handle(&mut self, to: CoreId, input: Input, now: Time) {
        match input {
            Input::Drain => self.each(now, || Input::Drain),
            Input::Stop => self.each(now, || Input::Stop),
            Input::Unwritable => self.each(now, || Input::Unwritable),
            Input::ListenerDown { listener } => self.each(now, || Input::ListenerDown { listener }),
            Input::ListenerUp { listener } => self.each(now, || Input::ListenerUp { listener }),
            input => match (self.get(to), input) {
                (Some(served), input) => served.core.handle(input, now),
                // A message was on its way when the core left; the rest is about handlers that are aborted.
                (None, Input::Core(message)) => self.list[0].core.handle(Input::Stray(message), now),
                (None, input @ Input::Injected(_)) => self.list[0].core.handle(input, now),
                (None, _) => {}
            },
        }
    }

    fn each(&mut self, now: Time, input: impl Fn() -> Input) {
        self.list.iter_mut().for_each(|served| served.core.handle(input(), now));
    }

    /// Returns whether a core is here.
    pub(super) fn has(&self, id: CoreId) -> bool {
        self.list.iter().any(|served| served.id == id)
    }

    fn get(&mut self, id: CoreId) -> Option<&mut Served> {
        self.list.iter_mut().find(|served| served.id == id)
    }

    /// Takes the next output; cores take turns.
    pub(super) fn poll(&mut self, now: Time) -> Option<(CoreId, Output)> {
        for _ in 0..self.list.len() {
            self.turn = (self.turn + 1) % self.list.len();
            let Served { id, core, .. } = &mut self.list[self.turn];
            if let Some(output) = core.poll(now) {
                return Some((*id, output));
            }
        }
        None
    }

    /// Lets a core give its partitions up; `tell` gets them when nothing of them is left there.
    #[cfg(feature = "testing")]
    pub(super) fn release(&mut self, id: CoreId, tell: oneshot::Sender<Partitions>, now: Time) {
        // A core that is gone drops the sender, so that the caller sees it.
        let Some(served) = self.get(id).filter(|served| served.leaving.is_none()) else { return };
        served.leaving = Some(tell);
        served.core.handle(Input::Release, now);
    }

    /// Parts with cores that have given their partitions up, and of which nothing is left. The first one stays.
    pub(super) fn part(&mut self) {
        let mut at = 0;
        while at < self.list.len() {
            let served = &mut self.list[at];
            if served.leaving.is_none() || !served.core.has_left() {
                at += 1;
                continue;
            }
            let partitions = std::mem::take(&mut served.partitions);
            if let Some(tell) = served.leaving.take() {
                // The caller may have dropped its future.
                let _ = tell.send(partitions);
            }
            match at {
                0 => at += 1,
                _ => self.gone = self.gone.plus(self.list.remove(at).core.counts()),
            }
            self.turn = 0;
        }
    }

    /// Returns whether a core is about to give its partitions up.
    pub(super) fn are_leaving(&self) -> bool {
        self.list.iter().any(|served| served.leaving.is_some())
    }

    /// Returns the fates of all messages so far, those of cores that are gone included.
    pub(super) fn counts(&self) -> Counts {
        self.iter().fold(self.gone, |sum, core| sum.plus(core.counts()))
    }

    pub(super) fn are_idle(&self) -> bool {
        self.list.iter().all(|served| served.core.is_idle())
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        self.list.iter().filter_map(|served| served.core.next_wake()).min()
    }

    /// Lists the cores, the one that the shard started with first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Core> {
        self.list.iter().map(|served| &served.core)
    }
}
