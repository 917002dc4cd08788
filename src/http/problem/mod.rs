//! Errors of all modules as problems for the client: each `From` here lists every case of one
//! error, so that a new case does not compile until it has its answer.
//!
//! The text of a 4xx helps the client. The text of a 500 reveals nothing of the inside; its cause
//! goes to the log.

mod conversion;
mod fetch;
mod form;
mod front;
mod kinds;
mod quota;
mod request;
mod store;

pub use kinds::{Kind, PROBLEMS, ProblemRow, Scope};

use crate::dashboard::duration;

/// An error on its way to the client.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its row in the table of problems.
    pub kind: Kind,
    /// The fault of this request, as a sentence or two for the client.
    pub detail: String,
    /// The value of `Allow`, for a 405.
    pub allow: Option<&'static str>,
    /// The value of `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// Further headers: names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The internal cause, for the log alone.
    pub cause: Option<String>,
}

impl Problem {
    /// A problem without headers of its own.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem {
            kind,
            detail: detail.into(),
            allow: None,
            retry_after: None,
            headers: Vec::new(),
            cause: None,
        }
    }

    /// A 500 with its cause.
    pub fn internal(cause: impl Into<String>) -> Problem {
        Problem::new(
            Kind::InternalError,
            "The request could not be completed; it may be sent again.",
        )
        .with_cause(cause.into())
    }

    /// The same problem with a cause for the log.
    pub fn with_cause(self, cause: String) -> Problem {
        Problem {
            cause: Some(cause),
            ..self
        }
    }

    /// The same problem with a `Retry-After` of this many seconds.
    pub fn with_retry_after(self, seconds: u64) -> Problem {
        Problem {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// 405. `allow` lists the methods that the path is answered by.
    pub fn method_not_allowed(method: &str, allow: &'static str) -> Problem {
        let detail = format!("{method} is not allowed here; allowed: {allow}.");
        Problem {
            allow: Some(allow),
            ..Problem::new(Kind::MethodNotAllowed, detail)
        }
    }

    /// The client closed the connection, or its sending side, before it was answered. Only the
    /// log shows it.
    pub fn client_gone() -> Problem {
        Problem::new(
            Kind::ClientGone,
            "The connection was closed, or its sending side, before the conversion was done.",
        )
    }

    /// 429 for forms that were sent too often from one address; `retry_after` is in seconds.
    pub fn too_many_attempts(retry_after: u64) -> Problem {
        let detail = format!(
            "Too many attempts came from your address. Try again in {}.",
            duration(retry_after)
        );
        Problem::new(Kind::TooManyAttempts, detail).with_retry_after(retry_after)
    }

    /// 429 for more changes of an account's tokens than are allowed.
    pub fn too_many_changes(retry_after: u64) -> Problem {
        let detail = format!(
            "The tokens of this account were changed too often. Try again in {}.",
            duration(retry_after)
        );
        Problem::new(Kind::TooManyAttempts, detail).with_retry_after(retry_after)
    }

    /// 403 for a token that only converts.
    pub fn token_converts_only(name: &str) -> Problem {
        let detail =
            format!("The token {name:?} only converts; the token \"default\" reads the history.");
        Problem::new(Kind::TokenConvertsOnly, detail)
    }

    /// 401 for a request without any token.
    pub fn token_missing() -> Problem {
        Problem::new(
            Kind::TokenMissing,
            "Give your API token as the query parameter token, or as the header Authorization: Bearer. The dashboard \
             shows it.",
        )
    }
}
