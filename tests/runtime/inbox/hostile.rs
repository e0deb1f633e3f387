//! Hostile submissions: names, texts, contexts and limits.

use systole::inbox::*;

use super::*;

fn limits() -> InboxLimits {
    InboxLimits {
        open: 3,
        bytes: 100,
        task_bytes: 60,
        description_bytes: 20,
        context_bytes: 30,
        text_bytes: 20,
        key_bytes: 8,
        entries: 2,
        artifacts: 2,
        artifact_bytes: 20,
        questions: 1,
        ..InboxLimits::default()
    }
}

fn limited() -> TaskInbox {
    let mut inbox = inbox().with_limits(limits());
    let _ = inbox.submit(&writer(), Submission::new("drafts", "Read."), id(1), at(1)).unwrap();
    let _ = inbox.apply(&owner(), id(1), TaskAction::Accept, at(1)).unwrap();
    inbox
}

#[test]
fn names_and_texts_that_say_nothing_are_refused() {
    assert_eq!(InboxPrincipal::parse("").unwrap_err(), InboxError::Empty { field: Field::Agent });
    assert_eq!(TaskInbox::new("", owner()).unwrap_err(), InboxError::Empty { field: Field::Job });
    assert!(matches!(InboxPrincipal::parse("a b").unwrap_err(), InboxError::Name { field: Field::Agent, .. }));
    assert!(matches!(TaskInbox::new("core", owner()).unwrap_err(), InboxError::Name { field: Field::Job, .. }));
    let mut inbox = limited();
    for (submission, field) in [
        (Submission::new("", "Read."), Field::SourceJob),
        (Submission::new("drafts", ""), Field::Description),
        (Submission::new("drafts", "\u{2003}\t\n"), Field::Description),
        (Submission { key: Some(String::new()), ..Submission::new("drafts", "Read.") }, Field::Key),
        (
            Submission { context: TaskContext::entries([("", "x")]), ..Submission::new("drafts", "Read.") },
            Field::ContextKey,
        ),
    ] {
        let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), submission, id(2), at(2)));
        assert_eq!(error, InboxError::Empty { field });
    }
    let empty = |field| InboxError::Empty { field };
    let part = ArtifactPart::default();
    assert_eq!(
        refused(&mut inbox, |i| i.apply(&owner(), id(1), TaskAction::Fail("".into()), at(2))),
        empty(Field::Reason)
    );
    assert_eq!(
        refused(&mut inbox, |i| i.apply(
            &owner(),
            id(1),
            TaskAction::Progress { percent: None, text: " ".into() },
            at(2)
        )),
        empty(Field::Progress)
    );
    assert_eq!(
        refused(&mut inbox, |i| i.apply(&owner(), id(1), TaskAction::Ask("".into()), at(2))),
        empty(Field::Question)
    );
    assert_eq!(
        refused(&mut inbox, |i| i.apply(&owner(), id(1), TaskAction::Artifact(part), at(2))),
        empty(Field::ArtifactName)
    );
}

#[test]
fn characters_that_xml_cannot_carry_are_refused_with_their_place() {
    let mut inbox = limited();
    let submission = Submission::new("drafts", "é\u{0}");
    let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), submission, id(2), at(2)));
    assert_eq!(error, InboxError::Character { field: Field::Description, character: '\u{0}', at: 2 });
    let context = TaskContext::entries([("k", "\u{FFFF}")]);
    let submission = Submission { context, ..Submission::new("drafts", "Read.") };
    let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), submission, id(2), at(2)));
    assert_eq!(error, InboxError::Character { field: Field::ContextValue, character: '\u{FFFF}', at: 0 });
    let error =
        refused(&mut inbox, |inbox| inbox.apply(&owner(), id(1), TaskAction::Complete("a\u{1b}[2J".into()), at(2)));
    assert_eq!(error, InboxError::Character { field: Field::Result, character: '\u{1b}', at: 1 });
}

