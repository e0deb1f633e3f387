//! Durable organisms: on the simulated clock, as files on a disk, and as processes that are killed.

#[path = "../oracle/mod.rs"]
mod oracle;

mod journal;
mod kill;
#[cfg(feature = "postgres")]
mod postgres;
mod schedules;
mod simulated;
mod stores;
