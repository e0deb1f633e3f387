//! The open work of a journal beside another version of its organism: what a start with that version would not carry on.
//!
//! [`conflicts`] judges records alone, and runs nothing. So it can't tell whether a changed handler would make other calls
//! than those that are recorded; such a handler fails when it runs again. [`replay::conflicts`](crate::replay::conflicts) finds
//! those by running it.
//!
//! # Examples
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use systole::config::Config;
//! use systole::journal::{NamedJournal, Store};
//! use systole::upgrade::conflicts;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::load(Path::new("organism.yaml")).map_err(|findings| format!("{findings:?}"))?;
//! let journal = NamedJournal::file(Path::new("shop.journal")).read()?;
//! for conflict in conflicts(&config.blueprint, Arc::new(config.catalog), &*journal)?.found {
//!     println!("{} {}: {}", conflict.conversation, conflict.path, conflict.cause);
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use systole_core::core::{Blueprint, Contract, OnRestart, Party};
use systole_core::journal::{BodyRecord, JournalError, JournalErrorKind, MessageRecord, Number, Owner, ReplyTo};
use systole_core::vocab::{MessageId, Name, QName, ThreadId, ThreadPath};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Catalog, PayloadSchema, Validator};
use systole_xml::vocab::{XmlLimits, near};

use crate::journal::{HistoryEntry, HistoryRecord, Reader, ThreadEntry};

/// The open conversations of a journal, and what another version of the organism would not carry on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenWork {
    /// The number of open conversations, those of `<boot>` left out: each start boots anew.
    pub conversations: usize,
    /// The conflicts, in the order in which the conversations and their threads opened.
    pub found: Vec<Conflict>,
}

/// A record of an open conversation that another version of the organism would not carry on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The conversation.
    pub conversation: ThreadId,
    /// The thread in it.
    pub path: ThreadPath,
    /// The message, where it is about one.
    pub message: Option<MessageId>,
    /// The cause.
    pub cause: Cause,
}

/// A party that is not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The party.
    pub name: Name,
    /// The party of the same kind with the most similar name.
    pub near: Option<Name>,
}

/// A payload that has no schema, or breaks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The payload.
    pub payload: QName,
    /// The payload with the most similar name, if this one has no schema.
    pub near: Option<QName>,
    /// The rule that it breaks.
    pub rule: String,
}

/// The cause of a [`Conflict`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// The listener of an open thread is not there.
    NoListener(Missing),
    /// The client of an open conversation is not there.
    NoClient(Missing),
    /// A waiting message is refused.
    Refused(Refusal),
    /// A recorded answer to a call of a waiting message is refused.
    AnswerRefused(Refusal),
    /// A waiting message, which its listener no longer takes.
    NotTaken {
        /// The listener.
        listener: Name,
        /// The payload.
        payload: QName,
    },
    /// A handler would not make a recorded request again, as a [replay](crate::replay) has shown.
    NotRepeated {
        /// The listener that was called.
        listener: Name,
        /// The payload.
        payload: QName,
    },
    /// The conversation could not be replayed.
    NotReplayed {
        /// The reason.
        why: String,
    },
    /// More threads are open than a conversation may have.
    ConversationThreads {
        /// The limit.
        most: usize,
        /// The number of open threads.
        held: usize,
    },
    /// More threads are open than the organism may have.
    Threads {
        /// The limit.
        most: usize,
        /// The number of open threads.
        held: usize,
    },
}

