//! Messages as handlers receive them.

use std::fmt;
use std::ops::Deref;

use systole_core::core::{Body, JoinPosition, Message};
use systole_core::protocol::Request;
use systole_core::vocab::{Fault, MessageId, Name, Time, Traceparent};
use systole_xml::ladder::Repair;
use systole_xml::schema::{Decoded, Element, Proven, Validated};

use super::response::{Emit, Response, call, call_to, reply_any};
use super::thread::Thread;
use crate::runtime::shard::handlers::HandlerKey;

/// A message as a handler receives it: the payload, by `Deref`, and the metadata of the pump.
///
/// `T` is a [`Payload`](systole_xml::schema::Payload) type; [`Element`] for payloads of `.xsd` contracts; [`Fault`] in listeners
/// that accept faults; [`Boot`](systole_core::protocol::Boot).
pub struct Delivery<T> {
    value: Box<T>,
    meta: DeliveryMeta,
}

/// The metadata of a message.
pub(crate) struct DeliveryMeta {
    pub(crate) thread: Thread,
    pub(crate) id: MessageId,
    pub(crate) from: Name,
    pub(crate) in_reply_to: Option<MessageId>,
    pub(crate) join: Option<JoinPosition>,
    pub(crate) traceparent: Option<Traceparent>,
    pub(crate) proof: Option<Validated<Element>>,
}

impl DeliveryMeta {
    /// Splits a message into its metadata and the decoded value of its body.
    pub(crate) fn open(mut message: Message, key: HandlerKey) -> (Self, Decoded) {
        let thread = Thread::of(&mut message, key);
        Self::of(message, thread)
    }

    /// Splits a message whose thread is known.
    pub(crate) fn of(message: Message, thread: Thread) -> (Self, Decoded) {
        let Message { id, from, in_reply_to, body, join, traceparent, .. } = message;
        let (proof, value): (_, Decoded) = match body {
            Body::Payload { payload, value } => (Some(payload), value.into_inner()),
            Body::Fault(fault) => (None, Box::new(fault)),
        };
        (Self { thread, id, from, in_reply_to, join, traceparent, proof }, value)
    }
}

impl<T> Delivery<T> {
    pub(crate) fn new(value: Box<T>, meta: DeliveryMeta) -> Self {
        Self { value, meta }
    }

    /// Returns the payload by value.
    pub fn into_inner(self) -> T {
        *self.value
    }

    /// Returns the sender, as stamped by the pump.
    pub fn from(&self) -> &Name {
        &self.meta.from
    }

    /// Returns a key for actions outside of the organism on behalf of this message: the same if the handler runs again
    /// after a crash, and different for every other message.
    pub fn idempotency_key(&self) -> String {
        self.meta.id.to_string()
    }

    /// Returns the id of the message.
    pub fn id(&self) -> MessageId {
        self.meta.id
    }

    /// Returns the id of the message that this one answers.
    pub fn in_reply_to(&self) -> Option<MessageId> {
        self.meta.in_reply_to
    }

    /// Returns the position in the fan-out that the message answers.
    pub fn join(&self) -> Option<JoinPosition> {
        self.meta.join
    }

    /// Returns the thread of the message, which its handler calls from.
    pub fn thread(&self) -> &Thread {
        &self.meta.thread
    }

    /// Returns the deadline of the thread.
    pub fn deadline(&self) -> Option<Time> {
        self.meta.thread.deadline()
    }

    /// Returns the place in a trace that requests to other programs name as their caller, in a header or a variable: that of
    /// this run of the handler where the organism sends traces, else that of the conversation's own caller, if it has one.
    pub fn traceparent(&self) -> Option<Traceparent> {
        self.meta.traceparent
    }

    /// Returns the repairs of the payload; empty for well-formed input.
    pub fn repairs(&self) -> &[Repair] {
        self.meta.proof.as_ref().map_or(&[], |proof| proof.payload().repairs())
    }
}

impl<T: Request> Delivery<T> {
    /// The reply. Another payload than the request names is [`reply_any`]'s.
    pub fn reply(&self, reply: T::Reply) -> Emit {
        reply_any(reply)
    }
}

impl<T: Proven> Delivery<T> {
    /// Returns the canonical payload with the proof of its validity.
    pub fn proof(&self) -> &Validated<Element> {
        self.meta.proof.as_ref().expect("only a fault comes without a payload")
    }

    /// Makes a call with the same payload, unchanged: its proof still holds.
    pub fn forward(&self) -> Emit {
        call(self.proof().clone())
    }

    /// Makes a call with the same payload to one listener, by name.
    pub fn forward_to(&self, listener: &str) -> Emit {
        call_to(listener, self.proof().clone())
    }

    /// Makes a reply with the same payload.
    pub fn send_back(&self) -> Emit {
        reply_any(self.proof().clone())
    }
}

impl<T> Deref for Delivery<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: 'static> actix::Message for Delivery<T> {
    type Result = Response;
}

impl Delivery<Fault> {
    /// Returns the fault.
    pub fn fault(&self) -> &Fault {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.meta.id)
            .field("from", &self.meta.from)
            .field("payload", &self.value)
            .finish_non_exhaustive()
    }
}
