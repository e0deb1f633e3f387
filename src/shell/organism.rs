use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use systole_core::core::{
    Blueprint, Core, Counts, DeadLetter, DeadLetterError, DeadLetterId, Directory, Event, Gauge, Input, OpenThread,
    Party, Problem, ShardId, Snapshot,
};
use systole_core::journal::{JournalError, SHARDS};
use systole_core::vocab::{IdKey, ThreadId, Time};
use systole_xml::schema::Catalog;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::breakdown::Breakdown;
#[cfg(feature = "gateway")]
use super::breakdown::Vital;
use super::builder::{Opened, OrganismBuilder, Plan};
use super::client::{Client, SendError};
use super::clock::Clock;
use super::drain::{Drained, drain};
use super::entropy::Entropy;
use super::events::Events;
use super::exit::{Given, Inlet, Port};
use super::inbox::TaskBoard;
use super::journal::Takeover;
use super::ledger::Ledger;
use super::link::{Command, Links, links};
use super::scribe::Scribe;
use super::seed::Seed;
use super::start::StartError;
use super::ticket::Tickets;
use super::watchdog::Watchdog;

/// A running organism: its shards are threads of their own, this is the handle to them.
///
/// Everything that it gives to await works in any async runtime, and in none with
/// [`block_on`](super::block_on).
///
/// Dropping it stops the organism at once: every open conversation gets a `cancelled` fault. To
/// let it end its work, [`drain`](Self::drain) it.
pub struct Organism {
    shared: Arc<Shared>,
    tasks: TaskBoard,
    warnings: Vec<Problem>,
    events: Option<broadcast::WeakSender<Event>>,
    /// Files of an older gateway that were taken over.
    #[cfg_attr(not(feature = "gateway"), expect(dead_code, reason = "only the gateway takes files over"))]
    takeover: Mutex<Option<Takeover>>,
    /// Ends when the threads of all shards have.
    ended: Mutex<Option<mpsc::Receiver<()>>>,
    drained: watch::Sender<Option<Drained>>,
    deadline: watch::Sender<Time>,
}

/// What the handle, its clients and its entrances share.
pub(super) struct Shared {
    pub(super) blueprint: Arc<Blueprint>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) links: Links,
    pub(super) gauge: Gauge,
    pub(super) directory: Directory,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    /// What each client leaves unread.
    pub(super) unread: Vec<Gauge>,
    pub(super) inlets: Vec<tokio::sync::Mutex<Inlet>>,
    pub(super) given: Given,
    pub(super) closed: AtomicBool,
    /// Who waits to hear that a message was taken.
    pub(super) tickets: Tickets,
    turn: AtomicUsize,
}

/// There is no client of that name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the organism has no client '{name}'")]
pub struct NoSuchClient {
    /// The name.
    pub name: String,
}

systole_core::vocab::debug_is_display!(NoSuchClient);

impl Organism {
    /// Lays out an organism.
    pub fn builder(name: impl Into<String>) -> OrganismBuilder {
        OrganismBuilder::new(name)
    }

    pub(super) fn start(plan: Plan, clock: Clock, entropy: Entropy) -> Result<Self, StartError> {
        let (organism, seeds, alive) = Self::prepare(plan, clock, entropy)?;
        let (ready, readiness) = std::sync::mpsc::channel();
        let shards = seeds.len();
        let watchdog = Watchdog {
            blueprint: organism.shared.blueprint.clone(),
            clock: organism.shared.clock.clone(),
            events: seeds[0].events.downgrade(),
            alive: alive.downgrade(),
        };
        watchdog.start(seeds.iter().map(|seed| seed.pulse.clone()).collect()).map_err(StartError::Thread)?;
        for seed in seeds {
            // On an error the organism is dropped, which ends the threads that were made.
            seed.spawn(ready.clone(), alive.clone()).map_err(StartError::Thread)?;
        }
        drop((ready, alive));
        if readiness.iter().take(shards).count() < shards {
            return Err(StartError::Shard);
        }
        organism.boot();
        Ok(organism)
    }

