//! Options of an engine.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use systole_core::vocab::Name;

use super::address::Guard;
use super::circuit::CircuitPolicy;
use super::retry::Policy;
use super::signature::Secret;
use crate::identity::Identity;

/// Options for sending deliveries.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryOptions {
    /// Retries of failed attempts.
    pub(crate) policy: Policy,
    /// Circuits of targets.
    pub(crate) circuit: CircuitPolicy,
    /// Addresses that may be sent to; public ones only by default.
    pub(crate) guard: Guard,
    /// Addresses that may be sent to for these targets, in the place of `guard`.
    pub(crate) guards: HashMap<Name, Guard>,
    /// Targets for which each attempt opens a connection of its own, and closes it: for peers that serve one connection
    /// after the other.
    pub(crate) unpooled: HashSet<Name>,
    /// Secrets to sign deliveries with.
    pub(crate) secrets: HashMap<Name, Secret>,
    /// The identity that signs all requests.
    pub(crate) identity: Option<Arc<Identity>>,
    /// Bytes of the body of an answer: 1 MiB by default. `None` reads no body: the head is the whole answer, or refusal.
    pub(crate) answer: Option<usize>,
}

impl DeliveryOptions {
    /// The addresses that may be sent to for a target.
    pub(super) fn guard_of(&self, target: &Name) -> &Guard {
        self.guards.get(target).unwrap_or(&self.guard)
    }
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            circuit: CircuitPolicy::default(),
            guard: Guard::default(),
            guards: HashMap::new(),
            unpooled: HashSet::new(),
            secrets: HashMap::new(),
            identity: None,
            answer: Some(1 << 20),
        }
    }
}
