//! Tests of the queries, with a journal that is open for writing.

use systole_core::journal::{
    BodyRecord, Journal, MailState, MessageRecord, MessageState, NoteRecord, Op, Owner, ReplyTo, Step, ThreadRecord,
};
use systole_core::vocab::{Fault, ThreadId};
use uuid::Uuid;

use super::super::{JournalOptions, Principals, SqliteJournal};
use super::*;
use crate::block_on;
use crate::principal::PrincipalKind;

/// An open journal with a query; the file is deleted with it.
struct Fixture {
    journal: SqliteJournal,
    query: JournalQuery,
    file: std::path::PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let file = std::env::temp_dir().join(format!("systole-test-{}-query-{name}", std::process::id()));
        let mut journal = SqliteJournal::open(&file, &JournalOptions::new([3; 32])).unwrap();
        journal.recover().unwrap();
        let query = JournalQuery::open(&file, None).unwrap();
        Self { journal, query, file }
    }

    fn append(&mut self, ops: Vec<Op>) {
        self.journal.write(&[Step { ops, at: Time::from_nanos(1_000) }]).unwrap();
    }

    fn page(&self, range: Range) -> (Vec<Number>, bool) {
        let page = block_on(self.query.page(range)).unwrap();
        (page.items.iter().map(|item| item.record.seq).collect(), page.has_more)
    }

    /// Flips a bit of a column, as a disk might.
    fn damage(&self, sql: &str) {
        assert_eq!(self.journal.db.execute(sql, []).unwrap(), 1);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        for ending in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(format!("{}{ending}", self.file.display()));
        }
    }
}

fn id(n: u64) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(n.into()))
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Odd numbers are from ada, even ones from bob; each third has another payload.
fn record(seq: Number) -> MailRecord {
    MailRecord {
        seq,
        mailbox: name(if seq > 9 { "other" } else { "remote" }),
        id: id(seq),
        thread: ThreadId::from_uuid(Uuid::from_u128(9)),
        from: name(if seq.is_multiple_of(2) { "bob" } else { "ada" }),
        in_reply_to: None,
        payload: if seq.is_multiple_of(3) { "{urn:example}third" } else { "{urn:example}ask" }.parse().unwrap(),
        envelope: format!("<message>{seq}</message>").into(),
        at: Time::from_nanos(seq * 10),
    }
}

fn mailboxes(name: &str) -> Fixture {
    let mut fixture = Fixture::new(name);
    let state = |seq| match seq {
        2 | 5 => MailState::Dead,
        3 => MailState::Replied,
        4 => MailState::Redriven,
        _ => MailState::Waiting,
    };
    let status = |seq| MailStatus { state: state(seq), deliveries: seq as u32, ..MailStatus::default() };
    fixture.append((1..=10).map(|seq| Op::Mail(record(seq), status(seq))).collect());
    fixture
}

fn all() -> Range {
    let mailbox = name("remote");
    Range { mailbox, after: 0, limit: 100, bytes: usize::MAX, payload: None, peer: None, before: None, dead: false }
}

