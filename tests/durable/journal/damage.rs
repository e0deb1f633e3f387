//! Damaged files: opening fails or returns the written state; it never returns another one, and never panics.

use std::fs;
use std::path::{Path, PathBuf};

use systole::journal::{Durability, FileProblem, JournalOptions, JournalReader, SqliteJournal};
use systole::journal::{Journal, MemoryJournal, Recovered, Step};

use super::story::{Dice, Folder, KEY, Story, content, open};

const STEPS: usize = 60;

/// Makes a journal that ended in order; returns its bytes and its contents.
fn ended(folder: &Folder) -> (Vec<u8>, MemoryJournal) {
    let mut memory = MemoryJournal::new(KEY);
    let mut store = open(&folder.journal());
    store.recover().unwrap();
    let steps = Story::whole_steps(1, STEPS);
    for steps in steps.chunks(3) {
        store.write(steps).unwrap();
    }
    memory.write(&steps).unwrap();
    store.close().unwrap();
    drop(store);
    assert!(!beside(&folder.journal(), "-wal").exists(), "the log is written back when all is over");
    (fs::read(folder.journal()).unwrap(), memory)
}

/// Opens and recovers a file; `None` if it is refused.
fn read(file: &Path) -> Option<(SqliteJournal, Recovered)> {
    let mut store = SqliteJournal::open(file, &JournalOptions::new([0; 32])).ok()?;
    let recovered = store.recover().ok()?;
    Some((store, content(recovered)))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", file.display()))
}

/// Checks that a damaged file is refused, or works as if it were intact.
fn goes_on(file: &Path, what: &str, memory: &MemoryJournal, more: &[Step]) -> bool {
    let mut memory = memory.clone();
    let Some((mut store, recovered)) = read(file) else { return false };
    assert_eq!(recovered, content(memory.recover().unwrap()), "{what}");
    match store.write(more) {
        // Rows of an ended message of a mailbox are only checked when the message comes back.
        Err(error) if error.to_string().contains(": damaged: mail ") => return false,
        written => written.unwrap(),
    }
    memory.write(more).unwrap();
    drop(store);
    let (_store, recovered) = read(file).unwrap_or_else(|| panic!("{what}: refused only after it was written"));
    assert_eq!(recovered, content(memory.recover().unwrap()), "{what}, written");
    true
}

#[test]
fn a_flipped_bit_is_found_or_changes_nothing() {
    let folder = Folder::new();
    let (bytes, memory) = ended(&folder);
    let more = Story::whole_steps(1, STEPS + 20).split_off(STEPS);
    let copy = folder.path().join("flipped.journal");
    let mut dice = Dice::new(5);
    let flips = std::env::var("SYSTOLE_FLIPS").map_or(300, |flips| flips.parse().unwrap());
    let everywhere = (0..flips).map(|_| dice.below(bytes.len() as u64 * 8));
    let bits: Vec<u64> = (0..800).step_by(3).chain(everywhere).collect();
    let mut taken = 0;
    for bit in &bits {
        let mut flipped = bytes.clone();
        flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(&copy, flipped).unwrap();
        taken += usize::from(goes_on(&copy, &format!("bit {bit}"), &memory, &more));
        forget(&copy);
    }
    let refused = bits.len() - taken;
    assert!(refused > 100 && taken > 100, "{refused} refused, {taken} taken: the test looks at nothing");
}

