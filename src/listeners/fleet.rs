//! Processes that stay, and the messages that they get: what workers and servers of tools have in common.
//!
//! A [`Fleet`] starts the processes of a listener, gives them messages as its [`pool`] orders, and takes messages from those
//! that have ended. What is said between the two, and what counts as having come up, is the business of a [`Kind`].
//!
//! Invariants: each message in flight has one process, and is answered by it, cancelled, or run again in another one when
//! the process has ended, alone and up to `max_attempts`; when the fleet is dropped, its processes are ended.

pub(crate) mod line_process;
mod pool;
pub(crate) mod prints;
mod seat;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::Failure;
use systole_core::vocab::{Fault, FaultCode, Limits, Name, Time};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::process::run::CommandError;
use crate::runtime::{LocalBoxFuture, Rest, Rests};
use crate::terminal::Escaped;
use pool::{Ending, Pool, ProcessId, Step, Ticket};
use seat::Given;
use systole_store::clock::Clock;

pub(crate) use pool::Lost;
pub(crate) use seat::Seat;

/// A kind of processes that stay.
pub(crate) trait Kind: Sized + 'static {
    /// The connection to a process.
    type Member: Member;
    /// The process in words, for the log: "a worker".
    const WHAT: &'static str;

    /// Starts a process.
    fn start(&self, name: &Name, means: &Means<Self>) -> Result<Started<Self::Member>, CommandError>;

    /// The program for the log.
    fn program(&self) -> String;
}

/// The connection to a process, as its fleet sees it.
pub(crate) trait Member: 'static {
    /// Returns whether the process has come up: only then it gets messages.
    fn is_up(&self) -> bool;

    /// Wakes who waits for the process to come up or to end.
    fn changes(&self) -> &Notify;

    /// Waits until the process has come up, or has ended.
    async fn begun(&self) {
        loop {
            let changed = self.changes().notified();
            if self.is_up() || self.has_ended() {
                return;
            }
            changed.await;
        }
    }

    /// Returns whether the process has ended.
    fn has_ended(&self) -> bool;

    /// Number of messages in flight.
    fn load(&self) -> usize;

    /// Ends all messages in flight, as the process has ended; the first end counts.
    fn end(&self, end: ProcessEnd);
}

/// A started process.
pub(crate) struct Started<M> {
    /// The connection to it.
    pub(crate) member: Rc<M>,
    /// Serves it to its end. Dropping it ends the process.
    pub(crate) serving: LocalBoxFuture<Over>,
}

/// The end of a process, for its fleet.
pub(crate) struct Over {
    /// The reason, for callers.
    pub(crate) why: String,
    /// The reason for the log.
    pub(crate) detail: String,
    /// The end of its standard error.
    pub(crate) said: String,
    /// True if the exit was an orderly one.
    pub(crate) is_success: bool,
}

/// The end of a process, as its messages learn of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessEnd {
    /// The reason, for callers.
    pub(crate) why: String,
    /// The end of its standard error, for operators.
    pub(crate) said: String,
}

/// The processes of a listener.
pub(crate) struct Fleet<K: Kind> {
    name: Name,
    kind: K,
    pool: RefCell<Pool>,
    /// The messages that have a process, or wait for one.
    seats: RefCell<BTreeMap<Ticket, Rc<Given<K::Member>>>>,
    running: RefCell<BTreeMap<ProcessId, Running<K::Member>>>,
    /// The end of the last process that did not come up.
    setback: RefCell<Option<Rc<ProcessEnd>>>,
    /// The time of the last warning of messages that got no process.
    warned: Cell<Option<Time>>,
    means: OnceCell<Means<K>>,
    alarm: RefCell<Option<Alarm>>,
}

/// A steady clock, the limits of the organism, and the fleet itself, for the tasks of its processes.
pub(crate) struct Means<K: Kind> {
    pub(crate) clock: Clock,
    /// The clock of the wall, and the rests as operators see them.
    wall: Clock,
    rests: Rests,
    pub(crate) limits: Rc<Limits>,
    fleet: Weak<Fleet<K>>,
}

