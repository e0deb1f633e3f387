//! The walk over the text: one loop, a stack of open elements, no recursion.

use super::elements::{Open, Tree};
use super::escapes::{Escapes, Provisional};
use super::lexis::{excerpt, find_any, is_blank, is_space_char, may_start_markup, name_end, skip_space};
use super::markup::{self, Markup};
use super::meant::is_amid_text;
use super::namespaces::Namespaces;
use super::outside::{Outside, Root};
use super::pairs::Pairs;
use super::source::{Mark, Source};
use super::tag::{Reading, StartTag, TagReader};
use super::template::Template;
use super::{RepairError, RepairKind, Shape, Vocabulary, declaration, fence};
use crate::ladder::scan::split_prefix;
use crate::vocab::XmlLimits;

/// The result of a scan.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) out: String,
    /// The repairs, in offsets of the text, in the order of the scan.
    pub(super) marks: Vec<Mark>,
}

/// The state of one scan. The methods for the outside of elements are in `outside.rs`, those
/// for tags in `elements.rs`.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    pub(super) text: &'t str,
    pub(super) pos: usize,
    pub(super) out: String,
    pub(super) marks: Vec<Mark>,
    pub(super) tags: TagReader<'t>,
    pub(super) tree: Tree<'t>,
    pub(super) namespaces: Namespaces<'t>,
    pub(super) outside: Outside<'t>,
    pub(super) pairs: Pairs<'t>,
    pub(super) template: Template,
    /// The signs of each string: the first one for the outside of elements.
    pub(super) strings: Vec<Escapes>,
    pub(super) references: Vec<Provisional>,
    pub(super) vocabulary: &'t Vocabulary,
    pub(super) shape: Shape,
    pub(super) limits: &'t XmlLimits,
    /// End of the last tag.
    pub(super) tail: usize,
    /// Start of the last CDATA section inside of an element.
    section: Option<usize>,
    /// True if the end of the last tag is a guess.
    pub(super) guessed: bool,
    /// Number of top-level elements.
    pub(super) roots: usize,
    pub(super) source: &'t Source<'t>,
}

/// Scans a text. Code that Markdown marks as something else than XML is prose, unless no element
/// stands outside of it.
///
/// # Errors
/// A [`RepairError`] for input that can't be repaired.
pub(super) fn scan<'t>(
    source: &'t Source<'t>,
    shape: Shape,
    vocabulary: &'t Vocabulary,
    limits: &'t XmlLimits,
) -> Result<Scanned, RepairError> {
    let mut scanner = Scanner::new(source, shape, vocabulary, limits, true);
    scanner.run()?;
    if scanner.roots == 0 && scanner.outside.skipped {
        scanner = Scanner::new(source, shape, vocabulary, limits, false);
        scanner.run()?;
    }
    scanner.finish()
}

impl<'t> Scanner<'t> {
    fn new(
        source: &'t Source<'t>,
        shape: Shape,
        vocabulary: &'t Vocabulary,
        limits: &'t XmlLimits,
        skipping: bool,
    ) -> Self {
        let text: &'t str = &source.text;
        Self {
            text,
            pos: 0,
            out: String::with_capacity(text.len()),
            marks: Vec::new(),
            tags: TagReader::new(text, limits.attributes),
            tree: Tree::default(),
            namespaces: Namespaces::default(),
            outside: Outside::new(skipping),
            pairs: Pairs::new(text, skipping),
            template: Template::new(text, &|name| vocabulary.knows(split_prefix(name).1)),
            strings: vec![Escapes::default()],
            references: Vec::new(),
            vocabulary,
            shape,
            limits,
            tail: 0,
            section: None,
            guessed: false,
            roots: 0,
            source,
        }
    }

    fn run(&mut self) -> Result<(), RepairError> {
        loop {
            while self.pos < self.text.len() {
                if self.tree.is_empty() {
                    self.outside()?
                } else {
                    self.inside()?
                }
                self.check_size()?;
            }
            if self.tree.is_empty() {
                self.flush(self.pos);
                self.note_mentioned();
                self.note_lead();
                self.note_behind();
                if let Some(doubt) = self.outside.doubt.take() {
                    return Err(doubt);
                }
                self.check_string()?;
                return self.check_root();
            }
            if !self.restart() {
                self.supply_end_tags()?;
            }
        }
    }

