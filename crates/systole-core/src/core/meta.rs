//! Requests to the core, in the meta namespace, that are only questions.

use super::contract::Access;
use super::faults;
use super::judge::Judge;
use crate::protocol::{MetaAnswer, MetaRequest};
use crate::vocab::{Fault, QName, ns};

/// The party that asks.
pub(super) struct Asker<'a> {
    pub calls: &'a [QName],
    pub replies: &'a [QName],
    pub admin: bool,
    pub remote: bool,
}

impl Judge {
    /// Answers a question.
    pub(super) fn knowledge(&self, asker: &Asker<'_>, request: MetaRequest) -> Result<MetaAnswer, Fault> {
        let flags = &self.blueprint().meta;
        let access = match &request {
            MetaRequest::ListCapabilities => flags.list_capabilities,
            MetaRequest::RequestSchema { .. } => flags.request_schema,
            MetaRequest::RequestExample { .. } => flags.request_example,
            MetaRequest::RequestPrompt { .. } => flags.request_prompt,
            MetaRequest::SpawnThread { .. } | MetaRequest::ClearContext | MetaRequest::CloseThread => Access::None,
        };
        let refused = || faults::route(&request.qname());
        if (asker.remote && !flags.remote) || access == Access::None || (access == Access::Admin && !asker.admin) {
            return Err(refused());
        }
        let everything = access != Access::Peers;
        let known = |payload: &QName| everything || asker.calls.contains(payload) || asker.replies.contains(payload);
        let schema = |payload: &QName| self.catalog().get(payload).filter(|_| known(payload)).ok_or_else(refused);
        match &request {
            MetaRequest::ListCapabilities => Ok(MetaAnswer::Capabilities(self.capabilities(asker, everything))),
            MetaRequest::RequestSchema { payload } => {
                let document = schema(payload)?.embeddable_document().ok_or_else(refused)?.clone();
                Ok(MetaAnswer::Schema { payload: payload.clone(), document })
            }
            MetaRequest::RequestExample { payload } => {
                let instance = schema(payload)?.example().ok_or_else(refused)?.clone();
                Ok(MetaAnswer::Example { payload: payload.clone(), instance })
            }
            MetaRequest::RequestPrompt { payload: Some(payload) } => {
                Ok(MetaAnswer::Prompt(schema(payload)?.prompt().to_owned()))
            }
            MetaRequest::RequestPrompt { payload: None } => {
                let capabilities = self.capabilities(asker, everything);
                let prompts =
                    capabilities.iter().filter_map(|(payload, _)| Some(self.catalog().get(payload)?.prompt()));
                Ok(MetaAnswer::Prompt(prompts.collect::<Vec<_>>().join("\n\n")))
            }
            MetaRequest::SpawnThread { .. } | MetaRequest::ClearContext | MetaRequest::CloseThread => Err(refused()),
        }
    }

    /// The payloads that the asker may call and a listener accepts, with the descriptions of those listeners.
    fn capabilities(&self, asker: &Asker<'_>, everything: bool) -> Vec<(QName, String)> {
        let mut capabilities: Vec<(QName, String)> = Vec::new();
        for (_, contract) in self.blueprint().listeners() {
            let payloads = contract.accepts.iter().filter(|payload| payload.namespace() != ns::CORE);
            for payload in payloads.filter(|payload| everything || asker.calls.contains(payload)) {
                if !capabilities.iter().any(|(known, _)| known == payload) {
                    capabilities.push((payload.clone(), contract.description.clone()));
                }
            }
        }
        capabilities
    }
}

/// Returns whether a request to the core makes sense only on a thread of a listener.
pub(super) fn is_for_threads(request: &QName) -> bool {
    request.namespace() == ns::META && matches!(request.local(), "spawn-thread" | "close-thread" | "clear-context")
}
