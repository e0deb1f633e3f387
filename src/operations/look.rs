//! Looks: records of what is there, and was, in pages.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::{DeadLetter, OpenConversation, OpenFilter, OpenThread, Party, ThreadState};
use systole_core::journal::{BodyRecord, JournalError, Number, Owner};
use systole_core::vocab::{Fault, FaultCode, MessageId, ThreadId, Time};
use systole_xml::ladder::root_of;

use super::Operations;
use crate::journal::{ConversationFilter, HistoryRecord, KeptConversation, KeptMessage, KeptThread, Query, QueryError};

/// Most entries of a page.
const MOST: usize = 500;

/// A conversation: an open one, or one that the journal still has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ConversationRecord {
    /// The id.
    pub conversation: String,
    /// True as long as it is open.
    pub open: bool,
    /// The client that owns it; left out for one of the organism itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The time at which it opened (RFC 3339), where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The name of the payload with which it began, where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the first fault among its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Open threads, the root included.
    pub threads: u64,
    /// Threads whose handlers run.
    pub running: u64,
    /// Messages that are not done.
    pub queued: u64,
    /// The listeners of its threads, in order of name: of all threads that the journal has, else of the open ones.
    pub listeners: Vec<String>,
}

/// A thread: an open one, or one that the journal still has.
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
    /// State of its work; left out once it has closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ThreadState>,
    /// Messages that are not done.
    pub queued: u64,
    /// The time at which it opened (RFC 3339), where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// The time at which it closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

/// The kind of a [`MessageRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MessageKind {
    /// A message in the mailbox of a thread.
    Message,
    /// The answer to an awaited call.
    AwaitedAnswer,
    /// A message that left for a client.
    Answer,
    /// An output of a handler that was refused.
    RefusedOutput,
    /// The end of what a program wrote on standard error before it failed.
    StandardError,
    /// A note of a handler, such as a request to a model with its answer.
    Note,
}

/// A message, or something that its handler left, in the history of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MessageRecord {
    /// The time at which it came (RFC 3339).
    pub at: String,
    /// The kind.
    pub kind: MessageKind,
    /// The conversation.
    pub conversation: String,
    /// The thread.
    pub thread: String,
    /// The path of the thread.
    pub path: String,
    /// The id, of a message or an awaited answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The sender; left out for what the handler of the thread left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// The time at which it was done, cancelled, or read by its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The way in which a message ended: `done` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// Earlier runs of its handler that ended with their process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The name of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the fault, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The payload, the fault, the output or the note, at most 64 KiB of it.
    pub text: String,
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
    /// The rest behind failures that it has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests: Option<RestRecord>,
    /// The time since which an operator has it paused (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

/// A rest of a listener behind failures: its messages wait meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RestRecord {
    /// The time of its begin (RFC 3339).
    pub since: String,
    /// The time of its end (RFC 3339).
    pub until: String,
    /// The last failure before it.
    pub why: String,
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
    /// Only conversations with a thread of that listener.
    pub listener: Option<String>,
    /// Only open conversations, or only ended ones.
    pub open: Option<bool>,
    /// Only conversations that began with that payload, {namespace}local. Needs a journal, as all below do.
    pub payload: Option<String>,
    /// Only conversations with a fault of that code among their answers.
    pub fault: Option<String>,
    /// Only conversations with that text in a message, an answer or a fault.
    pub text: Option<String>,
    /// Only conversations that opened at that time (RFC 3339) or later.
    pub since: Option<String>,
    /// Only conversations that opened before that time.
    pub until: Option<String>,
}

/// The reason why a look shows nothing.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LookError {
    /// A condition can't be read, or needs a journal.
    #[error("{0}")]
    Invalid(String),
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] QueryError),
    /// The journal can't be opened.
    #[error(transparent)]
    Store(#[from] JournalError),
}

systole_core::vocab::debug_is_display!(LookError);

