//! `Raw` -> `Repaired`: makes dirty streams well-formed, chiefly the output of language models.
//!
//! Repair runs only after the strict pass has refused. It is deterministic, iterative, linear in the
//! input, and needs memory in proportion to it. Well-formed input is returned unchanged, but for thoughts and
//! comments that
//! the contract tells from content; repairing twice changes nothing. Repair keeps text and white space. It refuses
//! input that it would have
//! to guess about: a [`RepairError`] is an answer to the sender, a wrong guess is not.
//!
//! # Rules
//!
//! Each rule is a [`RepairKind`].
//!
//! **Bytes.** UTF-16 needs a byte order mark. Else bytes that are valid UTF-8 are UTF-8, whatever the XML
//! declaration says; others are ISO-8859-1 or windows-1252 if it says so (one decoder for both). All others are refused.
//! Characters that XML forbids are removed, and so are control sequences of terminals.
//!
//! **Around elements.** Text outside of elements is prose and is dropped, and so are Markdown
//! fences and end tags of no element. White space, comments and instructions stay. A DOCTYPE is dropped, and
//! refused if it has an internal subset. Prose may mention tags, so these are prose, too:
//! - code spans in backticks within a line, fenced blocks of a language that isn't XML, and CDATA
//!   sections, unless no element stands outside of them;
//! - `a <b and c> d` and `Vec<String> is`: a start tag amid prose, with an attribute without value
//!   or right behind a word, that has no end tag anywhere; behind the element of a document, any such
//!   tag; and a tag that would be text inside of an element (below);
//! - in `I use the <add> tag: <add>…</add>` the first `<add>`: a start tag amid prose whose element
//!   holds text and an element of its name, and never ends.
//!
//! An element amid a sentence (`Do not send <done/> yet.`) may only be mentioned, and is refused (`sentence.rs`).
//! An empty element that may hold text by its contract is refused if prose follows: that may be its text
//! (`<say/>Hello`). So is an element in a string of JSON (a double quote touches it) that has escaped characters (`\n`).
//!
//! A [`Shape::Document`] has one element; a second is refused: repair never chooses one of them.
//! A [`Shape::Fragment`] has any number; none at all is valid if the input held only white space,
//! comments and fences.
//!
//! **Start tags.** `<` opens a tag only if a qualified name follows at once, and then only attributes
//! up to `>` or `/>`: else it is text. Attributes may lack quotes, a value, or white space before
//! them, or have a colon for the equals sign, a comma behind them, or white space of any script between them. Of two
//! attributes of the same name and value the first stays, also if they have two prefixes for one namespace; with
//! different values they are refused.
//! A quote closes a value if a tag can go on behind it, so values may hold `<` and inner quotes. If
//! the closing quote is missing, the value ends with the tag, or before the next attribute.
//! Tags are paired by their names alone, as brackets of one kind for each name (`pairs.rs`):
//! in well-formed text all have a partner. A start tag without one is text if it stands amid text, with words for attributes
//! (`if i<n then j>m`) or not in front of a word (`Vec<T> is`, `the <total>, with`). One without attributes is refused right
//! behind a word or a sign (`cmp a<b>c`), behind text in front of a number or, if it is one of formatting, of a space or
//! punctuation, before text in an element of only text that has no end tag either (`<ann> hi <bob> hey`).
//! An empty-element tag whose end tag follows is a start tag. The first of two start tags of one name in a row with one end
//! tag for both is refused (`<name><name>Bob</name>`), but kept where elements of its name often nest (`div`, `li`).
//!
//! **End tags.** An end tag that names an open element closes it and all elements inside of it. A name in another case
//! of letters, with another prefix or with one slip (`</totl>`), `</>` and `<\name>` name an element, too, if
//! no open one has exactly this name. An end tag that belongs to no start tag closes an element of only text that has
//! no end tag, if more markup follows. Any other is dropped, but refused if prose stands between it and
//! the end of a top-level element of its name, or of one that ended without an end tag of its own. A possible end
//! tag of an element without one
//! (`[/name]`, `&lt;/name>`) is refused if the text ends with it. So a missing end tag is
//! supplied at the end of the parent, and mis-nested elements end with the outer one. `br`, `hr`, `wbr` and
//! `img` end at once if no end tag of theirs follows.
//! Any other tag that repeats the open element, which holds only text and has no end tag, is refused: it may be its end tag
//! (`<name>Bob<name>`, `<name>Bob<name/>`), the next of a list, or a mention.
//! At the end of the input, end tags are supplied only if nothing but a closing
//! fence follows the last tag, or nothing but white space and nothing tells that the input is cut (`cut.rs`): one
//! element without text of its own is open, a child has ended last, no fence is open, the indentation of no further child
//! follows, no other end tag was missing, and the contract demands no further child. The last tag is certainly whole, and the element isn't text amid
//! prose: else the input is truncated.
//! The end of thoughts that have no start drops all before it; if it drops the only element, the input is refused.
//! Thoughts, channels and turns of chat templates (`[THINK]`, `<|channel|>analysis`, `<|im_start|>user`) are recognized by the
//! shape of their markers (`template.rs`), outside of elements: an element in them is dropped with them. Without an end they are
//! refused, and so is an element in brackets of unknown meaning, or behind a turn of another speaker that stands behind an
//! element.
//! So are thoughts, answers and turns in words (`## Thinking`, `Thought: …`, `Human:`, `"thinking": …`; shapes in `spoken.rs`, words in
//! `words.rs`): thoughts end at their end marker, or where the answer is announced. An element behind those without an end is refused.
//! So is one behind a start tag of thoughts or of an unknown name that has no end tag, and one in or behind brackets that are
//! no tag of XML (`<function=think>`).
//!
//! **Frames.** An element is sent only if the words that lead to it are known to announce it, and what follows it does not hold it
//! back (`frame.rs`). Tags in which models enclose calls (`<tool_call>`) or an answer with a payload (`<response>`) say nothing,
//! if the contract doesn't declare them. An element between two turns of another speaker is of a dialogue, and refused.
//!
//! **Several elements.** Of two elements, the first may be a draft that the text between them takes back. So only text that
//! leads on may stand there (`between.rs`), or labels of one form.
//!
//! **The contract** of an emitter, as a [`Vocabulary`], says which elements there are and which may stand
//! in which. A closed top-level `<think>` (or the like) of a fragment that it does not declare is dropped with all
//! that it
//! holds; [`parse_fragment`](super::parse_fragment) asks for that in well-formed text, too. Where the innermost
//! open element is declared and has no wildcard, it decides first: a tag
//! that nothing declares is text where text may stand; a declared one that may not stand here ends the
//! open elements that have no end tags, up to where it may stand; if it may stand nowhere there, and has no end tag of
//! its own, it is text. Where it may stand, without an end tag, it is refused behind a word (`i<b>0`, `set<b>::iterator`), in
//! front of a number, and as a word of a line of text (`an <em> tag`).
//! In an element that can't hold one of its own name, a tag of that name that may be meant as the end tag is refused
//! (`<b>bold<b> text`, `<verdict>fail<verdict/>`).
//! Closed elements stay as they are: validation judges them. An instruction in an element that may hold any text, and nothing
//! else, is text; so is an element there that nothing declares, in well-formed input as well.
//!
//! **Text.** A string has one reading (`escapes.rs`): where it holds a raw `&` or `<`, its references and comments are text. Else
//! `&` stays as a reference that XML has, and entities of HTML become characters, unless their names are words; without
//! `;` nothing is a reference. `]]>` is escaped; a second one behind a CDATA section is refused.
//! Comments get spaces between their hyphens. An XML declaration stays only at the start; with text beside it on the
//! line, it is text.
//!
//! **Namespaces** are checked and never invented: unbound prefixes, relative or reserved names and
//! `xmlns:p=""` are refused; but `xsi` before an attribute, which means one thing wherever it is used, is declared.
//! (Schema-guided repair, elsewhere, adds [`RepairKind::Namespace`], too.)
//!
//! Repair does *not* judge contents, move text, or unwrap JSON and escaped documents.

