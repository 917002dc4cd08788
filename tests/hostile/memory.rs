//! Counts the memory that a thread holds.

use super::support::counting::Counting;
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting(count);

fn count(change: isize) {
    // At a thread's end its counters may be gone already.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

/// What `work` gives, and the most bytes that this thread held during it beyond what it held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, (MOST.get() - before) as usize)
}

#[test]
fn the_peak_is_counted_and_not_the_sum() {
    let ((), peak) = peak(|| {
        for _ in 0..3 {
            let mut buffer = vec![0u8; 1000];
            buffer.reserve_exact(2000);
        }
    });
    assert!((3000..3100).contains(&peak), "{peak}");
}
