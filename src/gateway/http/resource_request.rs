//! Requests about the job, the task or the session in their path.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{FromRequest, Path, Request};

use super::AppState;
use super::caller::Caller;
use super::request::Query;
use crate::gateway::problem::Problem;

/// A request about the thing that its path names: a job, a task, a session.
pub(super) struct ResourceRequest {
    pub(super) app: Arc<AppState>,
    pub(super) caller: Caller,
    pub(super) name: String,
    pub(super) request: Request,
}

impl FromRequest<Arc<AppState>> for ResourceRequest {
    type Rejection = Problem;

    async fn from_request(mut request: Request, app: &Arc<AppState>) -> Result<Self, Problem> {
        let caller: Caller = request.extract_parts_with_state(app).await?;
        let name = request.extract_parts::<Path<String>>().await;
        let Path(name) = name.map_err(|error| Problem::bad_request(error.body_text()))?;
        Ok(Self { app: app.clone(), caller, name, request })
    }
}

impl ResourceRequest {
    /// The request, which must have no query.
    pub(super) fn plain(self) -> Result<Self, Problem> {
        Query::of(&self.request, &[])?;
        Ok(self)
    }
}
