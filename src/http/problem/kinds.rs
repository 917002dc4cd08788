//! The one table of problems: their statuses, codes and titles, and when each occurs.

use crate::front::reason_phrase;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemRow {
    /// The HTTP status code.
    pub status: u16,
    /// Machine-readable; does not change between versions.
    pub code: &'static str,
    /// The same text for every occurrence.
    pub title: &'static str,
    /// When it occurs: one sentence for the documentation.
    pub when: &'static str,
    /// Which requests may be answered with it.
    pub scope: Scope,
}

impl ProblemRow {
    /// Whether clients see it.
    pub fn is_sent(&self) -> bool {
        self.scope != Scope::Log
    }
}

/// Which requests may be answered with a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All requests: problems of HTTP itself, and of the size of a request.
    Connection,
    /// Requests for paths and methods that are not in the table of routes.
    Route,
    /// Requests that a worker answers.
    Worker,
    /// Requests that have a token and parameters.
    Token,
    /// Conversions.
    Conversion,
    /// Requests for the usage history.
    History,
    /// The readiness check.
    Readiness,
    /// Forms of the dashboard.
    Form,
    /// No request: the problem stands in the log alone.
    Log,
}

/// Makes the enum and the list of its rows from the same lines.
macro_rules! kinds {
    ($($kind:ident($scope:ident): $status:literal $code:literal $title:literal, $when:literal;)+) => {
        /// The kind of problem, as the client can act on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $when] $kind,)+
        }

        impl Kind {
            /// Every kind, in the order of [`PROBLEMS`].
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];
        }

        /// All problems, each at the index of its [`Kind`].
        pub const PROBLEMS: &[ProblemRow] = &[$(
            ProblemRow {
                status: $status,
                code: $code,
                title: $title,
                when: $when,
                scope: Scope::$scope,
            },
        )+];
    };
}

