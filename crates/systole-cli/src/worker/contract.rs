//! The messages that a worker is sent, and the judge of its answers.

use std::fmt::Display;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use systole::config::{Config, ListenerKind};
use systole::listeners::json::JsonPayloads;
use systole::listeners::worker::Output;
use systole_core::core::{
    Answered, Emission, ListenerId, ReadAnswer, Silence, precheck_answer, precheck_call, precheck_read,
};
use systole_core::vocab::{Fault, Limits, MessageId, QName, ThreadId};
use systole_xml::ladder::{Canonical, Raw, parse};
use systole_xml::schema::{PayloadSchema, Validator};
use uuid::Uuid;

use crate::failure::Failure;

/// A payload that the worker takes.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    /// The payload as it stands in a line.
    pub(super) payload: Box<RawValue>,
}

pub(super) struct Contract {
    pub(super) samples: Vec<Sample>,
    pub(super) limits: Limits,
    /// The payloads of the lines as JSON; `None` if they are XML.
    pub(super) json: Option<Rc<JsonPayloads>>,
    /// `None` if no organism is known.
    judge: Option<Judge>,
}

/// The outcome of a call.
pub(super) enum Outcome {
    /// An example of the callee's reply.
    Reply(Canonical),
    /// The pump would refuse the call with this fault.
    Refused(Fault),
    /// The call is good; why no reply is known.
    Unknown(&'static str),
}

struct Judge {
    config: Config,
    listener: ListenerId,
    validator: Validator,
}

impl Contract {
    /// The contract of a listener: examples of what it accepts, or the payloads of these files.
    pub(super) fn of(config: Config, listener: ListenerId, files: &[PathBuf]) -> Result<Self, Failure> {
        let limits = config.blueprint.limits.clone();
        let contract = &config.blueprint[listener];
        let catalog = Arc::new(config.catalog.clone());
        let is_json = matches!(config.kinds.get(listener.0 as usize), Some(ListenerKind::Worker(spec)) if spec.json);
        let json = is_json.then(|| Rc::new(JsonPayloads::new(contract, catalog.clone(), &limits.xml)));
        let mut validator = Validator::new(catalog);
        let mut samples = read(files, &limits, Some(&mut validator))?;
        for payload in &samples {
            if !contract.accepts.contains(payload.root()) {
                return Err(Failure::unusable(format!("{} doesn't accept {}", contract.name, payload.root())));
            }
            if let Err(error) = validator.validate(payload.clone()) {
                return Err(Failure::unusable(format!("a payload {} is not valid: {error}", payload.root())));
            }
        }
        if samples.is_empty() {
            let examples = contract.accepts.iter().filter_map(|payload| config.catalog.get(payload)?.example());
            samples.extend(examples.cloned());
        }
        if samples.is_empty() {
            return Err(Failure::unusable(format!(
                "no example could be made of what {} accepts: name a file with a payload, --payload FILE",
                contract.name
            )));
        }
        let samples = samples.iter().map(|payload| Sample::of(payload, json.as_deref())).collect();
        Ok(Self { samples, limits, json, judge: Some(Judge { config, listener, validator }) })
    }

    /// The payloads of these files, for a program whose contract is not known.
    pub(super) fn unknown(files: &[PathBuf]) -> Result<Self, Failure> {
        let limits = Limits::default();
        let samples = read(files, &limits, None)?.iter().map(|payload| Sample::of(payload, None)).collect();
        Ok(Self { samples, limits, json: None, judge: None })
    }

