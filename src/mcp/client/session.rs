//! A connection to a server: the handshake, the tools that it must still have, calls in flight, and its own requests.
#![expect(deprecated, reason = "servers of earlier revisions log and ask for completions so")]

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation, ListToolsRequest,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    SamplingCapability, ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, RequestContext,
    ServiceError,
};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use systole_core::vocab::Name;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use super::skill;
use crate::listeners::fleet::{Member, ProcessEnd};
use crate::listeners::mcp::{McpAsks, McpLock, SkillFacts, ToolFacts};
use crate::process::Subject;
use crate::process::streams::log_line;
use crate::terminal::readable;

/// Time of a server to come up, and to list its tools.
const START: Duration = Duration::from_secs(60);
/// Time of a server that let a call go without an answer to answer a request that is none of work.
const PROBE: Duration = Duration::from_secs(10);
/// Events of a server that wait to be handled.
const EVENTS: usize = 256;
/// Pages of a list, and tools, at most.
const PAGES: usize = 100;
const TOOLS: usize = 5_000;
/// Questions of one call that wait for answers.
const QUESTIONS: usize = 8;
/// The reason of an end for which there is no better one.
const CLOSED: &str = "the connection to the server is closed";
/// Differences that a refusal shows.
const SHOWN: usize = 5;

/// The state of a connection.
#[derive(Default)]
pub(super) struct Session {
    peer: RefCell<Option<Peer<RoleClient>>>,
    /// The reason why calls are refused: the server is not the one that was imported.
    refusal: RefCell<Option<Arc<str>>>,
    is_up: Cell<bool>,
    end: RefCell<Option<Rc<ProcessEnd>>>,
    /// Wakes those who wait for the connection to come up, or to end.
    changed: Notify,
    /// Calls in flight, by their progress tokens.
    calls: RefCell<BTreeMap<String, Rc<Call>>>,
    /// Wakes the probe: a call got no answer in time.
    doubted: Notify,
    /// Questions that were declined since nobody knows which call they are about.
    declined: Cell<usize>,
    /// A line on standard output that was no message.
    noise: RefCell<Option<String>>,
}

/// A call in flight.
pub(super) struct Call {
    subject: Subject,
    /// Progress that has not been seen, the last.
    progress: RefCell<Option<String>>,
    questions: RefCell<VecDeque<Question>>,
    /// Questions that were declined at once, and are not counted yet.
    declined: Cell<usize>,
    news: Notify,
}

/// A request of a server that a listener answers.
pub(super) enum Question {
    /// A question to a person.
    Elicitation(ElicitRequestParams, oneshot::Sender<ElicitResult>),
    /// A request for the completion of a text.
    Sampling(CreateMessageRequestParams, oneshot::Sender<Result<CreateMessageResult, ErrorData>>),
}

impl Question {
    /// Answers that no listener does.
    pub(super) fn decline(self, why: &str) {
        match self {
            Self::Elicitation(_, answer) => drop(answer.send(ElicitResult::new(ElicitationAction::Decline))),
            Self::Sampling(_, answer) => drop(answer.send(Err(refused(why)))),
        }
    }
}

/// The refusal of a request for a completion.
pub(super) fn refused(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}

/// News about a call.
pub(super) enum News {
    Progress(String),
    Question(Box<Question>),
    /// So many questions were declined, since too many wait or none are answered here.
    Declined(usize),
}

/// A call that is registered with its session.
pub(super) struct Registered {
    session: Rc<Session>,
    token: String,
    call: Rc<Call>,
}

impl Session {
    /// The connection, while there is one.
    pub(super) fn peer(&self) -> Option<Peer<RoleClient>> {
        self.peer.borrow().clone()
    }

