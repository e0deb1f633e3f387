//! Acts.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use systole_core::core::{
    DeadLetter, DeadLetterError, DeadLetterId, Egress, Event, EventKind, Operation, OperationError, Party,
};
use systole_core::vocab::{FaultCode, Name, Partition, QName, ThreadId, ThreadPath};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Element, Validated, Validator};

use super::Operations;
use crate::journal::Retry;
use crate::runtime::{NoSuchClient, SendError};

/// An act of an operator. As JSON: `{"act": "pause", "listener": "planner"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Act {
    /// Ends a conversation, or one thread of it with all below it. Whoever waits for an answer gets a `cancelled` fault.
    Cancel {
        /// The id of the conversation.
        conversation: String,
        /// The id of the thread; left out, the whole conversation ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
    },
    /// Redrives dead letters: each is judged from the start, as if its sender emitted it now.
    Redrive {
        /// The dead letters.
        #[serde(deserialize_with = "object")]
        letters: Letters,
    },
    /// Deletes dead letters.
    Discard {
        /// The dead letters.
        #[serde(deserialize_with = "object")]
        letters: Letters,
    },
    /// Opens a conversation of the journal again from one of its messages on, as a new one: with all that was open then, and
    /// nothing that came later.
    Retry {
        /// The id of the conversation, or of a thread in it.
        conversation: String,
        /// The id of a message in it, or of an answer to an awaited call; left out, the message that opened it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// XML of a payload of the same name, which takes the place of that of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edit: Option<String>,
        /// The client that gets the answers; left out, the one of the conversation.
        #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// Pauses a listener until it is resumed, also over a restart: no handler of it starts. Its messages wait, and their
    /// deadlines count. Handlers that run go on.
    Pause {
        /// The listener.
        listener: String,
    },
    /// Resumes a paused listener.
    Resume {
        /// The listener.
        listener: String,
    },
    /// Sets the levels of the log, until the organism ends: `debug`, or `info,systole::gateway=debug`.
    LogLevel {
        /// The levels.
        level: String,
    },
    /// Ends the organism in order: it takes no new messages, and ends when no work is left, or after that time.
    Drain {
        /// Seconds.
        within: u32,
    },
}

/// The dead letters of an act: those that match all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Letters {
    /// Their ids, or their numbers in the journal; left out, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// The sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The listener that they were for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The payload, {namespace}local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the fault that is their reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Parses a value from an object; serde alone would take an array, too, and an empty one for all dead letters.
fn object<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let object = serde_json::Map::deserialize(deserializer)?;
    T::deserialize(serde_json::Value::Object(object)).map_err(D::Error::custom)
}

/// The outcome of an act for one of the things that it was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Outcome {
    /// The conversation, the thread, the dead letter, the listener, the levels of the log or the organism.
    pub of: String,
    /// The reason why the act had no effect on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The conversation that a retry opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
}

impl Outcome {
    fn of(of: String, error: Option<String>) -> Self {
        Self { of, error, opened: None }
    }
}

/// The outcome of a question.
#[derive(Debug)]
#[non_exhaustive]
pub struct Asked {
    /// The conversation.
    pub conversation: ThreadId,
    /// The answer, if there is one.
    pub answer: Option<Egress>,
    /// True if the organism ended before the answer.
    pub ended: bool,
}

/// The reason why an act had no effect.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// The text is no id, name or code.
    #[error("{0}")]
    Invalid(String),
    /// The organism has no such listener.
    #[error("the organism has no listener '{name}'")]
    NoListener {
        /// The name.
        name: String,
    },
    /// The conversation can't be retried.
    #[error("{0}")]
    CannotRetry(String),
    /// The organism has no such client.
    #[error(transparent)]
    NoClient(#[from] NoSuchClient),
    /// The message was not taken.
    #[error(transparent)]
    NotSent(#[from] SendError),
    /// The core refused it.
    #[error(transparent)]
    Refused(#[from] OperationError),
}

systole_core::vocab::debug_is_display!(ActError);

impl ActError {
    /// Returns whether the act would fail so on anything.
    fn is_of_all(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::NoListener { .. } | Self::NoClient(_) | Self::NotSent(_) => true,
            Self::Refused(OperationError::Closed | OperationError::Letter(DeadLetterError::Closed)) => true,
            Self::CannotRetry(_) | Self::Refused(_) => false,
        }
    }
}

impl Act {
    /// The name of the act, as JSON has it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel",
            Self::Redrive { .. } => "redrive",
            Self::Discard { .. } => "discard",
            Self::Retry { .. } => "retry",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::LogLevel { .. } => "log-level",
            Self::Drain { .. } => "drain",
        }
    }
}

