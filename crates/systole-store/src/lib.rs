//! The store of Systole: what an organism keeps on disk.
//!
//! - [`journal`]: the journal, one SQLite file with steps, messages, histories, tasks and the queries of the gateway;
//! - [`principal`] and [`token`]: clients, remote listeners and admins, and the secrets that authenticate them;
//! - [`tenure`]: the time for which a node of an organism may work;
//! - [`clock`] and [`entropy`]: the only modules that read a clock or draw random numbers.
//!
//! Below the journal, `sqlite` opens, locks and recovers files. `systole` is the runtime that writes them.

pub mod clock;
#[cfg(feature = "testing")]
pub mod entered;
pub mod entropy;
pub mod journal;
pub mod principal;
mod sqlite;
pub mod tenure;
pub mod token;

/// Runs a future of a test to its end.
#[cfg(test)]
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs no resources").block_on(future)
}
