//! The one table of response headers: the documentation, the description of the API and the list of
//! headers for pages of other origins come from it. Headers of every HTTP server (`Date`,
//! `Content-Length` ...) and headers that only browsers read are left out.

use crate::store::RequestId;
use HeaderValue::{Number, Text, Whole, Word};
use std::sync::LazyLock;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHeader {
    /// The name.
    pub name: &'static str,
    /// Its meaning, in one line of Markdown.
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
    /// Responses with a converted picture.
    Picture,
    /// Responses to conversions, failed ones too.
    Conversion,
    /// Responses with a file to save.
    File,
    /// Responses that caches may keep.
    Asset,
    /// Problems.
    Problem,
    /// Problems of these statuses.
    Status(&'static [u16]),
}

/// Makes the table from the same columns in each row: the name, whether it comes with each response
/// of the kind, the type of its value, an example, and the meaning.
macro_rules! headers {
    ($($name:literal: $how:ident $on:expr, $value:expr, $example:literal, $meaning:literal;)+) => {
        /// The table.
        pub const RESPONSE_HEADERS: &[ResponseHeader] = &[$(
            ResponseHeader {
                name: $name,
                meaning: $meaning,
                value: $value,
                example: $example,
                on: $on,
                is_always: headers!($how),
            },
        )+];
    };
    (always) => { true };
    (sometimes) => { false };
}

headers! {
    "Image-Width": always On::Picture, Whole(1), "600",
        "the width of the picture that is sent, in pixels, upright";
    "Image-Height": always On::Picture, Whole(1), "400",
        "its height";
    "X-Webp-Mode": sometimes On::Picture, Word(&["lossy", "lossless", "mixed"]), "lossy",
        "`lossy`, `lossless` or `mixed`: how the pixels are coded; not of an original";
    "X-Webp-Unchanged": sometimes On::Picture, Word(&["true"]), "true",
        "the input is a WebP that the conversion would have made no smaller, and nothing else changes it: it is sent \
         as it came";
    "X-Webp-Quality": sometimes On::Picture, Whole(0), "71",
        "the quality that `max_bytes`, `target` or `default_quality=source` led to; not of a lossless file";
    "X-Webp-Score": sometimes On::Picture, Number, "70.35",
        "the score of the file, with `target`";
    "X-Towebp-Thumbhash": sometimes On::Picture, Text("^[A-Za-z0-9+/]{12,}={0,2}$"),
        "1QcSHQRnh493V4dIh4eXh1h4kJUI",
        "with `placeholder=true`: the ThumbHash of the picture, or of an animation's first frame, in base64";
    "X-Original-Bytes": always On::Picture, Whole(1), "103579",
        "the bytes of the input";
    "X-Saved-Percent": always On::Picture, Whole(i64::MIN), "66",
        "by how many percent the body is smaller than that, a whole number that is rounded down: negative if it \
         is larger, by however little. The dashboard and the command line have the same number";
    "Server-Timing": always On::Picture,
        Text(r"^[a-z]+;dur=[0-9]+\.[0-9](, [a-z]+;dur=[0-9]+\.[0-9])*$"),
        "decode;dur=3.1, watermark;dur=0.0, encode;dur=21.4",
        "milliseconds of `decode`, `watermark` and `encode` (the W3C's Server Timing)";
    "Content-Disposition": sometimes On::File,
        Text("^attachment; filename="), "attachment; filename=\"coffee.webp\"",
        "`attachment` with a name, if `download` gives one; of the CSV always";
    "RateLimit-Policy": sometimes On::Conversion,
        Text(r#"^"[a-z-]+";q=[0-9]+;w=[0-9]+(, "[a-z-]+";q=[0-9]+;w=[0-9]+)*$"#),
        "\"rate\";q=60;w=60",
        "the limits of the account and the token, if there are any";
    "RateLimit": sometimes On::Conversion,
        Text(r#"^"[a-z-]+";r=[0-9]+;t=[0-9]+(, "[a-z-]+";r=[0-9]+;t=[0-9]+)*$"#),
        "\"rate\";r=59;t=1",
        "what is left of them";
    "Cache-Control": always On::All,
        Text("^(private, no-store|no-store|max-age=[0-9]+)$"), "private, no-store",
        "`private, no-store`; of errors `no-store`, of the description of the API `max-age=300`";
    "X-Request-Id": always On::All, Text(RequestId::PATTERN), "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "32 random hexadecimal digits that name the request, also in the server's log; errors have it, too";
    "X-Towebp-Warning": sometimes On::All,
        Text("^unknown parameter "), "unknown parameter \"qualty\", did you mean \"quality\"?",
        "if an unknown parameter is close to a known one, or another service's name for it: `unknown parameter \
         \"qualty\", did you mean \"quality\"?`, for up to three of them; errors have it, too";
    "ETag": always On::Asset, Text("^\"[0-9a-f]{8}\"$"), "\"0123abcd\"",
        "names this version of the description of the API";
    "Link": always On::Problem,
        Text("^<[^>]+>; rel=\"describedby\"$"),
        "</openapi.json#/components/responses/busy>; rel=\"describedby\"",
        "of an error: where it is described, as `rel=\"describedby\"` (RFC 8288)";
    "Retry-After": always On::Status(&[429, 503]), Whole(0), "10",
        "of a 429 or 503: seconds after which the request may be sent again";
    "WWW-Authenticate": always On::Status(&[401]), Text("^Bearer "), "Bearer realm=\"towebp\"",
        "of a 401: `Bearer realm=\"towebp\"`";
    "Allow": always On::Status(&[405]), Text("^[A-Z]+(, [A-Z]+)*$"), "POST",
        "of a 405: the methods that the path is answered by";
    "Accept-Encoding": always On::Status(&[415]), Word(&["identity"]), "identity",
        "of a 415: `identity`, the one coding of a body that is read";
}

/// The names of all of them, for `Access-Control-Expose-Headers`.
pub static NAMES: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<&str> = RESPONSE_HEADERS.iter().map(|row| row.name).collect();
    names.join(", ")
});
