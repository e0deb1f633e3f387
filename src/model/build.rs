//! Models in an organism that is built in Rust.

use std::time::Duration;

use super::listener::ModelListener;
use super::router::Llm;
use crate::runtime::{Accepts, ContractBuilder, HandlerKind, OrganismBuilder};
use crate::settings::ModelSettings;
use systole_core::core::Contract;
use systole_xml::ladder::repair::Author;

/// Listeners that models speak for.
#[derive(Debug, Clone, Copy)]
pub struct AsModel;

impl HandlerKind<ModelListener> for AsModel {
    type Route = ();
}

impl<T> Accepts<T, AsModel> for ModelListener {
    fn route() {}
}

impl ModelListener {
    /// Time for a message, unless its listener has another `timeout`: a model takes longer than a program.
    pub const TIMEOUT: Duration = Duration::from_secs(600);

    /// Sets the defaults that differ for a listener that a model speaks for: it remembers its threads, takes faults of
    /// its calls as messages, may take longer, and writes drafts beside what it means.
    pub(crate) fn defaults(contract: &mut Contract) {
        contract.timeout = Some(Self::TIMEOUT);
        contract.context = true;
        contract.author = Author::Model;
        contract.accepts_faults = true;
        contract.can_park = true;
        contract.speaks_at_end = true;
    }
}

impl OrganismBuilder {
    /// Registers a listener that a model speaks for. It gets the replies of all that it calls, and faults of these calls,
    /// as messages, and remembers each of its threads. Instructions alone are [`ModelSettings`], too.
    ///
    /// ```
    /// use systole::prelude::*;
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    /// #[payload(namespace = "urn:example:hello:v1", reply = Hello)]
    /// struct Hello {
    ///     name: String,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A model that needs no network. `Llm::open` asks providers.
    /// let llm = Llm::scripted([("<hello", "Sure: <hello><name>R&D</hello>")]);
    /// let organism = Organism::builder("hello")
    ///     .model("greeter", &llm, "Greet back.", |c| c.answers::<Hello>())
    ///     .client("cli", |c| c.calls::<Hello>())
    ///     .start()?;
    /// let answer = block_on(organism.client("cli")?.ask(Hello { name: "world".into() }))?;
    /// assert_eq!(answer.name, "R&D");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn model<C>(self, name: &str, llm: &Llm, settings: impl Into<ModelSettings>, contract: C) -> Self
    where
        C: FnOnce(ContractBuilder<ModelListener, AsModel>) -> ContractBuilder<ModelListener, AsModel>,
    {
        let (llm, settings) = (llm.clone(), settings.into());
        let condenses = settings.summary.is_some();
        let defaults = |contract: &mut Contract| {
            ModelListener::defaults(contract);
            contract.condenses = condenses;
        };
        self.raw_built(name, defaults, contract, move || ModelListener::new(&llm, settings.clone()))
    }
}
