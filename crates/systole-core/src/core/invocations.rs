//! Handlers in flight: running, parked, and what they did before a crash.
//!
//! They are data for the steps of the core. Operations guard what is counted, the handlers that work and the results that
//! wait, and the time that a handler has left.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use slotmap::SlotMap;

use super::blueprint::ListenerId;
use super::clock::{Span, Timer};
use super::conversation::AwaitedAnswers;
use super::io::{Attachment, CallId, Output};
use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::outcomes::GroupResult;
use super::setup::{Setup, StepContext};
use crate::journal::{FanId, NoteRecord, Number, RequestRecord, Seen};
use crate::vocab::{Fault, MessageId};

/// The handlers of a core that run or are parked.
pub(super) struct Invocations {
    pub setup: Rc<Setup>,
    pub all: SlotMap<InvocationId, Invocation>,
    /// The past of handlers of recovered messages, until they run again.
    pub replays: HashMap<Number, Replay>,
    /// Handlers that keep the core from being idle.
    working: usize,
    /// Results that wait until it is the turn of the handlers which await them.
    resumes: usize,
    /// Listeners whose questions nobody can answer here.
    pub unattended: BTreeSet<ListenerId>,
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
    pub is_known_unattended: bool,
    phase: Phase,
    /// Time that its timeout leaves it; `None` for ever.
    left: Option<Duration>,
    /// True while it can't work: its time stands still.
    stalled: bool,
    /// True once it has written a draft.
    pub drafts: bool,
    /// True while it waits for a party elsewhere, until it takes a result.
    pub waits_elsewhere: bool,
    /// Groups of calls that are on the entrance queue.
    pub asked: Vec<CallId>,
    /// Groups of calls that it awaits.
    pub calls: Vec<(CallId, FanOutKey)>,
    /// Groups that are decided and wait for their turn.
    ready: VecDeque<(CallId, GroupResult, AwaitedAnswers)>,
    /// The journal's knowledge of its message, if there is a journal.
    pub record: Option<Box<InvocationRecord>>,
    /// Changes that are written in the step that consumes the message.
    pub attachment: Option<Box<Attachment>>,
}

/// The holdings of a handler that has ended, until the step that ends its message: then its slot is free, and with a
/// journal nothing else starts in it before that step is durable.
#[must_use]
pub(super) struct Holdings {
    /// The listener to which the slot goes back.
    pub slot: Option<ListenerId>,
    /// The journal's knowledge of the message, if there is a journal.
    pub record: Option<Box<InvocationRecord>>,
    /// Changes that are written in the step that consumes the message.
    pub attachment: Option<Box<Attachment>>,
    /// The handler, if it wrote a draft that is not over.
    pub draft: Option<InvocationId>,
}

/// The state of a handler.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The handler runs. `slot`: it holds one, as all do but boot handlers, and those that went on, while
    /// they were parked, without the answer that they waited for.
    Running { span: Span, slot: bool },
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
    /// Runs that ended with their process, with the present one if a crash may be its fault.
    pub attempts: u8,
    /// Those before the present one.
    pub lost: u8,
    /// The end of what its program wrote on standard error, if it is about to fail.
    pub said: Option<Arc<str>>,
    /// The past of the handler.
    pub replay: Replay,
}

/// The past of a handler, as far as it has not repeated it.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The groups of calls that it made, and has not asked for again.
    pub calls: HashMap<u32, EarlierGroup>,
    /// The groups that were decided, in that order, as far as their results were not handed over.
    pub decided: BTreeMap<Number, CallId>,
    /// The notes of the handler.
    pub notes: Vec<NoteRecord>,
    /// The message in the context: the handler had not seen later entries when it began.
    pub remembered: Option<Seen>,
    /// The number as which it first began, where that is written.
    pub began: Option<Number>,
    /// Indices that its calls took.
    pub emitted: u64,
    /// Results that were asked for again, and wait for those before them.
    pub results: HashMap<CallId, GroupResult>,
    /// Groups that were asked for again: their results wait for those before them, or never come.
    pub repeated: Vec<CallId>,
    /// The handler finds groups by their requests, in any order.
    pub reattaches: bool,
    /// The numbers below are those of groups that were made before it was run again.
    pub before: u32,
    /// The groups made before that it found again.
    pub found: HashMap<CallId, FanId>,
}