/// Parsed [`Letters`].
struct Filter {
    ids: Option<Vec<String>>,
    from: Option<Name>,
    to: Option<Name>,
    payload: Option<QName>,
    reason: Option<FaultCode>,
}

impl Filter {
    fn of(letters: &Letters) -> Result<Self, ActError> {
        let reason = |code: &str| {
            FaultCode::named(code).ok_or_else(|| ActError::Invalid(format!("'{code}' is no code of a fault")))
        };
        Ok(Self {
            ids: letters.ids.clone(),
            from: letters.from.as_deref().map(parsed).transpose()?,
            to: letters.to.as_deref().map(parsed).transpose()?,
            payload: letters.payload.as_deref().map(parsed).transpose()?,
            reason: letters.reason.as_deref().map(reason).transpose()?,
        })
    }

    fn takes(&self, letter: &DeadLetter) -> bool {
        let payload = || letter.payload.as_ref().map(|payload| payload.root());
        self.ids.as_ref().is_none_or(|ids| ids.iter().any(|id| is(letter, id)))
            && self.from.as_ref().is_none_or(|from| *from == letter.from)
            && self.to.as_ref().is_none_or(|to| letter.to.as_ref() == Some(to))
            && self.payload.as_ref().is_none_or(|name| payload() == Some(name))
            && self.reason.is_none_or(|reason| letter.reason.code == reason)
    }
}

