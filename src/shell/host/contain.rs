use std::panic::{AssertUnwindSafe, catch_unwind};

/// A listener's own code panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Panicked;

/// Runs code of a listener.
///
/// What it leaves behind is thrown away after a panic (the instance, the future), so nothing sees
/// it half changed.
pub(super) fn contain<R>(code: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        // Dropping what was thrown may throw again; it is the listener's too.
        if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
            std::mem::forget(second);
        }
        Panicked
    })
}

/// Drops a value of a listener, whose `Drop` may panic.
pub(super) fn discard<T>(value: T) {
    // A panic here has no message to fail: whatever this belonged to has ended already.
    let _ = contain(move || drop(value));
}
