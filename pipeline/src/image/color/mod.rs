//! Color spaces: the samples are converted to sRGB, the color space of a WebP without a profile.

mod cmyk;
mod convert;
mod hdr;
mod profile;
mod sixteen_bit;
mod space;

pub use cmyk::{CmykKind, cmyk_to_srgb};
pub use convert::convert_to_srgb;
pub use profile::{BYTES_PER_PROFILE_BYTE, MAX_PROFILE_BYTES, is_rgb, is_srgb, profile_bytes};
pub use sixteen_bit::SixteenBitTransform;
pub use space::{Calibrated, SRGB_CHROMATICITIES, Space};
