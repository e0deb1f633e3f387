//! Messages of clients, parsed at an entrance.

use systole_xml::ladder::{Canonical, Claims, Envelope, Raw, parse};
use systole_xml::schema::{self, Catalog};

use super::blueprint::{Blueprint, ClientId, Party};
use super::event::shown;
use super::faults;
use super::io::ReadMessage;
use crate::vocab::{Fault, ns};

/// Bytes of the label that a client may give a message: it is kept until the answer leaves.
pub(super) const LABEL: usize = 256;

/// Parses a client's message: its claims and its payload.
///
/// An entrance completes what the pump knows better than the client: an envelope may leave out `<meta>` or its
/// `<from>`, and a document may be a payload alone, if the client may call it or it is a request to the core. A root
/// without a namespace is the call that has its local name, as in what listeners write.
pub(super) fn read_message(
    raw: &Raw,
    client: ClientId,
    blueprint: &Blueprint,
    catalog: &Catalog,
) -> Result<ReadMessage, Fault> {
    let (id, client) = (client, blueprint.principal(client));
    let document = parse(raw, &blueprint.limits.xml).map_err(|error| faults::malformed(&error))?;
    let complete = |payload| schema::infer_namespace(payload, client.calls.iter(), catalog);
    let read = |claims, payload: Canonical| {
        let repaired = (!payload.repairs().is_empty()).then(|| shown(raw.bytes()));
        ReadMessage { claims, payload, repaired, proof: None }
    };
    if document.root().namespace() == ns::ENVELOPE && document.root().local() == "message" {
        let envelope = Envelope::open_entered(document);
        let envelope =
            envelope.map_err(|error| faults::envelope(&error, &client.name, client.calls.iter(), catalog))?;
        let (claims, payload) = envelope.into_parts();
        return Ok(read(claims, complete(payload)));
    }
    let payload = complete(document);
    if blueprint.may_call(Party::Client(id), payload.root()) || payload.root().namespace() == ns::META {
        Ok(read(Claims::default(), payload))
    } else {
        Err(faults::no_message(&payload, client, catalog))
    }
}
