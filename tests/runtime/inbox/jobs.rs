//! Jobs that register.

use std::collections::BTreeSet;

use systole::inbox::*;
use systole_core::journal::Op;

use super::*;

fn card(name: &str, skills: &[&str]) -> JobCard {
    let skills = skills.iter().map(|skill| (*skill).to_owned()).collect::<BTreeSet<_>>();
    JobCard { name: name.parse().unwrap(), description: format!("The job {name}."), skills }
}

fn task() -> Submission {
    Submission::new("drafts", "Read.")
}

#[test]
fn jobs_are_found_by_name_and_by_skill() {
    let mut jobs = Jobs::new(Absent::Keep);
    for (name, skills) in [("b", &["read", "write"][..]), ("a", &["read"]), ("c", &[])] {
        assert!(jobs.register(&owner(), card(name, skills), at(1)).unwrap().is_empty());
    }
    let with = |jobs: &Jobs, skill: &str| jobs.by_skill(skill).map(|card| card.name.to_string()).collect::<Vec<_>>();
    assert_eq!(with(&jobs, "read"), ["a", "b"]);
    assert_eq!(with(&jobs, "write"), ["b"]);
    assert_eq!(with(&jobs, "sing"), [""; 0]);
    assert_eq!(jobs.find(&"a".parse().unwrap()), Some(&card("a", &["read"])));
    let _ = jobs.remove(&owner(), &"a".parse().unwrap(), at(2)).unwrap();
    assert_eq!(jobs.find(&"a".parse().unwrap()), None);
    assert_eq!(with(&jobs, "read"), ["b"]);
    assert_eq!(jobs.cards().count(), 2);
}

#[test]
fn a_name_is_replaced_by_its_owner_only_and_what_was_accepted_is_pending_again() {
    let mut jobs = Jobs::new(Absent::Keep);
    let name = "reviews".parse().unwrap();
    let _ = jobs.register(&owner(), card("reviews", &["read"]), at(1)).unwrap();
    let _ = jobs.submit(&writer(), "reviews", task(), id(1), at(1)).unwrap();
    let _ = jobs.inbox_mut(&name).unwrap().apply(&owner(), id(1), TaskAction::Accept, at(2)).unwrap();
    let error = jobs.register(&who("stranger"), card("reviews", &[]), at(3)).unwrap_err();
    assert_eq!(error, JobError::Taken { job: name.clone(), actor: who("stranger") });
    assert_eq!(jobs.inbox(&name).unwrap().get(id(1)).unwrap().status, Status::Accepted);

    let change = jobs.register(&owner(), card("reviews", &["write"]), at(4)).unwrap();
    assert_eq!(kinds(&change), [TaskEventKind::Released]);
    assert_eq!(jobs.ops(&change).len(), 1);
    assert_eq!(jobs.find(&name), Some(&card("reviews", &["write"])));
    assert_eq!(jobs.inbox(&name).unwrap().pending().count(), 1);
}

