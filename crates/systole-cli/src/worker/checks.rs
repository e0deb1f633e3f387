//! The checks, one after the other, and their report.

use std::process::ExitCode;

use serde_json::json;
use systole::process::CommandSpec;
use systole_core::vocab::{Fault, FaultCode};

use super::contract::{Contract, Outcome, sentence};
use super::pump::{Answer, Broken, Call, Content, Patience, Pump, Received, Record};
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
    Record,
    Cancel,
    End,
}

impl Check {
    const ALL: [Self; 11] = [
        Self::Heartbeat,
        Self::Message,
        Self::Contract,
        Self::Together,
        Self::Pieces,
        Self::Long,
        Self::Reply,
        Self::Fault,
        Self::Record,
        Self::Cancel,
        Self::End,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeats",
            Self::Message => "a message of each payload",
            Self::Contract => "answers and calls that keep the contract",
            Self::Together => "several messages at once",
            Self::Pieces => "a line in two pieces",
            Self::Long => "a long line",
            Self::Reply => "a call and its reply",
            Self::Fault => "a call and its fault",
            Self::Record => "a message that recorded, run again",
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
    NotRun(String),
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
    /// Calls that the pump would refuse.
    refused: Vec<Broken>,
    /// The first payload whose message made a call, and why no reply to its calls is known.
    caller: Option<(usize, Result<(), String>)>,
    /// The first payload whose message recorded values, and those.
    recorder: Option<(usize, Vec<Record>)>,
    /// True once the first answers, and the calls before them, kept the contract: from then on all are judged at once.
    keeps: bool,
}

impl Checks {
    pub(super) fn new(program: CommandSpec, contract: Contract, patience: Patience) -> Self {
        Self {
            program,
            contract,
            patience,
            answers: Vec::new(),
            refused: Vec::new(),
            caller: None,
            recorder: None,
            keeps: false,
        }
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
            pump.begin(check.name());
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
        Pump::start(&self.program, &self.contract, self.patience)
            .map_err(|error| Failure::unusable(format!("{} can't be started: {error}", self.program.program.display())))
    }

    async fn play(&mut self, check: Check, pump: &mut Pump) -> Result<Verdict, Broken> {
        let needs_answers = !matches!(check, Check::Heartbeat | Check::Message | Check::End);
        if needs_answers && self.answers.is_empty() {
            return Ok(not_run("no message was answered"));
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
            Check::Record => self.recorded(pump).await,
            Check::Cancel => self.cancelled(pump).await,
            Check::End => pump.close().await.map(|()| Verdict::Passed),
        }
    }

