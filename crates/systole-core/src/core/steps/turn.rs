//! Turns: a thread that has something to do takes a slot of its listener and a place in the run queue; its handler
//! starts or resumes, parks, and ends.

use super::Core;
use crate::core::blueprint::ListenerId;
use crate::core::clock::{Timer, TimerId};
use crate::core::event::{EventKind, shown};
use crate::core::faults;
use crate::core::invocations::{GivenUp, Holdings, Invocation};
use crate::core::io::{Body, CallId, JoinPosition, Message, Output, Place, Settled, Start};
use crate::core::key::{InvocationId, ThreadKey};
use crate::core::queued::{Content, Queued, Sender};
use crate::core::records::stored;
use crate::core::tree::{About, Thread, Turn};
use crate::core::turns::Want;
use crate::core::usage::{ModelAnswer, ModelFailure, Usage};
use crate::journal::{Number, Op, Seen};
use crate::vocab::{Amounts, Fault, FaultCode, MessageId, Name, Time};

/// The head of a message, as its handler gets it.
struct Head {
    id: MessageId,
    from: Name,
    in_reply_to: Option<MessageId>,
    join: Option<JoinPosition>,
    attempts: u8,
}

impl Core {
    /// Lets a thread that has something to do wait for its turn.
    pub(super) fn make_ready(&mut self, key: ThreadKey) {
        let thread = &self.tree[key];
        let Some(listener) = thread.listener().filter(|_| thread.turn == Turn::None) else { return };
        let resume = match thread.invocation.and_then(|id| self.invocations.get(id)) {
            Some(invocation) if !invocation.is_ready() => return,
            Some(invocation) if invocation.is_running() || invocation.boot => return self.enter_run_queue(key, false),
            Some(_) => true,
            None if thread.judging > 0 || thread.mailbox.len() == 0 => return,
            None if !self.needs_handler(key) || self.is_booting(key) => return self.enter_run_queue(key, false),
            None => false,
        };
        let root = thread.root;
        let client = self.tree[root].owner.client();
        if self.turns.want(listener, (key, root, client), resume, &mut self.step) {
            self.enter_run_queue(key, true);
        } else {
            self.tree.set_turn(key, Turn::Waiting);
        }
    }

    fn enter_run_queue(&mut self, key: ThreadKey, slot: bool) {
        let conversation = self.tree.conversation(key);
        let ticket = self.turns.push(conversation, key, self.tree[key].sequence);
        self.tree.set_turn(key, Turn::Queued { slot, ticket });
    }

    /// Dispatches the next thread of the run queue; `false` if it is empty.
    pub(super) fn dispatch(&mut self) -> bool {
        let tree = &self.tree;
        let stands = |key, place| {
            let turn = tree.get(key).map(|thread| thread.turn);
            matches!(turn, Some(Turn::Queued { ticket, .. }) if ticket == place)
        };
        let Some(key) = self.turns.pop(stands) else { return false };
        let slot = matches!(self.tree.set_turn(key, Turn::None), Turn::Queued { slot: true, .. });
        match self.tree[key].invocation {
            Some(invocation) => self.resume(key, invocation, slot),
            None if !self.needs_handler(key) => self.end_by_message(key, slot),
            None if slot || self.is_booting(key) => self.start(key, slot),
            None => self.make_ready(key),
        }
        true
    }

    /// Returns whether the next message of a thread is for its listener, rather than the end of the thread.
    fn needs_handler(&self, key: ThreadKey) -> bool {
        let thread = &self.tree[key];
        let Some((listener, message)) = thread.listener().zip(thread.mailbox.front()) else { return false };
        match &message.content {
            _ if self.turns.is_down(listener) => false,
            Content::Fatal(_) => false,
            Content::Body(Body::Fault(_)) => self.setup.blueprint.contract(listener).accepts_faults,
            Content::Body(Body::Payload { .. }) | Content::Stored(_) => true,
        }
    }

