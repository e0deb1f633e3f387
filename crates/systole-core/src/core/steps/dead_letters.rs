//! Dead letters at the wish of an operator: redriven or discarded.
//!
//! A redriven letter is judged from the start, as if its sender emitted it now: by the sender's contract of
//! today, to the listener that it named. It does not go back to the conversation that it came
//! from: its caller has had the one answer that was due. It opens a tree below a root of
//! its own instead, which has no owner, as that of boot has none: answers to it are
//! dead letters. So is the letter itself, with the new reason and a new number, if it is refused
//! again. What its sender may not call is not redriven at all: a reply, which no thread waits for any
//! more, and a question to the core.

use systole_xml::schema::{Element, Validated};

use super::Core;
use super::call::Call;
use crate::core::blueprint::{Blueprint, ListenerId, Party};
use crate::core::books::Entry;
use crate::core::dead_letters::{DeadLetter, DeadLetterError, DeadLetterId};
use crate::core::event::EventKind;
use crate::core::faults;
use crate::core::io::Output;
use crate::core::items::{Item, Redriven};
use crate::core::judge::{ParsedPayload, Verdict};
use crate::core::queued::{Origin, Sender};
use crate::core::rounds::Principal;
use crate::core::tree::Owner;
use crate::journal::Op;
use crate::protocol::refused_qname;
use crate::vocab::{Fault, Name, Partition, QName, ThreadId, Time, ns};

impl Blueprint {
    /// Checks that a dead letter can be redriven: its sender may call the payload today.
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
        self.step.out.emit(Output::Letter { letter, result });
    }

    /// Puts a dead letter on Queue 1 that was marked in the journal. One that can't be redriven loses its mark.
    pub(super) fn redrive_marked(&mut self, letter: DeadLetterId, root: ThreadId) {
        let result = self.put_back(letter, root);
        if let Err(DeadLetterError::NotACall { .. } | DeadLetterError::NoPayload) = result {
            self.step.out.write(|| Op::Unmark { letter: letter.number() });
        }
        self.step.out.emit(Output::Letter { letter, result });
    }

    /// Forgets a dead letter.
    pub(super) fn discard_letter(&mut self, letter: DeadLetterId) {
        let result = self.tree.take_letter(letter).map(drop).ok_or(DeadLetterError::Unknown);
        if result.is_ok() {
            self.step.out.write(|| Op::LetterGone { letter: letter.number() });
        }
        self.step.out.emit(Output::Letter { letter, result });
    }

    fn put_back(&mut self, id: DeadLetterId, root: ThreadId) -> Result<(), DeadLetterError> {
        let letter = self.tree.dead_letters().get(id).ok_or(DeadLetterError::Unknown)?;
        let payload = letter.payload.clone().filter(|payload| *payload.root() != refused_qname());
        let payload = payload.ok_or(DeadLetterError::NoPayload)?;
        self.setup.blueprint.may_redrive(&letter.from, payload.root())?;
        if self.entrance.is_draining() {
            return Err(DeadLetterError::Closed);
        }
        let permit = self.tree.admit(payload.bytes().len())?;
        let DeadLetter { partition, conversation, from, to, .. } =
            self.tree.take_letter(id).ok_or(DeadLetterError::Unknown)?;
        let (number, root) = (id.number(), partition.place(root));
        let redriven = Redriven { from, to, payload, number, conversation, root, permit };
        let entry = self.step.books.redriven();
        self.entrance.push(Principal::ORGANISM, Item::Redriven(redriven, entry));
        Ok(())
    }

    /// Judges a letter from the start.
    pub(super) fn reissue(&mut self, letter: Redriven, entry: Entry) {
        self.step.out.write(|| Op::LetterGone { letter: letter.number });
        let caller = self.setup.blueprint.party(letter.from.as_str());
        let sender = match caller {
            Some(Party::Listener(id)) => Sender::Listener(id),
            Some(Party::Client(id)) => Sender::Client(id),
            // Messages of the pump itself are for the thread that they were made for.
            None => Sender::System,
        };
        match self.judge.call(letter.to.as_ref(), caller, ParsedPayload::Unproved(letter.payload.clone())) {
            Verdict::Call { first, others, payload } => {
                self.open_again(letter, sender, (first, others), payload, entry);
            }
            Verdict::Refused(refusal) => self.keep_dead_again(letter, refusal.fault, entry),
            Verdict::Reply(_)
            | Verdict::Continue { .. }
            | Verdict::Addressed { .. }
            | Verdict::CloseThread { .. }
            | Verdict::Core { .. }
            | Verdict::Spawn { .. } => {
                let fault = faults::route(letter.payload.root());
                self.keep_dead_again(letter, fault, entry);
            }
        }
    }

    /// Keeps a letter that is undeliverable once more.
    pub(super) fn keep_dead_again(&mut self, letter: Redriven, reason: Fault, entry: Entry) {
        let Redriven { from, to, payload, conversation, root, .. } = letter;
        let (qname, code) = (payload.root(), reason.code);
        self.step.out.root_event(root, || EventKind::DeadLetter { payload: Some(qname.clone()), reason: code });
        self.keep_dead_outside((from, to), (Partition::of(root), conversation), Some(payload), reason, entry);
    }

    fn open_again(
        &mut self,
        letter: Redriven,
        from: Sender,
        (first, others): (ListenerId, Vec<ListenerId>),
        payload: Validated<Element>,
        entry: Entry,
    ) {
        if let Err(fault) = self.tree.room_in_organism() {
            return self.keep_dead_again(letter, fault, entry);
        }
        let Redriven { to, root, permit, .. } = letter;
        // The letter of a client has no more than a conversation of the client.
        let budget = self.root_budget(match from {
            Sender::Client(client) => Owner::Client(client),
            Sender::Listener(_) | Sender::System | Sender::Core => Owner::None,
        });
        let parent = self.tree.open_root(root, Owner::None, false, self.end_of(budget.as_deref()), &mut self.step);
        self.open_account(parent, budget);
        let (mut permit, mut entry) = (Some(permit), Some(entry));
        for target in std::iter::once(first).chain(others) {
            let entry = entry.take().unwrap_or_else(|| self.step.books.made());
            let call = Call {
                parent,
                target,
                payload: payload.clone(),
                origin: Origin::None,
                ids: self.entrance.next_ids(root),
                from,
                label: None,
                traceparent: None,
                deadline: Time::MAX,
                budget: None,
                spawned: false,
                permit: permit.take(),
            };
            if let Err((fault, entry)) = self.place(call, entry) {
                self.keep_dead(parent, (from, to.clone()), Some(payload.payload().clone()), fault, entry);
            }
        }
        self.tree.touch(parent);
    }
}
