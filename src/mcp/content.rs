//! Payloads for parts of the protocol that no contract types: content of tools, prompts and resources, and raw requests to a client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use systole_xml::schema::{ContractError, Payload, PayloadSchema};

use super::{NAMESPACE, schemas};

/// Content of a tool, a prompt or a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// The blocks in their order.
    #[serde(rename = "$value", default)]
    pub blocks: Vec<Block>,
}

/// A block of content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Block {
    /// A text.
    Text(Text),
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// The content of a resource.
    Resource(Resource),
    /// A resource that the client may read.
    Link(Link),
    /// The structured form of the whole: JSON.
    Structured(Structured),
}

/// A text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    /// The speaker in a prompt: `user` or `assistant`.
    #[serde(rename = "@role", default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The text.
    #[serde(rename = "$text", default)]
    pub text: String,
}

/// Bytes with a media type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Media {
    /// The media type.
    #[serde(rename = "@mime")]
    pub mime: String,
    /// The speaker in a prompt: `user` or `assistant`.
    #[serde(rename = "@role", default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Base64 of the bytes.
    #[serde(rename = "$text", default)]
    pub data: String,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// The address of the resource.
    #[serde(rename = "@uri")]
    pub uri: String,
    /// The media type.
    #[serde(rename = "@mime", default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// The speaker in a prompt: `user` or `assistant`.
    #[serde(rename = "@role", default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The content.
    #[serde(rename = "$value")]
    pub body: Body,
}

/// The content of a resource: a text, or base64 of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Body {
    /// A text.
    Text(String),
    /// Base64 of the bytes.
    Blob(String),
}

/// A resource that the client may read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The address of the resource.
    #[serde(rename = "@uri")]
    pub uri: String,
    /// The name.
    #[serde(rename = "@name")]
    pub name: String,
    /// The title for people.
    #[serde(rename = "@title", default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for models.
    #[serde(rename = "@description", default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(rename = "@mime", default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// The speaker in a prompt: `user` or `assistant`.
    #[serde(rename = "@role", default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Structured {
    /// The text of the JSON.
    #[serde(rename = "$text", default)]
    pub json: String,
}

/// A request for the content of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Read {
    /// The address of the resource.
    #[serde(rename = "@uri")]
    pub uri: String,
}

/// Requests to the client of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// The requests.
    #[serde(default)]
    pub request: Vec<Raw>,
}

/// The results of requests to a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Responses {
    /// The results.
    #[serde(default)]
    pub response: Vec<Raw>,
}

/// A request or its result, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Raw {
    /// The key that a request and its result share.
    #[serde(rename = "@key")]
    pub key: String,
    /// The method, of a request.
    #[serde(rename = "@method", default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The parameters or the result, as JSON.
    #[serde(rename = "$text", default)]
    pub json: String,
}

macro_rules! payloads {
    ($($payload:ident = $root:literal),+) => {
        $(
            impl Payload for $payload {
                const NAMESPACE: &'static str = NAMESPACE;
                const ROOT: &'static str = $root;

                fn contract() -> Result<PayloadSchema, ContractError> {
                    let known = schemas().iter().find(|schema| *schema.qname() == Self::qname());
                    known.cloned().ok_or_else(|| ContractError::Reserved { payload: Self::qname() })
                }
            }
        )+
    };
}

pub(super) use payloads;

payloads!(Content = "content", Read = "read", Requests = "requests", Responses = "responses");

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use systole_xml::schema::{Catalog, Validator, decode_canonical, encode};

    use super::*;

    #[test]
    fn content_comes_back_as_it_was() {
        let text = |text: &str| Block::Text(Text { text: text.to_owned(), ..Text::default() });
        let media = |mime: &str| Media { mime: mime.to_owned(), data: "aGk=".to_owned(), role: None };
        let resource =
            |body| Resource { uri: "test://a".to_owned(), mime: Some("text/plain".to_owned()), role: None, body };
        let link = Link { uri: "test://b".to_owned(), name: "b".to_owned(), ..Link::default() };
        let content = Content {
            blocks: vec![
                text("one <&> \n two"),
                Block::Image(media("image/png")),
                text(""),
                Block::Audio(media("audio/wav")),
                Block::Resource(resource(Body::Text("hello".to_owned()))),
                Block::Resource(resource(Body::Blob("aGk=".to_owned()))),
                Block::Link(link),
                Block::Structured(Structured { json: "{\"a\":1}".to_owned() }),
            ],
        };
        let catalog = Catalog::only(schemas().iter().cloned());
        let mut validator = Validator::new(Arc::new(catalog));
        for content in [content, Content::default()] {
            let canonical = encode(&content).unwrap();
            assert!(validator.validate(canonical.clone()).is_ok(), "{}", canonical.as_str());
            assert_eq!(decode_canonical::<Content>(&canonical).unwrap(), content);
        }
    }
}
