//! The color transform: RFC 9649, section 3.5.2.
//!
//! It subtracts from red and blue what green (and red) predict of them. The search for the factors
//! of a block starts from those of least squares, and ends at those with the cheapest residuals.

use super::predictor::Modes;
use super::residual_classes::{ResidualClasses, ResidualCosts};
use crate::EncodeError;
use crate::checks::Checks;
use crate::threads::Workers;
use crate::vp8l::entropy::BIT;

/// Factors of a block, in 1/32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multipliers {
    green_to_red: i8,
    green_to_blue: i8,
    red_to_blue: i8,
}

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

    /// Returns the factors of predictor block (`x`, `y`).
    #[inline]
    pub fn at_block(&self, x: usize, y: usize, modes: &Modes) -> Multipliers {
        let bits = self.block_bits - modes.block_bits;
        self.by_block[(y >> bits) * self.across + (x >> bits)]
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

    /// Returns `pixel` with the residuals of red and blue.
    #[inline]
    pub fn apply(self, pixel: u32) -> u32 {
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

/// Applies `factors` to the pixels that the prediction leaves.
pub fn apply(
    pixels: &mut [u32],
    width: usize,
    factors: &Factors,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    let mut checks = Checks::new(workers);
    for (y, row) in pixels.chunks_exact_mut(width).enumerate() {
        checks.at(y * width)?;
        let blocks = &factors.by_block[(y >> factors.block_bits) * factors.across..];
        for (pixels, by) in row.chunks_mut(1 << factors.block_bits).zip(blocks) {
            if *by != Multipliers::default() {
                for pixel in pixels {
                    *pixel = by.apply(*pixel);
                }
            }
        }
    }
    Ok(())
}

/// Chooses the factors of blocks with sides of `2^block_bits`, by the costs that `classes` give to
/// what they leave of `residuals`. Where nothing is predicted, there are no factors. `before` are
/// the factors of the round before.
pub fn choose(
    residuals: &[u32],
    width: usize,
    modes: &Modes,
    block_bits: u32,
    classes: &ResidualClasses,
    before: Option<&Factors>,
    workers: Workers<'_>,
) -> Result<Factors, EncodeError> {
    let height = residuals.len() / width;
    let across = width.div_ceil(1 << block_bits);
    let rows = workers.run_checked(height.div_ceil(1 << block_bits), |y| {
        let mut row: Vec<Multipliers> = Vec::with_capacity(across);
        for x in 0..across {
            workers.check()?;
            let block = Block::new(residuals, width, (x, y), block_bits, modes, classes);
            let own = before.map(|before| before.by_block[y * across + x]);
            let above = before
                .filter(|_| y > 0)
                .map(|before| before.by_block[(y - 1) * across + x]);
            let left = row.last().copied().unwrap_or_default();
            row.push(block.choose(own, [left, above.unwrap_or(left)]));
        }
        Ok(row)
    })?;
    Ok(Factors {
        block_bits,
        across,
        by_block: rows.concat(),
    })
}

/// The residuals of a block's pixels.
struct Block<'a> {
    /// Residuals with the costs in their class. Not those of predictor blocks without prediction.
    samples: Vec<(u32, &'a ResidualCosts)>,
}

impl<'a> Block<'a> {
    fn new(
        residuals: &[u32],
        width: usize,
        (x, y): (usize, usize),
        block_bits: u32,
        modes: &Modes,
        classes: &'a ResidualClasses,
    ) -> Block<'a> {
        let columns = x << block_bits..width.min((x + 1) << block_bits);
        let height = residuals.len() / width;
        let rows = y << block_bits..height.min((y + 1) << block_bits);
        let mut samples = Vec::with_capacity(columns.len() * rows.len());
        for y in rows {
            let first = (y >> modes.block_bits) * modes.across;
            for x in columns.clone() {
                let block = first + (x >> modes.block_bits);
                if modes.by_block[block] > 0 {
                    samples.push((residuals[y * width + x], classes.costs_in(block)));
                }
            }
        }
        Block { samples }
    }

    /// Returns the cost of red with the factor `by`.
    fn cost_of_red(&self, by: i8) -> u64 {
        let cost = |(pixel, costs): &(u32, &ResidualCosts)| {
            let [_, green, red, _] = pixel.to_le_bytes();
            u64::from(costs[2][usize::from(red.wrapping_sub(delta(by, green)))])
        };
        self.samples.iter().map(cost).sum()
    }

    /// Returns the cost of blue with the factors of green and of red.
    fn cost_of_blue(&self, by_green: i8, by_red: i8) -> u64 {
        let cost = |(pixel, costs): &(u32, &ResidualCosts)| {
            let [blue, green, red, _] = pixel.to_le_bytes();
            let left = blue.wrapping_sub(delta(by_green, green));
            let left = left.wrapping_sub(delta(by_red, red));
            u64::from(costs[0][usize::from(left)])
        };
        self.samples.iter().map(cost).sum()
    }

    /// Searches for the cheapest factors, from `own` or else those of least squares; those of the
    /// neighbors are tried too, and cost less themselves.
    fn choose(&self, own: Option<Multipliers>, near: [Multipliers; 2]) -> Multipliers {
        const BLUE_ROUNDS: usize = 2;
        if self.samples.is_empty() {
            return Multipliers::default();
        }
        let mut by = own.unwrap_or_else(|| {
            let mut sums = Sums::default();
            self.samples.iter().for_each(|(pixel, _)| sums.add(*pixel));
            sums.multipliers()
        });
        by.green_to_red = search(by.green_to_red, near.map(|by| by.green_to_red), |factor| {
            self.cost_of_red(factor)
        });
        for _ in 0..BLUE_ROUNDS {
            let from_green = near.map(|by| by.green_to_blue);
            by.green_to_blue = search(by.green_to_blue, from_green, |factor| {
                self.cost_of_blue(factor, by.red_to_blue)
            });
            let from_red = near.map(|by| by.red_to_blue);
            by.red_to_blue = search(by.red_to_blue, from_red, |factor| {
                self.cost_of_blue(by.green_to_blue, factor)
            });
        }
        by
    }
}

/// Returns the factor with the least cost, looked for around 0, `start` and the factors `near` with
/// ever smaller steps.
fn search(start: i8, near: [i8; 2], cost: impl Fn(i8) -> u64) -> i8 {
    /// Cost of a factor that differs from the neighbors'.
    const SWITCH_COST: u64 = 6 * BIT;
    const STEPS: [i8; 4] = [8, 4, 2, 1];
    let mut tried = [false; 256];
    let mut best = (u64::MAX, 0);
    let mut consider = |factor: i8| {
        let tried = &mut tried[usize::from(factor as u8)];
        if !std::mem::replace(tried, true) {
            let switch_cost = if near.contains(&factor) {
                0
            } else {
                SWITCH_COST
            };
            let cost = cost(factor) + switch_cost;
            if cost < best.0 {
                best = (cost, factor);
            }
        }
        best.1
    };
    for factor in [0, near[0], near[1], start] {
        consider(factor);
    }
    for step in STEPS {
        let mut at = consider(0);
        loop {
            consider(at.saturating_add(step));
            let next = consider(at.saturating_sub(step));
            if next == at {
                break;
            }
            at = next;
        }
    }
    consider(0)
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
        let workers = Workers::unlimited(1);
        let mut classes = ResidualClasses::by_size(&pixels, width, &modes, 1, workers)
            .expect("nothing cancels it");
        // Zero is the most frequent value of red and of blue.
        let small: Vec<u32> = pixels.iter().map(|pixel| pixel & 0xFF01_FF03).collect();
        classes
            .measure(&small, width, &modes, workers)
            .expect("nothing cancels it");
        let factors =
            choose(&pixels, width, &modes, 5, &classes, None, workers).expect("nothing cancels it");
        assert_eq!((factors.block_bits, factors.across), (5, 3));
        assert_eq!(factors.by_block[1], Multipliers::default(), "not predicted");
        let first = factors.by_block[0];
        assert!((15..=17).contains(&first.green_to_red), "{first:?}");
        assert_eq!(factors.at_block(1, 1, &modes), first);
        let mut left = pixels.clone();
        apply(&mut left, width, &factors, workers).expect("nothing cancels it");
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
    }

    #[test]
    fn a_search_ends_at_the_cheapest_factor() {
        let far = |factor: i8| u64::from(factor.abs_diff(37)) * 1000;
        assert_eq!(search(-100, [0, 0], far), 37);
        assert_eq!(
            search(127, [-128, 5], |factor| far(factor) / 1000),
            5,
            "known costs less"
        );
    }
}
