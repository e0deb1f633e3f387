//! `POST /v1/listeners`: registers a remote agent, with the contract that it assumes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use systole_core::core::{Contract, Party};
use systole_core::journal::Registration as Registered;
use systole_core::mailbox::MailboxInput;
use systole_core::vocab::{Name, QName, Time};

use super::caller::Caller;
use super::request::{Query, json};
use super::{AppState, view};
use crate::gateway::PrincipalKind;
use crate::gateway::problem::Problem;
use crate::gateway::push::may_register;
use crate::settings::Mode;

/// The registration of a remote listener.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Registration {
    name: String,
    #[schemars(schema_with = "modes")]
    mode: String,
    #[serde(default, deserialize_with = "claimed")]
    #[schemars(with = "Option<Claimed>")]
    contract: Option<Claimed>,
    /// The URL for mode push, instead of the declared one.
    url: Option<String>,
}

fn modes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["poll", "stream", "push"] })
}

/// A registered listener.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Registered")]
pub(super) struct RegisteredListener {
    name: String,
    #[schemars(schema_with = "modes")]
    mode: String,
    /// The path of its mailbox.
    mailbox: String,
    token: String,
}

/// Parses a contract from an object; serde alone would take an array, too.
fn claimed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Claimed>, D::Error> {
    let object = Option::<Map<String, Value>>::deserialize(deserializer)?;
    object.map(|object| serde_json::from_value(object.into()).map_err(D::Error::custom)).transpose()
}

/// The contract that an agent assumes; a part that it leaves out agrees with any contract.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Contract")]
struct Claimed {
    /// Payloads that it accepts: {namespace}local.
    accepts: Option<Vec<String>>,
    /// Payloads that it replies with: {namespace}local.
    replies: Option<Vec<String>>,
    /// Payloads that it calls others with: {namespace}local.
    calls: Option<Vec<String>>,
    /// Payloads that its calls return: {namespace}local.
    returns: Option<Vec<String>>,
}

pub(super) async fn register(
    State(app): State<Arc<AppState>>,
    Caller(principal): Caller,
    request: Request,
) -> Result<Response, Problem> {
    Query::of(&request, &[])?;
    let token = token(request.headers());
    let wanted: Registration = json(&app, request).await?;
    let unknown =
        || Problem::not_found(format!("the organism declares no remote listener '{}' for this token", wanted.name));
    let name = Name::parse(&wanted.name).map_err(|_| unknown())?;
    if principal.kind != PrincipalKind::Listener {
        return Err(Problem::forbidden("only a listener registers: make a token of that kind"));
    }
    // A listener of another token looks like one that is not declared.
    let declared = app.mailboxes.mode(&name).filter(|_| principal.name == name).ok_or_else(unknown)?;
    let Some(Party::Listener(id)) = app.organism.blueprint().party(name.as_str()) else { return Err(unknown()) };
    if let (Some(claimed), Some(contract)) = (&wanted.contract, app.organism.blueprint().listener(id)) {
        compare(claimed, contract)?;
    }
    let registration = place(declared, &wanted.mode, wanted.url.as_deref(), app.mailboxes.now())?;
    let mode = registration.mode.clone();
    app.mailboxes.act(MailboxInput::Register { name: name.clone(), registration })?.durable().await?;
    let mailbox = format!("/v1/mailboxes/{name}");
    // The token that was shown: it stays the only one of the listener.
    let value = RegisteredListener { name: name.to_string(), mode: mode.to_string(), mailbox, token };
    Ok(view::document(StatusCode::CREATED, &value))
}

/// The mode and the URL of a listener, within its declaration.
pub(crate) fn place(declared: &Mode, mode: &str, url: Option<&str>, at: Time) -> Result<Registered, Problem> {
    let pulled = |mode: &str| Ok(Registered { at, mode: mode.into(), url: None, declared: None });
    match (mode, declared, url) {
        ("push", Mode::Push(push), None) if push.url.is_none() => {
            Err(Problem::bad_request("this listener is declared with 'url: reported': say its url"))
        }
        ("push", Mode::Push(push), url) => {
            let bad = |problem| Problem::bad_request(format!("the url {problem}"));
            url.map_or(Ok(()), |url| may_register(push, url)).map_err(bad)?;
            let declared = Some(push.declared().into());
            Ok(Registered { at, mode: "push".into(), url: url.map(Into::into), declared })
        }
        ("poll", Mode::Poll | Mode::Stream, None) => pulled("poll"),
        ("stream", Mode::Poll | Mode::Stream, None) => pulled("stream"),
        ("poll" | "stream", Mode::Poll | Mode::Stream, Some(_)) => {
            Err(Problem::bad_request("'url' is for 'mode: push' alone"))
        }
        ("poll" | "stream" | "push", declared, _) => {
            Err(Problem::bad_request(format!("this listener is declared with 'mode: {}'", declared.as_str())))
        }
        _ => Err(Problem::bad_request("'mode' has to be poll, stream or push")),
    }
}

/// Compares the assumed contract with that of the configuration, which holds: an agent with another one would fail
/// later, message by message.
fn compare(claimed: &Claimed, contract: &Contract) -> Result<(), Problem> {
    let lists = [
        ("accepts", &claimed.accepts, &contract.accepts),
        ("replies", &claimed.replies, &contract.replies),
        ("calls", &claimed.calls, &contract.calls),
        ("returns", &claimed.returns, &contract.returns),
    ];
    for (key, claimed, declared) in lists {
        let Some(claimed) = claimed else { continue };
        let strange = claimed.iter().find(|name| !declared.iter().any(|known| known.to_string() == **name));
        let missing = declared.iter().map(QName::to_string).find(|name| !claimed.contains(name));
        let detail = match (strange, missing) {
            (Some(strange), _) => format!("contract.{key}: {strange} is not declared for this listener"),
            (None, Some(missing)) => format!("contract.{key}: {missing} is declared, but missing here"),
            (None, None) => continue,
        };
        let problem = Problem::bad_request(detail);
        let declared: Vec<_> = declared.iter().map(QName::to_string).collect();
        return Err(problem.with("place", format!("contract.{key}")).with("declared", declared));
    }
    Ok(())
}

fn token(headers: &HeaderMap) -> String {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    shown.split_once(' ').map(|(_, token)| token.trim().to_owned()).unwrap_or_default()
}
