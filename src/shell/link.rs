use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use systole_core::core::{
    CallId, ClientId, Core, DeadLetterError, DeadLetterId, Input, InvocationId, ListenerId, Outcome, Settled, ShardId,
    Start,
};
use systole_core::vocab::{Fault, ThreadId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot, watch};

use super::breakdown::Breakdown;
use super::exit::Outlet;
use super::handler::HandlerKey;

/// What the threads of an organism say to a shard.
///
/// Unbounded, because what is in it is bounded elsewhere: messages by the gauge, outcomes by the
/// slots of the listeners.
pub(super) enum Command {
    /// Something for its core.
    Core(Input),
    /// Something for its core; `outlet` is where the messages of that conversation leave from now on.
    Open { root: ThreadId, client: ClientId, outlet: Outlet, input: Input },
    /// Nobody reads a conversation any more.
    Leave { root: ThreadId, cancel: bool },
    /// A thread of another shard has a message for a listener that lives here.
    Start { origin: ShardId, start: Box<Start> },
    /// What such a handler awaits.
    Resume { origin: ShardId, task: InvocationId, call: CallId, result: Result<Vec<Settled>, Fault> },
    /// Drop such a handler.
    Abort { origin: ShardId, task: InvocationId },
    /// What such a handler noted is durable.
    Noted { origin: ShardId, task: InvocationId, index: u32 },
    /// A handler that runs in another shard for a thread of this one has ended.
    Finished { task: InvocationId, outcome: Outcome },
    /// A handler of this shard that runs on a thread of its own has ended.
    Unblocked { listener: ListenerId, key: HandlerKey, outcome: Outcome },
    /// Something for its core about a dead letter; `tell` waits for what comes of it.
    Letter { letter: DeadLetterId, input: Input, tell: oneshot::Sender<Result<(), DeadLetterError>> },
    /// Somebody wants to look at the core.
    Look(Box<dyn FnOnce(&Core) + Send>),
    /// Write the steps that are no shard's, where no thread of the journal does.
    Beside,
    /// End the thread.
    Quit,
}

/// The way to each shard, and the knowledge whether any of them has something to do.
#[derive(Clone)]
pub(super) struct Links {
    shards: Arc<[UnboundedSender<Command>]>,
    busy: Arc<Busy>,
}

/// Links to `shards` shards, and the end of each shard.
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

    /// All shards.
    pub(super) fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        let count = u16::try_from(self.shards.len()).expect("made from a u16");
        (0..count).map(ShardId)
    }

    /// The organism can't go on: the shards give up what they have, and each client that waits gets a fault.
    pub(super) fn break_down(&self, why: Breakdown) {
        if self.busy.breaking.swap(true, Ordering::AcqRel) {
            return;
        }
        tracing::error!("{why}: the organism goes no further");
        for shard in self.shards() {
            self.send(shard, Command::Core(Input::Unwritable));
        }
        // Only now: the receiver of this ends the shards, which must tell their clients before.
        self.busy.broken.send_replace(Some(why));
    }

    /// Why the organism can't go on.
    pub(super) fn broken(&self) -> watch::Receiver<Option<Breakdown>> {
        self.busy.broken.subscribe()
    }

    /// Who is busy.
    pub(super) fn busy(&self) -> &Busy {
        &self.busy
    }
}

/// The number of shards that are not idle and of commands that are on their way: at 0 the
/// organism is idle, because whoever makes work is counted until the work is.
#[derive(Debug, Default)]
pub(super) struct Busy {
    count: AtomicUsize,
    failed: AtomicBool,
    idle: Notify,
    /// Whether the organism breaks down, and why, once the shards are told.
    breaking: AtomicBool,
    broken: watch::Sender<Option<Breakdown>>,
}

impl Busy {
    /// One more.
    pub(super) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// One less.
    pub(super) fn end(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    /// A shard has ended without being told to: what it counted for will never be done.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.idle.notify_waiters();
    }

    /// Whether nothing is.
    pub(super) fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0 || self.failed.load(Ordering::Acquire)
    }

    /// Waits until nothing is.
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
