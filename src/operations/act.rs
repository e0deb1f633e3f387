//! Acts.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use systole_core::core::{
    Cancellation, DeadLetter, DeadLetterError, DeadLetterId, Egress, Event, EventKind, OpenThread, Operation,
    OperationError, Party, ThreadState,
};
use systole_core::journal::{ActRecord, Number, Op};
use systole_core::vocab::{MessageId, Name, Partition, ThreadId, ThreadPath};
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Element, Validated, Validator};
use tokio::sync::oneshot;

use super::look::{LookError, Wanted, takes};
use super::{Answerer, Operations, QuestionRecord};
use crate::journal::{KeptLetter, Retry};
#[cfg(feature = "gateway")]
use crate::runtime::MailboxAct;
use crate::runtime::{Conversation, Ending, NoSuchClient, SendError};
use crate::schedules::{ScheduleAct, ScheduleRefusal};

/// Dead letters that are looked for at once.
const PAGE: usize = 500;
/// Most characters of what an act was about in its record.
const OF: usize = 256;

/// Interval of looks at a conversation with questions to people.
const PEOPLE: Duration = Duration::from_millis(200);

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
    /// Pauses a schedule until it is resumed, also over a restart: its ticks have no messages, and are not made up for.
    PauseSchedule {
        /// The schedule.
        schedule: String,
    },
    /// Resumes a paused schedule.
    ResumeSchedule {
        /// The schedule.
        schedule: String,
    },
    /// Sends the message of a schedule now, beside its ticks.
    RunSchedule {
        /// The schedule.
        schedule: String,
    },
    /// Sets the levels of the log, until the organism ends: `debug`, or `info,systole::gateway=debug`.
    LogLevel {
        /// The levels.
        level: String,
    },
    /// Changes the organism to what its file says by now: conversations begin with that, and those that are open keep what they
    /// began with.
    Reload {},
    /// Ends the organism in order: it takes no new messages, and ends when no work is left, or after that time.
    Drain {
        /// Seconds.
        within: u32,
    },
}

/// The dead letters of an act, of the pump and of mailboxes: those that match all conditions. Of `listener`, `payload` and
/// `fault` words behind a `-` are left out: `-a -b`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Letters {
    /// Their ids, as the look has them; left out, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// The sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The listener that they were for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<String>,
    /// The payload, {namespace}local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The code of the fault that is their reason; `failed` in a mailbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// A text in their payload or their reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The time (RFC 3339) from which on they are dead letters; those of a mailbox came there then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The time before which they became dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
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
    /// The version that a changed organism has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The open conversations that keep an earlier version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
}

impl Outcome {
    pub(crate) fn of(of: String, error: Option<String>) -> Self {
        Self { of, error, opened: None, version: None, kept: None }
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
    /// The questions to people that the answer depends on, if the wait ended for them. The conversation goes on.
    pub people: Vec<QuestionRecord>,
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
    /// The organism has no such schedule.
    #[error("the organism has no schedule '{name}'")]
    NoSchedule {
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
            Self::Invalid(_) | Self::NoListener { .. } | Self::NoSchedule { .. } => true,
            Self::NoClient(_) | Self::NotSent(_) => true,
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
            Self::PauseSchedule { .. } => "pause-schedule",
            Self::ResumeSchedule { .. } => "resume-schedule",
            Self::RunSchedule { .. } => "run-schedule",
            Self::LogLevel { .. } => "log-level",
            Self::Reload {} => "reload",
            Self::Drain { .. } => "drain",
        }
    }
}

/// Dead letters that an act is about, and what their ids are.
#[derive(Debug, Default)]
struct Targets {
    found: Vec<(String, Target)>,
    /// Ids that were named, and are of none.
    absent: Vec<String>,
}

/// A dead letter that an act is about.
#[derive(Debug)]
enum Target {
    /// One of the pump; none if no core has it just now.
    Pump(Option<DeadLetterId>),
    /// One of a mailbox.
    #[cfg_attr(
        not(feature = "gateway"),
        expect(dead_code, reason = "the journal may have it, and nothing here acts on it")
    )]
    Mailbox(Name, MessageId),
}

