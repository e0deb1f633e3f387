//! Streamable HTTP at `/mcp`: requests that the gateway has authenticated go to the service of the crate `rmcp`, each with a
//! handler of its own. A session belongs to the principal that began it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Collected, Full};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use systole_core::vocab::Name;
use url::Url;

use super::handler::{Handler, admit};
use super::stdio::{self, id_in};
use super::written::{Message, Written, bare, exact, flaw};
use super::{Face, Server};
use crate::gateway::facade::{AppState, Call, Caller, Problem, refusal, schema};

/// Most sessions of one principal.
const SESSIONS: usize = 64;
/// Time without a request after which a session is over.
const IDLE: Duration = Duration::from_secs(3600);
/// Time for the last answers at the end of the organism.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// The media type of bodies.
const JSON: &[u8] = b"application/json";
/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// The side of a running organism that hosts reach over HTTP.
pub(super) struct Http {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    /// The principals of sessions.
    owners: Mutex<HashMap<String, Name>>,
}

/// The calls of the protocol.
pub(super) fn calls() -> Vec<Call> {
    const DOCS: &str = "The messages of the protocol: docs/mcp.md.";
    let object = |_: &mut _| schema(json!({ "type": "object" }));
    let refuses = |call: Call| call.refuses(&[403, 404]);
    vec![
        refuses(
            Call::post("/mcp", serve)
                .about("mcp", "Send a message of the Model Context Protocol.")
                .takes_json(object)
                .answers_json(DOCS, object),
        ),
        refuses(Call::get("/mcp", serve).about("mcp", "The stream of a session, as server-sent events.")),
        refuses(Call::delete("/mcp", serve).about("mcp", "End a session.")),
    ]
}

async fn serve(
    State(app): State<Arc<AppState>>,
    Extension(server): Extension<Arc<Server>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let principal = caller.who();
    let face = server.face(&app);
    from_here(request.headers(), &app, &face.settings.origins)?;
    admit(&app, &principal.name, principal.kind).map_err(Problem::forbidden)?;
    let http = server.http.get_or_init(|| Http::new(face.clone()));
    http.answer(&app, &principal.name, request).await
}

impl Http {
    fn new(face: Arc<Face>) -> Self {
        let mut sessions = SessionConfig::default();
        sessions.keep_alive = Some(IDLE);
        let mut manager = LocalSessionManager::default();
        manager.session_config = sessions;
        let manager = Arc::new(manager);
        let most = face.app.organism().blueprint().limits.xml.message_bytes;
        // The origin and the host are checked before, with an answer that says what to do.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_json_response(true)
            .with_max_request_body_bytes(most.saturating_add(1));
        let (end, app) = (config.cancellation_token.clone(), face.app.clone());
        tokio::spawn(async move {
            app.stopping().await;
            tokio::time::sleep(LAST_ANSWERS).await;
            end.cancel();
        });
        let handler = Handler { face, stream: None };
        let service = StreamableHttpService::new(move || Ok(handler.clone()), manager.clone(), config);
        Self { service, manager, owners: Mutex::default() }
    }

    async fn answer(&self, app: &AppState, principal: &Name, request: Request) -> Result<Response, Problem> {
        let method = request.method().clone();
        let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match &session {
            Some(id) if self.owners().get(id).is_some_and(|owner| owner != principal) => return Err(no_session()),
            _ => {}
        }
        app.check_idempotency_key(request.headers())?;
        let (mut parts, body) = request.into_parts();
        let body = match method {
            Method::POST => app.body(Request::from_parts(parts.clone(), body)).await?,
            _ => bytes::Bytes::new(),
        };
        if method == Method::POST && session.is_none() && begins(&body) {
            self.has_room(principal).await?;
        }
        if let Some((code, why)) = flaw(&body).filter(|_| method == Method::POST) {
            return Ok(none_of_protocol(id_in(&body).unwrap_or("null"), code, &why));
        }
        if let Some(written) = Written::of(&body) {
            parts.extensions.insert(written);
        }
        let is_json = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(JSON));
        let mistake = |status| match status {
            StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => no_message(&body),
            _ => None,
        };
        let message = bare(&body).map_or_else(|| body.clone(), Into::into);
        let response = self.service.handle(Request::from_parts(parts, Full::new(message))).await;
        self.note(session.clone(), &method, principal, &response);
        let status = response.status();
        if !(status.is_client_error() || status.is_server_error()) {
            return Ok(as_kept(response).await);
        }
        if let Some((code, why)) = mistake(status) {
            return Ok(none_of_protocol("null", code, &why));
        }
        if let Some(id) = &session
            && status == StatusCode::NOT_FOUND
            && !self.manager.sessions.read().await.contains_key(id.as_str())
        {
            return Err(no_session());
        }
        let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        let (parts, body) = response.into_parts();
        let Ok(text) = body.collect().await.map(Collected::to_bytes);
        if is_json {
            let error = serde_json::from_slice::<serde_json::Value>(&text).unwrap_or_default();
            let reason = error["error"]["message"].as_str().unwrap_or_default().to_owned();
            return Ok(refusal(Response::from_parts(parts, Body::from(text)), &reason));
        }
        let title = status.canonical_reason().unwrap_or("The request can't be served");
        let mut detail = String::from_utf8_lossy(&text).into_owned();
        if detail.contains("Session") || detail.contains("Unsupported MCP-Protocol-Version") {
            detail += ": begin a session with initialize, or use revision 2026-07-28, which has none";
        }
        Err(Problem::new(status, "mcp", title, detail))
    }

    /// Notes the principal of a session that has begun, or its end.
    fn note<B>(&self, session: Option<String>, method: &Method, principal: &Name, response: &Response<B>) {
        match (session, response.headers().get(SESSION).and_then(|id| id.to_str().ok())) {
            (None, Some(new)) => drop(self.owners().insert(new.to_owned(), principal.clone())),
            (Some(id), _) if method == Method::DELETE && response.status().is_success() => {
                drop(self.owners().remove(&id))
            }
            _ => {}
        }
    }

    /// Checks that a principal may begin a session, and forgets those that are over.
    async fn has_room(&self, principal: &Name) -> Result<(), Problem> {
        let count = |owners: &HashMap<String, Name>| owners.values().filter(|owner| *owner == principal).count();
        if count(&self.owners()) < SESSIONS {
            return Ok(());
        }
        let open = self.manager.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|id, _| open.contains_key(id.as_str()));
        if count(&owners) < SESSIONS {
            return Ok(());
        }
        let detail = format!(
            "{principal} has {SESSIONS} sessions of MCP, the most allowed: end one with DELETE, or wait, since each ends {} s \
             after its last request; revision 2026-07-28 needs none",
            IDLE.as_secs()
        );
        Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "sessions", "Too many sessions", detail))
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Name>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response with the JSON of results as it was kept: a document, or a stream, each of whose frames is an event.
async fn as_kept<B>(response: Response<B>) -> Response
where
    B: http_body::Body<Data = bytes::Bytes, Error = Infallible> + Send + 'static,
{
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(JSON));
    let (mut parts, body) = response.into_parts();
    if is_json {
        let Ok(text) = body.collect().await.map(Collected::to_bytes);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::from(exact(text)));
    }
    let events = body.map_frame(|frame| match frame.into_data() {
        Ok(event) => Frame::data(exact(event)),
        Err(trailers) => trailers,
    });
    Response::from_parts(parts, Body::new(events))
}

