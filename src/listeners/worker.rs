//! Workers: listeners that are programs which stay, in one or several processes, one JSON object a line, many messages
//! at once.
//!
//! `docs/worker.md` is the protocol. A process gets lines on its standard input and writes lines to the descriptor that
//! `SYSTOLE_WORKER` names; its standard output and standard error go to the log. Its environment, its process group and
//! its end with this process are those of a [command](crate::process).
//!
//! Invariants: each message in flight has one process, and is answered by it, cancelled, or run again in another one when
//! the process has ended, alone and up to `max_attempts` (`pool`); no process can make the memory of this one grow past
//! the limits of lines, of messages in flight and of their answers; when the listener is dropped, its processes get the
//! end of their input, SIGTERM and SIGKILL, in this order.

mod calls;
mod connection;
mod exchange;
mod line;
mod line_process;
mod message_run;
mod pool;
mod prints;
mod process;
mod records;
mod seat;
mod trial;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::{Failure, HandlerOutcome, Message};
use systole_core::vocab::{Fault, FaultCode, Limits, Name, Time};
use tokio::task::JoinHandle;

use super::json::JsonPayloads;
use crate::process::CommandSpec;
use crate::runtime::{LocalBoxFuture, RawListener, Rest, Rests, RunContext, StartContext};
use crate::terminal::Escaped;
use calls::Calls;
use connection::{Connection, ProcessEnd};
use message_run::{Run, run_message};
use pool::{Ending, Lost, Pool, ProcessId, Step, Ticket};
use records::Records;
use seat::{Given, Seat};
use systole_store::clock::Clock;

pub use exchange::{LineEffect, LineKind, Output};
pub use trial::{Trial, TrialOutput};

/// A program that stays, and its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerSpec {
    /// The program, its arguments, its environment and its directory.
    pub command: CommandSpec,
    /// The most processes, at least 1: another one is started while the others have messages.
    pub processes: u32,
    /// Interval of heartbeats, and time limit for their answers.
    pub heartbeat: Duration,
    /// The time at which processes are started.
    pub start: WorkerStart,
    /// True if payloads are JSON in its lines, not XML.
    pub json: bool,
}

systole_core::vocab::setters!(WorkerSpec {
    command: CommandSpec,
    processes: u32,
    heartbeat: Duration,
    start: WorkerStart,
    json: bool,
});

/// The time at which the processes of a worker are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerStart {
    /// A process starts with the first message, another one when all have work.
    #[default]
    Lazy,
    /// All processes start with the organism, if the listener is registered by
    /// [`raw_listener_at_start`](crate::runtime::OrganismBuilder::raw_listener_at_start). After an end, a process starts as with
    /// `Lazy`.
    Eager,
}

impl WorkerSpec {
    /// Default interval of heartbeats.
    pub const HEARTBEAT: Duration = Duration::from_secs(30);

    /// Settings for one process of that program, which starts with the first message.
    pub fn new(command: CommandSpec) -> Self {
        Self { command, processes: 1, heartbeat: Self::HEARTBEAT, start: WorkerStart::default(), json: false }
    }
}

/// A listener whose messages go to processes that stay.
pub struct WorkerListener {
    name: Name,
    spec: WorkerSpec,
    pool: RefCell<Pool>,
    /// The messages that have a process, or wait for one.
    seats: RefCell<BTreeMap<Ticket, Rc<Given>>>,
    running: RefCell<BTreeMap<ProcessId, Running>>,
    /// The end of the last process that did not come up.
    setback: RefCell<Option<Rc<ProcessEnd>>>,
    /// The time of the last warning of messages that got no process.
    warned: Cell<Option<Time>>,
    means: OnceCell<Means>,
    alarm: RefCell<Option<Alarm>>,
}

/// A steady clock, the limits of the organism, and the listener itself, for the tasks of its processes.
#[derive(Clone)]
struct Means {
    clock: Clock,
    /// The clock of the wall, and the rests as operators see them.
    wall: Clock,
    rests: Rests,
    limits: Rc<Limits>,
    json: Option<Rc<JsonPayloads>>,
    listener: Weak<WorkerListener>,
}

