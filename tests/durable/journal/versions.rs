//! Files that earlier versions wrote: they are read as they are, and migrated by the next start.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use systole::runtime::journal::{Fork, ForkError, JournalOptions, JournalReader, SqliteJournal};
use systole::vocab::{MessageId, Name, Partition, ThreadId, Time};
use systole_core::journal::{
    AddresseeRecord, BodyRecord, Journal, LAST_EPOCH, MemoryJournal, MessageRecord, MessageState, Number, Op, Origin,
    Recovered, Step, numbers_after,
};
use uuid::Uuid;

use super::story::{Folder, KEY, Story, content, open, open_rows};

/// Copies the file of an earlier version into a folder of its own.
fn old_file(version: &str) -> Folder {
    let folder = Folder::new();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/durable/journal/{version}.journal"));
    fs::copy(kept, folder.journal()).unwrap();
    folder
}

fn faults(file: &Path) -> Vec<String> {
    JournalReader::open(file).unwrap().verify().unwrap().faults
}

/// Puts dead letters into the partition that they have in files of versions before partitions.
fn unparted(mut steps: Vec<Step>) -> Vec<Step> {
    for op in steps.iter_mut().flat_map(|step| &mut step.ops) {
        if let Op::Letter(letter) = op {
            letter.partition = Partition::default();
        }
    }
    steps
}

/// Opens some threads, and gives them budgets.
fn with_budgets() -> Step {
    let mut story = Story::default();
    let mut step = story.step(&[(0, 1), (0, 2), (0, 3)]);
    step.ops.extend((0..9).map(|pick| story.budget(pick)));
    step
}

#[test]
fn the_first_version_is_still_read() {
    let folder = old_file("v1");
    let mut memory = MemoryJournal::new(KEY);
    memory.append(&unparted(Story::steps(1, 60))).unwrap();
    let mut store = open(&folder.journal());
    assert_eq!(noted(store.recover().unwrap()), noted(memory.recover().unwrap()));
    // Steps of that version have no times of their own.
    let db = Connection::open(folder.journal()).unwrap();
    let sql =
        "SELECT thread.id, message.id FROM message JOIN thread ON thread.number = thread ORDER BY message.at DESC";
    let (conversation, at) = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let conversation = ThreadId::from_uuid(Uuid::from_bytes(conversation));
    let fork = Fork { conversation, at: MessageId::from_uuid(Uuid::from_bytes(at)), edit: None, owner: None };
    assert!(matches!(store.fork(&fork, Time::default()), Err(ForkError::Forgotten(_))));
    let more = Story::steps(1, 90).split_off(60);
    store.append(&more).unwrap();
    memory.append(&more).unwrap();
    drop(store);
    let mut store = open(&folder.journal());
    assert_eq!(noted(store.recover().unwrap()), noted(memory.recover().unwrap()));
}

#[test]
fn the_sums_of_version_5_become_those_of_today() {
    let folder = old_file("v5");
    assert_eq!(faults(&folder.journal()), [""; 0], "as it is, by whoever only reads");
    let mut memory = MemoryJournal::new(KEY);
    let steps = unparted(Story::whole_steps(1, 60));
    memory.append(&steps).unwrap();
    let mut store = open(&folder.journal());
    let recovered = store.recover().unwrap();
    // That version did not record the addressee of answers without one.
    let nobody = |record: &AddresseeRecord| record.person.is_none();
    assert!(!recovered.addressees.is_empty() && recovered.addressees.iter().all(nobody), "{:?}", recovered.addressees);
    memory.append(&[addressees(&recovered.addressees)]).unwrap();
    assert_eq!(content(recovered), content(memory.recover().unwrap()));
    let more = Story::whole_steps(1, 90).split_off(60);
    store.append(&more).unwrap();
    memory.append(&more).unwrap();
    assert_eq!(faults(&folder.journal()), [""; 0]);
    drop(store);
    let mut store = open(&folder.journal());
    assert_eq!(content(store.recover().unwrap()), content(memory.recover().unwrap()));
}

#[test]
fn version_6_gets_a_table_of_budgets() {
    let folder = old_file("v6");
    let mut memory = MemoryJournal::new(KEY);
    memory.append(&unparted(Story::whole_steps(5, 40))).unwrap();
    let reader = JournalReader::open(&folder.journal()).unwrap();
    assert_eq!(reader.verify().unwrap().faults, [""; 0], "as it is, by whoever only reads");
    assert!(reader.budgets(None).unwrap().is_empty());
    drop(reader);
    let mut store = open(&folder.journal());
    assert_eq!(content(store.recover().unwrap()), content(memory.recover().unwrap()));
    let more = with_budgets();
    store.append(std::slice::from_ref(&more)).unwrap();
    memory.append(&[more]).unwrap();
    drop(store);
    let mut store = open(&folder.journal());
    let recovered = content(store.recover().unwrap());
    assert!(!recovered.budgets.is_empty());
    assert_eq!(recovered, content(memory.recover().unwrap()));
}

