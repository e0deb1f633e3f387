//! A running organism.

pub(super) mod builder;
pub(super) mod drain;
pub(super) mod handover;
pub(super) mod part;
pub(super) mod reload;
pub(super) mod serve;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;

#[cfg(feature = "gateway")]
use systole_core::core::Latency;
use systole_core::core::{
    Blueprint, BlueprintProblem, CoreId, Counts, DeadLetter, Directory, Event, Gauge, Input, ListenerSlots, OpenFilter,
    OpenThread, OrganismVersion, Party, Snapshot,
};
use systole_core::journal::{JournalError, JournalErrorKind, Op, Step};
use systole_core::vocab::{IdKey, Name, Partition, Partitions, ThreadId, Time};
use systole_xml::schema::Catalog;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};

use crate::drafts::{DraftCursor, DraftTable, Drafts};
#[cfg(feature = "gateway")]
use crate::drafts::{DraftFigures, DraftNews};
#[cfg(feature = "gateway")]
use crate::identity::Identity;
use crate::journal::{JournalFeeder, Logs, Query, Room, Store, Written};
use crate::process::ending;
use crate::runtime::client::{Client, SendError};
use crate::runtime::pump::spec::ShardSpec;
use crate::runtime::shard::breakdown::Breakdown;
#[cfg(feature = "gateway")]
use crate::runtime::shard::breakdown::CriticalThread;
#[cfg(feature = "gateway")]
use crate::runtime::shard::command::OpenWork;
use crate::runtime::shard::command::{Command, links};
#[cfg(feature = "gateway")]
use crate::runtime::shard::cores::Cores;
use crate::runtime::shard::egress::Given;
use crate::runtime::shard::events::{EventRing, Events};
use crate::runtime::shard::restart::Rest;
use crate::runtime::shard::shared::Shared;
use crate::runtime::shard::watchdog::Watchdog;
use crate::runtime::start::StartError;
use crate::runtime::write::appender::{Ending, JournalAppender};
use crate::runtime::write::handle::{JournalHandle, JournalKeeper};
use builder::{LogLevels, Opened, OrganismBuilder, OrganismSpec};
use drain::{Drained, Reader, drain};
use handover::Handover;
#[cfg(feature = "gateway")]
use part::Elsewhere;
use part::{Part, Parts};
use reload::Reloader;
use systole_store::clock::Clock;
use systole_store::entropy::Entropy;

/// Time limit for the threads of an organism that can't start to end.
const UNDO: Duration = Duration::from_secs(1);

/// The handle of a running organism, whose shards are threads of their own.
///
/// All its futures work in any async runtime, and in none with [`block_on`](super::block_on).
///
/// Dropping the handle stops the organism at once: every open conversation gets a `cancelled` fault. To let it finish
/// its work, [`drain`](Self::drain) it.
pub struct Organism {
    pub(crate) shared: Arc<Shared>,
    parts: Parts,
    #[cfg(feature = "gateway")]
    elsewhere: Vec<Arc<dyn Elsewhere>>,
    #[cfg(feature = "gateway")]
    identity: Option<Arc<Identity>>,
    warnings: Vec<BlueprintProblem>,
    events: Option<Arc<EventRing>>,
    /// The number of the start in the life of the journal; 0 without one.
    epoch: u32,
    /// The store that its journal is the writing end of.
    store: Option<Arc<dyn Store>>,
    /// Room for the promises to clients, where there is a store.
    room: Option<Arc<Room>>,
    /// Brings the tables of the journal up to date for those who read them, where there is a journal.
    feeder: Option<JournalFeeder>,
    /// The queries of its store, from the first time that somebody asks.
    query: Mutex<Option<Arc<dyn Query>>>,
    /// Moves partitions between cores, where there is a journal.
    handover: Option<Handover>,
    /// Closed when the threads of all shards have ended.
    ended: Mutex<Option<mpsc::Receiver<()>>>,
    /// Sets the levels of the program's log, if the program can.
    pub(crate) log_levels: Option<LogLevels>,
    /// True if the organism has a journal.
    durable: bool,
    /// Changes the organism for operators, if the program can.
    pub(crate) reloader: OnceLock<Reloader>,
    /// Locked while the organism changes, or partitions move: cores that are made meanwhile would miss the change.
    changing: Arc<tokio::sync::Mutex<()>>,
    drained: watch::Sender<Option<Drained>>,
    deadline: watch::Sender<Time>,
    /// True once a drain awaits the readers.
    readers: watch::Sender<bool>,
}

