//! The interface of delegates, which provide the pending notices.

use std::error::Error;
use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use systole_core::vocab::Name;
use uuid::Uuid;

pub use crate::runtime::BoxFuture;
use systole_store::entropy::Entropy;

/// Any error of a delegate. It is logged, and never reaches the client.
pub type DelegateError = Box<dyn Error + Send + Sync>;

/// Source of the notices for the sessions of a gateway; it knows which session holds which.
///
/// A delegate has 5 s for each answer, on the thread of the gateway: it must not block. An error, a panic and a late
/// answer all mean that nothing is pending.
///
/// # Examples
/// ```
/// use systole::gateway::{Block, BoxFuture, Call, DelegateError, NoticeToken, QueueDelegate, QueueRead, Row, SessionId};
///
/// /// Tells each caller the weather, at each call.
/// struct Weather;
///
/// impl QueueDelegate for Weather {
///     fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>> {
///         Box::pin(async move {
///             let words = format!("It rains, {}.", call.principal);
///             let row = Row { id: "weather".into(), blocks: vec![Block::text(words)] };
///             Ok(Some(QueueRead { token: NoticeToken::draw(), rows: vec![row] }))
///         })
///     }
///
///     fn confirm(&self, _: SessionId, _: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>> {
///         Box::pin(async { Ok(vec!["weather".into()]) })
///     }
///
///     fn release(&self, _: SessionId, _: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>> {
///         Box::pin(async { Ok(()) })
///     }
/// }
///
/// let delegate: Box<dyn QueueDelegate> = Box::new(Weather);
/// ```
pub trait QueueDelegate: Send + Sync + 'static {
    /// Returns the pending notices for a session whose call has just succeeded; called once for each such call.
    ///
    /// The session holds the rows from now on: no other session may get them, also in concurrent calls, until they are
    /// confirmed or released. If the future is dropped before it is ready, nothing may stay with the session.
    ///
    /// # Errors
    /// Any error: the response goes out without notices.
    fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>>;

    /// Confirms the rows of a token: they never come again. Returns the ids of those rows; a repeated call returns the
    /// same ids, and a token that this session doesn't hold gives none and changes nothing.
    ///
    /// # Errors
    /// The confirmation could not be written: the client gets an error, and confirms again.
    fn confirm(&self, session: SessionId, token: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>>;

    /// Releases rows that a session holds and did not confirm, for any session: all of them (the session is over), or
    /// those of one token (the client never got them).
    ///
    /// # Errors
    /// The release could not be written; the error is logged.
    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>>;
}

/// A call that has succeeded.
#[derive(Debug, Clone)]
pub struct Call {
    /// The session. A name that is used again after its session was over gets another id.
    pub session: SessionId,
    /// The owner of the session.
    pub principal: Name,
    /// The client's name for its session.
    pub name: String,
    /// The body of the call: an envelope as the client wrote it, dirty or not.
    pub arguments: Bytes,
    /// Limits of the notices on the response.
    pub limits: NoticeLimits,
}

/// Limits of the notices on one response; the rest rides on the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeLimits {
    /// The most rows.
    pub rows: usize,
    /// The most bytes of text, of all rows together; a single row may have more.
    pub bytes: usize,
}

/// The pending rows, up to the limits of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRead {
    /// The token by which the client confirms the rows; never the same twice.
    pub token: NoticeToken,
    /// The rows: at least one.
    pub rows: Vec<Row>,
}

/// A pending notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The id by which a confirmation lists the row.
    pub id: String,
    /// The content; any principal may have written it.
    pub blocks: Vec<Block>,
}

impl Row {
    /// Size of the text, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|Block::Text { text }| text.len()).sum()
    }
}

/// A piece of the content of a response: `{"type": "text", "text": …}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text, or XML.
    Text {
        /// The text.
        text: String,
    },
}

impl Block {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The id of a session: a lower-case UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(Uuid);

impl SessionId {
    pub(super) fn draw() -> Self {
        Self(Entropy::Real.random())
    }

    /// The 16 bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

/// The token by which rows are confirmed: a lower-case UUID that can't be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoticeToken(Uuid);

impl NoticeToken {
    /// Draws a new token of 122 random bits.
    pub fn draw() -> Self {
        Self(Entropy::Real.random())
    }

    /// Makes a token that was drawn before from its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The 16 bytes of the token.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Display for NoticeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}
