//! The ticks of a schedule, and those of them that are due: pure functions of times.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use systole_core::vocab::Time;

use super::cron::Cron;

/// A tick that is this late is missed, where a later one or the rule says no more.
const LATE: Duration = Duration::from_secs(60);
/// The age past which missed ticks are not looked for.
const HORIZON: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The ticks of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timing {
    /// The times of a cron expression on the clocks of a time zone.
    Cron(Cron, TimeZone),
    /// The whole multiples of an interval since 1970-01-01T00:00:00Z: `15m` is each quarter of an hour, whenever the organism
    /// started.
    Every(Duration),
}

/// Rule for the ticks at which the organism did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missed {
    /// None of them is made up for.
    Skip,
    /// The last of them is.
    #[default]
    Once,
    /// The last ones of them are, at most so many, in order.
    All(u32),
}

/// Ticks that are due.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Due {
    /// The ticks at which a message is to be sent, in order.
    pub send: Vec<Time>,
    /// The number of ticks before them that are missed for good.
    pub missed: u64,
    /// The last of the missed ones.
    pub last_missed: Option<Time>,
}

impl Timing {
    /// The first tick behind a time; none if there is none in the next 9 years.
    pub fn next(&self, after: Time) -> Option<Time> {
        match self {
            Self::Cron(cron, zone) => cron.after(zone, timestamp(after)).next().and_then(time),
            Self::Every(interval) => {
                let interval = nanos(*interval);
                let next = (after.as_nanos() / interval).checked_add(1)?.checked_mul(interval)?;
                Some(Time::from_nanos(next))
            }
        }
    }

    /// The first ticks behind a time.
    pub fn following(&self, after: Time, count: usize) -> Vec<Time> {
        std::iter::successors(self.next(after), |tick| self.next(*tick)).take(count).collect()
    }

    /// The last `most` ticks behind a time up to another one, and the number of those before them, with the last of those.
    fn last(&self, after: Time, until: Time, most: usize) -> (VecDeque<Time>, u64, Option<Time>) {
        match self {
            Self::Every(interval) => {
                let interval = nanos(*interval);
                let (first, last) = (after.as_nanos() / interval + 1, until.as_nanos() / interval);
                let all = (last + 1).saturating_sub(first);
                let kept = all.min(most as u64);
                let tick = |at: u64| Time::from_nanos(at * interval);
                let older = all - kept;
                let last_older = (older > 0).then(|| tick(last - kept));
                ((last + 1 - kept..=last).map(tick).collect(), older, last_older)
            }
            Self::Cron(cron, zone) => {
                let (mut kept, mut older, mut last_older) = (VecDeque::new(), 0, None);
                let ticks = cron.after(zone, timestamp(after)).map_while(time);
                for tick in ticks.take_while(|tick| *tick <= until) {
                    kept.push_back(tick);
                    if kept.len() > most {
                        older += 1;
                        last_older = kept.pop_front();
                    }
                }
                (kept, older, last_older)
            }
        }
    }

    /// A time as the schedule's time zone shows it.
    pub fn shown(&self, at: Time) -> String {
        let (at, zone) = match self {
            Self::Cron(_, zone) => (timestamp(at), zone),
            Self::Every(_) => (timestamp(at), &TimeZone::UTC),
        };
        at.display_with_offset(zone.to_offset(at)).to_string()
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron, zone) => write!(f, "cron {cron} {}", zone.iana_name().unwrap_or("UTC")),
            Self::Every(interval) => write!(f, "every {:#}", SignedDuration::try_from(*interval).unwrap_or_default()),
        }
    }
}

/// The ticks behind `last` up to `now` that are due, by the rule for missed ones. A tick is missed if it is more than a minute
/// ago, or another one has come since. Ticks of more than 366 days ago are not looked for.
pub fn due(timing: &Timing, missed: Missed, last: Time, now: Time) -> Due {
    let oldest = Time::from_nanos(now.as_nanos().saturating_sub(nanos(HORIZON)));
    let most = match missed {
        Missed::Skip | Missed::Once => 1,
        Missed::All(most) => most.max(1) as usize,
    };
    let (mut kept, mut older, mut last_older) = timing.last(last.max(oldest), now, most);
    if missed == Missed::Skip && kept.back().is_some_and(|tick| now.since(*tick) > LATE) {
        older += kept.len() as u64;
        last_older = kept.pop_back();
    }
    Due { send: kept.into(), missed: older, last_missed: last_older }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time.as_nanos())).unwrap_or(Timestamp::MAX)
}