impl Wanted {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(100).clamp(1, MOST)
    }

    /// Parses a condition.
    fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &str, text: Option<&String>) -> Result<Option<T>, LookError> {
        let invalid = |text: &String, error: T::Err| LookError::Invalid(format!("{name} '{text}': {error}"));
        text.map(|text| text.parse().map_err(|error| invalid(text, error))).transpose()
    }

    /// The conversations in the journal.
    fn filter(&self) -> Result<ConversationFilter, LookError> {
        let code = |code: &String| {
            FaultCode::named(code).ok_or_else(|| LookError::Invalid(format!("'{code}' is no code of a fault")))
        };
        Ok(ConversationFilter {
            before: Self::parsed("after", self.after.as_ref())?,
            since: Self::parsed("since", self.since.as_ref())?,
            until: Self::parsed("until", self.until.as_ref())?,
            open: self.open,
            listener: Self::parsed("listener", self.listener.as_ref())?,
            payload: Self::parsed("payload", self.payload.as_ref())?,
            fault: self.fault.as_ref().map(code).transpose()?,
            text: self.text.as_deref().map(Arc::from),
            limit: self.limit(),
        })
    }

    /// Cuts a page out of entries that are in order of key.
    fn page<T>(&self, entries: impl Iterator<Item = (String, T)>) -> Page<T> {
        let limit = self.limit();
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
    /// Lists conversations, newest first: those of the journal, open and ended; without one, open ones.
    ///
    /// A page examines 2,000 conversations at most, and searches 64 MiB: under conditions it may have fewer entries than its
    /// limit, and another page behind it.
    ///
    /// # Errors
    /// [`LookError`] if a condition can't be read, needs a journal, or the journal can't be read.
    pub async fn conversations(&self, wanted: &Wanted) -> Result<Page<ConversationRecord>, LookError> {
        let Some(query) = self.query()? else { return self.open_conversations(wanted).await };
        let (kept, next) = query.conversations(wanted.filter()?).await?;
        let open = kept.iter().filter(|kept| kept.root.closed.is_none()).map(|kept| kept.root.record.id);
        let among: Arc<HashSet<_>> = Arc::new(open.collect());
        let wanted = OpenFilter { limit: among.len(), among: Some(among), ..OpenFilter::default() };
        let live: HashMap<_, _> = self.open(wanted).await.into_iter().map(|open| (open.root, open)).collect();
        let record = |kept: KeptConversation| {
            let id = kept.root.record.id;
            let live = live.get(&id);
            ConversationRecord {
                conversation: id.to_string(),
                open: kept.root.closed.is_none(),
                owner: match kept.root.record.owner {
                    Owner::Client(client) => Some(client.to_string()),
                    Owner::Listener(_) | Owner::Boot | Owner::None => None,
                },
                opened: Some(kept.root.opened.to_string()),
                ended: kept.root.closed.map(|closed| closed.to_string()),
                payload: kept.payload.map(|payload| payload.to_string()),
                fault: kept.fault.map(|code| code.to_string()),
                threads: kept.open_threads,
                running: live.map_or(0, |live| live.running as u64),
                queued: kept.waiting,
                listeners: kept.listeners.iter().map(ToString::to_string).collect(),
            }
        };
        Ok(Page { items: kept.into_iter().map(record).collect(), next: next.map(|next| next.to_string()) })
    }

    /// Lists the threads of a conversation, each behind its parent: those of the journal, open and closed; without one, the
    /// open ones. Nothing if there are none.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn threads(&self, conversation: ThreadId, wanted: &Wanted) -> Result<Page<ThreadRecord>, LookError> {
        let (limit, after) = (wanted.limit(), Wanted::parsed::<u64>("after", wanted.after.as_ref())?);
        let shared = &self.organism.shared;
        let Some(query) = self.query()? else {
            let skip = after.unwrap_or(0) as usize;
            let all = shared.look(move |core| core.open_threads(conversation, skip, limit + 1)).await;
            let mut items: Vec<_> = all.into_iter().flatten().map(|thread| open_record(&thread)).collect();
            let next = (items.len() > limit).then(|| (skip + limit).to_string());
            items.truncate(limit);
            return Ok(Page { items, next });
        };
        let (kept, next) = query.threads(conversation, after.unwrap_or(0), limit).await?;
        let open = kept.iter().filter(|kept| kept.entry.closed.is_none()).map(|kept| kept.entry.record.id);
        let open: Arc<HashSet<_>> = Arc::new(open.collect());
        let states = match open.is_empty() {
            true => Vec::new(),
            false => shared.look(move |core| core.states_of(conversation, &open)).await,
        };
        let states: HashMap<_, _> = states.into_iter().flatten().collect();
        let record = |kept: KeptThread| {
            let id = kept.entry.record.id;
            ThreadRecord {
                thread: id.to_string(),
                parent: kept.parent.map(|parent| parent.to_string()),
                path: kept.path.to_string(),
                // One that has closed since the journal was read waits for nothing any more.
                state: kept.entry.closed.is_none().then(|| states.get(&id).copied().unwrap_or(ThreadState::Waiting)),
                queued: kept.waiting,
                opened: Some(kept.entry.opened.to_string()),
                closed: kept.entry.closed.map(|closed| closed.to_string()),
            }
        };
        Ok(Page { items: kept.into_iter().map(record).collect(), next: next.map(|next| next.to_string()) })
    }

    /// Lists the history of a thread, in order of time. `after` is the number of records to skip.
    ///
    /// # Errors
    /// [`LookError`] if the organism has no journal, or that can't be read.
    pub async fn messages(&self, thread: ThreadId, wanted: &Wanted) -> Result<Page<MessageRecord>, LookError> {
        let (limit, skip) = (wanted.limit(), Wanted::parsed::<usize>("after", wanted.after.as_ref())?.unwrap_or(0));
        let (kept, has_more) = self.past()?.history_of(thread, skip, limit).await?;
        let next = has_more.then(|| (skip + limit).to_string());
        Ok(Page { items: kept.into_iter().map(message_record).collect(), next })
    }

    /// Finds a message in the mailbox of a thread: its record, and those of all that its handler did. Nothing if it isn't kept.
    ///
    /// # Errors
    /// As [`messages`](Self::messages).
    pub async fn message(&self, id: MessageId) -> Result<Vec<MessageRecord>, LookError> {
        Ok(self.past()?.message(id).await?.into_iter().map(message_record).collect())
    }

    fn query(&self) -> Result<Option<Arc<dyn Query>>, LookError> {
        Ok(self.organism.query()?)
    }

    fn past(&self) -> Result<Arc<dyn Query>, LookError> {
        let none = || LookError::Invalid("the organism has no journal, so it keeps no past".to_owned());
        self.query()?.ok_or_else(none)
    }

    async fn open(&self, wanted: OpenFilter) -> Vec<OpenConversation> {
        if wanted.limit == 0 {
            return Vec::new();
        }
        let of_cores = self.organism.shared.look(move |core| core.open_conversations(&wanted)).await;
        let mut found: Vec<_> = of_cores.into_iter().flatten().collect();
        found.sort_unstable_by_key(|open| std::cmp::Reverse(open.root));
        found
    }

    async fn open_conversations(&self, wanted: &Wanted) -> Result<Page<ConversationRecord>, LookError> {
        let past = [&wanted.payload, &wanted.fault, &wanted.text, &wanted.since, &wanted.until];
        if past.iter().any(|condition| condition.is_some()) {
            let why = "the organism has no journal, so its conversations can be chosen by listener and state alone";
            return Err(LookError::Invalid(why.to_owned()));
        }
        let blueprint = self.organism.blueprint();
        let listener = match &wanted.listener {
            None => None,
            Some(name) => match blueprint.party(name) {
                Some(Party::Listener(id)) => Some(id),
                _ => return Ok(Page { items: Vec::new(), next: None }),
            },
        };
        if wanted.open == Some(false) {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let (before, limit) = (Wanted::parsed("after", wanted.after.as_ref())?, wanted.limit());
        let mut found = self.open(OpenFilter { before, listener, limit: limit + 1, ..OpenFilter::default() }).await;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|last| last.root.to_string());
        let record = |open: OpenConversation| {
            let names = open.listeners.iter().filter_map(|&id| Some(blueprint.listener(id)?.name.to_string()));
            let mut listeners: Vec<_> = names.collect();
            listeners.sort_unstable();
            ConversationRecord {
                conversation: open.root.to_string(),
                open: true,
                owner: open.owner.map(|owner| owner.to_string()),
                opened: None,
                ended: None,
                payload: None,
                fault: None,
                threads: open.threads as u64,
                running: open.running as u64,
                queued: open.queued as u64,
                listeners,
            }
        };
        Ok(Page { items: found.into_iter().map(record).collect(), next })
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
                rests: self.organism.rest(&contract.name).map(|rest| RestRecord {
                    since: rest.since.to_string(),
                    until: rest.until.to_string(),
                    why: rest.why.to_string(),
                }),
                paused: self.organism.paused_since(&slots, &contract.name).map(|since| since.to_string()),
            });
            // A listener without state has slots in each core.
            record.concurrency = record.concurrency.saturating_add(contract.concurrency);
            record.running += slots.running;
            record.waiting += slots.waiting;
        }
        wanted.page(found.into_iter())
    }
}

