//! Settings of remote listeners.

use std::io;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};

use super::read_regular;

/// Allowed length of a secret, in bytes: fewer can be guessed, more are a mistake.
const SECRET: std::ops::RangeInclusive<usize> = 16..=4096;

/// Begin of a secret as Standard Webhooks writes it, and the bytes that it then has behind that, in base64.
const WEBHOOK: &str = "whsec_";
const WEBHOOK_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

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
    /// Environment variable with that secret, in place of a file.
    pub secret_env: Option<String>,
    /// True if the listener may be in a private network.
    pub allow_private: bool,
}

systole_core::vocab::setters!(Push {
    url: Option<String>,
    allowed: Option<Vec<String>>,
    format: Format,
    secret: Option<PathBuf>,
    secret_env: Option<String>,
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

    /// Reads the secret, if there is one.
    ///
    /// # Errors
    /// An explanation that names the file or the variable, and why its secret can't be used.
    pub fn read_secret(&self) -> Result<Option<Vec<u8>>, String> {
        let named = |name: &dyn std::fmt::Display, read: Result<Vec<u8>, String>| {
            read.map(Some).map_err(|why| format!("{name}: {why}"))
        };
        match (&self.secret, &self.secret_env) {
            (Some(file), _) => named(&file.display(), read_secret(file)),
            (None, Some(variable)) => named(variable, read_secret_env(variable)),
            (None, None) => Ok(None),
        }
    }

    /// Returns whether deliveries are signed with a secret.
    pub fn is_signed(&self) -> bool {
        self.secret.is_some() || self.secret_env.is_some()
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

/// Reads a secret from a file: its bytes without surrounding white space; of one that begins with `whsec_`, as Standard Webhooks
/// writes it, the bytes behind that, which are base64.
///
/// # Errors
/// An explanation why the file can't be read or the secret can't be used.
pub fn read_secret(file: &Path) -> Result<Vec<u8>, String> {
    usable(&read_regular(file, MOST).map_err(|error| error.to_string())?)
}

/// Reads a secret from a variable of the environment, as [`read_secret`] does from a file.
///
/// # Errors
/// An explanation why the variable can't be used.
pub fn read_secret_env(variable: &str) -> Result<Vec<u8>, String> {
    use std::os::unix::ffi::OsStrExt;
    let secret = std::env::var_os(variable).ok_or("the environment variable is not set")?;
    usable(secret.as_bytes())
}

fn usable(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let secret = bytes.trim_ascii();
    if let Some(written) = secret.strip_prefix(WEBHOOK.as_bytes()) {
        let decoded = std::str::from_utf8(written).ok().and_then(|written| BASE64_STANDARD.decode(written).ok());
        return decoded.filter(|bytes| WEBHOOK_BYTES.contains(&bytes.len())).ok_or_else(|| {
            let (least, most) = (WEBHOOK_BYTES.start(), WEBHOOK_BYTES.end());
            format!("behind {WEBHOOK} a secret has {least} to {most} bytes in base64")
        });
    }
    let (least, most) = (SECRET.start(), SECRET.end());
    match secret.len() {
        len if SECRET.contains(&len) => Ok(secret.to_vec()),
        len => Err(format!("a secret has {least} to {most} bytes, and this has {len}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_standard_webhooks_is_its_bytes() {
        let of = |text: &str| usable(text.as_bytes());
        assert_eq!(of(" 0123456789abcdef\n").unwrap(), b"0123456789abcdef");
        // The example of the specification.
        let key = of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        assert_eq!((key.len(), key[0]), (24, 0x31));
        for (wrong, why) in [
            ("short", "a secret has 16 to 4096 bytes, and this has 5"),
            ("whsec_", "behind whsec_ a secret has 24 to 64 bytes in base64"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "behind whsec_"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8I", "behind whsec_"),
            ("whsec_no base64 at all, but long enough", "behind whsec_"),
        ] {
            let found = of(wrong).unwrap_err();
            assert!(found.starts_with(why), "{wrong}: {found}");
        }
    }
}
