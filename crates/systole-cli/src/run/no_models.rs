//! Models of a program that was built without its gateway: there are none.

use systole::config::Config;
use systole::runtime::OrganismBuilder;
use systole::settings::ModelSettings;
use systole_core::core::Contract;

use crate::failure::Failure;

pub(super) struct Models;

impl Models {
    /// Sets up nothing: a configuration that needs models was refused.
    pub(super) fn open(_: &Config) -> Result<Self, Failure> {
        Ok(Self)
    }

    /// Registers nothing: a configuration with such a listener was refused.
    pub(super) fn listener(&self, builder: OrganismBuilder, _: Contract, _: ModelSettings) -> OrganismBuilder {
        builder
    }
}
