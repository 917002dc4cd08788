//! The limits and errors that reading the header and reading the pixels of a PNG have in common.

use crate::image::error::DecodeError;
use crate::image::pixels::Layout;
use ::png::{ColorType, DecodingError};

/// The memory that the decoder may allocate: a few rows of at most 128 KiB, and a profile, of which
/// 4 MiB are used. The pixels are allocated by us.
pub const DECODER_BYTES: usize = 8 << 20;

/// Bytes of the file between two checks whether the picture is still wanted, beside one check per
/// row: chunks that are skipped, and data without rows.
pub const BYTES_PER_CHECK: usize = 64 << 10;

/// The layout that pixels of this color type are decoded to, without a `tRNS` chunk.
pub fn layout_of(color: ColorType) -> Layout {
    match color {
        ColorType::Grayscale | ColorType::Rgb | ColorType::Indexed => Layout::Rgb,
        ColorType::GrayscaleAlpha | ColorType::Rgba => Layout::Rgba,
    }
}

/// The decode error for an error of the decoder.
pub fn invalid(error: &DecodingError) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the PNG data ends too early".to_owned()
        }
        DecodingError::LimitsExceeded => {
            "the PNG needs more memory than its size allows for".to_owned()
        }
        other => match other.to_string().trim_end_matches('.') {
            // The rest of the text are the two checksums.
            crc if crc.starts_with("CRC error") => {
                "the PNG data is damaged (a checksum is wrong)".to_owned()
            }
            reason => format!("the PNG data is damaged ({reason})"),
        },
    })
}

/// The decode error for an animation that is damaged, in a few words.
pub fn damaged_animation(fault: &str) -> DecodeError {
    DecodeError::Invalid(format!(
        "its animation is damaged ({fault}), which animation=first leaves out"
    ))
}
