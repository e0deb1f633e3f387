//! Workers: listeners that are programs which stay, in one or several processes, one JSON object a line, many messages
//! at once.
//!
//! `docs/worker.md` is the protocol. A process gets lines on its standard input and writes lines to the descriptor that
//! `SYSTOLE_WORKER` names; its standard output and standard error go to the log. Its environment, its process group and
//! its end with this process are those of a [`command`](super::command).
//!
//! Invariants: each message in flight has one process, and is answered by it, cancelled, or run again in another one when
//! the process ends, up to `max_attempts`; no process can make the memory of this one grow past the limits of lines, of
//! messages in flight and of their answers; when the listener is dropped, its processes are killed and reaped.

mod calls;
mod connection;
mod exchange;
mod line;
mod line_process;
mod message_run;
mod prints;
mod process;
mod records;
mod trial;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::{Failure, HandlerOutcome, Message};
use systole_core::vocab::{Fault, FaultCode, Limits, Name, Time};
use tokio::task::JoinHandle;

use super::clock::Clock;
use super::command::CommandSpec;
use super::host::restart::{COOL_DOWN, Restarts, Verdict};
use super::{LocalBoxFuture, RawListener, RunContext, StartContext};
use calls::Calls;
use connection::Connection;
use message_run::{Run, run_message};
use records::Records;

pub use exchange::{LineEffect, LineKind};
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
}

systole_core::vocab::setters!(WorkerSpec {
    command: CommandSpec,
    processes: u32,
    heartbeat: Duration,
    start: WorkerStart,
});

/// The time at which the processes of a worker are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerStart {
    /// A process starts with the first message, another one when all have work.
    #[default]
    Lazy,
    /// All processes start with the organism, if the listener is registered by
    /// [`raw_listener_at_start`](super::OrganismBuilder::raw_listener_at_start). After an end, a process starts as with
    /// `Lazy`.
    Eager,
}

impl WorkerSpec {
    /// Default interval of heartbeats.
    pub const HEARTBEAT: Duration = Duration::from_secs(30);

    /// Settings for one process of that program, which starts with the first message.
    pub fn new(command: CommandSpec) -> Self {
        Self { command, processes: 1, heartbeat: Self::HEARTBEAT, start: WorkerStart::default() }
    }
}

/// A listener whose messages go to processes that stay.
pub struct WorkerListener {
    name: Name,
    spec: WorkerSpec,
    running: RefCell<Vec<Running>>,
    rest: RefCell<Rest>,
}

/// A process with the task that serves it.
struct Running {
    connection: Rc<Connection>,
    served: JoinHandle<()>,
}

/// Failures of processes lately, and the time until which no other one is started.
#[derive(Default)]
struct Rest {
    restarts: Restarts,
    until: Option<Time>,
}

impl WorkerListener {
    /// Makes a listener of that name.
    pub fn new(name: Name, spec: WorkerSpec) -> Self {
        Self { name, spec, running: RefCell::default(), rest: RefCell::default() }
    }

    /// Returns the process with the fewest messages; starts another one if all have some and the limit allows it.
    fn connection(self: &Rc<Self>, context: &RunContext) -> Result<Rc<Connection>, Failure> {
        let clock = context.thread().clock()?;
        self.running.borrow_mut().retain(|running| !running.connection.has_ended());
        let running = self.running.borrow();
        let count = running.len();
        let idlest = running.iter().map(|running| &running.connection).min_by_key(|connection| connection.load());
        if let Some(idlest) = idlest
            && (idlest.load() == 0 || count >= self.spec.processes as usize || self.rests(clock.now()))
        {
            return Ok(idlest.clone());
        }
        drop(running);
        self.start(&clock, context.limits())
    }

    /// Starts a process.
    fn start(self: &Rc<Self>, clock: &Clock, limits: &Limits) -> Result<Rc<Connection>, Failure> {
        if self.rests(clock.now()) {
            return Err(failed("the listener failed too often and is resting: try again later", true));
        }
        let started = process::Started::new(&self.name, &self.spec, limits).map_err(|error| {
            tracing::warn!(listener = %self.name, program = %self.spec.command.program.display(), error = error.detail(), "a worker can't be started");
            self.failed(clock.now());
            failed(error.to_string(), error.is_temporary())
        })?;
        let connection = started.connection();
        let served = tokio::task::spawn_local({
            let (listener, clock) = (Rc::downgrade(self), clock.clone());
            async move {
                let (end, in_flight) = started.serve(&clock).await;
                let Some(listener) = listener.upgrade() else { return };
                if !end.is_success() || in_flight > 0 {
                    tracing::warn!(listener = %listener.name, program = %listener.spec.command.program.display(), error = end.detail(), in_flight, "a worker ended");
                    listener.failed(clock.now());
                }
            }
        });
        self.running.borrow_mut().push(Running { connection: connection.clone(), served });
        Ok(connection)
    }

    /// Runs a message until it has an outcome: again in another process when one has ended.
    async fn handle(self: Rc<Self>, message: Message, context: RunContext) -> HandlerOutcome {
        let (most, answers) = (context.limits().max_attempts, context.limits().xml.message_bytes);
        let mut calls = Calls::new(answers);
        let mut records = match Records::of(&context) {
            Ok(records) => records,
            Err(fault) => return HandlerOutcome::Failed(Failure::passing(fault)),
        };
        let mut attempt = 1;
        loop {
            let connection = match self.connection(&context) {
                Ok(connection) => connection,
                Err(failure) => return HandlerOutcome::Failed(failure),
            };
            records.durable(&context).await;
            match run_message(connection, &message, &context, &mut calls, &mut records).await {
                Run::Done(outcome) => return outcome,
                // No attempt: the process never had it.
                Run::Lost { delivered: false, .. } => {}
                Run::Lost { why, .. } if !calls.begin_again() => return HandlerOutcome::Failed(failed(&*why, true)),
                Run::Lost { why, .. } if attempt >= most => {
                    return HandlerOutcome::Failed(failed(format!("{why}, in attempt {attempt} of {most}"), true));
                }
                Run::Lost { .. } => attempt += 1,
            }
        }
    }

    fn failed(&self, now: Time) {
        let mut rest = self.rest.borrow_mut();
        if rest.restarts.failed(now) == Verdict::Down {
            rest.until = Some(now.after(COOL_DOWN));
            tracing::error!(listener = %self.name, "the workers of a listener ended too often: none is started for {COOL_DOWN:?}");
        }
    }

    fn rests(&self, now: Time) -> bool {
        self.rest.borrow().until.is_some_and(|until| now < until)
    }
}

impl RawListener for WorkerListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(self.handle(message, context))
    }

    fn prepare(self: Rc<Self>, context: StartContext) {
        for _ in 0..self.spec.processes {
            // The log has the reason; the first message tries again, and its caller gets it.
            if self.start(context.clock(), context.limits()).is_err() {
                break;
            }
        }
    }
}

impl Drop for WorkerListener {
    fn drop(&mut self) {
        self.running.borrow().iter().for_each(|running| running.served.abort());
    }
}

/// Makes a failure of the listener, not of the message.
fn failed(message: impl Into<Arc<str>>, retryable: bool) -> Failure {
    Failure::passing(Fault { retryable, ..Fault::new(FaultCode::ListenerFailed, message) })
}
