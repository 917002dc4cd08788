//! Watermark pictures that could not be fetched.

use super::{Kind, Problem};
use crate::fetch::FetchError;

/// Seconds until a fetch may be requested again when too many wait: most fetches take less.
const RETRY_AFTER_FETCHES: u64 = 5;

impl From<FetchError> for Problem {
    fn from(error: FetchError) -> Problem {
        let kind = match error {
            FetchError::Url(_) => Kind::WatermarkUrlInvalid,
            FetchError::Forbidden(_) => Kind::WatermarkForbidden,
            FetchError::Unreachable(_) => Kind::WatermarkUnreachable,
            FetchError::Status(_) => Kind::WatermarkStatus,
            FetchError::TooLarge { .. } => Kind::WatermarkTooLarge,
            FetchError::Timeout => Kind::WatermarkTimeout,
            FetchError::TlsUnavailable => Kind::WatermarkTlsUnavailable,
            FetchError::Busy => {
                return Problem::new(Kind::Busy, format!("watermark_image: {error}"))
                    .with_retry_after(RETRY_AFTER_FETCHES);
            }
            FetchError::Abandoned => return Problem::client_gone(),
            FetchError::Failed => return Problem::internal("the fetch has panicked"),
        };
        Problem::new(kind, format!("watermark_image: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_watermark_that_failed_for_no_fault_of_the_client_is_no_400() {
        let busy = Problem::from(FetchError::Busy);
        assert_eq!(
            (busy.kind.row().status, busy.kind.row().code),
            (503, "busy")
        );
        assert_eq!(busy.retry_after, Some(RETRY_AFTER_FETCHES));
        assert_eq!(Problem::from(FetchError::Abandoned), Problem::client_gone());
        assert_eq!(Problem::from(FetchError::Failed).kind.row().status, 500);
    }

    #[test]
    fn causes_of_a_failed_watermark_have_codes_of_their_own() {
        let errors = [
            FetchError::Url(String::new()),
            FetchError::Forbidden(String::new()),
            FetchError::Unreachable(String::new()),
            FetchError::Status(404),
            FetchError::TooLarge { max_bytes: 1 },
            FetchError::Timeout,
            FetchError::TlsUnavailable,
        ];
        let mut codes = HashSet::new();
        for error in errors {
            let row = Problem::from(error).kind.row();
            assert!(
                row.status == 400 && row.code.starts_with("watermark_"),
                "{row:?}"
            );
            assert!(codes.insert(row.code), "{row:?}");
        }
    }
}
