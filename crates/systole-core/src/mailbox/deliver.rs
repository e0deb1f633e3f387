//! Leases, reservations and pushes: messages on their way to a reader.

use std::sync::Arc;
use std::time::Duration;

use super::entry::{Claim, Reservation};
use super::io::{Action, Given, MailboxChange, Refused, Settlement};
use super::{Mailboxes, Name, too_often};
use crate::journal::{MailState, Number};
use crate::vocab::{MessageId, Time};

impl Mailboxes {
    /// Ends leases and back-offs that are due: a message whose deliveries are used up is a dead letter.
    pub(super) fn lapse(&mut self, now: Time, change: &mut MailboxChange) {
        while let Some(&(due, id)) = self.dues.first().filter(|(due, _)| *due <= now) {
            self.dues.remove(&(due, id));
            let most = self.limits.deliveries;
            let Some((mailbox, seq)) = self.entry(id) else { continue };
            let Some(entry) = mailbox.entries.get_mut(&seq) else { continue };
            entry.indexed = None;
            let used_up = entry.status.receipt.is_some() && entry.status.deliveries >= most;
            if used_up {
                // The message is open, so it can end.
                let _ = self.settle(id, Settlement::Fail(too_often(most)), now, change);
            } else {
                self.index(id, now);
                change.wakes.extend(self.places.get(&id).map(|(name, _)| name.clone()));
            }
        }
    }

    pub(super) fn lease(
        &mut self,
        name: &Name,
        (now, until): (Time, Time),
        receipts: Vec<[u8; 16]>,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        /// Bytes of messages that are given out at once, unless one alone has more: they are one answer.
        const MOST: u64 = 8 << 20;
        let mailbox = self.mailbox(name)?;
        // Messages of a paused listener wait.
        let most = if mailbox.paused.is_none() { receipts.len() } else { 0 };
        let free = mailbox.fitting(most, MOST);
        for (seq, receipt) in free.into_iter().zip(receipts) {
            let mailbox = self.mailbox(name)?;
            let Some(entry) = mailbox.entries.get_mut(&seq) else { continue };
            entry.status.deliveries += 1;
            entry.status.due = until;
            entry.status.receipt = Some(receipt);
            let id = entry.id;
            change.given.push(Given { seq, id, receipt });
            change.ops.extend(mailbox.write(seq));
            self.index(id, now);
        }
        Ok(())
    }

    pub(super) fn act(
        &mut self,
        name: &Name,
        id: MessageId,
        receipt: [u8; 16],
        action: Action,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let most = self.limits.deliveries;
        let of = self.places.get(&id).filter(|(of, _)| of == name).ok_or(Refused::Unknown)?.clone();
        let (mailbox, seq) = (self.mailbox(&of.0)?, of.1);
        let entry = mailbox.entries.get_mut(&seq).ok_or(Refused::Unknown)?;
        if entry.status.receipt != Some(receipt) {
            return Err(Refused::Stale);
        }
        if !entry.is_open() {
            change.repeated = super::end::repeats(&entry.status, &action);
            return if change.repeated { Ok(()) } else { Err(Refused::Over(entry.status.state)) };
        }
        if entry.status.due <= now {
            return Err(Refused::Stale);
        }
        if entry.claim == Claim::Expected {
            return Err(Refused::Early);
        }
        match action {
            Action::Ack => return self.settle(id, Settlement::Silent, now, change),
            Action::Term { error } => {
                entry.status.error = error.or(entry.status.error.take());
                return self.end(id, MailState::Terminated, Settlement::Silent, now, change);
            }
            Action::Nack { error, .. } if entry.status.deliveries >= most => {
                let why = error.unwrap_or_else(|| "the listener gave it back as often as it may".into());
                return self.settle(id, Settlement::Fail(why), now, change);
            }
            Action::Nack { error, due } => {
                entry.status.due = due;
                entry.status.receipt = None;
                entry.status.error = error.or(entry.status.error.take());
                change.wakes.push(of.0.clone());
            }
            // A hold has no end: extending it changes nothing.
            Action::Extend { .. } | Action::Hold if entry.status.due == Time::MAX => {
                change.repeated = true;
                return Ok(());
            }
            Action::Extend { due } => entry.status.due = due,
            Action::Hold => entry.status.due = Time::MAX,
        }
        change.ops.extend(mailbox.write(seq));
        self.index(id, now);
        Ok(())
    }

