//! `schedules:`: messages that clients send at times.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::tz::TimeZone;
use systole_core::core::{Blueprint, Party, Unreadable, precheck};
use systole_core::vocab::{Limits, Name, Span, XmlLimits, ns};
use systole_xml::ladder::{Canonical, Raw, parse};
use systole_xml::schema::{Catalog, Validator};

use super::correction::{Items, Shape};
use super::document::Node;
use super::keys::{Count, List, Named, OneOf, Text, Time, Word, mapping};
use super::mistake::Mistake;
use super::organism::Organism;
use super::reader::{At, Reader};
use crate::schedules::{Missed, Overlap, ScheduleSpec, Timing};

/// Missed ticks that are made up for under `missed: all`, unless the file says another number.
const MOST_MISSED: u32 = 10;
/// The shortest and the longest interval.
const INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(366 * 24 * 60 * 60));

/// A schedule as the file describes it.
#[derive(Debug)]
pub(super) struct Written {
    spec: ScheduleSpec,
    client: At<Name>,
    to: Option<At<Name>>,
    message: At<Canonical>,
}

/// The rule for missed ticks, without its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissedWord {
    Skip,
    Once,
    All,
}

mapping! {
    /// A schedule: a message that a client sends at times, once a tick (docs/schedules.md).
    ScheduleKeys: Schedule {
        /// Name of the schedule.
        name: Named, of "a schedule";
        /// Ticks as the five fields of crontab(5): minute, hour, day of the month, month, day of the week; or @daily and so on.
        cron: Text;
        /// Time zone of the fields, by its name of IANA.
        zone: Text = "UTC";
        /// Interval between ticks, counted from 1970-01-01T00:00:00Z; instead of `cron`.
        every: Time<1000>;
        /// Client that sends the message.
        r#as: Named, of "a schedule";
        /// Listener that gets it, where several accept the payload.
        to: Named;
        /// Payload, as XML.
        message: Text, of "a schedule";
        /// Ticks at which the organism did not run: none of them, the last one, or the last ones are made up for.
        missed: OneOf<MissedWord> = "once";
        /// Most ticks that `missed: all` makes up for; older ones are missed.
        most_missed: Count<1, 1000> = 10;
        /// Whether a tick has a message while the conversation of an earlier one is open.
        overlap: OneOf<Overlap> = "allow";
    }
}

impl Word for MissedWord {
    const WORDS: &'static [(&'static str, Self)] = &[("skip", Self::Skip), ("once", Self::Once), ("all", Self::All)];
}

impl Word for Overlap {
    const WORDS: &'static [(&'static str, Self)] = &[("allow", Self::Allow), ("skip", Self::Skip)];
}

/// The key of the file.
pub(super) type SchedulesKey<'n> = List<ScheduleKeys<'n>>;

fn wrong(problem: impl Into<String>, help: impl Into<String>) -> Mistake {
    Mistake::Schedule { problem: problem.into(), help: help.into() }
}

/// Reads the list.
pub(super) fn read(reader: &mut Reader, node: &Node, limits: &Limits) -> Vec<Written> {
    let entries = reader.items(node, Items::Maps { shape: Shape::Schedule, lead: "name" }).unwrap_or_default();
    let mut all: Vec<Written> = Vec::with_capacity(entries.len());
    for node in entries {
        let Some((written, span)) = entry(reader, node, &limits.xml) else { continue };
        let name = written.spec.name();
        if all.iter().any(|other| other.spec.name() == name) {
            let problem = format!("there is a schedule '{name}' already");
            reader.report(wrong(problem, "give one of them another name: its state is kept under it"), span);
        }
        all.push(written);
    }
    all
}

fn entry(reader: &mut Reader, node: &Node, limits: &XmlLimits) -> Option<(Written, Span)> {
    let keys = ScheduleKeys::open(reader, node)?;
    let name = keys.name.read(reader);
    let timing = timing(reader, &keys);
    let client = keys.r#as.read(reader);
    let to = keys.to.read(reader);
    let message = keys.message.node.and_then(|node| message(reader, node, limits));
    let word = keys.missed.read(reader);
    let most = keys.most_missed.read(reader).and_then(|most| u32::try_from(most).ok());
    if let (Some(_), Some((_, span)), false) = (most, keys.most_missed.place(), word == Some(MissedWord::All)) {
        reader.report(wrong("most_missed bounds missed: all alone", "add missed: all, or leave most_missed out"), span);
    }
    let missed = match word {
        Some(MissedWord::Skip) => Missed::Skip,
        Some(MissedWord::Once) | None => Missed::Once,
        Some(MissedWord::All) => Missed::All(most.unwrap_or(MOST_MISSED)),
    };
    let overlap = keys.overlap.read(reader).unwrap_or_default();
    let (name, client, message) = (name?, client?, message?);
    let spec = match ScheduleSpec::new(name.value, client.value.clone(), timing?, message.value.clone()) {
        Ok(spec) => spec.missed(missed).overlap(overlap),
        Err(error) => {
            reader.report(Mistake::Name(error), name.span);
            return None;
        }
    };
    let spec = match &to {
        Some(to) => spec.to(to.value.clone()),
        None => spec,
    };
    Some((Written { spec, client, to, message }, name.span))
}

