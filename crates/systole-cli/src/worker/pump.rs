//! The other side of a worker's process: what it was sent, what may come of it, and what came.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::{Map, Value, json};
use systole::runtime::command::CommandSpec;
use systole::runtime::worker::{Heard, Said, Spoken, Trial};
use systole_core::vocab::Limits;
use tokio::time::{Instant, timeout_at};

use super::contract::Sample;

/// A process, and the messages in flight in it.
pub(super) struct Pump {
    trial: Trial,
    patience: Patience,
    /// Time limit of the current check, and its end.
    limit: Duration,
    until: Instant,
    /// Whether the process has written a line.
    has_started: bool,
    /// Number of messages so far, of which the ids are made.
    messages: u64,
    open: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    /// The last heartbeat, and the last one that was answered.
    pings: (u64, u64),
    /// Lines of the current check.
    sent: Vec<String>,
}

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Of a process for its first line: programs may load much.
    pub(super) start: Duration,
    /// Of a check.
    pub(super) check: Duration,
}

/// A line of the process that was expected.
pub(super) enum Came {
    Pong,
    Answer(Answer),
    Call { id: String, xml: String, label: String },
}

/// The answer to a message.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Payloads(Vec<String>),
    Error(String),
}

/// Breach of the protocol.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) came: String,
    pub(super) expected: String,
}

impl Pump {
    pub(super) fn start(program: &CommandSpec, limits: &Limits, patience: Patience) -> io::Result<Self> {
        let trial = Trial::start(program, limits)?;
        let (open, cancelled) = (BTreeSet::new(), BTreeSet::new());
        let (messages, pings, sent) = (0, (0, 0), Vec::new());
        let (limit, until, has_started) = (patience.start, Instant::now(), false);
        Ok(Self { trial, patience, limit, until, has_started, messages, open, cancelled, pings, sent })
    }

    /// Begins a check, with its time limit.
    pub(super) fn begin(&mut self) {
        self.sent.clear();
        self.wait_at_most(if self.has_started { self.patience.check } else { self.patience.start });
    }

    fn wait_at_most(&mut self, limit: Duration) {
        self.limit = limit;
        self.until = Instant::now() + limit;
    }

    /// The lines that the current check has sent.
    pub(super) fn sent(&self) -> &[String] {
        &self.sent
    }

    pub(super) fn printed(&self) -> Vec<String> {
        self.trial.printed()
    }

    /// Whether a message or a heartbeat has no answer yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty() || self.pings.0 != self.pings.1
    }

    /// The line of a new message with further fields; its id is the first value.
    pub(super) fn message(&mut self, sample: &Sample, more: Map<String, Value>) -> (String, String) {
        self.messages += 1;
        let id = format!("00000000-0000-8000-8000-{:012x}", self.messages);
        let thread = format!("00000000-0000-8000-8001-{:012x}", self.messages);
        let mut line = json!({ "id": id, "type": sample.name, "payload": sample.xml, "from": "cli", "thread": thread });
        line.as_object_mut().into_iter().for_each(|fields| fields.extend(more.clone()));
        self.open.insert(id.clone());
        (id, line.to_string())
    }

    /// The line of the next heartbeat.
    pub(super) fn ping(&mut self) -> String {
        self.pings.0 += 1;
        json!({ "ping": self.pings.0 }).to_string()
    }

    /// The line that cancels a message.
    pub(super) fn cancel(&mut self, id: &str) -> String {
        if self.open.remove(id) {
            self.cancelled.insert(id.to_owned());
        }
        json!({ "cancel": id }).to_string()
    }

    /// Sends lines, in one piece.
    pub(super) fn send(&mut self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.sent.extend_from_slice(lines);
        self.trial.send(text);
    }

    /// Sends a whole line and the beginning of another one, whose rest is returned.
    pub(super) fn send_begun<'l>(&mut self, whole: &str, begun: &'l str) -> &'l str {
        let (now, later) = begun.split_at(begun.len() / 2);
        self.sent.extend([whole.to_owned(), begun.to_owned()]);
        self.trial.send(format!("{whole}\n{now}"));
        later
    }

    /// Sends the rest of a line.
    pub(super) fn send_rest(&mut self, rest: &str) {
        self.trial.send(format!("{rest}\n"));
    }

    /// The next line of the process, but for lines about messages that were cancelled: they are dropped.
    pub(super) async fn next(&mut self, expected: &str) -> Result<Came, Broken> {
        loop {
            let spoken = match timeout_at(self.until, self.trial.receive()).await {
                Ok(Some(spoken)) => spoken,
                Ok(None) => return Err(broken(self.end().await, expected)),
                Err(_) => return Err(broken(self.nothing(), expected)),
            };
            if !std::mem::replace(&mut self.has_started, true) {
                self.wait_at_most(self.patience.check);
            }
            if let Some(came) = self.judge(spoken)? {
                return Ok(came);
            }
        }
    }

    fn judge(&mut self, Spoken { line, heard }: Spoken) -> Result<Option<Came>, Broken> {
        let heard = heard.map_err(|why| broken(line.clone(), &format!("a line that keeps the protocol: {why}")))?;
        let (id, said) = match heard {
            Heard::Pong(number) if self.pings == (number, number - 1) => {
                self.pings.1 = number;
                return Ok(Some(Came::Pong));
            }
            Heard::Pong(_) => {
                let (sent, answered) = self.pings;
                let expected =
                    if sent == answered { "no pong, without a ping".into() } else { format!("{{\"pong\":{sent}}}") };
                return Err(broken(line, &expected));
            }
            Heard::About { id, said } => (id, said),
        };
        if self.cancelled.contains(&id) {
            return Ok(None);
        }
        if !self.open.contains(&id) {
            return Err(broken(line, "a line about a message that is in flight, which this id is not"));
        }
        let answer = match said {
            Said::Call { xml, label, .. } => return Ok(Some(Came::Call { id, xml, label })),
            Said::Payloads(payloads) => Answer::Payloads(payloads),
            Said::Error(text) => Answer::Error(text),
        };
        self.open.remove(&id);
        Ok(Some(Came::Answer(answer)))
    }

    /// Ends the input of the process, and waits for its exit.
    pub(super) async fn close(&mut self) -> Result<(), Broken> {
        const EXPECTED: &str = "an exit with status 0, since its standard input has ended";
        self.trial.close();
        if let Ok(Some(Spoken { line, .. })) = timeout_at(self.until, self.trial.receive()).await {
            return Err(broken(line, EXPECTED));
        }
        match timeout_at(self.until, self.trial.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(ended) => Err(broken(said(ended), EXPECTED)),
            Err(_) => Err(broken(self.nothing(), EXPECTED)),
        }
    }

    fn nothing(&self) -> String {
        format!("nothing within {:?}", self.limit)
    }

    /// Describes the end of a process that closed its descriptor.
    async fn end(&mut self) -> String {
        timeout_at(self.until, self.trial.wait())
            .await
            .map_or_else(|_| "the descriptor of SYSTOLE_WORKER was closed".to_owned(), said)
    }
}

fn said(ended: io::Result<ExitStatus>) -> String {
    ended.map_or_else(|error| error.to_string(), |status| format!("the end of the process: {status}"))
}

fn broken(came: impl Into<String>, expected: &str) -> Broken {
    Broken { came: came.into(), expected: expected.to_owned() }
}
