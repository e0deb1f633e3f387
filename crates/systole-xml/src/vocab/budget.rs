//! Budgets: the amounts that a piece of work may use at most.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Millionths;

/// The most that a thread and all threads below it may use together. What is not set has no bound of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// A text that is no budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no amount: write tokens=20000 cost=0.25 calls=40 threads=40 time=30s, each at most once")]
pub struct BudgetError {
    /// The first wrong word, cut to 64 characters.
    pub found: Box<str>,
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000)];

impl Budget {
    /// Without any bound.
    pub const NONE: Self = Self { tokens: None, cost: None, calls: None, threads: None, time: None };

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
        for word in text.split_whitespace() {
            budget.add(word).ok_or_else(|| BudgetError { found: word.chars().take(64).collect() })?;
        }
        match budget.is_none() {
            true => Err(BudgetError { found: "".into() }),
            false => Ok(budget),
        }
    }
}

impl Budget {
    fn add(&mut self, word: &str) -> Option<()> {
        let (key, amount) = word.split_once('=')?;
        match key {
            "tokens" => once(&mut self.tokens, whole(amount)?),
            "cost" => once(&mut self.cost, amount.parse().ok()?),
            "calls" => once(&mut self.calls, whole(amount)?),
            "threads" => once(&mut self.threads, whole(amount)?),
            "time" => once(&mut self.time, duration(amount)?),
            _ => None,
        }
    }
}

fn once<T>(place: &mut Option<T>, amount: T) -> Option<()> {
    place.replace(amount).is_none().then_some(())
}

fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    whole(number)?.checked_mul(*millis).map(Duration::from_millis)
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
        let error = "calls=4 time=soon".parse::<Budget>().unwrap_err();
        assert!(error.to_string().starts_with("'time=soon' is no amount: write tokens=20000"), "{error}");
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
