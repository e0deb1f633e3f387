//! Checks of texts before they are taken.

use systole_xml::ladder::escape::uncarriable;

use super::context::TaskContext;
use super::error::{Field, InboxError, InboxProblem};
use super::limits::InboxLimits;
use crate::vocab::{Name, NameError};

/// A name.
pub(super) fn name(field: Field, text: &str) -> Result<Name, InboxError> {
    Name::parse(text).map_err(|error| match error {
        NameError::Empty => InboxError::Empty { field },
        error => InboxError::Name { field, error },
    })
}

/// A text that may be empty; its bytes in XML.
pub(super) fn text(field: Field, text: &str, limit: usize) -> Result<usize, InboxError> {
    if let Some(character) = uncarriable(text) {
        let at = text.find(character).unwrap_or_default();
        return Err(InboxError::Character { field, character, at });
    }
    within(field, cost(text), limit)
}

/// Checks a text that may not be blank; returns its bytes in XML.
pub(super) fn said(field: Field, text: &str, limit: usize) -> Result<usize, InboxError> {
    if text.trim().is_empty() {
        return Err(InboxError::Empty { field });
    }
    self::text(field, text, limit)
}

/// A length; itself.
pub(super) fn within(field: Field, bytes: usize, limit: usize) -> Result<usize, InboxError> {
    if bytes > limit { Err(InboxError::TooLong { field, bytes, limit }) } else { Ok(bytes) }
}

/// A context; its bytes in XML.
pub(super) fn context(context: &TaskContext, limits: &InboxLimits) -> Result<usize, InboxError> {
    let entries = match context {
        TaskContext::None => return Ok(0),
        TaskContext::Xml(xml) => return within(Field::Context, xml.as_str().len(), limits.context_bytes),
        TaskContext::Entries(entries) => entries,
    };
    if entries.len() > limits.entries {
        return Err(InboxError::TooMany { field: Field::ContextKey, limit: limits.entries });
    }
    let (mut keys, mut bytes) = (std::collections::HashSet::new(), 0);
    for entry in entries {
        bytes += said(Field::ContextKey, &entry.key, limits.key_bytes)?;
        bytes += text(Field::ContextValue, &entry.value, limits.context_bytes)?;
        if !keys.insert(entry.key.as_str()) {
            return Err(InboxProblem::KeyTwice { key: entry.key.clone() }.into());
        }
    }
    within(Field::Context, bytes, limits.context_bytes)
}

/// The bytes of a text as it stands in XML.
pub(super) fn cost(text: &str) -> usize {
    let more = text.bytes().map(|byte| match byte {
        b'&' | b'\r' => 4,
        b'<' | b'>' => 3,
        b'"' => 5,
        _ => 0,
    });
    text.len() + more.sum::<usize>()
}
