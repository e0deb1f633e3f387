//! The shape of the whole file.

use std::time::Duration;

use systole_core::core::{Access, ClientContract, MetaFlags, Scheduling};
use systole_core::vocab::{Budget, Limits, Name, QName};

use super::correction::{Items, Shape};
use super::document::Node;
use super::gateway;
use super::listener::{self, Listener};
use super::llm::{self, Llm};
use super::reader::{At, Fields, Reader};
use super::short_form::{self, Called, Prefixes};
use super::{Mistake, budget, limits, molecule};
use crate::journal::{Durability, Retention};
use crate::settings::GatewaySettings;

/// An organism as the file describes it.
#[derive(Debug)]
pub(super) struct Organism {
    pub(super) name: String,
    pub(super) scheduling: Scheduling,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) meta: MetaFlags,
    pub(super) journal: Option<JournalKeys>,
    pub(super) drain: Option<Duration>,
    pub(super) gateway: Option<At<GatewaySettings>>,
    pub(super) llm: Option<Llm>,
    pub(super) clients: Vec<Speaker>,
    pub(super) listeners: Vec<Listener>,
    /// True if each listener could be read: else no missing listener is reported.
    pub(super) complete: bool,
}

/// A client as the file describes it.
#[derive(Debug)]
pub(super) struct Speaker {
    pub(super) name: At<Name>,
    /// `calls` as it is written; `calls` once they are written out.
    pub(super) called: Vec<At<Called>>,
    pub(super) calls: Vec<At<QName>>,
    pub(super) admin: bool,
    pub(super) budget: Budget,
    /// The remote listener whose mailbox belongs to the client.
    pub(super) mailbox: Option<At<Name>>,
}

impl Speaker {
    pub(super) fn client(&self) -> ClientContract {
        let calls = self.calls.iter().map(|call| call.value.clone()).collect();
        ClientContract::new(self.name.value.clone()).calls(calls).admin(self.admin).budget(self.budget)
    }
}

pub(super) fn read(reader: &mut Reader, root: &Node) -> Option<Organism> {
    let mut fields = reader.fields(root, Shape::Root)?;
    let name = fields.require("organism", "the file", reader).and_then(|node| organism(reader, node));
    reader.prefixes = fields.take("prefixes").map(|node| Prefixes::read(reader, node)).unwrap_or_default();
    let scheduling = [("breadth-first", Scheduling::BreadthFirst), ("depth-first", Scheduling::DepthFirst)];
    let scheduling = fields.take("scheduling").and_then(|node| reader.choice(node, &scheduling)).unwrap_or_default();
    let limits = fields.take("limits").map(|node| limits::read(reader, node)).unwrap_or_default();
    let budget = budget::take(reader, &mut fields);
    let meta = fields.take("meta").map(|node| meta(reader, node)).unwrap_or_default();
    let journal = journal(reader, &mut fields);
    let drain = fields.take("drain").and_then(|node| reader.duration_from(Duration::ZERO, node));
    let gateway = fields.take("gateway").and_then(|node| gateway::read(reader, node));
    let llm = fields.take("llm").and_then(|node| llm::read(reader, node));
    let entries = Items::Maps { shape: Shape::Client, lead: "name" };
    let clients = fields.take("clients").and_then(|node| reader.items(node, entries)).unwrap_or_default();
    let mut clients: Vec<_> = clients.iter().filter_map(|node| speaker(reader, node)).collect();
    let node = fields.require("listeners", "the file", reader);
    let entries = node.and_then(|node| reader.items(node, Items::Maps { shape: Shape::Listener, lead: "name" }));
    if let (Some([]), Some(node)) = (entries, node) {
        reader.report(Mistake::NoListener, node.span);
    }
    let mut listeners: Vec<_> =
        entries.unwrap_or_default().iter().filter_map(|node| listener::read(reader, node, &limits)).collect();
    short_form::expand(reader, &mut listeners, &mut clients);
    if gateway.as_ref().is_some_and(|gateway| gateway.value.molecule) {
        clients.extend(molecule::voices(reader, &listeners));
    }
    let complete = entries.is_some_and(|entries| entries.len() == listeners.len());
    reader.finish(fields);
    let name = name.unwrap_or_default();
    Some(Organism {
        name,
        scheduling,
        limits,
        budget,
        meta,
        journal,
        drain,
        gateway,
        llm,
        clients,
        listeners,
        complete,
    })
}

