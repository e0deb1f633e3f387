//! Layer 2, mailboxes: messages that wait for remote listeners, as a deterministic state machine.
//!
//! [`Mailboxes::handle`] takes one [`MailboxInput`] and gives back a [`MailboxChange`]: operations for the journal, ends of
//! messages for the pump, and who is to be woken. No clock, no store and no HTTP are here; time comes in with each
//! input. Envelopes are in the journal alone: the machine knows their sizes.
//!
//! ```text
//!              lease: receipt, due            lapse, nack, release
//!            +------------------------> leased --------------------------+
//!            |  hold: receipt, no limit                                  |
//!  arrived   |  reserve: session token     | reply -> replied            v
//! ---------> free <----------------------- + ack, confirm, pass -> acked   (deliveries used up) -> dead
//!            |  push: attempt, back-off    | term -> terminated
//!            |                             | fail -> dead ---- redrive ----> free (redriven: no caller)
//!            +-- abandoned by the pump --> gone          \--- discard ---> deleted
//! ```
//!
//! Invariants:
//! - A message is in its mailbox once, under the id of the pump, and ends once. The first end counts; the same end
//!   again is no mistake, another one is refused.
//! - The end of a message that the pump waits for is not written by itself: its operations travel with the answer into
//!   the step of the core that consumes the message ([`End`]), so that both are durable together. The message is
//!   remembered until [`MailboxInput::Durable`] says so.
//! - A message of an earlier run, or of a core that gave its conversation up, takes no end before the pump has run it
//!   again: there is no handler yet that the end would reach.
//! - A lease, a hold and a reservation exclude each other. An acknowledgement without a receipt ends no message that a
//!   reader has. Reservations end with the process and are not written.
//! - An answer without an addressee is for one message, or for none. A message that is shown as the one counts as
//!   delivered. When it ends without a reply, or with one after it was shown twice, or when another one was delivered, too, a
//!   late answer could be for two: then answers without an addressee are for none, for good.
//! - Bytes of a mailbox and the number of its dead letters are bounded.

mod arrive;
mod deliver;
mod end;
mod entry;
mod io;
mod present;
mod recover;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::journal::{MailState, Number, Op, Registration};
use crate::vocab::{MessageId, Name, ThreadId, Time};

pub use end::Repeated;
use entry::{Claim, Entry, Reservation};
pub use io::{Action, DeliveryMode, End, Given, MailboxChange, MailboxInput, Refused, Settlement};

/// Mailboxes of all remote listeners of an organism.
#[derive(Debug)]
pub struct Mailboxes {
    limits: MailboxLimits,
    boxes: BTreeMap<Name, Mailbox>,
    /// Mailbox and place of each message that is remembered.
    places: HashMap<MessageId, (Name, Number)>,
    /// Ends of leases and back-offs, in order.
    dues: BTreeSet<(Time, MessageId)>,
    /// Last place that was given.
    last: Number,
}

/// Bounds of mailboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxLimits {
    /// Bytes of envelopes that wait in one mailbox. Default: 256 MiB.
    pub bytes: u64,
    /// Leases of one message before it is a dead letter. Default: 5.
    pub deliveries: u32,
    /// Duration of a lease that names none. Default: 30 s.
    pub visibility: Duration,
    /// Dead letters of one mailbox; past it the oldest one is deleted. Default: 10,000.
    pub dead_letters: usize,
}

impl Default for MailboxLimits {
    fn default() -> Self {
        Self { bytes: 256 << 20, deliveries: 5, visibility: Duration::from_secs(30), dead_letters: 10_000 }
    }
}

/// The messages of a mailbox that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Messages that a reader has by a lease or a hold.
    pub leased: usize,
    /// The time at which the oldest one came.
    pub oldest: Option<Time>,
}

/// Mailbox of one listener.
#[derive(Debug)]
struct Mailbox {
    delivery: DeliveryMode,
    paused: Option<Time>,
    registered: Option<Registration>,
    /// The addressee of answers that name none, once that is fixed: a person, or none.
    addressee: Option<Option<Name>>,
    /// Messages that have not ended, or whose end is not durable yet; in order of arrival.
    entries: BTreeMap<Number, Entry>,
    /// Places of messages that can be delivered now.
    free: BTreeSet<Number>,
    /// Places of dead letters.
    dead: BTreeSet<Number>,
    /// Messages that have not ended.
    open: usize,
    /// Bytes of messages that the pump waits for.
    bytes: u64,
}

impl Mailboxes {
    /// Makes the mailboxes of these listeners.
    pub fn new(listeners: impl IntoIterator<Item = (Name, DeliveryMode)>, limits: MailboxLimits) -> Self {
        let boxes = listeners.into_iter().map(|(name, delivery)| (name, Mailbox::new(delivery))).collect();
        Self { limits, boxes, places: HashMap::new(), dues: BTreeSet::new(), last: 0 }
    }

    /// Bounds that are in force.
    pub fn limits(&self) -> &MailboxLimits {
        &self.limits
    }

