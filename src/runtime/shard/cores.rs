//! The cores of a shard: the one that it starts with, which stays, and those that take partitions over while it runs.

use std::collections::BTreeSet;

use systole_core::core::{Core, CoreId, Counts, Input, Latency, ListenerId, OrganismVersion, Output};
use systole_core::vocab::{Partitions, Time};
use tokio::sync::oneshot;

use super::claim::Claim;

/// The cores of a shard.
pub(crate) struct Cores {
    /// The first is the one that the shard started with.
    list: Vec<Served>,
    /// The core whose turn it is.
    turn: usize,
    /// The fates of the messages of cores that are gone.
    gone: Counts,
    /// The times that their steps took to become durable.
    gone_appends: Latency,
    /// Listeners that rest, for cores that come later.
    resting: BTreeSet<ListenerId>,
    /// Listeners whose questions nobody can answer here, for the same.
    unattended: BTreeSet<ListenerId>,
    /// True if the organism ends, or its journal can't be written: no core comes any more.
    ending: bool,
}

struct Served {
    id: CoreId,
    core: Core,
    /// Told when nothing is left of the partitions that the core gives up.
    leaving: Option<Leaving>,
    /// True if another owner took its partitions over, until nothing of them is left.
    fenced: bool,
}

/// Partitions that a core gives up, and the receiver of them.
pub(crate) type Leaving = (Claim, oneshot::Sender<Partitions>);

impl Served {
    fn new(id: CoreId, core: Core) -> Self {
        Self { id, core, leaving: None, fenced: false }
    }
}

impl Cores {
    pub(crate) fn new(id: CoreId, core: Core) -> Self {
        let list = vec![Served::new(id, core)];
        Self {
            list,
            turn: 0,
            gone: Counts::default(),
            gone_appends: Latency::default(),
            resting: BTreeSet::new(),
            unattended: BTreeSet::new(),
            ending: false,
        }
    }

    /// Adds a core that has taken partitions over, and tells it what the others know.
    pub(crate) fn add(&mut self, id: CoreId, mut core: Core, now: Time) {
        self.resting.iter().for_each(|&listener| core.handle(Input::ListenerRests { listener, rests: true }, now));
        self.unattended.iter().for_each(|&listener| core.handle(Input::ListenerUnattended { listener }, now));
        self.list.push(Served::new(id, core));
    }

    /// Hands an input to its core, or to each core of the shard what concerns all of them.
    pub(crate) fn handle(&mut self, to: CoreId, input: Input, now: Time) {
        match input {
            Input::Drain => self.end(now, || Input::Drain),
            Input::Stop => self.end(now, || Input::Stop),
            Input::Unwritable => self.end(now, || Input::Unwritable),
            Input::ListenerRests { listener, rests } => {
                match rests {
                    true => self.resting.insert(listener),
                    false => self.resting.remove(&listener),
                };
                self.each(now, || Input::ListenerRests { listener, rests });
            }
            Input::ListenerPaused { listener, paused } => {
                self.each(now, || Input::ListenerPaused { listener, paused });
            }
            Input::Begin { version } => self.each(now, || Input::Begin { version }),
            Input::Forget { version } => self.each(now, || Input::Forget { version }),
            Input::ListenerUnattended { listener } => {
                self.unattended.insert(listener);
                self.each(now, || Input::ListenerUnattended { listener });
            }
            input => match (self.get(to), input) {
                (Some(served), input) => {
                    served.fenced |= matches!(input, Input::Fenced);
                    served.core.handle(input, now);
                }
                // A message was on its way when the core left; the rest is about handlers that are aborted.
                (None, Input::Core(message)) => self.list[0].core.handle(Input::Stray(message), now),
                (None, input @ Input::Injected(_)) => self.list[0].core.handle(input, now),
                (None, _) => {}
            },
        }
    }

    fn end(&mut self, now: Time, input: impl Fn() -> Input) {
        self.ending = true;
        self.each(now, input);
    }

    fn each(&mut self, now: Time, input: impl Fn() -> Input) {
        self.list.iter_mut().for_each(|served| served.core.handle(input(), now));
    }

    /// Tells the cores of a further version of the organism.
    pub(crate) fn learn(&mut self, version: &OrganismVersion, now: Time) {
        self.each(now, || Input::Version(Box::new(version.clone())));
    }

    /// Tells the cores that the clock was set: the organism's start was at `before`, and is at `after`.
    pub(crate) fn set_clock(&mut self, before: Time, after: Time, now: Time) {
        self.each(now, || Input::ClockSet { before, after });
    }

    /// Returns whether a core is here.
    pub(crate) fn has(&self, id: CoreId) -> bool {
        self.list.iter().any(|served| served.id == id)
    }

    /// Returns whether a core is here, and gives its partitions not up.
    pub(crate) fn keeps(&self, id: CoreId) -> bool {
        self.list.iter().any(|served| served.id == id && served.leaving.is_none())
    }

    fn get(&mut self, id: CoreId) -> Option<&mut Served> {
        self.list.iter_mut().find(|served| served.id == id)
    }

    /// Takes the next output; cores take turns.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(CoreId, Output)> {
        for _ in 0..self.list.len() {
            self.turn = (self.turn + 1) % self.list.len();
            let Served { id, core, .. } = &mut self.list[self.turn];
            if let Some(output) = core.poll(now) {
                return Some((*id, output));
            }
        }
        None
    }

    /// Lets a core give its partitions up.
    pub(crate) fn release(&mut self, id: CoreId, leaving: Leaving, now: Time) {
        // Claims keep a core from being released twice; without it the dropped sender tells the caller.
        let Some(served) = self.get(id) else { return };
        served.leaving = Some(leaving);
        served.core.handle(Input::Release, now);
    }

    /// Parts with cores that have given their partitions up, or lost them, and of which nothing is left. The first one
    /// stays. Returns those that gave them up.
    pub(crate) fn part(&mut self) -> Vec<(CoreId, Leaving)> {
        let mut left = Vec::new();
        for at in (0..self.list.len()).rev() {
            let served = &mut self.list[at];
            if served.leaving.is_none() && !served.fenced || !served.core.has_left() {
                continue;
            }
            served.fenced = false;
            left.extend(served.leaving.take().map(|leaving| (served.id, leaving)));
            if at > 0 {
                let core = self.list.remove(at).core;
                self.gone = self.gone.plus(core.counts());
                self.gone_appends = self.gone_appends.plus(core.append_latency());
                self.turn = 0;
            }
        }
        left
    }

    /// Returns whether no core may come any more.
    pub(crate) fn are_ending(&self) -> bool {
        self.ending
    }

    /// Returns the fates of all messages so far, those of cores that are gone included.
    pub(crate) fn counts(&self) -> Counts {
        self.iter().fold(self.gone, |sum, core| sum.plus(core.counts()))
    }

    /// Returns the times that all steps took to become durable, those of cores that are gone included.
    #[cfg(feature = "gateway")]
    pub(crate) fn append_latency(&self) -> Latency {
        self.iter().fold(self.gone_appends, |sum, core| sum.plus(core.append_latency()))
    }

    pub(crate) fn are_idle(&self) -> bool {
        self.list.iter().all(|served| served.core.is_idle())
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.list.iter().filter_map(|served| served.core.next_wake()).min()
    }

    /// Lists the cores, the one that the shard started with first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Core> {
        self.list.iter().map(|served| &served.core)
    }
}
