//! Conversions that an account may not have now.

use super::{Kind, Problem};
use crate::admission::{ExceededLimit, LimitScope, QuotaError, QuotaExceeded, seconds};
use crate::dashboard::duration;
use crate::http::rate_limit_headers::rate_limit_headers;

impl From<QuotaError> for Problem {
    fn from(error: QuotaError) -> Problem {
        match error {
            QuotaError::Exceeded(exceeded) => Problem::from(exceeded),
            QuotaError::Store(error) => Problem::from(error),
        }
    }
}

impl From<QuotaExceeded> for Problem {
    fn from(exceeded: QuotaExceeded) -> Problem {
        let retry_after = seconds(exceeded.retry_after);
        let wait = duration(retry_after);
        let who = match exceeded.scope {
            LimitScope::Account => "account",
            LimitScope::Token => "token",
        };
        let (kind, detail) = match exceeded.limit {
            ExceededLimit::Rate { times } => (
                Kind::RateLimited,
                format!(
                    "This {who} may have {times} conversions a minute; the next is allowed in {wait}."
                ),
            ),
            ExceededLimit::Month { quota } => (
                Kind::QuotaExceeded,
                format!(
                    "This {who} may have {quota} conversions a month (UTC) and has had them; the next month begins \
                     in {wait}."
                ),
            ),
            ExceededLimit::MonthInProgress { quota } => (
                Kind::QuotaExceeded,
                format!(
                    "This {who} may have {quota} conversions a month (UTC), and the last of them are under way; one \
                     that fails leaves its place."
                ),
            ),
        };
        Problem {
            headers: rate_limit_headers(&exceeded.limits),
            ..Problem::new(kind, detail).with_retry_after(retry_after)
        }
    }
}
