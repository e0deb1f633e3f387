//! Questions of servers: each is a call of the listener that answers them, and its reply the answer.
#![expect(deprecated, reason = "servers of earlier revisions ask for completions so")]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::Poll;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use systole_core::core::Answer;
use systole_core::vocab::{Fault, FaultCode};
use systole_xml::ladder::escape::carriable;
use systole_xml::schema::{ContractError, Payload, PayloadSchema};
use tokio::sync::oneshot;

use super::sampling;
use super::session::{Question, refused};
use crate::listeners::mcp::McpListenerSettings;
use crate::mcp::NAMESPACE;
use crate::mcp::content::payloads;
use crate::runtime::{Calling, RunContext, call_to};

/// A question of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Elicitation {
    /// The listener whose server asks.
    #[serde(rename = "@server")]
    pub server: String,
    /// The question, in the words of the server.
    pub message: String,
    /// The values that it asks for.
    #[serde(default)]
    pub field: Vec<Field>,
}

/// A value that a server asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Field {
    /// The name of the value.
    #[serde(rename = "@name")]
    pub name: String,
    /// The type of the value.
    #[serde(rename = "@type")]
    pub kind: Kind,
    /// True if an answer has it.
    #[serde(rename = "@required", default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The title.
    #[serde(rename = "@title", default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(rename = "@description", default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value if there is none in the answer.
    #[serde(rename = "@default", default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The values that may be chosen.
    #[serde(default)]
    pub option: Vec<String>,
}

/// The type of a value that a server asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Some of the options.
    Choices,
}

/// The answer to a question of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Elicited {
    /// The decision.
    #[serde(rename = "@action")]
    pub action: Action,
    /// The values.
    #[serde(default)]
    pub value: Vec<Given>,
}

/// The decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Action {
    /// The server gets the values.
    Accept,
    /// The server gets no values.
    Decline,
    /// There is no decision.
    Cancel,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Given {
    /// The field.
    #[serde(rename = "@name")]
    pub name: String,
    /// The value.
    #[serde(rename = "$text", default)]
    pub text: String,
}

payloads!(Elicitation = "elicitation", Elicited = "elicited");

/// The schemas of questions and answers, from `schemas/mcp-questions.xsd`.
pub(crate) fn schemas() -> &'static [PayloadSchema] {
    static ALL: LazyLock<Vec<PayloadSchema>> = LazyLock::new(|| {
        // The document is part of the program, and its tests compile it.
        PayloadSchema::from_xsd("mcp-questions.xsd", include_str!("../../../schemas/mcp-questions.xsd"))
            .expect("mcp-questions.xsd compiles")
    });
    &ALL
}

/// The questions of a call that wait for answers.
pub(super) struct Questions<'c> {
    settings: &'c McpListenerSettings,
    context: &'c RunContext,
    open: Vec<Open>,
}

struct Open {
    calling: Calling<Answer>,
    asked: Asked,
}

enum Asked {
    /// A question to a person, with the number of wrong answers so far.
    Elicitation { question: Elicitation, answer: oneshot::Sender<ElicitResult>, wrong: usize },
    /// A request for a completion.
    Sampling(oneshot::Sender<Result<CreateMessageResult, ErrorData>>),
}

/// Wrong answers to a question, after which it is cancelled.
const WRONG: usize = 5;

impl<'c> Questions<'c> {
    /// Lets the listeners of the settings answer; without one questions are declined.
    pub(super) fn new(settings: &'c McpListenerSettings, context: &'c RunContext) -> Self {
        Self { settings, context, open: Vec::new() }
    }

    /// Returns whether a question has no answer yet.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Asks a question.
    pub(super) fn ask(&mut self, question: Question) {
        let server = self.context.contract().name.as_str();
        match question {
            Question::Elicitation(asked, answer) => {
                let question = elicitation(server, asked);
                match self.settings.questions.as_ref().zip(question) {
                    Some((listener, question)) => {
                        let calling = self.context.thread().call_any(call_to(listener.as_str(), question.clone()));
                        self.open.push(Open { calling, asked: Asked::Elicitation { question, answer, wrong: 0 } });
                    }
                    None => drop(answer.send(ElicitResult::new(ElicitationAction::Decline))),
                }
            }
            Question::Sampling(asked, answer) => {
                let Some(listener) = &self.settings.sampling else {
                    return drop(
                        answer.send(Err(refused("nothing completes texts here: no `sampling` is configured"))),
                    );
                };
                match sampling::request(server, asked) {
                    Ok(request) => {
                        let calling = self.context.thread().call_any(call_to(listener.as_str(), request));
                        self.open.push(Open { calling, asked: Asked::Sampling(answer) });
                    }
                    Err(why) => drop(answer.send(Err(refused(&why)))),
                }
            }
        }
    }

