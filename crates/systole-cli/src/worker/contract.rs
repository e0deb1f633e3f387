//! The messages that a worker is sent, and the judge of its answers.

use std::path::PathBuf;
use std::sync::Arc;

use systole::config::Config;
use systole_core::core::{Answered, Emission, ListenerId, Silence, precheck_answer, precheck_call};
use systole_core::vocab::{Fault, Limits, MessageId, QName, ThreadId};
use systole_xml::ladder::{Canonical, Raw, parse};
use systole_xml::schema::{PayloadSchema, Validator};
use uuid::Uuid;

use crate::failure::Failure;

/// A payload that the worker takes.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) xml: String,
}

pub(super) struct Contract {
    pub(super) samples: Vec<Sample>,
    pub(super) limits: Limits,
    /// `None` if no organism is known.
    judge: Option<Judge>,
}

/// The outcome of a call.
pub(super) enum Outcome {
    /// An example of the callee's reply.
    Reply(String),
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
        let mut validator = Validator::new(Arc::new(config.catalog.clone()));
        let mut samples = read(files, &limits)?;
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
        let samples = samples.iter().map(Sample::of).collect();
        Ok(Self { samples, limits, judge: Some(Judge { config, listener, validator }) })
    }

    /// The payloads of these files, for a program whose contract is not known.
    pub(super) fn unknown(files: &[PathBuf]) -> Result<Self, Failure> {
        let limits = Limits::default();
        let samples = read(files, &limits)?.iter().map(Sample::of).collect();
        Ok(Self { samples, limits, judge: None })
    }

    /// Judges an answer as the pump would: `None` if no contract is known.
    pub(super) fn judge(&mut self, output: &Raw) -> Option<Result<(), String>> {
        let Judge { config, listener, validator } = self.judge.as_mut()?;
        let blueprint = &config.blueprint;
        // No fault names them here.
        let to = Answered { message: MessageId::from_uuid(Uuid::nil()), thread: ThreadId::from_uuid(Uuid::nil()) };
        Some(match precheck_answer(output.clone(), to, *listener, blueprint, validator) {
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
            Outcome::Reply(example.as_str().to_owned())
        })
    }
}

impl Sample {
    fn of(payload: &Canonical) -> Self {
        Self { name: payload.root().to_string(), xml: payload.as_str().to_owned() }
    }
}

fn read(files: &[PathBuf], limits: &Limits) -> Result<Vec<Canonical>, Failure> {
    let payload = |file: &PathBuf| {
        let bytes = crate::file::read(file, crate::file::DOCUMENT)?;
        parse(&Raw::new(bytes), &limits.xml)
            .map_err(|error| Failure::unusable(format!("{} holds no payload: {error}", file.display())))
    };
    files.iter().map(payload).collect()
}

/// A fault with its rule.
pub(super) fn sentence(fault: &Fault) -> String {
    let rule = fault.rule.as_ref().map_or_else(String::new, |broken| format!(": {}", broken.rule));
    format!("{}{rule}", fault.message)
}
