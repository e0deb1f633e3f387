//! Random histories against a naive model: a list of tasks, searched from the front.

use std::time::Duration;

use proptest::prelude::*;
use systole::inbox::*;
use systole::journal::{Journal, MemoryJournal, Step};

use super::lifecycle::{act, leads};
use super::*;

const LIMITS: InboxLimits = InboxLimits {
    open: 4,
    ended: 3,
    keys: Duration::from_secs(20),
    bytes: 64 << 20,
    task_bytes: 512 << 10,
    description_bytes: 64 << 10,
    context_bytes: 256 << 10,
    text_bytes: 64 << 10,
    key_bytes: 256,
    entries: 256,
    artifacts: 64,
    artifact_bytes: 256 << 10,
    questions: 2,
    outbox: 5,
    rendered_bytes: 256 << 10,
};

#[derive(Debug, Clone)]
enum Op {
    Submit { by: usize, key: Option<usize>, body: usize, detached: usize, deadline: Option<u64> },
    Transition { by: usize, transition: usize, task: usize },
    Expire,
    Acknowledge { task: usize },
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let submit = (0..3usize, proptest::option::of(0..2usize), 0..2usize, 0..3usize, proptest::option::of(1..12u64));
    prop_oneof![
        3 => submit.prop_map(|(by, key, body, detached, deadline)| Op::Submit { by, key, body, detached, deadline }),
        9 => (0..4usize, 0..Transition::ALL.len(), 0..6usize).prop_map(|(by, transition, task)| Op::Transition { by, transition, task }),
        1 => Just(Op::Expire),
        1 => (0..6usize).prop_map(|task| Op::Acknowledge { task }),
        1 => Just(Op::Restart),
    ]
}

#[derive(Debug, Clone)]
struct Known {
    id: TaskId,
    by: String,
    key: Option<String>,
    body: (String, usize, Option<Time>),
    status: Status,
    changed: Time,
    deadline: Option<Time>,
    detached: usize,
    questions: usize,
    artifact: bool,
    attempts: u32,
    events: Vec<TaskEventKind>,
    waiting: usize,
    /// Only its key is known.
    forgotten: bool,
}

impl Known {
    fn over(&self) -> bool {
        self.status.is_ended() && self.waiting == 0
    }

    fn happens(&mut self, kind: TaskEventKind, now: Time) {
        self.events.push(kind);
        self.changed = now;
        let told = kind.is_end() || kind == TaskEventKind::InputRequired;
        if self.detached == 2 || self.detached == 1 && told {
            self.waiting += 1;
        }
    }
}

const ACTORS: [&str; 4] = ["writer", "editor", "reviewer", "reviewer"];

fn event_of(act: Transition) -> TaskEventKind {
    match act {
        Transition::Accept => TaskEventKind::Accepted,
        Transition::Progress => TaskEventKind::Progress,
        Transition::Artifact => TaskEventKind::Artifact,
        Transition::Ask => TaskEventKind::InputRequired,
        Transition::Answer => TaskEventKind::Input,
        Transition::Complete => TaskEventKind::Completed,
        Transition::Fail => TaskEventKind::Failed,
        Transition::Reject => TaskEventKind::Rejected,
        Transition::Cancel => TaskEventKind::Cancelled,
        Transition::Release => TaskEventKind::Released,
    }
}

/// Drops ended tasks past the limit, the oldest first; their keys for no longer than that.
fn trim(tasks: &mut Vec<Known>, now: Time) {
    while tasks.iter().filter(|task| task.over() && !task.forgotten).count() > LIMITS.ended {
        let over = (0..tasks.len()).filter(|at| tasks[*at].over() && !tasks[*at].forgotten);
        let oldest = over.min_by_key(|at| (tasks[*at].changed, *at)).unwrap();
        match tasks[oldest].key.is_some() && tasks[oldest].changed.after(LIMITS.keys) > now {
            true => tasks[oldest].forgotten = true,
            false => drop(tasks.remove(oldest)),
        }
    }
}

/// Applies an action to the model; `false` if the model refuses it.
fn model_act(tasks: &mut Vec<Known>, by: &str, step: Transition, task: TaskId, now: Time) -> bool {
    if step == Transition::Release {
        for known in tasks.iter_mut().filter(|known| matches!(known.status, Status::Accepted | Status::InputRequired)) {
            if known.status == Status::InputRequired {
                known.questions -= 1;
            }
            known.status = Status::Pending;
            known.happens(TaskEventKind::Released, now);
        }
        return true;
    }
    let Some(at) = tasks.iter().position(|known| known.id == task) else { return false };
    let known = &tasks[at];
    let may = match step {
        Transition::Cancel | Transition::Answer => known.by == by,
        _ => by == "reviewer",
    };
    let Some(to) = leads(known.status, step) else { return false };
    let adds = matches!(step, Transition::Progress | Transition::Artifact | Transition::Ask);
    if !may
        || (adds || step == Transition::Accept) && known.waiting >= LIMITS.outbox
        || step == Transition::Ask && known.questions >= LIMITS.questions
    {
        return false;
    }
    if adds || step == Transition::Answer {
        trim(tasks, now);
    }
    let known = tasks.iter_mut().find(|known| known.id == task).unwrap();
    if step == Transition::Ask {
        known.questions += 1;
    } else if known.status == Status::InputRequired && to.is_ended() {
        known.questions -= 1;
    }
    known.status = to;
    known.attempts += u32::from(step == Transition::Accept);
    known.artifact |= step == Transition::Artifact;
    known.happens(event_of(step), now);
    true
}

