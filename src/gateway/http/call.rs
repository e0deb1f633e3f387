//! Calls: each with its handler and its description. The router and `/openapi.json` are made from the same list of calls,
//! so they name the same paths and methods. The schemas are those of the types that the handlers parse and write.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use bytes::Bytes;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::request::{KEY, LIMIT, WAIT};
use super::{AppState, Routes, view};
use crate::gateway::problem::{Details, Problem};

/// A call: a method of a path.
pub struct Call {
    handler: MethodRouter<Arc<AppState>>,
    operation: Operation,
}

/// The description of a call.
struct Operation {
    method: Method,
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    access: Access,
    parameters: Vec<Parameter>,
    body: Option<Body>,
    answers: Vec<Answer>,
    located: bool,
    refusals: Vec<(u16, &'static str)>,
}

/// The token that a call needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Token,
    /// A caller without one gets another answer.
    Optional,
    Public,
}

/// A parameter of the query or a header.
struct Parameter {
    name: &'static str,
    place: &'static str,
    description: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

enum Body {
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// A payload as XML or as JSON, with the description of the XML.
    Payload(&'static str),
    /// XML, with its description.
    Xml(&'static str),
}

struct Answer {
    status: StatusCode,
    description: &'static str,
    content: Content,
}

enum Content {
    None,
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Text of a media type.
    Text(&'static str),
}

impl Call {
    fn new<H, T>(method: (Method, MethodFilter), path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<AppState>>,
        T: 'static,
    {
        let operation = Operation {
            method: method.0,
            path,
            tag: "",
            summary: "",
            access: Access::Token,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            located: false,
            refusals: Vec::new(),
        };
        Self { handler: on(method.1, handler), operation }
    }

    /// A GET of a path.
    pub fn get<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new((Method::GET, MethodFilter::GET), path, handler)
    }

    /// A POST to a path.
    pub fn post<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new((Method::POST, MethodFilter::POST), path, handler)
    }

    pub(super) fn put<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new((Method::PUT, MethodFilter::PUT), path, handler)
    }

    /// A DELETE of a path.
    pub fn delete<H: Handler<T, Arc<AppState>>, T: 'static>(path: &'static str, handler: H) -> Self {
        Self::new((Method::DELETE, MethodFilter::DELETE), path, handler)
    }

    /// Sets the group of the call, and one sentence about it.
    pub fn about(mut self, tag: &'static str, summary: &'static str) -> Self {
        (self.operation.tag, self.operation.summary) = (tag, summary);
        self
    }

    /// The call takes no token.
    pub(super) fn public(mut self) -> Self {
        self.operation.access = Access::Public;
        self
    }

    /// The call answers callers without a token, too.
    pub fn token_optional(mut self) -> Self {
        self.operation.access = Access::Optional;
        self
    }

    fn parameter(
        mut self,
        place: &'static str,
        (name, description): (&'static str, &'static str),
        schema: fn(&mut SchemaGenerator) -> Schema,
    ) -> Self {
        self.operation.parameters.push(Parameter { name, place, description, schema });
        self
    }

    /// A parameter of the query.
    pub fn query<T: JsonSchema>(self, name: &'static str, description: &'static str) -> Self {
        self.parameter("query", (name, description), |generator| generator.subschema_for::<T>())
    }

    pub(super) fn header<T: JsonSchema>(self, name: &'static str, description: &'static str) -> Self {
        self.parameter("header", (name, description), |generator| generator.subschema_for::<T>())
    }

    /// A number of the query, by default 0.
    pub(super) fn number<T: JsonSchema>(self, name: &'static str, description: &'static str) -> Self {
        self.parameter("query", (name, description), |generator| {
            let mut schema = generator.subschema_for::<T>();
            schema.insert("default".into(), 0.into());
            schema
        })
    }

    /// The most entries of a page.
    pub(super) fn limit(self, description: &'static str) -> Self {
        self.parameter("query", ("limit", description), |_| {
            let (default, most) = LIMIT;
            schema(json!({ "type": "integer", "minimum": 1, "maximum": most, "default": default }))
        })
    }

    /// The time for which the call waits.
    pub(super) fn waits(self) -> Self {
        self.parameter("query", ("wait", "Seconds to wait for something."), |_| {
            schema(json!({ "type": "integer", "minimum": 0, "maximum": WAIT, "default": 0 }))
        })
    }

