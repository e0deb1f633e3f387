//! Requests to the core, in the meta namespace.

use systole_xml::ladder::Canonical;

use super::reader::{ElementReader, MetaError, MetaProblem};
use crate::vocab::{QName, ns};

/// A request to the core.
#[derive(Debug, Clone)]
pub enum MetaRequest {
    /// Asks for the payloads that the sender may call.
    ListCapabilities,
    /// Asks for the schema of a payload.
    RequestSchema {
        /// The payload.
        payload: QName,
    },
    /// Asks for an instance of a payload.
    RequestExample {
        /// The payload.
        payload: QName,
    },
    /// Asks for the text that a model needs to write a payload, or all.
    RequestPrompt {
        /// The payload; none for all.
        payload: Option<QName>,
    },
    /// Opens a fresh thread of the asker's own.
    SpawnThread {
        /// The first message on it.
        first: Canonical,
    },
    /// Clears the context of the asker's thread.
    ClearContext,
    /// Closes the addressed spawned thread.
    CloseThread,
}

impl MetaRequest {
    /// The name of the request's element.
    pub fn qname(&self) -> QName {
        let local = match self {
            Self::ListCapabilities => "list-capabilities",
            Self::RequestSchema { .. } => "request-schema",
            Self::RequestExample { .. } => "request-example",
            Self::RequestPrompt { .. } => "request-prompt",
            Self::SpawnThread { .. } => "spawn-thread",
            Self::ClearContext => "clear-context",
            Self::CloseThread => "close-thread",
        };
        QName::new(ns::META, local).expect("the names of requests are names")
    }

    /// The name of the answer that comes first; none for a request without one.
    pub fn answer(&self) -> Option<QName> {
        let local = match self {
            Self::ListCapabilities => "capabilities",
            Self::RequestSchema { .. } => "schema",
            Self::RequestExample { .. } => "example",
            Self::RequestPrompt { .. } => "prompt",
            Self::SpawnThread { .. } => "thread-spawned",
            Self::ClearContext => "context-cleared",
            Self::CloseThread => return None,
        };
        QName::new(ns::META, local).ok()
    }

    /// Reads a request. No schema is needed: all rules of `meta.xsd` for requests are checked here.
    ///
    /// # Errors
    /// [`MetaError`]; [`MetaProblem::Unknown`] for a payload that is no request, and so has no target.
    pub fn read(payload: &Canonical) -> Result<Self, MetaError> {
        let element = payload.root().local();
        let known = ["list-capabilities", "request-schema", "request-example", "request-prompt", "spawn-thread"];
        let known = known.contains(&element) || matches!(element, "clear-context" | "close-thread");
        if payload.root().namespace() != ns::META || !known {
            return Err(at_root(payload, MetaProblem::Unknown { payload: payload.root().clone() }));
        }
        let mut reader = ElementReader::open(payload).map_err(|problem| problem.into_meta(payload))?;
        let takes_name = !matches!(element, "list-capabilities" | "clear-context" | "close-thread");
        let mut named = None;
        for (name, value) in reader.attributes() {
            if name != "payload" || !takes_name {
                let problem = reader.problem(format!("<{element}> has no attribute '{name}'"));
                return Err(problem.into_meta(payload));
            }
            let bad = |source| at_root(payload, MetaProblem::BadName { element: element.to_owned(), source });
            named = Some(value.parse::<QName>().map_err(bad)?);
        }
        let request = match element {
            "spawn-thread" => {
                let first = reader.child_of_root().map_err(|problem| problem.into_meta(payload))?;
                let found = first.root().clone();
                return match named.filter(|named| *named != found) {
                    Some(named) => Err(at_root(payload, MetaProblem::OtherName { named, found })),
                    None => Ok(Self::SpawnThread { first }),
                };
            }
            "request-schema" => Self::RequestSchema { payload: required(payload, named)? },
            "request-example" => Self::RequestExample { payload: required(payload, named)? },
            "request-prompt" => Self::RequestPrompt { payload: named },
            "clear-context" => Self::ClearContext,
            "close-thread" => Self::CloseThread,
            _ => Self::ListCapabilities,
        };
        reader.end().map_err(|problem| problem.into_meta(payload))?;
        Ok(request)
    }
}

fn required(payload: &Canonical, named: Option<QName>) -> Result<QName, MetaError> {
    named.ok_or_else(|| at_root(payload, MetaProblem::NoName { element: payload.root().local().to_owned() }))
}

pub(super) fn at_root(payload: &Canonical, problem: MetaProblem) -> MetaError {
    MetaError { problem, at: payload.position(0) }
}