#[test]
fn pages_hold_what_is_asked_for_in_order() {
    let mut fixture = mailboxes("pages");
    assert_eq!(fixture.page(all()), ((1..=9).collect(), false));
    assert_eq!(fixture.page(Range { after: 2, limit: 3, ..all() }), (vec![3, 4, 5], true));
    assert_eq!(fixture.page(Range { after: 6, limit: 3, ..all() }), (vec![7, 8, 9], false));
    assert_eq!(fixture.page(Range { payload: Some("{urn:example}third".into()), ..all() }), (vec![3, 6, 9], false));
    let from_bob = Range { peer: Some("bob".into()), before: Some(Time::from_nanos(60)), ..all() };
    assert_eq!(fixture.page(from_bob), (vec![2, 4], false));
    assert_eq!(fixture.page(Range { dead: true, ..all() }), (vec![2, 5], false));
    assert_eq!(fixture.page(Range { dead: true, after: 2, ..all() }), (vec![5], false));
    let at = block_on(fixture.query.mail_at(vec![7, 99, 1])).unwrap();
    assert_eq!(at.iter().map(|mail| mail.record.seq).collect::<Vec<_>>(), [7, 1]);
    let found = block_on(fixture.query.mail(id(4))).unwrap().unwrap();
    assert_eq!((&found.record, found.status.state, found.status.deliveries), (&record(4), MailState::Redriven, 4));
    assert_eq!(block_on(fixture.query.mail(id(77))).unwrap(), None);
    let position = |fixture: &Fixture| block_on(fixture.query.page(all())).unwrap().position;
    assert_eq!(position(&fixture), Position { pruned: 0, oldest: Some(1) });
    let over = |seq| Op::MailStatus { seq, status: MailStatus { state: MailState::Gone, ..MailStatus::default() } };
    fixture.append(vec![over(1), over(6)]);
    // A date that is far ahead counts after an hour.
    for at in [0, 3_600_000_000_000].map(|more| Time::from_nanos(u64::MAX / 4 + more)) {
        while fixture.journal.tidy(at).unwrap() {}
    }
    assert_eq!(position(&fixture), Position { pruned: 6, oldest: Some(2) });
}

#[test]
fn a_history_is_of_a_kind_of_some_senders_and_of_a_while() {
    let fixture = mailboxes("history");
    let whole = History {
        mailbox: name("remote"),
        after: 0,
        limit: 100,
        bytes: usize::MAX,
        of: Of::Namespace("urn:example"),
        senders: None,
        since: None,
        before: None,
        waiting: false,
    };
    let found = |of: History| {
        let (found, _) = block_on(fixture.query.history(of)).unwrap();
        found.iter().map(|mail| mail.record.seq).collect::<Vec<_>>()
    };
    assert_eq!(found(whole.clone()), (1..=9).collect::<Vec<_>>());
    assert_eq!(found(History { of: Of::Namespace("urn:exampl"), ..whole.clone() }), [0; 0]);
    assert_eq!(found(History { of: Of::Payload("{urn:example}third".parse().unwrap()), ..whole.clone() }), [3, 6, 9]);
    assert_eq!(found(History { waiting: true, ..whole.clone() }), [1, 4, 6, 7, 8, 9]);
    let while_ = (Some(Time::from_nanos(20)), Some(Time::from_nanos(50)));
    assert_eq!(found(History { since: while_.0, before: while_.1, ..whole.clone() }), [2, 3, 4]);
    let senders = Some(vec![name("ada"), name("nobody")]);
    assert_eq!(found(History { senders, after: 1, limit: 2, ..whole.clone() }), [3, 5]);
    let more = |limit, bytes| block_on(fixture.query.history(History { limit, bytes, ..whole.clone() })).unwrap();
    let (first, has_more) = more(100, 1);
    assert_eq!((first.len(), has_more), (1, true), "one has more bytes than that");
    assert_eq!((more(9, usize::MAX).1, more(8, usize::MAX).1), (false, true));
}

