//! Workers: listeners that are programs which stay, in one or several processes, one JSON object a line, many messages
//! at once.
//!
//! `docs/worker.md` is the protocol. A process gets lines on its standard input and writes lines to the descriptor that
//! `SYSTOLE_WORKER` names; its standard output and standard error go to the log. Its environment, its process group and
//! its end with this process are those of a [command](crate::process).
//!
//! Invariants: each message in flight has one process, and is answered by it, cancelled, or run again in another one when
//! the process has ended, alone and up to `max_attempts` (`fleet`); no process can make the memory of this one grow past
//! the limits of lines, of messages in flight and of their answers; when the listener is dropped, its processes get the
//! end of their input, SIGTERM and SIGKILL, in this order.

mod calls;
mod connection;
mod exchange;
mod line;
mod message_run;
mod process;
mod records;
mod trial;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use systole_core::core::{Contract, Failure, HandlerOutcome, Message};
use systole_core::vocab::{Limits, Name};
use systole_xml::schema::Catalog;

use super::fleet::{Fleet, Kind, Lost, Means, Started, failed};
use super::json::JsonPayloads;
use crate::process::CommandSpec;
use crate::process::run::CommandError;
use crate::runtime::{LocalBoxFuture, RawListener, RunContext, StartContext};
use calls::Calls;
use connection::Connection;
use message_run::{Run, run_message};
use records::Records;

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
    fleet: Rc<Fleet<Workers>>,
}

/// The processes of a worker.
struct Workers {
    spec: WorkerSpec,
    /// The payloads of its lines as JSON, from its start on; `None` in it if they are XML.
    json: OnceCell<Option<Rc<JsonPayloads>>>,
}

impl Workers {
    /// Makes the payloads of its lines, if they are JSON, before the first process starts.
    fn read_contract(&self, contract: &Contract, catalog: &Arc<Catalog>, limits: &Limits) {
        self.json
            .get_or_init(|| self.spec.json.then(|| JsonPayloads::new(contract, catalog.clone(), &limits.xml).into()));
    }
}

impl Kind for Workers {
    type Member = Connection;
    const WHAT: &'static str = "a worker";

    fn start(&self, name: &Name, means: &Means<Self>) -> Result<Started<Connection>, CommandError> {
        let mut process = process::Worker::start(name, &self.spec, &means.limits, self.json.get().cloned().flatten())?;
        let (member, clock) = (process.connection(), means.clock.clone());
        Ok(Started { member, serving: Box::pin(async move { process.serve(&clock).await }) })
    }

    fn program(&self) -> String {
        self.spec.command.program.display().to_string()
    }
}

impl WorkerListener {
    /// Makes a listener of that name.
    pub fn new(name: Name, spec: WorkerSpec) -> Self {
        let processes = spec.processes;
        Self { fleet: Rc::new(Fleet::new(name, Workers { spec, json: OnceCell::new() }, processes)) }
    }

    /// Runs a message until it has an outcome: again in another process when one has ended.
    async fn handle(self: Rc<Self>, message: Message, context: RunContext) -> HandlerOutcome {
        let wall = match context.thread().clock() {
            Ok(wall) => wall,
            Err(failure) => return HandlerOutcome::Failed(failure),
        };
        self.fleet.kind().read_contract(context.contract(), context.catalog(), context.limits());
        let clock = self.fleet.means(&wall, context.rests(), context.limits()).clock.clone();
        let mut calls = Calls::new(context.limits().xml.message_bytes);
        let mut records = match Records::of(&context) {
            Ok(records) => records,
            Err(fault) => return HandlerOutcome::Failed(Failure::passing(fault)),
        };
        let seat = self.fleet.enter(message.attempts, context.limits().max_attempts);
        loop {
            let connection = match seat.process(context.contract().timeout, &context, &clock).await {
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
}

impl RawListener for WorkerListener {
    fn run(self: Rc<Self>, message: Message, context: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(self.handle(message, context))
    }

    fn prepare(self: Rc<Self>, context: StartContext) {
        self.fleet.kind().read_contract(context.contract(), context.catalog(), context.limits());
        self.fleet.means(context.clock(), context.rests(), context.limits());
        self.fleet.prepare(self.fleet.kind().spec.processes);
    }
}
