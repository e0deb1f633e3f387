//! Amounts of a budget: tokens, cost, calls, threads.

use std::fmt::{self, Display};

use super::{Budget, Millionths};

/// Amounts that were spent, or are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Tokens of requests to models and of their answers.
    pub tokens: u64,
    /// Cost of those requests.
    pub cost: Millionths,
    /// Calls.
    pub calls: u64,
    /// Threads that were opened for calls.
    pub threads: u64,
}

impl Amounts {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The rest without the other ones, at least nothing.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    /// The amounts beside those of a budget: `3 of 10 calls, 3 threads`.
    pub fn of(&self, budget: &Budget) -> String {
        fn one<T: Display + Default + PartialEq>(kind: &str, spent: &T, most: Option<T>) -> Option<String> {
            match most {
                Some(most) => Some(format!("{spent} of {most} {kind}")),
                None => (*spent != T::default()).then(|| format!("{spent} {kind}")),
            }
        }
        let each = [
            one("tokens", &self.tokens, budget.tokens),
            one("cost", &self.cost, budget.cost),
            one("calls", &self.calls, budget.calls),
            one("threads", &self.threads, budget.threads),
        ];
        each.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            tokens: of(self.tokens, other.tokens),
            cost: Millionths(of(self.cost.0, other.cost.0)),
            calls: of(self.calls, other.calls),
            threads: of(self.threads, other.threads),
        }
    }
}

/// The amounts of a budget, none where it sets no bound.
impl From<Budget> for Amounts {
    fn from(Budget { tokens, cost, calls, threads, .. }: Budget) -> Self {
        let most = |bound: Option<u64>| bound.unwrap_or_default();
        Self { tokens: most(tokens), cost: cost.unwrap_or_default(), calls: most(calls), threads: most(threads) }
    }
}

/// The amounts as the words of a budget, which has each of them.
impl From<Amounts> for Budget {
    fn from(Amounts { tokens, cost, calls, threads }: Amounts) -> Self {
        Self::NONE.tokens(Some(tokens)).cost(Some(cost)).calls(Some(calls)).threads(Some(threads))
    }
}

impl Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, cost, calls, threads } = self;
        write!(f, "{tokens} tokens, cost {cost}, {calls} calls, {threads} threads")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_a_budget() {
        let spent = Amounts { tokens: 120, calls: 3, ..Amounts::default() };
        assert_eq!(Budget::from(spent).to_string(), "tokens=120 cost=0 calls=3 threads=0");
        assert_eq!(Amounts::from(Budget::from(spent)), spent);
        assert_eq!(Amounts::from("tokens=120 calls=3 time=1s".parse::<Budget>().unwrap()), spent);
    }

    #[test]
    fn amounts_stand_beside_their_budget() {
        let spent = Amounts { tokens: 120, calls: 3, threads: 2, ..Amounts::default() };
        let budget = "tokens=1000 cost=0.25 calls=3".parse().unwrap();
        assert_eq!(spent.of(&budget), "120 of 1000 tokens, 0 of 0.25 cost, 3 of 3 calls, 2 threads");
        assert_eq!(spent.to_string(), "120 tokens, cost 0, 3 calls, 2 threads");
        assert_eq!(spent.plus(spent).minus(spent), spent);
        assert_eq!(Amounts::default().minus(spent), Amounts::default());
    }
}
