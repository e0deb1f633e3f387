use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::Gate;
use crate::gateway::problem::Problem;
use crate::gateway::store::{Item, Kind, Principal};
use crate::gateway::token;
use crate::vocab::Name;

/// Who makes a request, as its token says, and within its rate.
pub(super) struct Caller(pub(super) Principal);

impl FromRequestParts<Arc<Gate>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gate: &Arc<Gate>) -> Result<Self, Problem> {
        let shown = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' ')).ok_or_else(Problem::unauthorized)?;
        let (scheme, token) = (shown.0, shown.1.trim());
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Problem::unauthorized());
        }
        let principal = gate.mailboxes.store().bearer(token::hash(token)).await?.ok_or_else(Problem::unauthorized)?;
        gate.rate.pass(&principal.name, gate.mailboxes.clock().now()).map_err(|seconds| {
            let requests = gate.settings.requests;
            Problem::too_many("rate", format!("{} may make {requests} requests a second", principal.name), seconds)
        })?;
        Ok(Self(principal))
    }
}

impl Caller {
    /// A mailbox that it may see to.
    pub(super) fn mailbox(&self, gate: &Gate, name: &str) -> Result<Name, Problem> {
        let name = Name::parse(name).map_err(|error| Problem::not_found(error.to_string()))?;
        self.may_see_to(&name)?;
        match gate.mailboxes.mode(&name) {
            Some(_) => Ok(name),
            None => Err(Problem::not_found(format!("the organism has no remote listener '{name}'"))),
        }
    }

    /// A message in a mailbox that it may see to.
    pub(super) fn may_answer(&self, item: &Item) -> Result<(), Problem> {
        self.may_see_to(&item.mailbox)
    }

    fn may_see_to(&self, mailbox: &Name) -> Result<(), Problem> {
        match self.0.kind {
            Kind::Admin => Ok(()),
            Kind::Listener if self.0.name == *mailbox => Ok(()),
            Kind::Listener | Kind::Client => Err(Problem::forbidden("that mailbox is somebody else's")),
        }
    }
}
