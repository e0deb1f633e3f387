//! Files of journals: opening, refusals and retention.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use systole::journal::{Durability, FileProblem, JournalOptions, JournalReader, Retention, SqliteJournal};
use systole::runtime::{Organism, StartError, block_on};
use systole::vocab::Time;
use systole_core::journal::{Journal, JournalErrorKind, MemoryJournal, Op, Step, ThreadRecord};

use super::story::{Folder, KEY, Story, content, message_record, open, open_rows, thread_record};

fn refusal(file: &Path) -> String {
    SqliteJournal::open(file, &JournalOptions::new(KEY)).unwrap_err().to_string()
}

#[test]
fn the_secret_is_made_once_and_starts_are_counted() {
    let folder = Folder::new();
    let first = open(&folder.journal()).recover().unwrap();
    assert_eq!((first.key, first.epoch, first.crashed), (KEY, 1, false));
    let mut second = SqliteJournal::open(&folder.journal(), &JournalOptions::new([9; 32])).unwrap();
    let recovered = second.recover().unwrap();
    assert_eq!((recovered.key, recovered.epoch, recovered.crashed), (KEY, 2, true));
    second.close().unwrap();
    drop(second);
    let third = open(&folder.journal()).recover().unwrap();
    assert_eq!((third.epoch, third.crashed), (3, false));
}

#[test]
fn an_empty_file_becomes_a_journal_and_a_missing_folder_does_not() {
    let folder = Folder::new();
    fs::write(folder.journal(), "").unwrap();
    assert_eq!(open(&folder.journal()).recover().unwrap().epoch, 1);
    let refusal = refusal(&folder.path().join("no-such/organism.journal"));
    assert!(refusal.contains("no-such/organism.journal: No such file or directory"), "{refusal}");
}

#[test]
fn what_is_no_journal_is_refused_and_left_as_it_was() {
    let folder = Folder::new();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "what I wanted to write down ".repeat(1000)).unwrap();
    let other = folder.path().join("other.sqlite");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE thread (number INTEGER)").unwrap();
    for file in [text, other] {
        let before = fs::read(&file).unwrap();
        let refusal = refusal(&file);
        assert!(refusal.contains("this is no journal, and was left as it is"), "{refusal}");
        assert!(refusal.contains(file.to_str().unwrap()), "{refusal}");
        assert_eq!(fs::read(&file).unwrap(), before);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
}

#[test]
fn a_journal_of_another_version_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    drop(open(&folder.journal()));
    for (version, advice) in [(99, "use the later systole"), (11, "with the systole that wrote it")] {
        Connection::open(folder.journal()).unwrap().pragma_update(None, "user_version", version).unwrap();
        let before = fs::read(folder.journal()).unwrap();
        let reading = JournalReader::open(&folder.journal()).unwrap_err().to_string();
        for refusal in [refusal(&folder.journal()), reading] {
            assert!(refusal.contains(&format!("its version is {version}")) && refusal.contains(advice), "{refusal}");
        }
        assert_eq!(fs::read(folder.journal()).unwrap(), before);
    }
}

#[test]
fn tables_of_the_same_name_are_not_enough() {
    let folder = Folder::new();
    drop(open(&folder.journal()));
    let change = "ALTER TABLE letter ADD COLUMN more TEXT";
    Connection::open(folder.journal()).unwrap().execute_batch(change).unwrap();
    assert!(refusal(&folder.journal()).contains("its tables and indexes are not those of a journal"));
}

#[test]
fn one_writes_and_others_may_read() {
    let folder = Folder::new();
    let mut first = open(&folder.journal());
    first.recover().unwrap();
    let second = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY)).unwrap_err();
    let own = std::process::id();
    assert!(matches!(second.problem, FileProblem::InUse { holder: Some(id) } if id == own), "{second}");
    assert!(second.to_string().contains("end that first"), "{second}");
    first.write(&Story::steps(3, 20)).unwrap();
    first.feed().unwrap();
    let reader = Connection::open(folder.journal()).unwrap();
    let threads: i64 = reader.query_row("SELECT count(*) FROM thread", [], |row| row.get(0)).unwrap();
    assert!(threads > 0);
    drop(first);
    open(&folder.journal());
}

