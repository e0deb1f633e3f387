//! Changes of an organism while it runs, by versions.
//!
//! A version is a blueprint with its schemas and the hosts of its listeners. A conversation keeps the version that it began with
//! until it ends; new ones begin with the present version. All shards learn a version before one of them lets a conversation begin with it, since
//! its listeners' slots may be kept by any of them. Once no conversation keeps a version, its hosts end.
//!
//! What the journal has belongs to no version: a start, and a core that takes partitions over, goes on with the present one.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use systole_core::core::{
    Blueprint, BlueprintProblem, Cancellation, Core, Input, ListenerId, Operation, OrganismVersion, Version,
};
use systole_core::journal::ActRecord;
use systole_core::vocab::{Name, Partition, ThreadId};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Organism;
use super::builder::{OrganismBuilder, OrganismSpec};
use super::part::Part;
use crate::runtime::handler::raw::BoxFuture;
use crate::runtime::shard::command::{Command, ShardVersion};
use crate::runtime::shard::host::HostFactory;
use crate::runtime::shard::shared::Shared;
use crate::runtime::start::{StartError, StartRefusal};
use systole_store::clock::Clock;

/// The most versions that conversations may keep at once.
const VERSIONS: usize = 16;
/// Interval at which it is checked whether conversations keep an earlier version.
const LOOK: Duration = Duration::from_secs(1);

/// The time for which conversations keep the version that they began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The time from the change on.
    pub time: Duration,
    /// What becomes of conversations that are open then.
    pub then: Then,
}

/// The end of the time for which a conversation keeps its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Then {
    /// It is cancelled: its client gets a `cancelled` fault.
    #[default]
    Cancel,
    /// It goes on with its version until it ends, and the log has a warning.
    Wait,
}

impl Default for Keep {
    /// A day; then they are cancelled.
    fn default() -> Self {
        Self { time: Duration::from_secs(24 * 60 * 60), then: Then::default() }
    }
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// The version with which conversations begin from now on.
    pub version: Version,
    /// The open conversations that keep an earlier one.
    pub kept: usize,
}

/// Reason why an organism goes on unchanged.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The changed organism could not start, either.
    #[error(transparent)]
    Start(#[from] StartError),
    /// What only a start can change.
    #[error("these can't change while the organism runs: {}: start it again", .0.join(", "))]
    Fixed(Vec<String>),
    /// Conversations keep as many versions as they may.
    #[error(
        "open conversations keep {0} versions of the organism, as many as they may: wait until some end, or cancel them"
    )]
    Crowded(usize),
    /// The organism ends, or can't go on.
    #[error("the organism ends")]
    Ending,
}

systole_core::vocab::debug_is_display!(ReloadError);

/// Changes the organism for an operator; the error tells why it goes on unchanged.
pub(crate) type Reloader = Box<dyn Fn() -> BoxFuture<'static, Result<Reloaded, String>> + Send + Sync>;

impl Organism {
    /// Lets operators change the organism; the first of several ways counts.
    #[cfg(feature = "yaml")]
    pub(crate) fn reload_by(&self, reloader: Reloader) {
        // There is one already.
        let _ = self.reloader.set(reloader);
    }

