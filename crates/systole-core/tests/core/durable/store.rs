//! The journal of the simulation: written steps, steps on their way, and the records of each message.

use std::collections::{HashMap, HashSet, VecDeque};

use systole_core::journal::{
    AppendError, Batch, BudgetRecord, Journal, MemoryJournal, MessageState, Number, Op, Owner, Recovered, Step, Tail,
};
use systole_core::vocab::{MessageId, Name, Partitions, Time};

use super::listeners::Handler;

#[derive(Default)]
pub(crate) struct Store {
    journal: MemoryJournal,
    /// Steps of shards that are not written yet.
    queue: VecDeque<(usize, u64, Step)>,
    /// The ends of the logs of cores; none for one that was fenced.
    tails: HashMap<usize, Tail>,
    /// Cores that were fenced, and don't know it yet.
    fenced: Vec<usize>,
    /// The last step of this start that is written, by shard.
    written: HashMap<usize, u64>,
    ids: HashMap<Number, MessageId>,
    /// The messages that ever waited, with their numbers.
    numbers: HashMap<MessageId, Number>,
    /// Messages whose consumption is durable.
    pub(crate) done: HashSet<MessageId>,
    /// Messages whose end is durable: consumed, cancelled, or of a thread that has closed.
    pub(crate) over: HashSet<MessageId>,
    /// The groups of awaited calls of each message, in the order in which it is durable that they were decided.
    pub(crate) decided: HashMap<MessageId, Vec<u32>>,
    pub(crate) notes: HashMap<(MessageId, u32), String>,
    /// The number of groups of awaited calls that each message may still make: a script has two, and a group that is
    /// given up may be made again.
    groups: HashMap<Number, u32>,
    /// Listeners whose handlers may make other calls when they are run again.
    asked_again: HashSet<Name>,
    /// The threads of those.
    free: HashSet<Number>,
    /// The threads that opened, and their parents.
    parents: HashMap<Number, Option<Number>>,
    /// Parents, listeners and ordinals of all threads that ever opened.
    paths: HashSet<(Number, Name, u32)>,
    /// The threads of messages.
    threads: HashMap<Number, Number>,
    /// The threads of calls that opened no thread.
    called: Vec<Number>,
    /// The tokens that requests to models used, with their threads.
    tokens: Vec<(Number, u64)>,
}

impl Store {
    pub(crate) fn new(asked_again: HashSet<Name>) -> Self {
        Self { journal: MemoryJournal::new([7; 32]), asked_again, ..Self::default() }
    }

    pub(crate) fn ask(&mut self, shard: usize, number: u64, step: Step) {
        self.queue.push_back((shard, number, step));
    }