fn time(timestamp: Timestamp) -> Option<Time> {
    u64::try_from(timestamp.as_nanosecond()).ok().map(Time::from_nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Time {
        text.parse().unwrap()
    }

    fn daily() -> Timing {
        Timing::Cron("0 8 * * *".parse().unwrap(), TimeZone::get("Europe/Berlin").unwrap())
    }

    #[test]
    fn an_interval_has_the_same_ticks_whenever_it_is_asked() {
        let quarter = Timing::Every(Duration::from_secs(900));
        assert_eq!(quarter.next(at("2026-11-30T08:14:59.9Z")), Some(at("2026-11-30T08:15:00Z")));
        assert_eq!(quarter.next(at("2026-11-30T08:15:00Z")), Some(at("2026-11-30T08:30:00Z")));
        assert_eq!(quarter.to_string(), "every 15m");
        assert_eq!(quarter.next(Time::MAX), None);
    }

    #[test]
    fn the_rule_says_what_becomes_of_missed_ticks() {
        let (last, now) = (at("2026-11-26T07:00:00Z"), at("2026-11-30T07:10:00Z"));
        let days = |days: &[u8]| days.iter().map(|day| at(&format!("2026-11-{day}T07:00:00Z"))).collect::<Vec<_>>();
        let told = |missed| due(&daily(), missed, last, now);
        let (send, last_missed) = (Vec::new(), Some(at("2026-11-30T07:00:00Z")));
        assert_eq!(told(Missed::Skip), Due { send, missed: 4, last_missed });
        let last_missed = Some(at("2026-11-29T07:00:00Z"));
        assert_eq!(told(Missed::Once), Due { send: days(&[30]), missed: 3, last_missed });
        let last_missed = Some(at("2026-11-27T07:00:00Z"));
        assert_eq!(told(Missed::All(3)), Due { send: days(&[28, 29, 30]), missed: 1, last_missed });
        assert_eq!(told(Missed::All(9)), Due { send: days(&[27, 28, 29, 30]), missed: 0, last_missed: None });
    }

    #[test]
    fn a_tick_within_its_minute_is_not_missed() {
        let just = due(&daily(), Missed::Skip, at("2026-11-29T07:00:00Z"), at("2026-11-30T07:01:00Z"));
        assert_eq!(just, Due { send: vec![at("2026-11-30T07:00:00Z")], ..Due::default() });
        assert_eq!(due(&daily(), Missed::Skip, at("2026-11-30T07:00:00Z"), at("2026-11-30T07:01:00Z")), Due::default());
    }

    #[test]
    fn a_clock_that_goes_back_has_no_tick_twice() {
        assert_eq!(
            due(&daily(), Missed::All(9), at("2026-11-30T07:00:00Z"), at("2026-11-01T00:00:00Z")),
            Due::default()
        );
        let every = Timing::Every(Duration::from_secs(1));
        assert_eq!(due(&every, Missed::All(9), at("2026-11-30T07:00:00Z"), at("2026-11-01T00:00:00Z")), Due::default());
    }

    fn timing() -> impl Strategy<Value = Timing> {
        let zone = prop::sample::select(&["UTC", "Europe/Berlin", "America/New_York"][..]);
        let cron = prop::sample::select(&["*/7 * * * *", "0,30 1-3 * * *", "15 8 * * 1"][..]);
        prop_oneof![
            (cron, zone).prop_map(|(cron, zone)| Timing::Cron(cron.parse().unwrap(), TimeZone::get(zone).unwrap())),
            (60_u64..100_000).prop_map(|seconds| Timing::Every(Duration::from_secs(seconds))),
        ]
    }

    proptest! {
        /// However the time between two looks is cut, each tick is sent or missed once, and under `all` none is missed.
        #[test]
        fn each_tick_has_one_end(
            timing in timing(),
            start in 1_770_000_000_u64..1_800_000_000,
            cuts in prop::collection::vec(0_u64..300_000, 1..12),
            rule in prop_oneof![Just(Missed::Skip), Just(Missed::Once), (1_u32..4).prop_map(Missed::All), Just(Missed::All(u32::MAX))],
        ) {
            let start = Time::from_nanos(start * 1_000_000_000);
            let (mut last, mut now, mut sent, mut missed) = (start, start, Vec::new(), 0);
            for cut in cuts {
                now = now.after(Duration::from_secs(cut));
                let due = due(&timing, rule, last, now);
                prop_assert!(due.send.iter().all(|tick| *tick > last && *tick <= now));
                missed += due.missed;
                last = due.send.last().copied().max(due.last_missed).unwrap_or(last);
                sent.extend(due.send);
            }
            let all: Vec<_> = std::iter::successors(timing.next(start), |tick| timing.next(*tick))
                .take_while(|tick| *tick <= now)
                .collect();
            prop_assert!(sent.is_sorted_by(|one, other| one < other));
            prop_assert!(sent.iter().all(|tick| all.binary_search(tick).is_ok()));
            prop_assert_eq!(sent.len() as u64 + missed, all.len() as u64);
            if rule == Missed::All(u32::MAX) {
                prop_assert_eq!(sent, all);
            }
        }
    }
}
