//! A message in a mailbox: its content, its sender, and the destination of its answer.

use bytes::Bytes;
use systole_xml::ladder::Canonical;

use super::blueprint::{ClientId, ListenerId};
use super::books::Entry;
use super::conversation::Share;
use super::io::Body;
use super::key::FanOutKey;
use super::records::stored;
use crate::journal::Number;
use crate::vocab::{Fault, MessageId};

/// A processed message in a mailbox.
#[derive(Debug)]
pub(super) struct Queued {
    pub id: MessageId,
    /// The number of its record; 0 for none.
    pub number: Number,
    pub attempts: Attempts,
    pub from: Sender,
    pub in_reply_to: Option<MessageId>,
    pub content: Content,
    /// The fan-out and the index that it answers.
    pub answers: ReplyTo,
    /// The place of the message among those that wait.
    pub share: Share,
    pub entry: Entry,
}

/// The content of a queued message.
#[derive(Debug)]
pub(super) enum Content {
    /// A body for the listener's handler.
    Body(Body),
    /// A payload out of the journal, to be checked and decoded when its turn comes.
    Stored(Bytes),
    /// A fault which ends the thread when its turn comes, regardless of the contract.
    Fatal(Fault),
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Listener(ListenerId),
    Client(ClientId),
    Core,
    System,
}

/// The destination of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyTo {
    /// No destination: a root, a boot thread, or a spawned thread that owes nothing.
    None,
    /// The parent, as the answer to its only call.
    Single,
    /// The parent, as one of several answers or to an awaited call.
    Fan { fan: FanOutKey, index: u32 },
}

/// Runs of a message's handler that did not end before their process did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attempts {
    /// Those that are known.
    pub lost: u8,
    /// True if one more may have been running at a crash of the organism.
    pub is_suspect: bool,
}

impl Queued {
    /// Makes a message that was not there before.
    pub(super) fn new(id: MessageId, from: Sender, content: Content, share: Share, entry: Entry) -> Self {
        Self {
            id,
            number: 0,
            attempts: Attempts::default(),
            from,
            in_reply_to: None,
            content,
            answers: ReplyTo::None,
            share,
            entry,
        }
    }
}

impl Content {
    /// The payload, if there is one that can be parsed.
    pub(super) fn payload(self) -> Option<Canonical> {
        match self {
            Self::Body(Body::Payload { payload, .. }) => Some(payload.payload().clone()),
            Self::Stored(payload) => stored(payload).ok(),
            Self::Body(Body::Fault(_)) | Self::Fatal(_) => None,
        }
    }

    /// Bytes that it holds.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Body(Body::Payload { payload, .. }) => payload.payload().bytes().len(),
            Self::Stored(payload) => payload.len(),
            Self::Body(Body::Fault(fault)) | Self::Fatal(fault) => fault.message.len(),
        }
    }
}