    /// The idempotency key.
    pub(super) fn keyed(self, description: &'static str) -> Self {
        self.parameter("header", ("Idempotency-Key", description), |_| {
            schema(json!({ "type": "string", "minLength": 1, "maxLength": KEY }))
        })
    }

    /// The call parses its body into that type.
    pub fn takes<T: JsonSchema>(self) -> Self {
        self.takes_json(|generator| generator.subschema_for::<T>())
    }

    /// The call takes JSON of another platform.
    pub fn takes_json(mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        self.operation.body = Some(Body::Json(schema));
        self
    }

    pub(super) fn takes_xml(mut self, description: &'static str) -> Self {
        self.operation.body = Some(Body::Xml(description));
        self
    }

    /// The call takes XML, or a payload as JSON.
    pub(super) fn takes_payload(mut self, description: &'static str) -> Self {
        self.operation.body = Some(Body::Payload(description));
        self
    }

    /// The call answers with a document of that type.
    pub fn answers<T: JsonSchema>(self, status: StatusCode, description: &'static str) -> Self {
        self.with_answer(status, description, Content::Json(|generator| generator.subschema_for::<T>()))
    }

    /// The call answers with JSON of another platform.
    pub fn answers_json(self, description: &'static str, schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        self.with_answer(StatusCode::OK, description, Content::Json(schema))
    }

    pub(super) fn answers_text(self, media: &'static str, description: &'static str) -> Self {
        self.with_answer(StatusCode::OK, description, Content::Text(media))
    }

    pub(super) fn answers_nothing(self, description: &'static str) -> Self {
        self.with_answer(StatusCode::NO_CONTENT, description, Content::None)
    }

    fn with_answer(mut self, status: StatusCode, description: &'static str, content: Content) -> Self {
        self.operation.answers.push(Answer { status, description, content });
        self
    }

    /// The answers have the path of their resource, in `Location`.
    pub(super) fn located(mut self) -> Self {
        self.operation.located = true;
        self
    }

    /// The call refuses requests with these statuses, besides those of each call.
    ///
    /// # Panics
    /// Panics at a status that has no usual reason: [`refuses_because`](Self::refuses_because) gives one.
    pub fn refuses(self, statuses: &[u16]) -> Self {
        statuses.iter().fold(self, |call, status| {
            let description = match status {
                403 => "Not allowed.",
                404 => "Not found.",
                409 => "Conflict with an earlier change.",
                410 => "The cursor is lost: go on from `oldest`.",
                422 => "The content breaks a rule: `detail` says which.",
                503 => "Temporarily unavailable: nothing was accepted.",
                507 => "No room for the answer: nothing was accepted.",
                _ => unreachable!("no description of {status}"),
            };
            call.refuses_because(*status, description)
        })
    }

    /// The call refuses requests with a status that has another reason here.
    pub fn refuses_because(mut self, status: u16, description: &'static str) -> Self {
        self.operation.refusals.push((status, description));
        self
    }
}

/// The routes of calls, and their descriptions.
pub(in crate::gateway) fn split(calls: Vec<Call>) -> (Routes, Description) {
    let (mut routes, mut operations) = (Routes::new(), Vec::new());
    for Call { handler, operation } in calls {
        routes = routes.route(operation.path, handler);
        operations.push(operation);
    }
    (routes, Description { operations, written: OnceLock::new() })
}

/// The OpenAPI document of calls, written when it is first asked for.
pub(crate) struct Description {
    operations: Vec<Operation>,
    written: OnceLock<Bytes>,
}

impl Description {
    pub(in crate::gateway) fn append(&mut self, more: Self) {
        self.operations.extend(more.operations);
    }

    fn bytes(&self) -> Bytes {
        self.written.get_or_init(|| self.document().to_string().into()).clone()
    }

