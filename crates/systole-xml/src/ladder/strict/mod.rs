//! The strict pass: bytes to [`Canonical`], or an error with the place and the rule.
//!
//! One pass over the bytes checks XML 1.0 (5th edition) without document type declarations and
//! Namespaces in XML 1.0, enforces the limits, and writes Exclusive XML Canonicalization 1.0
//! byte for byte. Input that is already canonical is shared, not copied.
//!
//! The elements of messages keep more than plain exclusive canonicalization does: the declarations of prefixes
//! that stand before a colon in a value, as in `xsi:type="p:T"`, so that such values keep their meaning. In the terms
//! of the standard, the InclusiveNamespaces PrefixList of an element holds the prefixes that are declared around or
//! inside of it and stand before a colon in one of its attribute values or texts. This takes no schema, and a schema
//! changes nothing of it. A QName without a prefix, in a default namespace that no name uses, isn't recognized.
//!
//! Time and memory are linear in the input (except for sorting the attributes of one tag),
//! nothing recurses, and the output passes the strict pass again, unchanged.
//!
//! The pass does *not* repair anything, accept entities other than the five of XML, or resolve anything.
//! `xml:*` attributes stay where they are written, as in exclusive canonicalization.

mod canonical;
mod declaration;
mod error;
mod escape;
mod locate;
mod pass;
mod pool;
mod render;
mod root;
mod scope;
mod scratch;
mod subtree;
mod tag;
mod values;
mod writer;

use std::str::Utf8Error;

use bytes::Bytes;
use bytestring::ByteString;

use canonical::Origin;
pub use canonical::{Canonical, Part};
pub use error::{CutToken, StrictError, StrictErrorKind};
pub(crate) use escape::{push_text, push_value};
pub(crate) use locate::{attribute_offset, content_offset, element_offset};
use pass::{Goal, Pass, Root, check_size};
pub(in crate::ladder) use pool::Loan;
pub use root::root_of;
use scratch::Scratch;
use subtree::Subtree;
use writer::Piece;

use super::known::known_name;
use crate::vocab::XmlLimits;

/// Parses one document and returns its element in canonical form. Comments, and all that stands around the
/// element, are checked and dropped; instructions inside of it stay.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub fn canonicalize(input: &Bytes, limits: &XmlLimits) -> Result<Canonical, StrictError> {
    let text = utf8(input, limits)?;
    canonicalize_one(&text, Surroundings::default(), |root| Origin::new(input.clone(), root.first), limits)
}

/// Parses any number of top-level elements with only white space, comments and
/// instructions between them, and returns each in canonical form.
///
/// The limit on bytes counts for all of them together.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub fn canonicalize_fragment(input: &Bytes, limits: &XmlLimits) -> Result<Vec<Canonical>, StrictError> {
    let text = utf8(input, limits)?;
    let mut elements = Vec::new();
    let origin = |root: &Root| Origin::new(input.clone(), root.first);
    read(&text, Goal::Fragment, Surroundings::default(), origin, |element| elements.push(element), limits)?;
    Ok(elements)
}

/// Options of the canonical form.
#[derive(Debug, Clone, Copy, Default)]
pub struct CanonicalOptions<'a> {
    /// Keeps comments.
    pub comments: bool,
    /// The InclusiveNamespaces PrefixList (Exclusive XML Canonicalization 1.0, section 3): prefixes whose declarations
    /// stay whether or not a name uses them; `#default` stands for the default namespace.
    pub prefixes: &'a [&'a str],
}

/// Writes Exclusive XML Canonicalization 1.0 of a whole document, with the instructions around its
/// element.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub fn c14n(input: &[u8], form: CanonicalOptions, limits: &XmlLimits) -> Result<Vec<u8>, StrictError> {
    check_size(input, limits)?;
    let text = std::str::from_utf8(input).map_err(|error| not_utf8(error, input))?;
    document(text, form, &[], limits)
}

/// Writes Exclusive XML Canonicalization 1.0 of one element: the `index`-th start tag, in document order, from 0.
/// Returns `None` if there are fewer.
///
/// Checks the whole document, so it takes two passes.
///
/// # Errors
/// [`StrictError`] if the bytes of the document break a rule of XML or pass a limit. If the subtree passes a limit
/// because of the declarations of its ancestors, the place of the error is one in the canonical form.
pub fn c14n_subtree(
    input: &[u8],
    index: usize,
    form: CanonicalOptions,
    limits: &XmlLimits,
) -> Result<Option<Vec<u8>>, StrictError> {
    let whole = String::from_utf8(c14n(input, form, limits)?).expect("what is written is UTF-8");
    let Some(found) = Subtree::find(&whole, index) else { return Ok(None) };
    document(&whole[found.range.clone()], form, &found.declared(), limits).map(Some)
}

fn document(
    input: &str,
    form: CanonicalOptions,
    declared: &[(&str, &str)],
    limits: &XmlLimits,
) -> Result<Vec<u8>, StrictError> {
    let lists = [form.prefixes.to_vec()];
    Scratch::lend(|scratch| {
        let mut tape = Loan::blank();
        let mut pass = Pass::new(input, Goal::Document, form.comments, &lists, limits, scratch, &mut tape)?;
        declared.iter().for_each(|&(prefix, uri)| pass.scope.inherit(prefix, uri));
        pass.run()?;
        Ok(match pass.writer.take() {
            Piece::Source(range) => pass.src[range].to_vec(),
            Piece::Written(text) => text.into_bytes().into(),
        })
    })
}

