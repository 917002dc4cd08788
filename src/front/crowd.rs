//! How busy the door is, for those who ask from other threads.

use std::sync::{Arc, Mutex, PoisonError};

/// Tells what the door's thread had when it went round last. A clone tells the same.
#[derive(Clone, Debug, Default)]
pub struct Crowd(Arc<Mutex<Load>>);

/// What the door has to do with at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections of clients, idle ones included.
    pub connections: usize,
    /// Whole requests that wait for a worker; those who have left may be counted until it is their turn.
    pub waiting: usize,
    /// Requests that workers have, or will have next.
    pub working: usize,
    /// Bytes that requests and answers on their way take.
    pub held: usize,
}

impl Crowd {
    /// What it was.
    pub fn load(&self) -> Load {
        // Numbers are whole at all times, whoever panicked.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, load: Load) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = load;
    }
}
