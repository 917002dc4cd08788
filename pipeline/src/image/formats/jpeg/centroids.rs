//! Luma at the centroids of its quantization cells.
//!
//! A decoder puts each coefficient (ITU-R T.81, A.3.4) into the middle of its cell: the range of
//! coefficients that are quantized to one level. Coefficients of photographs have about a Laplacian
//! distribution, by which small ones are more frequent than large ones, so that the mean of a cell,
//! its centroid, is nearer to 0. By that distribution the distance from the middle is the same for
//! all levels but 0. It is estimated for each frequency from the picture's own coefficients.
//!
//! The library's decoder gives no coefficients. A forward transform of its samples finds them, up
//! to what the rounding of samples changes, which is a fraction of a quantizer: only whether they
//! are 0, and their signs, are needed. The inverse transform of the distances is added to the
//! samples, in the pass that maps them to WebP's range.

#![expect(
    clippy::needless_range_loop,
    reason = "without optimization across units of code, iterators and closures are calls between vectors"
)]

use crate::image::planes::Planes;
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, i32x8};
use std::array;
use std::sync::Mutex;
use towebp_encoder::{Cancelled, Workers};

/// A value of each frequency: of each column, those of its rows.
type Table<T> = [[T; 8]; 8];

/// The sum of luma's 64 quantizers from which on centroids are taken: about that of quality 89.
///
/// At equal SSIMULACRA2 beside the picture that a JPEG was made of, its WebP has 3.1 % fewer bytes
/// for quality 75 and 2.1 % fewer for 85, at equal PSNR of luma 4.1 and 1.6 % fewer (means of 15
/// pictures; the worst one has 2.5 % more). For 92 it would be 1.0 % fewer, but 0.3 % more by PSNR,
/// which does not pay the time. With 3/4 and 4/3 of the distances, it is -3.1 and -3.2 % for 75 by
/// SSIMULACRA2, and -4.3 and -2.6 % by PSNR. The pass takes 1 ms a
/// megapixel more than the range alone.
const LEAST_QUANTIZERS: u32 = 800;

/// The largest quantizer with which sums stay within 32 bits.
const MOST_QUANTIZER: u16 = 255;

/// The side of a block in samples.
const SIDE: usize = 8;

/// The factors of frequencies in the transforms of Arai, Agui and Nakajima, in 1/4096: 1 for the
/// mean, and the cosines of multiples of pi / 16 times the root of 2.
const FACTORS: [i64; SIDE] = [4096, 5681, 5352, 4816, 4096, 3218, 2217, 1130];

/// Whether the luma of a picture with these quantizers is put to its centroids.
pub fn pays(quantizers: &[u16; 64]) -> bool {
    let sum: u32 = quantizers
        .iter()
        .map(|quantizer| u32::from(*quantizer))
        .sum();
    sum >= LEAST_QUANTIZERS
        && quantizers
            .iter()
            .all(|quantizer| *quantizer <= MOST_QUANTIZER)
}

/// Puts luma, which has all 256 values, to the centroids of its cells, and maps it to WebP's range.
/// `quantizers` are luma's, row by row.
pub fn limit_luma_at_centroids(
    planes: &mut Planes,
    quantizers: &[u16; 64],
    workers: Workers<'_>,
) -> Result<(), Cancelled> {
    /// The least number of samples that a thread takes at a time: some tenths of a millisecond.
    const LEAST_SAMPLES: usize = 1 << 17;
    let level = Level::new();
    let units = array::from_fn(|column| {
        array::from_fn(|row| unit(quantizers[row * SIDE + column], column, row))
    });
    let counts = Counts::of(level, planes, &units, workers)?;
    let centroids = Centroids {
        halves: units.map(|column| column.map(|unit| unit / 2)),
        distances: counts.distances(quantizers, &units),
    };
    let stride = planes.luma_stride();
    let rows = (LEAST_SAMPLES / stride).next_multiple_of(SIDE).max(SIDE);
    let parts: Vec<_> = planes
        .luma
        .chunks_mut(rows * stride)
        .map(Mutex::new)
        .collect();
    let done = workers.run(parts.len(), |part| {
        let mut part = parts[part].lock().expect("each is taken once");
        for blocks in part.chunks_mut(SIDE * stride) {
            dispatch!(level, simd => centroids.limit_row(simd, blocks, stride));
        }
    });
    done.map(drop).map_err(|_| Cancelled)
}