    pub(crate) fn is_behind(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Writes up to so many steps. `late`: as for the check of budgets.
    pub(crate) fn write(&mut self, steps: usize, late: u64) {
        for _ in 0..steps {
            let Some((shard, number, step)) = self.queue.pop_front() else { return };
            let Some(tail) = self.tails.get_mut(&shard) else { continue };
            match self.journal.append(&Batch::of(*tail, vec![step.clone()])) {
                Ok(()) => tail.position += 1,
                Err(AppendError::Fenced(_)) => {
                    self.tails.remove(&shard);
                    self.fenced.push(shard);
                    continue;
                }
                Err(AppendError::Failed(error)) => panic!("it is memory: {error}"),
            }
            step.ops.iter().for_each(|op| self.note(op));
            check_act(&step);
            let charges = step.ops.iter().any(|op| matches!(op, Op::Budget(_)));
            if charges {
                self.check_budgets(&self.journal.clone().recover().expect("it is memory").budgets, late);
            }
            self.written.insert(shard, number);
        }
    }

    /// Writes what lives beside the cores.
    pub(crate) fn beside(&mut self, op: Op, at: Time) {
        self.journal.write(&[Step { ops: vec![op], at }]).expect("it is memory");
    }

    /// The last step of a shard that is written.
    pub(crate) fn written(&self, shard: usize) -> u64 {
        self.written.get(&shard).copied().unwrap_or(0)
    }

    /// Loses the steps that are not written.
    pub(crate) fn crash(&mut self) {
        self.queue.clear();
    }

    pub(crate) fn close(&mut self) {
        assert!(self.queue.is_empty());
        self.journal.close().expect("it is memory");
    }

    /// A core takes partitions over.
    pub(crate) fn adopt(&mut self, core: usize, partitions: &Partitions) -> Recovered {
        let recovered = self.journal.adopt(partitions).expect("it is memory");
        self.tails.insert(core, Tail::begin(*partitions, recovered.epoch));
        recovered
    }

    /// A core gives its partitions up, unless another owner has them.
    pub(crate) fn release(&mut self, core: usize) {
        if let Some(tail) = self.tails.remove(&core) {
            let _ = self.journal.release(&tail);
        }
    }

    /// Another process takes partitions over, and ends.
    pub(crate) fn steal(&mut self, partitions: &Partitions) {
        self.journal.adopt(partitions).expect("it is memory");
    }

    /// Takes the next core that was fenced.
    pub(crate) fn fenced(&mut self) -> Option<usize> {
        self.fenced.pop()
    }

    /// Starts with cores that own these partitions.
    pub(crate) fn recover(&mut self, cores: &[Partitions]) -> Recovered {
        self.written.clear();
        self.fenced.clear();
        let recovered = self.journal.recover().expect("it is memory");
        let begin = |(core, partitions): (usize, &Partitions)| (core, Tail::begin(*partitions, recovered.epoch));
        self.tails = cores.iter().enumerate().map(begin).collect();
        recovered
    }

    /// Reads the records as another program would.
    pub(crate) fn seen(&self) -> Recovered {
        self.journal.clone().recover().expect("it is memory")
    }

    /// The amounts that budgets say were spent are those of their threads and of all below. `late`: tokens that may not be written down
    /// but there.
    fn check_budgets(&self, budgets: &[BudgetRecord], late: u64) {
        let up = |thread: Number| std::iter::successors(Some(thread), |at| self.parents.get(at).copied().flatten());
        for BudgetRecord { thread, budget, spent } in budgets {
            let is_below = |at: &&Number| **at != *thread && up(**at).any(|at| at == *thread);
            let threads = self.parents.keys().filter(is_below).count() as u64;
            let calls = threads + self.called.iter().filter(is_below).count() as u64;
            assert_eq!((spent.threads, spent.calls), (threads, calls), "{thread} with {budget}");
            let used = self.tokens.iter().filter(|(at, _)| up(*at).any(|at| at == *thread));
            let tokens: u64 = used.map(|(_, tokens)| tokens).sum();
            assert!((tokens..=tokens + late).contains(&spent.tokens), "{thread} with {budget}: {spent}, not {tokens}");
            assert_eq!(spent.cost.0, spent.tokens * 3, "{thread} with {budget}: {spent}");
        }
    }

    fn note(&mut self, op: &Op) {
        match op {
            Op::Open(thread) => {
                self.parents.insert(thread.number, thread.parent);
                if let (Some(parent), Owner::Listener(name)) = (thread.parent, &thread.owner) {
                    let is_new = self.paths.insert((parent, name.clone(), thread.ordinal));
                    assert!(is_new, "{name}#{} opens twice below thread {parent}", thread.ordinal);
                    self.free.extend(self.asked_again.contains(name).then_some(thread.number));
                }
            }
            Op::Put(message) => {
                self.ids.insert(message.number, message.id);
                let first = *self.numbers.entry(message.id).or_insert(message.number);
                assert_eq!(first, message.number, "two messages have the id {}", message.id);
                self.threads.insert(message.number, message.thread);
                self.called.extend(matches!(message.state, MessageState::Backlog(_)).then_some(message.thread));
            }
            Op::Done { message } => {
                if let Some(id) = self.ids.get(message) {
                    assert!(self.done.insert(*id), "{id} is done twice");
                    self.over.insert(*id);
                }
            }
            Op::Cancelled { message } => self.over.extend(self.ids.get(message)),
            Op::Close { thread } => {
                let of_it = self.threads.iter().filter(|(_, of)| *of == thread);
                self.over.extend(of_it.filter_map(|(message, _)| self.ids.get(message)));
            }
            Op::Fan(fan) if fan.call.is_some() && !self.free.contains(&fan.thread) => {
                let left = self.groups.entry(fan.id.message).or_insert(2);
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{} makes its calls again", fan.source));
            }
            Op::Forgotten { fan } => *self.groups.entry(fan.message).or_insert(2) += 1,
            Op::Decided { fan, .. } => {
                if let (Some(id), Some(call)) = (self.ids.get(&fan.message), fan.call) {
                    self.decided.entry(*id).or_default().push(call);
                }
            }
            Op::Note(note) => {
                if let Some(&thread) = self.threads.get(&note.message).filter(|_| *note.name == *Handler::THOUGHT) {
                    self.tokens.push((thread, note.value.parse().expect("a number")));
                }
                if let Some(id) = self.ids.get(&note.message) {
                    let before = self.notes.insert((*id, note.index), note.value.to_string());
                    assert_eq!(before, None, "a note of {id} is written twice");
                }
            }
            _ => {}
        }
    }
}

/// An act is written with its effect, or not at all.
fn check_act(step: &Step) {
    let acts: Vec<_> =
        step.ops.iter().filter_map(|op| if let Op::Acted(act) = op { Some(act) } else { None }).collect();
    let [act] = acts[..] else { return assert!(acts.is_empty(), "two acts in one step: {step:?}") };
    let is_effect = |op: &Op| match &*act.act {
        "retry" => matches!(op, Op::Open(thread) if Some(thread.id) == act.opened),
        "redrive" | "discard" => matches!(op, Op::LetterGone { .. }),
        _ => matches!(op, Op::Close { .. } | Op::Put(_) | Op::Settled { .. } | Op::Done { .. } | Op::Cancelled { .. }),
    };
    assert!(step.ops.iter().any(is_effect), "an act without its effect: {step:?}");
}
