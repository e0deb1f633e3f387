//! `gateway: { molecule: true }`, and what comes with it: a payload that nobody lists, and a client for each workspace.

use super::document::Node;
use super::listener::Listener;
use super::mistake::Mistake;
use super::organism::{Organism, Speaker};
use super::reader::Reader;
use crate::schema::PayloadSchema;
use crate::vocab::Span;

const FEATURE: &str = "compat-molecule";

/// Whether agents of that SDK are served.
pub(super) fn read(reader: &mut Reader, node: &Node) -> bool {
    let wanted = reader.flag(node).unwrap_or_default();
    if wanted && !cfg!(feature = "compat-molecule") {
        reader.report(Mistake::NotBuilt { key: "molecule", feature: FEATURE }, node.span);
    }
    wanted
}

/// The schemas that come with it, and the place that says so.
#[cfg(feature = "compat-molecule")]
pub(super) fn schemas(organism: &Organism) -> impl Iterator<Item = (&'static PayloadSchema, Span)> {
    let place = organism.gateway.as_ref().filter(|gateway| gateway.value.molecule).map(|gateway| gateway.span);
    place.into_iter().flat_map(|place| crate::molecule::schemas().iter().map(move |schema| (schema, place)))
}

/// The clients by which workspaces speak first: one for each remote listener that reads and calls `said`.
#[cfg(feature = "compat-molecule")]
pub(super) fn voices(reader: &mut Reader, listeners: &[Listener]) -> Vec<Speaker> {
    use super::listener::Written;
    use super::reader::At;
    use super::remote::Mode;
    use crate::molecule::{said, voice};
    let reads = |listener: &&Listener| matches!(listener.kind, Written::Remote(Mode::Poll | Mode::Stream));
    let speaks = |listener: &Listener| {
        let call = listener.calls.iter().find(|call| call.value == said())?.clone();
        Some((listener.name.clone(), call))
    };
    let speaker = |(name, call): (At<_>, _)| match voice(&name.value) {
        Ok(voice) => {
            Some(Speaker { name: At { value: voice, span: name.span }, calls: vec![call], admin: false, mailbox: None })
        }
        Err(error) => {
            reader.report(Mistake::Name(error), name.span);
            None
        }
    };
    listeners.iter().filter(reads).filter_map(speaks).filter_map(speaker).collect()
}

/// Nothing comes with it in a program that was built without.
#[cfg(not(feature = "compat-molecule"))]
pub(super) fn schemas(_: &Organism) -> impl Iterator<Item = (&'static PayloadSchema, Span)> {
    std::iter::empty()
}

#[cfg(not(feature = "compat-molecule"))]
pub(super) fn voices(_: &mut Reader, _: &[Listener]) -> Vec<Speaker> {
    Vec::new()
}
