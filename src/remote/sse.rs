//! Parser of server-sent events, as they come in pieces (HTML Living Standard, section 9.2.6).

use memchr::memchr2;

/// The kind of a line that is no part of an event, in a strict parser. No event has it: it is the end of a line.
pub(crate) const STRAY: &str = "\n";

/// A whole event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// The last id of the stream, for `Last-Event-ID`.
    pub(crate) id: Option<String>,
    pub(crate) kind: String,
    pub(crate) data: String,
}

/// Error of an event with too many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Parses bytes into events. Bytes that are no UTF-8 become U+FFFD, as the standard demands.
#[derive(Debug)]
pub(crate) struct Parser {
    most: usize,
    line: Vec<u8>,
    event: Event,
    data: Option<String>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    returned: bool,
    /// A line has ended: a byte order mark is no longer one.
    begun: bool,
    /// A field beside those of the standard whose value is an event of that kind. With it the parser is strict.
    own: Option<&'static str>,
}

impl Parser {
    /// Makes a parser of events that have so many bytes at most, in all.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), event: Event::default(), data: None, returned: false, begun: false, own: None }
    }

    /// Takes a field that the standard drops for an event of its name, and each other line that may hold a part of an event
    /// for an event of the kind [`STRAY`]: an unknown field, or a comment or another field
    /// with `data:` in it, where a line feed was lost.
    pub(crate) fn strict(self, own: &'static str) -> Self {
        Self { own: Some(own), ..self }
    }

    /// The event that the end of the stream cut short of its empty line, if there is one. The standard drops it.
    pub(crate) fn rest(&mut self) -> Option<Event> {
        let ended = if self.line.is_empty() { None } else { self.end_line() };
        ended.or_else(|| self.dispatch())
    }

    /// Takes some bytes; gives back the events that they complete, in order.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        let Some(first) = bytes.first() else { return Ok(events) };
        if std::mem::take(&mut self.returned) && *first == b'\n' {
            bytes = &bytes[1..];
        }
        while let Some(end) = memchr2(b'\r', b'\n', bytes) {
            self.keep(&bytes[..end])?;
            events.extend(self.end_line());
            let feed = bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n');
            self.returned = bytes[end] == b'\r' && end + 1 == bytes.len();
            bytes = &bytes[end + 1 + usize::from(feed)..];
        }
        self.keep(bytes)?;
        Ok(events)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held + bytes.len() > self.most {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mark = if std::mem::replace(&mut self.begun, true) { &[][..] } else { "\u{feff}".as_bytes() };
        let line = line.strip_prefix(mark).unwrap_or(&line);
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        if self.own.is_some_and(|own| is_stray(field, value, own)) {
            return Some(Event { id: None, kind: STRAY.to_owned(), data: line.into_owned() });
        }
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                let data = self.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            own if self.own == Some(own) => {
                own.clone_into(&mut self.event.kind);
                self.data = Some(value.to_owned());
            }
            // Comments begin with a colon; unknown fields are dropped.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let kind = std::mem::take(&mut self.event.kind);
        let data = self.data.take()?;
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        Some(Event { id: self.event.id.clone(), kind, data })
    }
}

fn is_stray(field: &str, value: &str, own: &str) -> bool {
    let is_field = ["data", "event", "id", "retry", own].contains(&field);
    let is_blank = field.trim().is_empty() && value.trim().is_empty();
    let may_hold_words = field == "data" || field == own;
    let is_glued = !may_hold_words && value.contains("data:");
    is_glued || !is_field && !is_blank && !field.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<(Option<String>, String, String)> {
        let events = Parser::new(1000).push(text.as_bytes()).unwrap();
        events.into_iter().map(|event| (event.id, event.kind, event.data)).collect()
    }

    fn event(id: Option<&str>, kind: &str, data: &str) -> (Option<String>, String, String) {
        (id.map(str::to_owned), kind.to_owned(), data.to_owned())
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(
            all(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"),
            [
                event(Some("1"), "message", "first event"),
                event(Some(""), "message", "second event"),
                event(Some(""), "message", " third event"),
            ]
        );
        assert_eq!(
            all("event: add\ndata: 1\n\nevent: x\n\ndata: a\ndata: b\n\ndata: cut"),
            [event(None, "add", "1"), event(None, "message", "a\nb"),]
        );
        assert_eq!(
            all("id: a\0b\ndata: 1\r\n\r\ndata: 2\r\r"),
            [event(None, "message", "1"), event(None, "message", "2")]
        );
    }

    #[test]
    fn a_piece_of_nothing_does_not_part_the_two_ends_of_a_line() {
        let mut parser = Parser::new(100);
        let pieces =
            ["data: 1\r", "", "\n", "", "\r", "", "\n"].map(|piece| parser.push(piece.as_bytes()).unwrap().len());
        assert_eq!(pieces, [0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.push(b"data: 1\n"), Ok(Vec::new()));
        assert_eq!(parser.push(b"data: 123456"), Err(TooLong));
        assert_eq!(Parser::new(10).push(&[b'x'; 11]), Err(TooLong));
    }

    #[test]
    fn a_strict_parser_tells_of_each_line_that_the_standard_drops() {
        for (line, is_stray) in [
            ("data", false),
            ("event: a", false),
            ("id: a\0", false),
            ("retry: 1", false),
            ("error: {}", false),
            (":", false),
            (": keep-alive", false),
            (" \t", false),
            (": keep-alivedata: {}", true),
            ("id: 7data: {}", true),
            ("event: messagedata: {}", true),
            (":data: {}", true),
            (" data: {}", true),
            ("\tdata: {}", true),
            ("Data: {}", true),
            ("data : {}", true),
            ("date: {}", true),
            ("{\"choices\":[]}", true),
            ("\u{feff}data: {}", true),
            ("\0data: {}", true),
            ("1f", true),
        ] {
            let text = format!("data: 1\n\n{line}\n\ndata: 2\n\n");
            let events = Parser::new(100).strict("error").push(text.as_bytes()).unwrap();
            let strays: Vec<_> =
                events.into_iter().filter(|event| event.kind == STRAY).map(|event| event.data).collect();
            assert_eq!(strays, if is_stray { vec![line] } else { vec![] });
            assert!(all(&text).iter().all(|(_, kind, _)| kind != STRAY), "the standard drops it");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(lines in proptest::collection::vec("(id: ?|data: ?|event:|:)?[a-c]{0,3}(\r|\n|\r\n|\n\n)", 0..20),
                                     cuts in proptest::collection::vec(0_usize..200, 0..8)) {
            let text: String = lines.concat();
            let whole = Parser::new(10_000).push(text.as_bytes()).unwrap();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.push(text.len());
            cuts.sort_unstable();
            let (mut parser, mut from, mut pieces) = (Parser::new(10_000), 0, Vec::new());
            for cut in cuts {
                pieces.extend(parser.push(&text.as_bytes()[from..cut]).unwrap());
                from = cut;
            }
            prop_assert_eq!(pieces, whole);
        }
    }
}