/// A quantizer in the unit of the forward transform.
fn unit(quantizer: u16, column: usize, row: usize) -> i32 {
    let scale = FACTORS[column] * FACTORS[row];
    // The transform of both directions makes them 8 times as large.
    let scaled = (i64::from(quantizer) * scale * 8) << INPUT_BITS;
    ((scaled + (1 << 23)) >> 24) as i32
}

/// Coefficients that are not 0, of each frequency.
#[derive(Default)]
struct Counts {
    numbers: Table<i64>,
    /// The sums of their magnitudes.
    sums: Table<i64>,
}

impl Counts {
    /// Counts those of some rows of blocks.
    fn of(
        level: Level,
        planes: &Planes,
        units: &Table<i32>,
        workers: Workers<'_>,
    ) -> Result<Counts, Cancelled> {
        /// About the number of blocks that are counted.
        const BLOCKS: usize = 2048;
        let stride = planes.luma_stride();
        let across = planes.width as usize / SIDE;
        let down = planes.height as usize / SIDE;
        let step = (across * down / BLOCKS).clamp(1, (down / 16).max(1));
        let halves = units.map(|column| column.map(|unit| unit / 2));
        let mut counts = Counts::default();
        for row in (0..down).step_by(step) {
            workers.cancel().check()?;
            let rows = &planes.luma[row * SIDE * stride..][..SIDE * stride];
            dispatch!(level, simd => counts.add_row(simd, rows, stride, across, &halves));
        }
        Ok(counts)
    }

    /// Adds a row of blocks.
    #[inline(always)]
    fn add_row<S: Simd>(
        &mut self,
        simd: S,
        rows: &[u8],
        stride: usize,
        blocks: usize,
        halves: &Table<i32>,
    ) {
        /// Bits that are left out of magnitudes, so that the sums of a row stay within 32 bits.
        const SHIFT: u32 = 4;
        let mut numbers = [i32x8::splat(simd, 0); SIDE];
        let mut sums = numbers;
        for block in 0..blocks {
            let coefficients = transform(simd, &rows[block * SIDE..], stride);
            for (column, half) in halves.iter().enumerate() {
                let magnitudes = coefficients[column].abs();
                let half = i32x8::from_slice(simd, half);
                let is_counted: i32x8<S> = magnitudes.simd_gt(half).to_vector();
                numbers[column] -= is_counted;
                sums[column] += (magnitudes & is_counted) >> SHIFT;
            }
        }
        for column in 0..SIDE {
            let (number, sum): ([i32; 8], [i32; 8]) = (numbers[column].into(), sums[column].into());
            for row in 0..SIDE {
                self.numbers[column][row] += i64::from(number[row]);
                self.sums[column][row] += i64::from(sum[row]) << SHIFT;
            }
        }
    }

    /// The distances of centroids from the middle of cells, in the unit of the inverse transform.
    fn distances(&self, quantizers: &[u16; 64], units: &Table<i32>) -> Table<i32> {
        array::from_fn(|column| {
            array::from_fn(|row| {
                // The means of blocks are not distributed around 0.
                if (column, row) == (0, 0) {
                    return 0;
                }
                let unit = i64::from(units[column][row]).max(1);
                let share = decay(self.numbers[column][row], self.sums[column][row] / unit);
                let quantizer = i64::from(quantizers[row * SIDE + column]);
                let distance = quantizer * share * FACTORS[column] * FACTORS[row];
                (distance >> (24 + SHARE_BITS + 3 - OUTPUT_BITS)) as i32
            })
        })
    }
}

/// Bits of fractions: of shares of a quantizer, of samples that are transformed forward, and of
/// those that the inverse transform makes.
const SHARE_BITS: u32 = 10;
const INPUT_BITS: u32 = 2;
const OUTPUT_BITS: u32 = 9;

/// The share of the quantizer by which the centroid is nearer to 0 than the middle, in 1/1024, by
/// the number of coefficients that are not 0 and the sum of their levels.
fn decay(number: i64, sum: i64) -> i64 {
    /// With the probability `p` that a level is exceeded, and `d = -ln p`, the share is
    /// `1/2 - 1/d + p/(1 - p)`. It is given for `p` in steps of 1/16, and held to 1/4.
    const SHARES: [i64; 17] = [
        256, 211, 166, 137, 115, 97, 82, 70, 59, 49, 40, 32, 25, 18, 11, 6, 0,
    ];
    /// Levels beyond the first, and all levels, that are added to those of the picture, since a few
    /// coefficients say little.
    const PRIOR: (i64, i64) = (3, 8);
    let beyond = (sum - number).max(0) + PRIOR.0;
    let place = (beyond << 14) / (sum.max(number) + PRIOR.1);
    let (index, part) = ((place >> 10) as usize, place & 1023);
    let (here, next) = (SHARES[index], SHARES[(index + 1).min(16)]);
    here + (((next - here) * part) >> 10)
}

