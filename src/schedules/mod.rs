//! Schedules: messages that a client sends at times, once a tick.
//!
//! A tick and its message are one step of the journal: the step that takes the message writes the time up to which ticks are
//! settled. So a process that is killed at any moment has sent the message of a tick or not, and its next start knows which.
//! A pure function of the times decides which ticks are due ([`due`](due::due)); a task for each schedule carries it out, and is
//! the only writer of its state. Without a journal a schedule knows nothing of ticks before the start.
//!
//! A process that another one has taken the journal over from can write no step, so it sends nothing more either: each tick has one
//! message, whoever runs the organism.
//!
//! Not here: the reading of answers. They go where all answers to the client go.

mod cron;
mod due;
mod run;
mod state;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use cron::{Cron, CronError, Ticks};
pub use due::{Due, Missed, Timing, due};
pub use run::{AnswersTo, ScheduleAct, ScheduleRefusal, Scheduler, SchedulerError};
pub(crate) use state::{State, TickEnd};
use systole_core::journal::{JournalError, Recovered};
use systole_core::vocab::{Name, NameError};
use systole_xml::ladder::Canonical;
use tokio::sync::mpsc;

use crate::runtime::{JournalAppender, Organism, OrganismBuilder, Part, Recoverable, StartRefusal};
use run::Request;

/// A schedule: when which message is sent.
#[derive(Debug, Clone)]
pub struct ScheduleSpec {
    name: Name,
    /// The name of its record in the journal.
    record: Name,
    client: Name,
    timing: Timing,
    to: Option<Name>,
    payload: Canonical,
    missed: Missed,
    overlap: Overlap,
}

impl PartialEq for ScheduleSpec {
    fn eq(&self, other: &Self) -> bool {
        let of =
            |spec: &Self| (spec.client.clone(), spec.timing.to_string(), spec.to.clone(), spec.missed, spec.overlap);
        self.name == other.name && of(self) == of(other) && self.payload.bytes() == other.payload.bytes()
    }
}

/// Rule for a tick at which the conversation of an earlier one is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overlap {
    /// Sends the message all the same.
    #[default]
    Allow,
    /// Sends no message.
    Skip,
}

impl ScheduleSpec {
    /// Makes a schedule: at each tick the client sends the payload, in a conversation of its own.
    ///
    /// # Errors
    /// [`NameError`] if the name has more than 119 bytes.
    pub fn new(name: Name, client: Name, timing: Timing, payload: Canonical) -> Result<Self, NameError> {
        let record = state::record_name(&name)?;
        let (missed, overlap) = (Missed::default(), Overlap::default());
        Ok(Self { name, record, client, timing, to: None, payload, missed, overlap })
    }

    /// Sends to this listener, where several accept the payload.
    #[must_use]
    pub fn to(self, listener: Name) -> Self {
        Self { to: Some(listener), ..self }
    }

    /// Sets the rule for missed ticks.
    #[must_use]
    pub fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }

    /// Sets the rule for ticks at which an earlier conversation is open.
    #[must_use]
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// Returns the name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the client that sends.
    pub fn client(&self) -> &Name {
        &self.client
    }

    /// Returns the ticks.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The rule for missed ticks, as it is written.
    pub(crate) fn missed_text(&self) -> String {
        match self.missed {
            Missed::Skip => "skip".to_owned(),
            Missed::Once => "once".to_owned(),
            Missed::All(most) => format!("all, {most} at most"),
        }
    }

    /// The rule for open conversations, as it is written.
    pub(crate) fn overlap_text(&self) -> &'static str {
        match self.overlap {
            Overlap::Allow => "allow",
            Overlap::Skip => "skip",
        }
    }

    /// The name of its record in the journal.
    pub(crate) fn record(&self) -> &Name {
        &self.record
    }
}

/// The schedules of an organism.
#[derive(Debug, Default)]
pub struct Schedules {
    all: Vec<Arc<Schedule>>,
}