    /// Everything but the shards themselves: those are to be made where they live.
    pub(super) fn prepare(
        plan: Plan,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<(Self, Vec<Seed>, mpsc::Sender<()>), StartError> {
        let Plan { blueprint, catalog, decoders, hosts, shards, events, warnings, journal, tasks, residents } = plan;
        if journal.is_some() && shards > SHARDS {
            let message = format!("a durable organism can have {SHARDS} shards, not {shards}: set fewer");
            return Err(StartError::Journal(JournalError { message }));
        }
        let journal = journal.map(|keep| keep.open(&entropy, !residents.is_empty())).transpose()?;
        journal.iter().for_each(|opened| entropy.enter(opened.recovered.epoch));
        for warning in &warnings {
            tracing::warn!(organism = %blueprint.organism, "{warning}");
        }
        let (links, receivers) = links(shards);
        let limits = &blueprint.limits;
        let unread: Vec<_> = blueprint.clients().map(|_| Gauge::new(limits.egress, limits.egress_bytes)).collect();
        let (ports, inlets): (Vec<_>, Vec<_>) = unread.iter().cloned().map(Port::new).unzip();
        let shared = Arc::new(Shared {
            gauge: Gauge::new(limits.queue, limits.queue_bytes),
            directory: Directory::default(),
            given: Given::new(links.clone()),
            blueprint,
            catalog,
            links,
            clock,
            entropy,
            unread,
            inlets: inlets.into_iter().map(tokio::sync::Mutex::new).collect(),
            closed: AtomicBool::new(false),
            tickets: Tickets::default(),
            turn: AtomicUsize::new(0),
        });
        let observed = events.is_some();
        let events = events.unwrap_or_else(|| broadcast::channel(1).0);
        let (scribe, recovered, takeover) = match journal {
            None => (None, None, Takeover::default()),
            Some(Opened { journal, durability, recovered, takeover }) => {
                let scribe = match shared.clock.is_simulated() {
                    true => Scribe::here(journal, shared.links.clone()),
                    false => Scribe::beside(journal, durability, shared.links.clone())?,
                };
                (Some(scribe), Some(recovered), takeover)
            }
        };
        if let (Some(scribe), Some(recovered)) = (&scribe, &recovered) {
            let residents: Vec<_> = tasks.residents().chain(residents).collect();
            for resident in residents.iter().cloned() {
                let ledger = Ledger::new(scribe, shared.tickets.clone(), shared.clock.clone());
                resident.move_in(recovered, ledger)?;
            }
            scribe.tell(residents);
        }
        let key = recovered.as_ref().map_or_else(|| shared.entropy.key(), |recovered| IdKey::new(recovered.key));
        let recovered = recovered.map(|recovered| recovered.into_shards(shards));
        let mut recovered = recovered.into_iter().flatten();
        let seeds = (0..).map(ShardId).zip(receivers).map(|(shard, commands)| Seed {
            shard,
            shared: shared.clone(),
            recovered: recovered.next(),
            scribe: scribe.clone(),
            ports: ports.clone(),
            decoders: decoders.clone(),
            hosts: hosts.clone(),
            key: key.clone(),
            events: events.clone(),
            observed,
            commands,
            pulse: Arc::default(),
        });
        let seeds = seeds.collect();
        let (alive, ended) = mpsc::channel(1);
        let organism = Self {
            shared,
            tasks,
            warnings,
            events: observed.then(|| events.downgrade()),
            takeover: Mutex::new(Some(takeover)),
            ended: Mutex::new(Some(ended)),
            drained: watch::Sender::new(None),
            deadline: watch::Sender::new(Time::MAX),
        };
        Ok((organism, seeds, alive))
    }

    /// Sends `<boot>` on its way.
    pub(super) fn boot(&self) {
        let root = self.shared.root();
        self.shared.links.send(ShardId(0), Command::Core(Input::Boot { root }));
    }

    /// Files of an older gateway that were taken over, once.
    #[cfg(feature = "gateway")]
    pub(crate) fn takeover(&self) -> Takeover {
        self.takeover.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// Its jobs and their tasks.
    pub fn tasks(&self) -> &TaskBoard {
        &self.tasks
    }

    /// Speaks as one of the clients.
    ///
    /// # Errors
    /// [`NoSuchClient`] if none has that name.
    pub fn client(&self, name: &str) -> Result<Client, NoSuchClient> {
        match self.shared.blueprint.party(name) {
            Some(Party::Client(id)) => Ok(Client::new(self.shared.clone(), id)),
            Some(Party::Listener(_)) | None => Err(NoSuchClient { name: name.to_owned() }),
        }
    }

    /// Waits until nothing is queued, running or parked. Delayed continues and boot handlers don't
    /// count, what they called does, and so does a question to a person.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn run_until_idle(&self) {
        self.shared.links.busy().wait().await;
    }

    /// Lets the organism end: closes the entrances, cancels pending continues and boot handlers,
    /// waits until nothing is left to do or the deadline has passed, then gives each conversation
    /// that is still open a `cancelled` fault, and ends the threads.
    ///
    /// A second call joins the first, and may bring its deadline forward.
    ///
    /// # Cancel safety
    /// Once polled, it goes on without being awaited.
    pub async fn drain(&self, deadline: Duration) -> Drained {
        self.shared.closed.store(true, Ordering::Release);
        let deadline = self.shared.clock.now().after(deadline);
        self.deadline.send_if_modified(|earlier| std::mem::replace(earlier, deadline.min(*earlier)) > deadline);
        let mut drained = self.drained.subscribe();
        if let Some(ended) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.begin_drain(ended);
        }
        let drained = drained.wait_for(Option::is_some).await;
        drained.ok().and_then(|drained| *drained).unwrap_or_default()
    }

