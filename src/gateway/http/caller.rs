//! The principal that makes a request, and its rights.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use systole_core::core::Party;
use systole_core::inbox;
use systole_core::question::Answerer;
use systole_core::vocab::Name;
use systole_xml::schema::Payload;

use super::AppState;
use super::authenticate::Authenticated;
use super::failures::Reason;
use crate::gateway::problem::Problem;
use crate::gateway::{Principal, PrincipalKind};

/// The principal that makes a request, as its token tells.
pub struct Caller(pub(in crate::gateway) Principal);

impl FromRequestParts<Arc<AppState>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<AppState>) -> Result<Self, Problem> {
        match parts.extensions.get::<Arc<Authenticated>>() {
            Some(known) => Ok(Self(known.principal.clone())),
            None => {
                app.edge.failures.count(Reason::Missing);
                Err(Problem::unauthorized())
            }
        }
    }
}

impl Caller {
    /// A mailbox that the principal may access.
    pub(super) fn mailbox(&self, app: &AppState, name: &str) -> Result<Name, Problem> {
        let name = Name::parse(name).map_err(|error| Problem::not_found(error.to_string()))?;
        if !self.sees_to(&name) {
            return Err(Problem::forbidden("that mailbox belongs to another principal"));
        }
        match app.mailboxes.mode(&name) {
            Some(_) => Ok(name),
            None => Err(Problem::not_found(format!("the organism has no remote listener '{name}'"))),
        }
    }

    /// The principal, as questions to people know it.
    pub(crate) fn answerer(&self) -> Result<Answerer, Problem> {
        let is_operator = match self.0.kind {
            PrincipalKind::Admin => true,
            PrincipalKind::Person => false,
            PrincipalKind::Client | PrincipalKind::Listener => {
                return Err(Problem::forbidden(
                    "questions are for people: make a token for one with `systole token new`",
                ));
            }
        };
        Ok(Answerer { name: self.0.name.clone(), is_operator })
    }

    /// The principal, as the inbox of a job knows it.
    pub(super) fn principal(&self) -> inbox::InboxPrincipal {
        inbox::InboxPrincipal::new(self.0.name.clone())
    }

    /// Checks whether the principal may do what a payload does in the pump: its contract must list the payload among
    /// its calls. A client that must sign does it by a signed message alone.
    pub(super) fn may<T: Payload>(&self, app: &AppState) -> Result<(), Problem> {
        let (blueprint, payload) = (app.organism.blueprint(), T::qname());
        let party = blueprint.party(self.0.name.as_str());
        if let Some(Party::Client(client)) = party
            && blueprint[client].signatures.is_some()
        {
            let detail = format!("{} must sign: send {payload} in a signed envelope to POST /v1/messages", self.0.name);
            return Err(Problem::forbidden(detail));
        }
        if party.is_some_and(|party| blueprint.may_call(party, &payload)) {
            return Ok(());
        }
        let detail = format!("{} may not call {payload}: add it to its 'calls' in organism.yaml", self.0.name);
        Err(Problem::forbidden(detail))
    }

    /// Checks whether a task concerns the principal.
    pub(super) fn sees(&self, inbox: &inbox::TaskInbox, task: &inbox::Task) -> bool {
        self.0.kind == PrincipalKind::Admin || inbox.concerns(task, &self.0.name)
    }

    /// Checks whether the principal may access a mailbox.
    pub(super) fn sees_to(&self, mailbox: &Name) -> bool {
        match self.0.kind {
            PrincipalKind::Admin => true,
            PrincipalKind::Listener => self.0.name == *mailbox,
            PrincipalKind::Client | PrincipalKind::Person => false,
        }
    }
}
