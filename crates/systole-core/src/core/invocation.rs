//! Handlers in flight: running, parked, ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::blueprint::ListenerId;
use super::conversation::Pile;
use super::io::{CallId, Outcome, Output, Settled};
use super::key::{FanOutKey, InvocationId, ThreadKey};
use super::machine::{Core, Item};
use super::replay::InvocationLog;
use super::respond::{Response, Source};
use super::thread::Turn;
use super::timer::{Timer, TimerId};
use super::{faults, io};
use crate::journal::{FanId, NoteRecord, Number, Op};
use crate::vocab::{Fault, MessageId, Time};

/// A handler that runs or is parked.
#[derive(Debug)]
pub(super) struct Invocation {
    /// `None` once its thread is closed.
    pub thread: Option<ThreadKey>,
    pub listener: ListenerId,
    pub message: MessageId,
    /// Emissions of this message so far: the next one's index.
    pub emitted: u64,
    pub phase: Phase,
    /// Time that its timeout leaves it; `None` for ever.
    pub left: Option<Duration>,
    /// A handler of `<boot>`: it holds no slot, and may run for ever.
    pub boot: bool,
    /// Groups of calls that are on Queue 1.
    pub asked: Vec<CallId>,
    /// Groups of calls that it awaits.
    pub calls: Vec<(CallId, FanOutKey)>,
    /// Groups that are decided and wait for their turn.
    pub ready: VecDeque<(CallId, Result<Vec<Settled>, Fault>, Pile)>,
    /// What the journal says of its message, if there is one.
    pub log: Option<Box<InvocationLog>>,
}

/// What a handler does at the moment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// It runs. `slot`: it holds one, as all do but boot handlers, and those that went on, while
    /// they were parked, without the answer that they waited for.
    Running { since: Time, timer: Option<TimerId>, slot: bool },
    /// It awaits calls and holds none.
    Parked,
}

impl Invocation {
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
            emitted: 0,
            phase: Phase::Parked,
            left,
            boot,
            asked: Vec::new(),
            calls: Vec::new(),
            ready: VecDeque::new(),
            log: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// Whether calls of it are on Queue 1.
    pub(super) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Groups of calls that wait to be judged or handed over.
    pub(super) fn groups(&self) -> usize {
        let repeated = self.log.as_ref().map_or(0, |log| log.replay.repeated.len());
        self.asked.len() + self.ready.len() + repeated
    }

    /// Whether an answer is still to be handed to it.
    fn awaits(&self) -> bool {
        let repeats = self.log.as_ref().is_some_and(|log| !log.replay.repeated.is_empty());
        repeats || !(self.asked.is_empty() && self.calls.is_empty() && self.ready.is_empty())
    }

    /// The name of a group of its calls in the journal.
    pub(super) fn fan_id(&self, call: CallId) -> FanId {
        let before = self.log.as_ref().map_or(0, |log| log.replay.before);
        FanId { message: self.number(), call: Some(before + call.0) }
    }

    /// The number of its message in the journal; 0 if there is none.
    pub(super) fn number(&self) -> Number {
        self.log.as_ref().map_or(0, |log| log.number)
    }
}

impl Core {
    /// Starts the clock of a handler.
    pub(super) fn run_task(&mut self, id: InvocationId, slot: bool) {
        let now = self.now;
        let Some(task) = self.tasks.get_mut(id) else { return };
        let timer = task.left.map(|left| self.timers.set(now.after(left), Timer::Handler(id)));
        task.phase = Phase::Running { since: now, timer, slot };
    }

    /// Whether the organism isn't idle while a handler runs: not that of `<boot>`, unless all that it says is yet to come.
    pub(super) fn is_work(&self, task: &Invocation) -> bool {
        !task.boot || self.blueprint.contract(task.listener).speaks_at_end
    }

    /// Takes the slot of a handler back, and stops its clock.
    fn rest_task(&mut self, id: InvocationId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let Phase::Running { since, timer, slot } = task.phase else { return };
        task.phase = Phase::Parked;
        task.left = task.left.map(|left| left.saturating_sub(self.now.since(since)));
        let listener = task.listener;
        if let Some(timer) = timer {
            self.timers.cancel(timer);
        }
        if slot {
            self.release_slot(listener);
        }
    }

    pub(super) fn parked(&mut self, id: InvocationId) {
        // A handler that awaits nothing has been resumed in the meantime: it runs.
        if !self.tasks.get(id).is_some_and(Invocation::awaits) {
            return;
        }
        self.rest_task(id);
        self.survived(id);
        if let Some(thread) = self.tasks.get(id).and_then(|task| task.thread) {
            self.make_ready(thread);
        }
        self.check_replay(id);
    }

    /// Forgets a handler: its slot is free, its calls are cancelled.
    pub(super) fn end_task(&mut self, id: InvocationId) -> Option<Invocation> {
        self.rest_task(id);
        let task = self.tasks.remove(id)?;
        self.running -= usize::from(self.is_work(&task));
        self.resumes -= task.ready.len();
        if let Some(thread) = task.thread.and_then(|key| self.threads.get_mut(key)) {
            thread.task = None;
        }
        for &(_, fan) in &task.calls {
            self.drop_fan(fan);
        }
        Some(task)
    }

