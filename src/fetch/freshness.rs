//! How long a response may be kept and used again: RFC 9111, by the rules for shared caches.

use httpdate::parse_http_date;
use std::time::{Duration, SystemTime};
use ureq::http::HeaderMap;
use ureq::http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderName, VARY};

/// The lifetime of a response that does not state one: a logo that was replaced is seen soon, and
/// thousands of conversions fetch it once.
pub(super) const DEFAULT: Duration = Duration::from_mins(5);

/// The upper bound of lifetimes. Hosts that give a new name to each new picture send a year; others
/// send it by mistake.
pub(super) const LONGEST: Duration = Duration::from_hours(1);

/// The lifetime of a response with these headers; zero if it may not be kept at all (RFC 9111, 3,
/// 4.2). Nothing is ever revalidated here, so that `no-cache` has the effect of `no-store`.
pub(super) fn lifetime(headers: &HeaderMap, now: SystemTime) -> Duration {
    // All requests have the same headers, so that only `*` matters: by something besides headers.
    if lines(headers, &VARY).any(|line| line.contains('*')) {
        return Duration::ZERO;
    }
    let mut directives = Directives::default();
    for line in lines(headers, &CACHE_CONTROL) {
        line.split(',')
            .for_each(|directive| directives.read(directive));
    }
    if directives.is_forbidden {
        return Duration::ZERO;
    }
    let age = lines(headers, &AGE).next().map_or(Duration::ZERO, seconds);
    directives
        .shared_max_age
        .or(directives.max_age)
        .or_else(|| expires(headers, now))
        .map_or(DEFAULT, |lifetime| lifetime.saturating_sub(age))
        .min(LONGEST)
}

#[derive(Default)]
struct Directives {
    is_forbidden: bool,
    max_age: Option<Duration>,
    shared_max_age: Option<Duration>,
}

impl Directives {
    /// Takes in one directive (RFC 9111, 5.2.2). Of two contradicting ages the shorter one counts
    /// (4.2.1).
    fn read(&mut self, directive: &str) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        let shorter = |known: Option<Duration>| {
            let given = seconds(value);
            Some(known.map_or(given, |known| known.min(given)))
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" | "private" => self.is_forbidden = true,
            "max-age" => self.max_age = shorter(self.max_age),
            "s-maxage" => self.shared_max_age = shorter(self.shared_max_age),
            _ => {}
        }
    }
}

/// The lifetime by `Expires`. A value that is no date counts as one in the past (RFC 9111, 5.3).
fn expires(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let expires = parse_http_date(lines(headers, &EXPIRES).next()?);
    let date = lines(headers, &DATE)
        .next()
        .and_then(|date| parse_http_date(date).ok());
    let left = expires
        .ok()
        .and_then(|expires| expires.duration_since(date.unwrap_or(now)).ok());
    Some(left.unwrap_or_default())
}

/// Reads a number of seconds: zero if it is no number, the largest if it does not fit (RFC 9111,
/// 1.2.2).
fn seconds(text: &str) -> Duration {
    let digits = text.trim().trim_matches('"');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Duration::ZERO;
    }
    Duration::from_secs(digits.parse().unwrap_or(u64::MAX))
}

/// The values of a header that are text; others are ignored.
fn lines<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use httpdate::fmt_http_date;

    #[test]
    fn responses_live_as_long_as_they_say_within_bounds() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let in_a_minute = fmt_http_date(now + Duration::from_mins(1));
        let hour_ago = fmt_http_date(now - Duration::from_hours(1));
        let minute_before = fmt_http_date(now - Duration::from_mins(59));
        let default = DEFAULT.as_secs();
        let longest = LONGEST.as_secs();
        let cases: &[(&[(&str, &str)], u64)] = &[
            (&[], default),
            (&[("cache-control", "public, immutable")], default),
            (&[("cache-control", "max-age=1")], 1),
            (&[("cache-control", "public,Max-Age=\"90\"")], 90),
            (&[("cache-control", "max-age=3600")], longest),
            (&[("cache-control", "max-age=3601")], longest),
            (
                &[("cache-control", "max-age=99999999999999999999999")],
                longest,
            ),
            (&[("cache-control", "max-age=0")], 0),
            (&[("cache-control", "max-age=-1")], 0),
            (&[("cache-control", "max-age")], 0),
            (&[("cache-control", "max-age=60, s-maxage=20")], 20),
            (
                &[
                    ("cache-control", "s-maxage=20"),
                    ("cache-control", "max-age=60"),
                ],
                20,
            ),
            (&[("cache-control", "max-age=60, max-age=10")], 10),
            (&[("cache-control", "max-age=60"), ("age", "50")], 10),
            (&[("cache-control", "max-age=60"), ("age", "61")], 0),
            (&[("cache-control", "no-store")], 0),
            (&[("cache-control", "max-age=60, No-Store")], 0),
            (&[("cache-control", "no-cache")], 0),
            (&[("cache-control", "private=\"set-cookie\", max-age=9")], 0),
            (&[("vary", "accept, user-agent")], default),
            (&[("vary", "*"), ("cache-control", "max-age=60")], 0),
            (&[("expires", &in_a_minute)], 60),
            (&[("expires", &minute_before), ("date", &hour_ago)], 60),
            (&[("expires", &hour_ago)], 0),
            (&[("expires", "0")], 0),
            (&[("expires", &hour_ago), ("cache-control", "max-age=9")], 9),
        ];
        for (headers, expected) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in *headers {
                let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
                map.append(name, value.parse().expect("a value"));
            }
            assert_eq!(
                lifetime(&map, now),
                Duration::from_secs(*expected),
                "{headers:?}"
            );
        }
    }
}
