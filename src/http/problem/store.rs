//! Failures of the store, and tokens that it refuses.

use super::{Kind, Problem};
use crate::store::FilterError;
use crate::store::{StoreError, TokenError};

/// Seconds until a retry may find room on the disk: somebody has to make it, and then the store
/// finds it within a second.
const RETRY_AFTER_STORAGE: u64 = 10;

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Problem {
        match error {
            TokenError::Invalid => Problem::new(
                Kind::TokenInvalid,
                "The token is mistyped, or it was replaced by a new one or deleted, or its account was deleted. The \
                 dashboard shows the present ones.",
            ),
            TokenError::Ended => Problem::new(
                Kind::TokenExpired,
                "The token was made to end at a time that is over. The account's owner can set another end on the \
                 dashboard.",
            ),
            TokenError::Store(error) => Problem::from(error),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            // The store has logged the cause once, for all requests that meet it.
            StoreError::Unavailable(_) => Problem::new(
                Kind::StorageUnavailable,
                "Nothing can be recorded at the moment, and so nothing is done; try again later.",
            )
            .with_retry_after(RETRY_AFTER_STORAGE),
            StoreError::Failed(cause) => Problem::internal(format!("store: {cause}")),
        }
    }
}

impl From<FilterError> for Problem {
    fn from(error: FilterError) -> Problem {
        let FilterError {
            name,
            given,
            allowed,
        } = error;
        Problem::new(
            Kind::InvalidParameter,
            format!("{name} is {given:?}; allowed: {allowed}."),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_500_say_nothing_of_the_inside() {
        let cause = "/srv/data/towebp.redb: damaged".to_owned();
        let problem = Problem::from(StoreError::Failed(cause));
        assert!(!problem.detail.contains("redb"), "{}", problem.detail);
        assert_eq!(
            problem.cause.as_deref(),
            Some("store: /srv/data/towebp.redb: damaged")
        );
    }

    #[test]
    fn a_full_disk_is_a_503_and_is_not_logged_again() {
        let full = StoreError::Unavailable("/srv/data/towebp.redb: disk full".to_owned());
        let problem = Problem::from(full);
        assert_eq!(problem.kind.row().status, 503);
        assert!(problem.retry_after.is_some());
        assert!(!problem.detail.contains("redb"), "{}", problem.detail);
        assert_eq!(problem.cause, None);
    }
}
