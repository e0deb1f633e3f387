//! Formats of pushes besides the envelope.

use std::fmt;

use bytes::Bytes;
use systole_core::vocab::{MessageId, Name};

use crate::journal::StoredMail;

/// Body of a delivery that is not the envelope, and its answer. The pump judges the replies in it.
pub trait PushFormat: fmt::Debug + Send + Sync {
    /// The media type of the body.
    fn media_type(&self) -> &'static str;

    /// The body for a message; none if it can't carry the message.
    fn write(&self, mail: &StoredMail) -> Option<Bytes>;

    /// The ids in any field of an answer to a message, but for the message's own.
    fn others(&self, id: MessageId, answer: &[u8]) -> Vec<MessageId>;

    /// The payload of the reply in a listener's answer to a message; none if the answer is empty.
    ///
    /// # Errors
    /// Reason why the answer is no reply, as a text for the caller.
    fn read(&self, listener: &Name, id: MessageId, answer: &[u8]) -> Result<Option<Bytes>, String>;
}
