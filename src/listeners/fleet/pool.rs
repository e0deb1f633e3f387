//! The processes of a listener and its messages as one machine: which process gets which message, which message an end is
//! blamed on, and when no process is started. It knows no process and no clock.
//!
//! A message that was in a process at its end is a suspect from then on: it runs again alone, in a process of its own, which
//! is its lane. Others go on in other processes: where there are several, one is never a lane. An end is counted as an
//! attempt of the only message that ran then, and else of the owner of the lane. So a message that ends each of its
//! processes is given up, and its neighbours are answered.
//!
//! A message that awaits calls may await another one of this listener. So a lane whose messages all await admits a guest,
//! where there is no other way.
//!
//! A listener whose messages end one process after the other, none answered in between, rests as any listener that fails
//! does ([`Restarts`]); one whose processes end before they come up rests from the first one on. Messages wait meanwhile. The attempts of one message count once for that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use systole_core::vocab::Time;

use crate::runtime::{Restarts, rest};

/// The rest when the system has no room for another process.
const SHORTAGE: Duration = Duration::from_millis(50);

/// A message that wants a process, until it is done or withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// A process, never numbered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessId(u64);

/// An order of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Give the message to the process.
    Give(Ticket, ProcessId),
    /// Start a process of that number.
    Start(ProcessId),
}

/// The effect of the end of a process on a message that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The process had not got it: it waits again.
    Unread,
    /// It was among others: it waits to run alone.
    Suspected,
    /// It was alone, for the n-th time: it waits to run again.
    Counted(u8),
    /// It was alone as often as it may be: it is given up.
    GivenUp(u8),
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It exited with 0.
    Exited,
    /// It failed.
    Failed,
    /// The system had no room for it: it never began.
    Shortage,
}

/// The machine.
#[derive(Debug)]
pub(super) struct Pool {
    /// The most processes.
    most: usize,
    processes: BTreeMap<ProcessId, Process>,
    wants: BTreeMap<Ticket, Want>,
    /// Messages that wait for a process of their own, and for any.
    suspects: VecDeque<Ticket>,
    others: VecDeque<Ticket>,
    /// A process that gets no other message until a suspect has it.
    reserved: Option<ProcessId>,
    numbered: u64,
    rest: Rest,
}

#[derive(Debug, Default)]
struct Process {
    /// It has written its first line.
    is_up: bool,
    /// The suspect that runs alone in it: then it is a lane.
    owner: Option<Ticket>,
    messages: BTreeSet<Ticket>,
    /// The failures at its start: those that fail side by side are one.
    failures: u32,
}

#[derive(Debug)]
struct Want {
    attempts: u8,
    most: u8,
    is_suspect: bool,
    /// It was blamed for an end before.
    was_blamed: bool,
    process: Option<ProcessId>,
    /// The process has it.
    is_read: bool,
    /// It awaits answers to calls.
    awaits: bool,
}

/// Ends lately, and the time until which no process is started.
#[derive(Debug, Default)]
struct Rest {
    /// Ends since the last message that was answered, those of one message counted once.
    ends: Restarts,
    /// Starts since the last process that came up, and the time of the first one.
    failures: u32,
    since: Option<Time>,
    until: Option<Time>,
}

impl Pool {
    /// Makes a machine with at most so many processes.
    pub(super) fn new(most: u32) -> Self {
        Self {
            most: (most as usize).max(1),
            processes: BTreeMap::new(),
            wants: BTreeMap::new(),
            suspects: VecDeque::new(),
            others: VecDeque::new(),
            reserved: None,
            numbered: 0,
            rest: Rest::default(),
        }
    }

    /// Lets a message wait that was in `attempts` of at most `most` attempts before. One that had several runs alone.
    pub(super) fn ask(&mut self, attempts: u8, most: u8) -> Ticket {
        let ticket = Ticket(self.number());
        let is_suspect = attempts > 1;
        let want = Want { attempts, most, is_suspect, was_blamed: false, process: None, is_read: false, awaits: false };
        self.wants.insert(ticket, want);
        self.queue_of(is_suspect).push_back(ticket);
        ticket
    }

    /// Notes that the process has the message.
    pub(super) fn read(&mut self, ticket: Ticket) {
        if let Some(want) = self.wants.get_mut(&ticket) {
            want.is_read = true;
        }
    }

