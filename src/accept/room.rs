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
pub(crate) struct Room {
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
    resting: BTreeSet<(Instant, u64)>,
    /// Number of connections of each address without a call of a principal.
    strangers: HashMap<Source, usize>,
    /// Calls in flight of each principal, and of all.
    callers: HashMap<Name, usize>,
    calls: usize,
}

#[derive(Debug)]
struct Connection {
    source: Source,
    doing: Doing,
    evicted: Arc<Notify>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    /// Waits for a head or is slowed down, and may be closed from that moment on.
    Rests(Instant),
    /// Serves a request without an authenticated principal.
    Asks,
    /// Serves a call of a principal.
    Calls(Name),
}

impl Room {
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
    pub(super) async fn vacancy(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let first = {
                let state = self.state();
                if state.connections.len() < self.most() {
                    return;
                }
                state.resting.first().map(|(from, _)| *from)
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
    pub(super) async fn emptied(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.state().connections.is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// Admits a connection. Where there is no room, a resting one is closed: one of the same address if that has its
    /// most connections, else one of the address that has most.
    pub(super) fn let_in(self: &Arc<Self>, source: Source) -> Result<Arc<Stay>, Full> {
        let (mut state, most, now) = (self.state(), self.bounds.per_address, Instant::now());
        // An address at its limit takes no place of other addresses: one of its own connections is closed.
        let is_full = state.strangers.get(&source).is_some_and(|count| *count >= most);
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
        state.connections.insert(number, Connection { source, doing: Doing::Asks, evicted: evicted.clone() });
        *state.strangers.entry(source).or_default() += 1;
        state.turn(number, Doing::Rests(now + GRACE));
        drop(state);
        Ok(Arc::new(Stay { room: self.clone(), number, source, evicted }))
    }

    /// Closes some resting connections; returns their number.
    pub(super) fn make_room(&self, most: usize) -> usize {
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
    fn turn(&mut self, number: u64, to: Doing) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let source = connection.source;
        let from = std::mem::replace(&mut connection.doing, to.clone());
        match &from {
            Doing::Rests(from) => drop(self.resting.remove(&(*from, number))),
            Doing::Asks => {}
            Doing::Calls(name) => {
                less(&mut self.callers, name);
                self.calls -= 1;
                *self.strangers.entry(source).or_default() += 1;
            }
        }
        match to {
            Doing::Rests(from) => drop(self.resting.insert((from, number))),
            Doing::Asks => {}
            Doing::Calls(name) => {
                *self.callers.entry(name).or_default() += 1;
                self.calls += 1;
                less(&mut self.strangers, &source);
            }
        }
    }

    fn leave(&mut self, number: u64) {
        // The call of a connection ends with it.
        self.turn(number, Doing::Asks);
        if let Some(connection) = self.connections.remove(&number) {
            less(&mut self.strangers, &connection.source);
        }
    }

    /// The addresses with the most connections.
    fn crowded(&self) -> Vec<Source> {
        let most = self.strangers.values().max().copied().unwrap_or_default();
        self.strangers.iter().filter(|(_, count)| **count == most).map(|(source, _)| *source).collect()
    }

    /// Closes the connection of these addresses that rests for the longest time; false if none rests.
    fn evict(&mut self, of: &[Source], now: Instant) -> bool {
        self.evict_where(now, |connection| of.contains(&connection.source))
    }

    fn evict_any(&mut self, now: Instant) -> bool {
        self.evict_where(now, |_| true)
    }

    fn evict_where(&mut self, now: Instant, wanted: impl Fn(&Connection) -> bool) -> bool {
        let due = self.resting.iter().take_while(|(from, _)| *from <= now);
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
fn less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// The place of a connection, until this value is dropped.
#[derive(Debug)]
pub(super) struct Stay {
    room: Arc<Room>,
    number: u64,
    source: Source,
    evicted: Arc<Notify>,
}

impl Stay {
    /// Waits until the connection has to be closed.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.room.state().leave(self.number);
        self.room.changed.notify_waiters();
    }
}

/// A request of a connection, among the extensions of the request. It is in flight until all clones are dropped.
#[derive(Debug, Clone)]
pub(crate) struct Visit(Arc<Turn>);

#[derive(Debug)]
struct Turn {
    stay: Arc<Stay>,
}

impl Visit {
    pub(super) fn begin(stay: &Arc<Stay>) -> Self {
        stay.room.state().turn(stay.number, Doing::Asks);
        Self(Arc::new(Turn { stay: stay.clone() }))
    }

    /// The source address of the client.
    pub(crate) fn source(&self) -> Source {
        self.0.stay.source
    }

    /// Makes the request a call of that principal.
    ///
    /// # Errors
    /// [`Full`] if there are too many.
    pub(crate) fn enter(&self, name: &Name, is_admin: bool) -> Result<(), Full> {
        let Stay { room, number, .. } = &*self.0.stay;
        let Bounds { connections, reserve, per_principal, .. } = room.bounds;
        let mut state = room.state();
        let own = state.callers.get(name).copied().unwrap_or_default();
        if own >= per_principal {
            return Err(Full::Principal { name: name.clone(), most: per_principal });
        }
        let most = match is_admin {
            // A part of the reserve stays free, so that a new connection finds a place.
            true => connections.saturating_add(reserve - reserve.div_ceil(4)),
            false if own < FEW => connections,
            false => (connections - connections / 4).max(per_principal),
        };
        if state.calls >= most {
            return Err(Full::All { most });
        }
        state.turn(*number, Doing::Calls(name.clone()));
        Ok(())
    }

    /// Lets the connection be closed for another one from now on: its answer is delayed.
    pub(crate) fn rest(&self) {
        self.0.rest(Instant::now());
    }

    /// Keeps the connection again: its answer is made now.
    pub(crate) fn ask(&self) {
        let stay = &self.0.stay;
        stay.room.state().turn(stay.number, Doing::Asks);
    }
}

impl Turn {
    fn rest(&self, from: Instant) {
        self.stay.room.state().turn(self.stay.number, Doing::Rests(from));
        self.stay.room.changed.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.rest(Instant::now() + GRACE);
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
    fn call(room: &Arc<Room>, last: u8, who: &str, is_admin: bool) -> Result<Visit, Full> {
        let visit = Visit::begin(&room.let_in(source(last))?);
        visit.enter(&name(who), is_admin).map(|()| visit)
    }

    fn is_evicted(stay: &Stay) -> bool {
        !stay.room.state().connections.contains_key(&stay.number)
    }

    /// Lets the time pass after which resting connections may be closed.
    async fn pass() {
        tokio::time::advance(GRACE).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_connection_of_an_address_gives_its_place_to_a_new_one() {
        let room = Room::new(BOUNDS);
        let other = room.let_in(source(2)).unwrap();
        let stays: Vec<_> = (0..3).map(|_| room.let_in(source(1)).unwrap()).collect();
        // The first one has made a request since.
        pass().await;
        drop(Visit::begin(&stays[0]));
        let _new = room.let_in(source(1)).unwrap();
        assert_eq!(stays.iter().map(|stay| is_evicted(stay)).collect::<Vec<_>>(), [false, true, false]);
        assert!(!is_evicted(&other));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_whose_requests_are_all_under_way_is_full_and_no_other_is() {
        let room = Room::new(BOUNDS);
        let stays: Vec<_> = (0..3).map(|_| room.let_in(source(1)).unwrap()).collect();
        let visits: Vec<_> = stays.iter().map(Visit::begin).collect();
        assert_eq!(room.let_in(source(1)).unwrap_err(), Full::Address { most: 3 });
        room.let_in(source(2)).unwrap();
        // A connection that is slowed down is closed.
        visits[1].rest();
        room.let_in(source(1)).unwrap();
        assert!(is_evicted(&stays[1]));
        // A connection keeps its place once it is answered.
        let third = room.let_in(source(1)).unwrap();
        let _visit = Visit::begin(&third);
        visits[2].rest();
        visits[2].ask();
        assert_eq!(room.let_in(source(1)).unwrap_err(), Full::Address { most: 3 });
    }

    #[tokio::test(start_paused = true)]
    async fn calls_of_a_principal_are_not_counted_for_its_address_and_bounded_for_themselves() {
        let room = Room::new(BOUNDS);
        let calls: Vec<_> = (0..2).map(|_| call(&room, 1, "ada", false).unwrap()).collect();
        assert_eq!(call(&room, 1, "ada", false).unwrap_err(), Full::Principal { name: name("ada"), most: 2 });
        let strangers: Vec<_> = (0..3).map(|_| room.let_in(source(1)).unwrap()).collect();
        assert_eq!(room.figures(), (5, 2));
        drop((calls, strangers));
        assert_eq!(room.figures(), (0, 0));
        let state = room.state();
        assert!(state.strangers.is_empty() && state.callers.is_empty() && state.resting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quarter_of_the_room_is_kept_for_those_with_few_calls() {
        let room = Room::new(Bounds { connections: 80, reserve: 4, per_address: 3, per_principal: 40 });
        let many: Vec<_> =
            (0..80).filter_map(|n| call(&room, n, ["ada", "bob"][usize::from(n % 2)], false).ok()).collect();
        assert_eq!(many.len(), 60);
        let few: Vec<_> = (0..40).filter_map(|n| call(&room, n, "eve", false).ok()).collect();
        assert_eq!(few.len(), FEW);
        assert_eq!(call(&room, 1, "ada", false).unwrap_err(), Full::All { most: 60 });
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_the_room_is_kept_for_admins_and_for_newcomers() {
        let room = Room::new(BOUNDS);
        let mut calls = Vec::new();
        for (at, who) in ["ada", "ada", "bob", "bob"].iter().enumerate() {
            calls.push(call(&room, at as u8, who, false).unwrap());
        }
        assert_eq!(call(&room, 9, "eve", false).unwrap_err(), Full::All { most: 4 });
        calls.extend((0..2).map(|at| call(&room, at, "boss", true).unwrap()));
        calls.push(call(&room, 1, "chief", true).unwrap());
        assert_eq!(call(&room, 1, "chief", true).unwrap_err(), Full::All { most: 7 });
        // No call gets the last place: new connections have it, one after the other, and can ask for health.
        let mut stays = Vec::new();
        for last in 0..20 {
            let stay = room.let_in(source(last)).unwrap();
            drop(Visit::begin(&stay));
            pass().await;
            room.vacancy().await;
            stays.push(stay);
        }
        assert_eq!(room.figures(), (8, 7));
    }

    #[tokio::test(start_paused = true)]
    async fn the_address_that_has_most_gives_way() {
        let room = Room::new(Bounds { per_address: 8, ..BOUNDS });
        let quiet = room.let_in(source(2)).unwrap();
        pass().await;
        let crowd: Vec<_> = (0..7).map(|_| room.let_in(source(1)).unwrap()).collect();
        pass().await;
        room.vacancy().await;
        let _new = room.let_in(source(3)).unwrap();
        assert!(!is_evicted(&quiet) && is_evicted(&crowd[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_evicted_is_told() {
        let room = Room::new(Bounds { connections: 1, reserve: 0, ..BOUNDS });
        let first = room.let_in(source(1)).unwrap();
        // No connection is admitted before the first may be closed.
        let waited = Instant::now();
        room.vacancy().await;
        assert_eq!(waited.elapsed(), GRACE);
        let _second = room.let_in(source(2)).unwrap();
        first.evicted().await;
        drop(first);
        assert_eq!(room.figures(), (1, 0));
    }
}
