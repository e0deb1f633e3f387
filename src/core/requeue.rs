//! Dead letters on their way again, at the wish of an operator.
//!
//! A letter is judged from the start, as if its sender emitted it now: by the sender's contract of
//! today, to the listener that it named. It does not go back to the conversation that it came
//! from: whoever asked there has had the one answer that was due. It opens a tree below a root of
//! its own instead, which belongs to nobody, as that of boot does: what it is answered with is a
//! dead letter. So is the letter itself, with the new reason and a new number, if it is refused
//! again: a reply, which no thread waits for any more, and a question to the core always are.

use super::blueprint::{ListenerId, Party};
use super::dead::{DeadLetter, DeadLetterError, DeadLetterId};
use super::event::EventKind;
use super::faults;
use super::gauge::Permit;
use super::io::Output;
use super::judge::{Sound, Verdict};
use super::machine::{Core, Item};
use super::open::Call;
use super::thread::{Origin, Owner, Sender};
use crate::journal::{Number, Op};
use crate::ladder::{Canonical, Element, Validated};
use crate::protocol::refused_qname;
use crate::vocab::{Fault, Name, ThreadId, ThreadPath, Time};

/// A dead letter on Queue 1.
pub(super) struct Requeued {
    from: Name,
    to: Option<Name>,
    payload: Canonical,
    /// The number that it had.
    number: Number,
    /// The id of the root that it opens.
    root: ThreadId,
    permit: Permit,
}

impl Core {
    /// Puts a dead letter on Queue 1.
    pub(super) fn requeue(&mut self, letter: DeadLetterId, root: ThreadId) {
        let result = self.take_up(letter, root).map(|requeued| {
            self.counts.requeued += 1;
            self.queue.push_back(Item::Requeued(requeued));
        });
        self.outputs.push_back(Output::Letter { letter, result });
    }

    /// Forgets a dead letter.
    pub(super) fn discard_letter(&mut self, letter: DeadLetterId) {
        let result = self.dead.take(letter).map(drop).ok_or(DeadLetterError::Unknown);
        if result.is_ok() {
            self.log(|_| Op::Unbury { letter: letter.number() });
        }
        self.outputs.push_back(Output::Letter { letter, result });
    }

    fn take_up(&mut self, id: DeadLetterId, root: ThreadId) -> Result<Requeued, DeadLetterError> {
        let letter = self.dead.get(id).ok_or(DeadLetterError::Unknown)?;
        let payload = letter.payload.clone().filter(|payload| *payload.root() != refused_qname());
        let payload = payload.ok_or(DeadLetterError::NoPayload)?;
        if self.draining {
            return Err(DeadLetterError::Closed);
        }
        let permit = self.gauge.admit(payload.bytes().len())?;
        let DeadLetter { from, to, .. } = self.dead.take(id).ok_or(DeadLetterError::Unknown)?;
        Ok(Requeued { from, to, payload, number: id.number(), root, permit })
    }

    /// Judges a letter from the start.
    pub(super) fn reissue(&mut self, letter: Requeued) {
        let blueprint = self.blueprint.clone();
        let number = letter.number;
        self.log(|_| Op::Unbury { letter: number });
        let (sender, calls) = match blueprint.party(letter.from.as_str()) {
            Some(Party::Listener(id)) => (Sender::Listener(id), blueprint.contract(id).calls.as_slice()),
            Some(Party::Client(id)) => (Sender::Client(id), blueprint.principal(id).calls.as_slice()),
            // What the pump itself says is for the thread that it was made for.
            None => (Sender::System, Default::default()),
        };
        match self.judge_call(letter.to.as_ref(), calls, Sound::Unproved(letter.payload.clone())) {
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
    pub(super) fn bury_again(&mut self, letter: Requeued, reason: Fault) {
        let Requeued { from, to, payload, root, .. } = letter;
        self.counts.dead += 1;
        self.root_event(root, || EventKind::DeadLetter { payload: Some(payload.root().clone()), reason: reason.code });
        self.keep((from, to), ThreadPath::new(Vec::new()), Some(payload), reason);
    }

    fn open_again(
        &mut self,
        letter: Requeued,
        from: Sender,
        (first, others): (ListenerId, Vec<ListenerId>),
        payload: Validated<Element>,
    ) {
        if let Err(fault) = self.room_in_organism() {
            return self.bury_again(letter, fault);
        }
        let Requeued { to, root, permit, .. } = letter;
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
                self.counts.dead += 1;
                self.bury(parent, (from, to.clone()), Some(payload.payload().clone()), fault);
            }
        }
        self.settle(parent);
    }
}
