//! An answer of a provider as it grows: server-sent events, a JSON object a line, or one JSON object.
//!
//! An answer is whole once the last word of its protocol has come (`[DONE]`, `message_stop`), or once its stream
//! has ended behind a provider's word that the model has ended it (`done` of Ollama is no more than that, since some write
//! it in each object); a stream that stays open does behind the count of all tokens. Such a word alone says nothing: some
//! providers write it in each event, so that parts of an answer behind it take it back. What no end confirms is a failure:
//! repair could make a valid lie of half an answer. So is what can't be read in a stream: it may be a part of the answer.

use std::collections::BTreeSet;

use serde_json::Value;
use systole_core::core::Usage;

use super::end::EndWord;
use super::error::{error_in, reported, said};
use super::part::broken;
use super::{Again, Billed, Completion, Finish, Setback, anthropic, ollama, openai};
use crate::remote::sse::{Event, Parser, STRAY};
use crate::settings::Dialect;
use crate::terminal::readable;

/// Bytes of the text of an answer, at most: the journal keeps it.
const TEXT: usize = 8 << 20;

/// Bytes that are kept of the beginning of an answer, to quote them if it is none.
const HEAD: usize = 4 << 10;

/// An answer, as far as it has come.
pub(super) struct Reply {
    dialect: Dialect,
    most: usize,
    frames: Frames,
    /// The beginning of the answer.
    head: Vec<u8>,
    grown: Grown,
    /// True if characters came in halves.
    has_halves: bool,
    /// An event of the protocol has come.
    has_begun: bool,
    characters: Characters,
}

/// The characters of an answer, whose bytes come in pieces. What takes them apart has U+FFFD for bytes that are none, as
/// the standard of events demands.
#[derive(Default)]
struct Characters {
    /// The beginning of one at the end of the last piece.
    begun: Vec<u8>,
    are_broken: bool,
}

impl Characters {
    fn note(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        match std::str::from_utf8(&self.begun) {
            Ok(_) => self.begun.clear(),
            Err(error) => {
                self.are_broken |= error.error_len().is_some();
                self.begun.drain(..error.valid_up_to() + error.error_len().unwrap_or_default());
            }
        }
        if self.are_broken {
            self.begun.clear();
        }
    }
}

/// The form of an answer: its bytes tell it, since media types are missing or wrong behind many gateways.
enum Frames {
    /// Not known yet: nothing but white space came.
    Unknown,
    Events(Parser),
    Lines {
        begun: Vec<u8>,
        most: usize,
    },
    /// One JSON value: an answer that was not streamed, or an error.
    Whole(Vec<u8>),
    /// None of these, such as a page of HTML.
    Foreign,
}

/// The text of an answer so far, with its end and its usage.
#[derive(Debug, Default)]
pub(super) struct Grown {
    pub(super) text: String,
    /// The words of a model that declines, which some providers keep apart from the text.
    pub(super) refusal: String,
    pub(super) model: String,
    pub(super) usage: Usage,
    /// Set by the last word of the protocol: nothing more comes.
    pub(super) is_over: bool,
    /// Numbers of the blocks of Anthropic that are no text of the answer.
    pub(super) unread_blocks: BTreeSet<u64>,
    end: Option<End>,
    /// Events with a part of the answer, its thoughts included.
    parts: u64,
}

/// A provider's word on the end of an answer.
#[derive(Debug)]
struct End {
    class: EndWord,
    word: String,
    /// The word is said in an event with a part of the answer, and maybe in each: by itself it says nothing.
    is_beside: bool,
    /// A part of the answer came behind such a word before: the provider says it at any time.
    is_loose: bool,
    /// The tokens of the whole answer were counted behind it.
    is_counted: bool,
}

impl Grown {
    /// Notes that a part of the answer comes. The word that the answer has ended is taken back by that.
    pub(super) fn flow(&mut self) {
        self.parts += 1;
        if let Some(end) = self.end.as_mut().filter(|end| end.class == EndWord::Whole) {
            (end.class, end.is_loose) = (EndWord::None, true);
        }
    }

    /// Takes the provider's word on the end, beside a part of the answer or not. A later word does not make a whole
    /// answer of one that was cut or withheld.
    pub(super) fn end(&mut self, word: &str, is_beside: bool) {
        let class = EndWord::of(word);
        let is_loose = self.end.as_ref().is_some_and(|end| end.is_loose);
        let is_open = self.end.as_ref().is_none_or(|end| matches!(end.class, EndWord::None | EndWord::Whole));
        if is_open && class != EndWord::None {
            self.end = Some(End { class, word: readable(word), is_beside, is_loose, is_counted: false });
        }
    }

    /// Notes that the provider counts the tokens of the whole answer, which it does at the end.
    pub(super) fn counted(&mut self) {
        self.end.iter_mut().for_each(|end| (end.is_beside, end.is_counted) = (false, true));
    }

    /// The way in which the answer ended, once its stream has.
    ///
    /// # Errors
    /// The reason why it is not an answer.
    fn finish(&self) -> Result<Finish, String> {
        let broke_off = "its answer broke off before its end";
        let Some(end) = &self.end else {
            let is_whole = self.is_over && self.text.len() + self.refusal.len() > 0;
            return if is_whole { Ok(Finish::Unsaid) } else { Err(broke_off.to_owned()) };
        };
        match end.class {
            EndWord::Cut => Ok(Finish::Cut),
            EndWord::Withheld => Ok(Finish::Withheld(end.word.clone())),
            EndWord::Failed => Err(format!("it ended its answer with the reason '{}'", end.word)),
            EndWord::Whole if self.is_over || !end.is_beside && !end.is_loose => Ok(Finish::Whole),
            EndWord::None if self.is_over => Ok(Finish::Unsaid),
            EndWord::Whole | EndWord::None => Err(format!(
                "{broke_off}: it says '{}' in the middle of its answers, too, and its stream ended without its last event",
                end.word
            )),
        }
    }
}

impl Reply {
    /// An answer of which nothing has come, with frames of so many bytes at most.
    pub(super) fn new(dialect: Dialect, most: usize) -> Self {
        let (grown, head) = (Grown::default(), Vec::new());
        Self {
            dialect,
            most,
            frames: Frames::Unknown,
            head,
            grown,
            has_halves: false,
            has_begun: false,
            characters: Characters::default(),
        }
    }

    /// Tests for the last word of the protocol, behind which nothing is waited for. Ollama has none: it ends its stream.
    pub(super) fn is_over(&self) -> bool {
        self.grown.is_over && self.dialect != Dialect::Ollama
    }

