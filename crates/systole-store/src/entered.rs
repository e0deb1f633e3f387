//! Values that a thread has while a guard lives: what surrounds the organisms of a test.

use std::cell::RefCell;
use std::thread::LocalKey;

/// A place for such a value.
pub type Place<T> = LocalKey<RefCell<Option<T>>>;

/// A guard: dropped, it takes the value away, and puts back the one before it.
pub struct Entered<T: 'static> {
    place: &'static Place<T>,
    before: Option<T>,
}

impl<T> Entered<T> {
    /// Sets the value of this thread.
    pub fn new(place: &'static Place<T>, value: T) -> Self {
        Self { place, before: place.replace(Some(value)) }
    }
}

impl<T> Drop for Entered<T> {
    fn drop(&mut self) {
        self.place.set(self.before.take());
    }
}
