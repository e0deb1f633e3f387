//! Cron expressions: the five fields of crontab(5), and the instants that they name in a time zone.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

/// Days that are searched for the next tick. The longest wait is that for a 29 February over a year like 2100: 8 years.
const SEARCHED: usize = 9 * 366;

/// Five fields: minute, hour, day of the month, month, day of the week.
///
/// A field is `*`, or a list of numbers, ranges `a-b` and steps `a-b/n` or `*/n`, with commas between them. Months and days
/// of the week have names of three letters, too (`jan`, `mon`); 0 and 7 are Sunday. If the day of the month and the day of
/// the week are both restricted, a day that one of them names is enough (crontab(5)). `@hourly`, `@daily`, `@weekly`,
/// `@monthly` and `@yearly` stand for five fields.
///
/// Where clocks are put forward, a time that is skipped is that much later: 02:30 is 03:30, and times that become the same are
/// one tick. Where clocks are put back, a time that comes twice is a tick at its first coming; if the hour is `*` or `*/n` both
/// are, so that a tick of each quarter of an hour goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
}

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// True if the field begins with `*`.
    is_open: bool,
}

/// A text that is no cron expression.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// A text with another number of fields.
    #[error("it has {found} fields, and needs 5: minute, hour, day of the month, month, day of the week")]
    Fields {
        /// The number of fields.
        found: usize,
    },
    /// A word behind `@` that stands for no fields.
    #[error("'{word}' is none of @hourly, @daily, @weekly, @monthly and @yearly")]
    Word {
        /// The word.
        word: String,
    },
    /// A part of a field that can't be read.
    #[error("'{part}' is no {field}: write a number from {least} to {most}, a range a-b, a step */n or a-b/n, or *")]
    Part {
        /// The name of the field.
        field: &'static str,
        /// The part.
        part: String,
        /// The lowest value.
        least: u8,
        /// The highest value.
        most: u8,
    },
    /// A step that is greater than the number of values, so that it never steps.
    #[error("the step of '{part}' is beyond the {field}: write {most} or less")]
    Step {
        /// The name of the field.
        field: &'static str,
        /// The part.
        part: String,
        /// The greatest step.
        most: usize,
    },
    /// Fields that name no day, such as 30 February.
    #[error("no day of the next {} years is one of these", SEARCHED / 366)]
    Never,
}

systole_core::vocab::debug_is_display!(CronError);

/// A field of the expression.
struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", least: 1, most: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field =
    Field { name: "day of the week", least: 0, most: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let fields = match text {
            "@hourly" => "0 * * * *",
            "@daily" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" => "0 0 1 1 *",
            word if word.starts_with('@') => return Err(CronError::Word { word: word.to_owned() }),
            fields => fields,
        };
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(CronError::Fields { found: fields.len() });
        };
        let mut weekdays = WEEKDAY.read(weekdays)?;
        if weekdays.has(7) {
            weekdays.bits |= 1;
        }
        let cron = Self {
            text: text.to_owned(),
            minutes: MINUTE.read(minutes)?,
            hours: HOUR.read(hours)?,
            days: DAY.read(days)?,
            months: MONTH.read(months)?,
            weekdays,
        };
        match cron.after(&TimeZone::UTC, Timestamp::UNIX_EPOCH).next() {
            Some(_) => Ok(cron),
            None => Err(CronError::Never),
        }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Field {
    fn read(&self, text: &str) -> Result<Set, CronError> {
        let mut set = Set { bits: 0, is_open: text.starts_with('*') };
        for part in text.split(',') {
            let wrong =
                || CronError::Part { field: self.name, part: part.to_owned(), least: self.least, most: self.most };
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0).ok_or_else(wrong)?),
                None => (part, 1_usize),
            };
            let most = usize::from(self.most - self.least) + 1;
            if step > most {
                return Err(CronError::Step { field: self.name, part: part.to_owned(), most });
            }
            let (first, last) = match range.split_once('-') {
                _ if range == "*" => (self.least, self.most),
                Some((first, last)) => (self.value(first).ok_or_else(wrong)?, self.value(last).ok_or_else(wrong)?),
                // A step needs a range: `5/10` says no end.
                None if part.contains('/') => return Err(wrong()),
                None => {
                    let value = self.value(range).ok_or_else(wrong)?;
                    (value, value)
                }
            };
            if first > last {
                return Err(wrong());
            }
            (first..=last).step_by(step).for_each(|value| set.bits |= 1 << value);
        }
        Ok(set)
    }

    fn value(&self, text: &str) -> Option<u8> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let named = named.and_then(|at| u8::try_from(at).ok()).map(|at| at + self.least);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = named.or_else(|| is_number.then(|| text.parse().ok()).flatten())?;
        (self.least..=self.most).contains(&value).then_some(value)
    }
}

