//! Prompts and resources: the prompt, schema and example of each tool, and those that listeners write and read.

use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Prompt, PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, Role,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use systole_core::vocab::Name;
use systole_xml::schema::PayloadSchema;

use super::call::{Outcome, Wanted, object};
use super::handler::Who;
use super::tools::{Call, Tools};
use super::written::{Written, repeated_key};
use super::{Face, answer};
use crate::settings::McpResource;

/// The addresses of parts of a tool's contract.
const TEMPLATE: &str = "systole://{tool}/{part}";
/// The parts, each with its media type.
const PARTS: [(&str, &str); 3] =
    [("schema", "application/xml"), ("example", "application/xml"), ("prompt", "text/plain")];

/// The prompts of a client: those that listeners write, and one for each tool, which tells how to call it.
pub(super) fn prompts(tools: &Tools) -> Vec<Prompt> {
    let of_tool = |tool: &rmcp::model::Tool| {
        let about = format!("How to write the payload of the tool {}.", tool.name);
        Prompt::new(tool.name.clone(), Some(about), None)
    };
    tools.prompts.iter().cloned().chain(tools.tools.iter().map(of_tool)).collect()
}

/// A part of the contract of a payload.
fn part(schema: &PayloadSchema, part: &str) -> Option<String> {
    match part {
        "schema" => Some(schema.document().to_owned()),
        "example" => schema.example().map(|example| example.as_str().to_owned()),
        "prompt" => Some(schema.prompt().to_owned()),
        _ => None,
    }
}

impl Face {
    pub(super) async fn prompt(
        self: &Arc<Self>,
        who: &Who,
        params: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(name) = Written::text(&context.extensions)?.and_then(|written| repeated_key(&written)) {
            let why = format!("/{name}: the argument is repeated: write it once");
            return Err(ErrorData::invalid_params(why, Some(json!({ "pointer": format!("/{name}") }))));
        }
        let tools = self.tools(&who.client);
        let Some(call) = tools.prompt(&params.name) else {
            let call = tools.call(&params.name).ok_or_else(|| {
                let why = format!("Unknown prompt: see prompts/list for those of '{}'", who.client);
                ErrorData::invalid_params(why, Some(json!({ "prompt": params.name })))
            })?;
            let message = PromptMessage::new_text(Role::User, call.schema.prompt());
            return Ok(GetPromptResponse::Complete(GetPromptResult::new(vec![message])));
        };
        let wanted = Wanted {
            name: &params.name,
            object: object(Some(as_values(call.schema.json_schema(), params.arguments.unwrap_or_default())?)),
            state: params.request_state,
            responses: params.input_responses.unwrap_or_default(),
            is_task: false,
        };
        match self.call(who, call, wanted, context).await? {
            Outcome::Answered(answers) => {
                let prompt = answer::prompt(self.app.organism(), &answers);
                Ok(prompt.map_err(|why| ErrorData::internal_error(why, None))?.into())
            }
            Outcome::Needs(input) => Ok(input.into()),
            Outcome::Refused(problem) => Err(ErrorData::invalid_params(answer::words(&problem), None)),
            Outcome::Task(_) => Err(ErrorData::internal_error("a prompt is no task", None)),
        }
    }

    /// The resources that a client may read.
    pub(super) fn resources(&self, client: &Name) -> Vec<Resource> {
        let tools = self.tools(client);
        let listed = self.readable(client).filter(|resource| !is_template(&resource.uri)).map(|resource| {
            let mut listed = Resource::new(&resource.uri, &resource.name);
            listed.title.clone_from(&resource.title);
            listed.description.clone_from(&resource.description);
            listed.mime_type.clone_from(&resource.mime);
            listed
        });
        let mut all: Vec<_> = self.listed_skills().chain(listed).collect();
        for (tool, schema) in tools.tools.iter().filter_map(|tool| Some((tool, &tools.call(&tool.name)?.schema))) {
            for (name, mime) in PARTS {
                if part(schema, name).is_some() {
                    let (uri, name) = (format!("systole://{}/{name}", tool.name), format!("{} {name}", tool.name));
                    all.push(Resource::new(uri, name).with_mime_type(mime));
                }
            }
        }
        all
    }

    /// The templates of resources that a client may read.
    pub(super) fn templates(&self, client: &Name) -> Vec<ResourceTemplate> {
        let listed = self.readable(client).filter(|resource| is_template(&resource.uri)).map(|resource| {
            let mut listed = ResourceTemplate::new(&resource.uri, &resource.name);
            listed.title.clone_from(&resource.title);
            listed.description.clone_from(&resource.description);
            listed.mime_type.clone_from(&resource.mime);
            listed
        });
        let own = ResourceTemplate::new(TEMPLATE, "contract of a tool");
        let own = own.with_description("The schema, an example or the prompt of a tool's payload.");
        listed.chain([own]).collect()
    }

