//! The state that the handle of an organism, its clients and its entrances share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use systole_core::core::{
    Blueprint, ClientUse, Core, CoreId, Counts, Directory, Exit, Gauge, Input, ListenerId, Operation, OperationError,
};
use systole_core::journal::{ActRecord, PausedRecord};
use systole_core::vocab::{Name, Partition, Sampler, ThreadId, Time};
use systole_xml::schema::Catalog;
use tokio::sync::oneshot;

use super::command::{Command, Links};
use super::cores::Cores;
use super::egress::{EgressReceiver, Given};
#[cfg(feature = "gateway")]
use super::endings::Endings;
use crate::drafts::DraftTable;
use crate::journal::LogFull;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// State of the handle, its clients and its entrances.
pub(crate) struct Shared {
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) links: Links,
    pub(crate) gauge: Gauge,
    pub(crate) directory: Directory,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    /// Waiting messages of each client, where there are several.
    pub(crate) client_uses: Vec<ClientUse>,
    /// The exit of each client.
    pub(crate) exits: Vec<Exit>,
    pub(crate) receivers: Vec<tokio::sync::Mutex<EgressReceiver>>,
    pub(crate) given: Given,
    pub(crate) closed: AtomicBool,
    /// States whether the journal's log is full, because another program reads the journal.
    pub(crate) log_full: LogFull,
    /// Conversations whose end is waited for.
    #[cfg(feature = "gateway")]
    pub(crate) endings: Arc<Endings>,
    /// The drafts of handlers.
    pub(crate) drafts: Arc<DraftTable>,
    /// The partition of the next conversation.
    pub(crate) turn: AtomicU8,
    /// The conversations that are traced, if any are.
    pub(crate) sampler: Option<Sampler>,
    /// Listeners that an operator has paused, since when: those of the journal with the changes on their way there.
    pub(crate) paused: Mutex<BTreeMap<Name, Time>>,
}

impl Shared {
    /// Draws the id of a new conversation. Partitions take turns, so that shards do.
    pub(crate) fn root(&self) -> ThreadId {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.entropy.root(self.clock.now(), Partition(turn))
    }

    /// Sends a command to the shard of a conversation; `false` if it has ended, or serves the conversation no more.
    pub(crate) fn send_to(&self, root: ThreadId, command: Command) -> bool {
        let shard = self.directory.core_of(Partition::of(root));
        shard.is_some_and(|shard| self.links.send(shard, command))
    }

    pub(crate) async fn counts(&self) -> Counts {
        self.look_at(Cores::counts).await.into_iter().fold(Counts::default(), Counts::plus)
    }

    /// Sends an operation to a core, and waits until it is as durable as the organism, with the record of its act.
    pub(crate) async fn operate(
        &self,
        core: CoreId,
        operation: Operation,
        act: ActRecord,
    ) -> Result<(), OperationError> {
        let (tell, told) = oneshot::channel();
        self.links.send(core, Command::Operate { operation, act: Some(Box::new(act)), tell });
        told.await.unwrap_or(Err(OperationError::Closed))
    }

    /// Locks the listeners that are paused: changes of them, and the steps that write them, have one order.
    pub(crate) fn lock_paused(&self) -> MutexGuard<'_, BTreeMap<Name, Time>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the listeners that are paused, in order of name.
    pub(crate) fn paused(&self) -> Vec<PausedRecord> {
        let record = |(listener, since): (&Name, &Time)| PausedRecord { listener: listener.clone(), since: *since };
        self.lock_paused().iter().map(record).collect()
    }

    /// Tells all cores that a listener is paused, or resumed: those of now by this, and later ones when they come.
    pub(crate) fn tell_paused(&self, listener: ListenerId, paused: bool) {
        for shard in self.links.shards() {
            self.links.send(shard, Command::Core(Input::ListenerPaused { listener, paused }));
        }
    }

    /// Queries each core of the running shards.
    pub(crate) async fn look<T: Send + 'static>(&self, look: impl Fn(&Core) -> T + Clone + Send + 'static) -> Vec<T> {
        self.look_at(move |cores| cores.iter().map(&look).collect::<Vec<_>>()).await.into_iter().flatten().collect()
    }

    /// Queries the cores of each running shard.
    pub(crate) async fn look_at<T: Send + 'static>(
        &self,
        look: impl Fn(&Cores) -> T + Clone + Send + 'static,
    ) -> Vec<T> {
        let mut seen = Vec::new();
        for shard in self.links.shards() {
            let (tell, told) = oneshot::channel();
            // The caller may have dropped its future.
            let look = look.clone();
            let look = move |cores: &Cores| drop(tell.send(look(cores)));
            self.links.send(shard, Command::Look(Box::new(look)));
            seen.extend(told.await.ok());
        }
        seen
    }
}