impl Set {
    fn has(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.bits >> value & 1 == 1)
    }

    fn values(self) -> impl Iterator<Item = i8> {
        (0..64).filter(move |value| self.has(*value))
    }
}

impl Cron {
    /// Lists the instants behind one, in order, without end: an iterator that ends found none in 9 years.
    pub fn after<'a>(&'a self, zone: &'a TimeZone, after: Timestamp) -> Ticks<'a> {
        // Times of the day before may be put behind midnight.
        let date = zone.to_datetime(after).date();
        let day = date.yesterday().ok().or(Some(date));
        Ticks { cron: self, zone, last: after, day, found: VecDeque::new() }
    }

    fn names(&self, date: Date) -> bool {
        let (day, weekday) = (self.days.has(date.day()), self.weekdays.has(date.weekday().to_sunday_zero_offset()));
        let is_named = match (self.days.is_open, self.weekdays.is_open) {
            (false, false) => day || weekday,
            _ => day && weekday,
        };
        self.months.has(date.month()) && is_named
    }

    /// The instants of a day, in order.
    fn instants(&self, zone: &TimeZone, date: Date) -> Vec<Timestamp> {
        let times = self.hours.values().flat_map(|hour| self.minutes.values().map(move |minute| (hour, minute)));
        let mut found: Vec<_> =
            times.flat_map(|(hour, minute)| self.instants_of(zone, date.at(hour, minute, 0, 0))).flatten().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The instants of a time on the clock: two if it comes twice and each hour is named.
    fn instants_of(&self, zone: &TimeZone, time: DateTime) -> [Option<Timestamp>; 2] {
        match zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(time).ok(), None],
            AmbiguousOffset::Gap { before, .. } => [before.to_timestamp(time).ok(), None],
            AmbiguousOffset::Fold { before, after } => {
                let again = self.hours.is_open.then(|| after.to_timestamp(time).ok()).flatten();
                [before.to_timestamp(time).ok(), again]
            }
        }
    }
}

/// Instants of a cron expression.
#[derive(Debug)]
pub struct Ticks<'a> {
    cron: &'a Cron,
    zone: &'a TimeZone,
    last: Timestamp,
    /// The next day to be looked at; none behind the end of the calendar.
    day: Option<Date>,
    /// Instants that were found and not returned.
    found: VecDeque<Timestamp>,
}