fn timing(reader: &mut Reader, keys: &ScheduleKeys<'_>) -> Option<Timing> {
    let zone = keys.zone.node.map(|node| zone(reader, node));
    match (keys.cron.node, keys.every.node) {
        (Some(node), None) => {
            let text = reader.text_such(node, "five fields, such as 0 8 * * 1-5")?;
            match text.parse() {
                Ok(cron) => Some(Timing::Cron(cron, zone.unwrap_or(Some(TimeZone::UTC))?)),
                Err(error) => {
                    let help = "write minute, hour, day of the month, month and day of the week: 30 8 * * 1-5 is half past eight, Monday to Friday";
                    reader.report(wrong(format!("'{text}' can't be a cron expression: {error}"), help), node.span);
                    None
                }
            }
        }
        (None, Some(node)) => {
            if let Some((_, span)) = keys.zone.place() {
                let help = "leave zone out: the ticks are multiples of the interval since 1970 in UTC; for times of a clock write cron";
                reader.report(wrong("an interval has no time zone", help), span);
            }
            let every = keys.every.read(reader)?;
            if !(INTERVAL.0..=INTERVAL.1).contains(&every) || every.subsec_nanos() != 0 {
                let help = "write 30s, 15m or 24h";
                reader.report(wrong("an interval has whole seconds, from 1s to 366 days", help), node.span);
                return None;
            }
            Some(Timing::Every(every))
        }
        (Some(_), Some(node)) => {
            reader.report(wrong("a schedule has cron or every, not both", "leave one of them out"), node.span);
            None
        }
        (None, None) => {
            let help = "add cron: 0 8 * * 1-5, or every: 15m";
            reader.report(wrong("a schedule needs a key 'cron' or 'every'", help), keys.own.span);
            None
        }
    }
}

fn zone(reader: &mut Reader, node: &Node) -> Option<TimeZone> {
    let name = reader.text_such(node, "a time zone, such as Europe/Berlin")?;
    match TimeZone::get(name) {
        Ok(zone) => Some(zone),
        Err(_) => {
            let help = "write a name of IANA's database, such as Europe/Berlin, America/New_York or UTC";
            reader.report(wrong(format!("there is no time zone '{name}'"), help), node.span);
            None
        }
    }
}

fn message(reader: &mut Reader, node: &Node, limits: &XmlLimits) -> Option<At<Canonical>> {
    let text = reader.text_such(node, "a payload, such as '<report xmlns=\"urn:example\"/>'")?;
    match parse(&Raw::new(Bytes::copy_from_slice(text.as_bytes())), limits) {
        Ok(value) => Some(At { value, span: node.span }),
        Err(error) => {
            let help = "write one element, such as '<report xmlns=\"urn:example\"/>'; behind `message: |` it may have several lines";
            reader.report(wrong(format!("the message is no XML: {error}"), help), node.span);
            None
        }
    }
}

/// Judges each message as the pump will, and returns the schedules.
pub(super) fn check(
    reader: &mut Reader,
    organism: &Organism,
    catalog: Option<&Catalog>,
    blueprint: &Blueprint,
) -> Vec<ScheduleSpec> {
    let mut validator = catalog.filter(|_| organism.complete).map(|catalog| Validator::new(Arc::new(catalog.clone())));
    for Written { spec, client, to, message } in &organism.schedules {
        let Some(Party::Client(id)) = blueprint.party(client.value.as_str()) else {
            let help = format!("add it to clients: - {{ name: {}, calls: [LISTENER] }}", client.value);
            reader.report(wrong(format!("there is no client '{}'", client.value), help), client.span);
            continue;
        };
        if let Some(listener) = organism.listeners.iter().find(|listener| listener.name.value == *spec.record()) {
            let problem = format!("'{}' is kept for the state of the schedule '{}'", spec.record(), spec.name());
            reader.report(wrong(problem, "give the listener another name"), listener.name.span);
        }
        if blueprint[id].signatures.is_some() {
            let help = "name a client without keys: the pump has no key to sign as that client";
            let problem = format!("the messages of '{}' must be signed, and those of a schedule aren't", client.value);
            reader.report(wrong(problem, help), client.span);
            continue;
        }
        if let Some(to) = to
            && !matches!(blueprint.party(to.value.as_str()), Some(Party::Listener(_)))
        {
            let problem = format!("there is no listener '{}'", to.value);
            reader.report(wrong(problem, "name one of the listeners, or leave `to` out"), to.span);
            continue;
        }
        let Some(validator) = &mut validator else { continue };
        let name = &client.value;
        let to = to.as_ref().map_or_else(String::new, |to| format!("<e:to>{}</e:to>", to.value));
        let envelope = format!(
            "<e:message xmlns:e=\"{}\"><e:meta><e:from>{name}</e:from>{to}</e:meta>{}</e:message>",
            ns::ENVELOPE,
            message.value.as_str()
        );
        if let Err(Unreadable { fault, .. }) = precheck(&Raw::new(envelope), id, blueprint, validator) {
            let help = format!(
                "write a payload that '{name}' may call, as `systole example` prints it, or add it to the calls of '{name}'"
            );
            let problem = format!("'{name}' can't send this message: {fault}");
            reader.report(wrong(problem, help), message.span);
        }
    }
    organism.schedules.iter().map(|written| written.spec.clone()).collect()
}
