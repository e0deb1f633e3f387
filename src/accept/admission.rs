//! Admission of connections: their number, their principals, and the choice of the connection that is closed for a new
//! one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use systole_core::vocab::Name;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::address::Source;

/// Time in which a new connection without a request isn't closed: a client may take so long to write its first head.
const GRACE: Duration = Duration::from_millis(200);

/// Calls in flight below which a principal may use the last quarter of the places, too: a few principals with many
/// calls can't keep the others out.
const FEW: usize = 16;

/// Limits on the number of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Most connections with a call of a principal in flight.
    pub(crate) connections: usize,
    /// Further places, for admins, for health and for clients that are not authenticated yet.
    pub(crate) reserve: usize,
    /// Most connections of one address without a call of a principal in flight.
    pub(crate) per_address: usize,
    /// Most connections of one principal with a call in flight.
    pub(crate) per_principal: usize,
}

/// The limit that refuses a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// An address has its most connections.
    #[error("{most} connections of your address wait for an answer, the most allowed: use fewer")]
    Address {
        /// The limit, in connections.
        most: usize,
    },
    /// A principal has its most calls in flight.
    #[error("{name} has {most} calls in flight, the most allowed: wait for an answer")]
    Principal {
        /// The principal.
        name: Name,
        /// The limit, in connections.
        most: usize,
    },
    /// All principals together have their most calls in flight.
    #[error("{most} calls are in flight, the most allowed: try again later")]
    All {
        /// The limit, in connections.
        most: usize,
    },
}

impl Full {
    /// The HTTP status of the refusal.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Address { .. } | Self::Principal { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::All { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The connections of an entrance.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: Bounds,
    state: Mutex<State>,
    /// Notification that a place has become free, or can be taken.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next connection.
    next: u64,
    connections: HashMap<u64, Connection>,
    /// Connections without a call in flight, by the time from which each may be closed.
    idle: BTreeSet<(Instant, u64)>,
    /// Number of connections of each address without a call of a principal.
    unauthenticated: HashMap<Source, usize>,
    /// Calls in flight of each principal, and of all.
    callers: HashMap<Name, usize>,
    calls: usize,
}

#[derive(Debug)]
struct Connection {
    source: Source,
    activity: Activity,
    evicted: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Activity {
    /// Waits for a head or is slowed down, and may be closed from that moment on.
    Idle(Instant),
    /// Serves a request without an authenticated principal.
    Unauthenticated,
    /// Serves a call of a principal.
    Call(Name),
}

impl Admission {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, state: Mutex::default(), changed: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn most(&self) -> usize {
        self.bounds.connections.saturating_add(self.bounds.reserve)
    }

    /// Waits until one more connection can be admitted.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub(super) async fn until_vacant(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let first = {
                let state = self.state();
                if state.connections.len() < self.most() {
                    return;
                }
                state.idle.first().map(|(from, _)| *from)
            };
            match first {
                Some(from) if from <= Instant::now() => return,
                // A change comes earlier, or that connection may be closed.
                Some(from) => drop(timeout_at(from, changed).await),
                None => changed.await,
            }
        }
    }

    /// Waits until no connection is left.
    pub(crate) async fn until_empty(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.state().connections.is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Admits a connection. Where there is no room, an idle one is closed: one of the same address if that has its
    /// most connections, else one of the address that has most.
    pub(super) fn admit(self: &Arc<Self>, source: Source) -> Result<Arc<Admitted>, Full> {
        let (mut state, most, now) = (self.state(), self.bounds.per_address, Instant::now());
        // An address at its limit takes no place of other addresses: one of its own connections is closed.
        let is_full = state.unauthenticated.get(&source).is_some_and(|count| *count >= most);
        if is_full && !state.evict(&[source], now + GRACE) {
            return Err(Full::Address { most });
        }
        if state.connections.len() >= self.most() {
            let crowded = state.crowded();
            if !(state.evict(&crowded, now) || state.evict_any(now)) {
                return Err(Full::All { most: self.most() });
            }
        }
        state.next += 1;
        let (number, evicted) = (state.next, Arc::new(Notify::new()));
        state
            .connections
            .insert(number, Connection { source, activity: Activity::Unauthenticated, evicted: evicted.clone() });
        *state.unauthenticated.entry(source).or_default() += 1;
        state.set_activity(number, Activity::Idle(now + GRACE));
        drop(state);
        Ok(Arc::new(Admitted { admission: self.clone(), number, source, evicted }))
    }

    /// Closes some resting connections; returns their number.
    pub(super) fn evict_idle(&self, most: usize) -> usize {
        let (mut state, now) = (self.state(), Instant::now() + GRACE);
        (0..most).take_while(|_| state.evict_any(now)).count()
    }

    /// Checks that there is a place for a call of a principal that has none in flight.
    ///
    /// # Errors
    /// [`Full`] if there is none: all principals but admins are refused.
    pub(crate) fn vacant(&self) -> Result<(), Full> {
        let most = self.bounds.connections;
        if self.state().calls >= most { Err(Full::All { most }) } else { Ok(()) }
    }

    /// Number of connections, and of calls of principals in flight.
    pub(crate) fn figures(&self) -> (usize, usize) {
        let state = self.state();
        (state.connections.len(), state.calls)
    }
}

