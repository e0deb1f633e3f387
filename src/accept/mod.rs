//! The accept loop of everything that is served over HTTP/1.1: the gateway and the endpoint of agents that get pushes.
//!
//! ```text
//! accept -> Admission -> TLS -> Wire (answers of hyper itself) -> hyper -> RequestPermit -> router
//! ```
//!
//! - Connections are bounded in all, per address and per principal ([`Admission`]). A connection without a call in flight is
//!   closed in favour of a new one, the oldest first: calls in flight alone can use up all places, and some of these are
//!   kept for admins.
//! - A head, a handshake and an answer that is not read have a time limit. The reader of a body sets the body's.
//! - Refusals of hyper itself become problem documents, too ([`Wire`]).
//!
//! Not here: authentication. The router does that, and reports the principal with [`RequestPermit::enter`].

mod address;
mod admission;
mod certificate;
mod connection;
mod handshake;
mod listener;
mod refusal;
mod wire;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustix::io::Errno;
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) use address::Source;
pub(crate) use admission::{Admission, Bounds, Full, RequestPermit};
pub(crate) use listener::Listener;

use admission::Admitted;
pub(crate) use certificate::Certificate;
pub(crate) use connection::GuardedBody;
use connection::serve_http;
use handshake::handshake;
use listener::Entering;
pub(crate) use wire::ClientSide;

/// Time for the requests in flight when the entrance ends.
const GRACE: Duration = Duration::from_secs(2);

/// Pause after a failed accept, at first and at most: the system may be out of file descriptors.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Connections that are closed when the system is out of file descriptors.
const CLOSED: usize = 16;

/// The listening socket and the protocol of its connections.
pub(crate) struct Entrance {
    pub(crate) listener: Listener,
    /// TLS, if the connections use it.
    pub(crate) tls: Option<Arc<Certificate>>,
    pub(crate) times: Times,
    /// Time for which connections go on behind the end, so that a request on its way is served. Without it those that have
    /// no request in flight are closed at once.
    pub(crate) linger: Duration,
}

/// Time limits for clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Limit for a head, from the end of the answer before it; and for a handshake.
    pub(crate) header: Duration,
    /// Limit for a client to read a part of its answer.
    pub(crate) stall: Duration,
}

/// Serves until `end` is true; then lets the requests in flight end.
pub(crate) async fn serve(
    entrance: Entrance,
    admission: Arc<Admission>,
    router: Router,
    mut end: watch::Receiver<bool>,
) {
    let Entrance { mut listener, tls, times, linger } = entrance;
    let (closing, closes) = watch::channel(false);
    let mut pause = PAUSE.0;
    let mut ends = false;
    loop {
        // With no room left, connections wait in the queue of the system.
        let entered = async {
            if ends {
                // Those that the system has accepted by now.
                return timeout(Duration::ZERO, listener.accept()).await.ok();
            }
            admission.until_vacant().await;
            Some(listener.accept().await)
        };
        let entered = tokio::select! {
            _ = end.wait_for(|end| *end), if !ends => {
                if linger.is_zero() {
                    break;
                }
                ends = true;
                continue;
            }
            entered = entered => match entered {
                Some(entered) => entered,
                None => break,
            },
        };
        match entered {
            Ok((stream, peer)) => {
                pause = PAUSE.0;
                let (tls, router, end) = (tls.clone(), router.clone(), closes.clone());
                match admission.admit(Source::of(peer.ip())) {
                    Ok(admitted) => drop(tokio::spawn(serve_connection(stream, tls, (admitted, times), router, end))),
                    Err(full) => refuse(stream, tls.is_some(), full),
                }
                // The connection reads its head before others come that could take its place.
                tokio::task::yield_now().await;
            }
            Err(error) if is_exhausted(&error) => {
                let closed = admission.evict_idle(CLOSED);
                tracing::warn!(%error, closed, "no connection can be accepted: idle ones are closed");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
            // The client has left before it was accepted.
            Err(error) => {
                tracing::debug!(%error, "a connection was lost before it was accepted");
                tokio::task::yield_now().await;
            }
        }
    }
    drop(listener);
    let _ = timeout(linger, admission.until_empty()).await;
    closing.send_replace(true);
    let _ = timeout(GRACE, admission.until_empty()).await;
}

/// Checks whether the process or the system has no descriptor or no memory left.
fn is_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

async fn serve_connection(
    stream: Entering,
    tls: Option<Arc<Certificate>>,
    (admitted, times): (Arc<Admitted>, Times),
    router: Router,
    end: watch::Receiver<bool>,
) {
    let place = admitted.clone();
    let served = async move {
        match (stream, tls) {
            (Entering::System(stream), None) => serve_http(stream, admitted, times, router, end).await,
            (Entering::System(stream), Some(tls)) => {
                if let Some(stream) = handshake(stream, &tls.acceptor(), times.header).await {
                    serve_http(stream, admitted, times, router, end).await;
                }
            }
            #[cfg(feature = "testing")]
            (Entering::World(stream), _) => serve_http(stream, admitted, times, router, end).await,
        }
    };
    tokio::select! {
        () = served => {}
        () = place.evicted() => {}
    }
}

/// Refuses a connection for lack of room, as far as that takes no time.
fn refuse(mut stream: Entering, encrypted: bool, full: Full) {
    if !encrypted {
        // A client that doesn't read the refusal has left.
        stream.write_now(&refusal::response(full.status(), "connections", &full.to_string()));
    }
}
