//! The errors of TIFF files.

use crate::image::error::DecodeError;

/// The error for data that ends before the picture does.
pub fn ends_too_early() -> DecodeError {
    DecodeError::Invalid("the TIFF data ends too early".to_owned())
}

/// The error for a file that contradicts itself.
pub fn damaged(reason: &str) -> DecodeError {
    DecodeError::Invalid(format!("the TIFF data is damaged ({reason})"))
}

/// The error for a file of a kind that is not read.
pub fn not_read(kind: &str) -> DecodeError {
    DecodeError::Invalid(format!("TIFF files with {kind} are not read"))
}
