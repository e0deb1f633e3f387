//! The run of the strict pass over the input.

use crate::ladder::chars::{self, SPACE, excerpt};
use std::ops::Range;

use super::error::{CutToken, StrictError, StrictErrorKind};
use super::scope::{Mark, Scope};
use super::scratch::Scratch;
use super::tag::Attribute;
use super::writer::{Piece, Writer};
use crate::ladder::tape::{Tape, Uri};
use crate::vocab::{Position, XmlLimits};

/// The elements that may stand at the top level, and the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// A single element, which alone is written.
    Element,
    /// Any number of elements, each of which is written as a piece of its own.
    Fragment,
    /// A single element, which is written together with the instructions and comments around it.
    Document,
}

/// A run of the strict pass: scans, checks and writes the canonical form at once.
///
/// The stack of open elements is a vector, so depth costs memory and no call stack. Every byte is
/// looked at a bounded number of times.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) text: &'a str,
    pub(super) src: &'a [u8],
    pub(super) pos: usize,
    pub(super) limits: &'a XmlLimits,
    pub(super) scope: &'a mut Scope,
    pub(super) writer: Writer<'a>,
    /// The tape of the current top-level element, or of the last one.
    pub(super) tape: &'a mut Tape,
    /// Bytes of output before that element.
    before: usize,
    /// The greatest length of the output, pieces before the current one included.
    most: usize,
    pub(super) open: &'a mut Vec<Open>,
    /// The attributes of the current start tag, without namespace declarations.
    pub(super) attributes: &'a mut Vec<Attribute>,
    pub(super) roots: &'a mut Vec<Root>,
    /// Number of start tags so far.
    pub(super) elements: usize,
    goal: Goal,
    comments: bool,
    /// True if a value behind a declaration that was left out has a colon.
    pub(super) colons: bool,
    /// The InclusiveNamespaces PrefixList of each top-level element.
    lists: &'a [Vec<&'a str>],
}

/// An element whose end tag is still to come.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) name: Range<usize>,
    pub(super) mark: Mark,
    /// Number of the element on the tape.
    pub(super) number: u32,
}

/// A finished top-level element.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) piece: Piece,
    pub(super) namespace: Uri,
    pub(super) local: Range<usize>,
    /// Number of start tags before its own.
    pub(super) first: usize,
}

/// A result whose error is boxed, so that it takes one register.
pub(super) type Check<T = ()> = Result<T, StrictError>;

/// Checks that an input is not too large to be read.
pub(super) fn check_size(input: &[u8], limits: &XmlLimits) -> Check {
    let limit = limits.message_bytes.min(u32::MAX as usize);
    if input.len() > limit {
        let kind = StrictErrorKind::TooLarge { bytes: input.len(), limit };
        return Err(StrictError::new(kind, input, limit));
    }
    Ok(())
}

