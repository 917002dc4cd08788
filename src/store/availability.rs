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
        let mut outage = self.lock();
        if outage.is_none() {
            log::error!(
                "the store cannot be written: {cause}; nothing is converted until it can, which is tried every second"
            );
            *outage = Some(Outage {
                since: Instant::now(),
                cause: cause.to_owned(),
            });
        }
    }

    /// There was room for a large write.
    pub fn succeeded(&self) {
        if let Some(Outage { since, .. }) = self.lock().take() {
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
