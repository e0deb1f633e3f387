//! `gateway:`: the settings of an organism that is served over HTTP.

use std::net::SocketAddr;

use super::correction::Shape;
use super::document::Node;
use super::mistake::Mistake;
use super::molecule;
use super::reader::{At, Reader};
use super::tls;
use crate::settings::GatewaySettings;

/// Messages of one remote listener that are in its mailbox at once, unless it has a `concurrency`; further ones wait in
/// the pump.
pub(super) const WAITING: u32 = 10_000;

pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<At<GatewaySettings>> {
    let mut fields = reader.fields(node, Shape::Gateway)?;
    let mut gateway = GatewaySettings::default();
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
    let text = reader.text_such(node, "an address, such as 127.0.0.1:8420")?;
    let address = text.parse().ok();
    if address.is_none() {
        reader.report(Mistake::Address { text: text.to_owned() }, node.span);
    }
    address
}