impl<'a> Pass<'a> {
    /// Checks size and characters; [`Pass::run`] checks all else.
    pub(super) fn new(
        text: &'a str,
        goal: Goal,
        comments: bool,
        lists: &'a [Vec<&'a str>],
        limits: &'a XmlLimits,
        scratch: &'a mut Scratch,
        tape: &'a mut Tape,
    ) -> Check<Self> {
        let input = text.as_bytes();
        check_size(input, limits)?;
        if let Some((at, found)) = chars::forbidden(text) {
            return Err(StrictError::new(StrictErrorKind::ForbiddenCharacter { found }, input, at));
        }
        scratch.clear();
        let Scratch { open, attributes, scope, roots, out } = scratch;
        let reserve = if goal == Goal::Fragment { 0 } else { input.len() + input.len() / 16 + 64 };
        Ok(Self {
            text,
            src: input,
            pos: super::mark_len(input),
            limits,
            scope,
            writer: Writer::new(text, out, reserve),
            tape,
            before: 0,
            most: limits.message_bytes.min(u32::MAX as usize),
            open,
            attributes,
            roots,
            elements: 0,
            goal,
            comments,
            colons: false,
            lists,
        })
    }

    /// Parses the input to its end.
    pub(super) fn run(&mut self) -> Check {
        self.declaration()?;
        loop {
            self.pos = chars::skip_space(self.src, self.pos);
            match (self.byte(0), self.byte(1)) {
                (None, _) => break,
                (Some(b'<'), Some(b'/')) => return Err(self.stray_end()),
                (Some(b'<'), Some(b'?')) => self.instruction()?,
                (Some(b'<'), Some(b'!')) => self.declaration_or_comment(false)?,
                (Some(b'<'), _) => self.root()?,
                _ => return Err(self.error(StrictErrorKind::TextOutside, self.pos)),
            }
        }
        if self.elements == 0 && self.goal != Goal::Fragment {
            return Err(self.error(StrictErrorKind::NoElement, self.pos));
        }
        self.check_output(self.pos)
    }

    fn root(&mut self) -> Check {
        let at = self.pos;
        if self.elements > 0 && self.goal != Goal::Fragment {
            return Err(self.error(StrictErrorKind::SecondElement, at));
        }
        let first = self.elements;
        let list = self.lists.get(self.roots.len());
        list.into_iter().flatten().for_each(|prefix| self.scope.list(prefix, true));
        self.tape.clear();
        self.before = self.writer.len();
        self.writer.resume(at);
        self.root_tag()?;
        let (namespace, name) = self.tape.root();
        while !self.open.is_empty() {
            if self.byte(0) != Some(b'<') {
                self.text()?;
            }
            match self.byte(1) {
                Some(b'/') => self.end_tag()?,
                Some(b'?' | b'!') => self.other_markup()?,
                _ => self.start_tag()?,
            }
        }
        list.into_iter().flatten().for_each(|prefix| self.scope.list(prefix, false));
        if self.goal != Goal::Document {
            let piece = self.writer.take();
            self.roots.push(Root { piece, namespace, local: at + name.start..at + name.end, first });
        }
        Ok(())
    }

    #[inline(never)]
    fn root_tag(&mut self) -> Check {
        self.start_tag()
    }

    /// Parses an instruction, a comment or a CDATA section in an element.
    #[inline(never)]
    fn other_markup(&mut self) -> Check {
        if self.byte(1) == Some(b'?') {
            self.instruction()?
        } else {
            self.declaration_or_comment(true)?
        }
        self.writer.resume(self.pos);
        Ok(())
    }

    /// Parses character data up to the next markup.
    #[inline]
    fn text(&mut self) -> Check {
        let start = self.pos;
        let at = chars::text_end(self.src, start);
        self.writer.keep(at);
        self.pos = at;
        if self.src.get(at) != Some(&b'<') {
            self.text_from(at)?;
        }
        self.note_colons(start, self.pos);
        Ok(())
    }

    /// Parses the rest of a text from the first character that is no markup and may not be canonical, or from the end.
    #[inline(never)]
    fn text_from(&mut self, start: usize) -> Check {
        let mut run = start;
        let mut at = run;
        loop {
            at = chars::text_end(self.src, at);
            match self.src.get(at) {
                Some(b'<') => break,
                Some(b'>') => {
                    if self.src[..at].ends_with(b"]]") {
                        return Err(self.error(StrictErrorKind::SectionEndInText, at - 2));
                    }
                    self.writer.source(run, at);
                    self.write_reference("&gt;");
                    at += 1;
                    run = at;
                }
                Some(b'\r') => {
                    run = self.line_end(run, at);
                    at += 1;
                }
                Some(_) => {
                    let (c, end) = self.reference(at)?;
                    if self.is_canonical_in_text(at, end) {
                        self.note_reference();
                    } else {
                        self.writer.source(run, at);
                        self.write_text_char(c);
                        run = end;
                    }
                    at = end;
                }
                None => return Err(self.unclosed(at)),
            }
        }
        self.writer.source(run, at);
        self.pos = at;
        Ok(())
    }

    /// Records whether a value has a colon, or a reference that may stand for one, if a declaration was left out.
    #[inline]
    pub(super) fn note_colons(&mut self, start: usize, end: usize) {
        if self.scope.leaves_out() && !self.colons {
            self.colons = memchr::memchr2(b':', b'&', &self.src[start..end]).is_some();
        }
    }

    /// Writes the source between `run` and the carriage return at `at`, and the line feed that
    /// stands for it (XML 1.0, section 2.11). Returns the start of the next run.
    pub(super) fn line_end(&mut self, run: usize, at: usize) -> usize {
        self.writer.source(run, at);
        if self.src.get(at + 1) != Some(&b'\n') {
            self.writer.literal("\n");
        }
        at + 1
    }

    /// Parses `<!…`: a comment or a CDATA section; at the top level only a comment.
    fn declaration_or_comment(&mut self, inside: bool) -> Check {
        let rest = &self.src[self.pos..];
        if rest.starts_with(b"<!--") {
            self.comment()
        } else if rest.starts_with(b"<![CDATA[") {
            if inside { self.section() } else { Err(self.error(StrictErrorKind::TextOutside, self.pos)) }
        } else if rest.starts_with(b"<!DOCTYPE") {
            Err(self.error(StrictErrorKind::Doctype, self.pos))
        } else {
            Err(self.error(StrictErrorKind::UnknownMarkup, self.pos))
        }
    }

    /// Parses a comment (XML 1.0, production 15).
    fn comment(&mut self) -> Check {
        let at = self.pos;
        let start = at + 4;
        let Some(hyphens) = memchr::memmem::find(&self.src[start..], b"--") else {
            return Err(self.cut(CutToken::Comment));
        };
        let end = start + hyphens;
        match self.src.get(end + 2) {
            Some(b'>') => self.pos = end + 3,
            Some(_) => return Err(self.error(StrictErrorKind::DoubleHyphen, end)),
            None => return Err(self.cut(CutToken::Comment)),
        }
        let limit = self.limits.comment_bytes;
        if hyphens > limit {
            return Err(self.error(StrictErrorKind::CommentTooLong { bytes: hyphens, limit }, at));
        }
        if self.comments && self.is_written() {
            self.break_before();
            self.write_with_line_ends(at, end + 3);
            self.break_behind();
        }
        Ok(())
    }

    /// Parses a CDATA section as text (XML 1.0, productions 18 to 21).
    fn section(&mut self) -> Check {
        let start = self.pos + b"<![CDATA[".len();
        let Some(length) = memchr::memmem::find(&self.src[start..], b"]]>") else {
            return Err(self.cut(CutToken::Section));
        };
        self.write_text(start, start + length);
        self.note_colons(start, start + length);
        self.pos = start + length + 3;
        Ok(())
    }

    /// Parses a processing instruction (XML 1.0, productions 16 and 17).
    fn instruction(&mut self) -> Check {
        let at = self.pos;
        let name = at + 2..chars::ncname_end(self.text, at + 2);
        self.check_target(&name)?;
        let Some(length) = memchr::memmem::find(&self.src[name.end..], b"?>") else {
            return Err(self.cut(CutToken::Instruction));
        };
        let limit = self.limits.instruction_bytes;
        if length > limit {
            return Err(self.error(StrictErrorKind::InstructionTooLong { bytes: length, limit }, at));
        }
        let end = name.end + length;
        let data = chars::skip_space(&self.src[..end], name.end);
        if data == name.end && data != end {
            return Err(self.error(StrictErrorKind::BadInstruction, data));
        }
        self.pos = end + 2;
        if !self.is_written() {
            return Ok(());
        }
        if let Some(open) = self.open.last() {
            self.tape.instruction(open.number);
        }
        self.break_before();
        self.writer.source(at, name.end);
        if data < end {
            if data == name.end + 1 && self.src[name.end] == b' ' {
                self.writer.source(name.end, data);
            } else {
                self.writer.literal(" ");
            }
            self.write_with_line_ends(data, end);
        }
        self.writer.source(end, end + 2);
        self.break_behind();
        Ok(())
    }

    fn check_target(&self, name: &Range<usize>) -> Check {
        let kind = if name.is_empty() {
            StrictErrorKind::BadTarget
        } else if self.src[name.clone()].eq_ignore_ascii_case(b"xml") {
            StrictErrorKind::ReservedTarget
        } else if self.src.get(name.end) == Some(&b':') {
            StrictErrorKind::ColonInTarget
        } else {
            return self.check_name(name.start, name.end);
        };
        Err(self.error(kind, name.start - 2))
    }

    /// Returns whether the markup here belongs to the output: inside of elements always, around them
    /// only for a whole document.
    fn is_written(&self) -> bool {
        !self.open.is_empty() || self.goal == Goal::Document
    }

    /// Writes the line feed before a node behind the element (Canonical XML 1.0, section 2.3: one line for each).
    fn break_before(&mut self) {
        if self.open.is_empty() && self.elements > 0 {
            self.writer.literal("\n");
        }
    }

    fn break_behind(&mut self) {
        if self.open.is_empty() && self.elements == 0 {
            self.writer.literal("\n");
        }
    }

    /// Offset of the next output in the canonical form of the current top-level element.
    #[inline]
    pub(super) fn place(&self) -> usize {
        self.writer.len() - self.before
    }

    /// Records on the tape that text with a character reference was written.
    pub(super) fn note_reference(&mut self) {
        if let Some(open) = self.open.last() {
            self.tape.reference(open.number);
        }
    }

    #[inline]
    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.src.get(self.pos + ahead).copied()
    }

    #[inline]
    pub(super) fn is_space(&self, at: usize) -> bool {
        self.src.get(at).is_some_and(|&byte| chars::is(byte, SPACE))
    }

    #[inline]
    pub(super) fn check_name(&self, start: usize, end: usize) -> Check {
        if end - start > self.limits.name_bytes { Err(self.name_too_long(start, end)) } else { Ok(()) }
    }

    #[cold]
    fn name_too_long(&self, start: usize, end: usize) -> StrictError {
        self.error(StrictErrorKind::NameTooLong { bytes: end - start, limit: self.limits.name_bytes }, start)
    }

    /// Checks the size of the output, which can outgrow the input because namespaces are rendered wherever they are
    /// used.
    #[inline]
    pub(super) fn check_output(&self, at: usize) -> Check {
        if self.writer.len() > self.most { Err(self.output_too_large(at)) } else { Ok(()) }
    }

    #[cold]
    fn output_too_large(&self, at: usize) -> StrictError {
        self.error(StrictErrorKind::CanonicalTooLarge { limit: self.most }, at)
    }

    #[cold]
    pub(super) fn error(&self, kind: StrictErrorKind, at: usize) -> StrictError {
        StrictError::new(kind, self.src, at)
    }

    /// The error of an input that ends inside a token that starts at the current place.
    #[cold]
    pub(super) fn cut(&self, token: CutToken) -> StrictError {
        self.error(StrictErrorKind::EndOfInput { token }, self.pos)
    }

    #[cold]
    fn unclosed(&self, at: usize) -> StrictError {
        let kind = match self.open.last() {
            Some(open) => {
                let name = excerpt(&self.text[open.name.clone()]);
                StrictErrorKind::Unclosed { name, opened: self.opened(open) }
            }
            None => StrictErrorKind::NoElement,
        };
        self.error(kind, at)
    }

    pub(super) fn opened(&self, open: &Open) -> Position {
        let mark = super::mark_len(self.src);
        Position::of(&self.src[mark..], open.name.start - 1 - mark)
    }
}
