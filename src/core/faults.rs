//! The one place where the errors of the stages, and what the core finds, become faults.

use super::blueprint::Blueprint;
use super::io::Failure;
use crate::ladder::{EnvelopeError, LadderError};
use crate::protocol::MetaError;
use crate::schema::{Catalog, EncodeError, SchemaError};
use crate::vocab::{BrokenRule, Fault, FaultCode, Position, QName};

/// The same for what is not there and for what is not allowed.
pub(super) fn route(payload: &QName) -> Fault {
    Fault::new(FaultCode::Route, format!("nobody here takes {payload} from you"))
}

pub(super) fn malformed(error: &LadderError) -> Fault {
    let code = if error.is_limit() { FaultCode::Limit } else { FaultCode::Malformed };
    with_rule(Fault::new(code, "this is no XML that can be read"), error.to_string(), error.position(), None)
}

pub(super) fn envelope(error: &EnvelopeError) -> Fault {
    let fault = Fault::new(FaultCode::Envelope, "this is no envelope");
    with_rule(fault, error.to_string(), Some(error.position()), None)
}

/// A payload that breaks its contract: with the rule, its place and an example.
pub(super) fn payload(qname: &QName, error: &SchemaError, catalog: &Catalog) -> Fault {
    let fault = Fault::new(FaultCode::Payload, format!("this {qname} breaks its contract"));
    let example = catalog.get(qname).and_then(|schema| schema.example()).map(|example| example.as_str().to_owned());
    with_rule(fault, error.to_string(), error.at, example)
}

pub(super) fn unencodable(error: &EncodeError) -> Fault {
    with_rule(Fault::new(FaultCode::Payload, "a value has no XML form"), error.to_string(), None, None)
}

pub(super) fn undecodable(why: &dyn std::fmt::Display) -> Fault {
    with_rule(Fault::new(FaultCode::Payload, "the receiver can't read this payload"), why.to_string(), None, None)
}

pub(super) fn meta(error: &MetaError) -> Fault {
    with_rule(Fault::new(FaultCode::Payload, "this is no request to the core"), error.to_string(), error.at, None)
}

pub(super) fn limit(what: impl std::fmt::Display) -> Fault {
    Fault::new(FaultCode::Limit, what.to_string())
}

pub(super) fn too_many(found: usize, blueprint: &Blueprint) -> Fault {
    limit(format_args!("a response may hold {} calls, this one holds {found}", blueprint.limits.fanout))
}

pub(super) fn overload() -> Fault {
    Fault::new(FaultCode::Overload, "the organism has no room for a new call: try again later")
}

pub(super) fn failed(failure: Failure) -> Fault {
    failure.fault.unwrap_or_else(|| Fault::new(FaultCode::Failed, failure.message))
}

pub(super) fn silent() -> Fault {
    Fault::new(FaultCode::Silent, "the listener ended without an answer")
}

pub(super) fn quarrel(responses: u32) -> Fault {
    Fault::new(FaultCode::Failed, format!("the listener gave {responses} responses in a row without a valid payload"))
}

pub(super) fn unreturned(payload: &QName) -> Fault {
    Fault::new(FaultCode::Failed, format!("an answer {payload} came that the listener does not take"))
}

pub(super) fn cannot_park() -> Fault {
    Fault::new(FaultCode::Failed, "this listener can't await answers: it holds its actor or its thread exclusively")
}

pub(super) fn panicked() -> Fault {
    Fault::new(FaultCode::ListenerFailed, "the listener failed while it handled this message")
}

pub(super) fn discarded() -> Fault {
    let fault = Fault::new(FaultCode::ListenerFailed, "the listener was rebuilt while it handled this message");
    Fault { retryable: true, ..fault }
}

pub(super) fn down() -> Fault {
    let fault = Fault::new(FaultCode::ListenerFailed, "the listener failed too often and is resting: try again later");
    Fault { retryable: true, ..fault }
}

pub(super) fn handler_timeout() -> Fault {
    Fault::new(FaultCode::Timeout, "the listener took too long")
}

pub(super) fn deadline() -> Fault {
    Fault::new(FaultCode::Timeout, "the deadline passed")
}

pub(super) fn nobody_asked() -> Fault {
    Fault::new(FaultCode::Cancelled, "nobody waits for this answer")
}

pub(super) fn superseded() -> Fault {
    Fault::new(FaultCode::Cancelled, "the response that held it also held the answer of its thread")
}

pub(super) fn cancelled() -> Fault {
    Fault::new(FaultCode::Cancelled, "the organism stopped before the answer was there")
}

pub(super) fn internal(why: &dyn std::fmt::Display) -> Fault {
    with_rule(Fault::new(FaultCode::Internal, "the pump has a bug: please report it"), why.to_string(), None, None)
}

/// A handler that ran again after a crash asked for something else than before.
pub(super) fn diverged(before: &str, now: &str) -> Fault {
    let rule = format!("before the restart it asked: {before}; now it asked: {now}");
    let message = "the listener, run again after a restart, did not do what it had done before";
    with_rule(Fault::new(FaultCode::ListenerFailed, message), rule, None, None)
}

/// A message whose handler did not end, again and again, before the process ended.
pub(super) fn too_many_attempts(attempts: u32) -> Fault {
    Fault::new(FaultCode::ListenerFailed, format!("the process ended {attempts} times while this message was handled"))
}

/// The listener of a thread is not registered any more.
pub(super) fn unregistered() -> Fault {
    Fault::new(FaultCode::ListenerFailed, "the listener is not registered any more")
}

/// The journal can't be written any more.
pub(super) fn unwritable() -> Fault {
    let fault = Fault::new(FaultCode::Internal, "the journal can't be written: what was not confirmed may be lost");
    Fault { retryable: true, ..fault }
}

/// An entrance speaks for nobody that is known.
pub(super) fn stranger() -> Fault {
    Fault::new(FaultCode::Internal, "an entrance named a client of another organism")
}

/// Whether a fault says that whoever got it can't speak properly, rather than that there was no
/// room or no luck.
pub(super) fn is_mistake(fault: &Fault) -> bool {
    match fault.code {
        FaultCode::Malformed | FaultCode::Envelope | FaultCode::Payload | FaultCode::Route => true,
        FaultCode::Overload
        | FaultCode::Limit
        | FaultCode::Timeout
        | FaultCode::Cancelled
        | FaultCode::ListenerFailed
        | FaultCode::Internal
        | FaultCode::Silent
        | FaultCode::Failed => false,
    }
}

fn with_rule(fault: Fault, rule: String, at: Option<Position>, example: Option<String>) -> Fault {
    Fault { rule: Some(Box::new(BrokenRule { rule, at, example })), ..fault }
}
