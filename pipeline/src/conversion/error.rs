//! The reasons why a conversion fails, in sentences for the caller.

use crate::image::{DecodeError, Rectangle};
use crate::watermark::TextError;
use std::fmt;
use towebp_encoder::{Cancelled, EncodeError};

/// The reason why a conversion failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// The picture cannot be read.
    Picture(DecodeError),
    /// The watermark's picture cannot be read (only PNG and JPEG may be watermarks).
    WatermarkPicture(DecodeError),
    /// The picture would have more pixels than the limits allow once it is resized.
    ResizedTooLarge {
        /// The width in pixels that was requested.
        width: u32,
        /// The height in pixels that was requested.
        height: u32,
        /// The bound, in pixels.
        max_pixels: u64,
    },
    /// The part that is to be converted is not within the picture.
    CropOutside {
        /// The part.
        part: Rectangle,
        /// The width of the upright picture, in pixels.
        width: u32,
        /// The height of the upright picture, in pixels.
        height: u32,
    },
    /// No font has these characters of the watermark's text.
    MissingCharacters(Vec<char>),
    /// No file has as few bytes as `max_bytes` allows.
    MaxBytes {
        /// The most bytes that are allowed.
        allowed: u64,
        /// The bytes of the smallest file.
        least: u64,
    },
    /// The pixels call for more memory than [`Plan::memory`](super::Plan::memory), which was not
    /// granted.
    Memory {
        /// The bytes that the conversion holds in all.
        needed: u64,
    },
    /// The file of an animation grew beyond the memory that there is for it.
    GrowthDenied,
    /// The conversion was cancelled.
    Cancelled,
    /// A fault of the program: the text is for the log, not for the caller.
    Internal(String),
}

impl ConversionError {
    /// The code of the problem that the HTTP API answers with.
    pub fn code(&self) -> &'static str {
        match self {
            ConversionError::Picture(error) => match error {
                DecodeError::WrongFormat { .. } => "wrong_format",
                DecodeError::Invalid(_) => "invalid_image",
                DecodeError::TooWide { .. } => "image_too_wide",
                DecodeError::TooManyPixels { .. } | DecodeError::AnimationTooLarge { .. } => {
                    "too_many_pixels"
                }
                DecodeError::TooManyFrames { .. } => "too_many_frames",
                DecodeError::Cancelled => CANCELLED,
            },
            ConversionError::WatermarkPicture(error) => match error {
                DecodeError::WrongFormat { .. } | DecodeError::Invalid(_) => {
                    "watermark_not_png_or_jpeg"
                }
                DecodeError::TooWide { .. }
                | DecodeError::TooManyPixels { .. }
                | DecodeError::TooManyFrames { .. }
                | DecodeError::AnimationTooLarge { .. } => "watermark_too_large",
                DecodeError::Cancelled => CANCELLED,
            },
            ConversionError::ResizedTooLarge { .. } => "too_many_pixels",
            ConversionError::CropOutside { .. } => "invalid_parameter",
            ConversionError::MissingCharacters(_) => "missing_characters",
            ConversionError::MaxBytes { .. } => "max_bytes_unreachable",
            ConversionError::GrowthDenied => "too_much_memory",
            ConversionError::Cancelled => CANCELLED,
            ConversionError::Memory { .. } | ConversionError::Internal(_) => "internal_error",
        }
    }

    /// The details of that problem, as a sentence for the caller.
    pub fn detail(&self) -> String {
        match self {
            ConversionError::WatermarkPicture(error) => format!("watermark_image: {error}"),
            error => error.to_string(),
        }
    }
}

/// The code of a conversion that was stopped. Which problem that is depends on who stopped it: the
/// HTTP API stops one that takes too long.
const CANCELLED: &str = "conversion_timeout";

impl From<Cancelled> for ConversionError {
    fn from(Cancelled: Cancelled) -> ConversionError {
        ConversionError::Cancelled
    }
}

impl From<DecodeError> for ConversionError {
    fn from(error: DecodeError) -> ConversionError {
        match error {
            DecodeError::Cancelled => ConversionError::Cancelled,
            error => ConversionError::Picture(error),
        }
    }
}

impl From<EncodeError> for ConversionError {
    fn from(error: EncodeError) -> ConversionError {
        match error {
            EncodeError::Cancelled => ConversionError::Cancelled,
            EncodeError::GrowthDenied => ConversionError::GrowthDenied,
            error => ConversionError::Internal(format!("the encoder refused the picture: {error}")),
        }
    }
}

impl From<TextError> for ConversionError {
    fn from(error: TextError) -> ConversionError {
        match error {
            TextError::MissingCharacters(missing) => ConversionError::MissingCharacters(missing),
            TextError::Cancelled => ConversionError::Cancelled,
            TextError::Panicked => ConversionError::Internal(error.to_string()),
        }
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversionError::Picture(error) => error.fmt(f),
            ConversionError::WatermarkPicture(error) => {
                write!(f, "The watermark's picture cannot be used. {error}")
            }
            ConversionError::ResizedTooLarge {
                width,
                height,
                max_pixels,
            } => write!(
                f,
                "The picture would be resized to {width} x {height} pixels, {} in all; at most {max_pixels} are allowed.",
                u64::from(*width) * u64::from(*height)
            ),
            ConversionError::CropOutside {
                part,
                width,
                height,
            } => write!(
                f,
                "Parameter crop: \"{},{},{},{}\" was given, and the upright picture has {width} x {height} pixels; \
                 allowed are x + width of at most {width} and y + height of at most {height}.",
                part.left, part.top, part.width, part.height
            ),
            ConversionError::MissingCharacters(missing) => {
                write!(
                    f,
                    "Parameter watermark: {}",
                    TextError::MissingCharacters(missing.clone())
                )
            }
            ConversionError::MaxBytes { allowed, least } => write!(
                f,
                "Parameter max_bytes: {allowed} was given, and the smallest file has {least} bytes; \
                 allow as many, or take that file by best_effort=true."
            ),
            ConversionError::Memory { needed } => {
                write!(f, "The conversion needs {needed} bytes of memory.")
            }
            ConversionError::GrowthDenied => {
                f.write_str("The animation takes more memory than there is for it.")
            }
            ConversionError::Cancelled => f.write_str("The conversion was stopped before its end."),
            ConversionError::Internal(cause) => write!(f, "The conversion failed: {cause}."),
        }
    }
}

impl std::error::Error for ConversionError {}
