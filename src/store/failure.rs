//! Failed conversions as the rest of the program sees them. They are kept apart from the history:
//! they count nowhere, and are removed after [`FAILURE_DAYS`].

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::request_id::RequestId;
use super::token_number::TokenNumber;
use super::usage::Days;

/// How long a failed conversion is kept, in days.
pub const FAILURE_DAYS: u32 = 30;

/// The most failed conversions that are kept of one account; the oldest ones are removed. At some
/// 80 bytes each, failures cannot fill the disk.
pub const MAX_FAILURES: u64 = 10_000;

/// A failed conversion, as it is stored. Its query is not stored, since it may name pictures and
/// texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Failure {
    /// When it was answered; stored to the millisecond.
    pub time: SystemTime,
    /// The token of its request.
    pub token: TokenNumber,
    /// The status code of the response.
    pub status: u16,
    /// The code of the problem, such as `too_many_pixels`.
    pub code: String,
    /// The size of the body in bytes: of what arrived, or as the head announced it; 0 if it is not
    /// known.
    pub input_bytes: u64,
    /// Its request, which the response named as well.
    pub request: RequestId,
}

/// A filter of failed conversions; all pass by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureFilter {
    /// The days (UTC).
    pub days: Days,
    /// The token that they were sent with.
    pub token: Option<TokenNumber>,
    /// The status codes.
    pub status: Option<StatusFilter>,
}

impl FailureFilter {
    /// Whether a failure of this day, token and status passes.
    pub fn passes(&self, day: u32, token: TokenNumber, status: u16) -> bool {
        self.days.contains(day)
            && self.token.is_none_or(|wanted| wanted == token)
            && self.status.is_none_or(|wanted| wanted.passes(status))
    }
}

/// One status code, or all of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    /// One status code.
    Exact(u16),
    /// All status codes with this first digit.
    Class(u16),
}

impl StatusFilter {
    /// Whether the status code passes.
    pub fn passes(self, status: u16) -> bool {
        match self {
            StatusFilter::Exact(wanted) => status == wanted,
            StatusFilter::Class(digit) => status / 100 == digit,
        }
    }

    /// `413`, or `4xx`; `None` for anything else.
    pub fn parse(text: &str) -> Option<StatusFilter> {
        let (digit, rest) = text.split_at_checked(1)?;
        let digit = digit.parse().ok().filter(|digit| matches!(digit, 4 | 5))?;
        if rest.eq_ignore_ascii_case("xx") {
            return Some(StatusFilter::Class(digit));
        }
        let is_number = rest.len() == 2 && rest.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(StatusFilter::Exact(text.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_number_or_a_class() {
        for (text, expected) in [
            ("413", Some(StatusFilter::Exact(413))),
            ("4xx", Some(StatusFilter::Class(4))),
            ("5XX", Some(StatusFilter::Class(5))),
            ("599", Some(StatusFilter::Exact(599))),
            ("400", Some(StatusFilter::Exact(400))),
            ("399", None),
            ("600", None),
            ("200", None),
            ("2xx", None),
            ("4x", None),
            ("41", None),
            ("4133", None),
            ("4+3", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(StatusFilter::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_status_passes_alone() {
        let status = StatusFilter::Exact(413);
        let passing = (100..=599).filter(|given| status.passes(*given));
        assert!(passing.eq([413]));
    }

    #[test]
    fn a_class_has_its_hundred_codes() {
        let class = StatusFilter::Class(4);
        let passing = (100..=599).filter(|status| class.passes(*status));
        assert!(passing.eq(400..=499));
    }
}