/// A group of calls that a handler made before.
#[derive(Debug)]
pub(super) struct EarlierGroup {
    pub requests: Vec<RequestRecord>,
    pub state: GroupState,
}

/// The state of a group of calls that a handler made before.
#[derive(Debug)]
pub(super) enum GroupState {
    Open(FanOutKey),
    Decided(GroupResult),
    /// The handler gave it up, and will again.
    Dropped,
}

/// A group of calls that a handler asks for again.
pub(super) enum Repeated {
    /// The group differs from the earlier one.
    Diverged(Fault),
    /// The fan-out of the group is open.
    Open(FanOutKey),
    /// The result is handed over at once.
    Decided(GroupResult),
    /// The result waits for those before it, or never comes.
    Waits,
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
    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// Returns whether results wait to be handed to it.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
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

    /// The name of a group of its calls in the journal.
    pub(super) fn fan_id(&self, call: CallId) -> FanId {
        let before = self.record.as_ref().map_or(0, |record| record.replay.before);
        FanId { message: self.number(), call: Some(before + call.0) }
    }

    /// The number of its message in the journal; 0 if there is none.
    pub(super) fn number(&self) -> Number {
        self.record.as_ref().map_or(0, |record| record.number)
    }
}

impl Replay {
    /// Gives groups that are made from now on numbers behind those of the groups that were made before.
    pub(super) fn count_calls(&mut self) {
        self.before = self.calls.keys().max().map_or(self.before, |last| last + 1);
    }

    /// The group that was made before, if this is it.
    pub(super) fn take(
        &mut self,
        message: Number,
        call: CallId,
        asked: &[RequestRecord],
    ) -> Option<(FanId, EarlierGroup)> {
        let same = |made: &EarlierGroup| made.requests == asked && !matches!(made.state, GroupState::Dropped);
        let call = match self.reattaches {
            true => *self.calls.iter().filter(|(_, made)| same(made)).map(|(call, _)| call).min()?,
            false => call.0,
        };
        Some((FanId { message, call: Some(call) }, self.calls.remove(&call)?))
    }

    /// The handler gives up a group that it asked for again; `false` if that is none.
    fn gives_up(&mut self, call: CallId) -> bool {
        let Some(at) = self.repeated.iter().position(|other| *other == call) else { return false };
        self.repeated.remove(at);
        self.results.remove(&call);
        self.decided.retain(|_, other| *other != call);
        true
    }
}

impl Invocations {
    pub(super) fn new(setup: Rc<Setup>) -> Self {
        Self {
            setup,
            all: SlotMap::with_key(),
            replays: HashMap::new(),
            working: 0,
            resumes: 0,
            unattended: BTreeSet::new(),
        }
    }

    /// The open thread of a handler.
    pub(super) fn thread(&self, id: InvocationId) -> Option<ThreadKey> {
        self.all.get(id)?.thread
    }

    /// Handlers that keep the core from being idle, and results that wait for the turn of theirs.
    pub(super) fn busy(&self) -> (usize, usize) {
        (self.working, self.resumes)
    }

    /// Returns whether the organism isn't idle while a handler runs: not that of `<boot>`, unless it emits at its end.
    pub(super) fn is_work(&self, invocation: &Invocation) -> bool {
        !invocation.boot || self.setup.blueprint[invocation.listener].speaks_at_end
    }

    /// Adds the handler of a message and starts its time.
    pub(super) fn start(
        &mut self,
        (thread, listener): (ThreadKey, ListenerId),
        message: MessageId,
        boot: bool,
        slot: bool,
        step: &mut StepContext,
    ) -> InvocationId {
        let invocation = Invocation {
            thread: Some(thread),
            listener,
            message,
            seed: message,
            emitted: 0,
            boot,
            is_known_unattended: false,
            phase: Phase::Parked,
            left: self.setup.blueprint[listener].timeout.filter(|_| !boot),
            stalled: false,
            drafts: false,
            waits_elsewhere: false,
            asked: Vec::new(),
            calls: Vec::new(),
            ready: VecDeque::new(),
            record: None,
            attachment: None,
        };
        self.working += usize::from(self.is_work(&invocation));
        let id = self.all.insert(invocation);
        self.run(id, slot, step);
        id
    }

    /// Starts the time of a handler.
    pub(super) fn run(&mut self, id: InvocationId, slot: bool, step: &mut StepContext) {
        let Some(invocation) = self.all.get_mut(id) else { return };
        let left = invocation.left.filter(|_| !invocation.stalled);
        invocation.phase = Phase::Running { span: step.clock.start(left, Timer::Handler(id)), slot };
    }

