//! Bounds on the bytes of bodies in memory, of requests and of answers with messages: of one principal, and of all
//! together. Messages are read for an answer in turns ([`Held::turn`]), so that what is read at once is bounded, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use systole_core::vocab::Name;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::accept::GuardedBody;
use crate::gateway::problem::Problem;

/// Bytes of messages that are read for answers at once.
const READING: usize = 32 << 20;

/// Most bytes of a principal that may use the last quarter of the room, too: a few principals with much can't keep
/// the others out.
const SHARE: usize = 1 << 20;

/// The unit in which turns are taken, in bytes.
const UNIT: usize = 1 << 10;

/// The bytes of all bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    most: usize,
    most_of_one: usize,
    state: Mutex<State>,
    reading: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    principals: HashMap<Name, usize>,
}

impl Bodies {
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        let reading = Arc::new(Semaphore::new(READING / UNIT));
        Arc::new(Self { most, most_of_one, state: Mutex::default(), reading })
    }

    /// The body of a request of a principal, still empty.
    pub(super) fn hold(self: &Arc<Self>, of: Name) -> Held {
        Held { bodies: self.clone(), of, bytes: Mutex::new(0) }
    }

    /// Bytes that one answer may have: at most `most`, and few enough that two answers of a principal fit.
    pub(super) fn page(&self, most: usize) -> usize {
        most.min(self.most_of_one / 2)
    }

    /// Checks that a principal with no other body has room for one of so many bytes.
    ///
    /// # Errors
    /// [`Problem`] if there is none.
    pub(super) fn room(&self, bytes: usize) -> Result<(), Problem> {
        if self.bytes().saturating_add(bytes) > self.most { Err(all_taken(self.most)) } else { Ok(()) }
    }

    /// Bytes of all bodies in memory.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

/// A turn to read messages for an answer, until it is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub(crate) struct Turn {
    _of: Option<OwnedSemaphorePermit>,
}

/// The bytes of one body that are in memory, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bodies: Arc<Bodies>,
    of: Name,
    bytes: Mutex<usize>,
}

impl Held {
    /// Waits for the turn to read messages of at most so many bytes, for an answer.
    ///
    /// # Errors
    /// [`Problem`] if even a few bytes have no room beside the bodies in memory: nothing may be read then.
    pub(crate) async fn turn(&self, bytes: usize) -> Result<Turn, Problem> {
        let units = u32::try_from(bytes.clamp(1, READING).div_ceil(UNIT)).unwrap_or(u32::MAX);
        let turn = self.bodies.reading.clone().acquire_many_owned(units).await.ok();
        let state = self.bodies.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fits(&state, self.bodies.page(bytes).min(SHARE))?;
        Ok(Turn { _of: turn })
    }

    /// Counts the bytes of an answer's messages until it is sent or dropped.
    ///
    /// # Errors
    /// [`Problem`] if they are too many: the answer may not be sent then.
    pub(crate) fn weigh(self, bytes: usize, response: Response) -> Result<Response, Problem> {
        self.more(bytes)?;
        Ok(self.until_sent(response))
    }

    /// Counts the same bytes for the answer to a call that had an effect, which is sent in any case.
    pub(super) fn count(self, bytes: usize, response: Response) -> Response {
        self.add(&mut self.bodies.state.lock().unwrap_or_else(PoisonError::into_inner), bytes);
        self.until_sent(response)
    }

    fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(GuardedBody::new(body, self)))
    }

    /// Adds bytes, unless there are too many.
    pub(super) fn more(&self, bytes: usize) -> Result<(), Problem> {
        let mut state = self.bodies.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fits(&state, bytes)?;
        self.add(&mut state, bytes);
        Ok(())
    }

    fn fits(&self, state: &State, bytes: usize) -> Result<(), Problem> {
        let Bodies { most, most_of_one, .. } = &*self.bodies;
        let own = state.principals.get(&self.of).copied().unwrap_or_default();
        let for_it = if own.saturating_add(bytes) <= SHARE { *most } else { (most - most / 4).max(*most_of_one) };
        if state.bytes.saturating_add(bytes) > for_it {
            return Err(all_taken(for_it));
        }
        if own.saturating_add(bytes) > *most_of_one {
            let detail = format!(
                "the bodies of calls of {} in flight have {most_of_one} bytes, the most allowed: send fewer at once",
                self.of
            );
            return Err(Problem::bodies(StatusCode::TOO_MANY_REQUESTS, detail));
        }
        Ok(())
    }

    fn add(&self, state: &mut State, bytes: usize) {
        state.bytes += bytes;
        *state.principals.entry(self.of.clone()).or_default() += bytes;
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
    }
}

fn all_taken(most: usize) -> Problem {
    let detail = format!("the bodies of all calls in flight have {most} bytes, the most allowed: try again later");
    Problem::bodies(StatusCode::SERVICE_UNAVAILABLE, detail)
}

impl Drop for Held {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.bodies.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes -= bytes;
        if let Some(own) = state.principals.get_mut(&self.of) {
            *own -= bytes;
            if *own == 0 {
                state.principals.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn what_is_read_at_once_is_bounded_and_nothing_is_read_without_room() {
        let bodies = Bodies::new(100 << 20, 40 << 20);
        let [ada, bob] = ["ada", "bob"].map(|name| Name::parse(name).unwrap());
        let (first, second) = (bodies.hold(ada.clone()), bodies.hold(bob));
        let turn = first.turn(READING).await.unwrap();
        let mut waiting = std::pin::pin!(second.turn(1));
        let polled = std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending()));
        assert!(polled.await);
        drop(turn);
        drop(waiting.await.unwrap());
        let unsent = bodies.hold(ada);
        unsent.more(40 << 20).unwrap();
        first.turn(40 << 20).await.unwrap_err();
        drop(second.turn(40 << 20).await.unwrap());
        drop(unsent);
        drop(first.turn(40 << 20).await.unwrap());
    }

    #[test]
    fn a_few_with_much_leave_room_for_those_with_little() {
        let bodies = Bodies::new(64 << 20, 16 << 20);
        let held: Vec<_> = (0..4).map(|n| bodies.hold(Name::parse(&format!("hog-{n}")).unwrap())).collect();
        let taken: usize = held.iter().map(|held| (0..16).filter(|_| held.more(1 << 20).is_ok()).count()).sum();
        assert_eq!(taken, 49, "three quarters, and the first MiB of the last");
        let ada = bodies.hold(Name::parse("ada").unwrap());
        ada.more(1 << 20).unwrap();
        ada.more(1).unwrap_err();
        // The limit of a principal may be the whole room.
        let bodies = Bodies::new(8 << 20, 8 << 20);
        bodies.hold(Name::parse("ada").unwrap()).more(8 << 20).unwrap();
    }

    #[test]
    fn what_is_held_is_bounded_of_one_and_of_all_and_given_back() {
        let bodies = Bodies::new(100, 60);
        let [ada, bob] = ["ada", "bob"].map(|name| Name::parse(name).unwrap());
        let (first, second) = (bodies.hold(ada.clone()), bodies.hold(ada.clone()));
        first.more(40).unwrap();
        second.more(20).unwrap();
        second.more(1).unwrap_err();
        let third = bodies.hold(bob.clone());
        bodies.room(40).unwrap();
        third.more(40).unwrap();
        bodies.room(1).unwrap_err();
        third.more(1).unwrap_err();
        drop(first);
        third.more(1).unwrap();
        second.more(39).unwrap();
        drop((second, third));
        assert_eq!(bodies.bytes(), 0);
        assert!(bodies.state.lock().unwrap().principals.is_empty());
    }
}