impl<K: Kind> Clone for Means<K> {
    fn clone(&self) -> Self {
        let Self { clock, wall, rests, limits, fleet } = self;
        let (clock, wall, rests) = (clock.clone(), wall.clone(), rests.clone());
        Self { clock, wall, rests, limits: limits.clone(), fleet: fleet.clone() }
    }
}

/// A process with the task that serves it.
struct Running<M> {
    connection: Rc<M>,
    served: JoinHandle<()>,
}

/// The end of a rest, and the task that waits for it.
struct Alarm {
    at: Time,
    task: JoinHandle<()>,
}

impl<K: Kind> Fleet<K> {
    /// Makes a fleet of at most so many processes.
    pub(crate) fn new(name: Name, kind: K, most: u32) -> Self {
        Self {
            pool: Pool::new(most).into(),
            name,
            kind,
            seats: RefCell::default(),
            running: RefCell::default(),
            setback: RefCell::default(),
            warned: Cell::default(),
            means: OnceCell::new(),
            alarm: RefCell::default(),
        }
    }

    /// The kind of its processes.
    pub(crate) fn kind(&self) -> &K {
        &self.kind
    }

    /// The means of its tasks, from the clock, the rests and the limits of the organism.
    pub(crate) fn means(self: &Rc<Self>, wall: &Clock, rests: Rests, limits: &Limits) -> &Means<K> {
        self.means.get_or_init(|| Means {
            clock: wall.steady(),
            wall: wall.clone(),
            rests,
            limits: limits.clone().into(),
            fleet: Rc::downgrade(self),
        })
    }

    /// Starts processes that no message waits for.
    pub(crate) fn prepare(&self, processes: u32) {
        let Some(means) = self.means.get() else { return };
        for _ in 0..processes {
            let id = self.pool.borrow_mut().start(means.clock.now());
            id.into_iter().for_each(|id| self.start(id, means));
        }
    }

    /// Lets a message wait for a process.
    pub(crate) fn enter(self: &Rc<Self>, attempts: u8, most: u32) -> Seat<K> {
        let most = u8::try_from(most).unwrap_or(u8::MAX);
        let ticket = self.pool.borrow_mut().ask(attempts, most);
        let given = Rc::<Given<K::Member>>::default();
        self.seats.borrow_mut().insert(ticket, given.clone());
        self.drive();
        Seat::new(self.clone(), ticket, given)
    }

    /// Forgets a message, which is over.
    fn leave(&self, ticket: Ticket) {
        self.seats.borrow_mut().remove(&ticket);
        self.pool.borrow_mut().withdraw(ticket);
        self.drive();
    }

    /// Carries out the orders of the pool.
    fn drive(&self) {
        let Some(means) = self.means.get() else { return };
        loop {
            let step = self.pool.borrow_mut().next(means.clock.now());
            match step {
                None => break,
                Some(Step::Start(id)) => self.start(id, means),
                Some(Step::Give(ticket, id)) => {
                    let connection = self.running.borrow().get(&id).map(|running| running.connection.clone());
                    let given = self.seats.borrow().get(&ticket).cloned();
                    if let (Some(connection), Some(given)) = (connection, given) {
                        given.give(connection);
                    }
                }
            }
        }
        self.set_alarm(means);
    }

    /// Wakes the pool at the end of a rest.
    fn set_alarm(&self, means: &Means<K>) {
        let Some(at) = self.pool.borrow().wakes_at(means.clock.now()) else { return };
        let mut alarm = self.alarm.borrow_mut();
        if alarm.as_ref().is_some_and(|alarm| alarm.at == at) {
            return;
        }
        let (fleet, left) = (means.fleet.clone(), means.clock.until(at));
        let task = tokio::task::spawn_local(async move {
            tokio::time::sleep(left).await;
            if let Some(fleet) = fleet.upgrade() {
                fleet.alarm.borrow_mut().take();
                fleet.drive();
            }
        });
        if let Some(before) = alarm.replace(Alarm { at, task }) {
            before.task.abort();
        }
    }

