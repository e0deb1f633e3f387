//! New threads: roots, boot, children for calls, spawned ones.

use std::collections::HashSet;
use std::sync::Arc;

use systole_xml::ladder::{Element, Validated};

use super::blueprint::{ClientId, ListenerId};
use super::event::EventKind;
use super::faults;
use super::gauge::Permit;
use super::io::Body;
use super::key::ThreadKey;
use super::machine::Core;
use super::thread::{
    Backlog, Children, Content, Extra, Made, Mailbox, Origin, Owner, Queued, RootState, Sender, Thread, Turn,
};
use super::timer::Timer;
use super::write_ahead::Waits;
use crate::journal::Number;
use crate::protocol::{self, Boot};
use crate::vocab::{Fault, MessageId, ThreadId, Time};

/// A call that is about to open a thread.
pub(super) struct Call {
    pub parent: ThreadKey,
    pub target: ListenerId,
    pub payload: Validated<Element>,
    pub origin: Origin,
    pub ids: (MessageId, ThreadId),
    pub from: Sender,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Arc<str>>,
    pub deadline: Time,
    pub spawned: bool,
    /// Its place among what waits, if it has one already.
    pub permit: Option<Permit>,
}

impl Core {
    /// Sends `<boot>` to whoever accepts it, each on a thread below a root that nobody reads.
    pub(super) fn boot(&mut self, root: ThreadId) {
        let qname = protocol::boot_qname();
        let booting = self.threads.keys().filter(|&key| self.is_booting(key));
        let resumed: HashSet<_> = booting.filter_map(|key| self.threads[key].listener()).collect();
        let mut listeners: Vec<ListenerId> = self.blueprint.accepting(&qname).to_vec();
        listeners.retain(|listener| !resumed.contains(listener));
        if listeners.is_empty() {
            return;
        }
        let (opened_by, _) = self.key.derive_entry(root, 0);
        let number = self.next_number();
        let parent = self.link_root(number, root, Owner::Nobody, opened_by);
        self.threads[parent].extra().root.get_or_insert_default().boot = true;
        self.opened_root(parent);
        for (index, listener) in (1..).zip(listeners) {
            self.counts.made += 1;
            let ids = self.key.derive_entry(root, index);
            match self.boot_body(listener) {
                Ok(body) => {
                    let (child, opened) = self.open_thread(parent, listener, ids);
                    let permit = self.gauge.count(0);
                    let share = self.share(child, permit);
                    self.threads[child].deadline = Time::MAX;
                    let content = Content::Body(body);
                    self.log_open(child);
                    self.enqueue(child, Queued::new(opened, Sender::System, content, share));
                }
                Err(fault) => {
                    self.bury(parent, (Sender::System, None), None, fault);
                }
            }
        }
        self.settle(parent);
    }

    /// What `<boot>` says at this start.
    pub(super) fn boot_body(&mut self, listener: ListenerId) -> Result<Body, Fault> {
        let boot = Boot {
            organism: self.blueprint.organism.clone(),
            started: self.started,
            listeners: self.blueprint.listeners().count(),
        };
        self.own_payload(listener, boot.write())
    }

    /// The root of a client's conversation, opened if it isn't there.
    pub(super) fn client_root(&mut self, root: ThreadId, client: ClientId) -> Result<ThreadKey, Fault> {
        if let Some(&key) = self.roots.get(&root) {
            return Ok(key);
        }
        self.room_in_organism()?;
        let opened_by = self.key.derive_entry(root, 0).0;
        let key = self.open_root(root, Owner::Client(client), opened_by);
        self.roots.insert(root, key);
        self.directory.insert(root, client, self.shard);
        Ok(key)
    }

    /// Ids for the next message that enters from outside.
    pub(super) fn entry_id(&mut self, root: ThreadId) -> (MessageId, ThreadId) {
        self.entries += 1;
        self.key.derive_entry(root, self.entries)
    }

    /// Opens the thread of a call and puts the request into its mailbox.
    pub(super) fn place(&mut self, call: Call) -> Result<ThreadKey, Fault> {
        self.room_for_call(call.parent)?;
        self.room_in_conversation(call.parent, 1, 1)?;
        self.room_in_organism()?;
        let permit = self.permit(call.permit, &call.payload)?;
        let body = self.decode(call.target, call.payload)?;
        let (key, id) = self.open_thread(call.parent, call.target, call.ids);
        let thread = &mut self.threads[key];
        thread.origin = call.origin;
        if call.spawned || call.label.is_some() || call.traceparent.is_some() {
            let extra = thread.extra();
            extra.label = call.label;
            extra.traceparent = call.traceparent;
            extra.spawned = call.spawned.then(Default::default);
        }
        self.threads[call.parent].children.open += u32::from(call.origin != Origin::None);
        if call.deadline < self.threads[call.parent].deadline {
            let timer = self.timers.set(call.deadline, Timer::Deadline(key));
            let thread = &mut self.threads[key];
            thread.deadline = call.deadline;
            thread.extra().timer = Some(timer);
        }
        if call.spawned {
            self.spawned.insert(call.ids.1, key);
        }
        let content = Content::Body(body);
        let share = self.share(key, permit);
        self.log_open(key);
        self.enqueue(key, Queued::new(id, call.from, content, share));
        Ok(key)
    }

