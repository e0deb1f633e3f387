//! The keys below `budget:`, of the organism, a client or a listener.

use systole_core::vocab::Budget;

use super::llm::decimal;
use super::reader::{Fields, Reader};

/// Most that a cost can be.
const MAX_COST: u64 = 1_000_000_000;
/// Most of anything else.
const MANY: u64 = 1_000_000_000_000_000;

/// Takes a budget out of a mapping; none if it isn't there.
pub(super) fn take(reader: &mut Reader, fields: &mut Fields<'_>) -> Budget {
    let Some(node) = fields.take("budget") else { return Budget::NONE };
    let Some(mut own) = reader.fields(node, None) else { return Budget::NONE };
    let [tokens, calls, threads] =
        ["tokens", "calls", "threads"].map(|key| own.take(key).and_then(|node| reader.number(key, node, 0, MANY)));
    let cost = own.take("cost").and_then(|node| decimal(reader, "cost", node, MAX_COST));
    let time = own.take("time").and_then(|node| reader.duration(node));
    reader.finish(own);
    Budget { tokens, cost, calls, threads, time }
}
