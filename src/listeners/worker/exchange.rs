//! The messages in flight in a process, and the judgement of each line that it writes.
//!
//! The pump and `systole worker test` judge by the same exchange: a line is good for both, or for neither.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::value::RawValue;
use systole_core::core::{Emission, EmissionKind, HandlerOutcome, ModelAnswer};
use systole_core::vocab::{BrokenRule, Fault, FaultCode, Limits, MessageId, Name, XmlLimits};
use systole_xml::ladder::{Canonical, Raw, parse};
use systole_xml::schema::{Draft, Element, Validated};

use super::line::{self, About, Line, Payloads, Recorded};
use crate::listeners::fleet::line_process::Written;
use crate::listeners::json::{self, JsonPayloads};

/// Lines in a row about messages that are not in flight; beyond, the process is ended. A cancelled message may have
/// been answered meanwhile.
const STRAYS: u32 = 1000;

/// The longest sentence of a failure that the caller gets, and of progress that operators get, in bytes.
const SENTENCE: usize = 4096;

/// Bytes that a recorded value counts besides its name and its JSON.
const ENTRY: usize = 64;

/// A line of a process, as the pump understands it.
#[derive(Debug, Clone)]
pub enum LineKind {
    /// The answer to the last heartbeat.
    Pong,
    /// A line about a message in flight.
    About {
        /// The message.
        id: MessageId,
        /// The effect of the line.
        effect: LineEffect,
    },
    /// A line about a message that is not in flight, which has no effect.
    Stray {
        /// The id in the line.
        id: MessageId,
    },
}

/// The effect of a line about a message.
#[derive(Debug, Clone)]
pub enum LineEffect {
    /// The answer: its payloads as one output, or the fault of an answer that is too long. The message has ended.
    Wrote(Result<Output, Fault>),
    /// The failure. The message has ended.
    Failed {
        /// A sentence for the caller.
        text: String,
        /// The label of a call of the message: the caller gets the fault that answered it, instead of the sentence.
        passes: Option<String>,
    },
    /// A call whose answer the process awaits.
    Called {
        /// The label that its answer will name.
        label: String,
        /// The call, or the fault of one that can't be read.
        call: Result<Emission, Fault>,
        /// The payload as it was written.
        text: Raw,
    },
    /// A value that the handler records, and whose durability the process awaits.
    Recorded {
        /// The label that its confirmation will name.
        label: String,
        /// The name of the value.
        name: String,
        /// The value, as the JSON that was written.
        value: Box<RawValue>,
    },
    /// A sentence for operators on how far the handler is.
    Progressed(String),
    /// The use of a model by the program itself.
    Used(ModelAnswer),
    /// Text of the draft of the handler's answer.
    Drafted {
        /// Text behind the text before.
        text: String,
        /// True if the text before is given up.
        anew: bool,
    },
    /// One open call or value too many, two under one label, values of too many bytes, or a line that is too long: the
    /// message has ended, with this fault, and is cancelled.
    Overdrawn(Fault),
}

/// The payloads with which a process answers a message.
#[derive(Debug, Clone)]
pub enum Output {
    /// Payloads as XML, not read yet.
    Xml(Raw),
    /// Payloads as JSON: as they were written, and valid, or the fault of the first one that is not.
    Json(Raw, Result<Vec<Validated<Element>>, Fault>),
}

impl From<Output> for HandlerOutcome {
    fn from(output: Output) -> Self {
        match output {
            Output::Xml(raw) => Self::Wrote(raw),
            Output::Json(raw, read) => json::outcome(raw, read),
        }
    }
}

impl LineEffect {
    /// Returns whether the message has ended.
    pub fn is_end(&self) -> bool {
        match self {
            Self::Called { .. }
            | Self::Recorded { .. }
            | Self::Progressed(_)
            | Self::Used(_)
            | Self::Drafted { .. } => false,
            Self::Wrote(_) | Self::Failed { .. } | Self::Overdrawn(_) => true,
        }
    }
}

/// The messages in flight in a process, each with a value of its owner, and the heartbeats.
pub(super) struct Exchange<T> {
    fanout: usize,
    longest: usize,
    xml: XmlLimits,
    /// The payloads as JSON; `None` if they are XML.
    json: Option<Rc<JsonPayloads>>,
    flights: BTreeMap<MessageId, Flight<T>>,
    strays: u32,
    /// Numbers of the last heartbeat, and of the last one that was answered.
    pings: (u64, u64),
}

