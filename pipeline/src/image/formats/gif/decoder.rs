//! The errors of the library's decoder.

use crate::image::error::DecodeError;
use ::gif::DecodingError;

/// The error for a file without an image.
pub fn no_frame() -> DecodeError {
    DecodeError::Invalid("the GIF has no frame".to_owned())
}

/// The decode error for an error of the decoder.
pub fn invalid(error: &DecodingError) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodingError::UnexpectedEof | DecodingError::Io(_) => {
            "the GIF data ends too early".to_owned()
        }
        other => format!(
            "the GIF data is damaged ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}