    /// Returns whether a thread below the root of boot has not come further than `<boot>` itself.
    pub(super) fn is_booting(&self, key: ThreadKey) -> bool {
        let thread = &self.tree[key];
        // The only payload that the system sends of its own accord.
        let waits = || match thread.mailbox.front().map(|message| (message.from, &message.content)) {
            Some((from, Content::Body(Body::Payload { .. }))) => from == Sender::System,
            Some((_, Content::Body(Body::Fault(_)) | Content::Stored(_) | Content::Fatal(_))) | None => false,
        };
        self.tree.is_below_boot(key)
            && thread.invocation.map_or_else(waits, |id| self.invocations.get(id).is_some_and(|one| one.boot))
    }

    /// Starts the handler of the next message. `slot`: the thread holds one, as all do but those
    /// whose message is `<boot>`: its handler may run for ever, and must not keep one from others.
    fn start(&mut self, key: ThreadKey, slot: bool) {
        let Some(listener) = self.tree[key].listener() else { return };
        let boot = self.is_booting(key);
        let Some(queued) = self.tree.take(key) else { return self.leave_slot(listener, slot) };
        let (number, attempts) = (queued.number, queued.attempts);
        let lost = attempts.lost;
        let attempts = match self.invocations.count_attempt(listener, number, attempts, &mut self.step) {
            Ok(attempts) => attempts,
            Err(fault) => {
                self.leave_slot(listener, slot);
                return self.give_up_message(key, listener, queued, fault);
            }
        };
        let Queued { id, from, in_reply_to, content, answers, share, entry, .. } = queued;
        drop(share);
        let body = match content {
            Content::Body(body) => Ok(body),
            Content::Stored(payload) => {
                self.judge.restore(listener, payload.clone()).map_err(|fault| (Some(payload), fault))
            }
            Content::Fatal(fault) => Err((None, fault)),
        };
        let body = match body {
            Ok(body) => body,
            Err((payload, fault)) => {
                self.leave_slot(listener, slot);
                self.write_done(number);
                match payload {
                    // The contract has changed since it was sent.
                    Some(payload) => {
                        let to = Some(self.setup.blueprint.contract(listener).name.clone());
                        self.keep_dead(key, (from, to), stored(payload).ok(), fault.clone(), entry);
                    }
                    None => self.step.books.faulted(entry),
                }
                return self.fail(key, fault);
            }
        };
        let left = self.setup.blueprint.contract(listener).timeout.filter(|_| !boot);
        let invocation = self.invocations.start(Invocation::new(key, listener, id, left, boot), slot, &mut self.step);
        self.tree.set_invocation(key, Some(invocation));
        let (join, answered) = self.tree.deliver(answers);
        if let Some(join) = join {
            self.tree.note_answer(key, join.index, &self.setup.name_of(from), &body);
        }
        let (notes, open) =
            self.invocations.attach_record(invocation, number, (lost, attempts), answered, &mut self.step);
        open.into_iter().for_each(|fan| self.tree.attach(fan, invocation));
        self.invocations.note_begin(invocation, &mut self.step);
        let head = Head { id, from: self.setup.name_of(from), in_reply_to, join, attempts };
        let message = Message { number, notes, ..self.message(key, (listener, invocation), head, body) };
        self.step.books.delivered(entry);
        self.step.out.emit(Output::Start(Start { invocation, listener, message }));
    }

