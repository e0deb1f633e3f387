//! A scripted peer: one action per connection, with a record of its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

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

pub(crate) const OK: Act = Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<b/>");

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

pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Request>,
    go: Arc<Notify>,
    // Dropped with this value, the peer hangs up.
    _task: JoinSet<()>,
}

impl Peer {
    /// Starts a peer with these actions, one per connection; the last one repeats.
    pub(crate) async fn start(script: impl Into<Vec<Act>>) -> Self {
        let script = script.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let go = Arc::new(Notify::new());
        let told = go.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            let mut acts = script.iter().copied().chain(std::iter::repeat(*script.last().unwrap()));
            while let Ok((stream, _)) = listener.accept().await {
                let act = acts.next().unwrap();
                connections.spawn(serve(stream, act, sender.clone(), told.clone()));
            }
        });
        Self { address, requests, go, _task: task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/in?token=1", self.address)
    }

    /// The next request; waits for one.
    pub(crate) async fn next(&mut self) -> Request {
        self.requests.recv().await.expect("the peer is there")
    }

    /// The requests that the test has not read.
    pub(crate) fn rest(&mut self) -> Vec<Request> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }

    /// Lets an action that waits go on.
    pub(crate) fn go_on(&self) {
        self.go.notify_one();
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

/// A port that refuses connections until this value is dropped.
pub(crate) struct Refusing {
    pub(crate) address: SocketAddr,
    _socket: TcpSocket,
}

impl Refusing {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { address: socket.local_addr().unwrap(), _socket: socket }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}
