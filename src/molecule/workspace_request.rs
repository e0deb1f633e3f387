//! The beginning of most calls: the caller, the workspace, the body.

use std::collections::HashMap;
use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{FromRequest, Path, Query, Request};
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use systole_core::vocab::Name;

use super::parties::Listener;
use super::{Facade, rpc};
use crate::gateway::facade::{AppState, Authenticated, Caller, Problem, parse_json};

/// Headers by which a workspace names itself, besides its token.
const CLAIMS: [&str; 2] = ["x-source-workspace-id", "x-workspace-id"];

/// A request with a token.
pub(super) struct WorkspaceRequest {
    pub(super) app: Arc<AppState>,
    pub(super) facade: Arc<Facade>,
    caller: Caller,
    pub(super) known: Arc<Authenticated>,
    /// The id in the path.
    pub(super) id: String,
    request: Request,
}

impl FromRequest<Arc<AppState>> for WorkspaceRequest {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &Arc<AppState>) -> Result<Self, Problem> {
        let caller: Caller = request.extract_parts_with_state(app).await?;
        let known = request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::stopping)?;
        let id = request.extract_parts::<Path<HashMap<String, String>>>().await;
        let id = id.map(|Path(mut path)| path.remove("id").unwrap_or_default());
        let id = id.map_err(|error| Problem::bad_request(error.body_text()))?;
        let facade = request.extensions().get::<Arc<Facade>>().cloned().ok_or_else(Problem::stopping)?;
        Ok(Self { app: app.clone(), facade, caller, known, id, request })
    }
}

impl WorkspaceRequest {
    /// The workspace that a text names, if it is the caller's own.
    pub(super) fn own(&self, id: &str) -> Result<Listener, Problem> {
        let who = self.caller.who();
        let found = self.facade.parties.find(id).filter(|found| found.takes && self.app.is_remote(&found.name));
        match found {
            Some(found) if who.is_admin() || self.speaks_as(found) => Ok(found.clone()),
            None if who.is_admin() => {
                Err(Problem::not_found(format!("'{id}' is no workspace: no remote listener that accepts text")))
            }
            _ => Err(Problem::forbidden("that workspace belongs to another principal")),
        }
    }

    /// The workspace of the path.
    pub(super) fn workspace(&self) -> Result<Listener, Problem> {
        self.own(&self.id)
    }

    /// The workspace of the path, if the caller speaks for it: an admin only reads.
    pub(super) fn acting(&self) -> Result<Listener, Problem> {
        let own = self.workspace()?;
        let detail = "an admin reads the rows of a workspace: its own token answers them";
        if self.speaks_as(&own) { Ok(own) } else { Err(Problem::forbidden(detail)) }
    }

    /// The caller as a workspace.
    pub(super) fn speaker(&self) -> Option<Listener> {
        let found = self.facade.parties.find(self.caller.who().name.as_str());
        found.filter(|found| found.takes && self.speaks_as(found)).cloned()
    }

    /// Checks whether the caller is the agent of a workspace that the organism no longer has.
    pub(super) fn is_removed(&self) -> bool {
        let own = self.speaker().filter(|own| self.app.is_remote(&own.name));
        self.caller.who().is_listener() && own.is_none()
    }

    /// Notes a call of a workspace, if it is the caller.
    pub(super) fn note_call(&self, own: &Listener) {
        if self.speaks_as(own) {
            self.facade.last_calls.note(&self.app, &own.name);
        }
    }

    /// The caller as a person.
    pub(super) fn person(&self) -> Option<Name> {
        let who = self.caller.who();
        Some(who.name.clone()).filter(|name| who.is_client() && self.facade.parties.is_person(name))
    }

    /// Checks that the claims of the headers name that workspace.
    pub(super) fn is_claimed(&self, by: &Listener) -> Result<(), Problem> {
        let claims = CLAIMS.iter().flat_map(|header| self.headers().get_all(*header));
        match claims.map(|claim| claim.to_str().unwrap_or_default()).find(|claim| !by.is_called(claim)) {
            Some(other) => Err(Problem::forbidden(format!("'{other}' is not the workspace of this token"))),
            None => Ok(()),
        }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// Parses the query, each parameter once; unknown ones are ignored, as the platform does.
    pub(super) fn query(&self) -> Result<HashMap<String, String>, Problem> {
        let read = Query::<Vec<(String, String)>>::try_from_uri(self.request.uri());
        let Query(pairs) = read.map_err(|error| Problem::bad_request(error.body_text()))?;
        let mut query = HashMap::new();
        for (key, value) in pairs {
            if query.insert(key.clone(), value).is_some() {
                return Err(Problem::bad_request(format!("the parameter '{key}' is repeated: send it once")));
            }
        }
        Ok(query)
    }

    /// Parses the body; also returns the rest of the request.
    pub(super) async fn body<T: DeserializeOwned>(self) -> Result<(RequestParts, T), Problem> {
        let Self { app, facade, known, request, .. } = self;
        let body = read(&app, request).await?;
        Ok((RequestParts { app, facade, known }, body))
    }

    /// Parses the body as JSON-RPC; also returns the rest of the request.
    pub(super) async fn json_rpc_body(self) -> Result<(RequestParts, Value), Problem> {
        let Self { app, facade, known, request, .. } = self;
        let bytes = app.body(request).await?;
        Ok((RequestParts { app, facade, known }, rpc::parse(&bytes)?))
    }

    fn speaks_as(&self, listener: &Listener) -> bool {
        let who = self.caller.who();
        who.is_listener() && who.name == listener.name
    }
}

/// The rest of a request whose body was read.
pub(super) struct RequestParts {
    pub(super) app: Arc<AppState>,
    pub(super) facade: Arc<Facade>,
    pub(super) known: Arc<Authenticated>,
}

/// Parses a JSON document; unknown fields are ignored, as the platform does.
pub(super) async fn read<T: DeserializeOwned>(app: &AppState, request: Request) -> Result<T, Problem> {
    let bytes = app.body(request).await?;
    parse_json(&bytes).map_err(|error| Problem::bad_request(format!("the body: {error}")))
}