/// The steps in the file of version 7.
fn of_version_7() -> Vec<Step> {
    let mut steps = unparted(Story::whole_steps(1, 60));
    let mut last = with_budgets();
    last.ops.extend(persons().into_iter().map(Op::Addressee));
    steps.push(last);
    steps
}

fn persons() -> [AddresseeRecord; 2] {
    let record = |mailbox: &str, person: Option<&str>| AddresseeRecord {
        mailbox: mailbox.parse().unwrap(),
        person: person.map(|person| person.parse().unwrap()),
    };
    [record("one", Some("ada")), record("two", None)]
}

fn put(number: Number) -> Step {
    let message = MessageRecord {
        number,
        place: number,
        thread: 1,
        id: MessageId::from_uuid(Uuid::from_u128(number.into())),
        from: Name::core(),
        in_reply_to: None,
        answers: Origin::None,
        state: MessageState::Queued,
        body: BodyRecord::Payload("<a></a>".into()),
        attempts: 0,
    };
    Step { ops: vec![Op::Put(message)], ..Step::default() }
}

#[test]
fn version_7_gets_new_sums_and_room_for_epochs() {
    let folder = old_file("v7");
    assert_eq!(faults(&folder.journal()), [""; 0], "as it is, by whoever only reads");
    let letters = |file: &Path| JournalReader::open(file).unwrap().letters().unwrap();
    let before = letters(&folder.journal());
    let mut memory = MemoryJournal::new(KEY);
    memory.append(&of_version_7()).unwrap();
    let mut store = open(&folder.journal());
    let recovered = store.recover().unwrap();
    let last = recovered.messages.iter().map(|message| message.place).max().unwrap();
    assert!(last < numbers_after(recovered.epoch), "{last} is no number of epoch {}", recovered.epoch);
    // The epochs of that version have 48 bits.
    assert_eq!(recovered.epoch, 2 << 9, "the one after its first");
    assert_eq!(open_rows(recovered), open_rows(memory.recover().unwrap()));
    assert!(!before.is_empty());
    assert_eq!(letters(&folder.journal()), before);
    let more = Story::whole_steps(1, 90).split_off(60);
    store.append(&more).unwrap();
    memory.append(&more).unwrap();
    assert_eq!(faults(&folder.journal()), [""; 0]);
    drop(store);
    assert_eq!(open_rows(open(&folder.journal()).recover().unwrap()), open_rows(memory.recover().unwrap()));
}

#[test]
fn version_8_gets_a_table_of_batches() {
    let folder = old_file("v8");
    assert_eq!(faults(&folder.journal()), [""; 0], "as it is, by whoever only reads");
    let mut memory = MemoryJournal::new(KEY);
    let mut steps = Story::whole_steps(1, 60);
    let mut last = with_budgets();
    last.ops.extend(persons().into_iter().map(Op::Addressee));
    steps.push(last);
    memory.append(&steps).unwrap();
    let mut store = open(&folder.journal());
    let recovered = store.recover().unwrap();
    assert_eq!(recovered.epoch, 515, "the one after that of its last number");
    assert_eq!(open_rows(recovered), open_rows(memory.recover().unwrap()));
    let more = Story::whole_steps(1, 90).split_off(60);
    store.append(&more).unwrap();
    memory.append(&more).unwrap();
    assert!(!store.is_fed());
    drop(store);
    assert_eq!(faults(&folder.journal()), [""; 0]);
    assert_eq!(open_rows(open(&folder.journal()).recover().unwrap()), open_rows(memory.recover().unwrap()));
}

/// The file of version 9 is of a process that was killed while three batches were in it.
#[test]
fn the_batches_of_version_9_are_counted() {
    let folder = old_file("v9");
    let mut memory = MemoryJournal::new(KEY);
    let steps = super::batches::steps(3, 78);
    memory.append(&steps[..58]).unwrap();
    let mut store = open(&folder.journal());
    assert_eq!(content(store.recover().unwrap()), content(memory.recover().unwrap()));
    store.append(&steps[58..]).unwrap();
    assert!(!store.is_fed());
    drop(store);
    let count = || {
        let db = Connection::open(folder.journal()).unwrap();
        let sql = "SELECT running >> 1, (SELECT count(*) FROM batch) FROM meta";
        db.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).unwrap()
    };
    assert_eq!(count(), (1, 1));
    assert_eq!(faults(&folder.journal()), [""; 0]);
    assert_eq!(count(), (0, 0));
}

