//! Whether the storage can be used. The log gets one line when it becomes unavailable and one when
//! it is available again, not one line for each request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::error::{Result, StoreError};

/// The state by the last failed write, or the last successful probe since then. With a shared
/// engine, all other queries change the state too.
#[derive(Default)]
pub struct Availability(Mutex<Option<Outage>>);

struct Outage {
    since: Instant,
    cause: String,
}

impl Availability {
    /// Checks the state in memory, so the event loop may call it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] while the storage cannot be written.
    pub fn check(&self) -> Result<()> {
        match &*self.lock() {
            None => Ok(()),
            Some(outage) => Err(StoreError::Unavailable(outage.cause.clone())),
        }
    }

    /// Records that a write has failed, or a query of a shared engine.
    pub fn failed(&self, cause: &str) {
        let is_first = {
            let mut outage = self.lock();
            let is_first = outage.is_none();
            outage.get_or_insert_with(|| Outage {
                since: Instant::now(),
                cause: cause.to_owned(),
            });
            is_first
        };
        // The lock is released by now: the event loop waits for it, and the log may be slow.
        if is_first {
            log::error!(
                "the store cannot be written: {cause}; nothing is converted until it can be, which \
                 is tried every second"
            );
        }
    }

    /// A probe has succeeded, or a write to a shared engine.
    pub fn succeeded(&self) {
        let over = self.lock().take();
        if let Some(Outage { since, .. }) = over {
            log::warn!(
                "the store can be written again, after {} s",
                since.elapsed().as_secs()
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        // Its value is consistent at all times, even if a thread panicked with the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
