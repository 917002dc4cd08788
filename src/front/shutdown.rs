//! Shutdown of the event loop from another thread.

use mio::Waker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shuts the event loop down gracefully: it accepts no new connection and lets the requests in
/// progress end. Clones are for the same event loop.
#[derive(Clone, Debug)]
pub struct ShutdownHandle {
    requested: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl ShutdownHandle {
    pub(super) fn new(waker: Arc<Waker>) -> ShutdownHandle {
        ShutdownHandle {
            requested: Arc::default(),
            waker,
        }
    }

    /// Requests the shutdown and returns at once.
    ///
    /// # Errors
    /// The event loop's thread cannot be woken.
    pub fn shut_down(&self) -> io::Result<()> {
        self.requested.store(true, Ordering::SeqCst);
        self.waker.wake()
    }

    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }
}
