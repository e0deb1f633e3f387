//! Bounds on the bytes of bodies in memory, of requests and of pages that are answered: of one principal, and of all
//! together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;

use crate::accept::Carrying;
use crate::gateway::problem::Problem;
use crate::vocab::Name;

/// The bytes of all bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    most: usize,
    most_of_one: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    principals: HashMap<Name, usize>,
}

impl Bodies {
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, state: Mutex::default() })
    }

    /// The body of a request of that principal, of which nothing is read yet.
    pub(super) fn hold(self: &Arc<Self>, of: Name) -> Held {
        Held { bodies: self.clone(), of, bytes: Mutex::new(0) }
    }

    /// Bytes that one page may have: as many as that, and so few that the pages of a principal always fit.
    pub(super) fn page(&self, most: usize) -> usize {
        most.min(self.most_of_one / 2)
    }

    /// Bytes of all bodies in memory.
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}

/// The bytes of one body that are in memory, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    bodies: Arc<Bodies>,
    of: Name,
    bytes: Mutex<usize>,
}

impl Held {
    /// The same answer, whose messages have so many bytes: they count until it is sent, or nobody takes it.
    pub(super) fn weigh(self, bytes: usize, response: Response) -> Result<Response, Problem> {
        self.more(bytes)?;
        Ok(response.map(|body| Body::new(Carrying { body, _until_sent: self })))
    }

    /// Some bytes more, unless there are too many.
    pub(super) fn more(&self, bytes: usize) -> Result<(), Problem> {
        let Bodies { most, most_of_one, state } = &*self.bodies;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bytes.saturating_add(bytes) > *most {
            let detail =
                format!("the bodies of all calls under way have {most} bytes, as many as may: try again later");
            return Err(Problem::bodies(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
        let own = state.principals.get(&self.of).copied().unwrap_or_default();
        if own.saturating_add(bytes) > *most_of_one {
            let detail = format!(
                "the bodies of the calls of {} that are under way have {most_of_one} bytes, as many as may: send fewer \
                 at once",
                self.of
            );
            return Err(Problem::bodies(StatusCode::TOO_MANY_REQUESTS, detail));
        }
        state.bytes += bytes;
        *state.principals.entry(self.of.clone()).or_default() += bytes;
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        Ok(())
    }
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
    use super::*;

    #[test]
    fn what_is_held_is_bounded_of_one_and_of_all_and_given_back() {
        let bodies = Bodies::new(100, 60);
        let [ada, bob] = ["ada", "bob"].map(|name| Name::parse(name).unwrap());
        let (first, second) = (bodies.hold(ada.clone()), bodies.hold(ada.clone()));
        first.more(40).unwrap();
        second.more(20).unwrap();
        second.more(1).unwrap_err();
        let third = bodies.hold(bob.clone());
        third.more(40).unwrap();
        third.more(1).unwrap_err();
        drop(first);
        third.more(1).unwrap();
        second.more(39).unwrap();
        drop((second, third));
        assert_eq!(bodies.bytes(), 0);
        assert!(bodies.state.lock().unwrap().principals.is_empty());
    }
}