    fn begin_drain(&self, ended: mpsc::Receiver<()>) {
        let (shared, deadline, result) = (self.shared.clone(), self.deadline.subscribe(), self.drained.clone());
        if shared.clock.is_simulated() {
            tokio::task::spawn_local(async move { result.send_replace(Some(drain(&shared, deadline, ended).await)) });
            return;
        }
        // Neither a stuck shard nor the caller's runtime may keep the deadline from passing.
        let thread = std::thread::Builder::new().name("systole-drain".into()).spawn({
            let result = result.clone();
            move || {
                let timers = tokio::runtime::Builder::new_current_thread().enable_time().build();
                let drained = timers.map(|timers| timers.block_on(drain(&shared, deadline, ended)));
                result.send_replace(Some(drained.unwrap_or_default()));
            }
        });
        if thread.is_err() {
            self.stop();
            result.send_replace(Some(Drained::default()));
        }
    }

    /// Ends everything now.
    pub(crate) fn stop(&self) {
        self.shared.closed.store(true, Ordering::Release);
        for shard in self.shared.links.shards() {
            self.shared.links.send(shard, Command::Core(Input::Stop));
            self.shared.links.send(shard, Command::Quit);
        }
    }

    /// Waits until the organism can't go on by itself: its journal can't be written, or one of its threads has failed.
    /// Who waits for an answer gets a fault then; [`drain`](Self::drain) it and start it again.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn broken(&self) -> Breakdown {
        let mut broken = self.shared.links.broken();
        match broken.wait_for(Option::is_some).await.ok().and_then(|known| known.clone()) {
            Some(why) => why,
            // The organism has what is waited for.
            None => std::future::pending().await,
        }
    }

    /// Why the organism can't go on; none while it does.
    pub fn breakdown(&self) -> Option<Breakdown> {
        self.shared.links.broken().borrow().clone()
    }

    /// Whether a message would be taken at this moment.
    ///
    /// # Errors
    /// [`SendError::Closed`] if the organism ends or can't go on, [`SendError::Overloaded`] if it is full.
    pub fn ready(&self) -> Result<(), SendError> {
        if self.shared.closed.load(Ordering::Acquire) || self.breakdown().is_some() {
            return Err(SendError::Closed);
        }
        Ok(self.shared.gauge.room()?)
    }

    /// For work without which the organism can't go on.
    #[cfg(feature = "gateway")]
    pub(crate) fn vital(&self, name: &'static str) -> Vital {
        Vital::new(self.shared.links.clone(), name)
    }

    /// What became of all messages so far.
    pub async fn counts(&self) -> Counts {
        self.shared.counts().await
    }

    /// Messages that wait for a listener to begin with them.
    #[cfg(feature = "gateway")]
    pub(crate) async fn waiting(&self) -> usize {
        self.shared.look(Core::waiting).await.into_iter().sum::<u64>() as usize
    }

    /// The number of dead letters.
    #[cfg(feature = "gateway")]
    pub(crate) async fn dead_letter_count(&self) -> usize {
        self.shared.look(|core| core.dead_letters().len()).await.into_iter().sum()
    }

    /// The open threads: those of one shard after those of another, each in order of opening.
    pub async fn snapshot(&self) -> Snapshot {
        let of_shards = self.shared.look(|core| core.snapshot().threads).await;
        let threads: Vec<OpenThread> = of_shards.into_iter().flatten().collect();
        Snapshot { threads }
    }

    /// The messages that nobody could be given, oldest first.
    pub async fn dead_letters(&self) -> Vec<DeadLetter> {
        let of_shards = self.shared.look(|core| core.dead_letters().iter().cloned().collect::<Vec<_>>()).await;
        let mut letters: Vec<_> = of_shards.into_iter().flatten().collect();
        letters.sort_by_key(|letter| letter.at);
        letters
    }

    /// Queues a dead letter again: it is judged from the start, as if its sender emitted it now.
    ///
    /// Whoever asked has had an answer already, so it doesn't go back to that conversation: its
    /// tree hangs below a root that belongs to nobody, as that of boot does, and what it is
    /// answered with is a dead letter. If it is refused again, so is the letter itself, under a new
    /// number. What its sender may not call is not queued again: a reply, for which no thread waits any more, and a
    /// question to the core.
    ///
    /// # Errors
    /// [`DeadLetterError`]: the letter stays where it is.
    ///
    /// # Cancel safety
    /// Once polled, it happens without being awaited.
    pub async fn requeue(&self, letter: DeadLetterId) -> Result<(), DeadLetterError> {
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(DeadLetterError::Closed);
        }
        self.shared.decide(letter, Input::Redrive { letter, root: self.shared.root() }).await
    }

    /// Forgets a dead letter.
    ///
    /// # Errors
    /// [`DeadLetterError`] if it isn't there, or the organism has ended.
    ///
    /// # Cancel safety
    /// Once polled, it happens without being awaited.
    pub async fn discard(&self, letter: DeadLetterId) -> Result<(), DeadLetterError> {
        self.shared.decide(letter, Input::Discard { letter }).await
    }

    /// Subscribes to what happens from now on; `None` unless the builder was asked for
    /// [`events`](OrganismBuilder::events).
    pub fn events(&self) -> Option<Events> {
        Some(Events::new(self.events.as_ref()?.upgrade()?.subscribe()))
    }

    /// What is doubtful about the contracts, though the organism runs.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The organism as it was registered.
    pub fn blueprint(&self) -> &Blueprint {
        &self.shared.blueprint
    }

    /// Every payload schema.
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }
}