/// A message in flight.
struct Flight<T> {
    owner: T,
    /// Labels of its open calls, and of its values that are not durable yet.
    labels: Vec<String>,
    /// Bytes of the values that it recorded, in all runs.
    recorded: usize,
}

impl<T> Exchange<T> {
    pub(super) fn new(limits: &Limits, json: Option<Rc<JsonPayloads>>) -> Self {
        let (fanout, xml) = (limits.fanout, limits.xml.clone());
        let longest = line::longest(limits);
        Self { fanout, longest, xml, json, flights: BTreeMap::new(), strays: 0, pings: (0, 0) }
    }

    /// The payloads as JSON; `None` if they are XML.
    pub(super) fn json(&self) -> Option<&Rc<JsonPayloads>> {
        self.json.as_ref()
    }

    /// Number of messages in flight.
    pub(super) fn load(&self) -> usize {
        self.flights.len()
    }

    /// Registers a message with the values that it recorded in earlier runs, before the process gets it.
    pub(super) fn open(&mut self, id: MessageId, recorded: &[Recorded], owner: T) {
        let recorded = recorded.iter().map(|one| bytes_of(&one.name, &one.value)).sum();
        self.flights.insert(id, Flight { owner, labels: Vec::new(), recorded });
    }

    /// The owner of the message in flight, if that is one alone.
    pub(super) fn only(&self) -> Option<&T> {
        let mut flights = self.flights.values();
        flights.next().filter(|_| flights.next().is_none()).map(|flight| &flight.owner)
    }

    /// Ends a message that has no answer yet; `None` if it is not in flight.
    pub(super) fn close(&mut self, id: MessageId) -> Option<T> {
        self.flights.remove(&id).map(|flight| flight.owner)
    }

    /// Ends all messages.
    pub(super) fn close_all(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.flights).into_values().map(|flight| flight.owner)
    }

    /// Notes that a call is answered, or a value durable: its label is free. `false` if it is not open.
    pub(super) fn answered(&mut self, id: MessageId, label: &str) -> bool {
        let Some(flight) = self.flights.get_mut(&id) else { return false };
        let Some(at) = flight.labels.iter().position(|open| open == label) else { return false };
        flight.labels.swap_remove(at);
        true
    }

    /// Number of a new heartbeat.
    pub(super) fn ping(&mut self) -> u64 {
        self.pings.0 += 1;
        self.pings.0
    }

    /// Returns whether a heartbeat has no answer.
    pub(super) fn awaits_pong(&self) -> bool {
        self.pings.0 != self.pings.1
    }

    /// Judges a line; returns its meaning with the owner of the message that it is about, or the mistake of a bad line.
    pub(super) fn judge(&mut self, line: Written<'_>) -> Result<(LineKind, Option<T>), String>
    where
        T: Clone,
    {
        let read = match line {
            Written::Whole(line) => line::read(line, self.json.is_some())?,
            Written::Cut(beginning, bytes) => line::read_cut(beginning, bytes, self.longest)?,
        };
        let (id, about) = match read {
            Line::Pong(number) => return self.pong(number).map(|()| (LineKind::Pong, None)),
            Line::About(id, about) => (id, about),
        };
        let Some(flight) = self.flights.get_mut(&id) else {
            // A program that is cancelled while it writes says so many times how far it is, and means no harm.
            self.strays += u32::from(!about.is_report());
            return if self.strays > STRAYS {
                Err(format!("{STRAYS} lines in a row were about messages that are not in flight"))
            } else {
                Ok((LineKind::Stray { id }, None))
            };
        };
        self.strays = 0;
        let effect = match about {
            About::Payloads(payloads) => LineEffect::Wrote(output(payloads, self.json.as_deref(), &self.xml)),
            About::Error(text, passes) => LineEffect::Failed { text: clipped(&text, SENTENCE).to_owned(), passes },
            About::Cut(bytes) => LineEffect::Overdrawn(too_long_a_line(bytes, self.longest)),
            About::Progress(text) => LineEffect::Progressed(clipped(&text, SENTENCE).to_owned()),
            About::Usage(answer) => LineEffect::Used(answer),
            About::Draft { text, anew } => LineEffect::Drafted { text, anew },
            About::Call { label, .. } | About::Record { label, .. }
                if flight.labels.len() >= self.fanout || flight.labels.contains(&label) =>
            {
                LineEffect::Overdrawn(too_many(self.fanout))
            }
            About::Record { label, name, value } => {
                flight.recorded = flight.recorded.saturating_add(bytes_of(&name, &value));
                if flight.recorded > self.xml.message_bytes {
                    LineEffect::Overdrawn(too_long(self.xml.message_bytes))
                } else {
                    flight.labels.push(label.clone());
                    LineEffect::Recorded { label, name, value }
                }
            }
            About::Call { payload, to, label } => {
                flight.labels.push(label.clone());
                let (call, text) = match payload {
                    Payloads::Xml(xml) => {
                        let text = Raw::new(xml);
                        (read_call(&text, &self.xml).map(Draft::Canonical), text)
                    }
                    Payloads::Json(written) => {
                        let text = raw(&written);
                        let read = self.json.as_deref().ok_or_else(no_json);
                        (read.and_then(|json| json.read_one(text.bytes())).map(Draft::Proved), text)
                    }
                };
                LineEffect::Called { label, call: emission(call, to), text }
            }
        };
        let owner = flight.owner.clone();
        if effect.is_end() {
            self.flights.remove(&id);
        }
        Ok((LineKind::About { id, effect }, Some(owner)))
    }

    fn pong(&mut self, number: u64) -> Result<(), String> {
        let (sent, answered) = self.pings;
        if number != sent {
            return Err(format!("the last heartbeat has the number {sent}"));
        }
        if sent == answered {
            return Err("no heartbeat awaits an answer".to_owned());
        }
        self.pings.1 = number;
        Ok(())
    }
}