/// A dead letter of the pump or of a mailbox in an act.
#[derive(Debug, Clone, Copy)]
enum LetterAct {
    Redrive,
    Discard,
}

/// The number of a dead letter of the pump that an id names: it alone, or behind a core.
fn letter_number(id: &str) -> Option<Number> {
    id.rsplit_once('-').map_or(id, |(core, number)| if core.parse::<u16>().is_ok() { number } else { id }).parse().ok()
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
            Act::Redrive { letters } => self.each_letter(LetterAct::Redrive, letters).await,
            Act::Discard { letters } => self.each_letter(LetterAct::Discard, letters).await,
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
                Ok(vec![Outcome { opened, ..Outcome::of(conversation.clone(), error) }])
            }
            Act::Pause { listener } => only(listener.clone(), self.pause(listener).await),
            Act::Resume { listener } => only(listener.clone(), self.resume(listener).await),
            Act::PauseSchedule { schedule } => self.scheduled(name, schedule, ScheduleAct::Pause).await,
            Act::ResumeSchedule { schedule } => self.scheduled(name, schedule, ScheduleAct::Resume).await,
            Act::RunSchedule { schedule } => self.scheduled(name, schedule, ScheduleAct::Run).await,
            Act::LogLevel { level } => {
                let set = match &self.organism.log_levels {
                    Some(set) => set(level).map_err(|why| ActError::Invalid(format!("{level}: {why}"))),
                    None => Err(ActError::Invalid("this program sets no levels of its log".to_owned())),
                };
                only(level.clone(), self.told(name, level, set, Recorded::Not).await)
            }
            Act::Reload {} => {
                let reloaded = match &self.organism.reloader.get() {
                    Some(reload) => reload().await.map_err(ActError::Invalid),
                    None => {
                        Err(ActError::Invalid("this program does not change its organism while it runs".to_owned()))
                    }
                };
                let organism = self.organism.blueprint().organism.clone();
                let done = reloaded.as_ref().map(drop).map_err(ActError::clone);
                let result = self.told(name, &organism, done, Recorded::Not).await;
                let (version, kept) = reloaded.map(|now| (now.version.0, now.kept as u64)).ok().unzip();
                Ok(only(organism, result)?.into_iter().map(|outcome| Outcome { version, kept, ..outcome }).collect())
            }
            Act::Drain { within } => {
                let organism = self.organism.blueprint().organism.to_string();
                let begun = self.told::<ActError>(name, &organism, Ok(()), Recorded::Not);
                self.organism.drain_by(Duration::from_secs(u64::from(*within)));
                only(organism, begun.await)
            }
        }
    }

    /// Sends a message as a client, and waits for the first answer: see [`send`](Self::send) and [`answer`](Self::answer).
    ///
    /// # Errors
    /// [`ActError`] if there is no such client, or the message was not taken.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the conversation.
    pub async fn ask(&self, client: &str, envelope: Bytes, leave: bool) -> Result<Asked, ActError> {
        let conversation = self.send(client, envelope).await?;
        Ok(self.answer(conversation, leave).await)
    }

    /// Sends a message as a client, in a conversation of its own. Dropping that cancels it.
    ///
    /// # Errors
    /// [`ActError`] if there is no such client, or the message was not taken.
    pub async fn send(&self, client: &str, envelope: Bytes) -> Result<Conversation, ActError> {
        let client = self.organism.client(client)?;
        let mut conversation = client.converse();
        let sent = conversation.send_only_bytes(envelope).map_err(ActError::from);
        self.told("ask", &conversation.id().to_string(), sent, Recorded::Not).await?;
        Ok(conversation)
    }

    /// Waits for the first answer in a conversation. There is none if the conversation closes without one, or the organism
    /// ends before: a durable one goes on with it at its next start.
    ///
    /// `leave`: the wait ends, too, once the answer depends on questions to people alone. The conversation goes on then, and
    /// its answer comes to the client like any other.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the conversation.
    pub async fn answer(&self, mut conversation: Conversation, leave: bool) -> Asked {
        let id = conversation.id();
        let (answer, people) = tokio::select! {
            biased;
            answer = conversation.receive() => (answer, Vec::new()),
            people = self.people_of(id), if leave => (None, people),
        };
        let (answer, people) = match people.is_empty() {
            true => (answer, people),
            false => match conversation.hand_over().await {
                Some(answer) => (Some(answer), Vec::new()),
                None => (None, people),
            },
        };
        conversation.keep();
        let ended = answer.is_none() && people.is_empty() && self.organism.ready() == Err(SendError::Closed);
        Asked { conversation: id, answer, ended, people }
    }

    /// Waits until questions to people are all that a conversation has left, and returns these.
    async fn people_of(&self, root: ThreadId) -> Vec<QuestionRecord> {
        let questions = self.organism.questions(Answerer::operator(self.by.clone()));
        let mut changes = questions.changes();
        loop {
            changes.borrow_and_update();
            let open = questions.of(root).await;
            let threads = self.organism.shared.look(move |core| core.open_threads(root, 0, usize::MAX)).await;
            let works = |thread: &OpenThread| {
                let asks = open.iter().any(|question| question.thread == thread.id.to_string());
                matches!(thread.state, ThreadState::Running | ThreadState::Queued) && !asks
            };
            if !open.is_empty() && !threads.iter().flatten().any(works) {
                return open;
            }
            // Other work of the conversation ends without a change of its questions.
            let _ = tokio::time::timeout(PEOPLE, changes.changed()).await;
        }
    }

    /// Cancels a thread of a conversation: see [`Act::Cancel`].
    ///
    /// # Errors
    /// [`ActError`] if it is not open.
    pub async fn cancel(&self, conversation: ThreadId, thread: ThreadId) -> Result<(), ActError> {
        let of = thread.to_string();
        let result = self.cancelled(conversation, thread, self.record("cancel", &of)).await;
        self.told("cancel", &of, result, Recorded::WithEffect).await
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
        self.letter(LetterAct::Redrive, &letter.to_string(), &Target::Pump(Some(letter))).await
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// [`ActError`] if there is no such letter, or the organism has ended.
    ///
    /// # Cancel safety
    /// Once polled, it is deleted even if the future is dropped.
    pub async fn discard(&self, letter: DeadLetterId) -> Result<(), ActError> {
        self.letter(LetterAct::Discard, &letter.to_string(), &Target::Pump(Some(letter))).await
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
        self.told("retry", &conversation, told, Recorded::WithEffect).await?;
        opened
    }

    /// Pauses a listener: see [`Act::Pause`].
    ///
    /// # Errors
    /// [`ActError`] if there is no such listener, or the organism has ended.
    pub async fn pause(&self, listener: &str) -> Result<(), ActError> {
        let result = self.paused(listener, true, self.record("pause", listener)).await;
        self.told("pause", listener, result, Recorded::WithEffect).await
    }

    /// Resumes a listener. One that is not paused stays as it is.
    ///
    /// # Errors
    /// [`ActError`] if there is no such listener, or the organism has ended.
    pub async fn resume(&self, listener: &str) -> Result<(), ActError> {
        let result = self.paused(listener, false, self.record("resume", listener)).await;
        self.told("resume", listener, result, Recorded::WithEffect).await
    }

    async fn cancelled(&self, root: ThreadId, thread: ThreadId, record: ActRecord) -> Result<(), ActError> {
        let shared = &self.organism.shared;
        // A conversation of `<boot>` lives where that does, whatever its id.
        let homes = [Partition::of(root), Partition::BOOT].map(|partition| shared.directory.core_of(partition));
        let (mut result, why) = (Err(OperationError::NotOpen(thread)), Cancellation::Operator);
        for home in homes.into_iter().flatten() {
            if matches!(result, Err(OperationError::NotOpen(_))) {
                result = shared.operate(home, Operation::Cancel { root, thread, why }, record.clone()).await;
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
        let mut record = self.record("retry", &retry.conversation.to_string());
        let moment = query.moment(retry).await.map_err(|error| failed(&error))?;
        let moment = Box::new(moment.map_err(|error| failed(&error))?);
        let root = shared.root();
        record.opened = Some(root);
        let home = shared.directory.core_of(Partition::of(root)).ok_or(OperationError::Closed)?;
        shared.operate(home, Operation::Retry { moment, root }, record).await?;
        Ok(root)
    }

    /// Judges a payload as the edit of a retry, without an effect; returns its canonical form.
    ///
    /// # Errors
    /// [`ActError::Invalid`] with the place and the rule.
    pub fn judge_edit(&self, xml: &str) -> Result<String, ActError> {
        Ok(self.payload(xml)?.payload().as_str().to_owned())
    }

    /// Parses a payload as an entrance takes it.
    fn payload(&self, xml: &str) -> Result<Validated<Element>, ActError> {
        let shared = &self.organism.shared;
        let raw = Raw::new(Bytes::copy_from_slice(xml.as_bytes()));
        let canonical =
            parse(&raw, &shared.blueprint().limits.xml).map_err(|error| ActError::Invalid(error.to_string()))?;
        let judged = Validator::new(shared.catalog()).validate(canonical);
        judged.map_err(|error| ActError::Invalid(error.to_string()))
    }

    async fn scheduled(&self, name: &'static str, of: &str, act: ScheduleAct) -> Result<Vec<Outcome>, ActError> {
        let schedule = self.organism.schedules().get(of);
        let schedule = schedule.ok_or_else(|| ActError::NoSchedule { name: of.to_owned() })?;
        let (opened, result) = match schedule.act(act, self.record(name, of)).await {
            Ok(opened) => (opened, Ok(())),
            Err(ScheduleRefusal::Closed) => (None, Err(ActError::Refused(OperationError::Closed))),
            Err(refusal) => (None, Err(ActError::Invalid(refusal.to_string()))),
        };
        let result = self.told(name, of, result, Recorded::WithEffect).await;
        let outcomes = only(of.to_owned(), result)?;
        let opened = opened.map(|opened| opened.to_string());
        Ok(outcomes.into_iter().map(|outcome| Outcome { opened: opened.clone(), ..outcome }).collect())
    }

    async fn paused(&self, listener: &str, pause: bool, record: ActRecord) -> Result<(), ActError> {
        let shared = &self.organism.shared;
        let blueprint = shared.blueprint();
        let Some(Party::Listener(id)) = blueprint.party(listener) else {
            return Err(ActError::NoListener { name: listener.to_owned() });
        };
        let name = &blueprint[id].name;
        #[cfg(feature = "gateway")]
        for mailboxes in self.organism.elsewhere() {
            let act = if pause { MailboxAct::Pause } else { MailboxAct::Resume };
            if let Some(acted) = mailboxes.act(name, act, record.clone()) {
                return Ok(acted.await?);
            }
        }
        let told = self.pause_here(name, pause, record).map_err(|Ending| OperationError::Closed)?;
        told.await.map_err(|_| OperationError::Closed)?;
        // All cores have learned of it when they answer a question behind it.
        match shared.look(|_| ()).await.is_empty() {
            true => Err(OperationError::Closed.into()),
            false => Ok(()),
        }
    }

    /// Pauses a listener whose slots are here, or resumes it. The cores learn of it when it is durable; no core writes it, as
    /// none may have the partition of `<boot>`.
    fn pause_here(&self, name: &Name, pause: bool, record: ActRecord) -> Result<oneshot::Receiver<()>, Ending> {
        let (shared, listener) = (self.organism.shared.clone(), name.clone());
        let (tell, told) = oneshot::channel();
        // Held until the step is on its way: acts have one order in the journal and here.
        let mut paused = self.organism.shared.lock_paused();
        let since = pause.then(|| shared.clock.now());
        let changes = paused.contains_key(name) != pause;
        let mut ops = vec![Op::Acted(record)];
        if changes {
            ops.push(Op::Paused { listener: name.clone(), since });
        }
        self.organism.write_beside(
            ops,
            Box::new(move || {
                shared.tell_paused(&listener, pause);
                // The caller may have dropped its future.
                let _ = tell.send(());
            }),
        )?;
        match since {
            Some(since) if changes => drop(paused.insert(name.clone(), since)),
            Some(_) => {}
            None => drop(paused.remove(name)),
        }
        Ok(told)
    }

    async fn letter(&self, act: LetterAct, id: &str, target: &Target) -> Result<(), ActError> {
        let shared = &self.organism.shared;
        let name = act.name();
        let record = self.record(name, id);
        let result = match target {
            _ if shared.closed.load(Ordering::Acquire) => Err(OperationError::Letter(DeadLetterError::Closed)),
            Target::Pump(None) => Err(DeadLetterError::Unknown.into()),
            Target::Pump(Some(letter)) => {
                let (letter, root) = (*letter, shared.root());
                let operation = match act {
                    LetterAct::Redrive => Operation::Redrive { letter, root },
                    LetterAct::Discard => Operation::Discard { letter },
                };
                shared.operate(letter.core(), operation, record).await
            }
            #[cfg(not(feature = "gateway"))]
            Target::Mailbox(..) => Err(DeadLetterError::Unknown.into()),
            #[cfg(feature = "gateway")]
            Target::Mailbox(mailbox, message) => {
                let act = match act {
                    LetterAct::Redrive => MailboxAct::Redrive(*message),
                    LetterAct::Discard => MailboxAct::Discard(*message),
                };
                let acted = self.organism.elsewhere().find_map(|all| all.act(mailbox, act, record.clone()));
                match acted {
                    Some(acted) => acted.await,
                    // Of a listener that is no longer registered.
                    None => Err(DeadLetterError::Unknown.into()),
                }
            }
        };
        self.told(name, id, result.map_err(ActError::from), Recorded::WithEffect).await
    }

    async fn each_letter(&self, act: LetterAct, letters: &Letters) -> Result<Vec<Outcome>, ActError> {
        let Targets { found, absent } = self.targets(letters).await?;
        let mut outcomes = Vec::new();
        for (id, target) in found {
            let result = self.letter(act, &id, &target).await;
            if let (true, Err(error)) = (outcomes.is_empty(), &result)
                && error.is_of_all()
            {
                return result.map(|()| outcomes);
            }
            outcomes.push(Outcome::of(id, result.err().map(|error| error.to_string())));
        }
        let unknown = || Some(DeadLetterError::Unknown.to_string());
        outcomes.extend(absent.into_iter().map(|id| Outcome::of(id, unknown())));
        Ok(outcomes)
    }

    /// Finds the dead letters of an act before it begins: one that dies again meanwhile is another one.
    async fn targets(&self, letters: &Letters) -> Result<Targets, ActError> {
        let invalid = |error: LookError| ActError::Invalid(error.to_string());
        let mut filter = Wanted::from(letters).letters().map_err(invalid)?;
        let mut targets = Targets::default();
        let named: Option<Vec<_>> = letters.ids.as_ref().map(|ids| {
            let of = |id: &String| (id.clone(), id.parse::<MessageId>().ok(), letter_number(id));
            ids.iter().map(of).collect()
        });
        let of_cores =
            self.organism.shared.look(|core| core.dead_letters().iter().map(|one| one.id).collect::<Vec<_>>());
        match self.past().map_err(invalid)? {
            Some(past) => {
                let here: HashMap<_, _> = of_cores.await.into_iter().flatten().map(|id| (id.number(), id)).collect();
                filter.ids = named.as_ref().map(|named| {
                    let numbers = named.iter().filter(|(_, message, _)| message.is_none());
                    (
                        numbers.filter_map(|(_, _, number)| *number).collect(),
                        named.iter().filter_map(|(_, id, _)| *id).collect(),
                    )
                });
                filter.limit = PAGE;
                loop {
                    let (page, next) =
                        past.query().letters(filter.clone()).await.map_err(|error| invalid(error.into()))?;
                    targets.found.extend(page.into_iter().map(|letter| match letter {
                        KeptLetter::Pump(letter, _) => {
                            (letter.number.to_string(), Target::Pump(here.get(&letter.number).copied()))
                        }
                        KeptLetter::Mailbox(mail) => {
                            (mail.record.id.to_string(), Target::Mailbox(mail.record.mailbox, mail.record.id))
                        }
                    }));
                    let Some(next) = next else { break };
                    filter.after = Some(next);
                }
            }
            None => {
                drop(of_cores);
                let is_named = |letter: &DeadLetter| {
                    let id = letter.id.to_string();
                    letters.ids.as_ref().is_none_or(|ids| ids.contains(&id))
                };
                let there = self.organism.dead_letters().await;
                let found = there.iter().filter(|letter| is_named(letter) && takes(&filter, letter));
                targets.found.extend(found.map(|letter| (letter.id.to_string(), Target::Pump(Some(letter.id)))));
            }
        }
        // What was named and isn't there is told, too.
        let is_there = |id: &str, number: Option<Number>| {
            targets
                .found
                .iter()
                .any(|(found, _)| found == id || number.is_some_and(|number| *found == number.to_string()))
        };
        let absent = named.into_iter().flatten().filter(|(id, _, number)| !is_there(id, *number));
        targets.absent = absent.map(|(id, ..)| id).collect();
        Ok(targets)
    }

    /// The record of an act that has an effect.
    fn record(&self, act: &'static str, of: &str) -> ActRecord {
        let of: String = of.chars().take(OF).collect();
        ActRecord { by: self.by.clone(), act: act.into(), of: of.into(), error: None, opened: None }
    }

    /// Records that a browser has signed out of the console: `session` is the id of what is over.
    #[cfg(feature = "gateway")]
    pub(crate) async fn signed_out(&self, session: &str) {
        let Ok(()) = self.told(SIGN_OUT, session, Ok::<_, std::convert::Infallible>(()), Recorded::Not).await;
    }

    /// Tells of an act in the events and in the log, and returns its result, once the journal has the record of the act.
    pub(super) fn told<E: std::fmt::Display>(
        &self,
        act: &'static str,
        of: &str,
        result: Result<(), E>,
        recorded: Recorded,
    ) -> impl Future<Output = Result<(), E>> + use<E> {
        let error: Option<Arc<str>> = result.as_ref().err().map(|error| error.to_string().into());
        tracing::info!(by = %self.by, act, of, error = error.as_deref(), "an operator acted");
        let kind = EventKind::Operated { by: self.by.clone(), act, of: of.into(), error: error.clone() };
        let at = self.organism.shared.clock.now();
        self.organism.report(Event::of_none(ThreadPath::new(Vec::new()), at, kind));
        let (tell, told) = oneshot::channel();
        if error.is_some() || recorded == Recorded::Not {
            let record = ActRecord { error, ..self.record(act, of) };
            // If it is refused the organism ends, and the act with it.
            let _ = self.organism.write_beside(vec![Op::Acted(record)], Box::new(move || _ = tell.send(())));
        } else {
            drop(tell);
        }
        async move {
            let _ = told.await;
            result
        }
    }
}

/// The act of a browser that is signed out of the console.
#[cfg(feature = "gateway")]
pub(crate) const SIGN_OUT: &str = "sign-out";

/// States whether the step of an act has its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It has, if the act had an effect.
    WithEffect,
    Not,
}

impl LetterAct {
    const fn name(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Discard => "discard",
        }
    }
}

/// The outcome of an act on one thing. An error that is none of the thing itself is that of the whole act.
fn only(of: String, result: Result<(), ActError>) -> Result<Vec<Outcome>, ActError> {
    match result {
        Err(error) if error.is_of_all() => Err(error),
        result => Ok(vec![Outcome::of(of, result.err().map(|error| error.to_string()))]),
    }
}
