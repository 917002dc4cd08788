//! The least transfer rate of a client that sends a body or reads a response.

use super::settings::WINDOW;
use std::time::Instant;

/// Holds one direction of a connection to a number of bytes in every [`WINDOW`]. Bytes of earlier
/// windows earn no credit: a client that stops is cut off within one window.
pub struct MinRate {
    since: Instant,
    bytes: u64,
}

impl MinRate {
    /// Begins a window now.
    pub fn new(now: Instant) -> MinRate {
        MinRate {
            since: now,
            bytes: 0,
        }
    }

    /// Counts transferred bytes. The next window begins once this one has its number of bytes:
    /// `rate`, in bytes a second, times [`WINDOW`].
    pub fn record(&mut self, bytes: usize, rate: u64, now: Instant) {
        self.bytes += bytes as u64;
        if self.bytes >= rate.saturating_mul(WINDOW.as_secs()) {
            *self = MinRate::new(now);
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
        let mut rate = MinRate::new(start);
        rate.record(9_999, 1_000, later);
        assert_eq!(rate.deadline(), start + WINDOW, "one byte too few");
        rate.record(1, 1_000, later);
        assert_eq!(rate.deadline(), later + WINDOW);
        rate.record(5_000_000, 1_000, later);
        assert_eq!(rate.deadline(), later + WINDOW, "no credit");
    }
}
