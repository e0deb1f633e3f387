//! Messages about detached tasks, sent from the thread of `<boot>`: each call opens a thread of its submitter below it.
//!
//! Each is sent once. The contract of the listener [reattaches](systole_core::core::OnRestart::Reattach): after a
//! crash, owed events are called again, and each finds the call that was made before, if there was one, with its
//! outcome. A call is forgotten when the inbox has recorded its outcome.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use systole_core::core::Answer;
use systole_core::inbox::payload::{EventPayload, Input, Question, ResultPayload};
use systole_core::inbox::{InboxPrincipal, Task, TaskEvent, TaskEventKind, TaskInbox};
use systole_core::vocab::{Fault, FaultCode, Name, TaskId, Time};

use super::inboxes::Inboxes;
use super::shared::Shared;
use crate::runtime::{Calling, Thread, call_to};
use systole_store::clock::Clock;

/// The most calls at once of events, which are answered soon, and of questions, which may wait for a person.
const MOST: [usize; 2] = [64, 512];
/// Back-off after a failure, at first and at most.
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// The longest sleep between two checks.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// An event on its way to its submitter.
struct Sending {
    id: TaskId,
    number: u32,
    kind: TaskEventKind,
    submitter: Name,
    call: Calling<Answer>,
}

/// The back-off of an event.
struct Wait {
    until: Time,
    next: Duration,
}

/// Sends owed events to submitters, each task's in order, and fails tasks past their deadlines. Runs for ever.
pub(super) async fn send<I: Inboxes>(shared: &Arc<Shared<I>>, thread: &Thread, clock: &Clock) {
    let mut sending: Vec<Sending> = Vec::new();
    let mut waits: HashMap<TaskId, Wait> = HashMap::new();
    let mut fresh = true;
    loop {
        let now = clock.now();
        shared.try_change(|inboxes| Ok(inboxes.expire(now)));
        withdraw(shared, &mut sending);
        start(shared, thread, now, &mut sending, &waits);
        let next = {
            let kept = shared.lock();
            waits.retain(|id, _| owes(&kept.inboxes, *id));
            let retries = waits.values().map(|wait| wait.until).filter(|until| *until > now);
            retries.chain(kept.inboxes.inboxes().filter_map(TaskInbox::next_deadline)).min()
        };
        let sleep = match fresh {
            true => Duration::ZERO,
            false => next.map_or(LONGEST, |next| clock.until(next)).min(LONGEST),
        };
        tokio::select! {
            biased;
            (done, outcome) = next_done(&mut sending) => settle(shared, clock, done, outcome, &mut waits),
            () = shared.outbox.notified() => {}
            // Every owed event that may be sent has been called.
            () = tokio::time::sleep(sleep) => if std::mem::take(&mut fresh) {
                thread.reattached();
            }
        }
    }
}

fn owes(inboxes: &impl Inboxes, id: TaskId) -> bool {
    inboxes.holding(id).and_then(|inbox| inbox.get(id)).is_ok_and(|task| !task.outbox.is_empty())
}

/// Drops questions that are answered or obsolete, so that later events don't wait for them.
fn withdraw<I: Inboxes>(shared: &Arc<Shared<I>>, sending: &mut Vec<Sending>) {
    let current = |one: &Sending| !one.is_question() || shared.read(one.id, |task| asks(task, one.number)) == Ok(true);
    let (kept, gone): (Vec<_>, Vec<_>) = sending.drain(..).partition(current);
    *sending = kept;
    for one in gone {
        shared.acknowledge(one.id, one.number);
    }
}

/// Starts calls for owed events that are not in flight.
fn start<I: Inboxes>(
    shared: &Arc<Shared<I>>,
    thread: &Thread,
    now: Time,
    sending: &mut Vec<Sending>,
    waits: &HashMap<TaskId, Wait>,
) {
    let (mut passed, mut silent) = (Vec::new(), Vec::new());
    let sends = shared.sends();
    let kept = shared.lock();
    for (task, event) in kept.inboxes.inboxes().flat_map(TaskInbox::owed) {
        let waits = waits.get(&task.id).is_some_and(|wait| wait.until > now);
        if waits || sending.iter().any(|one| one.id == task.id) {
            continue;
        }
        let question = event.kind == TaskEventKind::InputRequired;
        if event.kind.is_end() && !sends.results {
            silent.push(task.id);
        } else if question && !(sends.questions && asks(task, event.number)) {
            // The question is answered or obsolete, or the submitter has to poll for it.
            passed.push((task.id, event.number));
        } else if sending.iter().filter(|one| one.is_question() == question).count() < MOST[usize::from(question)] {
            sending.push(Sending::new(thread, task, event));
        }
    }
    drop(kept);
    for (id, number) in passed {
        shared.acknowledge(id, number);
    }
    for id in silent {
        shared.give_up(id, "the job sends no results: ask for them with get");
    }
}

/// Returns whether a task waits for the answer to the question of that event.
fn asks(task: &Task, event: u32) -> bool {
    task.open_question().is_some_and(|exchange| exchange.number == event)
}

impl Sending {
    fn new(thread: &Thread, task: &Task, event: &TaskEvent) -> Self {
        let submitter = task.source.agent.clone();
        let to = submitter.as_str();
        let call = match event.kind {
            TaskEventKind::InputRequired => {
                let text = event.text.clone().unwrap_or_default();
                call_to(to, Question { id: task.id, number: event.number, text })
            }
            kind if kind.is_end() => call_to(to, ResultPayload::from(task)),
            _ => call_to(to, EventPayload::from(event)),
        };
        let call = thread.call_any(call);
        Self { id: task.id, number: event.number, kind: event.kind, submitter, call }
    }

    fn is_question(&self) -> bool {
        self.kind == TaskEventKind::InputRequired
    }
}

/// Waits for the next answered call, and returns its outcome.
async fn next_done(sending: &mut Vec<Sending>) -> (Sending, Result<Answer, Fault>) {
    poll_fn(|cx| {
        for at in 0..sending.len() {
            if let Poll::Ready(outcome) = Pin::new(&mut sending[at].call).poll(cx) {
                return Poll::Ready((sending.remove(at), outcome));
            }
        }
        Poll::Pending
    })
    .await
}

fn settle<I: Inboxes>(
    shared: &Arc<Shared<I>>,
    clock: &Clock,
    done: Sending,
    outcome: Result<Answer, Fault>,
    waits: &mut HashMap<TaskId, Wait>,
) {
    match outcome {
        Ok(answer) => {
            if let (true, Ok(input)) = (done.is_question(), answer.decode::<Input>()) {
                shared.answer(
                    &InboxPrincipal::new(done.submitter.clone()),
                    done.id,
                    done.number,
                    &input.text,
                    clock.now(),
                );
            }
            shared.acknowledge(done.id, done.number);
        }
        // Undeliverable for ever.
        Err(fault) if fault.code == FaultCode::Route && done.kind.is_end() => {
            shared.give_up(done.id, &fault.message);
        }
        // Undeliverable for now.
        Err(fault) if fault.retryable || matches!(fault.code, FaultCode::Limit | FaultCode::Cancelled) => {
            let next = waits.get(&done.id).map_or(BACKOFF[0], |wait| wait.next);
            waits.insert(done.id, Wait { until: clock.now().after(next), next: (next * 2).min(BACKOFF[1]) });
        }
        // Delivered; a failure of its handler doesn't concern the job.
        Err(_) => shared.acknowledge(done.id, done.number),
    }
    done.call.forget();
}
