//! Questions to people: looks and acts of one party, a person or an operator.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_core::core::{Answered, OrganismVersion};
use systole_core::question::{Answerer, QuestionAct, QuestionNote, QuestionRefusal, QuestionState};
#[cfg(feature = "gateway")]
use systole_core::vocab::XmlLimits;
use systole_core::vocab::{Fault, MessageId, ThreadId, Time};
use systole_xml::ladder::Raw;
use systole_xml::schema::Validator;
#[cfg(feature = "gateway")]
use systole_xml::schema::{FormPage, PayloadSchema};

use super::act::Recorded;
use super::record::CostRecord;
use super::{LookError, Wanted};
use crate::journal::{HistoryRecord, KeptMessage};
use crate::listeners::human::NOTE;
use crate::listeners::human::judge::{judge, refusal};
use crate::listeners::human::people::{Asked, Judged, People, PeopleError, Place, Seen};
use crate::runtime::{Organism, SendError};

/// Largest entry, in bytes, that is judged on the calling thread where there is another one.
const SHORT: usize = 16 << 10;
/// Most characters of a reason.
const REASON: usize = 1000;

/// Looks and acts of one party on the questions of an organism. It sees those that it may answer; an operator sees all.
#[derive(Debug, Clone)]
pub struct Questions<'a> {
    organism: &'a Organism,
    people: People,
    by: Answerer,
}

/// State of a question, and the party that made it so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct QuestionStateRecord {
    /// `waiting`, `shown`, `claimed`, `answered` or `declined`.
    pub state: String,
    /// The party that claimed, answered or declined; `system` is the operator at the terminal or the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The time of that (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A question to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct QuestionRecord {
    /// The id: that of the message that asks.
    pub question: String,
    /// The listener that is asked.
    pub listener: String,
    /// The sender.
    pub from: String,
    /// The payload, {namespace}local; left out for a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The thread.
    pub thread: String,
    /// The time since which it waits (RFC 3339): where there is a journal, over restarts.
    pub since: String,
    /// The time at which it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// The people that may answer.
    pub people: Vec<String>,
    /// True if operators may answer, too.
    pub operators: bool,
    /// The state.
    #[serde(flatten)]
    pub state: QuestionStateRecord,
    /// The use of models in its conversation so far, where there is a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostRecord>,
    /// The message, XML. Lists leave it out, with all below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The payloads with which it may be answered, and those of calls before an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerRecord>,
    /// Answers to the calls that were made for it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
}

/// A payload with which a question may be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AnswerRecord {
    /// The payload, {namespace}local.
    pub payload: String,
    /// A valid instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// Its XSD.
    pub schema: String,
}

/// A page of questions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct QuestionPage {
    /// The questions.
    pub items: Vec<QuestionRecord>,
    /// Questions that wait for the party, on all pages.
    pub waiting: usize,
    /// The `after` of the next page; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The reason why a look at a question or an act on it failed.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// No such question is open, or it is for others.
    #[error("there is no such question: it has ended, or is for others")]
    Unknown,
    /// The journal has the question open, but its listener has not asked it again yet: after a start, while its conversation
    /// moves, or while the listener is paused.
    #[error("the question waits, but its listener has not asked it again yet: repeat the call")]
    NotYet,
    /// A rule forbids the act.
    #[error(transparent)]
    Refused(#[from] QuestionRefusal),
    /// The entry breaks the contract of the listener: the fault has the rule, the place and an example.
    #[error("{}", refusal(.0))]
    Wrong(Box<Fault>),
    /// The organism ends, or its journal has failed: the act doesn't count, and the next start asks again, what is open then.
    #[error("the organism ends before the act counts: act again after its next start")]
    Lost,
    /// A part of the request can't be read.
    #[error("{0}")]
    Invalid(String),
    /// The journal can't be read.
    #[error(transparent)]
    Look(#[from] LookError),
}

systole_core::vocab::debug_is_display!(QuestionError);

impl QuestionStateRecord {
    fn of(state: &QuestionState) -> Self {
        let party = state.party();
        Self {
            state: state.as_str().to_owned(),
            by: party.map(|(by, _)| by.to_string()),
            at: party.map(|(_, at)| at.to_string()),
        }
    }
}

impl Organism {
    /// Returns the questions of the organism, as a party sees them. The caller has authenticated the party.
    pub fn questions(&self, by: Answerer) -> Questions<'_> {
        Questions { organism: self, people: self.people(), by }
    }
}

