//! The journal on disk: it reports the same as the one in memory; damage to its file, and kills.

mod batches;
mod damage;
mod epochs;
mod files;
mod kill;
mod kinds;
mod mail;
mod model;
mod partitions;
mod power;
mod readers;
mod room;
pub(crate) mod story;