    /// Changes the organism while it runs: conversations begin with the listeners, clients, schemas and budgets of `builder` from
    /// now on, and those that are open keep theirs until they end. Listeners start anew, also where their contract stays, so that
    /// slots of both are used for a while; `<boot>` is sent again. A client that is gone may send nothing more.
    ///
    /// The name, the limits but for `handler_timeout`, the order of dispatch, the shards, the journal and the identity stay. So does
    /// what the builder has beside listeners, clients and schemas.
    ///
    /// # Errors
    /// [`ReloadError`]: nothing has changed.
    ///
    /// # Cancel safety
    /// A change that has begun goes on even if the future is dropped.
    pub async fn reload(&self, builder: OrganismBuilder, keep: Keep) -> Result<Reloaded, ReloadError> {
        let plan = builder.plan()?;
        let one_at_a_time = self.changing.clone().lock_owned().await;
        if self.shared.closed.load(Ordering::Acquire) {
            return Err(ReloadError::Ending);
        }
        let before = self.shared.present();
        let fixed = self.fixed(&plan, &before.blueprint);
        if !fixed.is_empty() {
            return Err(ReloadError::Fixed(fixed));
        }
        let versions = self.shared.version_count();
        if versions >= VERSIONS {
            return Err(ReloadError::Crowded(versions));
        }
        let OrganismSpec { blueprint, catalog, decoders, hosts, warnings, .. } = plan;
        let blueprint = blueprint.after(&before.blueprint);
        let errors = blueprint.problems().into_iter().filter(|problem| !BlueprintProblem::is_warning(problem));
        let refusals: Vec<_> = errors.map(StartRefusal::Problem).collect();
        if !refusals.is_empty() {
            return Err(StartError::Refused(refusals).into());
        }
        for warning in &warnings {
            tracing::warn!(organism = %blueprint.organism, "{warning}");
        }
        let decoders = Arc::new(before.decoders.with(before.blueprint.all_listeners().count(), &decoders));
        let version = OrganismVersion { blueprint: Arc::new(blueprint), catalog, decoders };
        let (tell, told) = oneshot::channel();
        self.beside(Change { shared: self.shared.clone(), version, hosts, one_at_a_time, tell }.run(keep))?;
        told.await.unwrap_or(Err(ReloadError::Ending))
    }

