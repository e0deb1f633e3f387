//! A process of a worker that is spoken to line by line, to test how it keeps the protocol.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use systole_core::vocab::Limits;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::task::JoinHandle;

use super::line::{self, Heard};
use super::process::{End, Streams, hear, spawn};
use crate::runtime::command::CommandSpec;
use crate::runtime::command::process::{LINGER, Process};
use crate::runtime::command::streams::read_line;

/// Lines of a process that wait to be received, at most.
const UNREAD: usize = 4096;
/// Lines of output that are kept.
const PRINTED: usize = 20;

/// A process that is started as for a `worker:`, and spoken to by the caller instead of the pump. Dropping it kills its
/// group.
///
/// It has to be made and used within a tokio runtime.
pub struct Trial {
    process: Process,
    /// `None` once its input has ended.
    input: Option<UnboundedSender<Vec<u8>>>,
    lines: Receiver<Spoken>,
    printed: Arc<Mutex<VecDeque<String>>>,
    /// They keep what is printed.
    keepers: Vec<JoinHandle<()>>,
}

/// A line that a process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// The line, without its line feed.
    pub line: String,
    /// Its meaning to the pump, or what is wrong with it: nothing is read behind a bad line.
    pub heard: Result<Heard, String>,
}

impl Trial {
    /// Starts a process.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(spec: &CommandSpec, limits: &Limits) -> io::Result<Self> {
        let (process, Streams { stdin, lines: stream, stdout, stderr }) = spawn(spec)?;
        let (input, queue) = unbounded_channel();
        let (sender, lines) = channel(UNREAD);
        let printed = Arc::default();
        // Each ends with its stream; the kill of the group closes those.
        tokio::spawn(write(stdin, queue));
        tokio::spawn(listen(stream, line::longest(limits), sender));
        let keepers =
            vec![tokio::spawn(keep(stdout, Arc::clone(&printed))), tokio::spawn(keep(stderr, Arc::clone(&printed)))];
        Ok(Self { process, input: Some(input), lines, printed, keepers })
    }

    /// Queues bytes for its standard input, which are written in one piece where the pipe has room.
    pub fn send(&self, bytes: impl Into<Vec<u8>>) {
        if let Some(input) = &self.input {
            // A process that closed its standard input is found out by what it doesn't say.
            let _ = input.send(bytes.into());
        }
    }

    /// Ends its standard input behind what is queued.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// The next line; `None` once it has closed the descriptor.
    ///
    /// # Cancel safety
    /// Dropping the future loses no line.
    pub async fn receive(&mut self) -> Option<Spoken> {
        self.lines.recv().await
    }

    /// Waits until the process exits, then kills the rest of its group, and reads its output to the end.
    ///
    /// # Errors
    /// The error of the system.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.process.wait().await?;
        self.process.kill();
        for keeper in self.keepers.drain(..) {
            // A descendant outside of the group may hold the stream.
            let _ = tokio::time::timeout(LINGER, keeper).await;
        }
        Ok(status)
    }

    /// The last lines of its standard output and its standard error.
    pub fn printed(&self) -> Vec<String> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

async fn write(stdin: Option<ChildStdin>, mut queue: UnboundedReceiver<Vec<u8>>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(bytes) = queue.recv().await {
        if stdin.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn listen(stream: impl AsyncRead + Unpin, longest: usize, lines: Sender<Spoken>) {
    let end = hear(stream, longest, |bytes| {
        let line = String::from_utf8_lossy(bytes).into_owned();
        let heard = line::read(bytes);
        let broken = heard.as_ref().err().cloned();
        lines.try_send(Spoken { line: line.clone(), heard }).map_err(|_| End::Closed)?;
        broken.map_or(Ok(()), |why| Err(End::Line { line, why }))
    });
    if let end @ (End::TooLong(_) | End::Stream(_)) = end.await {
        let _ = lines.send(Spoken { line: String::new(), heard: Err(end.to_string()) }).await;
    }
}

/// Keeps the last lines of an output.
async fn keep(stream: Option<impl AsyncRead + Unpin>, printed: Arc<Mutex<VecDeque<String>>>) {
    let Some(stream) = stream else { return };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(true) = read_line(&mut reader, &mut line).await {
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.len() == PRINTED {
            printed.pop_front();
        }
        printed.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
}
