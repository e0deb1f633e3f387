//! Where requests belong at the moment, as all parts of a node see it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use systole_core::lease::Holder;
use systole_store::clock::steady;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::journal::NodeCard;
use crate::runtime::Tenure;

/// Time for requests that wait for the node that takes over, when this one ends.
const HELD: Duration = Duration::from_secs(15);

/// The place of the organism.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// It runs here.
    Here(Router),
    /// This node has the lease, and the organism starts or ends here.
    Changing,
    /// Another node has the lease.
    There(Arc<Holder>),
    /// No node has the lease, as far as this one knows.
    Nowhere,
}

/// The state of a node.
#[derive(Debug)]
pub(super) struct View {
    pub(super) card: NodeCard,
    state: Mutex<State>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// The time of the last answer of the database, in milliseconds of the steady clock; 0 if there was none.
    answered: AtomicU64,
    /// Requests that wait for an active node.
    held: watch::Sender<usize>,
    pub(super) takeovers: AtomicU64,
    pub(super) forwarded: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    router: Option<Router>,
    tenure: Option<Tenure>,
    holder: Option<Arc<Holder>>,
    is_ending: bool,
    /// True if the organism ends here while the node has the lease: it is handed over.
    is_leaving: bool,
}

impl View {
    pub(super) fn new(card: NodeCard) -> Self {
        Self {
            card,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            answered: AtomicU64::new(0),
            held: watch::Sender::new(0),
            takeovers: AtomicU64::new(0),
            forwarded: AtomicUsize::new(0),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let changed = change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        if changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the calls of the organism that runs here.
    pub(super) fn install(&self, router: Option<Router>) {
        self.change(|state| {
            let holds = state.tenure.as_ref().is_some_and(Tenure::holds);
            state.is_leaving = router.is_none() && (state.is_leaving || state.router.is_some() && holds);
            state.router = router;
            true
        });
    }

    /// The node is to take the organism when it can.
    pub(super) fn stand_by(&self) {
        self.change(|state| std::mem::take(&mut state.is_leaving));
    }

    /// Sets the lease of this node.
    pub(super) fn hold(&self, tenure: Option<Tenure>) {
        self.change(|state| {
            (state.tenure, state.holder) = (tenure, None);
            true
        });
    }

    /// Notes an answer of the database, and the lease that it has.
    pub(super) fn found(&self, holder: Option<Holder>) {
        let other = holder.filter(|holder| holder.is_there() && holder.process != self.card.process.as_u128());
        self.change(|state| {
            let key = |holder: &Holder| (holder.process, holder.term);
            let changed = state.holder.as_deref().map(key) != other.as_ref().map(key);
            state.holder = other.map(Arc::new);
            changed
        });
    }

    /// Notes that the database has answered.
    pub(super) fn note_answer(&self) {
        let now = u64::try_from(steady().as_millis()).unwrap_or(u64::MAX);
        self.answered.store(now.max(1), Ordering::Relaxed);
    }

    /// The time since the database last answered; none if it never did.
    pub(super) fn since_answer(&self) -> Option<Duration> {
        let at = Some(self.answered.load(Ordering::Relaxed)).filter(|at| *at > 0)?;
        Some(steady().saturating_sub(Duration::from_millis(at)))
    }

    /// The time that is left of the lease of this node.
    pub(super) fn left(&self) -> Duration {
        self.look(|state| state.tenure.as_ref().map_or(Duration::ZERO, Tenure::left))
    }

    /// The place of the organism.
    pub(super) fn place(&self) -> Place {
        self.look(|state| match (&state.tenure, &state.router, &state.holder) {
            // A process that was stopped comes here, maybe long after its lease.
            (Some(tenure), Some(router), _) if tenure.holds() => Place::Here(router.clone()),
            (Some(tenure), None, _) if tenure.holds() => Place::Changing,
            (_, _, Some(holder)) => Place::There(holder.clone()),
            _ => Place::Nowhere,
        })
    }

    /// Watches for changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits until that lease is not the one that is known.
    pub(super) async fn until_moved(&self, holder: &Holder) {
        let mut changes = self.changes();
        let is_there =
            |place| matches!(place, Place::There(now) if (now.process, now.term) == (holder.process, holder.term));
        while is_there(self.place()) {
            // The sender is this value.
            let _ = changes.changed().await;
        }
    }

    /// Counts a request that waits for an active node, until the result is dropped.
    pub(super) fn hold_request(self: &Arc<Self>) -> Held {
        self.held.send_modify(|held| *held += 1);
        Held(self.clone())
    }

    /// The requests that wait.
    pub(super) fn held(&self) -> usize {
        *self.held.borrow()
    }

    /// Returns whether the node ends, or hands the organism over.
    pub(super) fn is_ending(&self) -> bool {
        self.look(|state| state.is_ending || state.is_leaving)
    }

    /// Announces the end of the node, and waits until no request waits for the node that takes over.
    pub(super) async fn close(&self) {
        self.change(|state| {
            state.is_ending = true;
            true
        });
        let mut held = self.held.subscribe();
        let _ = timeout(HELD, held.wait_for(|held| *held == 0)).await;
    }
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Held(Arc<View>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.send_modify(|held| *held -= 1);
    }
}
