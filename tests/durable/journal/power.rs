//! Losses of power: of the pages that were not on the disk yet any may be missing, in any order. A journal starts all the
//! same, at a moment that its durability allows.

use std::fs::{self, File};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use systole::journal::{Durability, FileProblem, JournalOptions, JournalReader, Loss, SqliteJournal};
use systole::journal::{Journal, MemoryJournal, Recovered};

use super::story::{Dice, Folder, KEY, Story, content};

/// The unit in which a file reaches the disk.
const BLOCK: usize = 4096;

/// Transactions between two moments at which the log is written back and starts over.
const ROUNDS: [usize; 3] = [9, 40, 12];

/// The files of a journal after a transaction.
struct Moment {
    main: Rc<[u8]>,
    log: Rc<[u8]>,
    index: Vec<u8>,
    /// The moment at which the log was written back last.
    round: usize,
}

/// The moments of a journal, and its content at each.
struct Past {
    moments: Vec<Moment>,
    states: Vec<Recovered>,
}

fn beside(file: &Path, ending: &str) -> std::path::PathBuf {
    std::path::PathBuf::from(format!("{}{ending}", file.display()))
}

fn past(durability: Durability) -> Past {
    let folder = Folder::new();
    let file = folder.journal();
    let options = JournalOptions::new(KEY).durability(durability);
    let (mut store, mut memory) = (SqliteJournal::open(&file, &options).unwrap(), MemoryJournal::new(KEY));
    store.recover().unwrap();
    let mut past = Past { moments: Vec::new(), states: Vec::new() };
    let mut dice = Dice::new(31);
    let steps = Story::whole_steps(21, 400);
    let mut steps = steps.iter();
    for transactions in ROUNDS {
        let round = past.moments.len();
        past.note(&file, round, &memory);
        for number in 1..=transactions {
            let some: Vec<_> = steps.by_ref().take(1 + dice.below(6) as usize).cloned().collect();
            store.write(&some).unwrap();
            memory.write(&some).unwrap();
            past.note(&file, round, &memory);
            if number % 5 == 0 && !store.is_fed() {
                store.feed().unwrap();
                past.note(&file, round, &memory);
            }
        }
        let db = Connection::open(&file).unwrap();
        let busy: bool = db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0)).unwrap();
        assert!(!busy, "the log starts over with the next transaction");
    }
    past
}

impl Past {
    /// Notes the files after a transaction, and the content that they have.
    fn note(&mut self, file: &Path, round: usize, memory: &MemoryJournal) {
        let [main, log, index] = ["", "-wal", "-shm"].map(|ending| fs::read(beside(file, ending)).unwrap());
        self.moments.push(Moment { main: main.into(), log: log.into(), index, round });
        self.states.push(content(memory.clone().recover().unwrap()));
    }

    /// The log after a loss of power while the transaction before that moment was written: each page as it was at one of
    /// the moments since `synced`.
    fn torn(&self, synced: usize, at: usize, dice: &mut Dice) -> Vec<u8> {
        let newest = &self.moments[at].log;
        // The header of a log that starts over is on the disk before its frames.
        let mut logs: Vec<Vec<u8>> = self.moments[synced..=at].iter().map(|moment| moment.log.to_vec()).collect();
        for log in &mut logs {
            log[..32].copy_from_slice(&newest[..32]);
        }
        let often = 1 + dice.below(8);
        let mut torn = vec![0; newest.len()];
        for (number, block) in torn.chunks_mut(BLOCK).enumerate() {
            let version = if dice.below(often) == 0 { dice.below(logs.len() as u64) as usize } else { logs.len() - 1 };
            let old = logs[version].get(number * BLOCK..).unwrap_or_default();
            let len = old.len().min(block.len());
            block[..len].copy_from_slice(&old[..len]);
        }
        if dice.below(4) == 0 {
            let certain = logs[0].len().min(torn.len());
            torn.truncate(certain + dice.below((torn.len() - certain + 1) as u64) as usize / 512 * 512);
        }
        torn
    }

    /// Writes the files after a loss of power. `noted`: the last moment that the index can have noted.
    fn write(&self, copy: &Path, (at, noted): (usize, usize), log: &[u8], dice: &mut Dice) {
        fs::write(copy, &self.moments[at].main).unwrap();
        fs::write(beside(copy, "-wal"), log).unwrap();
        // The index is not written to the disk on purpose, but may get there.
        match dice.below(3) {
            0 => drop(fs::remove_file(beside(copy, "-shm"))),
            1 => fs::write(beside(copy, "-shm"), vec![0; 32768]).unwrap(),
            _ => {
                let round = self.moments[at].round;
                let moment = round + dice.below((noted - round + 1) as u64) as usize;
                fs::write(beside(copy, "-shm"), &self.moments[moment].index).unwrap();
                let before_this_boot = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
                let index = File::options().write(true).open(beside(copy, "-shm")).unwrap();
                index.set_modified(before_this_boot).unwrap();
            }
        }
    }
}

