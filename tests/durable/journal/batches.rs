//! Batches: steps that are durable before the tables have them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;
use systole::journal::{FileProblem, JournalOptions, JournalReader, SqliteJournal, StoreError};
use systole::journal::{Journal, MemoryJournal, Step};
use systole::vocab::Time;
use systole_core::journal::Op;

use super::story::{
    Dice, Folder, KEY, Story, content, message_record, open, open_keeping_nothing, open_rows, thread_record,
};

/// More steps than a transaction writes to the tables if there is no batch.
const BATCH: usize = 6;

/// Makes steps with all operations that a story has.
pub(crate) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut story = Story::default();
    let mut dice = Dice::new(seed);
    let step = |_| {
        let mut step = story.random_step(&mut dice);
        let pick = |dice: &mut Dice| (dice.below(256) as u8, dice.below(1 << 16) as u16);
        for _ in 0..dice.below(4) {
            let (kind, pick) = pick(&mut dice);
            step.ops.push(story.later(kind, pick));
        }
        for _ in 0..dice.below(3) {
            step.ops.push(story.budget(pick(&mut dice).1));
        }
        step
    };
    (0..count).map(step).collect()
}

/// Reads all rows of all tables.
fn tables(file: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let db = Connection::open(file).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let names: Vec<String> =
        db.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |name: &str| {
        let mut statement = db.prepare(&format!("SELECT * FROM {name} ORDER BY 1, 2, 3")).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|column| row.get(column)).collect();
        statement.query_map([], row).unwrap().map(Result::unwrap).collect()
    };
    names.into_iter().map(|name| (name.clone(), rows(&name))).collect()
}

fn batches(file: &Path) -> u64 {
    JournalReader::open(file).unwrap().stat().unwrap().batches
}

#[test]
fn steps_that_are_fed_together_make_the_rows_of_steps_that_are_fed_alone() {
    let mut batched = 0;
    for seed in 1..=40 {
        let mut dice = Dice::new(seed);
        let (alone, together) = (Folder::new(), Folder::new());
        let (mut one, mut other) = (open(&alone.journal()), open(&together.journal()));
        one.recover().unwrap();
        other.recover().unwrap();
        let steps = steps(seed, 120);
        for step in &steps {
            one.write(std::slice::from_ref(step)).unwrap();
            assert!(one.is_fed());
        }
        let mut rest = steps.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(1 + dice.below(20) as usize));
            other.write(now).unwrap();
            rest = later;
            batched += usize::from(!other.is_fed());
            match dice.below(12) {
                0 => other.feed().unwrap(),
                // A crash. Without batches only a start may go on, which is an epoch.
                1 if !other.is_fed() => {
                    drop(other);
                    other = open(&together.journal());
                    assert!(other.is_fed());
                }
                _ => {}
            }
        }
        other.feed().unwrap();
        for ((name, one), (_, other)) in tables(&alone.journal()).iter().zip(tables(&together.journal())) {
            assert!(*one == other, "{name}, seed {seed}: {one:?} became {other:?}");
        }
        assert_eq!(other.recover().unwrap(), one.recover().unwrap(), "seed {seed}");
    }
    assert!(batched > 200, "{batched} batches: the test looks at nothing");
}

/// Makes a journal of a process that was killed while three batches were in it.
fn killed(folder: &Folder) -> MemoryJournal {
    let mut memory = MemoryJournal::new(KEY);
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let steps = steps(3, 40 + 3 * BATCH);
    store.write(&steps[..40]).unwrap();
    store.feed().unwrap();
    steps[40..].chunks(BATCH).for_each(|steps| store.write(steps).unwrap());
    memory.write(&steps).unwrap();
    assert_eq!(batches(&folder.journal()), 3);
    memory
}

#[test]
fn a_reader_sees_the_tables_of_a_running_organism_and_all_steps_of_a_killed_one() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let threads = || JournalReader::open(&folder.journal()).unwrap().open_threads().unwrap().len();
    let opened: Vec<_> = (0..BATCH as u16).map(|pick| Story::default().step(&[(0, pick)])).collect();
    store.write(&opened).unwrap();
    assert_eq!((batches(&folder.journal()), threads()), (1, 0));
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, [""; 0]);
    store.feed().unwrap();
    let fed = threads();
    assert!(batches(&folder.journal()) == 0 && fed > 0);
    let mut story = Story::default();
    let more: Vec<_> = (0..2 * BATCH).map(|_| story.step(&[(0, 1)])).collect();
    store.write(&more).unwrap();
    drop(store);
    assert!(threads() > fed);
    assert_eq!(batches(&folder.journal()), 0);
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, [""; 0]);
}

