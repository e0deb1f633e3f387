//! The socket of operators: operations over HTTP at a Unix socket beside the journal, for commands on the same machine.
//!
//! A process that may open the socket acts as an operator: its mode is 0600 from before anybody can connect, and a peer of another user
//! than its owner or root is refused. It is there as long as its organism runs, whether that has a gateway or not.

use std::fs;
use std::future::pending;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use systole_core::question::Answerer;
use systole_core::vocab::Name;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::http::admin::{Look, Question, perform};
use super::http::drafts::{after, conversation, feed};
use super::http::questions::{Deed, act as perform_on_question, as_xml, wanted};
use super::http::reader::Reader;
use super::http::{document, parse_json};
use super::problem::Problem;
use crate::operations::Act;
use crate::remote::sse::Parser;
use crate::runtime::Organism;

/// Ending of the socket's name, behind that of the journal.
const ENDING: &str = ".socket";
/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest wait at the end for answers that are on their way.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Most bytes of an act, without an edit.
const ACT: usize = 1 << 20;
/// Most bytes of an answer that a command reads.
const ANSWER: usize = 64 << 20;
/// Longest path of a socket (`sun_path`, unix(7)).
const LONGEST: usize = 107;

/// The socket of a running organism; it is removed with this value.
#[derive(Debug)]
pub struct OperatorSocket {
    path: PathBuf,
    /// Device and number of the socket's file.
    file: Option<(u64, u64)>,
    end: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Returns the path of the socket that belongs to a journal.
pub fn socket_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(ENDING);
    name.into()
}

impl OperatorSocket {
    /// Serves the operations of an organism that has this journal open, on a thread of its own.
    ///
    /// # Errors
    /// The system's error if the socket can't be made; a path of more than 107 bytes can't be one.
    pub fn serve(journal: &Path, organism: &Arc<Organism>) -> io::Result<Self> {
        Self::serve_with(journal, organism, Router::new())
    }

    /// As [`serve`](Self::serve), with the calls of façades beside the operations.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub(crate) fn serve_with(journal: &Path, organism: &Arc<Organism>, others: Router) -> io::Result<Self> {
        let path = socket_path(journal);
        let listener = open(&path)?;
        let file = identity(&path);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, mut ended) = watch::channel(false);
        let router = others.merge(router(organism.clone()));
        let thread = std::thread::Builder::new().name("operators".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let listener = match UnixListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => return tracing::warn!(%error, "the socket of operators can't be served"),
                };
                let mut answering = JoinSet::new();
                tokio::select! {
                    () = accept(listener, router, &mut answering) => {}
                    _ = ended.wait_for(|ended| *ended) => {}
                }
                // Who ended the organism by an act learns that it was done.
                let answered = async { while answering.join_next().await.is_some() {} };
                let _ = tokio::time::timeout(LAST_ANSWERS, answered).await;
            });
            runtime.shutdown_background();
        })?;
        Ok(Self { path, file, end, thread: Some(thread) })
    }
}

