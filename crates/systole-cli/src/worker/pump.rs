//! The other side of a worker's process: what it was sent, what may come of it, and what came.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use systole::listeners::worker::{LineEffect, LineKind, Output, Trial, TrialOutput};
use systole::process::CommandSpec;
use systole_core::core::Emission;
use systole_core::vocab::{Fault, MessageId};
use systole_xml::ladder::Canonical;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::contract::{Contract, Sample};

/// Silence of a process from which on its calls are answered: those that it has open at once come before.
const SILENCE: Duration = Duration::from_millis(100);

/// A process, and the messages that it was sent.
pub(super) struct Pump {
    trial: Trial,
    patience: Patience,
    /// The current check, its time limit, and its end.
    check: &'static str,
    limit: Duration,
    until: Instant,
    /// True if the process has written a line.
    has_started: bool,
    messages: BTreeMap<MessageId, Sent>,
    /// Lines of the current check.
    sent: Vec<String>,
}

/// The name and the JSON of a value that a message recorded.
pub(super) type Record = (String, Box<RawValue>);

/// A message.
struct Sent {
    /// The check that it is for.
    check: &'static str,
    is_cancelled: bool,
    /// The values that it recorded.
    recorded: Vec<Record>,
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
pub(super) enum Received {
    Pong,
    Answer(Answer),
    Call(Call),
}

/// The answer to a message.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) line: String,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Payloads as one output, or the fault of an answer that is too long.
    Wrote(Result<Output, Fault>),
    Error(String),
}

/// A call, or the fault of one that can't be read.
pub(super) struct Call {
    pub(super) line: String,
    pub(super) id: MessageId,
    pub(super) label: String,
    pub(super) call: Result<Emission, Fault>,
}

/// Breach of the protocol.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) came: String,
    pub(super) expected: String,
}

impl Pump {
    pub(super) fn start(program: &CommandSpec, contract: &Contract, patience: Patience) -> io::Result<Self> {
        Ok(Self {
            trial: Trial::start(program, &contract.limits, contract.json.clone())?,
            patience,
            check: "",
            limit: patience.start,
            until: Instant::now(),
            has_started: false,
            messages: BTreeMap::new(),
            sent: Vec::new(),
        })
    }

