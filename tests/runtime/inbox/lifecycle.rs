//! Transitions of tasks.

use std::sync::{Arc, Barrier, Mutex};

use systole::inbox::*;

use super::*;

/// Each action on a task in each status: from, action, to. Written out as in the table of `docs/tasks.md`.
const WAYS: [(Status, Transition, Status); 19] = {
    use Status::*;
    use Transition::*;
    [
        (Pending, Transition::Accept, Accepted),
        (Pending, Complete, Completed),
        (Pending, Fail, Failed),
        (Pending, Reject, Rejected),
        (Pending, Cancel, Cancelled),
        (Accepted, Transition::Progress, Accepted),
        (Accepted, Transition::Artifact, Accepted),
        (Accepted, Ask, InputRequired),
        (Accepted, Complete, Completed),
        (Accepted, Fail, Failed),
        (Accepted, Cancel, Cancelled),
        (Accepted, Release, Pending),
        (InputRequired, Transition::Progress, InputRequired),
        (InputRequired, Transition::Artifact, InputRequired),
        (InputRequired, Answer, Accepted),
        (InputRequired, Complete, Completed),
        (InputRequired, Fail, Failed),
        (InputRequired, Cancel, Cancelled),
        (InputRequired, Release, Pending),
    ]
};

pub(crate) fn leads(from: Status, act: Transition) -> Option<Status> {
    WAYS.iter().find(|(status, way, _)| (*status, *way) == (from, act)).map(|(_, _, to)| *to)
}

pub(crate) fn act(
    inbox: &mut TaskInbox,
    actor: &InboxPrincipal,
    act: Transition,
    task: TaskId,
    now: Time,
) -> Result<InboxChange, InboxError> {
    let part = || ArtifactPart { name: "report".into(), text: "a part".into(), ..ArtifactPart::default() };
    match act {
        Transition::Accept => inbox.apply(actor, task, TaskAction::Accept, now),
        Transition::Progress => {
            inbox.apply(actor, task, TaskAction::Progress { percent: Some(50), text: "half".into() }, now)
        }
        Transition::Artifact => inbox.apply(actor, task, TaskAction::Artifact(part()), now),
        Transition::Ask => inbox.apply(actor, task, TaskAction::Ask("which one?".into()), now),
        Transition::Answer => inbox.apply(actor, task, TaskAction::Answer("the first".into()), now),
        Transition::Complete => inbox.apply(actor, task, TaskAction::Complete("done".into()), now),
        Transition::Fail => inbox.apply(actor, task, TaskAction::Fail("no".into()), now),
        Transition::Reject => inbox.apply(actor, task, TaskAction::Reject("not mine".into()), now),
        Transition::Cancel => inbox.apply(actor, task, TaskAction::Cancel(String::new()), now),
        Transition::Release => Ok(inbox.release(now)),
    }
}

/// Makes an inbox with one task in that status.
fn with(status: Status) -> TaskInbox {
    let mut inbox = inbox();
    let task = submit(&mut inbox, 1);
    let way: &[Transition] = match status {
        Status::Pending => &[],
        Status::Accepted => &[Transition::Accept],
        Status::InputRequired => &[Transition::Accept, Transition::Ask],
        Status::Completed => &[Transition::Complete],
        Status::Failed => &[Transition::Fail],
        Status::Rejected => &[Transition::Reject],
        Status::Cancelled => &[Transition::Cancel],
    };
    for step in way {
        let actor = if *step == Transition::Cancel { writer() } else { owner() };
        let _ = act(&mut inbox, &actor, *step, task, at(2)).unwrap();
    }
    assert_eq!(inbox.get(task).unwrap().status, status);
    inbox
}

