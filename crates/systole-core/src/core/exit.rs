//! The exit of a client: the answers that it is owed or has not read, in all cores, with their bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of the answers that a client is owed or has not read, with their bounds.
///
/// An entrance takes a message only with a place for its answer, so an answer never finds the exit full: the bounds hold
/// back what comes in, and nothing that goes out is ever refused. The size of an answer isn't known before, so a place is
/// reserved for one as large as the largest of the latest answers, or as the message itself.
#[derive(Debug, Clone)]
pub struct Exit {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    answers: AtomicUsize,
    bytes: AtomicUsize,
    max_answers: usize,
    max_bytes: usize,
    /// The size of the largest of the latest answers: it forgets a sixteenth with each answer.
    largest: AtomicUsize,
}

/// Places of answers in an [`Exit`]; its drop gives them back.
#[derive(Debug)]
pub struct ExitPlace {
    exit: Exit,
    answers: u32,
    bytes: usize,
}

impl Exit {
    /// An exit with its bounds.
    pub fn new(max_answers: usize, max_bytes: usize) -> Self {
        let [answers, bytes, largest] = [0; 3].map(AtomicUsize::new);
        Self { inner: Arc::new(Inner { answers, bytes, max_answers, max_bytes, largest }) }
    }

    /// Reserves a place for the answer to a message of so many bytes; `None` if the exit is full. An empty exit has a place
    /// for an answer of any size.
    pub fn reserve(&self, message: usize) -> Option<ExitPlace> {
        let Inner { max_answers, max_bytes, ref largest, .. } = *self.inner;
        let place = self.take(message.max(largest.load(Ordering::Relaxed)));
        let (answers, bytes) = (self.answers(), self.bytes());
        let fits = bytes <= max_bytes || (answers == 1 && max_bytes > 0);
        (answers <= max_answers && fits).then_some(place)
    }

    /// Returns whether the exit has room for one more answer.
    pub fn has_room(&self) -> bool {
        self.answers() < self.inner.max_answers && self.bytes() < self.inner.max_bytes
    }

    /// Puts an answer of so many bytes into its place; without one, it gets a place regardless of the bounds.
    pub fn fill(&self, place: Option<ExitPlace>, bytes: usize) -> ExitPlace {
        let decayed = |largest: usize| Some((largest - largest / 16).max(bytes));
        let _ = self.inner.largest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decayed);
        let filled = self.take(bytes);
        drop(place);
        filled
    }

    /// Answers that are owed or unread.
    pub fn answers(&self) -> usize {
        self.inner.answers.load(Ordering::Relaxed)
    }

    /// Bytes that are reserved or unread.
    pub fn bytes(&self) -> usize {
        self.inner.bytes.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> ExitPlace {
        self.inner.answers.fetch_add(1, Ordering::Relaxed);
        self.inner.bytes.fetch_add(bytes, Ordering::Relaxed);
        ExitPlace { exit: self.clone(), answers: 1, bytes }
    }
}

impl ExitPlace {
    /// Adds the places of another value, of the same exit.
    pub(super) fn join(&mut self, mut other: Self) {
        self.answers += std::mem::take(&mut other.answers);
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Number of answers that have a place.
    pub(super) fn answers(&self) -> u32 {
        self.answers
    }

    /// Splits off one of several places; none of a single one.
    pub(super) fn split(&mut self) -> Option<Self> {
        let rest = self.answers.checked_sub(1).filter(|rest| *rest > 0)?;
        let bytes = self.bytes / self.answers as usize;
        (self.answers, self.bytes) = (rest, self.bytes - bytes);
        Some(Self { exit: self.exit.clone(), answers: 1, bytes })
    }
}

impl Drop for ExitPlace {
    fn drop(&mut self) {
        self.exit.inner.answers.fetch_sub(self.answers as usize, Ordering::Relaxed);
        self.exit.inner.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(exit: &Exit) -> (usize, usize) {
        (exit.answers(), exit.bytes())
    }

    #[test]
    fn an_exit_takes_no_more_than_it_can_hold() {
        let exit = Exit::new(3, 100);
        let first = exit.reserve(40).unwrap();
        let second = exit.reserve(40).unwrap();
        assert!(exit.reserve(40).is_none(), "too many bytes");
        let third = exit.reserve(20).unwrap();
        assert!(exit.reserve(0).is_none(), "too many answers");
        assert_eq!(held(&exit), (3, 100));
        assert!(!exit.has_room());
        drop((first, second, third));
        assert_eq!(held(&exit), (0, 0));
    }

    #[test]
    fn an_empty_exit_has_a_place_for_any_answer_but_a_closed_one_for_none() {
        let exit = Exit::new(1, 100);
        let large = exit.reserve(1_000).unwrap();
        assert!(exit.reserve(1).is_none());
        drop(large);
        assert!(Exit::new(0, 100).reserve(1).is_none());
        assert!(Exit::new(1, 0).reserve(1).is_none());
    }

    #[test]
    fn a_place_is_as_large_as_the_latest_answers() {
        let exit = Exit::new(100, 1_000);
        let place = exit.reserve(10);
        drop(exit.fill(place, 400));
        let places: Vec<_> = std::iter::from_fn(|| exit.reserve(10)).collect();
        assert_eq!((places.len(), exit.bytes()), (2, 800));
        drop(places);
        for _ in 0..100 {
            drop(exit.fill(None, 10));
        }
        assert_eq!(std::iter::from_fn(|| exit.reserve(10)).take(200).collect::<Vec<_>>().len(), 66, "of 15 bytes each");
        assert_eq!(held(&exit), (0, 0));
    }

    #[test]
    fn places_of_one_conversation_are_one_value() {
        let exit = Exit::new(10, 1_000);
        let mut places = exit.reserve(10).unwrap();
        places.join(exit.reserve(20).unwrap());
        places.join(exit.reserve(30).unwrap());
        assert_eq!((places.answers(), held(&exit)), (3, (3, 60)));
        let one = places.split().unwrap();
        assert_eq!((places.answers(), held(&exit)), (2, (3, 60)));
        drop(one);
        assert_eq!(held(&exit), (2, 40));
        assert!(places.split().is_some());
        assert!(places.split().is_none());
        drop(places);
        assert_eq!(held(&exit), (0, 0));
    }
}
