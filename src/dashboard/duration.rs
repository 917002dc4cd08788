//! Durations in words.

/// The time in its two largest units, such as `40 seconds`, `1 minute and 30 seconds` or `8 days
/// and 22 hours`. It is rounded up: who waits that long has waited long enough.
pub fn duration(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (large, small) = match seconds {
        ..MINUTE => return amount(seconds.max(1), "second"),
        MINUTE..HOUR => ((MINUTE, "minute"), (1, "second")),
        HOUR..DAY => ((HOUR, "hour"), (MINUTE, "minute")),
        _ => ((DAY, "day"), (HOUR, "hour")),
    };
    let rounded = seconds.div_ceil(small.0).saturating_mul(small.0);
    let first = amount(rounded / large.0, large.1);
    match rounded % large.0 / small.0 {
        0 => first,
        rest => format!("{first} and {}", amount(rest, small.1)),
    }
}

/// A number of things, such as `1 hour` or `2 hours`.
pub fn amount(number: u64, unit: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_two_units() {
        for (seconds, expected) in [
            (0, "1 second"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (61, "1 minute and 1 second"),
            (3599, "59 minutes and 59 seconds"),
            (3600, "1 hour"),
            (3601, "1 hour and 1 minute"),
            (86_399, "24 hours"),
            (86_400, "1 day"),
            (90_001, "1 day and 2 hours"),
            (772_350, "8 days and 23 hours"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
        assert!(duration(u64::MAX).starts_with("213503982334601 days"));
    }
}
