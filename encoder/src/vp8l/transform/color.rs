//! The color transform: RFC 9649, section 3.5.2.
//!
//! It subtracts from red and blue what green (and red) predict of them. The factors of each block
//! are those of least squares.

use super::predictor::Modes;
use crate::EncodeError;
use crate::threads::Workers;
use crate::vp8l::entropy::BIT;
use std::ops::Range;

/// Factors of a block, in 1/32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Multipliers {
    green_to_red: i8,
    green_to_blue: i8,
    red_to_blue: i8,
}

/// Cost of each value of red and of blue, in 1 / [`BIT`] bits.
pub type SampleCosts = [[u32; 256]; 2];

/// Factors of all blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factors {
    /// Base-2 logarithm of a block's side, 2 to 9.
    pub block_bits: u32,
    /// Number of blocks in a row.
    pub across: usize,
    by_block: Vec<Multipliers>,
}

impl Factors {
    /// Returns the image as it is written.
    pub fn pixels(&self) -> Vec<u32> {
        let pixel = |by: &Multipliers| {
            let [red, green, blue] = [by.red_to_blue, by.green_to_blue, by.green_to_red];
            u32::from_be_bytes([255, red as u8, green as u8, blue as u8])
        };
        self.by_block.iter().map(pixel).collect()
    }
}

/// Returns `by * sample / 32`, both signed.
#[inline]
fn delta(by: i8, sample: u8) -> u8 {
    ((i16::from(by) * i16::from(sample as i8)) >> 5) as u8
}

impl Multipliers {
    /// Returns the residuals of red and blue.
    #[inline]
    fn residuals(self, pixel: u32) -> [u8; 2] {
        let [blue, green, red, _] = pixel.to_le_bytes();
        [
            red.wrapping_sub(delta(self.green_to_red, green)),
            blue.wrapping_sub(delta(self.green_to_blue, green))
                .wrapping_sub(delta(self.red_to_blue, red)),
        ]
    }

    #[inline]
    fn apply(self, pixel: u32) -> u32 {
        let [red, blue] = self.residuals(pixel);
        pixel & 0xFF00_FF00 | u32::from(red) << 16 | u32::from(blue)
    }
}

/// Sums over the pixels of a block, with samples as signed numbers.
#[derive(Default)]
struct Sums {
    green_green: i64,
    green_red: i64,
    green_blue: i64,
    red_red: i64,
    red_blue: i64,
}

impl Sums {
    fn add(&mut self, pixel: u32) {
        let [blue, green, red, _] = pixel.to_le_bytes().map(|sample| i64::from(sample as i8));
        self.green_green += green * green;
        self.green_red += green * red;
        self.green_blue += green * blue;
        self.red_red += red * red;
        self.red_blue += red * blue;
    }

    /// Returns the factors of least squares.
    fn multipliers(&self) -> Multipliers {
        let determinant = self.green_green * self.red_red - self.green_red * self.green_red;
        let by_green = self.green_blue * self.red_red - self.red_blue * self.green_red;
        let by_red = self.red_blue * self.green_green - self.green_blue * self.green_red;
        let (green_to_blue, red_to_blue) = if determinant > 0 {
            (factor(by_green, determinant), factor(by_red, determinant))
        } else {
            (factor(self.green_blue, self.green_green), 0)
        };
        Multipliers {
            green_to_red: factor(self.green_red, self.green_green),
            green_to_blue,
            red_to_blue,
        }
    }
}

/// Returns `numerator / denominator` in 1/32, rounded.
fn factor(numerator: i64, denominator: i64) -> i8 {
    if denominator == 0 {
        return 0;
    }
    let rounded = (64 * i128::from(numerator) + i128::from(denominator))
        .div_euclid(2 * i128::from(denominator));
    rounded.clamp(-128, 127) as i8
}

/// Base-2 logarithm of the number of predictor blocks along a block's side.
const PREDICTOR_BLOCKS: u32 = 1;