impl Drop for OperatorSocket {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // A file that was put in its place is none of ours.
        if self.file.is_some() && identity(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Device and number of a file, without following a link.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Makes the socket. One that is there is left of a process that was killed: the journal is locked by this one.
fn open(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    if path.as_os_str().as_bytes().len() > LONGEST {
        let why = format!("{}: the path of a socket has {LONGEST} bytes at most", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
            if !is_trusted(found.uid()) && !rustix::process::geteuid().is_root() {
                let why = format!("{}: a socket of another user is in its place: remove it", path.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            fs::remove_file(path)?;
        }
        Ok(_) => {
            let why = format!("{}: a file that is no socket is in its place: remove it", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Err(_) => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file takes the mode of the socket. One that was set by the path could meet a link that came there meanwhile.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Returns whether a user is that of this process, or root.
fn is_trusted(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw() || uid == 0
}

async fn accept(listener: UnixListener, router: Router, answering: &mut JoinSet<()>) {
    loop {
        while answering.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Such as a lack of descriptors, which passes.
                tracing::warn!(%error, "a connection of an operator can't be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let may = stream.peer_cred().is_ok_and(|peer| is_trusted(peer.uid()));
        if !may {
            tracing::warn!("a connection of another user to the socket of operators is refused");
            continue;
        }
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        answering.spawn(async move {
            let mut connection = hyper::server::conn::http1::Builder::new();
            // One answer: a connection that waits for another request would keep the end.
            let connection = connection.keep_alive(false).serve_connection(TokioIo::new(stream), service);
            let _ = connection.with_upgrades().await;
        });
    }
}

fn router(organism: Arc<Organism>) -> Router {
    Router::new()
        .route("/v1/admin/acts", post(act).get(|s, r| looks_at(s, Look::Acts, r)))
        .route("/v1/admin/ask", post(ask))
        .route("/v1/admin/conversations", get(|s, r| looks_at(s, Look::Conversations, r)))
        .route("/v1/admin/conversations/{id}/threads", get(|s, p, r| look_of(s, Look::Threads, p, r)))
        .route("/v1/admin/conversations/{id}/draft", get(drafts))
        .route("/v1/admin/threads/{id}/messages", get(|s, p, r| look_of(s, Look::Messages, p, r)))
        .route("/v1/admin/messages/{id}", get(|s, p, r| look_of(s, Look::Message, p, r)))
        .route("/v1/admin/dead-letters", get(|s, r| looks_at(s, Look::DeadLetters, r)))
        .route("/v1/admin/mailboxes", get(|s, r| looks_at(s, Look::Mailboxes, r)))
        .route("/v1/admin/tasks", get(|s, r| looks_at(s, Look::Tasks, r)))
        .route("/v1/admin/listeners", get(|s, r| looks_at(s, Look::Listeners, r)))
        .route("/v1/admin/schedules", get(|s, r| looks_at(s, Look::Schedules, r)))
        .route("/v1/questions", get(questions))
        .route("/v1/questions/{id}", get(question))
        .route("/v1/questions/{id}/{act}", post(act_on_question))
        .route("/v1/admin/events", get(|s, r| looks_at(s, Look::Events, r)))
        .fallback(|| async { Problem::not_found("there is no such path: see docs/operate.md") })
        .with_state(organism)
}

async fn looks_at(State(organism): State<Arc<Organism>>, at: Look, request: Request) -> Result<Response, Problem> {
    at.at(&request)?.look(&organism, operator(), pending()).await
}

async fn look_of(
    organism: State<Arc<Organism>>,
    of: fn(String) -> Look,
    UrlPath(id): UrlPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    looks_at(organism, of(id), request).await
}

async fn drafts(
    State(organism): State<Arc<Organism>>,
    UrlPath(id): UrlPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    let drafts = organism.drafts(conversation(&id)?, after(&request)?).await;
    Ok(Reader::serve(None, None, |reader| feed(drafts, None, reader)))
}

async fn act(State(organism): State<Arc<Organism>>, request: Request) -> Result<Response, Problem> {
    // An edit is text in JSON, where each character may take several.
    let most = ACT + 6 * organism.blueprint().limits.xml.message_bytes;
    let body = read(request.into_body(), most).await.map_err(|error| Problem::bad_request(error.to_string()))?;
    let act: Act = parse_json(&body).map_err(|error| Problem::bad_request(error.to_string()))?;
    perform(&organism.operations(operator()), &act).await
}

async fn ask(State(organism): State<Arc<Organism>>, request: Request) -> Result<Response, Problem> {
    let question = Question::of(&request)?;
    let most = organism.blueprint().limits.xml.message_bytes;
    let body = read(request.into_body(), most).await.map_err(|error| Problem::bad_request(error.to_string()))?;
    question.ask(organism, operator(), body, None, None).await
}

async fn questions(State(organism): State<Arc<Organism>>, request: Request) -> Result<Response, Problem> {
    let (by, wanted) = (answerer(&request)?, wanted(&request, &[AS])?);
    let page = organism.questions(by).list(&wanted).await?;
    Ok(document(StatusCode::OK, &page))
}

async fn question(
    State(organism): State<Arc<Organism>>,
    UrlPath(id): UrlPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    let by = answerer(&request)?;
    drop(request);
    let record = organism.questions(by).look(&id).await?;
    Ok(document(StatusCode::OK, &record))
}

async fn act_on_question(
    State(organism): State<Arc<Organism>>,
    UrlPath((id, act)): UrlPath<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let by = answerer(&request)?;
    let most = organism.blueprint().limits.xml.message_bytes;
    let entry = read(request.into_body(), most).await.map_err(|error| Problem::bad_request(error.to_string()))?;
    let invalid = |error: serde_json::Error| Problem::bad_request(error.to_string());
    // A person's words begin like an object only if they are one.
    let is_json = entry.trim_ascii_start().starts_with(b"{") && matches!(act.as_str(), "answer" | "preview");
    let entry = if is_json { as_xml(&organism.questions(by.clone()), &id, &entry).await? } else { entry };
    let deed = match act.as_str() {
        "claim" => Deed::Claim(parse_json(&entry).map_err(invalid)?),
        "release" => Deed::Release,
        "answer" => Deed::Answer(entry),
        "preview" => Deed::Preview(entry),
        "decline" => Deed::Decline(parse_json(&entry).map_err(invalid)?),
        _ => return Err(Problem::not_found("there is no such act on a question")),
    };
    perform_on_question(&organism.questions(by), &id, deed).await
}

/// Parameter with the person for whom an operator acts.
const AS: &str = "as";

/// The party at the socket: an operator, or the person for whom one acts.
fn answerer(request: &Request) -> Result<Answerer, Problem> {
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let query = query.map_err(|error| Problem::bad_request(error.body_text()))?;
    match query.0.iter().find(|(key, _)| key == AS) {
        None => Ok(Answerer::operator(operator())),
        Some((_, name)) => {
            let name = Name::parse(name).map_err(|error| Problem::bad_request(error.to_string()))?;
            Ok(Answerer { name, is_operator: false })
        }
    }
}

/// The name of an operator at the socket in the events of its acts.
fn operator() -> Name {
    Name::system()
}

async fn read(body: Body, most: usize) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Limited::new(body, most).collect().await?.to_bytes())
}

/// Calls the socket of a running organism.
///
/// # Errors
/// The system's error if nothing listens there, or if the connection breaks; `PermissionDenied` if the process that listens
/// belongs neither to the user of this one nor to root, and for root not to the owner of the journal either: then it is told nothing.
pub async fn call_operator(journal: &Path, method: Method, path: &str, body: Vec<u8>) -> io::Result<(u16, Bytes)> {
    stream_operator(journal, method, path, body, |_, _| ()).await
}

/// Calls the socket of a running organism as [`call_operator`] does; where the answer is a stream of server-sent events, `each`
/// gets the kind and the data of each, as it comes, and the body is empty.
///
/// # Errors
/// As [`call_operator`]; an event with more than 64 MiB is one, too.
pub async fn stream_operator(
    journal: &Path,
    method: Method,
    path: &str,
    body: Vec<u8>,
    mut each: impl FnMut(&str, &str),
) -> io::Result<(u16, Bytes)> {
    let stream = connect(journal).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let request = hyper::Request::builder().method(method).uri(path).header("host", "systole");
    let request = request.body(Full::new(Bytes::from(body))).map_err(io::Error::other)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
            let (mut body, mut parser) = (response.into_body(), Parser::new(ANSWER));
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
                let events = parser.push(&data).map_err(|_| io::Error::other("an event is too long"))?;
                events.iter().for_each(|event| each(&event.kind, &event.data));
            }
            return Ok((status, Bytes::new()));
        }
        let body = Limited::new(response.into_body(), ANSWER).collect().await.map_err(io::Error::other)?.to_bytes();
        Ok((status, body))
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => match ended {
            // The answer may have come before the end.
            Ok(()) => exchange.await,
            Err(error) => Err(io::Error::other(error)),
        },
    }
}

/// Connects with the socket of a running organism.
async fn connect(journal: &Path) -> io::Result<UnixStream> {
    let socket = socket_path(journal);
    let stream = UnixStream::connect(&socket).await?;
    // Whoever may write to the folder can put a socket there, or a link to one. Root operates the organisms of others.
    let peer = stream.peer_cred()?.uid();
    let is_owner = || fs::metadata(journal).is_ok_and(|journal| journal.uid() == peer);
    let may_be = is_trusted(peer) || rustix::process::geteuid().is_root() && is_owner();
    if !may_be {
        let why = format!("{}: the process that listens there belongs to another user", socket.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(stream)
}

/// Opens a stream of bytes through the socket of a running organism, by an upgrade of the connection to `protocol`.
///
/// # Errors
/// As [`call_operator`]; where the organism refuses, with the reason that it gives.
#[cfg(feature = "mcp")]
pub(crate) async fn upgrade_operator(
    journal: &Path,
    path: &str,
    protocol: &'static str,
) -> io::Result<TokioIo<hyper::upgrade::Upgraded>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(connect(journal).await?)).await.map_err(io::Error::other)?;
    tokio::spawn(connection.with_upgrades());
    let request = hyper::Request::builder().method(Method::POST).uri(path).header("host", "systole");
    let request = request.header("connection", "upgrade").header("upgrade", protocol);
    let request = request.body(Full::new(Bytes::new())).map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER).collect().await.map_err(io::Error::other)?.to_bytes();
        let said = serde_json::from_slice::<serde_json::Value>(&body).ok();
        let why = said.and_then(|said| said["detail"].as_str().map(str::to_owned));
        let kind = if status.is_client_error() { io::ErrorKind::InvalidInput } else { io::ErrorKind::Other };
        return Err(io::Error::new(kind, why.unwrap_or_else(|| format!("the organism answers {status}"))));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(io::Error::other)?;
    Ok(TokioIo::new(upgraded))
}
