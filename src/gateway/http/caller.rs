use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use systole_core::inbox;
use systole_core::vocab::Name;
use systole_xml::schema::Payload;

use super::Gate;
use super::door::Known;
use super::failures::Reason;
use crate::gateway::problem::Problem;
use crate::gateway::{Kind, Principal};

/// The principal that makes a request, as the door has found out by its token.
pub(crate) struct Caller(pub(in crate::gateway) Principal);

impl FromRequestParts<Arc<Gate>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gate: &Arc<Gate>) -> Result<Self, Problem> {
        match parts.extensions.get::<Arc<Known>>() {
            Some(known) => Ok(Self(known.principal.clone())),
            None => {
                gate.edge.failures.count(Reason::Missing);
                Err(Problem::unauthorized())
            }
        }
    }
}

impl Caller {
    /// A mailbox that it may see to.
    pub(super) fn mailbox(&self, gate: &Gate, name: &str) -> Result<Name, Problem> {
        let name = Name::parse(name).map_err(|error| Problem::not_found(error.to_string()))?;
        if !self.sees_to(&name) {
            return Err(Problem::forbidden("that mailbox is somebody else's"));
        }
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
        let party = blueprint.party(self.0.name.as_str());
        if party.is_some_and(|party| blueprint.may_call(party, &payload)) {
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
    pub(super) fn sees_to(&self, mailbox: &Name) -> bool {
        match self.0.kind {
            Kind::Admin => true,
            Kind::Listener => self.0.name == *mailbox,
            Kind::Client => false,
        }
    }
}
