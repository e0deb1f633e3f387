//! Settings of remote listeners.

use std::io;
use std::path::{Path, PathBuf};

use super::read_regular;

/// Allowed length of a secret, in bytes: fewer can be guessed, more are a mistake.
const SECRET: std::ops::RangeInclusive<usize> = 16..=4096;

/// Value of `url:` for a URL that the listener registers.
pub(crate) const REPORTED: &str = "reported";

/// Transport of messages to a remote listener.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The listener polls.
    Poll,
    /// The listener reads a stream.
    Stream,
    /// The gateway posts messages to the listener.
    Push(Push),
}

/// Endpoint of a pushed listener, and the format of its deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Push {
    /// URL of the endpoint, unless the listener has registered another one since this was written; none
    /// (`url: reported`) if messages wait for the URL that the listener registers.
    pub url: Option<String>,
    /// URLs below one of which the listener may register its own; without a list, any that the address rules allow.
    pub allowed: Option<Vec<String>>,
    /// Format of a delivery, and of its answer.
    pub format: Format,
    /// File of the secret that deliveries are signed with.
    pub secret: Option<PathBuf>,
    /// True if the listener may be in a private network.
    pub allow_private: bool,
}

systole_core::vocab::setters!(Push {
    url: Option<String>,
    allowed: Option<Vec<String>>,
    format: Format,
    secret: Option<PathBuf>,
    allow_private: bool,
});

/// Format of a delivery, and of its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The envelope; the answer holds payloads.
    #[default]
    Envelope,
    /// JSON for the `A2AServer` of Molecule AI's SDK, and from it (feature `compat-molecule`).
    Molecule,
}

impl Push {
    /// The value of `url:`.
    pub fn declared(&self) -> &str {
        self.url.as_deref().unwrap_or(REPORTED)
    }
}

impl Mode {
    /// The name of the mode.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Stream => "stream",
            Self::Push(_) => "push",
        }
    }
}

/// Bytes of a file with a secret, white space included.
const MOST: u64 = 64 << 10;

/// Reads a text from a file with a secret, without surrounding white space.
///
/// # Errors
/// The error of a file that can't be read, or is no UTF-8.
pub fn read_secret_text(file: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_regular(file, MOST)?);
    let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))?;
    Ok(text.trim().to_owned())
}

/// Reads a secret from a file: its bytes without surrounding white space.
///
/// # Errors
/// An explanation why the file can't be read or the secret can't be used.
pub fn read_secret(file: &Path) -> Result<Vec<u8>, String> {
    let bytes = read_regular(file, MOST).map_err(|error| error.to_string())?;
    let secret = bytes.trim_ascii();
    let (least, most) = (SECRET.start(), SECRET.end());
    match secret.len() {
        len if SECRET.contains(&len) => Ok(secret.to_vec()),
        len => Err(format!("a secret has {least} to {most} bytes, and this has {len}")),
    }
}
