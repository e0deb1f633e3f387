//! Watchdog: reports listeners that block the thread of their shard.
//!
//! A handler that computes or waits without an `await` can't be stopped by its timeout, and nothing else on its shard
//! runs meanwhile. So each shard has a [`Pulse`] that tells which listener's code it runs, and one thread checks them
//! all: an event and a warning tell operators which listener's code has run for a second, again after 2, 4, 8 seconds
//! and so on, and when it has ended.
//!
//! Not covered: code of the pump itself, and blocking listeners, which have threads of their own.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use systole_core::core::catch_panic::{Panicked, catch_panic};
use systole_core::core::{CoreId, Event, EventKind, ListenerId};
use systole_core::vocab::{ThreadPath, Time};
use tokio::sync::mpsc;

use super::events::EventRing;
use super::shared::Shared;
use systole_store::clock::Clock;

/// Interval of checks.
const LOOK: Duration = Duration::from_millis(250);
/// Time without an await after which a listener is reported to operators.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest interval between two reports of one call.
const PAUSE: Duration = Duration::from_secs(60);

/// The listener whose code a shard runs: a count of calls in the upper half, the listener and 1 in the lower one, or 0.
#[derive(Debug, Default)]
pub(crate) struct Pulse(AtomicU64);

impl Pulse {
    /// Runs code of a listener, on the thread of the shard.
    pub(crate) fn run<R>(&self, listener: ListenerId, code: impl FnOnce() -> R) -> Result<R, Panicked> {
        // One thread writes, and the watchdog reads a moment later: no order is needed.
        let before = self.0.load(Ordering::Relaxed);
        let call = (before >> 32).wrapping_add(1) << 32;
        self.0.store(call | u64::from(listener.0 + 1), Ordering::Relaxed);
        let result = catch_panic(code);
        let after = self.0.load(Ordering::Relaxed);
        self.0.store((after >> 32) << 32 | before & LISTENER, Ordering::Relaxed);
        result
    }
}

const LISTENER: u64 = u32::MAX as u64;

/// The watchdog, which checks the pulses of an organism until its shards have ended.
pub(crate) struct Watchdog {
    pub(crate) shared: Weak<Shared>,
    pub(crate) clock: Clock,
    pub(crate) events: Option<Arc<EventRing>>,
    /// Gone when the threads of all shards have ended.
    pub(crate) alive: mpsc::WeakSender<()>,
}

/// State of one shard in the watchdog.
struct Watched {
    shard: CoreId,
    pulse: Arc<Pulse>,
    word: u64,
    since: Time,
    /// Time since the call began at which it is reported next.
    next: Duration,
}

impl Watchdog {
    /// Starts the watchdog's thread.
    ///
    /// # Errors
    /// The system's error if no thread can be started.
    pub(crate) fn start(self, pulses: Vec<Arc<Pulse>>) -> io::Result<()> {
        let now = self.clock.now();
        let watch = |(shard, pulse)| Watched { shard: CoreId(shard), pulse, word: 0, since: now, next: PATIENCE };
        let mut watched: Vec<Watched> = (0..).zip(pulses).map(watch).collect();
        std::thread::Builder::new().name("systole-watchdog".into()).spawn(move || {
            while self.alive.upgrade().is_some() {
                std::thread::sleep(LOOK);
                // Also where nothing runs, and where a shard is blocked.
                if let Some(shared) = self.shared.upgrade() {
                    shared.check_tenure();
                }
                let now = self.clock.now();
                for watched in &mut watched {
                    let word = watched.pulse.0.load(Ordering::Relaxed);
                    self.look(watched, word, now);
                }
            }
        })?;
        Ok(())
    }

    fn look(&self, watched: &mut Watched, word: u64, now: Time) {
        let took = now.since(watched.since);
        if word != watched.word || word & LISTENER == 0 {
            if watched.next > PATIENCE {
                self.report(watched, took, true);
            }
            (watched.word, watched.since, watched.next) = (word, now, PATIENCE);
        } else if took >= watched.next {
            self.report(watched, took, false);
            watched.next = took + took.min(PAUSE);
        }
    }

    fn report(&self, watched: &Watched, took: Duration, ended: bool) {
        let Some(id) = ((watched.word & LISTENER) as u32).checked_sub(1) else { return };
        let Some(shared) = self.shared.upgrade() else { return };
        let listener = shared.blueprint()[ListenerId(id)].name.clone();
        let (shard, ms) = (watched.shard.0, took.as_millis() as u64);
        match ended {
            false => tracing::warn!(
                %listener, shard, ms,
                "a listener blocks the thread of its shard, where nothing else runs: await what takes long, or register it as blocking"
            ),
            true => tracing::warn!(%listener, shard, ms, "a listener has released the thread of its shard"),
        }
        let path = ThreadPath::new(vec![(listener.clone(), 1)]);
        let kind = match ended {
            false => EventKind::Blocked { listener, shard, took },
            true => EventKind::Released { listener, shard, took },
        };
        if let Some(events) = &self.events {
            events.write(Event::of_none(path, self.clock.now(), kind));
        }
    }
}
