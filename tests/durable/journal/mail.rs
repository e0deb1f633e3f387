//! Mailboxes, submissions and principals in the journal: retention, and writers beside the organism.

#[cfg(feature = "gateway")]
use std::io::{BufRead, BufReader};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
#[cfg(feature = "gateway")]
use systole::gateway::PrincipalKind;
#[cfg(feature = "gateway")]
use systole::journal::MemoryJournal;
#[cfg(feature = "gateway")]
use systole::journal::Principals;
use systole::journal::{JournalOptions, JournalReader, Retention, SqliteJournal};
use systole::vocab::{MessageId, ThreadId, Time};
use systole_core::journal::{
    AddresseeRecord, Journal, MailRecord, MailState, MailStatus, Op, Owner, Step, SubmissionRecord,
};
use uuid::Uuid;

#[cfg(feature = "gateway")]
use super::story::content;
use super::story::{Folder, KEY, Story, open};

const HOUR: u64 = 3_600_000_000_000;

fn mail(seq: u64, mailbox: &str) -> MailRecord {
    MailRecord {
        seq,
        mailbox: mailbox.parse().unwrap(),
        id: MessageId::from_uuid(Uuid::from_u128(seq.into())),
        thread: ThreadId::from_uuid(Uuid::from_u128(7)),
        from: "ada".parse().unwrap(),
        in_reply_to: None,
        payload: "{urn:example}ask".parse().unwrap(),
        envelope: Bytes::from_static(b"<message/>"),
        at: Time::from_nanos(seq),
    }
}

fn is(state: MailState) -> MailStatus {
    MailStatus { state, ..MailStatus::default() }
}

fn short_lived(folder: &Folder) -> SqliteJournal {
    let retention = Retention::default().age(Duration::from_secs(3600));
    SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY).retention(retention)).unwrap()
}

fn step(ops: Vec<Op>, at: u64) -> [Step; 1] {
    [Step { ops, at: Time::from_nanos(at) }]
}