/// Applies the transform in the blocks where it saves bits. Blocks that `modes` do not predict
/// stay. Returns `None` if it saves nothing anywhere.
pub fn apply(
    pixels: &[u32],
    width: usize,
    modes: &Modes,
    costs: &SampleCosts,
    workers: Workers<'_>,
) -> Result<Option<(Vec<u32>, Factors)>, EncodeError> {
    let block_bits = modes.block_bits + PREDICTOR_BLOCKS;
    let across = width.div_ceil(1 << block_bits);
    let rows = pixels.chunks(width << block_bits);
    let choices = workers.run(rows.len(), |y| {
        let rows = &pixels[(width << block_bits) * y..];
        let rows = &rows[..rows.len().min(width << block_bits)];
        let block = |x: usize| Block {
            rows,
            width,
            columns: x << block_bits..width.min((x + 1) << block_bits),
        };
        let mut left = Multipliers::default();
        let mut choices = Vec::with_capacity(across);
        for x in 0..across {
            if is_predicted(modes, x, y) {
                left = block(x).choose(left, costs);
                choices.push(left);
            } else {
                choices.push(Multipliers::default());
            }
        }
        choices
    })?;
    let by_block = choices.concat();
    if by_block.iter().all(|by| *by == Multipliers::default()) {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(pixels.len());
    for (y, row) in pixels.chunks_exact(width).enumerate() {
        if y % 8 == 0 {
            workers.check()?;
        }
        let blocks = &by_block[(y >> block_bits) * across..][..across];
        for (pixels, by) in row.chunks(1 << block_bits).zip(blocks) {
            if *by == Multipliers::default() {
                out.extend_from_slice(pixels);
            } else {
                out.extend(pixels.iter().map(|pixel| by.apply(*pixel)));
            }
        }
    }
    let factors = Factors {
        block_bits,
        across,
        by_block,
    };
    Ok(Some((out, factors)))
}

/// Whether any predictor block inside block (`x`, `y`) has a mode other than 0.
fn is_predicted(modes: &Modes, x: usize, y: usize) -> bool {
    let rows = modes
        .by_block
        .chunks(modes.across)
        .skip(y << PREDICTOR_BLOCKS);
    rows.take(1 << PREDICTOR_BLOCKS).any(|row| {
        let first = x << PREDICTOR_BLOCKS;
        let end = row.len().min(first + (1 << PREDICTOR_BLOCKS));
        row[first..end].iter().any(|mode| *mode > 0)
    })
}

/// A block of a picture.
struct Block<'a> {
    rows: &'a [u32],
    /// Number of pixels in a row.
    width: usize,
    columns: Range<usize>,
}

