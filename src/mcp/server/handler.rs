//! Requests of the protocol, for one principal each.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    CompleteRequestParams, CompleteResult, ContentBlock, CreateTaskResult, CustomRequest, CustomResult, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListSkillsResult, ListToolsResult, NumberOrString, PaginatedRequestParams,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, SubscriptionsListenRequestParams,
    Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use systole_core::vocab::Name;

use super::call::{Outcome, Wanted, is_stateless, object, unreadable};
use super::written::Written;
use super::{Face, answer, directory};
use crate::gateway::PrincipalKind;
use crate::gateway::facade::{AppState, Authenticated};
use crate::settings::McpTask;

/// Methods of sessions, which revision 2026-07-28 does not have.
const SESSION_METHODS: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The lists of the protocol.
const LISTS: [&str; 5] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"];
/// Entries of a page of a list.
const PAGE: usize = 200;
/// Time for which a list stays as it is, in milliseconds: until the organism starts anew at the earliest.
const FRESH: u64 = 60_000;
/// The tool that confirms notices, for a client with a mailbox (docs/notices.md).
const CONFIRM: &str = "confirm_notices";
/// The member of `_meta` with an idempotency key: a call with the key of an earlier one is that one.
const KEY: &str = "systole/idempotency-key";
/// Longest idempotency key, in bytes.
const KEY_BYTES: usize = 255;
/// The session of notices of a client without one.
const SESSION: &str = "mcp";

/// The handler of a request over HTTP, or of a stream.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) face: Arc<Face>,
    /// The client of a stream; over HTTP each request tells its own.
    pub(super) stream: Option<StreamClient>,
}

/// The client of a stream.
#[derive(Clone)]
pub(super) struct StreamClient {
    pub(super) name: Name,
    /// The id of the host's process, which its next connection to the organism has, too.
    pub(super) session: Arc<str>,
}

/// The client that makes a request.
pub(super) struct Who {
    pub(super) client: Name,
    known: Option<Arc<Authenticated>>,
    /// The session of its notices.
    session: String,
    /// The idempotency key of its call.
    pub(super) key: Option<String>,
    /// True if the request is sent again where it got no answer.
    pub(super) is_resumed: bool,
}

impl Who {
    /// Waits until its caller has closed the connection of the request, and awaits no answer.
    pub(super) async fn gone(&self) {
        match &self.known {
            Some(known) => known.gone().await,
            None => std::future::pending().await,
        }
    }

    /// Checks whether its token is still that of the client.
    pub(super) async fn is_known(&self, app: &AppState) -> bool {
        match &self.known {
            Some(known) => known.is_valid(app).await,
            None => true,
        }
    }
}

impl Handler {
    fn who(&self, context: &RequestContext<RoleServer>) -> Result<Who, ErrorData> {
        let key = match context.meta.0.0.get(KEY) {
            Some(Value::String(key)) if (1..=KEY_BYTES).contains(&key.len()) => Some(key.clone()),
            Some(_) => {
                let why = format!("{KEY} in _meta is a text of 1 to {KEY_BYTES} bytes");
                return Err(ErrorData::invalid_params(why, None));
            }
            None => None,
        };
        if let Some(StreamClient { name, session }) = &self.stream {
            let id = match &context.id {
                NumberOrString::Number(id) => id.to_string(),
                NumberOrString::String(id) => format!("\"{id}\""),
            };
            let key = key.or_else(|| Some(of_request(session, &id)));
            return Ok(Who {
                client: name.clone(),
                known: None,
                session: (**session).to_owned(),
                key,
                is_resumed: true,
            });
        }
        let parts = context.extensions.get::<Parts>();
        let known = parts.and_then(|parts| parts.extensions.get::<Arc<Authenticated>>()).cloned();
        let (Some(parts), Some(known)) = (parts, known) else {
            return Err(ErrorData::invalid_request("the request has no principal", None));
        };
        let session = parts.headers.get("mcp-session-id").and_then(|value| value.to_str().ok());
        let session = session.unwrap_or(SESSION).to_owned();
        // The gateway has checked it.
        let header = parts.headers.get("idempotency-key").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let key = header.or(key);
        Ok(Who { client: known.who().name.clone(), known: Some(known), session, key, is_resumed: false })
    }

