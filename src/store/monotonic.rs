//! Monotonic time, which passes whatever the clock is set to. The validity of cached rows and the
//! shares of the machine are counted by it.

use std::time::{Duration, Instant};

/// The present time. In a simulation it is the simulated one.
pub fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = SIMULATED.get() {
        return now;
    }
    Instant::now()
}

/// The time since then.
pub fn elapsed(since: Instant) -> Duration {
    now() - since
}

/// Measured seconds of work. In a simulation work takes no time.
pub fn measured(seconds: f64) -> f64 {
    #[cfg(test)]
    if SIMULATED.get().is_some() {
        return 0.0;
    }
    seconds
}

#[cfg(test)]
thread_local! {
    /// The time of the simulation that runs on this thread.
    static SIMULATED: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// From now on it is this time for this thread; `None` for the machine's time.
#[cfg(test)]
pub fn simulate(now: Option<Instant>) {
    SIMULATED.set(now);
}
