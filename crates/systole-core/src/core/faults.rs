//! Faults, from the errors of the stages and the findings of the core.
//!
//! A fault keeps its message on its way up, through listeners that know nothing of it. So a message is a statement in
//! the third person, true for each receiver: no "you", no "this", no "the listener".

use std::fmt::Display;

use systole_xml::ladder::{Canonical, EnvelopeError, LadderError, write_example};
use systole_xml::schema::{Catalog, EncodeError, JsonRefusal, SchemaError};

use super::blueprint::Blueprint;
use super::contract::{ClientContract, Contract};
use super::io::{Cancellation, Failure};
use crate::protocol::MetaError;
use crate::vocab::{BrokenRule, Fault, FaultCode, Name, Position, QName, near, ns};

/// Refuses a payload without a target: the text is the same for an absent target and for one that is not allowed.
pub(super) fn route(payload: &QName) -> Fault {
    Fault::new(FaultCode::Route, format!("no listener takes {payload} from its sender"))
}

/// Refuses a reply that the contract of its listener does not list.
pub(super) fn reply(payload: &QName) -> Fault {
    Fault::new(
        FaultCode::Route,
        format!("a listener replied with {payload}, which the replies of its contract do not list"),
    )
}

pub(super) fn malformed(error: &LadderError) -> Fault {
    let code = if error.is_limit() { FaultCode::Limit } else { FaultCode::Malformed };
    with_rule(Fault::new(code, "a message can't be read as XML"), error.to_string(), error.position(), None)
}

/// A `<message>` that breaks the envelope schema: with an envelope that carries one of the payloads that its sender may
/// send.
pub(super) fn envelope<'a>(
    error: &EnvelopeError,
    sender: &Name,
    sends: impl Iterator<Item = &'a QName>,
    catalog: &Catalog,
) -> Fault {
    no_envelope(error.to_string(), Some(error.position()), example_envelope(sender, sends, catalog))
}

/// A document at an entrance that is neither an envelope nor a payload that the client may call.
pub(super) fn no_message(document: &Canonical, client: &ClientContract, catalog: &Catalog) -> Fault {
    let found = document.root();
    let near = near_call(found, &client.calls).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let rule = format!(
        "the root is {found}: write an envelope, which is <message> in the namespace {}, or a payload that its sender may call{near}",
        ns::ENVELOPE
    );
    no_envelope(rule, document.position(0), example_envelope(&client.name, client.calls.iter(), catalog))
}

fn no_envelope(rule: String, at: Option<Position>, example: Option<String>) -> Fault {
    with_rule(Fault::new(FaultCode::Envelope, "a message is no envelope"), rule, at, example)
}

/// An envelope around the first of the payloads that has an example.
fn example_envelope<'a>(sender: &Name, sends: impl Iterator<Item = &'a QName>, catalog: &Catalog) -> Option<String> {
    let payload = sends.filter_map(|payload| catalog.get(payload)?.example()).next()?;
    Some(write_example(sender, payload))
}

/// Adds to a fault of the route which call of the client may be meant. Its own calls are no secret to a client.
pub(super) fn with_near(fault: Fault, payload: &QName, calls: &[QName]) -> Fault {
    match near_call(payload, calls) {
        Some(near) => with_rule(fault, format!("did you mean {near}?"), None, None),
        None => fault,
    }
}

/// Adds to a fault of the route what a listener may send instead, with an example. Its own contract is no secret to it.
pub(super) fn with_sendable<'a>(
    fault: Fault,
    payload: &QName,
    sendable: impl Iterator<Item = &'a QName> + Clone,
    catalog: &Catalog,
) -> Fault {
    let near = near::payload(payload, sendable.clone());
    let rule = match near {
        Some(near) => format!("did you mean {near}?"),
        None => {
            let names: Vec<String> = sendable.clone().map(ToString::to_string).collect();
            format!("what this listener may send is {}", names.join(", "))
        }
    };
    let Some(shown) = near.or(sendable.clone().next()) else { return fault };
    with_rule(fault, rule, None, example_of(shown, catalog))
}