    /// Stops the time of a handler that runs but can't work, or starts it again.
    pub(super) fn stall(&mut self, id: InvocationId, stalled: bool, step: &mut StepContext) {
        let Some(invocation) = self.all.get_mut(id) else { return };
        let Phase::Running { slot, .. } = invocation.phase else {
            invocation.stalled = stalled;
            return;
        };
        // A timer that was cancelled with the thread does not come back.
        let is_open = invocation.thread.is_some();
        self.stop(id, step);
        self.all[id].stalled = stalled;
        match is_open {
            true => self.run(id, slot, step),
            false => self.all[id].phase = Phase::Running { span: step.clock.start(None, Timer::Handler(id)), slot },
        }
    }

    /// Stops the time of a handler. The listener to which it gives a slot back, if it held one.
    fn stop(&mut self, id: InvocationId, step: &mut StepContext) -> Option<ListenerId> {
        let invocation = self.all.get_mut(id)?;
        let Phase::Running { span, slot } = invocation.phase else { return None };
        invocation.phase = Phase::Parked;
        let ran = step.clock.stop(span);
        if !invocation.stalled {
            invocation.left = invocation.left.map(|left| left.saturating_sub(ran));
        }
        slot.then_some(invocation.listener)
    }

    /// Parks a handler. `None` if it awaits nothing: it was resumed in the meantime, and runs. Otherwise the listener
    /// to which it gives a slot back, if it held one.
    pub(super) fn park(&mut self, id: InvocationId, step: &mut StepContext) -> Option<Option<ListenerId>> {
        self.all.get(id).filter(|invocation| invocation.awaits())?;
        Some(self.stop(id, step))
    }

    /// Removes a handler that ended, with its holdings.
    pub(super) fn end(&mut self, id: InvocationId, step: &mut StepContext) -> Option<(Invocation, Holdings)> {
        let slot = self.stop(id, step);
        let mut ended = self.all.remove(id)?;
        self.working -= usize::from(self.is_work(&ended));
        self.resumes -= ended.ready.len();
        let (record, attachment) = (ended.record.take(), ended.attachment.take());
        let draft = ended.drafts.then_some(id);
        Some((ended, Holdings { slot, record, attachment, draft }))
    }

    /// Aborts a handler whose thread is over. It keeps its slot until it does.
    pub(super) fn abort(&mut self, id: InvocationId, step: &mut StepContext) {
        let Some(invocation) = self.all.get_mut(id) else { return };
        invocation.thread = None;
        invocation.asked.clear();
        invocation.calls.clear();
        if let Some(record) = &mut invocation.record {
            record.replay.repeated.clear();
        }
        self.resumes -= std::mem::take(&mut invocation.ready).len();
        if let Phase::Running { span, .. } = invocation.phase {
            step.clock.stop(span);
        }
        step.out.emit(Output::Abort { invocation: id, moves: step.out.is_sealed() });
    }

    /// Keeps the result of a group until it is its handler's turn. The thread that wants a turn.
    pub(super) fn decided(
        &mut self,
        id: InvocationId,
        call: CallId,
        result: GroupResult,
        no_answers: impl FnOnce(ThreadKey) -> AwaitedAnswers,
    ) -> Option<ThreadKey> {
        let invocation = self.all.get_mut(id)?;
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
        let invocation = self.all.get_mut(id)?;
        let (call, result, _) = invocation.ready.pop_front()?;
        invocation.waits_elsewhere = false;
        self.resumes -= 1;
        Some((call, result))
    }

    /// A handler dropped the future of a group of calls.
    pub(super) fn give_up(&mut self, id: InvocationId, call: CallId) -> GivenUp {
        let Some(invocation) = self.all.get_mut(id) else { return GivenUp::Nothing };
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
        if self.all.get(id).filter(waits).is_some() {
            self.run(id, false, step);
        }
    }
}

/// The requests of a group, in words.
pub(super) fn describe(requests: &[RequestRecord]) -> String {
    let one = |request: &RequestRecord| match (&request.to, &request.thread) {
        (Some(to), _) => format!("{} to '{to}'", request.text),
        (None, Some(thread)) => format!("{} on {thread}", request.text),
        (None, None) => request.text.clone(),
    };
    requests.iter().map(one).collect::<Vec<_>>().join(", ")
}