    /// Starts a process under the number that the pool gave it.
    fn start(&self, id: ProcessId, means: &Means<K>) {
        let started = match self.kind.start(&self.name, means) {
            Ok(started) => started,
            Err(error) => {
                tracing::warn!(listener = %self.name, program = self.kind.program(), error = error.detail(), "{} can't be started", K::WHAT);
                let ending = if error.is_temporary() { Ending::Shortage } else { Ending::Failed };
                return self.ended(id, ending, ProcessEnd { why: error.to_string(), said: String::new() }, means);
            }
        };
        let connection = started.member.clone();
        let served = Served(connection.clone());
        let served = tokio::task::spawn_local(serve(id, started, served, means.clone()));
        self.running.borrow_mut().insert(id, Running { connection, served });
    }

    /// Takes a process from its messages, which has ended.
    fn ended(&self, id: ProcessId, ending: Ending, end: ProcessEnd, means: &Means<K>) {
        let now = means.clock.now();
        let connection = self.running.borrow_mut().remove(&id).map(|running| running.connection);
        let came_up = connection.as_ref().is_some_and(|connection| connection.is_up());
        let before = self.pool.borrow().rests_until(now);
        let lost = self.pool.borrow_mut().ended(id, ending, now);
        if !came_up {
            *self.setback.borrow_mut() = Some(ProcessEnd { why: end.why.clone(), said: end.said.clone() }.into());
        }
        let rests = self.pool.borrow().rests_until(now).filter(|_| ending != Ending::Shortage);
        if let Some(until) = rests.filter(|_| rests != before) {
            let (rest, since) = (until.since(now), means.wall.now());
            let why = cause(&end.said).map_or_else(|| end.why.clone(), |cause| format!("{}: {cause}", end.why));
            means.rests.begin(&self.name, Rest { since, until: since.after(rest), why: why.into() });
            tracing::error!(listener = %self.name, error = end.why, "the processes of {} end one after the other: none is started for {rest:?}, and messages wait", K::WHAT);
        }
        for (ticket, lost) in lost {
            self.seats.borrow().get(&ticket).iter().for_each(|given| given.lose(lost));
        }
        // Those that wait may do so for a limited time only, from now on.
        self.seats.borrow().values().for_each(|given| given.look());
        if let Some(connection) = connection {
            connection.end(end);
        }
    }

    /// The time since which no process could be started.
    fn fails_since(&self) -> Option<Time> {
        self.pool.borrow().fails_since()
    }

    /// Warns that a message fails, for which no process came up within that time, at most once in [`WARNED`].
    fn warn_unstarted(&self, within: Duration, why: &str, now: Time) {
        if self.warned.get().is_none_or(|last| now.since(last) >= WARNED) {
            self.warned.set(Some(now));
            tracing::warn!(listener = %self.name, error = why, "messages fail, since no process of {} came up within {within:?}: where that takes long, write `start: eager`, or a longer `timeout`", K::WHAT);
        }
    }

    /// The end of the last process that did not come up.
    fn setback(&self) -> Rc<ProcessEnd> {
        let known = self.setback.borrow().clone();
        let silent = "it has not answered its first heartbeat";
        known.unwrap_or_else(|| ProcessEnd { why: silent.to_owned(), said: String::new() }.into())
    }
}

/// Ends the messages of a process that is no longer served, whatever ended that.
struct Served<M: Member>(Rc<M>);

impl<M: Member> Drop for Served<M> {
    fn drop(&mut self) {
        self.0.end(ProcessEnd { why: "the listener was ended".to_owned(), said: String::new() });
    }
}

/// Serves a process to its end.
async fn serve<K: Kind>(id: ProcessId, started: Started<K::Member>, _served: Served<K::Member>, means: Means<K>) {
    let Started { member: connection, serving } = started;
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        biased;
        () = connection.begun() => None,
        ended = &mut serving => Some(ended),
    };
    if connection.is_up()
        && let Some(fleet) = means.fleet.upgrade()
    {
        fleet.pool.borrow_mut().came_up(id);
        fleet.drive();
    }
    let Over { why, detail, said, is_success } = match ended {
        Some(ended) => ended,
        None => serving.await,
    };
    let Some(fleet) = means.fleet.upgrade() else { return };
    let in_flight = connection.load();
    let ending = if is_success { Ending::Exited } else { Ending::Failed };
    if !is_success || in_flight > 0 || !connection.is_up() {
        let begun = if connection.is_up() { "" } else { " before its first line" };
        tracing::warn!(listener = %fleet.name, program = fleet.kind.program(), error = detail, in_flight, stderr = cause(&said), "{} ended{begun}", K::WHAT);
    }
    fleet.ended(id, ending, ProcessEnd { why, said }, &means);
    fleet.drive();
}

