//! Payloads as JSON for programs that read and write no XML: `{"name": …}`, by the mapping of `docs/json.md`.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use systole_core::core::{Contract, HandlerOutcome, Place, ReadAnswer, Remembered, json_fault};
use systole_core::vocab::{BrokenRule, Fault, QName, XmlLimits, ns};
use systole_xml::ladder::strict::canonicalize;
use systole_xml::ladder::{Canonical, Raw};
use systole_xml::schema::{Catalog, Element, Validated, Validator};

/// The payloads of a listener as JSON: those that it gets, and those that it may send.
pub struct JsonPayloads {
    catalog: Arc<Catalog>,
    validator: RefCell<Validator>,
    sendable: Vec<QName>,
    limits: XmlLimits,
}

impl JsonPayloads {
    /// The payloads of a contract.
    pub fn new(contract: &Contract, catalog: Arc<Catalog>, limits: &XmlLimits) -> Self {
        let validator = Validator::new(catalog.clone()).into();
        let sendable = contract.replies.iter().chain(&contract.calls).cloned().collect();
        Self { catalog, validator, sendable, limits: limits.clone() }
    }

    /// Writes a payload as JSON that names it. One without a schema is a string, its XML.
    pub fn write(&self, payload: &Canonical) -> Box<RawValue> {
        let json = self.catalog.to_named_json(payload).and_then(|json| RawValue::from_string(json).ok());
        json.or_else(|| to_raw_value(payload.as_str()).ok()).unwrap_or_else(|| RawValue::NULL.to_owned())
    }

    /// Reads what the listener wrote: nothing, a payload that names itself, or an array of such.
    ///
    /// # Errors
    /// The fault of the first payload that is not valid, with JSON pointers.
    pub fn read(&self, json: &[u8]) -> Result<Vec<Validated<Element>>, Fault> {
        if json.trim_ascii().is_empty() {
            return Ok(Vec::new());
        }
        let read = self.validator.borrow_mut().payloads_of_json(json, |name| self.may_be(name), &self.limits);
        read.map_err(|refusal| json_fault(&refusal))
    }

    /// Reads one payload that names itself.
    ///
    /// # Errors
    /// The fault of a payload that is not valid, with JSON pointers.
    pub fn read_one(&self, json: &[u8]) -> Result<Validated<Element>, Fault> {
        let read = self.validator.borrow_mut().payload_of_json(json, |name| self.may_be(name), &self.limits);
        read.map_err(|refusal| json_fault(&refusal))
    }

    /// A fault as the listener learns of it: its example as JSON.
    pub fn told(&self, fault: &Fault) -> Fault {
        let rule = fault.rule.as_deref().map(|broken| {
            let example =
                broken.example.as_ref().map(|example| self.example(example).unwrap_or_else(|| example.clone()));
            Box::new(BrokenRule { example, ..broken.clone() })
        });
        Fault { rule, ..fault.clone() }
    }

    fn example(&self, xml: &str) -> Option<String> {
        let payload = canonicalize(&Bytes::copy_from_slice(xml.as_bytes()), &self.limits).ok()?;
        self.catalog.to_named_json(&payload)
    }

    /// A request to the core gives way to a payload of the listener with its local name.
    fn may_be(&self, name: &QName) -> bool {
        let own = || self.sendable.iter().any(|own| own.local() == name.local());
        self.sendable.contains(name) || name.namespace() == ns::META && !own()
    }
}

/// The outcome of a handler that wrote these bytes, and of their reading.
pub(crate) fn outcome(wrote: Raw, read: Result<Vec<Validated<Element>>, Fault>) -> HandlerOutcome {
    match read {
        Ok(payloads) => HandlerOutcome::Read(Box::new(ReadAnswer::of_valid(wrote, payloads))),
        Err(fault) => HandlerOutcome::Refused(wrote, Box::new(fault)),
    }
}

/// A payload in the form that a program reads.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Shown<'a> {
    Xml(&'a str),
    Json(Box<RawValue>),
}

impl<'a> Shown<'a> {
    pub(crate) fn of(payload: &'a Canonical, json: Option<&JsonPayloads>) -> Self {
        json.map_or_else(|| Self::Xml(payload.as_str()), |json| Self::Json(json.write(payload)))
    }
}

/// A message of the history of a thread.
#[derive(Debug, Serialize)]
pub(crate) struct Past<'a> {
    from: &'a str,
    payload: Shown<'a>,
    /// The place among all messages of the thread.
    number: u32,
    /// The place of the call that the message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<u32>,
}

impl<'a> Past<'a> {
    pub(crate) fn of(past: &'a Remembered, json: Option<&JsonPayloads>) -> Self {
        let Place { number, answers } = past.place;
        Self { from: past.from.as_str(), payload: Shown::of(&past.payload, json), number, answers }
    }
}

impl fmt::Debug for JsonPayloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonPayloads").field("sendable", &self.sendable).finish_non_exhaustive()
    }
}
