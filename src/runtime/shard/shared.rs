//! The state that the handle of an organism, its clients and its entrances share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use systole_core::core::{
    Blueprint, ClientId, ClientUse, Core, CoreId, Counts, Directory, Exit, Gauge, Input, ListenerId, Operation,
    OperationError, OrganismVersion, Version,
};
use systole_core::journal::{ActRecord, PausedRecord};
use systole_core::vocab::{Limits, Name, Partition, Sampler, ThreadId, Time};
#[cfg(feature = "gateway")]
use systole_xml::ladder::Canonical;
use systole_xml::schema::Catalog;
#[cfg(feature = "gateway")]
use systole_xml::schema::Validator;
use tokio::sync::oneshot;

use super::breakdown::Breakdown;
use super::command::{Command, Links};
use super::cores::Cores;
use super::egress::{ClientPort, EgressReceiver, Given};
#[cfg(feature = "gateway")]
use super::endings::Endings;
use crate::drafts::DraftTable;
use crate::journal::LogFull;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;
use systole_store::tenure::Tenure;

/// State of the handle, its clients and its entrances.
pub(crate) struct Shared {
    /// The versions of the organism, oldest first: those that conversations keep, and the present one.
    pub(crate) versions: RwLock<Vec<OrganismVersion>>,
    pub(crate) links: Links,
    pub(crate) gauge: Gauge,
    pub(crate) directory: Directory,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    /// The clients, by their ids.
    pub(crate) clients: RwLock<Vec<Arc<ClientEnd>>>,
    /// True if there are several: one that is alone may have all.
    pub(crate) several_clients: AtomicBool,
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
    /// The lease of the node that runs the organism, where several may.
    pub(crate) tenure: Option<Tenure>,
    /// Listeners that an operator has paused, since when: those of the journal with the changes on their way there.
    pub(crate) paused: Mutex<BTreeMap<Name, Time>>,
}

/// The organism's end of a client.
pub(crate) struct ClientEnd {
    /// Its messages that wait.
    pub(crate) uses: ClientUse,
    pub(crate) exit: Exit,
    pub(crate) receiver: tokio::sync::Mutex<EgressReceiver>,
}

impl ClientEnd {
    /// Makes the end of a client, and the port by which shards send to it.
    pub(crate) fn new(limits: &Limits) -> (Arc<Self>, ClientPort) {
        let exit = Exit::new(limits.egress, limits.egress_bytes);
        let (port, receiver) = ClientPort::new(exit.clone());
        (Arc::new(Self { uses: ClientUse::default(), exit, receiver: tokio::sync::Mutex::new(receiver) }), port)
    }
}

impl Shared {
    /// Returns whether handlers may run: the node has its lease, if it needs one. Otherwise the organism breaks down.
    pub(crate) fn check_tenure(&self) -> bool {
        let holds = self.tenure.as_ref().is_none_or(Tenure::holds);
        if !holds {
            self.links.break_down(Breakdown::Lapsed);
        }
        holds
    }

    /// The present version of the organism: conversations begin with it.
    pub(crate) fn present(&self) -> OrganismVersion {
        self.versions().last().expect("one is always present").clone()
    }

    /// The listeners and clients of the present version.
    pub(crate) fn blueprint(&self) -> Arc<Blueprint> {
        self.present().blueprint
    }

    /// The schemas of the present version.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.present().catalog
    }

    /// The schemas by which a payload of the journal is valid: those of the present version, or else of the newest one that
    /// conversations keep.
    #[cfg(feature = "gateway")]
    pub(crate) fn catalog_for(&self, payload: &Canonical) -> Option<Arc<Catalog>> {
        let catalogs: Vec<_> = self.versions().iter().rev().map(|version| version.catalog.clone()).collect();
        catalogs.into_iter().find(|catalog| Validator::new(catalog.clone()).validate(payload.clone()).is_ok())
    }

    /// The version that a listener belongs to, by which its answers are judged.
    pub(crate) fn version_of(&self, listener: ListenerId) -> OrganismVersion {
        version_of(&self.versions(), listener).clone()
    }

    /// Adds a version, which is the present one from now on.
    pub(crate) fn begin_version(&self, version: OrganismVersion) {
        self.versions.write().unwrap_or_else(PoisonError::into_inner).push(version);
    }

    /// Forgets a version that no conversation keeps.
    pub(crate) fn forget(&self, version: Version) {
        let mut versions = self.versions.write().unwrap_or_else(PoisonError::into_inner);
        versions.retain(|known| known.blueprint.version() != version);
    }

    /// Counts the versions that are there.
    pub(crate) fn version_count(&self) -> usize {
        self.versions().len()
    }

    fn versions(&self) -> RwLockReadGuard<'_, Vec<OrganismVersion>> {
        self.versions.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a client.
    pub(crate) fn client(&self, ClientId(client): ClientId) -> Arc<ClientEnd> {
        self.clients.read().unwrap_or_else(PoisonError::into_inner)[client as usize].clone()
    }

    /// Adds the clients of a blueprint that are not there yet. Returns the ports by which shards send to them.
    pub(crate) fn add_clients(&self, blueprint: &Blueprint) -> Vec<ClientPort> {
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        let new = blueprint.clients().skip(clients.len()).map(|_| ClientEnd::new(&blueprint.limits));
        let (ends, ports): (Vec<_>, Vec<_>) = new.unzip();
        clients.extend(ends);
        self.several_clients.store(clients.len() > 1, Ordering::Relaxed);
        ports
    }

    /// Waiting messages of each client, where there are several.
    pub(crate) fn client_uses(&self) -> Vec<ClientUse> {
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        let several = Some(&*clients).filter(|clients| clients.len() > 1);
        several.into_iter().flatten().map(|client| client.uses.clone()).collect()
    }

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

    /// Tells all cores that a listener is paused, or resumed, in all versions: those of now by this, and later ones when they
    /// come.
    pub(crate) fn tell_paused(&self, name: &Name, paused: bool) {
        let blueprint = self.blueprint();
        for shard in self.links.shards() {
            for listener in blueprint.named(name) {
                self.links.send(shard, Command::Core(Input::ListenerPaused { listener, paused }));
            }
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

/// The version that a listener belongs to, of those that are there.
pub(crate) fn version_of(versions: &[OrganismVersion], listener: ListenerId) -> &OrganismVersion {
    let of = versions.iter().rfind(|version| listener >= version.blueprint.first());
    of.or(versions.first()).expect("one is always present")
}