/// Returns whether a body may begin a session.
fn begins(body: &[u8]) -> bool {
    match serde_json::from_slice::<Message<'_>>(body) {
        Ok(message) => message.method.as_deref() == Some("initialize"),
        // Such as one that has two methods.
        Err(_) => true,
    }
}

/// The answer to a body that is no message, or one with a flaw; `id` as JSON.
fn none_of_protocol(id: &str, code: i32, why: &str) -> Response {
    let head = [(header::CONTENT_TYPE, "application/json")];
    let response = (StatusCode::BAD_REQUEST, head, stdio::refusal(id, code, why)).into_response();
    refusal(response, why)
}

/// The code of JSON-RPC for a body that is no message, and the reason.
fn no_message(body: &[u8]) -> Option<(i32, String)> {
    let error = serde_json::from_slice::<ClientJsonRpcMessage>(body).err()?;
    if body.trim_ascii_start().starts_with(b"[") {
        return Some((-32600, "a body is one JSON-RPC object; batches are none of this revision".to_owned()));
    }
    Some(match error.is_data() {
        true => (-32600, format!("the message is none of the protocol: {error}")),
        false => (-32700, format!("the body is no JSON: {error}")),
    })
}

/// A session of another principal looks like one that never began.
fn no_session() -> Problem {
    Problem::not_found(
        "you have no such session: begin one with initialize, or use revision 2026-07-28, which has none",
    )
}

/// Checks that a page which calls is one of this machine, or of an origin that the settings list. A host of another name reaches
/// a gateway of this machine alone by a page that was made to resolve so (DNS rebinding).
///
/// # Errors
/// 403 with the key to set.
fn from_here(headers: &HeaderMap, app: &AppState, origins: &[String]) -> Result<(), Problem> {
    let is_here = |host: Option<&str>| {
        host.is_some_and(|host| {
            matches!(host.trim_start_matches('[').trim_end_matches(']'), "localhost" | "127.0.0.1" | "::1")
        })
    };
    let listed = |host: &str| {
        origins.iter().filter_map(|origin| Url::parse(origin).ok()).any(|origin| origin.host_str() == Some(host))
    };
    let text = |value: &HeaderValue| value.to_str().unwrap_or("?").to_owned();
    for origin in headers.get_all(header::ORIGIN).iter().map(text) {
        let url = Url::parse(&origin).ok();
        let is_local = url.as_ref().is_some_and(|url| is_here(url.host_str()));
        if !is_local && !origins.iter().any(|known| known.trim_end_matches('/') == origin) {
            let detail = format!(
                "pages of the origin '{}' may not call: add it to mcp: {{ origins: […] }} in organism.yaml",
                origin.escape_debug()
            );
            return Err(Problem::forbidden(detail));
        }
    }
    if let Some(host) = headers.get(header::HOST).map(text).filter(|_| app.listens_at().ip().is_loopback()) {
        let url = Url::parse(&format!("http://{host}/")).ok();
        let name = url.as_ref().and_then(Url::host_str);
        if !is_here(name) && !name.is_some_and(listed) {
            let detail = format!(
                "the gateway listens at this machine alone, and the request is for the host '{}': use its address, or add \
                 https://{} to mcp: {{ origins: […] }} in organism.yaml for a proxy of that name",
                host.escape_debug(),
                host.escape_debug()
            );
            return Err(Problem::forbidden(detail));
        }
    }
    Ok(())
}
