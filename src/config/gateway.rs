//! `gateway:`: the settings of an organism that is served over HTTP.

use std::net::SocketAddr;

use super::document::Node;
use super::keys::{Count, Flag, Size, Text, Time, mapping};
use super::mistake::Mistake;
use super::molecule;
use super::reader::{At, Reader};
use super::tls::{self, TlsKeys};
use crate::settings::GatewaySettings;

/// Messages of one remote listener that are in its mailbox at once, unless it has a `concurrency`; further ones wait in
/// the pump.
pub(super) const WAITING: u32 = 10_000;

mapping! {
    /// Entrance over HTTP.
    GatewayKeys: Gateway {
        /// Address and port.
        listen: Text = "127.0.0.1:8420";
        /// TLS; without it: plain HTTP.
        tls: TlsKeys<'static>;
        /// Requests of one principal in a second.
        requests: Count<1, 0xFFFF_FFFF> = 1000;
        /// Connections at once.
        connections: Count<1, 65536> = 1024;
        /// Connections besides them, for admins, health and newcomers.
        reserve: Count<1, 65536> = 32;
        /// Connections of one IPv4 address or IPv6 /64, without a call of a principal in flight.
        connections_per_address: Count<1, 65536> = 1024;
        /// Calls of one principal in flight at once.
        connections_per_principal: Count<1, 65536> = 512;
        /// Bytes of all bodies in memory; one message always fits.
        bodies: Size<1, { 1 << 40 }> = "64MiB";
        /// Bytes of the bodies of one principal.
        bodies_per_principal: Size<1, { 1 << 40 }> = "16MiB";
        /// Time for the head of a request, and for a handshake of TLS.
        header_time: Time<1> = "10s";
        /// Time for the body of a request.
        body_time: Time<1> = "30s";
        /// Pages at /, to see and steer the organism (docs/console.md).
        console: Flag = false;
        /// Service for agents of Molecule AI's SDK (docs/molecule.md).
        molecule: Flag = false;
    }
}

pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<At<GatewaySettings>> {
    let keys = GatewayKeys::open(reader, node)?;
    let mut gateway = GatewaySettings::default();
    if let Some(listen) = keys.listen.node.and_then(|node| address(reader, node)) {
        gateway.listen = listen;
    }
    gateway.tls = keys.tls.node.and_then(|node| tls::read(reader, node));
    keys.requests.set(reader, &mut gateway.requests);
    keys.connections.set(reader, &mut gateway.connections);
    keys.reserve.set(reader, &mut gateway.reserve);
    keys.connections_per_address.set(reader, &mut gateway.connections_per_address);
    keys.connections_per_principal.set(reader, &mut gateway.connections_per_principal);
    keys.bodies.set(reader, &mut gateway.bodies);
    keys.bodies_per_principal.set(reader, &mut gateway.bodies_per_principal);
    keys.header_time.set(reader, &mut gateway.header_time);
    keys.body_time.set(reader, &mut gateway.body_time);
    keys.console.set(reader, &mut gateway.console);
    gateway.molecule = keys.molecule.node.is_some_and(|node| molecule::read(reader, node));
    Some(At { value: gateway, span: keys.own.span })
}

fn address(reader: &mut Reader, node: &Node) -> Option<SocketAddr> {
    let text = reader.text_such(node, "an address, such as 127.0.0.1:8420")?;
    let address = text.parse().ok();
    if address.is_none() {
        reader.report(Mistake::Address { text: text.to_owned() }, node.span);
    }
    address
}
