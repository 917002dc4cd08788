//! The reasons why a picture cannot be decoded, in sentences for the caller.

use super::format::Format;
use std::fmt;
use towebp_encoder::Cancelled;

/// The reason why a picture cannot be decoded. The texts are for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes are not of the format that was declared.
    WrongFormat {
        /// The declared format.
        declared: Format,
        /// The format that they look like, if any.
        found: Option<Format>,
    },
    /// The data is damaged, cut short or of an unsupported variety; the reason in a few words.
    Invalid(String),
    /// A side is over [`Limits::max_side`](super::limits::Limits::max_side).
    TooWide {
        /// Width in pixels, by the header.
        width: u32,
        /// Height in pixels, by the header.
        height: u32,
        /// The bound, in pixels.
        max_side: u32,
    },
    /// More pixels than [`Limits::max_pixels`](super::limits::Limits::max_pixels).
    TooManyPixels {
        /// Width in pixels, by the header.
        width: u32,
        /// Height in pixels, by the header.
        height: u32,
        /// The bound, in pixels.
        max_pixels: u64,
    },
    /// More frames than [`Limits::max_frames`](super::limits::Limits::max_frames).
    TooManyFrames {
        /// The bound.
        max_frames: u32,
    },
    /// All frames together have more pixels than
    /// [`Limits::max_animation_pixels`](super::limits::Limits::max_animation_pixels).
    AnimationTooLarge {
        /// The bound, in pixels.
        max_pixels: u64,
    },
    /// Decoding was cancelled.
    Cancelled,
}

impl From<Cancelled> for DecodeError {
    fn from(Cancelled: Cancelled) -> DecodeError {
        DecodeError::Cancelled
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::WrongFormat {
                declared,
                found: Some(found),
            } => {
                write!(
                    f,
                    "The data was declared as {declared} but looks like {found}."
                )
            }
            DecodeError::WrongFormat {
                declared,
                found: None,
            } => {
                write!(
                    f,
                    "The data was declared as {declared} but looks like none of PNG, JPEG, GIF and BMP."
                )
            }
            DecodeError::TooManyFrames { max_frames } => write!(
                f,
                "The animation has more than {max_frames} frames; ask for animation=first to have its first frame alone."
            ),
            DecodeError::AnimationTooLarge { max_pixels } => write!(
                f,
                "The frames of the animation have more than {max_pixels} pixels together, each counted as the whole \
                 screen; ask for animation=first to have its first frame alone."
            ),
            DecodeError::Invalid(reason) => write!(f, "The picture cannot be read: {reason}."),
            DecodeError::TooWide {
                width,
                height,
                max_side,
            } => {
                write!(
                    f,
                    "The picture is {width} x {height} pixels; a side may have at most {max_side}."
                )
            }
            DecodeError::TooManyPixels {
                width,
                height,
                max_pixels,
            } => write!(
                f,
                "The picture is {width} x {height} pixels, {} in all; at most {max_pixels} are allowed.",
                u64::from(*width) * u64::from(*height)
            ),
            DecodeError::Cancelled => {
                f.write_str("Reading the picture was stopped before its end.")
            }
        }
    }
}

impl std::error::Error for DecodeError {}