/// A process with the task that serves it.
struct Running {
    connection: Rc<Connection>,
    served: JoinHandle<()>,
}

/// The end of a rest, and the task that waits for it.
struct Alarm {
    at: Time,
    task: JoinHandle<()>,
}

impl WorkerListener {
    /// Makes a listener of that name.
    pub fn new(name: Name, spec: WorkerSpec) -> Self {
        Self {
            pool: Pool::new(spec.processes).into(),
            name,
            spec,
            seats: RefCell::default(),
            running: RefCell::default(),
            setback: RefCell::default(),
            warned: Cell::default(),
            means: OnceCell::new(),
            alarm: RefCell::default(),
        }
    }

    fn means(
        self: &Rc<Self>,
        wall: &Clock,
        rests: Rests,
        limits: &Limits,
        json: impl FnOnce() -> JsonPayloads,
    ) -> &Means {
        self.means.get_or_init(|| Means {
            clock: wall.steady(),
            wall: wall.clone(),
            rests,
            limits: limits.clone().into(),
            json: self.spec.json.then(|| json().into()),
            listener: Rc::downgrade(self),
        })
    }

    /// Runs a message until it has an outcome: again in another process when one has ended.
    async fn handle(self: Rc<Self>, message: Message, context: RunContext) -> HandlerOutcome {
        let wall = match context.thread().clock() {
            Ok(wall) => wall,
            Err(failure) => return HandlerOutcome::Failed(failure),
        };
        let json = || JsonPayloads::new(context.contract(), context.catalog().clone(), &context.limits().xml);
        let clock = self.means(&wall, context.rests(), context.limits(), json).clock.clone();
        let mut calls = Calls::new(context.limits().xml.message_bytes);
        let mut records = match Records::of(&context) {
            Ok(records) => records,
            Err(fault) => return HandlerOutcome::Failed(Failure::passing(fault)),
        };
        let seat = self.enter(message.attempts, context.limits().max_attempts);
        loop {
            let connection = match seat.process(&context, &clock).await {
                Ok(connection) => connection,
                Err(failure) => return HandlerOutcome::Failed(failure),
            };
            records.durable(&context).await;
            let run = run_message((connection, &seat), &message, &context, &mut calls, &mut records).await;
            let end = match run {
                Run::Done(outcome) => {
                    seat.answered();
                    return outcome;
                }
                Run::Lost(end) => end,
            };
            // What the process has written is gone with it; the handler may run again.
            context.thread().redraft();
            let lost = seat.lost();
            let why = match lost {
                Lost::Unread => continue,
                Lost::GivenUp(attempts) => {
                    format!("{}, in attempt {attempts} of {}", end.why, context.limits().max_attempts)
                }
                _ if !calls.begin_again() => end.why.clone(),
                Lost::Counted(attempts) => {
                    context.thread().attempted(attempts);
                    continue;
                }
                Lost::Suspected => continue,
            };
            context.thread().said(end.said.as_str());
            return HandlerOutcome::Failed(failed(why, true));
        }
    }

