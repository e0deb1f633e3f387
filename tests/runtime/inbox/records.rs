//! An inbox as the records of a journal.

use systole::inbox::*;
use systole_core::journal::{Journal, MemoryJournal, Step};

use super::*;

/// An inbox with a task of every kind.
fn full() -> TaskInbox {
    let mut inbox = inbox();
    let contexts = [
        TaskContext::None,
        TaskContext::entries([("file", "a.txt"), ("line", "")]),
        TaskContext::xml("<o:order xmlns:o='urn:o'><o:item n='1'>AT&amp;T</o:item></o:order>").unwrap(),
    ];
    for (number, context) in (1..).zip(contexts) {
        let submission = Submission {
            context,
            key: Some(format!("key {number}")),
            deadline: Some(at(1000 + number as u64)),
            detached: number == 2,
            watched: number == 2,
            ..Submission::new("drafts", format!("Line one of {number},\nand <two>."))
        };
        let _ = inbox.submit(&writer(), submission, id(number), at(1)).unwrap();
    }
    for number in 4..=9 {
        submit(&mut inbox, number);
    }
    for number in [2, 3, 4, 5] {
        let _ = inbox.apply(&owner(), id(number), TaskAction::Accept, at(2)).unwrap();
    }
    let part = ArtifactPart { name: "notes".into(), text: "one\ttwo".into(), append: false, last: true };
    let _ = inbox.apply(&owner(), id(2), TaskAction::Artifact(part), at(3)).unwrap();
    let _ = inbox
        .apply(&owner(), id(3), TaskAction::Progress { percent: Some(30), text: "a third".into() }, at(3))
        .unwrap();
    let _ = inbox.apply(&owner(), id(4), TaskAction::Ask("which?".into()), at(3)).unwrap();
    let _ = inbox.apply(&writer(), id(4), TaskAction::Answer("this".into()), at(4)).unwrap();
    let _ = inbox.apply(&owner(), id(4), TaskAction::Ask("sure?".into()), at(5)).unwrap();
    let _ = inbox.apply(&owner(), id(5), TaskAction::Complete("done".into()), at(5)).unwrap();
    let _ = inbox.apply(&owner(), id(6), TaskAction::Fail("no".into()), at(5)).unwrap();
    let _ = inbox.apply(&owner(), id(7), TaskAction::Reject("not mine".into()), at(5)).unwrap();
    let _ = inbox.apply(&writer(), id(8), TaskAction::Cancel("".into()), at(5)).unwrap();
    inbox
}

fn recover(records: &[TaskRecord]) -> Result<TaskInbox, RecoverError> {
    TaskInbox::recover("reviews", owner(), InboxLimits::default(), records)
}

/// The error of the records in which that text is another one, in the first place where it stands.
fn refuse(from: &str, to: &str) -> RecoverError {
    let mut records = records(&full());
    let changed = records.iter_mut().find(|record| record.body.contains(from)).unwrap_or_else(|| panic!("no {from}"));
    changed.body = changed.body.replacen(from, to, 1).into();
    recover(&records).unwrap_err()
}

#[test]
fn an_inbox_comes_back_from_its_records_and_goes_on() {
    let inbox = full();
    let mut again = recover(&records(&inbox)).unwrap();
    assert_eq!(records(&again), records(&inbox));
    assert!(again.tasks().eq(inbox.tasks()));
    assert_eq!((again.job(), again.owner()), (inbox.job(), inbox.owner()));
    assert_eq!((again.open(), again.next_deadline()), (inbox.open(), inbox.next_deadline()));
    assert_eq!(again.render_pending_context(), inbox.render_pending_context());
    let _ = again.apply(&writer(), id(4), TaskAction::Answer("yes".into()), at(6)).unwrap();
    let keyed = Submission {
        key: Some("key 1".into()),
        deadline: Some(at(1001)),
        ..Submission::new("drafts", "Line one of 1,\nand <two>.")
    };
    assert_eq!(again.submit(&writer(), keyed, id(20), at(6)).unwrap().id, id(1), "keys are known again");
    submit(&mut again, 21);
    assert_eq!(again.tasks().last().unwrap().place, 10);
}