    /// The reason why calls are refused.
    pub(super) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.borrow().clone()
    }

    /// The end of the connection.
    pub(super) async fn ended(&self) -> Rc<ProcessEnd> {
        loop {
            let changed = self.changed.notified();
            if let Some(end) = &*self.end.borrow() {
                return end.clone();
            }
            changed.await;
        }
    }

    /// The message in flight, if that is one alone.
    pub(super) fn subject(&self) -> Option<Subject> {
        self.only().map(|call| call.subject)
    }

    fn only(&self) -> Option<Rc<Call>> {
        let calls = self.calls.borrow();
        calls.values().next().filter(|_| calls.len() == 1).cloned()
    }

    /// Notes a line that was no message.
    pub(super) fn noise(&self, line: &str) {
        self.noise.borrow_mut().get_or_insert_with(|| line.to_owned());
    }

    /// A remark on lines that were no messages, for a call without an answer.
    pub(super) fn remark(&self) -> String {
        let noise = self.noise.borrow();
        noise.as_ref().map_or_else(String::new, |line| {
            format!("; the server prints lines that are no messages to its standard output, such as '{line}'")
        })
    }

    /// Lets the connection be tried: a call got no answer in time.
    pub(super) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Registers a call.
    pub(super) fn register(self: &Rc<Self>, token: String, subject: Subject) -> Registered {
        let (progress, questions) = (RefCell::default(), RefCell::default());
        let call = Rc::new(Call { subject, progress, questions, declined: Cell::default(), news: Notify::new() });
        self.calls.borrow_mut().insert(token.clone(), call.clone());
        Registered { session: self.clone(), token, call }
    }

    fn take(&self, event: Event, name: &Name) {
        match event {
            Event::Progress(progress) => {
                let token = token_of(&progress.progress_token);
                let text = match (progress.message, progress.total) {
                    (Some(message), _) => readable(&message),
                    (None, Some(total)) => format!("{} of {total}", progress.progress),
                    (None, None) => progress.progress.to_string(),
                };
                if let Some(call) = self.calls.borrow().get(&token) {
                    *call.progress.borrow_mut() = Some(text);
                    call.news.notify_one();
                }
            }
            Event::Log(said) => {
                let text = match &said.data {
                    Value::String(text) => text.clone(),
                    data => data.to_string(),
                };
                log_line(name, self.subject().as_ref(), &text);
            }
            Event::Question(question) => match self.only() {
                Some(call) if call.questions.borrow().len() < QUESTIONS => {
                    call.questions.borrow_mut().push_back(question);
                    call.news.notify_one();
                }
                only => {
                    if let Some(call) = only {
                        call.decline();
                    }
                    let calls = self.calls.borrow().len();
                    let declined = self.declined.get() + 1;
                    self.declined.set(declined);
                    // A server that asks without end fills no log.
                    if declined.is_power_of_two() {
                        tracing::warn!(listener = %name, calls, declined, "a question of the server is declined: it doesn't tell which call it is about; write `concurrency: 1`");
                    }
                    question.decline(
                        "several calls are in flight, or too many requests wait, so that nobody answers this one",
                    );
                }
            },
            Event::Declined => {
                if let Some(call) = self.only() {
                    call.decline();
                }
            }
        }
    }
}

impl Call {
    /// Counts a question that was declined at once.
    fn decline(&self) {
        self.declined.set(self.declined.get() + 1);
        self.news.notify_one();
    }
}

impl Member for Session {
    fn is_up(&self) -> bool {
        self.is_up.get()
    }

    fn changes(&self) -> &Notify {
        &self.changed
    }

    fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    fn load(&self) -> usize {
        self.calls.borrow().len()
    }

    fn end(&self, end: ProcessEnd) {
        self.end.borrow_mut().get_or_insert_with(|| end.into());
        self.peer.borrow_mut().take();
        self.changed.notify_waiters();
    }
}

