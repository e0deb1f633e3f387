//! The parser of raw bytes: the strict pass first, repair only if it refuses.

use std::sync::Arc;

use super::repair::{Shape, Vocabulary, repair_by};
use super::strict::{canonicalize, canonicalize_fragment};
use super::{Canonical, Raw, Repair, RepairError, StrictError};
use crate::vocab::{Position, XmlLimits};

/// Parses one document: the strict pass first; only if it refuses, repair and then the strict pass again.
///
/// Input past a limit isn't repaired.
///
/// # Errors
/// [`LadderError`] if the bytes can't be repaired or are over a limit.
pub fn climb(raw: &Raw, limits: &XmlLimits) -> Result<Canonical, LadderError> {
    let (canonical, repairs) = strict_first(raw, Shape::Document, limits, Vocabulary::default, canonicalize)?;
    Ok(if repairs.is_empty() { canonical } else { canonical.with_repairs(repairs) })
}

/// Parses an emission of a listener: any number of top-level elements. If repair is needed, `vocabulary` gives it the
/// names of the listener's contract.
///
/// # Errors
/// [`LadderError`] if the bytes can't be repaired or are over a limit: an emission fails whole.
pub fn climb_fragment(
    raw: &Raw,
    limits: &XmlLimits,
    vocabulary: impl FnOnce() -> Vocabulary,
) -> Result<Fragment, LadderError> {
    let (mut elements, repairs) = strict_first(raw, Shape::Fragment, limits, vocabulary, canonicalize_fragment)?;
    if !repairs.is_empty() {
        let shared: Arc<[Repair]> = repairs.as_slice().into();
        elements = elements.into_iter().map(|element| element.with_repairs(shared.clone())).collect();
    }
    Ok(Fragment { elements, repairs })
}

/// The top-level elements of an emission, in order, and what repair changed.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// The elements. Each carries the repairs of the whole emission.
    pub elements: Vec<Canonical>,
    /// The changes that repair made; there can be some without any element left.
    pub repairs: Vec<Repair>,
}

/// The reason why bytes are no canonical XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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

    /// Tells whether the input passes a limit, rather than breaks a rule of XML.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Strict(error) | Self::Beyond { repaired: error, .. } => error.is_limit(),
            Self::Repair(error) => error.is_limit(),
        }
    }
}

fn strict_first<T>(
    raw: &Raw,
    shape: Shape,
    limits: &XmlLimits,
    vocabulary: impl FnOnce() -> Vocabulary,
    strict: impl Fn(&bytes::Bytes, &XmlLimits) -> Result<T, StrictError>,
) -> Result<(T, Vec<Repair>), LadderError> {
    let input = match strict(raw.bytes(), limits) {
        Ok(clean) => return Ok((clean, Vec::new())),
        Err(error) if error.is_limit() => return Err(error.into()),
        Err(error) => error,
    };
    let (bytes, repairs) = repair_by(&vocabulary(), raw, shape, limits)?.into_parts();
    match strict(&bytes, limits) {
        Ok(clean) => Ok((clean, repairs)),
        Err(repaired) => Err(LadderError::Beyond { input, repaired }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::strict::StrictErrorKind;

    #[test]
    fn clean_input_is_not_repaired() {
        let canonical = climb(&Raw::new("<a/>"), &XmlLimits::default()).unwrap();
        assert_eq!(canonical.as_str(), "<a></a>");
        assert!(canonical.repairs().is_empty());
        let fragment = climb_fragment(&Raw::new("<a/> <b/>"), &XmlLimits::default(), Vocabulary::default).unwrap();
        assert_eq!(fragment.elements.len(), 2);
        assert!(fragment.repairs.is_empty());
    }

    #[test]
    fn what_passes_a_limit_is_not_repaired() {
        let limits = XmlLimits { depth: 2, ..XmlLimits::default() };
        let error = climb(&Raw::new("<a><b><c/></b></a>"), &limits).unwrap_err();
        assert!(error.is_limit());
        assert_eq!(error.position(), Some(Position { line: 1, column: 7 }));
        assert!(matches!(error, LadderError::Strict(inner) if *inner.kind() == StrictErrorKind::TooDeep { limit: 2 }));
    }
}
