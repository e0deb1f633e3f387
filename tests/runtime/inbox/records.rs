//! Export and import of an inbox.

use systole::inbox::*;

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
        let _ = inbox.accept(&owner(), id(number), at(2)).unwrap();
    }
    let part = ArtifactPart { name: "notes".into(), text: "one\ttwo".into(), append: false, last: true };
    let _ = inbox.artifact(&owner(), id(2), part, at(3)).unwrap();
    let _ = inbox.progress(&owner(), id(3), Some(30), "a third", at(3)).unwrap();
    let _ = inbox.input_required(&owner(), id(4), "which?", at(3)).unwrap();
    let _ = inbox.answer(&writer(), id(4), "this", at(4)).unwrap();
    let _ = inbox.input_required(&owner(), id(4), "sure?", at(5)).unwrap();
    let _ = inbox.complete(&owner(), id(5), "done", at(5)).unwrap();
    let _ = inbox.fail(&owner(), id(6), "no", at(5)).unwrap();
    let _ = inbox.reject(&owner(), id(7), "not mine", at(5)).unwrap();
    let _ = inbox.cancel(&writer(), id(8), "", at(5)).unwrap();
    inbox
}

#[test]
fn what_is_exported_comes_back_and_goes_on() {
    let inbox = full();
    let json = inbox.export();
    let mut again = TaskInbox::import(&json, InboxLimits::default()).unwrap();
    assert_eq!(again.export(), json);
    assert!(again.tasks().eq(inbox.tasks()));
    assert_eq!((again.job(), again.owner()), (inbox.job(), inbox.owner()));
    assert_eq!((again.open(), again.next_deadline()), (inbox.open(), inbox.next_deadline()));
    assert_eq!(again.render_pending_context(), inbox.render_pending_context());
    let _ = again.answer(&writer(), id(4), "yes", at(6)).unwrap();
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
fn what_nobody_wrote_is_refused() {
    let json = full().export();
    let refuse = |json: &str| TaskInbox::import(json, InboxLimits::default()).unwrap_err();
    let versions = json.replacen("\"version\":1", "\"version\":2,\"news\":[]", 1);
    assert_eq!(refuse(&versions), ImportError::Version { found: 2 });
    for (from, to) in [
        ("\"next_place\":", "\"more\":1,\"next_place\":"),
        ("\"description\":", "\"colour\":\"red\",\"description\":"),
        ("\"agent\":\"writer\"", "\"agent\":\"writer\",\"admin\":true"),
        ("\"key\":\"file\"", "\"key\":\"file\",\"x\":0"),
        ("\"question\":\"which?\"", "\"question\":\"which?\",\"x\":0"),
        ("\"ended\":true", "\"ended\":true,\"x\":0"),
        ("\"percent\":30", "\"percent\":30,\"x\":0"),
        ("\"kind\":\"routed\"", "\"kind\":\"routed\",\"x\":0"),
        ("\"status\":\"pending\"", "\"status\":\"done\""),
        ("\"agent\":\"writer\"", "\"agent\":\"\""),
        ("\"owner\":\"reviewer\"", "\"owner\":\"the reviewer\""),
        ("\"xml\":\"<o", "\"xml\":\"<<o"),
        ("\"created\":\"1970", "\"created\":\"late 1970"),
    ] {
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from}");
        let error = refuse(&changed);
        assert!(matches!(error, ImportError::Json { line: 1, column: 2.., .. }), "{from} -> {to}: {error:?}");
    }
    assert!(matches!(refuse("{\"version\":1"), ImportError::Json { .. }));
    assert!(matches!(refuse(&"[".repeat(100_000)), ImportError::Json { .. }));
    assert!(matches!(refuse(&json[..json.len() / 2]), ImportError::Json { .. }));
}

#[test]
fn a_task_that_no_inbox_could_hold_is_refused() {
    let json = full().export();
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
        let changed = json.replacen(from, to, 1);
        assert_ne!(changed, json, "{from}");
        let error = TaskInbox::import(&changed, InboxLimits::default()).unwrap_err();
        assert!(matches!(error, ImportError::Task { .. }), "{from} -> {to}: {error:?}");
    }
    let few = InboxLimits { open: 2, ..InboxLimits::default() };
    let error = TaskInbox::import(&json, few).unwrap_err();
    assert!(matches!(error, ImportError::Inbox(InboxError::Full { limit: 2, .. })), "{error:?}");
}

#[test]
fn a_journal_gives_an_inbox_back() {
    use systole_core::journal::{Journal, MemoryJournal, Op, Step};

    let mut inbox = inbox();
    let mut journal = MemoryJournal::new([0; 32]);
    let mut write = |inbox: &TaskInbox, change: &InboxChange| {
        let ops = inbox.ops(change);
        journal.append(&[Step { ops: ops.clone(), at: at(1) }]).unwrap();
        ops
    };
    let change = inbox.submit(&writer(), Submission::new("drafts", "Read."), id(1), at(1)).unwrap().change;
    let [Op::Task(record)] = &write(&inbox, &change)[..] else { panic!("one task") };
    assert_eq!((record.inbox.as_str(), &*record.state, record.place), ("reviews", "pending", 1));
    let change = inbox.accept(&owner(), id(1), at(2)).unwrap();
    write(&inbox, &change);
    let mut recovered = journal.recover().unwrap().tasks;
    let again = TaskInbox::recover("reviews", owner(), InboxLimits::default(), &recovered).unwrap();
    assert!(again.tasks().eq(inbox.tasks()));
    assert_eq!(again.export(), inbox.export());
    let elsewhere = TaskInbox::recover("others", owner(), InboxLimits::default(), &recovered).unwrap();
    assert_eq!(elsewhere.tasks().count(), 0);
    recovered[0].place = 7;
    assert!(TaskInbox::recover("reviews", owner(), InboxLimits::default(), &recovered).is_err());
}