impl Registered {
    /// The next news.
    pub(super) async fn news(&self) -> News {
        loop {
            let news = self.call.news.notified();
            if let Some(progress) = self.call.progress.borrow_mut().take() {
                return News::Progress(progress);
            }
            if let Some(question) = self.call.questions.borrow_mut().pop_front() {
                return News::Question(Box::new(question));
            }
            let declined = self.call.declined.take();
            if declined > 0 {
                return News::Declined(declined);
            }
            news.await;
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.session.calls.borrow_mut().remove(&self.token);
    }
}

/// A progress token as a key.
pub(super) fn token_of(token: &rmcp::model::ProgressToken) -> String {
    serde_json::to_string(token).unwrap_or_default()
}

/// The way to talk to the server of a listener.
pub(super) struct Talk {
    pub(super) name: Name,
    pub(super) lock: Rc<McpLock>,
    /// The requests of the server that are answered.
    pub(super) asks: McpAsks,
}

impl Talk {
    /// Talks to a server until that can't go on; returns the reason.
    pub(super) async fn run<T, E, A>(&self, session: &Rc<Session>, transport: T) -> String
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let (events, mut queue) = mpsc::channel(EVENTS);
        let tools_changed = Arc::new(Notify::new());
        let handler = Client { events, tools_changed: tools_changed.clone(), asks: self.asks };
        let running = match greet(handler, transport, lifecycle(&self.lock.protocol)).await {
            Ok(running) => running,
            Err(why) => return why,
        };
        let peer = running.peer().clone();
        let mut closed = std::pin::pin!(running.waiting());
        let verified = tokio::select! {
            verified = self.verify_within(START, session, &peer) => verified,
            _ = &mut closed => Err(CLOSED.to_owned()),
        };
        if let Err(why) = verified {
            return why;
        }
        *session.peer.borrow_mut() = Some(peer.clone());
        session.is_up.set(true);
        session.changed.notify_waiters();
        let is_modern = peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize());
        let mut listening = std::pin::pin!(async {
            if is_modern {
                listen(&peer, &tools_changed).await;
            }
            std::future::pending::<()>().await;
        });
        // Calls go on meanwhile.
        let mut verifying = std::pin::pin!(self.verify_within(START, session, &peer));
        let mut is_verifying = false;
        loop {
            tokio::select! {
                Some(event) = queue.recv() => session.take(event, &self.name),
                _ = &mut closed => return CLOSED.to_owned(),
                () = tools_changed.notified(), if !is_verifying => {
                    is_verifying = true;
                    verifying.set(self.verify_within(START, session, &peer));
                }
                () = session.doubted.notified(), if !is_verifying => if session.load() == 0 {
                    is_verifying = true;
                    verifying.set(self.verify_within(PROBE, session, &peer));
                },
                verified = &mut verifying, if is_verifying => match verified {
                    Ok(()) => is_verifying = false,
                    Err(why) => return why,
                },
                () = &mut listening => {}
            }
        }
    }

    /// Lists the tools; refuses calls from now on if they are not those of the lock.
    async fn verify_within(&self, longest: Duration, session: &Session, peer: &Peer<RoleClient>) -> Result<(), String> {
        let tools = match timeout(longest, list(peer)).await {
            Ok(tools) => tools?,
            Err(_) => return Err(format!("the server did not list its tools within {longest:?}")),
        };
        let found = self.lock.differences(&tools);
        let refusal = (!found.is_empty()).then(|| self.refusal(&found));
        if let Some(refusal) = &refusal {
            tracing::error!(listener = %self.name, "{refusal}");
        }
        *session.refusal.borrow_mut() = refusal.map(Arc::from);
        Ok(())
    }

    fn refusal(&self, found: &[String]) -> String {
        let mut shown = found[..found.len().min(SHOWN)].join("; ");
        if found.len() > SHOWN {
            shown.push_str(&format!("; and {} more", found.len() - SHOWN));
        }
        let name = &self.name;
        format!(
            "the tools of the MCP server '{name}' are not those that were imported: {shown}. If you trust the change, run `systole mcp import` again for '{name}'"
        )
    }
}

/// Opens the connection: the handshake of its revision.
async fn greet<T, E, A>(
    handler: Client,
    transport: T,
    lifecycle: ClientLifecycleMode,
) -> Result<rmcp::service::RunningService<RoleClient, Client>, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    match timeout(START, handler.serve_with_lifecycle(transport, lifecycle)).await {
        Ok(Ok(running)) => match running.peer().peer_info() {
            Some(info) if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) => {
                let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
                Err(format!(
                    "the server answered the handshake with the revision '{}' of the protocol; known are {}",
                    readable(info.protocol_version.as_str()),
                    known.join(", ")
                ))
            }
            _ => Ok(running),
        },
        Ok(Err(error)) => Err(format!("the server did not come up: {}", described(&error))),
        Err(_) => Err(format!("the server did not answer the handshake within {START:?}")),
    }
}

