//! A process of a worker whose messages a test sends, instead of the pump.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use systole_core::vocab::{Fault, Limits, MessageId};
use systole_xml::ladder::Canonical;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::exchange::{Exchange, LineKind};
use super::line;
use super::process::spawn;
use crate::listeners::fleet::line_process::{End, LineProcess};
use crate::listeners::json::JsonPayloads;
use crate::process::CommandSpec;
use crate::process::run::{LINGER, Streams};
use crate::process::streams::read_line;

/// Lines of output that are kept.
const PRINTED: usize = 20;

/// A process that is started as for a `worker:`. Its lines are judged by the code of the pump. Dropping it kills its group.
///
/// It has to be made and used within a tokio runtime.
pub struct Trial {
    process: LineProcess,
    exchange: Exchange<()>,
    /// `None` once its input has ended.
    input: Option<UnboundedSender<Vec<u8>>>,
    printed: Arc<Mutex<VecDeque<String>>>,
    /// Tasks that collect what the process prints.
    keepers: Vec<JoinHandle<()>>,
    end: Option<End>,
}

/// A line that a process wrote, or its end.
#[derive(Debug, Clone)]
pub enum TrialOutput {
    /// A line.
    Line {
        /// The line, without its line feed; of one that is too long, its beginning.
        text: String,
        /// The meaning to the pump, or the mistake: the pump ends a process for a bad line.
        kind: Result<LineKind, String>,
    },
    /// The end of the process, by itself or for a reason for which the pump would end it.
    Ended {
        /// The reason, as in a fault.
        why: String,
        /// True if the process exited with 0.
        is_success: bool,
    },
}

impl Trial {
    /// Starts a process, whose lines have payloads as JSON if `json` is there.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(spec: &CommandSpec, limits: &Limits, json: Option<Rc<JsonPayloads>>) -> io::Result<Self> {
        let (process, Streams { stdin, stdout, stderr }) = spawn(spec, limits)?;
        let (input, queue) = unbounded_channel();
        let printed = Arc::default();
        // Each ends with its stream; the kill of the group closes those.
        tokio::spawn(write(stdin, queue));
        let keepers =
            vec![tokio::spawn(keep(stdout, Arc::clone(&printed))), tokio::spawn(keep(stderr, Arc::clone(&printed)))];
        Ok(Self { process, exchange: Exchange::new(limits, json), input: Some(input), printed, keepers, end: None })
    }

    /// Registers a message, before its line is sent.
    pub fn open(&mut self, id: MessageId) {
        self.exchange.open(id, &[], ());
    }

    /// The line that cancels a message, and whether that was in flight.
    pub fn cancel(&mut self, id: MessageId) -> (String, bool) {
        let was_open = self.exchange.close(id).is_some();
        (text(line::cancel(id)), was_open)
    }

    /// The line that answers a call, if it is open.
    pub fn answer(&mut self, id: MessageId, label: &str, outcome: Result<&Canonical, &Fault>) -> Option<String> {
        let is_open = self.exchange.answered(id, label);
        is_open.then(|| text(line::answer(id, label, outcome, self.exchange.json().map(Rc::as_ref))))
    }

    /// The line that confirms a recorded value, if that awaits it.
    pub fn recorded(&mut self, id: MessageId, label: &str, name: &str) -> Option<String> {
        self.exchange.answered(id, label).then(|| text(line::recorded(id, label, name)))
    }

    /// The line of the next heartbeat.
    pub fn ping(&mut self) -> String {
        text(line::ping(self.exchange.ping()))
    }

    /// Returns whether a message or a heartbeat has no answer yet.
    pub fn is_waiting(&self) -> bool {
        self.exchange.load() > 0 || self.exchange.awaits_pong()
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

    /// The next line, or the end of the process.
    ///
    /// # Cancel safety
    /// Dropping the future loses no line, and no end.
    pub async fn receive(&mut self) -> TrialOutput {
        if self.end.is_none() {
            match self.process.next().await {
                Ok(()) => {
                    let line = self.process.line();
                    let text = String::from_utf8_lossy(line.bytes()).into_owned();
                    return TrialOutput::Line { text, kind: self.exchange.judge(line).map(|(kind, _)| kind) };
                }
                Err(end) => self.end = Some(end),
            }
        }
        if matches!(self.end, Some(End::Exit(_))) {
            while let Some(keeper) = self.keepers.last_mut() {
                // A descendant outside of the group may hold the stream.
                let _ = timeout(LINGER, keeper).await;
                self.keepers.pop();
            }
        }
        let why = self.end.as_ref().map_or_else(String::new, ToString::to_string);
        TrialOutput::Ended { why, is_success: self.end.as_ref().is_some_and(End::is_success) }
    }

    /// The last lines of its standard output and its standard error.
    pub fn printed(&self) -> Vec<String> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// A line without its line feed.
fn text(mut line: Vec<u8>) -> String {
    line.pop();
    String::from_utf8(line).unwrap_or_default()
}

async fn write(stdin: Option<ChildStdin>, mut queue: UnboundedReceiver<Vec<u8>>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(bytes) = queue.recv().await {
        if stdin.write_all(&bytes).await.is_err() {
            return;
        }
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
