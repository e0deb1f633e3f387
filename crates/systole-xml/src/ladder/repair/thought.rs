//! Thoughts of language models, as tags (`<think>`) or as markers of chat templates (`[THINK]`), other speakers' turns, and
//! the tokens that models leak.
//!
//! An element in thoughts or in the turn of another speaker is never an element of the message: it is dropped with them, or the
//! message is refused.

use super::lexis::{excerpt, name_end};
use super::meant::is_amid_text;
use super::outside::Root;
use super::pairs::key;
use super::scan::Scanner;
use super::sentence::has_word;
use super::spoken;
use super::tag::StartTag;
use super::template::{self, Kind, Marker, Speaker, Voice, names_answers, names_calls, names_thoughts};
use super::{RepairError, RepairKind, Shape};
use crate::ladder::scan::split_prefix;

/// Tests a local name, in any case of letters, for one of the elements in which models think: `<think>`, `<antThinking>`,
/// `<inner_thoughts>`.
pub(in crate::ladder) fn is_thought(local: &str) -> bool {
    names_thoughts(local)
}

/// Tests a local name for one in which models enclose their calls or their answer: `<tool_call>`, `<response>`.
pub(in crate::ladder) fn is_wrapper(local: &str) -> bool {
    names_calls(local) || names_answers(local)
}

/// Tokens of language models that look like start tags.
const TOKENS: &[&str] = &["s", "bos", "eos", "pad", "unk"];

/// Tests a name for a token of a language model.
pub(super) fn is_token(name: &str) -> bool {
    TOKENS.contains(&name)
}

impl<'t> Scanner<'t> {
    /// Returns whether a tag begins thoughts that have no end tag, or is a token of a model: not the payload.
    pub(super) fn is_thought(&mut self, tag: &StartTag<'t>) -> bool {
        self.outside.skipping
            && !tag.empty
            && tag.count == 0
            && (is_thought(&key(tag.name)) || is_token(tag.name) || self.is_unknown(tag.name))
            && !self.pairs.is_closed(tag.start)
    }

    /// Tests the name of a tag for thoughts in the output of an emitter whose contract declares no such element.
    /// An end tag alone ends thoughts whose start tag stands in the prompt of the model.
    pub(super) fn is_undeclared_thought(&self, name: &str) -> bool {
        self.shape == Shape::Fragment && is_thought(split_prefix(name).1) && self.is_unknown(name)
    }

    /// Tests the name of a tag for one in which models enclose calls, in the output of an emitter whose contract declares no such
    /// element: the tag says no more than white space.
    pub(super) fn is_undeclared_call(&self, name: &str) -> bool {
        self.shape == Shape::Fragment && names_calls(split_prefix(name).1) && self.is_unknown(name)
    }

    /// Returns whether a tag encloses calls, or an answer with an element of the contract in it (`<response><say>…`). An answer has
    /// an end, and stands before all elements: of two, one may be a draft. Notes its end.
    pub(super) fn is_wrapper(&mut self, tag: &StartTag<'t>) -> bool {
        let is_first = self.shape == Shape::Fragment && self.roots == 0 && self.outside.answer_end.is_none();
        if !(is_first && names_answers(split_prefix(tag.name).1) && self.is_unknown(tag.name)) {
            return self.is_undeclared_call(tag.name);
        }
        let end = self.pairs.end_of(tag.start);
        self.outside.answer_end = end.filter(|&end| self.draft_in(tag.end, end).is_some());
        self.outside.answer_end.is_some()
    }

    /// Drops all before the end of thoughts that began in the prompt of the model.
    pub(super) fn drop_thought_before(&mut self, end: usize) {
        if self.roots > 0 {
            self.outside.dropped = Some((self.outside.root.start, self.outside.root.name));
        }
        self.out.clear();
        self.references.clear();
        self.marks.clear();
        self.roots = 0;
        (self.outside.root, self.outside.in_prose) = (Root::default(), false);
        (self.outside.in_words, self.outside.doubt) = (false, None);
        self.silence(0, end);
        self.mark(0, end, RepairKind::Thought);
        self.pairs.begin_at(end);
        self.outside.prose = None;
        self.pos = end;
        self.outside.gap = end;
    }

    /// Refuses an output whose only elements stand in thoughts, or before the end of thoughts, which may be a stray one.
    pub(super) fn check_dropped(&self) -> Result<(), RepairError> {
        match self.outside.dropped {
            Some((start, name)) if self.roots == 0 => {
                self.refuse(start, |at| RepairError::Draft { at, name: excerpt(name) })
            }
            _ => Ok(()),
        }
    }

