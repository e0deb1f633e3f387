//! The parser of raw bytes: the strict pass first, repair only if it refuses.

use std::sync::Arc;

use bytes::Bytes;

use super::repair::{Shape, Vocabulary, is_thought, is_wrapper, marks_thoughts, repair_by};
use super::strict::{canonicalize, canonicalize_fragment};
use super::{Canonical, Raw, Repair, RepairError, Repaired, StrictError};
use crate::vocab::{Position, QName, XmlLimits};

/// Parses one document: the strict pass first; only if it refuses, repair and then the strict pass again.
///
/// Input past a limit isn't repaired.
///
/// # Errors
/// [`LadderError`] if the bytes can't be repaired or are over a limit.
pub fn parse(raw: &Raw, limits: &XmlLimits) -> Result<Canonical, LadderError> {
    let (canonical, repaired) = document(raw, limits, Vocabulary::default)?;
    let repairs = repaired.into_parts().1;
    Ok(if repairs.is_empty() { canonical } else { canonical.with_repairs(repairs) })
}

/// The contract of an emitter, as far as repair knows it.
pub trait Emitter {
    /// The names of all payloads that it may send.
    fn vocabulary(&self) -> Vocabulary;

    /// The names of the payload that begins with this element; `None` if they are not known.
    fn vocabulary_of(&self, root: &QName) -> Option<&Vocabulary>;
}

impl Emitter for Vocabulary {
    fn vocabulary(&self) -> Vocabulary {
        self.clone()
    }

    fn vocabulary_of(&self, _: &QName) -> Option<&Vocabulary> {
        Some(self)
    }
}

/// Parses an emission of a listener: any number of top-level elements. Where repair is needed, the emitter gives
/// the names of its contract. Well-formed reasoning (`<think>` and the like) needs repair, too, and so does markup in a string
/// (`<answer>The <b>answer</b></answer>`, `<answer><?php ?></answer>`), which is text whether or not something else is wrong with the emission.
///
/// # Errors
/// [`LadderError`] if the bytes can't be repaired or are over a limit: an emission fails whole.
pub fn parse_fragment(raw: &Raw, limits: &XmlLimits, emitter: &impl Emitter) -> Result<Fragment, LadderError> {
    let (mut elements, repaired) = fragment(raw, limits, emitter)?;
    let repairs = repaired.into_parts().1;
    if !repairs.is_empty() {
        let shared: Arc<[Repair]> = repairs.as_slice().into();
        elements = elements.into_iter().map(|element| element.with_repairs(shared.clone())).collect();
    }
    Ok(Fragment { elements, repairs })
}

/// The bytes that [`parse`] or [`parse_fragment`] reads, before they are canonical: the input, if nothing is repaired.
///
/// # Errors
/// As these.
pub fn mend(raw: &Raw, shape: Shape, limits: &XmlLimits, emitter: &impl Emitter) -> Result<Repaired, LadderError> {
    match shape {
        Shape::Document => document(raw, limits, || emitter.vocabulary()).map(|(_, repaired)| repaired),
        Shape::Fragment => fragment(raw, limits, emitter).map(|(_, repaired)| repaired),
    }
}

fn document(
    raw: &Raw,
    limits: &XmlLimits,
    vocabulary: impl FnOnce() -> Vocabulary,
) -> Result<(Canonical, Repaired), LadderError> {
    strict_first(raw, Shape::Document, limits, vocabulary, canonicalize, |_| true)
}

fn fragment(raw: &Raw, limits: &XmlLimits, emitter: &impl Emitter) -> Result<(Vec<Canonical>, Repaired), LadderError> {
    // Comments and instructions may mark elements as thoughts, comments between elements may take one back, and one may hold the
    // only element: well-formed, but not to be sent.
    let has_comments = memchr::memmem::find(raw.bytes(), b"<!--").is_some();
    let has_instructions = memchr::memmem::find(raw.bytes(), b"<?").is_some();
    let marks_thoughts = (has_comments || has_instructions) && marks_thoughts(raw.bytes());
    let needs_repair = |element: &Canonical| {
        // The canonical form keeps instructions; in a string they are text.
        if marks_thoughts || memchr::memmem::find(element.bytes(), b"<?").is_some() {
            return true;
        }
        let known = emitter.vocabulary_of(element.root());
        let local = element.root().local();
        is_thought(local) || is_wrapper(local) || known.is_some_and(|known| quotes_markup(element, known))
    };
    let is_done =
        |elements: &Vec<Canonical>| !(has_comments && elements.len() != 1 || elements.iter().any(needs_repair));
    strict_first(raw, Shape::Fragment, limits, || emitter.vocabulary(), canonicalize_fragment, is_done)
}

