//! Whether the event loop's thread still goes round, for a watchdog.

use mio::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Counts the turns of the event loop. Clones share the counter.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    turns: Arc<AtomicU64>,
    waker: Arc<Waker>,
}

impl Heartbeat {
    pub(super) fn new(waker: Arc<Waker>) -> Heartbeat {
        Heartbeat {
            turns: Arc::default(),
            waker,
        }
    }

    pub(super) fn beat(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes the event loop and waits until it has made a turn; `false` if it makes none within
    /// this time.
    pub fn beats_within(&self, time: Duration) -> bool {
        let before = self.turns.load(Ordering::Relaxed);
        let start = Instant::now();
        if self.waker.wake().is_err() {
            return false;
        }
        while self.turns.load(Ordering::Relaxed) == before {
            if start.elapsed() >= time {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll, Token};

    #[test]
    fn a_thread_that_goes_round_beats_and_one_that_hangs_does_not() {
        let mut poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let heartbeat = Heartbeat::new(waker);
        assert!(
            !heartbeat.beats_within(Duration::from_millis(20)),
            "no thread goes round"
        );
        let beating = heartbeat.clone();
        let thread = thread::spawn(move || {
            let mut events = Events::with_capacity(1);
            for _ in 0..2 {
                poll.poll(&mut events, None).unwrap();
                beating.beat();
            }
        });
        // The first turn was requested above.
        while !thread.is_finished() {
            heartbeat.beats_within(Duration::from_millis(100));
        }
        thread.join().unwrap();
        assert_eq!(heartbeat.turns.load(Ordering::Relaxed), 2);
    }
}