#[test]
fn every_act_in_every_status_is_a_step_of_the_table_or_changes_nothing() {
    for from in Status::ALL {
        for step in Transition::ALL {
            let mut inbox = with(from);
            let actor = if matches!(step, Transition::Cancel | Transition::Answer) { writer() } else { owner() };
            assert_eq!(from.after(step), leads(from, step), "{from} {step}");
            match leads(from, step) {
                Some(to) => {
                    let change = act(&mut inbox, &actor, step, id(1), at(3)).unwrap();
                    assert_eq!(inbox.get(id(1)).unwrap().status, to, "{from} {step}");
                    assert_eq!((change.events.len(), change.saved.len()), (1, 1));
                }
                None if step == Transition::Release => assert!(inbox.release(at(3)).is_empty()),
                None => {
                    let error = refused(&mut inbox, |inbox| act(inbox, &actor, step, id(1), at(3)));
                    assert_eq!(error, InboxError::Transition { id: id(1), from, transition: step });
                    assert!(error.to_string().contains(&format!("is {from}: {step} ")), "{error}");
                }
            }
        }
    }
}

#[test]
fn errors_say_from_what_to_what() {
    let error = |from, step| InboxError::Transition { id: id(1), from, transition: step }.to_string();
    let task = id(1);
    assert_eq!(
        error(Status::Completed, Transition::Accept),
        format!("task {task} is completed: accept leads from pending to accepted")
    );
    assert_eq!(
        error(Status::Cancelled, Transition::Complete),
        format!("task {task} is cancelled: complete leads from pending or accepted or input-required to completed")
    );
    assert_eq!(
        error(Status::Pending, Transition::Progress),
        format!("task {task} is pending: progress is for tasks that are accepted or input-required")
    );
}

#[test]
fn only_the_owner_moves_a_task_and_only_the_submitter_cancels_it_or_answers() {
    for from in [Status::Pending, Status::Accepted, Status::InputRequired] {
        for step in Transition::ALL.into_iter().filter(|step| *step != Transition::Release) {
            let submitters = matches!(step, Transition::Cancel | Transition::Answer);
            for actor in ["stranger", if submitters { "reviewer" } else { "writer" }] {
                let mut inbox = with(from);
                let error = refused(&mut inbox, |inbox| act(inbox, &who(actor), step, id(1), at(3)));
                let expected = if submitters {
                    InboxError::NotSubmitter { id: id(1), actor: who(actor), transition: step }
                } else {
                    InboxError::NotOwner { actor: who(actor), transition: step }
                };
                assert_eq!(error, expected);
            }
        }
    }
}

#[test]
fn unknown_ids_are_errors() {
    for step in Transition::ALL.into_iter().filter(|step| *step != Transition::Release) {
        let actor = if matches!(step, Transition::Cancel | Transition::Answer) { writer() } else { owner() };
        let error = refused(&mut with(Status::Pending), |inbox| act(inbox, &actor, step, id(2), at(3)));
        assert_eq!(error, InboxError::Unknown { id: id(2) });
    }
    assert_eq!(inbox().get(id(2)).unwrap_err(), InboxError::Unknown { id: id(2) });
}

#[test]
fn a_whole_life_has_each_event_once_and_in_order() {
    let mut inbox = inbox();
    let submitted = inbox.submit(&writer(), Submission::new("drafts", "Read."), id(1), at(1)).unwrap();
    let mut events = submitted.change.events;
    let mut more = |change: InboxChange| events.extend(change.events);
    more(inbox.apply(&owner(), id(1), TaskAction::Accept, at(2)).unwrap());
    more(
        inbox.apply(&owner(), id(1), TaskAction::Progress { percent: Some(10), text: "begun".into() }, at(3)).unwrap(),
    );
    more(inbox.apply(&owner(), id(1), TaskAction::Ask("British or American?".into()), at(4)).unwrap());
    more(inbox.apply(&writer(), id(1), TaskAction::Answer("British".into()), at(5)).unwrap());
    let part = |text: &str, append, last| ArtifactPart { name: "notes".into(), text: text.into(), append, last };
    more(inbox.apply(&owner(), id(1), TaskAction::Artifact(part("one ", false, false)), at(6)).unwrap());
    more(inbox.apply(&owner(), id(1), TaskAction::Artifact(part("two", true, true)), at(7)).unwrap());
    more(inbox.apply(&owner(), id(1), TaskAction::Complete("Two typos.".into()), at(8)).unwrap());
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected =
        ["submitted", "routed", "accepted", "progress", "input-required", "input", "artifact", "artifact", "completed"];
    assert_eq!(kinds, expected);
    assert!(events.iter().map(|event| event.number).eq(1..=9));
    assert!(events.iter().all(|event| event.task == id(1)));
    let task = inbox.get(id(1)).unwrap();
    assert_eq!((task.attempts, task.events, task.status), (1, 9, Status::Completed));
    assert_eq!((task.created, task.changed), (at(1), at(8)));
    assert_eq!(task.artifacts, [Artifact { name: "notes".into(), text: "one two".into(), ended: true }]);
    assert_eq!(task.questions[0].answer.as_deref(), Some("British"));
    assert_eq!((task.result.as_deref(), &task.reason), (Some("Two typos."), &None));
}

