//! `remote:`, where it says how a listener that is elsewhere gets its messages.

use std::path::{Path, PathBuf};

use super::document::Node;
use super::mistake::Mistake;
use super::molecule;
use super::reader::{Fields, Reader};

/// Bytes of a secret: fewer can be guessed, more are a mistake.
const SECRET: std::ops::RangeInclusive<usize> = 16..=4096;

/// Word for a URL that the listener registers.
const REPORTED: &str = "reported";

/// How a remote listener gets its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// It asks for them.
    Poll,
    /// It reads a stream of them.
    Stream,
    /// They are sent to it.
    Push(Push),
}

/// Where the messages of a listener are sent, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// URL that messages are sent to, unless the listener has registered another one since this was written; none
    /// (`url: reported`) if messages wait for the URL that the listener registers.
    pub url: Option<String>,
    /// URLs below one of which the listener may register its own; without a list, any that the address rules allow.
    pub allowed: Option<Vec<String>>,
    /// Body of a delivery, and of its answer.
    pub format: Format,
    /// File of the secret that deliveries are signed with.
    pub secret: Option<PathBuf>,
    /// Whether the listener may be in a private network.
    pub allow_private: bool,
}

/// Body of a delivery, and of its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// The envelope; the answer is payloads.
    #[default]
    Envelope,
    /// JSON for the `A2AServer` of Molecule AI's SDK, and from it (feature `compat-molecule`).
    Molecule,
}

impl Push {
    /// What stands behind `url:`.
    pub fn declared(&self) -> &str {
        self.url.as_deref().unwrap_or(REPORTED)
    }
}

impl Mode {
    /// Its name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Stream => "stream",
            Self::Push(_) => "push",
        }
    }
}

#[derive(Clone, Copy)]
enum Way {
    Poll,
    Stream,
    Push,
}

/// What stands behind `remote:`.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Mode> {
    let mut fields = reader.fields(node, Some("mode"))?;
    let ways = [("poll", Way::Poll), ("stream", Way::Stream), ("push", Way::Push)];
    let way = fields.require("mode", "a remote listener", reader).and_then(|node| reader.choice(node, &ways));
    let mode = match way {
        Some(Way::Push) => push(reader, &mut fields).map(Mode::Push),
        Some(Way::Poll) => Some(Mode::Poll),
        Some(Way::Stream) => Some(Mode::Stream),
        None => None,
    };
    for key in ["url", "allowed", "format", "secret", "allow_private"] {
        if let Some(node) = fields.take(key).filter(|_| way.is_some()) {
            reader.report(Mistake::Pointless { key, kind: "remote and not pushed to" }, node.span);
        }
    }
    reader.finish(fields);
    mode
}

fn push(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Push> {
    let allow_private = fields.take("allow_private").and_then(|node| reader.flag(node)).unwrap_or_default();
    let secret = fields.take("secret").and_then(|node| secret(reader, node));
    let format = fields.take("format").and_then(|node| molecule::format(reader, node)).unwrap_or_default();
    let node = fields.require("url", "a listener that is pushed to", reader)?;
    let is_reported = reader.text(node)? == REPORTED;
    let allowed = if is_reported {
        fields.require("allowed", "a listener that reports its URL", reader)
    } else {
        fields.take("allowed")
    };
    let allowed = allowed.and_then(|node| reader.list(node));
    let allowed = allowed.map(|list| list.iter().filter_map(|node| url(reader, node, allow_private)).collect());
    if is_reported && allowed.is_none() {
        return None;
    }
    let url = if is_reported { None } else { Some(url(reader, node, allow_private)?) };
    Some(Push { url, allowed, format, secret, allow_private })
}

fn url(reader: &mut Reader, node: &Node, allow_private: bool) -> Option<String> {
    let url = reader.text(node)?.to_owned();
    if let Err(problem) = judge(&url, allow_private) {
        reader.report(Mistake::Url { problem, private: !allow_private && judge(&url, true).is_ok() }, node.span);
    }
    Some(url)
}

fn secret(reader: &mut Reader, node: &Node) -> Option<PathBuf> {
    let written = reader.text(node)?;
    let file = reader.directory.join(written);
    if let Err(why) = read_secret(&file) {
        reader.report(Mistake::File { what: "secret", path: written.into(), why }, node.span);
    }
    Some(file)
}

/// The secret in a file: its bytes, but for white space around them.
///
/// # Errors
/// Why it can't be used.
pub(crate) fn read_secret(file: &Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let secret = bytes.trim_ascii();
    let (least, most) = (SECRET.start(), SECRET.end());
    match secret.len() {
        len if SECRET.contains(&len) => Ok(secret.to_vec()),
        len => Err(format!("a secret has {least} to {most} bytes, and this has {len}")),
    }
}

#[cfg(feature = "gateway")]
fn judge(url: &str, allow_private: bool) -> Result<(), String> {
    use crate::outbound::{Guard, check_url};
    check_url(url, &if allow_private { Guard::private() } else { Guard::new() })
}

/// Nothing is sent by a program that was built without its gateway.
#[cfg(not(feature = "gateway"))]
fn judge(_: &str, _: bool) -> Result<(), String> {
    Ok(())
}