/// The organism has no client of that name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the organism has no client '{name}'")]
#[non_exhaustive]
pub struct NoSuchClient {
    /// The name.
    pub name: String,
}

systole_core::vocab::debug_is_display!(NoSuchClient);

impl Organism {
    /// Returns a builder of an organism.
    pub fn builder(name: impl Into<String>) -> OrganismBuilder {
        OrganismBuilder::new(name)
    }

    pub(crate) fn start(plan: OrganismSpec, clock: Clock, entropy: Entropy) -> Result<Self, StartError> {
        let (organism, specs, alive) = Self::prepare(plan, clock, entropy)?;
        let (ready, readiness) = std::sync::mpsc::channel();
        let shards = specs.len();
        let watchdog = Watchdog {
            shared: Arc::downgrade(&organism.shared),
            clock: organism.shared.clock.clone(),
            events: organism.events.clone(),
            alive: alive.downgrade(),
        };
        watchdog.start(specs.iter().map(|spec| spec.pulse.clone()).collect()).map_err(StartError::Thread)?;
        let spawned = specs.into_iter().try_for_each(|spec| spec.spawn(ready.clone(), alive.clone()));
        drop((ready, alive));
        let begun = spawned.and_then(|()| readiness.iter().try_fold(0, |begun, ready| ready.map(|()| begun + 1)));
        match begun {
            Ok(begun) if begun == shards => {
                organism.boot();
                Ok(organism)
            }
            begun => {
                organism.undo();
                Err(begun.map_or_else(StartError::Thread, |_| StartError::Shard))
            }
        }
    }

