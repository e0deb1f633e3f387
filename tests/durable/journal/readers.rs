//! Readers of a running organism's journal: they keep its log from starting over for a moment only, and learn why they
//! end.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use systole::journal::{FileProblem, JournalReader, SqliteJournal};
use systole_core::journal::{BodyRecord, Journal, MessageRecord, Op, Step};

use super::story::{Folder, Story, message_record, open};

/// The size beyond which the log of a running organism is not read any longer.
const PINNED: u64 = 128 << 20;

fn log(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", file.display()))
}

fn length(file: &Path) -> u64 {
    fs::metadata(log(file)).unwrap().len()
}

/// A journal in use, with more rows than are read at once.
fn running(folder: &Folder) -> SqliteJournal {
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    store.write(&Story::whole_steps(5, 200)).unwrap();
    for numbers in (1..10_000).collect::<Vec<u64>>().chunks(500) {
        let put = |number: &u64| Op::Put(message_record((1 << 39) + number, 1, 2));
        let steps: Vec<_> = numbers.iter().map(|number| Step { ops: vec![put(number)], ..Step::default() }).collect();
        store.write(&steps).unwrap();
    }
    store.feed().unwrap();
    store
}

/// Runs a statement beside the writer, as damage does.
fn bypass(file: &Path, sql: &str) {
    assert_eq!(Connection::open(file).unwrap().execute(sql, []).unwrap(), 1, "{sql}");
}

#[test]
fn a_journal_in_use_is_verified_in_pieces_and_damage_is_found() {
    let folder = Folder::new();
    let mut store = running(&folder);
    let file = folder.journal();
    let verified = JournalReader::open(&file).unwrap().verify().unwrap();
    assert_eq!((verified.faults, verified.unchecked), (Vec::new(), false));
    assert!(verified.rows > 10_000, "{} rows", verified.rows);
    bypass(&file, "UPDATE message SET body = body || 'x' WHERE number = 549755823388");
    let verified = JournalReader::open(&file).unwrap().verify().unwrap();
    assert_eq!(verified.faults.len(), 1, "{:?}", verified.faults);
    bypass(&file, "UPDATE message SET body = rtrim(body, 'x') WHERE number = 549755823388");
    bypass(&file, "DELETE FROM message WHERE number = 549755823388");
    let verified = JournalReader::open(&file).unwrap().verify().unwrap();
    assert_eq!(verified.faults, ["rows are missing, or come from another time"]);
    store.close().unwrap();
}

#[test]
fn a_reader_that_is_kept_open_does_not_keep_the_log() {
    let folder = Folder::new();
    let _store = running(&folder);
    let reader = JournalReader::open(&folder.journal()).unwrap();
    reader.open_threads().unwrap();
    reader.letters().unwrap();
    let db = Connection::open(folder.journal()).unwrap();
    let busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
    assert!(!busy, "it reads in a transaction");
}

#[test]
fn a_log_that_another_program_keeps_ends_our_readers_and_starts_over_afterwards() {
    let folder = Folder::new();
    let file = folder.journal();
    let mut store = running(&folder);
    let foreign = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    foreign.execute_batch("BEGIN; SELECT count(*) FROM message").unwrap();
    let mut number = (1 << 39) + 20_000;
    let mut write = |store: &mut SqliteJournal| {
        number += 1;
        let body = BodyRecord::Payload("x".repeat(1 << 20).into());
        let message = MessageRecord { body, ..message_record(number, 1, 2) };
        store.write(&[Step { ops: vec![Op::Put(message), Op::Done { message: number }], ..Step::default() }]).unwrap();
    };
    while length(&file) <= PINNED {
        write(&mut store);
    }
    let reader = JournalReader::open(&file).unwrap();
    match reader.verify() {
        Ok(report) => assert!(report.unchecked && report.faults.is_empty(), "{report:?}"),
        Err(error) => assert!(matches!(error.problem, FileProblem::Outgrown), "{error}"),
    }
    // The organism goes on.
    write(&mut store);
    foreign.execute_batch("COMMIT").unwrap();
    // The writer waits for the thread that writes the log back.
    let mut written = 0;
    while length(&file) > 64 << 20 {
        assert!(written < 300, "the log has {} bytes yet", length(&file));
        write(&mut store);
        written += 1;
    }
    assert_eq!(reader.verify().unwrap().faults, [""; 0]);
}
