//! Who knows what is pending.

use std::error::Error;
use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use serde::Serialize;
use systole_core::vocab::Name;
use uuid::Uuid;

use crate::shell::entropy::Entropy;

/// A future of a [`QueueDelegate`].
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whatever went wrong in a delegate. It is logged, and never reaches the client.
pub type DelegateError = Box<dyn Error + Send + Sync>;

/// Knows what is pending for the sessions of a gateway, and whose it is.
///
/// It has 5 s for each answer, on the thread of the gateway: it must not block. An error, a panic and a late answer all
/// mean that nothing is pending.
///
/// # Examples
/// ```
/// use systole::gateway::{Block, BoxFuture, Call, DelegateError, NoticeToken, QueueDelegate, QueueRead, Row, SessionId};
///
/// /// Tells everybody the weather, as often as they call.
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
    /// What is pending for a session, whose call has just succeeded; asked once for each such call.
    ///
    /// The rows are the session's from now on: nobody else may get them, however many ask at the same time, until they
    /// are confirmed or released. If the future is dropped before it is ready, nothing may stay with the session.
    ///
    /// # Errors
    /// Whatever keeps it from knowing: the response goes out without notices.
    fn read(&self, call: Call) -> BoxFuture<'_, Result<Option<QueueRead>, DelegateError>>;

    /// The client has what came under a token: it never comes again. The ids of those rows; the same once more gives
    /// the same ids, and a token that this session doesn't have gives none and changes nothing.
    ///
    /// # Errors
    /// It could not be written down: the client is told, and confirms again.
    fn confirm(&self, session: SessionId, token: NoticeToken) -> BoxFuture<'_, Result<Vec<String>, DelegateError>>;

    /// What a session has and did not confirm is anybody's again: all of it (the session is over), or what came under
    /// one token (the client never got it).
    ///
    /// # Errors
    /// It could not be written down; it is logged.
    fn release(&self, session: SessionId, token: Option<NoticeToken>) -> BoxFuture<'_, Result<(), DelegateError>>;
}

/// A call that has succeeded.
#[derive(Debug, Clone)]
pub struct Call {
    /// The session. A name that is used again after its session was over gets another id.
    pub session: SessionId,
    /// Whose session it is.
    pub principal: Name,
    /// What the client calls its session.
    pub name: String,
    /// The body of the call: an envelope as the client wrote it, dirty or not.
    pub arguments: Bytes,
    /// What may ride on its response.
    pub room: Room,
}

/// What may ride on one response; the rest rides on the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The most rows.
    pub rows: usize,
    /// The most bytes of text, of all rows together; a single row may have more.
    pub bytes: usize,
}

/// What is pending, as far as there is room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRead {
    /// What the client confirms it with; never the same twice.
    pub token: NoticeToken,
    /// At least one.
    pub rows: Vec<Row>,
}

/// One thing that is pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is called when it is confirmed.
    pub id: String,
    /// What it says; anybody may have written it.
    pub blocks: Vec<Block>,
}

impl Row {
    /// Bytes of its text.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|Block::Text { text }| text.len()).sum()
    }
}

/// A piece of the content of a response: `{"type": "text", "text": …}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

    /// Its 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

/// What rows are confirmed with: a lower-case UUID that nobody can guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoticeToken(Uuid);

impl NoticeToken {
    /// A new one, of 122 random bits.
    pub fn draw() -> Self {
        Self(Entropy::Real.random())
    }

    /// One that was drawn before.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Its 16 bytes.
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
