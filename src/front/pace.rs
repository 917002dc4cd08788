//! The least rate of a sender or a reader.

use super::limits::WINDOW;
use std::time::Instant;

/// Holds one direction of a connection to so many bytes in every [`WINDOW`]. What was fast before earns no credit:
/// whoever stops is out within one window.
pub struct Pace {
    since: Instant,
    bytes: u64,
}

impl Pace {
    /// Begins now.
    pub fn new(now: Instant) -> Pace {
        Pace {
            since: now,
            bytes: 0,
        }
    }

    /// These bytes went through. At `rate` bytes a second over a window, the next window begins.
    pub fn moved(&mut self, bytes: usize, rate: u64, now: Instant) {
        self.bytes += bytes as u64;
        if self.bytes >= rate.saturating_mul(WINDOW.as_secs()) {
            *self = Pace::new(now);
        }
    }

    /// When the window ends.
    pub fn deadline(&self) -> Instant {
        self.since + WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_a_window_s_worth_of_bytes_buys_another_window() {
        let start = Instant::now();
        let later = start + Duration::from_secs(9);
        let mut pace = Pace::new(start);
        pace.moved(9_999, 1_000, later);
        assert_eq!(pace.deadline(), start + WINDOW, "one byte too few");
        pace.moved(1, 1_000, later);
        assert_eq!(pace.deadline(), later + WINDOW);
        pace.moved(5_000_000, 1_000, later);
        assert_eq!(pace.deadline(), later + WINDOW, "no credit");
    }
}
