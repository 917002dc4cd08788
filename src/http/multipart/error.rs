//! Why a form cannot be read.

use super::limits::{MAX_FIELDS, MAX_PART_HEADERS, MAX_PARTS};
use std::fmt;

/// A form that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormError {
    /// `Content-Type` names no boundary.
    BoundaryMissing,
    /// The boundary, as it was given, cannot be used.
    BoundaryInvalid(String),
    /// The body does not begin with the boundary.
    NoBoundary,
    /// A line begins with the boundary and goes on.
    BoundaryLine,
    /// The body ends before the last boundary.
    CutShort,
    /// Something follows the last boundary.
    AfterEnd,
    /// There are more than [`MAX_PARTS`] parts.
    TooManyParts,
    /// The headers of a part have more than [`MAX_PART_HEADERS`] bytes.
    HeadersTooLarge,
    /// The headers of a part cannot be read; the text has the reason.
    Header(String),
    /// A part has no `Content-Disposition: form-data` with a name.
    NoName,
    /// There are two files, in the parts of these names.
    TwoFiles(String, String),
    /// The fields have more than [`MAX_FIELDS`] bytes; this one is the first that is too much.
    FieldsTooLarge(String),
    /// The value of this field is not UTF-8.
    NotUtf8(String),
    /// A field of this name has another media type than `text/plain`.
    FieldType(String, String),
    /// Fields are in this character set.
    Charset(String),
    /// A part has this `Content-Transfer-Encoding`.
    Encoding(String),
    /// The part of this name has parts itself.
    Nested(String),
    /// The token is a field.
    Token,
}

/// The most characters of a given text that an error shows.
const SHOWN: usize = 60;

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| format!("{:?}", text.chars().take(SHOWN).collect::<String>());
        match self {
            FormError::BoundaryMissing => f.write_str(
                "Content-Type is multipart/form-data without a boundary; let the program that makes the form set it.",
            ),
            FormError::BoundaryInvalid(given) => write!(
                f,
                "The form's boundary is {}; allowed is one of 1 to 70 letters, digits, spaces within and '()+_,-./:=?.",
                shown(given)
            ),
            FormError::NoBoundary => f.write_str(
                "The body does not begin with two hyphens and the boundary that Content-Type names.",
            ),
            FormError::BoundaryLine => f.write_str(
                "A line begins with the boundary and goes on; allowed are two hyphens after the last part, or a line end, \
                 CR LF, before another.",
            ),
            FormError::CutShort => {
                f.write_str("The body ends before the form's last boundary, which two hyphens follow.")
            }
            FormError::AfterEnd => {
                f.write_str("Bytes follow the form's last boundary; allowed is white space.")
            }
            FormError::TooManyParts => write!(f, "The form may have up to {MAX_PARTS} parts."),
            FormError::HeadersTooLarge => write!(
                f,
                "The headers of a part of the form may have up to {MAX_PART_HEADERS} bytes."
            ),
            FormError::Header(what) => {
                write!(f, "The headers of a part of the form cannot be read: {what}.")
            }
            FormError::NoName => f.write_str(
                "A part of the form has no name; each needs Content-Disposition: form-data; name=\"...\".",
            ),
            FormError::TwoFiles(first, second) => write!(
                f,
                "The form has two files, {} and {}; allowed is one. A parameter is a field without a filename.",
                shown(first),
                shown(second)
            ),
            FormError::FieldsTooLarge(name) => write!(
                f,
                "Names and values of the form's fields may have up to {MAX_FIELDS} bytes together; {} is too much. The \
                 picture is a part with a filename.",
                shown(name)
            ),
            FormError::NotUtf8(name) => write!(
                f,
                "Field {}: bytes that are not UTF-8 were given; allowed is text in UTF-8.",
                shown(name)
            ),
            FormError::FieldType(name, media_type) => write!(
                f,
                "Field {}: Content-Type is {}; allowed is text/plain, or none. The picture is a part with a filename.",
                shown(name),
                shown(media_type)
            ),
            FormError::Charset(charset) => write!(
                f,
                "The form's fields are in the character set {}; allowed is utf-8.",
                shown(charset)
            ),
            FormError::Encoding(encoding) => write!(
                f,
                "A part of the form has Content-Transfer-Encoding {}; allowed is binary, 8bit or 7bit.",
                shown(encoding)
            ),
            FormError::Nested(name) => write!(
                f,
                "The form's part {} has parts itself; allowed are fields and one file.",
                shown(name)
            ),
            FormError::Token => f.write_str(
                "The token is a field of the form, but it is needed before the body is read; give it in the header \
                 Authorization: Bearer, or as the query parameter token.",
            ),
        }
    }
}
