//! The questions of an organism to its people, wherever they answer: the one way to act on them.
//!
//! A question is here until its handler has ended. The handler writes each claim and release as a note of its message. An
//! answer, and a refusal to give one, are written by the core, in the step in which they are the answer of the thread; if the
//! thread is over by then, the question is withdrawn. Every result that [`People::act`] returns, a refusal too, waits for
//! that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use systole_core::core::{AttachmentEnd, ListenerId, ReadAnswer};
use systole_core::journal::Number;
#[cfg(feature = "gateway")]
use systole_core::question::Attempts;
use systole_core::question::{
    Addressees, Answerer, Question, QuestionAct, QuestionNote, QuestionRefusal, QuestionState,
};
use systole_core::vocab::{MessageId, Name, QName, ThreadId, Time};
use systole_xml::schema::{Draft, PayloadSchema};
use tokio::sync::{mpsc, watch};

use crate::process::About;
use crate::runtime::{Organism, OrganismBuilder, Part, Recoverable, StartRefusal, is_moving};

/// Questions that have ended, of which late answers still learn.
const REMEMBERED: usize = 1024;
/// Answers to the calls of a person that a question shows; older ones are left out.
const TOLD: usize = 32;

/// The questions of an organism to its people.
///
/// A program that registers people by itself hands one value to their listeners and to
/// [`OrganismBuilder::people`](crate::runtime::OrganismBuilder::people), so that operators and entrances find the questions.
#[derive(Clone, Default)]
pub struct People {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Counts changes, for those who wait for one.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// The parties that may answer for each listener.
    listeners: BTreeMap<Name, Arc<Addressees>>,
    open: BTreeMap<MessageId, Open>,
    /// The open questions, oldest first.
    order: BTreeSet<Place>,
    /// Questions that were asked.
    asked: u64,
    /// The open questions that were not announced, by listener and number.
    unannounced: BTreeMap<(Name, u64), MessageId>,
    over: VecDeque<(MessageId, Question)>,
    /// The titles of the questions that the end of the organism cut.
    cut: Vec<String>,
}

#[cfg_attr(not(any(feature = "gateway", feature = "yaml")), allow(dead_code, reason = "entrances ask callers"))]
/// The name under which the caller of a conversation answers its questions: no person has it.
pub(crate) const CALLER: &str = "caller";

/// The place of a question: the time since which it waits in this run, and its id.
pub(crate) type Place = (Time, MessageId);

struct Open {
    asked: Arc<Asked>,
    /// The number among the questions that were asked.
    number: u64,
    question: Question,
    /// To the handler.
    changes: mpsc::UnboundedSender<Change>,
    /// Changes sent, and those that hold: they are durable, and an answer has taken effect.
    sent: u64,
    held: watch::Receiver<u64>,
    /// Answers to calls.
    told: VecDeque<String>,
}

/// The constant part of a question.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The id of the message that asks.
    pub(crate) id: MessageId,
    /// The number of the message in the journal; 0 if there is none.
    pub(crate) number: Number,
    pub(crate) listener: Name,
    pub(crate) contract: ListenerId,
    pub(crate) from: Name,
    pub(crate) thread: ThreadId,
    pub(crate) conversation: ThreadId,
    /// The time since which it waits in this run.
    pub(crate) since: Time,
    pub(crate) deadline: Option<Time>,
    /// Absent for a fault.
    pub(crate) payload: Option<QName>,
    /// The message; foreign text.
    pub(crate) text: String,
    /// The payloads that may be written.
    pub(crate) offers: Arc<[PayloadSchema]>,
    pub(crate) addressees: Arc<Addressees>,
    /// The envelope of the message, for announcements.
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "the gateway announces"))]
    pub(crate) envelope: Bytes,
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "the gateway announces"))]
    pub(crate) about: About,
}

/// An open question that was not announced.
#[cfg(feature = "gateway")]
pub(crate) struct Unannounced {
    pub(crate) asked: Arc<Asked>,
    /// The number in the order in which questions were asked in this run. One that is asked again has another.
    pub(crate) number: u64,
    /// The changes of this question that hold; closed when it is over, or asked again.
    pub(crate) held: watch::Receiver<u64>,
}

/// A question as a party sees it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) asked: Arc<Asked>,
    pub(crate) state: QuestionState,
    /// Answers to the calls that people made.
    pub(crate) told: Vec<String>,
}

