//! Time as it is stored: whole milliseconds since 1970-01-01 00:00 UTC (the epoch).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The milliseconds of a day.
pub const DAY: u64 = 24 * 60 * 60 * 1000;

/// Tells the store what time it is. The time may be set back and forward while the store is open.
pub struct Clock {
    machine: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Says how many milliseconds are to be added, if several machines share an engine.
    offset: Option<Box<dyn Fn() -> i64 + Send + Sync>>,
}

impl Clock {
    /// A clock that returns what `time` does.
    pub fn new(time: impl Fn() -> SystemTime + Send + Sync + 'static) -> Clock {
        Clock {
            machine: Box::new(time),
            offset: None,
        }
    }

    /// The clock of a store on an engine that gives the milliseconds to add, so that all processes
    /// on the engine have nearly the same time, whatever the clocks of their machines are.
    pub fn with_offset(self, offset: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock {
            offset: Some(Box::new(offset)),
            ..self
        }
    }

    /// The present time in milliseconds since the epoch. The event loop may call this.
    pub fn now(&self) -> u64 {
        let machine = to_milliseconds((self.machine)());
        match &self.offset {
            None => machine,
            Some(offset) => machine.saturating_add_signed(offset()),
        }
    }

    /// As [`Clock::now`].
    pub fn time(&self) -> SystemTime {
        match &self.offset {
            None => (self.machine)(),
            Some(_) => from_milliseconds(self.now()),
        }
    }
}

/// A time in milliseconds since the epoch; 0 for any time before the epoch.
pub fn to_milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time of this many milliseconds since the epoch; the epoch itself for a number that no clock
/// reaches, which only a damaged file holds.
pub fn from_milliseconds(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(milliseconds))
        .unwrap_or(UNIX_EPOCH)
}

/// The number of the day (UTC) of a time in milliseconds since the epoch.
pub fn day(milliseconds: u64) -> u32 {
    u32::try_from(milliseconds / DAY).unwrap_or(u32::MAX)
}

/// The first moment of a day (UTC) that is written such as `2026-11-01`; `None` if the text is no
/// day.
pub fn start_of_day(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).ok()
}

/// The month (UTC) in which a time lies: the first millisecond of that month and of the next one.
pub fn month(milliseconds: u64) -> (u64, u64) {
    let days = milliseconds / DAY;
    let (mut year, mut month) = (1970, 0);
    // The Gregorian calendar repeats every 400 years of 146,097 days, so those before are skipped.
    let mut first = days / 146_097 * 146_097;
    loop {
        let next = first + days_of(year, month);
        if days < next {
            return (first * DAY, next.saturating_mul(DAY));
        }
        first = next;
        month += 1;
        if month == 12 {
            (year, month) = (year + 1, 0);
        }
    }
}

/// The number of days of a month, where `month` 0 is January.
fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 if is_leap => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_to_the_millisecond() {
        let time = UNIX_EPOCH + Duration::from_nanos(1_795_000_000_123_456_789);
        assert_eq!(to_milliseconds(time), 1_795_000_000_123);
        assert_eq!(
            to_milliseconds(from_milliseconds(1_795_000_000_123)),
            1_795_000_000_123
        );
    }

    #[test]
    fn months_begin_and_end_at_midnight() {
        for (time, start, end) in [
            ("1970-01-01T00:00:00Z", "1970-01-01", "1970-02-01"),
            ("2024-02-29T23:59:59Z", "2024-02-01", "2024-03-01"),
            ("2026-11-21T08:00:00Z", "2026-11-01", "2026-12-01"),
            ("2026-12-31T23:59:59Z", "2026-12-01", "2027-01-01"),
            ("2100-02-28T12:00:00Z", "2100-02-01", "2100-03-01"),
            ("2400-02-29T12:00:00Z", "2400-02-01", "2400-03-01"),
        ] {
            let milliseconds =
                |text: &str| to_milliseconds(humantime::parse_rfc3339(text).unwrap());
            let [start, end] = [start, end].map(|day| milliseconds(&format!("{day}T00:00:00Z")));
            assert_eq!(month(milliseconds(time)), (start, end), "{time}");
        }
        let _must_not_panic = month(u64::MAX);
    }

    #[test]
    fn times_out_of_range_are_clamped() {
        assert_eq!(
            to_milliseconds(UNIX_EPOCH - Duration::from_secs(1)),
            0,
            "before the epoch"
        );
        let _must_not_panic = from_milliseconds(u64::MAX);
    }
}
