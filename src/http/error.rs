//! Every room's errors as statuses: the one table, to be read beside the specification's own.
//!
//! Each `From` lists all cases of its error, so a case that somebody adds elsewhere does not compile until it has its
//! row here. Texts of 4xx help the caller; the text of a 500 says nothing of the inside, whose cause goes to the log.

use super::request::{BodyError, NotUtf8, Repeated, TokensDiffer};
use crate::admission::ReserveError;
use crate::conversion::{ConversionError, ParamError};
use crate::dashboard::duration;
use crate::fetch::FetchError;
use crate::front::{Rejection, reason_phrase};
use crate::image::{DecodeError, Format};
use crate::store::{StoreError, TokenError};

/// What went wrong, as the caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    InvalidParameter,
    RepeatedParameter,
    ContentTypeMissing,
    ContentTypeUnsupported,
    BodyEmpty,
    BodyCutShort,
    ContentLengthInvalid,
    WrongFormat,
    InvalidImage,
    ImageTooWide,
    TooManyPixels,
    /// More frames than `--max-frames`.
    TooManyFrames,
    MissingCharacters,
    WatermarkUrlInvalid,
    WatermarkForbidden,
    WatermarkUnreachable,
    WatermarkStatus,
    WatermarkTooLarge,
    WatermarkTimeout,
    WatermarkNotPngOrJpeg,
    WatermarkTlsUnavailable,
    InvalidForm,
    TokenMissing,
    TokenInvalid,
    TokensDiffer,
    CrossSiteForm,
    NotFound,
    MethodNotAllowed,
    BodyTooLarge,
    TooMuchMemory,
    ClientGone,
    MalformedRequest,
    RequestTimeout,
    LengthRequired,
    TargetTooLong,
    ExpectationFailed,
    TooManyAttempts,
    RateLimited,
    QuotaExceeded,
    HeadTooLarge,
    InternalError,
    ConversionTimeout,
    StorageUnavailable,
    NotReady,
    TransferEncodingUnsupported,
    Busy,
    TooManyConnections,
    VersionUnsupported,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The status code.
    pub status: u16,
    /// Machine-readable and stable.
    pub code: &'static str,
    /// The same for every occurrence.
    pub title: &'static str,
}

