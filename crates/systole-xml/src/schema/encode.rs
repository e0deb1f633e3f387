//! Encoding of payloads.

use super::{EncodeError, Payload};
use crate::ladder::Canonical;
use crate::ladder::encode::encode_as;

/// Encodes a value as the canonical element of its type.
///
/// # Errors
/// [`EncodeError`] names the field. If the type was accepted as a contract, only a
/// character that XML can't carry, or the depth, makes a value fail.
pub fn encode<T: Payload>(value: &T) -> Result<Canonical, EncodeError> {
    encode_as(value, T::NAMESPACE, T::ROOT, T::qname())
}

#[cfg(test)]
mod tests;
