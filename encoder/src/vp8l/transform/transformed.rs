//! A picture after its transforms, and the writing of transforms: RFC 9649, section 3.5.

use super::color::Factors;
use super::color_indexing::Palette;
use super::predictor::Modes;
use crate::EncodeError;
use crate::threads::Workers;
use crate::vp8l::bit_writer::BitWriter;
use crate::vp8l::color_cache::CacheHits;
use crate::vp8l::estimate::Estimate;
use crate::vp8l::grouping::{self, GroupSearch};
use crate::vp8l::options::LosslessOptions;
use crate::vp8l::token::{self, TokenImage, Tokens};
use crate::vp8l::{histogram, image_stream};

/// Largest small picture, 256 x 128 pixels.
pub const MAX_SMALL_PIXELS: usize = 1 << 15;
/// Largest picture of the size of an icon, 256 x 256 pixels, of which every prediction is tried.
pub const MAX_ICON_PIXELS: usize = 1 << 16;
/// Largest number of literals and copies of a simple picture, for which more can be tried.
const MAX_SIMPLE_TOKENS: usize = 1 << 10;

/// A transform with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// The predictor transform (section 3.5.1).
    Predictor(Modes),
    /// The color transform (section 3.5.2).
    Color(Factors),
    /// The subtract green transform (section 3.5.3).
    SubtractGreen,
    /// The color indexing transform (section 3.5.4).
    ColorIndexing(Palette),
}

/// A picture after its transforms.
#[derive(Clone, Debug)]
pub struct Transformed {
    /// Pixels after the transforms, ARGB.
    pub pixels: Vec<u32>,
    /// Number of pixels in a row.
    pub width: usize,
    /// The greedy parse of the pixels.
    pub tokens: Tokens,
    /// The transforms, in bitstream order, which is the order in which they were applied.
    pub transforms: Vec<Transform>,
}

impl Transformed {
    /// Whether the pixels are palette indices.
    pub fn is_indexed(&self) -> bool {
        matches!(self.transforms[..], [Transform::ColorIndexing(_), ..])
    }

    /// Whether the picture is small and consists of few tokens.
    pub fn is_simple(&self) -> bool {
        self.pixels.len() <= MAX_SMALL_PIXELS
            && token::count_literals_and_copies(&self.tokens.0) <= MAX_SIMPLE_TOKENS
    }

    /// Estimates the cost including the transforms' data, in 1 / [`BIT`](crate::vp8l::entropy::BIT)
    /// bits. The lower of two counts: without a color cache and, unless pixels are indices, with a
    /// small one.
    pub fn estimate(&self, workers: Workers<'_>) -> Result<u64, EncodeError> {
        let caches: &[u32] = if self.is_indexed() { &[0] } else { &[0, 4] };
        let mut cost = u64::MAX;
        for &bits in caches {
            let image = TokenImage {
                pixels: &self.pixels,
                width: self.width,
                tokens: &self.tokens.0,
                cache: &CacheHits::new(&self.pixels, bits, workers)?,
            };
            cost = cost.min(histogram::total_cost(&histogram::count(&image, workers)?));
        }
        Ok(cost + self.estimate_transforms(workers)?)
    }

    /// [`Transformed::estimate`] with groups of codes, and with a large color cache instead of a
    /// small one.
    pub fn estimate_in_groups(&self, options: &LosslessOptions<'_>) -> Result<u64, EncodeError> {
        const CACHE_BITS: [u32; 2] = [0, 10];
        const GROUPS: GroupSearch = GroupSearch {
            groups: 64,
            rounds: 4,
            tiles: 5000,
            tokens_per_tile: 32,
            tiles_per_group: 4,
            tile_bits: 4,
        };
        let workers = options.workers;
        let mut least = u64::MAX;
        for bits in CACHE_BITS {
            let image = TokenImage {
                pixels: &self.pixels,
                width: self.width,
                tokens: &self.tokens.0,
                cache: &CacheHits::new(&self.pixels, bits, workers)?,
            };
            let grouping = grouping::group(&image, GROUPS, options.simd, workers)?;
            let histograms = grouping.histograms.iter();
            let mut cost: u64 = histograms.map(|counts| histogram::total_cost(counts)).sum();
            if let Some(map) = grouping.image {
                cost += Estimate::new(&map.pixels(), map.width, 0, workers)?.total;
            }
            least = least.min(cost);
        }
        Ok(least + self.estimate_transforms(workers)?)
    }

    /// Estimates the cost of the transforms' data.
    pub fn estimate_transforms(&self, workers: Workers<'_>) -> Result<u64, EncodeError> {
        let mut cost = 0;
        for transform in &self.transforms {
            let (pixels, width) = match transform {
                Transform::Predictor(modes) => (modes.pixels(), modes.across),
                Transform::Color(factors) => (factors.pixels(), factors.across),
                Transform::ColorIndexing(palette) => (palette.deltas(), palette.len()),
                Transform::SubtractGreen => continue,
            };
            cost += Estimate::new(&pixels, width, 0, workers)?.total;
        }
        Ok(cost)
    }

    /// Writes the transforms with their data, and the end of the list.
    pub fn write_transforms(
        &self,
        bits: &mut BitWriter,
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        for transform in &self.transforms {
            bits.put_flag(true);
            match transform {
                Transform::Predictor(modes) => {
                    bits.put(0, 2);
                    bits.put(modes.block_bits - 2, 3);
                    image_stream::write_small(bits, &modes.pixels(), modes.across, workers)?;
                }
                Transform::Color(factors) => {
                    bits.put(1, 2);
                    bits.put(factors.block_bits - 2, 3);
                    image_stream::write_small(bits, &factors.pixels(), factors.across, workers)?;
                }
                Transform::SubtractGreen => bits.put(2, 2),
                Transform::ColorIndexing(palette) => {
                    bits.put(3, 2);
                    bits.put(palette.len() as u32 - 1, 8);
                    image_stream::write_small(bits, &palette.deltas(), palette.len(), workers)?;
                }
            }
        }
        bits.put_flag(false);
        Ok(())
    }
}