fn count(folder: &Folder, table: &str) -> i64 {
    let db = Connection::open(folder.journal()).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn in_order(folder: &Folder) {
    let faults = JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults;
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn what_is_over_is_swept_and_leaves_a_mark_and_places_are_never_given_again() {
    let folder = Folder::new();
    let mut store = short_lived(&folder);
    store.recover().unwrap();
    let states = [MailState::Acked, MailState::Dead, MailState::Replied, MailState::Waiting, MailState::Gone];
    let ops = (1..).zip(states).map(|(seq, state)| Op::Mail(mail(seq, "remote"), is(state))).collect();
    store.write(&step(ops, HOUR)).unwrap();
    while store.tidy(Time::from_nanos(4 * HOUR)).unwrap() {}
    assert_eq!((count(&folder, "mail"), count(&folder, "mail_status")), (2, 2), "a dead letter stays");
    let db = Connection::open(folder.journal()).unwrap();
    let marks = db.query_row("SELECT pruned, last FROM mail_gone WHERE mailbox = 'remote'", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    assert_eq!(marks.unwrap(), (5, 5));
    // One is deleted directly, one is moved behind the last and deleted there: neither is a mark for readers.
    let moved = Op::MailMoved { from: 2, to: 6, status: is(MailState::Redriven) };
    store.write(&step(vec![Op::MailGone { seq: 4 }, moved, Op::MailGone { seq: 6 }], 4 * HOUR)).unwrap();
    let pruned: i64 = db.query_row("SELECT pruned FROM mail_gone", [], |row| row.get(0)).unwrap();
    assert_eq!((count(&folder, "mail"), pruned), (0, 5));
    in_order(&folder);
    drop(store);
    assert_eq!(open(&folder.journal()).recover().unwrap().last_mail, 6);
}

#[test]
fn a_lease_does_not_write_the_envelope_again() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let large = MailRecord { envelope: "x".repeat(1 << 20).into(), ..mail(1, "remote") };
    store.write(&step(vec![Op::Mail(large, MailStatus::default())], 1)).unwrap();
    let log = || std::fs::metadata(format!("{}-wal", folder.journal().display())).unwrap().len();
    let before = log();
    for deliveries in 1..=20 {
        let status = MailStatus { deliveries, receipt: Some([1; 16]), ..MailStatus::default() };
        store.write(&step(vec![Op::MailStatus { seq: 1, status }], 2)).unwrap();
    }
    store.write(&step(vec![Op::MailStatus { seq: 1, status: is(MailState::Acked) }], 3)).unwrap();
    let written = log() - before;
    assert!(written < 1 << 20, "{written} bytes for 21 changes of a status");
}

#[test]
fn a_submission_stays_while_its_conversation_is_open_and_its_time_after_that() {
    let folder = Folder::new();
    let mut store = short_lived(&folder);
    store.recover().unwrap();
    let mut story = Story::default();
    let opened = |story: &mut Story| loop {
        if let Op::Open(thread) = story.later(5, 3) {
            return systole_core::journal::ThreadRecord { owner: Owner::Client("ada".parse().unwrap()), ..thread };
        }
    };
    let (first, second, third) = (opened(&mut story), opened(&mut story), opened(&mut story));
    let of = |root: ThreadId, n: u128| {
        let key = Some(("key".into(), [n as u8; 32]));
        let id = MessageId::from_uuid(Uuid::from_u128(n));
        Op::Submitted(SubmissionRecord { id, client: "ada".parse().unwrap(), root, key })
    };
    let ops = vec![
        Op::Open(first.clone()),
        of(first.id, 1),
        // This submission ends in the step in which it comes; so does one whose conversation never opened.
        Op::Open(second.clone()),
        Op::Close { thread: second.number },
        of(second.id, 2),
        of(third.id, 3),
    ];
    store.write(&step(ops, HOUR)).unwrap();
    assert_eq!(count(&folder, "submission WHERE ended IS NULL"), 1);
    while store.tidy(Time::from_nanos(9 * HOUR)).unwrap() {}
    assert_eq!(count(&folder, "submission"), 1);
    drop(store);
    let mut store = short_lived(&folder);
    store.recover().unwrap();
    store.write(&step(vec![Op::Close { thread: first.number }], 9 * HOUR)).unwrap();
    assert_eq!(count(&folder, "submission WHERE ended IS NULL"), 0, "also after a start");
    while store.tidy(Time::from_nanos(11 * HOUR)).unwrap() {}
    assert_eq!(count(&folder, "submission"), 0);
    in_order(&folder);
}

#[cfg(feature = "gateway")]
#[test]
fn a_principal_waits_for_a_journal_that_is_being_made() {
    let folder = Folder::new();
    // As another process holds it until the new file is in its place.
    let mut holder = std::process::Command::new("sh")
        .args(["-c", "exec 3<&0; : > \"$0\"; exec flock \"$0\" sh -c 'echo held; read end <&3'"])
        .arg(folder.journal())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut held).unwrap();
    assert_eq!(held, "held\n");
    let why = Principals::open(&folder.journal(), &JournalOptions::new(KEY)).unwrap_err().to_string();
    assert!(why.contains("it is empty: if an organism is about to start for the first time, try again"), "{why}");
    let made = folder.path().join("made");
    open(&made).close().unwrap();
    std::fs::rename(&made, folder.journal()).unwrap();
    drop(holder.stdin.take());
    holder.wait().unwrap();
    Principals::open(&folder.journal(), &JournalOptions::new(KEY)).unwrap();
}

#[cfg(feature = "gateway")]
#[test]
fn somebody_is_let_in_beside_an_organism_that_writes_and_without_one() {
    let folder = Folder::new();
    let options = JournalOptions::new(KEY);
    let name = |text: &str| text.parse().unwrap();
    let names = |of: &Principals| of.list().unwrap().iter().map(|one| one.name.to_string()).collect::<Vec<_>>();
    // There is no journal yet.
    let mut alone = Principals::open(&folder.journal(), &options).unwrap();
    let token = alone.admit(name("ada"), PrincipalKind::Client, Time::from_nanos(1)).unwrap();
    assert!(token.reveal().starts_with("syt_"));
    drop(alone);
    let mut store = open(&folder.journal());
    assert_eq!(store.recover().unwrap().epoch, 1);
    let mut earlier = Story::whole_steps(4, 220);
    let later = earlier.split_off(200);
    let mut memory = MemoryJournal::new(KEY);
    memory.write(&earlier).unwrap();
    let mut beside = Principals::open(&folder.journal(), &options).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..50 {
                beside.admit(name(&format!("c{n}")), PrincipalKind::Client, Time::from_nanos(2)).unwrap();
                assert!(n % 2 == 0 || beside.dismiss(&name(&format!("c{n}"))).unwrap());
            }
        });
        for steps in earlier.chunks(2) {
            store.write(steps).unwrap();
        }
    });
    assert_eq!(names(&beside).len(), 26);
    assert!(!beside.dismiss(&name("nobody")).unwrap());
    // Closing a handle must not remove the log that the organism uses.
    drop(beside);
    store.write(&later).unwrap();
    memory.write(&later).unwrap();
    drop(store);
    in_order(&folder);
    let mut store = open(&folder.journal());
    assert_eq!(content(store.recover().unwrap()), content(memory.recover().unwrap()));
    assert_eq!(count(&folder, "principal"), 26);
}

#[test]
fn the_addressee_of_a_mailbox_is_kept() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let records = [("one", Some("ada")), ("two", None)].map(|(mailbox, person)| AddresseeRecord {
        mailbox: mailbox.parse().unwrap(),
        person: person.map(|person| person.parse().unwrap()),
    });
    let step = |records: &[AddresseeRecord]| Step {
        ops: records.iter().cloned().map(Op::Addressee).collect(),
        ..Step::default()
    };
    store.write(&[step(&records), step(&records[..1])]).unwrap();
    drop(store);
    assert_eq!(open(&folder.journal()).recover().unwrap().addressees, records);
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, [""; 0]);
}
