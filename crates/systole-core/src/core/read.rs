//! Messages of clients and answers of handlers, parsed once: at an entrance, or by the core.

use std::sync::Arc;

use systole_xml::ladder::{Canonical, Claims, Envelope, Raw, Repair, parse, parse_fragment};
use systole_xml::schema::{self, Catalog, Draft, Element, JsonRefusal, Sendable, Validated};

use super::blueprint::{Blueprint, ClientId, Party};
use super::contract::Contract;
use super::event::{Misroute, shown};
use super::faults;
use crate::vocab::{Fault, XmlLimits, ns};

/// Bytes of the label that a client may give a message: it is kept until the answer leaves.
pub(super) const LABEL: usize = 256;

/// A message of a client that has been parsed.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadMessage {
    /// The claims of its envelope.
    pub claims: Claims,
    /// The payload.
    pub payload: Canonical,
    /// The bytes before their repair, shortened for operators, and their number, if they had to be repaired.
    pub repaired: Option<(Arc<str>, usize)>,
    /// The proof that the payload keeps its schema, where `precheck` has judged it: the core does
    /// not judge it again.
    pub proof: Option<Validated<Element>>,
}

/// Refusal of a client's message before it has a place in a conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unreadable {
    /// The fault, for the sender.
    pub fault: Fault,
    /// The mistake behind a `route` fault, for operators.
    pub misroute: Option<Misroute>,
}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        Self { fault, misroute: None }
    }
}

impl Unreadable {
    /// Refuses a message of a client that must sign: the sender learns no more than of a payload that it may not send.
    pub(super) fn unsigned(payload: &Canonical, why: Arc<str>) -> Self {
        Self { fault: faults::route(payload.root()), misroute: Some(Misroute::Unsigned(why)) }
    }
}

/// Parses a client's message: its claims and its payload. Checks its signature, if the client must sign.
///
/// An entrance completes what the pump knows better than the client: an envelope may leave out `<meta>` or its
/// `<from>`, and a document may be a payload alone, if the client may call it or it is a request to the core. A root
/// without a namespace is the call that has its local name, as in what listeners write.
pub(super) fn read_message(
    raw: &Raw,
    client: ClientId,
    blueprint: &Blueprint,
    catalog: &Catalog,
) -> Result<ReadMessage, Unreadable> {
    let (id, client) = (client, &blueprint[client]);
    let document = parse(raw, &blueprint.limits.xml).map_err(|error| faults::malformed(&error))?;
    let signature = client.signatures.as_ref().map_or(Ok(()), |signatures| signatures.check(raw, &document));
    let complete = |payload| schema::infer_namespace(payload, client.calls.iter(), catalog);
    let read = |claims, payload: Canonical| {
        let repaired = (!payload.repairs().is_empty()).then(|| (shown(raw.bytes()), raw.bytes().len()));
        ReadMessage { claims, payload, repaired, proof: None }
    };
    if is_message(&document) {
        let envelope = Envelope::open_entered(document);
        let envelope =
            envelope.map_err(|error| faults::envelope(&error, &client.name, client.calls.iter(), catalog))?;
        let (claims, payload) = envelope.into_parts();
        signature.map_err(|why| Unreadable::unsigned(&payload, why))?;
        return Ok(read(claims, complete(payload)));
    }
    signature.map_err(|why| Unreadable::unsigned(&document, why))?;
    let payload = complete(document);
    if blueprint.may_call(Party::Client(id), payload.root()) || payload.root().namespace() == ns::META {
        Ok(read(Claims::default(), payload))
    } else {
        Err(faults::no_message(&payload, client, catalog).into())
    }
}

/// The bytes with which a handler answered, parsed: the core does not parse them again.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadAnswer {
    /// The bytes.
    pub raw: Raw,
    /// The changes that repair made.
    pub repairs: Vec<Repair>,
    /// The top-level elements, in order.
    pub parts: Vec<ReadPart>,
}

impl ReadAnswer {
    /// The answer that valid payloads make; `raw` are the bytes in which they stood, for operators.
    pub fn of_valid(raw: Raw, payloads: Vec<Validated<Element>>) -> Self {
        let part = |payload| ReadPart { claims: None, payload: Draft::Proved(payload) };
        Self { raw, repairs: Vec::new(), parts: payloads.into_iter().map(part).collect() }
    }
}

/// A top-level element of an answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadPart {
    /// The claims of the `<message>` that the payload stood in, if any.
    pub claims: Option<Claims>,
    /// The payload: [`Draft::Proved`] where `precheck_answer` has judged it, [`Draft::NoEnvelope`] for a `<message>` that
    /// is no envelope.
    pub payload: Draft,
}

/// Parses the bytes with which a handler answered: none, one or several payloads, each bare or in a `<message>`, maybe
/// dirty.
///
/// # Errors
/// The fault of bytes that hold no XML.
pub fn read_answer(raw: Raw, contract: &Contract, limits: &XmlLimits, catalog: &Catalog) -> Result<ReadAnswer, Fault> {
    if raw.bytes().trim_ascii().is_empty() {
        return Ok(ReadAnswer { raw, repairs: Vec::new(), parts: Vec::new() });
    }
    let sendable = Sendable::new(contract.author, contract.replies.iter().chain(&contract.calls), catalog);
    let fragment = parse_fragment(&raw, limits, &sendable);
    let fragment = fragment.map_err(|error| faults::malformed(&error))?;
    let part = |element: Canonical| {
        if !is_message(&element) {
            return ReadPart { claims: None, payload: Draft::Canonical(element) };
        }
        match Envelope::open_emitted(element).map(Envelope::into_parts) {
            Ok((claims, payload)) => ReadPart { claims: Some(claims), payload: Draft::Canonical(payload) },
            Err(error) => ReadPart { claims: None, payload: Draft::NoEnvelope(error) },
        }
    };
    let parts = fragment.elements.into_iter().map(part).collect();
    Ok(ReadAnswer { raw, repairs: fragment.repairs, parts })
}

/// The fault of JSON that is no valid payload.
pub fn json_fault(refusal: &JsonRefusal) -> Fault {
    faults::json(refusal)
}

/// Reads the id that the sender of an envelope gave it, as an entrance does; none if it has none, or can't be read.
#[doc(hidden)]
pub fn read_label(raw: &Raw, client: ClientId, blueprint: &Blueprint, catalog: &Catalog) -> Option<Box<str>> {
    read_message(raw, client, blueprint, catalog).ok()?.claims.id.as_deref().map(Into::into)
}

/// Returns whether an element is to be opened as an envelope.
fn is_message(element: &Canonical) -> bool {
    element.root().namespace() == ns::ENVELOPE && element.root().local() == "message"
}