/// The declaration of the journal, with its path as written.
#[derive(Debug, Clone)]
pub(super) struct JournalKeys {
    pub(super) durability: Durability,
    pub(super) file: At<String>,
    pub(super) retention: Retention,
}

fn journal(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<JournalKeys> {
    let levels = [("off", None), ("process", Some(Durability::Process)), ("power", Some(Durability::Power))];
    let level = fields.take("durability");
    let durability = level.and_then(|node| reader.choice(node, &levels)).flatten();
    let file = fields.take("journal").and_then(|node| Some((reader.text(node)?, node.span)));
    let (file, span) = file.unwrap_or(("systole.journal", level.map_or(fields.span, |node| node.span)));
    let file = At { value: file.to_owned(), span };
    let mut retention = Retention::default();
    if let Some(node) = fields.take("retention")
        && let Some(mut kept) = reader.fields(node, Shape::Retention)
    {
        if let Some(age) = kept.take("age").and_then(|node| reader.duration_from(Duration::ZERO, node)) {
            retention.age = age;
        }
        if let Some(bytes) = kept.take("bytes").and_then(|node| reader.size("bytes", node, 1, u64::MAX)) {
            retention.bytes = bytes;
        }
        reader.finish(kept);
    }
    Some(JournalKeys { durability: durability?, file, retention })
}

fn organism(reader: &mut Reader, node: &Node) -> Option<String> {
    let mut fields = reader.fields(node, Shape::Organism)?;
    let name = fields.require("name", "an organism", reader).and_then(|node| {
        let name = reader.text(node)?;
        if name.trim().is_empty() {
            reader.report(Mistake::Name(systole_core::vocab::NameError::Empty), node.span);
        }
        Some(name.to_owned())
    });
    reader.finish(fields);
    name
}

fn meta(reader: &mut Reader, node: &Node) -> MetaFlags {
    const ACCESS: [(&str, Access); 4] = [
        ("none", Access::None),
        ("peers", Access::Peers),
        ("authenticated", Access::Authenticated),
        ("admin", Access::Admin),
    ];
    let mut flags = MetaFlags::default();
    let Some(mut fields) = reader.fields(node, Shape::Meta) else { return flags };
    for (key, flag) in [
        ("list_capabilities", &mut flags.list_capabilities),
        ("request_schema", &mut flags.request_schema),
        ("request_example", &mut flags.request_example),
        ("request_prompt", &mut flags.request_prompt),
        ("spawn_thread", &mut flags.spawn_thread),
        ("clear_context", &mut flags.clear_context),
    ] {
        if let Some(access) = fields.take(key).and_then(|node| reader.choice(node, &ACCESS)) {
            *flag = access;
        }
    }
    flags.remote = fields.take("remote").and_then(|node| reader.flag(node)).unwrap_or_default();
    reader.finish(fields);
    flags
}

fn speaker(reader: &mut Reader, node: &Node) -> Option<Speaker> {
    let mut fields = reader.fields(node, Shape::Client)?;
    let name = fields.require("name", "a client", reader).and_then(|node| reader.name(node));
    let called = fields.take("calls").and_then(|node| reader.called(node)).unwrap_or_default();
    let admin = fields.take("admin").and_then(|node| reader.flag(node)).unwrap_or_default();
    let budget = budget::take(reader, &mut fields);
    let mailbox = fields.take("mailbox").and_then(|node| reader.name(node));
    reader.finish(fields);
    Some(Speaker { name: name?, called, calls: Vec::new(), admin, budget, mailbox })
}
