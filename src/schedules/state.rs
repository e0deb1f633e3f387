//! The state of a schedule: its last ticks, and what came of them. It is a record of the journal.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use systole_core::journal::{JournalError, JournalErrorKind, Op, StateRecord};
use systole_core::vocab::{MessageId, Name, NameError, ThreadId, Time};

/// Ticks of a schedule that its state keeps.
pub(crate) const KEPT: usize = 20;
/// The beginning of the names of records: no listener with tasks has such a name.
const PREFIX: &str = "schedule.";

/// The state of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct State {
    /// The ticks of the schedule as text: those of another text are none that were missed.
    pub(crate) timing: String,
    /// The time up to which each tick has its end.
    pub(crate) last: Time,
    /// The time since which it is paused.
    pub(crate) paused: Option<Time>,
    /// Ticks that were missed, in all.
    pub(crate) missed: u64,
    /// The last ticks, newest first.
    pub(crate) ticks: VecDeque<Tick>,
}

/// A tick and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick {
    /// The time of the tick; of a run that an operator asked for, that of the run.
    pub(crate) at: Time,
    pub(crate) end: TickEnd,
}

/// The end of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickEnd {
    /// A message was sent.
    Sent {
        /// The id of the message.
        message: MessageId,
        /// The conversation that it opened.
        conversation: ThreadId,
        /// The time at which it was sent.
        sent: Time,
        /// True if an operator asked for it.
        by_hand: bool,
    },
    /// A conversation of an earlier tick was open.
    Overlapped,
    /// The organism did not run, at this tick and those before it: so many.
    Missed(u64),
}

impl State {
    /// The state of a schedule that begins.
    pub(crate) fn begin(timing: String, now: Time) -> Self {
        Self { timing, last: now, ..Self::default() }
    }

    /// Adds a tick.
    pub(crate) fn add(&mut self, tick: Tick) {
        if let TickEnd::Missed(count) = tick.end {
            self.missed += count;
        }
        if !matches!(tick.end, TickEnd::Sent { by_hand: true, .. }) {
            self.last = self.last.max(tick.at);
        }
        self.ticks.push_front(tick);
        self.ticks.truncate(KEPT);
    }

    /// The operation that writes it.
    pub(crate) fn op(&self, record: &Name) -> Op {
        let blob = serde_json::to_vec(&StateText::of(self)).expect("it has texts and numbers alone").into();
        Op::State(StateRecord { listener: record.clone(), blob })
    }

    /// Reads it from its record.
    pub(crate) fn read(schedule: &Name, blob: &Bytes) -> Result<Self, JournalError> {
        let damaged = |why: &dyn std::fmt::Display| {
            let message = format!("the state of the schedule '{schedule}' can't be read: {why}");
            JournalError::new(JournalErrorKind::Damaged, message)
        };
        let text: StateText = serde_json::from_slice(blob).map_err(|error| damaged(&error))?;
        text.state().map_err(|why| damaged(&why))
    }
}

/// The name of the record of a schedule.
pub(super) fn record_name(schedule: &Name) -> Result<Name, NameError> {
    Name::parse(&format!("{PREFIX}{schedule}"))
}

/// The state as text: JSON, so that a later version reads it, and people do.
#[derive(Serialize, Deserialize)]
struct StateText {
    timing: String,
    last: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<String>,
    missed: u64,
    ticks: Vec<TickText>,
}

#[derive(Serialize, Deserialize)]
struct TickText {
    at: String,
    #[serde(flatten)]
    end: EndText,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
enum EndText {
    Sent { message: String, conversation: String, sent: String, by_hand: bool },
    Overlapped,
    Missed { count: u64 },
}

impl StateText {
    fn of(state: &State) -> Self {
        let tick = |tick: &Tick| TickText {
            at: tick.at.to_string(),
            end: match tick.end {
                TickEnd::Sent { message, conversation, sent, by_hand } => EndText::Sent {
                    message: message.to_string(),
                    conversation: conversation.to_string(),
                    sent: sent.to_string(),
                    by_hand,
                },
                TickEnd::Overlapped => EndText::Overlapped,
                TickEnd::Missed(count) => EndText::Missed { count },
            },
        };
        Self {
            timing: state.timing.clone(),
            last: state.last.to_string(),
            paused: state.paused.map(|since| since.to_string()),
            missed: state.missed,
            ticks: state.ticks.iter().map(tick).collect(),
        }
    }

    fn state(self) -> Result<State, String> {
        fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
            text.parse().map_err(|error: T::Err| format!("{text}: {error}"))
        }
        let tick = |tick: TickText| {
            let end = match tick.end {
                EndText::Sent { message, conversation, sent, by_hand } => TickEnd::Sent {
                    message: parsed(&message)?,
                    conversation: parsed(&conversation)?,
                    sent: parsed(&sent)?,
                    by_hand,
                },
                EndText::Overlapped => TickEnd::Overlapped,
                EndText::Missed { count } => TickEnd::Missed(count),
            };
            Ok(Tick { at: parsed(&tick.at)?, end })
        };
        Ok(State {
            timing: self.timing,
            last: parsed(&self.last)?,
            paused: self.paused.as_deref().map(parsed).transpose()?,
            missed: self.missed,
            ticks: self.ticks.into_iter().map(tick).collect::<Result<_, String>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let at = Time::default().after(Duration::from_secs(1_800_000_000));
        let mut state = State::begin("every 15m".to_owned(), at);
        let (message, conversation) =
            (MessageId::from_uuid(Uuid::new_v8([1; 16])), ThreadId::from_uuid(Uuid::new_v8([2; 16])));
        for (after, by_hand) in [(1, false), (2, true)] {
            let end = TickEnd::Sent { message, conversation, sent: at.after(Duration::from_millis(5)), by_hand };
            state.add(Tick { at: at.after(Duration::from_secs(after)), end });
        }
        assert_eq!(state.last, at.after(Duration::from_secs(1)), "a run by hand settles no tick");
        state.add(Tick { at: at.after(Duration::from_secs(9)), end: TickEnd::Missed(7) });
        state.add(Tick { at: at.after(Duration::from_secs(10)), end: TickEnd::Overlapped });
        state.paused = Some(at);
        let name = "daily".parse().unwrap();
        let Op::State(record) = state.op(&record_name(&name).unwrap()) else { panic!("a state") };
        assert_eq!(record.listener.as_str(), "schedule.daily");
        assert_eq!(State::read(&name, &record.blob), Ok(state));
        let error = State::read(&name, &Bytes::from_static(b"{}")).unwrap_err().to_string();
        assert!(error.contains("the state of the schedule 'daily' can't be read: missing field"), "{error}");
    }

    #[test]
    fn a_state_keeps_the_last_ticks() {
        let mut state = State::default();
        for count in 1..=2 * KEPT as u64 {
            state.add(Tick { at: Time::from_nanos(count), end: TickEnd::Missed(1) });
        }
        assert_eq!((state.ticks.len(), state.missed), (KEPT, 2 * KEPT as u64));
        assert_eq!(state.ticks[0].at, Time::from_nanos(2 * KEPT as u64));
    }
}
