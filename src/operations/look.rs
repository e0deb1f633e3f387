//! Looks: records of what is there, and was, in pages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use systole_core::core::{DeadLetter, OpenConversation, OpenFilter, OpenThread};
use systole_core::inbox::Status;
use systole_core::journal::{JournalError, Number};
use systole_core::vocab::{MessageId, Name, ThreadId, Time};

use super::act::Letters;
use super::past::{mailbox_entry, task_record, text_of};
use super::record::{
    ActRecord, ConversationRecord, LetterRecord, ListenerRecord, MailboxRecord, MessageRecord, Page, RestRecord,
    TaskRecord, ThreadRecord,
};
use super::{Operations, Past};
use crate::jobs::TaskBoard;
use crate::journal::{Condition, ConversationFilter, LetterFilter, QueryError, TaskFilter, TaskPosition};
#[cfg(feature = "gateway")]
use crate::journal::{KeptMailbox, UsedDays};

/// Most entries of a page.
const MOST: usize = 500;

/// The records that are wanted.
///
/// `listener`, `payload` and `fault` are [conditions](Condition): one name that is wanted, and names behind a `-` that are left
/// out, with spaces between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Only records behind this one: [`Page::next`].
    pub after: Option<String>,
    /// Most records, from 1 to 500; left out, 100.
    pub limit: Option<usize>,
    /// Only dead letters of that sender.
    pub from: Option<String>,
    /// Only conversations with a thread of that listener, or dead letters for it.
    pub listener: Option<String>,
    /// Only open conversations, or only ended ones.
    pub open: Option<bool>,
    /// Only conversations that began with that payload, {namespace}local, or dead letters with it. Of conversations this and
    /// all below need a journal.
    pub payload: Option<String>,
    /// Only conversations with a fault of that code among their answers, or dead letters for that reason.
    pub fault: Option<String>,
    /// Only conversations with that text in a message, an answer or a fault; dead letters with it in their payload or reason;
    /// tasks with it in their texts.
    pub text: Option<String>,
    /// Only conversations that opened at that time (RFC 3339) or later, or dead letters from then on.
    pub since: Option<String>,
    /// Only conversations that opened before that time, or dead letters of before.
    pub until: Option<String>,
    /// Only tasks of that job.
    pub job: Option<String>,
    /// Only tasks in that state: `pending`, `accepted` and so on.
    pub state: Option<String>,
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
    pub(super) fn most(&self) -> usize {
        self.limit.unwrap_or(100).clamp(1, MOST)
    }

    /// The place behind which the page begins.
    pub(super) fn behind<T: FromStr<Err: std::fmt::Display>>(&self) -> Result<Option<T>, LookError> {
        Self::parsed("after", self.after.as_ref())
    }

    /// Parses a condition.
    fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &str, text: Option<&String>) -> Result<Option<T>, LookError> {
        let invalid = |text: &String, error: T::Err| LookError::Invalid(format!("{name} '{text}': {error}"));
        text.map(|text| text.parse().map_err(|error| invalid(text, error))).transpose()
    }

    /// The listeners of conversations, dead letters or questions.
    pub(super) fn listener(&self) -> Result<Condition<Name>, LookError> {
        Ok(Self::parsed("listener", self.listener.as_ref())?.unwrap_or_default())
    }

    /// The conversations in the journal.
    pub(super) fn conversations(&self) -> Result<ConversationFilter, LookError> {
        Ok(ConversationFilter {
            before: self.behind()?,
            since: Self::parsed("since", self.since.as_ref())?,
            until: Self::parsed("until", self.until.as_ref())?,
            open: self.open,
            listener: self.listener()?,
            payload: Self::parsed("payload", self.payload.as_ref())?.unwrap_or_default(),
            fault: Self::parsed("fault", self.fault.as_ref())?.unwrap_or_default(),
            text: self.text.as_deref().map(Arc::from),
            limit: self.most(),
        })
    }

    /// The dead letters that meet the conditions.
    pub(super) fn letters(&self) -> Result<LetterFilter, LookError> {
        Ok(LetterFilter {
            after: None,
            ids: None,
            from: Self::parsed("from", self.from.as_ref())?,
            listener: self.listener()?,
            payload: Self::parsed("payload", self.payload.as_ref())?.unwrap_or_default(),
            fault: Self::parsed("fault", self.fault.as_ref())?.unwrap_or_default(),
            text: self.text.as_deref().map(Arc::from),
            since: Self::parsed("since", self.since.as_ref())?,
            until: Self::parsed("until", self.until.as_ref())?,
            limit: self.most(),
        })
    }

    /// The tasks in the journal.
    pub(super) fn tasks(&self) -> Result<TaskFilter, LookError> {
        let state = |text: &str| {
            let state = Status::ALL.into_iter().find(|state| state.as_str() == text);
            let all: Vec<_> = Status::ALL.iter().map(|state| state.as_str()).collect();
            state.ok_or_else(|| {
                LookError::Invalid(format!("'{text}' is no state of a task: write one of {}", all.join(", ")))
            })
        };
        Ok(TaskFilter {
            after: self.behind()?,
            job: Self::parsed("job", self.job.as_ref())?,
            state: self.state.as_deref().map(state).transpose()?.map(|state| state.as_str().into()),
            text: self.text.as_deref().map(Arc::from),
            limit: self.most(),
        })
    }

    /// Cuts a page out of entries that are in order of key.
    pub(super) fn page<T>(&self, entries: impl Iterator<Item = (String, T)>) -> Page<T> {
        let limit = self.most();
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

/// The page of dead letters that an act on them is about; their ids are none of its conditions.
impl From<&Letters> for Wanted {
    fn from(letters: &Letters) -> Self {
        let Letters { ids: _, from, listener, payload, fault, text, since, until } = letters.clone();
        Self { from, listener, payload, fault, text, since, until, ..Self::default() }
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
        let Some(past) = self.past()? else { return self.open_conversations(wanted).await };
        let mut page = past.conversations(wanted).await?;
        let open = page.items.iter().filter(|item| item.open).filter_map(|item| item.conversation.parse().ok());
        let among: Arc<HashSet<ThreadId>> = Arc::new(open.collect());
        let wanted = OpenFilter { limit: among.len(), among: Some(among), ..OpenFilter::default() };
        let running = |open: OpenConversation| (open.root.to_string(), open.running as u64);
        let live: HashMap<_, _> = self.open(wanted).await.into_iter().map(running).collect();
        for item in &mut page.items {
            item.running = live.get(&item.conversation).copied().unwrap_or(0);
        }
        Ok(page)
    }

    /// Lists the threads of a conversation, each behind its parent: those of the journal, open and closed; without one, the
    /// open ones. Nothing if there are none.
    ///
    /// # Errors
    /// As [`conversations`](Self::conversations).
    pub async fn threads(&self, conversation: ThreadId, wanted: &Wanted) -> Result<Page<ThreadRecord>, LookError> {
        let shared = &self.organism.shared;
        let Some(past) = self.past()? else {
            let (limit, skip) = (wanted.most(), wanted.behind::<usize>()?.unwrap_or(0));
            let all = shared.look(move |core| core.open_threads(conversation, skip, limit + 1)).await;
            let mut items: Vec<_> = all.into_iter().flatten().map(|thread| open_record(&thread)).collect();
            let next = (items.len() > limit).then(|| (skip + limit).to_string());
            items.truncate(limit);
            return Ok(Page { items, next });
        };
        let mut page = past.threads(conversation, wanted).await?;
        let open = page.items.iter().filter(|item| item.state.is_some()).filter_map(|item| item.thread.parse().ok());
        let open: Arc<HashSet<ThreadId>> = Arc::new(open.collect());
        if !open.is_empty() {
            let states = shared.look(move |core| core.states_of(conversation, &open)).await;
            let states: HashMap<_, _> =
                states.into_iter().flatten().map(|(id, state)| (id.to_string(), state)).collect();
            // One that has closed since the journal was read waits for nothing any more.
            for item in page.items.iter_mut().filter(|item| item.state.is_some()) {
                item.state = states.get(&item.thread).copied().or(item.state);
            }
        }
        Ok(page)
    }

    /// Lists the history of a thread: see [`Past::messages`].
    ///
    /// # Errors
    /// [`LookError`] if the organism has no journal, or that can't be read.
    pub async fn messages(&self, thread: ThreadId, wanted: &Wanted) -> Result<Page<MessageRecord>, LookError> {
        self.kept()?.messages(thread, wanted).await
    }

    /// Finds a message in the mailbox of a thread: its record, and those of all that its handler did. Nothing if it isn't kept.
    ///
    /// # Errors
    /// As [`messages`](Self::messages).
    pub async fn message(&self, id: MessageId) -> Result<Vec<MessageRecord>, LookError> {
        self.kept()?.message(id).await
    }

    /// Lists the dead letters: those of the pump, oldest first, then those of mailboxes.
    ///
    /// # Errors
    /// [`LookError`] if a condition can't be read, or the journal can't.
    pub async fn dead_letters(&self, wanted: &Wanted) -> Result<Page<LetterRecord>, LookError> {
        if let Some(past) = self.past()? {
            return past.dead_letters(wanted).await;
        }
        let (letters, filter) = (self.organism.dead_letters().await, wanted.letters()?);
        let key = |letter: &DeadLetter| letter_key(letter.at, letter.id.core().0, letter.id.number());
        let found = letters.iter().filter(|letter| takes(&filter, letter));
        Ok(wanted.page(found.map(|letter| (key(letter), letter_record(letter)))))
    }

    /// Lists the mailboxes of remote listeners, in order of name. An organism without a journal has none.
    ///
    /// # Errors
    /// As [`dead_letters`](Self::dead_letters).
    pub async fn mailboxes(&self, wanted: &Wanted) -> Result<Page<MailboxRecord>, LookError> {
        let Some(past) = self.past()? else { return Ok(Page { items: Vec::new(), next: None }) };
        let kept = past.query().mailboxes(self.organism.shared.clock.now()).await?;
        #[cfg_attr(not(feature = "gateway"), expect(unused_mut, reason = "mailboxes come with the gateway"))]
        let mut found: BTreeMap<_, _> = kept.into_iter().map(|kept| (kept.mailbox.clone(), kept)).collect();
        #[cfg(feature = "gateway")]
        for name in self.organism.elsewhere().flat_map(|mailboxes| mailboxes.names()) {
            found.entry(name.clone()).or_insert_with(|| KeptMailbox::empty(name));
        }
        Ok(wanted.page(found.into_values().map(mailbox_entry)))
    }

    /// Lists the tasks of jobs, in order of job, then of arrival.
    ///
    /// # Errors
    /// As [`dead_letters`](Self::dead_letters).
    pub async fn tasks(&self, wanted: &Wanted) -> Result<Page<TaskRecord>, LookError> {
        if let Some(past) = self.past()? {
            return past.tasks(wanted).await;
        }
        let filter = wanted.tasks()?;
        let mut found = BTreeMap::new();
        if let Some(board) = self.organism.part::<TaskBoard>() {
            board.each(|job, task| {
                let record = task_record(job, task);
                let has = |text: &str| {
                    let texts = [Some(&record.description), record.text.as_ref()];
                    texts.into_iter().flatten().any(|found| found.contains(text))
                };
                if filter.job.as_ref().is_none_or(|wanted| wanted == job)
                    && filter.state.as_deref().is_none_or(|state| state == task.status.as_str())
                    && filter.text.as_deref().is_none_or(has)
                {
                    let position = TaskPosition { job: job.clone(), place: task.place };
                    found.insert((job.clone(), task.place), (position, record));
                }
            });
        }
        let behind = filter.after.map(|TaskPosition { job, place }| (job, place));
        let mut items = found.into_iter().filter(|(key, _)| behind.as_ref().is_none_or(|behind| key > behind));
        let page: Vec<_> = items.by_ref().take(filter.limit).map(|(_, entry)| entry).collect();
        let next = page.last().filter(|_| items.next().is_some()).map(|(position, _)| position.to_string());
        Ok(Page { items: page.into_iter().map(|(_, record)| record).collect(), next })
    }

    /// Lists the acts of operators, newest first, as long as retention keeps them.
    ///
    /// # Errors
    /// As [`messages`](Self::messages).
    pub async fn acts(&self, wanted: &Wanted) -> Result<Page<ActRecord>, LookError> {
        self.kept()?.acts(wanted).await
    }

    /// The past in the journal, if the organism has one.
    pub(super) fn past(&self) -> Result<Option<Past>, LookError> {
        Ok(self.organism.query()?.map(Past::of))
    }

    fn kept(&self) -> Result<Past, LookError> {
        let none = || LookError::Invalid("the organism has no journal, so it keeps no past".to_owned());
        self.past()?.ok_or_else(none)
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
        let listeners = wanted.listener()?;
        let with = listeners.only.as_ref().map(|name| blueprint.named(name).collect::<Vec<_>>());
        let without = listeners.without.iter().flat_map(|name| blueprint.named(name)).collect();
        if wanted.open == Some(false) || with.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let (before, limit) = (wanted.behind()?, wanted.most());
        let mut found =
            self.open(OpenFilter { before, with, without, limit: limit + 1, ..OpenFilter::default() }).await;
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
                kept_threads: None,
                running: open.running as u64,
                queued: open.queued as u64,
                listeners,
            }
        };
        Ok(Page { items: found.into_iter().map(record).collect(), next })
    }

    /// The time of the organism.
    #[cfg(feature = "gateway")]
    pub(crate) fn now(&self) -> Time {
        self.organism.shared.clock.now()
    }

    /// Sums the use of models by day and listener, newest first: that of today and of the 30 days before, in UTC. Nothing
    /// without a journal.
    #[cfg(feature = "gateway")]
    pub(crate) async fn used_by_day(&self) -> Result<Option<UsedDays>, LookError> {
        /// Days that are shown.
        const DAYS: u64 = 31;
        let Some(past) = self.past()? else { return Ok(None) };
        let today = UsedDays::day_of(self.now());
        let since = today.as_nanos().saturating_sub((DAYS - 1) * UsedDays::DAY.as_nanos() as u64);
        Ok(Some(past.query().used_by_day(Time::from_nanos(since)).await?))
    }

    /// Lists the listeners, in order of name.
    pub async fn listeners(&self, wanted: &Wanted) -> Page<ListenerRecord> {
        wanted.page(self.each_listener().await.into_iter())
    }

    /// All listeners, by name.
    pub(crate) async fn each_listener(&self) -> BTreeMap<String, ListenerRecord> {
        let blueprint = self.organism.blueprint();
        let mut found = BTreeMap::<String, ListenerRecord>::new();
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
                paused: self.organism.paused_since(&contract.name).map(|since| since.to_string()),
            });
            // A listener without state has slots in each core.
            record.concurrency = record.concurrency.saturating_add(contract.concurrency);
            record.running += slots.running;
            record.waiting += slots.waiting;
        }
        found
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
        owner: None,
        path: thread.path.to_string(),
        state: Some(thread.state),
        queued: thread.queued as u64,
        opened: None,
        closed: None,
        used: None,
        budget: None,
    }
}