mod between;
mod contract;
mod cut;
mod declaration;
mod denying;
mod elements;
mod error;
mod escapes;
mod fence;
mod frame;
mod kind;
mod lexis;
mod locate;
mod markup;
mod meant;
mod mention;
mod namespaces;
mod outside;
mod pairs;
mod reference;
mod scan;
mod sentence;
mod source;
mod spoken;
mod tag;
mod template;
mod thought;
mod value;
mod vocabulary;
mod words;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeStruct, Serializer};

pub use error::RepairError;
pub use frame::Author;
pub use kind::RepairKind;
pub(crate) use source::names_ascii;
pub(super) use spoken::marks_thoughts;
pub(super) use thought::{is_thought, is_wrapper};
pub use vocabulary::Vocabulary;

use super::Raw;
use crate::vocab::{Position, Span, XmlLimits};
use source::{Mark, Source};

/// Bytes that repair made well-formed, as far as it can tell. The strict pass decides.
#[derive(Debug, Clone)]
pub struct Repaired {
    bytes: Bytes,
    repairs: Vec<Repair>,
}

/// A change of repair, with its place in the raw input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// The raw bytes that were changed; empty for an insertion.
    pub span: Span,
    /// The start of the span. Columns are characters, in UTF-16 as well; a byte order mark takes none.
    pub at: Position,
    /// The kind of the change.
    pub kind: RepairKind,
}