#[test]
fn a_record_of_another_shape_is_refused_with_its_place() {
    for (from, to) in [
        ("\"description\":", "\"colour\":\"red\",\"description\":"),
        ("\"agent\":\"writer\"", "\"agent\":\"writer\",\"admin\":true"),
        ("\"key\":\"file\"", "\"key\":\"file\",\"x\":0"),
        ("\"question\":\"which?\"", "\"question\":\"which?\",\"x\":0"),
        ("\"ended\":true", "\"ended\":true,\"x\":0"),
        ("\"percent\":30", "\"percent\":30,\"x\":0"),
        ("\"kind\":\"routed\"", "\"kind\":\"routed\",\"x\":0"),
        ("\"status\":\"pending\"", "\"status\":\"done\""),
        ("\"agent\":\"writer\"", "\"agent\":\"\""),
        ("\"xml\":\"<o", "\"xml\":\"<<o"),
        ("\"created\":\"1970", "\"created\":\"late 1970"),
        ("}", ""),
    ] {
        let error = refuse(from, to);
        assert!(matches!(error, RecoverError::Json { line: 1, column: 2.., .. }), "{from} -> {to}: {error:?}");
    }
    assert!(matches!(refuse("{", &"[".repeat(100_000)), RecoverError::Json { .. }));
}

#[test]
fn a_task_that_no_inbox_could_hold_is_refused() {
    for (from, to) in [
        ("\"description\":\"Read chapter 4.\"", "\"description\":\" \""),
        ("\"description\":\"Read chapter 4.\"", "\"description\":\"\\u0000\""),
        ("\"result\":\"done\"", "\"reason\":\"done\""),
        ("\"reason\":\"no\"", "\"result\":\"no\""),
        ("\"status\":\"failed\"", "\"status\":\"pending\""),
        ("\"status\":\"input-required\"", "\"status\":\"accepted\""),
        ("\"status\":\"accepted\"", "\"status\":\"input-required\""),
        ("\"percent\":30", "\"percent\":101"),
        ("\"target\":\"reviews\"", "\"target\":\"others\""),
        ("\"place\":4", "\"place\":40"),
        ("\"place\":4", "\"place\":5"),
        ("\"place\":4", "\"place\":0"),
        ("-000000000004\"", "-000000000005\""),
        ("\"key\":\"key 1\"", "\"key\":\"key 2\""),
        ("\"key\":\"line\"", "\"key\":\"file\""),
        ("\"detached\":true", "\"detached\":false"),
        ("\"number\":2", "\"number\":1"),
        ("\"number\":4", "\"number\":400"),
    ] {
        let error = refuse(from, to);
        assert!(matches!(error, RecoverError::Task { .. }), "{from} -> {to}: {error:?}");
    }
    let few = InboxLimits { open: 2, ..InboxLimits::default() };
    let error = TaskInbox::recover("reviews", owner(), few, &records(&full())).unwrap_err();
    assert!(matches!(error, RecoverError::Inbox(InboxError::Full { limit: 2, .. })), "{error:?}");
}

#[test]
fn a_journal_gives_an_inbox_back() {
    let mut inbox = inbox();
    let mut journal = MemoryJournal::new([0; 32]);
    let mut write = |inbox: &TaskInbox, change: &InboxChange| {
        let ops = inbox.ops(change);
        journal.write(&[Step { ops: ops.clone(), at: at(1) }]).unwrap();
        ops
    };
    let change = inbox.submit(&writer(), Submission::new("drafts", "Read."), id(1), at(1)).unwrap().change;
    let [Op::Task(record)] = &write(&inbox, &change)[..] else { panic!("one task") };
    assert_eq!((record.inbox.as_str(), &*record.state, record.place), ("reviews", "pending", 1));
    let change = inbox.apply(&owner(), id(1), TaskAction::Accept, at(2)).unwrap();
    write(&inbox, &change);
    let mut recovered = journal.recover().unwrap().tasks;
    let again = TaskInbox::recover("reviews", owner(), InboxLimits::default(), &recovered).unwrap();
    assert!(again.tasks().eq(inbox.tasks()));
    assert_eq!(records(&again), records(&inbox));
    let elsewhere = TaskInbox::recover("others", owner(), InboxLimits::default(), &recovered).unwrap();
    assert_eq!(elsewhere.tasks().count(), 0);
    recovered[0].place = 7;
    assert!(TaskInbox::recover("reviews", owner(), InboxLimits::default(), &recovered).is_err());
}
