//! Drafts: what a model, a worker, a remote agent or a function has written so far of a message that is not there yet.
//!
//! A draft is text of others. Nothing parses it, no journal keeps it, and no message is made of it: it is gone when its message
//! is there, and its readers are told why. The drafts of an organism are one bounded table: a writer appends, and
//! never waits for a reader; a reader copies from its place on, and learns by the offset of a piece what fell out before it.

mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
pub use systole_core::core::DraftEnd;
use systole_core::vocab::{Limits, ThreadId};
use tokio::sync::Notify;

#[cfg(any(test, feature = "gateway"))]
pub(crate) use table::DraftFigures;
use table::{DraftOf, Piece, Place, Table};
pub(crate) use table::{DraftSource, DraftSubject, RunId};

/// Most bytes of texts, and most pieces, that a reader copies at once.
const COPY: (usize, usize) = (64 << 10, 256);

/// A piece of news on the drafts of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DraftRecord {
    /// The place behind it: [`DraftCursor`].
    pub cursor: DraftCursor,
    /// The news.
    #[serde(flatten)]
    pub news: DraftNews,
}

/// News on drafts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DraftNews {
    /// A draft has grown.
    Text {
        /// The draft.
        #[serde(flatten)]
        of: DraftName,
        /// The offset of the text in the draft, in bytes of UTF-8. Where it is more than the reader has, the text between fell
        /// out before it was read.
        from: u64,
        /// The text.
        text: String,
    },
    /// A draft is gone.
    Gone {
        /// The draft.
        #[serde(flatten)]
        of: DraftName,
        /// The reason.
        why: DraftEnd,
    },
    /// The reader's place is lost, since it was too slow or the organism has started again: all drafts that it has are gone,
    /// and those that are there follow from their beginnings.
    Lost,
}

/// A draft, and the handler that writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DraftName {
    /// The number of the draft, since the start of the organism.
    pub draft: u64,
    /// The id of the conversation.
    pub conversation: String,
    /// The id of the thread.
    pub thread: String,
    /// The listener that writes.
    pub listener: String,
    /// The id of the message that it handles.
    pub message: String,
    /// The number among the drafts of this run of its handler, from 1.
    pub attempt: u32,
}

/// The place of a reader among the drafts of an organism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftCursor {
    /// The start of the organism.
    run: u32,
    at: u64,
}

/// A text is no cursor.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor of drafts is that of a record that was read, such as 3-4711")]
#[non_exhaustive]
pub struct NoDraftCursor;

systole_core::vocab::debug_is_display!(NoDraftCursor);

impl fmt::Display for DraftCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.run, self.at)
    }
}

impl FromStr for DraftCursor {
    type Err = NoDraftCursor;

    fn from_str(text: &str) -> Result<Self, NoDraftCursor> {
        let (run, at) = text.split_once('-').ok_or(NoDraftCursor)?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(run) || !is_number(at) {
            return Err(NoDraftCursor);
        }
        Ok(Self { run: run.parse().map_err(|_| NoDraftCursor)?, at: at.parse().map_err(|_| NoDraftCursor)? })
    }
}

impl Serialize for DraftCursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DraftCursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The drafts of an organism, for its shards and for readers on any thread.
#[derive(Debug)]
pub(crate) struct DraftTable {
    table: Mutex<Table>,
    /// Conversations in the table.
    conversations: AtomicUsize,
    /// Shards that may write.
    writers: AtomicUsize,
    is_on: bool,
    /// The number of the start of the organism.
    run: u32,
}

impl DraftTable {
    /// A table with these bounds, in that start of the organism.
    pub(crate) fn new(limits: &Limits, run: u32) -> Arc<Self> {
        let (most, most_in_all) = (limits.draft_bytes, limits.draft_total_bytes);
        Arc::new(Self {
            table: Mutex::new(Table::new(most, most_in_all)),
            conversations: AtomicUsize::new(0),
            writers: AtomicUsize::new(0),
            is_on: most > 0 && most_in_all > 0,
            run,
        })
    }

    /// Returns a writer. All drafts end when the last writer is dropped.
    pub(crate) fn writer(self: &Arc<Self>) -> DraftWriter {
        self.writers.fetch_add(1, Ordering::Relaxed);
        DraftWriter(self.clone())
    }

    /// Ends a conversation, with all drafts in it.
    pub(crate) fn conversation_over(&self, root: ThreadId) {
        if self.conversations.load(Ordering::Acquire) > 0 {
            self.change(|table| table.conversation_over(root));
        }
    }

