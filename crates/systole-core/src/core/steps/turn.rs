//! Turns: a thread that has something to do takes a slot of its listener and a place in the run queue; its handler
//! starts or resumes, parks, and ends.
//!
//! # A start from a journal
//! The slots of listeners are given in the order of the messages' numbers, across cores.
//! Each core takes up its own part of the journal and knows nothing of the others'. So the home core of a listener
//! grants no slot before all cores have said that they are done, with [`CoreMessage::Recovered`]: what they want for
//! recovered messages comes before that, because messages between two cores keep their order. Then the threads that
//! want a slot wait in the order in which their messages came, which numbers of all cores tell; first those that had a slot,
//! as far as the journal knows: a listener with one slot has written which handlers began, and messages of mailboxes
//! stand there. Messages that come in meanwhile wait behind them. Stateless listeners have slots in each core, and need
//! none of this.

use std::sync::Arc;

use super::Core;
use crate::core::blueprint::ListenerId;
use crate::core::clock::{Timer, TimerId};
use crate::core::contract::OnRestart;
use crate::core::conversation::RunQueue;
use crate::core::entrance::{Item, Phase, Response, Source};
use crate::core::event::{EventKind, HandlerEnd, shown};
use crate::core::faults;
use crate::core::invocations::{GivenUp, GroupState, Holdings, Invocation, InvocationRecord, describe};
use crate::core::io::{
    AttachedNote, Attachment, AttachmentEnd, Body, CallId, CoreId, CoreMessage, DraftEnd, HandlerOutcome, JoinPosition,
    Message, Output, Place, Precedence, Settled, Start,
};
use crate::core::key::{InvocationId, ThreadKey};
use crate::core::queued::{Attempts, Content, Queued, Sender};
use crate::core::records::stored;
use crate::core::setup::Setup;
use crate::core::slots::{Slots, Waiter};
use crate::core::tree::{About, FanOutKind, Owner, Turn};
use crate::core::usage::{ModelAnswer, ModelFailure};
use crate::journal::{FanId, NoteRecord, Number, Op, Seen, epoch_of};
use crate::vocab::{Amounts, Fault, FaultCode, MessageId, Name, Time};

/// The queues for turns: the run queue, and the slots of the listeners whose home is this core.
pub(super) struct Turns {
    run_queue: RunQueue,
    /// The slots of each listener.
    pub slots: Vec<Slots>,
    /// Recovered threads that want a slot, until all cores have recovered.
    gathering: Option<Gathering>,
    /// The place of the message for which a thread of this core is about to want a slot.
    pub precedence: Precedence,
    /// States whether it is the turn of the run queue, rather than that of the entrance queue: they alternate.
    pub is_of_run_queue: bool,
}

/// The slots that are wanted at a start from a journal, before any is granted.
struct Gathering {
    /// Cores that have not taken up all that is theirs.
    missing: u16,
    /// States whether this core has reported that it is done. What an operator opens again is no part of its start.
    has_reported: bool,
    wants: Vec<Want>,
}

/// A slot that is wanted.
pub(super) struct Want {
    pub at: Precedence,
    pub listener: ListenerId,
    pub waiter: Waiter,
    /// States whether it resumes a parked handler.
    pub resume: bool,
}

impl Turns {
    /// Queues of a core. `durable`: no slot is granted before all cores have recovered.
    pub(super) fn new(setup: &Setup, durable: bool) -> Self {
        let gathers = durable && setup.cores > 1 && setup.core.0 < setup.cores;
        Self {
            run_queue: RunQueue::default(),
            slots: setup.blueprint.all_listeners().map(|(_, contract)| Slots::new(contract.concurrency)).collect(),
            gathering: gathers.then(|| Gathering { missing: setup.cores, has_reported: false, wants: Vec::new() }),
            precedence: Precedence::Later,
            is_of_run_queue: false,
        }
    }
}

/// The head of a message, as its handler gets it.
struct Head {
    id: MessageId,
    from: Name,
    in_reply_to: Option<MessageId>,
    join: Option<JoinPosition>,
    attempts: u8,
}

impl HandlerOutcome {
    fn end(&self) -> HandlerEnd {
        match self {
            Self::Emitted(_) | Self::Wrote(_) | Self::Read(_) | Self::Refused(..) => HandlerEnd::Returned,
            Self::Failed(_) => HandlerEnd::Failed,
            Self::Panicked => HandlerEnd::Panicked,
            Self::Discarded | Self::Aborted => HandlerEnd::Dropped,
        }
    }

