//! Time of the last call of each agent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use systole_core::vocab::{Name, Time};

use crate::gateway::facade::AppState;

/// Time for which an agent counts as online after its last call: the time to live of that platform.
const ONLINE: Duration = Duration::from_secs(60);

/// Time of the last call of each agent, in this process.
#[derive(Default)]
pub(super) struct LastCalls(Mutex<HashMap<Name, Time>>);

impl LastCalls {
    /// Notes a call of an agent.
    pub(super) fn note(&self, app: &AppState, agent: &Name) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.clone(), app.now());
    }

    /// Status of a listener, in that platform's words.
    pub(super) fn status(&self, app: &AppState, listener: &Name) -> &'static str {
        if app.is_paused(listener) {
            return "paused";
        }
        if !app.is_remote(listener) {
            return "online";
        }
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).get(listener) {
            Some(heard) if app.now() <= heard.after(ONLINE) => "online",
            Some(_) => "offline",
            None => "unknown",
        }
    }
}