impl Kind {
    /// The table.
    #[expect(clippy::too_many_lines, reason = "a table is read in one piece")]
    pub fn row(self) -> Row {
        let (status, code, title) = match self {
            // 400 Bad Request: unsupported image format, or invalid data
            Kind::InvalidParameter => (400, "invalid_parameter", "A parameter cannot be used"),
            Kind::RepeatedParameter => (
                400,
                "repeated_parameter",
                "A parameter is given more than once",
            ),
            Kind::ContentTypeMissing => (
                400,
                "content_type_missing",
                "Content-Type does not say what the picture is",
            ),
            Kind::ContentTypeUnsupported => (
                400,
                "content_type_unsupported",
                "The format is not supported",
            ),
            Kind::BodyEmpty => (400, "body_empty", "There is no picture in the request"),
            Kind::BodyCutShort => (400, "body_cut_short", "The body ended too early"),
            Kind::ContentLengthInvalid => (
                400,
                "content_length_invalid",
                "The body's length is not clear",
            ),
            Kind::WrongFormat => (
                400,
                "wrong_format",
                "The picture is not what Content-Type says",
            ),
            Kind::InvalidImage => (400, "invalid_image", "The picture cannot be read"),
            Kind::ImageTooWide => (400, "image_too_wide", "The picture is too wide or too high"),
            Kind::TooManyPixels => (400, "too_many_pixels", "The picture has too many pixels"),
            Kind::TooManyFrames => (400, "too_many_frames", "The animation has too many frames"),
            Kind::MissingCharacters => (
                400,
                "missing_characters",
                "The watermark's text cannot be drawn",
            ),
            Kind::WatermarkUrlInvalid => (
                400,
                "watermark_url_invalid",
                "The watermark's URL cannot be used",
            ),
            Kind::WatermarkForbidden => (
                400,
                "watermark_forbidden",
                "The watermark's host may not be reached",
            ),
            Kind::WatermarkUnreachable => (
                400,
                "watermark_unreachable",
                "The watermark's host does not answer",
            ),
            Kind::WatermarkStatus => (
                400,
                "watermark_status",
                "The watermark's host gave no picture",
            ),
            Kind::WatermarkTooLarge => (
                400,
                "watermark_too_large",
                "The watermark's picture is too large",
            ),
            Kind::WatermarkTimeout => {
                (400, "watermark_timeout", "The watermark's host is too slow")
            }
            Kind::WatermarkNotPngOrJpeg => (
                400,
                "watermark_not_png_or_jpeg",
                "The watermark is not a PNG or JPEG",
            ),
            Kind::WatermarkTlsUnavailable => (
                400,
                "watermark_tls_unavailable",
                "https is not available here",
            ),
            Kind::InvalidForm => (400, "invalid_form", "The form cannot be read"),
            // 401 Unauthorized: API token missing or invalid
            Kind::TokenMissing => (401, "token_missing", "An API token is needed"),
            Kind::TokenInvalid => (401, "token_invalid", "The API token is not valid"),
            Kind::TokensDiffer => (401, "tokens_differ", "More than one API token is given"),
            // 405 Method Not Allowed: method other than POST
            Kind::MethodNotAllowed => (405, "method_not_allowed", "The method is not allowed here"),
            // 500 Internal Server Error: error during conversion
            Kind::InternalError => (500, "internal_error", "The server failed"),
            // beyond the specification
            Kind::CrossSiteForm => (403, "cross_site_form", "The form came from another site"),
            Kind::NotFound => (404, "not_found", "There is nothing here"),
            Kind::TooManyAttempts => (429, "too_many_attempts", "There were too many attempts"),
            Kind::RateLimited => (429, "rate_limited", "There were too many conversions"),
            Kind::QuotaExceeded => (429, "quota_exceeded", "The month's conversions are used up"),
            Kind::BodyTooLarge => (413, "body_too_large", "The body is too large"),
            Kind::TooMuchMemory => (
                413,
                "too_much_memory",
                "The picture takes more memory than there is",
            ),
            Kind::ConversionTimeout => (503, "conversion_timeout", "The conversion took too long"),
            Kind::StorageUnavailable => (
                503,
                "storage_unavailable",
                "The server cannot record anything",
            ),
            // nginx's status for the log: nobody is there to read it
            Kind::ClientGone => (499, "client_gone", "The client has gone"),
            // the front door: how HTTP is spoken
            Kind::MalformedRequest => (400, "malformed_request", "This is not HTTP/1.1"),
            Kind::RequestTimeout => (408, "request_timeout", "The request took too long"),
            Kind::LengthRequired => (411, "length_required", "Content-Length is missing"),
            Kind::TargetTooLong => (414, "target_too_long", "The URL is too long"),
            Kind::ExpectationFailed => (417, "expectation_failed", "The expectation cannot be met"),
            Kind::HeadTooLarge => (431, "head_too_large", "The headers are too large"),
            Kind::TransferEncodingUnsupported => (
                501,
                "transfer_encoding_unsupported",
                "The transfer encoding is not supported",
            ),
            Kind::NotReady => (503, "not_ready", "The server is not ready"),
            Kind::Busy => (503, "busy", "The server is busy"),
            Kind::TooManyConnections => (
                503,
                "too_many_connections",
                "There are too many connections",
            ),
            Kind::VersionUnsupported => (
                505,
                "http_version_unsupported",
                "The HTTP version is not supported",
            ),
        };
        Row {
            status,
            code,
            title,
        }
    }

    /// The status's own name, as the specification and RFC 9110 give it.
    pub fn status_name(self) -> &'static str {
        reason_phrase(self.row().status)
    }
}