#[test]
fn a_removed_job_leaves_its_open_tasks_to_its_owner() {
    let mut jobs = Jobs::new(Absent::Keep);
    let name = "reviews".parse().unwrap();
    let _ = jobs.register(&owner(), card("reviews", &[]), at(1)).unwrap();
    for number in [1, 2] {
        let _ = jobs.submit(&writer(), "reviews", task(), id(number), at(1)).unwrap();
    }
    let inbox = jobs.inbox_mut(&name).unwrap();
    let _ = inbox.apply(&owner(), id(1), TaskAction::Accept, at(2)).unwrap();
    let _ = inbox.apply(&owner(), id(2), TaskAction::Complete("".into()), at(2)).unwrap();
    let error = jobs.remove(&writer(), &name, at(3)).unwrap_err();
    assert_eq!(error, JobError::Unknown { job: name.clone() }, "to others it is not there");
    assert_eq!(kinds(&jobs.remove(&owner(), &name, at(3)).unwrap()), [TaskEventKind::Released]);
    assert_eq!(jobs.remove(&owner(), &name, at(3)).unwrap_err(), JobError::Unknown { job: name.clone() });
    let inbox = jobs.inbox_mut(&name).unwrap();
    assert_eq!(inbox.get(id(1)).unwrap().status, Status::Pending);
    let error = inbox.apply(&owner(), id(1), TaskAction::Accept, at(3)).unwrap_err();
    assert_eq!(
        error,
        InboxError::NotOwner { actor: owner(), transition: Transition::Accept },
        "nobody's, while it isn't there"
    );
    assert!(jobs.register(&who("stranger"), card("reviews", &[]), at(4)).is_err(), "its tasks aren't the stranger's");
    let _ = jobs.register(&owner(), card("reviews", &[]), at(5)).unwrap();
    let _ = jobs.inbox_mut(&name).unwrap().apply(&owner(), id(1), TaskAction::Complete("".into()), at(6)).unwrap();
    let change = jobs.remove(&owner(), &name, at(7)).unwrap();
    assert_eq!(change.removed.len(), 2);
    assert_eq!(jobs.ops(&change).len(), 2);
    let _ = jobs.register(&who("stranger"), card("reviews", &[]), at(8)).unwrap();
    assert_eq!(jobs.inbox(&name).unwrap().tasks().count(), 0, "nothing of the one before");
}

#[test]
fn a_task_waits_for_its_job_or_is_refused() {
    let name = "reviews".parse().unwrap();
    let mut strict = Jobs::new(Absent::Refuse);
    let error = strict.submit(&writer(), "reviews", task(), id(1), at(1)).unwrap_err();
    assert_eq!(error, JobError::Unknown { job: "reviews".parse().unwrap() });
    assert!(strict.inbox(&name).is_none());

    let mut jobs = Jobs::new(Absent::Keep);
    let submitted = jobs.submit(&writer(), "reviews", task(), id(1), at(1)).unwrap();
    assert_eq!(kinds(&submitted.change), [TaskEventKind::Submitted]);
    let until = Submission { deadline: Some(at(3)), ..task() };
    let _ = jobs.submit(&writer(), "reviews", until.clone(), id(2), at(1)).unwrap();
    let _ = jobs.submit(&writer(), "nowhere", until, id(3), at(1)).unwrap();
    assert_eq!(jobs.find(&name), None);
    assert_eq!(kinds(&jobs.expire(at(3))), [TaskEventKind::Failed; 2]);
    let change = jobs.register(&owner(), card("reviews", &[]), at(4)).unwrap();
    assert_eq!(kinds(&change), [TaskEventKind::Routed], "what has failed is routed no more");
    assert_eq!(change.events[0].task, id(1));
    assert!(jobs.inbox(&"nowhere".parse().unwrap()).is_none(), "nothing waits for it any more");
    assert_eq!(kinds(&jobs.register(&owner(), card("reviews", &[]), at(5)).unwrap()), [], "once");
}

#[test]
fn what_a_registry_refuses_leaves_it_as_it_was() {
    let mut jobs = Jobs::new(Absent::Keep).with_limits(JobsLimits { jobs: 1, skills: 1, ..JobsLimits::default() });
    let empty = |field| JobError::Inbox(InboxError::Empty { field });
    assert_eq!(jobs.submit(&writer(), "", task(), id(1), at(1)).unwrap_err(), empty(Field::Job));
    let nobody = Submission::new("", "Read.");
    assert_eq!(jobs.submit(&writer(), "reviews", nobody, id(1), at(1)).unwrap_err(), empty(Field::SourceJob));
    let silent = Submission::new("drafts", " \n");
    assert_eq!(jobs.submit(&writer(), "reviews", silent, id(1), at(1)).unwrap_err(), empty(Field::Description));
    assert!(jobs.inbox(&"reviews".parse().unwrap()).is_none());
    assert_eq!(jobs.register(&owner(), card("a", &[" "]), at(1)).unwrap_err(), empty(Field::Skill));
    let error = jobs.register(&owner(), card("a", &["x", "y"]), at(1)).unwrap_err();
    assert_eq!(error, InboxError::TooMany { field: Field::Skill, limit: 1 }.into());
    let _ = jobs.register(&owner(), card("a", &["x"]), at(1)).unwrap();
    assert_eq!(jobs.register(&owner(), card("b", &[]), at(1)).unwrap_err(), JobError::Full { limit: 1 });
    assert_eq!(jobs.submit(&writer(), "b", task(), id(1), at(1)).unwrap_err(), JobError::Full { limit: 1 });
    // A client can't submit in the name of another principal's job.
    let posing = Submission::new("a", "Read.");
    let error = jobs.submit(&writer(), "a", posing.clone(), id(1), at(1)).unwrap_err();
    assert_eq!(error, JobError::Taken { job: "a".parse().unwrap(), actor: writer() });
    let _ = jobs.submit(&owner(), "a", posing, id(1), at(1)).unwrap();
}