    /// Notes whether a message does nothing but await answers to calls.
    pub(super) fn awaits(&mut self, ticket: Ticket, awaits: bool) {
        if let Some(want) = self.wants.get_mut(&ticket) {
            want.awaits = awaits;
        }
    }

    /// Ends a message that was answered.
    pub(super) fn answered(&mut self, ticket: Ticket) {
        self.rest.ends.worked();
        self.withdraw(ticket);
    }

    /// Ends a message, wherever it is.
    pub(super) fn withdraw(&mut self, ticket: Ticket) {
        let Some(want) = self.wants.remove(&ticket) else { return };
        match want.process.and_then(|process| self.processes.get_mut(&process)) {
            Some(process) => {
                process.messages.remove(&ticket);
                process.owner = process.owner.filter(|&owner| owner != ticket);
            }
            None => self.queue_of(want.is_suspect).retain(|&other| other != ticket),
        }
    }

    /// Notes that a process can work.
    pub(super) fn came_up(&mut self, id: ProcessId) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.is_up = true;
            (self.rest.failures, self.rest.since) = (0, None);
        }
    }

    /// Ends a process: the effects on the messages that it had. The order in which these run again is that of their
    /// age, but the owner of a lane comes behind its guests.
    pub(super) fn ended(&mut self, id: ProcessId, ending: Ending, now: Time) -> Vec<(Ticket, Lost)> {
        let Some(process) = self.processes.remove(&id) else { return Vec::new() };
        self.reserved = self.reserved.filter(|&reserved| reserved != id);
        let is_read = |ticket: &Ticket| self.wants.get(ticket).is_some_and(|want| want.is_read);
        let (mut read, unread): (Vec<_>, Vec<_>) = process.messages.iter().copied().partition(is_read);
        let only = |all: &[Ticket]| if let [one] = all { Some(*one) } else { None };
        let runs = |ticket: &Ticket| self.wants.get(ticket).is_some_and(|want| !want.awaits);
        let running: Vec<_> = read.iter().copied().filter(runs).collect();
        let owner = || process.owner.filter(|owner| read.contains(owner));
        let blamed = only(&read).or_else(|| owner().and_then(|owner| only(&running).or(Some(owner))));
        let blamed_want = blamed.and_then(|ticket| self.wants.get_mut(&ticket));
        let is_known = blamed_want.is_some_and(|want| std::mem::replace(&mut want.was_blamed, true));
        read.sort_by_key(|&ticket| (Some(ticket) == process.owner, ticket));
        let mut lost: Vec<_> =
            read.into_iter().map(|ticket| (ticket, self.lose(ticket, Some(ticket) == blamed))).collect();
        for ticket in unread.into_iter().rev() {
            if let Some(want) = self.wants.get_mut(&ticket) {
                want.process = None;
                let is_suspect = want.is_suspect;
                self.queue_of(is_suspect).push_front(ticket);
                lost.push((ticket, Lost::Unread));
            }
        }
        match (ending, process.is_up) {
            (Ending::Shortage, _) => self.rest.shortage(now),
            (Ending::Exited, true) if blamed.is_none() && lost.is_empty() => {}
            // The attempts of one message count once.
            (_, true) if is_known => {}
            (_, true) => self.rest.ended(now),
            // One that was started before the last failure is part of it.
            (_, false) if process.failures == self.rest.failures => self.rest.failed(now),
            (_, false) => {}
        }
        lost
    }

    /// Takes a message from a process that has ended.
    fn lose(&mut self, ticket: Ticket, is_blamed: bool) -> Lost {
        let Some(want) = self.wants.get_mut(&ticket) else { return Lost::Unread };
        (want.process, want.is_read, want.awaits, want.is_suspect) = (None, false, false, true);
        want.attempts = want.attempts.saturating_add(is_blamed.into());
        let attempts = want.attempts;
        if is_blamed && attempts >= want.most {
            self.wants.remove(&ticket);
            return Lost::GivenUp(attempts);
        }
        self.suspects.push_back(ticket);
        if is_blamed { Lost::Counted(attempts) } else { Lost::Suspected }
    }

    /// The next order, until there is none.
    pub(super) fn next(&mut self, now: Time) -> Option<Step> {
        if let Some(&suspect) = self.suspects.front()
            && let Some(step) = self.place_suspect(suspect, now)
        {
            return Some(step);
        }
        let &other = self.others.front()?;
        self.place_other(other, now)
    }

    /// Starts a process that no message waits for, if it may be.
    pub(super) fn start(&mut self, now: Time) -> Option<ProcessId> {
        self.may_start(now).then(|| {
            let id = ProcessId(self.number());
            self.processes.insert(id, Process { failures: self.rest.failures, ..Process::default() });
            id
        })
    }

    /// The time at which [`next`](Self::next) may have an order though nothing happens before.
    pub(super) fn wakes_at(&self, now: Time) -> Option<Time> {
        let waits = !(self.suspects.is_empty() && self.others.is_empty()) && self.processes.len() < self.most;
        self.rest.until.filter(|&until| waits && until > now)
    }

    /// The time since which processes could not be started, or ended before they came up.
    pub(super) fn fails_since(&self) -> Option<Time> {
        self.rest.since
    }

    /// The end of the present rest.
    pub(super) fn rests_until(&self, now: Time) -> Option<Time> {
        self.rest.until.filter(|&until| until > now)
    }

    fn place_suspect(&mut self, suspect: Ticket, now: Time) -> Option<Step> {
        let lanes = self.processes.values().filter(|process| process.owner.is_some()).count();
        if lanes < (self.most - 1).max(1) {
            let is_free = |(_, process): &(&ProcessId, &Process)| process.owner.is_none() && self.all_await(process);
            let free = self.processes.iter().filter(is_free).min_by_key(|(_, process)| process.messages.len());
            match free.map(|(&id, process)| (id, process.messages.is_empty())) {
                Some((id, true)) => return Some(self.give(suspect, id, true)),
                _ if self.may_start(now) => return self.start(now).map(Step::Start),
                Some((id, false)) => return Some(self.give(suspect, id, true)),
                None => {}
            }
            if self.reserved.is_none() {
                let open = self.processes.iter().filter(|(_, process)| process.owner.is_none());
                self.reserved = open.min_by_key(|(_, process)| process.messages.len()).map(|(&id, _)| id);
            }
            if self.reserved.is_some() {
                return None;
            }
        }
        let lane = self.lane_that_awaits()?;
        Some(self.give(suspect, lane, false))
    }

    fn place_other(&mut self, other: Ticket, now: Time) -> Option<Step> {
        let is_open = |(id, process): &(&ProcessId, &Process)| process.owner.is_none() && Some(**id) != self.reserved;
        let idlest = self.processes.iter().filter(is_open).min_by_key(|(_, process)| process.messages.len());
        match idlest.map(|(&id, process)| (id, process.messages.is_empty())) {
            Some((id, true)) => Some(self.give(other, id, false)),
            _ if self.may_start(now) => self.start(now).map(Step::Start),
            Some((id, false)) => Some(self.give(other, id, false)),
            None => {
                let lane = self.lane_that_awaits()?;
                Some(self.give(other, lane, false))
            }
        }
    }

    /// A lane whose messages all await calls: one of those may be this listener's.
    fn lane_that_awaits(&self) -> Option<ProcessId> {
        let awaits = |process: &&Process| process.owner.is_some() && self.all_await(process);
        self.processes.iter().find(|(_, process)| awaits(process)).map(|(&id, _)| id)
    }

    fn all_await(&self, process: &Process) -> bool {
        process.messages.iter().all(|ticket| self.wants.get(ticket).is_none_or(|want| want.awaits))
    }

    fn give(&mut self, ticket: Ticket, id: ProcessId, owns: bool) -> Step {
        if let (Some(want), Some(process)) = (self.wants.get_mut(&ticket), self.processes.get_mut(&id)) {
            want.process = Some(id);
            process.messages.insert(ticket);
            if owns {
                process.owner = Some(ticket);
                self.reserved = self.reserved.filter(|&reserved| reserved != id);
            }
            let is_suspect = want.is_suspect;
            self.queue_of(is_suspect).pop_front();
        }
        Step::Give(ticket, id)
    }

    fn may_start(&self, now: Time) -> bool {
        let tries = self.rest.since.is_some() && self.processes.values().any(|process| !process.is_up);
        self.processes.len() < self.most && self.rest.until.is_none_or(|until| now >= until) && !tries
    }

    fn queue_of(&mut self, is_suspect: bool) -> &mut VecDeque<Ticket> {
        if is_suspect { &mut self.suspects } else { &mut self.others }
    }

    fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }
}