#[test]
fn no_other_name_leads_around_the_lock() {
    let folder = Folder::new();
    let first = open(&folder.journal());
    let link = folder.path().join("link.journal");
    symlink(folder.journal(), &link).unwrap();
    let current = folder.path().join("current");
    symlink(folder.path(), &current).unwrap();
    for name in [&link, &current.join("organism.journal"), &current.join("link.journal")] {
        let second = SqliteJournal::open(name, &JournalOptions::new(KEY)).unwrap_err();
        assert!(matches!(second.problem, FileProblem::InUse { .. }), "{second}");
    }
    let stat = JournalReader::open(&link).unwrap().stat().unwrap();
    assert_eq!((stat.in_use, stat.writer), (true, Some(std::process::id())));
    drop(first);
    // A path through the link opens the same journal, with its log beside the file and not beside the link.
    let mut again = open(&link);
    assert_eq!(again.recover().unwrap().epoch, 1);
    assert!(folder.path().join("organism.journal-wal").exists() && !folder.path().join("link.journal-wal").exists());
    drop(again);
    let second = folder.path().join("second.journal");
    fs::hard_link(folder.journal(), &second).unwrap();
    for name in [folder.journal(), second.clone()] {
        let before = fs::read(&name).unwrap();
        let refused = SqliteJournal::open(&name, &JournalOptions::new(KEY)).unwrap_err();
        assert!(matches!(refused.problem, FileProblem::Linked { links: 2 }), "{refused}");
        assert!(JournalReader::open(&name).is_err());
        assert_eq!(fs::read(&name).unwrap(), before);
    }
    fs::remove_file(second).unwrap();
    open(&folder.journal());
}

#[test]
fn nothing_beside_a_journal_that_is_deleted_lets_another_writer_in() {
    let folder = Folder::new();
    let mut first = open(&folder.journal());
    first.recover().unwrap();
    for found in fs::read_dir(folder.path()).unwrap() {
        let name = found.unwrap().file_name().into_string().unwrap();
        assert!(["organism.journal", "organism.journal-wal", "organism.journal-shm"].contains(&&*name), "{name}");
    }
    let second = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY)).unwrap_err();
    assert!(matches!(second.problem, FileProblem::InUse { .. }), "{second}");
    // Deleting the file itself ends the writer: later writes would be lost.
    fs::remove_file(folder.journal()).unwrap();
    let refused = refusal(&folder.journal());
    assert!(refused.contains("its log is there") && refused.contains("without the file itself"), "{refused}");
    assert!(!folder.journal().exists(), "nothing is made");
    let error = first.write(&Story::steps(3, 20)).unwrap_err().to_string();
    assert!(error.contains("it was deleted, moved or replaced while it was in use"), "{error}");
}

#[test]
fn a_file_or_a_log_that_is_truncated_ends_the_writer() {
    // Also one byte of the last transaction.
    for (ending, rest) in [("", 0), ("", 4096), ("-wal", 0), ("-wal", 32), ("-wal", u64::MAX)] {
        for idle in [false, true] {
            let folder = Folder::new();
            let mut store = open(&folder.journal());
            store.recover().unwrap();
            store.write(&Story::steps(9, 10)).unwrap();
            store.feed().unwrap();
            let file = folder.path().join(format!("organism.journal{ending}"));
            let rest = rest.min(fs::metadata(&file).unwrap().len() - 1);
            fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(rest).unwrap();
            let ended = if idle { store.tidy(Time::default()).map(drop) } else { store.write(&[Step::default()]) };
            let error = ended.unwrap_err();
            assert_eq!(error.kind(), JournalErrorKind::Moved, "{error}");
            assert!(error.to_string().contains("was truncated while it was in use"), "{error}");
            store.write(&[]).unwrap_err();
        }
    }
}

