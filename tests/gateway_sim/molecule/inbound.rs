//! A server as the SDK's `A2AServer`: it speaks as Python's `http.server`, serves one connection after the other, and keeps
//! each until its client ends it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use systole::testing::{NetworkStream, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::push::peer::header;
use crate::remote::setup::{ANYWHERE, patiently};

/// Action of the handler on a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Returns that.
    Return(Value),
    /// Raises an exception.
    Raise(&'static str),
    /// The process ends.
    Die,
    /// Returns that at a signal of the test, or the value of the signal.
    ReturnWhenTold(Value),
}

/// A request for its handler.
#[derive(Debug, Clone)]
pub(crate) struct Inbound {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Inbound {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// A server in a world, which ends with it.
pub(crate) struct Server {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    requests: RefCell<UnboundedReceiver<Inbound>>,
    go: UnboundedSender<Option<Value>>,
}

impl Server {
    /// Starts a server in a world of its own with these actions, one per request; the last one repeats.
    pub(crate) fn start(script: impl Into<Vec<Act>>) -> Self {
        Self::start_in(&World::new(), script)
    }

    /// Starts such a server in that world.
    pub(crate) fn start_in(world: &World, script: impl Into<Vec<Act>>) -> Self {
        let script = script.into();
        let mut listener = world.network().bind(ANYWHERE.into()).unwrap();
        let address = listener.address();
        let (sender, requests) = unbounded_channel();
        let (go, mut told) = unbounded_channel();
        let serving = async move {
            let last = script.last().unwrap().clone();
            let mut acts = script.into_iter().chain(std::iter::repeat(last));
            loop {
                let (stream, _) = listener.accept().await;
                serve(stream, &mut acts, &sender, &mut told).await;
            }
        };
        world.block_on(async { drop(tokio::task::spawn_local(serving)) });
        Self { world: world.clone(), address, requests: RefCell::new(requests), go }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/a2a/inbound", self.address)
    }

    /// The next request; waits for one.
    pub(crate) fn next(&self) -> Inbound {
        let next = poll_fn(|context| self.requests.borrow_mut().poll_recv(context));
        self.world.block_on(patiently("a push", next)).expect("the server is there")
    }

    /// Sends a request of somebody else to another path; the answer is what the server says to its end.
    pub(crate) async fn ask_elsewhere(&self) -> String {
        let mut stream = self.world.network().connect(self.address).unwrap();
        let request = "POST /elsewhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        said
    }

    /// The requests that the test has not read.
    pub(crate) fn rest(&self) -> Vec<Inbound> {
        std::iter::from_fn(|| self.requests.borrow_mut().try_recv().ok()).collect()
    }

    /// Lets a handler that waits go on.
    pub(crate) fn go_on(&self) {
        self.go.send(None).unwrap();
    }

    /// Lets a handler that waits go on after that time.
    pub(crate) fn go_on_in(&self, time: Duration) {
        let go = self.go.clone();
        let later = async move {
            tokio::time::sleep(time).await;
            go.send(None).unwrap();
        };
        self.world.block_on(async { drop(tokio::task::spawn_local(later)) });
    }

    /// Lets a handler that waits return that.
    pub(crate) fn go_on_with(&self, result: Value) {
        self.go.send(Some(result)).unwrap();
    }
}

/// Serves one connection to its end.
async fn serve(
    mut stream: NetworkStream,
    acts: &mut impl Iterator<Item = Act>,
    requests: &UnboundedSender<Inbound>,
    told: &mut UnboundedReceiver<Option<Value>>,
) {
    let mut bytes = Vec::new();
    while let Some((head, body)) = read(&mut stream, &mut bytes).await {
        if !head.starts_with("POST /a2a/inbound HTTP/1.1\r\n") {
            write(&mut stream, "404 Not Found", &json!({ "error": "not found" })).await;
            if head.contains("\r\nConnection: close\r\n") {
                return;
            }
            continue;
        }
        let Ok(body) = serde_json::from_slice(&body) else {
            write(&mut stream, "400 Bad Request", &json!({ "error": "bad request: no JSON" })).await;
            continue;
        };
        let _ = requests.send(Inbound { head, body });
        match acts.next().expect("the last one repeats") {
            Act::Return(result) => write(&mut stream, "200 OK", &json!({ "status": "ok", "result": result })).await,
            Act::Raise(why) => {
                let error = format!("internal error: {why}");
                write(&mut stream, "500 Internal Server Error", &json!({ "error": error })).await;
            }
            Act::Die => return,
            Act::ReturnWhenTold(result) => {
                let result = told.recv().await.flatten().unwrap_or(result);
                write(&mut stream, "200 OK", &json!({ "status": "ok", "result": result })).await;
            }
        }
    }
}

async fn write(stream: &mut NetworkStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head =
        "Server: BaseHTTP/0.6 Python/3.11.7\r\nDate: Mon, 23 Nov 2026 18:00:00 GMT\r\nContent-Type: application/json";
    // The caller may have gone.
    let said = format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(said.as_bytes()).await;
}

/// The next request of a connection; `None` at its end.
async fn read(stream: &mut NetworkStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..at + 2].to_vec()).unwrap();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
            });
            // `A2AServer` takes a request without one for an empty body.
            let end = at + 4 + length.expect("its length is known");
            if bytes.len() >= end {
                let body = bytes[at + 4..end].to_vec();
                bytes.drain(..end);
                return Some((head, body));
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}
