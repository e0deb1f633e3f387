//! The script of a peer: one action per connection.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// Action on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    /// Closes the connection at once.
    Close,
    /// Reads the request, and closes the connection.
    CloseAfterRequest,
    /// Reads the request, sends that, and closes the connection.
    Say(&'static str),
    /// Reads the request, sends that, and leaves the connection open.
    SayAndHang(&'static str),
    /// Reads the request, waits for a signal of the test, and sends that.
    SayWhenTold(&'static str),
    /// Reads nothing.
    Deaf,
}

/// A request with its head and its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn key(&self) -> &str {
        self.header("idempotency-key").expect("each request has one")
    }
}

pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    act: Act,
    requests: mpsc::UnboundedSender<Request>,
    go: Arc<Notify>,
) {
    match act {
        Act::Close => return,
        Act::Deaf => return std::future::pending().await,
        _ => {}
    }
    let Some(request) = read(&mut stream).await else { return };
    let _ = requests.send(request);
    match act {
        Act::Say(text) | Act::SayAndHang(text) | Act::SayWhenTold(text) => {
            if matches!(act, Act::SayWhenTold(_)) {
                go.notified().await;
            }
            // The next request comes on a connection of its own: one action for each.
            let text = text.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.flush().await;
            if matches!(act, Act::SayAndHang(_)) {
                std::future::pending::<()>().await;
            }
            let _ = stream.shutdown().await;
        }
        Act::Close | Act::CloseAfterRequest | Act::Deaf => {}
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut request = Request { head, body: bytes.split_off(end) };
    let len: usize = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while request.body.len() < len {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}
