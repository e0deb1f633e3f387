//! Errors of envelopes.

use crate::vocab::{BudgetError, Position, TimeError};

/// The reason why canonical XML is no envelope. Positions are those in the bytes that the strict
/// pass read. Names are cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// A root other than `<message>` of the envelope namespace.
    #[error("{at}: the root is {found}: an envelope is <message> in the namespace {ns}", ns = crate::vocab::ns::ENVELOPE)]
    NotMessage {
        /// The start tag.
        at: Position,
        /// The root, as `{namespace}local`.
        found: Box<str>,
    },
    /// An attribute on an element of the envelope.
    #[error("{at}: <{element}> takes no attribute '{attribute}': remove it")]
    Attribute {
        /// The start tag.
        at: Position,
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: Box<str>,
    },
    /// Text where only elements can stand.
    #[error("{at}: text can't stand directly in <{element}>: remove it, or put it into the payload")]
    Text {
        /// The start tag of the element that holds the text.
        at: Position,
        /// The element that holds the text.
        element: &'static str,
    },
    /// The first child of `<message>` isn't `<meta>`.
    #[error("{at}: <message> must start with <meta>")]
    NoMeta {
        /// The first child, or the message.
        at: Position,
    },
    /// The first child of `<meta>` isn't `<from>`.
    #[error("{at}: <meta> must start with <from>")]
    NoFrom {
        /// The first child, or `<meta>`.
        at: Position,
    },
    /// An element that can't stand at its place in `<meta>`.
    #[error(
        "{at}: {found} can't stand here: <meta> holds from, to (optional), thread (optional) and then elements of other namespaces"
    )]
    Unexpected {
        /// The start tag.
        at: Position,
        /// The element, as `{namespace}local`.
        found: Box<str>,
    },
    /// An element where only text can stand.
    #[error("{at}: <{element}> holds text, not elements")]
    NotText {
        /// The start tag of the outer element.
        at: Position,
        /// The outer element.
        element: &'static str,
    },
    /// A second element of Systole's metadata with the same name in `<meta>`.
    #[error("{at}: a second <{element}>: keep one")]
    Repeated {
        /// The start tag of the second.
        at: Position,
        /// The element.
        element: &'static str,
    },
    /// A deadline that is no time.
    #[error("{at}: the deadline {source}")]
    Deadline {
        /// The start tag.
        at: Position,
        /// The reason.
        source: TimeError,
    },
    /// A budget that is none.
    #[error("{at}: {source}")]
    Budget {
        /// The start tag.
        at: Position,
        /// The reason.
        source: BudgetError,
    },
    /// No element behind `<meta>`.
    #[error("{at}: the message has no payload: put exactly one element behind <meta>")]
    NoPayload {
        /// The message.
        at: Position,
    },
    /// A second element behind `<meta>`.
    #[error("{at}: {found} is a second payload: send a message for each")]
    SecondPayload {
        /// The start tag of the second element.
        at: Position,
        /// The second element, as `{namespace}local`.
        found: Box<str>,
    },
}

impl EnvelopeError {
    /// The place of the error.
    pub fn position(&self) -> Position {
        match self {
            Self::NotMessage { at, .. }
            | Self::Attribute { at, .. }
            | Self::Text { at, .. }
            | Self::NoMeta { at }
            | Self::NoFrom { at }
            | Self::Unexpected { at, .. }
            | Self::NotText { at, .. }
            | Self::Repeated { at, .. }
            | Self::Deadline { at, .. }
            | Self::Budget { at, .. }
            | Self::NoPayload { at }
            | Self::SecondPayload { at, .. } => *at,
        }
    }
}
