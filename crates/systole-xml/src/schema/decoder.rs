//! Decoders of validated payloads: one for a Rust type, and one for the undecoded payload of an `.xsd` contract.

use std::any::Any;
use std::sync::Arc;

use super::Payload;
use super::decode::{DecodeError, decode_canonical};
use super::validator::{Element, Validated};

/// A decoded value of a type that only the listener's handler knows.
pub type Decoded = Box<dyn Any + Send>;

/// The decoder of one listener, which alone knows the type.
pub type DecodeFn = Arc<dyn Fn(&Validated<Element>) -> Result<Decoded, DecodeError> + Send + Sync>;

/// The decoder of a Rust type: the [`Decoded`] is a `T`.
pub fn decoder<T: Payload>() -> DecodeFn {
    Arc::new(|payload| decode::<T>(payload).map(|value| Box::new(value) as Decoded))
}

/// The decoder of an `.xsd` contract: the [`Decoded`] is an [`Element`] with the canonical payload.
pub fn element_decoder() -> DecodeFn {
    Arc::new(|payload| Ok(Box::new(payload.value().clone())))
}

/// Decodes a payload whose schema is that of the type.
///
/// # Errors
/// [`DecodeError`] if the type refuses a value that its schema allows: a number in a form that Rust
/// doesn't read, or one that breaks a rule of a `Deserialize` written by hand.
pub fn decode<T: Payload>(payload: &Validated<Element>) -> Result<T, DecodeError> {
    decode_canonical(payload.payload())
}