/// An error on its way to the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its row.
    pub kind: Kind,
    /// This occurrence, as a sentence or two for the caller.
    pub detail: String,
    /// For `Allow`.
    pub allow: Option<&'static str>,
    /// For `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// What happened inside, for the log.
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

    /// With a cause for the log.
    pub fn with_cause(self, cause: String) -> Problem {
        Problem {
            cause: Some(cause),
            ..self
        }
    }

    /// 405.
    pub fn method_not_allowed(method: &str, allow: &'static str) -> Problem {
        let detail = format!("{method} is not allowed here; allowed: {allow}.");
        Problem {
            allow: Some(allow),
            ..Problem::new(Kind::MethodNotAllowed, detail)
        }
    }

    /// For the log: the client closed the connection, or its sending side, before it was answered.
    pub fn client_gone() -> Problem {
        Problem::new(
            Kind::ClientGone,
            "The connection was closed, or its sending side, before the conversion was done.",
        )
    }

    /// 429 for forms that were sent too often from one address.
    pub fn too_many_attempts(retry_after: u64) -> Problem {
        let detail = format!(
            "Too many attempts came from your address. Try again in {}.",
            duration(retry_after)
        );
        Problem {
            retry_after: Some(retry_after),
            ..Problem::new(Kind::TooManyAttempts, detail)
        }
    }

    /// 401 without any token.
    pub fn token_missing() -> Problem {
        Problem::new(
            Kind::TokenMissing,
            "Give your API token as the query parameter token, or as the header Authorization: Bearer. The dashboard \
             shows it.",
        )
    }
}

impl From<ParamError> for Problem {
    fn from(error: ParamError) -> Problem {
        let kind = match error.code {
            "repeated_parameter" => Kind::RepeatedParameter,
            _ => Kind::InvalidParameter,
        };
        Problem::new(kind, error.detail)
    }
}

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

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Problem {
        match error {
            TokenError::Invalid => Problem::new(
                Kind::TokenInvalid,
                "The token is mistyped, or it was replaced by a new one, or its account was deleted. The dashboard \
                 shows the present one.",
            ),
            TokenError::Store(error) => Problem::from(error),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            // The log has the cause already, once for all who meet it.
            StoreError::Unavailable(_) => Problem {
                retry_after: Some(RETRY_AFTER_STORAGE),
                ..Problem::new(
                    Kind::StorageUnavailable,
                    "Nothing can be recorded at the moment, and so nothing is done; try again later.",
                )
            },
            StoreError::Failed(cause) => Problem::internal(format!("store: {cause}")),
        }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Problem {
        match error {
            BodyError::TooLarge { limit } => body_too_large(limit),
            BodyError::CutShort { received } => body_cut_short(received),
        }
    }
}

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
                return Problem {
                    retry_after: Some(retry_after),
                    ..Problem::new(Kind::Busy, detail)
                };
            }
            Rejection::TooManyConnections => {
                let detail = "Use the connections that are open already, or close some.";
                return Problem {
                    // As long as a forgotten connection may stay.
                    retry_after: Some(10),
                    ..Problem::new(Kind::TooManyConnections, detail)
                };
            }
            Rejection::UpstreamFailed => {
                return Problem::internal("the request broke off behind the front door");
            }
        };
        Problem::new(kind, detail)
    }
}

fn body_too_large(limit: u64) -> Problem {
    Problem::new(
        Kind::BodyTooLarge,
        format!("The body may have up to {limit} bytes."),
    )
}

fn body_cut_short(received: u64) -> Problem {
    Problem::new(
        Kind::BodyCutShort,
        format!("Only {received} bytes of the body arrived, fewer than were announced."),
    )
}

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
                return Problem {
                    retry_after: Some(RETRY_AFTER_FETCHES),
                    ..Problem::new(Kind::Busy, format!("watermark_image: {error}"))
                };
            }
            FetchError::Abandoned => return Problem::client_gone(),
            FetchError::Failed => return Problem::internal("the fetching has panicked"),
        };
        Problem::new(kind, format!("watermark_image: {error}"))
    }
}

impl From<ConversionError> for Problem {
    fn from(error: ConversionError) -> Problem {
        match error {
            ConversionError::Picture(error) => picture(&error),
            ConversionError::WatermarkPicture(error) => watermark_picture(&error),
            ConversionError::MissingCharacters(_) => {
                Problem::new(Kind::MissingCharacters, error.to_string())
            }
            ConversionError::Cancelled => conversion_timeout(),
            ConversionError::Internal(cause) => Problem::internal(format!("conversion: {cause}")),
        }
    }
}

