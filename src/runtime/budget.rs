//! Budgets of organisms, clients and listeners that are built in Rust.

use systole_core::vocab::Budget;

use super::accepts::HandlerKind;
use super::builder::OrganismBuilder;
use super::contract::{ClientBuilder, ContractBuilder};

impl OrganismBuilder {
    /// Sets the most that each conversation of any client may use, its threads together. Conversations of `<boot>` are
    /// bounded by the budgets of listeners alone.
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