/// The key of a dead letter in its list. All have one length, so that they sort as times and numbers do.
fn letter_key(at: Time, core: u16, number: Number) -> String {
    format!("{:020}-{core:05}-{number:020}", at.as_nanos())
}

fn open_record(thread: &OpenThread) -> ThreadRecord {
    ThreadRecord {
        thread: thread.id.to_string(),
        parent: thread.parent.map(|parent| parent.to_string()),
        path: thread.path.to_string(),
        state: Some(thread.state),
        queued: thread.queued as u64,
        opened: None,
        closed: None,
    }
}

fn message_record(kept: KeptMessage) -> MessageRecord {
    let KeptMessage { entry, thread, root, path, .. } = kept;
    let mut record = MessageRecord {
        at: entry.at.to_string(),
        kind: MessageKind::Note,
        conversation: root.to_string(),
        thread: thread.to_string(),
        path: path.to_string(),
        message: None,
        from: None,
        in_reply_to: None,
        ended: None,
        ending: None,
        attempts: None,
        payload: None,
        fault: None,
        text: String::new(),
    };
    match entry.said {
        HistoryRecord::Message(message, ended) => {
            record.kind = MessageKind::Message;
            record.message = Some(message.id.to_string());
            record.from = Some(message.from.to_string());
            record.in_reply_to = message.in_reply_to.map(|id| id.to_string());
            (record.ended, record.ending) = ended.map(|(at, ending)| (at.to_string(), ending)).unzip();
            record.attempts = Some(message.attempts).filter(|&attempts| attempts > 0);
            match message.body {
                BodyRecord::Payload(payload) => record.has(&payload),
                BodyRecord::Fault(fault) | BodyRecord::Fatal(fault) => record.has_fault(&fault),
            }
        }
        HistoryRecord::Awaited(id, settled) => {
            record.kind = MessageKind::AwaitedAnswer;
            record.message = Some(id.to_string());
            match settled.outcome {
                Ok(answer) => {
                    record.from = Some(answer.from.to_string());
                    record.has(&answer.payload);
                }
                Err(fault) => record.has_fault(&fault),
            }
        }
        HistoryRecord::Left(egress, read) => {
            record.kind = MessageKind::Answer;
            record.from = Some(egress.from.to_string());
            record.in_reply_to = egress.in_reply_to.as_deref().map(str::to_owned);
            record.ended = read.map(|read| read.to_string());
            match egress.fault {
                Some(fault) => record.has_fault(&fault),
                None => record.has(&egress.payload),
            }
        }
        HistoryRecord::Refused(note) => {
            record.kind = MessageKind::RefusedOutput;
            record.text = text_of(note.value.as_bytes());
        }
        HistoryRecord::Said(note) => {
            record.kind = MessageKind::StandardError;
            record.text = text_of(note.value.as_bytes());
        }
        HistoryRecord::Recorded(note) => record.text = text_of(note.value.as_bytes()),
    }
    record
}

impl MessageRecord {
    fn has(&mut self, payload: &[u8]) {
        self.payload = root_of(payload).map(|name| name.to_string());
        self.text = text_of(payload);
    }

    fn has_fault(&mut self, fault: &Fault) {
        self.fault = Some(fault.code.to_string());
        self.text = fault.to_string();
    }
}

/// The start of a text. A character that is cut in two is shown as one that is damaged.
fn text_of(bytes: &[u8]) -> String {
    const TEXT: usize = 64 << 10;
    String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT)]).into_owned()
}

fn letter_record(letter: &DeadLetter) -> LetterRecord {
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
        text: letter.payload.as_ref().map(|payload| text_of(payload.bytes())),
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
