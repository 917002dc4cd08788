//! Requests that the front rejects.

use super::request::{body_cut_short, body_too_large};
use super::{Kind, Problem};
use crate::front::Rejection;

/// Seconds after which a client that has too many connections may try again: as long as a
/// forgotten connection may stay.
const RETRY_AFTER_CONNECTIONS: u64 = 10;

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Problem {
        let (kind, detail) = match rejection {
            Rejection::Malformed(what) => (
                Kind::MalformedRequest,
                format!("The request cannot be read: {what}."),
            ),
            Rejection::Framing(what) => (
                Kind::ContentLengthInvalid,
                format!(
                    "{what}; it must be one whole number, or Transfer-Encoding: chunked without it."
                ),
            ),
            Rejection::BodyIncomplete { received } => return body_cut_short(received),
            Rejection::ClientDisconnected => return Problem::client_gone(),
            Rejection::HeadTimeout => (
                Kind::RequestTimeout,
                "The request's headers did not arrive in time.".to_owned(),
            ),
            Rejection::BodyTimeout => (
                Kind::RequestTimeout,
                "The request's body arrived too slowly.".to_owned(),
            ),
            Rejection::LengthRequired => (
                Kind::LengthRequired,
                "HTTP/1.0 needs a Content-Length with every POST.".to_owned(),
            ),
            Rejection::BodyTooLarge { limit } => return body_too_large(limit),
            Rejection::TargetTooLong { limit } => (
                Kind::TargetTooLong,
                format!("The URL and the headers may have up to {limit} bytes together."),
            ),
            Rejection::ExpectationUnsupported => (
                Kind::ExpectationFailed,
                "Expect may be 100-continue and nothing else.".to_owned(),
            ),
            Rejection::HeadTooLarge { limit } => (
                Kind::HeadTooLarge,
                format!("The URL and the headers may have up to {limit} bytes together."),
            ),
            Rejection::TooManyHeaders { limit } => (
                Kind::HeadTooLarge,
                format!("A request may have up to {limit} headers."),
            ),
            Rejection::TransferCodingUnsupported => (
                Kind::TransferEncodingUnsupported,
                "Transfer-Encoding may be chunked and nothing else.".to_owned(),
            ),
            Rejection::VersionUnsupported => (
                Kind::VersionUnsupported,
                "HTTP/1.1 and HTTP/1.0 are spoken here.".to_owned(),
            ),
            Rejection::Busy { retry_after } => {
                let detail =
                    "More requests are being worked on than there is room for; try again later.";
                return Problem::new(Kind::Busy, detail).with_retry_after(retry_after);
            }
            Rejection::TooManyConnections => {
                let detail = "Use the connections that are open already, or close some.";
                return Problem::new(Kind::TooManyConnections, detail)
                    .with_retry_after(RETRY_AFTER_CONNECTIONS);
            }
            Rejection::WorkerFailed => {
                return Problem::internal("a worker ended without a response");
            }
        };
        Problem::new(kind, detail)
    }
}
