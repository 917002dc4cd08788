//! Times and sizes as pages show them.

use super::duration::amount;
use maud::{Markup, html};
use std::time::SystemTime;

/// The time in UTC, such as `2026-11-21 03:15:00`.
pub fn date_and_time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time)
        .to_string()
        .replace('T', " ")
        .trim_end_matches('Z')
        .to_owned()
}

/// The time in UTC. The script shows that of the browser instead, and this one on hover.
pub fn time(time: SystemTime) -> Markup {
    html! { time datetime=(datetime(time)) { (date_and_time(time)) } }
}

/// How long ago a time was, in its largest unit; the time itself is shown on hover.
pub fn ago(time: SystemTime, now: SystemTime) -> Markup {
    const UNITS: [(u64, &str); 4] = [
        (86_400, "day"),
        (3600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let passed = now.duration_since(time).unwrap_or_default().as_secs();
    let unit = UNITS.iter().find(|(seconds, _)| passed >= *seconds);
    html! {
        time datetime=(datetime(time)) title={ (date_and_time(time)) " UTC" } {
            @match unit {
                Some((seconds, unit)) => { (amount(passed / seconds, unit)) " ago" }
                None => "just now",
            }
        }
    }
}

fn datetime(time: SystemTime) -> humantime::Rfc3339Timestamp {
    humantime::format_rfc3339_seconds(time)
}

/// The difference of input and output in the form of [`size`]; with a true minus sign if it is
/// larger.
pub fn saved_size(input_bytes: u64, output_bytes: u64) -> String {
    let sign = if output_bytes > input_bytes {
        "−"
    } else {
        ""
    };
    format!("{sign}{}", size(input_bytes.abs_diff(output_bytes)))
}

/// A size in the form of [`size`], without a fraction of zero: `2 kB`.
pub fn short_size(bytes: u64) -> String {
    size(bytes).replace(".0 ", " ")
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
    use std::time::Duration;

    #[test]
    fn savings_may_be_losses() {
        assert_eq!(saved(Some(75)), "75 %");
        assert_eq!(saved(Some(-50)), "−50 %");
        assert_eq!(saved(None), "–");
    }

    #[test]
    fn what_is_saved_may_be_a_loss() {
        assert_eq!(saved_size(3000, 1000), "2.0 kB");
        assert_eq!(saved_size(1000, 3000), "−2.0 kB");
        assert_eq!(saved_size(0, 0), "0 B");
        assert_eq!(short_size(2000), "2 kB");
        assert_eq!(short_size(2500), "2.5 kB");
    }

    #[test]
    fn times_past_are_told_in_one_unit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 20_000);
        for (seconds, expected) in [
            (0, "just now"),
            (1, "1 second ago"),
            (119, "1 minute ago"),
            (7200, "2 hours ago"),
            (86_400 * 400, "400 days ago"),
        ] {
            let text = ago(now - Duration::from_secs(seconds), now).into_string();
            assert!(text.contains(&format!(">{expected}<")), "{text}");
        }
        let exact = ago(SystemTime::UNIX_EPOCH, now).into_string();
        assert!(
            exact.contains("title=\"1970-01-01 00:00:00 UTC\""),
            "{exact}"
        );
        let later = ago(now + Duration::from_secs(9), now).into_string();
        assert!(later.contains("just now"), "{later}");
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