fn example_of(payload: &QName, catalog: &Catalog) -> Option<String> {
    Some(catalog.get(payload)?.example()?.as_str().to_owned())
}

fn near_call<'a>(payload: &QName, calls: &'a [QName]) -> Option<&'a QName> {
    if calls.contains(payload) { None } else { near::payload(payload, calls.iter()) }
}

/// An envelope of an answer, a field of which names another message or thread than the one that is answered.
pub(super) fn other_message(field: &str, named: &str, own: &dyn std::fmt::Display) -> Fault {
    let fault = Fault::new(FaultCode::Envelope, "the envelope of an answer names another message");
    let named: String = named.chars().take(64).collect();
    with_rule(fault, format!("{field} is '{named}': write {own}, or leave it out"), None, None)
}

/// A payload that breaks its contract: with the rule, its place and an example.
pub(super) fn payload(qname: &QName, error: &SchemaError, catalog: &Catalog) -> Fault {
    let fault = Fault::new(FaultCode::Payload, format!("a payload {qname} breaks its contract"));
    with_rule(fault, error.to_string(), error.at, example_of(qname, catalog))
}

/// JSON that is no valid payload: with each mistake at its JSON pointer, and an example as JSON.
pub(super) fn json(refusal: &JsonRefusal) -> Fault {
    let (code, message) = match refusal {
        refusal if refusal.is_limit() => (FaultCode::Limit, "a message can't be read as JSON"),
        JsonRefusal::Encoding(_) => (FaultCode::Malformed, "a message can't be read as JSON"),
        JsonRefusal::Form(error) if error.at.is_some() => (FaultCode::Malformed, "a message can't be read as JSON"),
        _ => (FaultCode::Payload, "a payload as JSON breaks its contract"),
    };
    let example = match refusal {
        JsonRefusal::Rules { example, .. } => example.clone(),
        _ => None,
    };
    with_rule(Fault::new(code, message), refusal.mistakes().join("; "), None, example)
}

pub(super) fn unencodable(error: &EncodeError) -> Fault {
    with_rule(Fault::new(FaultCode::Payload, "a value has no XML form"), error.to_string(), None, None)
}

pub(super) fn undecodable(why: &dyn std::fmt::Display) -> Fault {
    with_rule(Fault::new(FaultCode::Payload, "the receiver of a payload can't read it"), why.to_string(), None, None)
}

pub(super) fn meta(error: &MetaError) -> Fault {
    with_rule(Fault::new(FaultCode::Payload, "a payload is no request to the core"), error.to_string(), error.at, None)
}

/// A reply that names a receiver, and so is a call.
pub(super) fn addressed_reply(payload: &QName, catalog: &Catalog) -> Fault {
    let fault = Fault::new(FaultCode::Route, format!("a reply {payload} names a receiver, as only a call may"));
    let rule = "a reply goes to the sender of the request by itself: write it alone, without <message> and <to>";
    with_rule(fault, rule.to_owned(), None, example_of(payload, catalog))
}

/// A request to the core whose answer its sender does not take.
pub(super) fn untaken(request: &QName, answer: &QName, contract: &Contract) -> Fault {
    let fault = Fault::new(FaultCode::Payload, format!("no answer to {request} can be given to its sender"));
    let calls: Vec<String> = contract.calls.iter().map(ToString::to_string).collect();
    let rule = match calls.is_empty() {
        true => format!("{answer} is not in the returns of its contract: write no {request}"),
        false => {
            format!(
                "{answer} is not in the returns of its contract: write no {request}, but one of {}",
                calls.join(", ")
            )
        }
    };
    with_rule(fault, rule, None, None)
}

pub(super) fn limit(what: impl std::fmt::Display) -> Fault {
    Fault::new(FaultCode::Limit, what.to_string())
}