/// Interval of warnings of messages that got no process.
const WARNED: Duration = Duration::from_secs(60);

/// The line of the error at the end of standard error: the last one that is no part of a trace.
fn cause(said: &str) -> Option<String> {
    // Lines of a trace are indented, and so are excerpts of the program.
    let says = |line: &&str| {
        let is_trailer = TRAILERS.iter().any(|trailer| line.starts_with(trailer));
        line.starts_with(|first: char| !first.is_whitespace()) && line.contains(char::is_alphanumeric) && !is_trailer
    };
    // Go writes it in front of its trace, whose lines are not indented.
    let of_go = said.lines().rfind(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "));
    let line =
        of_go.or_else(|| said.lines().rfind(says)).or_else(|| said.lines().rfind(|line| !line.trim().is_empty()))?;
    Some(Escaped::line(line.trim()).to_string())
}

/// Beginnings of lines that a runtime (Node, Bun, Rust) writes behind its error.
const TRAILERS: [&str; 5] = ["Node.js v", "Bun v", "note: ", "stack backtrace:", "exit status "];

impl<K: Kind> Drop for Fleet<K> {
    fn drop(&mut self) {
        self.running.borrow().values().for_each(|running| running.served.abort());
        self.alarm.borrow().iter().for_each(|alarm| alarm.task.abort());
    }
}

/// Makes a failure of the listener, not of the message.
pub(crate) fn failed(message: impl Into<Arc<str>>, retryable: bool) -> Failure {
    Failure::passing(Fault { retryable, ..Fault::new(FaultCode::ListenerFailed, message) })
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_line_of_an_error_is_found_in_what_each_runtime_writes() {
        let node = "file:///srv/agent.mjs:12\n  throw new Error(\"no key\");\n        ^\n\nError: no key\n    at main (file:///srv/agent.mjs:12:9)";
        let details = " {\n  code: 'E_KEY',\n  [cause]: Error: inner\n      at main (file:///srv/agent.mjs:3:1)\n}";
        let python = "Traceback (most recent call last):\n  File \"agent.py\", line 1, in <module>\n    import no_such\nModuleNotFoundError: No module named 'no_such'\n";
        let rust = "\nthread 'main' (7) panicked at src/main.rs:2:5:\nno key\n";
        let go = "panic: no key\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/agent.go:4 +0x25\nexit status 2\n";
        for (said, expected) in [
            (format!("started\n{node}\n\nNode.js v20.20.2\n"), "Error: no key"),
            (format!("{node}{details}\n\nNode.js v24.0.0\n"), "Error: no key"),
            (format!("{node}\n\nBun v1.1.0 (Linux x64)\n"), "Error: no key"),
            (python.to_owned(), "ModuleNotFoundError: No module named 'no_such'"),
            (format!("{rust}note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"), "no key"),
            (format!("{rust}stack backtrace:\n   0: main\n             at ./src/main.rs:2:5\n"), "no key"),
            (go.to_owned(), "panic: no key"),
            (
                "Exception in thread \"main\" java.lang.Error: a\n\tat Main.main(Main.java:3)\nCaused by: java.lang.Error: b\n\t... 1 more\n".to_owned(),
                "Caused by: java.lang.Error: b",
            ),
            ("agent.rb:1:in 'main': no key (RuntimeError)\n\tfrom agent.rb:3\n".to_owned(), "agent.rb:1:in 'main': no key (RuntimeError)"),
            ("sh: 1: agent: not found\n".to_owned(), "sh: 1: agent: not found"),
            // Where there is nothing else, the last line is shown.
            ("  only this\n\n".to_owned(), "only this"),
            ("Node.js v20.20.2\n".to_owned(), "Node.js v20.20.2"),
        ] {
            assert_eq!(cause(&said).as_deref(), Some(expected), "{said}");
        }
        assert_eq!(cause(" \n\n"), None);
    }
}