    /// The resources of listeners that a client may call.
    fn readable<'a>(&'a self, client: &'a Name) -> impl Iterator<Item = &'a McpResource> {
        let may = |resource: &&McpResource| Call::read(self.app.organism(), client, &resource.listener).is_some();
        self.settings.resources.iter().filter(may)
    }

    pub(super) async fn read(
        self: &Arc<Self>,
        who: &Who,
        params: ReadResourceRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = params.uri.as_str();
        if let Some(contents) = self.skill_file(&who.client, uri) {
            return Ok(ReadResourceResult::new(vec![contents]).into());
        }
        if let Some((tool, name)) = uri.strip_prefix("systole://").and_then(|path| path.rsplit_once('/'))
            && let Some(call) = self.tools(&who.client).call(tool)
            && let (Some(text), Some((_, mime))) =
                (part(&call.schema, name), PARTS.iter().find(|(part, _)| *part == name))
        {
            let contents = ResourceContents::text(text, uri).with_mime_type(*mime);
            return Ok(ReadResourceResult::new(vec![contents]).into());
        }
        let resource = self.readable(&who.client).find(|resource| fits(&resource.uri, uri));
        let call = resource.and_then(|found| Call::read(self.app.organism(), &who.client, &found.listener));
        let Some(call) = call else { return Err(unknown(uri, context)) };
        let wanted = Wanted {
            name: uri,
            object: object(Some(json!({ "@uri": uri }))),
            state: params.request_state,
            responses: params.input_responses.unwrap_or_default(),
            is_task: false,
        };
        match self.call(who, &call, wanted, context).await? {
            Outcome::Answered(answers) => {
                let resource = answer::resource(self.app.organism(), uri, &answers);
                Ok(resource.map_err(|why| ErrorData::internal_error(why, None))?.into())
            }
            Outcome::Needs(input) => Ok(input.into()),
            Outcome::Refused(problem) => Err(ErrorData::invalid_params(answer::words(&problem), None)),
            Outcome::Task(_) => Err(ErrorData::internal_error("a resource is no task", None)),
        }
    }
}

/// The error of an unknown address, whose code the revision gives.
fn unknown(uri: &str, context: &RequestContext<RoleServer>) -> ErrorData {
    let (why, data) = ("Resource not found: see resources/list", Some(json!({ "uri": uri })));
    match context.protocol_version() {
        Some(version) if version >= ProtocolVersion::V_2026_07_28 => ErrorData::invalid_params(why, data),
        _ => ErrorData::resource_not_found(why, data),
    }
}

fn is_template(uri: &str) -> bool {
    uri.contains('{')
}

/// Checks whether an address is that of a resource, or fits a template: each `{name}` stands for one segment of a path.
fn fits(template: &str, uri: &str) -> bool {
    let (mut template, mut uri) = (template, uri);
    while let Some((before, rest)) = template.split_once('{') {
        let (Some(behind), Some((_, after))) = (uri.strip_prefix(before), rest.split_once('}')) else { return false };
        let end = after.split('{').next().unwrap_or_default();
        let until = match end.is_empty() {
            true => behind.find('/').unwrap_or(behind.len()),
            false => match behind.find(end) {
                Some(until) => until,
                None => return false,
            },
        };
        if until == 0 || behind[..until].contains('/') {
            return false;
        }
        (template, uri) = (after, &behind[until..]);
    }
    template == uri
}

/// The values that an argument may have, by the enumerations of the contract.
pub(super) fn complete(tools: &Tools, params: &CompleteRequestParams) -> CompleteResult {
    let argument = &params.argument;
    let values: Vec<String> = match &params.r#ref {
        Reference::Prompt(prompt) => {
            let schema = tools.prompt(&prompt.name).map(|call| call.schema.json_schema());
            schema.map(|schema| enumerated(schema, &argument.name)).unwrap_or_default()
        }
        Reference::Resource(resource) if resource.uri == TEMPLATE => match argument.name.as_str() {
            "tool" => tools.tools.iter().map(|tool| tool.name.clone().into_owned()).collect(),
            "part" => PARTS.iter().map(|(part, _)| (*part).to_owned()).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut fitting: Vec<String> = values.into_iter().filter(|value| value.starts_with(&argument.value)).collect();
    let (total, most) = (fitting.len(), CompletionInfo::MAX_VALUES);
    fitting.truncate(most);
    let info = CompletionInfo::with_pagination(fitting, u32::try_from(total).ok(), total > most);
    CompleteResult::new(info.unwrap_or_default())
}

/// The schema behind a reference, or the schema itself.
fn resolved<'s>(document: &'s Value, schema: &'s Value) -> &'s Value {
    schema["$ref"].as_str().and_then(|place| document.pointer(place.strip_prefix('#')?)).unwrap_or(schema)
}

/// The form in which an argument of a prompt is written: the protocol has texts alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Whole,
    Number,
    Flag,
    /// JSON, of a list, an object, or what the schema doesn't say.
    Json,
}

