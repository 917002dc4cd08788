//! Masking within a macroblock: errors show in its calm parts more than in its busy ones. RFC 6386,
//! section 14.1, leaves it to the encoder which levels to send.
//!
//! Segments and lambdas weigh macroblocks against each other; the weights here divide what a
//! macroblock gets among its 4x4 blocks. Against equal weights, photographs take 0.9 % fewer bytes
//! at equal SSIMULACRA2 and 0.6 % at equal Butteraugli.
//!
//! The structure that a block will lose can hardly be predicted: a table by both variances
//! and by the quantizer's step explains 40 % of how it differs within a macroblock, the power of
//! the variance here 35 %. What a pass shows of the rest is worth having (`refine`).

use super::constants::Constants;
use crate::fixed_point::{exp2, log2_times_256};
use crate::ycbcr::Planes;

/// Weights of the squared errors of a macroblock's 4x4 blocks of luma, in raster order, times 256.
pub type Weights = [u16; 16];

/// All blocks weigh the same.
pub const EQUAL: Weights = [256; 16];

/// Pixels along a side of the area that the weights look at: the macroblock and two pixels around.
const AREA: usize = 20;
/// Cells of 2x2 pixels along a side of the area.
const CELLS: usize = AREA / 2;

/// Sums over a cell, or over several.
#[derive(Clone, Copy, Default)]
struct Moments {
    sum: u32,
    squares: u32,
}

/// Returns the weights of a macroblock. The variance of a block is the geometric mean of those of
/// its own 4x4 pixels and of the 8x8 pixels around its center: 4x4 alone costs 0.1 %, 8x8 alone
/// 0.2 % by Butteraugli. Weights for chroma and more weight in the dark save nothing.
pub fn weights(planes: &Planes, mb_x: usize, mb_y: usize, constants: &Constants) -> Weights {
    let cells = cells(planes, mb_x, mb_y);
    let floor = constants.masking_floor as u32;
    let logarithms: [i32; 16] = std::array::from_fn(|block| {
        let (row, column) = (block / 4 * 2, block % 4 * 2);
        let own = total(&cells, row + 1, column + 1, 2);
        let around = total(&cells, row, column, 4);
        let own_variance = (own.squares - own.sum * own.sum / 16) / 16;
        let variance = (around.squares - around.sum * around.sum / 64) / 64;
        let logarithm = |variance| log2_times_256(variance + floor) as i32;
        let mean = i32::midpoint(logarithm(own_variance), logarithm(variance));
        mean.min(constants.masking_ceiling)
    });
    let typical = logarithms.iter().sum::<i32>() / 16;
    logarithms.map(|own| (exp2((typical - own) * constants.masking) >> 8).clamp(32, 2048) as u16)
}

/// Returns the cells of the area of a macroblock. Outside of the picture, its edge goes on.
fn cells(planes: &Planes, mb_x: usize, mb_y: usize) -> [[Moments; CELLS]; CELLS] {
    let stride = planes.luma_stride();
    let height = planes.luma.len() / stride;
    let mut cells = [[Moments::default(); CELLS]; CELLS];
    let mut pixels = [0u8; AREA];
    for y in 0..AREA {
        let row = (mb_y * 16 + y).saturating_sub(2).min(height - 1);
        let row = &planes.luma[row * stride..][..stride];
        let x = mb_x * 16;
        pixels[2..18].copy_from_slice(&row[x..x + 16]);
        let left = x.saturating_sub(2);
        pixels[..2].copy_from_slice(&[row[left], row[x.saturating_sub(1)]]);
        let right = (x + 17).min(stride - 1);
        pixels[18..].copy_from_slice(&[row[(x + 16).min(stride - 1)], row[right]]);
        for (cell, pair) in cells[y / 2].iter_mut().zip(pixels.chunks_exact(2)) {
            let (a, b) = (u32::from(pair[0]), u32::from(pair[1]));
            cell.sum += a + b;
            cell.squares += a * a + b * b;
        }
    }
    cells
}

/// Returns the moments of `size` x `size` cells.
fn total(cells: &[[Moments; CELLS]; CELLS], row: usize, column: usize, size: usize) -> Moments {
    let mut total = Moments::default();
    for row in &cells[row..row + size] {
        for cell in &row[column..column + size] {
            total.sum += cell.sum;
            total.squares += cell.squares;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const CONSTANTS: Constants = Constants {
        masking: 64,
        ..Constants::DEFAULT
    };

    #[test]
    fn flat_pictures_weigh_the_same_everywhere() {
        let mut planes = Planes::new(48, 48);
        planes.luma.fill(128);
        for (mb_x, mb_y) in [(0, 0), (1, 1), (2, 2)] {
            let weights = weights(&planes, mb_x, mb_y, &CONSTANTS);
            assert_eq!(weights, EQUAL, "macroblock {mb_x}, {mb_y}");
        }
    }

    #[test]
    fn calm_blocks_weigh_more_than_busy_ones() {
        let mut planes = Planes::new(48, 48);
        planes.luma.fill(128);
        let mut random = Random::new(5);
        // The right half of the macroblock in the middle is noise.
        for y in 16..32 {
            for x in 24..32 {
                planes.luma[y * 48 + x] = random.byte();
            }
        }
        let weights = weights(&planes, 1, 1, &CONSTANTS);
        for block in 0..16 {
            let is_calm = block % 4 < 2;
            assert_eq!(weights[block] > 256, is_calm, "{weights:?}");
        }
        assert!(
            weights[0] > weights[1],
            "the second is near to noise: {weights:?}"
        );
    }
}