impl Block<'_> {
    fn pixels(&self) -> impl Iterator<Item = u32> {
        let rows = self.rows.chunks_exact(self.width);
        rows.flat_map(|row| row[self.columns.clone()].iter().copied())
    }

    /// Returns the cost of red and blue with the factors `by`.
    fn cost(&self, by: Multipliers, costs: &SampleCosts) -> u64 {
        let cost = |pixel: u32| {
            let [red, blue] = by.residuals(pixel);
            u64::from(costs[0][usize::from(red)] + costs[1][usize::from(blue)])
        };
        self.pixels().map(cost).sum()
    }

    /// Chooses the cheapest of no factors, those of the block to the left, and those of least
    /// squares.
    fn choose(&self, left: Multipliers, costs: &SampleCosts) -> Multipliers {
        /// Cost of factors that differ from the neighbor's.
        const SWITCH_COST: u64 = 24 * BIT;
        let mut sums = Sums::default();
        self.pixels().for_each(|pixel| sums.add(pixel));
        let fitting = sums.multipliers();
        let none = Multipliers::default();
        [(none, 0), (left, 0), (fitting, SWITCH_COST)]
            .into_iter()
            .map(|(by, switch_cost)| (self.cost(by, costs) + switch_cost, by))
            .reduce(|best, other| if other.0 < best.0 { other } else { best })
            .map_or(none, |(_, by)| by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_thirty_seconds_of_signed_samples() {
        let by = Multipliers {
            green_to_red: 32,
            green_to_blue: -16,
            red_to_blue: 3,
        };
        // Red 20 - 10; blue 7 - (-5) - (3 * 20 >> 5 = 1), with the original red.
        assert_eq!(by.apply(0x80_14_0A_07), 0x80_0A_0A_0B);
        // Green -10: red 20 + 10; blue 7 - 5 - 1.
        assert_eq!(by.apply(0x80_14_F6_07), 0x80_1E_F6_01);
        let factors = Factors {
            block_bits: 5,
            across: 1,
            by_block: vec![by],
        };
        assert_eq!(factors.pixels(), [0xFF_03_F0_20]);
    }

    #[test]
    fn least_squares_recover_known_factors() {
        let mut sums = Sums::default();
        for i in -60i32..60 {
            let (green, own) = (i, i * i * 7 % 23 - 11);
            // Red is half of green; blue is a quarter of green, and the opposite of red's own part.
            let (red, blue) = (green / 2 + own, green / 4 - own);
            sums.add(u32::from_be_bytes([
                255,
                red as u8,
                green as u8,
                blue as u8,
            ]));
        }
        let by = sums.multipliers();
        // blue = green * 3 / 4 - red.
        assert!((14..=18).contains(&by.green_to_red), "{by:?}");
        assert!((23..=25).contains(&by.green_to_blue), "{by:?}");
        assert!((-33..=-31).contains(&by.red_to_blue), "{by:?}");
        assert_eq!(Sums::default().multipliers(), Multipliers::default());
        assert_eq!(
            [factor(5, 1), factor(-5, 1), factor(-1, 64)],
            [127, -128, 0]
        );
    }

    #[test]
    fn only_predicted_blocks_change_and_the_rfcs_inverse_restores_them() {
        let width = 70;
        let pixels: Vec<u32> = (0..width * 40)
            .map(|i| {
                let green = (i * 7919 % 101) as u8;
                let red = (green / 2).wrapping_add((i % 2) as u8);
                u32::from_be_bytes([255, red, green, green.wrapping_neg()])
            })
            .collect();
        let modes = Modes {
            block_bits: 4,
            across: 5,
            by_block: [1, 1, 0, 0, 1].repeat(3),
        };
        let far = std::array::from_fn(|value| {
            u32::from((value as u8).min((value as u8).wrapping_neg())) * 64
        });
        let workers = Workers::unlimited(1);
        let applied =
            apply(&pixels, width, &modes, &[far, far], workers).expect("nothing cancels it");
        let (left, factors) = applied.expect("it saves bits");
        assert_eq!((factors.block_bits, factors.across), (5, 3));
        assert_eq!(factors.by_block[1], Multipliers::default(), "not predicted");
        assert_ne!(factors.by_block[0], Multipliers::default());
        // The RFC's wording for decoders: green is unchanged, red follows from it, and blue from
        // both.
        for (i, (&left, &pixel)) in left.iter().zip(&pixels).enumerate() {
            let block = i / width / 32 * 3 + i % width / 32;
            let [_, red_to_blue, green_to_blue, green_to_red] =
                factors.pixels()[block].to_be_bytes();
            let delta = |t: u8, c: u8| ((i32::from(t as i8) * i32::from(c as i8)) >> 5) as u8;
            let [alpha, red, green, blue] = left.to_be_bytes();
            let red = red.wrapping_add(delta(green_to_red, green));
            let blue = blue.wrapping_add(delta(green_to_blue, green));
            let blue = blue.wrapping_add(delta(red_to_blue, red));
            assert_eq!(u32::from_be_bytes([alpha, red, green, blue]), pixel, "{i}");
        }
        let nothing = Modes {
            by_block: vec![0; 15],
            ..modes
        };
        assert_eq!(
            apply(&pixels, width, &nothing, &[far, far], workers),
            Ok(None)
        );
    }
}
