//! A relay before an organism, at an address that outlives its restarts: it counts, loses, keeps and changes what passes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::kit::header;

/// A request that passes.
pub(super) struct Passing {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: String,
}

/// What becomes of a request.
pub(super) enum Way {
    /// It goes on to the organism, and the answer comes back.
    Pass,
    /// It goes on, and the answer is lost: the connection is closed.
    Lose,
    /// It goes on, and the answer is changed.
    Change(Box<dyn FnOnce(String) -> String + Send>),
    /// This is the answer, without the organism.
    Say(String),
    /// The connection is closed at once.
    Close,
    /// There is no answer until the test ends.
    Hang,
}

type Decide = Box<dyn FnMut(&Passing) -> Way + Send>;

struct Shared {
    target: SocketAddr,
    decide: Decide,
    passed: Vec<String>,
    /// Connections that hang.
    held: Vec<TcpStream>,
}

pub(super) struct Relay {
    pub(super) address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl Relay {
    pub(super) fn new(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (passed, held) = (Vec::new(), Vec::new());
        let shared = Arc::new(Mutex::new(Shared { target, decide: Box::new(|_| Way::Pass), passed, held }));
        let known = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = known.clone();
                // One that is cut off has no answer.
                std::thread::spawn(move || serve(stream, &shared).unwrap_or_default());
            }
        });
        Self { address, shared }
    }

    /// Goes on to another address: the organism has started again.
    pub(super) fn redirect(&self, target: SocketAddr) {
        self.shared.lock().unwrap().target = target;
    }

    pub(super) fn decide(&self, decide: impl FnMut(&Passing) -> Way + Send + 'static) {
        self.shared.lock().unwrap().decide = Box::new(decide);
    }

    /// The requests so far: method and path.
    pub(super) fn passed(&self) -> Vec<String> {
        self.shared.lock().unwrap().passed.clone()
    }
}

fn serve(mut stream: TcpStream, shared: &Mutex<Shared>) -> std::io::Result<()> {
    let Some(request) = read(&mut stream)? else { return Ok(()) };
    let (way, target) = {
        let mut shared = shared.lock().unwrap();
        shared.passed.push(format!("{} {}", request.method, request.path));
        ((shared.decide)(&request), shared.target)
    };
    let pass = || -> std::io::Result<String> {
        let mut onward = TcpStream::connect(target)?;
        let Passing { head, body, .. } = &request;
        onward.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes())?;
        let mut answer = String::new();
        onward.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = match way {
        Way::Pass => pass()?,
        Way::Lose => return pass().map(drop),
        Way::Change(change) => change(pass()?),
        Way::Say(answer) => answer,
        Way::Close => return Ok(()),
        Way::Hang => {
            shared.lock().unwrap().held.push(stream);
            return Ok(());
        }
    };
    stream.write_all(answer.as_bytes())
}

/// Reads a request; none where the connection ends first.
fn read(stream: &mut TcpStream) -> std::io::Result<Option<Passing>> {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    let end = loop {
        if let Some(at) = all.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            read => all.extend_from_slice(&piece[..read]),
        }
    };
    let head = String::from_utf8_lossy(&all[..end + 2]).into_owned();
    let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    while all.len() < end + 4 + length {
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            read => all.extend_from_slice(&piece[..read]),
        }
    }
    let body = String::from_utf8_lossy(&all[end + 4..]).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    Ok(Some(Passing { method, path, head, body }))
}

/// An answer with that status and body.
pub(super) fn says(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}