/// Refuses a use that a budget has no room for. The thread that asked for it may still answer, so its caller gets no fault yet.
pub(super) fn budget<T: Display + Default + PartialEq>(kind: &str, most: T, left: T, reserved: T, wanted: T) -> Fault {
    let mut message = format!("a budget has {left} of {most} {kind} left, and {wanted} would be needed");
    if reserved != T::default() {
        message += &format!(": requests in flight have reserved {reserved}");
    }
    let rule = "a reply with what there is is all that can still be sent: any other payload ends the request with such a fault";
    with_rule(Fault::new(FaultCode::Budget, message), rule.to_owned(), None, None)
}

pub(super) fn too_many(found: usize, blueprint: &Blueprint) -> Fault {
    limit(format_args!("a response holds {found} payloads, {} are allowed", blueprint.limits.fanout))
}

/// The fault of a message for a conversation that no core serves at the moment.
pub(super) fn moving() -> Fault {
    Fault::new(FaultCode::Overload, "another core takes the conversation over: send the message again later")
}

pub(super) fn fenced() -> Fault {
    Fault::new(
        FaultCode::Overload,
        "another process has taken the conversation over: ask again, with the same idempotency key where there is one",
    )
}

pub(super) fn overload() -> Fault {
    Fault::new(FaultCode::Overload, "the organism has no room for a new call: try again later")
}

pub(super) fn failed(failure: Failure) -> Fault {
    failure.fault.unwrap_or_else(|| Fault::new(FaultCode::Failed, failure.message))
}

pub(super) fn silent() -> Fault {
    Fault::new(FaultCode::Silent, "a listener ended without an answer")
}

pub(super) fn too_many_mistakes(responses: u32, last: Option<&Fault>) -> Fault {
    let mut message = format!("a listener gave {responses} responses in a row without a valid payload");
    if let Some(last) = last {
        message += &format!("; the last was refused: {}", last.message);
    }
    Fault::new(FaultCode::Failed, message)
}

/// Refuses calls of a thread that has called too often without an answer to its caller.
pub(super) fn too_many_rounds(turns: u32) -> Fault {
    let fault = limit(format_args!("a listener has called in {turns} turns of one request, and not answered it"));
    let rule = format!("limits: turns: {turns}: the request must be answered now, with what there is");
    with_rule(fault, rule, None, None)
}

/// Refuses calls that had the same answers again and again.
pub(super) fn repeated(repeats: u32) -> Fault {
    let fault = limit(format_args!("the same call got the same answer {repeats} times, and nothing new came between"));
    let rule = format!("limits: repeats: {repeats}: another call, or the answer to the request, must come now");
    with_rule(fault, rule, None, None)
}

pub(super) fn unreturned(payload: &QName) -> Fault {
    Fault::new(FaultCode::Failed, format!("an answer {payload} came that its receiver does not take"))
}

pub(super) fn cannot_park() -> Fault {
    Fault::new(FaultCode::Failed, "a listener that holds its actor or its thread exclusively can't await answers")
}

pub(super) fn panicked() -> Fault {
    Fault::new(FaultCode::ListenerFailed, "a listener failed while it handled a message")
}

pub(super) fn discarded() -> Fault {
    let fault = Fault::new(FaultCode::ListenerFailed, "a listener was rebuilt while it handled a message");
    Fault { retryable: true, ..fault }
}

pub(super) fn handler_timeout() -> Fault {
    Fault::new(FaultCode::Timeout, "a listener took too long")
}

pub(super) fn deadline() -> Fault {
    Fault::new(FaultCode::Timeout, "a deadline passed")
}

pub(super) fn unanswered() -> Fault {
    Fault::new(FaultCode::Timeout, "no answer came in the time that the caller gave")
}

pub(super) fn unasked_reply() -> Fault {
    Fault::new(FaultCode::Cancelled, "no thread waits for this answer any more")
}

pub(super) fn superseded() -> Fault {
    Fault::new(FaultCode::Cancelled, "the response that held it also held the answer of its thread")
}

pub(super) fn cancelled() -> Fault {
    Fault::new(FaultCode::Cancelled, "the organism stopped before the answer was there")
}

