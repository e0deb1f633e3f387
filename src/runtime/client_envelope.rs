//! The envelope of a client's request.

use bytes::Bytes;
use systole_core::core::{Emission, Failure};
use systole_core::vocab::{Name, Time, ns};
use systole_xml::schema::Draft;

use super::client::SendError;

/// Metadata that a client adds to a request.
pub(super) struct ClientEnvelope<'a> {
    pub(super) from: &'a Name,
    pub(super) deadline: Option<Time>,
}

impl ClientEnvelope<'_> {
    /// Writes the envelope; the pump parses it like that of any other sender.
    pub(super) fn write(&self, requests: Result<Vec<Emission>, Failure>) -> Result<Bytes, SendError> {
        let unwritable = |reason: &dyn ToString| SendError::Unwritable { reason: reason.to_string().into() };
        let mut requests = requests.map_err(|failure| unwritable(&failure.message))?;
        let (Some(Emission { to, thread: None, payload, .. }), true) = (requests.pop(), requests.is_empty()) else {
            return Err(unwritable(&"a client sends one request at a time, to no thread of a listener"));
        };
        let payload = match payload {
            Draft::Canonical(payload) => payload,
            Draft::Proved(proof) => proof.payload().clone(),
            Draft::Unencodable(error) => return Err(unwritable(&error)),
            Draft::NoEnvelope(error) => return Err(unwritable(&error)),
        };
        // The envelope uses a prefix, so that it declares no namespace around the payload that would change the meaning
        // of names in it. No text below needs escaping.
        let (envelope, meta, from) = (ns::ENVELOPE, ns::SYSTOLE_META, self.from);
        let mut text = format!("<e:message xmlns:e=\"{envelope}\"><e:meta><e:from>{from}</e:from>");
        if let Some(to) = to {
            text += &format!("<e:to>{to}</e:to>");
        }
        if let Some(deadline) = self.deadline {
            text += &format!("<m:deadline xmlns:m=\"{meta}\">{deadline}</m:deadline>");
        }
        text += "</e:meta>";
        text += payload.as_str();
        text += "</e:message>";
        Ok(text.into())
    }
}
