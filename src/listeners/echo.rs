//! The echo listener.

use std::rc::Rc;

use systole_core::core::{Body, Emission, EmissionKind, HandlerOutcome, Message};
use systole_xml::schema::Draft;

use crate::runtime::{LocalBoxFuture, RawListener, RunContext};

/// A listener that replies with the payload that it received, for tests and for trying out an organism.
///
/// It emits nothing for a fault or `<boot>`.
#[derive(Debug, Clone, Copy, Default)]
pub struct EchoListener;

impl EchoListener {
    /// Returns the answer to a message.
    pub fn answer(self, message: Message) -> HandlerOutcome {
        match message.body {
            Body::Payload { payload, .. } if *payload.payload().root() != systole_core::protocol::boot_qname() => {
                let draft = Draft::Proved(payload);
                HandlerOutcome::Emitted(vec![Emission {
                    kind: EmissionKind::Reply,
                    to: None,
                    thread: None,
                    payload: draft,
                }])
            }
            Body::Payload { .. } | Body::Fault(_) => HandlerOutcome::Emitted(Vec::new()),
        }
    }
}

impl RawListener for EchoListener {
    fn run(self: Rc<Self>, message: Message, _: RunContext) -> LocalBoxFuture<HandlerOutcome> {
        Box::pin(std::future::ready(self.answer(message)))
    }
}
