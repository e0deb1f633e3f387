//! The task inbox: submissions, transitions, durability, and its rendering for a model.

mod durable;
mod hostile;
mod jobs;
mod lifecycle;
mod model;
mod payloads;
mod pump;
mod records;
mod registry;
mod render;
mod told;

use systole::inbox::{InboxChange, InboxError, InboxPrincipal, Submission, TaskEventKind, TaskInbox};
use systole::vocab::{TaskId, Time};
use systole_core::journal::{Op, TaskRecord};
use uuid::Uuid;

fn who(name: &str) -> InboxPrincipal {
    InboxPrincipal::parse(name).unwrap()
}

fn owner() -> InboxPrincipal {
    who("reviewer")
}

fn writer() -> InboxPrincipal {
    who("writer")
}

fn id(number: u128) -> TaskId {
    TaskId::from_uuid(Uuid::from_u128(number))
}

fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn inbox() -> TaskInbox {
    TaskInbox::new("reviews", owner()).unwrap()
}

/// Submits a task as the writer, and returns its id.
fn submit(inbox: &mut TaskInbox, number: u128) -> TaskId {
    let submission = Submission::new("drafts", format!("Read chapter {number}."));
    inbox.submit(&writer(), submission, id(number), at(1)).unwrap().id
}

fn kinds(change: &InboxChange) -> Vec<TaskEventKind> {
    change.events.iter().map(|event| event.kind).collect()
}

/// Returns the error of an action that must change nothing.
fn refused<T: std::fmt::Debug>(
    inbox: &mut TaskInbox,
    act: impl FnOnce(&mut TaskInbox) -> Result<T, InboxError>,
) -> InboxError {
    let before = records(inbox);
    let error = act(inbox).unwrap_err();
    assert_eq!(records(inbox), before, "{error}");
    error
}

/// All that a journal has of an inbox.
fn records(inbox: &TaskInbox) -> Vec<TaskRecord> {
    let record = |op| match op {
        Op::Task(record) => record,
        other => panic!("{other:?} is no task"),
    };
    inbox.ops(&inbox.all()).into_iter().map(record).collect()
}
