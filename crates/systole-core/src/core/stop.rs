//! The end of the organism: drain, then stop.

use systole_xml::ladder::Canonical;

use super::answer::{Recipient, Reply};
use super::fan_out::protocol_index;
use super::faults;
use super::io::{Emission, Injected, Outcome, Output};
use super::key::ThreadKey;
use super::machine::{Core, Item};
use super::respond::Response;
use super::thread::{Owner, Queued, Sender};
use crate::vocab::{Fault, MessageId, Name};

impl Core {
    /// Stops what would go on for ever: pending continues and boot handlers, but those that the next start takes up.
    /// A thread that has nothing but such a continue to wait for ends as `cancelled`, unless its silence is `idle`.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        let mut keys: Vec<_> = self.threads.iter().map(|(key, thread)| (thread.sequence, key)).collect();
        keys.sort_unstable();
        for (_, key) in keys {
            if !self.threads.contains_key(key) {
                continue;
            }
            if self.is_booting(key) {
                if !(self.logs() && self.reattaches(key)) {
                    self.end_child(key);
                }
            } else if self.cancel_continues(key) {
                self.settle(key);
            }
        }
    }

    /// Ends every conversation: one fault each where an answer is owed, the rest to the dead letters.
    ///
    /// A durable core leaves them to its next start instead, and says nothing.
    pub(super) fn stop(&mut self) {
        self.drain();
        self.stopped = true;
        if !self.logs() {
            return self.end_all(&faults::cancelled());
        }
        self.seal();
        // What was not taken in is not in the journal.
        for item in std::mem::take(&mut self.queue).into_iter().filter(Item::is_message) {
            self.abandon(item, &faults::cancelled());
        }
        for key in self.roots_in_order() {
            self.close(key);
        }
    }

    /// The journal can't be written: whoever waits is told, and what is confirmed waits for the next start.
    pub(super) fn unwritable(&mut self) {
        self.give_up_log();
        (self.draining, self.stopped) = (true, true);
        self.end_all(&faults::unwritable());
    }

    fn end_all(&mut self, fault: &Fault) {
        for item in std::mem::take(&mut self.queue) {
            self.abandon(item, fault);
        }
        for key in self.roots_in_order() {
            let thread = &self.threads[key];
            if let (Owner::Client(client), true) = (thread.owner, thread.children.open > 0) {
                let about = thread.opened_by;
                let recipient = Recipient { client, root: thread.id, label: None, traceparent: None };
                self.last_fault(recipient, about, fault);
            }
            self.bury_queued(key);
            self.close(key);
        }
    }

    /// An item of Queue 1 that will not be processed.
    pub(super) fn abandon(&mut self, item: Item, fault: &Fault) {
        match item {
            Item::Injected(Injected { client, root, attachment, .. }) => {
                self.taken(attachment, false);
                self.counts.faulted += 1;
                let about = self.entry_id(root).0;
                self.last_fault(Recipient { client, root, label: None, traceparent: None }, about, fault);
                if !self.roots.contains_key(&root) {
                    self.outputs.push_back(Output::Closed { client, root });
                }
            }
            Item::Response(Response { thread, log, outcome: Outcome::Emitted(emissions), .. }) => {
                self.log_attached(log);
                self.bury_emissions(thread, emissions);
            }
            Item::Response(Response { thread, log, .. }) => {
                self.log_attached(log);
                self.counts.emitted += 1;
                self.bury_emission(thread, None, None);
            }
            Item::Calls(calls) => self.bury_emissions(calls.thread, calls.requests),
            Item::Reattached(..) => {}
            Item::Redriven(letter) => self.bury_again(letter, fault.clone()),
            Item::Left(root) | Item::Cancel(root) => self.outputs.push_back(Output::Gone { root }),
        }
    }

    fn roots_in_order(&self) -> Vec<ThreadKey> {
        let roots = self.threads.iter().filter(|(_, thread)| thread.parent.is_none());
        let mut roots: Vec<_> = roots.map(|(key, thread)| (thread.sequence, key)).collect();
        roots.sort_unstable();
        roots.into_iter().map(|(_, key)| key).collect()
    }

    /// Cancels the continues of a thread that wait for their time; whether there were any. Those that are in the
    /// journal wait for the next start.
    fn cancel_continues(&mut self, key: ThreadKey) -> bool {
        let durable = self.logs();
        let Some(extra) = self.threads[key].extra.as_mut().filter(|_| !durable) else { return false };
        let continues = std::mem::take(&mut extra.continues);
        extra.drained |= !continues.is_empty();
        for &timer in &continues {
            self.timers.cancel(timer);
            self.delayed -= 1;
            self.counts.cancelled += 1;
        }
        !continues.is_empty()
    }

    /// Moves what is queued below a root to the dead letters.
    fn bury_queued(&mut self, root: ThreadKey) {
        let mut subtree = vec![root];
        let mut read = 0;
        while let Some(&key) = subtree.get(read) {
            read += 1;
            self.children_of(key, &mut subtree);
            while let Some(message) = self.threads[key].mailbox.pop() {
                self.bury_message(key, message);
            }
            let spawned = self.threads[key].extra.as_mut().and_then(|extra| extra.spawned.as_mut());
            for call in spawned.map(std::mem::take).unwrap_or_default() {
                self.bury_message(key, call.message);
            }
        }
    }

    fn bury_message(&mut self, key: ThreadKey, message: Queued) {
        self.queued -= 1;
        // A request is for the thread's listener; an answer is for nobody but the thread.
        let to = self.threads[key].listener().filter(|_| message.in_reply_to.is_none());
        let to = to.map(|listener| self.blueprint.contract(listener).name.clone());
        self.bury(key, (message.from, to), message.content.payload(), faults::cancelled());
    }

    fn bury_emissions(&mut self, thread: ThreadKey, emissions: Vec<Emission>) {
        self.counts.emitted += emissions.len() as u64;
        for emission in emissions {
            self.bury_emission(thread, emission.to, emission.payload.into_payload());
        }
    }

    fn bury_emission(&mut self, key: ThreadKey, to: Option<Name>, payload: Option<Canonical>) {
        match self.threads.get(key).and_then(|thread| thread.listener()) {
            Some(listener) => {
                self.bury(key, (Sender::Listener(listener), to), payload, faults::cancelled());
            }
            None => self.counts.cancelled += 1,
        }
    }

    fn last_fault(&mut self, recipient: Recipient, about: MessageId, fault: &Fault) {
        let (id, _) = self.key.derive(about, protocol_index::FAULT);
        self.counts.made += 1;
        self.leave_for(recipient, Sender::System, id, Reply::Fault(fault.clone()));
    }
}
