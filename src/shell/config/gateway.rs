//! `gateway:`: where an organism is served over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::document::Node;
use super::mistake::Mistake;
use super::molecule;
use super::reader::{At, Reader};
use super::tls::{self, Tls};
use crate::vocab::Name;

/// Messages of one remote listener that are handed over at once, unless its `concurrency` says otherwise; the others
/// wait in the pump.
pub(super) const WAITING: u32 = 10_000;

/// Where an organism is served over HTTP, and what it bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The address that it listens at.
    pub listen: SocketAddr,
    /// Calls of principals under way at once, each on a connection of its own.
    pub connections: usize,
    /// Connections besides these: for admins, for health, and for clients that are not known yet.
    pub reserve: usize,
    /// Connections of one address (an IPv4 address or an IPv6 /64) without a call of a principal under way.
    pub connections_per_address: usize,
    /// Calls of one principal under way at once.
    pub connections_per_principal: usize,
    /// Bytes of bodies that are kept in memory for calls under way; at least one message fits.
    pub bodies: usize,
    /// The same of one principal.
    pub bodies_per_principal: usize,
    /// Requests of one principal in a second; as many may come at once.
    pub requests: u32,
    /// How long the head of a request may take; and a handshake of TLS.
    pub header_time: Duration,
    /// How long its body may take.
    pub body_time: Duration,
    /// Clients that have a mailbox: the remote listener whose mailbox it is.
    pub mailboxes: BTreeMap<Name, Name>,
    /// Whether agents of Molecule AI's SDK are served (feature `compat-molecule`).
    pub molecule: bool,
    /// What it shows by TLS; without it, it speaks plain HTTP.
    pub tls: Option<Tls>,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8420)),
            connections: 1024,
            reserve: 32,
            connections_per_address: 1024,
            connections_per_principal: 512,
            bodies: 64 << 20,
            bodies_per_principal: 16 << 20,
            requests: 1000,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            mailboxes: BTreeMap::new(),
            molecule: false,
            tls: None,
        }
    }
}

pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<At<Gateway>> {
    let mut fields = reader.fields(node, Some("listen"))?;
    let mut gateway = Gateway::default();
    if let Some(listen) = fields.take("listen").and_then(|node| address(reader, node)) {
        gateway.listen = listen;
    }
    gateway.tls = fields.take("tls").and_then(|node| tls::read(reader, node));
    let requests = fields.take("requests").and_then(|node| reader.number("requests", node, 1, u32::MAX.into()));
    for (key, count) in [
        ("connections", &mut gateway.connections),
        ("reserve", &mut gateway.reserve),
        ("connections_per_address", &mut gateway.connections_per_address),
        ("connections_per_principal", &mut gateway.connections_per_principal),
    ] {
        if let Some(written) = fields.take(key).and_then(|node| reader.number(key, node, 1, 1 << 16)) {
            *count = written as usize;
        }
    }
    for (key, bytes) in [("bodies", &mut gateway.bodies), ("bodies_per_principal", &mut gateway.bodies_per_principal)] {
        if let Some(written) = fields.take(key).and_then(|node| reader.size(key, node, 1, 1 << 40)) {
            *bytes = written as usize;
        }
    }
    gateway.requests = requests.map_or(gateway.requests, |requests| requests as u32);
    for (key, time) in [("header_time", &mut gateway.header_time), ("body_time", &mut gateway.body_time)] {
        if let Some(written) = fields.take(key).and_then(|node| reader.duration(node)) {
            *time = written;
        }
    }
    gateway.molecule = fields.take("molecule").is_some_and(|node| molecule::read(reader, node));
    let span = fields.span;
    reader.finish(fields);
    Some(At { value: gateway, span })
}

fn address(reader: &mut Reader, node: &Node) -> Option<SocketAddr> {
    let text = reader.text(node)?;
    let address = text.parse().ok();
    if address.is_none() {
        reader.report(Mistake::Address { text: text.to_owned() }, node.span);
    }
    address
}
