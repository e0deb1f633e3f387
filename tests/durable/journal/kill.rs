//! Processes that are killed, or run out of disk space, while they write.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use systole::journal::SqliteJournal;
use systole::journal::{Journal, MemoryJournal};

use super::story::{Dice, Folder, KEY, Story, content, open, open_keeping_nothing, open_rows};

const FILE: &str = "SYSTOLE_TEST_JOURNAL";
const FROM: &str = "SYSTOLE_TEST_FROM";
/// Set where the journal keeps no ended rows.
const NOTHING: &str = "SYSTOLE_TEST_NOTHING";
const SEED: u64 = 11;
/// The most steps that are appended at once.
const MOST: usize = 9;

/// The work of the other process: it writes batch after batch, and reports each. Without its environment it does
/// nothing.
#[test]
fn child() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let from: usize = std::env::var(FROM).unwrap().parse().unwrap();
    let mut store = opener(std::env::var_os(NOTHING).is_some())(&file);
    store.recover().unwrap();
    let (mut story, mut dice) = (Story::default(), Dice::new(SEED));
    (0..from).for_each(|_| drop(story.random_step(&mut dice)));
    let mut done = from;
    let mut out = std::io::stdout();
    loop {
        let batch: Vec<_> = (0..1 + done % MOST).map(|_| story.random_step(&mut dice)).collect();
        // The process may be killed between a batch and a feed, and in either.
        let feed = |store: &mut SqliteJournal| if done.is_multiple_of(4) { store.feed() } else { Ok(()) };
        if let Err(error) = store.write(&batch).and_then(|()| feed(&mut store)) {
            let _ = writeln!(out, "failed {error}");
            return;
        }
        done += batch.len();
        if writeln!(out, "done {done}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// The way to open a journal, that keeps all ended rows or none.
fn opener(nothing: bool) -> fn(&Path) -> SqliteJournal {
    if nothing { open_keeping_nothing } else { open }
}

fn spawn(mut command: Command, folder: &Folder, from: usize) -> Child {
    command
        .args(["journal::kill::child", "--exact", "--nocapture"])
        .env(FILE, folder.journal())
        .env(FROM, from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Checks the confirmed steps, and those that may have been in flight with them.
fn check(folder: &Folder, confirmed: usize, nothing: bool) -> usize {
    let content = if nothing { open_rows } else { content };
    let recovered = content(opener(nothing)(&folder.journal()).recover().unwrap());
    let steps = Story::steps(SEED, confirmed + MOST);
    let batch = 1 + confirmed % MOST;
    for count in [confirmed, confirmed + batch] {
        let mut memory = MemoryJournal::new(KEY);
        memory.write(&steps[..count]).unwrap();
        if content(memory.recover().unwrap()) == recovered {
            return count;
        }
    }
    panic!("{confirmed} steps were confirmed, and the journal holds something else");
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_told_is_written() {
    kill_again_and_again(false);
}

#[test]
fn a_killed_process_that_keeps_no_ended_rows_loses_no_open_ones() {
    kill_again_and_again(true);
}

fn kill_again_and_again(nothing: bool) {
    let rounds = std::env::var("SYSTOLE_KILLS").map_or(25, |rounds| rounds.parse().unwrap());
    let folder = Folder::new();
    let mut dice = Dice::new(std::process::id().into());
    let mut from = 0;
    for _ in 0..rounds {
        let mut command = Command::new(std::env::current_exe().unwrap());
        if nothing {
            command.env(NOTHING, "1");
        }
        let mut child = spawn(command, &folder, from);
        let mut confirmed = from;
        let mut until = 1 + dice.below(40);
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
            let Some(done) = line.strip_prefix("done ") else { continue };
            confirmed = done.parse().unwrap();
            until = until.saturating_sub(1);
            if until == 0 {
                // Lines in the pipe by now were confirmed, too.
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        from = check(&folder, confirmed, nothing);
    }
    assert!(from >= rounds);
}

#[test]
fn a_file_that_can_not_grow_is_an_error_and_nothing_is_half_written() {
    let folder = Folder::new();
    let mut limited = Command::new("sh");
    // The limit counts blocks of 512 bytes or of 1 KiB, depending on the shell; the process must survive it.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let mut child = spawn(limited, &folder, 0);
    let (mut confirmed, mut failed) = (0, None);
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        if let Some(done) = line.strip_prefix("done ") {
            confirmed = done.parse().unwrap();
        } else if let Some(error) = line.strip_prefix("failed ") {
            failed = Some(error.to_owned());
        }
    }
    child.wait().unwrap();
    assert!(failed.unwrap().contains("organism.journal: "));
    assert!(confirmed > 10, "{confirmed} steps had room");
    check(&folder, confirmed, false);
}
