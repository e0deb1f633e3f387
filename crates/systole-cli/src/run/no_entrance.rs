//! The substitute for the gateway, in a program that was built without it.

use std::sync::Arc;

use systole::config::Config;
use systole::runtime::{Organism, OrganismBuilder};
use systole_core::core::Contract;

use crate::failure::Failure;

pub(super) struct Entrance;

pub(super) struct Served;

impl Entrance {
    /// Refuses a configuration that needs a gateway.
    pub(super) fn open(config: &Config) -> Result<Self, Failure> {
        if config.gateway.is_some() {
            let message = "this systole was built without its gateway: build it with the feature 'gateway'";
            return Err(Failure::unusable(message));
        }
        Ok(Self)
    }

    /// Does nothing: there is no gateway.
    pub(super) fn install(&self, builder: OrganismBuilder) -> OrganismBuilder {
        builder
    }

    /// Does nothing: configurations that need a gateway were refused.
    pub(super) fn listener(&self, builder: OrganismBuilder, _: Contract) -> OrganismBuilder {
        builder
    }

    pub(super) fn serve(self, _: &Arc<Organism>) -> Result<Served, Failure> {
        Ok(Served)
    }
}

impl Served {
    /// Returns false: no gateway is served.
    pub(super) fn stop(&self) -> bool {
        false
    }
}