#[test]
fn a_submission_is_known_by_its_id_and_its_key_with_answers_that_were_read() {
    let mut fixture = Fixture::new("submission");
    let root = ThreadId::from_uuid(Uuid::from_u128(50));
    let submission = |n, key: Option<&str>| SubmissionRecord {
        id: id(n),
        client: name("ada"),
        root,
        key: key.map(|key| (key.into(), [n as u8; 32])),
    };
    let egress = |number, fault: Option<FaultCode>| EgressRecord {
        number,
        client: name("ada"),
        root,
        from: name("remote"),
        in_reply_to: Some(id(1).to_string().into()),
        envelope: "<message/>".into(),
        fault: fault.map(|code| Fault { code, message: "no".into(), retryable: false, in_reply_to: None, rule: None }),
        payload: "<answer xmlns=\"urn:example\">42</answer>".into(),
    };
    let code = FaultCode::ALL[0];
    fixture.append(vec![
        Op::Submitted(submission(1, Some("k"))),
        Op::Submitted(submission(2, None)),
        Op::Leave(egress(20, None)),
        Op::Leave(egress(10, Some(code))),
    ]);
    fixture.append(vec![Op::Read { egress: 20 }]);
    let sent = block_on(fixture.query.submission(id(1), 0, usize::MAX)).unwrap().unwrap();
    assert_eq!((sent.submission.clone(), sent.at), (submission(1, Some("k")), Time::from_nanos(1_000)));
    let answers: Vec<_> = sent.answers.iter().map(|answer| (answer.number, answer.fault)).collect();
    assert_eq!(answers, [(10, Some(code)), (20, None)]);
    assert_eq!(sent.answers[0].payload, "{urn:example}answer".parse().unwrap());
    assert_eq!((sent.faulted, sent.has_more), (Some(true), false));
    let some = |skip, bytes| {
        let sent = block_on(fixture.query.submission(id(1), skip, bytes)).unwrap().unwrap();
        (sent.answers.iter().map(|answer| answer.number).collect::<Vec<_>>(), sent.has_more, sent.faulted)
    };
    assert_eq!(some(0, 1), (vec![10], true, Some(true)));
    assert_eq!(some(1, 1), (vec![20], false, Some(true)));
    assert_eq!(some(2, 1), (vec![], false, Some(true)));
    let by_key = |client, key: &str| block_on(fixture.query.submission_of_key(name(client), key.into())).unwrap();
    assert_eq!(by_key("ada", "k"), Some(submission(1, Some("k"))));
    assert_eq!((by_key("bob", "k"), by_key("ada", "l")), (None, None));
    assert_eq!(block_on(fixture.query.submission(id(3), 0, usize::MAX)).unwrap(), None);
    assert_eq!(fixture.query.secret(), &[3; 32]);
}

#[test]
fn a_token_is_good_at_once_and_no_longer_than_it_is_kept() {
    let fixture = Fixture::new("principals");
    let mut principals = Principals::open(&fixture.file, &JournalOptions::new([0; 32])).unwrap();
    let now = Time::from_nanos(5);
    let token = principals.admit(name("ada"), PrincipalKind::Client, now).unwrap();
    let who = || block_on(fixture.query.bearer(token.hash())).unwrap();
    let ada = Principal { name: name("ada"), kind: PrincipalKind::Client, created: now };
    assert_eq!(who(), Some(ada));
    fixture.damage("UPDATE principal SET kind = 'admin'");
    let refusal = block_on(fixture.query.bearer(token.hash())).unwrap_err().to_string();
    assert!(refusal.contains("principal") && refusal.contains("is not as it was written"), "{refusal}");
    principals.admit(name("ada"), PrincipalKind::Client, now).unwrap();
    assert_eq!(who(), None, "an older one is good no more");
}

#[test]
fn a_row_that_is_not_as_it_was_written_is_refused() {
    for damage in [
        "UPDATE mail SET envelope = '<message>2</message>' WHERE seq = 1",
        "UPDATE mail SET sender = 'bob' WHERE seq = 1",
        "UPDATE mail_status SET deliveries = 7 WHERE seq = 1",
        "DELETE FROM mail_status WHERE seq = 1",
    ] {
        let fixture = mailboxes("damage");
        fixture.damage(damage);
        let refusal = block_on(fixture.query.mail(id(1))).unwrap_err().to_string();
        assert!(refusal.contains("damaged: mail"), "{damage}: {refusal}");
        assert!(block_on(fixture.query.mail(id(2))).unwrap().is_some(), "the others are read");
    }
}