impl Serialize for Repair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Repair", 3)?;
        fields.serialize_field("line", &self.at.line)?;
        fields.serialize_field("column", &self.at.column)?;
        fields.serialize_field("kind", self.kind.as_str())?;
        fields.end()
    }
}

/// The number of elements that are expected: one, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A single element.
    Document,
    /// Any number of elements: the emission of a listener.
    Fragment,
}

/// Repairs raw bytes.
///
/// # Errors
/// A [`RepairError`] for input that repair would have to guess about, and for input over a limit.
pub fn repair(raw: &Raw, shape: Shape, limits: &XmlLimits) -> Result<Repaired, RepairError> {
    repair_by(&Vocabulary::default(), raw, shape, limits)
}

/// Repairs raw bytes of an emitter whose contract is known.
///
/// # Errors
/// As [`repair`].
pub fn repair_by(
    vocabulary: &Vocabulary,
    raw: &Raw,
    shape: Shape,
    limits: &XmlLimits,
) -> Result<Repaired, RepairError> {
    let bytes = raw.bytes();
    let limit = limits.message_bytes.min(source::MAX_BYTES);
    if bytes.len() > limit {
        let at = Position::of(bytes, limit);
        return Err(RepairError::TooLarge { at, bytes: bytes.len(), limit });
    }
    let source = source::decode(bytes)?;
    let scanned = scan::scan(&source, shape, vocabulary, limits)?;
    let repairs = report(&source, scanned.marks);
    let bytes = match source.verbatim() {
        Some(same) if repairs.is_empty() => bytes.slice(same),
        _ => Bytes::from(scanned.out),
    };
    Ok(Repaired { bytes, repairs })
}

impl Repaired {
    /// Bytes that need no repair.
    pub(super) fn unchanged(raw: &Raw) -> Self {
        Self { bytes: raw.bytes().clone(), repairs: Vec::new() }
    }

    /// UTF-8 without a byte order mark.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The changes, in the order of the input; empty for clean input.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// The bytes, and the changes.
    pub fn into_parts(self) -> (Bytes, Vec<Repair>) {
        (self.bytes, self.repairs)
    }
}

/// Finds the raw bytes, the lines and the columns of all changes, in two walks over the input.
fn report(source: &Source<'_>, marks: Vec<Mark>) -> Vec<Repair> {
    let raw = |mark: Mark| {
        let (start, end) = (mark.start as usize, mark.end as usize);
        let raw_start = source.raw_start(start);
        let raw_end = if end > start { source.raw_end(end) } else { raw_start };
        (Span { start: raw_start, end: raw_end }, mark.kind)
    };
    let decoding =
        source.marks.iter().map(|mark| (Span { start: mark.start as usize, end: mark.end as usize }, mark.kind));
    let mut changes: Vec<(Span, RepairKind)> = decoding.chain(marks.into_iter().map(raw)).collect();
    changes.sort_by_key(|(span, _)| span.start);
    let mut locator = source.locator();
    changes.into_iter().map(|(span, kind)| Repair { span, at: locator.position(span.start), kind }).collect()
}