    /// Drops thoughts with all that they hold: markup in them is none. An element behind those without an end is refused.
    pub(super) fn thought(&mut self, tag: &StartTag<'t>) {
        let end_tag = self.pairs.end_of(tag.start).or_else(|| self.pairs.reopened(tag.start));
        let close = end_tag.and_then(|at| Some(at + memchr::memchr(b'>', &self.text.as_bytes()[at..])? + 1));
        let Some(end) = close.or(tag.empty.then_some(tag.end)) else {
            return self.note_open_thought(tag);
        };
        self.drop(tag.start, end, RepairKind::Thought);
    }

    /// Takes a tag without its end tag for prose, and notes what it begins: thoughts, or something unknown. A token of a model
    /// begins nothing.
    pub(super) fn note_open_thought(&mut self, tag: &StartTag<'t>) {
        if is_thought(&key(tag.name)) {
            self.outside.open_thought.get_or_insert(tag.start);
        } else if is_token(tag.name) {
            self.silence(tag.start, tag.end);
        } else {
            self.outside.unknown = self.text.len();
        }
        self.skip(tag.end);
    }

    /// Notes brackets that are no tag, though they are meant as one, up to their end: `<function=think>…</function>`.
    pub(super) fn note_pseudo_tag(&mut self, at: usize) {
        if self.outside.skipping
            && !self.outside.in_prose
            && at >= self.outside.unknown
            && let Some(end) = pseudo_tag_end(self.text, at)
        {
            let close = pseudo_close(self.text, at, end);
            let is_alone = || self.text[end..].trim_start_matches([' ', '\t', '\r']).starts_with(['\n', '<']);
            if close.is_some() || is_alone() {
                self.outside.unknown = close.unwrap_or(self.text.len());
            }
        }
    }

    /// Returns whether a tag stands right behind words that announce a call or an answer, with no other element before it and no
    /// word behind it: `Thought: … Action: <run>…</run>`. Behind more words, the thoughts that begin at `marker` may go on.
    pub(super) fn is_only_call(&mut self, marker: usize, tag: &StartTag<'t>) -> bool {
        let end = self.pairs.end_of(tag.start).unwrap_or(tag.end);
        let announces = |found: &Marker| {
            let gap = &self.text[found.end..tag.start];
            matches!(found.kind, Kind::Answer { .. })
                && !has_word(gap.trim().trim_start_matches('`').trim_start_matches("xml"))
        };
        let before = self.template.behind(marker).take_while(|found| found.end <= tag.start);
        before.last().is_some_and(|found| announces(&found))
            && self.draft_in(0, tag.start).is_none()
            && !has_word(self.text[end..].split_once('>').map_or("", |(_, behind)| behind))
    }

    /// Drops a stretch of text with the markup in it.
    fn drop(&mut self, start: usize, end: usize, kind: RepairKind) {
        self.flush(start);
        self.outside.dropped = self.outside.dropped.or_else(|| self.draft_in(start, end));
        self.mark(start, end, kind);
        self.silence(start, end);
        if kind == RepairKind::Thought {
            self.outside.thoughts.push((start, end));
        }
        self.pairs.begin_at(end);
        self.pos = end;
        self.outside.gap = end;
    }

    /// The first tag between two offsets that may begin an element of the message.
    pub(super) fn draft_in(&self, start: usize, end: usize) -> Option<(usize, &'t str)> {
        let text = &self.text[..end];
        let tags = memchr::memchr_iter(b'<', &text.as_bytes()[start..]).map(|length| start + length);
        let names = tags.filter_map(|at| Some((at, &text[at + 1..name_end(text, at + 1)?])));
        let is_known = |name: &str| match self.vocabulary.is_empty() {
            true => !(is_thought(split_prefix(name).1) || is_token(name)),
            false => self.vocabulary.knows(split_prefix(name).1),
        };
        names.into_iter().find(|(_, name)| is_known(name))
    }

    /// Returns whether a tag inside of an element begins thoughts that have no end tag: where they end, nothing tells, and
    /// as an element they would hold what follows them.
    pub(super) fn is_open_thought(&mut self, tag: &StartTag<'t>) -> bool {
        let local = split_prefix(tag.name).1;
        !tag.empty
            && is_thought(local)
            && !self.vocabulary.knows(local)
            && !is_amid_text(&self.text[..tag.start])
            && !self.pairs.is_closed(tag.start)
    }
}

