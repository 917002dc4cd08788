//! The outcome of the last readiness check.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a result is reused. Anybody may request a check, and a commit costs the disk some
/// milliseconds; monitors check every few seconds.
const VALIDITY: Duration = Duration::from_secs(1);

/// The outcome of the last check, and when it ended.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<Option<(Instant, Result<(), NotReady>)>>);

/// Why the service cannot do its work.
#[derive(Clone, Debug)]
pub struct NotReady {
    /// For the client.
    pub reason: &'static str,
    /// For the log alone; `None` if the log has it already.
    pub cause: Option<String>,
}

impl Readiness {
    /// The last result while it is valid, or else the result of a new check. Requests that come
    /// during the check wait for it.
    ///
    /// # Errors
    /// Why the service cannot do its work.
    pub fn outcome(
        &self,
        now: Instant,
        check: impl FnOnce() -> Result<(), NotReady>,
    ) -> Result<(), NotReady> {
        // An outcome is replaced in one step, so a panic elsewhere has not damaged it.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, outcome)) = &*last
            && now.saturating_duration_since(*at) < VALIDITY
        {
            return outcome.clone();
        }
        let outcome = check();
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_given_again_for_a_second() {
        let readiness = Readiness::default();
        let start = Instant::now();
        let failed = || {
            Err(NotReady {
                reason: "",
                cause: None,
            })
        };
        readiness.outcome(start, failed).expect_err("it fails");
        readiness
            .outcome(start, || Ok(()))
            .expect_err("nothing is checked again");
        readiness
            .outcome(start + VALIDITY * 2, || Ok(()))
            .expect("it is checked again");
    }
}
