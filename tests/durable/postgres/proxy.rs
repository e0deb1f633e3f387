//! A proxy before a server that cuts connections in the middle of an append.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use super::server::Server;

/// The begin of an append, as it is on the wire.
const APPEND: &[u8] = b"INSERT INTO systole.log";

/// The part of an exchange that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Request = 1,
    Answer = 2,
}

/// A proxy; its threads end with the test.
pub(crate) struct Proxy {
    folder: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The way of the next cut; 0 for none.
    next: AtomicU8,
    requests: AtomicUsize,
    answers: AtomicUsize,
}

impl Proxy {
    pub(crate) fn start(server: &Server) -> Self {
        let folder = server.folder().join("proxy");
        std::fs::create_dir(&folder).unwrap();
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
        let (shared, socket) = (Arc::new(Shared::default()), server.socket());
        let accept = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = UnixStream::connect(&socket).unwrap();
                let shared = accept.clone();
                std::thread::spawn(move || carry(client, server, &shared));
            }
        });
        Self { folder, shared }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Loses that part of the next append.
    pub(crate) fn cut_next(&self, way: Way) {
        self.shared.next.store(way as u8, Ordering::SeqCst);
    }

    /// The answers and requests that were lost.
    pub(crate) fn cuts(&self) -> [usize; 2] {
        [&self.shared.answers, &self.shared.requests].map(|count| count.load(Ordering::SeqCst))
    }
}

/// Carries a connection, until one side ends it or a part of an append is lost.
fn carry(mut client: UnixStream, mut server: UnixStream, shared: &Shared) {
    let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        let is_append = bytes.windows(APPEND.len()).any(|window| window == APPEND);
        let way = if is_append { shared.next.swap(0, Ordering::SeqCst) } else { 0 };
        if way == Way::Request as u8 {
            shared.requests.fetch_add(1, Ordering::SeqCst);
            break;
        }
        if way == Way::Answer as u8 {
            // Nothing goes back from here on, and the server does the work all the same.
            let _ = client.shutdown(Shutdown::Both);
            shared.answers.fetch_add(1, Ordering::SeqCst);
            let _ = server.write_all(bytes);
            break;
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Write);
    let _ = back.join();
}
