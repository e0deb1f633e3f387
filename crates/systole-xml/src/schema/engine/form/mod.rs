//! A form in which a person writes a payload: the compiled schema asks, line by line, for all that the payload may
//! hold.
//!
//! Invariants: the answers alone make the payload. Only a value that the schema fixes is written without a
//! question, and an empty line means a value only if the schema gives one. Each answer is validated at once, and asked
//! for again with the rule that it breaks; the whole payload is validated before it is shown, and shown before it is
//! sent. Optional parts are asked for, never expanded, so that a recursive type ends; depth and size have the limits of
//! messages.
//!
//! State chart: `asking` (a question is open, or a text of several lines) → `review` (the payload is shown) → sent, or
//! `editing` (the person picks the answer to change) → `asking`. An edit goes through the form again with the other
//! answers, each of which applies only to the same question. `:quit` and a refused review end the form with nothing
//! sent.
//!
//! Not here: terminals. The returned text is not escaped.

mod filling;
mod page;
mod question;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use super::judge::Judge;
use super::verdict::verdict;
use crate::ladder::strict::{canonicalize, canonicalize_fragment};
use crate::schema::engine::grammar::{ElementId, Grammar};
use crate::vocab::XmlLimits;
use filling::{Filling, Rules, Taken};
pub(in crate::schema) use page::page;
pub use page::{FieldKind, FormField, FormPage};
use question::{Kind, Question};

/// A form that a person fills in.
#[derive(Debug)]
pub struct Form {
    grammar: Arc<Grammar>,
    root: ElementId,
    is_qualified: bool,
    limits: XmlLimits,
    filling: Filling,
    /// The answers so far, in order.
    given: Vec<Given>,
    /// The answers of an earlier pass through the form, by the key of their question.
    kept: HashMap<String, Given>,
    as_xml: BTreeSet<String>,
    judge: Judge,
    stage: Stage,
    /// Set if the last line ended an element as XML: an empty line after it may have been meant as its end.
    closed: bool,
}

#[derive(Debug, Clone)]
struct Given {
    key: String,
    prompt: String,
    answer: String,
}

#[derive(Debug)]
enum Stage {
    Asking,
    /// Lines of one answer: a text of several lines, or XML.
    Block {
        lines: String,
        is_xml: bool,
    },
    Review(Result<String, String>),
    Editing,
}

/// Outcome of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormStep {
    /// The text to show; the form waits for another line.
    Ask(String),
    /// The payload that the person wants to send.
    Send(String),
    /// The reason why nothing is sent.
    Cancelled(String),
}

const HELP: &str = ":back takes the last answer back, :xml takes the element as XML, :quit sends nothing, :help shows \
                    this;\na line of \"\"\" begins and ends a text of several lines.\n";
const SEND: &str = "Send it? (y sends it, n sends nothing, e changes an answer): ";
const UNFIT: &str = "It can't be sent so. (e changes an answer, n sends nothing): ";
const WHICH: &str = "Which answer is to change? (its number, 0 for none): ";
const QUOTES: &str = "\"\"\"";

impl Form {
    /// Starts a form for a payload, whose declaration is in that grammar. Returns the form and its first question.
    pub(in crate::schema) fn new(
        (grammar, root): (Arc<Grammar>, ElementId),
        is_qualified: bool,
        limits: XmlLimits,
    ) -> (Self, FormStep) {
        let mut form = Self {
            filling: Filling::new(root, !is_qualified),
            is_qualified,
            grammar,
            root,
            limits,
            given: Vec::new(),
            kept: HashMap::new(),
            as_xml: BTreeSet::new(),
            judge: Judge::default(),
            stage: Stage::Asking,
            closed: false,
        };
        let turn = match form.advance() {
            FormStep::Ask(prompt) => FormStep::Ask(format!("{HELP}{prompt}")),
            turn => turn,
        };
        (form, turn)
    }