impl Cause {
    /// Returns what becomes of the work at a start.
    pub fn effect(&self) -> &'static str {
        match self {
            Self::NoListener(_) | Self::NoClient(_) => "the start is refused; with --drop NAME the open threads fail",
            Self::Refused(_) => "the message becomes a dead letter, and its caller gets a fault",
            Self::AnswerRefused(_) => "the handler gets a fault instead of the answer",
            Self::NotTaken { .. } => "the message is delivered all the same",
            Self::NotRepeated { .. } => {
                "the handler fails with listener-failed, as its requests differ from the recorded ones"
            }
            Self::NotReplayed { .. } => "it is not known whether its handlers make their recorded requests again",
            Self::ConversationThreads { .. } => "a thread that calls fails until fewer are open",
            Self::Threads { .. } => "messages of clients are refused until fewer are open",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoListener(missing) => write!(f, "there is no listener {missing}"),
            Self::NoClient(missing) => write!(f, "there is no client {missing}"),
            Self::Refused(refusal) => write!(f, "the message {refusal}"),
            Self::AnswerRefused(refusal) => write!(f, "the recorded answer {refusal}"),
            Self::NotTaken { listener, payload } => write!(f, "'{listener}' no longer takes {payload}"),
            Self::NotRepeated { listener, payload } => {
                write!(f, "a recorded request {payload} to '{listener}' is not made again")
            }
            Self::NotReplayed { why } => write!(f, "not replayed: {why}"),
            Self::ConversationThreads { most, held } => {
                write!(f, "{held} threads are open, and conversation_threads is {most}")
            }
            Self::Threads { most, held } => {
                write!(f, "{held} threads of all conversations are open, and threads is {most}")
            }
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.name)?;
        self.near.as_ref().map_or(Ok(()), |near| write!(f, "; there is '{near}'"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is refused: {}", self.payload, self.rule)?;
        self.near.as_ref().map_or(Ok(()), |near| write!(f, "; there is {near}"))
    }
}

/// Returns the owner of a thread whom an organism lacks: a listener, or a client. A start refuses a journal with such threads.
pub fn missing<'o>(blueprint: &Blueprint, owner: &'o Owner) -> Option<&'o Name> {
    let (name, is_there) = match owner {
        Owner::Listener(name) => (name, matches!(blueprint.party(name.as_str()), Some(Party::Listener(_)))),
        Owner::Client(name) => (name, matches!(blueprint.party(name.as_str()), Some(Party::Client(_)))),
        Owner::Boot | Owner::None => return None,
    };
    (!is_there).then_some(name)
}

/// Compares the open work of a journal with an organism, whose payloads have these schemas. It reads all open threads with
/// their history, and holds one thread's at a time.
///
/// # Errors
/// [`JournalError`] if the journal can't be read.
pub fn conflicts(blueprint: &Blueprint, catalog: Arc<Catalog>, journal: &dyn Reader) -> Result<OpenWork, JournalError> {
    let threads = journal.open_threads()?;
    let mut comparison = Comparison { blueprint, validator: Validator::new(catalog), work: OpenWork::default() };
    // Work below `<boot>` is over at each start.
    let boot: HashSet<Number> = threads
        .iter()
        .filter(|thread| thread.record.parent.is_none() && thread.record.owner == Owner::Boot)
        .map(|thread| thread.record.number)
        .collect();
    let by_number: HashMap<Number, &ThreadEntry> =
        threads.iter().map(|thread| (thread.record.number, thread)).collect();
    let mut held: BTreeMap<Number, usize> = BTreeMap::new();
    for thread in &threads {
        let record = &thread.record;
        if !boot.contains(&record.root) {
            *held.entry(record.root).or_default() += 1;
        } else if !comparison.outlives_boot(&record.owner) {
            continue;
        }
        let conversation = by_number.get(&record.root).map_or(record.id, |root| root.record.id);
        let of = Of { conversation, path: thread.path(&by_number) };
        comparison.thread(&of, thread, &journal.said(record)?)?;
    }
    comparison.work.conversations = held.len();
    comparison.limits(&by_number, &held);
    Ok(comparison.work)
}

/// The place of a thread.
struct Of {
    conversation: ThreadId,
    path: ThreadPath,
}

struct Comparison<'a> {
    blueprint: &'a Blueprint,
    validator: Validator,
    work: OpenWork,
}