#[test]
fn what_is_written_beside_keeps_no_other_call_waiting() {
    let fixture = Fixture::new("beside");
    let (go_on, told) = std::sync::mpsc::channel::<()>();
    let query: &dyn Query = &fixture.query;
    let mut long = std::pin::pin!(query.beside(move || told.recv().unwrap()));
    block_on(async {
        let pending = std::future::poll_fn(|context| std::task::Poll::Ready(long.as_mut().poll(context).is_pending()));
        assert!(pending.await);
        // Another call on the same thread, without which the long one can't end.
        go_on.send(()).unwrap();
        long.as_mut().await.unwrap();
    });
}

#[test]
fn use_of_models_is_summed_by_day_and_listener() {
    let mut fixture = Fixture::new("days");
    let day = UsedDays::DAY.as_nanos() as u64;
    let thread = |number: Number, owner| {
        Op::Open(ThreadRecord {
            number,
            id: ThreadId::from_uuid(Uuid::from_u128(number.into())),
            parent: (number > 1).then_some(1),
            root: 1,
            owner,
            ordinal: 1,
            depth: 0,
            opened_by: id(9),
            reply_to: ReplyTo::None,
            deadline: Time::MAX,
            own_deadline: false,
            spawned: false,
            left: false,
            label: None,
            traceparent: None,
        })
    };
    let message = |number: Number, thread| {
        Op::Put(MessageRecord {
            number,
            place: number,
            thread,
            id: id(number),
            from: name("ada"),
            in_reply_to: None,
            answers: ReplyTo::None,
            state: MessageState::Queued,
            body: BodyRecord::Payload("<a xmlns=\"urn:t\"/>".into()),
            attempts: 0,
        })
    };
    let note = |message, index, value: &str| {
        Op::Note(NoteRecord { message, index, name: "model".into(), value: value.into() })
    };
    let used = |message, index, input: u64| {
        let value = serde_json::json!({ "value": { "usage": Usage { input, output: 1, ..Usage::default() } } });
        note(message, index, &value.to_string())
    };
    let steps = [
        (
            0,
            vec![
                thread(1, Owner::Client(name("ada"))),
                thread(2, Owner::Listener(name("poet"))),
                thread(3, Owner::Listener(name("clerk"))),
            ],
        ),
        (0, vec![message(10, 2), message(11, 3), message(12, 2)]),
        // Before the days that are wanted, in a message that is done on one of them.
        (day - 1, vec![used(10, 0, 1_000)]),
        (day, vec![used(10, 1, 1)]),
        (
            2 * day - 1,
            vec![used(10, 2, 2), used(11, 0, 4), note(11, 1, "no JSON"), note(11, 2, "{\"value\":{\"usage\":7}}")],
        ),
        (2 * day, vec![Op::Done { message: 10 }, Op::Done { message: 11 }, used(12, 0, 8)]),
    ];
    let steps: Vec<_> = steps.into_iter().map(|(at, ops)| Step { ops, at: Time::from_nanos(at) }).collect();
    fixture.journal.write(&steps).unwrap();
    fixture.journal.feed().unwrap();
    let since = Time::from_nanos(day);
    let found = block_on(fixture.query.used_by_day(since)).unwrap();
    let summed = found.days.iter().map(|used| {
        (used.day.as_nanos() / day, used.listener.as_str(), used.messages, used.requests, used.usage.input)
    });
    assert_eq!(summed.collect::<Vec<_>>(), [(2, "poet", 1, 1, 8), (1, "clerk", 1, 1, 4), (1, "poet", 1, 2, 3)]);
    assert_eq!((found.since, found.deleted), (since, None), "all of it, and nothing was deleted");
    // Retention takes what is done, and the answer says until when.
    for at in [0, 3_600_000_000_000].map(|more| Time::from_nanos(u64::MAX / 4 + more)) {
        while fixture.journal.tidy(at).unwrap() {}
    }
    let left = block_on(fixture.query.used_by_day(since)).unwrap();
    assert_eq!(left.days.iter().map(|used| used.usage.input).collect::<Vec<_>>(), [8]);
    assert_eq!(left.deleted, Some(Time::from_nanos(2 * day)));
}
