//! Faults as payloads.

use std::sync::Arc;

use systole_xml::ladder::Canonical;
use systole_xml::ladder::strict::canonicalize;
use systole_xml::schema::{DecodeError, DecodeFn, DecodeProblem};

use super::boot::core_qname;
use super::reader::{ElementReader, Problem};
use super::writer::Writer;
use crate::vocab::{BrokenRule, Fault, FaultCode, Position, QName, XmlLimits, ns};

/// The name of the fault for failures that the pump finds.
pub fn system_error_qname() -> QName {
    core_qname("system-error")
}

/// The name of the fault for failures of a listener: reported, or ended without an answer.
pub fn agent_error_qname() -> QName {
    core_qname("agent-error")
}

/// Returns whether a payload of this name is a fault.
pub fn is_fault(payload: &QName) -> bool {
    payload.namespace() == ns::CORE && matches!(payload.local(), "system-error" | "agent-error")
}

/// The payload that carries a fault. Characters that XML can't carry become U+FFFD; an example that is no XML is
/// left out.
pub fn write_fault(fault: &Fault) -> Canonical {
    let mut out = Writer::new(ns::CORE, fault.code.element())
        .element("code", fault.code.as_str())
        .element("message", &fault.message)
        .element("retryable", if fault.retryable { "true" } else { "false" });
    if let Some(id) = fault.in_reply_to {
        out = out.element("in-reply-to", &id.to_string());
    }
    if let Some(BrokenRule { rule, at, example }) = fault.rule.as_deref() {
        let place = at.map(|at| [at.line, at.column].map(|number| number.max(1).to_string()));
        let attributes = place.iter().flat_map(|[line, column]| [("line", line.as_str()), ("column", column.as_str())]);
        out = out.start("rule", &attributes.collect::<Vec<_>>()).text(rule).end();
        let example = example.as_ref().and_then(|text| canonicalize(&text.clone().into(), &XmlLimits::UNLIMITED).ok());
        if let Some(example) = example {
            out = out.start("example", &[]).embed(&example).end();
        }
    }
    out.finish()
}

/// The name of the element that keeps a refused output.
pub fn refused_qname() -> QName {
    core_qname("refused")
}

/// An output that was refused, with the fault that says why: the form in the context of a thread and in the journal.
/// It is never sent. Characters that XML can't carry become U+FFFD.
pub fn write_refused(output: &str, fault: &Fault) -> Canonical {
    Writer::new(ns::CORE, "refused").embed(&write_fault(fault)).element("output", output).finish()
}

/// The reason why a payload is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no fault: {reason}")]
#[non_exhaustive]
pub struct FaultError {
    /// The part that is missing or wrong.
    pub reason: String,
    /// The position in the sender's document.
    pub at: Option<Position>,
}

/// The fault that a payload carries.
///
/// # Errors
/// [`FaultError`] if the payload breaks the schema of faults.
pub fn read_fault(payload: &Canonical) -> Result<Fault, FaultError> {
    let error = |problem: Problem| FaultError { reason: problem.reason, at: payload.position(problem.element) };
    read(payload).map_err(error)
}

/// Decodes a fault for a listener that accepts faults: the decoded value is a [`Fault`].
pub fn fault_decoder() -> DecodeFn {
    Arc::new(|payload| match read_fault(payload.payload()) {
        Ok(fault) => Ok(Box::new(fault)),
        Err(error) => Err(DecodeError::new(DecodeProblem::Refused(error.to_string()), error.at)),
    })
}

fn read(payload: &Canonical) -> Result<Fault, Problem> {
    if !is_fault(payload.root()) {
        return Err(Problem::new(format!("<{}> is none", payload.root()), 0));
    }
    let mut reader = ElementReader::open(payload)?;
    let found = reader.required_text("code")?;
    let code = FaultCode::named(&found).filter(|code| code.element() == payload.root().local());
    let code = code.ok_or_else(|| reader.problem(format!("unknown code '{found}'")))?;
    let message = reader.required_text("message")?;
    let retryable = match reader.required_text("retryable")?.as_str() {
        "true" | "1" => true,
        "false" | "0" => false,
        other => return Err(reader.problem(format!("retryable is '{other}', neither true nor false"))),
    };
    let in_reply_to = match reader.optional_text("in-reply-to")? {
        Some((id, _)) => Some(id.parse().map_err(|error| reader.problem(format!("{error}")))?),
        None => None,
    };
    let rule = match reader.optional_text("rule")? {
        Some((rule, tag)) => {
            let number = |name: &str| tag.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok());
            let at = number("line").zip(number("column")).map(|(line, column)| Position { line, column });
            let example = reader.optional_child("example")?.map(|example| example.as_str().to_owned());
            Some(Box::new(BrokenRule { rule, at, example }))
        }
        None => None,
    };
    reader.end()?;
    Ok(Fault { code, message: message.into(), retryable, in_reply_to, rule })
}
