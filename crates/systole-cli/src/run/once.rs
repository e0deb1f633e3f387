//! Messages of files that an earlier run of a durable organism has sent: each message of a file is sent once.
//!
//! A message is the same if it has the same id in its envelope and the same content; without an id, if it is the same
//! content in the same file, for the first, second, ... time there. So a file may grow, and its messages may change places.
//! The keys are idempotency keys of submissions, written with the step that takes the message, and kept as long as these.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use systole::journal::Store;
use systole_core::vocab::Name;

use super::CLIENT;
use crate::failure::Failure;

/// The beginning of all keys of messages of files: no client over a network writes such a key.
const PREFIX: &str = "file ";

/// The messages of files that were sent.
#[derive(Default)]
pub(super) struct Once {
    known: HashSet<u128>,
    /// The number of times that each content without an id came in each file.
    times: HashMap<u128, u64>,
    /// Messages of each file that an earlier run has sent.
    skipped: BTreeMap<PathBuf, u64>,
    /// True if messages are sent again that an earlier run has sent.
    again: bool,
}

/// The way of a message of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sending {
    /// No run has sent it: it is sent under this key.
    First(Arc<str>),
    /// An earlier run has sent it, and it is to be sent again, as a new message.
    Again,
    /// An earlier run has sent it.
    Never,
}

impl Once {
    /// Reads the keys of messages that were sent, once the organism has its journal. `again`: they are sent again, too.
    pub(super) fn load(journal: &dyn Store, again: bool) -> Result<Self, Failure> {
        let client = Name::parse(CLIENT).map_err(|error| Failure::unusable(error.to_string()))?;
        let known = journal.read().and_then(|reader| reader.keys(&client, PREFIX)).map_err(Failure::store)?;
        Ok(Self { known: known.iter().filter_map(|key| number(key)).collect(), again, ..Self::default() })
    }

    /// The key of the next message of a file, or whether to send it without one: an earlier run has sent it under its key.
    pub(super) fn key(&mut self, file: &Path, id: Option<&str>, message: &[u8]) -> Sending {
        let key = match id {
            // The content has the id in it.
            Some(_) => digest(&[b"id", message]),
            None => {
                let content = digest(&[b"content", file.as_os_str().as_encoded_bytes(), message]);
                let times = self.times.entry(content).or_default();
                *times += 1;
                digest(&[b"time", &content.to_le_bytes(), &times.to_le_bytes()])
            }
        };
        if self.known.insert(key) {
            return Sending::First(text(key));
        }
        if self.again {
            return Sending::Again;
        }
        *self.skipped.entry(file.to_owned()).or_default() += 1;
        Sending::Never
    }

    /// Takes the sentences about messages that were not sent again.
    pub(super) fn told(&mut self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut self.skipped).into_iter().map(|(file, count)| {
            let file = file.display();
            format!("{file}: messages that were sent before, and are not sent again: {count} (--again sends them)")
        })
    }
}

/// The digest of some parts, so that no two lists of parts have the same.
fn digest(parts: &[&[u8]]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    u128::from_be_bytes(digest)
}

fn text(digest: u128) -> Arc<str> {
    format!("{PREFIX}{digest:032x}").into()
}

fn number(key: &str) -> Option<u128> {
    u128::from_str_radix(key.strip_prefix(PREFIX)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of these messages of a file that are sent.
    fn sent(once: &mut Once, file: &str, messages: &[(Option<&str>, &str)]) -> usize {
        let new = |(id, text): &&(Option<&str>, &str)| {
            matches!(once.key(Path::new(file), *id, text.as_bytes()), Sending::First(_))
        };
        messages.iter().filter(new).count()
    }

    /// Another run of the same organism.
    fn again(once: &Once) -> Once {
        Once { known: once.known.clone(), ..Once::default() }
    }

    #[test]
    fn a_message_is_sent_once_for_each_time_that_a_file_has_it() {
        let mut first = Once::default();
        let three = [(None, "<a/>"), (None, "<b/>"), (None, "<a/>")];
        assert_eq!(sent(&mut first, "f.xml", &three), 3);
        assert_eq!(sent(&mut again(&first), "f.xml", &three), 0);
        // It grows, and is sorted.
        let grown = [(None, "<a/>"), (None, "<c/>"), (None, "<a/>"), (None, "<a/>"), (None, "<b/>")];
        assert_eq!(sent(&mut again(&first), "f.xml", &grown), 2, "<c/>, and <a/> for the third time");
        assert_eq!(sent(&mut again(&first), "g.xml", &three), 3, "another file");
        let mut twice = Once::default();
        assert_eq!((sent(&mut twice, "f.xml", &three), sent(&mut twice, "f.xml", &three)), (3, 3), "named twice");
        assert_eq!(sent(&mut again(&twice), "f.xml", &three), 0);
    }

    #[test]
    fn a_message_with_an_id_is_sent_once_wherever_it_stands() {
        let mut first = Once::default();
        let (one, two) = ((Some("1"), "<m>1 a</m>"), (Some("2"), "<m>2 a</m>"));
        assert_eq!(sent(&mut first, "f.xml", &[one, two, one]), 2);
        assert_eq!(sent(&mut again(&first), "moved.xml", &[two, one]), 0);
        assert_eq!(sent(&mut again(&first), "f.xml", &[(Some("1"), "<m>1 b</m>")]), 1, "another content");
        let mut next = again(&first);
        assert_eq!(sent(&mut next, "f.xml", &[one, two]), 0);
        assert_eq!(next.told().count(), 1);
        assert_eq!(next.told().count(), 0);
    }

    #[test]
    fn what_is_sent_again_is_remembered_too() {
        let mut all = Once { again: true, ..Once::default() };
        assert_eq!(sent(&mut all, "f.xml", &[(None, "<a/>")]), 1, "by its key");
        let mut next = Once { again: true, ..again(&all) };
        assert_eq!(next.key(Path::new("f.xml"), None, b"<a/>"), Sending::Again);
        assert_eq!(sent(&mut again(&all), "f.xml", &[(None, "<a/>")]), 0);
    }
}