impl State {
    /// Changes the state of a connection. One that was evicted is gone.
    fn set_activity(&mut self, number: u64, to: Activity) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let source = connection.source;
        let from = std::mem::replace(&mut connection.activity, to.clone());
        match &from {
            Activity::Idle(from) => drop(self.idle.remove(&(*from, number))),
            Activity::Unauthenticated => {}
            Activity::Call(name) => {
                count_down(&mut self.callers, name);
                self.calls -= 1;
                *self.unauthenticated.entry(source).or_default() += 1;
            }
        }
        match to {
            Activity::Idle(from) => drop(self.idle.insert((from, number))),
            Activity::Unauthenticated => {}
            Activity::Call(name) => {
                *self.callers.entry(name).or_default() += 1;
                self.calls += 1;
                count_down(&mut self.unauthenticated, &source);
            }
        }
    }

    fn leave(&mut self, number: u64) {
        // The call of a connection ends with it.
        self.set_activity(number, Activity::Unauthenticated);
        if let Some(connection) = self.connections.remove(&number) {
            count_down(&mut self.unauthenticated, &connection.source);
        }
    }

    /// The addresses with the most connections.
    fn crowded(&self) -> Vec<Source> {
        let most = self.unauthenticated.values().max().copied().unwrap_or_default();
        self.unauthenticated.iter().filter(|(_, count)| **count == most).map(|(source, _)| *source).collect()
    }

    /// Closes the connection of these addresses that rests for the longest time; false if none rests.
    fn evict(&mut self, of: &[Source], now: Instant) -> bool {
        self.evict_where(now, |connection| of.contains(&connection.source))
    }

    fn evict_any(&mut self, now: Instant) -> bool {
        self.evict_where(now, |_| true)
    }

    fn evict_where(&mut self, now: Instant, wanted: impl Fn(&Connection) -> bool) -> bool {
        let due = self.idle.iter().take_while(|(from, _)| *from <= now);
        let found = due.map(|(_, number)| *number).find(|number| self.connections.get(number).is_some_and(&wanted));
        let Some(number) = found else { return false };
        if let Some(connection) = self.connections.get(&number) {
            connection.evicted.notify_one();
        }
        self.leave(number);
        true
    }
}

/// Counts down; a count of zero is removed.
fn count_down<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The place of a connection, until this value is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Arc<Admission>,
    number: u64,
    source: Source,
    evicted: Arc<Notify>,
}

impl Admitted {
    /// Waits until the connection has to be closed.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.state().leave(self.number);
        self.admission.changed.notify_waiters();
    }
}

/// A request of a connection, among the extensions of the request. It is in flight until all clones are dropped.
#[derive(Debug, Clone)]
pub(crate) struct RequestPermit(Arc<RequestGuard>);