impl Iterator for Ticks<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        for _ in 0..SEARCHED {
            // A zone that skips a whole day, as Samoa did, has instants of one day behind some of the next.
            while let Some(next) = self.found.pop_front() {
                if next > self.last {
                    self.last = next;
                    return Some(next);
                }
            }
            let day = self.day?;
            self.day = day.tomorrow().ok();
            if self.cron.names(day) {
                self.found = self.cron.instants(self.zone, day).into();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    /// The first ticks behind a time, as the clock of the zone shows them.
    fn ticks(cron: &str, zone_name: &str, after: &str, count: usize) -> Vec<String> {
        let (cron, zone): (Cron, _) = (cron.parse().unwrap(), zone(zone_name));
        let shown = |tick: Timestamp| tick.display_with_offset(zone.to_offset(tick)).to_string();
        cron.after(&zone, after.parse().unwrap()).take(count).map(shown).collect()
    }

    #[test]
    fn fields_name_times() {
        let found = ticks("30 9,17 * * mon-fri", "UTC", "2026-11-27T12:00:00Z", 3);
        assert_eq!(found, ["2026-11-27T17:30:00+00:00", "2026-11-30T09:30:00+00:00", "2026-11-30T17:30:00+00:00"]);
        let found = ticks("*/20 0-1 1 * *", "UTC", "2026-11-27T12:00:00Z", 4);
        let shown = ["2026-12-01T00:00", "2026-12-01T00:20", "2026-12-01T00:40", "2026-12-01T01:00"];
        assert_eq!(found, shown.map(|time| format!("{time}:00+00:00")));
        // One of two restricted days is enough.
        let found = ticks("0 0 13 * 5", "UTC", "2026-11-01T00:00:00Z", 3);
        assert_eq!(found, ["06", "13", "20"].map(|day| format!("2026-11-{day}T00:00:00+00:00")));
        assert_eq!(ticks("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["2104-02-29T00:00:00+00:00"]);
        assert_eq!(
            ticks("@weekly", "UTC", "2026-11-30T00:00:00Z", 1),
            ticks("0 0 * * 7", "UTC", "2026-11-30T00:00:00Z", 1)
        );
    }

    #[test]
    fn a_text_that_names_no_time_is_refused_with_its_field() {
        for (text, why) in [
            ("* * * *", "it has 4 fields, and needs 5"),
            ("60 * * * *", "'60' is no minute: write a number from 0 to 59"),
            ("* 9-5 * * *", "'9-5' is no hour"),
            ("*/0 * * * *", "'*/0' is no minute"),
            ("*/61 * * * *", "the step of '*/61' is beyond the minute: write 60 or less"),
            ("0 0 1-31/40 * *", "the step of '1-31/40' is beyond the day of the month: write 31 or less"),
            ("5/10 * * * *", "'5/10' is no minute"),
            ("* * 0 * *", "'0' is no day of the month"),
            ("* * * 13 *", "'13' is no month"),
            ("* * * * fry", "'fry' is no day of the week"),
            ("+1 * * * *", "'+1' is no minute"),
            (", * * * *", "'' is no minute"),
            ("0 0 31 2,4 *", "no day of the next 9 years"),
            ("@noon", "'@noon' is none of @hourly"),
        ] {
            let error = text.parse::<Cron>().unwrap_err().to_string();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_time_that_clocks_skip_comes_later_and_once() {
        // On 29 March 2026 clocks in Berlin go from 02:00 to 03:00.
        let found = ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(found, ["2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"]);
        let found = ticks("0,30 2,3 29 * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 3);
        assert_eq!(found, ["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00", "2026-04-29T02:00:00+02:00"]);
        // On 30 December 2011 Samoa had no day.
        let found = ticks("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
        assert_eq!(found, ["2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00", "2012-01-01T12:00:00+14:00"]);
    }

    #[test]
    fn a_time_that_comes_twice_is_one_tick_unless_each_hour_is() {
        // On 25 October 2026 clocks in Berlin go from 03:00 to 02:00.
        let found = ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(found, ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]);
        let found = ticks("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3);
        let shown = ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"];
        assert_eq!(found, shown);
    }

    fn part(least: u8, most: u8) -> impl Strategy<Value = String> {
        prop_oneof![
            Just("*".to_owned()),
            (1..=most).prop_map(|step| format!("*/{step}")),
            (least..=most).prop_map(|value| value.to_string()),
            (least..=most, least..=most).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        ]
    }

    proptest! {
        /// Each tick is one that a search minute by minute finds, and there is no other one.
        #[test]
        fn ticks_are_those_of_a_search_by_minutes(
            (minute, hour, day, month, weekday) in (part(0, 59), part(0, 23), part(1, 28), part(1, 12), part(0, 7)),
            name in prop::sample::select(&["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"][..]),
            start in 1_700_000_000_i64..1_900_000_000,
        ) {
            let cron: Cron = format!("{minute} {hour} {day} {month} {weekday}").parse().unwrap();
            let zone = zone(name);
            let start = Timestamp::from_second(start).unwrap();
            let end = start + SignedDuration::from_hours(24 * 5);
            let found: Vec<_> = cron.after(&zone, start).take_while(|tick| *tick <= end).collect();
            prop_assert!(found.is_sorted_by(|one, other| one < other));
            let names = |at: Timestamp| {
                let time = zone.to_datetime(at);
                cron.minutes.has(time.minute()) && cron.hours.has(time.hour()) && cron.names(time.date())
            };
            let first = start.as_second().div_euclid(60) + 1;
            for minute in first..=end.as_second().div_euclid(60) {
                let at = Timestamp::from_second(minute * 60).unwrap();
                let is_tick = found.binary_search(&at).is_ok();
                let offset = zone.to_ambiguous_timestamp(zone.to_datetime(at)).offset();
                match offset {
                    AmbiguousOffset::Fold { after, .. } if after == zone.to_offset(at) => {
                        prop_assert_eq!(is_tick, names(at) && cron.hours.is_open, "{}", at);
                    }
                    // A time that was skipped may be put to one that the fields don't name.
                    _ if is_tick && !names(at) => {
                        let skipped = zone.to_datetime(at - SignedDuration::from_hours(3));
                        prop_assert!(zone.to_offset(at) != zone.to_offset(at - SignedDuration::from_hours(3)), "{} {}", at, skipped);
                    }
                    _ => prop_assert_eq!(is_tick, names(at), "{}", at),
                }
            }
        }
    }
}
