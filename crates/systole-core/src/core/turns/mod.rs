//! Turns: which thread is dispatched next, and which handlers of a listener may run at once.

mod concurrency;
mod gather;
mod run_queue;

use std::rc::Rc;

use concurrency::Concurrency;
pub(super) use concurrency::Waiter;
use gather::Gathering;
pub(super) use gather::Want;
use run_queue::RunQueue;

use super::blueprint::{ClientId, ListenerId};
use super::conversation::Conversation;
use super::io::{CoreId, CoreMessage, Precedence};
use super::key::ThreadKey;
use super::ready::Ticket;
use super::setup::{Setup, StepContext};
use crate::journal::Number;

/// The run queue of a core, and the concurrency slots of the listeners whose home it is.
pub(super) struct Turns {
    setup: Rc<Setup>,
    run_queue: RunQueue,
    /// The slots of each listener.
    slots: Vec<Concurrency>,
    /// Recovered threads that want a slot, until all cores have recovered.
    gathering: Option<Gathering>,
    /// The place of the message for which a thread of this core is about to want a slot.
    precedence: Precedence,
    /// States whether each listener is down: its messages fault at once.
    down: Vec<bool>,
    of_run_queue: bool,
}

impl Turns {
    /// Turns of a core. `durable`: no slot is granted before all cores have recovered.
    pub(super) fn new(setup: Rc<Setup>, durable: bool) -> Self {
        let listeners = || setup.blueprint.listeners();
        Self {
            run_queue: RunQueue::default(),
            slots: listeners().map(|(_, contract)| Concurrency::new(contract.concurrency)).collect(),
            gathering: (durable && setup.cores > 1 && setup.core.0 < setup.cores).then(|| Gathering::new(setup.cores)),
            down: listeners().map(|_| false).collect(),
            precedence: Precedence::Later,
            of_run_queue: false,
            setup,
        }
    }

    /// Returns whether it is the turn of the run queue, rather than that of Queue 1: they alternate.
    pub(super) fn alternate(&mut self) -> bool {
        self.of_run_queue = !self.of_run_queue;
        self.of_run_queue
    }

    /// Puts a thread at the end of the run queue of its conversation.
    pub(super) fn push(&mut self, conversation: Rc<Conversation>, thread: ThreadKey, sequence: Number) -> Ticket {
        self.run_queue.push(conversation, thread, sequence)
    }

    /// Takes the next thread whose ticket `stands`.
    pub(super) fn pop(&mut self, stands: impl Fn(ThreadKey, Ticket) -> bool) -> Option<ThreadKey> {
        self.run_queue.pop(stands)
    }

    pub(super) fn set_down(&mut self, listener: ListenerId, down: bool) {
        if let Some(flag) = self.down.get_mut(listener.0 as usize) {
            *flag = down;
        }
    }

    pub(super) fn is_down(&self, listener: ListenerId) -> bool {
        self.down[listener.0 as usize]
    }

    /// Takes a slot for a thread of this core, or lets it wait for one.
    pub(super) fn want(
        &mut self,
        listener: ListenerId,
        (thread, root, client): (ThreadKey, ThreadKey, Option<ClientId>),
        resume: bool,
        step: &mut StepContext,
    ) -> bool {
        let (home, from, at) = (self.home(listener), self.setup.core, self.precedence);
        if home != from {
            step.out.send(home, CoreMessage::SlotWanted { from, listener, thread, root, client, resume, at });
            return false;
        }
        let want = Want { at, listener, waiter: Waiter { core: home, thread, root, principal: client.into() }, resume };
        let stateless = self.setup.blueprint.contract(listener).stateless;
        match &mut self.gathering {
            Some(gathering) if !stateless => gathering.add(want),
            _ => return self.take(&want),
        }
        false
    }

    /// Grants a slot to a thread of any core, or lets it wait for one. The thread, if it is one of this core and has
    /// it.
    pub(super) fn wanted(&mut self, want: Want, step: &mut StepContext) -> Option<ThreadKey> {
        if let Some(gathering) = &mut self.gathering {
            gathering.add(want);
            return None;
        }
        let Want { listener, waiter, .. } = want;
        if self.take(&want) { self.grant(listener, waiter.core, waiter.thread, step) } else { None }
    }

    fn take(&mut self, want: &Want) -> bool {
        let slots = &mut self.slots[want.listener.0 as usize];
        if let Precedence::Delivered(_) = want.at {
            slots.take_again();
            return true;
        }
        slots.take(want.waiter, want.at, want.resume)
    }

    /// Gives a slot back. The thread of this core that gets it, if one does.
    pub(super) fn release(&mut self, listener: ListenerId, step: &mut StepContext) -> Option<ThreadKey> {
        match self.home(listener) {
            home if home == self.setup.core => self.returned(listener, step),
            home => {
                step.out.send(home, CoreMessage::SlotReturned { listener });
                None
            }
        }
    }

    /// Takes a slot back. The thread of this core that gets it, if one does.
    pub(super) fn returned(&mut self, listener: ListenerId, step: &mut StepContext) -> Option<ThreadKey> {
        let (core, thread) = self.slots[listener.0 as usize].give_back()?;
        self.grant(listener, core, thread, step)
    }

    /// Withdraws the request of a thread of this core for a slot.
    pub(super) fn decline(&mut self, listener: ListenerId, thread: ThreadKey, step: &mut StepContext) {
        let from = self.setup.core;
        match self.home(listener) {
            home if home == from => self.declined(listener, from, thread),
            home => step.out.send(home, CoreMessage::SlotDeclined { from, listener, thread }),
        }
    }

    /// Withdraws the request of a thread of any core for a slot.
    pub(super) fn declined(&mut self, listener: ListenerId, core: CoreId, thread: ThreadKey) {
        self.slots[listener.0 as usize].decline(core, thread);
    }

    fn grant(
        &mut self,
        listener: ListenerId,
        core: CoreId,
        thread: ThreadKey,
        step: &mut StepContext,
    ) -> Option<ThreadKey> {
        if core == self.setup.core {
            return Some(thread);
        }
        step.out.send(core, CoreMessage::SlotGranted { listener, thread });
        None
    }

    /// The core that keeps the slots of a listener.
    fn home(&self, listener: ListenerId) -> CoreId {
        if self.setup.blueprint.contract(listener).stateless {
            return self.setup.core;
        }
        CoreId((listener.0 % u32::from(self.setup.cores)) as u16)
    }
}
