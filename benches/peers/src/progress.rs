//! How far a long run is, on standard error.

use std::time::{Duration, Instant};

use crate::output::note;

/// Short runs stay silent, and long ones do not fill a log.
const EVERY: Duration = Duration::from_secs(10);

/// Counts the pictures of one part of a run.
pub struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    started: Instant,
    told: Instant,
}

impl Progress {
    /// `what` is done with `total` pictures from now on.
    pub fn new(what: &'static str, total: usize) -> Self {
        let now = Instant::now();
        Self {
            what,
            total,
            done: 0,
            started: now,
            told: now,
        }
    }

    /// One more picture is done. Tells so if the last line was some time ago.
    pub fn step(&mut self) {
        self.done += 1;
        if self.told.elapsed() < EVERY {
            return;
        }
        self.told = Instant::now();
        let elapsed = self.started.elapsed().as_secs_f64();
        let left = elapsed / self.done as f64 * (self.total - self.done) as f64;
        note(&format!(
            "{}: {} of {} pictures after {elapsed:.0} s, about {left:.0} s left",
            self.what, self.done, self.total
        ));
    }
}