impl Drop for Organism {
    fn drop(&mut self) {
        let running = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).take().is_some();
        if running {
            // Who panics has not come to the end of what it was given.
            if !std::thread::panicking() {
                self.shared.given.read_all();
            }
            self.stop();
        }
    }
}

impl fmt::Debug for Organism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Organism").field("name", &self.shared.blueprint.organism).finish_non_exhaustive()
    }
}

impl Shared {
    /// The id of a new conversation.
    pub(super) fn root(&self) -> ThreadId {
        self.entropy.root(self.clock.now())
    }

    /// The shard that the next conversation lives in.
    pub(super) fn next_shard(&self) -> ShardId {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let shards = self.links.shards().count();
        ShardId(u16::try_from(turn % shards).expect("less than the number of shards"))
    }

    pub(super) async fn counts(&self) -> Counts {
        self.look(Core::counts).await.into_iter().fold(Counts::default(), |sum, of_shard| Counts {
            injected: sum.injected + of_shard.injected,
            emitted: sum.emitted + of_shard.emitted,
            made: sum.made + of_shard.made,
            redriven: sum.redriven + of_shard.redriven,
            recovered: sum.recovered + of_shard.recovered,
            delivered: sum.delivered + of_shard.delivered,
            faulted: sum.faulted + of_shard.faulted,
            dead: sum.dead + of_shard.dead,
            cancelled: sum.cancelled + of_shard.cancelled,
        })
    }

    /// Tells the shard that keeps a dead letter what becomes of it.
    async fn decide(&self, letter: DeadLetterId, input: Input) -> Result<(), DeadLetterError> {
        if !self.links.shards().any(|shard| shard == letter.shard()) {
            return Err(DeadLetterError::Unknown);
        }
        let (tell, told) = oneshot::channel();
        self.links.send(letter.shard(), Command::Letter { letter, input, tell });
        told.await.unwrap_or(Err(DeadLetterError::Closed))
    }

    /// Looks at the core of each shard that still runs.
    pub(super) async fn look<T: Send + 'static>(&self, look: impl Fn(&Core) -> T + Copy + Send + 'static) -> Vec<T> {
        let mut seen = Vec::new();
        for shard in self.links.shards() {
            let (tell, told) = oneshot::channel();
            // Whoever asked may have gone.
            let look = move |core: &Core| drop(tell.send(look(core)));
            self.links.send(shard, Command::Look(Box::new(look)));
            seen.extend(told.await.ok());
        }
        seen
    }
}