    /// Ends what has started of an organism that can't: after this its journal is free.
    fn undo(self) {
        self.stop();
        let Some(mut ended) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        for _ in 0..UNDO.as_millis() {
            match ended.try_recv() {
                Err(TryRecvError::Disconnected) => return,
                Ok(()) | Err(TryRecvError::Empty) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Prepares everything but the shards themselves, which are made on their threads.
    pub(crate) fn prepare(
        plan: OrganismSpec,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<(Self, Vec<ShardSpec>, mpsc::Sender<()>), StartError> {
        let OrganismSpec {
            blueprint,
            catalog,
            decoders,
            hosts,
            shards,
            chosen_shards: _,
            events,
            sampler,
            warnings,
            journal,
            parts,
            recoverables,
            log_levels,
            tenure,
            #[cfg(feature = "gateway")]
            elsewhere,
            #[cfg(feature = "gateway")]
            identity,
        } = plan;
        let journal = journal.map(|keep| keep.open(&blueprint.organism, &entropy)).transpose()?;
        journal.iter().for_each(|opened| entropy.enter(opened.recovered.epoch));
        let epoch = journal.as_ref().map_or(0, |opened| opened.recovered.epoch);
        for warning in &warnings {
            tracing::warn!(organism = %blueprint.organism, "{warning}");
        }
        let (links, receivers) = links(shards);
        let limits = blueprint.limits.clone();
        let directory = Directory::default();
        let paused = journal.iter().flat_map(|opened| &opened.recovered.paused);
        let paused = paused.map(|record| (record.listener.clone(), record.since)).collect();
        let shared = Arc::new(Shared {
            clients: RwLock::default(),
            several_clients: AtomicBool::new(false),
            gauge: Gauge::new(limits.queue, limits.queue_bytes),
            given: Given::new(links.clone(), directory.clone()),
            directory,
            versions: RwLock::new(vec![OrganismVersion { blueprint: Arc::new(blueprint), catalog, decoders }]),
            links,
            clock,
            entropy,
            closed: AtomicBool::new(false),
            log_full: journal.as_ref().map(|opened| opened.full.clone()).unwrap_or_default(),
            #[cfg(feature = "gateway")]
            endings: Arc::default(),
            drafts: DraftTable::new(&limits, epoch),
            turn: AtomicU8::new(0),
            sampler,
            tenure,
            paused: Mutex::new(paused),
        });
        let ports = shared.add_clients(&shared.blueprint());
        let durable = journal.is_some();
        let shares: Vec<_> = (0..shards.into()).map(|shard| Partitions::share(shard, shards.into())).collect();
        let (journal_handle, recovered, store, room) = match journal {
            None => (None, None, None, None),
            Some(Opened { journal, recovered, store, room, full: _ }) => {
                let (epoch, links) = (recovered.epoch, shared.links.clone());
                let cores = (0..).map(CoreId).zip(shares.iter().copied());
                let journal_handle = match shared.clock.is_simulated() {
                    true => JournalHandle::here(journal, Logs::begin(epoch, cores), links),
                    false => JournalHandle::beside(journal, epoch, cores, shared.clock.clone(), links)?,
                };
                (Some(JournalKeeper::of(journal_handle)), Some(recovered), store, room)
            }
        };
        if let (Some(journal_handle), Some(recovered)) = (&journal_handle, &recovered) {
            let recoverables: Vec<_> = parts.iter().flat_map(Part::recoverables).chain(recoverables).collect();
            for recoverable in recoverables.iter().cloned() {
                let (handle, pending_acks) = (journal_handle.handle(), shared.links.pending_acks.clone());
                let appender = JournalAppender::new(handle, pending_acks, shared.clock.clone());
                recoverable.move_in(recovered, appender)?;
            }
            journal_handle.tell(recoverables);
        } else {
            parts.iter().for_each(Part::live_in_memory);
        }
        let handover = journal_handle.as_ref().map(|journal| Handover::new(shared.clone(), journal.handle()));
        let feeder = journal_handle.as_ref().and_then(|journal| journal.feeder());
        let key = recovered.as_ref().map_or_else(|| shared.entropy.key(), |recovered| IdKey::new(recovered.key));
        let recovered = recovered.map(|recovered| recovered.split(&shares));
        let mut recovered = recovered.into_iter().flatten();
        let specs = (0..).map(CoreId).zip(shares).zip(receivers).map(|((shard, partitions), commands)| ShardSpec {
            shard,
            partitions,
            shared: shared.clone(),
            recovered: recovered.next(),
            journal_handle: journal_handle.clone(),
            ports: ports.clone(),
            hosts: hosts.clone(),
            key: key.clone(),
            events: events.as_ref().map(EventRing::writer),
            drafts: shared.drafts.writer(),
            commands,
            pulse: Arc::default(),
        });
        let specs = specs.collect();
        let (alive, ended) = mpsc::channel(1);
        let organism = Self {
            feeder,
            query: Mutex::default(),
            handover,
            shared,
            parts,
            #[cfg(feature = "gateway")]
            elsewhere,
            #[cfg(feature = "gateway")]
            identity,
            warnings,
            events,
            epoch,
            store,
            room,
            ended: Mutex::new(Some(ended)),
            log_levels,
            durable,
            reloader: OnceLock::new(),
            changing: Arc::default(),
            drained: watch::Sender::new(None),
            deadline: watch::Sender::new(Time::MAX),
            readers: watch::Sender::new(false),
        };
        Ok((organism, specs, alive))
    }

    /// Sends `<boot>`.
    pub(crate) fn boot(&self) {
        let root = self.shared.root();
        if let Some(shard) = self.shared.directory.core_of(Partition::BOOT) {
            self.shared.links.send(shard, Command::Core(Input::Boot { root }));
        }
    }

    /// The room for the promises to clients, where there is a store.
    pub(crate) fn room(&self) -> Option<Arc<Room>> {
        self.room.clone()
    }

    /// Notifies `notify` when a conversation ends, until the result is dropped.
    #[cfg(feature = "gateway")]
    pub(crate) fn watch_end(
        &self,
        root: systole_core::vocab::ThreadId,
        notify: &Arc<tokio::sync::Notify>,
    ) -> crate::runtime::shard::endings::WatchedEnd {
        self.shared.endings.watch(root, notify)
    }

    /// Reads the drafts of a conversation: what its handlers have written so far of messages that are not there yet. Behind a
    /// cursor, or from the beginnings of the open drafts on.
    pub async fn drafts(&self, conversation: ThreadId, after: Option<DraftCursor>) -> Drafts {
        let mut drafts = self.shared.drafts.read(conversation, after);
        // It may have ended before.
        let wanted = OpenFilter { limit: 1, among: Some(Arc::new([conversation].into())), ..OpenFilter::default() };
        let open = self.shared.look(move |core| core.open_conversations(&wanted).len()).await;
        if open.into_iter().sum::<usize>() == 0 {
            drafts.end();
        }
        drafts
    }

    /// The ends of the open drafts of a conversation, of at most `most` bytes each.
    #[cfg(feature = "gateway")]
    pub(crate) fn open_drafts(&self, conversation: ThreadId, most: usize) -> Vec<DraftNews> {
        self.shared.drafts.open(conversation, most)
    }

    /// The amounts of drafts.
    #[cfg(feature = "gateway")]
    pub(crate) fn draft_figures(&self) -> DraftFigures {
        self.shared.drafts.figures()
    }

    /// Returns the choice of conversations that are traced; `None` if none are.
    #[cfg(feature = "otel")]
    pub(crate) fn sampler(&self) -> Option<systole_core::vocab::Sampler> {
        self.shared.sampler
    }

    /// Returns the store of the organism; `None` if it lives in memory, or in a journal that nothing else reads.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.store.as_ref()
    }

    /// Returns the queries of the organism's store, which are opened at the first call; `None` if it has no store.
    ///
    /// # Errors
    /// [`JournalError`] if the store can't be read.
    pub(crate) fn query(&self) -> Result<Option<Arc<dyn Query>>, JournalError> {
        let Some(store) = &self.store else { return Ok(None) };
        let mut kept = self.query.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            // On a simulated clock nothing may happen on other threads.
            *kept = Some(store.ask(self.feeder.clone(), self.shared.clock.is_simulated())?);
        }
        Ok(kept.clone())
    }

    /// Lets the core that serves a partition give up all that it serves, while the others go on. Its handlers are
    /// cancelled without effects, as at an end of the organism, and its clients are told to ask again later. Returns these
    /// partitions, once nothing of them is left here.
    ///
    /// # Errors
    /// [`JournalError`] if the organism has no journal or has ended, no core serves the partition, or its core gives it up
    /// already.
    ///
    /// # Cancel safety
    /// Once polled, the partitions are given up even if the future is dropped.
    pub async fn release(&self, partition: Partition) -> Result<Partitions, JournalError> {
        self.handover()?.release(partition).await
    }

    /// Takes partitions that no core serves over, by a new core in the shard of that index modulo their number.
    ///
    /// # Errors
    /// [`JournalError`] if the organism has no journal or ends, a core serves one of the partitions or one is in a move,
    /// their records can't be read, or no address is left.
    ///
    /// # Cancel safety
    /// Once polled, the partitions are taken over or stay without a core; then this can be called again.
    pub async fn adopt(&self, partitions: Partitions, shard: usize) -> Result<(), JournalError> {
        let _not_meanwhile = self.changing.lock().await;
        self.handover()?.adopt(partitions, shard).await
    }

    fn handover(&self) -> Result<&Handover, JournalError> {
        let message = "an organism without a journal keeps its partitions";
        self.handover.as_ref().ok_or_else(|| JournalError::new(JournalErrorKind::Refused, message))
    }

    /// Returns the part of that type, if there is one.
    pub(crate) fn part<P: Part>(&self) -> Option<&P> {
        self.parts.get()
    }

    /// Returns a handle of a client.
    ///
    /// # Errors
    /// [`NoSuchClient`] if no client has that name.
    pub fn client(&self, name: &str) -> Result<Client, NoSuchClient> {
        match self.shared.blueprint().party(name) {
            Some(Party::Client(id)) => Ok(Client::new(self.shared.clone(), id)),
            Some(Party::Listener(_)) | None => Err(NoSuchClient { name: name.to_owned() }),
        }
    }

    /// Waits until no message is queued and no handler runs or is parked. Delayed continues and boot handlers don't
    /// count; calls of boot handlers do, and so does a question to a person. The tables of a journal then have everything,
    /// for other processes that read it.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn run_until_idle(&self) {
        self.shared.links.busy().wait().await;
        if let Some(feeder) = &self.feeder {
            // A journal that can't be written ends the organism.
            feeder.feed().await;
        }
    }

    /// Ends the organism in order: closes the entrances, cancels pending continues and boot handlers, waits until no
    /// work is left or the deadline has passed, then waits for its [readers](Self::reader), gives each open conversation a
    /// `cancelled` fault, and ends the threads.
    ///
    /// It waits for no person: a journal keeps a question of a listener that [outlives](systole_core::core::Contract::outlives)
    /// the process, and without a journal a question to a person fails.
    ///
    /// A second call waits for the same drain, and may bring its deadline forward.
    ///
    /// # Cancel safety
    /// Once polled, the drain goes on even if the future is dropped.
    pub async fn drain(&self, deadline: Duration) -> Drained {
        self.drain_by(deadline);
        self.drained().await
    }

    /// Makes a reader of answers, for which a [`drain`](Self::drain) waits as long as the value lives: a message that is
    /// [received unread](Client::receive_unread) and read behind the end of the organism would come again with the next start.
    pub fn reader(&self) -> Reader {
        Reader::new(&self.readers)
    }

    /// Waits for the end of a drain, whoever began it.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn drained(&self) -> Drained {
        let mut drained = self.drained.subscribe();
        let drained = drained.wait_for(Option::is_some).await;
        drained.ok().and_then(|drained| *drained).unwrap_or_default()
    }

