//! Ends of messages: answers, passes, dead letters, and the redriving and deleting of those.

use super::entry::{Claim, settled_with};
use super::io::{Action, DeliveryMode, End, MailboxChange, Refused, Settlement};
use super::{Mailboxes, Name};
use crate::journal::{MailState, MailStatus, Number, Op};
use crate::vocab::{MessageId, Time};

/// Relation of an end to the status of a message that has ended, for messages that are remembered by the journal alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// The end that the message already has.
    Same,
    /// The message has another one.
    Other,
}

impl Repeated {
    /// Compares a settlement with the status of a message that has ended.
    pub fn settlement(status: &MailStatus, settlement: &Settlement) -> Self {
        if settled_with(status, settlement) { Self::Same } else { Self::Other }
    }

    /// Compares the action of a reader under a receipt with the status of a message that has ended.
    pub fn action(status: &MailStatus, action: &Action) -> Self {
        if repeats(status, action) { Self::Same } else { Self::Other }
    }
}

/// Returns whether an action agrees with the end of a message: a listener that replied may acknowledge.
pub(super) fn repeats(status: &MailStatus, action: &Action) -> bool {
    match action {
        Action::Ack | Action::Hold => matches!(status.state, MailState::Replied | MailState::Acked),
        Action::Term { .. } => status.state == MailState::Terminated,
        Action::Nack { .. } | Action::Extend { .. } => false,
    }
}

impl Mailboxes {
    pub(super) fn settle(
        &mut self,
        id: MessageId,
        settlement: Settlement,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let state = match &settlement {
            Settlement::Reply(_) => MailState::Replied,
            Settlement::Fail(_) => MailState::Dead,
            Settlement::Silent => MailState::Acked,
        };
        self.end(id, state, settlement, now, change)
    }

    /// Ends a message without a reply, for a listener that shows no receipt.
    pub(super) fn acknowledge(
        &mut self,
        name: &Name,
        id: MessageId,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let (_, entry) = self.known(id).filter(|(of, _)| *of == name).ok_or(Refused::Unknown)?;
        if entry.is_leased(now) {
            return Err(Refused::Stale);
        }
        self.settle(id, Settlement::Silent, now, change)
    }

    /// Ends a message that is open, unless the pump has yet to run it again after its start.
    pub(super) fn end(
        &mut self,
        id: MessageId,
        state: MailState,
        settlement: Settlement,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let (mailbox, seq) = self.entry(id).ok_or(Refused::Unknown)?;
        let entry = mailbox.entries.get_mut(&seq).ok_or(Refused::Unknown)?;
        // A dead letter that the pump never took back still has its caller's answer.
        if !entry.is_open() {
            change.repeated = entry.is_settled_with(&settlement);
            return if change.repeated { Ok(()) } else { Err(Refused::Over(entry.status.state)) };
        }
        if entry.claim == Claim::Expected {
            return Err(Refused::Early);
        }
        entry.status.state = state;
        match &settlement {
            Settlement::Reply(reply) => entry.status.answer = Some(reply.clone()),
            Settlement::Fail(why) => {
                entry.status.answer = Some(bytes::Bytes::copy_from_slice(why.as_bytes()));
                entry.status.error = Some(why.clone());
            }
            Settlement::Silent => {}
        }
        let awaited = std::mem::replace(&mut entry.claim, Claim::None) == Claim::Awaited;
        let pushed = mailbox.delivery == DeliveryMode::Pushed;
        if awaited {
            mailbox.bytes -= mailbox.entries.get(&seq).map_or(0, |entry| entry.bytes);
        }
        let mut ops: Vec<Op> = mailbox.write(seq).into_iter().collect();
        ops.extend(self.clear_addressee_after(id));
        if awaited {
            change.ends.push(End { id, settlement, ops });
        } else {
            change.ops.extend(ops);
            change.ended.push(id);
        }
        if pushed {
            change.answered.extend(self.places.get(&id).map(|(name, _)| (name.clone(), id)));
        }
        self.index(id, now);
        if state == MailState::Dead
            && let Some((name, _)) = self.places.get(&id).cloned()
        {
            self.bound_dead_letters(&name, change);
        }
        Ok(())
    }

    /// Ends the messages that a reader in order has passed over, except those that are leased, held or pushed.
    pub(super) fn pass(
        &mut self,
        name: &Name,
        through: Number,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let mailbox = self.mailbox(name)?;
        if mailbox.delivery == DeliveryMode::Pushed {
            return Ok(());
        }
        let passed: Vec<MessageId> =
            mailbox.free.range(..=through).filter_map(|seq| mailbox.entries.get(seq)).map(|entry| entry.id).collect();
        self.skip(name, passed, now, change)
    }

    /// Ends these messages of a mailbox without an answer. Messages that a reader has leased or holds, that are pushed,
    /// or that have ended are left as they are.
    pub(super) fn skip(
        &mut self,
        name: &Name,
        ids: Vec<MessageId>,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        if self.mailbox(name)?.delivery == DeliveryMode::Pushed {
            return Ok(());
        }
        for id in ids {
            if let Some((of, seq)) = self.places.get(&id).cloned()
                && of == *name
                && let Some(mailbox) = self.boxes.get_mut(&of)
                && mailbox.free.contains(&seq)
                && let Some(entry) = mailbox.entries.get_mut(&seq)
            {
                entry.status.error = Some("the listener read on without an answer".into());
                self.settle(id, Settlement::Silent, now, change)?;
            }
        }
        Ok(())
    }

    pub(super) fn redrive(
        &mut self,
        name: &Name,
        one: Option<MessageId>,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        for (from, id) in self.dead_of(name, one)? {
            let to = self.next_place();
            let mailbox = self.mailbox(name)?;
            let Some(mut entry) = mailbox.entries.remove(&from) else { continue };
            mailbox.dead.remove(&from);
            let error = entry.status.error.take();
            entry.status = MailStatus { state: MailState::Redriven, error, ..MailStatus::default() };
            let status = entry.status.clone();
            mailbox.entries.insert(to, entry);
            self.places.insert(id, (name.clone(), to));
            change.ops.push(Op::MailMoved { from, to, status });
            change.count += 1;
            self.index(id, now);
        }
        if change.count > 0 {
            change.wakes.push(name.clone());
        }
        Ok(())
    }

    pub(super) fn discard(
        &mut self,
        name: &Name,
        one: Option<MessageId>,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        for (seq, id) in self.dead_of(name, one)? {
            self.forget(id);
            change.ops.push(Op::MailGone { seq });
            change.count += 1;
        }
        Ok(())
    }

    /// Dead letters of a mailbox, in order of arrival.
    fn dead_of(&self, name: &Name, one: Option<MessageId>) -> Result<Vec<(Number, MessageId)>, Refused> {
        let mailbox = self.boxes.get(name).ok_or(Refused::Unknown)?;
        let dead = mailbox.dead.iter().filter_map(|seq| Some((*seq, mailbox.entries.get(seq)?.id)));
        Ok(dead.filter(|(_, id)| one.is_none_or(|one| one == *id)).collect())
    }
}