#[test]
fn a_reader_in_a_transaction_keeps_nobody_from_starting() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    store.write(&Story::steps(9, 10)).unwrap();
    let reader = Connection::open_with_flags(folder.journal(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM thread").unwrap();
    drop(store);
    let mut store = open(&folder.journal());
    assert!(store.recover().unwrap().crashed);
    store.write(&Story::steps(9, 14)[10..]).unwrap();
    drop(store);
    drop(reader);
    assert_eq!(JournalReader::open(&folder.journal()).unwrap().verify().unwrap().faults, [""; 0]);
}

#[test]
fn a_log_or_an_index_that_is_deleted_ends_the_writer_and_loses_nothing() {
    let steps = Story::steps(9, 20);
    let (before, after) = steps.split_at(10);
    for ending in ["-wal", "-shm"] {
        for idle in [false, true] {
            let folder = Folder::new();
            let mut store = open(&folder.journal());
            store.recover().unwrap();
            store.write(before).unwrap();
            let companion = folder.path().join(format!("organism.journal{ending}"));
            fs::remove_file(&companion).unwrap();
            let error = match idle {
                true => store.tidy(Time::default()).unwrap_err(),
                false => store.write(after).unwrap_err(),
            };
            let error = error.to_string();
            assert!(error.contains(ending) && error.contains("was deleted, moved or replaced"), "{error}");
            store.write(&[]).unwrap_err();
            // A killed process closes nothing.
            std::mem::forget(store);
            let copy = Folder::new();
            for found in fs::read_dir(folder.path()).unwrap() {
                let file = found.unwrap().path();
                fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
            }
            let mut store = open(&copy.journal());
            let expected = {
                let folder = Folder::new();
                let mut store = open(&folder.journal());
                store.recover().unwrap();
                store.write(before).unwrap();
                store.recover().unwrap()
            };
            let recovered = store.recover().unwrap();
            assert_eq!(content(recovered), content(expected), "without {ending}, idle: {idle}");
        }
    }
}

#[test]
fn what_is_no_file_is_refused_and_nothing_is_made() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    let _socket = UnixListener::bind(path("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    symlink("nowhere", path("dangling")).unwrap();
    symlink("/dev/null", path("null")).unwrap();
    let before = fs::read_dir(folder.path()).unwrap().count();
    for (name, what) in [
        ("folder", "a folder is there"),
        ("socket", "a socket is there"),
        ("fifo", "a FIFO is there"),
        ("dangling", "a link to nowhere is there, but its target is missing"),
        ("null", "a device is there"),
    ] {
        let refused = refusal(&path(name));
        assert!(refused.contains(what), "{refused}");
        assert!(JournalReader::open(&path(name)).is_err());
    }
    assert!(refusal(Path::new("/dev/null")).contains("a device is there"));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before, "nothing is made");
}

#[test]
fn a_journal_and_all_beside_it_is_for_its_owner_alone() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let mut names = 0;
    for found in fs::read_dir(folder.path()).unwrap() {
        let found = found.unwrap();
        assert_eq!(found.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", found.file_name());
        names += 1;
    }
    assert_eq!(names, 3, "the journal, its log and the index of that");
}

#[test]
fn after_an_error_nothing_more_is_taken() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let steps = Story::steps(3, 20);
    store.write(&steps[..10]).unwrap();
    // A program that bypasses the lock can't be kept out.
    let other = Connection::open(folder.journal()).unwrap();
    other.execute_batch("DROP TABLE note; DROP TABLE message").unwrap();
    let error = store.write(&steps[10..]).and_then(|()| store.feed()).unwrap_err().to_string();
    assert!(error.contains("no such table: "), "{error}");
    let error = store.write(&[]).unwrap_err().to_string();
    assert!(error.contains("it failed before, and takes nothing more"), "{error}");
}

/// Fills a journal with conversations that come and go, for some hours.
fn busy(store: &mut SqliteJournal, hours: std::ops::Range<u64>) {
    for hour in hours {
        let mut steps = Story::steps(hour, 64);
        for (minute, step) in (0..).zip(&mut steps) {
            step.at = Time::from_nanos((hour * 3600 + minute * 50) * 1_000_000_000);
        }
        store.write(&steps).unwrap();
        store.feed().unwrap();
    }
}