#[cfg(feature = "gateway")]
#[test]
fn a_flipped_bit_of_any_column_of_any_table_is_found() {
    use rusqlite::Connection;
    use systole::gateway::PrincipalKind;
    use systole::journal::Principals;
    use systole::vocab::{Name, ThreadId, Time};
    use systole_core::journal::{ActRecord, Op};

    let folder = Folder::new();
    drop(ended(&folder));
    let mut journal = SqliteJournal::open(&folder.journal(), &JournalOptions::new(KEY)).unwrap();
    let (act, error) = ("retry".into(), Some("it has ended".into()));
    let opened = Some(ThreadId::from_uuid(uuid::Uuid::from_u128(7)));
    let act = Op::Acted(ActRecord { by: Name::system(), act, of: "it".into(), error, opened });
    journal.write(&[Step { ops: vec![act], at: Time::from_nanos(1) }]).unwrap();
    journal.close().unwrap();
    drop(journal);
    let mut principals = Principals::open(&folder.journal(), &JournalOptions::new(KEY)).unwrap();
    principals.admit("somebody".parse().unwrap(), PrincipalKind::Client, Time::from_nanos(1)).unwrap();
    drop(principals);
    let copy = folder.path().join("flipped.journal");
    let text = |sql: &str| -> Vec<String> {
        let db = Connection::open(folder.journal()).unwrap();
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut found = Vec::new();
    for table in text("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        for column in text(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            fs::copy(folder.journal(), &copy).unwrap();
            let db = Connection::open(&copy).unwrap();
            let key = text(&format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0")).join(", ");
            // The lowest bit of a number, or the last byte of a text or blob.
            let flip = format!(
                "UPDATE OR IGNORE {table} SET {column} = CASE typeof({column})
                     WHEN 'integer' THEN ({column} | 1) - ({column} & 1)
                     WHEN 'blob' THEN CAST(substr({column}, 1, length({column}) - 1)
                         || iif(substr({column}, -1) = x'00', x'01', x'00') AS BLOB)
                     ELSE substr({column}, 1, length({column}) - 1) || '~' END
                 WHERE ({key}) IN (SELECT {key} FROM {table} WHERE length({column}) > 0 LIMIT 1)"
            );
            let changed = db.execute(&flip, []).unwrap();
            drop(db);
            if changed > 0 {
                let verdict = JournalReader::open(&copy).and_then(|reader| reader.verify());
                assert!(verdict.is_err() || !verdict.unwrap().faults.is_empty(), "{table}.{column} is not looked at");
                found.push(format!("{table}.{column}"));
            }
            forget(&copy);
        }
    }
    assert!(found.len() > 100, "{} columns: {found:?}", found.len());
    for column in
        ["act.about", "message.ending", "thread.ended", "mail.at", "submission.ended", "principal.at", "meta.at"]
    {
        assert!(found.iter().any(|one| one == column), "no row has a {column}");
    }
}

#[test]
fn overwritten_pages_are_found() {
    let folder = Folder::new();
    let (bytes, memory) = ended(&folder);
    let copy = folder.path().join("overwritten.journal");
    let pages = bytes.len() / 4096;
    for page in 0..pages {
        for other in [None, Some((page + 1) % pages), Some((page + 5) % pages)] {
            let mut damaged = bytes.clone();
            match other {
                None => damaged[page * 4096..][..4096].fill(0),
                Some(other) => damaged.copy_within(other * 4096..(other + 1) * 4096, page * 4096),
            }
            if damaged == bytes {
                continue;
            }
            fs::write(&copy, damaged).unwrap();
            goes_on(&copy, &format!("page {page} is {other:?}"), &memory, &[]);
            forget(&copy);
        }
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let folder = Folder::new();
    let (bytes, _) = ended(&folder);
    let copy = folder.path().join("short.journal");
    for len in (1..bytes.len()).step_by(509).chain((4096..bytes.len()).step_by(4096)) {
        if bytes[len..].iter().all(|byte| *byte == 0) {
            // The end of a page that is nearly empty: SQLite reads missing bytes as zeros.
            continue;
        }
        fs::write(&copy, &bytes[..len]).unwrap();
        assert!(read(&copy).is_none(), "{len} of {} bytes were taken", bytes.len());
        forget(&copy);
    }
}

/// Contents of a journal after each of its transactions, and its files before anything was written back.
struct Logged {
    main: Vec<u8>,
    log: Vec<u8>,
    index: Vec<u8>,
    states: Vec<Recovered>,
}

fn logged(folder: &Folder) -> Logged {
    let file = folder.journal();
    let mut memory = MemoryJournal::new(KEY);
    let mut store = open(&file);
    store.recover().unwrap();
    let mut states = vec![content(memory.clone().recover().unwrap())];
    for (number, steps) in (1..).zip(Story::whole_steps(2, 64).chunks(6)) {
        store.write(steps).unwrap();
        // Most are batches, and the last transaction is one.
        if number % 4 == 0 {
            store.feed().unwrap();
        }
        memory.write(steps).unwrap();
        states.push(content(memory.clone().recover().unwrap()));
    }
    let [main, log, index] = ["", "-wal", "-shm"].map(|ending| fs::read(beside(&file, ending)).unwrap());
    Logged { main, log, index, states }
}

impl Logged {
    /// Recovers from the files with another log, and the index that a killed writer left; or returns the refusal.
    fn with_index(&self, name: &str, log: &[u8], durability: Durability) -> Result<Recovered, String> {
        let folder = Folder::new();
        let copy = folder.path().join(name);
        for (ending, bytes) in [("", &*self.main), ("-wal", log), ("-shm", &*self.index)] {
            fs::write(beside(&copy, ending), bytes).unwrap();
        }
        let opened = SqliteJournal::open(&copy, &JournalOptions::new(KEY).durability(durability));
        if opened.is_err() {
            let seen = JournalReader::open(&copy).map(drop).unwrap_err();
            let is_incomplete =
                matches!(seen.problem, FileProblem::DamagedLog { .. } | FileProblem::UnsyncedLog { .. });
            assert!(is_incomplete, "{seen}");
            assert_eq!(fs::read(beside(&copy, "-wal")).unwrap(), log, "left as it was");
        }
        opened.map(|mut store| content(store.recover().unwrap())).map_err(|error| error.to_string())
    }

    /// Recovers from the files with another log.
    fn with(&self, copy: &Path, log: &[u8]) -> Option<(Recovered, bool)> {
        fs::write(copy, &self.main).unwrap();
        fs::write(beside(copy, "-wal"), log).unwrap();
        let read = read(copy).map(|(store, recovered)| (recovered, store.cut().is_some()));
        forget(copy);
        read
    }
}

#[test]
fn a_flipped_bit_in_the_log_is_found_or_costs_the_last_transaction_alone() {
    let folder = Folder::new();
    let logged = logged(&folder);
    let copy = folder.path().join("flipped.journal");
    let (last, before) = (logged.states.last().unwrap(), &logged.states[logged.states.len() - 2]);
    assert_eq!(logged.with(&copy, &logged.log), Some((last.clone(), false)));
    let mut dice = Dice::new(6);
    let (mut refused, mut cut) = (0, 0);
    let flips = std::env::var("SYSTOLE_FLIPS").map_or(250, |flips| flips.parse().unwrap());
    let end = logged.log.len() as u64 * 8;
    let bits: Vec<u64> =
        (0..flips).map(|at| if at % 4 == 0 { end - 1 - dice.below(60_000) } else { dice.below(end) }).collect();
    for bit in bits.into_iter().chain(0..256) {
        let mut log = logged.log.clone();
        log[(bit / 8) as usize] ^= 1 << (bit % 8);
        match logged.with(&copy, &log) {
            None => refused += 1,
            Some((found, false)) => assert_eq!(found, *last, "bit {bit}"),
            Some((found, true)) => {
                assert!(found == *before || found == *last, "bit {bit}");
                cut += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} refused, {cut} cut: the test looks at nothing");
}

#[test]
fn a_log_without_its_header_is_known_to_lack_what_its_index_counts() {
    let folder = Folder::new();
    let logged = logged(&folder);
    for bytes in [0, 1, 17, 31, 32] {
        let refused = logged.with_index("short", &logged.log[..bytes], Durability::Power);
        assert!(refused.as_ref().is_err_and(|why| why.contains("incomplete")), "{bytes} bytes: {refused:?}");
        assert!(logged.with_index("short", &logged.log[..bytes], Durability::Process).is_ok(), "{bytes} bytes");
    }
}

#[test]
fn no_bit_of_the_log_costs_a_finished_transaction_where_its_index_is_there() {
    let folder = Folder::new();
    let logged = logged(&folder);
    assert_eq!(
        logged.with_index("flipped", &logged.log, Durability::Process),
        Ok(logged.states.last().unwrap().clone())
    );
    let frame = 24 + 4096;
    let last = logged.log.len() - frame;
    // Each bit of the header of the last frame, which is a commit, and some bits of all others.
    let mut dice = Dice::new(7);
    let bits =
        (last as u64 * 8..(last as u64 + 24) * 8).chain((0..200).map(|_| dice.below(logged.log.len() as u64 * 8)));
    for bit in bits {
        let mut log = logged.log.clone();
        log[(bit / 8) as usize] ^= 1 << (bit % 8);
        let refusal = logged.with_index("flipped", &log, Durability::Process).unwrap_err();
        assert!(refusal.contains("finished transactions"), "bit {bit}: {refusal}");
    }
}

#[test]
fn a_log_that_lost_its_end_is_reported_and_a_loss_of_power_may_cost_it_where_that_is_allowed() {
    let folder = Folder::new();
    let logged = logged(&folder);
    for len in [0, 32, 32 + 24 + 4096, logged.log.len() - 1] {
        let found = logged.with_index("short", &logged.log[..len], Durability::Process);
        assert!(found.is_ok_and(|found| logged.states.contains(&found)), "{len} bytes");
        let refusal = logged.with_index("short", &logged.log[..len], Durability::Power).unwrap_err();
        assert!(refusal.contains("finished transactions"), "{len} bytes: {refusal}");
    }
}

#[test]
fn a_transaction_that_was_never_finished_is_no_damage() {
    let folder = Folder::new();
    let logged = logged(&folder);
    // A kill between the two halves of a frame leaves the head of a frame that was not confirmed.
    let mut log = logged.log.clone();
    let frame = log[log.len() - 24 - 4096..].to_vec();
    log.extend(&frame[..24]);
    log.extend(vec![0; 4096]);
    assert_eq!(logged.with_index("torn", &log, Durability::Power), Ok(logged.states.last().unwrap().clone()));
    // A reader that comes first leaves a file that a start accepts, although it rebuilds the index of the log.
    let copy = folder.path().join("read.journal");
    for (ending, bytes) in [("", &*logged.main), ("-wal", &*log), ("-shm", &*logged.index)] {
        fs::write(beside(&copy, ending), bytes).unwrap();
    }
    for _ in 0..2 {
        let verdict = JournalReader::open(&copy).unwrap().verify().unwrap();
        assert_eq!(verdict.faults, [""; 0]);
    }
    let mut store = SqliteJournal::open(&copy, &JournalOptions::new(KEY)).unwrap();
    assert_eq!(content(store.recover().unwrap()), *logged.states.last().unwrap());
}

#[test]
fn a_log_without_its_end_is_a_journal_of_an_earlier_moment() {
    let folder = Folder::new();
    let logged = logged(&folder);
    let copy = folder.path().join("short.journal");
    let mut reported = 0;
    for len in (0..logged.log.len()).step_by(1021) {
        let (found, cut) = logged.with(&copy, &logged.log[..len]).unwrap_or_else(|| panic!("{len} bytes are refused"));
        assert!(logged.states.contains(&found), "{len} bytes");
        reported += usize::from(cut);
    }
    assert!(reported > 20, "{reported} reported");
}

#[test]
fn a_damaged_log_can_be_given_up_and_says_what_to_do() {
    let folder = Folder::new();
    let mut logged = logged(&folder);
    let copy = folder.path().join("middle.journal");
    let middle = logged.log.len() / 2;
    logged.log[middle] ^= 1;
    fs::write(&copy, &logged.main).unwrap();
    fs::write(beside(&copy, "-wal"), &logged.log).unwrap();
    let refusal = SqliteJournal::open(&copy, &JournalOptions::new(KEY)).unwrap_err().to_string();
    assert!(refusal.contains("middle.journal: its log is damaged at byte"), "{refusal}");
    assert!(refusal.contains("journal compact --cut"), "{refusal}");
    assert_eq!(fs::read(beside(&copy, "-wal")).unwrap(), logged.log, "left as it was");
    let mut store = SqliteJournal::open(&copy, &JournalOptions::new(KEY).cut(true)).unwrap();
    assert!(logged.states.contains(&content(store.recover().unwrap())));
}

fn forget(copy: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(copy, ending));
    }
}

#[test]
fn a_log_that_was_being_written_back_is_no_damage() {
    let (folder, crashed) = (Folder::new(), Folder::new());
    let mut memory = MemoryJournal::new(KEY);
    let mut store = open(&folder.journal());
    let steps = Story::whole_steps(1, 400);
    store.write(&steps).unwrap();
    memory.write(&steps).unwrap();
    for ending in ["", "-wal"] {
        fs::copy(beside(&folder.journal(), ending), beside(&crashed.journal(), ending)).unwrap();
    }
    // The process is killed after it wrote back only the first page, which holds the length of the file.
    let log = fs::read(beside(&crashed.journal(), "-wal")).unwrap();
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let page = number(8);
    let pages = (32..log.len()).step_by(24 + page as usize).map(|frame| number(frame + 4)).max().unwrap();
    let mut file = fs::read(crashed.journal()).unwrap();
    assert!((file.len() as u32) < pages * page, "the log makes the file longer");
    file[28..32].copy_from_slice(&pages.to_be_bytes());
    fs::write(crashed.journal(), &file).unwrap();
    let mut again = open(&crashed.journal());
    assert_eq!(content(again.recover().unwrap()), content(memory.recover().unwrap()));
}