#[test]
fn every_limit_is_an_error_of_its_own() {
    let mut inbox = limited();
    let mut submission =
        |submission: Submission| refused(&mut inbox, |inbox| inbox.submit(&writer(), submission, id(2), at(2)));
    let plain = || Submission::new("drafts", "Read.");
    let long = |field, bytes, limit| InboxError::TooLong { field, bytes, limit };
    assert_eq!(submission(Submission::new("drafts", "<<<<<&")), long(Field::Description, 25, 20), "as it is in XML");
    assert_eq!(submission(Submission { key: Some("123456789".into()), ..plain() }), long(Field::Key, 9, 8));
    let entries =
        |entries: &[(&str, &str)]| Submission { context: TaskContext::entries(entries.iter().copied()), ..plain() };
    assert_eq!(submission(entries(&[("123456789", "")])), long(Field::ContextKey, 9, 8));
    assert_eq!(submission(entries(&[("a", &"x".repeat(29)), ("b", "")])), long(Field::Context, 31, 30));
    let error = submission(entries(&[("a", ""), ("b", ""), ("c", "")]));
    assert_eq!(error, InboxError::TooMany { field: Field::ContextKey, limit: 2 });
    let error = submission(entries(&[("a", ""), ("a", "")]));
    assert_eq!(error, InboxProblem::KeyTwice { key: "a".into() }.into());
    let xml = TaskContext::xml(&format!("<a>{}</a>", "x".repeat(30))).unwrap();
    assert_eq!(submission(Submission { context: xml, ..plain() }), long(Field::Context, 37, 30));
    let watched = Submission { watched: true, ..plain() };
    assert_eq!(submission(watched), InboxProblem::EventsNeedDetached.into());

    let words = "x".repeat(21);
    let part = |name: &str, text: &str| ArtifactPart { name: name.into(), text: text.into(), ..Default::default() };
    let mut is = |expected, act: &dyn Fn(&mut TaskInbox) -> Result<InboxChange, InboxError>| {
        assert_eq!(refused(&mut inbox, act), expected);
    };
    is(long(Field::Result, 21, 20), &|i| i.apply(&owner(), id(1), TaskAction::Complete(words.clone()), at(2)));
    is(long(Field::Reason, 21, 20), &|i| i.apply(&writer(), id(1), TaskAction::Cancel(words.clone()), at(2)));
    is(long(Field::Progress, 21, 20), &|i| {
        i.apply(&owner(), id(1), TaskAction::Progress { percent: Some(1), text: words.clone() }, at(2))
    });
    is(InboxProblem::Percent { percent: 101 }.into(), &|i| {
        i.apply(&owner(), id(1), TaskAction::Progress { percent: Some(101), text: "".into() }, at(2))
    });
    is(long(Field::Question, 21, 20), &|i| i.apply(&owner(), id(1), TaskAction::Ask(words.clone()), at(2)));
    is(long(Field::Artifact, 21, 20), &|i| i.apply(&owner(), id(1), TaskAction::Artifact(part("a", &words)), at(2)));
    is(long(Field::Artifact, 22, 20), &|i| {
        i.apply(&owner(), id(1), TaskAction::Artifact(part("ab", &words[1..])), at(2))
    });
    let append = ArtifactPart { append: true, ..part("a", "x") };
    is(InboxProblem::NoArtifact { name: "a".into() }.into(), &|i| {
        i.apply(&owner(), id(1), TaskAction::Artifact(append.clone()), at(2))
    });
    for name in ["a", "b"] {
        let _ = inbox
            .apply(&owner(), id(1), TaskAction::Artifact(ArtifactPart { last: true, ..part(name, "x") }), at(2))
            .unwrap();
    }
    let mut is = |expected, act: &dyn Fn(&mut TaskInbox) -> Result<InboxChange, InboxError>| {
        assert_eq!(refused(&mut inbox, act), expected);
    };
    let ended = InboxProblem::ArtifactEnded { name: "a".into() };
    is(ended.into(), &|i| i.apply(&owner(), id(1), TaskAction::Artifact(append.clone()), at(3)));
    let many = |field| InboxError::TooMany { field, limit: if field == Field::Artifact { 2 } else { 1 } };
    is(many(Field::Artifact), &|i| i.apply(&owner(), id(1), TaskAction::Artifact(part("c", "")), at(3)));
    let _ = inbox.apply(&owner(), id(1), TaskAction::Ask("which one of them?".into()), at(3)).unwrap();
    let _ = inbox.apply(&writer(), id(1), TaskAction::Answer("this one, I guess!".into()), at(3)).unwrap();
    let error = refused(&mut inbox, |i| i.apply(&owner(), id(1), TaskAction::Ask("sure?".into()), at(3)));
    assert_eq!(error, many(Field::Question));
    let error = refused(&mut inbox, |i| {
        i.apply(&owner(), id(1), TaskAction::Progress { percent: None, text: "as good as done!".into() }, at(3))
    });
    assert_eq!(error, long(Field::Task, 5 + 4 + 36 + 16, 60), "all of it together");
}

#[test]
fn a_full_inbox_refuses_and_a_task_that_ends_makes_room() {
    let mut inbox = limited();
    let task = |text: &str| Submission::new("drafts", text);
    for number in [2, 3] {
        let _ = inbox.submit(&writer(), task("Read."), id(number), at(2)).unwrap();
    }
    let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), task("Read."), id(4), at(3)));
    assert_eq!(error, InboxError::Full { open: 4, limit: 3, bytes: 20, limit_bytes: 100 });
    let _ = inbox.apply(&owner(), id(2), TaskAction::Complete("".into()), at(4)).unwrap();
    let _ = inbox.submit(&writer(), task("Read."), id(4), at(5)).unwrap();

    let mut inbox = self::inbox().with_limits(InboxLimits { bytes: 30, ..limits() });
    let _ = inbox.submit(&writer(), task("0123456789"), id(1), at(1)).unwrap();
    let _ = inbox.submit(&writer(), task("0123456789"), id(2), at(1)).unwrap();
    let error = refused(&mut inbox, |inbox| inbox.submit(&writer(), task("01234567890"), id(3), at(1)));
    assert_eq!(error, InboxError::Full { open: 3, limit: 3, bytes: 31, limit_bytes: 30 });
    let _ = inbox.apply(&owner(), id(1), TaskAction::Complete("0123456789".into()), at(2)).unwrap();
    let change = inbox.submit(&writer(), task("01234567890"), id(3), at(3)).unwrap().change;
    assert_eq!(change.removed.len(), 1, "what has ended goes first");
    assert!(inbox.get(id(1)).is_err());
}

#[test]
fn contexts_that_are_no_xml_are_refused() {
    for text in ["", "x", "<a>", "<a/><b/>", "<!DOCTYPE a><a/>", "<a>&b;</a>", "<p:a/>"] {
        assert!(matches!(TaskContext::xml(text), Err(InboxProblem::Xml(_))), "{text}");
    }
    let deep = |depth| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(TaskContext::xml(&deep(240)).is_ok());
    assert!(TaskContext::xml(&deep(241)).is_err());
    let TaskContext::Xml(xml) = TaskContext::xml("<?xml version='1.0'?><a b = '1'/><!-- c -->").unwrap() else {
        panic!()
    };
    assert_eq!(xml.as_str(), "<a b=\"1\"></a>");
}
