//! The outcome of a format's reader: samples as stored, with their color space.

use super::color::Space;
use super::pixels::Image;
use super::planes::Planes;
use towebp_encoder::LosslessEstimate;

/// A decoded picture: not yet oriented, and not yet in sRGB.
pub struct Decoded {
    /// The pixels as stored.
    pub image: Image,
    /// Whether the samples were gray in the file, so that every pixel has red = green = blue.
    pub is_gray: bool,
    /// The color space, if the file names one that the pixels still have to be converted from.
    pub space: Option<Space>,
}

/// A decoded picture that stays in `Y'CbCr`.
pub struct DecodedPlanes {
    /// The samples, oriented.
    pub planes: Planes,
    /// The ICC profile, if the file has one; it is sRGB.
    pub icc: Option<Vec<u8>>,
}

/// A picture whose rows were converted to planes as they came.
pub struct PlanesOfRgb {
    /// The planes, as the encoder takes them.
    pub planes: towebp_encoder::Planes,
    /// The estimate of the lossless size, if it was wanted.
    pub estimate: Option<LosslessEstimate>,
    /// The ICC profile in whose space they are, if that is not sRGB and is kept.
    pub icc: Option<Vec<u8>>,
}
