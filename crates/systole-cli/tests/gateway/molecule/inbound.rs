//! A server as the SDK's `A2AServer`: it speaks as Python's `http.server`, serves one connection after the other, and keeps
//! each until its client ends it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::header;

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

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Receiver<Inbound>,
    go: Sender<Option<Value>>,
}

impl Server {
    /// Starts a server with these actions, one per request; the last one repeats.
    pub(crate) fn start(script: impl Into<Vec<Act>>) -> Self {
        let script = script.into();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        let (go, told) = channel();
        std::thread::spawn(move || {
            let last = script.last().unwrap().clone();
            let mut acts = script.into_iter().chain(std::iter::repeat(last));
            for stream in listener.incoming() {
                if serve(stream.unwrap(), &mut acts, &sender, &told).is_none() {
                    return;
                }
            }
        });
        Self { address, requests, go }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/a2a/inbound", self.address)
    }

    /// The next request; waits for one.
    pub(crate) fn next(&self) -> Inbound {
        self.requests.recv_timeout(Duration::from_secs(60)).expect("waited a minute for a push")
    }

    /// The requests that the test has not read.
    pub(crate) fn rest(&self) -> Vec<Inbound> {
        self.requests.try_iter().collect()
    }

    /// Lets a handler that waits go on.
    pub(crate) fn go_on(&self) {
        self.go.send(None).unwrap();
    }

    /// Lets a handler that waits return that.
    pub(crate) fn go_on_with(&self, result: Value) {
        self.go.send(Some(result)).unwrap();
    }
}

/// Serves one connection to its end; `None` once the test has ended.
fn serve(
    mut stream: TcpStream,
    acts: &mut impl Iterator<Item = Act>,
    requests: &Sender<Inbound>,
    told: &Receiver<Option<Value>>,
) -> Option<()> {
    let mut bytes = Vec::new();
    while let Some((head, body)) = read(&mut stream, &mut bytes) {
        if !head.starts_with("POST /a2a/inbound HTTP/1.1\r\n") {
            write(&mut stream, "404 Not Found", &json!({ "error": "not found" }));
            if head.contains("\r\nConnection: close\r\n") {
                return Some(());
            }
            continue;
        }
        let Ok(body) = serde_json::from_slice(&body) else {
            write(&mut stream, "400 Bad Request", &json!({ "error": "bad request: no JSON" }));
            continue;
        };
        requests.send(Inbound { head, body }).ok()?;
        match acts.next()? {
            Act::Return(result) => write(&mut stream, "200 OK", &json!({ "status": "ok", "result": result })),
            Act::Raise(why) => {
                let error = format!("internal error: {why}");
                write(&mut stream, "500 Internal Server Error", &json!({ "error": error }));
            }
            Act::Die => return Some(()),
            Act::ReturnWhenTold(result) => {
                let result = told.recv().ok()?.unwrap_or(result);
                write(&mut stream, "200 OK", &json!({ "status": "ok", "result": result }));
            }
        }
    }
    Some(())
}

fn write(stream: &mut TcpStream, status: &str, body: &Value) {
    let body = body.to_string();
    let head =
        "Server: BaseHTTP/0.6 Python/3.11.7\r\nDate: Mon, 23 Nov 2026 18:00:00 GMT\r\nContent-Type: application/json";
    // The caller may have gone.
    let _ = write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// The next request of a connection; `None` at its end.
fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let mut piece = [0; 4096];
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
        match stream.read(&mut piece).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
