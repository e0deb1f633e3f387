//! Time of the last call of each agent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use systole_core::vocab::{Name, Time};

use crate::gateway::seam::Gate;

/// Time for which an agent counts as online after its last call: the time to live of that platform.
const ONLINE: Duration = Duration::from_secs(60);

/// Time of the last call of each agent, in this process.
#[derive(Default)]
pub(super) struct Heard(Mutex<HashMap<Name, Time>>);

impl Heard {
    /// Notes a call of an agent.
    pub(super) fn note(&self, gate: &Gate, agent: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.clone(), gate.now());
    }

    /// Status of a listener, in that platform's words.
    pub(super) fn status(&self, gate: &Gate, listener: &Name) -> &'static str {
        if gate.is_paused(listener) {
            return "paused";
        }
        if !gate.is_remote(listener) {
            return "online";
        }
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).get(listener) {
            Some(heard) if gate.now() <= heard.after(ONLINE) => "online",
            Some(_) => "offline",
            None => "unknown",
        }
    }
}