#[test]
fn two_racing_completions_have_one_winner() {
    for _ in 0..200 {
        let inbox = Arc::new(Mutex::new(with(Status::Accepted)));
        let start = Arc::new(Barrier::new(2));
        let racers = ["one", "other"].map(|result| {
            let (inbox, start) = (inbox.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                inbox.lock().unwrap().apply(&owner(), id(1), TaskAction::Complete(result.into()), at(3))
            })
        });
        let outcomes = racers.map(|racer| racer.join().unwrap());
        let lost = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect::<Vec<_>>();
        assert_eq!(
            lost,
            [&InboxError::Transition { id: id(1), from: Status::Completed, transition: Transition::Complete }]
        );
        let events = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).map(|change| change.events.len());
        assert_eq!(events.sum::<usize>(), 1);
        let inbox = inbox.lock().unwrap();
        let winner = inbox.get(id(1)).unwrap().result.clone().unwrap();
        assert!(outcomes[usize::from(winner == "other")].is_ok());
    }
}

#[test]
fn pending_tasks_stand_in_order_of_arrival_also_after_a_release() {
    let mut inbox = inbox();
    for number in [5, 3, 9, 1] {
        submit(&mut inbox, number);
    }
    let _ = inbox.apply(&owner(), id(3), TaskAction::Accept, at(2)).unwrap();
    let _ = inbox.apply(&owner(), id(1), TaskAction::Accept, at(2)).unwrap();
    let _ = inbox.apply(&owner(), id(1), TaskAction::Ask("?".into()), at(2)).unwrap();
    let _ = inbox.apply(&owner(), id(3), TaskAction::Progress { percent: None, text: "begun".into() }, at(2)).unwrap();
    let pending = |inbox: &TaskInbox| inbox.pending().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(pending(&inbox), [id(5), id(9)]);
    let change = inbox.release(at(3));
    assert_eq!(kinds(&change), [TaskEventKind::Released; 2]);
    assert_eq!(pending(&inbox), [id(5), id(3), id(9), id(1)]);
    let task = inbox.get(id(3)).unwrap();
    assert_eq!((task.attempts, &task.progress), (1, &None));
    assert_eq!(inbox.get(id(1)).unwrap().questions, [], "nobody asks any more");
    let _ = inbox.apply(&owner(), id(3), TaskAction::Accept, at(4)).unwrap();
    assert_eq!(inbox.get(id(3)).unwrap().attempts, 2);
}