    /// The message as the handler gets it; its context remembers it.
    fn message(
        &mut self,
        key: ThreadKey,
        (listener, invocation): (ListenerId, InvocationId),
        head: Head,
        body: Body,
    ) -> Message {
        let Head { id, from, in_reply_to, join, attempts } = head;
        self.tree.event(key, &mut self.step, || EventKind::Delivered {
            message: id,
            from: from.clone(),
            in_reply_to,
            payload: match &body {
                Body::Payload { payload, .. } => Some(payload.payload().root().clone()),
                Body::Fault(_) => None,
            },
            attempts: (attempts > 0).then_some(attempts),
        });
        if let Body::Fault(fault) = &body {
            self.learn_fault(key, fault);
        }
        let (mut history, mut place) = (Vec::new(), Place::default());
        if self.setup.blueprint.contract(listener).context {
            let seen = self.invocations.get(invocation).and_then(Invocation::remembered);
            history = self.tree.history(key, seen.map_or(Number::MAX, |seen| seen.number));
            place = seen.map_or_else(Place::default, |seen| Place { number: seen.place, answers: seen.answers });
            if seen.is_none() {
                let about = in_reply_to.map_or(About::Nothing, About::Answers);
                let number;
                (number, place) = self.tree.remember(key, (from.clone(), body.written()), about, &mut self.step);
                let Place { number: at, answers } = place;
                self.invocations.note_seen(invocation, Seen { number, place: at, answers }, &mut self.step);
            }
        }
        let is_budgeted = self.account(key).is_some();
        let thread = &self.tree[key];
        Message {
            id,
            thread: thread.id,
            from,
            in_reply_to,
            body,
            join,
            deadline: Some(thread.deadline).filter(|&deadline| deadline != Time::MAX),
            is_budgeted,
            traceparent: thread.traceparent().cloned(),
            history,
            place,
            number: 0,
            attempts,
            notes: Vec::new(),
        }
    }

    /// A message that seems to end the process is not tried once more.
    fn give_up_message(&mut self, key: ThreadKey, listener: ListenerId, message: Queued, fault: Fault) {
        self.write_done(message.number);
        let to = Some(self.setup.blueprint.contract(listener).name.clone());
        self.keep_dead(key, (message.from, to), message.content.payload(), fault.clone(), message.entry);
        self.fail(key, fault);
    }

    /// The next message ends its thread: a fault that passes on, or a listener that is down.
    fn end_by_message(&mut self, key: ThreadKey, slot: bool) {
        let Some(listener) = self.tree[key].listener() else { return };
        self.leave_slot(listener, slot);
        let Some(queued) = self.tree.take(key) else { return };
        self.step.books.faulted(queued.entry);
        self.write_done(queued.number);
        let fault = match queued.content {
            Content::Fatal(fault) | Content::Body(Body::Fault(fault)) => fault,
            Content::Body(Body::Payload { .. }) | Content::Stored(_) => faults::down(),
        };
        self.fail(key, fault);
    }

    /// Writes that a message was consumed.
    pub(super) fn write_done(&mut self, message: Number) {
        if message != 0 {
            self.step.out.write(|| Op::Done { message });
        }
    }

    fn resume(&mut self, key: ThreadKey, id: InvocationId, slot: bool) {
        let Some(invocation) = self.invocations.get(id) else { return };
        let (listener, running, boot) = (invocation.listener, invocation.is_running(), invocation.boot);
        // Either it went on without its answer, or it parked again after it had entered the run queue.
        if slot && (running || !invocation.is_ready()) {
            self.release_slot(listener);
            return self.make_ready(key);
        }
        if !slot && !running && !boot {
            return self.make_ready(key);
        }
        let Some((call, result)) = self.invocations.take_ready(id) else { return };
        if !running {
            self.invocations.run(id, slot, &mut self.step);
        }
        self.learn_result(key, &result);
        self.step.out.emit(Output::Resume { invocation: id, call, result });
        self.make_ready(key);
    }

    /// A handler waits for nothing but calls.
    pub(super) fn parked(&mut self, id: InvocationId) {
        let Some(freed) = self.invocations.park(id, &mut self.step) else { return };
        if let Some(listener) = freed {
            self.release_slot(listener);
        }
        self.invocations.survived(id, &mut self.step);
        if let Some(thread) = self.invocations.thread(id) {
            self.make_ready(thread);
        }
        self.check_replay(id);
    }

    /// A handler dropped the future of a group of calls.
    pub(super) fn call_dropped(&mut self, id: InvocationId, call: CallId) {
        match self.invocations.give_up(id, call) {
            GivenUp::Calls(fan) => self.drop_fan_out(fan),
            GivenUp::Repeated => self.hand_over(id),
            GivenUp::Nothing => {}
        }
        self.invocations.forget_call(id, call, &mut self.step);
        self.invocations.go_on(id, &mut self.step);
    }