/// Compares a dead letter with an id: its own, or the number that the journal has of it.
fn is(letter: &DeadLetter, id: &str) -> bool {
    id == letter.id.to_string() || id == letter.id.number().to_string()
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, ActError> {
    text.parse().map_err(|error: T::Err| ActError::Invalid(error.to_string()))
}

impl Operations<'_> {
    /// Does an act, and tells its outcome for each of the things that it was about, once that is as durable as the
    /// organism. An act on nothing, as on dead letters that there are none of, has no outcomes.
    ///
    /// # Errors
    /// [`ActError`] if a part of it can't be read, if there is no such listener, or if the organism has closed; then it had no
    /// effect.
    ///
    /// # Cancel safety
    /// An act that was begun takes effect even if the future is dropped; of several dead letters the rest stays.
    pub async fn act(&self, act: &Act) -> Result<Vec<Outcome>, ActError> {
        let name = act.name();
        match act {
            Act::Cancel { conversation, thread } => {
                let root: ThreadId = parsed(conversation)?;
                let thread = thread.as_deref().map_or(Ok(root), parsed)?;
                only(thread.to_string(), self.cancel(root, thread).await)
            }
            Act::Redrive { letters } => {
                let redrive = |letter| Operation::Redrive { letter, root: self.organism.shared.root() };
                self.each_letter(name, letters, redrive).await
            }
            Act::Discard { letters } => self.each_letter(name, letters, |letter| Operation::Discard { letter }).await,
            Act::Retry { conversation, at, edit, owner } => {
                let retry = Retry {
                    conversation: parsed(conversation)?,
                    at: at.as_deref().map(parsed).transpose()?,
                    edit: edit.as_deref().map(|xml| self.payload(xml)).transpose()?,
                    owner: owner.as_deref().map(parsed).transpose()?,
                };
                let (opened, error) = match self.retry(retry).await {
                    Ok(root) => (Some(root.to_string()), None),
                    Err(error) if error.is_of_all() => return Err(error),
                    Err(error) => (None, Some(error.to_string())),
                };
                Ok(vec![Outcome { of: conversation.clone(), error, opened }])
            }
            Act::Pause { listener } => only(listener.clone(), self.pause(listener).await),
            Act::Resume { listener } => only(listener.clone(), self.resume(listener).await),
            Act::LogLevel { level } => {
                let set = match &self.organism.log_levels {
                    Some(set) => set(level).map_err(|why| ActError::Invalid(format!("{level}: {why}"))),
                    None => Err(ActError::Invalid("this program sets no levels of its log".to_owned())),
                };
                only(level.clone(), self.told(name, level, set))
            }
            Act::Drain { within } => {
                let organism = self.organism.blueprint().organism.to_string();
                let begun = self.told(name, &organism, Ok(()));
                self.organism.drain_by(Duration::from_secs(u64::from(*within)));
                only(organism, begun)
            }
        }
    }

    /// Sends a message as a client, in a conversation of its own, and waits for the first answer. There is none if the
    /// conversation closes without one, or the organism ends before: a durable one goes on with it at its next start.
    ///
    /// # Errors
    /// [`ActError`] if there is no such client, or the message was not taken.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the conversation.
    pub async fn ask(&self, client: &str, envelope: Bytes) -> Result<Asked, ActError> {
        let client = self.organism.client(client)?;
        let mut conversation = client.converse();
        let sent = conversation.send_only_bytes(envelope).map_err(ActError::from);
        self.told("ask", &conversation.id().to_string(), sent)?;
        let answer = conversation.receive().await;
        conversation.keep();
        let ended = answer.is_none() && self.organism.ready() == Err(SendError::Closed);
        Ok(Asked { conversation: conversation.id(), answer, ended })
    }

    /// Cancels a thread of a conversation: see [`Act::Cancel`].
    ///
    /// # Errors
    /// [`ActError`] if it is not open.
    pub async fn cancel(&self, conversation: ThreadId, thread: ThreadId) -> Result<(), ActError> {
        self.told("cancel", &thread.to_string(), self.cancelled(conversation, thread).await)
    }

    /// Redrives a dead letter: it is judged from the start, as if its sender emitted it now.
    ///
    /// The original caller has had an answer already, so the letter doesn't go back to that conversation: its tree is
    /// below a root without an owner, like that of boot, and its answers become dead letters. If the letter is refused
    /// again, it becomes a dead letter under a new number. A payload that its sender may not call can't be redriven: a
    /// reply, for which no thread waits any more, and a request to the core.
    ///
    /// # Errors
    /// [`ActError`]; then the letter stays.
    ///
    /// # Cancel safety
    /// Once polled, it is redriven even if the future is dropped.
    pub async fn redrive(&self, letter: DeadLetterId) -> Result<(), ActError> {
        let root = self.organism.shared.root();
        self.letter("redrive", letter, Operation::Redrive { letter, root }).await
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// [`ActError`] if there is no such letter, or the organism has ended.
    ///
    /// # Cancel safety
    /// Once polled, it is deleted even if the future is dropped.
    pub async fn discard(&self, letter: DeadLetterId) -> Result<(), ActError> {
        self.letter("discard", letter, Operation::Discard { letter }).await
    }

    /// Opens a conversation of the journal again from a message on, as a new one, and returns its id: see [`Act::Retry`].
    /// Where its client sends messages over a network, that is the id of its message, too.
    ///
    /// # Errors
    /// [`ActError`] if the organism has no journal in a file, the conversation or the message isn't kept, the client is gone,
    /// or the organism ends.
    ///
    /// # Cancel safety
    /// Once the journal is read, the conversation is opened even if the future is dropped.
    pub async fn retry(&self, retry: Retry) -> Result<ThreadId, ActError> {
        let conversation = retry.conversation.to_string();
        let opened = self.retried(retry).await;
        let told = opened.as_ref().map(drop).map_err(Clone::clone);
        self.told("retry", &conversation, told)?;
        opened
    }

    /// Pauses a listener: see [`Act::Pause`].
    ///
    /// # Errors
    /// [`ActError`] if there is no such listener, or the organism has ended.
    pub async fn pause(&self, listener: &str) -> Result<(), ActError> {
        self.told("pause", listener, self.paused(listener, true).await)
    }

    /// Resumes a listener. One that is not paused stays as it is.
    ///
    /// # Errors
    /// [`ActError`] if there is no such listener, or the organism has ended.
    pub async fn resume(&self, listener: &str) -> Result<(), ActError> {
        self.told("resume", listener, self.paused(listener, false).await)
    }

    async fn cancelled(&self, root: ThreadId, thread: ThreadId) -> Result<(), ActError> {
        let shared = &self.organism.shared;
        // A conversation of `<boot>` lives where that does, whatever its id.
        let homes = [Partition::of(root), Partition::BOOT].map(|partition| shared.directory.core_of(partition));
        let mut result = Err(OperationError::NotOpen(thread));
        for home in homes.into_iter().flatten() {
            if matches!(result, Err(OperationError::NotOpen(_))) {
                result = shared.operate(home, Operation::Cancel { root, thread }).await;
            }
        }
        Ok(result?)
    }

    async fn retried(&self, retry: Retry) -> Result<ThreadId, ActError> {
        let shared = &self.organism.shared;
        let failed = |why: &dyn std::fmt::Display| ActError::CannotRetry(why.to_string());
        let ends = || matches!(self.organism.ready(), Err(SendError::Closed));
        let failed = |why: &dyn std::fmt::Display| if ends() { OperationError::Closed.into() } else { failed(why) };
        let query = self.organism.query().map_err(|error| failed(&error))?;
        let query = query.ok_or_else(|| failed(&"the organism has no journal, so it keeps no past"))?;
        let moment = query.moment(retry).await.map_err(|error| failed(&error))?;
        let moment = Box::new(moment.map_err(|error| failed(&error))?);
        let root = shared.root();
        let home = shared.directory.core_of(Partition::of(root)).ok_or(OperationError::Closed)?;
        shared.operate(home, Operation::Retry { moment, root }).await?;
        Ok(root)
    }

    /// Parses a payload as an entrance takes it.
    fn payload(&self, xml: &str) -> Result<Validated<Element>, ActError> {
        let shared = &self.organism.shared;
        let raw = Raw::new(Bytes::copy_from_slice(xml.as_bytes()));
        let canonical =
            parse(&raw, &shared.blueprint.limits.xml).map_err(|error| ActError::Invalid(error.to_string()))?;
        let judged = Validator::new(shared.catalog.clone()).validate(canonical);
        judged.map_err(|error| ActError::Invalid(error.to_string()))
    }

    async fn paused(&self, listener: &str, pause: bool) -> Result<(), ActError> {
        let shared = &self.organism.shared;
        let Some(Party::Listener(id)) = shared.blueprint.party(listener) else {
            return Err(ActError::NoListener { name: listener.to_owned() });
        };
        #[cfg(feature = "gateway")]
        if let Some(paused) = self.organism.pause_elsewhere(&shared.blueprint[id].name, pause) {
            return Ok(paused.await?);
        }
        let operation = || match pause {
            true => Operation::Pause { listener: id },
            false => Operation::Resume { listener: id },
        };
        for told in shared.operate_everywhere(operation) {
            told.await.unwrap_or(Err(OperationError::Closed))?;
        }
        Ok(())
    }

    async fn letter(&self, act: &'static str, letter: DeadLetterId, operation: Operation) -> Result<(), ActError> {
        let result = match self.organism.shared.closed.load(Ordering::Acquire) {
            true => Err(OperationError::Letter(DeadLetterError::Closed)),
            false => self.organism.shared.operate(letter.core(), operation).await,
        };
        self.told(act, &letter.to_string(), result.map_err(ActError::from))
    }

    async fn each_letter(
        &self,
        act: &'static str,
        letters: &Letters,
        operation: impl Fn(DeadLetterId) -> Operation,
    ) -> Result<Vec<Outcome>, ActError> {
        let filter = Filter::of(letters)?;
        let mut outcomes = Vec::new();
        let there = self.organism.dead_letters().await;
        for letter in there.iter().filter(|letter| filter.takes(letter)) {
            let result = self.letter(act, letter.id, operation(letter.id)).await;
            if let (true, Err(error)) = (outcomes.is_empty(), &result)
                && error.is_of_all()
            {
                return result.map(|()| outcomes);
            }
            outcomes.push(Outcome::of(letter.id.to_string(), result.err().map(|error| error.to_string())));
        }
        // What was named and isn't there is told, too.
        let absent = |id: &&String| !there.iter().any(|letter| is(letter, id));
        for id in filter.ids.iter().flatten().filter(absent) {
            outcomes.push(Outcome::of(id.clone(), Some(DeadLetterError::Unknown.to_string())));
        }
        Ok(outcomes)
    }

    /// Tells of an act in the events and in the log, and returns its result.
    fn told(&self, act: &'static str, of: &str, result: Result<(), ActError>) -> Result<(), ActError> {
        let error = result.as_ref().err().map(ToString::to_string);
        tracing::info!(by = %self.by, act, of, error = error.as_deref(), "an operator acted");
        let kind = EventKind::Operated { by: self.by.clone(), act, of: of.into(), error: error.map(Arc::from) };
        let at = self.organism.shared.clock.now();
        self.organism.report(Event::of_none(ThreadPath::new(Vec::new()), at, kind));
        result
    }
}

/// The outcome of an act on one thing. An error that is none of the thing itself is that of the whole act.
fn only(of: String, result: Result<(), ActError>) -> Result<Vec<Outcome>, ActError> {
    match result {
        Err(error) if error.is_of_all() => Err(error),
        result => Ok(vec![Outcome::of(of, result.err().map(|error| error.to_string()))]),
    }
}
