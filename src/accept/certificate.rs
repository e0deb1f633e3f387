//! TLS by the certificate and the key that the files have now: whoever renews them replaces the files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use systole_store::clock::Clock;
use tokio_rustls::TlsAcceptor;

use crate::settings::{Tls, TlsProblem};

/// TLS of an entrance. Each connection looks at the files, and reads them again if they are others than before. Files that
/// can't be used leave the certificate before them in force, and are an error in the log, once.
///
/// A renewal that replaces two files is seen between the two, too: the key then belongs to another certificate, until the second
/// file is there.
pub(crate) struct Certificate {
    files: Tls,
    held: Mutex<Held>,
}

struct Held {
    acceptor: TlsAcceptor,
    /// The files as they were looked at last.
    seen: [Option<Stamp>; 2],
}

/// Marks of a file's content: device, inode, bytes, and the time of the last change in seconds and nanoseconds.
#[derive(PartialEq, Eq)]
struct Stamp(u64, u64, u64, i64, i64);

impl Stamp {
    fn of(file: &Path) -> Option<Self> {
        let file = fs::metadata(file).ok()?;
        Some(Self(file.dev(), file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
    }
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsProblem`] says which file can't be used, and why.
    pub(crate) fn load(files: &Tls) -> Result<Self, TlsProblem> {
        // Looked at before they are read: a change in between is a change.
        let seen = stamps(files);
        let acceptor = Arc::new(files.load()?).into();
        Ok(Self { files: files.clone(), held: Mutex::new(Held { acceptor, seen }) })
    }

    /// The acceptor of a connection that begins now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = stamps(&self.files);
        if seen != held.seen {
            held.seen = seen;
            let file = self.files.cert.display();
            match self.files.load() {
                Ok(config) => {
                    held.acceptor = Arc::new(config).into();
                    tracing::info!(%file, "the certificate was read again");
                    // Its owner wants it: an organism that starts now would take it, too.
                    let now = Clock::real().now();
                    match self.files.validity() {
                        Some((_, until)) if until <= now => {
                            tracing::warn!(%file, %until, "the renewed certificate has expired: clients refuse it");
                        }
                        Some((from, until)) if from > now => {
                            tracing::warn!(%file, %from, %until, "the renewed certificate is not valid yet: clients refuse it");
                        }
                        _ => {}
                    }
                }
                Err(error) => {
                    tracing::error!(%file, "the changed certificate is not used, but the one before it: {error}")
                }
            }
        }
        held.acceptor.clone()
    }
}

fn stamps(files: &Tls) -> [Option<Stamp>; 2] {
    [&files.cert, &files.key].map(|file| Stamp::of(file))
}