#[test]
fn deadlines_fail_what_is_open() {
    let mut inbox = inbox();
    let until = |deadline| Submission { deadline: Some(at(deadline)), ..Submission::new("drafts", "Soon.") };
    for (number, deadline) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        let _ = inbox.submit(&writer(), until(deadline), id(number), at(1)).unwrap();
    }
    let _ = inbox.apply(&owner(), id(2), TaskAction::Accept, at(2)).unwrap();
    let _ = inbox.apply(&owner(), id(4), TaskAction::Complete("".into()), at(2)).unwrap();
    assert_eq!(inbox.next_deadline(), Some(at(10)));
    assert!(inbox.expire(at(9)).is_empty());
    let change = inbox.expire(at(20));
    assert_eq!(change.events.iter().map(|event| event.task).collect::<Vec<_>>(), [id(2), id(3)]);
    assert_eq!(kinds(&change), [TaskEventKind::Failed; 2]);
    assert_eq!(inbox.get(id(2)).unwrap().reason.as_deref(), Some("its deadline passed"));
    assert_eq!(inbox.next_deadline(), Some(at(30)));
    assert!(inbox.expire(at(20)).is_empty(), "once");
    let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), until(20), id(5), at(20)));
    assert_eq!(error, InboxProblem::Deadline { deadline: at(20), now: at(20) }.into());
}

#[test]
fn a_key_gives_the_same_task_for_the_same_body_only() {
    let mut inbox = inbox();
    let keyed = |text: &str| Submission { key: Some("k".into()), ..Submission::new("drafts", text) };
    let first = inbox.submit(&writer(), keyed("Read."), id(1), at(1)).unwrap();
    assert!(first.new);
    let again = inbox.submit(&writer(), keyed("Read."), id(2), at(2)).unwrap();
    assert_eq!((again.id, again.new, again.change), (id(1), false, InboxChange::default()));
    let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), keyed("Write."), id(3), at(3)));
    assert_eq!(error, InboxError::KeyTaken { key: "k".into(), id: id(1) });
    assert!(inbox.submit(&who("other"), keyed("Write."), id(4), at(3)).unwrap().new, "keys are each submitter's own");
    let _ = inbox.apply(&owner(), id(1), TaskAction::Complete("".into()), at(4)).unwrap();
    assert_eq!(inbox.submit(&writer(), keyed("Read."), id(5), at(5)).unwrap().id, id(1), "also after it ended");
    // A replayed submission has the same id.
    let replayed = inbox.submit(&writer(), keyed("Read."), id(1), at(6)).unwrap();
    assert_eq!((replayed.id, replayed.new), (id(1), false));
    let error = refused(&mut inbox, |inbox| inbox.submit(&who("other"), keyed("Read."), id(1), at(6)));
    assert_eq!(error, InboxError::IdTaken { id: id(1) });
}

#[test]
fn ended_tasks_are_known_within_a_bound() {
    let mut inbox = inbox().with_limits(InboxLimits { ended: 2, ..InboxLimits::default() });
    for number in 1..=4 {
        submit(&mut inbox, number);
        let _ = inbox.apply(&owner(), id(number), TaskAction::Complete("".into()), at(number as u64)).unwrap();
    }
    assert!(inbox.get(id(2)).is_ok(), "what has ended goes when the next task comes");
    let change = inbox.submit(&writer(), Submission::new("drafts", "Next."), id(5), at(9)).unwrap().change;
    assert_eq!(change.removed, [("reviews".parse().unwrap(), id(2))]);
    let known: Vec<_> = inbox.tasks().map(|task| task.id).collect();
    assert_eq!(known, [id(3), id(4), id(5)]);
}

#[test]
fn a_key_is_known_for_its_time_however_many_tasks_come_meanwhile() {
    let hour = |hour: u64| at(hour * 3600);
    let mut inbox = inbox();
    let keyed = |number: u128| Submission { key: Some(format!("key {number}")), ..Submission::new("drafts", "Read.") };
    for number in 1..=1500 {
        let _ = inbox.submit(&writer(), keyed(number), id(number), hour(1)).unwrap();
        let _ = inbox.apply(&owner(), id(number), TaskAction::Complete("x".repeat(1000)), hour(1)).unwrap();
    }
    let again =
        |inbox: &mut TaskInbox, number: u128, now| inbox.submit(&writer(), keyed(number), id(2000 + number), now);
    for mut inbox in
        [inbox.clone(), TaskInbox::recover("reviews", owner(), InboxLimits::default(), &records(&inbox)).unwrap()]
    {
        assert!(inbox.tasks().count() <= 1025, "the results of the oldest are forgotten");
        for number in [1, 2, 1500] {
            let known = again(&mut inbox, number, hour(24)).unwrap();
            assert_eq!((known.id, known.new, known.change), (id(number), false, InboxChange::default()));
        }
        assert!(inbox.get(id(1)).unwrap().is_forgotten());
        let other = Submission { description: "Write.".into(), ..keyed(1) };
        let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), other, id(9000), hour(24)));
        assert_eq!(error, InboxError::KeyTaken { key: "key 1".into(), id: id(1) });
        // Past its time it goes when the next task comes.
        submit(&mut inbox, 9001);
        let change = inbox.submit(&writer(), Submission::new("drafts", "Next."), id(9002), hour(26)).unwrap().change;
        assert!(change.removed.contains(&("reviews".parse().unwrap(), id(1))), "{:?}", change.removed.len());
        assert!(again(&mut inbox, 1, hour(26)).unwrap().new);
    }
}