    /// Payloads in it, as far as that is known before it is parsed.
    pub(super) fn emissions(&self) -> usize {
        match self {
            Self::Emitted(emissions) => emissions.len(),
            Self::Wrote(_) | Self::Refused(..) => 1,
            Self::Read(read) => read.parts.len(),
            Self::Failed(_) | Self::Panicked | Self::Discarded | Self::Aborted => 0,
        }
    }
}

impl Core {
    /// Lets a thread that has something to do wait for its turn.
    pub(super) fn make_ready(&mut self, key: ThreadKey) {
        let thread = &self.tree[key];
        let (Owner::Listener(listener), Turn::None) = (thread.owner, thread.turn) else { return };
        let resume = match thread.invocation.and_then(|id| self.invocations.all.get(id)) {
            Some(invocation) if !invocation.is_ready() => return,
            Some(invocation) if invocation.is_running() || invocation.boot => return self.enter_run_queue(key, false),
            Some(_) => true,
            None if thread.unjudged > 0 || thread.mailbox.is_none() => return,
            None if !self.needs_handler(key) || self.is_booting(key) => return self.enter_run_queue(key, false),
            None => false,
        };
        if self.want_slot(key, listener, resume) {
            self.enter_run_queue(key, true);
        } else {
            self.tree[key].turn = Turn::Waiting;
        }
    }

    /// Takes a slot for a thread of this core, or lets it wait for one.
    fn want_slot(&mut self, thread: ThreadKey, listener: ListenerId, resume: bool) -> bool {
        let (home, from, at) = (self.home(listener), self.setup.core, self.turns.precedence);
        let root = self.tree[thread].root;
        let client = if let Owner::Client(client) = self.tree[root].owner { Some(client) } else { None };
        if home != from {
            self.step.out.send(home, CoreMessage::SlotWanted { from, listener, thread, root, client, resume, at });
            return false;
        }
        let want = Want { at, listener, waiter: Waiter { core: home, thread, root, principal: client.into() }, resume };
        match &mut self.turns.gathering {
            Some(gathering) if !self.setup.blueprint[listener].stateless => gathering.wants.push(want),
            _ => return self.take_slot(&want),
        }
        false
    }

    fn take_slot(&mut self, want: &Want) -> bool {
        self.turns.slots[want.listener.0 as usize].take(want.waiter, want.at, want.resume)
    }

    /// The core that keeps the slots of a listener.
    pub(super) fn home(&self, listener: ListenerId) -> CoreId {
        if self.setup.blueprint[listener].stateless {
            return self.setup.core;
        }
        CoreId((listener.0 % u32::from(self.setup.cores)) as u16)
    }

    fn enter_run_queue(&mut self, key: ThreadKey, slot: bool) {
        let conversation = self.tree.conversation(key);
        let ticket = self.turns.run_queue.push(conversation, key, self.tree[key].sequence);
        self.tree[key].turn = Turn::Queued { slot, ticket };
    }

    /// Dispatches the next thread of the run queue; `false` if it is empty.
    pub(super) fn dispatch(&mut self) -> bool {
        let tree = &self.tree;
        let stands = |key, place| {
            let turn = tree.threads.get(key).map(|thread| thread.turn);
            matches!(turn, Some(Turn::Queued { ticket, .. }) if ticket == place)
        };
        let Some(key) = self.turns.run_queue.pop(stands) else { return false };
        let slot = matches!(std::mem::replace(&mut self.tree[key].turn, Turn::None), Turn::Queued { slot: true, .. });
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
        let (Owner::Listener(listener), Some(mailbox)) = (thread.owner, &thread.mailbox) else { return false };
        let Some(message) = mailbox.front() else { return false };
        match &message.content {
            Content::Fatal(_) => false,
            Content::Body(Body::Fault(_)) => self.setup.blueprint[listener].accepts_faults,
            Content::Body(Body::Payload { .. }) | Content::Stored(_) => true,
        }
    }