    /// Waits until a question is answered; for ever if there is none.
    ///
    /// # Cancel safety
    /// Dropping the future loses no answer.
    pub(super) async fn next(&mut self) {
        poll_fn(|cx| {
            for at in 0..self.open.len() {
                if let Poll::Ready(outcome) = Pin::new(&mut self.open[at].calling).poll(cx) {
                    let open = self.open.swap_remove(at);
                    self.take(open, outcome);
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// Hands an answer over; a wrong one is asked for again, with the rule that it breaks.
    fn take(&mut self, open: Open, outcome: Result<Answer, Fault>) {
        let (question, answer, wrong) = match open.asked {
            Asked::Elicitation { question, answer, wrong } => (question, answer, wrong),
            Asked::Sampling(answer) => return drop(answer.send(sampling::result(outcome))),
        };
        let settings = self.settings;
        let result = match (answered(&question.field, outcome), &settings.questions) {
            (Ok(result), _) => result,
            (Err(why), Some(listener)) if wrong + 1 < WRONG => {
                let message = format!("{why}; please answer again. {}", question.message);
                let again = Elicitation { message: carriable(&message).into_owned(), ..question.clone() };
                let calling = self.context.thread().call_any(call_to(listener.as_str(), again));
                let asked = Asked::Elicitation { question, answer, wrong: wrong + 1 };
                return self.open.push(Open { calling, asked });
            }
            (Err(why), _) => {
                let listener = &self.context.contract().name;
                tracing::warn!(%listener, "after {WRONG} wrong answers, a question of the server is cancelled: {why}");
                ElicitResult::new(ElicitationAction::Cancel)
            }
        };
        let _ = answer.send(result);
    }

    /// Asks a question, and waits for its answer.
    pub(super) async fn answer(&mut self, asked: ElicitRequestParams) -> ElicitResult {
        let (answer, mut answered) = oneshot::channel();
        self.ask(Question::Elicitation(asked, answer));
        self.all().await;
        answered.try_recv().unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
    }

    /// Lets a text be completed, and waits for it.
    ///
    /// # Errors
    /// The reason why there is no completion.
    pub(super) async fn complete(
        &mut self,
        asked: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let (answer, mut answered) = oneshot::channel();
        self.ask(Question::Sampling(asked, answer));
        self.all().await;
        answered.try_recv().unwrap_or_else(|_| Err(refused("nothing completed it")))
    }

    /// Waits until each question is answered.
    async fn all(&mut self) {
        while self.are_open() {
            self.next().await;
        }
    }
}

/// A question as a payload; `None` for those that want a browser.
fn elicitation(server: &str, asked: ElicitRequestParams) -> Option<Elicitation> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = asked else { return None };
    let schema = serde_json::to_value(requested_schema).ok()?;
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let field = fields.map(|(name, schema)| field(name, schema, required.contains(&name.as_str()))).collect();
    Some(Elicitation { server: server.to_owned(), message: carriable(&message).into_owned(), field })
}

fn field(name: &str, schema: &Value, is_required: bool) -> Field {
    let text = |key: &str| schema[key].as_str().map(|text| carriable(text).into_owned());
    let items = &schema["items"];
    let kind = match schema["type"].as_str() {
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        Some("array") => Kind::Choices,
        _ => Kind::String,
    };
    let default = match &schema["default"] {
        Value::Null => None,
        Value::String(text) => Some(carriable(text).into_owned()),
        other => Some(other.to_string()),
    };
    // Titled options are constants of a choice.
    let of = |schema: &Value| {
        let plain = schema["enum"].as_array().into_iter().flatten();
        let titled = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
        let all = plain.chain(titled.map(|option| &option["const"])).filter_map(Value::as_str);
        all.map(|option| carriable(option).into_owned()).collect::<Vec<_>>()
    };
    let option = if kind == Kind::Choices { of(items) } else { of(schema) };
    Field {
        name: carriable(name).into_owned(),
        kind,
        required: is_required.then_some(true),
        title: text("title"),
        description: text("description"),
        default,
        option,
    }
}

/// The answer for the server.
///
/// # Errors
/// The rule that the values break.
fn answered(fields: &[Field], outcome: Result<Answer, Fault>) -> Result<ElicitResult, String> {
    let action = match outcome.map(|answer| answer.decode::<Elicited>()) {
        Ok(Ok(Elicited { action: Action::Accept, value })) => {
            let content = content(fields, &value)?;
            return Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)));
        }
        Ok(Ok(Elicited { action: Action::Decline, .. })) => ElicitationAction::Decline,
        // The listener has refused to answer, as people do.
        Err(fault) if fault.code == FaultCode::Failed => ElicitationAction::Decline,
        Ok(_) | Err(_) => ElicitationAction::Cancel,
    };
    Ok(ElicitResult::new(action))
}

/// The values of an answer as JSON.
fn content(fields: &[Field], given: &[Given]) -> Result<Map<String, Value>, String> {
    let mut content = Map::new();
    for field in fields {
        let texts: Vec<&str> = given.iter().filter(|one| one.name == field.name).map(|one| &*one.text).collect();
        let name = &field.name;
        if field.kind == Kind::Choices {
            let default = || field.default.as_deref().and_then(|text| serde_json::from_str(text).ok());
            let chosen = if texts.is_empty() { default() } else { Some(texts.into()) };
            match chosen {
                Some(chosen) => drop(content.insert(name.clone(), chosen)),
                None if field.required == Some(true) => drop(content.insert(name.clone(), Value::Array(Vec::new()))),
                None => {}
            }
            continue;
        }
        let Some(text) = texts.first().copied().or(field.default.as_deref()) else {
            if field.required == Some(true) {
                return Err(format!("the field '{name}' has no value"));
            }
            continue;
        };
        let read = |is_right: fn(&Value) -> bool, what: &str| {
            let value = serde_json::from_str(text.trim()).ok().filter(is_right);
            value.ok_or_else(|| format!("the value '{text}' of the field '{name}' is no {what}"))
        };
        let value = match field.kind {
            Kind::Integer => read(|value| value.is_i64() || value.is_u64(), "whole number")?,
            Kind::Number => read(Value::is_number, "number")?,
            Kind::Boolean => read(Value::is_boolean, "truth value")?,
            Kind::String | Kind::Choices => Value::from(text),
        };
        content.insert(name.clone(), value);
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use systole_xml::schema::{Catalog, Validator, encode};

    use super::*;

    fn question() -> Elicitation {
        let asked = json!({
            "mode": "form",
            "message": "Who?\u{1}",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "age": { "type": "integer" },
                    "name": { "type": "string", "title": "Name" },
                    "sure": { "type": "boolean", "default": true },
                    "color": { "type": "string", "enum": ["red", "green"] },
                },
                "required": ["name", "age"],
            },
        });
        elicitation("files", serde_json::from_value(asked).unwrap()).unwrap()
    }

