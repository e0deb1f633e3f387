//! A counting allocator, the global one of this test program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations and the bytes of each thread.
struct Counting;

thread_local! {
    pub(crate) static COUNT: Cell<usize> = const { Cell::new(0) };
    /// The bytes that the thread has allocated and not freed, and their greatest number so far.
    pub(crate) static BYTES: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(more: usize, less: usize) {
    let change = more.cast_signed() - less.cast_signed();
    let _ = BYTES.try_with(|bytes| {
        let (held, most) = bytes.get();
        bytes.set((held + change, most.max(held + change)));
    });
}

#[allow(unsafe_code, reason = "an allocator can't be written without")]
// SAFETY: every call is passed on unchanged to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        count(size, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