impl Rest {
    /// Counts the end of a process that had come up.
    fn ended(&mut self, now: Time) {
        if let Some(rest) = self.ends.failed() {
            self.until = Some(now.after(rest));
        }
    }

    /// Counts the end of one that had not.
    fn failed(&mut self, now: Time) {
        self.failures = self.failures.saturating_add(1);
        self.since.get_or_insert(now);
        self.until = Some(now.after(rest(self.failures)));
    }

    fn shortage(&mut self, now: Time) {
        self.since.get_or_insert(now);
        self.until = Some(now.after(SHORTAGE));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: u8 = 3;

    /// What a message does, alone or not.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Good,
        /// Ends its process.
        Poison,
        /// Calls the listener itself and awaits the answer: `true` if that is poison.
        Calls(bool),
    }

    /// A message in the world: its want, and what it does.
    struct Actor {
        ticket: Ticket,
        kind: Kind,
        /// The message that it awaits, or that awaits it.
        child: Option<usize>,
        /// It was told that it awaits it, since its process began.
        awaits: bool,
        outcome: Option<bool>,
    }

    /// Processes and messages around the machine, on a clock of their own.
    struct World {
        pool: Pool,
        now: Time,
        actors: Vec<Actor>,
        /// Messages that were not asked for yet, and how many may run.
        queued: Vec<Kind>,
        slots: usize,
        running: Vec<(ProcessId, Vec<usize>)>,
        /// Whether starts fail, from that number on.
        starts: u32,
        broken: std::ops::Range<u32>,
        ends: u32,
        script: Vec<u8>,
    }