fn cuts() -> u64 {
    std::env::var("SYSTOLE_CUTS").map_or(250, |cuts| cuts.parse().unwrap())
}

/// Cuts the power at random moments; returns how often the log was whole, ended with an unfinished transaction, and
/// lacked finished ones.
fn cut_power(durability: Durability) -> [u64; 3] {
    let past = past(durability);
    let folder = Folder::new();
    let copy = folder.path().join("torn.journal");
    let options = JournalOptions::new([0; 32]).durability(durability);
    let mut told = [0; 3];
    for cut in 0..cuts() {
        let mut dice = Dice::new(cut + 1);
        let mut at = dice.below(past.moments.len() as u64) as usize;
        if past.moments[at].round == at {
            // The first moment of a round is that of the end of the one before: nothing was being written.
            at += 1;
        }
        // Under `power` the writer notes a transaction once it is on the disk.
        let (synced, noted) =
            if durability == Durability::Power { (at - 1, at - 1) } else { (past.moments[at].round, at) };
        let log = past.torn(synced, at, &mut dice);
        past.write(&copy, (at, noted), &log, &mut dice);
        if cut % 4 == 0 {
            match JournalReader::open(&copy).and_then(|reader| reader.verify()) {
                Ok(verdict) => assert_eq!(verdict.faults, [""; 0], "cut {cut}"),
                Err(error) => {
                    let lacks = matches!(error.problem, FileProblem::UnsyncedLog { .. });
                    assert!(lacks && durability == Durability::Process, "cut {cut}: {error}");
                }
            }
            past.write(&copy, (at, noted), &log, &mut dice);
        }
        let mut store = SqliteJournal::open(&copy, &options).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        told[match store.cut().map(|cut| cut.loss) {
            None => 0,
            Some(Loss::Unfinished) => 1,
            Some(Loss::Unsynced(_)) => 2,
            Some(loss) => panic!("cut {cut}: {loss:?}"),
        }] += 1;
        let found = content(store.recover().unwrap());
        assert!(past.states[synced..=at].contains(&found), "cut {cut} leaves a state that never was, or is too old");
        drop(store);
        let verdict = JournalReader::open(&copy).unwrap().verify().unwrap();
        assert_eq!((verdict.faults, verdict.cut), (Vec::new(), None), "cut {cut}, after a start");
    }
    println!("{durability:?}: {told:?}");
    told
}

#[test]
fn a_loss_of_power_costs_nothing_that_was_on_the_disk() {
    let [whole, unfinished, unsynced] = cut_power(Durability::Power);
    assert!(whole > cuts() / 20 && unfinished > cuts() / 4, "{whole} whole, {unfinished} unfinished");
    assert_eq!(unsynced, 0);
}

#[test]
fn a_loss_of_power_costs_the_last_transactions_and_never_the_file_where_they_do_not_wait_for_the_disk() {
    let [_, unfinished, unsynced] = cut_power(Durability::Process);
    assert!(unfinished > cuts() / 100 && unsynced > cuts() / 4, "{unfinished} unfinished, {unsynced} not on the disk");
}

#[test]
fn a_flipped_bit_in_what_was_on_the_disk_is_no_loss_of_power() {
    for durability in [Durability::Power, Durability::Process] {
        let past = past(durability);
        let folder = Folder::new();
        let copy = folder.path().join("flipped.journal");
        let at = past.moments.len() - 1;
        let moment = &past.moments[at];
        let frame = 24 + 4096;
        let number = |at: usize| u64::from_be_bytes(moment.log[at..at + 8].try_into().unwrap());
        let present = (32..moment.log.len()).step_by(frame).take_while(|at| number(at + 8) == number(16)).count();
        assert!(present > 20, "{present} frames of this round");
        let mut dice = Dice::new(8);
        for _ in 0..60 {
            // The last frame can be torn as well as damaged.
            let bit = 32 * 8 + dice.below(((present - 1) * frame * 8) as u64) as usize;
            let mut log = moment.log.to_vec();
            log[bit / 8] ^= 1 << (bit % 8);
            fs::write(&copy, &moment.main).unwrap();
            fs::write(beside(&copy, "-wal"), &log).unwrap();
            let _ = fs::remove_file(beside(&copy, "-shm"));
            let options = JournalOptions::new([0; 32]).durability(durability);
            let error = SqliteJournal::open(&copy, &options).unwrap_err();
            assert!(matches!(error.problem, FileProblem::DamagedLog { .. }), "bit {bit}: {error}");
            assert!(error.to_string().contains("journal compact --cut"), "{error}");
            assert_eq!(fs::read(beside(&copy, "-wal")).unwrap(), log, "left as it was");
        }
    }
}
