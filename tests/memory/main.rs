//! What conversions hold in memory, counted by an allocator, which is one for the whole program.

#[path = "../support/counting.rs"]
mod counting;
#[path = "../support/mod.rs"]
mod support;

mod growth;
mod hostile;
mod peaks;
mod random;

use std::env;
use std::thread;
use support::in_own_process;

/// Whether the test that calls it is alone in its process, so that it may count all bytes of that.
/// If it is not, it has passed in a process of its own, as others do at the same time.
fn is_alone() -> bool {
    const ALONE: &str = "TOWEBP_MEMORY_ALONE";
    let thread = thread::current();
    let test = thread.name().expect("the harness names threads by tests");
    // Where only one test may run at a time, the harness has no threads for them.
    if test == "main" || env::var_os(ALONE).is_some() {
        return true;
    }
    print!("{}", in_own_process(test, &[(ALONE, "1")]));
    false
}

#[test]
fn the_peak_is_counted_and_not_the_sum() {
    if !is_alone() {
        return;
    }
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