/// A judged entry.
#[derive(Debug)]
pub(crate) enum Judged {
    /// Replies, among them the answer.
    Reply(Box<ReadAnswer>),
    /// Calls to make before an answer.
    Calls(Box<ReadAnswer>, Vec<Call>),
}

/// A call, and the listener that it names, if any.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) to: Option<Name>,
    pub(crate) payload: Draft,
}

/// A change for the handler of a question.
#[derive(Debug)]
pub(super) struct Change {
    /// The change, to be written.
    pub(super) note: Option<QuestionNote>,
    /// The meaning of an answer or a call.
    pub(super) judged: Option<Judged>,
}

/// An act on a question whose effect, or the reason against it, doesn't hold yet.
struct Begun {
    result: Result<QuestionState, QuestionRefusal>,
    /// The change up to which changes have to hold.
    sent: u64,
    held: watch::Receiver<u64>,
}

/// The reason why an act on a question has no effect, as far as this run of the organism knows it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeopleError {
    /// No such question is here, or it is for others: it may have ended, not be asked again yet, or be left to the next start.
    /// The operations on questions decide with the journal which.
    #[error("there is no such question, or it is for others, or it has ended before the last start")]
    Unknown,
    /// A rule forbids the act.
    #[error(transparent)]
    Refused(#[from] QuestionRefusal),
    /// The change doesn't hold: its handler is gone, and the question is asked again.
    #[error("the organism ends, or the conversation moves, before the act counts: the question is asked again")]
    Lost,
}

impl People {
    /// Makes a value without questions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lists the open questions, as `sender asks listener`, with the people that may answer.
    pub fn open_questions(&self) -> Vec<String> {
        self.lock().open.values().map(|open| open.asked.title()).collect()
    }

    /// Lists the questions that the end of an organism without a journal cut.
    pub fn cut_questions(&self) -> Vec<String> {
        self.lock().cut.clone()
    }

    /// Returns whether a person may answer questions of a listener.
    #[cfg(feature = "gateway")]
    pub(crate) fn knows(&self, person: &Name) -> bool {
        self.lock().listeners.values().any(|addressees| addressees.people.contains(person))
    }

    /// Sets who may answer the questions of a listener, from the next question on. By default operators may: the terminal,
    /// and those at the socket and the gateway of the organism.
    pub fn address(&self, listener: Name, to: Addressees) {
        self.lock().listeners.insert(listener, Arc::new(to));
    }

    /// Returns who may answer the questions of a listener.
    pub(crate) fn addressees(&self, listener: &Name) -> Arc<Addressees> {
        let state = self.lock();
        state.listeners.get(listener).cloned().unwrap_or_else(|| Arc::new(Addressees::operators()))
    }

    /// Returns whether the handler of a listener is a person: one whose questions were addressed, or that has asked.
    pub(crate) fn asks(&self, listener: &Name) -> bool {
        self.lock().listeners.contains_key(listener)
    }

    /// The open questions of a listener that were not announced, with numbers above `after`, oldest first.
    #[cfg(feature = "gateway")]
    pub(crate) fn unannounced(&self, listener: &Name, after: u64) -> Vec<Unannounced> {
        let state = self.lock();
        let unannounced =
            |open: &Open| Unannounced { asked: open.asked.clone(), number: open.number, held: open.held.clone() };
        state.unannounced(listener, after).map(unannounced).collect()
    }

    /// The oldest open question of a listener that was not announced, and the attempts to do so.
    #[cfg(feature = "gateway")]
    pub(crate) fn first_unannounced(&self, listener: &Name) -> Option<(Arc<Asked>, Attempts)> {
        let state = self.lock();
        let first = state.unannounced(listener, 0).next()?;
        Some((first.asked.clone(), first.question.attempts()))
    }

    /// The attempts to announce an open question.
    #[cfg(feature = "gateway")]
    pub(crate) fn attempts(&self, id: MessageId) -> Attempts {
        self.lock().open.get(&id).map(|open| open.question.attempts()).unwrap_or_default()
    }

    /// Returns whether a question is open that was not announced.
    #[cfg(feature = "gateway")]
    pub(crate) fn awaits_announcement(&self, id: MessageId) -> bool {
        self.lock().open.get(&id).is_some_and(Open::awaits_announcement)
    }

