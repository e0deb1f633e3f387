//! Looks at schedules: what came of their ticks, and the next ones.

use systole_core::vocab::Time;

use super::look::{LookError, Wanted};
use super::record::{Page, ScheduleRecord, TickRecord};
use super::{Operations, Past};
use crate::journal::Query;
use crate::schedules::{ScheduleSpec, State, TickEnd};

/// Next ticks of a schedule that a record has.
const NEXT: usize = 3;

impl Operations<'_> {
    /// Lists the schedules, in order of name, with their last ticks, newest first, and their next ones.
    ///
    /// # Errors
    /// [`LookError`] if the journal can't be read.
    pub async fn schedules(&self, wanted: &Wanted) -> Result<Page<ScheduleRecord>, LookError> {
        let (past, now) = (self.past()?, self.organism.shared.clock.now());
        let query = past.as_ref().map(Past::query);
        let all = self.organism.schedules().iter();
        let mut schedules: Vec<_> = all.map(|schedule| (schedule.spec().name().to_string(), schedule)).collect();
        schedules.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let Page { items, next } = wanted.page(schedules.into_iter());
        let mut records = Vec::with_capacity(items.len());
        for schedule in items {
            records.push(record(schedule.spec(), &schedule.state(), query, now).await?);
        }
        Ok(Page { items: records, next })
    }
}

impl Past {
    /// Looks at schedules of an organism that doesn't run, in the order of these.
    ///
    /// # Errors
    /// [`LookError`] if the store can't be read.
    pub async fn schedules(&self, specs: &[ScheduleSpec], now: Time) -> Result<Vec<ScheduleRecord>, LookError> {
        let mut records = Vec::with_capacity(specs.len());
        for spec in specs {
            let kept = self.query().state(spec.record().clone()).await?;
            let state = kept.map(|kept| State::read(spec.name(), &kept.blob)).transpose().map_err(LookError::Store)?;
            records.push(record(spec, &state.unwrap_or_default(), Some(self.query()), now).await?);
        }
        Ok(records)
    }
}

impl ScheduleRecord {
    /// Describes a schedule of which nothing is known but what was configured.
    pub fn of(spec: &ScheduleSpec, now: Time) -> Self {
        Self::with(spec, &State::default(), Vec::new(), now)
    }

    fn with(spec: &ScheduleSpec, state: &State, ticks: Vec<TickRecord>, now: Time) -> Self {
        let shown = |tick: Time| spec.timing().shown(tick);
        Self {
            schedule: spec.name().to_string(),
            client: spec.client().to_string(),
            timing: spec.timing().to_string(),
            missed: spec.missed_text(),
            overlap: spec.overlap_text().to_owned(),
            paused: state.paused.map(|since| since.to_string()),
            next: spec.timing().following(now, NEXT).into_iter().map(shown).collect(),
            missed_ticks: state.missed,
            ticks,
        }
    }
}

async fn record(
    spec: &ScheduleSpec,
    state: &State,
    query: Option<&dyn Query>,
    now: Time,
) -> Result<ScheduleRecord, LookError> {
    let mut ticks = Vec::with_capacity(state.ticks.len());
    for tick in &state.ticks {
        let mut record = TickRecord {
            at: tick.at.to_string(),
            end: String::new(),
            missed: None,
            by_hand: false,
            sent: None,
            message: None,
            conversation: None,
            outcome: None,
        };
        match tick.end {
            TickEnd::Sent { message, conversation, sent, by_hand } => {
                "sent".clone_into(&mut record.end);
                record.by_hand = by_hand;
                record.sent = Some(sent.to_string());
                record.message = Some(message.to_string());
                record.conversation = Some(conversation.to_string());
                let kept = match query {
                    Some(query) => query.submission(message, 0, 0).await?,
                    None => None,
                };
                let outcome = kept.map(|kept| match (kept.faulted, kept.ended) {
                    (Some(true), _) => "fault",
                    (Some(false), _) => "answered",
                    (None, true) => "unanswered",
                    (None, false) => "open",
                });
                record.outcome = outcome.map(str::to_owned);
            }
            TickEnd::Overlapped => "overlapped".clone_into(&mut record.end),
            TickEnd::Missed(count) => {
                "missed".clone_into(&mut record.end);
                record.missed = Some(count);
            }
        }
        ticks.push(record);
    }
    Ok(ScheduleRecord::with(spec, state, ticks, now))
}