fn described(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => readable(&error.message),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::TransportError { error, .. } => readable(&error.error.to_string()),
        // The second one is that of most servers.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => described(fallback),
        ClientInitializeError::ExpectedInitResult(Some(ServerResult::CustomResult(CustomResult(answer)))) => {
            let missing = |key: &&str| answer.get(*key).is_none();
            let missing: Vec<_> =
                ["protocolVersion", "capabilities", "serverInfo"].into_iter().filter(missing).collect();
            match missing[..] {
                [] => "its answer to the handshake is none of the protocol".to_owned(),
                _ => format!("its answer to the handshake has no {}", missing.join(" and no ")),
            }
        }
        error => readable(&error.to_string()),
    }
}

/// The reason why a request failed, in plain words: the library names its types.
pub(super) fn told(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => readable(&error.message),
        ServiceError::TransportSend(error) => readable(&error.error.to_string()),
        ServiceError::TransportClosed => CLOSED.to_owned(),
        error => readable(&error.to_string()),
    }
}

/// The handshake of a revision; without one, that which the server knows.
fn lifecycle(protocol: &str) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    if protocol.is_empty() {
        return ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
    }
    match protocol == ProtocolVersion::V_2026_07_28.as_str() {
        true => ClientLifecycleMode::Discover { preferred_versions },
        false => ClientLifecycleMode::Initialize,
    }
}

/// Wakes the verification when a server of the revision 2026-07-28 says that its tools have changed.
async fn listen(peer: &Peer<RoleClient>, tools_changed: &Notify) {
    let capable = peer.peer_info().and_then(|info| info.capabilities.tools.as_ref()?.list_changed).unwrap_or_default();
    if !capable {
        return;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    if let Ok(mut subscription) = peer.listen(filter).await {
        while let Ok(Some(_)) = subscription.next().await {
            tools_changed.notify_one();
        }
    }
}

/// The tools of a server.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<ToolFacts>, String> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        // Not `list_tools`, which may answer from its cache.
        let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
        let page = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let page = page.map_err(|error| told(&error));
        let page = page.and_then(|page| match page {
            ServerResult::ListToolsResult(page) => Ok(page),
            other => Err(misread(&serde_json::to_value(other).unwrap_or_default())),
        });
        let page = page.map_err(|why| format!("the server does not list its tools: {why}"))?;
        for tool in page.tools {
            let facts = serde_json::to_value(tool).and_then(serde_json::from_value::<ToolFacts>);
            all.push(facts.map_err(|error| format!("a tool of the server can't be read: {error}"))?);
        }
        if all.len() > TOOLS {
            return Err(format!("the server has more than {TOOLS} tools"));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
    Err(format!("the list of the server's tools has more than {PAGES} pages"))
}

/// The reason why an answer is no list of tools: the first tool that is none.
fn misread(answer: &Value) -> String {
    let Some(tools) = answer.get("tools").and_then(Value::as_array) else {
        return "its answer has no array `tools`".to_owned();
    };
    for (at, tool) in tools.iter().enumerate() {
        let name = tool.get("name").and_then(Value::as_str);
        let which =
            name.map_or_else(|| format!("number {} of its list", at + 1), |name| format!("'{}'", readable(name)));
        if name.is_none() {
            return format!("the tool {which} has no `name`");
        }
        if !tool.get("inputSchema").is_some_and(Value::is_object) {
            return format!("the tool {which} has no `inputSchema` that is an object");
        }
        if let Err(error) = serde_json::from_value::<rmcp::model::Tool>(tool.clone()) {
            return format!("the tool {which} is none of the protocol: {}", readable(&error.to_string()));
        }
    }
    "its answer is none of the protocol".to_owned()
}

/// The words of a server on itself and on its tools.
pub(super) struct Listed {
    pub(super) protocol: String,
    pub(super) server: String,
    pub(super) tools: Vec<ToolFacts>,
    pub(super) skills: Vec<SkillFacts>,
    /// Remarks on skills that are left out.
    pub(super) remarks: Vec<String>,
    /// The reason why its list of skills can't be read.
    pub(super) unlisted: Option<String>,
}

/// Connects to a server by the handshake of a revision, and lists its tools and its skills.
pub(super) async fn look<T, E, A>(transport: T, protocol: &str, asks: McpAsks) -> Result<Listed, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let (events, _unheard) = mpsc::channel(EVENTS);
    let handler = Client { events, tools_changed: Arc::default(), asks };
    let running = greet(handler, transport, lifecycle(protocol)).await?;
    let (peer, info) = (running.peer().clone(), running.peer().peer_info());
    let tools = timeout(START, list(&peer)).await;
    let tools = tools.map_err(|_| format!("the server did not list its tools within {START:?}"))??;
    let skills = timeout(START, skill::list(&peer)).await;
    let skills = skills.unwrap_or_else(|_| Err(format!("it did not list them within {START:?}")));
    let (skills, remarks, unlisted) = match skills {
        Ok((skills, remarks)) => (skills, remarks, None),
        Err(why) => (Vec::new(), vec![format!("the skills of the server are left out: {why}")], Some(why)),
    };
    let server = info.as_deref().and_then(|info| info.server_info.as_ref());
    let server = server.map_or_else(|| "a server without a name".to_owned(), named);
    let protocol = info.as_deref().map(|info: &ServerPeerInfo| info.protocol_version.as_str().to_owned());
    Ok(Listed { protocol: protocol.unwrap_or_default(), server, tools, skills, remarks, unlisted })
}