    /// Counts the open questions that wait for a party.
    pub(crate) fn waiting(&self, by: &Answerer) -> usize {
        let state = self.lock();
        state.open.values().filter(|open| open.question.is_seen_by(by) && open.asked.addressees.include(by)).count()
    }

    /// Watches changes of all questions.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// At most so many of the open questions that a party may see and that are wanted, oldest first, behind a place.
    pub(crate) fn list(
        &self,
        by: &Answerer,
        after: Option<Place>,
        limit: usize,
        wanted: impl Fn(&Asked) -> bool,
    ) -> Vec<Seen> {
        let state = self.lock();
        let open = state.in_order(after).filter(|open| wanted(&open.asked) && open.question.is_seen_by(by));
        open.take(limit).map(Open::seen).collect()
    }

    /// A question that a party may see, open or ended a while ago. Who may answer it has seen it then.
    pub(crate) fn see(&self, id: MessageId, by: &Answerer, now: Time) -> Result<Seen, PeopleError> {
        let mut state = self.lock();
        if let Some(open) = state.open.get_mut(&id).filter(|open| open.question.is_seen_by(by)) {
            let before = open.question.state().clone();
            // It changes nothing that is kept, and is allowed to who may see it.
            let _ = open.question.handle(QuestionAct::Show, by, now);
            let seen = open.seen();
            let is_new = before != seen.state;
            drop(state);
            if is_new {
                self.tell();
            }
            return Ok(seen);
        }
        Err(state.over_of(id, by))
    }

    /// Acts on a question: see [`Question::handle`]. `judged`: the meaning of an answer; with a claim, calls to make. An answer
    /// that this returns is the answer of the thread.
    ///
    /// # Errors
    /// [`PeopleError`]; the reason of a refusal holds, too.
    ///
    /// # Cancel safety
    /// Once polled, it takes effect even if the future is dropped.
    pub(crate) async fn act(
        &self,
        id: MessageId,
        by: &Answerer,
        act: QuestionAct,
        judged: Option<Judged>,
        now: Time,
    ) -> Result<QuestionState, PeopleError> {
        let Begun { result, sent, mut held } = self.begin(id, by, act, judged, now)?;
        let holds = held.wait_for(|held| *held >= sent).await.map(drop);
        match (result, holds) {
            (Err(refused), Ok(())) => Err(refused.into()),
            (Ok(state), Ok(())) => Ok(state),
            // The handler has ended before: its thread is over, or runs again.
            (_, Err(_)) => match self.lock().over_of(id, by) {
                PeopleError::Unknown => Err(PeopleError::Lost),
                over => Err(over),
            },
        }
    }

    fn begin(
        &self,
        id: MessageId,
        by: &Answerer,
        act: QuestionAct,
        judged: Option<Judged>,
        now: Time,
    ) -> Result<Begun, PeopleError> {
        let mut state = self.lock();
        let Some(open) = state.open.get_mut(&id).filter(|open| open.question.is_seen_by(by)) else {
            return Err(state.over_of(id, by));
        };
        let result = open.question.handle(act, by, now).map(|note| {
            if note.is_some() || judged.is_some() {
                open.sent += 1;
                // A handler that is gone is found by what it leaves unwritten.
                let _ = open.changes.send(Change { note, judged });
            }
            open.question.state().clone()
        });
        let begun = Begun { result, sent: open.sent, held: open.held.clone() };
        if !open.awaits_announcement() {
            let place = open.announcement();
            state.unannounced.remove(&place);
        }
        drop(state);
        self.tell();
        Ok(begun)
    }

    /// Acts on a question for its own handler, which writes the change next.
    pub(super) fn act_here(
        &self,
        id: MessageId,
        by: &Answerer,
        act: QuestionAct,
        judged: Option<Judged>,
        now: Time,
    ) -> Result<(), PeopleError> {
        self.begin(id, by, act, judged, now)?.result.map(drop).map_err(PeopleError::from)
    }