    /// OpenAPI 3.1.
    fn document(&self) -> Value {
        let mut schemas = Schemas::new();
        let mut paths = Map::new();
        let problem = schemas.written.subschema_for::<Details>();
        for operation in &self.operations {
            let path = paths.entry(operation.path).or_insert_with(|| json!({}));
            path[operation.method.as_str().to_ascii_lowercase()] = operation.document(&mut schemas, &problem);
        }
        json!({
            "openapi": "3.1.0",
            "info": { "title": "Systole gateway", "version": "1", "description": "Organisms over HTTP: docs/gateway.md." },
            "servers": [{ "url": "/", "description": "The path of this document." }],
            "security": [{ "token": [] }],
            "paths": paths,
            "components": {
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
                "schemas": schemas.definitions(),
            },
        })
    }
}

/// `GET /openapi.json`
pub(super) async fn description(State(app): State<Arc<AppState>>) -> Response {
    view::typed(StatusCode::OK, "application/json", app.description.bytes())
}

/// `GET /.well-known/jwks.json`
pub(super) async fn keys(State(app): State<Arc<AppState>>) -> Result<Response, Problem> {
    let identity = app.organism.identity();
    let identity = identity.ok_or_else(|| Problem::not_found("the organism has no identity, and signs nothing"))?;
    Ok(view::typed(StatusCode::OK, "application/jwk-set+json", identity.jwks().to_owned()))
}

/// Schemas of types: as they are parsed, and as they are written.
struct Schemas {
    parsed: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        let parsed = settings().for_deserialize().with_transform(Parsed);
        let written = settings().for_serialize().with_transform(Written);
        Self { parsed: parsed.into_generator(), written: written.into_generator() }
    }

    fn definitions(mut self) -> Map<String, Value> {
        let mut all = self.parsed.take_definitions(true);
        for (name, written) in self.written.take_definitions(true) {
            let parsed = all.insert(name, written.clone());
            debug_assert!(parsed.is_none_or(|parsed| parsed == written), "two types have one name: {written}");
        }
        all
    }
}

/// The schema of a document that is parsed.
#[derive(Clone)]
struct Parsed;

impl Transform for Parsed {
    fn transform(&mut self, schema: &mut Schema) {
        // What serde takes for a member that is left out is no value that a client may write.
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
        transform_subschemas(self, schema);
    }
}

/// The schema of a document that is written: an object has the members of its type alone, and one that may be left out is
/// left out where it would be null.
#[derive(Clone)]
struct Written;

impl Transform for Written {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(object) = schema.as_object_mut() {
            let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            if let Some(members) = object.get_mut("properties").and_then(Value::as_object_mut) {
                let optional = members.iter_mut().filter(|(name, _)| !required.contains(&name.as_str().into()));
                optional.for_each(|(_, member)| not_null(member));
                object.entry("additionalProperties").or_insert(false.into());
            }
        }
        transform_subschemas(self, schema);
    }
}

/// Takes null from the values of a schema, as schemars writes it for an `Option`.
fn not_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            schema["type"] = name.clone();
        }
    }
    if let Some(others) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        others.retain(|other| other["type"] != "null");
        if let [Value::Object(other)] = others.as_mut_slice() {
            let other = std::mem::take(other);
            let object = schema.as_object_mut().expect("it has a member");
            object.remove("anyOf");
            // A member's own words first.
            other.into_iter().for_each(|(key, value)| _ = object.entry(key).or_insert(value));
        }
    }
}

/// A JSON Schema, written as JSON.
///
/// # Panics
/// Panics if it is no object.
pub fn schema(value: Value) -> Schema {
    value.try_into().expect("an object is a schema")
}

impl Operation {
    fn document(&self, schemas: &mut Schemas, problem: &Schema) -> Value {
        let mut parameters = path_parameters(self.path);
        parameters.extend(self.parameters.iter().map(|parameter| {
            let Parameter { name, place, description, schema } = parameter;
            let schema = schema(&mut schemas.parsed);
            json!({ "name": name, "in": place, "description": description, "schema": schema })
        }));
        let mut responses = Map::new();
        for Answer { status, description, content } in &self.answers {
            // One status may have answers of several media types.
            let response = responses.entry(status.as_str()).or_insert_with(|| json!({ "description": description }));
            match content {
                Content::None => {}
                Content::Json(schema) => {
                    response["content"]["application/json"]["schema"] = schema(&mut schemas.written).into();
                }
                Content::Text(media) => response["content"][media]["schema"]["type"] = "string".into(),
            }
            if self.located {
                response["headers"]["Location"]["schema"]["type"] = "string".into();
            }
        }
        for (status, description) in self.common_refusals().iter().chain(&self.refusals) {
            responses.insert(status.to_string(), refusal(*status, description, problem));
        }
        let mut document = json!({
            "tags": [self.tag], "summary": self.summary, "operationId": self.id(), "responses": responses,
        });
        if !parameters.is_empty() {
            document["parameters"] = parameters.into();
        }
        if let Some(body) = &self.body {
            document["requestBody"] = body.document(&mut schemas.parsed);
        }
        match self.access {
            Access::Token => {}
            Access::Optional => document["security"] = json!([{ "token": [] }, {}]),
            Access::Public => document["security"] = json!([]),
        }
        document
    }