    /// Begins a drain, or brings its deadline forward, and doesn't wait for its end.
    pub(crate) fn drain_by(&self, deadline: Duration) {
        self.shared.closed.store(true, Ordering::Release);
        let deadline = self.shared.clock.steady().now().after(deadline);
        self.deadline.send_if_modified(|earlier| std::mem::replace(earlier, deadline.min(*earlier)) > deadline);
        if !self.durable {
            self.shared.links.end_unkept();
        }
        if let Some(ended) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.begin_drain(ended);
        }
    }

    fn begin_drain(&self, ended: mpsc::Receiver<()>) {
        let (shared, deadline, result) = (self.shared.clone(), self.deadline.subscribe(), self.drained.clone());
        let (steady, readers) = (shared.clock.steady(), self.readers.clone());
        if shared.clock.is_simulated() {
            tokio::task::spawn_local(async move {
                result.send_replace(Some(drain(&shared, &steady, deadline, &readers, ended).await))
            });
            return;
        }
        // Neither a stuck shard nor the caller's runtime may keep the deadline from passing.
        let thread = std::thread::Builder::new().name("systole-drain".into()).spawn({
            let result = result.clone();
            move || {
                let timers = tokio::runtime::Builder::new_current_thread().enable_time().build();
                let drained = timers.map(|timers| timers.block_on(drain(&shared, &steady, deadline, &readers, ended)));
                // Processes of its listeners that are about to end.
                ending::wait();
                result.send_replace(Some(drained.unwrap_or_default()));
            }
        });
        if thread.is_err() {
            self.stop();
            result.send_replace(Some(Drained::default()));
        }
    }

    /// Counts a piece of work outside the shards, until the value is dropped: [`drain`](Self::drain) waits for it.
    #[cfg(feature = "gateway")]
    pub(crate) fn open_work(&self) -> OpenWork {
        self.shared.links.open_work()
    }

    /// Stops all shards now.
    pub(crate) fn stop(&self) {
        self.shared.closed.store(true, Ordering::Release);
        for shard in self.shared.links.shards() {
            self.shared.links.send(shard, Command::Core(Input::Stop));
            self.shared.links.send(shard, Command::Quit);
        }
    }

    /// Waits for a breakdown: the journal can't be written, or a thread of the organism has failed. Waiting clients get
    /// a fault then; [`drain`](Self::drain) the organism and start it again.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn broken(&self) -> Breakdown {
        let mut broken = self.shared.links.broken();
        match broken.wait_for(Option::is_some).await.ok().and_then(|known| known.clone()) {
            Some(why) => why,
            // Unreachable: the organism holds the sender.
            None => std::future::pending().await,
        }
    }

    /// Breaks the organism down if the lease of its node has ended.
    pub fn check_tenure(&self) {
        self.shared.check_tenure();
    }

    /// Returns the reason why the organism can't go on; `None` while it can.
    pub fn breakdown(&self) -> Option<Breakdown> {
        self.shared.links.broken().borrow().clone()
    }

    /// Checks that a small message, of 1 KiB, of one of the clients would be taken at this moment.
    ///
    /// # Errors
    /// [`SendError::Closed`] if the organism is ending or can't go on, [`SendError::Overloaded`] if it is full,
    /// [`SendError::LogFull`] if its journal takes no new messages.
    pub fn ready(&self) -> Result<(), SendError> {
        if self.shared.closed.load(Ordering::Acquire) || self.breakdown().is_some() {
            return Err(SendError::Closed);
        }
        if self.shared.log_full.get() {
            return Err(SendError::LogFull);
        }
        Ok(self.shared.gauge.check_room(&self.shared.client_uses())?)
    }

    /// Makes the guard of work that the organism depends on.
    #[cfg(feature = "gateway")]
    pub(crate) fn critical_thread(&self, name: &'static str) -> CriticalThread {
        CriticalThread::new(self.shared.links.clone(), name)
    }

    /// Counts the ends of all messages so far.
    pub async fn counts(&self) -> Counts {
        self.shared.counts().await
    }

    /// The times that steps took to become durable.
    #[cfg(feature = "gateway")]
    pub(crate) async fn append_latency(&self) -> Latency {
        self.shared.look_at(Cores::append_latency).await.into_iter().fold(Latency::default(), Latency::plus)
    }

    /// Counts the messages that wait for a handler to start.
    #[cfg(feature = "gateway")]
    pub(crate) async fn waiting(&self) -> usize {
        self.shared.look(systole_core::core::Core::waiting).await.into_iter().sum::<u64>() as usize
    }

    /// Counts the dead letters, and those that were dropped since the start, because later ones needed their room.
    #[cfg(feature = "gateway")]
    pub(crate) async fn dead_letter_figures(&self) -> (usize, u64) {
        let figures = self.shared.look(|core| (core.dead_letters().len(), core.dead_letters().dropped())).await;
        figures.into_iter().fold((0, 0), |(kept, dropped), (more, lost)| (kept + more, dropped + lost))
    }

    /// Lists the open threads, shard by shard, each in order of opening.
    pub async fn snapshot(&self) -> Snapshot {
        let of_shards = self.shared.look(|core| core.snapshot().threads).await;
        let threads: Vec<OpenThread> = of_shards.into_iter().flatten().collect();
        Snapshot { threads }
    }

    /// Lists the dead letters, oldest first.
    pub async fn dead_letters(&self) -> Vec<DeadLetter> {
        let of_shards = self.shared.look(|core| core.dead_letters().iter().cloned().collect::<Vec<_>>()).await;
        let mut letters: Vec<_> = of_shards.into_iter().flatten().collect();
        letters.sort_by_key(|letter| letter.at);
        letters
    }

    /// Subscribes to all events from now on; `None` unless [`events`](OrganismBuilder::events) of the builder was
    /// called.
    pub fn events(&self) -> Option<Events> {
        Some(self.events.as_ref()?.read(None))
    }

    /// Subscribes to the events behind a number (`Event::number`), as far as they are kept: up to 16,384 events and 16 MiB
    /// of their texts. The first thing that a reader gets is how many it missed. `None` as of [`events`](Self::events).
    pub fn events_after(&self, number: u64) -> Option<Events> {
        Some(self.events.as_ref()?.read(Some(number)))
    }

    /// The time on the clock of the organism.
    #[cfg(feature = "gateway")]
    pub(crate) fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// The rest that a listener has now.
    pub(crate) fn rest(&self, listener: &Name) -> Option<Rest> {
        self.shared.links.rests.of(listener, self.shared.clock.now())
    }

    /// The time since which a listener is paused: its slots, or its mailbox.
    pub(crate) fn paused_since(&self, listener: &Name) -> Option<Time> {
        #[cfg(feature = "gateway")]
        let elsewhere = self.elsewhere.iter().find_map(|mailboxes| mailboxes.paused_since(listener));
        #[cfg(not(feature = "gateway"))]
        let elsewhere = None;
        self.shared.lock_paused().get(listener).copied().or(elsewhere)
    }

    /// Writes operations beside the cores, and calls `written` when they are durable, at once without a journal.
    ///
    /// # Errors
    /// [`Ending`]: nothing is written. If the organism ends later than that, `written` is dropped.
    pub(crate) fn write_beside(&self, ops: Vec<Op>, written: Written) -> Result<(), Ending> {
        match &self.handover {
            // There is one where a journal is.
            Some(handover) => handover.write_beside(Step { ops, at: self.shared.clock.now() }, written),
            None => {
                written();
                Ok(())
            }
        }
    }

    /// The mailboxes of listeners elsewhere.
    #[cfg(feature = "gateway")]
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = &dyn Elsewhere> {
        self.elsewhere.iter().map(|mailboxes| &**mailboxes)
    }

    /// The slots of all listeners, core by core.
    pub(crate) async fn listener_slots(&self) -> Vec<ListenerSlots> {
        self.shared.look(systole_core::core::Core::listener_slots).await.into_iter().flatten().collect()
    }

    /// Returns the number of this start in the life of the journal, from 1; 0 without a journal. Each start numbers its events
    /// anew.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Adds an event to those of the cores.
    pub(crate) fn report(&self, event: Event) {
        self.events.iter().for_each(|events| events.write(event.clone()));
    }

    /// Returns problems of the contracts that don't keep the organism from running.
    pub fn warnings(&self) -> &[BlueprintProblem] {
        &self.warnings
    }

    /// Returns the identity of the organism, if it has one.
    #[cfg(feature = "gateway")]
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.as_ref()
    }

    /// Returns the envelope of a message as it leaves the organism: signed, if the organism has an identity. Messages that
    /// [`Client::receive`] returns have not left the program yet.
    ///
    /// A message with a prefix that only values use can't be signed as a whole: it leaves unsigned, with a warning.
    pub fn sign(&self, envelope: &Bytes) -> Bytes {
        #[cfg(feature = "gateway")]
        if let Some(identity) = &self.identity {
            match identity.sign(envelope) {
                Ok(signed) => return signed,
                Err(error) => tracing::warn!(%error, "a message left without a signature"),
            }
        }
        envelope.clone()
    }

    /// Returns the organism's listeners, clients and limits as registered, in the present version.
    pub fn blueprint(&self) -> Arc<Blueprint> {
        self.shared.blueprint()
    }

    /// Returns every payload schema of the present version.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.catalog()
    }
}

impl Drop for Organism {
    fn drop(&mut self) {
        let running = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).take().is_some();
        if running {
            // A program that panics may not have finished its last message.
            if !std::thread::panicking() {
                self.shared.given.read_all();
            }
            self.stop();
        }
    }
}

impl fmt::Debug for Organism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Organism").field("name", &self.shared.blueprint().organism).finish_non_exhaustive()
    }
}