    /// The tool that confirms notices, for a client that may have some.
    fn confirming(&self, client: &Name) -> Option<Tool> {
        self.face.app.has_notices(client).then(|| {
            let schema = json!({
                "type": "object",
                "properties": { "token": { "type": "string", "description": "The token of the notices, or a text with it." } },
                "required": ["token"],
            });
            let schema = schema.as_object().cloned().unwrap_or_default();
            Tool::new(CONFIRM, "Confirms notices that came with an answer: they don't come again.", Arc::new(schema))
        })
    }

    async fn confirm(&self, who: &Who, arguments: Option<Map<String, Value>>) -> CallToolResult {
        let arguments = arguments.unwrap_or_default();
        let Some(token) = arguments.get("token").and_then(Value::as_str) else {
            let fault = json!({ "code": "payload", "pointer": "/token" });
            return answer::error("/token: write the token of the notices, a text", fault);
        };
        match self.face.app.confirm_notices(&who.client, &who.session, token).await {
            Ok(count) => CallToolResult::success(vec![ContentBlock::text(format!("{count} confirmed"))]),
            Err(problem) => answer::refusal(&problem),
        }
    }
}

/// The idempotency key of a request of a stream: an id of any length has one.
fn of_request(session: &str, id: &str) -> String {
    let key = format!("mcp:{session}:{id}");
    match key.len() <= KEY_BYTES {
        true => key,
        false => format!("mcp:{}", blake3::hash(key.as_bytes()).to_hex()),
    }
}

/// Checks whether a principal uses the organism by the protocol.
///
/// # Errors
/// The reason why not, and the remedy.
pub(super) fn admit(app: &AppState, client: &Name, kind: PrincipalKind) -> Result<(), String> {
    match kind {
        PrincipalKind::Client if app.serves(client) => Ok(()),
        PrincipalKind::Client => Err(not_served(app, client)),
        _ => Err(format!("'{client}' is no client: make a token of a client with `systole token new CLIENT`")),
    }
}

/// The reason why a client can't be served.
pub(super) fn not_served(app: &AppState, client: &Name) -> String {
    let clients: Vec<_> = app
        .organism()
        .blueprint()
        .clients()
        .map(|(_, client)| client.name.clone())
        .filter(|name| app.serves(name))
        .collect();
    let names = clients.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() {
        "there is none: add clients: [{ name: assistant, calls: […] }]".to_owned()
    } else {
        names
    };
    if app.organism().blueprint().party(client.as_str()).is_some() {
        return format!(
            "the answers to '{client}' go to another place, such as the output of `systole run`: use another client ({names})"
        );
    }
    format!("the organism has no client '{client}': use one of its clients ({names})")
}

/// The page of a list behind a cursor, and the cursor of the next page.
fn page<T: Clone>(all: &[T], params: Option<PaginatedRequestParams>) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let cursor = params.and_then(|params| params.cursor);
    let start = match cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .ok()
            .filter(|start| *start <= all.len())
            .ok_or_else(|| ErrorData::invalid_params("the cursor is none of this list: begin without one", None))?,
    };
    let end = all.len().min(start + PAGE);
    Ok((all[start..end].to_vec(), (end < all.len()).then(|| end.to_string())))
}

/// A page of a list as a result, which stays as it is for a while.
macro_rules! paged {
    ($list:ident, $all:expr, $params:expr) => {{
        let (items, next) = page(&$all, $params)?;
        let mut list = $list::with_all_items(items).with_ttl_ms(FRESH).with_cache_scope(CacheScope::Private);
        list.next_cursor = next;
        Ok(list)
    }};
}

