//! Why a form cannot be read.

use thiserror::Error;

use super::limits::{MAX_FIELDS, MAX_PART_HEADERS, MAX_PARTS};

/// A form that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FormError {
    /// `Content-Type` names no boundary.
    #[error(
        "Content-Type is multipart/form-data without a boundary; let the program that makes the form set it."
    )]
    BoundaryMissing,
    /// The boundary, as it was given, cannot be used.
    #[error(
        "The form's boundary is {}; allowed is one of 1 to 70 letters, digits, spaces within and '()+_,-./:=?.",
        shown(.0)
    )]
    BoundaryInvalid(String),
    /// The body does not begin with the boundary.
    #[error("The body does not begin with two hyphens and the boundary that Content-Type names.")]
    NoBoundary,
    /// A line begins with the boundary and goes on.
    #[error(
        "A line begins with the boundary and goes on; allowed are two hyphens after the last part, or a line end, \
         CR LF, before another."
    )]
    BoundaryLine,
    /// The body ends before the last boundary.
    #[error("The body ends before the form's last boundary, which two hyphens follow.")]
    CutShort,
    /// Something follows the last boundary.
    #[error("Bytes follow the form's last boundary; allowed is white space.")]
    AfterEnd,
    /// There are more than [`MAX_PARTS`] parts.
    #[error("The form may have up to {} parts.", MAX_PARTS)]
    TooManyParts,
    /// The headers of a part have more than [`MAX_PART_HEADERS`] bytes.
    #[error(
        "The headers of a part of the form may have up to {} bytes.",
        MAX_PART_HEADERS
    )]
    HeadersTooLarge,
    /// The headers of a part cannot be read; the text has the reason.
    #[error("The headers of a part of the form cannot be read: {0}.")]
    Header(String),
    /// A part has no `Content-Disposition: form-data` with a name.
    #[error(
        "A part of the form has no name; each needs Content-Disposition: form-data; name=\"...\"."
    )]
    NoName,
    /// There are two files, in the parts of these names.
    #[error(
        "The form has two files, {} and {}; allowed is one. A parameter is a field without a filename.",
        shown(.0), shown(.1)
    )]
    TwoFiles(String, String),
    /// The fields have more than [`MAX_FIELDS`] bytes; this one is the first that is too much.
    #[error(
        "Names and values of the form's fields may have up to {} bytes together; {} is too much. The \
         picture is a part with a filename.",
        MAX_FIELDS, shown(.0)
    )]
    FieldsTooLarge(String),
    /// The value of this field is not UTF-8.
    #[error(
        "Field {}: bytes that are not UTF-8 were given; allowed is text in UTF-8.",
        shown(.0)
    )]
    NotUtf8(String),
    /// A field of this name has another media type than `text/plain`.
    #[error(
        "Field {}: Content-Type is {}; allowed is text/plain, or none. The picture is a part with a filename.",
        shown(.0), shown(.1)
    )]
    FieldType(String, String),
    /// Fields are in this character set.
    #[error("The form's fields are in the character set {}; allowed is utf-8.", shown(.0))]
    Charset(String),
    /// A part has this `Content-Transfer-Encoding`.
    #[error(
        "A part of the form has Content-Transfer-Encoding {}; allowed is binary, 8bit or 7bit.",
        shown(.0)
    )]
    Encoding(String),
    /// The part of this name has parts itself.
    #[error(
        "The form's part {} has parts itself; allowed are fields and one file.",
        shown(.0)
    )]
    Nested(String),
    /// The token is a field.
    #[error(
        "The token is a field of the form, but it is needed before the body is read; give it in the header \
         Authorization: Bearer, or as the query parameter token."
    )]
    Token,
}

/// The most characters of a given text that an error shows.
const SHOWN: usize = 60;

fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(SHOWN).collect::<String>())
}
