//! `remote:`, with the way in which a remote listener gets its messages.

use std::path::PathBuf;

use super::correction::Shape;
use super::document::Node;
use super::mistake::Mistake;
use super::molecule;
use super::reader::{Fields, Reader};
use crate::settings::{Mode, Push, REPORTED, read_secret};

/// The form of a URL that messages are pushed to, in remedies.
const URL: &str = "a URL, such as https://agent.example/inbox";

#[derive(Clone, Copy)]
enum Way {
    Poll,
    Stream,
    Push,
}

/// Reads the value of `remote:`.
pub(super) fn read(reader: &mut Reader, node: &Node) -> Option<Mode> {
    let mut fields = reader.fields(node, Shape::Remote)?;
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
    let is_reported = reader.text_such(node, URL)? == REPORTED;
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
    let url = reader.text_such(node, URL)?.to_owned();
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

#[cfg(feature = "gateway")]
fn judge(url: &str, allow_private: bool) -> Result<(), String> {
    use crate::outbound::{Guard, check_url};
    check_url(url, &if allow_private { Guard::private() } else { Guard::new() })
}

/// A program that was built without its gateway sends nothing.
#[cfg(not(feature = "gateway"))]
fn judge(_: &str, _: bool) -> Result<(), String> {
    Ok(())
}
