//! Classes of blocks with similar residuals, and the costs of residuals in each: RFC 9649, section
//! 3.7.2.2. They stand for the groups of prefix codes that the blocks' tiles will choose.

use super::predictor::Modes;
use crate::EncodeError;
use crate::checks::Checks;
use crate::threads::Workers;
use crate::vp8l::entropy::{BIT_SHIFT, log2};

/// Cost of each value of blue, green, red and alpha, in 1 / [`BIT`](crate::vp8l::entropy::BIT)
/// bits.
pub type ResidualCosts = [[u32; 256]; 4];

/// The classes of the blocks that are predicted.
#[derive(Clone, Debug)]
pub struct ResidualClasses {
    /// Class of each block, in raster order.
    by_block: Vec<u8>,
    /// The costs in each class.
    costs: Vec<ResidualCosts>,
}

impl ResidualClasses {
    /// Divides the blocks into up to `most` classes by the size of their `residuals`.
    pub fn by_size(
        residuals: &[u32],
        width: usize,
        modes: &Modes,
        most: usize,
        workers: Workers<'_>,
    ) -> Result<ResidualClasses, EncodeError> {
        const MIN_BLOCKS: usize = 16;
        let mut sizes = vec![0; modes.by_block.len()];
        for_each_run(residuals, width, modes, workers, |block, run| {
            for byte in run.iter().flat_map(|pixel| pixel.to_le_bytes()) {
                sizes[block] += u8::BITS - byte.min(byte.wrapping_neg()).leading_zeros();
            }
        })?;
        let mut order: Vec<(u32, usize)> = (0..sizes.len())
            .filter(|block| modes.by_block[*block] > 0)
            .map(|block| (sizes[block], block))
            .collect();
        order.sort_unstable();
        let count = most.min(order.len() / MIN_BLOCKS).max(1);
        let mut by_block = vec![0; sizes.len()];
        for (rank, (_, block)) in order.iter().enumerate() {
            by_block[*block] = (rank * count / order.len()) as u8;
        }
        Ok(ResidualClasses {
            by_block,
            costs: vec![[[0; 256]; 4]; count],
        })
    }

    /// The costs in the class of `block`.
    #[inline]
    pub fn costs_in(&self, block: usize) -> &ResidualCosts {
        &self.costs[usize::from(self.by_block[block])]
    }

    /// Sets the costs by how often each value occurs among `residuals` in blocks of the class.
    pub fn measure(
        &mut self,
        residuals: &[u32],
        width: usize,
        modes: &Modes,
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        let mut counts = vec![[[0u32; 256]; 4]; self.costs.len()];
        for_each_run(residuals, width, modes, workers, |block, run| {
            let counts = &mut counts[usize::from(self.by_block[block])];
            for pixel in run {
                for (counts, byte) in counts.iter_mut().zip(pixel.to_le_bytes()) {
                    counts[usize::from(byte)] += 1;
                }
            }
        })?;
        self.costs = counts.iter().map(|of| of.each_ref().map(costs)).collect();
        Ok(())
    }

    /// Moves each block to the class in which `residuals` cost the least.
    pub fn choose(
        &mut self,
        residuals: &[u32],
        width: usize,
        modes: &Modes,
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        let count = self.costs.len();
        let mut sums = vec![0u32; modes.by_block.len() * count];
        for_each_run(residuals, width, modes, workers, |block, run| {
            for (sum, costs) in sums[block * count..].iter_mut().zip(&self.costs) {
                *sum += run.iter().map(|pixel| cost(costs, *pixel)).sum::<u32>();
            }
        })?;
        for (class, sums) in self.by_block.iter_mut().zip(sums.chunks_exact(count)) {
            let least = (0..count).min_by_key(|class| sums[*class]);
            *class = least.unwrap_or(0) as u8;
        }
        Ok(())
    }
}

/// Returns the cost of a pixel's four residuals.
#[inline(always)]
pub fn cost(costs: &ResidualCosts, pixel: u32) -> u32 {
    let [blue, green, red, alpha] = pixel.to_le_bytes().map(usize::from);
    costs[0][blue] + costs[1][green] + costs[2][red] + costs[3][alpha]
}

/// Returns the costs of values with these counts. A value that did not occur costs three bits more
/// than one that occurred once.
fn costs(counts: &[u32; 256]) -> [u32; 256] {
    /// Most pixels are far fewer: 2^28.
    const UNIT: u32 = 8;
    let total = counts.iter().sum::<u32>() * UNIT + 256;
    counts.map(|count| (log2(total) - log2((count * UNIT).max(1))) >> (16 - BIT_SHIFT))
}

/// Calls `what` with each row of pixels of each predicted block, and the block.
fn for_each_run(
    pixels: &[u32],
    width: usize,
    modes: &Modes,
    workers: Workers<'_>,
    mut what: impl FnMut(usize, &[u32]),
) -> Result<(), EncodeError> {
    let mut checks = Checks::new(workers);
    for (y, row) in pixels.chunks_exact(width).enumerate() {
        checks.at(y * width)?;
        let first = (y >> modes.block_bits) * modes.across;
        for (block, run) in (first..).zip(row.chunks(1 << modes.block_bits)) {
            if modes.by_block[block] > 0 {
                what(block, run);
            }
        }
    }
    Ok(())
}