/// The tables by which coefficients become what is added to samples, in the transforms' units.
struct Centroids {
    /// Half a quantizer: the magnitude from which on a coefficient is not 0.
    halves: Table<i32>,
    /// The numbers to subtract from the magnitudes of coefficients that are not 0.
    distances: Table<i32>,
}

impl Centroids {
    /// Puts a row of blocks to their centroids, in WebP's range.
    #[inline(always)]
    fn limit_row<S: Simd>(&self, simd: S, rows: &mut [u8], stride: usize) {
        for left in (0..stride).step_by(SIDE) {
            let mut numbers = transform(simd, &rows[left..], stride);
            for column in 0..SIDE {
                let signs = numbers[column] >> 31;
                let magnitudes = (numbers[column] ^ signs) - signs;
                let half = i32x8::from_slice(simd, &self.halves[column]);
                let is_moved: i32x8<S> = magnitudes.simd_gt(half).to_vector();
                let distance = i32x8::from_slice(simd, &self.distances[column]) & is_moved;
                // The distance with the other sign.
                numbers[column] = signs - (distance ^ signs);
            }
            let distances = inverse_points(transpose(inverse_points(numbers)));
            for (y, distance) in distances.iter().enumerate() {
                let row = &mut rows[y * stride + left..][..SIDE];
                let sample = (samples(simd, row) << OUTPUT_BITS) + *distance;
                write_limited(simd, sample, row);
            }
        }
    }
}

/// Writes luma in WebP's range: `16 + Y * 219 / 255`, rounded.
#[inline(always)]
fn write_limited<S: Simd>(simd: S, sample: i32x8<S>, row: &mut [u8]) {
    /// 219 / 255 in 1/16384.
    const FACTOR: i32 = 14071;
    const BITS: u32 = OUTPUT_BITS + 14;
    let least = i32x8::splat(simd, 0);
    let most = i32x8::splat(simd, 255 << OUTPUT_BITS);
    let limited = (sample.max(least).min(most) * FACTOR + (1 << (BITS - 1))) >> BITS;
    let limited: [i32; SIDE] = (limited + 16).into();
    for place in 0..SIDE {
        row[place] = limited[place] as u8;
    }
}

/// The coefficients of a block, in the unit of [`unit()`].
#[inline(always)]
fn transform<S: Simd>(simd: S, rows: &[u8], stride: usize) -> [i32x8<S>; SIDE] {
    let mut points = [i32x8::splat(simd, 0); SIDE];
    for (y, point) in points.iter_mut().enumerate() {
        *point = samples(simd, &rows[y * stride..][..SIDE]) << INPUT_BITS;
    }
    forward_points(transpose(forward_points(points)))
}

#[inline(always)]
fn samples<S: Simd>(simd: S, row: &[u8]) -> i32x8<S> {
    let mut wide = [0; SIDE];
    for place in 0..SIDE {
        wide[place] = i32::from(row[place]);
    }
    i32x8::simd_from(simd, wide)
}

/// Forward cosine transforms of eight points beside each other (Arai, Agui and Nakajima, 1988),
/// scaled by [`FACTORS`] and the root of 8.
#[inline(always)]
fn forward_points<S: Simd>(points: [i32x8<S>; SIDE]) -> [i32x8<S>; SIDE] {
    let [a, b, c, d, e, f, g, h] = points;
    let sums = [a + h, b + g, c + f, d + e];
    let differences = [a - h, b - g, c - f, d - e];
    let (outer, inner) = (sums[0] + sums[3], sums[1] + sums[2]);
    let slope = sums[0] - sums[3];
    let turned = times(sums[1] - sums[2] + slope, COS_4);
    let pairs = [
        differences[3] + differences[2],
        differences[2] + differences[1],
        differences[1] + differences[0],
    ];
    let rotated = times(pairs[0] - pairs[2], COS_6);
    let low = times(pairs[0], COS_2 - COS_6) + rotated;
    let high = times(pairs[2], COS_2 + COS_6) + rotated;
    let middle = times(pairs[1], COS_4);
    let (above, below) = (differences[0] + middle, differences[0] - middle);
    [
        outer + inner,
        above + high,
        slope + turned,
        below - low,
        outer - inner,
        below + low,
        slope - turned,
        above - high,
    ]
}