    /// Takes a line of the person, without its line feed.
    pub fn line(&mut self, line: &str) -> FormStep {
        if std::mem::take(&mut self.closed) && line.trim().is_empty() {
            return FormStep::Ask(self.prompt().to_owned());
        }
        match std::mem::replace(&mut self.stage, Stage::Asking) {
            Stage::Block { lines, is_xml } => self.block(lines, is_xml, line),
            Stage::Review(payload) => self.reviewed(payload, line.trim()),
            Stage::Editing => self.edited(line.trim()),
            Stage::Asking => match (line.trim(), self.filling.asked.as_ref().map(|asked| &asked.kind)) {
                (":quit", _) => cancelled(""),
                (":back", _) => self.back(),
                (":xml", _) => self.xml(),
                (":help", _) => self.ask(HELP),
                ("?", Some(kind)) if !matches!(kind, Kind::Value { .. } | Kind::Xml(_)) => self.ask(HELP),
                (word, kind) if !matches!(kind, Some(Kind::Xml(_))) && is_command(word) => {
                    let why = format!(
                        "There is no command {word}. To enter a text that begins so, put it between lines of {QUOTES}."
                    );
                    self.ask(&format!("{why}\n{HELP}"))
                }
                (_, Some(Kind::Xml(_))) => self.block(String::new(), true, line),
                (QUOTES, Some(Kind::Value { .. })) => self.keep_block(String::new(), false),
                _ => self.submit(line),
            },
        }
    }

    fn keep_block(&mut self, lines: String, is_xml: bool) -> FormStep {
        if lines.len() > self.limits.message_bytes {
            return self.again(format!("more than {} bytes, the limit of a message", self.limits.message_bytes));
        }
        self.stage = Stage::Block { lines, is_xml };
        FormStep::Ask(String::new())
    }

    fn block(&mut self, mut lines: String, is_xml: bool, line: &str) -> FormStep {
        if !is_xml && line.trim_end() == QUOTES {
            lines.pop();
            return self.submit(&lines);
        }
        lines.push_str(line);
        if is_xml {
            let read = || canonicalize_fragment(&lines.clone().into(), &self.limits);
            if line.trim().is_empty() || line.contains('>') && read().is_ok_and(|elements| !elements.is_empty()) {
                self.closed = !line.trim().is_empty();
                return self.submit(&lines);
            }
        }
        lines.push('\n');
        self.keep_block(lines, is_xml)
    }

    /// Answers the open question.
    fn submit(&mut self, answer: &str) -> FormStep {
        match self.give(answer) {
            Ok(()) => self.advance(),
            Err(why) => self.again(why),
        }
    }

    fn give(&mut self, answer: &str) -> Result<(), String> {
        let Some(Question { key, prompt, .. }) = self.filling.asked.clone() else { return Ok(()) };
        let rules = Rules { grammar: &self.grammar, limits: &self.limits, as_xml: &self.as_xml };
        match self.filling.answer(&rules, &mut self.judge, answer)? {
            Taken::Written => self.given.push(Given { key, prompt, answer: answer.to_owned() }),
            Taken::AsXml(path) => {
                self.as_xml.insert(path);
                self.restart(None);
            }
            Taken::TooMuch(why) => {
                self.restart(None);
                // Replaying the same answers leads to the same question.
                let _ = self.replay();
                return Err(why);
            }
        }
        Ok(())
    }

    /// Continues with the next question that has no answer yet, or with the review.
    fn advance(&mut self) -> FormStep {
        loop {
            match self.replay() {
                Ok(true) => return self.ask(""),
                Ok(false) => return self.review(),
                Err(why) => match self.given.pop() {
                    None => return cancelled(&format!("{why}: ")),
                    Some(last) => {
                        self.restart(Some(&last.key));
                        return match self.replay() {
                            Ok(true) => self.ask(&format!("{why}\n")),
                            Ok(false) | Err(_) => continue,
                        };
                    }
                },
            }
        }
    }

    /// Replays the kept answers, up to a question without one; `false` if nothing is left to ask.
    fn replay(&mut self) -> Result<bool, String> {
        loop {
            let rules = Rules { grammar: &self.grammar, limits: &self.limits, as_xml: &self.as_xml };
            if !self.filling.advance(&rules)? {
                return Ok(false);
            }
            let Some(asked) = &self.filling.asked else { return Ok(false) };
            match self.kept.remove(&asked.key) {
                Some(kept) if kept.prompt == asked.prompt && self.give(&kept.answer).is_ok() => {}
                _ => return Ok(true),
            }
        }
    }

    /// Restarts the form with all answers but the one of a question.
    fn restart(&mut self, without: Option<&str>) {
        self.filling = Filling::new(self.root, !self.is_qualified);
        let given = std::mem::take(&mut self.given);
        self.kept.extend(given.into_iter().map(|given| (given.key.clone(), given)));
        if let Some(key) = without {
            self.kept.remove(key);
        }
    }

    fn ask(&mut self, said: &str) -> FormStep {
        FormStep::Ask(format!("{said}{}", self.prompt()))
    }