#[derive(Debug)]
struct RequestGuard {
    admitted: Arc<Admitted>,
}

impl RequestPermit {
    pub(super) fn begin(admitted: &Arc<Admitted>) -> Self {
        admitted.admission.state().set_activity(admitted.number, Activity::Unauthenticated);
        Self(Arc::new(RequestGuard { admitted: admitted.clone() }))
    }

    /// The source address of the client.
    pub(crate) fn source(&self) -> Source {
        self.0.admitted.source
    }

    /// Makes the request a call of that principal.
    ///
    /// # Errors
    /// [`Full`] if there are too many.
    pub(crate) fn enter(&self, name: &Name, is_admin: bool) -> Result<(), Full> {
        let Admitted { admission, number, .. } = &*self.0.admitted;
        let Bounds { connections, reserve, per_principal, .. } = admission.bounds;
        let mut state = admission.state();
        let own = state.callers.get(name).copied().unwrap_or_default();
        if own >= per_principal {
            return Err(Full::Principal { name: name.clone(), most: per_principal });
        }
        let most = match is_admin {
            // A part of the reserve connections free, so that a new connection finds a place.
            true => connections.saturating_add(reserve - reserve.div_ceil(4)),
            false if own < FEW => connections,
            false => (connections - connections / 4).max(per_principal),
        };
        if state.calls >= most {
            return Err(Full::All { most });
        }
        state.set_activity(*number, Activity::Call(name.clone()));
        Ok(())
    }

    /// Lets the connection be closed for another one from now on: its answer is delayed.
    pub(crate) fn allow_eviction(&self) {
        self.0.idle_from(Instant::now());
    }

    /// Keeps the connection again: its answer is made now.
    pub(crate) fn forbid_eviction(&self) {
        let admitted = &self.0.admitted;
        admitted.admission.state().set_activity(admitted.number, Activity::Unauthenticated);
    }
}