/// The reason why parameters can't be read.
fn mistake<T: serde::de::DeserializeOwned>(params: Value) -> Option<String> {
    let of_call = params.get("arguments").filter(|arguments| !arguments.is_object()).is_some();
    let error = serde_json::from_value::<T>(params).err()?;
    Some(match of_call {
        true => format!("{error}: write arguments as an object, such as {{}}"),
        false => error.to_string(),
    })
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_tasks()
            .enable_skills_with_directory_read();
        #[expect(deprecated, reason = "clients of sessions get drafts so")]
        let capabilities = capabilities.enable_logging().build();
        let name = &self.face.app.organism().blueprint().organism;
        let server = Implementation::new("systole", env!("CARGO_PKG_VERSION")).with_title(name.clone());
        ServerConfig::new(capabilities).with_server_info(server)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let client = &self.stream.as_ref()?.name;
        self.face.tools(client).tool(name).cloned()
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let who = self.who(&context)?;
        let mut all = self.face.tools(&who.client).tools.clone();
        all.extend(self.confirming(&who.client));
        paged!(ListToolsResult, all, params)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let who = self.who(&context)?;
        let tools = self.face.tools(&who.client);
        let Some(call) = tools.call(&params.name) else {
            if params.name == CONFIRM && self.confirming(&who.client).is_some() {
                return Ok(self.confirm(&who, params.arguments).await.into());
            }
            let why = format!("Unknown tool: '{}' may call {}", who.client, tools.names());
            return Err(ErrorData::invalid_params(why, Some(json!({ "tool": params.name }))));
        };
        let has_tasks = context.client_capabilities().is_some_and(|able| able.supports_tasks());
        if matches!(call.task, McpTask::Required | McpTask::AfterInput) && !has_tasks {
            let required = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        let is_answered = params.request_state.is_some();
        let is_task = has_tasks && call.task != McpTask::Never && (call.task != McpTask::AfterInput || is_answered);
        let name = params.name.clone();
        let object = match Written::text(&context.extensions)? {
            Some(written) => written,
            None => object(params.arguments),
        };
        let wanted = Wanted {
            name: &name,
            object: object.clone(),
            state: params.request_state,
            responses: params.input_responses.unwrap_or_default(),
            is_task,
        };
        let organism = self.face.app.organism();
        match self.face.call(&who, call, wanted, &context).await? {
            Outcome::Answered(answers) => {
                let mut result = answer::result(organism, &answers);
                if self.face.app.has_notices(&who.client) && result.is_error != Some(true) {
                    let notices = self.face.app.notices(&who.client, &who.session, object).await;
                    result.content.splice(..0, notices.into_iter().map(ContentBlock::text));
                }
                Ok(result.into())
            }
            Outcome::Refused(problem) => Ok(answer::refusal(&problem).into()),
            Outcome::Needs(input) => Ok(input.into()),
            Outcome::Task(id) => {
                let sent = self.face.app.sent(&who.client, id).await.map_err(unreadable)?;
                let sent = sent.ok_or_else(|| ErrorData::internal_error("the message is not in the journal", None))?;
                Ok(CreateTaskResult::new(self.face.task(&sent)).into())
            }
        }
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let able = context.client_capabilities();
        self.face.get_task(&self.who(&context)?, able.as_ref(), &params.task_id).await
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let able = context.client_capabilities();
        let who = self.who(&context)?;
        self.face.update_task(&who, able.as_ref(), &params.task_id, &params.input_responses).await
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.face.cancel_task(&self.who(&context)?, &params.task_id).await
    }

    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let who = self.who(&context)?;
        paged!(ListPromptsResult, directory::prompts(&self.face.tools(&who.client)), params)
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.face.prompt(&self.who(&context)?, params, &context).await
    }

    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let who = self.who(&context)?;
        paged!(ListResourcesResult, self.face.resources(&who.client), params)
    }

    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let who = self.who(&context)?;
        paged!(ListResourceTemplatesResult, self.face.templates(&who.client), params)
    }

    async fn list_skills(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let who = self.who(&context)?;
        paged!(ListSkillsResult, self.face.skills(&who.client), params)
    }

    async fn get_skill(
        &self,
        params: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let who = self.who(&context)?;
        let skill = self.face.skill(&who.client, &params.uri).ok_or_else(|| {
            let why = "No skill is served there: see skills/list";
            ErrorData::invalid_params(why, Some(json!({ "uri": params.uri })))
        })?;
        Ok(GetSkillResult::new(skill).with_ttl_ms(FRESH).with_cache_scope(CacheScope::Private))
    }

    async fn read_resource_directory(
        &self,
        params: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        let who = self.who(&context)?;
        let children = self.face.skill_folder(&who.client, &params.uri).ok_or_else(|| {
            let why =
                "There is no folder of a skill: its address is that of a skill without /SKILL.md, or of a folder below";
            ErrorData::invalid_params(why, Some(json!({ "uri": params.uri })))
        })?;
        let page = PaginatedRequestParams::default().with_cursor(params.cursor);
        paged!(ReadResourceDirectoryResult, children, Some(page))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.face.read(&self.who(&context)?, params, &context).await
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let who = self.who(&context)?;
        Ok(directory::complete(&self.face.tools(&who.client), &params))
    }

    /// A method that is none of the protocol, or one whose parameters are none of it.
    #[expect(deprecated, reason = "clients of sessions set levels")]
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let params = params.unwrap_or(Value::Null);
        let mistake = match method.as_str() {
            gone if is_stateless(&context) && SESSION_METHODS.contains(&gone) => {
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
            }
            "tools/call" => mistake::<CallToolRequestParams>(params),
            "prompts/get" => mistake::<GetPromptRequestParams>(params),
            "resources/read" => mistake::<ReadResourceRequestParams>(params),
            "completion/complete" => mistake::<CompleteRequestParams>(params),
            "skills/get" => mistake::<GetSkillRequestParams>(params),
            "resources/directory/read" => mistake::<ReadResourceDirectoryRequestParams>(params),
            "tasks/get" => mistake::<GetTaskParams>(params),
            "tasks/update" => mistake::<UpdateTaskParams>(params),
            "tasks/cancel" => mistake::<CancelTaskParams>(params),
            "resources/subscribe" => mistake::<SubscribeRequestParams>(params),
            "resources/unsubscribe" => mistake::<UnsubscribeRequestParams>(params),
            "subscriptions/listen" => mistake::<SubscriptionsListenRequestParams>(params),
            "logging/setLevel" => mistake::<rmcp::model::SetLevelRequestParams>(params),
            "initialize" => mistake::<InitializeRequestParams>(params),
            "ping" | "server/discover" => None,
            list if LISTS.contains(&list) => mistake::<Option<PaginatedRequestParams>>(params),
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        };
        Written::text(&context.extensions)?;
        let why = mistake.unwrap_or_else(|| "a member has a value of another form".to_owned());
        Err(ErrorData::invalid_params(format!("the parameters of {method} are wrong: {why}"), None))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // Nothing changes as long as the organism runs; what it can't tell of is left out by its capabilities.
        Some(requested.clone())
    }

    #[expect(deprecated, reason = "clients of sessions call it")]
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Drafts are all that is told, and each is of one level.
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // Schemas and examples stay as they are as long as the organism runs; listeners don't tell of changes.
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_length_has_a_key_of_its_own() {
        assert_eq!(of_request("7-1", "\"a\""), "mcp:7-1:\"a\"");
        let long = |end: &str| of_request("7-1", &format!("{}{end}", "x".repeat(300)));
        assert!(long("1").len() <= KEY_BYTES);
        assert_eq!(long("1"), long("1"));
        assert_ne!(long("1"), long("2"));
    }
}
