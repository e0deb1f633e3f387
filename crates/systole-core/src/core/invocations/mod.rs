//! Handlers in flight: running, parked, and what they did before a crash.

mod replay;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub(super) use replay::{Made, MadeState, Repeated, Replay};
use slotmap::SlotMap;

use super::blueprint::ListenerId;
use super::clock::{Timer, TimerId};
use super::contract::OnRestart;
use super::conversation::AwaitedAnswers;
use super::faults;
use super::io::{Attachment, CallId, Output};
use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::outcomes::GroupResult;
use super::queued::Attempts;
use super::setup::{Setup, StepContext};
use crate::journal::{FanId, NoteRecord, Number, Op, Seen};
use crate::vocab::{Fault, MessageId, Time};

/// The handlers of a core that run or are parked.
pub(super) struct Invocations {
    setup: Rc<Setup>,
    invocations: SlotMap<InvocationId, Invocation>,
    /// The past of handlers of recovered messages, until they run again.
    replays: HashMap<Number, Replay>,
    /// Handlers that keep the core from being idle.
    working: usize,
    /// Results that wait until it is the turn of the handlers which await them.
    resumes: usize,
    /// Listeners whose questions nobody can answer here.
    unattended: BTreeSet<ListenerId>,
}

/// A handler that runs or is parked.
#[derive(Debug)]
pub(super) struct Invocation {
    /// `None` once its thread is closed.
    pub thread: Option<ThreadKey>,
    pub listener: ListenerId,
    pub message: MessageId,
    /// The id from which those of its emissions are derived: that of its message, or one of this run, where the ids of
    /// an earlier run must not come again.
    pub seed: MessageId,
    /// Emissions of this message so far: the next one's index.
    pub emitted: u64,
    /// A handler of `<boot>`: it holds no slot, and may run for ever.
    pub boot: bool,
    /// True if operators know that nobody can answer its question here.
    is_known_unattended: bool,
    phase: Phase,
    /// Time that its timeout leaves it; `None` for ever.
    left: Option<Duration>,
    /// True while it can't work: its time stands still.
    stalled: bool,
    /// Groups of calls that are on Queue 1.
    asked: Vec<CallId>,
    /// Groups of calls that it awaits.
    calls: Vec<(CallId, FanOutKey)>,
    /// Groups that are decided and wait for their turn.
    ready: VecDeque<(CallId, GroupResult, AwaitedAnswers)>,
    /// The journal's knowledge of its message, if there is a journal.
    record: Option<Box<InvocationRecord>>,
}

/// The holdings of a handler that has ended, until the step that ends its message: then its slot is free, and with a
/// journal nothing else starts in it before that step is durable.
#[must_use]
pub(super) struct Holdings {
    /// The listener to which the slot goes back.
    pub slot: Option<ListenerId>,
    /// The journal's knowledge of the message, if there is a journal.
    pub record: Option<Box<InvocationRecord>>,
}

impl Holdings {
    /// The number of the message in the journal; 0 if there is none.
    pub(super) fn number(&self) -> Number {
        self.record.as_ref().map_or(0, |record| record.number)
    }
}

/// The state of a handler.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The handler runs. `slot`: it holds one, as all do but boot handlers, and those that went on, while
    /// they were parked, without the answer that they waited for.
    Running { since: Time, timer: Option<TimerId>, slot: bool },
    /// The handler awaits calls and holds no slot.
    Parked,
}

/// The journal's knowledge of the message that a handler works on.
#[derive(Debug, Default)]
pub(super) struct InvocationRecord {
    /// The number of the message.
    pub number: Number,
    /// The fan-out that the message answers, and how many of its answers were consumed with it.
    pub answered: Option<(FanId, u32)>,
    /// Operations that are written in the step that consumes the message.
    pub attachment: Option<Attachment>,
    /// Runs that ended with their process, with the present one if a crash may be its fault.
    attempts: u8,
    /// Those before the present one.
    lost: u8,
    /// The end of what its program wrote on standard error, if it is about to fail.
    pub said: Option<Arc<str>>,
    /// The past of the handler.
    replay: Replay,
}

