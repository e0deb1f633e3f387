//! `remote:`, with the way in which a remote listener gets its messages.

use std::path::PathBuf;

use super::document::Node;
use super::human::AnnounceKeys;
use super::keys::{Flag, OneOf, Text, Texts, Word, mapping};
use super::llm;
use super::mistake::Mistake;
use super::molecule;
use super::reader::Reader;
use crate::settings::{Format, Mode, Push, REPORTED, read_secret, read_secret_env};

/// The form of a URL that messages are pushed to, in remedies.
const URL: &str = "a URL, such as https://agent.example/inbox";

mapping! {
    /// An agent elsewhere.
    RemoteKeys: Remote {
        /// Way of its messages: the agent polls, it reads a stream, or the gateway pushes to its URL.
        mode: OneOf<Way>, of "a remote listener";
        /// True if the URL may be an address of a private network; of `push`.
        allow_private: Flag = false;
        /// File of the secret that signs pushes (docs/outbound.md).
        secret: Text;
        /// Environment variable with that secret, in place of a file.
        secret_env: Text;
        /// Format of pushes.
        format: OneOf<Format> = "envelope";
        /// URL of pushes; `reported`: the agent registers it.
        url: Text;
        /// URLs that the agent may register.
        allowed: Texts;
    }
}

#[derive(Clone, Copy)]
pub(super) enum Way {
    Poll,
    Stream,
    Push,
}

impl Word for Way {
    const WORDS: &'static [(&'static str, Self)] =
        &[("poll", Self::Poll), ("stream", Self::Stream), ("push", Self::Push)];
}

impl Word for Format {
    const WORDS: &'static [(&'static str, Self)] = &[("envelope", Self::Envelope), ("molecule", Self::Molecule)];
}

/// Reads the value of `remote:`.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Mode> {
    let keys = RemoteKeys::open(reader, node)?;
    let mode = match keys.mode.read(reader)? {
        Way::Push => return push(reader, &keys).map(Mode::Push),
        Way::Poll => Mode::Poll,
        Way::Stream => Mode::Stream,
    };
    let of_push = [
        keys.url.place(),
        keys.allowed.place(),
        keys.format.place(),
        keys.secret.place(),
        keys.secret_env.place(),
        keys.allow_private.place(),
    ];
    for (key, span) in of_push.into_iter().flatten() {
        reader.report(Mistake::Pointless { key, kind: "remote and not pushed to" }, span);
    }
    Some(mode)
}

fn push(reader: &mut Reader, keys: &RemoteKeys<'_>) -> Option<Push> {
    let allow_private = keys.allow_private.read(reader).unwrap_or_default();
    let (secret, secret_env) = secret(reader, keys.secret.node, keys.secret_env.node);
    let format = keys.format.node.and_then(|node| molecule::format(reader, node)).unwrap_or_default();
    let node = keys.own.require(reader, keys.url.node, "url", "a listener that is pushed to")?;
    let is_reported = reader.text_such(node, URL)? == REPORTED;
    if is_reported {
        keys.own.require(reader, keys.allowed.node, "allowed", "a listener that reports its URL");
    }
    let allowed = keys.allowed.read(reader);
    let allowed = allowed.map(|list| list.iter().filter_map(|node| url(reader, node, allow_private)).collect());
    if is_reported && allowed.is_none() {
        return None;
    }
    let url = if is_reported { None } else { Some(url(reader, node, allow_private)?) };
    Some(Push { url, allowed, format, secret, secret_env, allow_private })
}

/// Reads a webhook that a person's questions are announced to.
pub(super) fn webhook(reader: &mut Reader, keys: &AnnounceKeys<'_>) -> Option<Push> {
    let allow_private = keys.allow_private.read(reader).unwrap_or_default();
    let (secret, secret_env) = secret(reader, keys.secret.node, keys.secret_env.node);
    let node = keys.own.require(reader, keys.url.node, "url", "an announcement without a command")?;
    let url = url(reader, node, allow_private)?;
    Some(Push { url: Some(url), secret, secret_env, allow_private, ..Push::default() })
}

fn url(reader: &mut Reader, node: &Node, allow_private: bool) -> Option<String> {
    let url = reader.text_such(node, URL)?.to_owned();
    if let Err(problem) = judge(&url, allow_private) {
        reader.report(Mistake::Url { problem, private: !allow_private && judge(&url, true).is_ok() }, node.span);
    }
    Some(url)
}

/// The file or the environment variable with the secret of pushes, which must be usable.
fn secret(reader: &mut Reader, file: Option<&Node>, variable: Option<&Node>) -> (Option<PathBuf>, Option<String>) {
    match (file, variable) {
        (Some(_), Some(node)) => {
            reader.report(Mistake::TwoSecrets, node.span);
            (None, None)
        }
        (Some(node), None) => (secret_file(reader, node), None),
        (None, Some(node)) => (None, secret_variable(reader, node)),
        (None, None) => (None, None),
    }
}

fn secret_variable(reader: &mut Reader, node: &Node) -> Option<String> {
    let variable = llm::variable(reader, node)?.to_owned();
    if let Err(why) = read_secret_env(&variable) {
        reader.report(Mistake::SecretVariable { variable: variable.clone(), why }, node.span);
    }
    Some(variable)
}

fn secret_file(reader: &mut Reader, node: &Node) -> Option<PathBuf> {
    let written = reader.text(node)?;
    let file = reader.directory.join(written);
    reader.files.push(file.clone());
    if let Err(why) = read_secret(&file) {
        reader.report(Mistake::File { what: "secret", path: written.into(), why }, node.span);
    }
    Some(file)
}

#[cfg(feature = "gateway")]
pub(super) fn judge(url: &str, allow_private: bool) -> Result<(), String> {
    use crate::outbound::{Guard, check_url};
    check_url(url, &if allow_private { Guard::private() } else { Guard::new() })
}

/// A program that was built without its gateway sends nothing.
#[cfg(not(feature = "gateway"))]
pub(super) fn judge(_: &str, _: bool) -> Result<(), String> {
    Ok(())
}
