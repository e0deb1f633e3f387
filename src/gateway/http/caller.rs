use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::Gate;
use crate::core::Party;
use crate::gateway::problem::Problem;
use crate::gateway::{Kind, Principal, token};
use crate::inbox;
use crate::schema::Payload;
use crate::vocab::Name;

/// Who makes a request, as its token says, and within its rate.
pub(crate) struct Caller(pub(in crate::gateway) Principal);

impl FromRequestParts<Arc<Gate>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gate: &Arc<Gate>) -> Result<Self, Problem> {
        let shown = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' ')).ok_or_else(Problem::unauthorized)?;
        let (scheme, token) = (shown.0, shown.1.trim());
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Problem::unauthorized());
        }
        let principal = gate.query.bearer(token::hash(token)).await?.ok_or_else(Problem::unauthorized)?;
        gate.rate.pass(&principal.name, gate.mailboxes.now()).map_err(|seconds| {
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

    /// Who it is in the inbox of a job.
    pub(super) fn principal(&self) -> inbox::Principal {
        inbox::Principal::new(self.0.name.clone())
    }

    /// Whether it may do what a payload does in the pump: whether its contract there names it among what it calls.
    pub(super) fn may<T: Payload>(&self, gate: &Gate) -> Result<(), Problem> {
        let (blueprint, payload) = (gate.organism.blueprint(), T::qname());
        let calls = blueprint.party(self.0.name.as_str()).and_then(|party| match party {
            Party::Client(id) => blueprint.client(id).map(|client| &client.calls),
            Party::Listener(id) => blueprint.listener(id).map(|listener| &listener.calls),
        });
        if calls.is_some_and(|calls| calls.contains(&payload)) {
            return Ok(());
        }
        let detail = format!("{} may not call {payload}: add it to its 'calls' in organism.yaml", self.0.name);
        Err(Problem::forbidden(detail))
    }

    /// Whether a task is theirs.
    pub(super) fn sees(&self, inbox: &inbox::TaskInbox, task: &inbox::Task) -> bool {
        self.0.kind == Kind::Admin || inbox.concerns(task, &self.0.name)
    }

    /// Whether it may see to a mailbox.
    pub(super) fn may_see_to(&self, mailbox: &Name) -> Result<(), Problem> {
        match self.0.kind {
            Kind::Admin => Ok(()),
            Kind::Listener if self.0.name == *mailbox => Ok(()),
            Kind::Listener | Kind::Client => Err(Problem::forbidden("that mailbox is somebody else's")),
        }
    }
}