impl Comparison<'_> {
    fn listener(&self, name: &Name) -> Option<&Contract> {
        match self.blueprint.party(name.as_str()) {
            Some(Party::Listener(id)) => Some(&self.blueprint[id]),
            Some(Party::Client(_)) | None => None,
        }
    }

    /// Returns whether a thread below `<boot>` concerns a start: its listener goes on with it, or is missing.
    fn outlives_boot(&self, owner: &Owner) -> bool {
        let Owner::Listener(name) = owner else { return false };
        self.listener(name).is_none_or(|contract| contract.on_restart == OnRestart::Reattach)
    }

    fn add(&mut self, of: &Of, message: Option<MessageId>, cause: Cause) {
        let (conversation, path) = (of.conversation, of.path.clone());
        self.work.found.push(Conflict { conversation, path, message, cause });
    }

    fn thread(&mut self, of: &Of, thread: &ThreadEntry, said: &[HistoryEntry]) -> Result<(), JournalError> {
        let listener = match &thread.record.owner {
            owner if missing(self.blueprint, owner).is_some() => {
                self.add_missing(of, owner);
                return Ok(());
            }
            Owner::Listener(name) => Some(name),
            Owner::Client(_) | Owner::Boot | Owner::None => None,
        };
        // The first open message is the one whose handler runs: one at a time does on a thread.
        let mut running: Option<&MessageRecord> = None;
        let mut last_end = None;
        for entry in said {
            match &entry.said {
                HistoryRecord::Message(message, None) => {
                    if running.is_none_or(|first| message.place < first.place) {
                        running = Some(message);
                    }
                    if let Some(listener) = listener {
                        self.message(of, listener, message)?;
                    }
                }
                HistoryRecord::Message(_, Some((end, _))) => last_end = last_end.max(Some(*end)),
                _ => {}
            }
        }
        let Some(running) = running else { return Ok(()) };
        // It will run again with the answers that it has: those that came after the message before it ended.
        for entry in said.iter().filter(|entry| Some(entry.at) > last_end) {
            let HistoryRecord::Awaited(_, _, settled) = &entry.said else { continue };
            let Ok(answer) = &settled.outcome else { continue };
            if let Err(refusal) = self.judge(&answer.payload)? {
                self.add(of, Some(running.id), Cause::AnswerRefused(refusal));
            }
        }
        Ok(())
    }

    fn message(&mut self, of: &Of, listener: &Name, message: &MessageRecord) -> Result<(), JournalError> {
        let BodyRecord::Payload(payload) = &message.body else { return Ok(()) };
        let payload = match self.judge(payload)? {
            Ok(payload) => payload,
            Err(refusal) => {
                self.add(of, Some(message.id), Cause::Refused(refusal));
                return Ok(());
            }
        };
        let is_request = message.answers == ReplyTo::None && message.in_reply_to.is_none();
        let takes = |contract: &Contract| {
            contract.accepts.contains(&payload) || !is_request && contract.returns.contains(&payload)
        };
        if !self.listener(listener).is_some_and(takes) {
            self.add(of, Some(message.id), Cause::NotTaken { listener: listener.clone(), payload });
        }
        Ok(())
    }

    /// Judges a payload of the journal as the core does before it delivers one.
    fn judge(&mut self, payload: &Bytes) -> Result<Result<QName, Refusal>, JournalError> {
        let canonical = parse(&Raw::new(payload.clone()), &XmlLimits::UNLIMITED).map_err(|error| {
            JournalError::new(JournalErrorKind::Damaged, format!("the journal has a payload that is no XML: {error}"))
        })?;
        let name = canonical.root().clone();
        let Err(error) = self.validator.validate(canonical) else { return Ok(Ok(name)) };
        let catalog = self.validator.catalog();
        let near = match catalog.get(&name) {
            Some(_) => None,
            None => {
                let known: Vec<_> = catalog.payloads().map(PayloadSchema::qname).collect();
                near::payload(&name, known.iter().copied()).cloned()
            }
        };
        Ok(Err(Refusal { payload: name, near, rule: error.to_string() }))
    }

    /// Adds a party that is missing, with the one of its kind that may be meant.
    fn add_missing(&mut self, of: &Of, owner: &Owner) {
        let blueprint = self.blueprint;
        let cause = match owner {
            Owner::Listener(name) => {
                Cause::NoListener(Missing::new(name, blueprint.listeners().map(|(_, contract)| &contract.name)))
            }
            Owner::Client(name) => {
                Cause::NoClient(Missing::new(name, blueprint.clients().map(|(_, contract)| &contract.name)))
            }
            Owner::Boot | Owner::None => return,
        };
        self.add(of, None, cause);
    }

    /// Compares what is held with the limits on threads.
    fn limits(&mut self, threads: &HashMap<Number, &ThreadEntry>, held: &BTreeMap<Number, usize>) {
        let limits = &self.blueprint.limits;
        let (all, most, each) = (held.values().sum(), limits.threads, limits.conversation_threads);
        let mut is_told = all <= most;
        for (root, &held) in held {
            let Some(root) = threads.get(root) else { continue };
            let of = Of { conversation: root.record.id, path: ThreadPath::new(Vec::new()) };
            if held > each {
                self.add(&of, None, Cause::ConversationThreads { most: each, held });
            } else if !is_told {
                self.add(&of, None, Cause::Threads { most, held: all });
            }
            is_told = true;
        }
    }
}

impl Missing {
    fn new<'n>(name: &Name, known: impl Iterator<Item = &'n Name>) -> Self {
        let near = near::nearest(name.as_str(), known.map(Name::as_str));
        Self { name: name.clone(), near: near.and_then(|near| Name::parse(near).ok()) }
    }
}
