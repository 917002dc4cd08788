//! Asking the door to close, from another thread.

use mio::Waker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Closes the door: nobody is let in any more, and what is under way is brought to its end. A clone closes the same door.
#[derive(Clone, Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Stop {
    /// By waking the door's thread.
    pub(super) fn new(waker: Arc<Waker>) -> Stop {
        Stop {
            asked: Arc::default(),
            waker,
        }
    }

    /// Asks the door to close, and returns at once.
    ///
    /// # Errors
    /// The door's thread cannot be woken.
    pub fn ask(&self) -> io::Result<()> {
        self.asked.store(true, Ordering::SeqCst);
        self.waker.wake()
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}
