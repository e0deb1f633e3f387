//! The state that the handle of an organism, its clients and its entrances share.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use systole_core::core::{
    Blueprint, ClientUse, Core, CoreId, Counts, Directory, Exit, Gauge, Operation, OperationError,
};
use systole_core::vocab::{Partition, ThreadId};
use systole_xml::schema::Catalog;
use tokio::sync::oneshot;

use super::command::{Command, Links};
use super::cores::Cores;
use super::egress::{EgressReceiver, Given};
#[cfg(feature = "gateway")]
use super::endings::Endings;
use super::pending_acks::PendingAcks;
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
    /// Waiters for messages to be taken.
    pub(crate) pending_acks: PendingAcks,
    /// Conversations whose end is waited for.
    #[cfg(feature = "gateway")]
    pub(crate) endings: Arc<Endings>,
    /// The partition of the next conversation.
    pub(crate) turn: AtomicU8,
    /// Held while an operation is sent to all cores.
    pub(crate) order: Mutex<()>,
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

    /// Sends an operation to a core, and waits until it is as durable as the organism.
    pub(crate) async fn operate(&self, core: CoreId, operation: Operation) -> Result<(), OperationError> {
        let (tell, told) = oneshot::channel();
        self.links.send(core, Command::Operate { operation, tell });
        told.await.unwrap_or(Err(OperationError::Closed))
    }

    /// Sends an operation to all cores, to each before this returns and in the same order as others: all cores agree on the
    /// last one, though its caller drops the results.
    pub(crate) fn operate_everywhere(
        &self,
        operation: impl Fn() -> Operation,
    ) -> Vec<oneshot::Receiver<Result<(), OperationError>>> {
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let send = |core| {
            let (tell, told) = oneshot::channel();
            self.links.send(core, Command::Operate { operation: operation(), tell });
            told
        };
        self.links.shards().map(send).collect()
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
