//! Settings of the entrance over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use systole_core::vocab::Name;

use super::Tls;

/// Address of the gateway, and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// Calls of principals in flight at once, each on a connection of its own.
    pub connections: usize,
    /// Connections besides these: for admins, for health, and for clients that are not authenticated yet.
    pub reserve: usize,
    /// Connections of one address (an IPv4 address or an IPv6 /64) without a call of a principal in flight.
    pub connections_per_address: usize,
    /// Calls of one principal in flight at once.
    pub connections_per_principal: usize,
    /// Bytes of bodies that are kept in memory for calls in flight; at least one message fits.
    pub bodies: usize,
    /// Bytes of such bodies of one principal.
    pub bodies_per_principal: usize,
    /// Requests of one principal per second, and the size of a burst.
    pub requests: u32,
    /// Time limit of the head of a request, and of a TLS handshake.
    pub header_time: Duration,
    /// Time limit of the body of a request.
    pub body_time: Duration,
    /// Clients that have a mailbox, each with the remote listener whose mailbox it is.
    pub mailboxes: BTreeMap<Name, Name>,
    /// True if people find pages at `/`, to see and steer the organism (docs/console.md). `Config::into_builder` reads it; a program
    /// calls `systole::console::serve`.
    pub console: bool,
    /// True if agents of Molecule AI's SDK are served (feature `compat-molecule`).
    pub molecule: bool,
    /// Certificate and key for TLS; without them, the gateway speaks plain HTTP.
    pub tls: Option<Tls>,
}

systole_core::vocab::setters!(GatewaySettings {
    listen: SocketAddr,
    connections: usize,
    reserve: usize,
    connections_per_address: usize,
    connections_per_principal: usize,
    bodies: usize,
    bodies_per_principal: usize,
    requests: u32,
    header_time: Duration,
    body_time: Duration,
    mailboxes: BTreeMap<Name, Name>,
    console: bool,
    molecule: bool,
    tls: Option<Tls>,
});

impl Default for GatewaySettings {
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
            console: false,
            molecule: false,
            tls: None,
        }
    }
}