    /// Tests for all that a provider says of an answer, but for the end of its stream: the model has ended it, and its tokens
    /// are counted.
    pub(super) fn is_counted(&self) -> bool {
        let is_whole = |end: &End| end.class == EndWord::Whole && end.is_counted && !end.is_loose;
        self.grown.parts > 0 && self.grown.end.as_ref().is_some_and(is_whole)
    }

    /// The number of parts of the answer so far, its thoughts included.
    pub(super) fn parts(&self) -> u64 {
        self.grown.parts
    }

    /// The text so far.
    pub(super) fn text(&self) -> &str {
        &self.grown.text
    }

    /// The tokens that the provider has reported so far.
    pub(super) fn usage(&self) -> Usage {
        self.grown.usage
    }

    /// Takes some bytes.
    ///
    /// # Errors
    /// A setback, if the provider reports an error or breaks its protocol.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Setback> {
        let room = HEAD - self.head.len().min(HEAD);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.characters.note(bytes);
        self.read(bytes).map_err(|setback| self.charged(setback))
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Setback> {
        let frames: Vec<Result<String, Setback>> = match &mut self.frames {
            Frames::Unknown => {
                let begun = self.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.head);
                let Some(first) = begun.trim_ascii_start().first() else { return Ok(()) };
                self.frames = match (first, self.dialect) {
                    (b'<', _) => Frames::Foreign,
                    (_, Dialect::Ollama) => Frames::Lines { begun: Vec::new(), most: self.most },
                    (b'{' | b'[', _) => Frames::Whole(Vec::new()),
                    _ => Frames::Events(Parser::new(self.most).strict("error")),
                };
                // White space before it may be more than is kept, and is no matter.
                let all = if self.head.len() < HEAD { self.head.clone() } else { bytes.to_vec() };
                return self.read(&all);
            }
            Frames::Events(parser) => {
                let events = parser.push(bytes).map_err(|_| too_long())?;
                events.into_iter().map(framed).collect()
            }
            Frames::Lines { begun, most } => lines(begun, *most, bytes)?.into_iter().map(Ok).collect(),
            Frames::Whole(begun) if begun.len() + bytes.len() > self.most => return Err(too_long()),
            Frames::Whole(begun) => {
                begun.extend_from_slice(bytes);
                Vec::new()
            }
            Frames::Foreign if self.head.len() >= HEAD => return Err(self.foreign(None)),
            Frames::Foreign => Vec::new(),
        };
        frames.into_iter().try_for_each(|frame| match frame {
            Err(_) if self.is_over() => Ok(()),
            frame => self.take(&frame?),
        })
    }

    /// The whole answer.
    ///
    /// # Errors
    /// A setback, if the answer broke off.
    pub(super) fn end(mut self) -> Result<Completion, Setback> {
        self.read_rest().map_err(|setback| self.charged(setback))?;
        let finish = self.grown.finish().map_err(|message| {
            let end = self.grown.end.as_ref().map(|end| end.class);
            let is_silent = self.grown.parts == 0 && end.is_none() && !self.head.trim_ascii().is_empty();
            let detail = if is_silent { format!("{message}: {}", said(&self.head)) } else { message.clone() };
            let setback = Setback { detail, ..Setback::new(message, Again::Later(None)) };
            // The word of a failure is the report of an error.
            self.charged(if end == Some(EndWord::Failed) { setback.unbilled() } else { setback })
        })?;
        let mut text = std::mem::take(&mut self.grown.text);
        let mut problem = self.characters.are_broken.then_some("its answer has bytes that are no characters");
        if self.has_halves {
            let is_whole;
            (text, is_whole) = joined(&text);
            problem = problem.or((!is_whole).then_some("its answer has half a character"));
        }
        // The text of an answer that is not whole is only quoted.
        if let Some(problem) = problem.filter(|_| matches!(finish, Finish::Whole | Finish::Unsaid)) {
            return Err(self.charged(Setback::new(problem, Again::Later(None))));
        }
        let Grown { refusal, model, usage, .. } = self.grown;
        let finish = match finish {
            Finish::Whole if !refusal.is_empty() => Finish::Withheld(format!("refusal: {}", readable(&refusal))),
            finish => finish,
        };
        Ok(Completion { text, finish, model: readable(&model), usage })
    }

    /// Takes what the end of the stream leaves: a whole answer, or a last line. A line that was cut is no JSON.
    fn read_rest(&mut self) -> Result<(), Setback> {
        let last = match &mut self.frames {
            Frames::Unknown => return Ok(()),
            Frames::Foreign => return Err(self.foreign(None)),
            Frames::Whole(all) => {
                let all = String::from_utf8_lossy(all).into_owned();
                let json: Value = serde_json::from_str(&all).map_err(|error| match error.is_eof() {
                    true => Setback::new("its answer broke off before its end", Again::Later(None)),
                    false => self.foreign(Some(&error.to_string())),
                })?;
                let json = json.as_array().and_then(|all| all.first()).unwrap_or(&json);
                if error_in(json).is_none() && json.get("choices").or(json.get("content")).is_none() {
                    return Err(self.foreign(None));
                }
                let taken = self.take(&json.to_string());
                self.grown.is_over = true;
                return taken;
            }
            Frames::Events(parser) => parser.rest().map(framed).transpose(),
            Frames::Lines { begun, .. } => Ok(Some(String::from_utf8_lossy(begun).into_owned())),
        };
        if self.is_over() && last.is_err() {
            return Ok(());
        }
        let Some(last) = last?.filter(|last| !last.trim().is_empty()) else { return Ok(()) };
        if self.is_over() || last.trim() == openai::END || self.parse(last.trim()).is_ok() {
            return self.take(&last);
        }
        let message = "its answer broke off before its end, in the middle of an event".to_owned();
        Err(Setback { detail: format!("{message}: {}", readable(&last)), ..Setback::new(message, Again::Later(None)) })
    }

    /// The setback with what the provider may bill for the answer so far.
    fn charged(&self, setback: Setback) -> Setback {
        let (usage, parts) = (self.grown.usage, self.grown.parts);
        let billed = match setback.billed {
            Billed::Nothing if parts == 0 && usage == Usage::default() => Billed::Nothing,
            _ if usage == Usage::default() => Billed::Unknown,
            _ => Billed::Used(usage),
        };
        Setback { billed, ..setback }
    }

    /// The setback of an answer in another protocol.
    fn foreign(&self, why: Option<&str>) -> Setback {
        let message = format!("it does not speak the protocol '{}'", self.dialect.as_str());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        Setback { detail: format!("{message}{why}: {}", said(&self.head)), ..Setback::new(message, Again::Never) }
    }

    fn take(&mut self, frame: &str) -> Result<(), Setback> {
        let frame = frame.trim();
        if frame.is_empty() {
            return Ok(());
        }
        if self.grown.is_over {
            return self.take_behind(frame);
        }
        if frame == openai::END && self.dialect == Dialect::OpenAi {
            self.grown.is_over = true;
            return Ok(());
        }
        let json = self.parse(frame).map_err(|error| {
            if self.has_begun {
                return broken("an event is no JSON", frame);
            }
            let message = format!("it does not speak the protocol '{}'", self.dialect.as_str());
            let detail = format!("{message}: {error}: {}", readable(frame));
            Setback { detail, ..Setback::new(message, Again::Never) }
        })?;
        self.grow(&json)?;
        self.has_begun = true;
        if self.grown.text.len() + self.grown.refusal.len() > TEXT { Err(too_long()) } else { Ok(()) }
    }

    fn parse(&mut self, frame: &str) -> serde_json::Result<Value> {
        serde_json::from_str(frame).or_else(|error| {
            // A provider that cuts its text between two UTF-16 units escapes half a character.
            let whole = without_lone_surrogates(frame).ok_or(error)?;
            self.has_halves = true;
            serde_json::from_str(&whole)
        })
    }

    fn grow(&mut self, json: &Value) -> Result<(), Setback> {
        match self.dialect {
            Dialect::OpenAi => openai::take(&mut self.grown, json),
            Dialect::Anthropic => anthropic::take(&mut self.grown, json),
            Dialect::Ollama => ollama::take(&mut self.grown, json),
        }
    }

    /// Takes a frame behind the last word of the protocol: anything but a part of the answer is no matter there. Behind the
    /// `done` of Ollama, which may be no last word, all of it is.
    fn take_behind(&mut self, frame: &str) -> Result<(), Setback> {
        let parts = self.grown.parts;
        let taken = match self.parse(frame) {
            Ok(json) if self.is_over() && (error_in(&json).is_some() || !json.is_object()) => Ok(()),
            Ok(json) => self.grow(&json),
            Err(_) if self.is_over() => Ok(()),
            Err(_) => Err(broken("a line is no JSON", frame)),
        };
        if self.grown.parts > parts {
            return Err(Setback::new("it sent more of its answer behind the last word", Again::Later(None)));
        }
        taken
    }
}