fn model_submit(tasks: &mut Vec<Known>, new: Known, now: Time) -> Option<TaskId> {
    if let Some(known) =
        tasks.iter().find(|known| known.key.is_some() && (&known.key, &known.by) == (&new.key, &new.by))
    {
        return (known.body == new.body).then_some(known.id);
    }
    let open = tasks.iter().filter(|known| !known.over()).count();
    if open >= LIMITS.open || new.deadline.is_some_and(|deadline| deadline <= now) {
        return None;
    }
    tasks.retain(|known| !known.forgotten || known.changed.after(LIMITS.keys) > now);
    trim(tasks, now);
    let id = new.id;
    tasks.push(new);
    let new = tasks.last_mut().unwrap();
    new.happens(TaskEventKind::Submitted, now);
    new.happens(TaskEventKind::Routed, now);
    Some(id)
}

fn agree(inbox: &TaskInbox, tasks: &[Known], heard: &[TaskEvent]) {
    let tasks: Vec<_> = tasks.iter().filter(|known| !known.forgotten).collect();
    let ids: Vec<_> = inbox.tasks().map(|task| task.id).collect();
    assert_eq!(ids, tasks.iter().map(|known| known.id).collect::<Vec<_>>());
    for (task, known) in inbox.tasks().zip(&tasks) {
        assert_eq!((task.status, task.changed, task.attempts), (known.status, known.changed, known.attempts));
        assert_eq!((task.questions.len(), task.outbox.len()), (known.questions, known.waiting));
        assert_eq!(task.artifacts.len(), usize::from(known.artifact));
        assert_eq!(task.source.agent.as_str(), known.by);
        // Each event came once, in order, without gaps.
        let own: Vec<_> = heard.iter().filter(|event| event.task == task.id).collect();
        assert_eq!(own.iter().map(|event| event.kind).collect::<Vec<_>>(), known.events);
        assert!(own.iter().map(|event| event.number).eq(1..=task.events));
    }
    let pending: Vec<_> = inbox.pending().map(|task| task.id).collect();
    let expected: Vec<_> = tasks.iter().filter(|known| known.status == Status::Pending).map(|known| known.id).collect();
    assert_eq!(pending, expected);
    assert_eq!(inbox.open(), tasks.iter().filter(|known| !known.over()).count());
    let deadline = tasks.iter().filter(|known| !known.status.is_ended()).filter_map(|known| known.deadline).min();
    assert_eq!(inbox.next_deadline(), deadline);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_agree_with_the_model(ops in proptest::collection::vec(op(), 1..120)) {
        let mut inbox = inbox().with_limits(LIMITS);
        let mut journal = MemoryJournal::new([0; 32]);
        let (mut tasks, mut heard): (Vec<Known>, Vec<TaskEvent>) = (Vec::new(), Vec::new());
        for (clock, op) in (1u64..).zip(ops) {
            let now = at(clock);
            let before = records(&inbox);
            let target = |tasks: &[Known], task: usize| tasks.get(task).map_or(id(0), |known| known.id);
            let outcome = match op {
                Op::Submit { by, key, body, detached, deadline } => {
                    let key = key.map(|key| format!("key {key}"));
                    let deadline = deadline.map(|after| at(clock + after - 1));
                    let submission = Submission {
                        key: key.clone(),
                        deadline,
                        detached: detached > 0,
                        watched: detached == 2,
                        ..Submission::new("drafts", format!("body {body}"))
                    };
                    let by = ACTORS[by];
                    let new = Known {
                        id: id(u128::from(clock)),
                        by: by.to_owned(),
                        key,
                        body: (submission.description.clone(), detached, deadline),
                        status: Status::Pending,
                        changed: now,
                        deadline,
                        detached,
                        questions: 0,
                        artifact: false,
                        attempts: 0,
                        events: Vec::new(),
                        waiting: 0,
                        forgotten: false,
                    };
                    let submitted = inbox.submit(&who(by), submission, new.id, now);
                    let expected = model_submit(&mut tasks, new, now);
                    assert_eq!(submitted.as_ref().ok().map(|submitted| submitted.id), expected);
                    submitted.map(|submitted| submitted.change)
                }
                Op::Transition { by, transition: step, task } => {
                    let (by, step, task) = (ACTORS[by], Transition::ALL[step], target(&tasks, task));
                    let outcome = act(&mut inbox, &who(by), step, task, now);
                    assert_eq!(outcome.is_ok(), model_act(&mut tasks, by, step, task, now), "{outcome:?}");
                    outcome
                }
                Op::Expire => {
                    let late = |known: &&mut Known| {
                        !known.status.is_ended() && known.deadline.is_some_and(|deadline| deadline <= now)
                    };
                    for known in tasks.iter_mut().filter(late) {
                        known.questions -= usize::from(known.status == Status::InputRequired);
                        known.status = Status::Failed;
                        known.happens(TaskEventKind::Failed, now);
                    }
                    Ok(inbox.expire(now))
                }
                Op::Acknowledge { task } => {
                    let task = target(&tasks, task);
                    let known = tasks.iter_mut().find(|known| known.id == task);
                    known.into_iter().for_each(|known| known.waiting = 0);
                    inbox.acknowledge(task, u32::MAX)
                }
                Op::Restart => {
                    let recovered = journal.recover().unwrap();
                    inbox = TaskInbox::recover("reviews", owner(), LIMITS, &recovered.tasks).unwrap();
                    Ok(InboxChange::default())
                }
            };
            match outcome {
                Ok(change) => {
                    journal.write(&[Step { ops: inbox.ops(&change), at: now }]).unwrap();
                    heard.extend(change.events);
                }
                Err(_) => assert_eq!(records(&inbox), before, "a refusal changes nothing"),
            }
            agree(&inbox, &tasks, &heard);
        }
    }
}