impl RequestGuard {
    fn idle_from(&self, from: Instant) {
        self.admitted.admission.state().set_activity(self.admitted.number, Activity::Idle(from));
        self.admitted.admission.changed.notify_waiters();
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.idle_from(Instant::now() + GRACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { connections: 4, reserve: 4, per_address: 3, per_principal: 2 };

    fn source(last: u8) -> Source {
        Source::of([192, 0, 2, last].into())
    }

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    /// Opens a connection of an address with a call of the principal `who` in flight.
    fn call(admission: &Arc<Admission>, last: u8, who: &str, is_admin: bool) -> Result<RequestPermit, Full> {
        let permit = RequestPermit::begin(&admission.admit(source(last))?);
        permit.enter(&name(who), is_admin).map(|()| permit)
    }

    fn is_evicted(admitted: &Admitted) -> bool {
        !admitted.admission.state().connections.contains_key(&admitted.number)
    }

    /// Lets the time pass after which resting connections may be closed.
    async fn pass() {
        tokio::time::advance(GRACE).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_connection_of_an_address_gives_its_place_to_a_new_one() {
        let admission = Admission::new(BOUNDS);
        let other = admission.admit(source(2)).unwrap();
        let connections: Vec<_> = (0..3).map(|_| admission.admit(source(1)).unwrap()).collect();
        // The first one has made a request since.
        pass().await;
        drop(RequestPermit::begin(&connections[0]));
        let _new = admission.admit(source(1)).unwrap();
        assert_eq!(connections.iter().map(|admitted| is_evicted(admitted)).collect::<Vec<_>>(), [false, true, false]);
        assert!(!is_evicted(&other));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_whose_requests_are_all_under_way_is_full_and_no_other_is() {
        let admission = Admission::new(BOUNDS);
        let connections: Vec<_> = (0..3).map(|_| admission.admit(source(1)).unwrap()).collect();
        let permits: Vec<_> = connections.iter().map(RequestPermit::begin).collect();
        assert_eq!(admission.admit(source(1)).unwrap_err(), Full::Address { most: 3 });
        admission.admit(source(2)).unwrap();
        // A connection that is slowed down is closed.
        permits[1].allow_eviction();
        admission.admit(source(1)).unwrap();
        assert!(is_evicted(&connections[1]));
        // A connection keeps its place once it is answered.
        let third = admission.admit(source(1)).unwrap();
        let _permit = RequestPermit::begin(&third);
        permits[2].allow_eviction();
        permits[2].forbid_eviction();
        assert_eq!(admission.admit(source(1)).unwrap_err(), Full::Address { most: 3 });
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_a_principal_are_not_counted_for_its_address_and_bounded_for_themselves() {
        let admission = Admission::new(BOUNDS);
        let calls: Vec<_> = (0..2).map(|_| call(&admission, 1, "ada", false).unwrap()).collect();
        assert_eq!(call(&admission, 1, "ada", false).unwrap_err(), Full::Principal { name: name("ada"), most: 2 });
        let unauthenticated: Vec<_> = (0..3).map(|_| admission.admit(source(1)).unwrap()).collect();
        assert_eq!(admission.figures(), (5, 2));
        drop((calls, unauthenticated));
        assert_eq!(admission.figures(), (0, 0));
        let state = admission.state();
        assert!(state.unauthenticated.is_empty() && state.callers.is_empty() && state.idle.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quarter_of_the_room_is_kept_for_those_with_few_calls() {
        let admission = Admission::new(Bounds { connections: 80, reserve: 4, per_address: 3, per_principal: 40 });
        let many: Vec<_> =
            (0..80).filter_map(|n| call(&admission, n, ["ada", "bob"][usize::from(n % 2)], false).ok()).collect();
        assert_eq!(many.len(), 60);
        let few: Vec<_> = (0..40).filter_map(|n| call(&admission, n, "eve", false).ok()).collect();
        assert_eq!(few.len(), FEW);
        assert_eq!(call(&admission, 1, "ada", false).unwrap_err(), Full::All { most: 60 });
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_the_room_is_kept_for_admins_and_for_newcomers() {
        let admission = Admission::new(BOUNDS);
        let mut calls = Vec::new();
        for (at, who) in ["ada", "ada", "bob", "bob"].iter().enumerate() {
            calls.push(call(&admission, at as u8, who, false).unwrap());
        }
        assert_eq!(call(&admission, 9, "eve", false).unwrap_err(), Full::All { most: 4 });
        calls.extend((0..2).map(|at| call(&admission, at, "boss", true).unwrap()));
        calls.push(call(&admission, 1, "chief", true).unwrap());
        assert_eq!(call(&admission, 1, "chief", true).unwrap_err(), Full::All { most: 7 });
        // No call gets the last place: new connections have it, one after the other, and can ask for health.
        let mut connections = Vec::new();
        for last in 0..20 {
            let admitted = admission.admit(source(last)).unwrap();
            drop(RequestPermit::begin(&admitted));
            pass().await;
            admission.until_vacant().await;
            connections.push(admitted);
        }
        assert_eq!(admission.figures(), (8, 7));
    }

    #[tokio::test(start_paused = true)]
    async fn the_address_that_has_most_gives_way() {
        let admission = Admission::new(Bounds { per_address: 8, ..BOUNDS });
        let quiet = admission.admit(source(2)).unwrap();
        pass().await;
        let crowd: Vec<_> = (0..7).map(|_| admission.admit(source(1)).unwrap()).collect();
        pass().await;
        admission.until_vacant().await;
        let _new = admission.admit(source(3)).unwrap();
        assert!(!is_evicted(&quiet) && is_evicted(&crowd[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_evicted_is_told() {
        let admission = Admission::new(Bounds { connections: 1, reserve: 0, ..BOUNDS });
        let first = admission.admit(source(1)).unwrap();
        // No connection is admitted before the first may be closed.
        let waited = Instant::now();
        admission.until_vacant().await;
        assert_eq!(waited.elapsed(), GRACE);
        let _second = admission.admit(source(2)).unwrap();
        first.evicted().await;
        drop(first);
        assert_eq!(admission.figures(), (1, 0));
    }
}