    /// Adds an open question, with its changes before a restart. The handler writes what it receives.
    pub(super) fn ask(&self, asked: Asked, before: &[QuestionNote]) -> AskedQuestion {
        let (changes, wanted) = mpsc::unbounded_channel();
        let (holds, held) = watch::channel(0);
        let (id, asked) = (asked.id, Arc::new(asked));
        let question = Question::recover(asked.addressees.clone(), before);
        let mut state = self.lock();
        state.listeners.entry(asked.listener.clone()).or_insert_with(|| asked.addressees.clone());
        state.asked += 1;
        let number = state.asked;
        let open = Open { asked: asked.clone(), number, question, changes, sent: 0, held, told: VecDeque::new() };
        state.order.insert(asked.place());
        if open.awaits_announcement() {
            state.unannounced.insert(open.announcement(), id);
        }
        state.open.insert(id, open);
        drop(state);
        self.tell();
        AskedQuestion { people: self.clone(), asked, wanted, holds, end: None }
    }

    fn tell(&self) {
        self.shared.changed.send_modify(|count| *count += 1);
    }

    /// Locks the state; a panic under the lock leaves it between two steps at worst.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The open questions behind a place, oldest first.
    fn in_order(&self, after: Option<Place>) -> impl Iterator<Item = &Open> {
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range((behind, Bound::Unbounded)).filter_map(|(_, id)| self.open.get(id))
    }

    /// The open questions of a listener that were not announced, with numbers above `after`, oldest first.
    #[cfg(feature = "gateway")]
    fn unannounced(&self, listener: &Name, after: u64) -> impl Iterator<Item = &Open> {
        let (after, end) = ((listener.clone(), after), (listener.clone(), u64::MAX));
        let numbers = self.unannounced.range((Bound::Excluded(after), Bound::Included(end)));
        numbers.filter_map(|(_, id)| self.open.get(id))
    }

    /// The reason why a question is not open for a party.
    fn over_of(&self, id: MessageId, by: &Answerer) -> PeopleError {
        let over = self.over.iter().rev().find(|(over, _)| *over == id);
        match over.filter(|(_, question)| question.is_seen_by(by)) {
            Some((_, question)) => QuestionRefusal::Over(question.state().clone()).into(),
            None => PeopleError::Unknown,
        }
    }
}

impl Open {
    /// The place among the questions that were not announced.
    fn announcement(&self) -> (Name, u64) {
        (self.asked.listener.clone(), self.number)
    }

    fn awaits_announcement(&self) -> bool {
        !self.question.is_announced() && !self.question.state().is_over()
    }

    fn seen(&self) -> Seen {
        // An end that doesn't hold yet: the party still sees to it.
        let state = match self.question.state().clone() {
            QuestionState::Answered { by, at } | QuestionState::Declined { by, at } => {
                QuestionState::Claimed { by, at }
            }
            state => state,
        };
        Seen { asked: self.asked.clone(), state, told: self.told.iter().cloned().collect() }
    }
}

impl Asked {
    /// The place among the open questions.
    pub(crate) fn place(&self) -> Place {
        (self.since, self.id)
    }

    /// Sender, listener and people, in one line.
    fn title(&self) -> String {
        let people: Vec<_> = self.addressees.people.iter().map(Name::as_str).collect();
        let people = if people.is_empty() { String::new() } else { format!(" ({})", people.join(", ")) };
        format!("{} asks {}{people}", self.from, self.listener)
    }
}

/// A question of a handler. Dropping it closes the question: as withdrawn, unless it has an end, or is asked again.
#[derive(Debug)]
pub(super) struct AskedQuestion {
    people: People,
    pub(super) asked: Arc<Asked>,
    wanted: mpsc::UnboundedReceiver<Change>,
    holds: watch::Sender<u64>,
    /// The end of the handler's answer.
    end: Option<AttachmentEnd>,
}

impl AskedQuestion {
    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn change(&mut self) -> Change {
        match self.wanted.recv().await {
            Some(change) => change,
            // The sender is there until this is dropped.
            None => std::future::pending().await,
        }
    }

    /// Notes that the last change holds.
    pub(super) fn holds(&self) {
        self.holds.send_modify(|count| *count += 1);
    }

    /// Closes the question, whose last change was its end: whether that is the answer of the thread.
    pub(super) fn close(mut self, end: AttachmentEnd) {
        self.end = Some(end);
        if end == AttachmentEnd::Effective {
            self.holds();
        }
    }

    /// Notes that the end of the organism cuts the question.
    pub(super) fn cut(&self) {
        let title = self.asked.title();
        self.people.lock().cut.push(title);
    }

    /// Shows the answers to calls below the question.
    pub(super) fn told(&self, text: String) {
        if let Some(open) = self.people.lock().open.get_mut(&self.asked.id) {
            open.told.push_back(text);
            if open.told.len() > TOLD {
                open.told.pop_front();
            }
        }
        self.people.tell();
    }
}

