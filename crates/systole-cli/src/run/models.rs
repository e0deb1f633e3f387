//! The models that speak for listeners.

use systole::config::{Config, ListenerKind};
use systole::model::{Llm, ModelListener};
use systole::runtime::OrganismBuilder;
use systole::settings::{LlmSettings, ModelSettings};
use systole_core::core::Contract;

use crate::failure::Failure;

/// The backends of an organism.
pub(super) struct Models(Llm);

impl Models {
    /// Sets up the backends that a configuration describes. Where no listener needs one, no key is read.
    pub(super) fn open(config: &Config) -> Result<Self, Failure> {
        let is_needed = config.kinds.iter().any(|kind| matches!(kind, ListenerKind::Model(_)));
        let none = LlmSettings::default();
        let settings = config.llm.as_ref().filter(|_| is_needed).unwrap_or(&none);
        let llm = Llm::open(settings).map_err(|error| Failure::unusable(error.to_string()))?;
        for ((_, contract), kind) in config.blueprint.listeners().zip(&config.kinds) {
            let ListenerKind::Model(ModelSettings { backend: only, .. }) = kind else { continue };
            if !llm.backends().any(|backend| only.as_ref().is_none_or(|only| only == backend)) {
                let name = &contract.name;
                return Err(Failure::unusable(format!(
                    "'{name}' has no model to ask: each of its backends is left out by its when_env or unless_env"
                )));
            }
        }
        Ok(Self(llm))
    }

    /// Registers a listener that a model speaks for.
    pub(super) fn listener(
        &self,
        builder: OrganismBuilder,
        contract: Contract,
        settings: ModelSettings,
    ) -> OrganismBuilder {
        let llm = self.0.clone();
        builder.raw_listener(contract, move || ModelListener::new(&llm, settings.clone()))
    }
}