/// The output of an answer.
fn output(payloads: Payloads<Vec<String>>, json: Option<&JsonPayloads>, limits: &XmlLimits) -> Result<Output, Fault> {
    let most = limits.message_bytes;
    let too_much = || Fault::new(FaultCode::Limit, format!("the listener wrote more than {most} bytes"));
    match payloads {
        Payloads::Xml(payloads) if payloads.iter().map(String::len).sum::<usize>() > most => Err(too_much()),
        Payloads::Xml(mut payloads) => {
            let joined = if payloads.len() == 1 { payloads.swap_remove(0) } else { payloads.join("\n") };
            Ok(Output::Xml(Raw::new(joined)))
        }
        Payloads::Json(written) if written.get().len() > most => Err(too_much()),
        Payloads::Json(written) => {
            let raw = raw(&written);
            let read = json.ok_or_else(no_json).and_then(|json| json.read(raw.bytes()));
            Ok(Output::Json(raw, read))
        }
    }
}

fn raw(json: &RawValue) -> Raw {
    Raw::new(json.get().to_owned())
}

fn no_json() -> Fault {
    Fault::new(FaultCode::Malformed, "a payload is XML here")
}

/// Parses the XML of a call.
fn read_call(xml: &Raw, limits: &XmlLimits) -> Result<Canonical, Fault> {
    parse(xml, limits).map_err(|error| {
        let code = if error.is_limit() { FaultCode::Limit } else { FaultCode::Malformed };
        let rule = BrokenRule { rule: error.to_string(), at: error.position(), example: None };
        Fault { rule: Some(Box::new(rule)), ..Fault::new(code, "a message can't be read as XML") }
    })
}

/// The emission of a call.
fn emission(payload: Result<Draft, Fault>, to: Option<String>) -> Result<Emission, Fault> {
    let to = to.map(|to| Name::parse(&to)).transpose();
    let to = to.map_err(|error| Fault::new(FaultCode::Route, format!("\"to\": {error}")))?;
    Ok(Emission { kind: EmissionKind::Call, to, thread: None, payload: payload? })
}

fn too_many(most: usize) -> Fault {
    let text = format!("the listener awaits more than {most} answers at once, or two under one \"as\"");
    Fault::new(FaultCode::Limit, text)
}

fn too_long_a_line(bytes: usize, most: usize) -> Fault {
    Fault::new(FaultCode::Limit, format!("the listener wrote a line of {bytes} bytes, and a line has at most {most}"))
}

fn too_long(most: usize) -> Fault {
    Fault::new(FaultCode::Limit, format!("the listener recorded more than {most} bytes for one message"))
}

