//! Requests about a mailbox.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{FromRequest, Path, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use systole_core::vocab::{MessageId, Name};

use super::AppState;
use super::authenticate::Authenticated;
use super::caller::Caller;
use super::request::{Query, json, message_id};
use crate::gateway::PrincipalKind;
use crate::gateway::problem::Problem;

/// A request about a mailbox that its caller may access.
pub(super) struct MailboxRequest {
    pub(super) app: Arc<AppState>,
    pub(super) mailbox: Name,
    pub(super) known: Arc<Authenticated>,
    /// True if the caller is the listener itself.
    pub(super) reader: bool,
    /// The message in the path.
    id: Option<String>,
    pub(super) request: Request,
}

/// The parameters of the path.
#[derive(Deserialize)]
struct Place {
    mailbox: String,
    id: Option<String>,
}

impl FromRequest<Arc<AppState>> for MailboxRequest {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &Arc<AppState>) -> Result<Self, Problem> {
        let caller: Caller = request.extract_parts_with_state(app).await?;
        let known = request.extensions().get::<Arc<Authenticated>>().cloned().ok_or_else(Problem::unauthorized)?;
        let place = request.extract_parts::<Path<Place>>().await;
        let Path(Place { mailbox, id }) = place.map_err(|error| Problem::bad_request(error.body_text()))?;
        let mailbox = caller.mailbox(app, &mailbox)?;
        let reader = caller.0.kind == PrincipalKind::Listener;
        Ok(Self { app: app.clone(), mailbox, known, reader, id, request })
    }
}

impl MailboxRequest {
    /// Parses the query, which may have these parameters.
    pub(super) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        Query::of(&self.request, known)
    }

    /// The admin who calls; none if the listener itself does.
    pub(super) fn operator(&self) -> Option<Name> {
        (!self.reader).then(|| self.known.principal.name.clone())
    }

    /// The message that the request is about.
    pub(super) fn message(&self) -> Result<MessageId, Problem> {
        message_id(self.id.as_deref().unwrap_or_default())
    }

    /// Parses the body of a request without a query; drops the rest.
    pub(super) async fn said<T: DeserializeOwned>(self) -> Result<(Arc<AppState>, Name, T), Problem> {
        self.query(&[])?;
        let said = json(&self.app, self.request).await?;
        Ok((self.app, self.mailbox, said))
    }
}