kinds! {
    // 400 Bad Request: unsupported image format, or invalid data
    InvalidParameter(Token): 400 "invalid_parameter" "A parameter cannot be used",
        "A parameter has a value that is not allowed, or text that is not UTF-8.";
    FixedParameter(Conversion): 400 "fixed_parameter" "A parameter is fixed for this token",
        "A parameter is given that the token's preset fixes, or one that goes with it.";
    RepeatedParameter(Token): 400 "repeated_parameter" "A parameter is given more than once",
        "A parameter that may be given once is given more than once.";
    ContentTypeMissing(Conversion): 400 "content_type_missing" "Content-Type does not say what the picture is",
        "`Content-Type` is missing, or is that of a form, which is curl's default.";
    ContentTypeUnsupported(Conversion): 400 "content_type_unsupported" "The format is not supported",
        "`Content-Type` names a format other than PNG, JPEG, GIF and BMP, and WebP and TIFF with `--accept`.";
    ContentTypeRepeated(Conversion): 400 "content_type_repeated" "Content-Type is given more than once",
        "The request has more than one `Content-Type`, even if they are the same.";
    BodyEmpty(Conversion): 400 "body_empty" "There is no picture in the request",
        "The body, or the file in a form, has no bytes; or a form has no file.";
    BodyCutShort(Connection): 400 "body_cut_short" "The body ended too early",
        "The client stopped sending before the end of the body that it had announced.";
    ContentLengthInvalid(Connection): 400 "content_length_invalid" "The body's length is not clear",
        "`Content-Length` is not one whole number, or stands beside `Transfer-Encoding`.";
    WrongFormat(Conversion): 400 "wrong_format" "The picture is not what Content-Type says",
        "The body begins like a file of another format than `Content-Type` names.";
    InvalidImage(Conversion): 400 "invalid_image" "The picture cannot be read",
        "The picture is damaged, cut short, or of a kind that is not supported.";
    ImageTooWide(Conversion): 400 "image_too_wide" "The picture is too wide or too high",
        "A side has more than 16383 pixels, the most that a WebP file may have.";
    TooManyPixels(Conversion): 400 "too_many_pixels" "The picture has too many pixels",
        "The picture has more pixels than `--max-pixels`, an animation's frames together have more \
         than `--max-animation-pixels`, or an enlarged picture with `target`, `max_bytes` or \
         `effort=max` would have more than `--max-enlarged-pixels`.";
    TooManyFrames(Conversion): 400 "too_many_frames" "The animation has too many frames",
        "The animation has more frames than `--max-frames`.";
    MissingCharacters(Conversion): 400 "missing_characters" "The watermark's text cannot be drawn",
        "No font of the server has some character of the watermark's text.";
    MaxBytesUnreachable(Conversion): 400 "max_bytes_unreachable" "The picture does not fit into so few bytes",
        "The smallest file of the picture has more bytes than `max_bytes`; the text names its size.";
    WatermarkUrlInvalid(Conversion): 400 "watermark_url_invalid" "The watermark's URL cannot be used",
        "`watermark_image` is not an absolute http or https URL, or has a port, a user or a host \
         that is not allowed.";
    WatermarkForbidden(Conversion): 400 "watermark_forbidden" "The watermark's host may not be reached",
        "The host in `watermark_image` has a private or local address.";
    WatermarkUnreachable(Conversion): 400 "watermark_unreachable" "The watermark's host does not answer",
        "The host in `watermark_image` has no address, does not answer by HTTP, or redirects too \
         often, or TLS fails.";
    WatermarkStatus(Conversion): 400 "watermark_status" "The watermark's host gave no picture",
        "The host in `watermark_image` answered with a status other than 200.";
    WatermarkTooLarge(Conversion): 400 "watermark_too_large" "The watermark's picture is too large",
        "The picture at `watermark_image` has too many bytes or too many pixels.";
    WatermarkTimeout(Conversion): 400 "watermark_timeout" "The watermark's host is too slow",
        "The picture at `watermark_image` did not arrive within `--watermark-timeout`.";
    WatermarkNotPngOrJpeg(Conversion): 400 "watermark_not_png_or_jpeg" "The watermark is not a PNG or JPEG",
        "What came from `watermark_image` is not a PNG or JPEG that can be read.";
    WatermarkTlsUnavailable(Conversion): 400 "watermark_tls_unavailable" "https is not available here",
        "`watermark_image` is an https URL, and the server's processor lacks instructions that TLS \
         needs.";
    InvalidForm(Conversion): 400 "invalid_form" "The form cannot be read",
        "A form cannot be read, has two files, or exceeds a limit; the text says which. Or a form of \
         the dashboard is not `application/x-www-form-urlencoded` in UTF-8.";
    // 401 Unauthorized: API token missing or invalid
    TokenMissing(Token): 401 "token_missing" "An API token is needed",
        "The request has no API token, nor, where one would do, a session.";
    TokenInvalid(Token): 401 "token_invalid" "The API token is not valid",
        "The token is mistyped, or was replaced or deleted, or its account was.";
    TokenExpired(Token): 401 "token_expired" "The API token has ended",
        "The token's end, which the account's owner has set, is over.";
    TokensDiffer(Token): 401 "tokens_differ" "More than one API token is given",
        "The query and the header `Authorization` carry different tokens.";
    // 405 Method Not Allowed: method other than POST
    MethodNotAllowed(Route): 405 "method_not_allowed" "The method is not allowed here",
        "The path is not answered by this method; `Allow` lists those that it is.";
    // 500 Internal Server Error: error during conversion
    InternalError(Worker): 500 "internal_error" "The server failed",
        "The server has a fault; its log has the cause under the request's id.";
    // Beyond the specification.
    AccountDisabled(Conversion): 403 "account_disabled" "The account may not convert",
        "The server's operator has disabled the account (`towebp account disable`).";
    TokenConvertsOnly(History): 403 "token_converts_only" "This token only converts",
        "The usage history was asked for with another token than the account's `default`.";
    TokenInUrl(Token): 403 "token_in_url" "The token may not be in the URL",
        "A page of another origin, allowed by `--allow-origin '*'`, has its token in the URL.";
    CrossSiteForm(Form): 403 "cross_site_form" "The form came from another site",
        "A form of the dashboard was sent by a page of another site.";
    NotFound(Route): 404 "not_found" "There is nothing here",
        "No such path is answered.";
    TooManyAttempts(Form): 429 "too_many_attempts" "There were too many attempts",
        "Too many attempts to sign in or up came from the client's address, or the tokens of the \
         account were changed too often.";
    RateLimited(Conversion): 429 "rate_limited" "There were too many conversions",
        "The account (`--rate-limit`) or the token has had its conversions of this minute.";
    QuotaExceeded(Conversion): 429 "quota_exceeded" "The month's conversions are used up",
        "The account (`--monthly-quota`) or the token has had its conversions of this month.";
    BodyTooLarge(Connection): 413 "body_too_large" "The body is too large",
        "The body has more bytes than `--max-body`, or a form more than 16 KiB.";
    TooMuchMemory(Conversion): 413 "too_much_memory" "The picture takes more memory than there is",
        "The conversion would take more memory than the server has for all conversions.";
    ContentEncodingUnsupported(Conversion): 415 "content_encoding_unsupported" "The body is encoded",
        "`Content-Encoding` is something other than `identity`.";
    ConversionTimeout(Conversion): 503 "conversion_timeout" "The conversion took too long",
        "The conversion was stopped after `--conversion-timeout`.";
    StorageUnavailable(Token): 503 "storage_unavailable" "The server cannot record anything",
        "The server's disk takes no writes, so that nothing could be recorded.";
    // nginx's status, for the log: nobody is there to read it.
    ClientGone(Log): 499 "client_gone" "The client has gone",
        "The client closed the connection before the answer; it stands in the log alone.";
    // How HTTP is spoken.
    MalformedRequest(Connection): 400 "malformed_request" "This is not HTTP/1.1",
        "The request's head or its chunks do not follow RFC 9112.";
    RequestTimeout(Connection): 408 "request_timeout" "The request took too long",
        "The head took longer than `--head-timeout`, or the body longer than `--body-timeout`, or \
         the body came slower than `--min-rate`.";
    LengthRequired(Connection): 411 "length_required" "Content-Length is missing",
        "A POST of HTTP/1.0 has no `Content-Length`.";
    TargetTooLong(Connection): 414 "target_too_long" "The URL is too long",
        "The request line alone is longer than `--max-head`.";
    ExpectationFailed(Connection): 417 "expectation_failed" "The expectation cannot be met",
        "`Expect` is something other than `100-continue`.";
    HeadTooLarge(Connection): 431 "head_too_large" "The headers are too large",
        "The head has more bytes than `--max-head`, or more headers than `--max-headers`.";
    TransferEncodingUnsupported(Connection): 501 "transfer_encoding_unsupported"
        "The transfer encoding is not supported",
        "`Transfer-Encoding` is something other than `chunked`.";
    NotReady(Readiness): 503 "not_ready" "The server is not ready",
        "`/readyz` found that the server cannot convert or cannot record.";
    Busy(Worker): 503 "busy" "The server is busy",
        "No worker, memory or fetch became free within `--queue-timeout`, or too many wait.";
    TooManyConnections(Connection): 503 "too_many_connections" "There are too many connections",
        "The server, or the client's address, has as many connections as are allowed.";
    VersionUnsupported(Connection): 505 "http_version_unsupported" "The HTTP version is not supported",
        "The request is neither HTTP/1.1 nor HTTP/1.0.";
}

impl Kind {
    /// The kind of a code that another crate gives; that of a fault if there is none, which a test
    /// rules out.
    pub fn of_code(code: &str) -> Kind {
        let has_code = |kind: &&Kind| kind.row().code == code;
        let kind = Kind::ALL.iter().find(has_code);
        kind.copied().unwrap_or(Kind::InternalError)
    }

    /// Its row of the table.
    pub fn row(self) -> ProblemRow {
        PROBLEMS[self as usize]
    }

    /// The status's own name, as the specification and RFC 9110 give it.
    pub fn status_name(self) -> &'static str {
        reason_phrase(self.row().status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_has_its_own_code_and_a_named_status() {
        let codes: HashSet<&str> = PROBLEMS.iter().map(|row| row.code).collect();
        assert_eq!(codes.len(), PROBLEMS.len(), "two rows share a code");
        for kind in Kind::ALL {
            let row = kind.row();
            assert!(!kind.status_name().is_empty(), "{row:?} has no name");
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(row.code.bytes().all(is_plain), "{row:?}");
            assert!(row.when.ends_with('.'), "{row:?} has no sentence");
        }
    }
}