#[test]
fn a_start_goes_on_behind_the_last_batch() {
    let folder = Folder::new();
    let mut memory = killed(&folder);
    let mut store = open(&folder.journal());
    assert_eq!(content(store.recover().unwrap()), content(memory.recover().unwrap()));
    let epoch = store.recover().unwrap().epoch;
    let more = steps(9, BATCH);
    store.write(&more).unwrap();
    memory.write(&more).unwrap();
    let recovered = store.recover().unwrap();
    assert!(recovered.epoch > epoch);
    assert_eq!(content(recovered), content(memory.recover().unwrap()));
}

#[test]
fn many_steps_are_fed_without_a_request() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let mut story = Story::default();
    let mut fed = 0;
    for _ in 0..200 {
        let steps: Vec<_> = (0..50).map(|_| story.step(&[(0, 1)])).collect();
        store.write(&steps).unwrap();
        fed += usize::from(store.is_fed());
    }
    assert!((10..30).contains(&fed), "{fed} times");
}

fn refusal(file: &Path) -> String {
    match SqliteJournal::open(file, &JournalOptions::new(KEY)) {
        Err(StoreError { problem: FileProblem::Damaged { what }, .. }) => what,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn damage_of_a_batch_is_found_before_anything_is_written() {
    let folder = Folder::new();
    killed(&folder);
    let whole = fs::read(folder.journal()).unwrap();
    let damage = |sql: &str| {
        fs::write(folder.journal(), &whole).unwrap();
        let db = Connection::open(folder.journal()).unwrap();
        assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(db);
        let damaged = fs::read(folder.journal()).unwrap();
        let why = refusal(&folder.journal());
        assert_eq!(fs::read(folder.journal()).unwrap(), damaged, "left as it was after {sql}");
        let read = JournalReader::open(&folder.journal()).map(drop).unwrap_err();
        assert!(matches!(read.problem, FileProblem::Damaged { .. }), "{read}");
        why
    };
    let missing = "batches of steps are missing, or come from another time";
    for number in 1..=3 {
        assert_eq!(damage(&format!("DELETE FROM batch WHERE number = {number}")), missing);
        for column in ["total", "sum", "at"] {
            let flip = format!("UPDATE batch SET {column} = ({column} | 1) - ({column} & 1) WHERE number = {number}");
            assert_eq!(damage(&flip), format!("batch {number} is not as it was written"));
        }
        let bytes: usize = {
            fs::write(folder.journal(), &whole).unwrap();
            let db = Connection::open(folder.journal()).unwrap();
            let sql = "SELECT length(steps) FROM batch WHERE number = ?1";
            db.query_row(sql, [number], |row| row.get::<_, i64>(0)).unwrap() as usize
        };
        for place in (1..=bytes).step_by(bytes / 9) {
            let flip = format!(
                "UPDATE batch SET steps = CAST(substr(steps, 1, {place} - 1) || \
                 iif(substr(steps, {place}, 1) = x'00', x'01', x'00') || substr(steps, {place} + 1) AS BLOB) \
                 WHERE number = {number}"
            );
            assert_eq!(damage(&flip), format!("batch {number} is not as it was written"));
        }
    }
    assert_eq!(damage("DELETE FROM batch"), missing);
}

#[test]
fn a_batch_of_another_time_is_found() {
    let folder = Folder::new();
    killed(&folder);
    let other = Folder::new();
    let mut store = open(&other.journal());
    store.recover().unwrap();
    steps(4, 3 * BATCH).chunks(BATCH).for_each(|steps| store.write(steps).unwrap());
    drop(store);
    let db = Connection::open(folder.journal()).unwrap();
    db.execute("ATTACH ?1 AS other", [other.journal().to_str().unwrap()]).unwrap();
    db.execute("REPLACE INTO batch SELECT * FROM other.batch WHERE number = 2", []).unwrap();
    drop(db);
    assert_eq!(refusal(&folder.journal()), "batches of steps are missing, or come from another time");
}

/// The tables whose rows wait in memory until a feed writes them.
const PENDING: [&str; 8] = ["thread", "budget", "message", "fan", "settled", "note", "remembered", "egress"];

/// Reads the rows of a table, without the times at which they came and their sums: a row that comes again has the time
/// of the row before it only while that one is there.
fn rows(file: &Path, table: &str, condition: &str) -> Vec<Vec<Value>> {
    let db = Connection::open(file).unwrap();
    let sql = "SELECT group_concat(name) FROM pragma_table_info(?1) WHERE name NOT IN ('at', 'sum')";
    let columns: String = db.query_row(sql, [table], |row| row.get(0)).unwrap();
    let mut statement = db.prepare(&format!("SELECT {columns} FROM {table} {condition} ORDER BY 1, 2, 3")).unwrap();
    let count = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| (0..count).map(|column| row.get(column)).collect();
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// The greatest time at which a row ended that the table still has.
fn last_end(file: &Path, table: &str) -> Option<i64> {
    let db = Connection::open(file).unwrap();
    db.query_row(&format!("SELECT max(ended) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_feed_leaves_out_the_rows_that_the_next_sweep_would_delete() {
    let mut left_out = 0;
    for seed in 1..=40 {
        let mut dice = Dice::new(seed);
        let (whole, short) = (Folder::new(), Folder::new());
        let (mut all, mut some) = (open(&whole.journal()), open_keeping_nothing(&short.journal()));
        all.recover().unwrap();
        some.recover().unwrap();
        let mut story = Story::default();
        let mut steps: Vec<_> = (0..120).map(|_| story.random_step(&mut dice)).collect();
        // A message that has ended does not come again: rows that refer to it would be left behind.
        let mut came = HashSet::new();
        for step in &mut steps {
            step.ops.retain(|op| !matches!(op, Op::Put(message) if !came.insert(message.number)));
            step.ops.extend((0..dice.below(3)).map(|pick| story.budget(pick as u16)));
        }
        let mut rest = steps.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(1 + dice.below(20) as usize));
            all.write(now).unwrap();
            some.write(now).unwrap();
            rest = later;
            match dice.below(6) {
                0 => {
                    all.feed().unwrap();
                    some.feed().unwrap();
                }
                // A crash: the start feeds the tables.
                1 if !some.is_fed() => {
                    drop((all, some));
                    (all, some) = (open(&whole.journal()), open_keeping_nothing(&short.journal()));
                }
                _ => {}
            }
        }
        all.feed().unwrap();
        while some.tidy(Time::from_nanos(1 << 60)).unwrap() {}
        for table in PENDING {
            let (open, found) =
                (rows(&whole.journal(), table, "WHERE ended IS NULL"), rows(&short.journal(), table, ""));
            assert!(found == open, "{table}, seed {seed}: {} rows instead of {}", found.len(), open.len());
            left_out += rows(&whole.journal(), table, "").len() - open.len();
        }
        // A fork at an earlier time is refused, as after a sweep.
        let ends = PENDING.iter().filter_map(|table| last_end(&whole.journal(), table)).max();
        assert!(last_end(&short.journal(), "horizon") >= ends, "seed {seed}");
        assert_eq!(JournalReader::open(&short.journal()).unwrap().verify().unwrap().faults, [""; 0]);
        assert_eq!(open_rows(some.recover().unwrap()), open_rows(all.recover().unwrap()), "seed {seed}");
    }
    assert!(left_out > 1000, "{left_out} rows: the test looks at nothing");
}

#[test]
fn rows_that_are_not_kept_are_not_written() {
    let written = |open: fn(&Path) -> SqliteJournal| {
        let folder = Folder::new();
        let mut store = open(&folder.journal());
        store.recover().unwrap();
        let step = |conversation: u64| {
            let number = (1 << 39) + conversation * 4;
            let ops = vec![
                Op::Open(thread_record(number, number, 0)),
                Op::Put(message_record(number + 1, number, 1)),
                Op::Close { thread: number },
            ];
            Step { ops, at: Time::from_nanos(conversation) }
        };
        let steps: Vec<_> = (1..=1000).map(step).collect();
        steps.chunks(100).for_each(|steps| store.write(steps).unwrap());
        store.feed().unwrap();
        let threads = rows(&folder.journal(), "thread", "").len();
        (threads, fs::metadata(folder.path().join("organism.journal-wal")).unwrap().len())
    };
    let ((all, whole), (some, short)) = (written(open), written(open_keeping_nothing));
    assert_eq!((all, some), (1000, 1), "those of the last step are due with the next");
    assert!(3 * short < 2 * whole, "{short} bytes of log, {whole} with all rows");
}