impl Questions<'_> {
    /// Lists the open questions that the party may see, oldest first. Of [`Wanted`], `after`, `limit` and `listener` count.
    ///
    /// # Errors
    /// [`QuestionError`] if a condition can't be read, or the journal can't.
    pub async fn list(&self, wanted: &Wanted) -> Result<QuestionPage, QuestionError> {
        let after = wanted.after.as_deref().map(place).transpose()?;
        let limit = wanted.most();
        let listeners = wanted.listener()?;
        let is_wanted = |asked: &Asked| listeners.takes(std::slice::from_ref(&asked.listener));
        let mut seen = self.people.list(&self.by, after, limit + 1, is_wanted);
        let waiting = self.people.waiting(&self.by);
        let next = if seen.len() > limit { seen.get(limit - 1).map(|seen| written(seen.asked.place())) } else { None };
        seen.truncate(limit);
        Ok(QuestionPage { items: self.records(seen, false).await?, waiting, next })
    }

    /// Counts the open questions that wait for the party.
    #[cfg(feature = "gateway")]
    pub(crate) fn waiting(&self) -> usize {
        self.people.waiting(&self.by)
    }

    /// Looks at a question: it counts as shown from then on, if the party may answer it.
    ///
    /// # Errors
    /// [`QuestionError`]; a question that has ended a while ago tells how.
    pub async fn look(&self, question: &str) -> Result<QuestionRecord, QuestionError> {
        let seen = self.see(question).await?;
        let mut records = self.records(vec![seen], true).await?;
        records.pop().ok_or(QuestionError::Unknown)
    }

    /// Takes a question on: no other party may answer it until it is released. `over`: also from another party.
    ///
    /// # Errors
    /// [`QuestionError`].
    ///
    /// # Cancel safety
    /// As all acts here: once polled, it takes effect even if the future is dropped.
    pub async fn claim(&self, question: &str, over: bool) -> Result<QuestionStateRecord, QuestionError> {
        self.act("claim", question, QuestionAct::Claim { over }, None).await
    }

    /// Gives a question back that the party has claimed; an operator also for another one.
    ///
    /// # Errors
    /// [`QuestionError`].
    pub async fn release(&self, question: &str) -> Result<QuestionStateRecord, QuestionError> {
        self.act("release", question, QuestionAct::Release, None).await
    }

    /// Declines to answer: the caller gets a fault with the reason.
    ///
    /// # Errors
    /// [`QuestionError`].
    pub async fn decline(&self, question: &str, reason: &str) -> Result<QuestionStateRecord, QuestionError> {
        if reason.chars().count() > REASON {
            return Err(QuestionError::Invalid(format!("a reason has {REASON} characters at most")));
        }
        self.act("decline", question, QuestionAct::Decline { reason: reason.into() }, None).await
    }

    /// Judges an entry without an effect; returns the payloads that would be sent, with the repairs.
    ///
    /// # Errors
    /// [`QuestionError::Wrong`] with rule, place and example.
    pub async fn preview(&self, question: &str, entry: Bytes) -> Result<String, QuestionError> {
        let seen = self.see(question).await?;
        Ok(self.judge(seen.asked, entry).await?.1)
    }

    /// The schemas of the payloads that may answer a question.
    ///
    /// # Errors
    /// [`QuestionError`].
    #[cfg(feature = "gateway")]
    pub(crate) async fn offers(&self, question: &str) -> Result<Arc<[PayloadSchema]>, QuestionError> {
        Ok(self.see(question).await?.asked.offers.clone())
    }

    /// The limits of documents.
    #[cfg(feature = "gateway")]
    pub(crate) fn limits(&self) -> XmlLimits {
        self.organism.blueprint().limits.xml.clone()
    }

    /// Answers a question with XML: the first valid answer counts. An entry of calls makes these, and claims the question: look
    /// for their answers then.
    ///
    /// # Errors
    /// [`QuestionError`]: for a wrong entry with rule, place and example; for a late one with the party that answered.
    pub async fn answer(&self, question: &str, entry: Bytes) -> Result<QuestionStateRecord, QuestionError> {
        let seen = self.see(question).await?;
        let text = String::from_utf8_lossy(&entry).as_ref().into();
        let (judged, _) = self.judge(seen.asked, entry).await?;
        match judged {
            Judged::Reply(_) => self.act("answer", question, QuestionAct::Answer { text }, Some(judged)).await,
            Judged::Calls(..) => self.act("call", question, QuestionAct::Claim { over: false }, Some(judged)).await,
        }
    }

    /// Makes the form of a payload that may answer a question, filled with answers by the keys of its fields.
    ///
    /// # Errors
    /// [`QuestionError`]: also if no such payload answers the question.
    #[cfg(feature = "gateway")]
    pub(crate) async fn form(
        &self,
        question: &str,
        payload: &str,
        answers: HashMap<String, String>,
    ) -> Result<FormPage, QuestionError> {
        let seen = self.see(question).await?;
        let mut offers = seen.asked.offers.iter();
        let schema = offers.find(|schema| schema.qname().to_string() == payload).cloned().ok_or_else(|| {
            QuestionError::Invalid(format!("form '{payload}': the question is not answered by such a payload"))
        })?;
        let limits = self.organism.shared.blueprint().limits.xml.clone();
        let size: usize = answers.values().map(String::len).sum();
        let fill = move || schema.form_page(&limits, &answers);
        match self.organism.query().map_err(LookError::from)?.filter(|_| size > SHORT) {
            Some(query) => Ok(query.beside(fill).await.map_err(LookError::from)?),
            None => Ok(fill()),
        }
    }

    /// Watches changes of questions.
    pub(crate) fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.people.watch()
    }

    /// The open questions of a conversation, those of a page at most; none if they can't be read.
    pub(crate) async fn of(&self, root: ThreadId) -> Vec<QuestionRecord> {
        let limit = Wanted::default().most();
        let seen = self.people.list(&self.by, None, limit, |asked| asked.conversation == root);
        self.records(seen, false).await.unwrap_or_default()
    }

    /// The conversations of the open questions that the party may see.
    #[cfg(feature = "mcp")]
    pub(crate) fn conversations(&self) -> std::collections::HashSet<ThreadId> {
        let seen = self.people.list(&self.by, None, usize::MAX, |_| true);
        seen.into_iter().map(|seen| seen.asked.conversation).collect()
    }

    async fn act(
        &self,
        name: &'static str,
        question: &str,
        act: QuestionAct,
        judged: Option<Judged>,
    ) -> Result<QuestionStateRecord, QuestionError> {
        let id = id(question)?;
        let operations = self.organism.operations(self.by.name.clone());
        let done = match self.people.act(id, &self.by, act, judged, self.now()).await {
            Ok(state) => Ok(state),
            Err(error) => Err(self.told(id, error).await?),
        };
        let told = done.as_ref().map(drop).map_err(Clone::clone);
        operations.told(name, question, told, Recorded::Not).await?;
        done.map(|state| QuestionStateRecord::of(&state))
    }

    /// A question that the party may see.
    async fn see(&self, question: &str) -> Result<Seen, QuestionError> {
        let id = id(question)?;
        match self.people.see(id, &self.by, self.now()) {
            Ok(seen) => Ok(seen),
            Err(error) => Err(self.told(id, error).await?),
        }
    }

    /// The error of an act that has no effect. A question that isn't here may be left to the next start, not be asked again yet,
    /// have ended before the last start or long ago, which tells how as far as the journal keeps it, or be for others.
    async fn told(&self, id: MessageId, error: PeopleError) -> Result<QuestionError, QuestionError> {
        if let PeopleError::Refused(refused) = error {
            return Ok(refused.into());
        }
        // Without a journal nothing is asked again.
        let Some(query) = self.organism.query().map_err(LookError::from)? else { return Ok(QuestionError::Unknown) };
        if matches!(self.organism.ready(), Err(SendError::Closed)) {
            return Ok(QuestionError::Lost);
        }
        let kept = query.message(id).await.map_err(LookError::from)?;
        let listener = kept.first().and_then(|kept| kept.path.segments().last()).map(|(listener, _)| listener);
        let is_seen = |listener| self.by.is_operator || self.people.addressees(listener).include(&self.by);
        if !listener.is_some_and(is_seen) {
            return Ok(QuestionError::Unknown);
        }
        let is_open = |kept: &KeptMessage| matches!(kept.entry.said, HistoryRecord::Message(_, None));
        if kept.iter().any(is_open) && listener.is_some_and(|listener| self.people.asks(listener)) {
            return Ok(QuestionError::NotYet);
        }
        let end = kept.iter().rev().find_map(|kept| match &kept.entry.said {
            HistoryRecord::Recorded(note) if &*note.name == NOTE => {
                serde_json::from_str::<QuestionNote>(&note.value).ok()?.end()
            }
            _ => None,
        });
        Ok(end.map_or(QuestionError::Unknown, |end| QuestionRefusal::Over(end).into()))
    }

    /// Judges an entry; a long one beside the calling thread.
    async fn judge(&self, asked: Arc<Asked>, entry: Bytes) -> Result<(Judged, String), QuestionError> {
        let shared = &self.organism.shared;
        let (OrganismVersion { blueprint, catalog, .. }, size) = (shared.version_of(asked.contract), entry.len());
        let judge = move || {
            let to = Answered { message: asked.id, thread: asked.thread };
            judge(Raw::new(entry), to, asked.contract, &blueprint, &mut Validator::new(catalog))
        };
        let judged = match self.organism.query().map_err(LookError::from)?.filter(|_| size > SHORT) {
            Some(query) => query.beside(judge).await.map_err(LookError::from)?,
            None => judge(),
        };
        judged.map_err(|fault| QuestionError::Wrong(Box::new(fault)))
    }

    async fn records(&self, seen: Vec<Seen>, whole: bool) -> Result<Vec<QuestionRecord>, QuestionError> {
        // One read for all of them.
        let waits = match self.organism.query().map_err(LookError::from)? {
            Some(query) => {
                query.waits(seen.iter().map(|seen| seen.asked.number).collect()).await.map_err(LookError::from)?
            }
            None => Vec::new(),
        };
        let waits: HashMap<_, _> = waits.into_iter().map(|(number, came, usage)| (number, (came, usage))).collect();
        let mut records = Vec::with_capacity(seen.len());
        for Seen { asked, state, told } in seen {
            let kept = waits.get(&asked.number).copied();
            let since = kept.map_or(asked.since, |(came, _)| came);
            let cost = kept.map(|(_, usage)| CostRecord::of(usage));
            let answer = |schema: &systole_xml::schema::PayloadSchema| AnswerRecord {
                payload: schema.qname().to_string(),
                example: schema.example().map(|example| example.as_str().to_owned()),
                schema: schema.document().to_owned(),
            };
            records.push(QuestionRecord {
                question: asked.id.to_string(),
                listener: asked.listener.to_string(),
                from: asked.from.to_string(),
                payload: asked.payload.as_ref().map(ToString::to_string),
                conversation: Some(asked.conversation.to_string()),
                thread: asked.thread.to_string(),
                since: since.to_string(),
                deadline: asked.deadline.map(|deadline| deadline.to_string()),
                people: asked.addressees.people.iter().map(ToString::to_string).collect(),
                operators: asked.addressees.operators,
                state: QuestionStateRecord::of(&state),
                cost,
                text: whole.then(|| asked.text.clone()),
                answers: if whole { asked.offers.iter().map(answer).collect() } else { Vec::new() },
                told: if whole { told } else { Vec::new() },
            });
        }
        Ok(records)
    }

    fn now(&self) -> Time {
        self.organism.shared.clock.now()
    }
}

/// Writes a place, as the `after` of a page.
fn written((since, id): Place) -> String {
    format!("{:020}-{id}", since.as_nanos())
}

/// Reads what [`written`] writes.
fn place(after: &str) -> Result<Place, QuestionError> {
    let parts = after.split_once('-').and_then(|(since, id)| Some((since.parse().ok()?, id.parse().ok()?)));
    let (since, id) = parts.ok_or_else(|| QuestionError::Invalid(format!("after '{after}': no place of a page")))?;
    Ok((Time::from_nanos(since), id))
}

fn id(text: &str) -> Result<MessageId, QuestionError> {
    text.parse().map_err(|_| QuestionError::Unknown)
}