fn ended(file: &Path) -> (i64, i64) {
    let db = Connection::open(file).unwrap();
    let sql = "SELECT count(*), coalesce(min(ended), 0) FROM message WHERE ended IS NOT NULL";
    db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

#[test]
fn what_is_over_goes_after_its_time_and_the_rest_stays() {
    let folder = Folder::new();
    let age = Duration::from_secs(10 * 3600);
    let retention = Retention::default().age(age);
    let mut store = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY).retention(retention)).unwrap();
    let mut forever = MemoryJournal::new(KEY);
    store.recover().unwrap();
    busy(&mut store, 0..40);
    for hour in 0..40 {
        forever.write(&Story::steps(hour, 64)).unwrap();
    }
    let (count, oldest) = ended(&folder.journal());
    assert!(count > 10, "{count} are kept");
    assert!(oldest >= 29 * 3600 * 1_000_000_000, "the oldest ended at {oldest}");
    drop(store);
    assert_eq!(open_rows(open(&folder.journal()).recover().unwrap()), open_rows(forever.recover().unwrap()));
}

#[test]
fn what_has_had_its_time_goes_while_nothing_happens() {
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    busy(&mut store, 0..167);
    let before = ended(&folder.journal()).0;
    assert!(before > 20, "{before} are kept");
    drop(store);
    // A year later those hours are long past.
    let mut store = open(&folder.journal());
    let open = open_rows(store.recover().unwrap());
    const HOUR: u64 = 3_600_000_000_000;
    let now = Time::from_nanos(365 * 24 * HOUR);
    while store.tidy(now).unwrap() {}
    assert_eq!(ended(&folder.journal()).0, before, "the date may be wrong");
    while store.tidy(Time::from_nanos(365 * 24 * HOUR + HOUR)).unwrap() {}
    assert_eq!(ended(&folder.journal()).0, 0);
    store.close().unwrap();
    drop(store);
    assert_eq!(open_rows(super::story::open(&folder.journal()).recover().unwrap()), open, "what is not over stays");
}

#[test]
fn a_start_with_a_wrong_date_deletes_nothing() {
    const HOUR: u64 = 3_600_000_000_000;
    let folder = Folder::new();
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    busy(&mut store, 0..40);
    let before = ended(&folder.journal()).0;
    assert!(before > 10, "{before} are kept");
    drop(store);
    // The clock is a year ahead, and steps are written by it, until it is corrected.
    let wrong = |hours: u64| Time::from_nanos((365 * 24 + hours) * HOUR);
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    assert!(!store.tidy(wrong(0)).unwrap());
    let late = |at| Step { at, ..Step::default() };
    store.write(&vec![late(wrong(0)); 300]).unwrap();
    store.feed().unwrap();
    // Nor does another start by the same clock, which is no further ahead of the last step.
    for again in 1..3 {
        drop(store);
        store = open(&folder.journal());
        store.recover().unwrap();
        assert!(!store.tidy(wrong(again)).unwrap());
        store.write(&vec![late(wrong(again)); 300]).unwrap();
        store.feed().unwrap();
    }
    for restarts in [true, false] {
        let right = Time::from_nanos(42 * HOUR);
        assert!(!store.tidy(right).unwrap());
        store.write(&vec![late(right); 300]).unwrap();
        store.feed().unwrap();
        assert!(!store.tidy(Time::from_nanos(50 * HOUR)).unwrap());
        if restarts {
            drop(store);
            store = open(&folder.journal());
            store.recover().unwrap();
        }
    }
    assert_eq!(ended(&folder.journal()).0, before);
}

