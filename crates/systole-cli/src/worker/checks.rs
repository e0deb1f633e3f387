//! The checks, one after the other, and their report.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use systole::runtime::command::CommandSpec;

use super::contract::Contract;
use super::pump::{Answer, Broken, Came, Patience, Pump};
use crate::failure::Failure;
use crate::print;

/// Messages that are sent at once.
const TOGETHER: usize = 8;
/// Entries of a long history, and the size of each in characters of three bytes.
const HISTORY: (usize, usize) = (64, 1365);
/// Lines of a report, and characters of each.
const SHOWN: (usize, usize) = (3, 400);

/// A check: in this order, since later ones know what earlier ones found.
#[derive(Debug, Clone, Copy)]
enum Check {
    Heartbeat,
    Message,
    Contract,
    Together,
    Pieces,
    Long,
    Reply,
    Fault,
    Cancel,
    End,
}

impl Check {
    const ALL: [Self; 10] = [
        Self::Heartbeat,
        Self::Message,
        Self::Contract,
        Self::Together,
        Self::Pieces,
        Self::Long,
        Self::Reply,
        Self::Fault,
        Self::Cancel,
        Self::End,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeats",
            Self::Message => "a message of each payload",
            Self::Contract => "answers that keep the contract",
            Self::Together => "several messages at once",
            Self::Pieces => "a line in two pieces",
            Self::Long => "a long line",
            Self::Reply => "a call and its reply",
            Self::Fault => "a call and its fault",
            Self::Cancel => "a message that is cancelled",
            Self::End => "the end of its input",
        }
    }
}

/// The end of a check that found no breach.
enum Verdict {
    Passed,
    /// Passed, with what is worth knowing.
    Noted(String),
    NotRun(&'static str),
}

/// The answer to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaction {
    /// A reply, where one is known.
    Reply,
    Fault,
}

pub(super) struct Checks {
    program: CommandSpec,
    contract: Contract,
    patience: Patience,
    /// The answers to one message of each payload.
    answers: Vec<Answer>,
    /// The first payload whose message made a call, and whether that could be replied to.
    caller: Option<(usize, bool)>,
}

impl Checks {
    pub(super) fn new(program: CommandSpec, contract: Contract, patience: Patience) -> Self {
        Self { program, contract, patience, answers: Vec::new(), caller: None }
    }

