//! The keys below `budget:`, of the organism, a client or a listener.

use std::time::Duration;

use systole_core::vocab::{Budget, Millionths};

use super::correction::Shape;
use super::document::Value;
use super::llm::decimal;
use super::mistake::Mistake;
use super::reader::{Fields, Reader};

/// Takes a budget out of a mapping; none if it isn't there.
pub(super) fn take(reader: &mut Reader, fields: &mut Fields<'_>) -> Budget {
    let Some(node) = fields.take("budget") else { return Budget::NONE };
    if matches!(&node.value, Value::Map(map) if map.is_empty()) {
        reader.report(Mistake::EmptyBudget, node.span);
    }
    let Some(mut own) = reader.fields(node, Shape::Budget) else { return Budget::NONE };
    let mut count = |key| own.take(key).and_then(|node| reader.number(key, node, 0, Budget::MAX_COUNT));
    let [tokens, calls, threads] = ["tokens", "calls", "threads"].map(&mut count);
    let most = Budget::MAX_COST.0 / Millionths::ONE.0;
    let cost = own.take("cost").and_then(|node| decimal(reader, "cost", node, most));
    let time = own.take("time").and_then(|node| reader.duration_from(Duration::ZERO, node));
    reader.finish(own);
    Budget::NONE.tokens(tokens).cost(cost).calls(calls).threads(threads).time(time)
}