    /// The prompt of the current stage.
    fn prompt(&self) -> &str {
        match &self.stage {
            Stage::Review(Ok(_)) => SEND,
            Stage::Review(Err(_)) => UNFIT,
            Stage::Editing => WHICH,
            Stage::Asking | Stage::Block { .. } => self.filling.asked.as_ref().map_or("", |asked| &asked.prompt),
        }
    }

    fn again(&mut self, why: String) -> FormStep {
        self.ask(&format!("{why}\n"))
    }

    fn back(&mut self) -> FormStep {
        let is_wished = |asked: &&Question| self.as_xml.contains(&asked.element) && matches!(asked.kind, Kind::Xml(_));
        match self.filling.asked.as_ref().filter(is_wished).map(|asked| asked.element.clone()) {
            Some(path) => {
                self.as_xml.remove(&path);
                let others = format!("{path} others");
                self.restart(Some(&others));
            }
            None => match self.given.pop() {
                Some(last) => self.restart(Some(&last.key)),
                None => return self.again("This is the first question.".to_owned()),
            },
        }
        self.advance()
    }

    fn xml(&mut self) -> FormStep {
        match &self.filling.asked {
            Some(asked) if !matches!(asked.kind, Kind::Xml(_)) => {
                self.as_xml.insert(asked.element.clone());
                self.restart(None);
                self.advance()
            }
            _ => self.again("This element is already asked for as XML.".to_owned()),
        }
    }

    fn review(&mut self) -> FormStep {
        let filling = std::mem::replace(&mut self.filling, Filling::new(self.root, false));
        let (shown, judged) = judged(&self.grammar, self.root, &mut self.judge, &self.limits, filling.finish());
        let text = match &judged {
            Ok(payload) => format!("{payload}\n{SEND}"),
            Err(why) => format!("{shown}\n{why}\n{UNFIT}"),
        };
        self.stage = Stage::Review(judged);
        FormStep::Ask(text)
    }

    fn reviewed(&mut self, payload: Result<String, String>, line: &str) -> FormStep {
        match (line, payload) {
            ("y" | "yes", Ok(payload)) => FormStep::Send(payload),
            ("n" | "no" | ":quit", _) => cancelled(""),
            (":back", _) => self.back(),
            ("e", payload) if self.given.is_empty() => {
                self.stage = Stage::Review(payload);
                FormStep::Ask("There was nothing to answer: y or n: ".to_owned())
            }
            ("e", _) => self.list(""),
            (_, payload) => {
                let expected = if payload.is_ok() { "y, n or e" } else { "e or n" };
                self.stage = Stage::Review(payload);
                FormStep::Ask(format!("found '{line}', expected {expected}: "))
            }
        }
    }

    /// Lists the answers, and asks for the one to change.
    fn list(&mut self, said: &str) -> FormStep {
        let mut text = said.to_owned();
        for (number, Given { prompt, answer, .. }) in (1..).zip(&self.given) {
            let asked = prompt.lines().last().unwrap_or_default().trim_end();
            let _ = writeln!(text, "  {number}  {asked} {answer}");
        }
        self.stage = Stage::Editing;
        FormStep::Ask(text + WHICH)
    }

    fn edited(&mut self, line: &str) -> FormStep {
        match line.parse::<usize>() {
            Ok(0) => self.restart(None),
            Ok(number) if (1..=self.given.len()).contains(&number) => {
                let key = self.given[number - 1].key.clone();
                self.restart(Some(&key));
            }
            _ if line == ":quit" => return cancelled(""),
            _ => return self.list(&format!("found '{line}', expected a number from 0 to {}\n", self.given.len())),
        }
        self.advance()
    }
}

/// Judges a payload as a whole: as it was written, and its canonical form or the rule that it breaks.
fn judged(
    grammar: &Grammar,
    root: ElementId,
    judge: &mut Judge,
    limits: &XmlLimits,
    written: String,
) -> (String, Result<String, String>) {
    let judged = canonicalize(&written.clone().into(), limits).map_err(|error| error.to_string()).and_then(|whole| {
        let judged = verdict(grammar, Some(root), judge, &whole);
        judged.map(|()| whole.as_str().to_owned()).map_err(|error| error.to_string())
    });
    (written, judged)
}

/// Reports whether a line looks like a command: a colon and lowercase letters.
fn is_command(line: &str) -> bool {
    line.strip_prefix(':').is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
}

fn cancelled(why: &str) -> FormStep {
    FormStep::Cancelled(format!("{why}nothing was sent."))
}
