//! Why a picture was not encoded.

use crate::cancel::Cancelled;
use crate::picture::MAX_SIDE;

/// Why a picture was not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// A side is 0 or above [`MAX_SIDE`].
    Dimensions,
    /// `pixels` does not hold `width * height` pixels of the layout.
    PixelCount,
    /// There are more than eight token partitions.
    PartitionCount,
    /// The encoded picture does not fit the format's size fields.
    TooLarge,
    /// The work was stopped by its [`Cancel`](crate::Cancel).
    Cancelled,
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EncodeError::Dimensions => {
                write!(f, "a WebP picture has 1 to {MAX_SIDE} pixels a side")
            }
            EncodeError::PixelCount => {
                f.write_str("there are not as many samples as width and height say")
            }
            EncodeError::PartitionCount => f.write_str("log2_partitions is 0 to 3"),
            EncodeError::TooLarge => {
                f.write_str("the encoded picture is too large for a WebP file")
            }
            EncodeError::Cancelled => f.write_str("the file is no longer wanted"),
        }
    }
}

impl std::error::Error for EncodeError {}

impl From<Cancelled> for EncodeError {
    fn from(Cancelled: Cancelled) -> EncodeError {
        EncodeError::Cancelled
    }
}
