//! Responses of handlers.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use systole_core::core::{Emission, EmissionKind, Failure, HandlerOutcome};
use systole_core::vocab::{Name, ThreadId, XmlLimits, ns};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Draft, IntoDraft};

/// The response of a handler: its emissions, or its failure.
///
/// `?` works on any error, which becomes an `agent-error` for the caller; a [`Fault`](systole_core::vocab::Fault)
/// passes on unchanged.
pub type Response = Result<Emit, Failure>;

/// Emissions of a handler: none, one payload, or several, each on a thread of its own.
///
/// ```ignore
/// Ok(add.reply(Sum { value: 3 }))
/// Ok(call(Add { a: 1, b: 2 }).and(call_to("notary", Note { text })))
/// ```
#[derive(Debug, Clone, Default)]
pub struct Emit {
    said: Vec<Emission>,
    written: BytesMut,
    refused: Option<Failure>,
}

/// The answer to the caller, of any type that the contract lists as a reply:
/// [`Delivery::reply`](crate::runtime::Delivery::reply) takes the one that the request names.
pub fn reply_any(payload: impl IntoDraft) -> Emit {
    Emit::one(EmissionKind::Reply, payload.into_draft())
}

/// Makes a call of the listener that accepts the payload.
pub fn call(payload: impl IntoDraft) -> Emit {
    Emit::one(EmissionKind::Call, payload.into_draft())
}

/// Makes a call of one listener by name. An invalid name fails the response.
pub fn call_to(listener: &str, payload: impl IntoDraft) -> Emit {
    match Name::parse(listener) {
        Ok(name) => Emit::from(Emission { to: Some(name), ..emission(EmissionKind::Call, payload.into_draft()) }),
        Err(error) => Emit { refused: Some(error.into()), ..Emit::default() },
    }
}

/// Makes a call on a thread that was spawned with `<spawn-thread>`.
pub fn call_on(thread: ThreadId, payload: impl IntoDraft) -> Emit {
    Emit::from(Emission { thread: Some(thread), ..emission(EmissionKind::Call, payload.into_draft()) })
}

/// Requests a thread of the handler's own from the core, with a first call on it. Two answers come: `<thread-spawned>`
/// and the answer to the call. Later calls go to that thread with [`call_on`].
pub fn spawn_thread(payload: impl IntoDraft) -> Emit {
    let payload = match payload.into_draft() {
        Draft::Canonical(payload) => payload,
        Draft::Proved(proof) => proof.payload().clone(),
        refused @ (Draft::Unencodable(_) | Draft::NoEnvelope(_)) => return Emit::one(EmissionKind::Call, refused),
    };
    let (meta, first) = (ns::META, payload.as_str());
    let name = payload.root().to_string().replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let request = format!("<m:spawn-thread xmlns:m=\"{meta}\" payload=\"{name}\">{first}</m:spawn-thread>");
    match parse(&Raw::new(request), &XmlLimits::default()) {
        Ok(request) => call(request),
        Err(error) => Emit { refused: Some(error.into()), ..Emit::default() },
    }
}

/// Makes a message to the end of the thread's own mailbox, after a delay that may be zero.
pub fn continue_with(payload: impl IntoDraft, after: Duration) -> Emit {
    Emit::one(EmissionKind::Continue { after }, payload.into_draft())
}

/// Emits bytes as a model or a program wrote them: none, one or several payloads, maybe dirty. They are repaired, and
/// each payload is a reply or a call, depending on where the contract lists its name.
pub fn write(bytes: impl AsRef<[u8]>) -> Emit {
    Emit { written: BytesMut::from(bytes.as_ref()), ..Emit::default() }
}

/// Emits nothing.
pub fn none() -> Emit {
    Emit::default()
}

impl Emit {
    /// Appends the emissions of `more`.
    ///
    /// Bytes can't be combined with typed payloads: such a response fails.
    #[must_use]
    pub fn and(mut self, mut more: Emit) -> Self {
        self.said.append(&mut more.said);
        if !self.written.is_empty() && !more.written.is_empty() {
            self.written.put_u8(b'\n');
        }
        self.written.unsplit(more.written);
        self.refused = self.refused.or(more.refused);
        self
    }

    /// Returns whether there are no emissions.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty() && self.written.is_empty() && self.refused.is_none()
    }

    fn one(kind: EmissionKind, payload: Draft) -> Self {
        Self::from(emission(kind, payload))
    }

    pub(crate) fn into_calls(self) -> Result<Vec<Emission>, Failure> {
        if let Some(failure) = self.refused {
            return Err(failure);
        }
        let only_calls = self.said.iter().all(|emission| emission.kind == EmissionKind::Call);
        if !only_calls || !self.written.is_empty() {
            return Err(Failure::new("only calls can be awaited"));
        }
        Ok(self.said)
    }
}

impl From<Emission> for Emit {
    fn from(emission: Emission) -> Self {
        Self { said: vec![emission], ..Self::default() }
    }
}

impl FromIterator<Emit> for Emit {
    fn from_iter<I: IntoIterator<Item = Emit>>(emits: I) -> Self {
        emits.into_iter().fold(Self::default(), Self::and)
    }
}

fn emission(kind: EmissionKind, payload: Draft) -> Emission {
    Emission { kind, to: None, thread: None, payload }
}

/// Converts a response to an outcome for the core.
pub(crate) fn outcome_of(response: Response) -> HandlerOutcome {
    match response {
        Err(failure) | Ok(Emit { refused: Some(failure), .. }) => HandlerOutcome::Failed(failure),
        Ok(Emit { said, written, .. }) if written.is_empty() => HandlerOutcome::Emitted(said),
        Ok(Emit { said, written, .. }) if said.is_empty() => HandlerOutcome::Wrote(Raw::new(written.freeze())),
        Ok(_) => HandlerOutcome::Failed(Failure::new("a response is either typed or written, not both")),
    }
}

#[cfg(test)]
mod tests {
    use systole_core::vocab::{Fault, FaultCode};

    use super::*;

    fn fails(result: Result<(), impl std::error::Error + 'static>) -> Failure {
        let attempt = || -> Result<(), Failure> { Ok(result?) };
        attempt().unwrap_err()
    }

    #[test]
    fn a_fault_passes_through_the_question_mark_unchanged() {
        let fault = Fault::new(FaultCode::Overload, "full");
        assert_eq!(fails(Err(fault.clone())).fault, Some(fault));
    }

    #[test]
    fn any_other_error_keeps_its_text_only() {
        let failure = fails("x".parse::<u8>().map(drop));
        assert_eq!((&*failure.message, failure.fault), ("invalid digit found in string", None));
    }

    #[test]
    fn bytes_join_bytes_but_not_typed_payloads() {
        let written = write("<a/>").and(write("<b/>"));
        assert!(
            matches!(outcome_of(Ok(written.clone())), HandlerOutcome::Wrote(raw) if &raw.bytes()[..] == b"<a/>\n<b/>")
        );
        let unnamed = call_to("no name", NeverEncoded);
        assert!(matches!(outcome_of(Ok(unnamed)), HandlerOutcome::Failed(_)));
    }

    struct NeverEncoded;

    impl IntoDraft for NeverEncoded {
        fn into_draft(self) -> Draft {
            unreachable!("a call without a receiver is refused before its payload is looked at")
        }
    }
}
