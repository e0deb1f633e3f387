//! The core actor: it answers what is asked in the meta namespace.

use systole_xml::ladder::Canonical;

use super::answer::{Head, Reply};
use super::blueprint::{ClientId, ListenerId};
use super::contract::Access;
use super::fan_out::protocol_index;
use super::faults;
use super::key::ThreadKey;
use super::machine::Core;
use super::open::Call;
use super::thread::{Origin, Sender};
use crate::journal::Number;
use crate::protocol::{MetaAnswer, MetaRequest};
use crate::vocab::{Fault, MessageId, QName, ThreadId, ns};

/// Who asks.
struct Asker<'a> {
    calls: &'a [QName],
    replies: &'a [QName],
    admin: bool,
    remote: bool,
}

impl Core {
    /// Answers a request of a thread; `false` if it should not have been made.
    pub(super) fn ask_core(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        origin: Origin,
        about: MessageId,
        request: MetaRequest,
    ) -> bool {
        let blueprint = self.blueprint.clone();
        let contract = blueprint.contract(listener);
        let asker = Asker { calls: &contract.calls, replies: &contract.replies, admin: false, remote: false };
        let answer = self.room_in_mailbox(key).and_then(|()| match request {
            MetaRequest::ClearContext => may_touch(blueprint.meta.clear_context, request.qname()).map(|()| {
                if let Some(extra) = &mut self.threads[key].extra {
                    extra.history = None;
                }
                self.log_forgotten(key, Number::MAX);
                MetaAnswer::ContextCleared
            }),
            request => self.knowledge(&asker, request),
        });
        match answer {
            Ok(answer) => {
                self.counts.delivered += 1;
                self.tell(key, listener, origin, about, &answer);
                true
            }
            Err(fault) => self.refuse_call(key, origin, about, fault, None),
        }
    }

    /// Answers a request of a client.
    pub(super) fn ask_as_client(
        &mut self,
        client: ClientId,
        remote: bool,
        request: MetaRequest,
    ) -> Result<Canonical, Fault> {
        let blueprint = self.blueprint.clone();
        let client = blueprint.principal(client);
        let asker = Asker { calls: &client.calls, replies: &[], admin: client.admin, remote };
        self.knowledge(&asker, request).map(|answer| answer.write())
    }

    /// Opens a spawned thread for its owner and puts the first call on it; `false` if that should
    /// not have been asked for.
    pub(super) fn spawn(
        &mut self,
        key: ThreadKey,
        listener: ListenerId,
        told: Origin,
        ids: (MessageId, ThreadId),
        call: Call,
        request: &QName,
    ) -> bool {
        let (first, about) = (call.origin, call.ids.0);
        self.counts.made += 1;
        let allowed = may_touch(self.blueprint.meta.spawn_thread, request.clone());
        match allowed.and_then(|()| self.place(call)) {
            Ok(_) => {
                self.counts.delivered += 1;
                self.tell(key, listener, told, ids.0, &MetaAnswer::ThreadSpawned(ids.1));
                true
            }
            Err(fault) => {
                self.refuse_call(key, told, ids.0, fault.clone(), None);
                self.refuse_call(key, first, about, fault, None)
            }
        }
    }

    fn tell(&mut self, key: ThreadKey, listener: ListenerId, origin: Origin, about: MessageId, answer: &MetaAnswer) {
        let (id, _) = self.key.derive(about, protocol_index::ANSWER);
        self.counts.made += 1;
        let reply = match self.validator.validate(answer.write()) {
            Ok(payload) => Reply::Payload(payload),
            Err(error) => Reply::Fault(faults::internal(&error)),
        };
        self.answer_listener(key, listener, Head { id, in_reply_to: about, origin, from: Sender::Core }, reply);
    }

    /// Answers what is only a question.
    fn knowledge(&self, asker: &Asker<'_>, request: MetaRequest) -> Result<MetaAnswer, Fault> {
        let flags = &self.blueprint.meta;
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
        let schema = |payload: &QName| self.catalog.get(payload).filter(|_| known(payload)).ok_or_else(refused);
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
                let prompts = capabilities.iter().filter_map(|(payload, _)| Some(self.catalog.get(payload)?.prompt()));
                Ok(MetaAnswer::Prompt(prompts.collect::<Vec<_>>().join("\n\n")))
            }
            MetaRequest::SpawnThread { .. } | MetaRequest::ClearContext | MetaRequest::CloseThread => Err(refused()),
        }
    }

    /// What somebody may call and somebody accepts, with the descriptions of who does.
    fn capabilities(&self, asker: &Asker<'_>, everything: bool) -> Vec<(QName, String)> {
        let mut capabilities: Vec<(QName, String)> = Vec::new();
        for (_, contract) in self.blueprint.listeners() {
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

/// Whether a request to the core makes sense only on a thread of a listener.
pub(super) fn is_for_threads(request: &QName) -> bool {
    request.namespace() == ns::META && matches!(request.local(), "spawn-thread" | "close-thread" | "clear-context")
}

/// Whether a listener may change something on its own threads.
fn may_touch(access: Access, request: QName) -> Result<(), Fault> {
    match access {
        Access::Peers | Access::Authenticated => Ok(()),
        Access::None | Access::Admin => Err(faults::route(&request)),
    }
}
