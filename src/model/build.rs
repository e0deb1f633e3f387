//! Models in an organism that is built in Rust.

use std::time::Duration;

use super::listener::ModelListener;
use super::router::Llm;
use crate::runtime::{Accepts, ContractBuilder, Kind, OrganismBuilder};
use crate::settings::ModelSettings;
use systole_core::core::Contract;

/// Listeners that models speak for.
#[derive(Debug, Clone, Copy)]
pub struct AsModel;

impl Kind<ModelListener> for AsModel {
    type Route = ();
}

impl<T> Accepts<T, AsModel> for ModelListener {
    fn route() {}
}

impl ModelListener {
    /// Time for a message, unless its listener has another `timeout`: a model takes longer than a program.
    pub const TIMEOUT: Duration = Duration::from_secs(600);

    /// Sets the defaults that differ for a listener that a model speaks for: it remembers its threads, takes faults of
    /// its calls as messages, and may take longer.
    pub(crate) fn defaults(contract: &mut Contract) {
        contract.timeout = Some(Self::TIMEOUT);
        contract.context = true;
        contract.accepts_faults = true;
        contract.can_park = true;
        contract.speaks_at_end = true;
    }
}

impl OrganismBuilder {
    /// Registers a listener that a model speaks for. It gets the replies of all that it calls, and faults of these calls,
    /// as messages, and remembers each of its threads.
    ///
    /// ```
    /// use systole::model::Llm;
    /// use systole::prelude::*;
    /// use systole::settings::{Backend, LlmSettings, ModelSettings, ProviderSettings, Rule, Script};
    ///
    /// #[derive(Serialize, Deserialize, JsonSchema, Payload)]
    /// #[payload(namespace = "urn:example:hello:v1", reply = Hello)]
    /// struct Hello {
    ///     name: String,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A model that needs no network: it answers by rules. `ProviderSettings::Http` is a real one.
    /// let rule = Rule { answer: "Sure: <hello><name>R&D</hello>".into(), ..Rule::default() };
    /// let script = ProviderSettings::Scripted(Script { rules: vec![rule] });
    /// let backends = vec![(Backend::new("script".parse()?), script)];
    /// let llm = Llm::open(&LlmSettings { backends, ..LlmSettings::default() })?;
    ///
    /// let settings = ModelSettings { instructions: "Greet back.".into(), ..ModelSettings::default() };
    /// let organism = Organism::builder("hello")
    ///     .model("greeter", &llm, settings, |c| c.accepts::<Hello>().replies::<Hello>())
    ///     .client("cli", |c| c.calls::<Hello>())
    ///     .start()?;
    /// let answer = block_on(organism.client("cli")?.ask(Hello { name: "world".into() }))?;
    /// assert_eq!(answer.name, "R&D");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn model<C>(self, name: &str, llm: &Llm, settings: ModelSettings, contract: C) -> Self
    where
        C: FnOnce(ContractBuilder<ModelListener, AsModel>) -> ContractBuilder<ModelListener, AsModel>,
    {
        let llm = llm.clone();
        self.raw_built(name, ModelListener::defaults, contract, move || ModelListener::new(&llm, settings.clone()))
    }
}
