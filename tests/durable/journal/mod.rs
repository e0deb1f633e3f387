//! The journal on disk: it reports the same as the one in memory; damage to its file, kills and takeovers.

mod batches;
mod damage;
mod files;
mod kill;
mod kinds;
mod mail;
mod model;
mod partitions;
mod power;
mod readers;
mod room;
mod story;
mod takeover;
mod versions;
