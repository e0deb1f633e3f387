//! The beginning of a connection by TLS.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::refusal::response;

/// First byte of a handshake (RFC 8446, section 5.1); no request of HTTP begins so.
const HANDSHAKE: u8 = 22;

/// For a client that speaks plain HTTP here.
const PLAIN: &str = "this port speaks TLS: use https";

/// Bytes that are read of what is no handshake: a connection that ends with some unread is torn down, and what it was
/// told is lost.
const UNREAD: u64 = 1 << 20;

/// Shakes hands, within that time. `None` if the other side doesn't, or speaks something else: then it is told so.
pub(super) async fn handshake(stream: TcpStream, tls: &TlsAcceptor, time: Duration) -> Option<TlsStream<TcpStream>> {
    // It has no more to say than that it can't be had.
    tokio::time::timeout(time, begin(stream, tls)).await.ok()?
}

async fn begin(mut stream: TcpStream, tls: &TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) if first[0] == HANDSHAKE => match tls.accept(stream).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(%error, "a handshake failed");
                None
            }
        },
        Ok(1) if first[0].is_ascii_uppercase() => {
            refuse(&mut stream).await;
            None
        }
        _ => None,
    }
}

/// Says what is wrong. Whoever doesn't hear it has left.
async fn refuse(stream: &mut TcpStream) {
    let _ = stream.write_all(&response(StatusCode::BAD_REQUEST, "tls", PLAIN)).await;
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream.take(UNREAD), &mut tokio::io::sink()).await;
}
