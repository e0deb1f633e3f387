//! Messages judged at an entrance before the pump takes them: a message that would be refused is not stored first.

use systole_xml::ladder::{Claims, Raw};
use systole_xml::schema::{self, Draft, Element, Validated, Validator};

use super::blueprint::{Blueprint, ClientId, ListenerId, Party};
use super::faults;
use super::io::{Emission, may_be_one_of};
use super::judge::{Judge, ParsedPayload, Refusal, Verdict, is_for_threads, selection};
use super::read::{ReadAnswer, ReadMessage, Unreadable, read_answer, read_message};
use crate::vocab::{Fault, FaultCode, MessageId, Name, QName, ThreadId, ns};

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
/// The refusal with which the core would answer the message.
pub fn precheck(
    raw: &Raw,
    client: ClientId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<ReadMessage, Unreadable> {
    let read = read_message(raw, client, blueprint, validator.catalog())?;
    Ok(judged(read, client, blueprint, validator)?)
}

/// Judges a valid payload that a client sends without an envelope, as [`precheck`] does, and keeps its proof. It has no
/// signature, so a client that must sign can't send it.
///
/// # Errors
/// The refusal with which the core would answer the message.
pub fn precheck_valid(
    payload: Validated<Element>,
    to: Option<&Name>,
    client: ClientId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<ReadMessage, Unreadable> {
    if blueprint[client].signatures.is_some() {
        let why = "a payload without its envelope has no signature: send a signed envelope";
        return Err(Unreadable::unsigned(payload.payload(), why.into()));
    }
    let (claims, canonical) =
        (Claims { to: to.map(|to| to.to_string().into()), ..Claims::default() }, payload.payload().clone());
    let read = ReadMessage { claims, payload: canonical, repaired: None, proof: Some(payload) };
    Ok(judged(read, client, blueprint, validator)?)
}

fn judged(
    read: ReadMessage,
    client: ClientId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<ReadMessage, Fault> {
    let ReadMessage { claims, payload, repaired, proof } = read;
    if is_for_threads(payload.root()) {
        return Err(faults::route(payload.root()));
    }
    let to = claims.to.as_deref().map(Name::parse).transpose().map_err(|_| faults::route(payload.root()))?;
    let proof = match payload.root().namespace() {
        ns::META => None,
        _ => {
            let (caller, mut judge) = (Party::Client(client), Judge { blueprint, validator });
            let draft = proof.map_or_else(|| ParsedPayload::Unproved(payload.clone()), |proof| judge.trusted(proof));
            passed(judge.call(to.as_ref(), Some(caller), draft), blueprint.calls(caller))?
        }
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
    let read = read_answer(raw, &blueprint[listener], &blueprint.limits.xml, validator.catalog())?;
    precheck_read(read, to, listener, blueprint, validator)
}

/// Judges an answer that is parsed already, as [`precheck_answer`] does; proofs in it are kept.
///
/// # Errors
/// The fault of the first payload that the core would refuse.
pub fn precheck_read(
    mut read: ReadAnswer,
    to: Answered,
    listener: ListenerId,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<PrecheckedAnswer, Fault> {
    let (contract, party) = (&blueprint[listener], Party::Listener(listener));
    let sendable = || contract.replies.iter().chain(&contract.calls);
    let found = read.parts.len();
    let mut is_judged = selection(found, blueprint);
    let (mut refused, mut replies, mut is_answered) = (None, 0, false);
    let mut judge = Judge { blueprint, validator };
    for part in &mut read.parts {
        let known = match &part.payload {
            Draft::Proved(proof) => Some(judge.trusted(proof.clone())),
            _ => None,
        };
        let payload = match &part.payload {
            Draft::Canonical(payload) if is_judged(&|| may_be_one_of(payload.root(), &contract.replies)) => {
                payload.clone()
            }
            Draft::Proved(proof) if is_judged(&|| may_be_one_of(proof.payload().root(), &contract.replies)) => {
                proof.payload().clone()
            }
            Draft::Canonical(_) | Draft::Proved(_) => continue,
            Draft::NoEnvelope(error) => {
                let fault = faults::envelope(error, &contract.name, sendable(), judge.validator.catalog());
                refused = refused.or(Some(fault));
                continue;
            }
            Draft::Unencodable(_) => continue,
        };
        let payload = match &known {
            Some(_) => payload,
            None => schema::infer_namespace(payload, sendable(), judge.validator.catalog()),
        };
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
        let draft = known.unwrap_or_else(|| ParsedPayload::Unproved(payload.clone()));
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
            Ok(_) if is_reply => judge.proof(draft).map(Some),
            // The thread may be one that the listener has spawned, and says whom it is for.
            Ok(None) if thread.is_some() && is_call => judge.proof(draft).map(Some),
            Ok(to) => {
                let untaken = judge.untaken_answer(listener, &payload);
                let ask = || judge.call(to.as_ref(), Some(party), draft);
                untaken.map_or_else(|| passed(ask(), &contract.calls), Err)
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
                refused = refused.or(Some(faults::addressed_reply(&qname, judge.validator.catalog())));
            }
            Err(fault) if fault.code == FaultCode::Route && !contract.replies.contains(&qname) && !is_call => {
                let fault = faults::with_sendable(fault, &qname, sendable(), judge.validator.catalog());
                refused = refused.or(Some(fault));
            }
            Err(fault) => refused = refused.or(Some(fault)),
        }
    }
    if found > blueprint.limits.fanout && !is_answered {
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
    let contract = &blueprint[listener];
    let Some(payload) = call.payload.clone().into_payload().filter(|_| call.thread.is_none()) else { return Ok(()) };
    let payload = schema::infer_namespace(payload, contract.replies.iter().chain(&contract.calls), validator.catalog());
    let (caller, unproved) = (Some(Party::Listener(listener)), ParsedPayload::Unproved(payload));
    passed(Judge { blueprint, validator }.call(call.to.as_ref(), caller, unproved), &contract.calls).map(drop)
}

/// The proof of a payload that the judge let pass, if it has a schema; requests to the core have none. A fault of the route
/// has a hint at the sender's own calls.
fn passed(verdict: Verdict, calls: &[QName]) -> Result<Option<Validated<Element>>, Fault> {
    match verdict {
        Verdict::Call { payload, .. } | Verdict::Reply(payload) => Ok(Some(payload)),
        Verdict::Refused(Refusal { fault, misroute: Some(_), payload: Some(payload), .. }) => {
            Err(faults::with_near(fault, payload.root(), calls))
        }
        Verdict::Refused(refusal) => Err(refusal.fault),
        Verdict::Continue { .. }
        | Verdict::Addressed { .. }
        | Verdict::CloseThread { .. }
        | Verdict::Core { .. }
        | Verdict::Spawn { .. } => Ok(None),
    }
}
