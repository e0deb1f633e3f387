//! The protocol as a stream of lines: of a host in this process, or of one that comes through the socket of operators.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper_util::rt::TokioIo;
use rmcp::model::{GetExtensions, JsonRpcMessage};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use systole_core::vocab::Name;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::Mutex;

use super::Server;
use super::handler::{Handler, StreamClient, not_served};
use super::stdio::{LINE, Line, LineStream, Lines, refusal, write};
use super::written::{Written, bare, exact};
use crate::gateway::facade::{AppState, Problem};
use crate::gateway::upgrade_operator;

/// The path at the socket of operators, and the protocol of its connections afterwards.
const PATH: &str = "/v1/mcp";
const PROTOCOL: &str = "systole-mcp";
/// Time for the last answers at the end of the organism.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Reason why a stream is not served.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The organism serves no hosts.
    #[error("the organism serves no hosts of MCP: add mcp: {{ as: CLIENT }} to organism.yaml")]
    NotServed,
    /// The settings name no client.
    #[error("no client is named: write mcp: {{ as: CLIENT }} in organism.yaml, or --as CLIENT")]
    NoClient,
    /// The client can't be served.
    #[error("{0}")]
    Client(String),
}

systole_core::vocab::debug_is_display!(StreamError);

impl Server {
    /// Serves a stream of lines for a client, by default that of the settings, until the stream or the organism ends. `session` is
    /// an id that the host's next stream has, too: a request that is sent again is the same then.
    ///
    /// # Errors
    /// [`StreamError`] before anything is read.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        app: &Arc<AppState>,
        client: Option<Name>,
        session: &str,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Result<(), StreamError> {
        let client = self.client(app, client)?;
        let (read, write) = tokio::io::split(stream);
        let transport = Wire { lines: Lines::new(read), write: Arc::new(Mutex::new(write)) };
        let stream = Some(StreamClient { name: client, session: session.into() });
        let handler = Handler { face: self.face(app).clone(), stream };
        let stopping = app.stopping();
        tokio::pin!(stopping);
        let running = tokio::select! {
            running = serve_server(handler, transport) => running,
            () = &mut stopping => return Ok(()),
        };
        // A stream that ends before its first request is none.
        let Ok(running) = running else { return Ok(()) };
        let end = running.cancellation_token();
        let served = running.waiting();
        tokio::pin!(served);
        tokio::select! {
            _ = &mut served => {}
            () = stopping => {
                tokio::time::sleep(LAST_ANSWERS).await;
                // Calls that go on in the next process are never answered here.
                end.cancel();
            }
        }
        Ok(())
    }

    fn client(&self, app: &AppState, client: Option<Name>) -> Result<Name, StreamError> {
        let client = client.or_else(|| self.settings.client.clone()).ok_or(StreamError::NoClient)?;
        match app.serves(&client) {
            true => Ok(client),
            false => Err(StreamError::Client(not_served(app, &client))),
        }
    }

    /// The call at the socket of operators that becomes a stream.
    pub(crate) fn routes(self: &Arc<Self>, app: &Arc<AppState>) -> Router {
        let (server, app) = (self.clone(), app.clone());
        Router::new().route(PATH, post(move |request| upgrade(server.clone(), app.clone(), request)))
    }
}

async fn upgrade(server: Arc<Server>, app: Arc<AppState>, mut request: Request) -> Result<Response, Problem> {
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map_err(|error| Problem::bad_request(error.body_text()))?.0;
    let value = |key: &str| query.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let client = value("as").map(|name| Name::parse(&name)).transpose();
    let client = client.map_err(|error| Problem::bad_request(format!("'as': {error}")))?;
    let client = server.client(&app, client).map_err(|error| Problem::forbidden(error.to_string()))?;
    let session = value("session").unwrap_or_default();
    if request.headers().get(header::UPGRADE).is_none_or(|wanted| wanted != PROTOCOL) {
        return Err(Problem::bad_request(format!("upgrade the connection to {PROTOCOL}, as `systole mcp` does")));
    }
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgraded.await else { return };
        // Its client was checked.
        let _ = server.stream(&app, Some(client), &session, TokioIo::new(upgraded)).await;
    });
    let head = [(header::CONNECTION, "upgrade"), (header::UPGRADE, PROTOCOL)];
    Ok((StatusCode::SWITCHING_PROTOCOLS, head, Body::empty()).into_response())
}

/// The lines of a relay, which lets messages of the protocol alone through. A call has its arguments as they were written.
struct Wire<S> {
    lines: Lines<ReadHalf<S>>,
    write: Arc<Mutex<WriteHalf<S>>>,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Transport<RoleServer> for Wire<S> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to = self.write.clone();
        async move {
            let mut line = exact(serde_json::to_vec(&item).map_err(io::Error::other)?.into());
            if line.len() > LINE {
                let Some(refused) = too_long(&item) else {
                    tracing::warn!(
                        bytes = line.len(),
                        "a notification or a request to a host is left out: it has more than {LINE} bytes"
                    );
                    return Ok(());
                };
                line = refused.into();
            }
            write(&mut *to.lock().await, &line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let line = match self.lines.next().await {
                Ok(Some(Line::Whole(line))) => line,
                // The relay has refused it.
                Ok(Some(Line::TooLong(_))) => continue,
                Ok(None) | Err(_) => return None,
            };
            let read = |line: &[u8]| serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line).ok();
            let Some(mut message) = read(line).or_else(|| read(&bare(line)?)) else { continue };
            if let (JsonRpcMessage::Request(request), Some(written)) = (&mut message, Written::of(line)) {
                request.request.extensions_mut().insert(written);
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.shutdown().await
    }
}

/// The answer instead of one that is longer than a line may be; none if no request of the host is answered.
fn too_long(item: &TxJsonRpcMessage<RoleServer>) -> Option<Vec<u8>> {
    let JsonRpcMessage::Response(response) = item else { return None };
    let id = serde_json::to_string(&response.id).ok()?;
    let why = format!(
        "the answer has more than {LINE} bytes, the most that a line has: the call has taken effect; ask for less, or over HTTP"
    );
    Some(refusal(&id, -32603, &why))
}

/// Opens a stream to the running organism that has this journal, for a client, by default that of its settings.
///
/// # Errors
/// The system's error if none runs; `InvalidInput` with a reason if it refuses the client.
pub async fn open_stream(journal: &Path, client: Option<&Name>, session: &str) -> io::Result<LineStream> {
    let client = client.map(|name| format!("&as={name}")).unwrap_or_default();
    let stream = upgrade_operator(journal, &format!("{PATH}?session={session}{client}"), PROTOCOL).await?;
    Ok(LineStream::new(stream))
}