/// A schedule of an organism.
pub struct Schedule {
    spec: ScheduleSpec,
    /// Written by the task of the schedule alone, once the change is durable.
    state: Mutex<State>,
    /// None without a journal.
    journal: OnceLock<(JournalAppender, [u8; 32])>,
    /// The way to the task, once it runs.
    requests: OnceLock<mpsc::Sender<Request>>,
    figures: Figures,
}

/// Counts of ticks since the start.
#[derive(Debug, Default)]
struct Figures {
    sent: AtomicU64,
    overlapped: AtomicU64,
    missed: AtomicU64,
    refused: AtomicU64,
}

impl OrganismBuilder {
    /// Adds a schedule. It runs with a [`Scheduler`].
    #[must_use]
    pub fn schedule(self, spec: ScheduleSpec) -> Self {
        self.part(|schedules: &mut Schedules| schedules.all.push(Arc::new(Schedule::new(spec))))
    }
}

impl Organism {
    /// Returns the schedules.
    pub fn schedules(&self) -> &Schedules {
        static NONE: Schedules = Schedules { all: Vec::new() };
        self.part().unwrap_or(&NONE)
    }
}

impl Schedules {
    /// Lists the schedules, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Schedule>> {
        self.all.iter()
    }

    /// Returns the schedule of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Schedule>> {
        self.iter().find(|schedule| schedule.spec.name.as_str() == name)
    }
}

impl Part for Schedules {
    fn reserve(&self, _: std::collections::BTreeSet<Name>) -> Option<StartRefusal> {
        None
    }

    fn recoverables(&self) -> Vec<Arc<dyn Recoverable>> {
        self.iter().cloned().map(|schedule| -> Arc<dyn Recoverable> { schedule }).collect()
    }

    fn live_in_memory(&self) {}

    /// Returns `false`: the messages are those of clients.
    fn sends(&self) -> bool {
        false
    }
}

impl Recoverable for Schedule {
    /// Takes the state in the journal. Ticks of other times than those of now are none that were missed.
    fn move_in(self: Arc<Self>, recovered: &Recovered, appender: JournalAppender) -> Result<(), JournalError> {
        let record = recovered.states.iter().find(|state| state.listener == self.spec.record);
        let known = record.map(|record| State::read(&self.spec.name, &record.blob)).transpose()?;
        let timing = self.spec.timing.to_string();
        let state = match known {
            Some(known) if known.timing == timing => known,
            known => {
                let now = appender.now();
                let begun = State::begin(timing, now);
                let state = known.map_or(begun.clone(), |known| State { timing: begun.timing, last: now, ..known });
                // An organism that ends writes nothing more, and its next start begins so again.
                let _ = appender.append(vec![state.op(&self.spec.record)], Box::new(|| ()));
                state
            }
        };
        *self.lock() = state;
        let _ = self.journal.set((appender, recovered.key));
        Ok(())
    }
}

impl Schedule {
    fn new(spec: ScheduleSpec) -> Self {
        Self {
            spec,
            state: Mutex::default(),
            journal: OnceLock::new(),
            requests: OnceLock::new(),
            figures: Figures::default(),
        }
    }

    /// Returns what was configured.
    pub fn spec(&self) -> &ScheduleSpec {
        &self.spec
    }

    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// The ticks since the start by their ends, and the attempts to send that were refused and repeated.
    #[cfg(feature = "gateway")]
    pub(crate) fn figures(&self) -> [(&'static str, u64); 4] {
        let Figures { sent, overlapped, missed, refused } = &self.figures;
        [("sent", sent), ("overlapped", overlapped), ("missed", missed), ("refused", refused)]
            .map(|(end, count)| (end, count.load(Ordering::Relaxed)))
    }

    /// Counts the end of a tick.
    fn count(&self, end: &TickEnd) {
        let Figures { sent, overlapped, missed, .. } = &self.figures;
        let (figure, count) = match end {
            TickEnd::Sent { .. } => (sent, 1),
            TickEnd::Overlapped => (overlapped, 1),
            TickEnd::Missed(count) => (missed, *count),
        };
        figure.fetch_add(count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").field("spec", &self.spec).finish_non_exhaustive()
    }
}
