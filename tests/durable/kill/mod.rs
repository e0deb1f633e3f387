//! Kills of a durable organism in a process of its own, at random places, by `kill -9`.
//!
//! `SYSTOLE_KILLS=1000 cargo test --test durable kill` kills it more often, `SYSTOLE_SEED=N` in another order.

mod organism;

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use organism::{JOURNAL, LEVEL, serve};

/// The longest silence of the process while a line is expected, on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
/// The default number of kills.
const KILLS: u64 = 40;
/// Organisms that are killed in parallel.
const LIVES: u64 = 2;
/// The most lines of the process before it is killed.
const LINES: u64 = 160;
/// The most waiting orders of one process.
const AHEAD: i64 = 20;
/// The most waiting orders of all processes: no life is long enough for all that were begun before it.
const WAITING: usize = 200;

/// The process itself: `what_was_confirmed_is_answered` starts it.
#[test]
#[ignore = "it is a program for the other test"]
fn process() {
    serve();
}

#[test]
fn what_was_confirmed_is_answered() {
    let (seed, kills) = (number("SYSTOLE_SEED").unwrap_or(1), number("SYSTOLE_KILLS").unwrap_or(KILLS));
    // A single process would leave processors idle.
    std::thread::scope(|scope| {
        for life in 0..LIVES {
            scope.spawn(move || play("process", seed + life, kills.div_ceil(LIVES)));
        }
    });
}

#[test]
fn so_it_is_where_the_disk_has_to_have_it() {
    play("power", number("SYSTOLE_SEED").unwrap_or(1), number("SYSTOLE_KILLS").unwrap_or(KILLS) / 10);
}

pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn play(level: &str, seed: u64, kills: u64) {
    let place = format!("kill-{level}-{seed}-{}", std::process::id());
    let directory = std::env::temp_dir().join(place);
    std::fs::create_dir_all(&directory).expect("a place for the journal");
    play_on(&directory.join("journal"), level, seed, kills);
    std::fs::remove_dir_all(&directory).expect("nobody uses it any more");
}

/// Kills an organism with that journal, again and again, and checks what it confirms.
pub(crate) fn play_on(journal: &Path, level: &str, seed: u64, kills: u64) {
    let mut random = seed;
    let mut books = Books::default();
    for _ in 0..kills {
        let mut organism = Process::start(journal, level);
        // xorshift64 (Marsaglia 2003)
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        organism.talk(&mut books, random % LINES);
        organism.kill(&mut books);
    }
    let mut organism = Process::start(journal, level);
    while !books.is_settled() {
        organism.listen(&mut books).expect("it goes on until everything is answered");
    }
    organism.kill(&mut books);
    println!(
        "{kills} kills, {} orders, {} confirmed, {} answers twice, {} tasks",
        books.next,
        books.taken.len(),
        books.twice,
        books.events.len()
    );
    assert!(books.events.len() as u64 > kills, "hardly any task was heard of: {}", books.events.len());
    assert!(books.taken.len() as u64 > kills, "hardly anything was taken: {}", books.taken.len());
}

/// Orders to the processes, and their reports.
#[derive(Default)]
struct Books {
    next: i64,
    taken: HashSet<i64>,
    answers: HashMap<i64, String>,
    /// The last event of each task that was reported.
    events: HashMap<String, i64>,
    twice: u64,
}

impl Books {
    fn note(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next().and_then(|n| n.parse().ok()), words.next()) {
            (Some("taken"), Some(n), None) => {
                self.taken.insert(n);
            }
            (Some("answer"), Some(n), Some(answer)) => {
                let (sum, _) = answer.split_once('/').expect("a sum and an id");
                assert_eq!(sum, organism::answer(n).to_string(), "the answer to {n}");
                // The process was killed after this answer and before it could note that.
                if let Some(before) = self.answers.insert(n, answer.to_owned()) {
                    self.twice += 1;
                    assert_eq!(before, answer, "{n} has two answers");
                }
            }
            (Some("event"), Some(n), Some(event)) => {
                let (task, kind) = event.split_once('/').expect("a task and what happened");
                let expected = ["submitted", "routed", "accepted", "completed"][n as usize - 1];
                assert_eq!(kind, expected, "event {n} of {task}");
                let before = self.events.insert(task.to_owned(), n).unwrap_or(0);
                assert!(before < n, "event {n} of {task} after {before}: heard twice, or out of order");
            }
            _ => panic!("the process says: {line}"),
        }
    }

    /// Lists the orders that were confirmed and are not answered.
    fn waiting(&self) -> impl Iterator<Item = &i64> {
        self.taken.iter().filter(|n| !self.answers.contains_key(n))
    }

    /// Tells whether every confirmed order is answered.
    fn is_settled(&self) -> bool {
        self.waiting().next().is_none()
    }
}

struct Process {
    child: Child,
    orders: ChildStdin,
    /// The lines of the process, without those of the test harness.
    lines: Receiver<String>,
    ordered: i64,
}

impl Process {
    fn start(journal: &Path, level: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this test is a program"))
            .args(["kill::process", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(JOURNAL, journal)
            .env(LEVEL, level)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let orders = child.stdin.take().expect("it is piped");
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let (hear, lines) = channel();
        // The thread ends with the process.
        std::thread::spawn(move || {
            let whole = said.lines().map_while(Result::ok).filter_map(|line| said_in(&line).map(str::to_owned));
            whole.for_each(|line| hear.send(line).unwrap_or_default());
        });
        Self { child, orders, lines, ordered: 0 }
    }

    /// Sends an order for each line of the process.
    fn talk(&mut self, books: &mut Books, lines: u64) {
        for _ in 0..lines {
            while self.ordered < AHEAD && books.waiting().count() < WAITING {
                books.next += 1;
                self.ordered += 1;
                if writeln!(self.orders, "{}", books.next).is_err() {
                    return;
                }
            }
            if self.listen(books).is_none() {
                return;
            }
        }
    }

    /// Reads the next line; `None` if the process has ended.
    fn listen(&mut self, books: &mut Books) -> Option<()> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(said) => {
                if said.starts_with("answer") {
                    self.ordered -= 1;
                }
                books.note(&said);
                Some(())
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let (ordered, waiting) = (self.ordered, books.waiting().collect::<Vec<_>>());
                panic!("it says nothing, with {ordered} orders of this life open; without an answer: {waiting:?}")
            }
        }
    }

    /// Kills the process; lines that it wrote before still count.
    fn kill(mut self, books: &mut Books) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
        self.lines.iter().for_each(|said| books.note(&said));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After an orderly end of the test the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Extracts the report in a line, if the line is whole: a line that is cut in its middle doesn't count, and the test
/// harness writes other lines.
fn said_in(line: &str) -> Option<&str> {
    line.split_once("organism: ")?.1.strip_suffix('.')
}
