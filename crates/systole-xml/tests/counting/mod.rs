//! An allocator that counts, for whole programs of tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each thread, and its bytes.
struct Counting;

thread_local! {
    pub(crate) static COUNT: Cell<usize> = const { Cell::new(0) };
    /// What the thread has allocated less what it has freed, and the most that this was.
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
// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        count(size, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
