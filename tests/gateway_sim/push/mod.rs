//! Listeners that are pushed to, over a network in memory.

mod outcomes;
pub(crate) mod peer;
mod setup;
mod starts;