    #[test]
    fn a_question_is_a_payload_with_a_field_for_each_value() {
        let question = question();
        assert_eq!(question.message, "Who?\u{fffd}");
        let names: Vec<_> = question.field.iter().map(|field| (&*field.name, field.kind, field.required)).collect();
        let yes = Some(true);
        assert!(names.contains(&("age", Kind::Integer, yes)) && names.contains(&("sure", Kind::Boolean, None)));
        assert!(question.field.iter().any(|field| field.option == ["red", "green"]));
        let mut validator = Validator::new(Arc::new(Catalog::only(schemas().iter().cloned())));
        validator.validate(encode(&question).unwrap()).unwrap();
    }

    #[test]
    fn a_listener_that_refuses_declines_and_one_that_fails_cancels() {
        for (code, expected) in
            [(FaultCode::Failed, ElicitationAction::Decline), (FaultCode::Timeout, ElicitationAction::Cancel)]
        {
            let answer = answered(&question().field, Err(Fault::new(code, "the person declined to answer")));
            assert_eq!(answer.unwrap().action, expected);
        }
    }

    #[test]
    fn an_answer_has_the_types_that_the_server_asked_for() {
        let given = |name: &str, text: &str| Given { name: name.to_owned(), text: text.to_owned() };
        let fields = question().field;
        let right =
            content(&fields, &[given("age", "7"), given("name", "7"), given("sure", " false "), given("x", "y")]);
        assert_eq!(Value::Object(right.unwrap()), json!({ "age": 7, "name": "7", "sure": false }));
        let right = content(&fields, &[given("age", "7"), given("name", "a")]);
        assert_eq!(right.unwrap()["sure"], json!(true), "the default");
        assert!(content(&fields, &[given("age", "seven"), given("name", "a")]).unwrap_err().contains("seven"));
        assert!(content(&fields, &[given("name", "a")]).unwrap_err().contains("no value"));
        assert!(content(&fields, &[given("age", "1.5"), given("name", "a")]).is_err());
    }
}