    /// Takes note that the date was set: a time that was the first is the second. Leases and back-offs keep the time that
    /// they had left. The journal has the new ends with the next change of each.
    pub fn clock_set(&mut self, before: Time, after: Time) {
        let is_date = |due: Time| due > Time::default() && due < Time::MAX;
        // A time before the first one of all has passed, whatever the date is.
        let moved = |due: Time| match after >= before {
            true => due.after(after.since(before)),
            false => Time::from_nanos(due.as_nanos().saturating_sub(before.since(after).as_nanos() as u64).max(1)),
        };
        for entry in self.boxes.values_mut().flat_map(|mailbox| mailbox.entries.values_mut()) {
            if is_date(entry.status.due) {
                entry.status.due = moved(entry.status.due);
            }
            if let Some(due) = entry.indexed {
                self.dues.remove(&(due, entry.id));
                entry.indexed = Some(moved(due));
                self.dues.insert((moved(due), entry.id));
            }
        }
    }

    /// Takes one input. The changes by time alone are in the result even where the input is refused.
    pub fn handle(&mut self, input: MailboxInput, now: Time) -> (MailboxChange, Result<(), Refused>) {
        let mut change = MailboxChange::default();
        self.lapse(now, &mut change);
        let done = match input {
            MailboxInput::Tick => Ok(()),
            MailboxInput::Arrived(mail) => self.arrived(mail, now, &mut change),
            MailboxInput::AnswerCopy(mail) => {
                self.answer_copy(mail, &mut change);
                Ok(())
            }
            MailboxInput::Moved { id } => {
                self.moved(id, now, &mut change);
                Ok(())
            }
            MailboxInput::Abandoned { id } => {
                self.abandoned(id, now, &mut change);
                Ok(())
            }
            MailboxInput::Settle { id, settlement } => self.settle(id, settlement, now, &mut change),
            MailboxInput::Acknowledge { mailbox, id } => self.acknowledge(&mailbox, id, now, &mut change),
            MailboxInput::Passed { mailbox, through } => self.pass(&mailbox, through, now, &mut change),
            MailboxInput::Skipped { mailbox, ids } => self.skip(&mailbox, ids, now, &mut change),
            MailboxInput::Durable { id } => {
                self.durable(id);
                Ok(())
            }
            MailboxInput::Lease { mailbox, visibility, receipts } => {
                self.lease(&mailbox, (now, now.after(visibility)), receipts, &mut change)
            }
            MailboxInput::Handle { mailbox, id, receipt, action } => {
                self.act(&mailbox, id, receipt, action, now, &mut change)
            }
            MailboxInput::Keep { mailbox, id, receipt } => self.keep(&mailbox, id, receipt, now, &mut change),
            MailboxInput::Redrive { mailbox, id } => self.redrive(&mailbox, id, now, &mut change),
            MailboxInput::Discard { mailbox, id } => self.discard(&mailbox, id, &mut change),
            MailboxInput::Reserve { mailbox, session, token, rows, bytes } => {
                self.reserve(&mailbox, Reservation { session, token }, (rows, bytes), now, &mut change)
            }
            MailboxInput::Confirm { session, token } => self.confirm(Reservation { session, token }, now, &mut change),
            MailboxInput::Release { session, token } => {
                self.release(session, token, now, &mut change);
                Ok(())
            }
            MailboxInput::Attempt { id, attempts, spent } => self.attempt(id, attempts, spent, &mut change),
            MailboxInput::BackOff { id, until, error, spent } => {
                self.back_off(id, until, error, spent, now, &mut change)
            }
            MailboxInput::Taken { id } => self.taken(id, now, &mut change),
            MailboxInput::Pause { name } => self.pause(&name, Some(now), &mut change),
            MailboxInput::Resume { name } => self.pause(&name, None, &mut change),
            MailboxInput::Show { mailbox, id, person } => self.show(&mailbox, id, person, &mut change),
            MailboxInput::Register { name, registration } => self.register(&name, registration, &mut change),
        };
        (change, done)
    }

    /// Time at which [`MailboxInput::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Time> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// Messages that have not ended, in all mailboxes.
    pub fn waiting(&self) -> usize {
        self.boxes.values().map(|mailbox| mailbox.open).sum()
    }

    /// Messages of one mailbox that have not ended.
    pub fn waiting_in(&self, mailbox: &Name) -> usize {
        self.boxes.get(mailbox).map_or(0, |mailbox| mailbox.open)
    }

    /// Counts the leases of a mailbox, and finds the oldest message there that has not ended: examines all that have not.
    pub fn held(&self, mailbox: &Name, now: Time) -> Held {
        let open = self.boxes.get(mailbox).into_iter().flat_map(|mailbox| mailbox.entries.values());
        open.filter(|entry| entry.is_open()).fold(Held::default(), |held, entry| Held {
            leased: held.leased + usize::from(entry.is_leased(now)),
            oldest: Some(held.oldest.map_or(entry.at, |oldest| oldest.min(entry.at))),
        })
    }

