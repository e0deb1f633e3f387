//! The tables, version by version.

use crate::runtime::sqlite::Format;

/// The application id `SyJ1`, and the migrations from one version to the next.
pub(super) const FORMAT: Format = Format {
    name: "journal",
    id: 0x5379_4a31,
    migrations: &[
        include_str!("schema.sql"),
        include_str!("requeue.sql"),
        include_str!("tasks.sql"),
        include_str!("history.sql"),
        include_str!("mail.sql"),
        include_str!("addressee.sql"),
        include_str!("budget.sql"),
        include_str!("partition.sql"),
        include_str!("batch.sql"),
        include_str!("counted.sql"),
        include_str!("organism.sql"),
    ],
};

/// The first version in which each step has a time of its own, and which records what is missing.
pub(super) const ORDERED: i64 = 4;

/// The first version in which the sum of a row covers its times.
pub(super) const TIMED: i64 = 6;

/// The first version with partitions, with numbers that count to 2^39 in an epoch, and with sums that are XXH3.
pub(super) const PARTED: i64 = 8;

/// The first version with batches.
pub(super) const BATCHED: i64 = 9;

/// The first version whose row of `meta` counts the batches.
pub(super) const COUNTED: i64 = 10;
