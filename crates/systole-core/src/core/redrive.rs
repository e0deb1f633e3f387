//! Dead letters on their way again, at the wish of an operator.
//!
//! A letter is judged from the start, as if its sender emitted it now: by the sender's contract of
//! today, to the listener that it named. It does not go back to the conversation that it came
//! from: whoever asked there has had the one answer that was due. It opens a tree below a root of
//! its own instead, which belongs to nobody, as that of boot does: what it is answered with is a
//! dead letter. So is the letter itself, with the new reason and a new number, if it is refused
//! again. What its sender may not call is not queued at all: a reply, which no thread waits for any
//! more, and a question to the core.

use systole_xml::ladder::{Canonical, Element, Validated};

use super::blueprint::{Blueprint, ListenerId, Party};
use super::dead_letters::{DeadLetter, DeadLetterError, DeadLetterId};
use super::event::EventKind;
use super::faults;
use super::gauge::Permit;
use super::io::Output;
use super::judge::{Sound, Verdict};
use super::machine::{Core, Item};
use super::open::Call;
use super::thread::{Origin, Owner, Sender};
use crate::journal::{Number, Op};
use crate::protocol::refused_qname;
use crate::vocab::{Fault, Name, QName, ThreadId, ThreadPath, Time, ns};

/// A dead letter on Queue 1.
pub(super) struct Redriven {
    from: Name,
    to: Option<Name>,
    payload: Canonical,
    /// The number that it had.
    number: Number,
    /// The id of the root that it opens.
    root: ThreadId,
    permit: Permit,
}

impl Blueprint {
    /// Whether a dead letter of that sender and payload can be queued again: whether its sender may call it today.
    ///
    /// # Errors
    /// [`DeadLetterError::NotACall`] if not.
    pub fn may_redrive(&self, from: &Name, payload: &QName) -> Result<(), DeadLetterError> {
        let caller = self.party(from.as_str());
        match payload.namespace() != ns::META && caller.is_some_and(|caller| self.may_call(caller, payload)) {
            true => Ok(()),
            false => Err(DeadLetterError::NotACall { from: from.clone(), payload: payload.clone() }),
        }
    }
}

impl Core {
    /// Puts a dead letter on Queue 1.
    pub(super) fn redrive(&mut self, letter: DeadLetterId, root: ThreadId) {
        let result = self.put_back(letter, root);
        self.outputs.push_back(Output::Letter { letter, result });
    }

    /// The same for one that was marked in the journal. One that can't be sent loses its mark.
    pub(super) fn redrive_marked(&mut self, letter: DeadLetterId, root: ThreadId) {
        let result = self.put_back(letter, root);
        if let Err(DeadLetterError::NotACall { .. } | DeadLetterError::NoPayload) = result {
            self.log(|_| Op::Unmark { letter: letter.number() });
        }
        self.outputs.push_back(Output::Letter { letter, result });
    }

    fn put_back(&mut self, letter: DeadLetterId, root: ThreadId) -> Result<(), DeadLetterError> {
        let redriven = self.take_up(letter, root)?;
        self.counts.redriven += 1;
        self.queue.push_back(Item::Redriven(redriven));
        Ok(())
    }

    /// Forgets a dead letter.
    pub(super) fn discard_letter(&mut self, letter: DeadLetterId) {
        let result = self.dead.take(letter).map(drop).ok_or(DeadLetterError::Unknown);
        if result.is_ok() {
            self.log(|_| Op::Unbury { letter: letter.number() });
        }
        self.outputs.push_back(Output::Letter { letter, result });
    }

    fn take_up(&mut self, id: DeadLetterId, root: ThreadId) -> Result<Redriven, DeadLetterError> {
        let letter = self.dead.get(id).ok_or(DeadLetterError::Unknown)?;
        let payload = letter.payload.clone().filter(|payload| *payload.root() != refused_qname());
        let payload = payload.ok_or(DeadLetterError::NoPayload)?;
        self.blueprint.may_redrive(&letter.from, payload.root())?;
        if self.draining {
            return Err(DeadLetterError::Closed);
        }
        let permit = self.gauge.admit(payload.bytes().len())?;
        let DeadLetter { from, to, .. } = self.dead.take(id).ok_or(DeadLetterError::Unknown)?;
        Ok(Redriven { from, to, payload, number: id.number(), root, permit })
    }

    /// Judges a letter from the start.
    pub(super) fn reissue(&mut self, letter: Redriven) {
        let number = letter.number;
        self.log(|_| Op::Unbury { letter: number });
        let caller = self.blueprint.party(letter.from.as_str());
        let sender = match caller {
            Some(Party::Listener(id)) => Sender::Listener(id),
            Some(Party::Client(id)) => Sender::Client(id),
            // What the pump itself says is for the thread that it was made for.
            None => Sender::System,
        };
        match self.judge_call(letter.to.as_ref(), caller, Sound::Unproved(letter.payload.clone())) {
            Verdict::Call { first, others, payload } => self.open_again(letter, sender, (first, others), payload),
            Verdict::Refused(refusal) => self.bury_again(letter, refusal.fault),
            Verdict::Reply(_)
            | Verdict::Continue { .. }
            | Verdict::Addressed { .. }
            | Verdict::CloseThread { .. }
            | Verdict::Core { .. }
            | Verdict::Spawn { .. } => {
                let fault = faults::route(letter.payload.root());
                self.bury_again(letter, fault);
            }
        }
    }

    /// Keeps a letter that is given to nobody once more.
    pub(super) fn bury_again(&mut self, letter: Redriven, reason: Fault) {
        let Redriven { from, to, payload, root, .. } = letter;
        self.root_event(root, || EventKind::DeadLetter { payload: Some(payload.root().clone()), reason: reason.code });
        self.keep((from, to), ThreadPath::new(Vec::new()), Some(payload), reason);
    }

    fn open_again(
        &mut self,
        letter: Redriven,
        from: Sender,
        (first, others): (ListenerId, Vec<ListenerId>),
        payload: Validated<Element>,
    ) {
        if let Err(fault) = self.room_in_organism() {
            return self.bury_again(letter, fault);
        }
        let Redriven { to, root, permit, .. } = letter;
        let opened_by = self.key.derive_entry(root, 0).0;
        let parent = self.open_root(root, Owner::Nobody, opened_by);
        self.counts.made += others.len() as u64;
        let mut permit = Some(permit);
        for target in std::iter::once(first).chain(others) {
            let call = Call {
                parent,
                target,
                payload: payload.clone(),
                origin: Origin::None,
                ids: self.entry_id(root),
                from,
                label: None,
                traceparent: None,
                deadline: Time::MAX,
                spawned: false,
                permit: permit.take(),
            };
            if let Err(fault) = self.place(call) {
                self.bury(parent, (from, to.clone()), Some(payload.payload().clone()), fault);
            }
        }
        self.settle(parent);
    }
}