/// The top-level elements of an emission, in order, and the changes of repair.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// The elements. Each carries the repairs of the whole emission.
    pub elements: Vec<Canonical>,
    /// The changes that repair made; there can be some without any element left.
    pub repairs: Vec<Repair>,
}

/// The reason why bytes are no canonical XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LadderError {
    /// The strict pass refused for a limit: repair wasn't tried.
    #[error(transparent)]
    Strict(#[from] StrictError),
    /// Repair refused.
    #[error(transparent)]
    Repair(#[from] RepairError),
    /// The strict pass refused the repaired bytes.
    #[error("{input}; after repair: {repaired}")]
    Beyond {
        /// The error in the input, with its place there.
        input: StrictError,
        /// The error that was left after repair, with its place in the repaired bytes.
        repaired: StrictError,
    },
}

impl LadderError {
    /// The place in the input, if there is one.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Strict(error) | Self::Beyond { input: error, .. } => Some(error.position()),
            Self::Repair(error) => Some(error.position()),
        }
    }

    /// Returns whether the input passes a limit, rather than breaks a rule of XML.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Strict(error) | Self::Beyond { repaired: error, .. } => error.is_limit(),
            Self::Repair(error) => error.is_limit(),
        }
    }
}

/// Runs the strict pass; only where it refuses, or its output is not `is_done`, repair and then the strict pass again.
fn strict_first<T>(
    raw: &Raw,
    shape: Shape,
    limits: &XmlLimits,
    vocabulary: impl FnOnce() -> Vocabulary,
    strict: impl Fn(&Bytes, &XmlLimits) -> Result<T, StrictError>,
    is_done: impl FnOnce(&T) -> bool,
) -> Result<(T, Repaired), LadderError> {
    let first = match strict(raw.bytes(), limits) {
        Ok(clean) if is_done(&clean) => return Ok((clean, Repaired::unchanged(raw))),
        Err(error) if error.is_limit() => return Err(error.into()),
        first => first,
    };
    match (repair_by(&vocabulary(), raw, shape, limits), first) {
        (Ok(repaired), first) => match (strict(repaired.bytes(), limits), first) {
            (Ok(clean), _) => Ok((clean, repaired)),
            (Err(_), Ok(clean)) => Ok((clean, Repaired::unchanged(raw))),
            (Err(repaired), Err(input)) => Err(LadderError::Beyond { input, repaired }),
        },
        // What it holds may be a draft.
        (Err(error), _) if error.is_draft() => Err(error.into()),
        (Err(_), Ok(clean)) => Ok((clean, Repaired::unchanged(raw))),
        (Err(error), Err(_)) => Err(error.into()),
    }
}