/// The text of an event.
///
/// # Errors
/// The setback of an event of the kind `error`, however it is written, or of a line that is no part of an event.
fn framed(event: Event) -> Result<String, Setback> {
    if event.kind == STRAY {
        return Err(broken("a line of its stream is no field of an event", &event.data));
    }
    if event.kind != "error" {
        return Ok(event.data);
    }
    let error = serde_json::from_str(&event.data).unwrap_or(Value::String(event.data));
    Err(reported(error_in(&error).filter(|inner| inner.is_object()).unwrap_or(&error)))
}

/// The lines that some bytes complete.
fn lines(begun: &mut Vec<u8>, most: usize, bytes: &[u8]) -> Result<Vec<String>, Setback> {
    // What is there has no line feed.
    let end = memchr::memrchr(b'\n', bytes).map(|end| begun.len() + end);
    begun.extend_from_slice(bytes);
    let Some(end) = end else {
        return if begun.len() > most { Err(too_long()) } else { Ok(Vec::new()) };
    };
    let rest = begun.split_off(end + 1);
    let whole = std::mem::replace(begun, rest);
    Ok(String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect())
}

/// Begins the private characters that stand for halves of others until a text is whole.
const HALVES: u32 = 0x10_0000;

/// A JSON text with a private character for each escaped surrogate that has no other half (RFC 8259, section 7): the next
/// piece may have it. `None` if there is none.
fn without_lone_surrogates(json: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &json.as_bytes()[at..]) {
        at += found;
        match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(unit @ 0xD800..=0xDFFF), _) => {
                out.push_str(&json[kept..at]);
                out.extend(char::from_u32(HALVES + u32::from(unit)));
                at += 6;
                kept = at;
            }
            // The character behind a backslash begins no escape.
            _ => at += 2,
        }
        if at >= json.len() {
            break;
        }
    }
    (kept > 0).then(|| out + &json[kept..])
}

/// A text with its halves joined, and U+FFFD for those that have no other; and whether there are none of these.
fn joined(text: &str) -> (String, bool) {
    let half =
        |c: char| u16::try_from(u32::from(c).checked_sub(HALVES)?).ok().filter(|unit| (0xD800..=0xDFFF).contains(unit));
    let mut units = Vec::with_capacity(text.len());
    for c in text.chars() {
        match half(c) {
            Some(unit) => units.push(unit),
            None => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        }
    }
    String::from_utf16(&units).map_or_else(|_| (String::from_utf16_lossy(&units), false), |text| (text, true))
}

fn too_long() -> Setback {
    Setback::new("its answer is too long", Again::Never)
}

/// A text in a field of an object.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

