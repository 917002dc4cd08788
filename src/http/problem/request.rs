//! Requests whose query, token or body cannot be used.

use super::{Kind, Problem};
use crate::http::credentials::TokensDiffer;
use crate::http::pairs::{NotUtf8, Repeated};

impl From<Repeated> for Problem {
    fn from(Repeated(name): Repeated) -> Problem {
        Problem::new(
            Kind::RepeatedParameter,
            format!("{name} is given more than once; give it once."),
        )
    }
}

impl From<NotUtf8> for Problem {
    fn from(NotUtf8(name): NotUtf8) -> Problem {
        let shown: String = name.chars().take(60).collect();
        Problem::new(
            Kind::InvalidParameter,
            format!(
                "Parameter {shown}: bytes that are not UTF-8 were given; allowed is text in UTF-8, percent-encoded."
            ),
        )
    }
}

impl From<TokensDiffer> for Problem {
    fn from(TokensDiffer: TokensDiffer) -> Problem {
        Problem::new(
            Kind::TokensDiffer,
            "The query parameter token and the header Authorization: Bearer, or two of the same, carry different \
             tokens; give one.",
        )
    }
}

/// 413 for a body of more than `limit` bytes.
pub fn body_too_large(limit: u64) -> Problem {
    Problem::new(
        Kind::BodyTooLarge,
        format!("The body may have up to {limit} bytes."),
    )
}

/// 400 for a body that ended after `received` bytes.
pub fn body_cut_short(received: u64) -> Problem {
    Problem::new(
        Kind::BodyCutShort,
        format!("Only {received} bytes of the body arrived, fewer than were announced."),
    )
}
