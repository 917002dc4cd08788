//! The most bytes that a program holds at once, counted by its global allocator: of all threads, or
//! of one.
//!
//! A program that includes this file gets the allocator with it.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one passes all on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Bytes held now by all threads.
static HELD: AtomicIsize = AtomicIsize::new(0);

/// The largest value of [`HELD`] since it was last reset.
static MOST: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// Bytes allocated less bytes freed by this thread.
    static HELD_BY_THREAD: Cell<isize> = const { Cell::new(0) };

    /// The largest value of [`HELD_BY_THREAD`] since it was last reset.
    static MOST_BY_THREAD: Cell<isize> = const { Cell::new(0) };
}

/// Runs `work`, and returns its value and the most bytes that all threads together held meanwhile
/// beyond what they held before. Other work at the same time is counted with it.
pub fn peak_of_process<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let done = work();
    let most = MOST.load(Ordering::Relaxed) - before;
    (done, most.try_into().expect("no less than before"))
}

/// Runs `work`, and returns its value and the most bytes that this thread held meanwhile beyond
/// what it held before.
pub fn peak_of_thread<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD_BY_THREAD.get();
    MOST_BY_THREAD.set(before);
    let done = work();
    let most = MOST_BY_THREAD.get() - before;
    (done, most.try_into().expect("no less than before"))
}

/// The system's allocator, which counts what it hands out.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Counts bytes: positive where they are allocated, negative where they are freed.
fn count(change: isize) {
    let held = HELD.fetch_add(change, Ordering::Relaxed) + change;
    MOST.fetch_max(held, Ordering::Relaxed);
    // At a thread's end its counters may be gone already.
    let _ = HELD_BY_THREAD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST_BY_THREAD.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }
}
