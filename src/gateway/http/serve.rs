//! Connections: how many, and how long the head of a request may take.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::Gate;
use super::handshake::handshake;

/// Bytes of the head of a request.
const HEAD: usize = 64 << 10;

/// How long requests that are under way may take once it ends.
const GRACE: Duration = Duration::from_secs(2);

/// How long nobody is let in after the system could not: it may be out of files.
const PAUSE: Duration = Duration::from_millis(50);

/// Where connections come from, and what they speak.
pub(in crate::gateway) struct Entrance {
    pub(in crate::gateway) listener: TcpListener,
    /// TLS, if they speak that.
    pub(in crate::gateway) tls: Option<TlsAcceptor>,
    /// What is served.
    pub(in crate::gateway) router: Router,
}

/// Serves until told to end; then lets requests that are under way end.
pub(in crate::gateway) async fn serve(entrance: Entrance, gate: Arc<Gate>, mut end: watch::Receiver<bool>) {
    let room = gate.room.clone();
    let (connections, header_time) = (gate.settings.connections, gate.settings.header_time);
    let Entrance { listener, tls, router: service } = entrance;
    loop {
        // Past the limit connections wait with the system, until one of these ends.
        let entered = async {
            let permit = room.clone().acquire_owned().await;
            (listener.accept().await, permit)
        };
        let entered = tokio::select! {
            _ = end.wait_for(|end| *end) => break,
            entered = entered => entered,
        };
        let (Ok((stream, _)), Ok(permit)) = entered else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (service, tls, end) = (service.clone(), tls.clone(), end.clone());
        tokio::spawn(async move {
            // It only makes small answers wait for others.
            let _ = stream.set_nodelay(true);
            match tls {
                None => speak(stream, service, header_time, end).await,
                Some(tls) => {
                    if let Some(stream) = handshake(stream, &tls, header_time).await {
                        speak(stream, service, header_time, end).await;
                    }
                }
            }
            drop(permit);
        });
    }
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(GRACE, room.acquire_many(all)).await;
}

/// Speaks HTTP until the other side leaves, or this one ends.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Router,
    header_time: Duration,
    mut end: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = async { drop(end.wait_for(|end| *end).await) };
    // A client that leaves in the middle is nobody's mistake.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = ended => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