/// The inverse of [`forward_points`], up to a factor: its input is scaled by [`FACTORS`].
#[inline(always)]
fn inverse_points<S: Simd>(points: [i32x8<S>; SIDE]) -> [i32x8<S>; SIDE] {
    let [a, b, c, d, e, f, g, h] = points;
    let (sum, difference) = (a + e, a - e);
    let turned = c + g;
    let slope = times(c - g, 2.0 * COS_4) - turned;
    let even = [
        sum + turned,
        difference + slope,
        difference - slope,
        sum - turned,
    ];
    let (above, below) = (b + h, f + d);
    let (left, right) = (f - d, b - h);
    let rotated = times(left + right, 2.0 * COS_2);
    let first = above + below;
    let second = rotated - times(left, 2.0 * (COS_2 + COS_6)) - first;
    let third = times(above - below, 2.0 * COS_4) - second;
    let fourth = times(right, 2.0 * (COS_2 - COS_6)) - rotated + third;
    [
        even[0] + first,
        even[1] + second,
        even[2] + third,
        even[3] - fourth,
        even[3] + fourth,
        even[2] - third,
        even[1] - second,
        even[0] - first,
    ]
}

/// Cosines of 2, 4 and 6 sixteenths of pi.
const COS_2: f64 = 0.923_879_532_511_286_7;
const COS_4: f64 = std::f64::consts::FRAC_1_SQRT_2;
const COS_6: f64 = 0.382_683_432_365_089_8;

/// The products with a constant, rounded.
#[inline(always)]
fn times<S: Simd>(numbers: i32x8<S>, factor: f64) -> i32x8<S> {
    const BITS: u32 = 11;
    let factor = (factor * f64::from(1 << BITS) + 0.5) as i32;
    (numbers * factor + (1 << (BITS - 1))) >> BITS
}

