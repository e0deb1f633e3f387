//! Messages judged at an entrance before the pump takes them: a message that would be refused is not stored first.

use systole_xml::ladder::{Canonical, Raw};
use systole_xml::schema::{self, Draft, Element, Validated, Validator};

use super::blueprint::{Blueprint, ClientId, ListenerId, Party};
use super::faults;
use super::io::{Emission, may_be_one_of};
use super::judge::{route, untaken_answer};
use super::meta::is_for_threads;
use super::read::{LABEL, ReadAnswer, ReadMessage, read_answer, read_message};
use crate::protocol::{MetaProblem, MetaRequest};
use crate::vocab::{Fault, FaultCode, MessageId, Name, ThreadId, ns};

/// A message that is answered.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// The message.
    pub message: MessageId,
    /// The thread of the message.
    pub thread: ThreadId,
}

/// Bytes with which a listener answers, once they are judged.
#[derive(Debug)]
#[non_exhaustive]
pub struct PrecheckedAnswer {
    /// Payloads among them that may be the reply: the first valid one is.
    pub replies: usize,
    /// The bytes, parsed, with the proofs of what was judged: for [`HandlerOutcome::Read`](super::HandlerOutcome::Read).
    pub read: ReadAnswer,
}

/// Judges the bytes of a client's message as the core will; the message is for [`Arrival::Read`](super::Arrival::Read).
/// Requests to the core are left to the core.
///
/// # Errors
/// The fault with which the core would refuse the message.
pub fn precheck(
    raw: &Raw,
    client: ClientId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<ReadMessage, Fault> {
    let ReadMessage { mut claims, payload, repaired, .. } = read_message(raw, client, blueprint, validator.catalog())?;
    claims.traceparent = claims.traceparent.filter(|text| text.len() <= LABEL);
    if is_for_threads(payload.root()) {
        return Err(faults::route(payload.root()));
    }
    let to = claims.to.as_deref().map(Name::parse).transpose().map_err(|_| faults::route(payload.root()))?;
    let proof = match payload.root().namespace() {
        ns::META => None,
        _ => Some(may_call(&payload, to.as_ref(), Party::Client(client), blueprint, validator)?),
    };
    Ok(ReadMessage { claims, payload, repaired, proof })
}

/// Judges the bytes with which a listener answers a message, as the core will. Bytes with a valid reply in them are
/// good, whatever stands beside it; otherwise, each payload must be one that the listener may send. What depends on the
/// threads that the listener has spawned is left to the core.
///
/// # Errors
/// The fault of the first payload that the core would refuse.
pub fn precheck_answer(
    raw: Raw,
    to: Answered,
    listener: ListenerId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<PrecheckedAnswer, Fault> {
    let (contract, party) = (blueprint.contract(listener), Party::Listener(listener));
    let sendable = || contract.replies.iter().chain(&contract.calls);
    let mut read = read_answer(raw, contract, &blueprint.limits.xml, validator.catalog())?;
    // Where there are too many, only those are looked at that may be the reply, and no more than a fan-out of them.
    let (found, limit) = (read.parts.len(), blueprint.limits.fanout);
    let (mut refused, mut replies, mut is_answered, mut judged) = (None, 0, false, 0);
    for part in &mut read.parts {
        let payload = match &part.payload {
            Draft::Canonical(payload)
                if found > limit && (judged == limit || !may_be_one_of(payload.root(), &contract.replies)) =>
            {
                continue;
            }
            Draft::Canonical(payload) => payload.clone(),
            Draft::NoEnvelope(error) => {
                let fault = faults::envelope(error, &contract.name, sendable(), validator.catalog());
                refused = refused.or(Some(fault));
                continue;
            }
            Draft::Proved(_) | Draft::Unencodable(_) => continue,
        };
        judged += 1;
        let payload = schema::infer_namespace(payload, sendable(), validator.catalog());
        let claims = part.claims.as_ref();
        let addressee = claims.and_then(|claims| claims.to.as_deref());
        let thread = claims.and_then(|claims| claims.thread.as_deref());
        let is_reply = addressee.is_none() && contract.replies.contains(payload.root());
        replies += usize::from(is_reply);
        if is_answered {
            continue;
        }
        let is_call = blueprint.may_call(party, payload.root());
        let qname = payload.root().clone();
        let answered = claims.and_then(|claims| claims.in_reply_to.as_deref());
        if let Some(other) = answered.filter(|id| is_reply && id.parse() != Ok(to.message)) {
            return Err(faults::other_message("in-reply-to", other, &to.message));
        }
        // A payload that is a call, too, may be a call to a thread that the listener has spawned.
        if let Some(other) = thread.filter(|id| is_reply && !is_call && id.parse() != Ok(to.thread)) {
            return Err(faults::other_message("thread", other, &to.thread));
        }
        let verdict = match addressee.map(Name::parse).transpose() {
            Err(_) => Err(faults::route(payload.root())),
            Ok(_) if is_reply => keeps_schema(&payload, validator).map(Some),
            // The thread may be one that the listener has spawned, and says whom it is for.
            Ok(None) if thread.is_some() && is_call => keeps_schema(&payload, validator).map(Some),
            Ok(to) => {
                let untaken = untaken_answer(&payload, contract);
                untaken.map_or_else(|| may_ask(payload, to.as_ref(), party, blueprint, validator), Err)
            }
        };
        match verdict {
            Ok(proof) => {
                is_answered |= is_reply;
                if let Some(proof) = proof {
                    part.payload = Draft::Proved(proof);
                }
            }
            Err(fault)
                if fault.code == FaultCode::Route && addressee.is_some() && contract.replies.contains(&qname) =>
            {
                refused = refused.or(Some(faults::addressed_reply(&qname, validator.catalog())));
            }
            Err(fault) if fault.code == FaultCode::Route && !contract.replies.contains(&qname) && !is_call => {
                let fault = faults::with_sendable(fault, &qname, sendable(), validator.catalog());
                refused = refused.or(Some(fault));
            }
            Err(fault) => refused = refused.or(Some(fault)),
        }
    }
    if found > limit && !is_answered {
        return Err(faults::too_many(found, blueprint));
    }
    match refused.filter(|_| !is_answered) {
        Some(fault) => Err(fault),
        None => Ok(PrecheckedAnswer { replies, read }),
    }
}

/// Judges a call that a listener awaits, as the core will. A call to a thread that the listener has spawned is left to the
/// core.
///
/// # Errors
/// The fault with which the core would answer it.
pub fn precheck_call(
    call: &Emission,
    listener: ListenerId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<(), Fault> {
    let contract = blueprint.contract(listener);
    let Some(payload) = call.payload.clone().into_payload().filter(|_| call.thread.is_none()) else { return Ok(()) };
    let payload = schema::infer_namespace(payload, contract.replies.iter().chain(&contract.calls), validator.catalog());
    may_ask(payload, call.to.as_ref(), Party::Listener(listener), blueprint, validator).map(drop)
}

/// Judges a request of a listener, to the core or to another listener. Requests to the core have no schema, and so no
/// proof.
fn may_ask(
    payload: Canonical,
    to: Option<&Name>,
    caller: Party,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<Option<Validated<Element>>, Fault> {
    if payload.root().namespace() != ns::META {
        return may_call(&payload, to, caller, blueprint, validator).map(Some);
    }
    match MetaRequest::read(&payload) {
        Ok(MetaRequest::SpawnThread { first }) => may_call(&first, None, caller, blueprint, validator).map(|_| None),
        Ok(_) => Ok(None),
        Err(error) if matches!(error.problem, MetaProblem::Unknown { .. }) => Err(faults::route(payload.root())),
        Err(error) => Err(faults::meta(&error)),
    }
}

/// Judges a request to listeners.
fn may_call(
    payload: &Canonical,
    to: Option<&Name>,
    caller: Party,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<Validated<Element>, Fault> {
    let near = |_| faults::with_near(faults::route(payload.root()), payload.root(), blueprint.calls(caller));
    route(blueprint, payload.root(), to, Some(caller)).map_err(near)?;
    keeps_schema(payload, validator)
}

fn keeps_schema(payload: &Canonical, validator: &mut Validator) -> Result<Validated<Element>, Fault> {
    let proof = validator.validate(payload.clone());
    proof.map_err(|error| faults::payload(payload.root(), &error, validator.catalog()))
}
