//! Panics of listeners, caught: the code of a listener fails its message, never the pump.

use std::panic::{AssertUnwindSafe, catch_unwind};

use systole_xml::schema::Decoded;

/// A listener's own code panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Runs code of a listener.
///
/// The instance and the future of the listener are dropped after a panic, so no code sees them half changed.
pub fn catch_panic<R>(code: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        // Dropping what was thrown may throw again; it is the listener's too.
        if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(second);
        }
        Panicked
    })
}

/// Drops a value of a listener, whose `Drop` may panic.
pub fn discard<T>(value: T) {
    // A panic here has no message to fail: whatever this belonged to has ended already.
    let _ = catch_panic(move || drop(value));
}

/// A decoded value on its way to its listener, which alone knows the type.
///
/// The pump may drop it anywhere, when its message is cancelled: a panic in its `Drop` is caught.
#[derive(Debug)]
pub struct Value(pub(super) Option<Decoded>);

impl Value {
    /// Wraps a value.
    pub fn new(value: Decoded) -> Self {
        Self(Some(value))
    }

    /// Takes the value out: a panic in its `Drop` is no longer caught.
    pub fn into_inner(mut self) -> Decoded {
        self.0.take().expect("it is taken once, here")
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            discard(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("as told"));
        }
    }

    #[test]
    fn a_value_that_panics_when_it_is_dropped_hurts_nobody() {
        drop(Value::new(Box::new(Bomb)));
        let value = Value::new(Box::new(Bomb)).into_inner();
        assert!(catch_panic(move || drop(value)).is_err(), "whoever took it takes what it does");
        assert!(catch_panic(|| std::panic::resume_unwind(Box::new(Bomb))).is_err());
    }
}