    /// Returns whether a thread below the root of boot has not come further than `<boot>` itself.
    pub(super) fn is_booting(&self, key: ThreadKey) -> bool {
        let thread = &self.tree[key];
        // The only payload that the system sends of its own accord.
        let next = thread.mailbox.as_ref().and_then(|mailbox| mailbox.front());
        let waits = || match next.map(|message| (message.from, &message.content)) {
            Some((from, Content::Body(Body::Payload { .. }))) => from == Sender::System,
            Some((_, Content::Body(Body::Fault(_)) | Content::Stored(_) | Content::Fatal(_))) | None => false,
        };
        thread.invocation.map_or_else(waits, |id| self.invocations.all.get(id).is_some_and(|one| one.boot))
            && self.tree.has_no_caller(key)
    }

    /// Starts the handler of the next message. `slot`: the thread holds one, as all do but those
    /// whose message is `<boot>`: its handler may run for ever, and must not keep one from others.
    fn start(&mut self, key: ThreadKey, slot: bool) {
        let Owner::Listener(listener) = self.tree[key].owner else { return };
        let boot = self.is_booting(key);
        let Some(queued) = self.tree.take(key) else { return self.leave_slot(listener, slot) };
        let (number, attempts) = (queued.number, queued.attempts);
        let lost = attempts.lost;
        let attempts = match self.count_attempt(listener, number, attempts) {
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
                let version = self.version(key);
                self.payloads.restore(version, listener, payload.clone()).map_err(|fault| (Some(payload), fault))
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
                        let to = Some(self.setup.blueprint[listener].name.clone());
                        self.dead_letter(key, (from, to), stored(payload).ok(), fault.clone(), entry);
                    }
                    None => self.step.books.faulted(entry),
                }
                return self.fail(key, fault);
            }
        };
        let invocation = self.invocations.start((key, listener), id, boot, slot, &mut self.step);
        self.tree[key].invocation = Some(invocation);
        let (join, answered) = self.tree.deliver(key, answers, from, &body);
        let notes = self.attach_record(invocation, number, (lost, attempts), answered);
        self.note_begin(invocation);
        let head = Head { id, from: self.setup.name_of(from), in_reply_to, join, attempts };
        let message = Message { number, notes, ..self.message(key, (listener, invocation), head, body) };
        self.step.books.delivered(entry);
        self.step.out.emit(Output::Start(Start { invocation, listener, message }));
    }

    /// Counts the run of a message that a crash may have ended; its fault if it was tried too often. Returns the runs that
    /// ended with their process.
    fn count_attempt(&mut self, listener: ListenerId, message: Number, attempts: Attempts) -> Result<u8, Fault> {
        let contract = &self.setup.blueprint[listener];
        if !attempts.is_suspect || contract.on_restart != OnRestart::Replay {
            return Ok(attempts.lost);
        }
        let began = self.invocations.replays.get(&message).is_some_and(|replay| replay.began.is_some());
        if contract.concurrency == 1 && !began {
            return Ok(attempts.lost);
        }
        let lost = attempts.lost.saturating_add(1);
        // Where it is not written which handlers began, the message may only have waited: it runs once more.
        let most = self.setup.blueprint.limits.max_attempts.max(if began { 1 } else { 2 });
        if u32::from(lost) >= most {
            return Err(faults::too_many_attempts(u32::from(lost)));
        }
        self.step.out.write(|| Op::Attempt { message, attempts: lost.into() });
        Ok(lost)
    }
    /// Gives a handler the records of its message. It has its open fan-outs from now on. Returns its earlier
    /// notes.
    fn attach_record(
        &mut self,
        id: InvocationId,
        number: Number,
        (lost, attempts): (u8, u8),
        answered: Option<(FanId, u32)>,
    ) -> Vec<NoteRecord> {
        let Some(invocation) = self.invocations.all.get_mut(id).filter(|_| number != 0) else { return Vec::new() };
        let mut replay = self.invocations.replays.remove(&number).unwrap_or_default();
        let on_restart = self.setup.blueprint[invocation.listener].on_restart;
        if on_restart == OnRestart::Reattach {
            // It finds groups by their requests from now on, in any order.
            replay.reattaches = true;
            replay.count_calls();
            replay.decided.clear();
        }
        invocation.emitted = replay.emitted;
        // A run that need not repeat the one before, whose calls may be forgotten, has ids of its own.
        let run = self.step.out.next_number();
        if on_restart != OnRestart::Replay && epoch_of(number) != epoch_of(run) {
            (invocation.seed, _) = self.setup.key.derive(invocation.message, run);
        }
        let notes = std::mem::take(&mut replay.notes);
        for group in replay.calls.values() {
            if let GroupState::Open(fan) = group.state
                && let Some(FanOutKind::Awaited { invocation, .. }) =
                    self.tree.fan_outs.get_mut(fan).map(|fan| &mut fan.kind)
            {
                *invocation = id;
            }
        }
        invocation.record = Some(Box::new(InvocationRecord { number, attempts, lost, answered, replay, said: None }));
        notes
    }

    /// Writes that a handler begins, where a start after a crash must know it: the listener has one slot.
    fn note_begin(&mut self, id: InvocationId) {
        let Some(invocation) = self.invocations.all.get(id) else { return };
        let contract = &self.setup.blueprint[invocation.listener];
        let Some(record) = invocation.record.as_ref().filter(|_| contract.concurrency == 1 && !invocation.boot) else {
            return;
        };
        if record.replay.began.is_none() && self.step.out.writes() {
            let (message, value) = (record.number, self.step.out.next_number().to_string().into());
            self.step
                .out
                .write(|| Op::Note(NoteRecord { message, index: NoteRecord::BEGAN, name: "began".into(), value }));
        }
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
        if self.setup.blueprint[listener].context {
            let seen = self.invocations.all.get(invocation).and_then(|one| one.record.as_ref()?.replay.remembered);
            let before = seen.map_or(Number::MAX, |seen| seen.number);
            history = self.tree[key].extra.get_or_insert_default().history.get_or_insert_default().messages(before);
            place = seen.map_or_else(Place::default, |seen| Place { number: seen.place, answers: seen.answers });
            if seen.is_none() {
                let about = in_reply_to.map_or(About::Nothing, About::Answers);
                let number;
                (number, place) = self.tree.remember(key, (from.clone(), body.written()), about, &mut self.step);
                let Place { number: at, answers } = place;
                self.note_seen(invocation, Seen { number, place: at, answers });
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
            root: self.tree[thread.root].id,
            traceparent: thread.traceparent(),
            history,
            place,
            number: 0,
            attempts,
            notes: Vec::new(),
        }
    }

    /// Writes from which number on the context of the thread has the message of a handler.
    fn note_seen(&mut self, id: InvocationId, seen: Seen) {
        let message = self.invocations.all.get(id).map_or(0, Invocation::number);
        if message != 0 {
            let (index, name, value) = (NoteRecord::CONTEXT, "context".into(), seen.to_string().into());
            self.step.out.write(|| Op::Note(NoteRecord { message, index, name, value }));
        }
    }

    /// A message that seems to end the process is not tried once more.
    fn give_up_message(&mut self, key: ThreadKey, listener: ListenerId, message: Queued, fault: Fault) {
        self.write_done(message.number);
        let to = Some(self.setup.blueprint[listener].name.clone());
        self.dead_letter(key, (message.from, to), message.content.payload(), fault.clone(), message.entry);
        self.fail(key, fault);
    }

    /// The next message ends its thread: a fault that passes on.
    fn end_by_message(&mut self, key: ThreadKey, slot: bool) {
        let Some(listener) = self.tree[key].listener() else { return };
        self.leave_slot(listener, slot);
        let Some(Queued { number, content, entry, .. }) = self.tree.take(key) else { return };
        self.step.books.faulted(entry);
        self.write_done(number);
        if let Content::Fatal(fault) | Content::Body(Body::Fault(fault)) = content {
            self.fail(key, fault);
        }
    }

    /// Writes that a message was consumed.
    pub(super) fn write_done(&mut self, message: Number) {
        if message != 0 {
            self.step.out.write(|| Op::Done { message });
        }
    }

    fn resume(&mut self, key: ThreadKey, id: InvocationId, slot: bool) {
        let Some(invocation) = self.invocations.all.get(id) else { return };
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
        self.survived(id);
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
        self.forget_call(id, call);
        self.invocations.go_on(id, &mut self.step);
    }

    /// A handler ended.
    pub(super) fn finished(&mut self, id: InvocationId, outcome: HandlerOutcome) {
        let Some((ended, holdings)) = self.end_invocation(id) else { return };
        match ended.thread.filter(|&thread| self.tree.threads.contains_key(thread)) {
            Some(thread) => {
                let message = ended.message;
                self.tree.event(thread, &mut self.step, || EventKind::Handled { message, outcome: outcome.end() });
                self.thread_finished(thread, ended, holdings, outcome);
            }
            None => {
                self.give_back(holdings);
                let emitted = self.step.books.emitted(outcome.emissions());
                self.step.books.cancelled(emitted);
            }
        }
    }

    /// A handler ended whose thread is open.
    fn thread_finished(&mut self, key: ThreadKey, ended: Invocation, holdings: Holdings, outcome: HandlerOutcome) {
        // A resume that stood in a queue for the ended handler has lost its purpose.
        if self.tree[key].turn != Turn::None {
            self.leave_turn(key);
        }
        let silent = matches!(&outcome, HandlerOutcome::Emitted(emissions) if emissions.is_empty());
        let ended_well = outcome.end() == HandlerEnd::Returned;
        let diverged = if ended_well { divergence(&holdings) } else { None };
        if ended_well && !silent && diverged.is_none() {
            self.tree[key].unjudged += 1;
            let answers = self.tree[key].opened_by;
            let source = Source {
                message: ended.seed,
                number: holdings.record.as_ref().map_or(0, |record| record.number),
                index: ended.emitted,
            };
            let response = Response { thread: key, answers, handled: ended.message, source, holdings, outcome };
            return self.entrance.push(self.tree[self.tree[key].root].owner.into(), Item::Response(response));
        }
        let answers = diverged.is_none() && matches!(outcome, HandlerOutcome::Failed(_));
        if let Some((ticket, end)) = self.consume(holdings, answers) {
            self.step.out.taken(ticket, end);
        }
        match (diverged, outcome) {
            (Some(fault), _) => self.fail_shown(key, fault),
            (
                None,
                HandlerOutcome::Emitted(_)
                | HandlerOutcome::Wrote(_)
                | HandlerOutcome::Read(_)
                | HandlerOutcome::Refused(..),
            ) => self.tree.touch(key),
            (None, HandlerOutcome::Failed(failure)) => self.fail(key, faults::failed(failure)),
            (None, HandlerOutcome::Panicked) => self.fail(key, faults::panicked()),
            (None, HandlerOutcome::Discarded | HandlerOutcome::Aborted) => self.fail(key, faults::discarded()),
        }
    }

    /// Writes that the message of a handler was consumed, with the answer of a fan-out that it was, and the handler's
    /// attachment; with the note of that, if the handler `answers` its thread. Its slot is free. Returns the ticket of the
    /// attachment, and its end as long as the thread is open: a note that is not written was too late. The caller reports it.
    pub(super) fn consume(&mut self, mut holdings: Holdings, answers: bool) -> Option<(u64, AttachmentEnd)> {
        let has_note = holdings.attachment.as_ref().is_some_and(|attachment| attachment.note.is_some());
        let end = if has_note && !answers { AttachmentEnd::Late } else { AttachmentEnd::Effective };
        if let Some(record) = &mut holdings.record {
            // Before the end of the message, which takes no notes behind it.
            let note = holdings.attachment.as_mut().and_then(|attachment| attachment.note.take());
            if let Some(AttachedNote { index, name, value }) = note.filter(|_| answers && record.number != 0) {
                let message = record.number;
                self.step.out.write(|| Op::Note(NoteRecord { message, index, name, value }));
            }
            if let Some(said) = record.said.take().filter(|_| record.number != 0) {
                let (message, index, name) = (record.number, NoteRecord::SAID, NoteRecord::SAID_NAME.into());
                self.step.out.write(|| Op::Note(NoteRecord { message, index, name, value: said }));
            }
            self.write_done(record.number);
            if let Some((fan, count)) = record.answered {
                self.step.out.write(|| Op::Delivered { fan, count });
            }
        }
        self.let_go(holdings).map(|ticket| (ticket, end))
    }

    /// Takes the holdings of a handler whose thread was over before: its attachment is written all the same.
    pub(super) fn give_back(&mut self, holdings: Holdings) {
        let ticket = self.let_go(holdings);
        if let Some(ticket) = ticket {
            self.step.out.taken(ticket, AttachmentEnd::Late);
        }
    }

    /// Writes the attachment of a handler that has ended, and frees its slot. Returns the ticket.
    fn let_go(&mut self, holdings: Holdings) -> Option<u64> {
        let Holdings { slot, record: _, attachment, draft } = holdings;
        self.draft_over(draft, DraftEnd::Ended);
        let ticket = attachment.map(|attachment| {
            attachment.ops.into_iter().for_each(|op| self.step.out.write(|| op));
            attachment.ticket
        });
        if let Some(listener) = slot {
            self.release_slot(listener);
        }
        ticket
    }

    /// Tells of the end of a draft, if a handler wrote one.
    pub(super) fn draft_over(&mut self, of: Option<InvocationId>, end: DraftEnd) {
        if let Some(invocation) = of {
            self.step.out.emit(Output::DraftOver { invocation, end });
        }
    }

    /// Forgets a handler that ended: its calls are cancelled.
    pub(super) fn end_invocation(&mut self, id: InvocationId) -> Option<(Invocation, Holdings)> {
        self.budgets.forfeit(id, &mut self.step);
        let (ended, holdings) = self.invocations.end(id, &mut self.step)?;
        if let Some(thread) = ended.thread {
            self.tree[thread].invocation = None;
        }
        ended.calls.iter().for_each(|&(_, fan)| self.drop_fan_out(fan));
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

    /// Takes amounts that count as spent since a crash for reserved ones again: the request is in flight still.
    pub(super) fn reclaim(&mut self, invocation: InvocationId, amounts: Amounts) {
        let account = self.invocations.thread(invocation).and_then(|thread| self.account(thread));
        if let Some(account) = account {
            self.budgets.reclaim(invocation, account, amounts, &mut self.step);
        }
    }

    /// Charges what a request of a handler used, with an answer or without.
    pub(super) fn charge(&mut self, invocation: InvocationId, used: Amounts) {
        if self.budgets.is_empty() {
            return;
        }
        let account = self.invocations.thread(invocation).and_then(|thread| self.account(thread));
        self.budgets.settle(invocation, account, used, &mut self.step);
    }

    /// Writes a value that a handler recorded. The handler goes on when the value is durable.
    pub(super) fn noted(&mut self, id: InvocationId, index: u32, (name, value): (Arc<str>, Arc<str>)) {
        // A closed thread needs no notes: its handler is not run again.
        let open = self.invocations.all.get(id).filter(|invocation| invocation.thread.is_some());
        let message = open.map_or(0, Invocation::number);
        if message != 0 {
            self.step.out.write(|| Op::Note(NoteRecord { message, index, name, value }));
        }
        self.step.out.emit(Output::Noted { invocation: id, index });
    }

    /// Stops the time of a handler that runs but can't work, or starts it again. Takes the attempt back that a start after a
    /// crash has counted, while its message waits for a program that can handle it: if the process ends meanwhile, the
    /// message is not its cause.
    pub(super) fn stalled(&mut self, id: InvocationId, stalled: bool) {
        self.invocations.stall(id, stalled, &mut self.step);
        let record = self.invocations.all.get_mut(id).and_then(|invocation| invocation.record.as_mut());
        if let Some(record) = record.filter(|record| record.lost != record.attempts) {
            let attempts = if stalled { record.lost } else { record.attempts };
            self.step.out.write(|| Op::Attempt { message: record.number, attempts: attempts.into() });
        }
    }

    /// Writes how many runs of a handler have ended with their process: the next start goes on with that number.
    pub(super) fn attempted(&mut self, id: InvocationId, attempts: u8) {
        // The message of a closed thread is not run again.
        let open = self.invocations.all.get_mut(id).filter(|invocation| invocation.thread.is_some());
        let Some(record) = open.and_then(|invocation| invocation.record.as_mut()) else { return };
        (record.attempts, record.lost) = (attempts, attempts);
        self.step.out.write(|| Op::Attempt { message: record.number, attempts: attempts.into() });
    }

    /// Keeps what the program of a handler wrote on standard error, until its message is consumed.
    pub(super) fn said(&mut self, id: InvocationId, text: Arc<str>) {
        self.report(id, |by| EventKind::ProgramSaid { by, text: shown(text.as_bytes()) });
        if let Some(record) = self.invocations.all.get_mut(id).and_then(|invocation| invocation.record.as_mut()) {
            record.said = Some(text);
        }
    }

    /// Attaches changes to the end of a handler. They are written at once if that is over already.
    pub(super) fn attached(&mut self, id: InvocationId, attachment: Attachment) {
        match self.invocations.all.get_mut(id) {
            Some(invocation) => invocation.attachment = Some(Box::new(attachment)),
            None => self.step.out.take(attachment, AttachmentEnd::Late),
        }
    }

    /// Takes a listener without a person at the terminal: operators learn once of each handler whose question waits there.
    pub(super) fn unattended(&mut self, listener: ListenerId) {
        self.invocations.unattended.insert(listener);
        let mut waiting = Vec::new();
        for (id, one) in &mut self.invocations.all {
            if one.listener == listener && one.is_running() && !one.boot && !one.is_known_unattended {
                one.is_known_unattended = true;
                waiting.push(id);
            }
        }
        waiting.into_iter().for_each(|id| self.report(id, |by| EventKind::Unattended { by }));
    }

    /// Reports an event of a running handler to operators: `what` makes it of the name of the listener.
    pub(super) fn report(&mut self, id: InvocationId, what: impl FnOnce(Name) -> EventKind) {
        let Some(invocation) = self.invocations.all.get(id) else { return };
        let Some(thread) = invocation.thread else { return };
        let by = self.setup.blueprint[invocation.listener].name.clone();
        self.tree.event(thread, &mut self.step, || what(by));
    }

    /// Reports an attempt at a model that got no answer to operators.
    pub(super) fn model_failed(&mut self, id: InvocationId, attempt: ModelFailure) {
        let Some(message) = self.invocations.all.get(id).map(|invocation| invocation.message) else { return };
        let ModelFailure { backend, attempt, error, usage, took } = attempt;
        let error = shown(error.as_bytes());
        self.report(id, |by| EventKind::ModelFailed { by, message, backend, attempt, error, usage, took });
    }

    /// Charges an answer that a handler got from a model, and tells operators of it. `note`: the index of the note that keeps
    /// it.
    pub(super) fn charge_answer(&mut self, id: InvocationId, answer: ModelAnswer, note: Option<u32>) {
        self.charge(id, answer.usage.into());
        let Some(invocation) = self.invocations.all.get(id) else { return };
        let Some(thread) = invocation.thread else { return };
        let (by, message) = (self.setup.blueprint[invocation.listener].name.clone(), invocation.message);
        let ModelAnswer { backend, model, usage, took, text, fault } = answer;
        let output = || shown(text.as_bytes());
        let answered =
            || EventKind::ModelAnswered { by: by.clone(), message, note, backend, model, usage, took, text: output() };
        self.tree.event(thread, &mut self.step, answered);
        if let Some(fault) = fault {
            self.tree.event(thread, &mut self.step, || EventKind::Refused { by, output: output(), fault });
        }
    }

    /// Takes a thread out of the queues that it stands in.
    pub(super) fn leave_turn(&mut self, thread: ThreadKey) {
        let turn = std::mem::replace(&mut self.tree[thread].turn, Turn::None);
        let Some(listener) = self.tree[thread].listener() else { return };
        match turn {
            Turn::None | Turn::Queued { slot: false, .. } => {}
            Turn::Queued { slot: true, .. } => self.release_slot(listener),
            Turn::Waiting => match (self.home(listener), self.setup.core) {
                (home, from) if home == from => self.turns.slots[listener.0 as usize].decline(from, thread),
                (home, from) => self.step.out.send(home, CoreMessage::SlotDeclined { from, listener, thread }),
            },
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
        match self.home(listener) {
            _ if self.entrance.phase == Phase::Stopped => {}
            home if home == self.setup.core => self.slot_returned(listener),
            home => self.step.out.send(home, CoreMessage::SlotReturned { listener }),
        }
    }

    /// Gives a thread the slot that it waited for; if it no longer waits, another thread gets the slot.
    pub(super) fn slot_granted(&mut self, listener: ListenerId, key: ThreadKey) {
        if self.tree.threads.get(key).is_some_and(|thread| thread.turn == Turn::Waiting) {
            self.enter_run_queue(key, true);
        } else {
            self.release_slot(listener);
        }
    }

    /// A thread of any core wants a slot of a listener whose home is this core.
    pub(super) fn slot_wanted(&mut self, want: Want) {
        if let Some(gathering) = &mut self.turns.gathering {
            return gathering.wants.push(want);
        }
        if self.take_slot(&want) {
            self.grant_slot(want.listener, want.waiter.core, want.waiter.thread);
        }
    }

    fn grant_slot(&mut self, listener: ListenerId, core: CoreId, thread: ThreadKey) {
        match core == self.setup.core {
            true => self.slot_granted(listener, thread),
            false => self.step.out.send(core, CoreMessage::SlotGranted { listener, thread }),
        }
    }

    /// A slot of a listener whose home is this core comes back.
    pub(super) fn slot_returned(&mut self, listener: ListenerId) {
        if self.entrance.phase != Phase::Stopped
            && let Some((core, thread)) = self.turns.slots[listener.0 as usize].give_back()
        {
            self.grant_slot(listener, core, thread);
        }
    }

    fn grant_free_slots(&mut self, listener: ListenerId) {
        while let Some((core, thread)) = self.turns.slots[listener.0 as usize].grant() {
            self.grant_slot(listener, core, thread);
        }
    }

    /// Reports to the other cores that this one has recovered, once.
    pub(super) fn all_recovered(&mut self) {
        self.turns.precedence = Precedence::Later;
        let Some(gathering) = &mut self.turns.gathering else { return };
        if std::mem::replace(&mut gathering.has_reported, true) {
            return;
        }
        let own = self.setup.core;
        for core in (0..self.setup.cores).map(CoreId).filter(|&core| core != own) {
            self.step.out.send(core, CoreMessage::Recovered);
        }
        self.core_recovered();
    }

    /// Counts a core that has recovered. After the last one the slots are granted in the order of the messages. A thread
    /// that no longer wants its slot gives it back when it comes.
    pub(super) fn core_recovered(&mut self) {
        let Some(gathering) = &mut self.turns.gathering else { return };
        gathering.missing = gathering.missing.saturating_sub(1);
        if gathering.missing > 0 {
            return;
        }
        let mut wants = self.turns.gathering.take().map_or(Vec::new(), |gathering| gathering.wants);
        wants.sort_by_key(|want| want.at);
        wants.into_iter().for_each(|want| self.slot_wanted(want));
    }

    /// An operator has paused a listener, or resumed it.
    pub(super) fn listener_paused(&mut self, listener: ListenerId, paused: bool) {
        let Some(slots) = self.turns.slots.get_mut(listener.0 as usize) else { return };
        slots.paused = paused;
        if self.entrance.phase != Phase::Stopped {
            self.grant_free_slots(listener);
        }
    }

    /// A listener rests, or is back: then those that wait get the slots that are free.
    pub(super) fn listener_rests(&mut self, listener: ListenerId, rests: bool) {
        let Some(slots) = self.turns.slots.get_mut(listener.0 as usize) else { return };
        slots.rests = rests;
        if self.entrance.phase != Phase::Stopped {
            self.grant_free_slots(listener);
        }
    }

    /// A timer is due.
    pub(super) fn timer_due(&mut self, id: TimerId, timer: Timer) {
        match timer {
            Timer::Handler(invocation) => {
                if let Some(thread) = self.invocations.thread(invocation) {
                    self.fail(thread, faults::handler_timeout());
                }
            }
            Timer::Deadline(key) => {
                if let Some(thread) = self.tree.threads.get_mut(key) {
                    thread.extra.get_or_insert_default().timer = None;
                    self.fail(key, faults::deadline());
                }
            }
            Timer::Idle(key) => {
                if self.tree.threads.contains_key(key) {
                    self.close(key);
                }
            }
            Timer::Calls(fan) => self.expire_calls(fan),
            Timer::Continue(key, message) => match self.tree.threads.contains_key(key) {
                true => {
                    self.tree.end_delay(key, id);
                    self.put(key, *message);
                }
                false => self.step.books.cancelled(message.entry),
            },
        }
    }
}

/// The fault of a handler that ended without asking for all that it had asked for before.
fn divergence(holdings: &Holdings) -> Option<Fault> {
    let replay = &holdings.record.as_ref()?.replay;
    let (_, first) = replay.calls.iter().filter(|_| !replay.reattaches).min_by_key(|(call, _)| **call)?;
    Some(faults::diverged(&describe(&first.requests), "nothing: it ended"))
}