pub(super) fn cancelled_by(why: Cancellation) -> Fault {
    let message = match why {
        Cancellation::Operator => "an operator cancelled it",
        Cancellation::Version => {
            "it began with an earlier version of the organism, and has kept that for as long as it may: send it again"
        }
    };
    Fault::new(FaultCode::Cancelled, message)
}

pub(super) fn internal(why: &dyn std::fmt::Display) -> Fault {
    with_rule(Fault::new(FaultCode::Internal, "the pump has a bug: please report it"), why.to_string(), None, None)
}

/// A handler that ran again after a crash asked for something else than before.
pub(super) fn diverged(before: &str, now: &str) -> Fault {
    let rule = format!("before the restart it asked: {before}; now it asked: {now}");
    let message = "a listener, run again after a restart, made other calls or recorded other values than before";
    with_rule(Fault::new(FaultCode::ListenerFailed, message), rule, None, None)
}

/// A message whose handler did not end, again and again, before the process ended.
pub(super) fn too_many_attempts(attempts: u32) -> Fault {
    Fault::new(FaultCode::ListenerFailed, format!("the process ended {attempts} times while a message was handled"))
}

/// The listener of a thread is no longer registered.
pub(super) fn unregistered() -> Fault {
    Fault::new(FaultCode::ListenerFailed, "a listener is no longer registered")
}

/// The client of a conversation was not registered at a start.
pub(super) fn unregistered_client() -> Fault {
    Fault::new(FaultCode::Cancelled, "the organism was started without this client, which ended its conversations")
}

/// The journal can no longer be written.
pub(super) fn unwritable() -> Fault {
    let fault = Fault::new(
        FaultCode::Internal,
        "the journal can't be written: messages that were not acknowledged may be lost",
    );
    Fault { retryable: true, ..fault }
}

/// An entrance named a client that the organism does not have.
pub(super) fn unknown_client() -> Fault {
    Fault::new(FaultCode::Internal, "an entrance named a client of another organism")
}

/// Returns whether a refusal counts against its emitter, which would get it for the same output again: a mistake, or a want
/// of room. A spent budget ends its thread by itself.
pub(super) fn counts_against(fault: &Fault) -> bool {
    match fault.code {
        FaultCode::Malformed
        | FaultCode::Envelope
        | FaultCode::Payload
        | FaultCode::Route
        | FaultCode::Overload
        | FaultCode::Limit => true,
        FaultCode::Budget
        | FaultCode::Timeout
        | FaultCode::Cancelled
        | FaultCode::ListenerFailed
        | FaultCode::Internal
        | FaultCode::Silent
        | FaultCode::Failed => false,
    }
}

fn with_rule(fault: Fault, mut rule: String, at: Option<Position>, example: Option<String>) -> Fault {
    // Errors of the stages begin with their place, which stands beside the rule.
    if let Some(at) = at
        && let Some(rest) = rule.strip_prefix(&format!("{at}: "))
    {
        rule = rest.to_owned();
    }
    Fault { rule: Some(Box::new(BrokenRule { rule, at, example })), ..fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_true_for_each_receiver() {
        let qname: QName = "{urn:a}ask".parse().unwrap();
        let faults = [
            route(&qname),
            reply(&qname),
            undecodable(&""),
            overload(),
            silent(),
            too_many_mistakes(3, Some(&overload())),
            too_many_rounds(1000),
            repeated(3),
            unreturned(&qname),
            cannot_park(),
            panicked(),
            discarded(),
            handler_timeout(),
            deadline(),
            unanswered(),
            unasked_reply(),
            superseded(),
            cancelled(),
            diverged("", ""),
            too_many_attempts(5),
            unregistered(),
            unwritable(),
            fenced(),
        ];
        for fault in faults {
            let mut words = fault.message.split([' ', ',', ':']);
            assert!(!words.any(|word| matches!(word, "you" | "your" | "me" | "here")), "{fault}");
            assert!(!fault.message.starts_with("the listener") && !fault.message.contains("this message"), "{fault}");
        }
    }
}