    /// Checks messages one after the other, with a field that no version has yet.
    async fn message_of_each(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let mut answers = Vec::new();
        for at in 0..self.contract.samples.len() {
            pump.begin(Check::Message.name());
            let (id, line) = pump.message(&self.contract.samples[at], Some(("later", r#"{"version":2}"#)));
            pump.send(&[line]);
            let (mut came, calls) = self.heard(pump, Reaction::Reply).await?;
            answers.append(&mut came);
            if self.recorder.is_none() && !pump.recorded(id).is_empty() {
                self.recorder = Some((at, pump.recorded(id).to_vec()));
            }
            if let Some(replied) = calls {
                self.caller.get_or_insert((at, replied));
            }
        }
        let mut errors = answers.iter().filter_map(|answer| match &answer.content {
            Content::Error(text) => Some(text.as_str()),
            Content::Wrote(_) => None,
        });
        let noted = errors.next_back().map(|error| format!("one was answered with an error: {error}"));
        self.answers = answers;
        Ok(noted.map_or(Verdict::Passed, Verdict::Noted))
    }

    fn kept(&mut self) -> Result<Verdict, Broken> {
        if let Some(broken) = self.refused.pop() {
            return Err(broken);
        }
        let judged = judged(&mut self.contract, &self.answers)?;
        self.keeps = true;
        Ok(match judged {
            None => not_run("no --organism says what it may answer"),
            Some(0) => not_run("every message was answered with an error"),
            Some(_) => Verdict::Passed,
        })
    }

    async fn together(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let mut lines = Vec::new();
        for at in 0..TOGETHER {
            let sample = &self.contract.samples[at % self.contract.samples.len()];
            lines.push(pump.message(sample, None).1);
        }
        lines.insert(TOGETHER / 2, pump.ping());
        pump.send(&lines);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    /// The answer to the heartbeat before it shows that the beginning of the line was read.
    async fn pieces(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let ping = pump.ping();
        let (id, line) = pump.message(&self.contract.samples[0], None);
        let rest = pump.send_begun(&ping, &line);
        match pump.next("the pong").await? {
            Received::Pong => {}
            Received::Answer(_) | Received::Call(_) => {
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
        let payload = match self.contract.json {
            Some(_) => json!({ "past": text }),
            None => json!(format!("<past xmlns=\"urn:systole:test\">{text}</past>")),
        };
        let past = json!({ "from": "cli", "payload": payload });
        let history = json!(vec![past; entries]).to_string();
        let (_, line) = pump.message(&self.contract.samples[0], Some(("history", &history)));
        pump.send(&[line]);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    async fn called(&mut self, pump: &mut Pump, reaction: Reaction) -> Result<Verdict, Broken> {
        let Some((at, replied)) = self.caller.clone() else { return Ok(not_run("no message made it call")) };
        if let (Reaction::Reply, Err(why)) = (reaction, replied) {
            return Ok(Verdict::NotRun(why));
        }
        let (_, line) = pump.message(&self.contract.samples[at], None);
        pump.send(&[line]);
        self.answered(pump, reaction).await?;
        Ok(Verdict::Passed)
    }

    /// A message with all values that such a message recorded before: it records none.
    async fn recorded(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let Some((at, values)) = self.recorder.clone() else { return Ok(not_run("no message made it record")) };
        let entries: Vec<_> =
            values.iter().map(|(name, value)| format!(r#"{{"name":{},"value":{value}}}"#, json!(name))).collect();
        let before = format!("[{}]", entries.join(","));
        let (id, line) = pump.message(&self.contract.samples[at], Some(("recorded", &before)));
        pump.send(&[line]);
        self.answered(pump, Reaction::Reply).await?;
        let Some((name, value)) = pump.recorded(id).first() else { return Ok(Verdict::Passed) };
        let came = format!(r#"{{"record":{},"value":{value}}}"#, json!(name));
        let expected = if values.iter().any(|(before, _)| before == name) {
            format!("'{name}' from \"recorded\" of the message, not recorded again")
        } else {
            "the names that the message recorded before, whose values are in \"recorded\": a name that differs from run to run finds none".to_owned()
        };
        Err(Broken { came, expected })
    }

    /// A message that is cancelled at once, one that is cancelled while it awaits the answer to a call, and one that was
    /// answered before; each time the process goes on.
    async fn cancelled(&mut self, pump: &mut Pump) -> Result<Verdict, Broken> {
        let (first, line) = pump.message(&self.contract.samples[0], None);
        let cancel = pump.cancel(first);
        let (second, other) = pump.message(&self.contract.samples[0], None);
        pump.send(&[line, cancel, other]);
        self.answered(pump, Reaction::Reply).await?;
        if let Some((at, _)) = self.caller.clone() {
            let (third, line) = pump.message(&self.contract.samples[at], None);
            pump.send(&[line]);
            while !matches!(pump.next("the call that this message made before").await?, Received::Call(_)) {
                if !pump.is_waiting() {
                    break;
                }
            }
            let cancel = pump.cancel(third);
            pump.send(&[cancel]);
        }
        let late = [pump.cancel(second), pump.ping(), pump.message(&self.contract.samples[0], None).1];
        pump.send(&late);
        self.answered(pump, Reaction::Reply).await?;
        Ok(Verdict::Passed)
    }

    /// Waits for the answers to all messages and heartbeats, which keep the contract as those of the first messages did.
    async fn answered(&mut self, pump: &mut Pump, reaction: Reaction) -> Result<(), Broken> {
        let (answers, _) = self.heard(pump, reaction).await?;
        if self.keeps {
            judged(&mut self.contract, &answers)?;
            self.refused.pop().map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Waits for the answers to all messages and heartbeats, and answers calls; a further heartbeat brings out what comes
    /// behind an answer. Returns the answers, and whether replies to all calls are known, if there were some.
    async fn heard(
        &mut self,
        pump: &mut Pump,
        reaction: Reaction,
    ) -> Result<(Vec<Answer>, Option<Result<(), String>>), Broken> {
        const EXPECTED: &str = "an answer to each message, and a pong to each ping";
        let (mut answers, mut open) = (Vec::new(), Vec::new());
        let mut calls = None;
        while pump.is_waiting() {
            let came =
                if open.is_empty() { pump.next(EXPECTED).await.map(Some) } else { pump.next_soon(EXPECTED).await };
            match came? {
                Some(Received::Pong) => {}
                Some(Received::Answer(answer)) => answers.push(answer),
                Some(Received::Call(call)) => open.push(call),
                None => {
                    for call in open.drain(..) {
                        let known = self.answer(pump, call, reaction);
                        calls = Some(calls.unwrap_or(Ok(())).and(known));
                    }
                }
            }
        }
        // Calls whose message was answered before: they are judged, too.
        for call in open {
            let known = self.answer(pump, call, reaction);
            calls = Some(calls.unwrap_or(Ok(())).and(known));
        }
        let ping = pump.ping();
        pump.send(&[ping]);
        pump.next("the pong").await?;
        Ok((answers, calls))
    }

    /// Answers a call; or why no reply is known.
    fn answer(&mut self, pump: &mut Pump, call: Call, reaction: Reaction) -> Result<(), String> {
        match self.contract.outcome(&call.call) {
            Outcome::Reply(reply) if reaction == Reaction::Reply => {
                pump.answer(&call, Ok(&reply));
                Ok(())
            }
            Outcome::Reply(_) => {
                pump.answer(&call, Err(&fault()));
                Ok(())
            }
            Outcome::Refused(fault) => {
                pump.answer(&call, Err(&fault));
                let expected = format!("a call that the listener may make: {}", sentence(&fault));
                self.refused.push(Broken { came: call.line, expected });
                Err("its contract does not allow its calls".to_owned())
            }
            Outcome::Unknown(why) => {
                pump.answer(&call, Err(&fault()));
                Err(why.to_owned())
            }
        }
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

fn fault() -> Fault {
    Fault::new(FaultCode::Timeout, "the work took too long")
}

fn not_run(why: &str) -> Verdict {
    Verdict::NotRun(why.to_owned())
}

/// The line that was sent, those that came, and those that were expected.
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
    if printed.iter().any(|line| line.starts_with('{')) || !pump.has_started() {
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

/// The number of answers that keep the contract; none if it is unknown.
fn judged(contract: &mut Contract, answers: &[Answer]) -> Result<Option<usize>, Broken> {
    let mut judged = 0;
    for Answer { line, content } in answers {
        let verdict = match content {
            Content::Error(_) => continue,
            Content::Wrote(Err(fault)) => Some(Err(sentence(fault))),
            Content::Wrote(Ok(output)) => contract.judge(output),
        };
        match verdict {
            None => return Ok(None),
            Some(Ok(())) => judged += 1,
            Some(Err(why)) => {
                let expected = format!("payloads that the listener may send: {why}");
                return Err(Broken { came: line.clone(), expected });
            }
        }
    }
    Ok(Some(judged))
}
