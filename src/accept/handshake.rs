//! The handshake of TLS at the beginning of a connection.

use std::time::Duration;

use axum::http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::refusal::response;

/// First byte of a handshake (RFC 8446, section 5.1); no HTTP request begins with it.
const HANDSHAKE: u8 = 22;

/// Refusal of a client that sends plain HTTP to a TLS port.
const PLAIN: &str = "this port speaks TLS: use https";

/// Most bytes that are read of a client that begins no handshake: a connection that is closed with bytes unread is
/// reset, and its client may lose the refusal.
const UNREAD: u64 = 1 << 20;

/// Makes the handshake, within `time`. `None` if the client doesn't, or uses another protocol, which is refused.
pub(super) async fn handshake(stream: TcpStream, tls: &TlsAcceptor, time: Duration) -> Option<TlsStream<TcpStream>> {
    // A refusal is all that such a client gets.
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

/// Refuses a client; one that doesn't read the refusal has left.
async fn refuse(stream: &mut TcpStream) {
    let _ = stream.write_all(&response(StatusCode::BAD_REQUEST, "tls", PLAIN)).await;
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream.take(UNREAD), &mut tokio::io::sink()).await;
}