impl From<ReserveError> for Problem {
    fn from(unreserved: ReserveError) -> Problem {
        match unreserved {
            ReserveError::TooLarge { needed, total } => Problem::new(
                Kind::TooMuchMemory,
                format!(
                    "This needs {needed} bytes of memory at a time; this server has {total} for all conversions. Send a \
                     smaller picture, or start it with a larger --memory."
                ),
            ),
            ReserveError::Busy { wait } => Problem {
                retry_after: Some(wait.as_secs().saturating_add(1).min(LONGEST_RETRY)),
                ..Problem::new(
                    Kind::Busy,
                    "The pictures that are being converted take all workers or all memory; try again later.",
                )
            },
            ReserveError::Cancelled => Problem::client_gone(),
        }
    }
}

/// Seconds after which the front door, too, lets everybody try again: what is waited for has ended by then or was refused.
const LONGEST_RETRY: u64 = 60;

/// Seconds until a picture that took too long may be sent again: it held a core for as long as anything may, so not at once.
const RETRY_AFTER_TIMEOUT: u64 = 60;

/// Seconds until it is worth asking again whether there is room on the disk: somebody has to make it, and then it is found
/// within a second.
const RETRY_AFTER_STORAGE: u64 = 10;

/// Most fetches take less.
const RETRY_AFTER_FETCHES: u64 = 5;

fn conversion_timeout() -> Problem {
    Problem {
        retry_after: Some(RETRY_AFTER_TIMEOUT),
        ..Problem::new(
            Kind::ConversionTimeout,
            "The conversion took longer than this server allows. Send a smaller picture, or the same when the \
             server is less busy.",
        )
    }
}

fn picture(error: &DecodeError) -> Problem {
    let kind = match error {
        DecodeError::WrongFormat { declared, found } => {
            return Problem::new(Kind::WrongFormat, wrong_format(*declared, *found));
        }
        DecodeError::Invalid(_) => Kind::InvalidImage,
        DecodeError::TooWide { .. } => Kind::ImageTooWide,
        DecodeError::TooManyPixels { .. } | DecodeError::FilmTooLarge { .. } => Kind::TooManyPixels,
        DecodeError::TooManyFrames { .. } => Kind::TooManyFrames,
        DecodeError::Cancelled => return conversion_timeout(),
    };
    Problem::new(kind, error.to_string())
}

fn wrong_format(declared: Format, found: Option<Format>) -> String {
    let declared = declared.name();
    match found.map(Format::name) {
        Some(found) => format!(
            "Content-Type says image/{declared}, but the body looks like image/{found}; send -H 'Content-Type: \
             image/{found}'."
        ),
        None => format!(
            "Content-Type says image/{declared}, but the body does not look like it, nor like another format that is \
             read here (image/png, image/jpeg, image/gif, image/bmp)."
        ),
    }
}

