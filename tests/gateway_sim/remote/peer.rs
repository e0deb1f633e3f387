//! A scripted peer in the network of a world.

use std::net::SocketAddr;
use std::sync::Arc;

use systole::testing::Network;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::script::{Request, serve};
use super::setup::{ANYWHERE, patiently};

pub(crate) use super::script::Act;

/// A peer, which hangs up when this value is dropped.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Request>,
    _task: JoinSet<()>,
}

impl Peer {
    /// Starts a peer in the world of this task with these actions, one per connection; the last one repeats.
    pub(crate) async fn start(script: impl Into<Vec<Act>>) -> Self {
        let script = script.into();
        let mut listener = Network::current().unwrap().bind(ANYWHERE.into()).unwrap();
        let address = listener.address();
        let (sender, requests) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            let mut acts = script.iter().copied().chain(std::iter::repeat(*script.last().unwrap()));
            loop {
                let (stream, _) = listener.accept().await;
                connections.spawn(serve(stream, acts.next().unwrap(), sender.clone(), Arc::new(Notify::new())));
            }
        });
        Self { address, requests, _task: task }
    }

    /// The next request; waits for one.
    pub(crate) async fn next(&mut self) -> Request {
        patiently("a request", self.requests.recv()).await.expect("the peer is there")
    }

    /// The requests that the test has not read.
    pub(crate) fn rest(&mut self) -> Vec<Request> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}
