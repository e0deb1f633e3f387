//! What a handler wrote as bytes, read as emissions.

use systole_xml::ladder::{Canonical, Claim, Envelope, Raw, climb_fragment};
use systole_xml::schema;
use systole_xml::schema::Draft;

use super::blueprint::ListenerId;
use super::event::EventKind;
use super::faults;
use super::io::{Emission, EmissionKind, Outcome};
use super::key::ThreadKey;
use super::machine::Core;
use crate::vocab::{Fault, Name, ThreadId, ns};

impl Core {
    /// The emissions of a handler, out of what it returned or wrote.
    pub(super) fn read(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        outcome: Outcome,
    ) -> Result<Vec<Emission>, Fault> {
        match outcome {
            Outcome::Emitted(emissions) => Ok(emissions),
            Outcome::Wrote(raw) => self.read_fragment(key, listener, &raw),
            Outcome::Failed(_) | Outcome::Panicked | Outcome::Discarded | Outcome::Aborted => Ok(Vec::new()),
        }
    }

    fn read_fragment(&mut self, key: ThreadKey, listener: ListenerId, raw: &Raw) -> Result<Vec<Emission>, Fault> {
        if raw.bytes().trim_ascii().is_empty() {
            return Ok(Vec::new());
        }
        let limits = &self.blueprint.limits;
        let contract = self.blueprint.contract(listener);
        let sent = || schema::vocabulary(contract.replies.iter().chain(&contract.calls), &self.catalog);
        let fragment = climb_fragment(raw, &limits.xml, sent).map_err(|error| faults::malformed(&error))?;
        if !fragment.repairs.is_empty() {
            let by = self.blueprint.contract(listener).name.clone();
            self.event(key, || EventKind::Repaired { by, repairs: fragment.repairs });
        }
        Ok(fragment.elements.into_iter().map(|element| self.unwrap(key, listener, element)).collect())
    }

    /// A top-level `<message>` counts for its `to`, its `thread` and its payload only.
    fn unwrap(&mut self, key: ThreadKey, listener: ListenerId, element: Canonical) -> Emission {
        let kind = EmissionKind::Inferred;
        if element.root().namespace() != ns::ENVELOPE || element.root().local() != "message" {
            return Emission { kind, to: None, thread: None, payload: Draft::Canonical(element) };
        }
        let (claims, payload) = match Envelope::open_emitted(element) {
            Ok(envelope) => envelope.into_parts(),
            Err(error) => return Emission { kind, to: None, thread: None, payload: Draft::NoEnvelope(error) },
        };
        let own = &self.blueprint.contract(listener).name;
        let own_id = self.threads.get(key).map(|thread| thread.id);
        let is_own = |id: &ThreadId| {
            let child = self.spawned.get(id).and_then(|&child| self.threads.get(child));
            child.is_some_and(|child| child.parent == Some(key))
        };
        let named = claims.thread.as_deref().and_then(|thread| thread.parse::<ThreadId>().ok());
        let thread = named.filter(is_own);
        let foreign = claims.thread.filter(|_| thread.is_none() && (named.is_none() || named != own_id));
        let pretended = Some(claims.from).filter(|from| !from.is_empty() && **from != *own.as_str());
        if pretended.is_some() || foreign.is_some() {
            let by = own.clone();
            let text = |claim: Option<Claim>| claim.map(|claim| claim.to_string());
            self.event(key, || EventKind::Forged { by, claimed: text(pretended), thread: text(foreign) });
        }
        // A text that is no name is nobody's name: routed like any other unknown one.
        let to = claims.to.map(|to| Name::parse(&to).unwrap_or_else(|_| Name::root()));
        Emission { kind, to, thread, payload: Draft::Canonical(payload) }
    }
}
