//! Payloads on their way out of handlers.

use super::{EncodeError, Payload, encode};
use crate::ladder::{Canonical, EnvelopeError};
use crate::schema::{Element, Validated};

/// A payload on its way out of a handler.
#[derive(Debug, Clone)]
pub enum Draft {
    /// A payload that is not validated yet.
    Canonical(Canonical),
    /// A payload from a delivery, whose proof still holds.
    Proved(Validated<Element>),
    /// A value that has no XML form.
    Unencodable(EncodeError),
    /// A `<message>` that is no envelope.
    NoEnvelope(EnvelopeError),
}

impl Draft {
    /// The payload, if there is one.
    pub fn into_payload(self) -> Option<Canonical> {
        match self {
            Self::Canonical(payload) => Some(payload),
            Self::Proved(payload) => Some(payload.payload().clone()),
            Self::Unencodable(_) | Self::NoEnvelope(_) => None,
        }
    }
}

/// A payload to emit: a typed value, canonical XML, or a payload that was validated before (its proof still holds).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no payload",
    label = "no payload",
    note = "derive it: `#[derive(Serialize, Deserialize, JsonSchema, Payload)]` with `#[payload(namespace = \"urn:…\")]`"
)]
pub trait IntoDraft {
    /// The payload as a draft for the core.
    fn into_draft(self) -> Draft;
}

impl<T: Payload> IntoDraft for T {
    fn into_draft(self) -> Draft {
        match encode(&self) {
            Ok(canonical) => Draft::Canonical(canonical),
            Err(error) => Draft::Unencodable(error),
        }
    }
}

impl IntoDraft for Draft {
    fn into_draft(self) -> Draft {
        self
    }
}

impl IntoDraft for Canonical {
    fn into_draft(self) -> Draft {
        Draft::Canonical(self)
    }
}

impl IntoDraft for Validated<Element> {
    fn into_draft(self) -> Draft {
        Draft::Proved(self)
    }
}

/// A type that is delivered as a validated payload: every payload type, and elements without a Rust type; no fault.
pub trait Proven: sealed::Sealed {}

impl<T: Payload> Proven for T {}
impl Proven for Element {}

mod sealed {
    use super::{Element, Payload};

    pub trait Sealed {}
    impl<T: Payload> Sealed for T {}
    impl Sealed for Element {}
}
