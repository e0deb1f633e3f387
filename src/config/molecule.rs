//! `gateway: { molecule: true }`, and its effects: a payload without a listed schema, a client for each workspace, and
//! a format of pushes.

use systole_core::vocab::Span;
use systole_xml::schema::PayloadSchema;

use super::document::Node;
use super::keys::Word;
use super::listener::Listener;
#[cfg(feature = "compat-molecule")]
use super::listener::Written;
use super::mistake::Mistake;
use super::organism::{Organism, Speaker};
use super::reader::Reader;
use crate::settings::Format;
#[cfg(feature = "compat-molecule")]
use crate::settings::{Mode, Push};

const FEATURE: &str = "compat-molecule";

/// Reads whether agents of that SDK are served.
pub(super) fn read(reader: &mut Reader, node: &Node) -> bool {
    let wanted = reader.flag(node).unwrap_or_default();
    if wanted {
        built(reader, "molecule", node);
    }
    wanted
}

/// Reads the format of pushes.
pub(super) fn format(reader: &mut Reader, node: &Node) -> Option<Format> {
    let format = reader.choice(node, Format::WORDS)?;
    if format == Format::Molecule {
        built(reader, "format", node);
    }
    Some(format)
}

fn built(reader: &mut Reader, key: &'static str, node: &Node) {
    if !cfg!(feature = "compat-molecule") {
        reader.report(Mistake::NotBuilt { key, feature: FEATURE }, node.span);
    }
}

/// Checks that no two listeners have one id on that platform, and listeners that get pushes in its format: they must accept
/// and reply with text alone.
#[cfg(feature = "compat-molecule")]
pub(super) fn check(reader: &mut Reader, organism: &Organism) {
    let is_on = organism.gateway.as_ref().is_some_and(|gateway| gateway.value.molecule);
    let mut ids = std::collections::HashMap::new();
    for listener in organism.listeners.iter().filter(|_| is_on) {
        if let Some(other) = ids.insert(crate::molecule::id_of(&listener.name.value), &listener.name.value) {
            reader.report(Mistake::SharedId { other: other.clone() }, listener.name.span);
        }
    }
    for listener in &organism.listeners {
        if !matches!(listener.kind, Written::Remote(Mode::Push(Push { format: Format::Molecule, .. }))) {
            continue;
        }
        let text_alone = [crate::molecule::said()];
        let contract = &listener.contract;
        let wrong = if !is_on && organism.gateway.is_some() {
            Some(("the gateway doesn't serve agents of that platform", "add molecule: true to gateway"))
        } else if contract.accepts != text_alone {
            Some((
                "it carries text alone, and this listener accepts another payload",
                "write accepts: [\"{urn:systole:chat:v1}said\"], or leave 'format' out",
            ))
        } else if contract.replies != text_alone {
            Some((
                "it carries text alone, and this listener doesn't reply with that alone",
                "write replies: [\"{urn:systole:chat:v1}said\"], or leave 'format' out",
            ))
        } else if contract.accepts_faults {
            Some(("it carries text alone, and this listener accepts faults", "leave 'accepts_faults' out"))
        } else {
            None
        };
        if let Some((problem, help)) = wrong {
            reader.report(Mistake::TextAlone { problem, help }, listener.name.span);
        }
    }
}

/// The schemas of the façade, and the place of the key that adds them.
#[cfg(feature = "compat-molecule")]
pub(super) fn schemas(organism: &Organism) -> impl Iterator<Item = (&'static PayloadSchema, Span)> {
    let place = organism.gateway.as_ref().filter(|gateway| gateway.value.molecule).map(|gateway| gateway.span);
    place.into_iter().flat_map(|place| crate::molecule::schemas().iter().map(move |schema| (schema, place)))
}

/// The clients by which workspaces open conversations: one for each remote listener that calls `said`, but for those
/// that get envelopes pushed.
#[cfg(feature = "compat-molecule")]
pub(super) fn voices(reader: &mut Reader, listeners: &[Listener]) -> Vec<Speaker> {
    use super::reader::At;
    use crate::molecule::{said, voice};
    let is_workspace = |listener: &&Listener| match &listener.kind {
        Written::Remote(Mode::Poll | Mode::Stream) => true,
        Written::Remote(Mode::Push(push)) => push.format == Format::Molecule,
        _ => false,
    };
    let speaks = |listener: &Listener| {
        let call = listener.calls.iter().find(|call| call.value == said())?.clone();
        Some((listener.name.clone(), call))
    };
    let speaker = |(name, call): (At<_>, _)| match voice(&name.value) {
        Ok(voice) => {
            let name = At { value: voice, span: name.span };
            Some(Speaker {
                name,
                called: Vec::new(),
                calls: vec![call],
                admin: false,
                budget: systole_core::vocab::Budget::NONE,
                mailbox: None,
                signatures: None,
            })
        }
        Err(error) => {
            reader.report(Mistake::Name(error), name.span);
            None
        }
    };
    listeners.iter().filter(is_workspace).filter_map(speaks).filter_map(speaker).collect()
}

/// Without the feature no schemas are added.
#[cfg(not(feature = "compat-molecule"))]
pub(super) fn schemas(_: &Organism) -> impl Iterator<Item = (&'static PayloadSchema, Span)> {
    std::iter::empty()
}

#[cfg(not(feature = "compat-molecule"))]
pub(super) fn voices(_: &mut Reader, _: &[Listener]) -> Vec<Speaker> {
    Vec::new()
}

#[cfg(not(feature = "compat-molecule"))]
pub(super) fn check(_: &mut Reader, _: &Organism) {}