impl Scanner<'_> {
    /// Drops a fenced block of thoughts.
    pub(super) fn thought_block(&mut self, end: Option<usize>) -> Result<(), RepairError> {
        let Some(end) = end else { return Err(self.unclosed(self.pos, "block of thoughts", "its fence")) };
        self.drop(self.pos, end, RepairKind::Thought);
        Ok(())
    }

    /// Takes a marker of a chat template with what it rules: thoughts and turns of others are dropped, the names of channels and
    /// speakers are prose.
    pub(super) fn marker(&mut self, marker: Marker) -> Result<(), RepairError> {
        let Marker { start, end, kind } = marker;
        match kind {
            Kind::Thought => self.drop_thought(start, end),
            Kind::Spoken { is_sure } => {
                let found = self.spoken_end(end, is_sure);
                // Words that nothing encloses may be those of a label.
                let is_enclosed = |last: &Marker| {
                    let starts = [start, last.start];
                    last.kind == Kind::SpokenEnd && starts.iter().all(|&at| spoken::is_bracketed(self.text, at))
                };
                if let Some((_, until)) = found.filter(|(last, _)| !is_enclosed(last)) {
                    self.check_unsure(start, until)?;
                }
                self.spoken(start, end, found.map(|(_, until)| until), is_sure)
            }
            Kind::Enclosed { open, close } => {
                let until = self.unless_endless(|text| spoken::closed_at(text, end, open, close));
                self.spoken(start, end, until, true)
            }
            Kind::Field => {
                let until = self.unless_endless(|text| spoken::value_end(text, end));
                self.spoken(start, end, until, true)
            }
            Kind::Object => {
                let until = self.unless_endless(|text| spoken::object_end(text, end));
                self.spoken(start, end, until, true)
            }
            Kind::Answer { .. } => self.prose_marker(end),
            Kind::Said(voice) => self.said(voice, start, end),
            Kind::ThoughtEnd => {
                self.drop_thought_before(end);
                Ok(())
            }
            Kind::SpokenEnd if self.roots > 0 => self.refuse_draft(self.outside.root.start, self.outside.root.name),
            Kind::SpokenEnd => {
                self.drop_thought_before(end);
                Ok(())
            }
            Kind::Channel => {
                let (name, body) = self.head(end);
                match template::is_answer(name) {
                    true => self.pass(body),
                    false => return self.drop_thought(start, body),
                }
                Ok(())
            }
            Kind::Turn => {
                let (name, body) = self.head(end);
                self.turn(template::speaker(name), start, body)
            }
            Kind::TurnOf(speaker) => self.turn(speaker, start, end),
            Kind::Quoted { end } => self.quoted(start, end),
            Kind::Unknown { end: until } => {
                self.outside.unknown = self.outside.unknown.max(until);
                self.pass(end);
                Ok(())
            }
            Kind::Message | Kind::End => {
                self.pass(end);
                Ok(())
            }
        }
    }

    fn turn(&mut self, speaker: Speaker, start: usize, body: usize) -> Result<(), RepairError> {
        match speaker {
            Speaker::Model => self.pass(body),
            Speaker::Thoughts => return self.drop_thought(start, body),
            Speaker::Other => {
                let end = self.message_end(body, false).unwrap_or(self.text.len());
                return self.quoted(start, end);
            }
        }
        Ok(())
    }

    /// Drops thoughts, whose text begins at `body`: up to a marker that ends thoughts, a message, a channel or a turn.
    fn drop_thought(&mut self, start: usize, body: usize) -> Result<(), RepairError> {
        // A word in square brackets ends where the next one tells of the answer; a special token has an end of its own.
        let takes_answers = !self.text[start..].starts_with(['<', '◁']);
        let end = self.message_end(body, takes_answers);
        let Some(end) = end else { return Err(self.unclosed(start, "thought", "the marker of its end")) };
        self.drop(start, end, RepairKind::Thought);
        (self.outside.in_prose, self.outside.in_words) = (false, false);
        Ok(())
    }

    /// Refuses an element in a stretch that words alone mark as thoughts or as a turn: they may be labels of what is meant.
    fn check_unsure(&self, start: usize, end: usize) -> Result<(), RepairError> {
        self.draft_in(start, end).map_or(Ok(()), |(at, name)| self.refuse_draft(at, name))
    }

    #[cold]
    fn refuse_draft(&self, at: usize, name: &str) -> Result<(), RepairError> {
        self.refuse(at, |at| RepairError::Draft { at, name: excerpt(name) })
    }

    /// Drops thoughts that words begin, up to their end. Without one, they are prose, which may hold drafts if they are surely
    /// thoughts.
    fn spoken(&mut self, start: usize, body: usize, end: Option<usize>, is_sure: bool) -> Result<(), RepairError> {
        match end {
            Some(end) => {
                self.drop(start, end, RepairKind::Thought);
                (self.outside.in_prose, self.outside.in_words) = (false, false);
                Ok(())
            }
            None => {
                if is_sure {
                    self.outside.open_words.get_or_insert(start);
                }
                self.prose_marker(body)
            }
        }
    }

    /// Takes the words of a marker as what they are without one: a comment, an instruction, or prose.
    fn prose_marker(&mut self, end: usize) -> Result<(), RepairError> {
        if self.text[self.pos..].starts_with("<!") || self.text[self.pos..].starts_with("<?") {
            return self.outer_markup();
        }
        self.outside.in_words |= has_word(&self.text[self.pos..end]);
        self.skip(end);
        Ok(())
    }

    /// Searches for an end, unless none was found before: each search may read the whole text.
    fn unless_endless(&mut self, search: impl FnOnce(&str) -> Option<usize>) -> Option<usize> {
        let found = if self.outside.endless { None } else { search(self.text) };
        self.outside.endless |= found.is_none();
        found
    }

    /// The end of thoughts that words begin, whose text begins at `body`, and its marker: that of their end, or of the answer. A
    /// marker inside of an element that begins in the thoughts is text of that element. Words that are surely of thoughts end
    /// only there: a step or a summary may be one of the thoughts.
    fn spoken_end(&mut self, body: usize, is_sure: bool) -> Option<(Marker, usize)> {
        if self.outside.endless {
            return None;
        }
        let (mut reach, mut closed) = (body, self.pairs.closed_from(body).iter().peekable());
        let mut found = None;
        for marker in self.template.behind(body) {
            while let Some((_, end)) = closed.next_if(|(start, _)| (*start as usize) < marker.start) {
                reach = reach.max(*end as usize);
            }
            let is_inside = reach > marker.start;
            match marker.kind {
                _ if is_inside => {}
                Kind::ThoughtEnd | Kind::SpokenEnd => return Some((marker, marker.end)),
                Kind::Thought | Kind::Spoken { .. } if found.is_some() => break,
                Kind::Answer { is_final, .. } if is_sure && !is_final => {}
                Kind::End | Kind::Answer { .. } | Kind::Said(Voice::Model) => {
                    found = found.or(Some((marker, marker.end)));
                }
                Kind::Channel | Kind::Turn | Kind::TurnOf(_) => found = found.or(Some((marker, marker.start))),
                _ => {}
            }
        }
        self.outside.endless |= found.is_none();
        found
    }

    /// Takes a turn whose speaker words name. Those of a tool or the system are prose, unless an element stands before them or
    /// a turn of the model follows.
    fn said(&mut self, voice: Voice, start: usize, end: usize) -> Result<(), RepairError> {
        if voice == Voice::Model {
            self.pass(end);
            return Ok(());
        }
        let until = if self.outside.no_turn_end { None } else { self.said_end(end) };
        self.outside.no_turn_end |= until.is_none();
        if voice == Voice::User || self.roots > 0 || until.is_some() {
            let until = until.unwrap_or(self.text.len());
            self.check_unsure(start, until)?;
            return self.quoted(start, until);
        }
        self.prose_marker(end)
    }

    /// The end of the turn of another speaker that words name.
    fn said_end(&self, body: usize) -> Option<usize> {
        self.template.behind(body).find_map(|marker| match marker.kind {
            Kind::ThoughtEnd | Kind::SpokenEnd | Kind::End | Kind::Answer { .. } | Kind::Said(Voice::Model) => {
                Some(marker.end)
            }
            Kind::Channel | Kind::Turn | Kind::TurnOf(_) | Kind::Thought | Kind::Spoken { is_sure: true } => {
                Some(marker.start)
            }
            _ => None,
        })
    }

    /// Drops the turn of another speaker. What the model writes behind it, after an element of its own, answers what it has made
    /// up. An element between two such turns stands in a dialogue that the model quotes or makes up.
    fn quoted(&mut self, start: usize, end: usize) -> Result<(), RepairError> {
        let Root { start: root, name, .. } = self.outside.root;
        self.outside.interrupted |= self.roots > 0;
        self.outside.prompted |= self.roots == 0;
        if self.outside.interrupted && self.outside.prompted && self.outside.doubt.is_none() {
            self.outside.doubt = Some(RepairError::Draft { at: self.position(root), name: excerpt(name) });
        }
        self.drop(start, end, RepairKind::Prose);
        (self.outside.in_prose, self.outside.in_words) = (false, false);
        Ok(())
    }

    /// The end of the message, thoughts or turn whose text begins at an offset. The marker of an answer is one if it may be, and
    /// no end of thoughts follows it.
    fn message_end(&self, body: usize, takes_answers: bool) -> Option<usize> {
        let mut answer = None;
        for marker in self.template.behind(body) {
            match marker.kind {
                Kind::ThoughtEnd | Kind::SpokenEnd => return Some(marker.end),
                Kind::End => return answer.or(Some(marker.end)),
                Kind::Channel | Kind::Turn | Kind::TurnOf(_) => return answer.or(Some(marker.start)),
                Kind::Answer { is_bracketed: true, .. } if takes_answers => answer = answer.or(Some(marker.end)),
                Kind::Thought if answer.is_some() => break,
                _ => {}
            }
        }
        answer
    }

    /// The name of a channel or a speaker behind its marker, and the offset of the text that it rules.
    fn head(&self, end: usize) -> (&str, usize) {
        /// Length of a header: `final <|constrain|>xml`, `functions.search to=assistant`.
        const LONGEST: usize = 128;
        let (name, length) = template::name(&self.text[end..]);
        let message = self.template.next(end).filter(|next| next.kind == Kind::Message && next.start <= end + LONGEST);
        (name, message.map_or(end + length, |message| message.end))
    }

    /// Takes a marker and the names behind it as prose that holds no words: what follows them begins anew.
    fn pass(&mut self, end: usize) {
        self.silence(self.pos, end);
        self.pos = end;
        (self.outside.in_prose, self.outside.in_words) = (false, false);
    }

    /// Refuses a top-level element in brackets of unknown meaning, or behind the turn of another speaker.
    pub(super) fn check_place(&self, tag: &StartTag<'_>) -> Result<(), RepairError> {
        let (start, name) = (tag.start, tag.name);
        if start < self.outside.unknown {
            return self.refuse(start, |at| RepairError::Draft { at, name: excerpt(name) });
        }
        if self.outside.interrupted {
            return self.refuse(start, |at| RepairError::OtherTurn { at, name: excerpt(name) });
        }
        Ok(())
    }

    /// Refuses the last top-level element if an end tag of it, or in it, was missing and thoughts end in it that don't begin
    /// there: it may be a draft that swallowed what follows them.
    pub(super) fn check_swallowed(&self) -> Result<(), RepairError> {
        let root = &self.outside.root;
        let (start, name) = (root.start, root.name);
        let mut within = self.template.behind(start).take_while(|marker| marker.start < root.end);
        let first = within.find(|marker| matches!(marker.kind, Kind::Thought | Kind::ThoughtEnd | Kind::SpokenEnd));
        if first.is_some_and(|marker| marker.kind != Kind::Thought) && self.has_supplied() {
            return self.refuse(start, |at| RepairError::Draft { at, name: excerpt(name) });
        }
        Ok(())
    }
}

