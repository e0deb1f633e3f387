//! Commands between the threads of an organism, and the state of its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(feature = "gateway")]
use systole_core::core::Short;
use systole_core::core::{
    CallId, ClientId, CoreId, HandlerOutcome, Input, InvocationId, ListenerId, Operation, OperationError,
    OrganismVersion, Settled, Start, Version,
};
use systole_core::journal::{ActRecord, Recovered};
use systole_core::vocab::{Fault, Partitions, ThreadId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot, watch};

use super::breakdown::Breakdown;
use super::claim::Claim;
use super::cores::Cores;
use super::egress::{ClientPort, EgressSender};
use super::handlers::HandlerKey;
use super::host::HostFactory;
use super::pending_acks::PendingAcks;
use super::restart::Rests;
#[cfg(feature = "gateway")]
use crate::drafts::DraftSubject;

/// A version of the organism, as a shard gets it.
#[derive(Clone)]
pub(crate) struct ShardVersion {
    pub(crate) version: OrganismVersion,
    /// The hosts of its listeners.
    pub(crate) hosts: Arc<[HostFactory]>,
    /// The ports of its new clients.
    pub(crate) ports: Vec<ClientPort>,
}

/// A command to a shard.
///
/// The channel is unbounded, because its contents are bounded elsewhere: messages by the gauge, outcomes by the
/// concurrency slots of the listeners.
pub(crate) enum Command {
    /// An input for its core.
    Core(Input),
    /// An input for its core; messages of that conversation leave by `sender` from now on.
    Open { root: ThreadId, sender: EgressSender, input: Input },
    /// The client has left a conversation.
    Leave { client: ClientId, root: ThreadId, cancel: bool },
    /// Messages of a conversation leave by the port of its client from now on.
    HandOver { root: ThreadId, tell: oneshot::Sender<()> },
    /// A message on a thread of another shard, for a listener that lives here.
    Start { origin: CoreId, start: Box<Start> },
    /// The result of calls of such a handler.
    Resume { origin: CoreId, invocation: InvocationId, call: CallId, result: Result<Vec<Settled>, Fault> },
    /// Aborts such a handler, whose message runs again if it `moves`.
    Abort { origin: CoreId, invocation: InvocationId, moves: bool },
    /// A note of such a handler is durable.
    Noted { origin: CoreId, invocation: InvocationId, index: u32 },
    /// The result of a reservation of such a handler.
    #[cfg(feature = "gateway")]
    Reserved { origin: CoreId, invocation: InvocationId, result: Result<(), Box<Short>> },
    /// A handler that runs in another shard for a thread of this one has ended.
    Finished { invocation: InvocationId, outcome: HandlerOutcome },
    /// A handler of this shard that runs on a thread of its own has ended.
    Unblocked { listener: ListenerId, key: HandlerKey, outcome: HandlerOutcome },
    /// Text for the draft of a handler of this shard, from elsewhere; `tell` gets whether the handler is there.
    #[cfg(feature = "gateway")]
    Draft { key: HandlerKey, subject: DraftSubject, text: String, anew: bool, tell: oneshot::Sender<bool> },
    /// An operation for its core, with the record of the act; `tell` gets the result.
    Operate { operation: Operation, act: Option<Box<ActRecord>>, tell: oneshot::Sender<Result<(), OperationError>> },
    /// Runs a query on the cores of the shard.
    Look(Box<dyn FnOnce(&Cores) + Send>),
    /// Adds a version of the organism. Conversations begin with it once its cores [are told so](Input::Begin).
    Version { version: ShardVersion, tell: oneshot::Sender<()> },
    /// Ends the hosts of a version without conversations.
    Forget(Version),
    /// Lets the core give its partitions up; `tell` gets them when nothing of them is left there.
    Release { claim: Claim, tell: oneshot::Sender<Partitions> },
    /// Makes a core at that address, which takes partitions over, and starts `<boot>` below that root.
    Adopt { claim: Claim, recovered: Box<Recovered>, boot: Option<ThreadId>, tell: oneshot::Sender<()> },
    /// Writes the steps that belong to no shard, where the journal has no thread.
    Beside,
    /// Ends the thread.
    Quit,
}

