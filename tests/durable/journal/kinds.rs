//! Kinds of journal errors, as a caller meets them.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use systole::journal::{Durability, JournalOptions, SqliteJournal};
use systole::journal::{Journal, JournalError, JournalErrorKind};
use systole::runtime::{Organism, StartError};

use super::story::{Folder, KEY, Story, open};

fn kind_of_open(file: &Path) -> JournalErrorKind {
    let refused = SqliteJournal::open(file, &JournalOptions::new(KEY)).unwrap_err();
    JournalError::from(refused).kind()
}

#[test]
fn an_open_names_its_refusal() {
    let folder = Folder::new();
    let file = folder.journal();
    let first = open(&file);
    assert_eq!(kind_of_open(&file), JournalErrorKind::InUse);
    drop(first);
    for version in [99, 11] {
        Connection::open(&file).unwrap().pragma_update(None, "user_version", version).unwrap();
        assert_eq!(kind_of_open(&file), JournalErrorKind::Version);
    }
    fs::write(&file, "notes ".repeat(1000)).unwrap();
    assert_eq!(kind_of_open(&file), JournalErrorKind::Unusable);
    assert_eq!(kind_of_open(&folder.path().join("no-such/organism.journal")), JournalErrorKind::Other);
}

#[test]
fn a_start_has_the_kind_of_its_journal() {
    let folder = Folder::new();
    let _first = open(&folder.journal());
    let started = Organism::builder("theatre").durable(folder.journal(), Durability::Process).start();
    assert!(matches!(started, Err(StartError::Journal(error)) if error.kind() == JournalErrorKind::InUse));
}

#[test]
fn a_row_that_is_missing_is_damage() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    store.write(&Story::steps(3, 20)).unwrap();
    store.feed().unwrap();
    drop(store);
    let db = Connection::open(folder.journal()).unwrap();
    db.execute_batch("DELETE FROM letter WHERE number = (SELECT max(number) FROM letter)").unwrap();
    drop(db);
    assert_eq!(open(&folder.journal()).recover().unwrap_err().kind(), JournalErrorKind::Damaged);
}

#[test]
fn a_file_that_goes_away_ends_the_writer() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    fs::remove_file(folder.journal()).unwrap();
    let mut append = || store.write(&Story::steps(3, 20)).unwrap_err().kind();
    assert_eq!([append(), append()], [JournalErrorKind::Moved, JournalErrorKind::Closed]);
}