fn watermark_picture(error: &DecodeError) -> Problem {
    let kind = match error {
        DecodeError::WrongFormat { .. } | DecodeError::Invalid(_) => Kind::WatermarkNotPngOrJpeg,
        DecodeError::TooWide { .. }
        | DecodeError::TooManyPixels { .. }
        | DecodeError::TooManyFrames { .. }
        | DecodeError::FilmTooLarge { .. } => Kind::WatermarkTooLarge,
        DecodeError::Cancelled => return conversion_timeout(),
    };
    Problem::new(kind, format!("watermark_image: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ALL: [Kind; 47] = [
        Kind::InvalidParameter,
        Kind::RepeatedParameter,
        Kind::ContentTypeMissing,
        Kind::ContentTypeUnsupported,
        Kind::BodyEmpty,
        Kind::BodyCutShort,
        Kind::ContentLengthInvalid,
        Kind::WrongFormat,
        Kind::InvalidImage,
        Kind::ImageTooWide,
        Kind::TooManyPixels,
        Kind::TooManyFrames,
        Kind::MissingCharacters,
        Kind::WatermarkUrlInvalid,
        Kind::WatermarkForbidden,
        Kind::WatermarkUnreachable,
        Kind::WatermarkStatus,
        Kind::WatermarkTooLarge,
        Kind::WatermarkTimeout,
        Kind::WatermarkNotPngOrJpeg,
        Kind::WatermarkTlsUnavailable,
        Kind::InvalidForm,
        Kind::TokenMissing,
        Kind::TokenInvalid,
        Kind::TokensDiffer,
        Kind::CrossSiteForm,
        Kind::NotFound,
        Kind::MethodNotAllowed,
        Kind::BodyTooLarge,
        Kind::TooMuchMemory,
        Kind::ClientGone,
        Kind::MalformedRequest,
        Kind::RequestTimeout,
        Kind::LengthRequired,
        Kind::TargetTooLong,
        Kind::ExpectationFailed,
        Kind::TooManyAttempts,
        Kind::RateLimited,
        Kind::QuotaExceeded,
        Kind::HeadTooLarge,
        Kind::InternalError,
        Kind::ConversionTimeout,
        Kind::StorageUnavailable,
        Kind::TransferEncodingUnsupported,
        Kind::Busy,
        Kind::TooManyConnections,
        Kind::VersionUnsupported,
    ];

    #[test]
    fn every_row_has_its_own_code_and_a_named_status() {
        let codes: HashSet<&str> = ALL.iter().map(|kind| kind.row().code).collect();
        assert_eq!(codes.len(), ALL.len(), "two rows share a code");
        for kind in ALL {
            let row = kind.row();
            assert!(!kind.status_name().is_empty(), "{row:?} has no name");
            assert!(
                row.code
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{row:?}"
            );
        }
    }

    #[test]
    fn what_the_caller_sent_is_400_and_what_we_broke_is_500_or_503() {
        let status = |error: ConversionError| Problem::from(error).kind.row().status;
        let invalid = || DecodeError::Invalid("cut short".to_owned());
        assert_eq!(status(ConversionError::Picture(invalid())), 400);
        assert_eq!(status(ConversionError::WatermarkPicture(invalid())), 400);
        assert_eq!(status(ConversionError::MissingCharacters(vec!['☃'])), 400);
        assert_eq!(status(ConversionError::Internal("a bug".to_owned())), 500);
        assert_eq!(status(ConversionError::Cancelled), 503);
    }

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
    fn a_full_disk_is_a_503_that_the_log_is_not_told_again() {
        let full = StoreError::Unavailable("/srv/data/towebp.redb: disk full".to_owned());
        let problem = Problem::from(full);
        assert_eq!(problem.kind.row().status, 503);
        assert!(problem.retry_after.is_some());
        assert!(!problem.detail.contains("redb"), "{}", problem.detail);
        assert_eq!(problem.cause, None);
    }

    #[test]
    fn missing_characters_are_named() {
        let problem = Problem::from(ConversionError::MissingCharacters(vec!['☃', '\u{1F600}']));
        assert!(
            problem.detail.contains("☃ (U+2603)") && problem.detail.contains("U+1F600"),
            "{}",
            problem.detail
        );
    }

    #[test]
    fn a_watermark_that_failed_for_no_fault_of_the_caller_is_no_400() {
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
    fn causes_of_a_failed_watermark_are_told_apart() {
        let errors = [
            FetchError::Url(String::new()),
            FetchError::Forbidden(String::new()),
            FetchError::Unreachable(String::new()),
            FetchError::Status(404),
            FetchError::TooLarge { max_bytes: 1 },
            FetchError::Timeout,
            FetchError::TlsUnavailable,
        ];
        let rows: Vec<Row> = errors
            .into_iter()
            .map(|error| Problem::from(error).kind.row())
            .collect();
        assert!(
            rows.iter()
                .all(|row| row.status == 400 && row.code.starts_with("watermark_")),
            "{rows:?}"
        );
        assert_eq!(
            rows.iter()
                .map(|row| row.code)
                .collect::<HashSet<_>>()
                .len(),
            7,
            "{rows:?}"
        );
    }
}
