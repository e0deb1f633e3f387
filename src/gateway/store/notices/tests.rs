use std::path::PathBuf;
use std::time::Duration;

use super::super::open::FORMAT;
use super::super::{Durability, Handle, Lease, Put, Retention, Settled, State};
use super::*;
use crate::shell::block_on;
use crate::vocab::ThreadId;

const ROOM: Room = Room { rows: 100, bytes: 1000 };
const NOW: Time = Time::from_nanos(1_000_000_000_000_000_000);

/// A file in a folder of its own.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("systole-notices-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("x.gateway")
    }

    fn open(&self) -> Store {
        let retention = Retention { age: Duration::from_secs(u32::MAX.into()), ..Retention::default() };
        Store::open(&self.file(), Durability::Process, retention).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mailbox() -> Name {
    Name::parse("worker").unwrap()
}

fn message(number: u8) -> MessageId {
    MessageId::from_uuid(uuid([number; 16]))
}

/// Puts messages of so many bytes into the mailbox.
fn put(store: &Store, numbers: std::ops::Range<u8>, bytes: usize) {
    for number in numbers {
        let item = Item {
            seq: 0,
            mailbox: mailbox(),
            id: message(number),
            thread: ThreadId::from_uuid(uuid([0; 16])),
            from: "bob".to_owned(),
            in_reply_to: None,
            payload: "{urn:t}note".to_owned(),
            envelope: "x".repeat(bytes),
            at: NOW,
            state: State::Waiting,
            deliveries: 0,
            due: Time::default(),
            error: None,
        };
        assert!(matches!(block_on(store.put(item)).unwrap(), Put::Waits));
    }
}

/// The messages that a session gets under a token.
fn reserve(store: &Store, session: u8, token: u8) -> Vec<MessageId> {
    let (session, token) = ([session; 16], [token; 16]);
    let wanted = Reserve { mailbox: mailbox(), session, token, now: NOW, deliveries: 5, room: ROOM };
    block_on(store.reserve(wanted)).unwrap().into_iter().map(|item| item.id).collect()
}

fn confirm(store: &Store, session: u8, token: u8) -> Vec<(MessageId, bool)> {
    let confirmed = block_on(store.confirm([session; 16], [token; 16], NOW)).unwrap();
    confirmed.into_iter().map(|one| (one.id, one.ended)).collect()
}

fn state(store: &Store, number: u8) -> State {
    block_on(store.item(message(number))).unwrap().unwrap().0.state
}

#[test]
fn a_message_is_with_one_session_and_no_reader() {
    let place = Place::new("one");
    let store = place.open();
    put(&store, 1..4, 10);
    assert!(block_on(store.pending(mailbox(), NOW, 5)).unwrap());
    assert_eq!(reserve(&store, 1, 1), [message(1), message(2), message(3)]);
    assert!(!block_on(store.pending(mailbox(), NOW, 5)).unwrap());
    assert!(reserve(&store, 2, 2).is_empty() && reserve(&store, 1, 3).is_empty());
    let lease = || Lease { mailbox: mailbox(), max: 9, now: NOW, until: NOW, deliveries: 5 };
    assert!(block_on(store.lease(lease())).unwrap().leased.is_empty());
    // It is never given out too often.
    assert!(block_on(store.lapse(NOW, 0)).unwrap().0.is_empty());
    // Whoever reads it by a lease has it, too.
    assert_eq!(block_on(store.release([1; 16], None)).unwrap(), [mailbox()]);
    let until = NOW.after(Duration::from_secs(30));
    assert_eq!(block_on(store.lease(Lease { until, ..lease() })).unwrap().leased.len(), 3);
    assert!(reserve(&store, 1, 4).is_empty());
}

#[test]
fn confirming_ends_what_the_token_stands_for_once_and_for_its_session_alone() {
    let place = Place::new("confirm");
    let store = place.open();
    put(&store, 1..3, 10);
    assert_eq!(reserve(&store, 1, 1).len(), 2);
    assert!(confirm(&store, 2, 1).is_empty() && confirm(&store, 1, 9).is_empty());
    assert_eq!(state(&store, 1), State::Waiting);
    assert_eq!(confirm(&store, 1, 1), [(message(1), true), (message(2), true)]);
    assert_eq!(confirm(&store, 1, 1), [(message(1), false), (message(2), false)]);
    assert_eq!((state(&store, 1), state(&store, 2)), (State::Acked, State::Acked));
    block_on(store.release([1; 16], None)).unwrap();
    assert!(confirm(&store, 1, 1).is_empty() && reserve(&store, 1, 2).is_empty());
}

#[test]
fn what_was_answered_before_it_is_confirmed_stays_answered() {
    let place = Place::new("answered");
    let store = place.open();
    put(&store, 1..2, 10);
    reserve(&store, 1, 1);
    let reply = super::super::Settlement::Reply("<a/>".into());
    assert!(matches!(block_on(store.settle(message(1), reply, NOW)).unwrap(), Settled::Done(_)));
    assert_eq!(confirm(&store, 1, 1), [(message(1), false)]);
    assert_eq!(state(&store, 1), State::Replied);
}

#[test]
fn a_token_is_the_receipt_of_its_rows_until_another_has_them() {
    let place = Place::new("receipt");
    let store = place.open();
    put(&store, 1..2, 10);
    reserve(&store, 1, 1);
    let back = Handle::Nack { error: None, due: Time::default() };
    assert!(matches!(
        block_on(store.handle(mailbox(), message(1), [1; 16], back, (NOW, 5))).unwrap(),
        Settled::Done(None)
    ));
    assert_eq!(reserve(&store, 2, 2), [message(1)]);
    assert_eq!(confirm(&store, 1, 1), [(message(1), false)], "it had it, and gave it back");
    block_on(store.release([1; 16], None)).unwrap();
    assert!(reserve(&store, 3, 3).is_empty(), "the second session has it");
    assert_eq!(confirm(&store, 2, 2), [(message(1), true)]);
}

#[test]
fn the_size_is_bounded_but_for_the_first() {
    let place = Place::new("size");
    let store = place.open();
    put(&store, 1..2, 5000);
    put(&store, 2..6, 400);
    assert_eq!(reserve(&store, 1, 1), [message(1)]);
    assert_eq!(reserve(&store, 1, 2), [message(2), message(3)]);
    assert_eq!(reserve(&store, 1, 3), [message(4), message(5)]);
    assert_eq!(block_on(store.release([1; 16], Some([2; 16]))).unwrap(), [mailbox()]);
    assert_eq!(reserve(&store, 1, 4), [message(2), message(3)]);
}

#[test]
fn a_process_that_ends_neither_loses_nor_doubles() {
    let place = Place::new("crash");
    let store = place.open();
    put(&store, 1..4, 400);
    assert_eq!(reserve(&store, 1, 1), [message(1), message(2)]);
    assert_eq!(reserve(&store, 1, 2), [message(3)]);
    confirm(&store, 1, 2);
    drop(store);
    let store = place.open();
    assert!(confirm(&store, 1, 1).is_empty() && confirm(&store, 1, 2).is_empty());
    // The pump runs again what has no end.
    put(&store, 1..3, 400);
    assert_eq!(reserve(&store, 2, 3), [message(1), message(2)]);
    assert_eq!(state(&store, 3), State::Acked);
}

#[test]
fn a_file_of_an_earlier_version_becomes_one_of_version_4_and_keeps_what_it_has() {
    for version in 1..=3_u8 {
        let place = Place::new(&format!("upgrade-{version}"));
        let db = Connection::open(place.file()).unwrap();
        FORMAT.migrations[..version.into()].iter().for_each(|step| db.execute_batch(step).unwrap());
        db.execute("INSERT INTO meta VALUES (1, ?1)", [[7_u8; 32]]).unwrap();
        db.pragma_update(None, "application_id", 0x5379_4731).unwrap();
        db.pragma_update(None, "user_version", version).unwrap();
        let sql = "INSERT INTO item VALUES (1, 'worker', ?1, ?1, 'bob', NULL, 't', '<m/>', 1, 'waiting', 1, 0, 0, NULL, \
                   NULL, NULL, NULL)";
        db.execute(sql, [[1_u8; 16]]).unwrap();
        drop(db);
        let store = place.open();
        assert_eq!((store.key(), state(&store, 1)), (&[7; 32], State::Waiting));
        put(&store, 1..2, 10);
        assert_eq!(reserve(&store, 1, 1), [message(1)]);
        block_on(store.pause("worker".parse().unwrap(), Time::default())).unwrap();
        drop(store);
        let db = Connection::open(place.file()).unwrap();
        assert_eq!(db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap(), 4);
        drop(db);
        let paused = |name: &str| block_on(place.open().is_paused(name.parse().unwrap())).unwrap();
        assert_eq!((paused("worker"), paused("other")), (true, false));
    }
}
