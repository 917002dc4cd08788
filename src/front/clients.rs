//! Whether the client of a request is still there, for those who work on the request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Says whether a client has gone away. A clone says the same.
#[derive(Clone, Debug)]
pub struct Gone {
    flag: Arc<AtomicBool>,
    whole_since: Instant,
}

impl Default for Gone {
    /// Of a request that is whole now.
    fn default() -> Gone {
        Gone::since(Instant::now())
    }
}

impl Gone {
    /// Whether nobody waits for the answer any more: the client closed its connection, or its sending side.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// When the request was whole, and began to wait for a worker.
    pub fn whole_since(&self) -> Instant {
        self.whole_since
    }

    /// The flag itself, for those who know of no clients.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    pub(super) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    fn since(whole_since: Instant) -> Gone {
        Gone {
            flag: Arc::default(),
            whole_since,
        }
    }
}

/// The client of the request in each slot.
#[derive(Debug, Default)]
pub struct Clients(Mutex<Vec<Gone>>);

impl Clients {
    /// Of the request that is in this slot.
    pub fn gone(&self, slot: usize) -> Gone {
        self.with(slot, |gone| gone.clone())
    }

    /// The slot has a new request, which was whole at that time.
    pub(super) fn renew(&self, slot: usize, whole_since: Instant) {
        self.with(slot, |gone| *gone = Gone::since(whole_since));
    }

    /// The client of this slot's request has gone.
    pub(super) fn leave(&self, slot: usize) {
        self.with(slot, |gone| gone.set());
    }

    fn with<T>(&self, slot: usize, use_it: impl FnOnce(&mut Gone) -> T) -> T {
        // A Vec of flags is whole at all times, whoever panicked.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() <= slot {
            slots.resize_with(slot + 1, Gone::default);
        }
        use_it(&mut slots[slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_s_next_request_has_its_own_flag() {
        let clients = Clients::default();
        let now = Instant::now();
        clients.renew(3, now);
        let first = clients.gone(3);
        clients.leave(3);
        clients.renew(3, now);
        let second = clients.gone(3);
        assert!(first.is_set() && !second.is_set());
        assert_eq!(second.whole_since(), now);
        clients.leave(0);
        assert!(!second.is_set(), "another slot's");
    }
}
