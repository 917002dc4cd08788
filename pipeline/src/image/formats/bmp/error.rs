//! The errors of bitmaps.

use crate::image::error::DecodeError;

/// The error for data that ends before the picture does.
pub fn ends_too_early() -> DecodeError {
    DecodeError::Invalid("the BMP data ends too early".to_owned())
}

/// The error for a bitmap that contradicts itself or is not supported.
pub fn damaged(reason: &str) -> DecodeError {
    DecodeError::Invalid(format!(
        "the BMP data is damaged or of a rare kind ({reason})"
    ))
}
