//! Looks: records of what is there now, in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::{DeadLetter, OpenThread, ThreadState};
use systole_core::journal::Number;
use systole_core::vocab::{ThreadId, Time};

use super::Operations;

/// Most entries of a page.
const MOST: usize = 500;

/// An open conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ConversationRecord {
    /// The id.
    pub conversation: String,
    /// Open threads, the root included.
    pub threads: usize,
    /// Threads whose handlers run.
    pub running: usize,
    /// Messages in mailboxes.
    pub queued: usize,
    /// The listeners of its open threads, in order of name.
    pub listeners: Vec<String>,
}

/// An open thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ThreadRecord {
    /// The id.
    pub thread: String,
    /// The id of the thread above it; left out for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The listeners from the root to it.
    pub path: String,
    /// State of its work.
    pub state: ThreadState,
    /// Messages in its mailbox.
    pub queued: usize,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LetterRecord {
    /// The number.
    pub letter: String,
    /// The time at which it became a dead letter (RFC 3339).
    pub at: String,
    /// The sender.
    pub from: String,
    /// The listener that it was for, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The conversation that it was in, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The path of the thread.
    pub path: String,
    /// The name of the payload, if the message got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the fault that is the reason.
    pub reason: String,
    /// The message of that fault.
    pub message: String,
    /// The payload, at most 64 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ListenerRecord {
    /// The name.
    pub listener: String,
    /// The most handlers that may run at once.
    pub concurrency: u32,
    /// Handlers that run.
    pub running: u32,
    /// Threads that wait for a slot.
    pub waiting: usize,
    /// True if it rests after failures.
    pub rests: bool,
    /// The time since which an operator has it paused (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
#[non_exhaustive]
pub struct Page<T> {
    /// The records.
    pub items: Vec<T>,
    /// The `after` of the next page; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The records that are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Only records behind this one: [`Page::next`].
    pub after: Option<String>,
    /// Most records, from 1 to 500; left out, 100.
    pub limit: Option<usize>,
    /// Only conversations with an open thread of that listener.
    pub listener: Option<String>,
}

impl Wanted {
    /// Cuts a page out of entries that are in order of key.
    fn page<T>(&self, entries: impl Iterator<Item = (String, T)>) -> Page<T> {
        let limit = self.limit.unwrap_or(100).clamp(1, MOST);
        let behind = |key: &str| self.after.as_deref().is_none_or(|after| key > after);
        let mut entries = entries.filter(|(key, _)| behind(key));
        let (mut items, mut last) = (Vec::new(), None);
        for (key, item) in entries.by_ref().take(limit) {
            items.push(item);
            last = Some(key);
        }
        let next = entries.next().is_some().then_some(last).flatten();
        Page { items, next }
    }
}

impl Operations<'_> {
    /// Lists open conversations, in order of id.
    pub async fn conversations(&self, wanted: &Wanted) -> Page<ConversationRecord> {
        let mut found = std::collections::BTreeMap::<String, ConversationRecord>::new();
        for thread in self.organism.snapshot().await.threads {
            let id = thread.root.to_string();
            let record = found.entry(id.clone()).or_insert_with(|| ConversationRecord {
                conversation: id,
                threads: 0,
                running: 0,
                queued: 0,
                listeners: Vec::new(),
            });
            record.threads += 1;
            record.running += usize::from(thread.state == ThreadState::Running);
            record.queued += thread.queued;
            if let Some(listener) = thread.path.segments().last().map(|(listener, _)| listener.to_string())
                && let Err(at) = record.listeners.binary_search(&listener)
            {
                record.listeners.insert(at, listener);
            }
        }
        let has = |record: &ConversationRecord| {
            wanted.listener.as_ref().is_none_or(|listener| record.listeners.contains(listener))
        };
        wanted.page(found.into_iter().filter(|(_, record)| has(record)))
    }

    /// Lists the open threads of a conversation, in the order in which they opened; nothing if none is open. `after` is
    /// the number of threads to skip.
    pub async fn threads(&self, conversation: ThreadId, wanted: &Wanted) -> Page<ThreadRecord> {
        let all = self.organism.snapshot().await.threads;
        let own = all.into_iter().filter(|thread| thread.root == conversation);
        wanted.page((1_u64..).zip(own).map(|(place, thread)| (format!("{place:010}"), thread_record(&thread))))
    }

    /// Lists the dead letters, oldest first.
    pub async fn dead_letters(&self, wanted: &Wanted) -> Page<LetterRecord> {
        let letters = self.organism.dead_letters().await;
        let key = |letter: &DeadLetter| letter_key(letter.at, letter.id.core().0, letter.id.number());
        wanted.page(letters.iter().map(|letter| (key(letter), letter_record(letter))))
    }

    /// Lists the listeners, in order of name.
    pub async fn listeners(&self, wanted: &Wanted) -> Page<ListenerRecord> {
        let blueprint = self.organism.blueprint();
        let mut found = std::collections::BTreeMap::<String, ListenerRecord>::new();
        for slots in self.organism.listener_slots().await {
            let Some(contract) = blueprint.listener(slots.listener) else { continue };
            let name = contract.name.to_string();
            let record = found.entry(name.clone()).or_insert_with(|| ListenerRecord {
                listener: name,
                concurrency: 0,
                running: 0,
                waiting: 0,
                rests: false,
                paused: slots.paused.map(|since| since.to_string()),
            });
            // A listener without state has slots in each core.
            record.concurrency = record.concurrency.saturating_add(contract.concurrency);
            record.running += slots.running;
            record.waiting += slots.waiting;
            record.rests |= slots.rests;
        }
        wanted.page(found.into_iter())
    }
}