    impl World {
        fn pick(&mut self, of: usize) -> usize {
            self.script.pop().map_or(0, usize::from) % of.max(1)
        }

        fn open(&self) -> usize {
            // One that awaits gives its slot back.
            self.actors.iter().filter(|one| one.outcome.is_none() && one.child.is_none()).count()
        }

        fn ask(&mut self, kind: Kind) -> usize {
            let ticket = self.pool.ask(0, MOST);
            self.actors.push(Actor { ticket, kind, child: None, awaits: false, outcome: None });
            self.actors.len() - 1
        }

        fn actor(&self, ticket: Ticket) -> usize {
            self.actors.iter().position(|one| one.ticket == ticket).unwrap()
        }

        fn drive(&mut self) {
            while let Some(step) = self.pool.next(self.now) {
                match step {
                    Step::Start(id) => {
                        self.starts += 1;
                        if self.broken.contains(&self.starts) {
                            assert!(self.pool.ended(id, Ending::Failed, self.now).is_empty());
                        } else {
                            self.running.push((id, Vec::new()));
                            assert!(self.running.len() <= self.pool.most, "too many processes");
                        }
                    }
                    Step::Give(ticket, id) => {
                        let actor = self.actor(ticket);
                        let (_, has) = self.running.iter_mut().find(|(other, _)| *other == id).unwrap();
                        has.push(actor);
                    }
                }
            }
        }

        /// Lets a message end its process.
        fn crash(&mut self, at: usize) {
            let (id, has) = self.running.remove(at);
            self.ends += 1;
            let lost = self.pool.ended(id, Ending::Failed, self.now);
            assert_eq!(lost.len(), has.len());
            for (ticket, lost) in lost {
                let actor = self.actor(ticket);
                assert!(has.contains(&actor));
                self.actors[actor].awaits = false;
                if let Lost::GivenUp(attempts) = lost {
                    assert_eq!(attempts, MOST);
                    self.end(actor, false);
                }
            }
        }

        /// Ends a message for good; the one that awaits it goes on.
        fn end(&mut self, actor: usize, answered: bool) {
            assert_eq!(self.actors[actor].outcome.replace(answered), None, "faulted or answered once");
            for other in 0..self.actors.len() {
                if self.actors[other].child == Some(actor) {
                    self.pool.awaits(self.actors[other].ticket, false);
                }
            }
        }