/// The end of angle brackets that no tag of XML has, though they look like one: `<function=think>`, `<@plan>`. Addresses
/// (`<a@b.c>`) and comparisons are none.
fn pseudo_tag_end(text: &str, at: usize) -> Option<usize> {
    const LONGEST: usize = 64;
    let rest = &text[at + 1..];
    let length = rest.bytes().take(LONGEST).position(|byte| matches!(byte, b'<' | b'>' | b'\n'))?;
    let inner = rest[..length].to_owned();
    let is_word = inner.starts_with(|c: char| c.is_alphabetic() || "@#$%&*+~:.^".contains(c));
    let is_address = inner.contains("://") || inner.find('@').is_some_and(|at| at > 0);
    let is_closed = rest[length..].starts_with('>');
    (is_closed && is_word && !is_address && inner.contains(char::is_alphabetic)).then_some(at + 1 + length + 1)
}

/// The end of the end tag of such brackets, which has their first word.
fn pseudo_close(text: &str, at: usize, end: usize) -> Option<usize> {
    let word = text[at..end].split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty())?;
    memchr::memmem::find_iter(&text.as_bytes()[end..], "/").map(|length| end + length + 1).find_map(|close| {
        let named = text[close..].trim_start_matches(|c: char| !c.is_alphanumeric() && !c.is_whitespace() && c != '<');
        let behind = named.strip_prefix(word).filter(|_| text[..close - 1].ends_with(['<', '#', '@', '$']))?;
        Some(text.len() - behind.len() + behind.find('>')? + 1)
    })
}
