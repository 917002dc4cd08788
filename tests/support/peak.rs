//! The most bytes that a program holds at once, of all its threads.

use super::counting::Counting;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Bytes that are held now, and most so far, by all threads.
static HELD: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting(count);

fn count(change: isize) {
    let held = HELD.fetch_add(change, Ordering::Relaxed) + change;
    MOST.fetch_max(held, Ordering::Relaxed);
}

/// What `work` gives, and the most bytes that were held during it beyond what was held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let done = work();
    let most = MOST.load(Ordering::Relaxed) - before;
    (done, most.try_into().expect("no less than before"))
}
