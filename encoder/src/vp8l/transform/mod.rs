//! Transforms: reversible changes to the pixels that make them cheaper (RFC 9649, section 3.5).

pub mod choice;
mod color;
mod color_indexing;
mod prediction;
mod predictor;
mod refined_prediction;
mod refinement;
mod residual_classes;
mod subtract_green;
pub mod transformed;

use crate::EncodeError;
use crate::threads::Workers;

pub use color_indexing::MAX_COLORS;

/// Whether `pixels` have few enough colors for a palette.
pub fn has_palette(pixels: &[u32], workers: Workers<'_>) -> Result<bool, EncodeError> {
    Ok(color_indexing::Palette::new(pixels, workers)?.is_some())
}

/// Returns `a - b`, sample by sample, modulo 256.
fn subtract(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|i| a[i].wrapping_sub(b[i])))
}
