//! The strict pass: bytes to [`Canonical`], or an error that says where and which rule.
//!
//! One pass over the bytes checks XML 1.0 (5th edition) without document type declarations and
//! Namespaces in XML 1.0, keeps to the limits, and writes Exclusive XML Canonicalization 1.0
//! byte for byte. Input that is canonical already is shared, not copied.
//!
//! What always holds: time and memory are linear in the input (sorting the attributes of one tag
//! apart), nothing recurses, and the output passes the strict pass again, unchanged.
//!
//! What it does not do: repair anything, know any entity but the five, or resolve anything.
//! `xml:*` attributes stay where they are written, as exclusive canonicalization has it.

mod chars;
mod declaration;
mod error;
mod escape;
mod locate;
mod pass;
mod render;
mod room;
mod scope;
mod tag;
mod writer;

use bytes::Bytes;

pub(crate) use chars::{is_xml_char, may_hold_forbidden};
pub(in crate::ladder) use error::excerpt;
pub use error::{StrictError, StrictErrorKind, Token};
pub(crate) use escape::{push_text, push_value};
pub(crate) use locate::{attribute_offset, content_offset, element_offset};
use pass::{Goal, Pass, Root};
use room::Room;
pub(in crate::ladder) use scope::has_scheme;
use writer::Piece;

use super::canonical::{Canonical, Origin};
use super::known::known_name;
use super::subtree::Subtree;
use crate::vocab::XmlLimits;

/// Reads one document and makes its element canonical. Comments and what stands around the
/// element are checked and dropped; instructions inside of it stay.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub fn canonicalize(input: &Bytes, limits: &XmlLimits) -> Result<Canonical, StrictError> {
    Room::lend(|room| {
        let mut pass = Pass::new(input, Goal::Element, false, limits, room)?;
        pass.run()?;
        let root = pass.roots.pop().expect("a pass without error has read one element");
        let origin = Origin::new(input.clone(), root.first);
        Ok(finish(&mut pass, root, input, origin))
    })
}

/// Reads any number of top-level elements with nothing but white space, comments and
/// instructions between them, and makes each canonical by itself.
///
/// The limit on bytes is for all of them together.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub fn canonicalize_fragment(input: &Bytes, limits: &XmlLimits) -> Result<Vec<Canonical>, StrictError> {
    Room::lend(|room| {
        let mut pass = Pass::new(input, Goal::Fragment, false, limits, room)?;
        pass.run()?;
        let roots = std::mem::take(pass.roots);
        let element = |root: Root| {
            let origin = Origin::new(input.clone(), root.first);
            // The tape is that of the last one.
            finish(&mut pass, root, input, origin)
        };
        Ok(roots.into_iter().map(element).collect())
    })
}

/// Exclusive XML Canonicalization 1.0 of a whole document, with the instructions around its
/// element and, if `comments`, with all comments.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub fn c14n(input: &[u8], comments: bool, limits: &XmlLimits) -> Result<Vec<u8>, StrictError> {
    Room::lend(|room| {
        let mut pass = Pass::new(input, Goal::Document, comments, limits, room)?;
        pass.run()?;
        Ok(written(&mut pass))
    })
}

/// Exclusive XML Canonicalization 1.0 of one element: the `index`-th start tag, in document order, from 0.
/// `None` if there are fewer.
///
/// The whole document is checked, so two passes are made.
///
/// # Errors
/// [`StrictError`] if the bytes of the document break a rule of XML or pass a limit. That the subtree passes a limit,
/// because it declares what its ancestors declared, is told by its place in the canonical form.
pub fn c14n_subtree(
    input: &[u8],
    index: usize,
    comments: bool,
    limits: &XmlLimits,
) -> Result<Option<Vec<u8>>, StrictError> {
    let whole = c14n(input, comments, limits)?;
    let text = std::str::from_utf8(&whole).expect("the input was checked to be UTF-8");
    let Some(found) = Subtree::find(text, index) else { return Ok(None) };
    let apex = &whole[found.range.clone()];
    let declared = found.declared();
    Room::lend(|room| {
        let mut pass = Pass::new(apex, Goal::Document, comments, limits, room)?;
        declared.iter().for_each(|&(prefix, uri)| pass.scope.inherit(prefix, uri));
        pass.run()?;
        Ok(Some(written(&mut pass)))
    })
}

/// What surrounds an element that is read or written apart from its ancestors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Surroundings<'a> {
    /// Prefix and namespace name of the declarations in scope where it is read.
    pub(super) declared: &'a [(&'a str, &'a str)],
    /// Prefix and namespace name of what its ancestors have rendered where it is written.
    pub(super) rendered: &'a [(&'a str, &'a str)],
}

/// The canonical form of one element out of, or for, a place inside of a document. Positions are
/// those of `origin`.
///
/// # Errors
/// [`StrictError`] if the bytes break a rule of XML or pass a limit.
pub(super) fn canonicalize_in(
    input: &Bytes,
    surroundings: Surroundings,
    origin: Origin,
    limits: &XmlLimits,
) -> Result<Canonical, StrictError> {
    Room::lend(|room| {
        let mut pass = Pass::new(input, Goal::Element, false, limits, room)?;
        for &(prefix, uri) in surroundings.declared {
            pass.scope.inherit(prefix, uri);
        }
        for &(prefix, uri) in surroundings.rendered {
            pass.scope.inherit_rendered(prefix, uri);
        }
        pass.run()?;
        let root = pass.roots.pop().expect("a pass without error has read one element");
        Ok(finish(&mut pass, root, input, origin))
    })
}

/// A finished element, and its tape.
fn finish(pass: &mut Pass, root: Root, input: &Bytes, origin: Origin) -> Canonical {
    let bytes = match root.piece {
        Piece::Source(range) => input.slice(range),
        Piece::Written(bytes) => bytes,
    };
    let namespace =
        std::str::from_utf8(pass.scope.uri_name(root.namespace)).expect("the input was checked to be UTF-8");
    let canonical = Canonical::checked(bytes, known_name(namespace, &pass.text[root.local]), origin);
    pass.tape.belong_to(&canonical);
    canonical
}

fn written(pass: &mut Pass) -> Vec<u8> {
    match pass.writer.take() {
        Piece::Source(range) => pass.src[range].to_vec(),
        Piece::Written(bytes) => bytes.into(),
    }
}

/// The length of the byte order mark, which is no part of the document.
pub(crate) fn mark_len(input: &[u8]) -> usize {
    if input.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 }
}