impl Drop for AskedQuestion {
    fn drop(&mut self) {
        let mut state = self.people.lock();
        state.order.remove(&self.asked.place());
        if let Some(mut open) = state.open.remove(&self.asked.id) {
            state.unannounced.remove(&open.announcement());
            let runs_again = self.end == Some(AttachmentEnd::Dropped) || self.end.is_none() && is_moving();
            if self.end != Some(AttachmentEnd::Effective) {
                open.question.withdraw();
            }
            if !runs_again {
                state.over.push_back((self.asked.id, open.question));
            }
            if state.over.len() > REMEMBERED {
                state.over.pop_front();
            }
        }
        drop(state);
        self.people.tell();
    }
}

impl Part for People {
    fn reserve(&self, _: BTreeSet<Name>) -> Option<StartRefusal> {
        None
    }

    /// Questions live in the notes of their messages.
    fn recoverables(&self) -> Vec<Arc<dyn Recoverable>> {
        Vec::new()
    }

    fn live_in_memory(&self) {}

    fn sends(&self) -> bool {
        false
    }
}

impl OrganismBuilder {
    /// Lets operators and entrances of the organism find the questions of its people.
    #[must_use]
    pub fn people(self, people: &People) -> Self {
        self.part(|part: &mut People| *part = people.clone())
    }
}

impl Organism {
    /// The questions of the organism to its people; none that they were not [handed](OrganismBuilder::people) to.
    pub(crate) fn people(&self) -> People {
        self.part::<People>().cloned().unwrap_or_default()
    }
}

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("People").field("open", &self.open_questions()).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "gateway"))]
mod tests {
    use super::*;

    fn asked(number: u128, listener: &str) -> Asked {
        let (id, thread) =
            (MessageId::from_uuid(uuid::Uuid::from_u128(number)), ThreadId::from_uuid(uuid::Uuid::nil()));
        let about = About {
            from: "cli".to_owned(),
            thread,
            id,
            in_reply_to: None,
            answers: None,
            join: None,
            deadline: None,
            traceparent: None,
            root: None,
        };
        Asked {
            id,
            number: Number::default(),
            listener: listener.parse().unwrap(),
            contract: ListenerId(0),
            from: "cli".parse().unwrap(),
            thread,
            conversation: thread,
            since: Time::default(),
            deadline: None,
            payload: None,
            text: String::new(),
            offers: Arc::new([]),
            addressees: Arc::new(Addressees::operators()),
            envelope: Bytes::new(),
            about,
        }
    }

    #[test]
    fn only_new_questions_are_looked_at_to_announce_them() {
        let (people, boss) = (People::new(), "boss".parse().unwrap());
        let [first, second, third] = [9, 8, 7].map(|number| people.ask(asked(number, "boss"), &[]));
        let other = people.ask(asked(1, "judge"), &[]);
        let new = |after| {
            let new = people.unannounced(&boss, after).into_iter();
            new.map(|new| (new.number, new.asked.id)).collect::<Vec<_>>()
        };
        let all = new(0);
        let ids = |of: &[&AskedQuestion]| of.iter().map(|question| question.asked.id).collect::<Vec<_>>();
        assert_eq!(all.iter().map(|(_, id)| *id).collect::<Vec<_>>(), ids(&[&first, &second, &third]));
        let newest = all[2].0;
        assert_eq!(new(newest), []);
        let by = Answerer::operator(Name::system());
        people.act_here(first.asked.id, &by, QuestionAct::Announce, None, Time::default()).unwrap();
        people.act_here(other.asked.id, &by, QuestionAct::Show, None, Time::default()).unwrap();
        assert_eq!(new(0), all[1..]);
        drop(second);
        assert_eq!(people.first_unannounced(&boss).unwrap().0.id, third.asked.id);
        assert_eq!(new(newest), [], "no change of an older one is a new question");
        // One that is asked again is new.
        let id = third.asked.id;
        drop(third);
        let again = people.ask(asked(7, "boss"), &[]);
        assert_eq!(new(newest).iter().map(|(_, id)| *id).collect::<Vec<_>>(), [id]);
        drop((first, again, other));
        assert!(people.lock().unannounced.is_empty() && people.first_unannounced(&boss).is_none());
    }
}