impl Form {
    /// The form of a property of a payload.
    pub(super) fn of(document: &Value, property: &Value) -> Self {
        let property = resolved(document, property);
        let texts = ["enum", "const"].iter().filter_map(|key| property.get(*key));
        let mut texts = texts.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        match &property["type"] {
            Value::String(kind) => match kind.as_str() {
                "string" => Self::Text,
                "integer" => Self::Whole,
                "number" => Self::Number,
                "boolean" => Self::Flag,
                _ => Self::Json,
            },
            Value::Array(kinds) if kinds.iter().any(|kind| kind == "string") => Self::Text,
            Value::Null if texts.any(Value::is_string) => Self::Text,
            _ => Self::Json,
        }
    }

    /// The words for what stands in the text.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Whole => "a whole number, such as 2",
            Self::Number => "a number, such as 1.5",
            Self::Flag => "true or false",
            Self::Json => "JSON, such as [\"a\"] for a list of texts",
        }
    }
}

/// The arguments of a prompt as values: the protocol has texts, and the payload may have numbers, flags, lists and objects. A
/// number keeps its digits. The contract judges the values.
///
/// # Errors
/// The argument that has another form.
fn as_values(schema: &Value, arguments: Map<String, Value>) -> Result<BTreeMap<String, Box<RawValue>>, ErrorData> {
    let value = |(name, given): (String, Value)| {
        let form = Form::of(schema, &schema["properties"][&name]);
        let json = match &given {
            // An unknown argument is refused by the contract.
            Value::String(text) if form != Form::Text && schema["properties"].get(&name).is_some() => {
                text.trim().to_owned()
            }
            given => given.to_string(),
        };
        match RawValue::from_string(json) {
            Ok(json) => Ok((name, json)),
            Err(_) => {
                let why = format!("/{name}: write {}, as a text; found {given}", form.words());
                Err(ErrorData::invalid_params(why, Some(json!({ "pointer": format!("/{name}") }))))
            }
        }
    };
    arguments.into_iter().map(value).collect()
}

fn enumerated(schema: &Value, name: &str) -> Vec<String> {
    let property = resolved(schema, &schema["properties"][name]);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    property["enum"].as_array().into_iter().flatten().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_fit_one_segment_for_each_name() {
        assert!(fits("test://template/{id}/data", "test://template/123/data"));
        assert!(fits("a://{x}/{y}", "a://1/2"));
        assert!(fits("a://b", "a://b"));
        for other in ["test://template//data", "test://template/1/2/data", "test://template/1", "x"] {
            assert!(!fits("test://template/{id}/data", other), "{other}");
        }
        assert!(!fits("a://{x}", "a://1/2") && !fits("a://b", "a://bc"));
    }

    #[test]
    fn arguments_of_prompts_are_texts_that_become_values() {
        let schema = json!({
            "properties": {
                "name": { "type": "string" }, "unit": { "$ref": "#/$defs/unit" }, "count": { "type": "integer" },
                "size": { "type": "number" }, "loud": { "type": "boolean" }, "lines": { "type": "array" },
                "note": { "type": ["string", "null"] },
            },
            "$defs": { "unit": { "enum": ["metre", "mile"] } },
        });
        let values = |arguments: Value| {
            as_values(&schema, arguments.as_object().unwrap().clone())
                .map(|values| serde_json::to_string(&values).unwrap())
                .map_err(|error| error.message.into_owned())
        };
        let given = json!({
            "name": "7", "unit": "mile", "count": " 12345678901234567890123 ", "size": "1.50", "loud": "true",
            "lines": "[1, \"a\"]", "note": "true", "other": "9",
        });
        let expected = r#"{"count":12345678901234567890123,"lines":[1, "a"],"loud":true,"name":"7","note":"true","other":"9","size":1.50,"unit":"mile"}"#;
        assert_eq!(values(given).unwrap(), expected);
        assert_eq!(values(json!({ "count": 3, "loud": false })).unwrap(), r#"{"count":3,"loud":false}"#);
        for (given, why) in [
            (json!({ "count": "two" }), "/count: write a whole number, such as 2, as a text; found \"two\""),
            (json!({ "size": "" }), "/size: write a number"),
            (json!({ "loud": "yes" }), "/loud: write true or false"),
            (json!({ "lines": "a" }), "/lines: write JSON"),
        ] {
            let said = values(given).unwrap_err();
            assert!(said.starts_with(why), "{said}");
        }
    }

    #[test]
    fn enumerations_complete_also_behind_a_reference() {
        let schema = json!({
            "properties": { "unit": { "$ref": "#/$defs/unit" }, "size": { "enum": [1, 2] } },
            "$defs": { "unit": { "enum": ["metre", "mile"] } },
        });
        assert_eq!(enumerated(&schema, "unit"), ["metre", "mile"]);
        assert_eq!(enumerated(&schema, "size"), ["1", "2"]);
        assert!(enumerated(&schema, "other").is_empty());
    }
}
