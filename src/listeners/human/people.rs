//! The questions of an organism to its people, wherever they answer: the one way to act on them.
//!
//! A question is here as long as its handler runs. The handler writes each change that a restart must not undo as a note of
//! its message, and every result that [`People::act`] returns, a refusal too, waits for that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use systole_core::core::{ListenerId, ReadAnswer};
use systole_core::question::{
    Addressees, Answerer, Question, QuestionAct, QuestionNote, QuestionRefusal, QuestionState,
};
use systole_core::vocab::{MessageId, Name, QName, ThreadId, Time};
use systole_xml::schema::{Draft, PayloadSchema};
use tokio::sync::{mpsc, watch};

use crate::process::About;
use crate::runtime::{Organism, OrganismBuilder, Part, Recoverable, StartRefusal};

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
    over: VecDeque<(MessageId, Question)>,
    /// The titles of the questions that the end of the organism cut.
    cut: Vec<String>,
}

struct Open {
    asked: Arc<Asked>,
    question: Question,
    /// To the handler.
    changes: mpsc::UnboundedSender<Change>,
    /// Changes sent, and those that are durable.
    sent: u64,
    durable: watch::Receiver<u64>,
    /// Answers to calls.
    told: VecDeque<String>,
}

/// The constant part of a question.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The id of the message that asks.
    pub(crate) id: MessageId,
    pub(crate) listener: Name,
    pub(crate) contract: ListenerId,
    pub(crate) from: Name,
    pub(crate) thread: ThreadId,
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

/// An act on a question whose effect, or the reason against it, is not durable yet.
struct Begun {
    result: Result<QuestionState, QuestionRefusal>,
    /// The change up to which changes have to be durable.
    sent: u64,
    durable: watch::Receiver<u64>,
}

/// The reason why an act on a question has no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeopleError {
    /// No such question is open here, or it is for others.
    #[error("there is no such question, or it is for others, or it has ended before the last start")]
    Unknown,
    /// A rule forbids the act.
    #[error(transparent)]
    Refused(#[from] QuestionRefusal),
    /// The change is not durable: the organism ends, or its caller gave up.
    #[error("the question was withdrawn before the change was durable")]
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

    /// The open questions that were not announced, oldest first.
    #[cfg(feature = "gateway")]
    pub(crate) fn unannounced(&self) -> Vec<Arc<Asked>> {
        let state = self.lock();
        let mut left: Vec<_> =
            state.open.values().filter(|open| open.awaits_announcement()).map(|open| open.asked.clone()).collect();
        left.sort_by_key(|asked| (asked.since, asked.id));
        left
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

    /// The open questions that a party may see, oldest first.
    pub(crate) fn list(&self, by: &Answerer) -> Vec<Seen> {
        let state = self.lock();
        let mut seen: Vec<_> =
            state.open.values().filter(|open| open.question.is_seen_by(by)).map(Open::seen).collect();
        seen.sort_by_key(|seen| (seen.asked.since, seen.asked.id));
        seen
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

    /// Acts on a question: see [`Question::handle`]. `judged`: the meaning of an answer; with a claim, calls to make.
    ///
    /// # Errors
    /// [`PeopleError`]; what was refused is durable, too.
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
        let Begun { result, sent, mut durable } = self.begin(id, by, act, judged, now)?;
        let written = durable.wait_for(|durable| *durable >= sent).await.map(drop);
        match (result, written) {
            (Err(refused), Ok(())) => Err(refused.into()),
            (Ok(state), Ok(())) => Ok(state),
            // The handler is gone: what it was told last may not be written.
            (_, Err(_)) => Err(PeopleError::Lost),
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
        let begun = Begun { result, sent: open.sent, durable: open.durable.clone() };
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
        let (written, durable) = watch::channel(0);
        let (id, asked) = (asked.id, Arc::new(asked));
        let question = Question::recover(asked.addressees.clone(), before);
        let open = Open { asked: asked.clone(), question, changes, sent: 0, durable, told: VecDeque::new() };
        self.lock().open.insert(id, open);
        self.tell();
        AskedQuestion { people: self.clone(), asked, wanted, written }
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
    #[cfg(feature = "gateway")]
    fn awaits_announcement(&self) -> bool {
        !self.question.is_announced() && !self.question.state().is_over()
    }

    fn seen(&self) -> Seen {
        Seen {
            asked: self.asked.clone(),
            state: self.question.state().clone(),
            told: self.told.iter().cloned().collect(),
        }
    }
}

impl Asked {
    /// Sender, listener and people, in one line.
    fn title(&self) -> String {
        let people: Vec<_> = self.addressees.people.iter().map(Name::as_str).collect();
        let people = if people.is_empty() { String::new() } else { format!(" ({})", people.join(", ")) };
        format!("{} asks {}{people}", self.from, self.listener)
    }
}

/// A question of a handler. Dropping it closes the question; one without an end is withdrawn.
#[derive(Debug)]
pub(super) struct AskedQuestion {
    people: People,
    pub(super) asked: Arc<Asked>,
    wanted: mpsc::UnboundedReceiver<Change>,
    written: watch::Sender<u64>,
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

    /// Notes that the last change is durable.
    pub(super) fn written(&self) {
        self.written.send_modify(|count| *count += 1);
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
        if let Some(mut open) = state.open.remove(&self.asked.id) {
            // An end that is not durable has not happened.
            let is_durable = *self.written.borrow() >= open.sent;
            if is_durable || !open.question.state().is_over() {
                open.question.withdraw();
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
