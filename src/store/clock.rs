//! Time as it is stored: whole milliseconds since 1970-01-01 00:00 UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch; 0 for anything before it.
pub fn to_milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The inverse, to the millisecond; the epoch for a number that no clock reaches (a damaged file).
pub fn from_milliseconds(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_milliseconds_and_drops_what_is_finer() {
        let time = UNIX_EPOCH + Duration::from_nanos(1_795_000_000_123_456_789);
        assert_eq!(to_milliseconds(time), 1_795_000_000_123);
        assert_eq!(
            to_milliseconds(from_milliseconds(1_795_000_000_123)),
            1_795_000_000_123
        );
    }

    #[test]
    fn clamps_what_lies_outside() {
        assert_eq!(
            to_milliseconds(UNIX_EPOCH - Duration::from_secs(1)),
            0,
            "before the epoch"
        );
        let _must_not_panic = from_milliseconds(u64::MAX);
    }
}
