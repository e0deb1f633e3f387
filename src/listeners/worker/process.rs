//! Processes of a worker: start, lines, heartbeats, end.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::{Limits, Name};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::connection::Connection;
use super::exchange::clipped;
use super::{WorkerSpec, line};
use crate::listeners::fleet::line_process::{End, LineProcess};
use crate::listeners::fleet::{Member, Over, prints};
use crate::listeners::json::JsonPayloads;
use crate::process::CommandSpec;
use crate::process::environment::passed_on;
use crate::process::guard;
use crate::process::run::{CommandError, LINGER, Process, Streams};
use crate::process::streams::keep_end;
use systole_store::clock::Clock;

/// The variable that holds the descriptor for the lines of a process.
const DESCRIPTOR: &str = "SYSTOLE_WORKER";
/// The variable that holds the length of the longest line that a process may write, in bytes.
const LONGEST: &str = "SYSTOLE_WORKER_LINE";
/// Time limit of a process to come up; two intervals of heartbeats, if they are longer.
const START: Duration = Duration::from_secs(60);
/// Capacity that a buffer keeps after a longer line, in bytes.
const KEPT: usize = 1024 * 1024;

/// A started process. Dropping it ends its group.
pub(super) struct Worker {
    name: Name,
    process: LineProcess,
    connection: Rc<Connection>,
    heartbeat: Duration,
    streams: Streams,
}

/// Starts a process in a group of its own, with the descriptor for its lines.
pub(super) fn spawn(spec: &CommandSpec, limits: &Limits) -> io::Result<(LineProcess, Streams)> {
    let (reader, writer) = io::pipe()?;
    let writer = File::from(OwnedFd::from(writer));
    let mut command = spec.command(passed_on(&spec.env));
    command
        // The same descriptor number as here: a fixed one might be in use for the start.
        .env(DESCRIPTOR, writer.as_raw_fd().to_string())
        .env(LONGEST, line::longest(limits).to_string());
    let (child, group) = guard::spawn(command, Some(Arc::new(writer)))?;
    let mut process = Process::new(child, group);
    let streams = process.take_streams();
    let lines = ChildStdout::from_std(OwnedFd::from(reader).into())?;
    Ok((LineProcess::new(process, lines, line::longest(limits)), streams))
}

impl Worker {
    /// Starts a process.
    pub(super) fn start(
        name: &Name,
        spec: &WorkerSpec,
        limits: &Limits,
        json: Option<Rc<JsonPayloads>>,
    ) -> Result<Self, CommandError> {
        let (process, streams) = spawn(&spec.command, limits).map_err(CommandError::Start)?;
        let connection = Rc::new(Connection::new(limits, json));
        Ok(Self { name: name.clone(), process, connection, heartbeat: spec.heartbeat, streams })
    }

    /// Returns the connection to the process.
    pub(super) fn connection(&self) -> Rc<Connection> {
        self.connection.clone()
    }

    /// Moves lines until the process ends or has to be ended, and waits for its end: its messages may run again then.
    pub(super) async fn serve(&mut self, clock: &Clock) -> Over {
        let (connection, said) = (self.connection.clone(), RefCell::default());
        let end = self.run(&connection, clock, &said).await;
        Over { why: end.to_string(), detail: end.detail(), said: said.into_inner(), is_success: end.is_success() }
    }

    async fn run(&mut self, connection: &Connection, clock: &Clock, said: &RefCell<String>) -> End {
        let Self { name, process, streams: Streams { stdin, stdout, stderr }, .. } = self;
        let keep = |line: &str| {
            keep_end(&mut said.borrow_mut(), line);
            connection.said(line);
        };
        let prints = (
            prints::log(stdout.take(), name, clock, || connection.subject(), |_| ()),
            prints::log(stderr.take(), name, clock, || connection.subject(), keep),
        );
        let mut printing = pin!(async { tokio::join!(prints.0, prints.1) });
        let mut printed = false;
        let end = {
            let mut reading = pin!(read_lines(connection, process));
            let mut writing = pin!(write(connection, stdin.take()));
            let mut heartbeats = pin!(send_heartbeats(connection, self.heartbeat));
            loop {
                tokio::select! {
                    biased;
                    // What it wrote before a line is about the message that the line may end.
                    _ = &mut printing, if !printed => printed = true,
                    end = &mut reading => break end,
                    // Mostly it is about to exit; the lines that it wrote before count.
                    end = &mut writing => break timeout(LINGER, reading).await.unwrap_or(end),
                    end = &mut heartbeats => break end,
                }
            }
        };
        process.finish(matches!(end, End::Exit(_)), printing, printed).await;
        end
    }
}

/// Reads lines until the end of the process, or a line that breaks the protocol.
async fn read_lines(connection: &Connection, process: &mut LineProcess) -> End {
    loop {
        if let Err(end) = process.next().await {
            return end;
        }
        if let Err(why) = connection.take_line(process.line()) {
            let line = clipped(&String::from_utf8_lossy(process.line().bytes()), 200).to_owned();
            return End::Line { line, why };
        }
    }
}

/// Writes queued lines to the process.
async fn write(connection: &Connection, stdin: Option<ChildStdin>) -> End {
    let Some(mut stdin) = stdin else { return End::Closed };
    let mut lines = Vec::new();
    loop {
        connection.take(&mut lines).await;
        if stdin.write_all(&lines).await.is_err() {
            return End::Closed;
        }
        lines.clear();
        lines.shrink_to(KEPT);
    }
}

/// Sends a heartbeat at once, whose answer says that the process has come up, and then one in each interval.
async fn send_heartbeats(connection: &Connection, every: Duration) -> End {
    connection.ping();
    let longest = START.max(2 * every);
    if timeout(longest, connection.begun()).await.is_err() {
        return End::Silent(longest);
    }
    loop {
        tokio::time::sleep(every).await;
        if !connection.ping() {
            return End::Heartbeat(every);
        }
    }
}