fn named(server: &Implementation) -> String {
    readable(&format!("{} {}", server.name, server.version))
}

/// An event of a server.
enum Event {
    Progress(ProgressNotificationParam),
    Log(LoggingMessageNotificationParam),
    Question(Question),
    /// A question that was declined, since none are answered.
    Declined,
}

/// The client's side of the protocol: what servers ask of it and tell it.
struct Client {
    events: mpsc::Sender<Event>,
    tools_changed: Arc<Notify>,
    asks: McpAsks,
}

impl Client {
    /// Hands an event over; of a flood, what has no room is dropped.
    fn tell(&self, event: Event) {
        let _ = self.events.try_send(event);
    }
}

impl ClientHandler for Client {
    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (answer, answered) = oneshot::channel();
        match self.asks.questions {
            true => self.tell(Event::Question(Question::Elicitation(asked, answer))),
            false => {
                drop(answer);
                self.tell(Event::Declined);
            }
        }
        Ok(answered.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Decline)))
    }

    async fn create_message(
        &self,
        asked: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.asks.sampling {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        }
        let (answer, answered) = oneshot::channel();
        self.tell(Event::Question(Question::Sampling(asked, answer)));
        answered.await.unwrap_or_else(|_| Err(refused("the call that the request is about has ended")))
    }

    /// A method that is none of the protocol, or one whose parameters are none of it.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let params = params.unwrap_or_default();
        let mistake = match method.as_str() {
            "sampling/createMessage" if self.asks.sampling => {
                serde_json::from_value::<CreateMessageRequestParams>(params).err()
            }
            "elicitation/create" => serde_json::from_value::<ElicitRequestParams>(params).err(),
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        };
        let why = mistake.map_or_else(|| "they are none of the protocol".to_owned(), |error| error.to_string());
        Err(ErrorData::invalid_params(format!("the parameters of {method} are wrong: {why}"), None))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.tell(Event::Progress(params));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.tell(Event::Log(params));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.asks.sampling {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        if self.asks.questions {
            let form = FormElicitationCapability::default();
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        }
        let version = Cow::Borrowed(env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities, Implementation::new("systole", version));
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }
}
