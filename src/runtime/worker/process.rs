//! Processes of a worker: start, lines, heartbeats, end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use systole_core::vocab::{Limits, Name};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::connection::{Connection, clipped};
use super::{WorkerSpec, line, prints};
use crate::runtime::clock::Clock;
use crate::runtime::command::CommandSpec;
use crate::runtime::command::environment::passed_on;
use crate::runtime::command::guard;
use crate::runtime::command::process::{CommandError, LINGER, Process};

/// The variable that holds the descriptor for the lines of a process.
const DESCRIPTOR: &str = "SYSTOLE_WORKER";
/// Size of the read buffer, in bytes.
const READ: usize = 64 * 1024;
/// Capacity that a buffer keeps after a longer line, in bytes.
const KEPT: usize = 1024 * 1024;

/// Reason for the end of a process.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("{}", CommandError::Exit(*.0))]
    Exit(ExitStatus),
    #[error("the listener closed its streams")]
    Closed,
    #[error("the listener wrote a line that breaks the protocol")]
    Line { line: String, why: String },
    #[error("the listener wrote a line of more than {0} bytes")]
    TooLong(usize),
    #[error("the listener did not answer a heartbeat within {0:?}")]
    Heartbeat(Duration),
    #[error("the streams of the listener can't be used")]
    Stream(#[source] io::Error),
}

impl End {
    /// Tells whether it is an orderly exit.
    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Exit(status) if status.success())
    }

    /// Describes the end for the log, with details that the caller doesn't get.
    pub(super) fn detail(&self) -> String {
        match self {
            Self::Line { line, why } => format!("{self}: {why}: {line}"),
            Self::Stream(cause) => format!("{self}: {cause}"),
            Self::Exit(_) | Self::Closed | Self::TooLong(_) | Self::Heartbeat(_) => self.to_string(),
        }
    }
}

/// A started process. Dropping it kills and reaps its group.
pub(super) struct Started {
    name: Name,
    process: Process,
    connection: Rc<Connection>,
    heartbeat: Duration,
    longest: usize,
    streams: Streams,
}

/// The streams of a process.
pub(super) struct Streams {
    pub(super) stdin: Option<ChildStdin>,
    /// The lines of the protocol that it writes.
    pub(super) lines: ChildStdout,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// Starts a process in a group of its own, with the descriptor for its lines.
pub(super) fn spawn(spec: &CommandSpec) -> io::Result<(Process, Streams)> {
    let (reader, writer) = io::pipe()?;
    let writer = File::from(OwnedFd::from(writer));
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.arguments)
        .current_dir(&spec.directory)
        .env_clear()
        .envs(passed_on(&spec.env))
        // The same descriptor number as here: a fixed one might be in use for the start.
        .env(DESCRIPTOR, writer.as_raw_fd().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, group) = guard::spawn(command, Some(Arc::new(writer)))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process::new(child, group);
    let lines = ChildStdout::from_std(OwnedFd::from(reader).into())?;
    Ok((process, Streams { stdin, lines, stdout, stderr }))
}

impl Started {
    /// Starts a process.
    pub(super) fn new(name: &Name, spec: &WorkerSpec, limits: &Limits) -> Result<Self, CommandError> {
        let (process, streams) = spawn(&spec.command).map_err(CommandError::Start)?;
        Ok(Self {
            name: name.clone(),
            process,
            connection: Rc::default(),
            heartbeat: spec.heartbeat,
            longest: line::longest(limits),
            streams,
        })
    }

    /// Returns the connection to the process.
    pub(super) fn connection(&self) -> Rc<Connection> {
        self.connection.clone()
    }

    /// Moves lines until the process ends or has to be ended, then fails its messages; returns the reason and their
    /// number.
    pub(super) async fn serve(mut self, clock: &Clock) -> (End, usize) {
        let connection = self.connection.clone();
        let end = self.run(&connection, clock).await;
        let under_way = connection.load();
        connection.end(&end.to_string());
        (end, under_way)
    }

    async fn run(&mut self, connection: &Connection, clock: &Clock) -> End {
        let Self { name, process, streams: Streams { stdin, lines, stdout, stderr }, .. } = self;
        let mut hearing = pin!(hear(lines, self.longest, |line| understood(connection, line)));
        let prints = (prints::log(stdout.take(), name, clock), prints::log(stderr.take(), name, clock));
        let mut printing = pin!(async { tokio::join!(prints.0, prints.1) });
        let mut printed = false;
        let mut writing = pin!(write(connection, stdin.take()));
        let mut beating = pin!(beat(connection, self.heartbeat));
        loop {
            tokio::select! {
                end = &mut hearing => return exited(process, end).await,
                end = &mut writing => {
                    let end = exited(process, end).await;
                    // The lines that it wrote before it stopped reading count.
                    process.kill();
                    let _ = tokio::time::timeout(LINGER, hearing).await;
                    return end;
                }
                end = &mut beating => return end,
                _ = &mut printing, if !printed => printed = true,
                status = process.wait() => {
                    // The lines that it wrote before it ended count.
                    process.kill();
                    let rest = async { tokio::join!(hearing, async { if !printed { printing.await; } }) };
                    let _ = tokio::time::timeout(LINGER, rest).await;
                    return status.map_or_else(End::Stream, End::Exit);
                }
            }
        }
    }
}

/// Waits for the exit of a process that closed its streams, since mostly it is about to exit.
async fn exited(process: &mut Process, end: End) -> End {
    if !matches!(end, End::Closed) {
        return end;
    }
    match tokio::time::timeout(LINGER, process.wait()).await {
        Ok(Ok(status)) => End::Exit(status),
        Ok(Err(_)) | Err(_) => End::Closed,
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.connection.end("the listener was ended");
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

/// Sends a heartbeat in each interval, first after one interval.
async fn beat(connection: &Connection, every: Duration) -> End {
    loop {
        tokio::time::sleep(every).await;
        if !connection.ping() {
            return End::Heartbeat(every);
        }
    }
}

/// Reads lines until the end of the stream, or a line that `take` refuses.
pub(super) async fn hear(
    stream: impl AsyncRead + Unpin,
    longest: usize,
    mut take: impl FnMut(&[u8]) -> Result<(), End>,
) -> End {
    let mut reader = BufReader::with_capacity(READ, stream);
    // The start of an incomplete line.
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let available = match reader.fill_buf().await {
            Ok([]) => return End::Closed,
            Ok(available) => available,
            Err(error) => return End::Stream(error),
        };
        let used = available.len();
        let mut rest = available;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if begun.len() + line.len() > longest {
                return End::TooLong(longest);
            }
            let heard = if begun.is_empty() {
                take(line)
            } else {
                begun.extend_from_slice(line);
                let heard = take(&begun);
                begun.clear();
                begun.shrink_to(KEPT);
                heard
            };
            if let Err(end) = heard {
                return end;
            }
            rest = after;
        }
        if begun.len() + rest.len() > longest {
            return End::TooLong(longest);
        }
        begun.extend_from_slice(rest);
        reader.consume(used);
    }
}

fn understood(connection: &Connection, line: &[u8]) -> Result<(), End> {
    connection
        .hear(line)
        .map_err(|why| End::Line { line: clipped(&String::from_utf8_lossy(line), 200).to_owned(), why })
}