    /// Forgets a handler that ended: its calls are cancelled.
    pub(super) fn end_invocation(&mut self, id: InvocationId) -> Option<(Invocation, Holdings)> {
        self.budgets.forfeit(id, &mut self.step);
        let (ended, holdings) = self.invocations.end(id, &mut self.step)?;
        if let Some(thread) = ended.thread {
            self.tree.set_invocation(thread, None);
        }
        ended.fan_outs().for_each(|fan| self.drop_fan_out(fan));
        Some((ended, holdings))
    }

    /// Notes that a handler learns of such a refusal by a result that it awaited.
    pub(super) fn learn_result(&mut self, key: ThreadKey, result: &Result<Vec<Settled>, Fault>) {
        if self.budgets.is_empty() {
            return;
        }
        let is_budget = |fault: &Fault| fault.code == FaultCode::Budget;
        let learns = match result {
            Ok(settled) => settled.iter().any(|settled| settled.outcome.as_ref().is_err_and(is_budget)),
            Err(fault) => is_budget(fault),
        };
        if learns {
            self.budgets.note_learned(key);
        }
    }

    /// Notes that a handler learns of such a refusal by a message.
    pub(super) fn learn_fault(&mut self, key: ThreadKey, fault: &Fault) {
        if fault.code == FaultCode::Budget {
            self.budgets.note_learned(key);
        }
    }

    /// Reserves amounts for a request of a handler. `is_last`: it is the last one of its thread, for which nothing more is left.
    pub(super) fn reserve(&mut self, invocation: InvocationId, amounts: Amounts, is_last: Option<Fault>) {
        let thread = self.invocations.thread(invocation);
        let account = thread.and_then(|thread| self.account(thread));
        let result =
            account.map_or(Ok(()), |account| self.budgets.reserve(invocation, account, amounts, &mut self.step));
        if let (Some(thread), Some(fault), Ok(())) = (thread.filter(|_| account.is_some()), is_last, &result) {
            self.budgets.note_refusal(thread, &fault);
            self.budgets.note_learned(thread);
        }
        self.step.out.emit(Output::Reserved { invocation, result });
    }

    /// Charges what a request to a model used, with an answer or without.
    pub(super) fn charge_usage(&mut self, invocation: InvocationId, usage: Usage) {
        if self.budgets.is_empty() {
            return;
        }
        let account = self.invocations.thread(invocation).and_then(|thread| self.account(thread));
        self.budgets.settle(invocation, account, usage.into(), &mut self.step);
    }

    /// Reports an event of a running handler to operators: `what` makes it of the name of the listener.
    pub(super) fn tell_of(&mut self, id: InvocationId, what: impl FnOnce(Name) -> EventKind) {
        let Some(invocation) = self.invocations.get(id) else { return };
        let Some(thread) = invocation.thread else { return };
        let by = self.setup.blueprint.contract(invocation.listener).name.clone();
        self.tree.event(thread, &mut self.step, || what(by));
    }

    /// Reports an attempt at a model that got no answer to operators.
    pub(super) fn model_failed(&mut self, id: InvocationId, attempt: ModelFailure) {
        let Some(message) = self.invocations.get(id).map(|invocation| invocation.message) else { return };
        let ModelFailure { backend, attempt, error, usage } = attempt;
        let error = shown(error.as_bytes());
        self.tell_of(id, |by| EventKind::ModelFailed { by, message, backend, attempt, error, usage });
    }

    /// Charges an answer that a handler got from a model, and tells operators of it.
    pub(super) fn model_answered(&mut self, id: InvocationId, answer: ModelAnswer) {
        self.charge_usage(id, answer.usage);
        let Some(invocation) = self.invocations.get(id) else { return };
        let Some(thread) = invocation.thread else { return };
        let (by, message) = (self.setup.blueprint.contract(invocation.listener).name.clone(), invocation.message);
        let ModelAnswer { backend, model, usage, text, fault } = answer;
        let output = || shown(text.as_bytes());
        let answered = || EventKind::ModelAnswered { by: by.clone(), message, backend, model, usage, text: output() };
        self.tree.event(thread, &mut self.step, answered);
        if let Some(fault) = fault {
            self.tree.event(thread, &mut self.step, || EventKind::Refused { by, output: output(), fault });
        }
    }