        /// Lets one process handle one of its messages; `false` if none can go on.
        fn work(&mut self) -> bool {
            let may = |world: &Self, actor: usize| match world.actors[actor].child {
                Some(child) => world.actors[child].outcome.is_some() || !world.actors[actor].awaits,
                None => true,
            };
            let ready: Vec<(usize, usize)> = (0..self.running.len())
                .flat_map(|at| self.running[at].1.iter().map(move |&actor| (at, actor)))
                .filter(|&(_, actor)| may(self, actor))
                .collect();
            if ready.is_empty() {
                return false;
            }
            let (at, actor) = ready[self.pick(ready.len())];
            let id = self.running[at].0;
            self.pool.came_up(id);
            let all = self.running[at].1.clone();
            all.iter().for_each(|&one| self.pool.read(self.actors[one].ticket));
            let Actor { ticket, kind, child, .. } = self.actors[actor];
            let is_answered = child.is_some_and(|child| self.actors[child].outcome.is_some());
            match kind {
                Kind::Poison => self.crash(at),
                Kind::Calls(poison) if !is_answered => {
                    // A run after the first one makes the same call, which is not made again.
                    if child.is_none() {
                        let child = self.ask(if poison { Kind::Poison } else { Kind::Good });
                        self.actors[actor].child = Some(child);
                    }
                    self.actors[actor].awaits = true;
                    self.pool.awaits(ticket, true);
                }
                Kind::Good | Kind::Calls(_) => {
                    self.running[at].1.retain(|&one| one != actor);
                    self.pool.answered(ticket);
                    self.end(actor, true);
                }
            }
            true
        }

        /// Runs until all messages have an outcome.
        fn run(&mut self) {
            for turn in 0.. {
                assert!(turn < 200_000, "it ends: {:?}", self.pool);
                while self.open() < self.slots
                    && let Some(kind) = self.queued.pop()
                {
                    self.ask(kind);
                }
                self.drive();
                if self.queued.is_empty() && self.actors.iter().all(|one| one.outcome.is_some()) {
                    return;
                }
                if !self.work() {
                    // Else it waits for ever.
                    let wakes = self.pool.wakes_at(self.now);
                    self.now = wakes.unwrap_or_else(|| panic!("a message waits for nothing: {:?}", self.pool));
                }
            }
        }
    }

    fn world(queued: Vec<Kind>, slots: usize, processes: u32, script: Vec<u8>, broken: std::ops::Range<u32>) -> World {
        let (pool, now) = (Pool::new(processes), Time::default());
        World { pool, now, actors: Vec::new(), queued, slots, running: Vec::new(), starts: 0, broken, ends: 0, script }
    }

    fn kinds() -> impl Strategy<Value = Vec<Kind>> {
        let kind = prop_oneof![
            12 => Just(Kind::Good),
            2 => Just(Kind::Poison),
            2 => Just(Kind::Calls(false)),
            1 => Just(Kind::Calls(true)),
        ];
        proptest::collection::vec(kind, 1..60)
    }

    proptest! {
        #[test]
        fn each_good_message_is_answered_and_each_poison_is_given_up_once(
            kinds in kinds(),
            slots in 1_usize..65,
            processes in 1_u32..5,
            script in proptest::collection::vec(any::<u8>(), 0..4000),
            broken in (0_u32..20, 0_u32..6),
        ) {
            let mut world = world(kinds, slots, processes, script, broken.0..broken.0 + broken.1);
            world.run();
            let poisons = world.actors.iter().filter(|one| one.kind == Kind::Poison).count();
            for one in &world.actors {
                prop_assert_eq!(one.outcome, Some(one.kind != Kind::Poison), "{:?}", one.kind);
            }
            // A poison ends its process among others, as often as it may alone, and now and then as a guest.
            let most = poisons * 3 * usize::from(MOST);
            prop_assert!(world.ends as usize <= most, "{} ends, {poisons} poisons", world.ends);
            prop_assert!(world.pool.wants.is_empty() && world.pool.suspects.is_empty() && world.pool.others.is_empty());
        }
    }