/// The calls that a handler gave up when it dropped the future of a group.
pub(super) enum GivenUp {
    /// Calls that are open.
    Calls(FanOutKey),
    /// A group that it asked for again after a restart.
    Repeated,
    /// No open call: the drop has no effect.
    Nothing,
}

impl Invocation {
    /// A handler that is about to start on a message.
    pub(super) fn new(
        thread: ThreadKey,
        listener: ListenerId,
        message: MessageId,
        left: Option<Duration>,
        boot: bool,
    ) -> Self {
        Self {
            thread: Some(thread),
            listener,
            message,
            seed: message,
            emitted: 0,
            boot,
            is_known_unattended: false,
            phase: Phase::Parked,
            left,
            stalled: false,
            asked: Vec::new(),
            calls: Vec::new(),
            ready: VecDeque::new(),
            record: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// Returns whether results wait to be handed to it.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns whether a group of calls of it is on Queue 1.
    pub(super) fn has_asked(&self, call: CallId) -> bool {
        self.asked.contains(&call)
    }

    /// Groups of calls that wait to be judged or handed over.
    pub(super) fn groups(&self) -> usize {
        let repeated = self.record.as_ref().map_or(0, |record| record.replay.repeated.len());
        self.asked.len() + self.ready.len() + repeated
    }

    /// Returns whether an answer is still to be handed to it.
    fn awaits(&self) -> bool {
        let repeats = self.record.as_ref().is_some_and(|record| !record.replay.repeated.is_empty());
        repeats || !(self.asked.is_empty() && self.calls.is_empty() && self.ready.is_empty())
    }

    /// The fan-outs that it awaits.
    pub(super) fn fan_outs(&self) -> impl Iterator<Item = FanOutKey> {
        self.calls.iter().map(|&(_, fan)| fan)
    }

    /// The name of a group of its calls in the journal.
    pub(super) fn fan_id(&self, call: CallId) -> FanId {
        let before = self.record.as_ref().map_or(0, |record| record.replay.before);
        FanId { message: self.number(), call: Some(before + call.0) }
    }

    /// The number of its message in the journal; 0 if there is none.
    pub(super) fn number(&self) -> Number {
        self.record.as_ref().map_or(0, |record| record.number)
    }

    /// The place of the message in the context of its thread, if it was run before.
    pub(super) fn remembered(&self) -> Option<Seen> {
        self.record.as_ref().and_then(|record| record.replay.remembered)
    }
}

impl Invocations {
    pub(super) fn new(setup: Rc<Setup>) -> Self {
        Self {
            setup,
            invocations: SlotMap::with_key(),
            replays: HashMap::new(),
            working: 0,
            resumes: 0,
            unattended: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, id: InvocationId) -> Option<&Invocation> {
        self.invocations.get(id)
    }

    /// The open thread of a handler.
    pub(super) fn thread(&self, id: InvocationId) -> Option<ThreadKey> {
        self.invocations.get(id)?.thread
    }

    /// Returns whether no handler keeps the core from being idle.
    pub(super) fn are_idle(&self) -> bool {
        self.working == 0
    }

    /// Returns whether no handler runs or is parked.
    pub(super) fn is_empty(&self) -> bool {
        self.invocations.is_empty()
    }

    /// Results that wait for the turn of their handlers.
    pub(super) fn resumes(&self) -> usize {
        self.resumes
    }

    /// Returns whether all that runs is left to the next start.
    pub(super) fn rest(&self) -> bool {
        let outlives = |invocation: &Invocation| self.setup.blueprint.contract(invocation.listener).outlives;
        self.invocations.values().all(|one| !one.is_running() || one.boot || outlives(one))
    }

    /// Notes that nobody can answer the questions of a listener here. Returns the handlers that wait in vain, each once.
    pub(super) fn set_unattended(&mut self, listener: ListenerId) -> Vec<InvocationId> {
        self.unattended.insert(listener);
        let mut new = Vec::new();
        for (id, one) in &mut self.invocations {
            if one.listener == listener && one.is_running() && !one.boot && !one.is_known_unattended {
                one.is_known_unattended = true;
                new.push(id);
            }
        }
        new
    }

    /// Returns whether all that runs are questions that nobody can answer here. What is queued waits for them, or for
    /// a slot of a listener that runs in another core.
    pub(super) fn wait_for_people(&self) -> bool {
        let waits =
            |one: &Invocation| !one.is_running() || !self.is_work(one) || self.unattended.contains(&one.listener);
        !self.unattended.is_empty() && self.invocations.values().all(waits)
    }

    /// Returns whether the organism isn't idle while a handler runs: not that of `<boot>`, unless it emits at its end.
    fn is_work(&self, invocation: &Invocation) -> bool {
        !invocation.boot || self.setup.blueprint.contract(invocation.listener).speaks_at_end
    }

    /// Adds a handler and starts its time.
    pub(super) fn start(&mut self, invocation: Invocation, slot: bool, step: &mut StepContext) -> InvocationId {
        self.working += usize::from(self.is_work(&invocation));
        let id = self.invocations.insert(invocation);
        self.run(id, slot, step);
        id
    }

    /// Starts the time of a handler.
    pub(super) fn run(&mut self, id: InvocationId, slot: bool, step: &mut StepContext) {
        let Some(invocation) = self.invocations.get_mut(id) else { return };
        let left = invocation.left.filter(|_| !invocation.stalled);
        let due = |left| step.clock.now().after(left);
        let timer = left.map(due).map(|due| step.clock.set(due, Timer::Handler(id)));
        invocation.phase = Phase::Running { since: step.clock.steady(), timer, slot };
    }

    /// Stops the time of a handler that runs but can't work, or starts it again.
    pub(super) fn stall(&mut self, id: InvocationId, stalled: bool, step: &mut StepContext) {
        let Some(invocation) = self.invocations.get_mut(id) else { return };
        let Phase::Running { slot, .. } = invocation.phase else {
            invocation.stalled = stalled;
            return;
        };
        // A timer that was cancelled with the thread does not come back.
        let is_open = invocation.thread.is_some();
        self.stop(id, step);
        self.invocations[id].stalled = stalled;
        match is_open {
            true => self.run(id, slot, step),
            false => self.invocations[id].phase = Phase::Running { since: step.clock.steady(), timer: None, slot },
        }
    }

    /// Stops the time of a handler. The listener to which it gives a slot back, if it held one.
    fn stop(&mut self, id: InvocationId, step: &mut StepContext) -> Option<ListenerId> {
        let invocation = self.invocations.get_mut(id)?;
        let Phase::Running { since, timer, slot } = invocation.phase else { return None };
        invocation.phase = Phase::Parked;
        if !invocation.stalled {
            invocation.left = invocation.left.map(|left| left.saturating_sub(step.clock.steady().since(since)));
        }
        if let Some(timer) = timer {
            step.clock.cancel(timer);
        }
        slot.then_some(invocation.listener)
    }

    /// Parks a handler. `None` if it awaits nothing: it was resumed in the meantime, and runs. Otherwise the listener
    /// to which it gives a slot back, if it held one.
    pub(super) fn park(&mut self, id: InvocationId, step: &mut StepContext) -> Option<Option<ListenerId>> {
        self.invocations.get(id).filter(|invocation| invocation.awaits())?;
        Some(self.stop(id, step))
    }

    /// Removes a handler that ended, with its holdings.
    pub(super) fn end(&mut self, id: InvocationId, step: &mut StepContext) -> Option<(Invocation, Holdings)> {
        let slot = self.stop(id, step);
        let mut ended = self.invocations.remove(id)?;
        self.working -= usize::from(self.is_work(&ended));
        self.resumes -= ended.ready.len();
        let record = ended.record.take();
        Some((ended, Holdings { slot, record }))
    }

    /// Aborts a handler whose thread is over. It keeps its slot until it does.
    pub(super) fn abort(&mut self, id: InvocationId, step: &mut StepContext) {
        let Some(invocation) = self.invocations.get_mut(id) else { return };
        invocation.thread = None;
        invocation.asked.clear();
        invocation.calls.clear();
        if let Some(record) = &mut invocation.record {
            record.replay.repeated.clear();
        }
        self.resumes -= std::mem::take(&mut invocation.ready).len();
        if let Phase::Running { timer, .. } = &mut invocation.phase
            && let Some(timer) = timer.take()
        {
            step.clock.cancel(timer);
        }
        step.out.emit(Output::Abort { invocation: id });
    }

    /// A group of calls of a handler is on Queue 1 from now on.
    pub(super) fn ask(&mut self, id: InvocationId, call: CallId) {
        if let Some(invocation) = self.invocations.get_mut(id) {
            invocation.asked.push(call);
        }
    }

    /// Notes that a group of calls of a handler has left Queue 1.
    pub(super) fn take_asked(&mut self, id: InvocationId, call: CallId) {
        if let Some(invocation) = self.invocations.get_mut(id) {
            invocation.asked.retain(|&asked| asked != call);
        }
    }

    /// A handler awaits a fan-out of so many calls.
    pub(super) fn wait_for(&mut self, id: InvocationId, call: CallId, fan: FanOutKey, calls: usize) {
        if let Some(invocation) = self.invocations.get_mut(id) {
            invocation.emitted += calls as u64;
            invocation.calls.push((call, fan));
        }
    }

    /// Keeps the result of a group until it is its handler's turn. The thread that wants a turn.
    pub(super) fn decided(
        &mut self,
        id: InvocationId,
        call: CallId,
        result: GroupResult,
        no_answers: impl FnOnce(ThreadKey) -> AwaitedAnswers,
    ) -> Option<ThreadKey> {
        let invocation = self.invocations.get_mut(id)?;
        invocation.calls.retain(|(other, _)| *other != call);
        let thread = invocation.thread?;
        let mut held = no_answers(thread);
        held.add_result(&result);
        invocation.ready.push_back((call, result, held));
        self.resumes += 1;
        Some(thread)
    }

    /// Takes the next result for a handler.
    pub(super) fn take_ready(&mut self, id: InvocationId) -> Option<(CallId, GroupResult)> {
        let (call, result, _) = self.invocations.get_mut(id)?.ready.pop_front()?;
        self.resumes -= 1;
        Some((call, result))
    }

    /// A handler dropped the future of a group of calls.
    pub(super) fn give_up(&mut self, id: InvocationId, call: CallId) -> GivenUp {
        let Some(invocation) = self.invocations.get_mut(id) else { return GivenUp::Nothing };
        if let Some(at) = invocation.ready.iter().position(|(other, ..)| *other == call) {
            invocation.ready.remove(at);
            self.resumes -= 1;
        } else if let Some(at) = invocation.calls.iter().position(|(other, _)| *other == call) {
            return GivenUp::Calls(invocation.calls.remove(at).1);
        } else if invocation.record.as_mut().is_some_and(|record| record.replay.gives_up(call)) {
            return GivenUp::Repeated;
        } else {
            invocation.asked.retain(|other| *other != call);
        }
        GivenUp::Nothing
    }

    /// Runs a handler of an open thread, once it waits for nothing, without a slot.
    pub(super) fn go_on(&mut self, id: InvocationId, step: &mut StepContext) {
        let waits = |one: &&Invocation| one.thread.is_some() && !one.is_running() && !one.awaits();
        if self.invocations.get(id).filter(waits).is_some() {
            self.run(id, false, step);
        }
    }

    /// Attaches changes to the end of a handler; gives them back if that is over already.
    pub(super) fn attach(&mut self, id: InvocationId, attachment: Attachment) -> Option<Attachment> {
        match self.invocations.get_mut(id).and_then(|invocation| invocation.record.as_mut()) {
            Some(record) => {
                record.attachment = Some(attachment);
                None
            }
            None => Some(attachment),
        }
    }

    /// Writes a value that a handler recorded. The handler goes on when the value is durable.
    pub(super) fn note(
        &self,
        id: InvocationId,
        index: u32,
        (name, value): (Arc<str>, Arc<str>),
        step: &mut StepContext,
    ) {
        // A closed thread needs no notes: its handler is not run again.
        let open = self.invocations.get(id).filter(|invocation| invocation.thread.is_some());
        let message = open.map_or(0, Invocation::number);
        if message != 0 {
            step.out.write(|| Op::Note(NoteRecord { message, index, name, value }));
        }
        step.out.emit(Output::Noted { invocation: id, index });
    }

    /// Writes from which number on the context of the thread has the message of a handler.
    pub(super) fn note_seen(&self, id: InvocationId, seen: Seen, step: &mut StepContext) {
        let message = self.invocations.get(id).map_or(0, Invocation::number);
        if message != 0 {
            let (index, name, value) = (NoteRecord::CONTEXT, "context".into(), seen.to_string().into());
            step.out.write(|| Op::Note(NoteRecord { message, index, name, value }));
        }
    }

    /// Writes that a handler begins, where a start after a crash must know it: the listener has one slot.
    pub(super) fn note_begin(&self, id: InvocationId, step: &mut StepContext) {
        let Some(invocation) = self.invocations.get(id).filter(|_| step.out.writes()) else { return };
        let contract = self.setup.blueprint.contract(invocation.listener);
        let Some(record) = invocation.record.as_ref().filter(|_| contract.concurrency == 1 && !invocation.boot) else {
            return;
        };
        if record.replay.began.is_none() {
            let (message, value) = (record.number, step.out.next_number().to_string().into());
            step.out.write(|| Op::Note(NoteRecord { message, index: NoteRecord::BEGAN, name: "began".into(), value }));
        }
    }

    /// A handler that waits has not brought the process down.
    pub(super) fn survived(&mut self, id: InvocationId, step: &mut StepContext) {
        let Some(record) = self.invocations.get_mut(id).and_then(|invocation| invocation.record.as_mut()) else {
            return;
        };
        if record.attempts > 0 {
            (record.attempts, record.lost) = (0, 0);
            step.out.write(|| Op::Attempt { message: record.number, attempts: 0 });
        }
    }

    /// Takes the attempt back that a start after a crash has counted, while the message of a handler waits for a program that can
    /// handle it: if the process ends meanwhile, the message is not its cause.
    pub(super) fn recount(&mut self, id: InvocationId, stalled: bool, step: &mut StepContext) {
        let record = self.invocations.get_mut(id).and_then(|invocation| invocation.record.as_mut());
        if let Some(record) = record.filter(|record| record.lost != record.attempts) {
            let attempts = if stalled { record.lost } else { record.attempts };
            step.out.write(|| Op::Attempt { message: record.number, attempts: attempts.into() });
        }
    }

    /// Writes how many runs of a handler have ended with their process: the next start goes on with that number.
    pub(super) fn attempted(&mut self, id: InvocationId, attempts: u8, step: &mut StepContext) {
        // The message of a closed thread is not run again.
        let open = self.invocations.get_mut(id).filter(|invocation| invocation.thread.is_some());
        let Some(record) = open.and_then(|invocation| invocation.record.as_mut()) else { return };
        (record.attempts, record.lost) = (attempts, attempts);
        step.out.write(|| Op::Attempt { message: record.number, attempts: attempts.into() });
    }

    /// Keeps what the program of a handler wrote on standard error, until its message is consumed.
    pub(super) fn said(&mut self, id: InvocationId, text: Arc<str>) {
        if let Some(record) = self.invocations.get_mut(id).and_then(|invocation| invocation.record.as_mut()) {
            record.said = Some(text);
        }
    }

    /// Counts the attempt at a message that may have been running at a crash; its fault if it was tried too often.
    /// Returns the runs that ended with their process.
    pub(super) fn count_attempt(
        &self,
        listener: ListenerId,
        message: Number,
        attempts: Attempts,
        step: &mut StepContext,
    ) -> Result<u8, Fault> {
        let blueprint = &self.setup.blueprint;
        let lost = attempts.lost;
        if !attempts.is_suspect || blueprint.contract(listener).on_restart != OnRestart::Replay {
            return Ok(lost);
        }
        if u32::from(lost) >= blueprint.limits.max_attempts {
            return Err(faults::too_many_attempts(u32::from(lost)));
        }
        step.out.write(|| Op::Attempt { message, attempts: u32::from(lost) + 1 });
        Ok(lost + 1)
    }
}
