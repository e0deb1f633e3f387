//! The keys below `budget:`, of the organism, a client or a listener.

use systole_core::vocab::{Budget, Millionths};

use super::document::Value;
use super::keys::{Count, Decimal, Key, Time, mapping};
use super::mistake::Mistake;
use super::reader::Reader;

const MOST: u64 = Budget::MAX_COUNT;
const MOST_COST: u64 = Budget::MAX_COST.0 / Millionths::ONE.0;

mapping! {
    /// Amounts that threads may use; a key that is left out has no bound.
    BudgetKeys: Budget with { "minProperties": 1 } {
        /// Tokens of requests to models and of their answers.
        tokens: Count<0, MOST>;
        /// Calls.
        calls: Count<0, MOST>;
        /// Threads that are opened for calls.
        threads: Count<0, MOST>;
        /// Cost of requests to models, in the currency of the prices.
        cost: Decimal<MOST_COST>;
        /// Time from the opening of the thread: it narrows the deadline.
        time: Time<0>;
    }
}

/// Reads a budget; none if the key isn't there.
pub(super) fn read(reader: &mut Reader, key: Key<'_, BudgetKeys<'static>>) -> Budget {
    let Some(node) = key.node else { return Budget::NONE };
    if matches!(&node.value, Value::Map(map) if map.is_empty()) {
        reader.report(Mistake::EmptyBudget, node.span);
    }
    let Some(keys) = BudgetKeys::open(reader, node) else { return Budget::NONE };
    let [tokens, calls, threads] = [keys.tokens, keys.calls, keys.threads].map(|key| key.read(reader));
    let (cost, time) = (keys.cost.read(reader), keys.time.read(reader));
    Budget::NONE.tokens(tokens).cost(cost).calls(calls).threads(threads).time(time)
}
