//! Messages that come into mailboxes, and those that the pump takes back.

use super::entry::{Claim, Entry};
use super::io::{DeliveryMode, MailboxChange, Refused};
use super::{Mailboxes, Name};
use crate::journal::{MailRecord, MailState, MailStatus, Op};
use crate::vocab::{MessageId, Time};

impl Mailboxes {
    pub(super) fn arrived(&mut self, mail: MailRecord, now: Time, change: &mut MailboxChange) -> Result<(), Refused> {
        let (id, bytes, limit) = (mail.id, mail.envelope.len() as u64, self.limits.bytes);
        let known = self.places.contains_key(&id);
        let mailbox = self.mailbox(&mail.mailbox)?;
        if mailbox.bytes.saturating_add(bytes) > limit {
            return Err(Refused::Full(limit));
        }
        let name = mail.mailbox.clone();
        if known {
            self.arrived_again(id, change);
        } else {
            let seq = self.next_place();
            let (mail, status) = (MailRecord { seq, ..mail }, MailStatus::default());
            let entry = Entry {
                id,
                thread: mail.thread,
                bytes,
                at: mail.at,
                status: status.clone(),
                claim: Claim::Awaited,
                reserved: None,
                indexed: None,
                counted: false,
            };
            let mailbox = self.mailbox(&name)?;
            mailbox.entries.insert(seq, entry);
            mailbox.bytes += bytes;
            self.places.insert(id, (name.clone(), seq));
            change.ops.push(Op::Mail(mail, status));
        }
        change.wakes.push(name);
        self.index(id, now);
        Ok(())
    }

    /// A message of an earlier run is run again by the pump.
    fn arrived_again(&mut self, id: MessageId, change: &mut MailboxChange) {
        let Some((mailbox, seq)) = self.entry(id) else { return };
        let Some(entry) = mailbox.entries.get_mut(&seq).filter(|entry| entry.claim != Claim::Awaited) else { return };
        entry.claim = Claim::Awaited;
        mailbox.bytes += entry.bytes;
        // The message was abandoned, or had become a dead letter, and the pump wants it anyway.
        if entry.status.state != MailState::Waiting {
            entry.status = MailStatus { error: entry.status.error.take(), ..MailStatus::default() };
            change.ops.extend(mailbox.write(seq));
        }
    }

    pub(super) fn answer_copy(&mut self, mail: MailRecord, change: &mut MailboxChange) {
        if self.boxes.contains_key(&mail.mailbox) {
            let seq = self.next_place();
            change.wakes.push(mail.mailbox.clone());
            let status = MailStatus { state: MailState::Acked, ..MailStatus::default() };
            change.ops.push(Op::Mail(MailRecord { seq, ..mail }, status));
        }
    }

    pub(super) fn moved(&mut self, id: MessageId, now: Time, change: &mut MailboxChange) {
        let Some((mailbox, seq)) = self.entry(id) else { return };
        let Some(entry) = mailbox.entries.get_mut(&seq) else { return };
        if std::mem::replace(&mut entry.claim, Claim::Expected) == Claim::Awaited {
            mailbox.bytes -= entry.bytes;
        }
        if entry.status.state != MailState::Waiting {
            entry.status = MailStatus { error: entry.status.error.take(), ..MailStatus::default() };
            change.ops.extend(mailbox.write(seq));
        }
        self.index(id, now);
    }

    pub(super) fn abandoned(&mut self, id: MessageId, now: Time, change: &mut MailboxChange) {
        let Some((mailbox, seq)) = self.entry(id) else { return };
        let Some(entry) = mailbox.entries.get_mut(&seq).filter(|entry| entry.claim != Claim::None) else { return };
        if std::mem::replace(&mut entry.claim, Claim::None) == Claim::Awaited {
            mailbox.bytes -= entry.bytes;
        }
        entry.status.state = MailState::Gone;
        change.ops.extend(mailbox.write(seq));
        if mailbox.delivery == DeliveryMode::Pushed {
            change.withdrawn.extend(self.places.get(&id).map(|(name, _)| (name.clone(), id)));
        }
        change.ops.extend(self.clear_addressee_after(id));
        change.ended.push(id);
        self.index(id, now);
    }

    /// The end of a message is durable.
    pub(super) fn durable(&mut self, id: MessageId) {
        if self.find(id).is_some_and(|(_, state)| state.is_over()) {
            self.forget(id);
        }
    }

    /// Deletes the oldest dead letters past the bound.
    pub(super) fn bound_dead_letters(&mut self, name: &Name, change: &mut MailboxChange) {
        let most = self.limits.dead_letters;
        while let Some(mailbox) = self.boxes.get(name)
            && mailbox.dead.len() > most
            && let Some(seq) = mailbox.dead.first().copied()
            && let Some(id) = mailbox.entries.get(&seq).map(|entry| entry.id)
        {
            change.ops.push(Op::MailGone { seq });
            self.forget(id);
        }
    }
}
