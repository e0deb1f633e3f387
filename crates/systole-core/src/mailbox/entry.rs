//! A message of a mailbox.

use super::io::Settlement;
use crate::journal::{MailState, MailStatus};
use crate::vocab::{MessageId, ThreadId, Time};

/// A message that has not ended, or whose end is not durable yet.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: MessageId,
    pub(super) thread: ThreadId,
    pub(super) bytes: u64,
    /// The time at which it came.
    pub(super) at: Time,
    pub(super) status: MailStatus,
    pub(super) claim: Claim,
    /// Session and token that have it.
    pub(super) reserved: Option<Reservation>,
    /// Time in the index of due times.
    pub(super) indexed: Option<Time>,
    /// States whether it is among the open messages of its mailbox.
    pub(super) counted: bool,
}

/// Claim of the pump to the end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// None: the message has its end, or was given up, or was redriven.
    None,
    /// The message is of an earlier run, and the pump will run it again: until it has, no end can reach the caller.
    Expected,
    /// The pump waits for the end.
    Awaited,
}

/// A session's hold on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) session: [u8; 16],
    pub(super) token: [u8; 16],
}

impl Entry {
    pub(super) fn is_open(&self) -> bool {
        self.status.state.is_open()
    }

    /// Returns whether a reader has it by a lease or a hold.
    pub(super) fn is_leased(&self, now: Time) -> bool {
        self.is_open() && self.status.receipt.is_some() && self.status.due > now
    }

    /// Returns whether it is to be delivered, now or when it is due: it is open, and no session has it.
    pub(super) fn is_wanted(&self) -> bool {
        let wanted = self.claim == Claim::Awaited || self.status.state == MailState::Redriven;
        self.is_open() && wanted && self.reserved.is_none()
    }

    /// Returns whether its state is the one that a settlement leads to.
    pub(super) fn is_settled_with(&self, settlement: &Settlement) -> bool {
        settled_with(&self.status, settlement)
    }
}

/// Returns whether a message with that status ended with a settlement.
pub(super) fn settled_with(status: &MailStatus, settlement: &Settlement) -> bool {
    let answer = status.answer.as_deref();
    match settlement {
        Settlement::Reply(reply) => status.state == MailState::Replied && answer == Some(&reply[..]),
        Settlement::Fail(why) => status.state == MailState::Dead && answer == Some(why.as_bytes()),
        Settlement::Silent => matches!(status.state, MailState::Acked | MailState::Terminated),
    }
}