#[test]
fn each_row_of_version_7_is_checked_by_its_old_sum() {
    let text = |sql: &str| -> Vec<String> {
        let folder = old_file("v7");
        let db = Connection::open(folder.journal()).unwrap();
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let (mut refused, mut kept) = (0, 0);
    for table in text("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'meta'") {
        let columns = text(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let has_ends = columns.iter().any(|column| column == "ended");
        for ended in if has_ends { ["ended IS NULL", "ended IS NOT NULL"].as_slice() } else { ["1"].as_slice() } {
            let folder = old_file("v7");
            let db = Connection::open(folder.journal()).unwrap();
            let flip = format!(
                "UPDATE {table} SET sum = (sum | 1) - (sum & 1) \
                 WHERE sum = (SELECT max(sum) FROM {table} WHERE {ended})"
            );
            let changed = db.execute(&flip, []).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            drop(db);
            if changed == 0 {
                continue;
            }
            let damaged = fs::read(folder.journal()).unwrap();
            match SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY)) {
                Err(error) => {
                    assert!(error.to_string().contains("is not as it was written"), "{table}: {error}");
                    assert!(fs::read(folder.journal()).unwrap() == damaged, "{table}: a refused file was changed");
                    refused += 1;
                }
                Ok(mut store) => {
                    store.recover().unwrap();
                    // The rows of `mail` end with those of `mail_status`.
                    assert!(*ended == "ended IS NOT NULL" || table == "mail", "{table} is not looked at");
                    assert!(!faults(&folder.journal()).is_empty(), "{table}: the damage is forgotten");
                    kept += 1;
                }
            }
        }
    }
    assert!(refused > 10 && kept > 5, "{refused} refused, {kept} kept");
}

#[test]
fn a_start_that_gives_more_numbers_than_an_epoch_has_goes_on_in_the_next() {
    // The last number of the first epoch, and the first of the next.
    for (number, next) in [(numbers_after(2) - 1, 2), (numbers_after(2), 3)] {
        let folder = Folder::new();
        let mut memory = MemoryJournal::new(KEY);
        let mut store = open(&folder.journal());
        assert_eq!((store.recover().unwrap().epoch, memory.recover().unwrap().epoch), (1, 1));
        store.append(&[put(number)]).unwrap();
        memory.append(&[put(number)]).unwrap();
        drop(store);
        let recovered = open(&folder.journal()).recover().unwrap();
        assert_eq!(recovered, memory.recover().unwrap());
        assert_eq!(recovered.epoch, next, "behind number {number:x}");
        assert!(numbers_after(recovered.epoch) > number);
    }
}

#[test]
fn the_last_epoch_is_the_last() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    store.append(&[put(numbers_after(LAST_EPOCH))]).unwrap();
    let refusal = store.recover().unwrap_err().to_string();
    assert!(refusal.contains("started too often"), "{refusal}");
    // The last start may outlast its epoch, by far.
    assert!(numbers_after(LAST_EPOCH).checked_add(1 << 47).is_some_and(|last| i64::try_from(last).is_ok()));
}

fn addressees(records: &[AddresseeRecord]) -> Step {
    Step { ops: records.iter().cloned().map(Op::Addressee).collect(), ..Step::default() }
}

#[test]
fn the_addressee_of_a_mailbox_is_kept() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let records = persons();
    store.append(&[addressees(&records), addressees(&records[..1])]).unwrap();
    drop(store);
    assert_eq!(open(&folder.journal()).recover().unwrap().addressees, records);
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, [""; 0]);
}

#[test]
fn rows_that_version_5_has_lost_are_still_missing() {
    let folder = old_file("v5");
    let db = Connection::open(folder.journal()).unwrap();
    assert_eq!(db.execute("DELETE FROM letter WHERE number = (SELECT max(number) FROM letter)", []), Ok(1));
    drop(db);
    let mut store = open(&folder.journal());
    let refusal = store.recover().unwrap_err().to_string();
    assert!(refusal.contains("rows are missing, or come from another time"), "{refusal}");
}

/// Drops the notes of ended messages, which the first version accepted.
pub(crate) fn noted(recovered: Recovered) -> Recovered {
    let mut content = content(recovered);
    content.notes.retain(|note| content.messages.iter().any(|message| message.number == note.message));
    content
}