    /// Runs all checks; after one that failed the next one gets another process.
    pub(super) async fn run(mut self) -> Result<ExitCode, Failure> {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        let mut running: Option<Pump> = None;
        for check in Check::ALL {
            let mut pump = match running.take() {
                Some(pump) => pump,
                None => self.start()?,
            };
            pump.begin();
            match self.play(check, &mut pump).await {
                Ok(verdict) => {
                    let (word, note) = match &verdict {
                        Verdict::Passed => ("passed", String::new()),
                        Verdict::Noted(note) => ("passed", format!(": {}", cut(note))),
                        Verdict::NotRun(why) => ("not run", format!(": {why}")),
                    };
                    *(if word == "passed" { &mut passed } else { &mut skipped }) += 1;
                    print::line(format_args!("{word:<8}{}{note}", check.name()))?;
                    running = Some(pump);
                }
                Err(broken) => {
                    failed += 1;
                    print::line(format_args!("{:<8}{}", "failed", check.name()))?;
                    report(&pump, &broken)?;
                }
            }
        }
        print::line(format_args!("{passed} passed, {failed} failed, {skipped} not run"))?;
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn start(&self) -> Result<Pump, Failure> {
        Pump::start(&self.program, &self.contract.limits, self.patience)
            .map_err(|error| Failure::unusable(format!("{} can't be started: {error}", self.program.program.display())))
    }

    async fn play(&mut self, check: Check, pump: &mut Pump) -> Result<Verdict, Broken> {
        const UNANSWERED: Verdict = Verdict::NotRun("no message was answered");
        let needs_answers = !matches!(check, Check::Heartbeat | Check::Message | Check::End);
        if needs_answers && self.answers.is_empty() {
            return Ok(UNANSWERED);
        }
        match check {
            Check::Heartbeat => heartbeats(pump).await,
            Check::Message => self.message_of_each(pump).await,
            Check::Contract => self.kept(),
            Check::Together => self.together(pump).await,
            Check::Pieces => self.pieces(pump).await,
            Check::Long => self.long(pump).await,
            Check::Reply => self.called(pump, Reaction::Reply).await,
            Check::Fault => self.called(pump, Reaction::Fault).await,
            Check::Cancel => self.cancelled(pump).await,
            Check::End => pump.close().await.map(|()| Verdict::Passed),
        }
    }

    /// One message after the other, with a field that no version has yet.
    async fn message_of_each(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let mut answers = Vec::new();
        for at in 0..self.contract.samples.len() {
            pump.begin();
            let more = Map::from_iter([("later".to_owned(), json!({ "version": 2 }))]);
            let (_, line) = pump.message(&self.contract.samples[at], more);
            pump.send(&[line]);
            let (mut came, calls) = self.answered(pump, Reaction::Reply).await?;
            answers.append(&mut came);
            if let Some(replied) = calls {
                self.caller.get_or_insert((at, replied));
            }
        }
        let mut errors = answers.iter().filter_map(|answer| match answer {
            Answer::Error(text) => Some(text.as_str()),
            Answer::Payloads(_) => None,
        });
        let noted = errors.next_back().map(|error| format!("one was answered with an error: {error}"));
        self.answers = answers;
        Ok(noted.map_or(Verdict::Passed, Verdict::Noted))
    }

    fn kept(&mut self) -> Result<Verdict, Broken> {
        let mut judged = 0;
        for answer in &self.answers {
            let Answer::Payloads(payloads) = answer else { continue };
            match self.contract.judge(payloads) {
                None => return Ok(Verdict::NotRun("no --organism says what it may answer")),
                Some(Ok(())) => judged += 1,
                Some(Err(why)) => {
                    let came = Value::from(payloads.as_slice()).to_string();
                    return Err(Broken { came, expected: format!("payloads that the listener may send: {why}") });
                }
            }
        }
        Ok(if judged == 0 { Verdict::NotRun("every message was answered with an error") } else { Verdict::Passed })
    }

    async fn together(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let mut lines = Vec::new();
        for at in 0..TOGETHER {
            let sample = &self.contract.samples[at % self.contract.samples.len()];
            lines.push(pump.message(sample, Map::new()).1);
        }
        lines.insert(TOGETHER / 2, pump.ping());
        pump.send(&lines);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    /// The answer to the heartbeat before it shows that the beginning of the line was read.
    async fn pieces(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let ping = pump.ping();
        let (id, line) = pump.message(&self.contract.samples[0], Map::new());
        let rest = pump.send_begun(&ping, &line);
        match pump.next("the pong").await? {
            Came::Pong => {}
            Came::Answer(_) | Came::Call { .. } => {
                let came = format!("a line about {id}, of which half was sent");
                return Err(Broken { came, expected: "the pong".to_owned() });
            }
        }
        pump.send_rest(rest);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    /// A history with characters that end lines elsewhere.
    async fn long(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let (entries, size) = HISTORY;
        let text = "\u{2028}".repeat(size - 2) + "\u{85}\u{e9}";
        let past = json!({ "from": "cli", "payload": format!("<past xmlns=\"urn:systole:test\">{text}</past>") });
        let history = Map::from_iter([("history".to_owned(), Value::from(vec![past; entries]))]);
        let (_, line) = pump.message(&self.contract.samples[0], history);
        pump.send(&[line]);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    async fn called(&mut self, pump: &mut Pump, reaction: Reaction) -> Result<Verdict, Broken> {
        let Some((at, replied)) = self.caller else { return Ok(Verdict::NotRun("no message made it call")) };
        if reaction == Reaction::Reply && !replied {
            return Ok(Verdict::NotRun("no --organism says what its calls are replied to with"));
        }
        let (_, line) = pump.message(&self.contract.samples[at], Map::new());
        pump.send(&[line]);
        self.answered(pump, reaction).await?;
        Ok(Verdict::Passed)
    }

    /// A message that is cancelled at once, one that is cancelled while it awaits the answer to a call, and one that was
    /// answered before; each time the process goes on.
    async fn cancelled(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let (first, line) = pump.message(&self.contract.samples[0], Map::new());
        let cancel = pump.cancel(&first);
        let (second, other) = pump.message(&self.contract.samples[0], Map::new());
        pump.send(&[line, cancel, other]);
        self.answered(pump, Reaction::Reply).await?;
        if let Some((at, _)) = self.caller {
            let (third, line) = pump.message(&self.contract.samples[at], Map::new());
            pump.send(&[line]);
            while !matches!(pump.next("the call that this message made before").await?, Came::Call { .. }) {
                if !pump.is_waiting() {
                    break;
                }
            }
            let cancel = pump.cancel(&third);
            pump.send(&[cancel]);
        }
        let late = [pump.cancel(&second), pump.ping(), pump.message(&self.contract.samples[0], Map::new()).1];
        pump.send(&late);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    /// Waits for the answers to all messages and heartbeats, and answers calls. Returns the answers, and whether all calls
    /// were replied to, if there were some.
    async fn answered(&self, pump: &mut Pump, reaction: Reaction) -> Result<(Vec<Answer>, Option<bool>), Broken> {
        let mut answers = Vec::new();
        let mut calls = None;
        while pump.is_waiting() {
            match pump.next("an answer to each message, and a pong to each ping").await? {
                Came::Pong => {}
                Came::Answer(answer) => answers.push(answer),
                Came::Call { id, xml, label } => {
                    let reply = self.contract.reply(&xml).filter(|_| reaction == Reaction::Reply);
                    calls = Some(calls.unwrap_or(true) && reply.is_some());
                    let line = match reply {
                        Some(reply) => json!({ "id": id, "as": label, "reply": reply }),
                        None => json!({ "id": id, "as": label, "fault": fault() }),
                    };
                    pump.send(&[line.to_string()]);
                }
            }
        }
        Ok((answers, calls))
    }
}

async fn heartbeats(pump: &mut Pump) -> Result<Verdict, Broken> {
    for _ in 0..2 {
        let ping = pump.ping();
        pump.send(&[ping]);
        // Nothing else can come: no message is in flight.
        pump.next("a pong to the ping").await?;
    }
    Ok(Verdict::Passed)
}

fn fault() -> Value {
    json!({ "code": "route", "message": "no listener takes it from its sender", "retryable": false })
}

/// What was sent, what came and what was expected.
fn report(pump: &Pump, broken: &Broken) -> Result<(), Failure> {
    let sent = pump.sent();
    for line in &sent[sent.len().saturating_sub(SHOWN.0)..] {
        print::line(format_args!("        sent      {}", cut(line)))?;
    }
    print::line(format_args!("        came      {}", cut(&broken.came)))?;
    print::line(format_args!("        expected  {}", cut(&broken.expected)))?;
    let printed = pump.printed();
    for line in &printed[printed.len().saturating_sub(SHOWN.0)..] {
        print::line(format_args!("        printed   {}", cut(line)))?;
    }
    if printed.iter().any(|line| line.starts_with('{')) {
        print::line(
            "        hint      lines of the protocol go to the descriptor in SYSTOLE_WORKER, not to standard output",
        )?;
    }
    Ok(())
}

/// The beginning of a text that is long.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN.1) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
