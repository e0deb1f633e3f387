//! Ids of threads, messages and tasks, and the key that derives them.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The opaque id of a thread, as clients and listeners see it: a lower-case UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(Uuid);

/// The id of a message: a lower-case UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(Uuid);

/// The id of a task in the inbox of a job: a lower-case UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Uuid);

/// A text that is no UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no id: ids are UUIDs, such as 67e55044-10b1-426f-9247-bb680e5fe0c8")]
#[non_exhaustive]
pub struct ParseIdError {
    /// The text, cut to 64 characters.
    pub text: String,
}

/// The secret that makes derived ids unguessable; one per organism.
#[derive(Clone)]
pub struct IdKey([u8; 32]);

impl IdKey {
    /// A key from secret bytes.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The ids of the `index`-th message that comes out of `parent`, and of the thread it opens.
    ///
    /// UUIDv8 (RFC 9562, section 5.8) of a BLAKE3 keyed hash: a replay makes the same ids, and a party without the key
    /// can't guess them.
    pub fn derive(&self, parent: MessageId, index: u64) -> (MessageId, ThreadId) {
        self.hash(&input(parent.0, index.to_le_bytes()))
    }

    /// The ids of the `index`-th message that enters the conversation `root` from outside.
    pub fn derive_entry(&self, root: ThreadId, index: u64) -> (MessageId, ThreadId) {
        self.hash(&input(root.0, index.to_le_bytes()))
    }

    /// The id of the `index`-th answer to the awaited group `call` of the handler of `message`: such an answer is not
    /// sent as a message of its own.
    pub fn derive_answer(&self, message: MessageId, call: u32, index: u32) -> MessageId {
        // One byte longer than the names of messages, so that no id of a message can be the same.
        let mut name = [0; 25];
        name[..24].copy_from_slice(&input(message.0, (u64::from(call) << 32 | u64::from(index)).to_le_bytes()));
        self.hash(&name).0
    }

    /// A secret of a text, which a party without the key can't guess.
    pub fn derive_secret(&self, text: &str) -> [u8; 32] {
        // A key of its own: no text is the name of an id.
        let key = blake3::derive_key("systole 2026 secrets of texts", &self.0);
        blake3::keyed_hash(&key, text.as_bytes()).into()
    }

    fn hash(&self, input: &[u8]) -> (MessageId, ThreadId) {
        let hash: [u8; 32] = blake3::keyed_hash(&self.0, input).into();
        let half = |at: usize| Uuid::new_v8(hash[at..at + 16].try_into().expect("half of 32 bytes is 16"));
        (MessageId(half(0)), ThreadId(half(16)))
    }
}

fn input(parent: Uuid, index: [u8; 8]) -> [u8; 24] {
    let mut input = [0; 24];
    input[..16].copy_from_slice(parent.as_bytes());
    input[16..].copy_from_slice(&index);
    input
}

impl ThreadId {
    /// The last 8 digits, by which people tell ids apart: the first digits are the time at which the id was made, and
    /// stay the same for a minute.
    pub fn short(self) -> String {
        let id = self.to_string();
        id[id.len() - 8..].to_owned()
    }
}

impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey(..)")
    }
}

macro_rules! id {
    ($type:ident) => {
        impl $type {
            /// An id made outside: of a root thread, or chosen by a test.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The id as a UUID.
            pub const fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError { text: text.chars().take(64).collect() })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({})"), self.0)
            }
        }
    };
}

id!(ThreadId);
id!(MessageId);
id!(TaskId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_repeat_and_differ_by_key_parent_and_index() {
        let key = IdKey::new([1; 32]);
        let parent = MessageId::from_uuid(Uuid::from_u128(7));
        assert_eq!(key.derive(parent, 0), key.derive(parent, 0));
        assert_ne!(key.derive(parent, 0), key.derive(parent, 1));
        assert_ne!(key.derive(parent, 0), IdKey::new([2; 32]).derive(parent, 0));
        let (message, thread) = key.derive(parent, 0);
        assert_ne!(message.as_uuid(), thread.as_uuid());
        assert_eq!(message.as_uuid().get_version_num(), 8);
        let answer = key.derive_answer(parent, 0, 1);
        assert_eq!(answer, key.derive_answer(parent, 0, 1));
        assert_ne!(answer, key.derive_answer(parent, 1, 0));
        assert_ne!(answer, key.derive(parent, 1).0);
        assert_eq!(key.derive_secret("a"), key.derive_secret("a"));
        assert_ne!(key.derive_secret("a"), key.derive_secret("b"));
        assert_ne!(key.derive_secret("a"), IdKey::new([2; 32]).derive_secret("a"));
    }
}
