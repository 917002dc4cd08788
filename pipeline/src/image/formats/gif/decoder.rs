//! The library's decoder: its options and its errors.

use crate::image::error::DecodeError;
use ::gif::{DecodeOptions, DecodingError};

/// The options of every decoder. Unknown blocks are skipped; the outline leaves them out anyway.
pub fn options() -> DecodeOptions {
    let mut options = DecodeOptions::new();
    options.allow_unknown_blocks(true);
    options
}

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