#[test]
fn keys_that_have_no_room_are_refused_before_they_are_taken() {
    let mut inbox = inbox().with_limits(InboxLimits { ended: 0, bytes: 16 << 10, ..InboxLimits::default() });
    let keyed = |number: u128| Submission { key: Some(format!("key {number}")), ..Submission::new("drafts", "Read.") };
    let mut taken = 0;
    let error = loop {
        match inbox.submit(&writer(), keyed(taken + 1), id(taken + 1), at(1)) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        let _ = inbox.apply(&owner(), id(taken), TaskAction::Complete("".into()), at(1)).unwrap();
        assert!(taken < 100, "each key counts as 1 KiB");
    };
    assert!(matches!(error, InboxError::Full { .. }), "{error}");
    for number in 1..=taken {
        assert!(!inbox.submit(&writer(), keyed(number), id(200 + number), at(2)).unwrap().new, "{number} of {taken}");
    }
}

#[test]
fn what_comes_of_a_detached_task_is_owed_until_it_was_told() {
    let mut inbox = inbox().with_limits(InboxLimits { ended: 0, ..InboxLimits::default() });
    let detached = |watched| Submission { detached: true, watched, ..Submission::new("drafts", "Read.") };
    let _ = inbox.submit(&writer(), detached(false), id(1), at(1)).unwrap();
    let _ = inbox.submit(&writer(), detached(true), id(2), at(1)).unwrap();
    for task in [id(1), id(2)] {
        let _ = inbox.apply(&owner(), task, TaskAction::Accept, at(2)).unwrap();
        let _ = inbox.apply(&owner(), task, TaskAction::Progress { percent: Some(1), text: "".into() }, at(3)).unwrap();
        let _ = inbox.apply(&owner(), task, TaskAction::Ask("?".into()), at(4)).unwrap();
        let _ = inbox.apply(&owner(), task, TaskAction::Fail("nobody answers".into()), at(5)).unwrap();
    }
    let outbox = |inbox: &TaskInbox, task| {
        inbox.get(task).unwrap().outbox.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(outbox(&inbox, id(1)), "input-required failed");
    assert_eq!(outbox(&inbox, id(2)), "submitted routed accepted progress input-required failed");
    assert_eq!(inbox.owed().map(|(task, event)| (task.id, event.number)).collect::<Vec<_>>(), [(id(1), 5), (id(2), 1)]);
    assert_eq!(inbox.open(), 2, "they have ended, but are not over");
    assert_eq!(inbox.acknowledge(id(1), 5).unwrap().saved.len(), 1);
    assert!(inbox.acknowledge(id(1), 5).unwrap().is_empty(), "once");
    let _ = inbox.acknowledge(id(1), 6).unwrap();
    let _ = inbox.undeliverable(id(2), "nobody is there").unwrap();
    assert_eq!(inbox.get(id(2)).unwrap().undelivered.as_deref(), Some("nobody is there"));
    assert_eq!((inbox.open(), inbox.owed().count()), (0, 0));
    submit(&mut inbox, 3);
    assert!(inbox.get(id(1)).is_err() && inbox.get(id(2)).is_err(), "now they may go");
}