    fn check_size(&self) -> Result<(), RepairError> {
        let limit = self.limits.message_bytes;
        if self.out.len() > limit {
            return self.refuse(self.pos, |at| RepairError::RepairedTooLarge { at, limit });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Scanned, RepairError> {
        self.settle_references()?;
        self.check_size()?;
        self.check_dropped()?;
        let dropped = |mark: &Mark| {
            matches!(mark.kind, RepairKind::Prose | RepairKind::StrayEndTag | RepairKind::MisnestedEndTag)
        };
        if self.roots == 0 && (self.shape == Shape::Document || self.marks.iter().any(dropped)) {
            let at = self.text.len() - self.text.trim_start_matches(is_space_char).len();
            return Err(RepairError::NotXml { at: self.source.position(at) });
        }
        Ok(Scanned { out: self.out, marks: self.marks })
    }

    /// Takes one step inside of an element: text up to the next special character, and the markup there.
    fn inside(&mut self) -> Result<(), RepairError> {
        let stop = find_any(self.text, self.pos, *b"<&>");
        self.copy_text(stop);
        match self.text.as_bytes().get(stop) {
            Some(b'<') => self.markup()?,
            Some(b'&') => {
                self.note_text("&");
                self.pos = self.write_reference(stop);
            }
            Some(b'>') if self.out.ends_with("]]") => {
                // The `]]` may belong to the section before, whose first `]]>` may have been meant as text.
                if let Some(section) = self.section.filter(|start| *start >= self.tail) {
                    return self.refuse(section, |at| RepairError::SecondSectionEnd { at });
                }
                self.out.push_str("&gt;");
                let brackets = if self.text[..stop].ends_with("]]") { 2 } else { 0 };
                self.mark(stop - brackets, stop + 1, RepairKind::SectionEnd);
                self.pos = stop + 1;
            }
            Some(_) => {
                self.out.push('>');
                self.pos = stop + 1;
            }
            None => {}
        }
        Ok(())
    }

    fn copy_text(&mut self, to: usize) {
        let run = &self.text[self.pos..to];
        self.out.push_str(run);
        self.pos = to;
        self.note_text(run);
    }

    fn markup(&mut self) -> Result<(), RepairError> {
        let at = self.pos;
        match self.text.as_bytes().get(at + 1) {
            Some(b' ' | b'\t') if self.is_spaced_tag(at) => return self.tag(at),
            Some(&byte) if !may_start_markup(byte) => {
                self.stray_less_than();
                return Ok(());
            }
            _ => {}
        }
        match markup::read(self.text, at) {
            Markup::Comment { end } if self.is_in_string() => self.string_comment(end)?,
            Markup::Instruction { end, .. } if self.is_in_string() => self.quote(end),
            Markup::Comment { end } => self.comment(end)?,
            Markup::Section { end } => {
                self.section = Some(at);
                self.copy_text(end);
            }
            Markup::Instruction { end, target, well_formed } => self.instruction(end, target, well_formed)?,
            Markup::EndTag { name, end, well_formed } => self.end_tag(name, end, well_formed)?,
            Markup::Cut => return Err(self.cut(at)),
            Markup::Text => self.tag(at)?,
        }
        Ok(())
    }

    /// Returns whether `< name>` stands here, and has an end tag.
    fn is_spaced_tag(&mut self, at: usize) -> bool {
        let name_end = name_end(self.text, skip_space(self.text, at + 1));
        let is_bare = |end| self.text.as_bytes().get(skip_space(self.text, end)) == Some(&b'>');
        name_end.is_some_and(is_bare) && self.pairs.is_closed(at)
    }

    /// Reads a possible start tag.
    fn tag(&mut self, at: usize) -> Result<(), RepairError> {
        match self.tags.read(at) {
            Reading::Tag(tag) => self.inner_tag(tag),
            Reading::Cut => Err(self.truncated(at)),
            Reading::Text => self.no_tag(at),
        }
    }

    /// Takes a `<` that opens no tag for text. Refuses it if it looks like a comment or a section.
    fn no_tag(&mut self, at: usize) -> Result<(), RepairError> {
        let rest = &self.text[at..];
        for (written, construct, whole) in
            [("<!-", "comment", "<!-- … -->"), ("<!CDATA[", "CDATA section", "<![CDATA[ … ]]>")]
        {
            if rest.starts_with(written) {
                return self.refuse(at, |at| RepairError::Misspelt { at, written, construct, whole });
            }
        }
        if let Some(end) = name_end(self.text, at + 1) {
            self.tree.failed(&self.text[at + 1..end]);
        }
        self.stray_less_than();
        Ok(())
    }

    /// Returns whether the contract allows any text in the innermost element, and nothing else.
    fn is_in_string(&self) -> bool {
        self.contract_here().is_some_and(|(place, _)| place.is_string())
    }

    /// Takes an instruction for text.
    fn quote(&mut self, end: usize) {
        while self.pos < end {
            let stop = find_any(self.text, self.pos, *b"<&>").min(end);
            self.copy_text(stop);
            match self.text.as_bytes()[stop..end] {
                [b'<', ..] => self.stray_less_than(),
                [b'&', ..] => {
                    self.out.push_str("&amp;");
                    self.mark(stop, stop + 1, RepairKind::StrayAmpersand);
                    self.pos = stop + 1;
                }
                [_, ..] if self.out.ends_with("]]") => {
                    self.out.push_str("&gt;");
                    self.mark(stop, stop + 1, RepairKind::SectionEnd);
                    self.pos = stop + 1;
                }
                [_, ..] => {
                    self.out.push('>');
                    self.pos = stop + 1;
                }
                [] => {}
            }
        }
    }

    pub(super) fn stray_less_than(&mut self) {
        self.out.push_str("&lt;");
        self.mark(self.pos, self.pos + 1, RepairKind::StrayLessThan);
        self.note_raw(self.pos);
        self.pos += 1;
        self.note_text("<");
    }

    /// Writes the comment that ends at `end`, with spaces between adjacent hyphens.
    pub(super) fn comment(&mut self, end: usize) -> Result<(), RepairError> {
        let (at, before) = (self.pos, self.out.len());
        let content = &self.text[self.pos + 4..end - 3];
        if !content.contains("--") && !content.ends_with('-') {
            self.out.push_str(&self.text[self.pos..end]);
        } else {
            self.out.push_str("<!--");
            for (index, piece) in content.split('-').enumerate() {
                if index > 0 {
                    self.out.push_str(if piece.is_empty() { "- " } else { "-" });
                }
                self.out.push_str(piece);
            }
            self.out.push_str("-->");
            self.mark(self.pos, end, RepairKind::Comment);
        }
        let (bytes, limit) = (self.out.len() - before - b"<!---->".len(), self.limits.comment_bytes);
        if bytes > limit {
            return self.refuse(at, |at| RepairError::CommentTooLong { at, bytes, limit });
        }
        self.pos = end;
        Ok(())
    }

    /// Writes the processing instruction that ends at `end`, or drops it if it isn't well-formed.
    pub(super) fn instruction(&mut self, end: usize, target: &str, well_formed: bool) -> Result<(), RepairError> {
        self.check_name(self.pos + 2, target)?;
        let whole = &self.text[self.pos..end];
        let (keep, kind) = if target.eq_ignore_ascii_case("xml") {
            let plain = self.out.is_empty() && declaration::read(whole).is_some_and(|found| found.is_plain());
            (plain, RepairKind::XmlDeclaration)
        } else {
            (well_formed, RepairKind::ProcessingInstruction)
        };
        if !keep && kind == RepairKind::XmlDeclaration && self.is_quoted_declaration(end) {
            self.stray_less_than();
            return Ok(());
        }
        if keep {
            let (bytes, limit) = (whole.len() - target.len() - b"<??>".len(), self.limits.instruction_bytes);
            if bytes > limit && kind == RepairKind::ProcessingInstruction {
                return self.refuse(self.pos, |at| RepairError::InstructionTooLong { at, bytes, limit });
            }
            self.out.push_str(whole);
        } else {
            self.mark(self.pos, end, kind);
        }
        self.pos = end;
        Ok(())
    }

    /// Returns whether an XML declaration inside of an element is text: by the contract, or because text stands beside it
    /// on the line.
    fn is_quoted_declaration(&self, end: usize) -> bool {
        let behind = self.text[end..].trim_start_matches([' ', '\t']);
        let is_amid =
            is_amid_text(&self.text[..self.pos]) || !(behind.is_empty() || behind.starts_with(['<', '\r', '\n']));
        !self.tree.is_empty() && (is_amid || self.contract_here().is_some_and(|(place, _)| place.text))
    }

    /// Supplies the end tags of the elements that are open at the end of the input, if only a closing fence follows the
    /// last tag, or only white space and nothing tells that the input is cut.
    fn supply_end_tags(&mut self) -> Result<(), RepairError> {
        let tail = &self.text[self.tail..];
        let rest = tail.trim_start_matches(is_space_char);
        let rest_start = self.text.len() - rest.len();
        let rest = rest.trim_end_matches(is_space_char);
        let fence = fence::is_closing(rest);
        let is_whole = fence || (rest.is_empty() && !self.is_cut());
        if self.guessed || self.outside.root.is_doubtful() || !is_whole {
            return Err(self.truncated(rest_start));
        }
        let mut end = self.text.len();
        if fence {
            end = rest_start;
            self.out.truncate(self.out.len() - (self.text.len() - end));
            self.mark(end, end + rest.len(), RepairKind::Fence);
        }
        while !self.tree.is_empty() {
            self.close_missing(end)?;
        }
        self.outside.gap = self.text.len();
        Ok(())
    }

    pub(super) fn mark(&mut self, start: usize, end: usize, kind: RepairKind) {
        self.marks.push(Mark::new(start, end, kind));
    }

    /// The error of markup without an end.
    #[cold]
    pub(super) fn cut(&self, start: usize) -> RepairError {
        let rest = &self.text[start..];
        let of = |construct, end| self.unclosed(start, construct, end);
        match rest {
            _ if rest.starts_with("<!--") => of("comment", "-->"),
            _ if rest.starts_with("<![CDATA[") => of("CDATA section", "]]>"),
            _ if rest.starts_with("<?") && rest.len() > 2 => of("processing instruction", "?>"),
            _ => self.truncated(start),
        }
    }

    #[cold]
    pub(super) fn unclosed(&self, at: usize, construct: &'static str, end: &'static str) -> RepairError {
        RepairError::Unclosed { at: self.source.position(at), construct, end }
    }

    /// The error of an input that is cut; `at` is the start of the piece that isn't whole.
    #[cold]
    pub(super) fn truncated(&self, at: usize) -> RepairError {
        let inside = self.tree.last().map(|open: &Open<'_>| excerpt(open.name));
        RepairError::Truncated { at: self.source.position(at), inside }
    }

    #[cold]
    pub(super) fn refuse<T>(
        &self,
        at: usize,
        error: impl FnOnce(crate::vocab::Position) -> RepairError,
    ) -> Result<T, RepairError> {
        Err(error(self.source.position(at)))
    }

    pub(super) fn position(&self, offset: usize) -> crate::vocab::Position {
        self.source.position(offset)
    }

    pub(super) fn check_name(&self, at: usize, name: &str) -> Result<(), RepairError> {
        let (bytes, limit) = (name.len(), self.limits.name_bytes);
        if bytes > limit {
            return self.refuse(at, |at| RepairError::NameTooLong { at, bytes, limit });
        }
        Ok(())
    }

    /// Records text of the innermost element and of a doubtful root.
    fn note_text(&mut self, run: &str) {
        if self.tree.last().is_some_and(|open| !open.has_text) && !is_blank(run) {
            self.tree.note_text();
            self.outside.root.has_content = true;
        }
        let root: &mut Root<'_> = &mut self.outside.root;
        if root.in_prose && !root.has_text && self.tree.depth() == 1 && !is_blank(run) {
            root.has_text = true;
        }
    }
}

impl<'t> Scanner<'t> {
    /// Counts a top-level element; refuses a second one in a document.
    pub(super) fn count_root(&mut self, tag: &StartTag<'t>) -> Result<(), RepairError> {
        if self.shape == Shape::Document && self.roots > 0 {
            return self.refuse(tag.start, |at| RepairError::SecondElement { at });
        }
        self.roots += 1;
        Ok(())
    }
}
