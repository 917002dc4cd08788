//! Whether the door's thread goes round still, for a watchdog.

use mio::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Counts the turns of the door's thread. A clone counts the same.
#[derive(Clone, Debug)]
pub struct Pulse {
    turns: Arc<AtomicU64>,
    waker: Arc<Waker>,
}

impl Pulse {
    pub(super) fn new(waker: Arc<Waker>) -> Pulse {
        Pulse {
            turns: Arc::default(),
            waker,
        }
    }

    pub(super) fn beat(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes the thread, and says whether it goes round within this time.
    pub fn is_felt(&self, within: Duration) -> bool {
        let before = self.turns.load(Ordering::Relaxed);
        let start = Instant::now();
        if self.waker.wake().is_err() {
            return false;
        }
        while self.turns.load(Ordering::Relaxed) == before {
            if start.elapsed() >= within {
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
    fn a_thread_that_goes_round_is_felt_and_one_that_hangs_is_not() {
        let mut poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let pulse = Pulse::new(waker);
        assert!(!pulse.is_felt(Duration::from_millis(20)), "nobody turns");
        let turning = pulse.clone();
        let round = thread::spawn(move || {
            let mut events = Events::with_capacity(1);
            for _ in 0..2 {
                poll.poll(&mut events, None).unwrap();
                turning.beat();
            }
        });
        // The first turn was asked for above.
        while !round.is_finished() {
            pulse.is_felt(Duration::from_millis(100));
        }
        round.join().unwrap();
        assert_eq!(pulse.turns.load(Ordering::Relaxed), 2);
    }
}
