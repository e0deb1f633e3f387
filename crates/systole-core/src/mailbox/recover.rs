//! Mailboxes as a journal has them.

use std::collections::HashSet;

use super::entry::{Claim, Entry};
use super::io::{DeliveryMode, MailboxChange};
use super::{Mailbox, Mailboxes};
use crate::journal::{AddresseeRecord, MailState, OpenMail, Recovered};
use crate::vocab::Time;

impl Mailboxes {
    /// Recovers the mailboxes from a journal, before any input. A message that the pump does not run again is
    /// abandoned: its thread closed right before the crash.
    pub fn recover(&mut self, recovered: &Recovered, now: Time) -> MailboxChange {
        let mut change = MailboxChange::default();
        let run_again: HashSet<_> = recovered.messages.iter().map(|message| message.id).collect();
        self.last = recovered.last_mail;
        for agent in &recovered.agents {
            let mailbox = self.boxes.entry(agent.name.clone()).or_insert_with(|| Mailbox::new(DeliveryMode::Pulled));
            (mailbox.paused, mailbox.registered) = (agent.paused, agent.registered.clone());
        }
        for AddresseeRecord { mailbox, person } in &recovered.addressees {
            let mailbox = self.boxes.entry(mailbox.clone()).or_insert_with(|| Mailbox::new(DeliveryMode::Pulled));
            mailbox.addressee = Some(person.clone());
        }
        for mail in &recovered.mail {
            self.last = self.last.max(mail.seq);
            let waits = mail.status.state == MailState::Waiting;
            let expected = waits && run_again.contains(&mail.id);
            self.take_up(mail, if expected { Claim::Expected } else { Claim::None }, now);
            if waits && !expected {
                self.recovered_gone(mail, now, &mut change);
            }
        }
        change
    }

    fn take_up(&mut self, mail: &OpenMail, claim: Claim, now: Time) {
        let (id, most) = (mail.id, self.limits.deliveries);
        let mailbox = self.boxes.entry(mail.mailbox.clone()).or_insert_with(|| Mailbox::new(DeliveryMode::Pulled));
        let mut status = mail.status.clone();
        // The message was pushed by an earlier run, and is pulled now.
        let was_pushed = status.receipt.is_none() && (status.due == Time::MAX || status.deliveries >= most);
        if mailbox.delivery == DeliveryMode::Pulled && status.state.is_open() && was_pushed {
            (status.due, status.deliveries) = (Time::default(), 0);
        }
        let entry = Entry {
            id,
            thread: mail.thread,
            bytes: mail.bytes,
            at: mail.at,
            status,
            claim,
            reserved: None,
            indexed: None,
            counted: false,
        };
        mailbox.entries.insert(mail.seq, entry);
        self.places.insert(id, (mail.mailbox.clone(), mail.seq));
        self.index(id, now);
    }

    fn recovered_gone(&mut self, mail: &OpenMail, now: Time, change: &mut MailboxChange) {
        let Some((mailbox, seq)) = self.entry(mail.id) else { return };
        if let Some(entry) = mailbox.entries.get_mut(&seq) {
            entry.status.state = MailState::Gone;
        }
        change.ops.extend(mailbox.write(seq));
        change.ops.extend(self.clear_addressee_after(mail.id));
        change.ended.push(mail.id);
        self.index(mail.id, now);
    }
}
