//! `systole schema`, `example`, `prompt` and `reference`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::process::ExitCode;

use systole::config::{Config, ListenerKind, Mistake, REFERENCE, SCHEMA};
use systole::settings::ModelSettings;
use systole_core::core::ClientContract;
use systole_core::vocab::{Name, QName, near};
use systole_xml::ladder::{Canonical, write_example};
use systole_xml::schema::PayloadSchema;

use super::Describe;
use super::failure::Failure;
use super::print;
use super::units;

/// Part of a payload's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Schema,
    JsonSchema,
    Example,
    /// The example in an envelope.
    Envelope,
    Prompt,
}

/// `systole schema|example|prompt`: of one payload, or of all payloads of the organism, each once.
pub(super) fn describe(what: &Describe, part: Part) -> Result<ExitCode, Failure> {
    let config = Config::load(&what.organism).map_err(Failure::Config)?;
    let shown = match &what.payload {
        Some(payload) => {
            let payload = config.payload(payload).map_err(mistaken)?;
            let schema = find(&payload, &config)?;
            let payload = schema.qname();
            if part == Part::Envelope && sender(payload, &config).is_none() {
                return Err(Failure::no(format!("no client may send {payload}: add it to the `calls` of a client")));
            }
            Shown {
                missing: Vec::new(),
                texts: vec![text(schema, part, &config).ok_or_else(|| no_example(&[payload]))?],
            }
        }
        None => all(part, &config)?,
    };
    let mut page = String::new();
    for (index, text) in shown.texts.into_iter().enumerate() {
        if index > 0 && part == Part::Prompt {
            page.push('\n');
        }
        page.push_str(text.trim_end_matches('\n'));
        page.push('\n');
    }
    print::document(page.as_bytes())?;
    if shown.missing.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(no_example(&shown.missing)) }
}

/// The texts to print, and the payloads that have none.
struct Shown<'c> {
    texts: Vec<Cow<'c, str>>,
    missing: Vec<&'c QName>,
}

/// The part of all payloads; in an envelope, of those that a client may send.
fn all(part: Part, config: &Config) -> Result<Shown<'_>, Failure> {
    let (mut texts, mut missing) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    let sent = |schema: &&PayloadSchema| part != Part::Envelope || sender(schema.qname(), config).is_some();
    for schema in config.payloads().filter(sent) {
        match text(schema, part, config) {
            // Payloads of one document share it.
            Some(text) if seen.insert(text.clone()) => texts.push(text),
            Some(_) => {}
            None => missing.push(schema.qname()),
        }
    }
    if part == Part::Envelope && texts.is_empty() && missing.is_empty() {
        return Err(Failure::no("no client may send a payload: add one to the `calls` of a client"));
    }
    Ok(Shown { texts, missing })
}

fn no_example(payloads: &[&QName]) -> Failure {
    const NAMED: usize = 10;
    let mut names: Vec<String> = payloads.iter().take(NAMED).map(ToString::to_string).collect();
    if payloads.len() > NAMED {
        names.push(format!("{} more", payloads.len() - NAMED));
    }
    Failure::no(format!("no example could be made of {}", names.join(", ")))
}

/// `systole prompt --listener`: the prompt of a model that speaks for the listener.
pub(super) fn listener(what: &Describe, name: &Name) -> Result<ExitCode, Failure> {
    let config = Config::load(&what.organism).map_err(Failure::Config)?;
    let names: Vec<&str> = config.blueprint.listeners().map(|(_, listener)| listener.name.as_str()).collect();
    let found = config.blueprint.listeners().zip(&config.kinds).find(|((_, listener), _)| listener.name == *name);
    let Some(((id, _), kind)) = found else {
        let near = near::nearest(name.as_str(), names.iter().copied());
        let near = near.map_or_else(String::new, |near| format!(": did you mean '{near}'?"));
        return Err(Failure::no(format!("there is no listener '{name}'{near}")));
    };
    let settings = match kind {
        ListenerKind::Model(settings) => settings.clone(),
        // A command may ask a model itself.
        _ => ModelSettings::default(),
    };
    print::document(settings.system_prompt(id, &config.blueprint, &config.catalog).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// `systole reference`: every key of an organism.yaml, or a JSON Schema of them.
pub(super) fn reference(schema: bool) -> Result<ExitCode, Failure> {
    print::document(if schema { SCHEMA } else { REFERENCE }.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The schema of the payload of that name, or of the only one with that local name.
fn find<'c>(payload: &QName, config: &'c Config) -> Result<&'c PayloadSchema, Failure> {
    let mut namesakes = config.payloads().filter(|schema| schema.qname().local() == payload.local());
    let only = namesakes.next().filter(|_| payload.namespace().is_empty() && namesakes.next().is_none());
    config.catalog.get(payload).or(only).ok_or_else(|| unknown(payload, config))
}

/// The text of a part. An example may be missing: some schemas leave no way to find one. An envelope is missing, too, where
/// no client may send it.
fn text<'c>(schema: &'c PayloadSchema, part: Part, config: &Config) -> Option<Cow<'c, str>> {
    Some(match part {
        Part::Schema => schema.document().into(),
        Part::JsonSchema => format!("{:#}", schema.json_schema()).into(),
        Part::Example => schema.example().map(Canonical::as_str)?.into(),
        Part::Envelope => write_example(&sender(schema.qname(), config)?.name, schema.example()?).into(),
        Part::Prompt => schema.prompt().into(),
    })
}

/// A client that may send the payload.
fn sender<'c>(payload: &QName, config: &'c Config) -> Option<&'c ClientContract> {
    config.blueprint.clients().map(|(_, client)| client).find(|client| client.calls.contains(payload))
}

/// A text that names no payload.
fn mistaken(mistake: Mistake) -> Failure {
    Failure::unusable(units::told(&mistake))
}

fn unknown(payload: &QName, config: &Config) -> Failure {
    let declared: Vec<&QName> = config.payloads().map(PayloadSchema::qname).collect();
    let near = near::payload(payload, declared.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    let known: Vec<String> = declared.iter().map(|declared| format!("  {declared}")).collect();
    Failure::no(format!("no schema declares {payload}; {near}the schemas declare\n{}", known.join("\n")))
}
