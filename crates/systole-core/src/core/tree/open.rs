//! New threads: roots, children for calls, spawned ones, and the calls that wait on those.

use crate::core::setup::StepContext;
use std::sync::Arc;

use super::recording::Waits;
use super::thread::{Backlog, Children, Extra, Mailbox, RootState};
use super::{Owner, Thread, Tree, Turn};
use crate::core::blueprint::{ClientId, ListenerId};
use crate::core::clock::Timer;
use crate::core::event::EventKind;
use crate::core::key::ThreadKey;
use crate::core::queued::{Origin, Queued};
use crate::journal::Number;
use crate::vocab::{MessageId, ThreadId, Time};

/// A child that is about to open.
pub(in crate::core) struct Child {
    pub listener: ListenerId,
    /// The id of the call that opens it, and that of the thread.
    pub ids: (MessageId, ThreadId),
    /// The destination of its answer.
    pub origin: Origin,
    pub label: Option<Arc<str>>,
    pub traceparent: Option<Arc<str>>,
    /// A deadline of its own; `Time::MAX` for none.
    pub deadline: Time,
    pub spawned: bool,
}

impl Child {
    /// A child that owes no answer.
    pub(in crate::core) fn new(listener: ListenerId, ids: (MessageId, ThreadId)) -> Self {
        let (origin, deadline) = (Origin::None, Time::MAX);
        Self { listener, ids, origin, label: None, traceparent: None, deadline, spawned: false }
    }
}

impl Tree {
    /// Opens the root of a client's conversation.
    pub(in crate::core) fn open_client_root(
        &mut self,
        id: ThreadId,
        client: ClientId,
        deadline: Time,
        step: &mut StepContext,
    ) -> ThreadKey {
        let key = self.open_root(id, Owner::Client(client), false, deadline, step);
        self.enter_root(id, client, key);
        key
    }

    /// Opens a root, that of `<boot>` or another one. Its deadline holds for each of its children.
    pub(in crate::core) fn open_root(
        &mut self,
        id: ThreadId,
        owner: Owner,
        boot: bool,
        deadline: Time,
        step: &mut StepContext,
    ) -> ThreadKey {
        let (opened_by, _) = self.setup.key.derive_entry(id, 0);
        let key = self.link_root(step.out.next_number(), id, owner, opened_by);
        let thread = &mut self.threads[key];
        thread.deadline = deadline;
        thread.extra().root.get_or_insert_default().boot = boot;
        self.event(key, step, || EventKind::Opened { parent: None });
        self.write_open(key, step);
        key
    }

    /// Opens a child of a thread.
    pub(in crate::core) fn open_child(&mut self, parent: ThreadKey, child: Child, step: &mut StepContext) -> ThreadKey {
        let Child { listener, ids, origin, label, traceparent, deadline, spawned } = child;
        let number = step.out.next_number();
        let above = &mut self.threads[parent];
        let ordinal = above.next_ordinal(listener);
        above.children.open += u32::from(origin != Origin::None);
        // A root has no timer, since nothing is owed there.
        let deadline = deadline.min(above.deadline);
        let has_deadline = deadline < above.deadline || above.parent.is_none() && deadline < Time::MAX;
        let key = self.link_thread(parent, listener, number, ids, ordinal);
        let thread = &mut self.threads[key];
        thread.origin = origin;
        if spawned || label.is_some() || traceparent.is_some() {
            let extra = thread.extra();
            (extra.label, extra.traceparent) = (label, traceparent);
            extra.spawned = spawned.then(Default::default);
        }
        if has_deadline {
            thread.deadline = deadline;
            thread.extra().timer = Some(step.clock.set(deadline, Timer::Deadline(key)));
        }
        if spawned {
            self.spawned.insert(ids.1, key);
        }
        self.event(key, step, || EventKind::Opened { parent: self.threads.get(parent).map(|parent| parent.id) });
        self.write_open(key, step);
        key
    }

    /// Puts a call on a spawned thread, behind those before it.
    pub(in crate::core) fn put_call(
        &mut self,
        key: ThreadKey,
        mut message: Queued,
        origin: Origin,
        step: &mut StepContext,
    ) {
        if let Some(parent) = self.threads[key].parent {
            self.threads[parent].children.open += 1;
        }
        self.write_put(key, &mut message, Waits::Call(origin), step);
        self.queued += 1;
        if let Some(backlog) = &mut self.threads[key].extra().spawned {
            backlog.push_back(Backlog { message, origin });
        }
    }

    /// Puts the next call of a spawned thread that owes nothing into its mailbox; whether there is one.
    pub(in crate::core) fn next_call(&mut self, key: ThreadKey, step: &mut StepContext) -> bool {
        let free = self.threads.get_mut(key).filter(|thread| thread.origin == Origin::None);
        let Some(thread) = free else { return false };
        let backlog = thread.extra.as_mut().and_then(|extra| extra.spawned.as_mut());
        let Some(Backlog { message, origin }) = backlog.and_then(|backlog| backlog.pop_front()) else { return false };
        thread.origin = origin;
        thread.opened_by = message.id;
        self.write_owes(key, step);
        self.queued -= 1;
        self.put(key, message, step);
        true
    }

    /// Makes a root known as that of a client's conversation.
    pub(super) fn enter_root(&mut self, id: ThreadId, client: ClientId, key: ThreadKey) {
        self.roots.insert(id, key);
        self.directory.insert(id, client);
    }

    /// Puts a root where it belongs, whether it is new or comes out of the journal.
    pub(super) fn link_root(&mut self, number: Number, id: ThreadId, owner: Owner, opened_by: MessageId) -> ThreadKey {
        self.directory.thread_opened();
        let root = Some(RootState { live_threads: 1, ..RootState::default() });
        self.threads.insert_with_key(|key| Thread {
            extra: Some(Box::new(Extra { root, ..Extra::default() })),
            ..Thread::new(id, owner, (None, key), number, opened_by)
        })
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
        let root = above.root;
        let thread = Thread {
            deadline: above.deadline,
            ordinal,
            depth: above.depth + 1,
            ..Thread::new(id, Owner::Listener(listener), (Some(parent), root), number, opened_by)
        };
        let key = self.threads.insert(thread);
        self.link(parent, key);
        if let Some(state) = &mut self.threads[root].extra().root {
            state.live_threads += 1;
        }
        key
    }
}

impl Thread {
    fn new(
        id: ThreadId,
        owner: Owner,
        (parent, root): (Option<ThreadKey>, ThreadKey),
        sequence: Number,
        opened_by: MessageId,
    ) -> Self {
        Self {
            id,
            owner,
            parent,
            root,
            opened_by,
            origin: Origin::None,
            deadline: Time::MAX,
            sequence,
            mailbox: Mailbox::default(),
            invocation: None,
            children: Children::default(),
            made: super::thread::Made::NONE,
            ordinal: 1,
            depth: 0,
            turn: Turn::None,
            invalid: 0,
            has_called: false,
            judging: 0,
            extra: None,
        }
    }
}