/// Bytes that a recorded value counts.
fn bytes_of(name: &str, value: &RawValue) -> usize {
    name.len() + value.get().len() + ENTRY
}

/// Cuts a text to at most `most` bytes.
pub(super) fn clipped(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000-0000-0000-0000-000000000001";

    fn exchange(fanout: usize) -> Exchange<()> {
        let mut exchange = Exchange::new(&Limits::default().fanout(fanout), None);
        exchange.open(ID.parse().unwrap(), &[], ());
        exchange
    }

    fn about(exchange: &mut Exchange<()>, rest: &str) -> LineEffect {
        match exchange.judge(Written::Whole(format!(r#"{{"id":"{ID}",{rest}}}"#).as_bytes())) {
            Ok((LineKind::About { effect, .. }, _)) => effect,
            other => panic!("{rest}: {other:?}"),
        }
    }

    #[test]
    fn a_line_that_says_too_little_or_too_much_is_refused() {
        let mut exchange = exchange(256);
        for (line, why) in [
            ("[]".to_owned(), "it is no JSON object"),
            (format!(r#"{{"id":"{ID}"}}"#), "exactly one of"),
            (format!(r#"{{"id":"{ID}","error":"x","pong":1}}"#), "exactly one of"),
            (format!(r#"{{"id":"{ID}","call":"<a/>"}}"#), "needs \"as\""),
            (format!(r#"{{"id":"{ID}","record":"a","value":1}}"#), "needs \"as\""),
            (format!(r#"{{"id":"{ID}","call":"<a/>","as":"{}"}}"#, "x".repeat(257)), "at most 256 bytes"),
            (format!(r#"{{"id":"{ID}","record":"a","progress":"b","as":"1"}}"#), "exactly one of"),
            (r#"{"error":"x"}"#.to_owned(), "needs the \"id\""),
            (r#"{"id":"x","error":"x"}"#.to_owned(), "'x' is no id"),
            (r#"{"pong":1}"#.to_owned(), "the last heartbeat has the number 0"),
            (r#"{"pong":0}"#.to_owned(), "no heartbeat awaits an answer"),
        ] {
            let found = exchange.judge(Written::Whole(line.as_bytes())).unwrap_err();
            assert!(found.contains(why), "{line}: {found}");
        }
    }

    #[test]
    fn a_thousand_lines_in_a_row_may_be_about_other_messages() {
        let mut exchange = exchange(256);
        let stray = Written::Whole(br#"{"id":"00000000-0000-0000-0000-000000000002","error":"x","more":[]}"#);
        for _ in 0..STRAYS {
            assert!(matches!(exchange.judge(stray), Ok((LineKind::Stray { .. }, None))));
        }
        assert!(matches!(about(&mut exchange, r#""error":"one""#), LineEffect::Failed { passes: None, .. }));
        for _ in 0..STRAYS {
            exchange.judge(stray).unwrap();
        }
        exchange.judge(stray).unwrap_err();
    }

    #[test]
    fn a_label_is_taken_until_its_call_is_answered() {
        let mut exchange = exchange(2);
        let id = ID.parse().unwrap();
        assert!(matches!(about(&mut exchange, r#""call":"<a/>","as":"1""#), LineEffect::Called { call: Ok(_), .. }));
        // One that can't be read is open, too, until its fault is sent.
        assert!(matches!(about(&mut exchange, r#""call":"<a","as":"2""#), LineEffect::Called { call: Err(_), .. }));
        exchange.answered(id, "1");
        assert!(matches!(about(&mut exchange, r#""call":"<a/>","as":"1""#), LineEffect::Called { .. }));
        let LineEffect::Overdrawn(fault) = about(&mut exchange, r#""call":"<a/>","as":"3""#) else {
            panic!("a third one")
        };
        assert!(fault.code == FaultCode::Limit && exchange.load() == 0, "{fault:?}");
        exchange.open(id, &[], ());
        about(&mut exchange, r#""call":"<a/>","as":"1""#);
        assert!(matches!(about(&mut exchange, r#""call":"<b/>","as":"1""#), LineEffect::Overdrawn(_)));
    }

    #[test]
    fn values_are_bounded_over_all_runs_of_a_message() {
        let xml = XmlLimits::default().message_bytes(1000);
        let mut exchange = Exchange::new(&Limits::default().xml(xml), None);
        let id = ID.parse().unwrap();
        let value = serde_json::value::to_raw_value(&"x".repeat(500)).unwrap();
        let before = Recorded { name: "before".to_owned(), value };
        exchange.open(id, &[before], ());
        let effect = about(&mut exchange, &format!(r#""record":"a","value":"{}","as":"1""#, "x".repeat(300)));
        assert!(matches!(effect, LineEffect::Recorded { .. }), "{effect:?}");
        // A value that is absent is null.
        let effect = about(&mut exchange, r#""record":"b","as":"2""#);
        let LineEffect::Overdrawn(fault) = effect else { panic!("1,002 bytes and entries: {effect:?}") };
        assert!(fault.code == FaultCode::Limit && exchange.load() == 0, "{fault:?}");
    }

    #[test]
    fn any_json_is_recorded_as_it_was_written() {
        let mut exchange = exchange(9);
        let deep = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
        for (at, written) in
            ["1e999", "340282366920938463463374607431768211456", "0.18126486333322134", &deep].iter().enumerate()
        {
            match about(&mut exchange, &format!(r#""record":"a","value":{written},"as":"{at}""#)) {
                LineEffect::Recorded { value, .. } => assert_eq!(value.get(), *written),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn progress_leaves_its_message_open_and_is_cut() {
        let mut exchange = exchange(1);
        let effect = about(&mut exchange, &format!(r#""progress":"{}""#, "x".repeat(5000)));
        assert!(matches!(&effect, LineEffect::Progressed(text) if text.len() == SENTENCE), "{effect:?}");
        assert_eq!(exchange.load(), 1);
    }

    #[test]
    fn a_draft_leaves_its_message_open_and_may_come_too_late_as_often_as_it_likes() {
        let mut exchange = exchange(1);
        let effect = about(&mut exchange, r#""draft":"Once upon","anew":true"#);
        assert!(matches!(&effect, LineEffect::Drafted { text, anew: true } if text == "Once upon"), "{effect:?}");
        about(&mut exchange, r#""payloads":[]"#);
        for kind in ["draft", "progress"].into_iter().cycle().take(3 * STRAYS as usize) {
            let late = exchange.judge(Written::Whole(format!(r#"{{"id":"{ID}","{kind}":" a time"}}"#).as_bytes()));
            assert!(matches!(late, Ok((LineKind::Stray { .. }, None))), "{late:?}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_ends_its_message_alone() {
        let mut exchange = exchange(256);
        let other = "00000000-0000-0000-0000-000000000002".parse().unwrap();
        exchange.open(other, &[], ());
        for beginning in ["x", "{\"id\":\"x\",", "{\"pong\":1", "{\"payloads\":[\"", "{\"id\":\"0000"] {
            let found = exchange.judge(Written::Cut(beginning.as_bytes(), 9_000_000)).unwrap_err();
            assert!(found.contains("9000000 bytes") && found.contains("begin with the \"id\""), "{beginning}: {found}");
        }
        let beginning = format!("{{ \"id\" : \"{ID}\", \"payloads\":[\"");
        let kind = exchange.judge(Written::Cut(beginning.as_bytes(), 9_000_000));
        let Ok((LineKind::About { effect: LineEffect::Overdrawn(fault), .. }, Some(()))) = kind else {
            panic!("{kind:?}")
        };
        assert_eq!(fault.code, FaultCode::Limit);
        assert!(fault.message.contains("9000000 bytes") && fault.message.contains("at most 6295552"), "{fault:?}");
        assert_eq!(exchange.load(), 1);
        // A late one is about a message that is not in flight.
        let again = exchange.judge(Written::Cut(beginning.as_bytes(), 9_000_000));
        assert!(matches!(again, Ok((LineKind::Stray { .. }, None))), "{again:?}");
    }

    #[test]
    fn an_answer_ends_its_message() {
        let mut exchange = exchange(2);
        let LineEffect::Wrote(Ok(Output::Xml(raw))) = about(&mut exchange, r#""payloads":["<a/>","<b/>"]"#) else {
            panic!("an answer")
        };
        assert_eq!(&raw.bytes()[..], b"<a/>\n<b/>");
        let again = exchange.judge(Written::Whole(format!(r#"{{"id":"{ID}","payloads":[]}}"#).as_bytes()));
        assert!(matches!(again, Ok((LineKind::Stray { .. }, None))), "{again:?}");
    }
}
