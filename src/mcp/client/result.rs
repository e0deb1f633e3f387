//! Results of tools as payloads.
//!
//! A result with an output schema is its typed payload, unless it has more than structured content and texts beside it, or
//! properties that the schema allows and does not name: those are `content`, as all results without an output schema. What the
//! schema describes is judged in either case.

use std::borrow::Cow;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::Serialize;
use serde_json::Value;
use systole_core::vocab::{Fault, FaultCode, QName};
use systole_xml::ladder::escape::carriable;
use systole_xml::ladder::{Raw, parse};
use systole_xml::schema::{Validator, encode};

use super::shape::Carried;
use super::{Tool, raw};
use crate::listeners::mcp::LockedTool;
use crate::mcp::content::{Block, Body, Content, Link, Media, Resource, Structured, Text};
use crate::runtime::RunContext;
use crate::terminal::readable;

/// Characters of an error of a tool that its caller gets.
const SAID: usize = 4000;

/// The payload of a result, as bytes that the ladder judges.
///
/// # Errors
/// The fault for the caller: the error of the tool, or a result that breaks its own schema.
pub(super) fn payload(
    Tool { locked: tool, result: form, .. }: &Tool,
    namespace: &str,
    result: CallToolResult,
    context: &RunContext,
) -> Result<Raw, Fault> {
    if result.is_error == Some(true) {
        return Err(Fault::new(FaultCode::Failed, error_text(&result)));
    }
    if let Some((element, form)) = tool.result.as_ref().zip(form.as_ref()) {
        let Some(structured) = structured(&result) else {
            return Err(broken(tool, "it has no structured content"));
        };
        let structured = raw::carriable(&structured);
        let has_texts_alone = result.content.iter().all(|block| matches!(block, ContentBlock::Text(_)));
        match form.to_payload(&structured) {
            Ok(Carried { json, is_whole }) => {
                let typed = typed(tool, namespace, element, &json, context)?;
                if is_whole && has_texts_alone {
                    return Ok(typed);
                }
            }
            Err(why) => return Err(broken(tool, &why)),
        }
    }
    let written = encode(&content(result)).map_err(|error| broken(tool, &error.to_string()))?;
    fitting(tool, written.as_str(), context)?;
    Ok(Raw::new(written.as_str().to_owned()))
}

/// The structured content of a result, as it was written.
fn structured(result: &CallToolResult) -> Option<Cow<'_, str>> {
    match result.structured_content.as_ref()? {
        // The transport has made a string of its text.
        Value::String(text) => Some(text.into()),
        other => Some(other.to_string().into()),
    }
}

fn typed(tool: &LockedTool, namespace: &str, element: &str, json: &str, context: &RunContext) -> Result<Raw, Fault> {
    let limits = &context.limits().xml;
    let name = QName::new(namespace, element).ok();
    let schema = name.and_then(|name| context.catalog().get(&name));
    let schema = schema.ok_or_else(|| broken(tool, "its payload has no schema: import the server again"))?;
    let read = schema.from_json(json, limits).map_err(|error| match json.len() > limits.message_bytes {
        true => too_large(tool, json.len(), limits.message_bytes),
        false => broken(tool, &error.to_string()),
    })?;
    fitting(tool, read.xml(), context)?;
    let canonical =
        parse(&Raw::new(read.xml().to_owned()), limits).map_err(|error| broken(tool, &error.to_string()))?;
    let raw = Raw::new(canonical.as_str().to_owned());
    Validator::new(context.catalog.clone()).validate(canonical).map_err(|error| {
        let place = read.pointers(&error).into_iter().next().unwrap_or_default();
        broken(tool, &if place.is_empty() { error.to_string() } else { format!("{place}: {error}") })
    })?;
    Ok(raw)
}

/// Refuses a result that is larger than a message.
fn fitting(tool: &LockedTool, xml: &str, context: &RunContext) -> Result<(), Fault> {
    let most = context.limits().xml.message_bytes;
    if xml.len() > most { Err(too_large(tool, xml.len(), most)) } else { Ok(()) }
}

fn too_large(tool: &LockedTool, bytes: usize, most: usize) -> Fault {
    let name = &tool.facts.name;
    let message = format!(
        "the result of the tool '{name}' has {bytes} bytes as a message, more than the {most} of limits.message_bytes: ask for less, or raise it; the call was made, and its result is not used"
    );
    Fault::new(FaultCode::Limit, message)
}

/// The text of an error that a tool returned.
fn error_text(result: &CallToolResult) -> String {
    let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).map(|text| &*text.text).collect();
    let mut text = texts.join("\n");
    if text.trim().is_empty() {
        text = match structured(result) {
            Some(value) => value.into_owned(),
            None => "the tool reported an error, and no words about it".to_owned(),
        };
    }
    if let Some((end, _)) = text.char_indices().nth(SAID) {
        text.truncate(end);
        text.push('…');
    }
    carriable(&text).into_owned()
}

fn broken(tool: &LockedTool, why: &str) -> Fault {
    let name = &tool.facts.name;
    let message = format!(
        "the result of the tool '{name}' breaks its own output schema: {}; the call was made, and its result is not used",
        readable(why)
    );
    Fault::new(FaultCode::Failed, message)
}

fn content(result: CallToolResult) -> Content {
    let structured = structured(&result).map(Cow::into_owned);
    let mut blocks: Vec<Block> = result.content.into_iter().map(block).collect();
    if let Some(json) = structured {
        blocks.push(Block::Structured(Structured { json: carried(json) }));
    }
    Content { blocks }
}

fn block(block: ContentBlock) -> Block {
    match block {
        ContentBlock::Text(text) => Block::Text(Text { role: None, text: carried(text.text) }),
        ContentBlock::Image(image) => Block::Image(media(image.mime_type, image.data)),
        ContentBlock::Audio(audio) => Block::Audio(media(audio.mime_type, audio.data)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                resource(uri, mime_type, Body::Text(carried(text)))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                resource(uri, mime_type, Body::Blob(carried(blob)))
            }
            other => unknown(&other),
        },
        ContentBlock::ResourceLink(link) => Block::Link(Link {
            uri: carried(link.uri),
            name: carried(link.name),
            title: link.title.map(carried),
            description: link.description.map(carried),
            mime: link.mime_type.map(carried),
            role: None,
        }),
        other => unknown(&other),
    }
}

/// Content of a kind that a later revision has, as JSON.
fn unknown(content: &impl Serialize) -> Block {
    Block::Structured(Structured { json: carried(serde_json::to_string(content).unwrap_or_default()) })
}

fn media(mime: String, data: String) -> Media {
    Media { mime: carried(mime), role: None, data: carried(data) }
}

fn resource(uri: String, mime: Option<String>, body: Body) -> Block {
    Block::Resource(Resource { uri: carried(uri), mime: mime.map(carried), role: None, body })
}

/// Text with U+FFFD for characters that XML can't carry.
fn carried(text: String) -> String {
    match carriable(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(text) => text,
    }
}
