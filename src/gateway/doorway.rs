//! The entrance of a node, which outlives the gateways behind it: an organism comes and goes there, and its address stays.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{BoundSocket, GatewayError, narrowed};
use crate::accept::{Admission, Bounds, Entrance, Listener, Times, serve};
use crate::process::descriptors::for_connections;
use crate::settings::GatewaySettings;

/// Time for requests that are on their way when the node ends.
const LINGER: Duration = Duration::from_secs(1);

/// A bound address with the connections of a node.
pub(crate) struct NodeEntrance {
    socket: BoundSocket,
    admission: Arc<Admission>,
    times: Times,
}

/// Takes the calls of a gateway to the entrance, or away from there.
pub(crate) type Install = Arc<dyn Fn(Option<Router>) + Send + Sync>;

/// The place of a gateway behind the entrance of its node.
#[derive(Clone)]
pub(crate) struct Doorway {
    pub(super) admission: Arc<Admission>,
    pub(super) address: SocketAddr,
    pub(super) is_tls: bool,
    install: Install,
}

impl NodeEntrance {
    /// Binds the address of a gateway.
    ///
    /// # Errors
    /// [`GatewayError`] if the address or the certificate can't be used.
    pub(crate) fn bind(settings: &GatewaySettings) -> Result<Self, GatewayError> {
        let socket = BoundSocket::open(settings)?;
        let GatewaySettings { connections, reserve, connections_per_address, connections_per_principal, .. } =
            narrowed(settings.clone(), for_connections(settings.connections));
        let (per_address, per_principal) = (connections_per_address, connections_per_principal);
        let admission = Admission::new(Bounds { connections, reserve, per_address, per_principal });
        let times = Times { header: settings.header_time, stall: settings.body_time };
        Ok(Self { socket, admission, times })
    }

    /// The address.
    ///
    /// # Errors
    /// [`GatewayError`] if the system does not tell it.
    pub(crate) fn address(&self) -> Result<SocketAddr, GatewayError> {
        Ok(self.socket.listener.local_addr()?)
    }

    /// The place of gateways behind it.
    ///
    /// # Errors
    /// As [`address`](Self::address).
    pub(crate) fn doorway(&self, install: Install) -> Result<Doorway, GatewayError> {
        let (admission, address, is_tls) = (self.admission.clone(), self.address()?, self.socket.tls.is_some());
        Ok(Doorway { admission, address, is_tls, install })
    }

    /// Serves until `end` is true; then lets the requests in flight end, for that time at most.
    ///
    /// # Errors
    /// [`GatewayError`] if the system refuses the socket.
    pub(crate) async fn run(
        self,
        router: Router,
        end: watch::Receiver<bool>,
        patience: Duration,
    ) -> Result<(), GatewayError> {
        let BoundSocket { listener, tls } = self.socket;
        let listener = Listener::System(tokio::net::TcpListener::from_std(listener)?);
        let admission = self.admission.clone();
        serve(Entrance { listener, tls, times: self.times, linger: LINGER }, self.admission, router, end).await;
        let _ = timeout(patience, admission.until_empty()).await;
        Ok(())
    }
}

impl Doorway {
    /// Lets requests come to these calls.
    pub(super) fn open(&self, router: Router) {
        (self.install)(Some(router));
    }

    /// Lets no further request come; those that are there go on.
    pub(super) fn close(&self) {
        (self.install)(None);
    }
}

impl std::fmt::Debug for Doorway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doorway").field("address", &self.address).finish_non_exhaustive()
    }
}
