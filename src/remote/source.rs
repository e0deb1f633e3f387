//! The sender of a message, and the way of a reply to it: without I/O, for every shape in which items come.
//!
//! An item may name its source twice, by a kind and by an id. Both are normalized once, here, so that no reader
//! guesses: a source without any of them is unknown, and a reply to it is an error.

use serde_json::Value;

/// The sender of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The kind of the sender.
    pub kind: SourceKind,
    /// The id of the sender, where it has one that is not blank.
    pub id: Option<String>,
}

/// Kind of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// A person, who is notified.
    Person,
    /// An agent, which has a mailbox.
    Peer,
    /// Unknown: the item doesn't tell.
    Unknown,
}

/// The way of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport<'a> {
    /// A notification of the person.
    Notify,
    /// A message in the mailbox of the peer with that id.
    Mailbox(&'a str),
}

/// A reply has no receiver.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the source of the message is unknown: a reply has no receiver")]
pub struct UnknownSource;

systole_core::vocab::debug_is_display!(UnknownSource);

impl Source {
    /// Normalizes the source of an item.
    ///
    /// The kind counts first: `canvas_user` and `user` are a person, `peer_agent` is a peer. With another kind or none
    /// the id decides: `user` is a person, any other that is not blank is a peer. White space around both is dropped.
    pub fn normalize(kind: Option<&str>, id: Option<&str>) -> Self {
        let id = id.map(str::trim).filter(|id| !id.is_empty());
        let kind = match (kind.map(str::trim), id) {
            (Some("canvas_user" | "user"), _) => SourceKind::Person,
            (Some("peer_agent"), _) => SourceKind::Peer,
            (_, Some("user")) => SourceKind::Person,
            (_, Some(_)) => SourceKind::Peer,
            (_, None) => SourceKind::Unknown,
        };
        Self { kind, id: id.map(str::to_owned) }
    }

    /// The way of a reply.
    ///
    /// # Errors
    /// [`UnknownSource`] if the source is unknown, or a peer without an id.
    pub fn transport(&self) -> Result<Transport<'_>, UnknownSource> {
        match (self.kind, &self.id) {
            (SourceKind::Person, _) => Ok(Transport::Notify),
            (SourceKind::Peer, Some(id)) => Ok(Transport::Mailbox(id)),
            (SourceKind::Peer, None) | (SourceKind::Unknown, _) => Err(UnknownSource),
        }
    }
}

/// The text in the `data` of an item: its `text`, else its `message`; none if both are missing or blank.
pub fn text_of(data: &Value) -> Option<&str> {
    let part = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    part("text").or_else(|| part("message"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SourceKind::{Peer, Person, Unknown};
    use super::*;

    #[test]
    fn each_kind_and_id_says_who_it_is_and_which_way_a_reply_goes() {
        let (notify, nobody) = (Ok(Transport::Notify), Err(UnknownSource));
        let to = |id| Ok(Transport::Mailbox(id));
        for (kind, id, expected, transport) in [
            (Some("canvas_user"), None, Person, notify),
            (Some("canvas_user"), Some("w1"), Person, notify),
            (Some("user"), Some("w1"), Person, notify),
            (Some(" user "), None, Person, notify),
            (Some("peer_agent"), Some("w1"), Peer, to("w1")),
            (Some("peer_agent"), Some("user"), Peer, to("user")),
            (Some("peer_agent"), Some("  "), Peer, nobody),
            (Some("peer_agent"), None, Peer, nobody),
            (None, Some("user"), Person, notify),
            (Some("webhook"), Some("user"), Person, notify),
            (Some("webhook"), Some("w1"), Peer, to("w1")),
            (Some(""), Some(" w1 "), Peer, to("w1")),
            (None, Some("w1"), Peer, to("w1")),
            (None, Some("User"), Peer, to("User")),
            (Some("CANVAS_USER"), Some("w1"), Peer, to("w1")),
            (None, Some(" \t"), Unknown, nobody),
            (Some("webhook"), Some(""), Unknown, nobody),
            (Some("webhook"), None, Unknown, nobody),
            (None, None, Unknown, nobody),
        ] {
            let source = Source::normalize(kind, id);
            assert_eq!((source.kind, source.transport()), (expected, transport), "{kind:?} {id:?}");
        }
    }

    #[test]
    fn the_text_is_text_or_else_message() {
        for (data, expected) in [
            (json!({ "text": "a", "message": "b" }), Some("a")),
            (json!({ "text": " ", "message": "b" }), Some("b")),
            (json!({ "text": 7, "message": "b" }), Some("b")),
            (json!({ "message": "b" }), Some("b")),
            (json!({ "text": "" }), None),
            (json!({}), None),
            (json!("text"), None),
            (json!(null), None),
        ] {
            assert_eq!(text_of(&data), expected, "{data}");
        }
    }
}
