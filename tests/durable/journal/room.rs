//! Room in a journal: what history takes, what open work takes, and what clients were promised.

use std::time::Duration;

use rusqlite::Connection;
use systole::journal::{JournalOptions, JournalReader, Retention, SqliteJournal};
use systole::vocab::{Name, Time};
use systole_core::journal::{BodyRecord, EgressRecord, Journal, MessageRecord, Number, Op, Owner, Step, ThreadRecord};
use systole_core::journal::{LetterRecord, SubmissionRecord};

use super::story::{
    Folder, KEY, Story, egress_record, letter_record, message_record, submission_record, thread_record,
};

const BYTES: u64 = 1 << 20;
const DAY: u64 = 86_400_000_000_000;

fn open(folder: &Folder) -> SqliteJournal {
    let retention = Retention::default().age(Duration::from_secs(7 * 86_400)).bytes(BYTES);
    let mut store = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY).retention(retention)).unwrap();
    store.recover().unwrap();
    store
}

fn count(folder: &Folder, condition: &str) -> i64 {
    let db = Connection::open(folder.journal()).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {condition}"), [], |row| row.get(0)).unwrap()
}

/// A conversation of a client: its root, and a message of that many bytes in a thread.
fn conversation(number: Number, client: &str, bytes: usize) -> (Vec<Op>, ThreadRecord) {
    let root = ThreadRecord { owner: Owner::Client(client.parse().unwrap()), ..thread_record(number, number, 3) };
    let body = BodyRecord::Payload(format!("<p>{}</p>", "x".repeat(bytes)).into());
    let message = MessageRecord { body, ..message_record(number + 1, number, 2) };
    (vec![Op::Open(root.clone()), Op::Put(message)], root)
}

fn ended(number: Number, client: &str, bytes: usize) -> Vec<Op> {
    let (mut ops, _) = conversation(number, client, bytes);
    ops.push(Op::Close { thread: number });
    ops
}

/// The same of a client over a network, with its answer.
fn promised(number: Number, client: &str, bytes: usize) -> Vec<Op> {
    let (mut ops, root) = conversation(number, client, bytes);
    let client: Name = client.parse().unwrap();
    let (submission, egress) = (submission_record(number, 2 * number as usize), egress_record(number + 2, 1));
    let id = systole::vocab::MessageId::from_uuid(uuid::Uuid::from_u128(number.into()));
    ops.push(Op::Submitted(SubmissionRecord { id, client: client.clone(), root: root.id, ..submission }));
    ops.push(Op::Leave(EgressRecord { client, root: root.id, fault: None, ..egress }));
    ops.extend([Op::Read { egress: number + 2 }, Op::Close { thread: number }]);
    ops
}

fn write(store: &mut SqliteJournal, at: u64, ops: Vec<Op>) {
    store.write(&[Step { ops, at: Time::from_nanos(at) }]).unwrap();
    store.feed().unwrap();
}

const FIRST: Number = 1 << 39;

#[test]
fn open_work_and_dead_letters_push_no_ended_work_out() {
    let folder = Folder::new();
    let mut store = open(&folder);
    for n in 0..64 {
        write(&mut store, n, conversation(FIRST + 10 * n, "ada", 50_000).0);
        let (qname, body) = ("{urn:t}y".parse().unwrap(), format!("<y>{}</y>", "y".repeat(50_000)).into());
        let letter = LetterRecord { payload: Some((qname, body)), ..letter_record(FIRST + 10 * n + 5, 2) };
        write(&mut store, n, vec![Op::Letter(letter)]);
    }
    for n in 100..400 {
        write(&mut store, n, ended(FIRST + 10 * n, "bob", 500));
    }
    while store.tidy(Time::from_nanos(DAY)).unwrap() {}
    assert_eq!(count(&folder, "thread WHERE ended IS NOT NULL"), 300, "6 MiB of open work are beside 1 MiB");
    store.close().unwrap();
}

#[test]
fn the_oldest_history_goes_and_no_more_than_is_too_much() {
    let folder = Folder::new();
    let mut store = open(&folder);
    // Few rows of many bytes each: a sweep could delete all of them.
    for n in 0..64 {
        write(&mut store, n, ended(FIRST + 10 * n, "ada", 50_000));
    }
    while store.tidy(Time::from_nanos(DAY)).unwrap() {}
    let kept = count(&folder, "message");
    assert!((18..=20).contains(&kept), "{kept} messages of 50 KB are kept in 1 MiB");
    assert_eq!(count(&folder, &format!("message WHERE number < {}", FIRST + 10 * (64 - kept as u64))), 0);
    store.close().unwrap();
}

#[test]
fn what_a_client_was_promised_outlives_the_pressure_of_others_and_no_more_than_its_age() {
    let folder = Folder::new();
    let mut store = open(&folder);
    for n in 0..100 {
        write(&mut store, n, promised(FIRST + 10 * n, "ada", 500));
    }
    let kept = || [count(&folder, "submission WHERE client = 'ada'"), count(&folder, "egress WHERE client = 'ada'")];
    for n in 1000..1400 {
        // Of a client over a network, too, and of one in the program, whose answers are history.
        let ops =
            if n % 2 == 0 { promised(FIRST + 10 * n, "eve", 50_000) } else { ended(FIRST + 10 * n, "cli", 50_000) };
        write(&mut store, n, ops);
        if n % 2 == 1 {
            let egress =
                EgressRecord { client: "cli".parse().unwrap(), fault: None, ..egress_record(FIRST + 10 * n + 2, 1) };
            write(&mut store, n, vec![Op::Leave(egress), Op::Read { egress: FIRST + 10 * n + 2 }]);
        }
    }
    while store.tidy(Time::from_nanos(DAY)).unwrap() {}
    assert_eq!(kept(), [100, 100]);
    let history = count(&folder, "message");
    assert!((1..=25).contains(&history), "{history} messages of 50 KB are kept in 1 MiB");
    assert!(count(&folder, "egress WHERE client = 'cli'") <= 25, "answers that were read in the program are history");
    store.close().unwrap();
    drop(store);
    // A start counts the same.
    let mut store = open(&folder);
    while store.tidy(Time::from_nanos(2 * DAY)).unwrap() {}
    assert_eq!((kept(), count(&folder, "message")), ([100, 100], history));
    // A date that is far ahead counts once it has stood for an hour.
    for date in [9 * DAY, 9 * DAY + DAY / 12] {
        while store.tidy(Time::from_nanos(date)).unwrap() {}
    }
    assert_eq!((kept(), count(&folder, "message")), ([0, 0], 0));
    store.close().unwrap();
    drop(store);
    let faults = JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults;
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn the_weights_of_rows_are_followed_through_any_history() {
    for seed in 0..40 {
        let folder = Folder::new();
        let mut store = open(&folder);
        for steps in Story::whole_steps(seed, 400).chunks(1 + seed as usize % 9) {
            store.write(steps).unwrap();
        }
        // A debug build compares them with the tables.
        store.close().unwrap();
    }
}
