//! An answer of a provider as it grows: server-sent events, or a JSON object a line.

use serde_json::Value;
use systole_core::core::Usage;

use super::{Again, Completion, Finish, Setback, anthropic, ollama, openai};
use crate::outbound::readable;
use crate::remote::sse::Parser;
use crate::settings::Dialect;

/// Bytes of the text of an answer, at most: the journal keeps it.
const TEXT: usize = 8 << 20;

/// An answer, as far as it has come.
pub(super) struct Reply {
    dialect: Dialect,
    frames: Frames,
    grown: Grown,
    /// True if characters came in halves.
    has_halves: bool,
}

enum Frames {
    Events(Parser),
    Lines { begun: Vec<u8>, most: usize },
}

/// The text of an answer so far, with its end and its usage.
#[derive(Debug, Default)]
pub(super) struct Grown {
    pub(super) text: String,
    /// The words of a model that declines, which some providers keep apart from the text.
    pub(super) refusal: String,
    pub(super) finish: Option<Finish>,
    pub(super) model: String,
    pub(super) usage: Usage,
    /// Set once nothing more comes.
    pub(super) is_over: bool,
}

impl Grown {
    /// Takes the provider's word on the end. A later word does not make a whole answer of one that was cut or withheld.
    pub(super) fn end(&mut self, finish: Finish) {
        if matches!(self.finish, None | Some(Finish::Whole)) {
            self.finish = Some(finish);
        }
    }
}

impl Reply {
    /// An answer of which nothing has come, with frames of so many bytes at most.
    pub(super) fn new(dialect: Dialect, most: usize) -> Self {
        let frames = match dialect {
            Dialect::OpenAi | Dialect::Anthropic => Frames::Events(Parser::new(most)),
            Dialect::Ollama => Frames::Lines { begun: Vec::new(), most },
        };
        Self { dialect, frames, grown: Grown::default(), has_halves: false }
    }

    /// Tests for the end of the stream.
    pub(super) fn is_over(&self) -> bool {
        self.grown.is_over
    }

    /// Tests for the provider's word on how the answer ended.
    pub(super) fn is_finished(&self) -> bool {
        self.grown.finish.is_some()
    }

    /// The text so far.
    pub(super) fn text(&self) -> &str {
        &self.grown.text
    }

    /// Takes some bytes.
    ///
    /// # Errors
    /// A setback, if the provider reports an error or breaks its protocol.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Setback> {
        let frames = match &mut self.frames {
            Frames::Events(parser) => {
                let events = parser.push(bytes).map_err(|_| too_long())?;
                events.into_iter().map(|event| event.data).collect()
            }
            Frames::Lines { begun, most } => lines(begun, *most, bytes)?,
        };
        for frame in frames {
            self.take(&frame)?;
        }
        Ok(())
    }

    /// The whole answer.
    ///
    /// # Errors
    /// A setback, if the answer broke off.
    pub(super) fn end(mut self) -> Result<Completion, Setback> {
        if let Frames::Lines { begun, .. } = &mut self.frames
            && !begun.trim_ascii().is_empty()
        {
            let last = String::from_utf8_lossy(begun).into_owned();
            // A line that was cut is no JSON, and says no more than a missing end.
            let _ = self.take(&last);
        }
        let Grown { mut text, refusal, finish, model, usage, .. } = self.grown;
        if self.has_halves {
            text = joined(&text);
        }
        let finish = finish.map(|finish| match finish {
            Finish::Whole if !refusal.is_empty() => Finish::Withheld(format!("refusal: {}", readable(&refusal))),
            Finish::Withheld(why) => Finish::Withheld(readable(&why)),
            finish => finish,
        });
        match finish {
            Some(finish) => Ok(Completion { text, finish, model: readable(&model), usage }),
            None => Err(Setback::new("its answer broke off before its end", Again::Later(None))),
        }
    }

    fn take(&mut self, frame: &str) -> Result<(), Setback> {
        let frame = frame.trim();
        if frame.is_empty() || self.grown.is_over {
            return Ok(());
        }
        if frame == openai::END && self.dialect == Dialect::OpenAi {
            self.grown.is_over = true;
            return Ok(());
        }
        let parsed = serde_json::from_str(frame).or_else(|error| {
            // A provider that cuts its text between two UTF-16 units escapes half a character.
            let whole = without_lone_surrogates(frame).ok_or(error)?;
            self.has_halves = true;
            serde_json::from_str(&whole)
        });
        let json: Value = parsed.map_err(|error| {
            let message = format!("it does not speak the protocol '{}'", self.dialect.as_str());
            Setback { detail: format!("{message}: {error}: {}", readable(frame)), message, again: Again::Never }
        })?;
        match self.dialect {
            Dialect::OpenAi => openai::take(&mut self.grown, &json)?,
            Dialect::Anthropic => anthropic::take(&mut self.grown, &json)?,
            Dialect::Ollama => ollama::take(&mut self.grown, &json)?,
        }
        if self.grown.text.len() + self.grown.refusal.len() > TEXT { Err(too_long()) } else { Ok(()) }
    }
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

