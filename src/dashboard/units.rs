//! Times and sizes as pages show them.

use std::time::SystemTime;

/// The time in UTC, such as `2026-11-21 03:15:00`.
pub fn date_and_time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time)
        .to_string()
        .replace('T', " ")
        .trim_end_matches('Z')
        .to_owned()
}

/// A number of bytes in the largest unit (powers of 1000) in which it is at least 1.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    // 999.95 would be shown as 1000.0.
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// A percentage, with a true minus sign if it is negative.
pub fn saved(percent: Option<i64>) -> String {
    match percent {
        Some(percent) => format!("{percent} %").replace('-', "−"),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_may_be_losses() {
        assert_eq!(saved(Some(75)), "75 %");
        assert_eq!(saved(Some(-50)), "−50 %");
        assert_eq!(saved(None), "–");
    }

    #[test]
    fn sizes_are_short() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (1_234_567_890, "1.2 GB"),
            (u64::MAX, "18446.7 PB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }
}
