//! Masking within a macroblock: errors show in its calm parts more than in its busy ones. RFC 6386,
//! section 14.1, leaves it to the encoder which levels to send.
//!
//! Segments and lambdas weigh macroblocks against each other; the weights here divide what a
//! macroblock gets among its 4x4 blocks. Against equal weights, photographs take 0.9 % fewer bytes
//! at equal SSIMULACRA2 and 0.6 % at equal Butteraugli. Effort `low` has its dead zones follow
//! them, which saves 0.5 % by the mean of judges.
//!
//! The structure that a block will lose can hardly be predicted: a table by both variances
//! and by the quantizer's step explains 40 % of how it differs within a macroblock, the power of
//! the variance here 35 %. What a pass shows of the rest is worth having (`refine`).

use super::block::BlockKernels;
use super::constants::Constants;
use crate::fixed_point::{exp2, log2_times_256};
use crate::ycbcr::Planes;

/// Weights of the squared errors of a macroblock's 4x4 blocks of luma, in raster order, times 256.
pub type Weights = [u16; 16];

/// Pixels along a side of the area that the weights look at: the macroblock and two pixels around.
const AREA: usize = 20;

/// Sums over pairs of columns and some rows of the area: of the pixels, and of their squares.
#[derive(Clone, Copy)]
struct Moments([[i32; 16]; 2]);

impl Moments {
    #[inline(always)]
    fn plus(&self, other: &Moments) -> Moments {
        let mut sums = *self;
        let others = other.0.as_flattened();
        for (sum, other) in sums.0.as_flattened_mut().iter_mut().zip(others) {
            *sum += other;
        }
        sums
    }

    /// Returns the variance of a square of pixels of `PAIRS` pairs of columns.
    #[inline(always)]
    fn variance<const PAIRS: usize>(&self, first: usize) -> u32 {
        let count = (4 * PAIRS * PAIRS) as u32;
        let total = |sums: &[i32; 16]| sums[first..first + PAIRS].iter().sum::<i32>() as u32;
        let (sum, squares) = (total(&self.0[0]), total(&self.0[1]));
        (squares - sum * sum / count) / count
    }
}

/// Returns the weights of a macroblock. The variance of a block is the geometric mean of those of
/// its own 4x4 pixels and of the 8x8 pixels around its center: 4x4 alone costs 0.1 %, 8x8 alone
/// 0.2 % by Butteraugli. Weights for chroma and more weight in the dark save nothing.
#[inline(always)]
pub fn weights<K: BlockKernels>(
    kernels: K,
    planes: &Planes,
    (mb_x, mb_y): (usize, usize),
    constants: &Constants,
) -> Weights {
    let pairs = pairs_of_rows(kernels, planes, (mb_x, mb_y));
    let floor = constants.masking_floor as u32;
    let mut logarithms = [0; 16];
    for (row, logarithms) in logarithms.chunks_exact_mut(4).enumerate() {
        let own = pairs[2 * row + 1].plus(&pairs[2 * row + 2]);
        let around = own.plus(&pairs[2 * row]).plus(&pairs[2 * row + 3]);
        for (column, logarithm) in logarithms.iter_mut().enumerate() {
            let variances = [
                own.variance::<2>(2 * column + 1),
                around.variance::<4>(2 * column),
            ];
            let [own, around] = variances.map(|it| log2_times_256(it + floor) as i32);
            *logarithm = i32::midpoint(own, around).min(constants.masking_ceiling);
        }
    }
    let typical = logarithms.iter().sum::<i32>() / 16;
    logarithms.map(|own| (exp2((typical - own) * constants.masking) >> 8).clamp(32, 2048) as u16)
}

/// Returns the moments of each pair of rows of the area of a macroblock. Outside of the picture,
/// its edge goes on.
#[inline(always)]
fn pairs_of_rows<K: BlockKernels>(
    kernels: K,
    planes: &Planes,
    (mb_x, mb_y): (usize, usize),
) -> [Moments; AREA / 2] {
    let stride = planes.luma_stride();
    let height = planes.luma.len() / stride;
    let mut pairs = [Moments([[0; 16]; 2]); AREA / 2];
    let mut pixels = [0; 32];
    let x = mb_x * 16;
    let (left, right) = (x.saturating_sub(2), (x + 17).min(stride - 1));
    for y in 0..AREA {
        let row = (mb_y * 16 + y).saturating_sub(2).min(height - 1);
        let row = &planes.luma[row * stride..][..stride];
        pixels[2..18].copy_from_slice(&row[x..x + 16]);
        pixels[..2].copy_from_slice(&[row[left], row[x.saturating_sub(1)]]);
        pixels[18..AREA].copy_from_slice(&[row[(x + 16).min(stride - 1)], row[right]]);
        kernels.add_row(&pixels, &mut pairs[y / 2].0);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use crate::vp8::block::Scalar;

    const CONSTANTS: Constants = Constants {
        masking: 64,
        ..Constants::DEFAULT
    };

    #[test]
    fn flat_pictures_weigh_the_same_everywhere() {
        let mut planes = Planes::new(48, 48);
        planes.luma.fill(128);
        for (mb_x, mb_y) in [(0, 0), (1, 1), (2, 2)] {
            let weights = weights(Scalar, &planes, (mb_x, mb_y), &CONSTANTS);
            assert_eq!(weights, [256; 16], "macroblock {mb_x}, {mb_y}");
        }
    }

    /// Returns the variance of a square of pixels. Outside of the picture, its edge goes on.
    fn variance(planes: &Planes, (left, top): (i32, i32), side: i32) -> u32 {
        let pixel = |at: i32| {
            let (x, y) = (left + at % side, top + at / side);
            let (x, y) = (x.clamp(0, 47) as usize, y.clamp(0, 47) as usize);
            u32::from(planes.luma[y * 48 + x])
        };
        let count = (side * side) as u32;
        let sum: u32 = (0..side * side).map(pixel).sum();
        let squares: u32 = (0..side * side).map(|at| pixel(at).pow(2)).sum();
        (squares - sum * sum / count) / count
    }

    #[test]
    fn weights_are_powers_of_the_variances_of_blocks_and_of_what_is_around() {
        let (mut planes, mut random) = (Planes::new(48, 48), Random::new(7));
        for (at, pixel) in planes.luma.iter_mut().enumerate() {
            // Noise that grows to the right, so that the ceiling counts in a part of it.
            *pixel = (100 + usize::from(random.byte()) * (at % 48) / 96) as u8;
        }
        let logarithm = |variance| log2_times_256(variance + 50) as i32;
        for (mb_x, mb_y) in (0..9).map(|at| (at % 3, at / 3)) {
            let logarithms: [i32; 16] = std::array::from_fn(|block| {
                let (x, y) = (mb_x * 16 + block % 4 * 4, mb_y * 16 + block / 4 * 4);
                let (x, y) = (x as i32, y as i32);
                let own = logarithm(variance(&planes, (x, y), 4));
                let around = logarithm(variance(&planes, (x - 2, y - 2), 8));
                i32::midpoint(own, around).min(2560)
            });
            let typical = logarithms.iter().sum::<i32>() / 16;
            let expected = logarithms.map(|own| (exp2((typical - own) * 64) >> 8) as u16);
            let weights = weights(Scalar, &planes, (mb_x, mb_y), &CONSTANTS);
            assert_eq!(weights, expected, "macroblock {mb_x}, {mb_y}");
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
        let weights = weights(Scalar, &planes, (1, 1), &CONSTANTS);
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