/// The surroundings of an element that is read or written apart from its ancestors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Surroundings<'a> {
    /// Prefix and namespace name of the declarations in scope at the place where it is read.
    pub(super) declared: &'a [(&'a str, &'a str)],
    /// Prefix and namespace name of those that its ancestors have rendered at the place where it is written.
    pub(super) rendered: &'a [(&'a str, &'a str)],
}

/// The canonical form of one element that comes from, or goes to, a place inside of a document. Positions are
/// those of `origin`.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub(super) fn canonicalize_in(
    input: &ByteString,
    surroundings: Surroundings,
    origin: Origin,
    limits: &XmlLimits,
) -> Result<Canonical, StrictError> {
    canonicalize_one(input, surroundings, |_| origin.clone(), limits)
}

fn canonicalize_one(
    input: &ByteString,
    surroundings: Surroundings,
    origin: impl Fn(&Root) -> Origin,
    limits: &XmlLimits,
) -> Result<Canonical, StrictError> {
    let mut only = None;
    read(input, Goal::Element, surroundings, origin, |element| only = Some(element), limits)?;
    Ok(only.expect("a pass without error has read one element"))
}

/// The input as text. Slices of it need no second check.
fn utf8(input: &Bytes, limits: &XmlLimits) -> Result<ByteString, StrictError> {
    check_size(input, limits)?;
    ByteString::try_from(input.clone()).map_err(|error| not_utf8(error, input))
}

fn not_utf8(error: Utf8Error, input: &[u8]) -> StrictError {
    StrictError::new(StrictErrorKind::NotUtf8, input, error.valid_up_to())
}

/// Calls `found` with the top-level elements of the input. If values use prefixes whose declarations the first pass
/// left out, a second pass keeps these.
fn read(
    input: &ByteString,
    goal: Goal,
    surroundings: Surroundings,
    origin: impl Fn(&Root) -> Origin,
    mut found: impl FnMut(Canonical),
    limits: &XmlLimits,
) -> Result<(), StrictError> {
    let left_out = read_with(&[], input, goal, surroundings, &origin, &mut found, limits)?;
    if left_out.is_empty() {
        return Ok(());
    }
    let lists: Vec<Vec<&str>> = left_out.iter().map(|list| list.iter().map(|prefix| &**prefix).collect()).collect();
    read_with(&lists, input, goal, surroundings, &origin, &mut found, limits)?;
    Ok(())
}

/// Makes one pass, with a prefix list for each top-level element. If `lists` is empty and prefixes that values use were
/// left out, finds nothing and returns the lists for the next pass.
fn read_with(
    lists: &[Vec<&str>],
    input: &ByteString,
    goal: Goal,
    surroundings: Surroundings,
    origin: &impl Fn(&Root) -> Origin,
    found: &mut impl FnMut(Canonical),
    limits: &XmlLimits,
) -> Result<Vec<Vec<Box<str>>>, StrictError> {
    Scratch::lend(|scratch| {
        let mut tape = Loan::blank();
        let mut pass = Pass::new(input, goal, false, lists, limits, scratch, &mut tape)?;
        for &(prefix, uri) in surroundings.declared {
            pass.scope.inherit(prefix, uri);
        }
        for &(prefix, uri) in surroundings.rendered {
            pass.scope.inherit_rendered(prefix, uri);
        }
        pass.run()?;
        if lists.is_empty() && pass.colons {
            let lists: Vec<_> = pass.roots.iter().map(|root| values::prefixes(root.text(input), pass.scope)).collect();
            if lists.iter().any(|list| !list.is_empty()) {
                return Ok(lists);
            }
        }
        // The scratch space keeps the memory of the list.
        let mut roots = std::mem::take(pass.roots);
        let mut last = None;
        for (number, root) in roots.drain(..).enumerate() {
            let keeps = lists.get(number).is_some_and(|list| !list.is_empty());
            let origin = origin(&root);
            let element = finish(&pass, root, keeps, input, origin);
            last = Some(element.identity());
            found(element);
        }
        *pass.roots = roots;
        std::mem::swap(pass.tape.uris_mut(), pass.scope.uris_mut());
        // The tape is that of the last element.
        tape.belong_to(last);
        Ok(Vec::new())
    })
}

/// A finished element.
fn finish(pass: &Pass, root: Root, keeps: bool, input: &ByteString, origin: Origin) -> Canonical {
    let text = match root.piece {
        Piece::Source(range) => input.slice_ref(&input[range]),
        Piece::Written(text) => text,
    };
    let namespace = pass.scope.uri_name(root.namespace);
    Canonical::checked(text, known_name(namespace, &pass.text[root.local]), origin, keeps)
}

/// The length of the byte order mark, which is no part of the document.
pub(crate) fn mark_len(input: &[u8]) -> usize {
    if input.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 }
}
