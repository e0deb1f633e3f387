//! A scripted agent that is pushed to: one action per connection, with a record of its requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::kit::header;

/// Action on a connection.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Reads the request, and closes the connection without an answer.
    Close,
    /// Reads the request, and sends that.
    Say(String),
}

/// Makes an answer of that status.
pub(crate) fn say(status: &str, body: &str) -> Act {
    let head = "Content-Type: application/xml\r\nConnection: close";
    Act::Say(format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
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
}

pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    requests: Receiver<Request>,
}

impl Peer {
    /// Starts a peer with these actions, one per connection; the last one repeats.
    pub(crate) fn start(script: impl Into<Vec<Act>>) -> Self {
        let script = script.into();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            let mut acts = script.iter().cloned().chain(std::iter::repeat(script.last().unwrap().clone()));
            for stream in listener.incoming() {
                if serve(stream.unwrap(), acts.next().unwrap(), &sender).is_none() {
                    return;
                }
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/in?key=hush", self.address)
    }

    /// The next request; waits for one.
    pub(crate) fn next(&self) -> Request {
        self.requests.recv_timeout(std::time::Duration::from_secs(60)).expect("waited a minute for a request")
    }

    /// The requests that the test has not read.
    pub(crate) fn rest(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

/// Serves a connection; `None` once the test has ended.
fn serve(mut stream: TcpStream, act: Act, requests: &Sender<Request>) -> Option<()> {
    // A client that leaves in the middle has sent no request.
    let Some(request) = read(&mut stream) else { return Some(()) };
    requests.send(request).ok()?;
    if let Act::Say(said) = act {
        let _ = stream.write_all(said.as_bytes());
    }
    Some(())
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
            let request = Request { head, body: String::from_utf8_lossy(&bytes[at + 4..]).into_owned() };
            let length: usize = request.header("content-length").expect("its length is known").parse().unwrap();
            if request.body.len() >= length {
                return Some(request);
            }
        }
        match stream.read(&mut piece).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
