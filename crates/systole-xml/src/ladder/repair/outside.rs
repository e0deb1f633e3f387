//! The outside of elements: prose, fences, and mentions of tags in prose.

use foldhash::HashSet;

use super::fence;
use super::frame::Lead;
use super::lexis::{excerpt, find_any, is_blank, is_space_char, may_start_markup, skip_space};
use super::markup::{self, Doctype, Markup};
use super::scan::Scanner;
use super::sentence::{has_word, is_introduced, line_of};
use super::tag::{Reading, StartTag};
use super::{RepairError, RepairKind, Shape};
use crate::ladder::scan::split_prefix;

/// The state of a scan outside of elements.
#[derive(Debug)]
pub(super) struct Outside<'t> {
    /// Start of the text that is neither written nor recorded yet.
    pub(super) gap: usize,
    /// True if something that looked like a tag was taken for prose.
    pub(super) skipped: bool,
    pub(super) root: Root<'t>,
    /// True if code that isn't XML, and tags that are only mentioned, are prose.
    pub(super) skipping: bool,
    /// True if prose stands on the current line, before the current place.
    pub(super) in_prose: bool,
    /// True if that prose holds a word.
    pub(super) in_words: bool,
    /// The reason why a top-level element may not be meant: the first one. The end of thoughts behind it settles it.
    pub(super) doubt: Option<RepairError>,
    /// Start and name of an element that was dropped with thoughts or a turn of another speaker.
    pub(super) dropped: Option<(usize, &'t str)>,
    /// Start of the last prose that was dropped.
    pub(super) prose: Option<usize>,
    /// The end of the current line, computed on demand.
    line_end: usize,
    /// The offset up to which no run of one backtick, or of two, closes a code span.
    no_span: [usize; 2],
    restarts: usize,
    /// True if a string of JSON or the like holds the elements.
    in_string: bool,
    /// Place of a tag of thoughts that have no end: an element behind it may be a draft of theirs.
    pub(super) open_thought: Option<usize>,
    /// Place of the marker of thoughts in words that nothing ends: an element behind it may be a draft of theirs.
    pub(super) open_words: Option<usize>,
    /// True if no end is left for thoughts in words.
    pub(super) endless: bool,
    /// True if no end is left for the turn of another speaker that words name.
    pub(super) no_turn_end: bool,
    /// True behind a fence that opens a code block, which nothing has closed yet.
    pub(super) in_fence: bool,
    /// The end of the last brackets of unknown meaning.
    pub(super) unknown: usize,
    /// Stretches that say nothing about the elements beside them, in order.
    pub(super) silent: Vec<(usize, usize)>,
    /// Thoughts that are dropped.
    pub(super) thoughts: Vec<(usize, usize)>,
    /// True if the turn of another speaker stands behind an element.
    pub(super) interrupted: bool,
    /// True if the turn of another speaker stands before all elements.
    pub(super) prompted: bool,
    /// Start of the first top-level element.
    pub(super) first: usize,
    /// Start of the end tag of the element in which the model encloses its answer.
    pub(super) answer_end: Option<usize>,
}

/// The current top-level element.
#[derive(Debug, Default)]
pub(super) struct Root<'t> {
    /// True if prose stands before it on its line: then it may be a mention.
    pub(super) in_prose: bool,
    /// True if a word stands before it on its line.
    pub(super) in_words: bool,
    /// True if it has text of its own, outside of its children.
    pub(super) has_text: bool,
    /// True if it holds an element, or text that isn't white space.
    pub(super) has_content: bool,
    /// The local names of its children, if the contract declares it.
    pub(super) children: HashSet<&'t str>,
    /// True if prose stands behind it.
    pub(super) prose_behind: bool,
    pub(super) name: &'t str,
    /// Offset of its start tag.
    pub(super) start: usize,
    /// Offset behind its end tag.
    pub(super) end: usize,
    /// End of the element before it.
    pub(super) lead: usize,
    /// The reading of the words and signs before it.
    pub(super) frame: Lead,
    /// The first start tag of the same name behind text of its own.
    twin: Option<usize>,
    /// The state for a restart: start of the gap, length of the output, number of marks.
    pub(super) gap: usize,
    out: usize,
    marks: usize,
}

