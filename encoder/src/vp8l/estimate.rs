//! What an image would cost, by a quick look: which transforms are worth it depends on what copies are found (RFC 9649,
//! section 3.6.2.2), and so cannot be told from the pixels alone.

use super::parse::CostModel;
use super::token::{CacheHits, TokenImage, Tokens};
use super::transform::SampleCosts;
use super::{histogram, lz77};
use crate::EncodeError;
use crate::threads::Workers;

/// What an image takes when it is parsed quickly.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Literals and copies.
    pub tokens: Tokens,
    /// All they cost, in 1 / [`super::entropy::BIT`] bits.
    pub total: u64,
    cache: CacheHits,
    model: CostModel,
}

impl Estimate {
    /// Of `pixels` in rows of `width`, with a colour cache of 2^`cache_bits` entries.
    pub fn new(
        pixels: &[u32],
        width: usize,
        cache_bits: u32,
        workers: Workers<'_>,
    ) -> Result<Estimate, EncodeError> {
        let tokens = lz77::quick(pixels, width, workers)?;
        let cache = CacheHits::new(pixels, cache_bits, workers)?;
        let image = TokenImage {
            pixels,
            width,
            tokens: &tokens.0,
            cache: &cache,
        };
        let counts = histogram::count(&image, workers)?;
        Ok(Estimate {
            total: histogram::total_cost(&counts),
            model: CostModel::new(&counts),
            tokens,
            cache,
        })
    }

    /// What each value of red and of blue costs.
    pub fn sample_costs(&self) -> SampleCosts {
        let costs = |channel: u32| {
            std::array::from_fn(|value| {
                let [_, red, blue, _] = histogram::literal((value as u32) << channel);
                self.model.bits(&[if channel == 16 { red } else { blue }])
            })
        };
        [costs(16), costs(0)]
    }

    /// The cost of what begins in each block of a side of 2^`block_bits`, in raster order of the blocks, of the same
    /// `pixels`.
    pub fn blocks(
        &self,
        pixels: &[u32],
        width: usize,
        block_bits: u32,
        workers: Workers<'_>,
    ) -> Result<Vec<u32>, EncodeError> {
        let image = TokenImage {
            pixels,
            width,
            tokens: &self.tokens.0,
            cache: &self.cache,
        };
        let across = width.div_ceil(1 << block_bits);
        let down = (pixels.len() / width).div_ceil(1 << block_bits);
        let mut blocks = vec![0; across * down];
        let (mut row, mut row_end, mut first) = (0, width, 0);
        histogram::for_each_symbol(&image, workers, |i, symbols| {
            if i >= row_end {
                row = i - i % width;
                row_end = row + width;
                first = ((row / width) >> block_bits) * across;
            }
            blocks[first + ((i - row) >> block_bits)] += self.model.bits(symbols);
        })?;
        Ok(blocks)
    }
}
