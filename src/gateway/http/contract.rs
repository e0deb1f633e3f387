//! `/v1/contract`: what a client may call, for organisms that call this one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use systole_core::core::{OrganismVersion, Routing, Version};
use systole_core::protocol::boot_qname;
use systole_core::vocab::{Name, ns};

use super::caller::Caller;
use super::messages::may_send;
use super::request::Query;
use super::{AppState, view};
use crate::gateway::problem::Problem;
use crate::listeners::organism::OrganismContract;
use crate::runtime::Organism;

/// The contracts of clients in the present version of the organism, made when they are asked for.
#[derive(Default)]
pub(in crate::gateway) struct Contracts(Mutex<BTreeMap<Name, Arc<Told>>>);

/// A contract and its entity tag (RFC 9110, section 8.8.3).
struct Told {
    version: Version,
    contract: OrganismContract,
    tag: String,
}

impl Contracts {
    fn of(&self, organism: &Organism, client: &Name) -> Arc<Told> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let present = organism.shared.present();
        let version = present.blueprint.version();
        if let Some(told) = known.get(client).filter(|told| told.version == version) {
            return told.clone();
        }
        let contract = contract(&present, client);
        let told = Arc::new(Told { version, tag: format!("\"{}\"", contract.hash()), contract });
        known.insert(client.clone(), told.clone());
        told
    }
}

/// The contract of a client: the payloads that it may call, with their schemas and those of their replies.
fn contract(present: &OrganismVersion, client: &Name) -> OrganismContract {
    let OrganismVersion { blueprint, catalog, .. } = present;
    let mut told = OrganismContract::new(&blueprint.organism, client);
    let Some(party) = blueprint.party(client.as_str()) else { return told };
    let is_own = |namespace: &str| matches!(namespace, ns::CORE | ns::META | ns::ENVELOPE);
    for payload in blueprint.calls(party).iter().filter(|payload| !is_own(payload.namespace())) {
        for listener in blueprint.accepting(payload).iter().filter_map(|id| blueprint.listener(*id)) {
            let replies: Vec<_> = listener.replies.iter().filter(|reply| **reply != boot_qname()).cloned().collect();
            let addressed = listener.routing == Routing::Addressed;
            told.add(payload, (&listener.name, addressed), &listener.description, &replies);
            let declared = std::iter::once(payload).chain(&replies).filter_map(|payload| catalog.get(payload));
            declared.for_each(|schema| told.declare(schema));
        }
    }
    told
}

/// `GET /v1/contract`
pub(super) async fn show(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    may_send(&app, &principal)?;
    let told = app.contracts.of(&app.organism, &principal.name);
    let contract = told.contract.clone();
    let mut response = view::long_document(&app, move || contract).await?;
    let tag = HeaderValue::try_from(&told.tag).expect("quotes and hexadecimal digits");
    response.headers_mut().insert(ETAG, tag);
    Ok(response)
}

/// The contracts of which a client holds to one: the entity tags in the header `If-Match` (RFC 9110, section 13.1.1).
pub(super) struct HeldTo(Vec<String>);

impl HeldTo {
    /// Reads the header; `None` if there is none.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut tags = Vec::new();
        for value in headers.get_all(IF_MATCH) {
            for tag in value.to_str().unwrap_or_default().split(',').map(str::trim) {
                let quoted = tag.strip_prefix("W/").unwrap_or(tag);
                if tag != "*" && !(quoted.len() >= 2 && quoted.starts_with('"') && quoted.ends_with('"')) {
                    return Err(Problem::bad_request(
                        "'If-Match' is the ETag of GET /v1/contract, with its quotes, or *",
                    ));
                }
                tags.push(tag.to_owned());
            }
        }
        Ok(Some(Self(tags)).filter(|held| !held.0.is_empty()))
    }

    /// Checks that the contract of the client is one of them.
    pub(super) fn check(&self, app: &AppState, client: &Name) -> Result<(), Problem> {
        let told = app.contracts.of(&app.organism, client);
        if self.0.iter().any(|tag| tag == "*" || *tag == told.tag) {
            return Ok(());
        }
        let detail = format!(
            "the contract of {client} is {}, and not the one that If-Match names: read GET /v1/contract again",
            told.tag
        );
        Err(Problem::new(StatusCode::PRECONDITION_FAILED, "contract", "The contract is another one", detail))
    }
}
