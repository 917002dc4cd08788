//! What conversions hold in memory, counted by an allocator, which is one for the whole program.

#[path = "../support/counting.rs"]
mod counting;
#[path = "../support/mod.rs"]
mod support;

mod growth;
mod hostile;
mod peaks;
mod random;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Tests that count the bytes of the whole process hold it for writing, all others for reading.
static COUNTER: RwLock<()> = RwLock::new(());

/// Waits until no other test of this program runs, and keeps others waiting.
fn alone() -> RwLockWriteGuard<'static, ()> {
    COUNTER.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no test that wants to be alone runs.
fn beside_others() -> RwLockReadGuard<'static, ()> {
    COUNTER.read().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_peak_is_counted_and_not_the_sum() {
    let _alone = alone();
    let work = || {
        for _ in 0..3 {
            let mut buffer = vec![0u8; 100_000];
            buffer.reserve_exact(200_000);
        }
    };
    let ((), of_thread) = counting::peak_of_thread(work);
    assert!((300_000..300_100).contains(&of_thread), "{of_thread}");
    let ((), of_process) = counting::peak_of_process(work);
    // The test program's own threads may allocate and free some bytes meanwhile.
    assert!((290_000..350_000).contains(&of_process), "{of_process}");
}
