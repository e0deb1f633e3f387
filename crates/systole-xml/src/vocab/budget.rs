//! Budgets: the amounts that a piece of work may use at most.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Millionths;

/// The most that a thread and all threads below it may use together. What is not set has no bound of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens of requests to models and of their answers.
    pub tokens: Option<u64>,
    /// Cost of those requests, in the currency of the operator's prices.
    pub cost: Option<Millionths>,
    /// Calls.
    pub calls: Option<u64>,
    /// Threads that are opened for calls.
    pub threads: Option<u64>,
    /// Time from the opening of the thread: it narrows the deadline.
    pub time: Option<Duration>,
}

crate::vocab::setters!(Budget {
    tokens: Option<u64>,
    cost: Option<Millionths>,
    calls: Option<u64>,
    threads: Option<u64>,
    time: Option<Duration>,
});

/// A text that is no budget. Words are cut to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// No amount at all.
    #[error("the budget is empty: write one or more of tokens=20000 cost=0.25 calls=40 threads=40 time=30s")]
    Empty,
    /// A word that is no amount.
    #[error("the budget has '{found}', which is no amount: write tokens=20000 cost=0.25 calls=40 threads=40 time=30s")]
    NoAmount {
        /// The word.
        found: Box<str>,
    },
    /// A second amount of one kind.
    #[error("the budget has two amounts of {kind}: keep one")]
    Repeated {
        /// The kind.
        kind: &'static str,
    },
    /// An amount that is too large.
    #[error("the budget has '{found}', which is too large: write at most {kind}={most}, or leave it out for no bound")]
    TooLarge {
        /// The word.
        found: Box<str>,
        /// The kind.
        kind: &'static str,
        /// The most that can be written.
        most: Box<str>,
    },
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000)];

impl Budget {
    /// Without any bound.
    pub const NONE: Self = Self { tokens: None, cost: None, calls: None, threads: None, time: None };
    /// The most tokens, calls or threads that can be written.
    pub const MAX_COUNT: u64 = 1_000_000_000_000_000;
    /// The most cost that can be written.
    pub const MAX_COST: Millionths = Millionths(1_000_000_000 * Millionths::ONE.0);
    /// The longest time that can be written: 100 years of 365 days.
    pub const MAX_TIME: Duration = Duration::from_secs(876_000 * 3600);

    /// Returns whether it bounds nothing.
    #[inline]
    pub fn is_none(&self) -> bool {
        let Self { tokens, cost, calls, threads, time } = self;
        tokens.is_none() && cost.is_none() && calls.is_none() && threads.is_none() && time.is_none()
    }

    /// The smaller amount of each kind.
    #[must_use]
    pub fn narrowed(self, by: Self) -> Self {
        Self {
            tokens: least(self.tokens, by.tokens),
            cost: least(self.cost, by.cost),
            calls: least(self.calls, by.calls),
            threads: least(self.threads, by.threads),
            time: least(self.time, by.time),
        }
    }
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    /// Parses words such as `tokens=20000 cost=0.25 calls=40 threads=40 time=30s`, in any order.
    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let mut budget = Self::NONE;
        text.split_whitespace().try_for_each(|word| budget.add(word))?;
        if budget.is_none() { Err(BudgetError::Empty) } else { Ok(budget) }
    }
}

impl Budget {
    fn add(&mut self, word: &str) -> Result<(), BudgetError> {
        let place = Place { word, amount: word.split_once('=').map_or("", |(_, amount)| amount) };
        let (cost, hours) = (Self::MAX_COST, Self::MAX_TIME.as_secs() / 3600);
        match word.split('=').next().unwrap_or_default() {
            "tokens" => place.set(&mut self.tokens, "tokens", whole, Self::MAX_COUNT, Self::MAX_COUNT.to_string()),
            "cost" => place.set(&mut self.cost, "cost", decimal, cost, cost.to_string()),
            "calls" => place.set(&mut self.calls, "calls", whole, Self::MAX_COUNT, Self::MAX_COUNT.to_string()),
            "threads" => place.set(&mut self.threads, "threads", whole, Self::MAX_COUNT, Self::MAX_COUNT.to_string()),
            "time" => place.set(&mut self.time, "time", duration, Self::MAX_TIME, format!("{hours}h")),
            _ => Err(BudgetError::NoAmount { found: place.found() }),
        }
    }
}

