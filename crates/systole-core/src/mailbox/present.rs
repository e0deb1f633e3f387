//! Presence of listeners: pauses, registrations, and the messages to push to them.

use super::entry::Entry;
use super::io::{DeliveryMode, MailboxChange, Refused};
use super::{Mailbox, Mailboxes, Name};
use crate::journal::{AddresseeRecord, AgentRecord, MailState, MailStatus, Number, Op, Registration};
use crate::vocab::{MessageId, Time};

impl Mailboxes {
    /// Returns whether an operator has a listener paused.
    pub fn is_paused(&self, name: &Name) -> bool {
        self.paused_since(name).is_some()
    }

    /// Returns the time since which an operator has a listener paused.
    pub fn paused_since(&self, name: &Name) -> Option<Time> {
        self.boxes.get(name)?.paused
    }

    /// Last registration of a listener.
    pub fn registration(&self, name: &Name) -> Option<&Registration> {
        self.boxes.get(name)?.registered.as_ref()
    }

    /// Place and delivery status of the message that is to be pushed to a listener next; none while the listener rests.
    pub fn to_push(&self, name: &Name) -> Option<(Number, &MailStatus)> {
        let mailbox = self.boxes.get(name).filter(|mailbox| mailbox.delivery == DeliveryMode::Pushed)?;
        let seq = mailbox.free.first().filter(|_| mailbox.paused.is_none())?;
        let entry = mailbox.entries.get(seq)?;
        Some((*seq, &entry.status))
    }

    pub(super) fn pause(
        &mut self,
        name: &Name,
        since: Option<Time>,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let mailbox = self.mailbox(name)?;
        if mailbox.paused.is_some() == since.is_some() {
            change.repeated = true;
            return Ok(());
        }
        mailbox.paused = since;
        if mailbox.delivery == DeliveryMode::Pushed && since.is_some() {
            // An attempt that runs may be answered.
            let free = mailbox.free.iter().filter_map(|seq| mailbox.entries.get(seq));
            change.answered = free.map(|entry| (name.clone(), entry.id)).collect();
        }
        if mailbox.delivery == DeliveryMode::Pushed && since.is_none() {
            // The agent had its reasons to pause: messages that wait have all attempts again.
            let free: Vec<Number> = mailbox.free.iter().copied().collect();
            for seq in free {
                if let Some(entry) = mailbox.entries.get_mut(&seq) {
                    let status = &mut entry.status;
                    (status.deliveries, status.spent, status.due) = (0, 0, Time::default());
                }
                change.ops.extend(mailbox.write(seq));
            }
        }
        change.wakes.push(name.clone());
        change.ops.push(self.agent(name)?);
        Ok(())
    }

    pub(super) fn register(
        &mut self,
        name: &Name,
        registration: Registration,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        self.mailbox(name)?.registered = Some(registration);
        change.ops.push(self.agent(name)?);
        Ok(())
    }

    /// The addressee of a listener's answers that name none, once that is fixed: a person, or none.
    pub fn addressee(&self, mailbox: &Name) -> Option<&Option<Name>> {
        self.boxes.get(mailbox)?.addressee.as_ref()
    }

    pub(super) fn show(
        &mut self,
        name: &Name,
        id: MessageId,
        person: Name,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let seq = self.places.get(&id).filter(|(of, _)| of == name).ok_or(Refused::Unknown)?.1;
        let mailbox = self.mailbox(name)?;
        let fixed = mailbox.addressee.clone();
        if fixed.as_ref().is_some_and(|fixed| fixed.as_ref() != Some(&person)) {
            return Ok(());
        }
        let another = |(at, entry): (&Number, &Entry)| *at != seq && entry.is_open() && entry.status.deliveries > 0;
        if fixed.is_some() && mailbox.entries.iter().any(another) {
            change.ops.extend(mailbox.clear_addressee(name));
            return Ok(());
        }
        let Some(entry) = mailbox.entries.get_mut(&seq).filter(|entry| entry.is_open()) else { return Ok(()) };
        change.shown = true;
        // More showings have the consequence of two.
        if entry.status.deliveries < 2 {
            entry.status.deliveries += 1;
            change.ops.extend(mailbox.write(seq));
        }
        if fixed.is_none() {
            mailbox.addressee = Some(Some(person.clone()));
            change.ops.push(Op::Addressee(AddresseeRecord { mailbox: name.clone(), person: Some(person) }));
        }
        Ok(())
    }

    /// Fixes that answers without an addressee are for none, where an end of a message lets a late one be for two.
    pub(super) fn clear_addressee_after(&mut self, id: MessageId) -> Option<Op> {
        let (name, seq) = self.places.get(&id)?.clone();
        let mailbox = self.boxes.get_mut(&name)?;
        let MailStatus { state, deliveries, .. } = mailbox.entries.get(&seq)?.status;
        let shown_once = if state == MailState::Replied { 1 } else { 0 };
        if deliveries > shown_once { mailbox.clear_addressee(&name) } else { None }
    }

    fn agent(&mut self, name: &Name) -> Result<Op, Refused> {
        let mailbox = self.mailbox(name)?;
        let (paused, registered) = (mailbox.paused, mailbox.registered.clone());
        Ok(Op::Agent(AgentRecord { name: name.clone(), paused, registered }))
    }
}

impl Mailbox {
    /// Fixes that answers without an addressee are for none, if they are for a person.
    fn clear_addressee(&mut self, name: &Name) -> Option<Op> {
        let person = self.addressee.as_mut()?;
        person.take()?;
        Some(Op::Addressee(AddresseeRecord { mailbox: name.clone(), person: None }))
    }
}