/// A count in a field of an object; 0 if there is none.
pub(super) fn count(value: &Value, field: &str) -> u64 {
    let number = value.get(field);
    // Some write a count as a float.
    let float = || number.and_then(Value::as_f64).filter(|count| *count > 0.0).map(|count| count as u64);
    number.and_then(Value::as_u64).or_else(float).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(dialect: Dialect, text: &str) -> Result<Completion, Setback> {
        // However it is cut.
        let whole = read(dialect, &[text]);
        for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            assert_eq!(read(dialect, &[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
        whole
    }

    fn read(dialect: Dialect, pieces: &[&str]) -> Result<Completion, Setback> {
        let mut reply = Reply::new(dialect, 1 << 20);
        for piece in pieces {
            reply.push(piece.as_bytes())?;
        }
        reply.end()
    }

    fn usage(input: u64, output: u64, cached: u64) -> Usage {
        Usage { input, output, cached, ..Usage::default() }
    }

    const OPENAI: &str = "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
        : a comment\n\n\
        data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"<a>é\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"</a>\"},\"finish_reason\":null}]}\n\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n\
        data: [DONE]\n\n";

    #[test]
    fn chat_completions_grow() {
        let completion = all(Dialect::OpenAi, OPENAI).unwrap();
        let (text, model) = ("<a>é</a>".to_owned(), "m-1".to_owned());
        assert_eq!(completion, Completion { text, finish: Finish::Whole, model, usage: usage(9, 4, 5) });
        let finish = |word: &str| all(Dialect::OpenAi, &OPENAI.replace("\"stop\"", word)).map(|it| it.finish);
        assert_eq!(finish("\"length\""), Ok(Finish::Cut));
        assert_eq!(finish("\"content_filter\""), Ok(Finish::Withheld("content_filter".to_owned())));
        // The first word that the answer is not whole counts.
        let twice = |words: &str| {
            finish(&format!("{words}}}]}}\n\ndata: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\""))
        };
        assert_eq!(twice("\"length\""), Ok(Finish::Cut));
        assert_eq!(twice("\"stop\""), Ok(Finish::Whole));
        assert_eq!(finish("null"), Ok(Finish::Unsaid), "its last event is an end");
        let open = |text: &str| all(Dialect::OpenAi, &text.replace("data: [DONE]\n\n", ""));
        assert_eq!(open(OPENAI).unwrap().finish, Finish::Whole);
        let setback = open(&OPENAI.replace("\"stop\"", "null")).unwrap_err();
        assert_eq!(setback.again, Again::Later(None), "nobody knows whether it was cut");
        assert_eq!(setback.billed, Billed::Used(usage(9, 4, 5)));
    }

    #[test]
    fn thoughts_beside_the_tokens_of_a_completion_are_counted() {
        for (counts, expected) in [
            (
                r#""completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}"#,
                usage(32, 103, 0),
            ),
            (r#""completion_tokens":9,"total_tokens":135"#, usage(32, 103, 0)),
            (r#""total_tokens":135"#, usage(32, 103, 0)),
            (r#""completion_tokens":9,"total_tokens":41"#, usage(32, 9, 0)),
            (r#""completion_tokens":9,"total_tokens":0"#, usage(32, 9, 0)),
            (r#""completion_tokens":9"#, usage(32, 9, 0)),
        ] {
            let begin = OPENAI.find("\"usage\"").unwrap();
            let stream =
                format!("{}\"usage\":{{\"prompt_tokens\":32,{counts}}}}}\n\ndata: [DONE]\n\n", &OPENAI[..begin]);
            assert_eq!(all(Dialect::OpenAi, &stream).unwrap().usage, expected, "{counts}");
        }
    }

    const ANTHROPIC: &str = "event: message_start\n\
        data: {\"type\":\"message_start\",\"message\":{\"model\":\"c-1\",\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":1,\"output_tokens\":1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n\
        event: ping\ndata: {\"type\": \"ping\"}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"<a>\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"b</a>\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

    #[test]
    fn messages_grow() {
        let completion = all(Dialect::Anthropic, ANTHROPIC).unwrap();
        let (text, model) = ("<a>b</a>".to_owned(), "c-1".to_owned());
        assert_eq!(
            completion,
            Completion { text, finish: Finish::Whole, model, usage: Usage { written: 1, ..usage(9, 7, 5) } }
        );
        let finish = |word: &str| all(Dialect::Anthropic, &ANTHROPIC.replace("end_turn", word)).map(|it| it.finish);
        assert_eq!(finish("max_tokens"), Ok(Finish::Cut));
        assert_eq!(finish("model_context_window_exceeded"), Ok(Finish::Cut));
        assert_eq!(finish("stop_sequence"), Ok(Finish::Whole));
        assert_eq!(finish("refusal"), Ok(Finish::Withheld("refusal".to_owned())));
        let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let setback = all(Dialect::Anthropic, overloaded).unwrap_err();
        assert!(setback.detail.contains("Overloaded") && setback.again == Again::Later(None), "{setback:?}");
    }

    const OLLAMA: &str = "{\"model\":\"l-1\",\"message\":{\"role\":\"assistant\",\"content\":\"<a>\",\"thinking\":\"hm\"},\"done\":false}\n\
        {\"model\":\"l-1\",\"message\":{\"role\":\"assistant\",\"content\":\"b</a>\"},\"done\":false}\n\
        {\"model\":\"l-1\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":9,\"eval_count\":4}\n";

    #[test]
    fn chats_grow_line_by_line() {
        let expected = Completion {
            text: "<a>b</a>".to_owned(),
            finish: Finish::Whole,
            model: "l-1".to_owned(),
            usage: usage(9, 4, 0),
        };
        assert_eq!(all(Dialect::Ollama, OLLAMA), Ok(expected.clone()));
        assert_eq!(all(Dialect::Ollama, OLLAMA.trim_end()), Ok(expected), "the last line feed may be missing");
        let cut = all(Dialect::Ollama, &OLLAMA.replace("\"stop\"", "\"length\"")).unwrap();
        assert_eq!(cut.finish, Finish::Cut);
        let setback = all(Dialect::Ollama, "{\"error\":\"model not loaded\"}\n").unwrap_err();
        assert!(setback.detail.ends_with("model not loaded"), "{setback:?}");
    }

    #[test]
    fn an_answer_without_its_end_is_none() {
        for (dialect, text, ends) in [
            (Dialect::OpenAi, OPENAI, "\"finish_reason\":\"stop\""),
            (Dialect::Anthropic, ANTHROPIC, "event: message_delta"),
            (Dialect::Ollama, OLLAMA, "{\"model\":\"l-1\",\"message\":{\"role\":\"assistant\",\"content\":\"\"}"),
        ] {
            let end = text.find(ends).unwrap();
            for at in (0..=end).filter(|&at| text.is_char_boundary(at)) {
                let setback = read(dialect, &[&text[..at]]).unwrap_err();
                assert_eq!(setback.again, Again::Later(None), "{at}: {setback:?}");
            }
        }
    }

    /// An event with a part of an answer and a word on its end, either of which may be missing.
    fn event(content: &str, finish: Option<&str>) -> String {
        let delta = if content.is_empty() { json!({}) } else { json!({ "content": content }) };
        format!("data: {}\n\n", json!({ "choices": [{ "delta": delta, "finish_reason": finish }] }))
    }

    #[test]
    fn a_stop_word_counts_with_the_end_of_the_stream() {
        let (one, two) = (event("<a><b/>", Some("stop")), event("<b/></a>", Some("stop")));
        let (done, usage) = ("data: [DONE]\n\n", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n");
        let text = |parts: &[&str]| all(Dialect::OpenAi, &parts.concat()).map(|it| (it.text, it.finish));
        let whole = |text: &str| Ok((text.to_owned(), Finish::Whole));
        let draft = event("", Some("stop"));
        assert_eq!(text(&[&one, &two, done]), whole("<a><b/><b/></a>"));
        let unsaid = Ok(("<a/>".to_owned(), Finish::Unsaid));
        assert_eq!(text(&[&draft, &event("<a/>", None), done]), unsaid);
        assert_eq!(text(&[&event("<a/>", None), &event("", Some("")), done]), unsaid);
        assert_eq!(text(&[&event("<a/>", Some("")), done]), unsaid);
        assert_eq!(text(&[&event("<a/>", Some("null")), done]), unsaid);
        assert_eq!(text(&[&event("<a/>", None), done]), unsaid);
        assert_eq!(text(&[&event("<a/>", Some("STOP")), usage]), whole("<a/>"), "what it used is another witness");
        assert_eq!(text(&[&event("<a/>", None), &draft]), whole("<a/>"));
        // Where its last event is missing, a provider that says it at any time may have broken off.
        for cut in [vec![&*one], vec![&one, &two], vec![&one, &two, &draft, usage], vec![&draft, &one]] {
            let setback = text(&cut).unwrap_err();
            assert!(setback.again == Again::Later(None) && setback.message.contains("broke off"), "{setback:?}");
        }
        assert_eq!(text(&[&one, &event("<b/>", Some("length")), &two, done]).unwrap().1, Finish::Cut);
        let thoughts =
            "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":\"stop\"}]}\n\n";
        text(&[thoughts, thoughts]).unwrap_err();
        assert_eq!(text(&[&event("<a/>", Some("error")), done]).unwrap_err().again, Again::Later(None));
        assert_eq!(text(&[&event("<a/>", Some("odd")), done]).unwrap().1, Finish::Withheld("odd".to_owned()));
        text(&[done]).unwrap_err();
    }

    #[test]
    fn a_part_behind_the_last_word_is_not_dropped() {
        let line = "{\"message\":{\"content\":\"<b/>\"},\"done\":false}\n";
        let part = ANTHROPIC.split_inclusive("\n\n").find(|event| event.contains("\"b</a>\"")).unwrap();
        for (dialect, text, more) in [
            (Dialect::OpenAi, OPENAI, event("<b/>", None)),
            (Dialect::Anthropic, ANTHROPIC, part.to_owned()),
            (Dialect::Ollama, OLLAMA, line.to_owned()),
        ] {
            let mut reply = Reply::new(dialect, 1 << 20);
            reply.push(text.as_bytes()).unwrap();
            assert_eq!(reply.is_over(), dialect != Dialect::Ollama, "the stream of Ollama has to end");
            let setback = reply.push(more.as_bytes()).unwrap_err();
            assert!(setback.message.contains("behind the last word"), "{setback:?}");
            assert_eq!(setback.again, Again::Later(None));
        }
        let rest = format!("{OPENAI}data: [DONE]\n\ndata: bye\n\n{}", event("", Some("stop")));
        assert_eq!(all(Dialect::OpenAi, &rest).unwrap().finish, Finish::Whole);
        let unsaid = ANTHROPIC.replace("\"stop_reason\":\"end_turn\"", "\"stop_reason\":null");
        assert_eq!(all(Dialect::Anthropic, &unsaid).unwrap().finish, Finish::Unsaid);
        let body = "{\"choices\":[{\"message\":{\"content\":\"<a>\"}}]}";
        assert_eq!(all(Dialect::OpenAi, body).unwrap().finish, Finish::Unsaid);
    }

    #[test]
    fn a_stop_word_of_the_other_protocols_is_taken_back_too() {
        let part = ANTHROPIC.split("event: ").find(|event| event.contains("\"b</a>\"")).unwrap();
        let twice = ANTHROPIC.replace("event: message_stop", &format!("event: {part}event: message_stop"));
        assert_eq!(all(Dialect::Anthropic, &twice).unwrap().text, "<a>b</a>b</a>");
        let cut = &twice[..twice.find("event: message_stop").unwrap()];
        assert_eq!(all(Dialect::Anthropic, cut).unwrap_err().again, Again::Later(None));
        let unended = &ANTHROPIC[..ANTHROPIC.find("event: message_stop").unwrap()];
        assert_eq!(all(Dialect::Anthropic, unended).unwrap().finish, Finish::Whole);
        let loaded = "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"load\"}\n";
        assert_eq!(all(Dialect::Ollama, loaded).unwrap_err().again, Again::Later(None));
    }

    #[test]
    fn errors_of_a_provider_keep_its_words() {
        for (stream, words, again, billed) in [
            (
                "data: {\"object\":\"error\",\"message\":\"too long\",\"code\":400}\n\ndata: [DONE]\n\n",
                "too long",
                Again::Never,
                Billed::Nothing,
            ),
            (
                "event: error\ndata: {\"code\":400,\"details\":\"logprobs\"}\n\n",
                "logprobs",
                Again::Never,
                Billed::Nothing,
            ),
            ("error: {\"code\":500,\"message\":\"no batch\"}\n\n", "no batch", Again::Later(None), Billed::Nothing),
            ("error: {\"code\":500,\"message\":\"no batch\"}", "no batch", Again::Later(None), Billed::Nothing),
            ("{\"error\":{\"message\":\"per day\",\"code\":429}}", "per day", Again::Later(None), Billed::Nothing),
            ("{\"detail\":\"Not Found\"}", "Not Found", Again::Later(None), Billed::Nothing),
            ("data: [{\"error\":{\"message\":\"no key\",\"code\":400}}]\n\n", "no key", Again::Never, Billed::Nothing),
            (
                "data: {\"status\":503,\"message\":\"warming up\"}\n\n",
                "warming up",
                Again::Later(None),
                Billed::Nothing,
            ),
            (
                "data: {\"__type\":\"ValidationException\",\"message\":\"no tools\"}\n\n",
                "no tools",
                Again::Never,
                Billed::Nothing,
            ),
            (
                &format!(
                    "{}data: {{\"choices\":[{{\"error\":{{\"code\":402,\"message\":\"no funds\"}},\"finish_reason\":\"error\"}}]}}\n\n",
                    event("<a", None)
                ),
                "no funds",
                Again::Never,
                Billed::Unknown,
            ),
            ("<html><title>Sign in</title></html>", "Sign in", Again::Never, Billed::Unknown),
            ("Internal Server Error", "Internal Server Error", Again::Later(None), Billed::Unknown),
            (&format!("{}error: lost\n\n", event("<a", None)), "lost", Again::Later(None), Billed::Unknown),
        ] {
            let setback = all(Dialect::OpenAi, stream).unwrap_err();
            assert!(setback.detail.contains(words) && !setback.message.contains(words), "{setback:?}");
            assert_eq!((setback.again, setback.billed), (again, billed), "{stream}");
        }
        let setback = all(Dialect::Ollama, "<html>a proxy</html>").unwrap_err();
        assert!(setback.detail.ends_with("'ollama': a proxy") && setback.again == Again::Never, "{setback:?}");
    }

    #[test]
    fn a_whole_answer_needs_no_stream() {
        let openai = json!({ "model": "m-1", "choices": [{ "message": { "content": "<a/>" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 2.0 } });
        let anthropic = json!({ "type": "message", "model": "m-1", "content": [{ "type": "text", "text": "<a/>" }],
            "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 2 } });
        let ollama = json!({ "model": "m-1", "message": { "content": "<a/>" }, "done": true, "done_reason": "stop",
            "prompt_eval_count": 1, "eval_count": 2 });
        for (dialect, body) in [(Dialect::OpenAi, openai), (Dialect::Anthropic, anthropic), (Dialect::Ollama, ollama)] {
            let completion = all(dialect, &body.to_string()).unwrap();
            let (text, model) = ("<a/>".to_owned(), "m-1".to_owned());
            assert_eq!(completion, Completion { text, finish: Finish::Whole, model, usage: usage(1, 2, 0) });
        }
    }

    #[test]
    fn the_last_line_may_lack_its_end() {
        let open = format!("{}{}", event("<a/>", None), event("", Some("stop")));
        assert_eq!(all(Dialect::OpenAi, open.trim_end()).unwrap().text, "<a/>");
    }

    #[test]
    fn an_answer_that_never_ends_is_refused() {
        let mut reply = Reply::new(Dialect::Ollama, 1 << 20);
        let line = format!("{}\n", json!({ "message": { "content": "x".repeat(1 << 19) } }));
        let setback = (0..17).find_map(|_| reply.push(line.as_bytes()).err()).unwrap();
        assert_eq!((&*setback.message, setback.again), ("its answer is too long", Again::Never));
        let mut reply = Reply::new(Dialect::OpenAi, 100);
        assert_eq!(reply.push(&[b'x'; 101]).unwrap_err().message, "its answer is too long");
    }

    #[test]
    fn what_is_no_character_is_refused() {
        let cut = |escape: &str| OPENAI.replace("<a>é", &format!("<a>{escape}"));
        let text = |escape: &str| all(Dialect::OpenAi, &cut(escape)).unwrap().text;
        for half in [r"\ud83d", r"\udce9", r"\ude00\ud83d\ude00\uD83D\u0041"] {
            let setback = all(Dialect::OpenAi, &cut(half)).unwrap_err();
            assert_eq!((&*setback.message, setback.again), ("its answer has half a character", Again::Later(None)));
            assert_eq!(setback.billed, Billed::Used(usage(9, 4, 5)), "{half}");
        }
        // A limit may have cut it there.
        let limited = all(Dialect::OpenAi, &cut(r"\ud83d").replace("\"stop\"", "\"length\"")).unwrap();
        assert_eq!((&*limited.text, limited.finish), ("<a>\u{fffd}</a>", Finish::Cut));
        for (dialect, stream) in [(Dialect::OpenAi, OPENAI), (Dialect::Anthropic, ANTHROPIC), (Dialect::Ollama, OLLAMA)]
        {
            let begin = stream.find("<a>").unwrap() + "<a>".len();
            for broken in [&b"\xe9"[..], b"\xf0\x9f", b"\xed\xa0\xbd"] {
                let bytes = [&stream.as_bytes()[..begin], broken, &stream.as_bytes()[begin..]].concat();
                for at in 0..bytes.len() {
                    let mut reply = Reply::new(dialect, 1 << 20);
                    reply.push(&bytes[..at]).and_then(|()| reply.push(&bytes[at..])).unwrap();
                    assert_eq!(reply.end().unwrap_err().message, "its answer has bytes that are no characters", "{at}");
                }
            }
            for at in 0..stream.len() {
                let mut reply = Reply::new(dialect, 1 << 20);
                reply.push(&stream.as_bytes()[..at]).and_then(|()| reply.push(&stream.as_bytes()[at..])).unwrap();
                assert_eq!(reply.end().unwrap().finish, Finish::Whole, "a character in two pieces: {at}");
            }
        }
        assert_eq!(text(r"\\ud83d"), r"<a>\ud83d</a>", "no escape");
        let halves = OPENAI.replace("<a>é", r"<a>\ud83d").replace("\"</a>\"", r#""\ude00</a>""#);
        assert_eq!(all(Dialect::OpenAi, &halves).unwrap().text, "<a>\u{1f600}</a>", "in two pieces");
        assert_eq!(without_lone_surrogates(r#"{"a\n":"\\ud83d"}"#), None);
        assert_eq!(without_lone_surrogates(r"\"), None);
    }

    #[test]
    fn parts_of_an_answer_are_found_where_providers_put_them() {
        let listed = OPENAI.replace("\"<a>é\"", r#"[{"type":"text","text":"<a>"},{"type":"text","text":"é"}]"#);
        assert_eq!(all(Dialect::OpenAi, &listed).unwrap().text, "<a>é</a>");
        let declined = OPENAI.replace(
            r#"{"delta":{},"finish_reason":"stop"}"#,
            r#"{"delta":{"refusal":"I can't."},"finish_reason":"stop"}"#,
        );
        let finish = all(Dialect::OpenAi, &declined).unwrap().finish;
        assert_eq!(finish, Finish::Withheld("refusal: I can't.".to_owned()));
        let started = ANTHROPIC.replace(r#"{"type":"thinking","thinking":""}"#, r#"{"type":"text","text":"<!-- -->"}"#);
        assert_eq!(all(Dialect::Anthropic, &started).unwrap().text, "<!-- --><a>b</a>");
        let counted = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":8}}"#;
        let twice = ANTHROPIC
            .replace("event: message_stop", &format!("event: message_delta\ndata: {counted}\n\nevent: message_stop"));
        let completion = all(Dialect::Anthropic, &twice).unwrap();
        assert_eq!((completion.finish, completion.usage.output), (Finish::Whole, 8));
        // The count of a message that begins is a placeholder, no count of its answer.
        let uncounted = ANTHROPIC.replace(",\"usage\":{\"output_tokens\":7}", "");
        assert_eq!(all(Dialect::Anthropic, &uncounted).unwrap().usage.output, 0);
        let unsaid =
            OLLAMA.replace(r#","done_reason":"stop""#, "").replace(r#""done":false"#, r#""done":false,"error":null"#);
        // Older servers give no reason.
        assert_eq!(all(Dialect::Ollama, &unsaid).unwrap().finish, Finish::Unsaid);
        assert_eq!(all(Dialect::OpenAi, &format!("\u{feff}{OPENAI}")).unwrap().model, "m-1", "a byte order mark");
    }

    /// The two halves of an answer around an event, in a stream that says it is whole.
    fn around(dialect: Dialect, between: &str) -> String {
        let (stream, second) = match dialect {
            Dialect::OpenAi => (OPENAI, "data: {\"choices\":[{\"delta\":{\"content\":\"</a>\"}"),
            Dialect::Anthropic => (
                ANTHROPIC,
                "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"b</a>\"}}",
            ),
            Dialect::Ollama => {
                (OLLAMA, "{\"model\":\"l-1\",\"message\":{\"role\":\"assistant\",\"content\":\"b</a>\"}")
            }
        };
        let at = stream.find(second).unwrap();
        format!("{}{between}{}", &stream[..at], &stream[at..])
    }

    #[test]
    fn a_hole_in_an_answer_is_a_failure() {
        const DELTA: &str = "{\"choices\":[{\"delta\":{\"content\":\"<b/>\"}}]}";
        let lines =
            [" data: ", "\tdata: ", "DATA: ", "data : ", "date: ", ": keep-alivedata: ", "", "1f\n", "\u{feff}data: "];
        let openai = lines.map(|field| (Dialect::OpenAi, format!("{field}{DELTA}\n\n"))).into_iter();
        let events = [
            "<b/>",
            "\"<b/>\"",
            "7",
            "[]",
            r#"[{"choices":[{"delta":{"content":"<b/>"}}]}]"#,
            r#"{"data":{"choices":[{"delta":{"content":"<b/>"}}]}}"#,
            r#"{"type":"response.output_text.delta","delta":"<b/>"}"#,
            r#"{"choices":{"delta":{"content":"<b/>"}}}"#,
            r#"{"choices":"<b/>"}"#,
            r#"{"choices":["<b/>"]}"#,
            r#"{"choices":[],"message":{"content":"<b/>"}}"#,
            r#"{"usage":{"prompt_tokens":9},"response":"<b/>"}"#,
            r#"{"choices":[{"delta":"<b/>"}]}"#,
            r#"{"choices":[{"delta":["<b/>"]}]}"#,
            r#"{"choices":[{"text":"<b/>"}]}"#,
            r#"{"choices":[{"delta":{},"message":{"content":"<b/>"}}]}"#,
            r#"{"choices":[{"delta":{"text":"<b/>"}}]}"#,
            r#"{"choices":[{"delta":{"content":true}}]}"#,
            r#"{"choices":[{"delta":{"content":7}}]}"#,
            r#"{"choices":[{"delta":{"content":{"text":"<b/>"}}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"text":"<b/>"}]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":{"value":"<b/>"}}]}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"<b/>"}}]}"#,
            r#"{"choices":[{"index":"1","delta":{"content":"<b/>"}}]}"#,
            r#"{"choices":[{"delta":{"role":"user","content":"<b/>"}}]}"#,
            r#"{"choices":[{"delta":{"role":"tool","content":"<b/>"}}]}"#,
        ];
        let events = events.map(|event| (Dialect::OpenAi, format!("data: {event}\n\n"))).into_iter();
        let anthropic = [
            " data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"<b/>\"}}",
            "data: {\"type\":\"odd\",\"delta\":{\"text\":\"<b/>\"}}",
            "data: {\"type\":\"odd\",\"content_block\":{\"type\":\"text\",\"text\":\"<b/>\"}}",
            "data: {\"type\":\"odd\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"<b/>\"}]}}",
            "data: {\"delta\":{\"type\":\"text_delta\",\"text\":\"<b/>\"}}",
            "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":\"<b/>\"}",
            "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"odd\",\"text\":\"<b/>\"}}",
            "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":7}}",
            "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":\"<b/>\"}",
            "data: {\"type\":\"message_delta\",\"delta\":{\"text\":\"<b/>\"}}",
            "data: {\"type\":\"message_start\",\"message\":{\"role\":\"user\"}}",
            "data: {\"choices\":[{\"delta\":{\"content\":\"<b/>\"}}]}",
        ];
        let anthropic = anthropic.map(|event| (Dialect::Anthropic, format!("{event}\n\n"))).into_iter();
        let ollama = [
            "data: {\"message\":{\"content\":\"<b/>\"}}",
            "<b/>",
            "[]",
            "{\"response\":\"<b/>\",\"done\":false}",
            "{\"message\":\"<b/>\"}",
            "{\"message\":{\"content\":{\"text\":\"<b/>\"}}}",
            "{\"message\":{\"content\":7}}",
            "{\"message\":{\"text\":\"<b/>\"}}",
            "{\"message\":{\"role\":\"user\",\"content\":\"<b/>\"}}",
            "{\"message\":{\"content\":\"<b/>\"},\"done\":\"false\"}",
            "{\"odd\":\"<b/>\"}",
        ];
        let ollama = ollama.map(|line| (Dialect::Ollama, format!("{line}\n"))).into_iter();
        for (dialect, hole) in openai.chain(events).chain(anthropic).chain(ollama) {
            let setback = all_of(dialect, &around(dialect, &hole)).unwrap_err();
            assert!(
                setback.message.contains("can't be read") && setback.detail.len() > setback.message.len(),
                "{hole}: {setback:?}"
            );
            assert!(setback.again == Again::Later(None) && setback.billed != Billed::Nothing, "{hole}: {setback:?}");
        }
        // Behind `done` of Ollama it is one, too.
        let behind = format!("{OLLAMA}{{\"response\":\"<b/>\",\"done\":true}}\n");
        assert_eq!(all_of(Dialect::Ollama, &behind).unwrap_err().again, Again::Later(None));
        // An event that was cut may have been a part of the answer, too.
        let cut = format!("{}{}data: {{\"choi", event("<a/>", None), event("", Some("stop")));
        assert!(all(Dialect::OpenAi, &cut).unwrap_err().message.contains("in the middle of an event"));
    }

    /// The answer, in two pieces as well.
    fn all_of(dialect: Dialect, text: &str) -> Result<Completion, Setback> {
        let at = (text.len() / 2..).find(|&at| text.is_char_boundary(at)).unwrap();
        let whole = read(dialect, &[text]);
        assert_eq!(read(dialect, &[&text[..at], &text[at..]]), whole);
        whole
    }

    #[test]
    fn events_without_a_part_of_the_answer_are_no_hole() {
        for event in [
            ": keep-alive",
            ":",
            " ",
            "id: 7",
            "retry: 100",
            "event: ping",
            "data:",
            "data: {}",
            "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\"}",
            "data: {\"type\":\"ping\"}",
            "data: {\"choices\":[]}",
            "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}",
            "data: {\"choices\":[],\"odd\":\"field\"}",
            "data: {\"choices\":[],\"prompt_filter_results\":[{\"content_filter_results\":{\"hate\":{\"severity\":\"safe\"}}}]}",
            "data: {\"choices\":[{\"index\":0,\"delta\":null,\"content_filter_offsets\":{}}]}",
            "data: {\"choices\":[{\"index\":\"0\",\"delta\":{\"role\":\"assistant\"},\"odd\":\"field\"}]}",
            "data: {\"choices\":[{\"delta\":{\"role\":\"model\",\"content\":null,\"odd\":\"field\"}}]}",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"text\":\"\"}]}",
            "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}",
        ] {
            let completion = all_of(Dialect::OpenAi, &around(Dialect::OpenAi, &format!("{event}\n\n")));
            assert_eq!(
                completion.map(|it| (it.text, it.finish)),
                Ok(("<a>é</a>".to_owned(), Finish::Whole)),
                "{event}"
            );
        }
        let twice = around(Dialect::OpenAi, "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"text\":\"b\"}]}\n\n");
        assert_eq!(all_of(Dialect::OpenAi, &twice).unwrap().text, "<a>éb</a>", "some write it twice");
        let others = [
            "{\"type\":\"content_block_stop\",\"index\":0}",
            "{\"type\":\"odd\",\"index\":0}",
            "{\"type\":\"notice\",\"text\":\"slow today\",\"load\":[\"high\"]}",
            "{\"type\":\"odd\",\"delta\":{},\"message\":null}",
            "{}",
        ];
        for event in others {
            let stream = around(Dialect::Anthropic, &format!("data: {event}\n\n"));
            assert_eq!(all_of(Dialect::Anthropic, &stream).unwrap().text, "<a>b</a>", "{event}");
        }
        for line in ["", "{}", "{\"message\":{\"role\":\"assistant\",\"content\":null},\"odd\":\"field\"}"] {
            let stream = around(Dialect::Ollama, &format!("{line}\n"));
            assert_eq!(all_of(Dialect::Ollama, &stream).unwrap().text, "<a>b</a>", "{line}");
        }
    }

    #[test]
    fn only_text_of_the_model_is_its_answer() {
        let kinds = ["reasoning", "thinking", "thought", "summary_text", "tool_result", "input_text", "odd"];
        let mut parts: Vec<Value> = kinds.iter().map(|kind| json!({ "type": kind, "text": "<no/>" })).collect();
        parts.push(json!({ "type": "text", "text": "<no/>", "thought": true }));
        parts.push(json!({ "type": "text", "text": "<no/>", "extra_content": { "google": { "thought": true } } }));
        parts.push(json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "<no/>" }] }));
        let answer = |text: &str| json!([{ "type": "text", "text": text }]);
        for part in parts {
            let listed = json!([part, { "type": "output_text", "text": "<a/>" }, "."]);
            for choice in ["delta", "message"] {
                let event = json!({ "choices": [{ choice: { "content": listed }, "finish_reason": "stop" }] });
                let stream = format!("data: {event}\n\ndata: [DONE]\n\n");
                assert_eq!(all_of(Dialect::OpenAi, &stream).unwrap().text, "<a/>.", "{part}");
                assert_eq!(all_of(Dialect::OpenAi, &event.to_string()).unwrap().text, "<a/>.", "{part}");
            }
            let message = json!({ "type": "message", "content": [part, answer("<a/>")[0]], "stop_reason": "end_turn" });
            assert_eq!(all_of(Dialect::Anthropic, &message.to_string()).unwrap().text, "<a/>", "{part}");
            let line =
                json!({ "message": { "content": [part, answer("<a/>")[0]] }, "done": true, "done_reason": "stop" });
            assert_eq!(all_of(Dialect::Ollama, &line.to_string()).unwrap().text, "<a/>", "{part}");
        }
        for delta in [
            json!({ "content": "<no/>", "thought": true }),
            json!({ "content": "<no/>", "extra_content": { "google": { "thought": true } } }),
        ] {
            let stream = around(Dialect::OpenAi, &format!("data: {}\n\n", json!({ "choices": [{ "delta": delta }] })));
            assert_eq!(all_of(Dialect::OpenAi, &stream).unwrap().text, "<a>é</a>");
        }
        let declined = json!({ "choices": [{ "message": { "content": [{ "type": "refusal", "refusal": "No." }] }, "finish_reason": "stop" }] });
        let finish = all_of(Dialect::OpenAi, &declined.to_string()).unwrap().finish;
        assert_eq!(finish, Finish::Withheld("refusal: No.".to_owned()));
        for kind in ["thinking", "redacted_thinking", "tool_use", "web_search_tool_result", "odd"] {
            let start = json!({ "type": "content_block_start", "index": 2, "content_block": { "type": kind, "text": "<no/>" } });
            let delta = json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "text_delta", "text": "<no/>" } });
            let stream = around(Dialect::Anthropic, &format!("data: {start}\n\ndata: {delta}\n\n"));
            assert_eq!(all_of(Dialect::Anthropic, &stream).unwrap().text, "<a>b</a>", "{kind}");
        }
        for (dialect, body) in [
            (
                Dialect::OpenAi,
                json!({ "choices": [{ "message": { "role": "user", "content": "<a/>" }, "finish_reason": "stop" }] }),
            ),
            (
                Dialect::Anthropic,
                json!({ "type": "message", "role": "user", "content": answer("<a/>"), "stop_reason": "end_turn" }),
            ),
            (Dialect::Ollama, json!({ "message": { "role": "tool", "content": "<a/>" }, "done": true })),
        ] {
            assert!(all_of(dialect, &body.to_string()).unwrap_err().message.contains("its role"), "{body}");
        }
    }

    #[test]
    fn an_error_beside_an_answer_charges_what_it_reports() {
        let error = json!({ "message": "lost" });
        for (dialect, body) in [
            (
                Dialect::OpenAi,
                json!({ "choices": [{ "message": { "content": "<a/>" } }], "error": error, "usage": { "prompt_tokens": 3, "completion_tokens": 4 } }),
            ),
            (
                Dialect::Anthropic,
                json!({ "type": "message", "content": [], "error": error, "usage": { "input_tokens": 3, "output_tokens": 4 } }),
            ),
            (
                Dialect::Ollama,
                json!({ "message": { "content": "<a/>" }, "error": error, "prompt_eval_count": 3, "eval_count": 4 }),
            ),
        ] {
            assert_eq!(all_of(dialect, &body.to_string()).unwrap_err().billed, Billed::Used(usage(3, 4, 0)), "{body}");
        }
    }

    #[test]
    fn words_of_a_provider_are_short_and_printable() {
        let long = "x".repeat(100_000);
        let answer = OPENAI.replace("m-1", &format!("\\u001b{long}")).replace("\"stop\"", &format!("\"{long}\""));
        let completion = read(Dialect::OpenAi, &[&answer]).unwrap();
        let Finish::Withheld(why) = completion.finish else { panic!("{:?}", completion.finish) };
        assert!(why.len() < 1000 && completion.model.len() < 1000 && !completion.model.contains('\u{1b}'));
    }

    #[test]
    fn what_is_no_json_is_of_another_protocol() {
        let setback = read(Dialect::OpenAi, &["data: hello\n\n"]).unwrap_err();
        assert!(setback.again == Again::Never && setback.message.contains("'openai'"), "{setback:?}");
    }
}