    /// Asks the shell to drop a handler whose thread is over. It keeps its slot until it ends.
    pub(super) fn abort_task(&mut self, id: InvocationId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.thread = None;
        task.asked.clear();
        task.calls.clear();
        if let Some(log) = &mut task.log {
            log.replay.repeated.clear();
        }
        self.resumes -= std::mem::take(&mut task.ready).len();
        if let Phase::Running { timer, .. } = &mut task.phase
            && let Some(timer) = timer.take()
        {
            self.timers.cancel(timer);
        }
        self.outputs.push_back(Output::Abort { task: id });
    }

    /// A handler ended whose thread is open.
    pub(super) fn thread_finished(&mut self, key: ThreadKey, mut task: Invocation, outcome: Outcome) {
        // A resume that stood in a queue for the ended handler has lost its purpose.
        if self.threads[key].turn != Turn::None {
            self.leave_turn(key);
        }
        let silent = matches!(&outcome, Outcome::Emitted(emissions) if emissions.is_empty());
        let ended_well = matches!(outcome, Outcome::Emitted(_) | Outcome::Wrote(_));
        if ended_well && !silent && task.repeats_all() {
            let thread = &mut self.threads[key];
            thread.judging += 1;
            let answers = thread.opened_by;
            let source = Source { message: task.message, number: task.number(), index: task.emitted };
            let response = Response { thread: key, answers, source, log: task.log, outcome };
            return self.queue.push_back(Item::Response(response));
        }
        self.log_consumed(task.log.as_deref_mut());
        match outcome {
            Outcome::Emitted(_) | Outcome::Wrote(_) if !task.repeats_all() => self.fail_shown(key, task.unrepeated()),
            Outcome::Emitted(_) | Outcome::Wrote(_) => self.settle(key),
            Outcome::Failed(failure) => self.fail(key, faults::failed(failure)),
            Outcome::Panicked => self.fail(key, faults::panicked()),
            Outcome::Discarded | Outcome::Aborted => self.fail(key, faults::discarded()),
        }
    }

    /// A handler learned something. It goes on when that is durable.
    pub(super) fn noted(&mut self, id: InvocationId, index: u32, name: Arc<str>, value: Arc<str>) {
        // A closed thread needs no notes: its handler is not run again.
        let message = self.tasks.get(id).filter(|task| task.thread.is_some()).map_or(0, Invocation::number);
        if message != 0 {
            self.log(|_| Op::Note(NoteRecord { message, index, name, value }));
        }
        self.outputs.push_back(Output::Noted { task: id, index });
    }

    /// The context of the thread has the message of a task from a number on.
    pub(super) fn log_seen(&mut self, task: InvocationId, number: Number) {
        let Some(message) = self.tasks.get(task).map(Invocation::number).filter(|message| *message != 0) else {
            return;
        };
        let (index, name, value) = (NoteRecord::CONTEXT, "context".into(), number.to_string().into());
        self.log(|_| Op::Note(NoteRecord { message, index, name, value }));
    }

    /// A handler that waits has not brought the process down.
    pub(super) fn survived(&mut self, id: InvocationId) {
        let Some(log) = self.tasks.get_mut(id).and_then(|task| task.log.as_mut()) else { return };
        if log.attempts.is_some_and(|attempts| attempts > 0) {
            log.attempts = Some(0);
            let number = log.number;
            self.log(|_| Op::Attempt { message: number, attempts: 0 });
        }
    }

    /// Notes that a group of awaited calls has its result.
    pub(super) fn call_ready(&mut self, id: InvocationId, call: CallId, result: Result<Vec<io::Settled>, Fault>) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.calls.retain(|(other, _)| *other != call);
        let Some(thread) = task.thread else { return };
        let mut held = Pile::new(self.conversation_of(thread));
        held.add_result(&result);
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.ready.push_back((call, result, held));
        self.resumes += 1;
        self.make_ready(thread);
    }

    pub(super) fn call_dropped(&mut self, id: InvocationId, call: CallId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if let Some(at) = task.ready.iter().position(|(other, ..)| *other == call) {
            task.ready.remove(at);
            self.resumes -= 1;
        } else if let Some(at) = task.calls.iter().position(|(other, _)| *other == call) {
            let (_, fan) = task.calls.remove(at);
            self.drop_fan(fan);
        } else if task.log.as_mut().is_some_and(|log| log.replay.gives_up(call)) {
            self.hand_over(id);
        } else {
            task.asked.retain(|other| *other != call);
        }
        self.forget_call(id, call);
        let Some(task) = self.tasks.get(id) else { return };
        if task.thread.is_some() && !task.is_running() && !task.awaits() {
            self.run_task(id, false);
        }
    }
}