    /// Reads the drafts of a conversation, behind a cursor or from their beginnings on.
    pub(crate) fn read(self: &Arc<Self>, root: ThreadId, after: Option<DraftCursor>) -> Drafts {
        // What an earlier start counted tells nothing here.
        let run = self.run;
        let after = after.map(|after| if after.run == run { after.at } else { u64::MAX });
        let mut table = self.lock();
        let (place, news) = table.enter(root, after);
        self.conversations.store(table.conversations(), Ordering::Release);
        drop(table);
        Drafts { table: self.clone(), root, place, news, waiting: VecDeque::new(), is_over: false }
    }

    /// The ends of the open drafts of a conversation, of at most `most` bytes each.
    #[cfg(feature = "gateway")]
    pub(crate) fn open(&self, root: ThreadId, most: usize) -> Vec<DraftNews> {
        let pieces = self.lock().open(root, most);
        pieces.into_iter().map(news).collect()
    }

    /// The amounts in it.
    #[cfg(any(test, feature = "gateway"))]
    pub(crate) fn figures(&self) -> DraftFigures {
        self.lock().figures()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table, and wakes the readers that have news.
    fn change(&self, change: impl FnOnce(&mut Table) -> Option<Arc<Notify>>) {
        let mut table = self.lock();
        let news = change(&mut table);
        self.conversations.store(table.conversations(), Ordering::Release);
        drop(table);
        if let Some(news) = news {
            news.notify_waiters();
        }
    }
}

/// A shard's end of the table.
#[derive(Debug)]
pub(crate) struct DraftWriter(Arc<DraftTable>);

impl DraftWriter {
    /// Returns whether drafts are kept at all.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_on
    }

    /// Adds text to the draft of a run, and begins one if it has none.
    pub(crate) fn write(&self, run: RunId, source: impl FnOnce() -> Arc<DraftSource>, text: &str) {
        self.0.change(|table| table.write(run, source, text));
    }

    /// Ends the draft of a run, which may begin another one.
    pub(crate) fn give_up(&self, run: RunId, end: DraftEnd) {
        self.0.change(|table| table.give_up(run, end));
    }

    /// Ends a run, and its draft.
    pub(crate) fn over(&self, run: RunId, end: DraftEnd) {
        self.0.change(|table| table.over(run, end));
    }
}

impl Drop for DraftWriter {
    fn drop(&mut self) {
        if self.0.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
            let news = self.0.lock().close();
            news.iter().for_each(|news| news.notify_waiters());
        }
    }
}

/// A reader of the drafts of a conversation, at its own pace.
#[derive(Debug)]
pub struct Drafts {
    table: Arc<DraftTable>,
    root: ThreadId,
    place: Place,
    news: Arc<Notify>,
    /// Records that were copied and not handed out.
    waiting: VecDeque<DraftRecord>,
    /// True if the conversation was over before.
    is_over: bool,
}

impl Drafts {
    /// Waits for the next piece of news; `None` when the conversation or the organism has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<DraftRecord> {
        let news = self.news.clone();
        loop {
            // Registered before the look, so that no news between the two is slept through.
            let mut changed = std::pin::pin!(news.notified());
            changed.as_mut().enable();
            if let Some(record) = self.try_next() {
                return Some(record);
            }
            if self.is_over || self.table.lock().is_over(self.root) {
                // The end may have come since.
                return self.try_next();
            }
            changed.await;
        }
    }

    /// Takes the next piece of news, if there is one.
    pub fn try_next(&mut self) -> Option<DraftRecord> {
        if self.waiting.is_empty() {
            let pieces = self.table.lock().read(self.root, &mut self.place, COPY);
            let run = self.table.run;
            self.waiting.extend(
                pieces
                    .into_iter()
                    .map(|(at, piece)| DraftRecord { cursor: DraftCursor { run, at }, news: news(piece) }),
            );
        }
        self.waiting.pop_front()
    }

    /// Takes the next piece of news of those that were copied together with the last one.
    #[cfg(feature = "gateway")]
    pub(crate) fn try_copied(&mut self) -> Option<DraftRecord> {
        self.waiting.pop_front()
    }

    /// Ends behind what is there: the conversation is over.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        self.table.change(|table| {
            table.leave(self.root);
            None
        });
    }
}

fn news(piece: Piece) -> DraftNews {
    let name = |DraftOf { source, number, attempt }: DraftOf| DraftName {
        draft: number,
        conversation: source.subject.conversation.to_string(),
        thread: source.subject.thread.to_string(),
        listener: source.listener.to_string(),
        message: source.subject.message.to_string(),
        attempt,
    };
    match piece {
        Piece::Text { of, from, text } => DraftNews::Text { of: name(of), from, text },
        Piece::Gone { of, end } => DraftNews::Gone { of: name(of), why: end },
        Piece::Lost => DraftNews::Lost,
    }
}
