//! Counts the heap of a whole program, to report what a client of a run weighs.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The allocator of the system, counted.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts and passes on")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller's promise about `layout` is forwarded.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `place` came from `alloc` above with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes held at any moment of this, beyond those held before.
pub(crate) fn peak<T>(what: impl FnOnce() -> T) -> usize {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    drop(what());
    PEAK.load(Relaxed) - before
}