/// The key of a dead letter in its list. All have one length, so that they sort as times and numbers do.
fn letter_key(at: Time, core: u16, number: Number) -> String {
    format!("{:020}-{core:05}-{number:020}", at.as_nanos())
}

fn thread_record(thread: &OpenThread) -> ThreadRecord {
    ThreadRecord {
        thread: thread.id.to_string(),
        parent: thread.parent.map(|parent| parent.to_string()),
        path: thread.path.to_string(),
        state: thread.state,
        queued: thread.queued,
    }
}

fn letter_record(letter: &DeadLetter) -> LetterRecord {
    const TEXT: usize = 64 << 10;
    let text = |bytes: &[u8]| {
        // A character that is cut in two is shown as one that is damaged.
        String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT)]).into_owned()
    };
    LetterRecord {
        letter: letter.id.to_string(),
        at: letter.at.to_string(),
        from: letter.from.to_string(),
        to: letter.to.as_ref().map(ToString::to_string),
        conversation: letter.conversation.map(|root| root.to_string()),
        path: letter.path.to_string(),
        payload: letter.payload.as_ref().map(|payload| payload.root().to_string()),
        reason: letter.reason.code.to_string(),
        message: letter.reason.message.to_string(),
        text: letter.payload.as_ref().map(|payload| text(payload.bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_a_gap() {
        let entries = || (1..=5).map(|number| (format!("{number:05}"), number));
        let (mut wanted, mut seen) = (Wanted { limit: Some(2), ..Wanted::default() }, Vec::new());
        loop {
            let page = wanted.page(entries());
            seen.extend(page.items);
            match page.next {
                Some(next) => wanted.after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn keys_of_dead_letters_sort_as_their_times_and_numbers_do() {
        let times = ["2030-01-02T03:04:05Z", "2030-01-02T03:04:05.5Z", "2030-01-02T03:04:10Z"];
        let times = times.map(|time| time.parse().unwrap());
        let keys: Vec<_> = times.iter().flat_map(|&at| [9, 10].map(|number| letter_key(at, 0, number))).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }
}