impl Root<'_> {
    /// Returns whether it may not get a supplied end tag: a tag amid prose, followed by more prose.
    pub(super) const fn is_doubtful(&self) -> bool {
        self.in_prose && self.has_text
    }
}

/// Maximum number of times that a scan goes back because a mention was taken for an element.
const MAX_RESTARTS: usize = 4;

impl<'t> Outside<'t> {
    pub(super) fn new(skipping: bool) -> Self {
        Self {
            gap: 0,
            skipped: false,
            root: Root::default(),
            skipping,
            in_prose: false,
            in_words: false,
            doubt: None,
            dropped: None,
            prose: None,
            line_end: 0,
            no_span: [0; 2],
            restarts: 0,
            in_string: false,
            answer_end: None,
            open_thought: None,
            open_words: None,
            endless: false,
            no_turn_end: false,
            unknown: 0,
            silent: Vec::new(),
            thoughts: Vec::new(),
            interrupted: false,
            prompted: false,
            first: 0,
            in_fence: false,
        }
    }
}

impl<'t> Scanner<'t> {
    /// Takes one step outside of elements: prose up to the next special character, and the markup there.
    pub(super) fn outside(&mut self) -> Result<(), RepairError> {
        let bytes = self.text.as_bytes();
        if self.pos == 0 || bytes[self.pos - 1] == b'\n' {
            (self.outside.in_prose, self.outside.in_words) = (false, false);
            if let Some(fence) = fence::open(self.text, self.pos) {
                if fence.thoughts && !self.outside.in_fence {
                    return self.thought_block(fence.block_end(self.text));
                }
                let skip = fence.foreign && self.outside.skipping;
                self.outside.in_fence ^= !skip;
                let block_end = || fence.block_end(self.text).unwrap_or(self.text.len());
                self.skip(if skip { block_end() } else { fence.end });
                (self.outside.in_prose, self.outside.in_words) = (false, false);
                return Ok(());
            }
        }
        let marker = self.template.next(self.pos);
        if let Some(marker) = marker.filter(|marker| marker.start == self.pos) {
            return self.marker(marker);
        }
        // Up to the marker: many markers in a text without these signs would else be searched again and again.
        let until = marker.map_or(self.text.len(), |marker| marker.start);
        let stop = find_any(&self.text[..until], self.pos, *b"<`\n");
        self.outside.in_words |= has_word(&self.text[self.pos..stop]);
        self.advance(stop);
        if marker.is_some_and(|marker| marker.start == stop) {
            return Ok(());
        }
        match bytes.get(stop) {
            Some(b'<') => self.outer_markup(),
            Some(b'`') => {
                self.code_span();
                Ok(())
            }
            Some(b'\n') => {
                self.pos = stop + 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes text of the current line as prose.
    fn advance(&mut self, to: usize) {
        self.outside.in_prose |= !is_blank(&self.text[self.pos..to]);
        self.pos = to;
    }

    /// Takes text that may hold tags as prose.
    pub(super) fn skip(&mut self, to: usize) {
        self.outside.skipped |= self.text[self.pos..to].contains('<');
        self.advance(to);
    }

    /// Skips the code span that opens here, if it ends on this line: its content is a mention.
    fn code_span(&mut self) {
        let bytes = self.text.as_bytes();
        let run = fence::run(&bytes[self.pos..]);
        let start = self.pos + run;
        let close = if self.outside.skipping && run <= 2 { self.span_end(start, run) } else { None };
        match close {
            Some(close) => self.skip(close + run),
            None => self.advance(start),
        }
    }

    /// The end of the code span that starts at `start`: a run of as many backticks on its line.
    fn span_end(&mut self, start: usize, run: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        if start < self.outside.no_span[run - 1] {
            return None;
        }
        if start >= self.outside.line_end {
            let length = memchr::memchr(b'\n', &bytes[start..]);
            self.outside.line_end = length.map_or(bytes.len(), |length| start + length);
        }
        let line_end = self.outside.line_end;
        let mut at = start;
        while let Some(length) = memchr::memchr(b'`', &bytes[at..line_end]) {
            at += length;
            let found = fence::run(&bytes[at..line_end]);
            if found == run {
                let span = &self.text[start..at];
                return (!span.starts_with(is_space_char) && !span.ends_with(is_space_char)).then_some(at);
            }
            at += found;
        }
        self.outside.no_span[run - 1] = line_end;
        None
    }

    pub(super) fn outer_markup(&mut self) -> Result<(), RepairError> {
        let at = self.pos;
        if self.text.as_bytes().get(at + 1).is_some_and(|&byte| !may_start_markup(byte)) {
            self.note_pseudo_tag(at);
            self.advance(at + 1);
            return Ok(());
        }
        if markup::is_doctype(self.text, at) {
            return self.doctype();
        }
        match markup::read(self.text, at) {
            Markup::Comment { end } => {
                self.flush(at);
                self.outside.dropped = self.outside.dropped.or_else(|| self.draft_in(at, end));
                self.comment(end)?;
                self.outside.gap = end;
            }
            Markup::Instruction { end, target, well_formed } => {
                self.flush(at);
                // Before all elements it belongs to the document.
                if self.roots == 0 {
                    self.silence(at, end);
                }
                self.instruction(end, target, well_formed)?;
                self.outside.gap = end;
            }
            Markup::EndTag { name, end, .. } if self.is_undeclared_thought(name) => self.drop_thought_before(end),
            Markup::EndTag { name, end, .. }
                if self.outside.answer_end == Some(at) || self.is_undeclared_call(name) =>
            {
                self.silence(at, end);
                self.skip(end);
            }
            Markup::EndTag { name, end, well_formed: true } => {
                self.flush(at);
                // The end tag behind the prose may be the one that was meant, and the first one text.
                if self.outside.root.prose_behind && self.is_root(name) {
                    return self.ambiguous(at, name);
                }
                self.end_tag(name, end, true)?;
                self.outside.gap = end;
            }
            Markup::Section { end } => self.section(end),
            Markup::EndTag { name, .. } => {
                self.check_end_tag(name)?;
                self.advance(at + 1);
            }
            Markup::Cut => return Err(self.cut(at)),
            Markup::Text => match self.tags.read(at) {
                Reading::Tag(tag) if self.is_undeclared_thought(tag.name) => self.thought(&tag),
                Reading::Tag(tag) if self.is_wrapper(&tag) => {
                    self.silence(at, tag.end);
                    self.skip(tag.end);
                }
                Reading::Tag(tag) if self.is_mention(&tag) => self.skip(tag.end),
                Reading::Tag(tag) if self.is_thought(&tag) => self.note_open_thought(&tag),
                Reading::Tag(tag) => {
                    let tag = self.reopened(tag);
                    self.open_root(tag)?;
                }
                Reading::Cut => return Err(self.truncated(at)),
                Reading::Text => {
                    self.note_pseudo_tag(at);
                    self.advance(at + 1);
                }
            },
        }
        Ok(())
    }

    /// Returns whether the last top-level element has this name, regardless of prefix and case.
    fn is_root(&self, name: &str) -> bool {
        split_prefix(self.outside.root.name).1.eq_ignore_ascii_case(split_prefix(name).1)
    }

    /// Refuses an end tag that isn't written as one and stands behind prose, if it is that of the last top-level element or
    /// of an element in it.
    fn check_end_tag(&self, name: &str) -> Result<(), RepairError> {
        let is_lacking = self.tree.torn_at(name).is_some() || (!name.is_empty() && self.is_root(name));
        let is_behind = || self.outside.root.prose_behind || !is_blank(&self.text[self.outside.gap..self.pos]);
        if is_lacking && is_behind() { self.ambiguous(self.pos, name) } else { Ok(()) }
    }

    /// Returns whether prose that was dropped stands between the end of an element that lacked its end tag and here, where
    /// an end tag of its name stands: then that prose may be its text.
    pub(super) fn is_behind_lost_text(&self, name: &str) -> bool {
        let Some(prose) = self.outside.prose else { return false };
        self.tree.torn_at(name).is_some_and(|end| prose >= end)
    }

    /// Skips a CDATA section. Its content is scanned only if there is no element elsewhere.
    fn section(&mut self, end: usize) {
        if self.outside.skipping {
            self.skip(end);
        } else {
            self.advance(self.pos + b"<![CDATA[".len());
        }
    }

    fn doctype(&mut self) -> Result<(), RepairError> {
        let at = self.pos;
        match markup::doctype(self.text, at) {
            Doctype::Whole { end } => {
                self.flush(at);
                self.mark(at, end, RepairKind::Doctype);
                self.silence(at, end);
                self.pos = end;
                self.outside.gap = end;
                Ok(())
            }
            Doctype::Subset { at } => self.refuse(at, |at| RepairError::InternalSubset { at }),
            Doctype::Text => {
                self.advance(at + 1);
                Ok(())
            }
            Doctype::Cut => Err(self.truncated(at)),
        }
    }

    /// Returns whether a tag amid prose is a mention: it has no end tag, and it has attributes without values
    /// (`a <b and c> d`), or touches the word before it and no tag behind it (`Vec<String> is`), or reads
    /// as text, or would be a second element of a document.
    fn is_mention(&mut self, tag: &StartTag<'t>) -> bool {
        let glued = self.text[..tag.start].ends_with(|c: char| c.is_alphanumeric())
            && self.text.as_bytes().get(skip_space(self.text, tag.end)) != Some(&b'<');
        let is_second = self.shape == Shape::Document && self.roots > 0;
        self.outside.skipping
            && self.outside.in_prose
            && !tag.empty
            && (self.reads_as_text(tag)
                || ((tag.valueless || glued || is_second || self.is_unknown(tag.name))
                    && !self.pairs.is_closed(tag.start)))
    }

    /// Returns whether the contract has no element of this name.
    pub(super) fn is_unknown(&self, name: &str) -> bool {
        let local = split_prefix(name).1;
        !self.vocabulary.is_empty() && !self.vocabulary.knows(local) && local != "message"
    }

    fn open_root(&mut self, tag: StartTag<'t>) -> Result<(), RepairError> {
        if let Some(at) = self.outside.open_thought
            && !self.is_unknown(tag.name)
        {
            return Err(self.unclosed(at, "thought", "its end tag"));
        }
        if let Some(marker) = self.outside.open_words
            && !self.is_unknown(tag.name)
            && !self.is_only_call(marker, &tag)
        {
            let marker = self.position(marker);
            return self.refuse(tag.start, |at| RepairError::BehindThought { at, name: excerpt(tag.name), marker });
        }
        self.check_twice(&tag)?;
        self.check_place(&tag)?;
        self.count_root(&tag)?;
        let gap = self.outside.gap;
        let (out, marks) = (self.out.len(), self.marks.len());
        self.flush(tag.start);
        let (in_prose, in_words) = (self.outside.in_prose, self.outside.in_words);
        self.note_mentioned();
        self.check_string()?;
        self.check_root()?;
        let frame = self.note_between(&tag);
        let (name, start, lead) = (tag.name, tag.start, self.outside.root.end);
        if self.roots == 1 {
            self.outside.first = start;
        }
        self.outside.root = Root { lead, frame, in_prose, in_words, name, start, gap, out, marks, ..Root::default() };
        self.start_tag(tag)
    }

    /// Refuses the last top-level element if a string of JSON or of a programming language holds it, and a character is
    /// escaped in it: the backslashes are of the string, not of the element.
    pub(super) fn check_string(&mut self) -> Result<(), RepairError> {
        let Root { start, end, name, .. } = self.outside.root;
        self.outside.in_string |= end > start && opens_string(&self.text[..start]);
        let is_in_string = self.outside.in_string || (end > start && closes_string(&self.text[end..]));
        if is_in_string && self.text.get(start..end).is_some_and(has_escape) {
            return self.ambiguous(start, name);
        }
        Ok(())
    }

    /// Refuses the last top-level element if prose stands behind it that may be its text: if it is empty, and its contract
    /// allows text in it (`<say/>Hello`), or if its start tag was written twice (`<say><say>Hello</say> you`).
    pub(super) fn check_root(&self) -> Result<(), RepairError> {
        self.check_swallowed()?;
        let root = &self.outside.root;
        let may_hold_text = || self.vocabulary.get(split_prefix(root.name).1).is_some_and(|declared| declared.text);
        if root.prose_behind && !root.has_content && may_hold_text() {
            return self.ambiguous(root.start, root.name);
        }
        Ok(())
    }

    /// Records a start tag that may be the one that a mention before it was about.
    pub(super) fn note_twin(&mut self, tag: &StartTag<'t>) {
        let root = &mut self.outside.root;
        if root.in_prose && root.has_text && root.twin.is_none() && root.name == tag.name {
            root.twin = Some(tag.start);
        }
    }

    /// Goes back to the twin of a root that was a mention (`I will use the <add> tag: <add>…</add>`), at the end of the
    /// input with elements open, and takes the text before the twin as prose.
    pub(super) fn restart(&mut self) -> bool {
        let Root { twin: Some(twin), gap, out, marks, start, .. } = self.outside.root else { return false };
        // Behind a colon, the first tag is a payload like one without prose before it. The twin is one only there, or on a line
        // of its own; else it is a word of the text, too.
        let between = &self.text[start..twin];
        let is_payload = is_introduced(between) || line_of(between).trim().is_empty();
        let is_mention = is_payload && !is_introduced(&self.text[gap.min(start)..start]);
        if !is_mention || self.outside.restarts == MAX_RESTARTS {
            return false;
        }
        self.outside.restarts += 1;
        self.outside.prose = None;
        self.outside.gap = gap;
        self.outside.in_prose = true;
        self.outside.root = Root::default();
        self.out.truncate(out);
        self.forget_references(out);
        self.marks.truncate(marks);
        self.abandon_open();
        self.roots -= 1;
        self.pos = twin;
        true
    }

    /// Writes the white space between here and the last output, or records other text there as
    /// prose.
    pub(super) fn flush(&mut self, to: usize) {
        let gap = &self.text[self.outside.gap..to];
        let start = to - gap.trim_start_matches(is_space_char).len();
        let core = self.text[start..to].trim_end_matches(is_space_char);
        if core.is_empty() {
            self.out.push_str(gap);
        } else {
            self.record_prose(start, core);
        }
        self.outside.gap = to;
    }

    /// Records fences one by one, and the lines between them together.
    fn record_prose(&mut self, start: usize, core: &str) {
        let mut prose: Option<(usize, usize)> = None;
        let mut at = start;
        for line in core.split_inclusive('\n') {
            let bare = line.trim_matches(is_space_char);
            let bare_start = at + (line.len() - line.trim_start_matches(is_space_char).len());
            let bare_end = bare_start + bare.len();
            at += line.len();
            if fence::is_line(bare) {
                if let Some((start, end)) = prose.take() {
                    self.prose(start, end);
                }
                self.mark(bare_start, bare_end, RepairKind::Fence);
            } else if !bare.is_empty() {
                prose = Some((prose.map_or(bare_start, |(start, _)| start), bare_end));
            }
        }
        if let Some((start, end)) = prose {
            self.prose(start, end);
        }
    }

    fn prose(&mut self, start: usize, end: usize) {
        self.mark(start, end, RepairKind::Prose);
        self.outside.prose = Some(start);
        self.outside.root.prose_behind = true;
    }
}

/// Returns whether a text ends with the start of a string: a double quote, and line feeds as they are written in strings.
fn opens_string(text: &str) -> bool {
    text.trim_end_matches("\\n").ends_with('"')
}

/// Returns whether a text starts with the end of a string.
fn closes_string(text: &str) -> bool {
    text.trim_start_matches("\\n").starts_with(['"', '\\'])
}

/// Returns whether a backslash stands before a character that strings of JSON escape.
fn has_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    let follows = |at: usize| bytes.get(at + 1).is_some_and(|next| br#""\/bfnrtu"#.contains(next));
    memchr::memchr_iter(b'\\', bytes).any(follows)
}