/// Channels to all shards, and the state of their work.
#[derive(Clone)]
pub(crate) struct Links {
    shards: Arc<[UnboundedSender<(CoreId, Command)>]>,
    busy: Arc<Busy>,
    /// Has a receiver for each piece of work outside.
    outside: Arc<watch::Sender<()>>,
    /// The rests of listeners.
    pub(crate) rests: Rests,
    /// True once the organism ends without a journal.
    ends_unkept: Arc<watch::Sender<bool>>,
    /// Waiters for steps of the cores.
    pub(crate) pending_acks: PendingAcks,
}

/// Makes the links of `shards` shards, and the receiving end of each.
pub(crate) fn links(shards: u16) -> (Links, Vec<UnboundedReceiver<(CoreId, Command)>>) {
    let (senders, receivers): (Vec<_>, _) = (0..shards).map(|_| unbounded_channel()).unzip();
    let (busy, outside, rests, ends_unkept, pending_acks) = Default::default();
    (Links { shards: senders.into(), busy, outside, rests, ends_unkept, pending_acks }, receivers)
}

impl Links {
    /// Sends a command to the shard of a core; `false` if it has ended.
    pub(crate) fn send(&self, to: CoreId, command: Command) -> bool {
        self.busy.begin();
        let sent = self.shards[self.shard_of(to)].send((to, command)).is_ok();
        if !sent {
            self.busy.end();
        }
        sent
    }

    /// Returns the index of the shard that a core lives in: cores that are made later have addresses with the same
    /// remainder as the one that their shard started with.
    pub(crate) fn shard_of(&self, core: CoreId) -> usize {
        usize::from(core.0) % self.shards.len()
    }

    /// Lists the cores that the shards started with, one for each.
    pub(crate) fn shards(&self) -> impl Iterator<Item = CoreId> + use<> {
        let count = u16::try_from(self.shards.len()).expect("made from a u16");
        (0..count).map(CoreId)
    }

    /// Breaks the organism down: the shards drop their work, and each waiting client gets a fault.
    pub(crate) fn break_down(&self, why: Breakdown) {
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

    /// Tells handlers that the organism ends, and that no journal keeps their messages.
    pub(crate) fn end_unkept(&self) {
        self.ends_unkept.send_replace(true);
    }

    /// Waits until the organism ends without a journal.
    pub(crate) async fn ends_unkept(&self) {
        // The sender lives as long as these links.
        let _ = self.ends_unkept.subscribe().wait_for(|ends| *ends).await;
    }

    /// Watches for the reason of a breakdown.
    pub(crate) fn broken(&self) -> watch::Receiver<Option<Breakdown>> {
        self.busy.broken.subscribe()
    }

    /// Counts a piece of work outside the shards.
    #[cfg(feature = "gateway")]
    pub(crate) fn open_work(&self) -> OpenWork {
        OpenWork(self.outside.subscribe())
    }

    /// Waits until no work is open, here or outside.
    pub(crate) async fn rest(&self) {
        loop {
            self.busy.wait().await;
            self.outside.closed().await;
            if self.busy.is_idle() {
                return;
            }
        }
    }

    /// Returns the count of open work.
    pub(crate) fn busy(&self) -> &Busy {
        &self.busy
    }
}

/// Work for the organism outside its shards, until the value is dropped. An end in order waits for it; nothing can cancel
/// it.
#[cfg(feature = "gateway")]
#[derive(Debug)]
pub(crate) struct OpenWork(#[expect(dead_code, reason = "it is counted as long as it is there")] watch::Receiver<()>);

/// The number of busy shards and of commands in flight. At 0 the organism is idle, because the source of new work is
/// counted until the work is.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    count: AtomicUsize,
    failed: AtomicBool,
    idle: Notify,
    /// True if the organism breaks down; the reason follows once the shards have their commands.
    breaking: AtomicBool,
    broken: watch::Sender<Option<Breakdown>>,
}

impl Busy {
    /// Counts one more.
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts one less.
    pub(crate) fn end(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.notify_waiters();
        }
    }

    /// Ends all waits, because a shard ended by itself: its share of the count will never end.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.idle.notify_waiters();
    }

    /// Returns whether no work is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0 || self.failed.load(Ordering::Acquire)
    }

    /// Waits until no work is open.
    pub(crate) async fn wait(&self) {
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