/// Returns whether an element that may hold any text, and nothing else, holds elements that nothing declares: markup that
/// its author means as text.
fn quotes_markup(document: &Canonical, known: &Vocabulary) -> bool {
    document.read(|mut cursor| {
        // The name of each open element; whether it is a string is looked up once it has a child.
        let mut open: Vec<(&str, Option<bool>)> = Vec::new();
        loop {
            let Some(child) = cursor.child().map(|tag| tag.local()) else {
                if open.pop().is_none() {
                    return false;
                }
                cursor.leave();
                continue;
            };
            if let Some((name, is_string)) = open.last_mut()
                && *is_string.get_or_insert_with(|| known.is_string(name))
                && !known.knows(child)
            {
                return true;
            }
            cursor.enter();
            open.push((child, None));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::strict::StrictErrorKind;

    #[test]
    fn clean_input_is_not_repaired() {
        let canonical = parse(&Raw::new("<a/>"), &XmlLimits::default()).unwrap();
        assert_eq!(canonical.as_str(), "<a></a>");
        assert!(canonical.repairs().is_empty());
        let fragment = parse_fragment(&Raw::new("<a/> <b/>"), &XmlLimits::default(), &Vocabulary::default()).unwrap();
        assert_eq!(fragment.elements.len(), 2);
        assert!(fragment.repairs.is_empty());
    }

    #[test]
    fn closed_reasoning_goes_where_the_contract_does_not_declare_it() {
        let contract = |declared: &[&str]| {
            let mut vocabulary = Vocabulary::default();
            declared.iter().for_each(|name| vocabulary.declare(name, true, false));
            vocabulary
        };
        let roots = |text: &'static str, declared: &[&str]| {
            let fragment = parse_fragment(&Raw::new(text), &XmlLimits::default(), &contract(declared)).unwrap();
            let roots: Vec<String> = fragment.elements.iter().map(|element| element.as_str().to_owned()).collect();
            let repairs: Vec<String> =
                fragment.repairs.iter().map(|repair| format!("{} {}", repair.at, repair.kind)).collect();
            (roots.join(""), repairs.join(", "))
        };
        let answer = "<a>x</a>".to_owned();
        for text in [
            "<think>ok</think><a>x</a>",
            "<think>I write <a>, then </b> & 1 < 2.</think>\n<a>x</a>",
            "<Thinking>An <a>y</a>?</Thinking> <a>x</a>",
            "<think/><a>x</a>",
            "<think/>Well, <a>y</a></think><a>x</a>",
            "<think mode=deep>ok</THINK><a>x</a>",
        ] {
            assert_eq!(roots(text, &["a"]), (answer.clone(), "1:1 thought".to_owned()), "{text}");
        }
        assert_eq!(roots("<think>ok</think>", &["a"]), (String::new(), "1:1 thought".to_owned()));
        let kept = "<think>ok</think><a>x</a>";
        assert_eq!(roots(kept, &["a", "think"]), (kept.to_owned(), String::new()), "a payload of the contract");
        assert_eq!(roots(kept, &[]), (kept.to_owned(), String::new()), "nothing is known");
    }

    #[test]
    fn markup_in_a_string_is_text_in_clean_and_dirty_input_alike() {
        let mut contract = Vocabulary::default();
        contract.declare("answer", true, false);
        contract.describe("answer", true, []);
        contract.place("list", "answer", true);
        contract.declare("mixed", true, false);
        let read = |text: &str| {
            let fragment = parse_fragment(&Raw::new(text.to_owned()), &XmlLimits::default(), &contract).unwrap();
            fragment.elements.iter().map(|element| element.as_str().to_owned()).collect::<String>()
        };
        let markup = "The <b>answer</b> is <i/> 42, &lt;b>";
        let meant = "The &lt;b&gt;answer&lt;/b&gt; is &lt;i/&gt; 42, &amp;lt;b&gt;";
        for (before, behind) in [("<answer>", "</answer>"), ("<list><answer>", "</answer></list>")] {
            assert_eq!(read(&format!("{before}{markup}{behind}")), format!("{before}{meant}{behind}"));
            assert_eq!(read(&format!("{before}{markup} & x{behind}")), format!("{before}{meant} &amp; x{behind}"));
        }
        let instruction = "<?php echo 1; ?>";
        let meant = "&lt;?php echo 1; ?&gt;";
        assert_eq!(read(&format!("<answer>{instruction}</answer>")), format!("<answer>{meant}</answer>"));
        assert_eq!(read(&format!("<answer>{instruction} & x</answer>")), format!("<answer>{meant} &amp; x</answer>"));
        for clean in [
            "<mixed>a <?b c?></mixed>",
            "<answer>a &lt;b&gt; &amp; c</answer>",
            "<list><answer>a</answer><answer></answer></list>",
            "<mixed>a <b>c</b></mixed>",
            "<other><b>c</b></other>",
            // An element of the contract is one: validation refuses it.
            "<answer>a <list></list></answer>",
        ] {
            assert_eq!(read(clean), clean);
        }
    }

    #[test]
    fn comments_and_instructions_mark_thoughts_in_clean_input_as_well() {
        let read = |text: &'static str| {
            let fragment = parse_fragment(&Raw::new(text), &XmlLimits::default(), &Vocabulary::default());
            fragment.map(|found| found.elements.iter().map(|element| element.as_str().to_owned()).collect::<String>())
        };
        assert_eq!(read("<!-- thinking --><a/><!-- end of thinking --><b/>"), Ok("<b></b>".to_owned()));
        assert!(matches!(read("<!-- thinking --><a/>"), Err(LadderError::Repair(RepairError::BehindThought { .. }))));
        assert!(matches!(read("<?thinking?><a/>"), Err(LadderError::Repair(_))));
        assert!(matches!(read("<!-- <a/> -->"), Err(LadderError::Repair(RepairError::Draft { .. }))));
        assert_eq!(read("<!-- the total --><a/>"), Ok("<a></a>".to_owned()));
        assert_eq!(read("<!-- 1. --><a/><!-- 2. --><a/>"), Ok("<a></a><a></a>".to_owned()));
        for text in ["<a/><!-- no, rather --><b/>", "<a/> <!-- wrong -->\n<b/>"] {
            assert!(matches!(read(text), Err(LadderError::Repair(RepairError::Between { .. }))), "{text}");
        }
    }

    #[test]
    fn what_passes_a_limit_is_not_repaired() {
        let limits = XmlLimits { depth: 2, ..XmlLimits::default() };
        let error = parse(&Raw::new("<a><b><c/></b></a>"), &limits).unwrap_err();
        assert!(error.is_limit());
        assert_eq!(error.position(), Some(Position { line: 1, column: 7 }));
        assert!(matches!(error, LadderError::Strict(inner) if *inner.kind() == StrictErrorKind::TooDeep { limit: 2 }));
    }
}