    /// The method and the path, in one word.
    fn id(&self) -> String {
        let path = self.path.strip_prefix("/v1").unwrap_or(self.path);
        let path = path.trim_end_matches(".json").replace(['{', '}'], "").replace(['/', '-', '.'], "_");
        format!("{}{path}", self.method.as_str().to_ascii_lowercase())
    }

    /// The refusals of each call, by what all calls do before their own work.
    fn common_refusals(&self) -> Vec<(u16, &'static str)> {
        const TOO_MANY: &str = "Too many requests, or too much data, at once.";
        if self.access == Access::Public {
            return vec![(
                429,
                "Too many requests, or too much data, at once: the address makes too many requests without a token.",
            )];
        }
        let mut refusals = vec![
            (400, "The request can't be read."),
            (401, "The token is unknown."),
            (429, TOO_MANY),
            (503, "Temporarily unavailable: nothing was accepted."),
        ];
        refusals.extend(match self.body {
            None => [(415, "The request has a body that is encoded.")].as_slice(),
            Some(_) => &[
                (408, "The body is too slow."),
                (413, "The body is too large."),
                (415, "The body is of a media type that the call doesn't take, or encoded."),
            ],
        });
        refusals
    }
}

impl Body {
    fn document(&self, generator: &mut SchemaGenerator) -> Value {
        match self {
            Self::Xml(description) => json!({
                "required": true,
                "description": description,
                "content": { "application/xml": { "schema": { "type": "string" } } },
            }),
            Self::Payload(description) => json!({
                "required": true,
                "description": format!("{description} As JSON a payload is an object of one property: its name."),
                "content": {
                    "application/xml": { "schema": { "type": "string" } },
                    "application/json": { "schema": { "type": ["object", "array"] } },
                },
            }),
            Self::Json(schema) => {
                let schema = schema(generator);
                // An empty body is an empty object.
                let required = has_required(&schema, generator.definitions());
                json!({ "required": required, "content": { "application/json": { "schema": schema } } })
            }
        }
    }
}

/// Returns whether an empty object does not fit a schema.
fn has_required(schema: &Schema, definitions: &Map<String, Value>) -> bool {
    let named = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let object = match named {
        Some(name) => definitions.get(name).and_then(Value::as_object),
        None => schema.as_object(),
    };
    object.is_some_and(|object| {
        let required = object.get("required").and_then(Value::as_array);
        required.is_some_and(|names| !names.is_empty()) || object.contains_key("oneOf")
    })
}

fn refusal(status: u16, description: &str, problem: &Schema) -> Value {
    let mut response = json!({
        "description": description, "content": { "application/problem+json": { "schema": problem } },
    });
    if matches!(status, 429 | 503) {
        let seconds = json!({ "description": "Seconds.", "schema": { "type": "integer", "minimum": 1 } });
        response["headers"]["Retry-After"] = seconds;
    }
    response
}

/// The parameters of a path.
fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| {
        let mut schema = json!({ "type": "string" });
        let description = match name {
            "id" if path.starts_with("/v1/admin/") => "The id of a conversation.",
            "id" if path.starts_with("/v1/questions") => "The id of a question.",
            "id" if path.starts_with("/v1/tasks") => "The id of a task.",
            "id" if path.starts_with("/v1/") => "The id of a message.",
            "id" => "The name of a workspace, or its id.",
            "name" if path.starts_with("/v1/") => "The name of a remote listener.",
            "name" => "The name of a plugin.",
            "mailbox" => "The name of a remote listener.",
            "job" => "The name of a job.",
            "session" => {
                schema["pattern"] = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$".into();
                "The client's name for its session."
            }
            _ => unreachable!("no description of {name}"),
        };
        json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
    };
    names.map(parameter).collect()
}
