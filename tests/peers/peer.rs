//! A scripted peer: one action per connection, with a record of its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::script::{Request, serve};

pub(crate) use super::script::Act;

pub(crate) const OK: Act = Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<b/>");

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