#[test]
fn the_rows_of_a_conversation_go_together_where_the_file_is_too_large() {
    let folder = Folder::new();
    let retention = Retention::default().bytes(1 << 20);
    let mut store = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY).retention(retention)).unwrap();
    store.recover().unwrap();
    // Three threads and a message for each conversation.
    for conversation in 1..12_000 {
        let numbers = [1, 2, 3].map(|thread| (1 << 39) + conversation * 4 + thread);
        let thread = |number| ThreadRecord { root: numbers[0], ..thread_record(number, numbers[0], 1) };
        let message = message_record(numbers[0] + 3, numbers[2], 1);
        let opens = numbers.map(|number| Op::Open(thread(number)));
        let closes = numbers.map(|thread| Op::Close { thread });
        let ops = opens.into_iter().chain([Op::Put(message)]).chain(closes).collect();
        store.write(&[Step { ops, at: Time::from_nanos(conversation) }]).unwrap();
    }
    let db = Connection::open(folder.journal()).unwrap();
    let kept = |table: &str| -> (i64, i64) {
        let sql = format!("SELECT count(*), coalesce(min(ended), 0) FROM {table} WHERE ended IS NOT NULL");
        db.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let ((threads, oldest_thread), (messages, oldest_message)) = (kept("thread"), kept("message"));
    assert!(messages > 100 && threads.abs_diff(3 * messages) <= 3, "{threads} threads, {messages} messages are kept");
    assert!(oldest_thread > 1 && oldest_message.abs_diff(oldest_thread) <= 1, "{oldest_thread}, {oldest_message}");
}

#[test]
fn the_oldest_goes_where_the_file_would_grow_too_large() {
    let folder = Folder::new();
    let retention = Retention::default().bytes(1);
    let mut store = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY).retention(retention)).unwrap();
    store.recover().unwrap();
    busy(&mut store, 0..40);
    assert_eq!(ended(&folder.journal()), (0, 0));
    let before = fs::metadata(folder.journal()).unwrap().len();
    let close = |thread| Step { ops: vec![Op::Close { thread }], at: Time::from_nanos(1) };
    let recovered = store.recover().unwrap();
    let steps: Vec<_> = recovered.threads.iter().map(|thread| close(thread.number)).collect();
    steps.chunks(64).for_each(|steps| store.write(steps).unwrap());
    busy(&mut store, 40..60);
    assert!(fs::metadata(folder.journal()).unwrap().len() < before + (1 << 20), "the room of what went is used again");
}

#[test]
fn a_journal_belongs_to_the_organism_of_its_first_start() {
    let folder = Folder::new();
    let file = folder.journal();
    let start = |name: &str, file: &Path| {
        let organism = Organism::builder(name).durable(file, Durability::Process).start()?;
        block_on(organism.drain(Duration::ZERO));
        Ok::<_, StartError>(())
    };
    let owner = || JournalReader::open(&file).unwrap().owner().unwrap();
    let in_order = || assert_eq!(JournalReader::open(&file).unwrap().verify().unwrap().faults, [""; 0]);
    // A journal that no organism has started with belongs to none, and can't be renamed.
    drop(open(&file));
    assert_eq!(owner(), None);
    assert_eq!(open(&file).rename("payroll").unwrap(), None);
    start("payroll", &file).unwrap();
    let first = owner().unwrap();
    assert_eq!(first.organism, "payroll");
    start("payroll", &file).unwrap();
    assert_eq!(owner().as_ref(), Some(&first), "the same at each start");
    in_order();
    let before = fs::read(&file).unwrap();
    let refused = start("guestbook", &file).unwrap_err().to_string();
    for part in ["'payroll'", "'guestbook'", "journal rename guestbook"] {
        assert!(refused.contains(part), "no {part} in {refused}");
    }
    assert!(fs::read(&file).unwrap() == before, "it was left as it was");
    assert_eq!(open(&file).rename("guestbook").unwrap(), Some(first.clone()));
    in_order();
    let renamed = owner().unwrap();
    assert_eq!((renamed.organism.as_str(), renamed.id), ("guestbook", first.id));
    start("guestbook", &file).unwrap();
    start("payroll", &file).unwrap_err();
    // Another journal has another id.
    let other = folder.path().join("other.journal");
    start("payroll", &other).unwrap();
    assert_ne!(JournalReader::open(&other).unwrap().owner().unwrap().unwrap().id, first.id);
    // A changed name is damage, as any changed row.
    Connection::open(&file).unwrap().execute("UPDATE organism SET name = 'payroll'", []).unwrap();
    let damaged = start("payroll", &file).unwrap_err().to_string();
    assert!(damaged.contains("organism 1 is not as it was written"), "{damaged}");
}