    /// Takes a thread out of the queues that it stands in.
    pub(super) fn leave_turn(&mut self, key: ThreadKey) {
        let turn = self.tree.set_turn(key, Turn::None);
        let Some(listener) = self.tree[key].listener() else { return };
        match turn {
            Turn::None | Turn::Queued { slot: false, .. } => {}
            Turn::Queued { slot: true, .. } => self.release_slot(listener),
            Turn::Waiting => self.turns.decline(listener, key, &mut self.step),
        }
    }

    fn leave_slot(&mut self, listener: ListenerId, slot: bool) {
        if slot {
            self.release_slot(listener);
        }
    }

    /// Gives a slot back. Once the organism ends no thread gets it: threads that wait in cores which have not ended
    /// yet are for the next start.
    pub(super) fn release_slot(&mut self, listener: ListenerId) {
        let granted = match self.entrance.is_stopped() {
            true => None,
            false => self.turns.release(listener, &mut self.step),
        };
        if let Some(key) = granted {
            self.slot_granted(listener, key);
        }
    }

    /// Gives a thread the slot that it waited for; if it no longer waits, another thread gets the slot.
    pub(super) fn slot_granted(&mut self, listener: ListenerId, key: ThreadKey) {
        if self.tree.get(key).is_some_and(|thread| thread.turn == Turn::Waiting) {
            self.enter_run_queue(key, true);
        } else {
            self.release_slot(listener);
        }
    }

    /// Grants a slot of a listener whose home is this core, or lets the thread wait for one.
    pub(super) fn grant_slot(&mut self, want: Want) {
        let listener = want.listener;
        if let Some(key) = self.turns.wanted(want, &mut self.step) {
            self.slot_granted(listener, key);
        }
    }

    /// A slot of a listener whose home is this core comes back.
    pub(super) fn slot_returned(&mut self, listener: ListenerId) {
        if self.entrance.is_stopped() {
            return;
        }
        if let Some(key) = self.turns.returned(listener, &mut self.step) {
            self.slot_granted(listener, key);
        }
    }

    /// Grants slots once all cores have recovered: this one has.
    pub(super) fn all_recovered(&mut self) {
        let wants = self.turns.all_recovered(&mut self.step);
        wants.into_iter().for_each(|want| self.grant_slot(want));
    }

    /// Grants slots once all cores have recovered: another one has.
    pub(super) fn core_recovered(&mut self) {
        // A thread that no longer wants a slot gives it back when it comes.
        let wants = self.turns.core_recovered();
        wants.into_iter().for_each(|want| self.grant_slot(want));
    }

    /// The messages of a listener that is down fault at once, also those that wait for a slot.
    pub(super) fn set_down(&mut self, listener: ListenerId, down: bool) {
        self.turns.set_down(listener, down);
        if !down {
            return;
        }
        let waits = |thread: &Thread| {
            thread.listener() == Some(listener) && thread.turn == Turn::Waiting && thread.invocation.is_none()
        };
        for key in self.tree.in_order(waits) {
            self.leave_turn(key);
            self.make_ready(key);
        }
    }

    /// A timer is due.
    pub(super) fn expire(&mut self, id: TimerId, timer: Timer) {
        match timer {
            Timer::Handler(invocation) => {
                if let Some(thread) = self.invocations.thread(invocation) {
                    self.fail(thread, faults::handler_timeout());
                }
            }
            Timer::Deadline(key) => {
                if self.tree.forget_deadline(key) {
                    self.fail(key, faults::deadline());
                }
            }
            Timer::Idle(key) => {
                if self.tree.contains(key) {
                    self.close(key);
                }
            }
            Timer::Calls(fan) => self.expire_calls(fan),
            Timer::Continue(key, message) => match self.tree.contains(key) {
                true => {
                    self.tree.end_delay(key, id);
                    self.enqueue(key, *message);
                }
                false => self.step.books.cancelled(message.entry),
            },
        }
    }
}
