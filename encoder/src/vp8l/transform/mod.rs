//! Reversible changes to the pixels that make them cheaper: RFC 9649, section 3.5.

pub mod choice;
mod color;
mod color_indexing;
mod predictor;
mod subtract_green;

pub use color::SampleCosts;

use crate::EncodeError;
use crate::threads::Workers;

/// Whether `pixels` have so few colours that they are coded as indices.
pub fn has_palette(pixels: &[u32], workers: Workers<'_>) -> Result<bool, EncodeError> {
    Ok(color_indexing::Palette::new(pixels, workers)?.is_some())
}

/// `a` less `b`, sample by sample, wrapping around.
fn subtract(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|i| a[i].wrapping_sub(b[i])))
}