    /// Dead letters, in all mailboxes.
    pub fn dead_letters(&self) -> usize {
        self.boxes.values().map(|mailbox| mailbox.dead.len()).sum()
    }

    /// Mailbox that a message is in, and its state, if it is remembered.
    pub fn find(&self, id: MessageId) -> Option<(&Name, MailState)> {
        self.known(id).map(|(name, entry)| (name, entry.status.state))
    }

    /// Returns whether the pump is to run a message again before that can have its end.
    pub fn expects(&self, id: MessageId) -> bool {
        self.known(id).is_some_and(|(_, entry)| entry.claim == Claim::Expected)
    }

    /// Mailbox that a message is in, and its thread, if it is remembered.
    pub fn place_of(&self, id: MessageId) -> Option<(&Name, ThreadId)> {
        self.known(id).map(|(name, entry)| (name, entry.thread))
    }

    fn known(&self, id: MessageId) -> Option<(&Name, &Entry)> {
        let (name, seq) = self.places.get(&id)?;
        Some((name, self.boxes.get(name)?.entries.get(seq)?))
    }

    /// Returns whether a mailbox has a message that can be delivered now.
    pub fn has_free(&self, mailbox: &Name) -> bool {
        self.boxes.get(mailbox).is_some_and(|mailbox| !mailbox.free.is_empty())
    }

    fn mailbox(&mut self, name: &Name) -> Result<&mut Mailbox, Refused> {
        self.boxes.get_mut(name).ok_or(Refused::Unknown)
    }

    fn entry(&mut self, id: MessageId) -> Option<(&mut Mailbox, Number)> {
        let (name, seq) = self.places.get(&id)?;
        Some((self.boxes.get_mut(name)?, *seq))
    }

    /// Brings the indices up to date with the status of a message.
    fn index(&mut self, id: MessageId, now: Time) {
        let Some((name, seq)) = self.places.get(&id) else { return };
        let Some(mailbox) = self.boxes.get_mut(name) else { return };
        let Some(entry) = mailbox.entries.get_mut(seq) else { return };
        let (wanted, open) = (entry.is_wanted(), entry.is_open());
        mailbox.open = mailbox.open - usize::from(entry.counted) + usize::from(open);
        entry.counted = open;
        // The sender of pushed messages keeps their order, and so waits for the first one.
        let pushed = mailbox.delivery == DeliveryMode::Pushed && entry.status.receipt.is_none();
        let due = Some(entry.status.due).filter(|due| wanted && !pushed && *due > now && *due < Time::MAX);
        if entry.indexed != due {
            if let Some(old) = std::mem::replace(&mut entry.indexed, due) {
                self.dues.remove(&(old, id));
            }
            self.dues.extend(due.map(|due| (due, id)));
        }
        if wanted && (entry.status.due <= now || pushed && entry.status.due < Time::MAX) {
            mailbox.free.insert(*seq);
        } else {
            mailbox.free.remove(seq);
        }
        if entry.status.state == MailState::Dead {
            mailbox.dead.insert(*seq);
        } else {
            mailbox.dead.remove(seq);
        }
    }

    /// Forgets a message that the journal deletes, or that is over durably.
    fn forget(&mut self, id: MessageId) {
        let Some((name, seq)) = self.places.remove(&id) else { return };
        let Some(mailbox) = self.boxes.get_mut(&name) else { return };
        mailbox.free.remove(&seq);
        mailbox.dead.remove(&seq);
        let Some(entry) = mailbox.entries.remove(&seq) else { return };
        mailbox.open -= usize::from(entry.counted);
        if let Some(due) = entry.indexed {
            self.dues.remove(&(due, id));
        }
    }

    fn next_place(&mut self) -> Number {
        self.last += 1;
        self.last
    }
}

impl Mailbox {
    /// The oldest free messages: at most that many, with at most so many bytes together, unless the first has more.
    fn fitting(&self, rows: usize, bytes: u64) -> Vec<Number> {
        let mut room = bytes;
        let mut fitting = Vec::new();
        for seq in self.free.iter().take(rows) {
            let Some(entry) = self.entries.get(seq) else { continue };
            if entry.bytes > room && !fitting.is_empty() {
                break;
            }
            room = room.saturating_sub(entry.bytes);
            fitting.push(*seq);
        }
        fitting
    }

    fn new(delivery: DeliveryMode) -> Self {
        Self {
            delivery,
            paused: None,
            registered: None,
            addressee: None,
            entries: BTreeMap::new(),
            free: BTreeSet::new(),
            dead: BTreeSet::new(),
            open: 0,
            bytes: 0,
        }
    }

    /// Writes the status of a message down.
    fn write(&self, seq: Number) -> Option<Op> {
        self.entries.get(&seq).map(|entry| Op::MailStatus { seq, status: entry.status.clone() })
    }
}

/// Text of the failure of a message whose leases were used up.
fn too_often(deliveries: u32) -> Arc<str> {
    format!("the listener took this message {deliveries} times and never answered").into()
}
