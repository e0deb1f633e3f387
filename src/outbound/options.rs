//! Options of an outbox and its engine.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use systole_core::vocab::Name;

use super::address::Guard;
use super::circuit::CircuitPolicy;
use super::delivery::{OutboundDelivery, OutboundLimits};
use super::retry::Policy;
use super::signature::Secret;
use crate::runtime::sqlite::{Durability, Retention};

/// Source of the secrets of targets, called at each attempt.
pub type Secrets = Arc<dyn Fn(&Name) -> Option<Secret> + Send + Sync>;

/// Options of deliveries: how they are sent and kept.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeliveryOptions {
    /// Retries of failed attempts.
    pub policy: Policy,
    /// Circuits of targets.
    pub circuit: CircuitPolicy,
    /// Limits on sizes and numbers.
    pub limits: OutboundLimits,
    /// Addresses that may be sent to; public ones only by default.
    pub guard: Guard,
    /// Addresses that may be sent to for these targets, in the place of `guard`.
    pub guards: HashMap<Name, Guard>,
    /// Targets for which each attempt opens a connection of its own, and closes it: for peers that serve one connection
    /// after the other.
    pub unpooled: HashSet<Name>,
    /// Durability of a delivery that was accepted.
    pub durability: Durability,
    /// Retention of ended deliveries. They are deleted when the next delivery comes, by
    /// [`Outbound::tidy`](super::Outbound::tidy), or at the next start.
    pub retention: Retention,
    /// Secrets to sign deliveries with; none by default.
    pub secrets: Secrets,
    /// Certificates to trust besides those of the system, as PEM.
    pub certificates: Vec<u8>,
}

systole_core::vocab::setters!(DeliveryOptions {
    policy: Policy,
    circuit: CircuitPolicy,
    limits: OutboundLimits,
    guard: Guard,
    guards: HashMap<Name, Guard>,
    unpooled: HashSet<Name>,
    durability: Durability,
    retention: Retention,
    secrets: Secrets,
    certificates: Vec<u8>,
});

impl DeliveryOptions {
    /// The addresses that may be sent to for a target.
    pub(super) fn guard_of(&self, target: &Name) -> &Guard {
        self.guards.get(target).unwrap_or(&self.guard)
    }

    pub(super) fn secret(&self, delivery: &OutboundDelivery) -> Option<Secret> {
        if delivery.signed { (self.secrets)(&delivery.target) } else { None }
    }
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            circuit: CircuitPolicy::default(),
            limits: OutboundLimits::default(),
            guard: Guard::default(),
            guards: HashMap::new(),
            unpooled: HashSet::new(),
            durability: Durability::default(),
            retention: Retention::default(),
            secrets: Arc::new(|_| None),
            certificates: Vec::new(),
        }
    }
}

impl fmt::Debug for DeliveryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("policy", &self.policy)
            .field("circuit", &self.circuit)
            .field("limits", &self.limits)
            .field("guard", &self.guard)
            .field("guards", &self.guards)
            .field("unpooled", &self.unpooled)
            .field("durability", &self.durability)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
