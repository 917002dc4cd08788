//! Distortion measures: the weighted squared error, and the SATD (sum of absolute
//! Hadamard-transformed differences), which estimates what a residual will cost. RFC 6386 leaves
//! both to the encoder.

use super::predict::Predictions;
use super::tables::ZIGZAG;
use super::transform::{Block, COEFFICIENT_ERROR_SHIFT};
use crate::fixed_point::{exp2, log2_times_256};

/// Weights of the squared errors of coefficients, `1 / (1 + slope r^exponent)`, where `r` is the
/// distance from the DC in frequencies. The eye sees coarse structure better than fine, and so does
/// SSIMULACRA2: against equal weights, photographs take 5 % fewer bytes at equal score.
#[derive(Clone, Copy, Debug)]
pub struct ErrorWeights {
    /// Square roots of the weights in raster order, times 32768; at most 32767.
    pub roots: [i16; 16],
    /// The weights in zigzag order, times 128.
    pub zigzag: [i32; 16],
}

impl ErrorWeights {
    /// All coefficients weigh the same.
    pub const EQUAL: ErrorWeights = ErrorWeights {
        roots: [32767; 16],
        zigzag: [127; 16],
    };

    /// Weights by slope, in 1/1000, and exponent, in hundredths.
    pub fn new(slope: i32, exponent: i32) -> ErrorWeights {
        let roots: [i16; 16] = std::array::from_fn(|i| {
            let squared_distance = (i / 4 * (i / 4) + i % 4 * (i % 4)) as u32;
            if squared_distance == 0 {
                return 32767;
            }
            // 256 log2(r), times the exponent.
            let octaves = log2_times_256(squared_distance) as i32 / 2 * exponent / 100;
            let decay = u64::from(exp2(octaves * 256)) * slope as u64 / 1000;
            ((1u64 << 46) / ((1 << 16) + decay)).isqrt().min(32767) as i16
        });
        ErrorWeights {
            roots,
            zigzag: ZIGZAG.map(|i| (i32::from(roots[i]) * i32::from(roots[i])) >> 23),
        }
    }
}

/// Right shift that turns squared coefficient errors times weights into squared pixel
/// errors.
const WEIGHTED_ERROR_SHIFT: u32 = 7 + COEFFICIENT_ERROR_SHIFT;

/// Left shift that turns squared coefficient errors times weights into scores: squared
/// pixel errors times 2^16.
pub const WEIGHTED_SCORE_SHIFT: u32 = 16 - WEIGHTED_ERROR_SHIFT;

/// Returns the weighted squared error between two sets of coefficients from position `first` on
/// (raster order, at most 4,095 apart), in squared pixels, by the roots of the weights. The roots
/// are applied in eighths of a unit, as vector instructions round.
#[inline(always)]
pub fn weighted_error(a: &Block, b: &Block, first: usize, roots: &[i16; 16]) -> u32 {
    let mut sum = 0;
    for i in first..16 {
        let difference = (i32::from(a[i]) - i32::from(b[i])) * 8;
        let weighted = (difference * i32::from(roots[i]) + (1 << 14)) >> 15;
        sum += (weighted * weighted) as u32;
    }
    sum >> (6 + COEFFICIENT_ERROR_SHIFT)
}

/// Returns the SATD of a 4x4 residual, at four times the orthonormal scale.
#[inline]
pub fn satd(residuals: &Block) -> u32 {
    let mut rows = [[0i16; 4]; 4];
    for column in 0..4 {
        let values = butterflies(std::array::from_fn(|i| residuals[i * 4 + column]));
        for i in 0..4 {
            rows[i][column] = values[i];
        }
    }
    rows.into_iter()
        .map(|row| {
            butterflies(row)
                .into_iter()
                .map(|x| u32::from(x.unsigned_abs()))
                .sum::<u32>()
        })
        .sum()
}

#[inline]
fn butterflies([a, b, c, d]: [i16; 4]) -> [i16; 4] {
    let (e, f, g, h) = (a + b, a - b, c + d, c - d);
    [e + g, f + h, e - g, f - h]
}

/// Returns the [`satd`] of the residuals of all subblock modes, one lane per mode.
#[inline]
pub fn satd_of_modes(source: &[u8; 16], predictions: &Predictions) -> [u16; 16] {
    let mut lanes = *predictions;
    for (pixel, &source) in lanes.iter_mut().zip(source) {
        for lane in pixel {
            *lane = i16::from(source) - *lane;
        }
    }
    for row in 0..4 {
        butterfly_lanes(&mut lanes, row * 4, 1);
    }
    for column in 0..4 {
        butterfly_lanes(&mut lanes, column, 4);
    }
    let mut sums = [0u16; 16];
    for pixel in &lanes {
        for (sum, lane) in sums.iter_mut().zip(pixel) {
            *sum += lane.unsigned_abs();
        }
    }
    sums
}

/// Applies [`butterflies`] to the rows `start`, `start + step` ..., in every lane.
#[inline]
fn butterfly_lanes(rows: &mut Predictions, start: usize, step: usize) {
    let [a, b, c, d] = std::array::from_fn(|i| rows[start + i * step]);
    for (lane, (((a, b), c), d)) in a.into_iter().zip(b).zip(c).zip(d).enumerate() {
        for (i, value) in butterflies([a, b, c, d]).into_iter().enumerate() {
            rows[start + i * step][lane] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn satd_of_known_residuals() {
        assert_eq!(satd(&[3; 16]), 48, "only the DC: 16 times 3");
        let mut impulse = [0; 16];
        impulse[5] = -7;
        assert_eq!(
            satd(&impulse),
            16 * 7,
            "an impulse reaches every coefficient"
        );
        assert_eq!(satd(&[255; 16]), 16 * 255);
    }

    #[test]
    fn lanes_are_single_sums() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let source: [u8; 16] = std::array::from_fn(|_| random.byte());
            let predictions: Predictions =
                std::array::from_fn(|_| std::array::from_fn(|_| i16::from(random.byte())));
            let sums = satd_of_modes(&source, &predictions);
            for lane in 0..16 {
                let residuals =
                    std::array::from_fn(|i| i16::from(source[i]) - predictions[i][lane]);
                assert_eq!(u32::from(sums[lane]), satd(&residuals), "lane {lane}");
            }
        }
    }
}
