//! Why a picture was not encoded.

use crate::cancel::Cancelled;

/// Why a picture was not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A side is 0 or above [`MAX_SIDE`](crate::MAX_SIDE).
    Dimensions,
    /// The samples are fewer or more than the sides, the color type and the stride call for.
    PixelCount,
    /// An animation has no frame.
    NoFrames,
    /// The encoded picture does not fit the size fields of the format, which have 32 bits.
    TooLarge,
    /// The file of an animation was not allowed to grow
    /// ([`IncrementalAnimation::limit_growth`](crate::IncrementalAnimation::limit_growth)).
    GrowthDenied,
    /// The work was stopped by its [`Cancel`](crate::Cancel).
    Cancelled,
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            EncodeError::Dimensions => "a WebP picture has 1 to 16383 pixels a side",
            EncodeError::PixelCount => "there are not as many samples as width and height say",
            EncodeError::NoFrames => "an animation has at least one frame",
            EncodeError::TooLarge => "the encoded picture is too large for a WebP file",
            EncodeError::GrowthDenied => "the file was not allowed to take more memory",
            EncodeError::Cancelled => "the file is no longer wanted",
        })
    }
}

impl std::error::Error for EncodeError {}

impl From<Cancelled> for EncodeError {
    fn from(Cancelled: Cancelled) -> EncodeError {
        EncodeError::Cancelled
    }
}
