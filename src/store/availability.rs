//! Whether the disk takes writes. It says so in the log when that ends and when it is over, and not once a request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::error::StoreError;

/// Known since the last write that failed, or the last look for room that did not.
#[derive(Default)]
pub struct Availability(Mutex<Option<Outage>>);

struct Outage {
    since: Instant,
    cause: String,
}

impl Availability {
    /// Asks no disk: fit to be asked before any work is begun.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], while the disk takes no writes.
    pub fn check(&self) -> Result<(), StoreError> {
        match &*self.lock() {
            None => Ok(()),
            Some(outage) => Err(StoreError::Unavailable(outage.cause.clone())),
        }
    }

    /// A write has failed.
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
        // After the lock: the event loop waits for it, and the log may be slow.
        if is_first {
            log::error!(
                "the store cannot be written: {cause}; nothing is converted until it can, which is tried every second"
            );
        }
    }

    /// There was room for a large write.
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
        // It is whole at all times, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
