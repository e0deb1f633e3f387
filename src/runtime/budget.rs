//! Budgets of organisms, clients and listeners that are built in Rust, and reservations of handlers.

#[cfg(feature = "gateway")]
use std::task::Poll;

use systole_core::vocab::Budget;
#[cfg(feature = "gateway")]
use systole_core::{
    core::{Input, Short},
    vocab::{Amounts, Fault},
};

use super::accepts::HandlerKind;
use super::builder::OrganismBuilder;
use super::contract::{ClientBuilder, ContractBuilder};
#[cfg(feature = "gateway")]
use super::{handler::HandlerKey, shard_context::ShardContext};

impl OrganismBuilder {
    /// Sets the most that each conversation may use: its threads together, whoever sends its messages. Conversations of
    /// `<boot>` are bounded by the budgets of listeners alone.
    ///
    /// ```
    /// use systole::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Organism::builder("demo").budget("tokens=20000 cost=0.25 calls=40 time=5min".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }
}

impl<L, K: HandlerKind<L>> ContractBuilder<L, K> {
    /// Sets the most that each thread of the listener may use, with the threads below it. What is left of the budgets above
    /// it bounds it, too.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.contract.budget = budget;
        self
    }
}

impl ClientBuilder {
    /// Sets the most that each conversation of the client may use, if that is less than those of the organism may.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.client.budget = budget;
        self
    }
}

/// Reserves amounts for a request of a handler. `is_last`: the request takes what is left, and the thread ends with this
/// fault unless the handler answers then.
#[cfg(feature = "gateway")]
pub(super) async fn reserve(key: HandlerKey, amounts: Amounts, is_last: Option<Fault>) -> Result<(), Box<Short>> {
    let Some(shard_context) = ShardContext::here(key.shard_context) else { return Ok(()) };
    if shard_context.reserves(key) {
        shard_context.tell(key.origin, Input::Reserve { task: key.task, amounts, is_last });
    }
    drop(shard_context);
    std::future::poll_fn(|cx| match ShardContext::here(key.shard_context) {
        Some(shard_context) => shard_context.poll_reserved(key, cx),
        // The organism has ended, and this handler with it.
        None => Poll::Ready(Ok(())),
    })
    .await
}