    /// Begins a check of that name, with its time limit.
    pub(super) fn begin(&mut self, check: &'static str) {
        self.check = check;
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

    /// True if the process has written a line.
    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(super) fn printed(&self) -> Vec<String> {
        self.trial.printed()
    }

    /// Returns true while a message or a heartbeat has no answer.
    pub(super) fn is_waiting(&self) -> bool {
        self.trial.is_waiting()
    }

    /// The values that a message recorded.
    pub(super) fn recorded(&self, id: MessageId) -> &[Record] {
        self.messages.get(&id).map_or(&[], |sent| &sent.recorded)
    }

    /// The line of a new message, with a further field and its JSON, or none; its id is the first value.
    pub(super) fn message(&mut self, sample: &Sample, more: Option<(&str, &str)>) -> (MessageId, String) {
        let number = self.messages.len() as u128 + 1;
        let [id, thread] = [0x8000_0000_0000, 0x8001_0000_0000_u128]
            .map(|kind| Uuid::from_u128(0x8000_u128 << 64 | kind << 16 | number));
        let Sample { name, payload } = sample;
        let mut line =
            format!(r#"{{"id":"{id}","type":{},"payload":{payload},"from":"cli","thread":"{thread}"}}"#, json!(name));
        if let Some((name, value)) = more {
            line.pop();
            line += &format!(",\"{name}\":{value}}}");
        }
        let id = MessageId::from_uuid(id);
        self.trial.open(id);
        self.messages.insert(id, Sent { check: self.check, is_cancelled: false, recorded: Vec::new() });
        (id, line)
    }

    /// The line of the next heartbeat.
    pub(super) fn ping(&mut self) -> String {
        self.trial.ping()
    }

    /// The line that cancels a message.
    pub(super) fn cancel(&mut self, id: MessageId) -> String {
        let (line, was_open) = self.trial.cancel(id);
        if let Some(sent) = self.messages.get_mut(&id).filter(|_| was_open) {
            sent.is_cancelled = true;
        }
        line
    }

    /// Sends the answer to a call, unless its message has ended.
    pub(super) fn answer(&mut self, Call { id, label, .. }: &Call, outcome: Result<&Canonical, &Fault>) {
        let line = self.trial.answer(*id, label, outcome);
        line.into_iter().for_each(|line| self.send(&[line]));
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
    pub(super) async fn next(&mut self, expected: &str) -> Result<Received, Broken> {
        let came = self.next_until(None, expected).await?;
        came.ok_or_else(|| broken(self.nothing(), expected))
    }

    /// Reads the next line as [`next`](Self::next) does; `None` if the process is silent for a while: it awaits something.
    pub(super) async fn next_soon(&mut self, expected: &str) -> Result<Option<Received>, Broken> {
        let soon = Instant::now() + SILENCE;
        self.next_until(Some(soon).filter(|&soon| soon < self.until), expected).await
    }

    async fn next_until(&mut self, until: Option<Instant>, expected: &str) -> Result<Option<Received>, Broken> {
        loop {
            let until = until.unwrap_or(self.until);
            match timeout_at(until.min(Instant::now() + SILENCE), self.trial.receive()).await {
                Err(_) => {
                    if let Some(misplaced) = self.misplaced() {
                        return Err(broken(misplaced, expected));
                    }
                    if Instant::now() >= until {
                        return Ok(None);
                    }
                }
                Ok(TrialOutput::Ended { why, .. }) => return Err(broken(self.misplaced().unwrap_or(why), expected)),
                Ok(TrialOutput::Line { text, kind }) => {
                    if !std::mem::replace(&mut self.has_started, true) {
                        self.wait_at_most(self.patience.check);
                    }
                    if let Ok(LineKind::About { id, effect: LineEffect::Recorded { label, name, value } }) = kind {
                        self.confirm(id, &label, name, value);
                    } else if let Some(came) = self.judge(text, kind)? {
                        return Ok(Some(came));
                    }
                }
            }
        }
    }

    /// Confirms a value that a message records.
    fn confirm(&mut self, id: MessageId, label: &str, name: String, value: Box<RawValue>) {
        let line = self.trial.recorded(id, label, &name);
        line.into_iter().for_each(|line| self.send(&[line]));
        if let Some(sent) = self.messages.get_mut(&id) {
            sent.recorded.push((name, value));
        }
    }

    /// The judgement of the pump on a line, less its patience with lines about messages that are not in flight.
    fn judge(&self, line: String, kind: Result<LineKind, String>) -> Result<Option<Received>, Broken> {
        let (id, effect) = match kind {
            Err(why) => return Err(broken(line, &format!("a line that keeps the protocol: {why}"))),
            Ok(LineKind::Pong) => return Ok(Some(Received::Pong)),
            Ok(LineKind::Stray { id }) => {
                return match self.messages.get(&id) {
                    Some(Sent { is_cancelled: true, .. }) => Ok(None),
                    Some(Sent { check, .. }) => Err(broken(
                        line,
                        &format!(
                            "nothing more about a message that has its answer: this one is of the check \"{check}\""
                        ),
                    )),
                    None => Err(broken(line, "a line about a message that is in flight: none has had this id")),
                };
            }
            Ok(LineKind::About { id, effect }) => (id, effect),
        };
        Ok(Some(match effect {
            LineEffect::Wrote(output) => Received::Answer(Answer { line, content: Content::Wrote(output) }),
            LineEffect::Failed { text, .. } => Received::Answer(Answer { line, content: Content::Error(text) }),
            LineEffect::Called { label, call, .. } => Received::Call(Call { line, id, label, call }),
            LineEffect::Progressed(_) | LineEffect::Used(_) | LineEffect::Drafted { .. } => return Ok(None),
            // Behind the end of the input nothing is confirmed.
            LineEffect::Recorded { .. } => return Err(broken(line, "no value to record")),
            LineEffect::Overdrawn(fault) => {
                return Err(broken(
                    line,
                    &format!("a line that the pump takes, for which it fails the message: {}", fault.message),
                ));
            }
        }))
    }

    /// Ends the input of the process, and waits for its exit.
    pub(super) async fn close(&mut self) -> Result<(), Broken> {
        const EXPECTED: &str = "an exit with status 0, since its standard input has ended";
        self.trial.close();
        loop {
            match timeout_at(self.until, self.trial.receive()).await {
                Err(_) => return Err(broken(self.nothing(), EXPECTED)),
                Ok(TrialOutput::Ended { is_success: true, .. }) => return Ok(()),
                Ok(TrialOutput::Ended { why, .. }) => return Err(broken(why, EXPECTED)),
                Ok(TrialOutput::Line { text, kind }) => {
                    if self.judge(text.clone(), kind)?.is_some() {
                        return Err(broken(text, EXPECTED));
                    }
                }
            }
        }
    }

    /// Names a line that was meant for the pump, of a process that prints its lines: it would say nothing else.
    fn misplaced(&self) -> Option<String> {
        let is_of_protocol = |line: &String| match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(line)) => {
                let id = line.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
                line.contains_key("pong") || id.is_some_and(|id: MessageId| self.messages.contains_key(&id))
            }
            _ => false,
        };
        let line = if self.has_started { None } else { self.trial.printed().into_iter().find(is_of_protocol) };
        line.map(|line| format!("a line of the protocol on standard output: {line}"))
    }

    fn nothing(&self) -> String {
        format!("nothing within {:?}", self.limit)
    }
}

fn broken(came: impl Into<String>, expected: &str) -> Broken {
    Broken { came: came.into(), expected: expected.to_owned() }
}
