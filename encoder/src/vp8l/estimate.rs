//! Estimates the size of an image by a greedy parse. Which transforms pay depends on the copies
//! that are found (RFC 9649, section 3.6.2.2), so the pixels alone do not decide it.

use super::color_cache::CacheHits;
use super::cost_model::CostModel;
use super::token::{TokenImage, Tokens};
use super::{greedy_parse, histogram};
use crate::EncodeError;
use crate::threads::Workers;

/// The estimate of an image, from its greedy parse.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The greedy parse.
    pub tokens: Tokens,
    /// Cost of all tokens, in 1 / [`BIT`](super::entropy::BIT) bits.
    pub total: u64,
    cache: CacheHits,
    model: CostModel,
}

impl Estimate {
    /// Estimates `pixels` in rows of `width`, with a color cache of `2^cache_bits` entries.
    pub fn new(
        pixels: &[u32],
        width: usize,
        cache_bits: u32,
        workers: Workers<'_>,
    ) -> Result<Estimate, EncodeError> {
        let tokens = greedy_parse::parse_greedily(pixels, width, workers)?;
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

    /// Returns the cost of the tokens that start in each block, in raster order. Blocks have sides
    /// of `2^block_bits` pixels; `pixels` are those of the estimate.
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
