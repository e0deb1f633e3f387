//! The end of the organism: drain, then stop.

use systole_xml::ladder::Canonical;

use super::answer::{Recipient, Reply};
use super::{Core, own_index};
use crate::core::books::Entry;
use crate::core::faults;
use crate::core::io::{Emission, HandlerOutcome, Injected, Output};
use crate::core::items::{Item, Response};
use crate::core::key::ThreadKey;
use crate::core::queued::{Queued, Sender};
use crate::core::tree::{Owner, Thread};
use crate::vocab::{Fault, MessageId, Name};

impl Core {
    /// Stops endless work: pending continues and boot handlers, except those that the next start takes up.
    /// A thread that has nothing but such a continue to wait for ends as `cancelled`, unless its silence is `idle`.
    pub(super) fn drain(&mut self) {
        self.entrance.drain();
        for key in self.tree.in_order(|_| true) {
            if !self.tree.contains(key) {
                continue;
            }
            if self.is_booting(key) {
                if !(self.step.out.writes() && self.reattaches(key)) {
                    self.end_child(key);
                }
            } else if self.tree.drain(key, &mut self.step) {
                self.tree.touch(key);
            }
        }
    }

    /// Ends every conversation: one fault each where an answer is owed, the rest to the dead letters.
    ///
    /// A durable core leaves them to its next start instead, and sends no faults.
    pub(super) fn stop(&mut self) {
        self.drain();
        self.settle_touched();
        self.entrance.stop();
        if !self.step.out.writes() {
            return self.end_all(&faults::cancelled());
        }
        self.step.out.seal();
        for item in self.entrance.take_all() {
            self.leave_unwritten(item);
        }
        self.close_all();
    }

    /// Gives all conversations up, without effects: what is written is for the next owner of the partitions, and what is
    /// not did not happen. Messages that were not accepted stay on Queue 1, to be handed on.
    pub(super) fn release(&mut self) {
        if !self.step.out.writes() {
            return;
        }
        self.tree.directory().withdraw(self.setup.core);
        self.step.out.seal();
        for item in self.entrance.take_all() {
            match item {
                Item::Injected(Injected { client, .. }, _) => self.entrance.push(Some(client).into(), item),
                item => self.leave_unwritten(item),
            }
        }
        self.close_all();
        self.tree.leave_letters();
    }

    /// Leaves an item of Queue 1 to the next owner of its partition. Messages that were not accepted are not in the journal.
    fn leave_unwritten(&mut self, item: Item) {
        match item {
            Item::Injected(..) | Item::Redriven(..) => self.abandon(item, &faults::cancelled()),
            Item::Response(response) => self.give_back(response.holdings),
            Item::Calls(_) | Item::Reattached(_) | Item::Left(_) | Item::Cancel(_) => {}
        }
    }

    fn close_all(&mut self) {
        for key in self.tree.in_order(is_root) {
            self.close(key);
        }
    }

    /// Ends the organism after a failure of the journal: clients that wait get a fault, and acknowledged messages wait
    /// for the next start.
    pub(super) fn unwritable(&mut self) {
        self.step.out.give_up();
        self.entrance.stop();
        self.end_all(&faults::unwritable());
    }

    fn end_all(&mut self, fault: &Fault) {
        for item in self.entrance.take_all() {
            self.abandon(item, fault);
        }
        for key in self.tree.in_order(is_root) {
            let thread = &self.tree[key];
            if let (Owner::Client(client), true) = (thread.owner, thread.children.open > 0) {
                let about = thread.opened_by;
                let recipient = Recipient { client, root: thread.id, label: None, traceparent: None, place: None };
                self.last_fault(recipient, about, fault);
            }
            self.keep_dead_queued(key);
            self.close(key);
        }
    }

    /// Ends an item of Queue 1 that will not be processed.
    pub(super) fn abandon(&mut self, item: Item, fault: &Fault) {
        match item {
            Item::Injected(Injected { client, root, attachment, message, place, .. }, entry) => {
                let label = message.label();
                self.step.out.take(attachment, false);
                self.step.books.faulted(entry);
                let about = self.entrance.stray_ids().0;
                self.last_fault(Recipient { client, root, label, traceparent: None, place }, about, fault);
                if self.tree.root(root).is_none() {
                    self.step.out.emit(Output::Closed { client, root });
                }
            }
            Item::Response(Response { thread, holdings, outcome: HandlerOutcome::Emitted(emissions), .. }) => {
                self.give_back(holdings);
                self.keep_dead_emissions(thread, emissions);
            }
            Item::Response(Response { thread, holdings, .. }) => {
                self.give_back(holdings);
                let entry = self.step.books.emitted(1).one();
                self.keep_dead_emission(thread, None, None, entry);
            }
            Item::Calls(calls) => self.keep_dead_emissions(calls.thread, calls.requests),
            Item::Reattached(..) => {}
            Item::Redriven(letter, entry) => self.keep_dead_again(letter, fault.clone(), entry),
            Item::Left(root) | Item::Cancel(root) => self.step.out.emit(Output::Gone { root }),
        }
    }

    /// Moves the queued messages below a root to the dead letters.
    fn keep_dead_queued(&mut self, root: ThreadKey) {
        let mut subtree = vec![root];
        let mut read = 0;
        while let Some(&key) = subtree.get(read) {
            read += 1;
            self.tree.children_of(key, &mut subtree);
            for message in self.tree.take_queued(key) {
                self.keep_dead_message(key, message);
            }
        }
    }

    fn keep_dead_message(&mut self, key: ThreadKey, message: Queued) {
        // A request is for the thread's listener; an answer is for the thread alone.
        let to = self.tree[key].listener().filter(|_| message.in_reply_to.is_none());
        let to = to.map(|listener| self.setup.blueprint.contract(listener).name.clone());
        self.keep_dead(key, (message.from, to), message.content.payload(), faults::cancelled(), message.entry);
    }

    fn keep_dead_emissions(&mut self, thread: ThreadKey, emissions: Vec<Emission>) {
        let mut entries = self.step.books.emitted(emissions.len());
        for emission in emissions {
            self.keep_dead_emission(thread, emission.to, emission.payload.into_payload(), entries.one());
        }
        self.step.books.cancelled(entries);
    }

    fn keep_dead_emission(&mut self, key: ThreadKey, to: Option<Name>, payload: Option<Canonical>, entry: Entry) {
        match self.tree.get(key).and_then(|thread| thread.listener()) {
            Some(listener) => {
                self.keep_dead(key, (Sender::Listener(listener), to), payload, faults::cancelled(), entry)
            }
            None => self.step.books.cancelled(entry),
        }
    }

    fn last_fault(&mut self, recipient: Recipient, about: MessageId, fault: &Fault) {
        let (id, _) = self.setup.key.derive(about, own_index::FAULT);
        let entry = self.step.books.made();
        self.leave_for(recipient, Sender::System, id, Reply::Fault(fault.clone()), entry);
    }
}

fn is_root(thread: &Thread) -> bool {
    thread.parent.is_none()
}
