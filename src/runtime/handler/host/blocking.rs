//! The host of blocking listeners.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use systole_core::core::catch_panic::{catch_panic, discard};
use systole_core::core::{Failure, HandlerOutcome, ListenerId, Message};
use systole_core::protocol::boot_qname;

use super::supervised::Supervised;
use crate::runtime::handler::delivery::DeliveryMeta;
use crate::runtime::handler::kind::BlockingRoute;
use crate::runtime::handler::pool::{NoThread, Pool};
use crate::runtime::handler::response::outcome_of;
use crate::runtime::shard::command::Command;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::handlers::HandlerKey;
use crate::runtime::shard::host::Host;

/// A blocking listener without its type.
pub(crate) trait Run: Send + Sync {
    /// Runs the handler of a message.
    fn run(&self, key: HandlerKey, message: Message) -> HandlerOutcome;
}

/// A blocking listener with its routes.
pub(crate) struct Routed<L> {
    pub(crate) listener: L,
    pub(crate) routes: Arc<[BlockingRoute<L>]>,
}

impl<L: Send + Sync> Run for Routed<L> {
    fn run(&self, key: HandlerKey, message: Message) -> HandlerOutcome {
        let (meta, value) = DeliveryMeta::open(message, key);
        let payload = (*value).type_id();
        match self.routes.iter().find(|route| route.payload == payload) {
            Some(route) => outcome_of((route.handle)(&self.listener, value, meta)),
            None => HandlerOutcome::Failed(Failure::new("the listener has no handler for this payload")),
        }
    }
}

/// The host of a blocking listener: its handlers run on a pool of threads of its own, one for each concurrency slot of
/// its contract, and one for `<boot>`, whose handler holds no slot.
pub(crate) struct BlockingHost {
    shard_context: Rc<ShardContext>,
    listener: ListenerId,
    supervised: Rc<Supervised<Arc<dyn Run>>>,
    pool: Pool,
    running: RefCell<Vec<(HandlerKey, Arc<Turn>)>>,
}

/// State of a handler between the shard and the pool.
#[derive(Default)]
struct Turn {
    /// True if its fate is decided: by the pool, to run it, or by the shard, not to.
    taken: AtomicBool,
    /// True if its output is to be discarded.
    aborted: AtomicBool,
}

impl BlockingHost {
    pub(crate) fn new(
        shard_context: Rc<ShardContext>,
        listener: ListenerId,
        factory: Arc<dyn Fn() -> Arc<dyn Run> + Send + Sync>,
    ) -> Rc<Self> {
        let threads = {
            let contract = &shard_context.blueprint()[listener];
            contract.concurrency as usize + usize::from(contract.accepts.contains(&boot_qname()))
        };
        let pool = if shard_context.clock.is_simulated() { Pool::inline() } else { Pool::of_threads(threads) };
        Rc::new_cyclic(|host: &Weak<Self>| {
            let supervised = Supervised::new(shard_context.clone(), listener, factory, host.clone());
            Self { shard_context, listener, supervised, pool, running: RefCell::default() }
        })
    }
}

impl Host for BlockingHost {
    fn start(self: Rc<Self>, key: HandlerKey, message: Message) {
        let Some(instance) = self.supervised.instance() else { return self.supervised.wait(key, message) };
        let turn = Arc::new(Turn::default());
        self.running.borrow_mut().push((key, turn.clone()));
        let (links, shard, listener) = (self.shard_context.links.clone(), self.shard_context.shard, self.listener);
        let work = move || {
            if turn.taken.swap(true, Ordering::AcqRel) {
                return;
            }
            let outcome = catch_panic(|| instance.run(key, message)).unwrap_or(HandlerOutcome::Panicked);
            discard(instance);
            links.send(shard, Command::Unblocked { listener, key, outcome });
        };
        self.shard_context.begun(key);
        if let Err(NoThread(work)) = self.pool.submit(Box::new(work)) {
            discard(work);
            self.ended(key, HandlerOutcome::Discarded);
        }
    }

    fn abort(&self, key: HandlerKey) {
        if let Some(message) = self.supervised.withdraw(key) {
            self.shard_context.finish(key, HandlerOutcome::Aborted);
            return discard(message);
        }
        let turn = self.running.borrow().iter().find(|(running, _)| *running == key).map(|(_, turn)| turn.clone());
        let Some(turn) = turn else { return };
        turn.aborted.store(true, Ordering::Release);
        if !turn.taken.swap(true, Ordering::AcqRel) {
            self.running.borrow_mut().retain(|(running, _)| *running != key);
            self.shard_context.finish(key, HandlerOutcome::Aborted);
        }
    }

    fn ended(self: Rc<Self>, key: HandlerKey, outcome: HandlerOutcome) {
        let turn = {
            let mut running = self.running.borrow_mut();
            let at = running.iter().position(|(running, _)| *running == key);
            at.map(|at| running.swap_remove(at).1)
        };
        let panicked = matches!(outcome, HandlerOutcome::Panicked);
        let aborted = turn.is_none_or(|turn| turn.aborted.load(Ordering::Acquire));
        self.shard_context.finish(key, if aborted { HandlerOutcome::Aborted } else { outcome });
        if panicked {
            self.supervised.failed();
        }
    }

    fn close(&self) {
        self.pool.close();
        self.supervised.close();
    }
}