/// A word with its amount.
#[derive(Clone, Copy)]
struct Place<'a> {
    word: &'a str,
    amount: &'a str,
}

impl Place<'_> {
    /// Sets an amount that is not there yet, and is at most `most`.
    fn set<T: PartialOrd>(
        self,
        amount: &mut Option<T>,
        kind: &'static str,
        read: fn(&str) -> Option<T>,
        most: T,
        written: String,
    ) -> Result<(), BudgetError> {
        let value = read(self.amount).ok_or_else(|| BudgetError::NoAmount { found: self.found() })?;
        if value > most {
            return Err(BudgetError::TooLarge { found: self.found(), kind, most: written.into() });
        }
        if amount.replace(value).is_some() { Err(BudgetError::Repeated { kind }) } else { Ok(()) }
    }

    fn found(self) -> Box<str> {
        self.word.chars().take(64).collect()
    }
}

/// Reads a whole number. One that no `u64` holds is the largest, which is above each bound.
fn whole(text: &str) -> Option<u64> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().unwrap_or(u64::MAX))
}

fn decimal(text: &str) -> Option<Millionths> {
    Millionths::saturating(text).ok()
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_millis(whole(number)?.saturating_mul(*millis)))
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, cost, calls, threads, time } = self;
        let words = [
            tokens.map(|tokens| format!("tokens={tokens}")),
            cost.map(|cost| format!("cost={cost}")),
            calls.map(|calls| format!("calls={calls}")),
            threads.map(|threads| format!("threads={threads}")),
            time.map(|time| format!("time={}ms", time.as_millis())),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_read_and_written() {
        let text = "tokens=20000 cost=0.25 calls=40 threads=0 time=30s";
        let budget: Budget = text.parse().unwrap();
        let expected = Budget {
            tokens: Some(20_000),
            cost: Some(Millionths(250_000)),
            calls: Some(40),
            threads: Some(0),
            time: Some(Duration::from_secs(30)),
        };
        assert_eq!(budget, expected);
        assert_eq!(budget.to_string(), text.replace("30s", "30000ms"));
        assert_eq!(budget.to_string().parse(), Ok(budget));
        assert_eq!("time=2min\n  calls=1".parse::<Budget>().unwrap().time, Some(Duration::from_secs(120)));
        for wrong in
            ["", " ", "calls", "calls=", "calls=-1", "calls=+1", "calls=1 calls=2", "time=3", "time=s", "cost=x", "a=1"]
        {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_what_to_write() {
        let count = "tokens=1000000000000000 calls=1000000000000000 threads=1000000000000000";
        assert!(format!("{count} cost=1000000000 time=876000h").parse::<Budget>().is_ok(), "the most");
        for (text, error) in [
            ("  ", "the budget is empty: write one or more of tokens=20000 cost=0.25 calls=40 threads=40 time=30s"),
            (
                "calls=4 time=soon",
                "the budget has 'time=soon', which is no amount: write tokens=20000 cost=0.25 calls=40 threads=40 time=30s",
            ),
            ("calls=2 calls=3", "the budget has two amounts of calls: keep one"),
            (
                "calls=18446744073709551616",
                "the budget has 'calls=18446744073709551616', which is too large: write at most calls=1000000000000000, \
                 or leave it out for no bound",
            ),
            (
                "cost=99999999999999999999.5",
                "the budget has 'cost=99999999999999999999.5', which is too large: write at most cost=1000000000, or leave \
                 it out for no bound",
            ),
            (
                "time=99999999999999h",
                "the budget has 'time=99999999999999h', which is too large: write at most time=876000h, or leave it out \
                 for no bound",
            ),
        ] {
            assert_eq!(text.parse::<Budget>().unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn the_narrower_bound_counts() {
        let wide: Budget = "tokens=10 calls=5".parse().unwrap();
        let narrow: Budget = "tokens=20 calls=3 time=1s".parse().unwrap();
        assert_eq!(wide.narrowed(narrow), "tokens=10 calls=3 time=1s".parse().unwrap());
        assert_eq!(wide.narrowed(Budget::NONE), wide);
        assert!(Budget::NONE.narrowed(Budget::NONE).is_none());
    }
}