/// A text with its halves joined, and U+FFFD for those that have no other.
fn joined(text: &str) -> String {
    let half =
        |c: char| u16::try_from(u32::from(c).checked_sub(HALVES)?).ok().filter(|unit| (0xD800..=0xDFFF).contains(unit));
    let mut units = Vec::with_capacity(text.len());
    for c in text.chars() {
        match half(c) {
            Some(unit) => units.push(unit),
            None => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        }
    }
    String::from_utf16_lossy(&units)
}

fn too_long() -> Setback {
    Setback::new("its answer is too long", Again::Never)
}

/// An error that a provider reports in the middle of an answer: its server's, so that it passes.
pub(super) fn reported(error: &Value) -> Setback {
    let text = error.get("message").and_then(Value::as_str).or(error.as_str());
    let message = "it reported an error in its answer".to_owned();
    let detail = text.map_or_else(|| message.clone(), |text| format!("{message}: {}", readable(text)));
    Setback { message, detail, again: Again::Later(None) }
}

/// A text in a field of an object.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

/// A count in a field of an object; 0 if there is none.
pub(super) fn count(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(finish("null").unwrap_err().again, Again::Later(None), "nobody knows whether it was cut");
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
        assert_eq!(completion, Completion { text, finish: Finish::Whole, model, usage: usage(9, 7, 5) });
        let finish = |word: &str| all(Dialect::Anthropic, &ANTHROPIC.replace("end_turn", word)).map(|it| it.finish);
        assert_eq!(finish("max_tokens"), Ok(Finish::Cut));
        assert_eq!(finish("model_context_window_exceeded"), Ok(Finish::Cut));
        assert_eq!(finish("stop_sequence"), Ok(Finish::Whole));
        assert_eq!(finish("refusal"), Ok(Finish::Withheld("refusal".to_owned())));
        let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let setback = all(Dialect::Anthropic, overloaded).unwrap_err();
        assert!(setback.detail.ends_with("Overloaded") && setback.again == Again::Later(None), "{setback:?}");
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
            (Dialect::OpenAi, OPENAI, "data: {\"choices\":[{\"delta\":{},\"finish"),
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

    #[test]
    fn an_answer_that_never_ends_is_refused() {
        let mut reply = Reply::new(Dialect::Ollama, 1 << 20);
        let line = format!("{}\n", serde_json::json!({ "message": { "content": "x".repeat(1 << 19) } }));
        let setback = (0..17).find_map(|_| reply.push(line.as_bytes()).err()).unwrap();
        assert_eq!((&*setback.message, setback.again), ("its answer is too long", Again::Never));
        let mut reply = Reply::new(Dialect::OpenAi, 100);
        assert_eq!(reply.push(&[b'x'; 101]).unwrap_err().message, "its answer is too long");
    }

    #[test]
    fn half_a_character_is_replaced() {
        let cut = |escape: &str| OPENAI.replace("<a>é", &format!("<a>{escape}"));
        let text = |escape: &str| all(Dialect::OpenAi, &cut(escape)).unwrap().text;
        assert_eq!(text(r"\ud83d"), "<a>\u{fffd}</a>");
        assert_eq!(text(r"\ude00\ud83d\ude00\uD83D\u0041"), "<a>\u{fffd}\u{1f600}\u{fffd}A</a>");
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
        // Another choice is not mixed into the first one, nor does it end it.
        let second = r#"{"index":1,"delta":{"content":"no"},"finish_reason":"stop"}"#;
        let two = OPENAI.replace(
            r#"{"delta":{"content":"</a>"},"finish_reason":null}"#,
            &format!(r#"{second},{{"delta":{{"content":"</a>"}}}}"#),
        );
        let two = two.replace(
            r#"{"delta":{},"finish_reason":"stop"}"#,
            &format!(r#"{{"delta":{{}},"finish_reason":"length"}},{second}"#),
        );
        let completion = all(Dialect::OpenAi, &two).unwrap();
        assert_eq!((&*completion.text, completion.finish), ("<a>é</a>", Finish::Cut));
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
        assert_eq!(all(Dialect::Ollama, &unsaid).unwrap().finish, Finish::Withheld("(none given)".to_owned()));
        assert_eq!(all(Dialect::OpenAi, &format!("\u{feff}{OPENAI}")).unwrap().model, "m-1", "a byte order mark");
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
        let setback = all(Dialect::OpenAi, "data: hello\n\n").unwrap_err();
        assert!(setback.again == Again::Never && setback.message.contains("'openai'"), "{setback:?}");
    }
}