/// Recovers a registry from its own directory and operations, after those changes.
fn recovered(jobs: &Jobs, changes: &[InboxChange]) -> Result<Jobs, RecoverError> {
    let ops = changes.iter().flat_map(|change| jobs.ops(change));
    let records: Vec<_> = ops.filter_map(|op| if let Op::Task(task) = op { Some(task) } else { None }).collect();
    Jobs::new(Absent::Keep).recover(&jobs.directory(), &records)
}

#[test]
fn a_registry_comes_back_from_its_directory_and_its_records() {
    let mut jobs = Jobs::new(Absent::Keep);
    let mut changes = vec![jobs.register(&owner(), card("reviews", &["read"]), at(1)).unwrap()];
    changes.push(jobs.submit(&writer(), "reviews", task(), id(1), at(1)).unwrap().change);
    changes.push(jobs.submit(&writer(), "later", task(), id(2), at(2)).unwrap().change);
    changes.push(jobs.register(&who("editor"), card("gone", &[]), at(2)).unwrap());
    changes.push(jobs.submit(&writer(), "gone", task(), id(3), at(2)).unwrap().change);
    changes.push(jobs.remove(&who("editor"), &"gone".parse().unwrap(), at(3)).unwrap());

    let mut again = recovered(&jobs, &changes).unwrap();
    assert_eq!(again.directory(), jobs.directory());
    for job in ["reviews", "later", "gone"].map(|job| job.parse().unwrap()) {
        assert_eq!(records(again.inbox(&job).unwrap()), records(jobs.inbox(&job).unwrap()), "{job}");
    }
    let stranger = again.register(&writer(), card("gone", &[]), at(4)).unwrap_err();
    assert!(matches!(stranger, JobError::Taken { .. }), "the name waits for its owner: {stranger}");
    let change = again.register(&who("editor"), card("later", &[]), at(4)).unwrap();
    assert_eq!(kinds(&change), [TaskEventKind::Routed], "nobody had that name");
}

#[test]
fn a_directory_that_breaks_a_rule_is_refused() {
    let read = |directory: &str| Jobs::new(Absent::Keep).recover(directory, &[]).map(drop).unwrap_err().to_string();
    for (directory, problem) in [
        ("{", "line 1, column 1: EOF while parsing an object"),
        (r#"{"version":2,"jobs":[]}"#, "it is of version 2"),
        (r#"{"version":1,"jobs":[],"more":1}"#, "unknown field `more`"),
        (r#"{"version":1,"jobs":[{"name":"a"},{"name":"a"}]}"#, "job a: it is listed twice"),
        (r#"{"version":1,"jobs":[{"name":"a","card":{"description":"","skills":[]}}]}"#, "has no owner"),
        (
            r#"{"version":1,"jobs":[{"name":"a","owner":"b","card":{"description":"","skills":[""]}}]}"#,
            "job a: the skill is empty",
        ),
    ] {
        assert!(read(directory).contains(problem), "{directory}: {}", read(directory));
    }
}