    /// Lets a message wait for a process.
    fn enter(self: &Rc<Self>, attempts: u8, most: u32) -> Seat {
        let most = u8::try_from(most).unwrap_or(u8::MAX);
        let ticket = self.pool.borrow_mut().ask(attempts, most);
        let given = Rc::<Given>::default();
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
    fn set_alarm(&self, means: &Means) {
        let Some(at) = self.pool.borrow().wakes_at(means.clock.now()) else { return };
        let mut alarm = self.alarm.borrow_mut();
        if alarm.as_ref().is_some_and(|alarm| alarm.at == at) {
            return;
        }
        let (listener, left) = (means.listener.clone(), means.clock.until(at));
        let task = tokio::task::spawn_local(async move {
            tokio::time::sleep(left).await;
            if let Some(listener) = listener.upgrade() {
                listener.alarm.borrow_mut().take();
                listener.drive();
            }
        });
        if let Some(before) = alarm.replace(Alarm { at, task }) {
            before.task.abort();
        }
    }

    /// Starts a process under the number that the pool gave it.
    fn start(&self, id: ProcessId, means: &Means) {
        let started = match process::Started::new(&self.name, &self.spec, &means.limits, means.json.clone()) {
            Ok(started) => started,
            Err(error) => {
                tracing::warn!(listener = %self.name, program = %self.spec.command.program.display(), error = error.detail(), "a worker can't be started");
                let ending = if error.is_temporary() { Ending::Shortage } else { Ending::Failed };
                return self.ended(id, ending, ProcessEnd { why: error.to_string(), said: String::new() }, means);
            }
        };
        let connection = started.connection();
        let served = tokio::task::spawn_local({
            let (means, connection) = (means.clone(), connection.clone());
            async move { serve(id, started, connection, means).await }
        });
        self.running.borrow_mut().insert(id, Running { connection, served });
    }

    /// Takes a process from its messages, which has ended.
    fn ended(&self, id: ProcessId, ending: Ending, end: ProcessEnd, means: &Means) {
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
            tracing::error!(listener = %self.name, error = end.why, "the processes of a worker end one after the other: none is started for {rest:?}, and messages wait");
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
            tracing::warn!(listener = %self.name, error = why, "messages fail, since no process of a worker came up within {within:?}: where that takes long, write `start: eager`, or a longer `timeout`");
        }
    }

    /// The end of the last process that did not come up.
    fn setback(&self) -> Rc<ProcessEnd> {
        let known = self.setback.borrow().clone();
        let silent = "it has not answered its first heartbeat";
        known.unwrap_or_else(|| ProcessEnd { why: silent.to_owned(), said: String::new() }.into())
    }
}

/// Serves a process to its end.
async fn serve(id: ProcessId, mut started: process::Started, connection: Rc<Connection>, means: Means) {
    let mut serving = pin!(started.serve(&means.clock));
    let ended = tokio::select! {
        biased;
        () = connection.begun() => None,
        ended = &mut serving => Some(ended),
    };
    if connection.is_up()
        && let Some(listener) = means.listener.upgrade()
    {
        listener.pool.borrow_mut().came_up(id);
        listener.drive();
    }
    let (end, said) = match ended {
        Some(ended) => ended,
        None => serving.await,
    };
    let Some(listener) = means.listener.upgrade() else { return };
    let in_flight = connection.load();
    let ending = if end.is_success() { Ending::Exited } else { Ending::Failed };
    if !end.is_success() || in_flight > 0 || !connection.is_up() {
        let begun = if connection.is_up() { "a worker ended" } else { "a worker ended before its first line" };
        tracing::warn!(listener = %listener.name, program = %listener.spec.command.program.display(), error = end.detail(), in_flight, stderr = cause(&said), "{begun}");
    }
    listener.ended(id, ending, ProcessEnd { why: end.to_string(), said }, &means);
    listener.drive();
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

impl RawListener for WorkerListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(self.handle(message, context))
    }

    fn prepare(self: Rc<Self>, context: StartContext) {
        let json = || JsonPayloads::new(context.contract(), context.catalog().clone(), &context.limits().xml);
        let means = self.means(context.clock(), context.rests(), context.limits(), json);
        for _ in 0..self.spec.processes {
            let id = self.pool.borrow_mut().start(means.clock.now());
            id.into_iter().for_each(|id| self.start(id, means));
        }
    }
}

impl Drop for WorkerListener {
    fn drop(&mut self) {
        self.running.borrow().values().for_each(|running| running.served.abort());
        self.alarm.borrow().iter().for_each(|alarm| alarm.task.abort());
    }
}

/// Makes a failure of the listener, not of the message.
fn failed(message: impl Into<Arc<str>>, retryable: bool) -> Failure {
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
