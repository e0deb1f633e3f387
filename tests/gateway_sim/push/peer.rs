//! A scripted agent that is pushed to: one action per connection, with a record of its requests.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;

use systole::outbound::Secret;
use systole::outbound::signature::{SignatureError, TOLERANCE};
use systole::testing::{NetworkStream, World};
use systole::vocab::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::remote::setup::{ANYWHERE, patiently};

/// Action on a connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Reads the request, and closes the connection without an answer.
    Close,
    /// Reads the request, and sends that.
    Say(String),
    /// Reads the request, waits for a signal of the test, and sends that.
    SayWhenTold(String),
}

/// Makes an answer of that status.
pub(crate) fn say(status: &str, body: &str) -> Act {
    Act::Say(text(status, body))
}

/// Makes the same answer, sent at a signal of the test.
pub(crate) fn say_when_told(status: &str, body: &str) -> Act {
    Act::SayWhenTold(text(status, body))
}

fn text(status: &str, body: &str) -> String {
    let head = "Content-Type: application/xml\r\nConnection: close";
    format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A request with its head and its body.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The id of its message: in the envelope, and the key of all attempts.
    pub(crate) fn id(&self) -> String {
        let key = self.header("idempotency-key").expect("each request has one");
        assert!(self.body.contains(&format!("<id xmlns=\"urn:systole:meta:v1\">{key}</id>")), "{}", self.body);
        key.to_owned()
    }

    /// Checks the signature as a receiver does at that time.
    pub(crate) fn verify(&self, secret: &[u8], now: Time) -> Result<(), SignatureError> {
        let header = self.header("systole-signature").unwrap_or_default();
        Secret::new(secret).verify(header, self.body.as_bytes(), now, TOLERANCE)
    }
}

/// The value of a header.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A peer in a world, which ends with it.
pub(crate) struct Peer {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    requests: RefCell<UnboundedReceiver<Request>>,
    go: UnboundedSender<()>,
}

impl Peer {
    /// Starts a peer in a world of its own with these actions, one per connection; the last one repeats.
    pub(crate) fn start(script: impl Into<Vec<Act>>) -> Self {
        Self::start_in(&World::new(), script)
    }

    /// Starts such a peer in that world.
    pub(crate) fn start_in(world: &World, script: impl Into<Vec<Act>>) -> Self {
        let script = script.into();
        let mut listener = world.network().bind(ANYWHERE.into()).unwrap();
        let address = listener.address();
        let (sender, requests) = unbounded_channel();
        let (go, mut told) = unbounded_channel();
        let serving = async move {
            let mut acts = script.iter().cloned().chain(std::iter::repeat(script.last().unwrap().clone()));
            loop {
                let (stream, _) = listener.accept().await;
                serve(stream, acts.next().unwrap(), &sender, &mut told).await;
            }
        };
        world.block_on(async { drop(tokio::task::spawn_local(serving)) });
        Self { world: world.clone(), address, requests: RefCell::new(requests), go }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/in?key=hush", self.address)
    }

    /// The next request; waits for one.
    pub(crate) fn next(&self) -> Request {
        let next = poll_fn(|context| self.requests.borrow_mut().poll_recv(context));
        self.world.block_on(patiently("a request", next)).expect("the peer is there")
    }

    /// The requests that the test has not read.
    pub(crate) fn rest(&self) -> Vec<Request> {
        std::iter::from_fn(|| self.requests.borrow_mut().try_recv().ok()).collect()
    }

    /// Lets an action that waits go on.
    pub(crate) fn go_on(&self) {
        self.go.send(()).unwrap();
    }
}

async fn serve(
    mut stream: NetworkStream,
    act: Act,
    requests: &UnboundedSender<Request>,
    told: &mut UnboundedReceiver<()>,
) {
    // A client that leaves in the middle has sent no request.
    let Some(request) = read(&mut stream).await else { return };
    let _ = requests.send(request);
    let said = match act {
        Act::Close => return,
        Act::Say(said) => said,
        Act::SayWhenTold(said) => {
            told.recv().await;
            said
        }
    };
    let _ = stream.write_all(said.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut NetworkStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
            let request = Request { head, body: String::from_utf8_lossy(&bytes[at + 4..]).into_owned() };
            let length: usize = request.header("content-length").expect("its length is known").parse().unwrap();
            if request.body.len() >= length {
                return Some(request);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
