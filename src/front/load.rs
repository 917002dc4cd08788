//! How busy the event loop is, for other threads.

use std::sync::{Arc, Mutex, PoisonError};

/// The event loop's load at the end of its last turn. Clones share the value.
#[derive(Clone, Debug, Default)]
pub struct LoadGauge(Arc<Mutex<Load>>);

/// The event loop's load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections of clients, idle ones included.
    pub connections: usize,
    /// Complete requests that wait for a worker. A request whose client has left may be counted
    /// until its turn comes.
    pub waiting: usize,
    /// Requests that were handed to workers.
    pub working: usize,
    /// Bytes of memory that requests and responses in transit take.
    pub held: u64,
}

impl LoadGauge {
    /// The load at the end of the last turn.
    pub fn load(&self) -> Load {
        // Numbers are whole at all times, even after a panic.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, load: Load) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = load;
    }
}