    #[test]
    fn an_attempt_counts_for_the_suspect_that_ran_alone() {
        let (mut pool, now) = (Pool::new(2), Time::default());
        let all: Vec<Ticket> = (0..4).map(|_| pool.ask(0, MOST)).collect();
        let start = |pool: &mut Pool| match pool.next(now) {
            Some(Step::Start(id)) => id,
            other => panic!("{other:?}"),
        };
        let first = start(&mut pool);
        assert_eq!(pool.next(now), Some(Step::Give(all[0], first)));
        let second = start(&mut pool);
        assert_eq!(pool.next(now), Some(Step::Give(all[1], second)));
        assert_eq!(pool.next(now), Some(Step::Give(all[2], first)));
        assert_eq!(pool.next(now), Some(Step::Give(all[3], second)));
        [first, second].into_iter().for_each(|id| pool.came_up(id));
        [all[0], all[1], all[3]].into_iter().for_each(|ticket| pool.read(ticket));
        // One that the process had not read is no suspect.
        assert_eq!(pool.ended(first, Ending::Failed, now), [(all[0], Lost::Counted(1)), (all[2], Lost::Unread)]);
        let third = start(&mut pool);
        assert_eq!(pool.next(now), Some(Step::Give(all[0], third)));
        // The lane is for the suspect alone; the other process goes on.
        assert_eq!(pool.next(now), Some(Step::Give(all[2], second)));
        pool.read(all[2]);
        let lost = pool.ended(second, Ending::Failed, now);
        assert_eq!(lost, [all[1], all[2], all[3]].map(|ticket| (ticket, Lost::Suspected)));
        pool.came_up(third);
        pool.read(all[0]);
        assert_eq!(pool.ended(third, Ending::Failed, now), [(all[0], Lost::Counted(2))]);
    }

    #[test]
    fn a_listener_whose_processes_do_not_come_up_rests_longer_each_time() {
        let (mut pool, mut now) = (Pool::new(4), Time::default());
        let waiting: Vec<Ticket> = (0..4).map(|_| pool.ask(0, MOST)).collect();
        let mut starts = Vec::new();
        while let Some(step) = pool.next(now) {
            if let Step::Start(id) = step {
                starts.push(id);
            }
        }
        assert_eq!(starts.len(), 4);
        // Failures side by side are one.
        for id in starts {
            assert!(pool.ended(id, Ending::Failed, now).iter().all(|(_, lost)| *lost == Lost::Unread));
        }
        for rest in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(pool.next(now), None);
            let wakes = pool.wakes_at(now).unwrap();
            assert_eq!(wakes.since(now), Duration::from_secs(rest));
            now = wakes;
            // One is tried, not as many as wait.
            let Some(Step::Start(id)) = pool.next(now) else { panic!("a start") };
            assert!(matches!(pool.next(now), Some(Step::Give(..))));
            assert!((0..9).all(|_| !matches!(pool.next(now), Some(Step::Start(_)))));
            assert!(pool.fails_since().is_some());
            pool.ended(id, Ending::Failed, now);
        }
        assert_eq!(pool.wants.len(), waiting.len());
    }

    #[test]
    fn the_attempts_of_one_message_count_once_for_the_rest_of_its_listener() {
        let (mut pool, now) = (Pool::new(1), Time::default());
        for poison in 0..6 {
            assert_eq!(pool.rests_until(now), None, "behind {poison} of them");
            let ticket = pool.ask(0, MOST);
            for attempt in 1..=MOST {
                let Some(Step::Start(id)) = pool.next(now) else { break };
                assert_eq!(pool.next(now), Some(Step::Give(ticket, id)));
                pool.came_up(id);
                pool.read(ticket);
                let expected = if attempt == MOST { Lost::GivenUp(MOST) } else { Lost::Counted(attempt) };
                assert_eq!(pool.ended(id, Ending::Failed, now), [(ticket, expected)]);
            }
        }
        assert_eq!(pool.rests_until(now).unwrap().since(now), rest(1));
    }

    #[test]
    fn the_attempts_of_several_messages_in_turns_count_once_for_each() {
        let (mut pool, now) = (Pool::new(1), Time::default());
        let all: Vec<_> = (0..5).map(|_| pool.ask(1, MOST)).collect();
        let mut given_up = Vec::new();
        while given_up.len() < all.len() {
            let Some(Step::Start(id)) = pool.next(now) else { panic!("it rests: {:?}", pool.rests_until(now)) };
            let Some(Step::Give(ticket, _)) = pool.next(now) else { panic!("no message is given") };
            pool.came_up(id);
            pool.read(ticket);
            let lost = pool.ended(id, Ending::Failed, now);
            given_up
                .extend(lost.into_iter().filter(|(_, lost)| *lost == Lost::GivenUp(MOST)).map(|(ticket, _)| ticket));
        }
        assert_eq!(given_up, all);
    }
}
