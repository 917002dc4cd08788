//! The headers with a client's limits, by the IETF's draft "`RateLimit` header fields for HTTP"
//! (draft-ietf-httpapi-ratelimit-headers-10).

use crate::admission::{LimitStatus, seconds};

/// Names and values of the headers, each of which is left out if it would be empty.
pub fn rate_limit_headers(limits: &[LimitStatus]) -> Vec<(&'static str, String)> {
    let policy = |limit: &LimitStatus| {
        let window = limit.window.as_secs();
        format!("\"{}\";q={};w={window}", limit.name, limit.quota)
    };
    let remaining = |limit: &LimitStatus| {
        let remaining = limit.remaining?;
        let reset = seconds(remaining.resets_in);
        let conversions = remaining.conversions;
        Some(format!("\"{}\";r={conversions};t={reset}", limit.name))
    };
    let policies: Vec<String> = limits.iter().map(policy).collect();
    let left: Vec<String> = limits.iter().filter_map(remaining).collect();
    [("RateLimit-Policy", policies), ("RateLimit", left)]
        .into_iter()
        .filter(|(_, items)| !items.is_empty())
        .map(|(name, items)| (name, items.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::RemainingQuota;
    use std::time::Duration;

    #[test]
    fn limits_are_told_with_what_is_left() {
        let limit = |name, quota, window, left: Option<(u64, u64)>| LimitStatus {
            name,
            quota,
            window: Duration::from_secs(window),
            remaining: left.map(|(conversions, seconds)| RemainingQuota {
                conversions,
                resets_in: Duration::from_secs(seconds),
            }),
        };
        assert_eq!(rate_limit_headers(&[]), []);
        assert_eq!(
            rate_limit_headers(&[
                limit("rate", 2, 60, Some((1, 30))),
                limit("month", 9, 2_592_000, Some((0, 7))),
            ]),
            [
                (
                    "RateLimit-Policy",
                    "\"rate\";q=2;w=60, \"month\";q=9;w=2592000".to_owned()
                ),
                (
                    "RateLimit",
                    "\"rate\";r=1;t=30, \"month\";r=0;t=7".to_owned()
                )
            ]
        );
        assert_eq!(
            rate_limit_headers(&[limit("rate", 2, 60, None)]),
            [("RateLimit-Policy", "\"rate\";q=2;w=60".to_owned())]
        );
    }
}
