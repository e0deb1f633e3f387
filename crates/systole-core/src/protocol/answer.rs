//! Answers of the core, in the meta namespace.

use systole_xml::ladder::Canonical;

use super::reader::{ElementReader, MetaError, MetaProblem, Problem};
use super::request::at_root;
use super::writer::Writer;
use crate::vocab::{QName, ThreadId, ns};

/// An answer of the core.
#[derive(Debug, Clone)]
pub enum MetaAnswer {
    /// The payloads that the asker may call: names with a description in one line.
    Capabilities(Vec<(QName, String)>),
    /// The schema of a payload.
    Schema {
        /// The payload.
        payload: QName,
        /// The document:
        /// [`PayloadSchema::embeddable_document`](systole_xml::schema::PayloadSchema::embeddable_document).
        document: Canonical,
    },
    /// An instance of a payload.
    Example {
        /// The payload.
        payload: QName,
        /// The valid instance.
        instance: Canonical,
    },
    /// The text that a model needs to write a payload.
    Prompt(String),
    /// A fresh thread.
    ThreadSpawned(ThreadId),
    /// The context was cleared.
    ContextCleared,
}

impl MetaAnswer {
    /// The payload that carries the answer.
    pub fn write(&self) -> Canonical {
        match self {
            Self::Capabilities(capabilities) => {
                let root = Writer::new(ns::META, "capabilities");
                let one = |out: Writer, (payload, description): &(QName, String)| {
                    out.start("capability", &[("payload", &payload.to_string())]).text(description).end()
                };
                capabilities.iter().fold(root, one).finish()
            }
            Self::Schema { payload, document } => embedding("schema", payload, document),
            Self::Example { payload, instance } => embedding("example", payload, instance),
            Self::Prompt(text) => Writer::new(ns::META, "prompt").text(text).finish(),
            Self::ThreadSpawned(thread) => Writer::new(ns::META, "thread-spawned").text(&thread.to_string()).finish(),
            Self::ContextCleared => Writer::new(ns::META, "context-cleared").finish(),
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`MetaError`] if the payload is no answer of the core.
    pub fn read(payload: &Canonical) -> Result<Self, MetaError> {
        let unknown = || at_root(payload, MetaProblem::Unknown { payload: payload.root().clone() });
        if payload.root().namespace() != ns::META {
            return Err(unknown());
        }
        let shape = |problem: Problem| problem.into_meta(payload);
        let mut reader = ElementReader::open(payload).map_err(shape)?;
        match payload.root().local() {
            "capabilities" => {
                let mut capabilities = Vec::new();
                while let Some((description, attributes)) = reader.optional_text("capability").map_err(shape)? {
                    capabilities.push((name(payload, "capability", &attributes)?, description));
                }
                reader.end().map_err(shape)?;
                Ok(Self::Capabilities(capabilities))
            }
            "schema" => {
                let name = name(payload, "schema", &reader.attributes())?;
                Ok(Self::Schema { payload: name, document: reader.child_of_root().map_err(shape)? })
            }
            "example" => {
                let name = name(payload, "example", &reader.attributes())?;
                Ok(Self::Example { payload: name, instance: reader.child_of_root().map_err(shape)? })
            }
            "prompt" => reader.root_text().map(Self::Prompt).map_err(shape),
            "thread-spawned" => {
                let id = reader.root_text().map_err(shape)?;
                id.parse().map(Self::ThreadSpawned).map_err(|error| shape(reader.problem(format!("{error}"))))
            }
            "context-cleared" => reader.end().map(|()| Self::ContextCleared).map_err(shape),
            _ => Err(unknown()),
        }
    }
}

fn embedding(root: &'static str, payload: &QName, inner: &Canonical) -> Canonical {
    Writer::with_attributes(ns::META, root, &[("payload", &payload.to_string())]).embed(inner).finish()
}

/// The attribute `payload` of an element of an answer.
fn name(payload: &Canonical, element: &str, attributes: &[(String, String)]) -> Result<QName, MetaError> {
    let element = element.to_owned();
    match attributes.iter().find(|(name, _)| name == "payload") {
        Some((_, value)) => value.parse().map_err(|source| at_root(payload, MetaProblem::BadName { element, source })),
        None => Err(at_root(payload, MetaProblem::NoName { element })),
    }
}
