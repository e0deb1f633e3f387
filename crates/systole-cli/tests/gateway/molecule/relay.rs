//! A relay between an agent and its pump: it keeps its address while the pump comes and goes, and answers some requests
//! itself.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A relay; it ends with the test.
#[derive(Clone)]
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    to: Arc<Mutex<SocketAddr>>,
    /// Answers to the next requests: a word that must be in the path, the status.
    answers: Arc<Mutex<VecDeque<(&'static str, u16)>>>,
}

impl Relay {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            to: Arc::new(Mutex::new(address)),
            answers: Arc::default(),
        };
        let own = relay.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                // A client that leaves in the middle is no error.
                std::thread::spawn(move || drop(own.pass(stream)));
            }
        });
        relay
    }

    /// Notes the new address of the pump.
    pub(crate) fn moved(&self, address: SocketAddr) {
        *self.to.lock().unwrap() = address;
    }

    /// Answers the next request to such a path with that status, after those that wait for one.
    pub(crate) fn answer(&self, path: &'static str, status: u16) {
        self.answers.lock().unwrap().push_back((path, status));
    }

    fn pass(&self, mut from: TcpStream) -> std::io::Result<()> {
        let request = request(&mut from)?;
        let path = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let path = String::from_utf8_lossy(path).into_owned();
        let status = {
            let mut answers = self.answers.lock().unwrap();
            let is_next = answers.front().is_some_and(|(word, _)| path.contains(word));
            if is_next { answers.pop_front() } else { None }
        };
        if let Some((_, status)) = status {
            let head =
                format!("HTTP/1.1 {status} x\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return from.write_all(head.as_bytes());
        }
        let to = *self.to.lock().unwrap();
        let mut to = TcpStream::connect(to)?;
        to.write_all(&request)?;
        let mut answer = Vec::new();
        to.read_to_end(&mut answer)?;
        from.write_all(&answer)
    }
}

/// Reads a whole request.
fn request(from: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut request, mut some) = (Vec::new(), [0; 4096]);
    loop {
        let read = from.read(&mut some)?;
        request.extend_from_slice(&some[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if read == 0 {
                return Ok(request);
            }
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if read == 0 || body.len() >= length.unwrap_or(0) {
            return Ok(request);
        }
    }
}