    /// Puts a call on a spawned thread; it starts when the one before it is answered.
    pub(super) fn place_on(&mut self, key: ThreadKey, call: Call) -> Result<(), Fault> {
        self.room_for_call(call.parent)?;
        self.room_in_mailbox(key)?;
        let permit = self.permit(call.permit, &call.payload)?;
        let body = self.decode(call.target, call.payload)?;
        self.threads[call.parent].children.open += 1;
        let (id, content) = (call.ids.0, Content::Body(body));
        let share = self.share(key, permit);
        let mut message = Queued::new(id, call.from, content, share);
        self.log_put(key, &mut message, Waits::Call(call.origin));
        self.queued += 1;
        if let Some(backlog) = &mut self.threads[key].extra().spawned {
            backlog.push_back(Backlog { message, origin: call.origin });
        }
        self.next_call(key);
        Ok(())
    }

    /// Starts the next call of a spawned thread that owes nothing.
    pub(super) fn next_call(&mut self, key: ThreadKey) {
        let Some(thread) = self.threads.get_mut(key) else { return };
        if thread.origin != Origin::None {
            return;
        }
        let Some(next) = thread.extra.as_mut().and_then(|extra| extra.spawned.as_mut()?.pop_front()) else { return };
        thread.origin = next.origin;
        thread.opened_by = next.message.id;
        self.log_owes(key);
        self.queued -= 1;
        self.enqueue(key, next.message);
    }

    fn permit(&self, permit: Option<Permit>, payload: &Validated<Element>) -> Result<Permit, Fault> {
        permit.map_or_else(|| self.gauge.admit(payload.payload().bytes().len()).map_err(|_| faults::overload()), Ok)
    }

    pub(super) fn open_root(&mut self, id: ThreadId, owner: Owner, opened_by: MessageId) -> ThreadKey {
        let number = self.next_number();
        let key = self.link_root(number, id, owner, opened_by);
        self.opened_root(key);
        key
    }

    fn opened_root(&mut self, key: ThreadKey) {
        let thread = self.threads[key].id;
        self.event(key, || EventKind::Opened { thread });
        self.log_open(key);
    }

    /// Puts a root where it belongs, whether it is new or comes out of the journal.
    pub(super) fn link_root(&mut self, number: Number, id: ThreadId, owner: Owner, opened_by: MessageId) -> ThreadKey {
        self.directory.thread_opened();
        self.threads.insert_with_key(|key| Thread {
            id,
            owner,
            parent: None,
            root: key,
            opened_by,
            origin: Origin::None,
            deadline: Time::MAX,
            sequence: number,
            mailbox: Mailbox::default(),
            task: None,
            children: Children::default(),
            made: Made::NONE,
            ordinal: 1,
            depth: 0,
            turn: Turn::None,
            invalid: 0,
            judging: 0,
            extra: Some(Box::new(Extra {
                root: Some(RootState { live_threads: 1, ..RootState::default() }),
                ..Extra::default()
            })),
        })
    }

    fn open_thread(
        &mut self,
        parent: ThreadKey,
        listener: ListenerId,
        ids: (MessageId, ThreadId),
    ) -> (ThreadKey, MessageId) {
        let number = self.next_number();
        let ordinal = self.threads[parent].next_ordinal(listener);
        let key = self.link_thread(parent, listener, number, ids, ordinal);
        self.event(key, || EventKind::Opened { thread: ids.1 });
        (key, ids.0)
    }

    /// Puts a child where it belongs, whether it is new or comes out of the journal.
    pub(super) fn link_thread(
        &mut self,
        parent: ThreadKey,
        listener: ListenerId,
        number: Number,
        (opened_by, id): (MessageId, ThreadId),
        ordinal: u32,
    ) -> ThreadKey {
        self.directory.thread_opened();
        let above = &self.threads[parent];
        let thread = Thread {
            id,
            owner: Owner::Listener(listener),
            parent: Some(parent),
            root: above.root,
            opened_by,
            origin: Origin::None,
            deadline: above.deadline,
            sequence: number,
            mailbox: Mailbox::default(),
            task: None,
            children: Children::default(),
            made: Made::NONE,
            ordinal,
            depth: above.depth + 1,
            turn: Turn::None,
            invalid: 0,
            judging: 0,
            extra: None,
        };
        let root = thread.root;
        let key = self.threads.insert(thread);
        self.link(parent, key);
        if let Some(state) = &mut self.threads[root].extra().root {
            state.live_threads += 1;
        }
        key
    }

    /// Puts a message at the tail of the thread's own mailbox.
    pub(super) fn place_continue(&mut self, key: ThreadKey, mut message: Queued, after: std::time::Duration) {
        if after.is_zero() {
            return self.enqueue(key, message);
        }
        if self.draining {
            self.counts.cancelled += 1;
            return self.threads[key].extra().drained = true;
        }
        let due = self.now.after(after);
        self.log_put(key, &mut message, Waits::Moment(due));
        let timer = self.timers.set(due, Timer::Continue(key, Box::new(message)));
        self.delayed += 1;
        self.threads[key].extra().continues.push(timer);
    }
}