    /// Judges an answer as the pump would: `None` if no contract is known.
    pub(super) fn judge(&mut self, output: &Output) -> Option<Result<(), String>> {
        let Judge { config, listener, validator } = self.judge.as_mut()?;
        let blueprint = &config.blueprint;
        // No fault names them here.
        let to = Answered { message: MessageId::from_uuid(Uuid::nil()), thread: ThreadId::from_uuid(Uuid::nil()) };
        let checked = match output.clone() {
            Output::Xml(raw) => precheck_answer(raw, to, *listener, blueprint, validator),
            Output::Json(raw, payloads) => payloads.and_then(|payloads| {
                precheck_read(ReadAnswer::of_valid(raw, payloads), to, *listener, blueprint, validator)
            }),
        };
        Some(match checked {
            Ok(checked) if checked.read.parts.is_empty() && blueprint[*listener].silence == Silence::Error => {
                Err("it has no payload, which is a fault for its caller: `silence: idle` in the contract allows it"
                    .into())
            }
            Ok(checked) if checked.replies > 1 => {
                let replies = checked.replies;
                Err(format!("it has {replies} replies: the first one is the answer, and the others are dead letters"))
            }
            Ok(_) => Ok(()),
            Err(fault) => Err(sentence(&fault)),
        })
    }

    /// The outcome of a call: the fault with which the pump would refuse it, or else an example of its reply.
    pub(super) fn outcome(&mut self, call: &Result<Emission, Fault>) -> Outcome {
        let call = match call {
            Ok(call) => call,
            Err(fault) => return Outcome::Refused(fault.clone()),
        };
        let Some(Judge { config, listener, validator }) = self.judge.as_mut() else {
            return Outcome::Unknown("no --organism says what its calls are replied to with");
        };
        let blueprint = &config.blueprint;
        if let Err(fault) = precheck_call(call, *listener, blueprint, validator) {
            return Outcome::Refused(fault);
        }
        let payload = call.payload.clone().into_payload();
        let is_meant = |may: &&QName| {
            let is = |root: &QName| *may == root || (root.namespace().is_empty() && may.local() == root.local());
            payload.as_ref().is_some_and(|payload| is(payload.root()))
        };
        let meant = blueprint[*listener].calls.iter().find(is_meant);
        let callees = meant.into_iter().flat_map(|payload| blueprint.accepting(payload)).map(|&id| &blueprint[id]);
        let callees = callees.filter(|callee| call.to.as_ref().is_none_or(|to| callee.name == *to));
        let example = |reply| config.catalog.get(reply).and_then(PayloadSchema::example);
        let found = callees.flat_map(|callee| &callee.replies).find_map(example);
        found.map_or(Outcome::Unknown("no example of a reply to its calls could be made"), |example| {
            Outcome::Reply(example.clone())
        })
    }
}

impl Sample {
    fn of(payload: &Canonical, json: Option<&JsonPayloads>) -> Self {
        let xml = || to_raw_value(payload.as_str()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { name: payload.root().to_string(), payload: json.map_or_else(xml, |json| json.write(payload)) }
    }
}

/// Reads payloads: XML, or JSON where the schemas are known.
fn read(files: &[PathBuf], limits: &Limits, mut validator: Option<&mut Validator>) -> Result<Vec<Canonical>, Failure> {
    let mut payload = |file: &PathBuf| {
        let bytes = crate::file::read(file, crate::file::DOCUMENT)?;
        let no_payload =
            |error: &dyn Display| Failure::unusable(format!("{} holds no payload: {error}", file.display()));
        if crate::json::is_json(&bytes) {
            let Some(validator) = validator.as_deref_mut() else {
                return Err(no_payload(
                    &"payloads as JSON need an organism, whose schemas tell their form: --organism FILE",
                ));
            };
            let read = validator.payload_of_json(&bytes, |_| true, &limits.xml);
            return read.map(|valid| valid.payload().clone()).map_err(|refusal| no_payload(&refusal));
        }
        parse(&Raw::new(bytes), &limits.xml).map_err(|error| no_payload(&error))
    };
    files.iter().map(&mut payload).collect()
}

/// A fault with its rule.
pub(super) fn sentence(fault: &Fault) -> String {
    let rule = fault.rule.as_ref().map_or_else(String::new, |broken| format!(": {}", broken.rule));
    format!("{}{rule}", fault.message)
}
