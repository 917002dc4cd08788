//! The one table of response headers: the documentation, the description of the API and what pages
//! of other origins may read come from it. Left out are those of every HTTP server (`Date`,
//! `Content-Length` ...) and those that only browsers read.

use std::sync::LazyLock;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHeader {
    /// The name.
    pub name: &'static str,
    /// What it says, in one line of Markdown.
    pub meaning: &'static str,
    /// The type of its value.
    pub value: HeaderValue,
    /// A value.
    pub example: &'static str,
    /// With which responses it comes.
    pub on: On,
    /// Whether it comes with each of them.
    pub is_always: bool,
}

/// The type of a header's value.
#[derive(Clone, Copy, Debug)]
pub enum HeaderValue {
    /// A whole number from this one on.
    Whole(i64),
    /// A number with a point.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Text of this form, a regular expression.
    Text(&'static str),
}

/// With which responses a header comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All.
    All,
    /// Those with a converted picture.
    Picture,
    /// Those of conversions, failed ones too.
    Conversion,
    /// Those with a file to save.
    File,
    /// Those with something that caches may keep.
    Asset,
    /// Problems.
    Problem,
    /// Problems of these statuses.
    Status(&'static [u16]),
}

/// The table.
pub const RESPONSE_HEADERS: [ResponseHeader; 20] = [
    header(
        "Image-Width",
        "the width of the picture that is sent, in pixels, upright",
        HeaderValue::Whole(1),
        "600",
        On::Picture,
    ),
    header(
        "Image-Height",
        "its height",
        HeaderValue::Whole(1),
        "400",
        On::Picture,
    ),
    sometimes(header(
        "X-Webp-Mode",
        "`lossy`, `lossless` or `mixed`: how the pixels are coded; not of an original",
        HeaderValue::Word(&["lossy", "lossless", "mixed"]),
        "lossy",
        On::Picture,
    )),
    sometimes(header(
        "X-Webp-Quality",
        "the quality that `max_bytes` or `target` led to; not of a lossless file",
        HeaderValue::Whole(0),
        "71",
        On::Picture,
    )),
    sometimes(header(
        "X-Webp-Score",
        "the score of the file, with `target`",
        HeaderValue::Number,
        "70.35",
        On::Picture,
    )),
    header(
        "X-Original-Bytes",
        "the bytes of the input",
        HeaderValue::Whole(1),
        "103579",
        On::Picture,
    ),
    header(
        "X-Saved-Percent",
        "by how many percent the body is smaller than that, a whole number that is rounded down: negative if it is \
         larger, by however little. The dashboard and the command line have the same number",
        HeaderValue::Whole(i64::MIN),
        "66",
        On::Picture,
    ),
    header(
        "Server-Timing",
        "milliseconds of `decode`, `watermark` and `encode` (the W3C's Server Timing)",
        HeaderValue::Text(r"^[a-z]+;dur=[0-9]+\.[0-9](, [a-z]+;dur=[0-9]+\.[0-9])*$"),
        "decode;dur=3.1, watermark;dur=0.0, encode;dur=21.4",
        On::Picture,
    ),
    sometimes(header(
        "Content-Disposition",
        "`attachment` with a name, if `download` gives one; of the CSV always",
        HeaderValue::Text("^attachment; filename="),
        "attachment; filename=\"coffee.webp\"",
        On::File,
    )),
    sometimes(header(
        "RateLimit-Policy",
        "the limits of the account and the token, if there are any",
        HeaderValue::Text(r#"^"[a-z-]+";q=[0-9]+;w=[0-9]+(, "[a-z-]+";q=[0-9]+;w=[0-9]+)*$"#),
        "\"rate\";q=60;w=60",
        On::Conversion,
    )),
    sometimes(header(
        "RateLimit",
        "what is left of them",
        HeaderValue::Text(r#"^"[a-z-]+";r=[0-9]+;t=[0-9]+(, "[a-z-]+";r=[0-9]+;t=[0-9]+)*$"#),
        "\"rate\";r=59;t=1",
        On::Conversion,
    )),
    header(
        "Cache-Control",
        "`private, no-store`; of errors `no-store`, of the description of the API `max-age=300`",
        HeaderValue::Text("^(private, no-store|no-store|max-age=[0-9]+)$"),
        "private, no-store",
        On::All,
    ),
    header(
        "X-Request-Id",
        "32 random hexadecimal digits that name the request, also in the server's log; errors have it, too",
        HeaderValue::Text("^[0-9a-f]{32}$"),
        "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        On::All,
    ),
    sometimes(header(
        "X-Towebp-Warning",
        "if an unknown parameter is close to a known one, or another service's name for it: `unknown parameter \
         \"qualty\", did you mean \"quality\"?`, for up to three of them; errors have it, too",
        HeaderValue::Text("^unknown parameter "),
        "unknown parameter \"qualty\", did you mean \"quality\"?",
        On::All,
    )),
    header(
        "ETag",
        "names this version of the description of the API",
        HeaderValue::Text("^\"[0-9a-f]{8}\"$"),
        "\"0123abcd\"",
        On::Asset,
    ),
    header(
        "Link",
        "of an error: where it is described, as `rel=\"describedby\"` (RFC 8288)",
        HeaderValue::Text("^<[^>]+>; rel=\"describedby\"$"),
        "</openapi.json#/components/responses/busy>; rel=\"describedby\"",
        On::Problem,
    ),
    header(
        "Retry-After",
        "of a 429 or 503: seconds after which the request may be sent again",
        HeaderValue::Whole(0),
        "10",
        On::Status(&[429, 503]),
    ),
    header(
        "WWW-Authenticate",
        "of a 401: `Bearer realm=\"towebp\"`",
        HeaderValue::Text("^Bearer "),
        "Bearer realm=\"towebp\"",
        On::Status(&[401]),
    ),
    header(
        "Allow",
        "of a 405: the methods that the path is answered by",
        HeaderValue::Text("^[A-Z]+(, [A-Z]+)*$"),
        "POST",
        On::Status(&[405]),
    ),
    header(
        "Accept-Encoding",
        "of a 415: `identity`, the one coding of a body that is read",
        HeaderValue::Word(&["identity"]),
        "identity",
        On::Status(&[415]),
    ),
];

/// The names of all of them, for `Access-Control-Expose-Headers`.
pub static NAMES: LazyLock<String> =
    LazyLock::new(|| RESPONSE_HEADERS.map(|row| row.name).join(", "));

const fn header(
    name: &'static str,
    meaning: &'static str,
    value: HeaderValue,
    example: &'static str,
    on: On,
) -> ResponseHeader {
    ResponseHeader {
        name,
        meaning,
        value,
        example,
        on,
        is_always: true,
    }
}

const fn sometimes(header: ResponseHeader) -> ResponseHeader {
    ResponseHeader {
        is_always: false,
        ..header
    }
}