    pub(super) fn keep(
        &mut self,
        name: &Name,
        id: MessageId,
        receipt: [u8; 16],
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let seq = self.places.get(&id).filter(|(of, _)| of == name).ok_or(Refused::Unknown)?.1;
        let mailbox = self.mailbox(name)?;
        let free = mailbox.free.contains(&seq);
        let entry = mailbox.entries.get_mut(&seq).ok_or(Refused::Unknown)?;
        if !free {
            return Err(match entry.claim {
                _ if !entry.is_open() => Refused::Over(entry.status.state),
                Claim::Expected => Refused::Early,
                Claim::None | Claim::Awaited => Refused::Stale,
            });
        }
        (entry.status.due, entry.status.receipt) = (Time::MAX, Some(receipt));
        change.given.push(Given { seq, id, receipt });
        change.ops.extend(mailbox.write(seq));
        self.index(id, now);
        Ok(())
    }

    pub(super) fn reserve(
        &mut self,
        name: &Name,
        reservation: Reservation,
        (rows, bytes): (usize, u64),
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let mailbox = self.mailbox(name)?;
        let mut taken = Vec::new();
        for seq in mailbox.fitting(rows, bytes) {
            let Some(entry) = mailbox.entries.get_mut(&seq) else { continue };
            entry.reserved = Some(reservation);
            taken.push(Given { seq, id: entry.id, receipt: reservation.token });
        }
        taken.iter().for_each(|given| self.index(given.id, now));
        change.given = taken;
        Ok(())
    }

    pub(super) fn confirm(
        &mut self,
        reservation: Reservation,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        for id in self.reserved(|held| held == reservation) {
            let open = self.find(id).is_some_and(|(_, state)| state.is_open());
            if open {
                self.settle(id, Settlement::Silent, now, change)?;
            }
            change.confirmed.push((id, open));
        }
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        session: [u8; 16],
        token: Option<[u8; 16]>,
        now: Time,
        change: &mut MailboxChange,
    ) {
        for id in self.reserved(|held| held.session == session && token.is_none_or(|token| held.token == token)) {
            if let Some((mailbox, seq)) = self.entry(id)
                && let Some(entry) = mailbox.entries.get_mut(&seq)
            {
                entry.reserved = None;
            }
            self.index(id, now);
            change.wakes.extend(self.places.get(&id).map(|(name, _)| name.clone()));
        }
    }

    /// Messages that sessions have, in order of arrival.
    fn reserved(&self, which: impl Fn(Reservation) -> bool) -> Vec<MessageId> {
        let entries = self.boxes.values().flat_map(|mailbox| mailbox.entries.values());
        entries.filter(|entry| entry.reserved.is_some_and(&which)).map(|entry| entry.id).collect()
    }

    pub(super) fn attempt(
        &mut self,
        id: MessageId,
        attempts: u32,
        spent: Duration,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        // No attempt begins for a paused listener.
        if self.find(id).is_some_and(|(name, _)| self.is_paused(name)) {
            return Err(Refused::Stale);
        }
        let (mailbox, seq) = self.open(id)?;
        let Some(entry) = mailbox.entries.get_mut(&seq) else { return Err(Refused::Unknown) };
        entry.status.deliveries = attempts;
        entry.status.spent = nanos(spent);
        entry.status.due = Time::default();
        change.ops.extend(mailbox.write(seq));
        Ok(())
    }

    pub(super) fn back_off(
        &mut self,
        id: MessageId,
        until: Time,
        error: Arc<str>,
        spent: Duration,
        now: Time,
        change: &mut MailboxChange,
    ) -> Result<(), Refused> {
        let (mailbox, seq) = self.open(id)?;
        let Some(entry) = mailbox.entries.get_mut(&seq) else { return Err(Refused::Unknown) };
        entry.status.due = until;
        entry.status.spent = nanos(spent);
        entry.status.error = Some(error);
        change.ops.extend(mailbox.write(seq));
        self.index(id, now);
        Ok(())
    }

    pub(super) fn taken(&mut self, id: MessageId, now: Time, change: &mut MailboxChange) -> Result<(), Refused> {
        let (mailbox, seq) = self.open(id)?;
        let Some(entry) = mailbox.entries.get_mut(&seq) else { return Err(Refused::Unknown) };
        entry.status.due = Time::MAX;
        entry.status.receipt = None;
        change.ops.extend(mailbox.write(seq));
        self.index(id, now);
        Ok(())
    }

    /// Mailbox and place of a message that is open.
    fn open(&mut self, id: MessageId) -> Result<(&mut super::Mailbox, Number), Refused> {
        match self.find(id) {
            None => Err(Refused::Unknown),
            Some((_, state)) if !state.is_open() => Err(Refused::Over(state)),
            Some(_) => self.entry(id).ok_or(Refused::Unknown),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
