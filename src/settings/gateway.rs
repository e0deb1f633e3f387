use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use systole_core::vocab::Name;

use super::Tls;

/// Where an organism is served over HTTP, and what it bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
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
            molecule: false,
            tls: None,
        }
    }
}