fn letter_record(letter: &DeadLetter) -> LetterRecord {
    LetterRecord {
        letter: letter.id.to_string(),
        mailbox: false,
        at: letter.at.to_string(),
        from: letter.from.to_string(),
        listener: letter.to.as_ref().map(ToString::to_string),
        conversation: letter.conversation.map(|root| root.to_string()),
        thread: None,
        path: Some(letter.path.to_string()),
        payload: letter.payload.as_ref().map(|payload| payload.root().to_string()),
        fault: letter.reason.code.to_string(),
        reason: letter.reason.to_string(),
        redrives: false,
        text: letter.payload.as_ref().map(|payload| text_of(payload.bytes())),
    }
}

/// Checks whether a dead letter meets the conditions, as the journal would.
pub(super) fn takes(filter: &LetterFilter, letter: &DeadLetter) -> bool {
    let payload = letter.payload.as_ref();
    let has = |text: &Arc<str>| {
        letter.reason.to_string().contains(&**text) || payload.is_some_and(|payload| payload.as_str().contains(&**text))
    };
    filter.from.as_ref().is_none_or(|from| *from == letter.from)
        && filter.listener.takes(letter.to.as_slice())
        && filter.payload.takes(payload.map(|payload| payload.root().clone()).as_slice())
        && filter.fault.takes(&[letter.reason.code])
        && filter.text.as_ref().is_none_or(has)
        && filter.since.is_none_or(|since| letter.at >= since)
        && filter.until.is_none_or(|until| letter.at < until)
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
