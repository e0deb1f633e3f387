//! Commands between the threads of an organism, and the state of its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(feature = "gateway")]
use systole_core::core::Short;
use systole_core::core::{
    CallId, ClientId, Core, DeadLetterError, DeadLetterId, Input, InvocationId, ListenerId, Outcome, Settled, ShardId,
    Start,
};
use systole_core::vocab::{Fault, ThreadId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot, watch};

use super::breakdown::Breakdown;
use super::egress::EgressSender;
use super::handler::HandlerKey;

/// A command to a shard.
///
/// The channel is unbounded, because its contents are bounded elsewhere: messages by the gauge, outcomes by the
/// concurrency slots of the listeners.
pub(super) enum Command {
    /// An input for its core.
    Core(Input),
    /// An input for its core; messages of that conversation leave by `outlet` from now on.
    Open { root: ThreadId, client: ClientId, outlet: EgressSender, input: Input },
    /// The client has left a conversation.
    Leave { root: ThreadId, cancel: bool },
    /// A message on a thread of another shard, for a listener that lives here.
    Start { origin: ShardId, start: Box<Start> },
    /// The result of calls of such a handler.
    Resume { origin: ShardId, task: InvocationId, call: CallId, result: Result<Vec<Settled>, Fault> },
    /// Aborts such a handler.
    Abort { origin: ShardId, task: InvocationId },
    /// A note of such a handler is durable.
    Noted { origin: ShardId, task: InvocationId, index: u32 },
    /// The result of a reservation of such a handler.
    #[cfg(feature = "gateway")]
    Reserved { origin: ShardId, task: InvocationId, result: Result<(), Box<Short>> },
    /// A handler that runs in another shard for a thread of this one has ended.
    Finished { task: InvocationId, outcome: Outcome },
    /// A handler of this shard that runs on a thread of its own has ended.
    Unblocked { listener: ListenerId, key: HandlerKey, outcome: Outcome },
    /// An input about a dead letter for its core; `tell` gets the result.
    Letter { letter: DeadLetterId, input: Input, tell: oneshot::Sender<Result<(), DeadLetterError>> },
    /// Runs a query on the core.
    Look(Box<dyn FnOnce(&Core) + Send>),
    /// Writes the steps that belong to no shard, where the journal has no thread.
    Beside,
    /// Ends the thread.
    Quit,
}

/// Channels to all shards, and the state of their work.
#[derive(Clone)]
pub(super) struct Links {
    shards: Arc<[UnboundedSender<Command>]>,
    busy: Arc<Busy>,
}

/// Makes the links of `shards` shards, and the receiving end of each.
pub(super) fn links(shards: u16) -> (Links, Vec<UnboundedReceiver<Command>>) {
    let (senders, receivers): (Vec<_>, _) = (0..shards).map(|_| unbounded_channel()).unzip();
    (Links { shards: senders.into(), busy: Arc::default() }, receivers)
}

impl Links {
    /// Sends a command; `false` if that shard has ended.
    pub(super) fn send(&self, to: ShardId, command: Command) -> bool {
        self.busy.begin();
        let sent = self.shards[usize::from(to.0)].send(command).is_ok();
        if !sent {
            self.busy.end();
        }
        sent
    }

    /// Lists all shards.
    pub(super) fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        let count = u16::try_from(self.shards.len()).expect("made from a u16");
        (0..count).map(ShardId)
    }

    /// Breaks the organism down: the shards drop their work, and each waiting client gets a fault.
    pub(super) fn break_down(&self, why: Breakdown) {
        if self.busy.breaking.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::error!("{why}: the organism can't go on");
        for shard in self.shards() {
            self.send(shard, Command::Core(Input::Unwritable));
        }
        // Last, because the receiver ends the shards, which must inform their clients before.
        self.busy.broken.send_replace(Some(why));
    }

    /// Watches for the reason of a breakdown.
    pub(super) fn broken(&self) -> watch::Receiver<Option<Breakdown>> {
        self.busy.broken.subscribe()
    }

    /// Returns the count of open work.
    pub(super) fn busy(&self) -> &Busy {
        &self.busy
    }
}

/// The number of busy shards and of commands in flight. At 0 the organism is idle, because the source of new work is
/// counted until the work is.
#[derive(Debug, Default)]
pub(super) struct Busy {
    count: AtomicUsize,
    failed: AtomicBool,
    idle: Notify,
    /// True if the organism breaks down; the reason follows once the shards have their commands.
    breaking: AtomicBool,
    broken: watch::Sender<Option<Breakdown>>,
}

impl Busy {
    /// Counts one more.
    pub(super) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts one less.
    pub(super) fn end(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    /// Ends all waits, because a shard ended by itself: its share of the count will never end.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.idle.notify_waiters();
    }

    /// Tells whether no work is open.
    pub(super) fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0 || self.failed.load(Ordering::Acquire)
    }

    /// Waits until no work is open.
    pub(super) async fn wait(&self) {
        loop {
            let mut notified = std::pin::pin!(self.idle.notified());
            notified.as_mut().enable();
            if self.is_idle() {
                return;
            }
            notified.await;
        }
    }
}
