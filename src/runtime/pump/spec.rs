//! The parts of a shard before it has a thread.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use systole_core::core::{Core, CoreConfig, CoreId, Input, OrganismVersion};
use systole_core::journal::Recovered;
use systole_core::vocab::{IdKey, Partitions};
use tokio::sync::mpsc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinHandle, spawn_local, unconstrained};

use super::{MakeCore, Shard, ShardChannels};
use crate::drafts::DraftWriter;
use crate::runtime::shard::breakdown::Breakdown;
use crate::runtime::shard::command::Command;
use crate::runtime::shard::context::ShardContext;
use crate::runtime::shard::egress::{ClientPort, EgressRouter};
use crate::runtime::shard::events::EventWriter;
use crate::runtime::shard::host::HostFactory;
use crate::runtime::shard::shared::Shared;
use crate::runtime::shard::watchdog::Pulse;
use crate::runtime::write::handle::JournalKeeper;

/// The parts of a shard, on the way to its thread.
pub(crate) struct ShardSpec {
    pub(crate) shard: CoreId,
    /// The partitions whose conversations it serves.
    pub(crate) partitions: Partitions,
    pub(crate) shared: Arc<Shared>,
    /// The recovered conversations of the shard.
    pub(crate) recovered: Option<Recovered>,
    /// The journal, if there is one.
    pub(crate) journal_handle: Option<Arc<JournalKeeper>>,
    pub(crate) ports: Vec<ClientPort>,
    pub(crate) hosts: Arc<[HostFactory]>,
    pub(crate) key: IdKey,
    /// The shard's end of the ring of events, if there are any.
    pub(crate) events: Option<EventWriter>,
    /// The shard's end of the drafts.
    pub(crate) drafts: DraftWriter,
    pub(crate) commands: UnboundedReceiver<(CoreId, Command)>,
    pub(crate) pulse: Arc<Pulse>,
}

impl ShardSpec {
    /// Starts a thread with an actix system of its own, whose arbiter is the shard.
    ///
    /// The thread sends on `ready` when it pumps, or why it can't, and drops `alive` when it ends.
    pub(crate) fn spawn(self, ready: Sender<io::Result<()>>, alive: mpsc::Sender<()>) -> io::Result<()> {
        let name = format!("systole-{}", self.shard.0);
        let thread = std::thread::Builder::new().name(name.clone());
        thread.spawn(move || {
            let (shared, journal_handle) = (self.shared.clone(), self.journal_handle.clone());
            // Its descriptors may be refused, which `System::new` answers with a panic.
            let system = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
                Ok(runtime) => actix::System::with_tokio_rt(move || runtime),
                Err(error) => {
                    // The parts are dropped before the caller learns of it.
                    drop((self, shared, journal_handle, alive));
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            let pumped = system.block_on(async move {
                let (pump, _) = self.plant();
                // The caller may have given up because of another shard.
                let _ = ready.send(Ok(()));
                // It waits for as many words as there are senders.
                drop(ready);
                pump.await
            });
            if pumped.is_err() {
                shared.closed.store(true, Ordering::Release);
                journal_handle.iter().for_each(|journal_handle| journal_handle.tear());
                shared.links.pending_acks.fail_all();
                shared.links.busy().fail();
                shared.links.break_down(Breakdown::Thread { name, why: "a shard has panicked: see above".to_owned() });
            }
            // The journal must be closed before the end of the last shard is visible.
            drop((system, journal_handle, alive));
        })?;
        Ok(())
    }

    /// Makes the shard on this thread and spawns its pump.
    ///
    /// The pump is a task, not the root of the runtime: a root is polled at each wake of any task.
    pub(crate) fn plant(self) -> (JoinHandle<()>, Rc<ShardContext>) {
        let Self {
            shard,
            partitions,
            shared,
            recovered,
            journal_handle,
            ports,
            hosts,
            key,
            events,
            drafts,
            commands,
            pulse,
        } = self;
        let shard_context = ShardContext::new(
            shard,
            shared.clock.clone(),
            shared.links.clone(),
            shared.present(),
            key.clone(),
            (drafts, pulse),
        );
        let cores = u16::try_from(shared.links.shards().count()).expect("made from a u16");
        let observed = events.is_some();
        let (own, clock) = (shared.clone(), shared.clock.clone());
        let make: MakeCore = Box::new(move |core, partitions, recovered| {
            let now = clock.now();
            let OrganismVersion { blueprint, catalog, decoders } = own.present();
            let mut made = Core::new(CoreConfig {
                core,
                cores,
                partitions,
                blueprint,
                catalog,
                decoders,
                key: key.clone(),
                gauge: own.gauge.clone(),
                directory: own.directory.clone(),
                events: observed,
                started: now,
                epoch: recovered.as_ref().map(|recovered| recovered.epoch),
            });
            recovered.into_iter().for_each(|recovered| made.handle(Input::Recovered(recovered), now));
            made
        });
        let router = EgressRouter::new(&shared, ports);
        let channels = ShardChannels { router, events, commands, journal_handle };
        let shard = Shard::new(shard_context.clone(), shared, make, (partitions, recovered), &hosts, channels);
        (spawn_local(unconstrained(shard.pump())), shard_context)
    }
}