#[inline(always)]
fn transpose<S: Simd>([a, b, c, d, e, f, g, h]: [i32x8<S>; SIDE]) -> [i32x8<S>; SIDE] {
    // Three times, what is half of the vectors apart is zipped.
    let ((ae0, ae1), (bf0, bf1)) = (a.interleave(e), b.interleave(f));
    let ((cg0, cg1), (dh0, dh1)) = (c.interleave(g), d.interleave(h));
    let ((aceg0, aceg1), (aceg2, aceg3)) = (ae0.interleave(cg0), ae1.interleave(cg1));
    let ((bdfh0, bdfh1), (bdfh2, bdfh3)) = (bf0.interleave(dh0), bf1.interleave(dh1));
    let (column0, column1) = aceg0.interleave(bdfh0);
    let (column2, column3) = aceg1.interleave(bdfh1);
    let (column4, column5) = aceg2.interleave(bdfh2);
    let (column6, column7) = aceg3.interleave(bdfh3);
    [
        column0, column1, column2, column3, column4, column5, column6, column7,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::planes::limit_luma;
    use std::f64::consts::PI;
    use towebp_encoder::Cancel;
    use towebp_encoder::testing::Random;

    /// The sample at (`x`, `y`) of a coefficient of 1 (T.81, A.3.3).
    fn basis((column, row): (usize, usize), x: usize, y: usize) -> f64 {
        let wave = |frequency: usize, place: usize| {
            let angle = (2 * place + 1) as f64 * frequency as f64 * PI / 16.0;
            let scale = if frequency == 0 { 0.5_f64.sqrt() } else { 1.0 };
            scale * angle.cos() / 2.0
        };
        wave(column, x) * wave(row, y)
    }

    /// Planes of luma alone, of this many blocks on each side.
    fn planes(blocks: usize, luma: Vec<u8>) -> Planes {
        let mut planes = Planes::new(blocks as u32 * 8, blocks as u32 * 8);
        planes.luma = luma;
        planes
    }

    fn limit(planes: &mut Planes, quantizers: &[u16; 64], threads: usize) {
        let never = Cancel::never();
        limit_luma_at_centroids(planes, quantizers, Workers::new(threads, None, &never))
            .expect("nothing cancels it");
    }

    /// Blocks of one frequency with these levels, and means from 128 to 129, so that samples are
    /// not all rounded alike.
    fn waves(frequency: (usize, usize), quantizer: u16, levels: &[i32]) -> Vec<f64> {
        let side = levels.len().isqrt();
        let sample = |at: usize| {
            let (x, y) = (at % (8 * side), at / (8 * side));
            let block = y / 8 * side + x / 8;
            let (level, mean) = (levels[block], 128.0 + (block / 8 % 16) as f64 / 16.0);
            mean + f64::from(level) * f64::from(quantizer) * basis(frequency, x % 8, y % 8)
        };
        (0..64 * levels.len()).map(sample).collect()
    }

    fn rounded(samples: &[f64]) -> Vec<u8> {
        samples.iter().map(|sample| sample.round() as u8).collect()
    }

    #[test]
    fn levels_move_to_the_centroid_of_a_laplacian_whatever_their_sign() {
        // Each level is half or a quarter as frequent as the one before.
        for (quantizer, octaves, probability) in [(60, 1, 0.5_f64), (120, 2, 0.25)] {
            let levels: Vec<i32> = (0..256)
                .map(|at: i32| {
                    let magnitude = (at / 2).trailing_ones() as i32 / octaves + 1;
                    magnitude * (at % 2 * 2 - 1)
                })
                .collect();
            let distance = -probability.ln();
            let share = 0.5 - 1.0 / distance + probability / (1.0 - probability);
            for frequency in [(1, 0), (0, 1), (2, 3), (4, 4), (7, 1), (5, 6)] {
                let decoded = waves(frequency, quantizer, &levels);
                let mut planes = planes(16, rounded(&decoded));
                limit(&mut planes, &[quantizer; 64], 1);
                let moved = share * f64::from(quantizer);
                // Basis functions are orthonormal: sums of products give what was added of each.
                let mut towards_zero = 0.0;
                for (at, (sample, decoded)) in planes.luma.iter().zip(&decoded).enumerate() {
                    let (x, y) = (at % 128, at / 128);
                    let sign = f64::from(levels[y / 8 * 16 + x / 8].signum());
                    let towards = -sign * basis(frequency, x % 8, y % 8);
                    let expected = 16.0 + (decoded + moved * towards) * 219.0 / 255.0;
                    // Luma was rounded, and so is the outcome.
                    let difference = (f64::from(*sample) - expected).abs();
                    assert!(difference < 1.2, "{frequency:?} at {x}, {y}: {difference}");
                    let sample = (f64::from(*sample) - 16.0) * 255.0 / 219.0;
                    towards_zero += (sample - decoded) * towards;
                }
                let mean = towards_zero / levels.len() as f64;
                assert!(
                    (mean - moved).abs() < 0.7,
                    "{frequency:?}: {mean} in place of {moved}"
                );
            }
        }
    }

    #[test]
    fn what_has_no_coefficient_is_mapped_as_by_limit_luma() {
        let flat: Vec<u8> = (0..256 * 64)
            .map(|at| (at / 1024 * 16 + at % 128 / 8) as u8)
            .collect();
        let mut expected = flat.clone();
        limit_luma(&mut expected);
        let mut planes = planes(16, flat);
        limit(&mut planes, &[40; 64], 1);
        assert!(planes.luma == expected);
    }

    #[test]
    fn all_vectors_and_any_number_of_threads_make_the_same() {
        let mut random = Random::new(3);
        for range in [2, 30, 256] {
            let quantizers: [u16; 64] = array::from_fn(|_| 1 + random.index(255) as u16);
            let luma: Vec<u8> = (0..512 * 512).map(|_| random.index(range) as u8).collect();
            let mut outcomes = [1, 2].map(|threads| {
                let mut planes = planes(64, luma.clone());
                limit(&mut planes, &quantizers, threads);
                planes.luma
            });
            assert!(outcomes[0] == outcomes[1], "threads, {range}");
            let centroids = Centroids {
                halves: array::from_fn(|_| array::from_fn(|_| random.index(1 << 15) as i32)),
                distances: array::from_fn(|_| array::from_fn(|_| random.index(1 << 13) as i32)),
            };
            for (level, rows) in [Level::baseline(), Level::new()]
                .into_iter()
                .zip(&mut outcomes)
            {
                dispatch!(level, simd => centroids.limit_row(simd, &mut rows[..8 * 512], 512));
            }
            assert!(outcomes[0] == outcomes[1], "vectors, {range}");
        }
    }

    #[test]
    fn fine_quantizers_and_those_beyond_the_arithmetic_are_left_alone() {
        assert!(!pays(&[1; 64]));
        assert!(pays(&[20; 64]));
        assert!(pays(&[255; 64]));
        assert!(!pays(&[256; 64]));
    }
}
