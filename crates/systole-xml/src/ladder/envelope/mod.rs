//! The third rung: canonical XML that keeps `schemas/envelope.xsd`, with its `<meta>` parsed and its
//! payload as a canonical document of its own.
//!
//! The reader is written by hand over canonical bytes. It refuses exactly what the schema refuses, except in Systole's
//! metadata (`urn:systole:meta:v1`), where it is stricter: text only, each element at most once, and a deadline that is
//! a time. Nothing here trusts the claims of `<meta>`.

mod claim;
mod error;
mod open;
mod write;

pub use claim::Claim;
pub use error::EnvelopeError;
pub use write::{with_metadata, write_envelope, write_example};

use super::Canonical;
use crate::vocab::{Budget, MessageId, Name, ThreadId, Time};

/// An envelope that keeps the envelope schema: meta parsed, payload opaque.
///
/// ```compile_fail,E0451
/// use systole_xml::ladder::{Canonical, Claims, Envelope};
/// fn forge(payload: Canonical) -> Envelope {
///     Envelope { claims: Claims::default(), payload }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Envelope {
    claims: Claims,
    payload: Canonical,
}

/// The claims of `<meta>`, not verified. White space around each text is removed, and an empty element
/// claims nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// The sender, as the message says.
    pub from: Claim,
    /// The receiver.
    pub to: Option<Claim>,
    /// The thread that the message continues.
    pub thread: Option<Claim>,
    /// `id` of `urn:systole:meta:v1`: a label that the sender chose.
    pub id: Option<Claim>,
    /// `in-reply-to` of `urn:systole:meta:v1`.
    pub in_reply_to: Option<Claim>,
    /// `deadline` of `urn:systole:meta:v1`.
    pub deadline: Option<Time>,
    /// `budget` of `urn:systole:meta:v1`.
    pub budget: Option<Box<Budget>>,
    /// `traceparent` of `urn:systole:meta:v1` (W3C Trace Context, section 3.2).
    pub traceparent: Option<Claim>,
    /// `correlation` of `urn:systole:meta:v1`: the request that an answer of another organism belongs to.
    pub correlation: Option<Claim>,
    /// Number of elements of other namespaces in `<meta>`. They reach no listener.
    pub foreign: usize,
}

/// The metadata that the pump stamps on an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The sender, as the pump knows it.
    pub from: Name,
    /// The direct receiver.
    pub to: Option<Name>,
    /// The thread, as the receiver may know it.
    pub thread: ThreadId,
    /// The id of the message itself.
    pub id: MessageId,
    /// The message that this one answers: an id of the pump, or the label that a client gave.
    pub in_reply_to: Option<String>,
    /// The latest end of the thread.
    pub deadline: Option<Time>,
    /// The trace of the message (W3C Trace Context, section 3.2).
    pub traceparent: Option<String>,
}

impl Envelope {
    /// Checks canonical XML against the envelope schema and takes it apart.
    ///
    /// The payload carries the repairs of the message, and its positions are those in the source of the
    /// message. A message without another holder becomes its payload, without an allocation.
    ///
    /// # Errors
    /// [`EnvelopeError`] with the place and the reason.
    pub fn open(message: Canonical) -> Result<Self, EnvelopeError> {
        open::open(message).map(|(claims, payload)| Self { claims, payload })
    }

    /// Takes apart an envelope at an entrance: `<meta>`, and `<from>` in it, may be missing, since the pump stamps the
    /// sender in any case. All else is as in [`open`](Self::open).
    ///
    /// # Errors
    /// [`EnvelopeError`] with the place and the reason.
    pub fn open_entered(message: Canonical) -> Result<Self, EnvelopeError> {
        open::open_entered(message).map(|(claims, payload)| Self { claims, payload })
    }

    /// Takes apart a `<message>` that a listener wrote. Its `to`, its `thread`, its `in-reply-to` and its payload
    /// count, `<from>` is kept as a claim; everything else, even `<meta>`, may be missing.
    ///
    /// # Errors
    /// [`EnvelopeError`] if it is no `<message>` with exactly one payload.
    pub fn open_emitted(message: Canonical) -> Result<Self, EnvelopeError> {
        open::open_emitted(message).map(|(claims, payload)| Self { claims, payload })
    }

    /// The claims of `<meta>`, not verified.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The payload as a canonical document of its own (exclusive C14N of the subtree).
    pub fn payload(&self) -> &Canonical {
        &self.payload
    }

    /// Claims and payload, by value.
    pub fn into_parts(self) -> (Claims, Canonical) {
        (self.claims, self.payload)
    }
}

#[cfg(test)]
mod tests;
