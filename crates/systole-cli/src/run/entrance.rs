//! The gateway of an organism, if it has one.

use std::io::ErrorKind;
use std::sync::Arc;

use systole::config::{Config, ListenerKind};
use systole::gateway::{Gateway, GatewayError, RemoteListener, Serving};
#[cfg(feature = "compat-molecule")]
use systole::molecule;
use systole::runtime::{Organism, OrganismBuilder};
use systole_core::core::Contract;

use super::CLIENT;
use crate::failure::Failure;

/// A gateway that waits for its organism; none if the configuration has none.
pub(super) struct Entrance(Option<Gateway>);

/// A served gateway; none if the organism has none.
pub(super) struct Served(Option<Serving>);

impl Entrance {
    /// Opens the gateway that a configuration describes.
    pub(super) fn open(config: &Config) -> Result<Self, Failure> {
        let (Some(settings), Some(journal)) = (&config.gateway, &config.journal) else { return Ok(Self(None)) };
        let listeners = config.blueprint.listeners().zip(&config.kinds);
        let remote = listeners.filter_map(|((_, contract), kind)| match kind {
            ListenerKind::Remote(mode) => Some((contract.name.clone(), mode.clone())),
            ListenerKind::Command(_)
            | ListenerKind::Worker(_)
            | ListenerKind::Model(_)
            | ListenerKind::Human
            | ListenerKind::Echo
            | ListenerKind::Tasks(_) => None,
        });
        let gateway = Gateway::new(settings, journal, remote).and_then(Gateway::listen).map_err(failure)?;
        #[cfg(feature = "compat-molecule")]
        let gateway = if settings.molecule { molecule::serve(gateway, &config.blueprint) } else { gateway };
        Ok(Self(Some(gateway)))
    }

    /// Lets the mailboxes of remote listeners live in the journal.
    pub(super) fn install(&self, builder: OrganismBuilder) -> OrganismBuilder {
        match &self.0 {
            Some(gateway) => gateway.install(builder),
            None => builder,
        }
    }

    /// Registers a remote listener. One without a gateway was refused with its configuration.
    pub(super) fn listener(&self, builder: OrganismBuilder, contract: Contract) -> OrganismBuilder {
        let Some(gateway) = &self.0 else { return builder };
        let remote = RemoteListener::new(gateway.mailboxes().clone());
        builder.raw_listener(contract, move || remote.clone())
    }

    /// Serves the organism to all of its clients but that of the command line.
    pub(super) fn serve(self, organism: &Arc<Organism>) -> Result<Served, Failure> {
        let serving = self.0.map(|gateway| gateway.serve(organism, &[CLIENT])).transpose();
        Ok(Served(serving.map_err(failure)?))
    }
}

impl Served {
    /// Announces the end of the organism: no further messages are accepted. Returns true if there is a gateway.
    pub(super) fn stop(&self) -> bool {
        self.0.iter().for_each(Serving::stop);
        self.0.is_some()
    }
}

fn failure(error: GatewayError) -> Failure {
    let hint = match &error {
        GatewayError::Listen { cause, .. } if cause.kind() == ErrorKind::AddrInUse => {
            ": end the other program if it is this organism, or write another port, or 0 for any free port"
        }
        _ => "",
    };
    Failure::unusable(format!("{error}{hint}"))
}