    /// Runs a change and its consequences, which go on even if their caller leaves.
    fn beside(&self, change: impl Future<Output = ()> + Send + 'static) -> Result<(), ReloadError> {
        if self.shared.clock.is_simulated() {
            tokio::task::spawn_local(change);
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let thread = std::thread::Builder::new().name("systole-change".into());
        let begun = runtime.and_then(|runtime| thread.spawn(move || runtime.block_on(change)));
        begun.map(drop).map_err(|error| StartError::Thread(error).into())
    }

    /// What of a plan differs from the organism and can't change while it runs.
    fn fixed(&self, plan: &OrganismSpec, before: &Blueprint) -> Vec<String> {
        let mut limits = plan.blueprint.limits.clone();
        // Contracts have it.
        limits.handler_timeout = before.limits.handler_timeout;
        let differs = [
            ("the name of the organism", plan.blueprint.organism != before.organism),
            ("its limits, but for handler_timeout", limits != before.limits),
            ("the order of dispatch", plan.blueprint.scheduling != before.scheduling),
            (
                "the number of shards",
                plan.chosen_shards.is_some_and(|shards| usize::from(shards) != self.shared.links.shards().count()),
            ),
            ("its journal", plan.journal.is_some()),
            ("its identity", plan.has_identity()),
            ("its jobs", plan.parts.iter().chain(self.parts.iter()).any(Part::sends)),
            ("its schedules", plan.parts.iter().any(|part| !part.sends() && !part.recoverables().is_empty())),
            ("its gateway", !plan.recoverables.is_empty()),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()).collect()
    }
}

/// A version on its way into the shards.
struct Change {
    shared: Arc<Shared>,
    version: OrganismVersion,
    hosts: Arc<[HostFactory]>,
    one_at_a_time: OwnedMutexGuard<()>,
    tell: oneshot::Sender<Result<Reloaded, ReloadError>>,
}

impl Change {
    /// Lets conversations begin with the version once all shards know it, and waits until none keeps an earlier one.
    async fn run(self, keep: Keep) {
        let Self { shared, version, hosts, one_at_a_time, tell } = self;
        let (number, steady, before) = (version.blueprint.version(), shared.clock.steady(), shared.blueprint());
        let before = Superseded { version: before.version(), listeners: before.first()..version.blueprint.first() };
        let ports = shared.add_clients(&version.blueprint);
        let new = ShardVersion { version: version.clone(), hosts, ports };
        let learn = |shard| {
            let (tell, told) = oneshot::channel();
            shared.links.send(shard, Command::Version { version: new.clone(), tell });
            told
        };
        let learned: Vec<_> = shared.links.shards().map(learn).collect();
        for learned in learned {
            if learned.await.is_err() {
                return drop(tell.send(Err(ReloadError::Ending)));
            }
        }
        shared.begin_version(version);
        for shard in shared.links.shards() {
            shared.links.send(shard, Command::Core(Input::Begin { version: number }));
        }
        if let Some(core) = shared.directory.core_of(Partition::BOOT) {
            shared.links.send(core, Command::Core(Input::Boot { root: shared.root() }));
        }
        let kept = kept(&shared, number).await.len();
        tracing::info!(version = number.0, kept, "the organism has changed: conversations begin with the new version");
        drop(one_at_a_time);
        // The caller may have dropped its future.
        let _ = tell.send(Ok(Reloaded { version: number, kept }));
        let weak = Arc::downgrade(&shared);
        // It must not keep an organism that has ended.
        drop(shared);
        retire(weak, steady, before, keep).await;
    }
}

/// A version with which no conversation begins any more, and its listeners.
struct Superseded {
    version: Version,
    listeners: Range<ListenerId>,
}

/// Waits until no conversation keeps a version, then ends its hosts.
async fn retire(shared: Weak<Shared>, steady: Clock, superseded: Superseded, keep: Keep) {
    let Superseded { version, listeners } = superseded;
    let end = steady.now().after(keep.time);
    let mut is_over = false;
    loop {
        {
            let Some(shared) = shared.upgrade().filter(|shared| !shared.closed.load(Ordering::Acquire)) else { return };
            let own = listeners.clone();
            let look = move |core: &Core| (core.roots_of(version), core.runs_any(&own));
            let (open, run): (Vec<_>, Vec<_>) = shared.look(look).await.into_iter().unzip();
            let open: Vec<_> = open.into_iter().flatten().collect();
            if open.is_empty() && !run.contains(&true) {
                return forget(&shared, version);
            }
            if steady.now() >= end && !is_over && !open.is_empty() {
                is_over = keep.then == Then::Wait;
                end_all(&shared, open, keep).await;
            }
        }
        let left = if is_over { Duration::MAX } else { steady.until(end) };
        tokio::time::sleep(left.clamp(Duration::from_millis(1), LOOK)).await;
    }
}

/// The open conversations that keep an earlier version than this one.
async fn kept(shared: &Shared, version: Version) -> Vec<ThreadId> {
    shared.look(move |core| core.roots_before(version)).await.into_iter().flatten().collect()
}

/// Ends the time of conversations that keep an earlier version.
async fn end_all(shared: &Shared, open: Vec<ThreadId>, keep: Keep) {
    let (count, time) = (open.len(), keep.time);
    if keep.then == Then::Wait {
        tracing::warn!(count, "conversations keep an earlier version of the organism after {time:?}");
        return;
    }
    tracing::warn!(count, "conversations kept an earlier version of the organism for {time:?}: they are cancelled");
    for root in open {
        let Some(core) = shared.directory.core_of(Partition::of(root)) else { continue };
        let operation = Operation::Cancel { root, thread: root, why: Cancellation::Version };
        let (by, of) = (Name::system(), root.to_string().into());
        let act = ActRecord { by, act: "cancel".into(), of, error: None, opened: None };
        // It may have ended meanwhile.
        let _ = shared.operate(core, operation, act).await;
    }
}

/// Ends the hosts of a version that no conversation keeps.
fn forget(shared: &Shared, version: Version) {
    shared.forget(version);
    for shard in shared.links.shards() {
        shared.links.send(shard, Command::Forget(version));
    }
    tracing::info!(
        version = version.0,
        "no conversation keeps this version of the organism any more: its listeners end"
    );
}
