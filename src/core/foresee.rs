//! What an entrance can say of a message before the pump takes it: what is refused in any case need not be kept first.

use super::admit::{LABEL, read_message};
use super::blueprint::Blueprint;
use super::contract::Client;
use super::faults;
use super::judge::route;
use super::meta::is_for_threads;
use crate::ladder::{Canonical, Claims, Raw};
use crate::schema::Validator;
use crate::vocab::{Fault, Name, ns};

/// A message of a client that the pump will let in, unless it is full.
pub(crate) struct Foreseen {
    /// Whom it names.
    pub(crate) to: Option<Name>,
    /// What it says of itself.
    pub(crate) claims: Claims,
    /// What it carries.
    pub(crate) payload: Canonical,
}

/// Looks at the bytes of a message as the core will. What is asked of the core itself is left to it.
pub(crate) fn foresee(
    raw: &Raw,
    client: &Client,
    blueprint: &Blueprint,
    validator: &mut Validator,
) -> Result<Foreseen, Fault> {
    let (mut claims, payload) = read_message(raw, client, &blueprint.limits.xml, validator.catalog())?;
    claims.traceparent = claims.traceparent.filter(|text| text.len() <= LABEL);
    if is_for_threads(payload.root()) {
        return Err(faults::route(payload.root()));
    }
    let to = claims.to.as_deref().map(Name::parse).transpose().map_err(|_| faults::route(payload.root()))?;
    if payload.root().namespace() != ns::META {
        let near = |_| faults::with_near(faults::route(payload.root()), payload.root(), &client.calls);
        route(blueprint, payload.root(), to.as_ref(), &client.calls).map_err(near)?;
        let proof = validator.validate(payload.clone());
        proof.map_err(|error| faults::payload(payload.root(), &error, validator.catalog()))?;
    }
    Ok(Foreseen { to, claims, payload })
}
