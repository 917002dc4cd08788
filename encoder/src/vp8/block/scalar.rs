//! The definition of the kernels on 4x4 blocks, written for readers (RFC 6386, sections 12 and 14).

use super::{BlockKernels, BlockPixels, Candidates, LeastRates, Nearest, Quantized};
use crate::vp8::distortion::{WEIGHTED_SCORE_SHIFT, satd, satd_of_modes, weighted_error};
use crate::vp8::predict::{SubblockEdges, SubblockMode, SubblockPredictor};
use crate::vp8::quantize::Quantizer;
use crate::vp8::tables::ZIGZAG;
use crate::vp8::transform::{Block, forward_dct, inverse_dct};

/// The kernels without vector instructions.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl BlockKernels for Scalar {
    fn predict(self, edges: &SubblockEdges, mode: SubblockMode) -> BlockPixels {
        SubblockPredictor::new(*edges).predict(mode)
    }

    fn subblock_estimates(
        self,
        source: &BlockPixels,
        edges: &SubblockEdges,
        costs: &[u16; 16],
        lambda_satd: u16,
    ) -> [u16; 16] {
        let sums = satd_of_modes(source, &SubblockPredictor::new(*edges).predict_all());
        std::array::from_fn(|mode| match mode {
            0..10 => {
                let cost = (u32::from(costs[mode]) * u32::from(lambda_satd)) >> 15;
                sums[mode] + cost as u16
            }
            _ => u16::MAX,
        })
    }

    fn argmin(self, estimates: &[u16; 16]) -> (usize, u16) {
        let mut least = 0;
        for i in 1..16 {
            if estimates[i] < estimates[least] {
                least = i;
            }
        }
        (least, estimates[least])
    }

    fn block_satd<const N: usize>(self, source: &[u8], prediction: &[u8]) -> u32 {
        let mut sum = 0;
        for row in (0..N).step_by(4) {
            for column in (0..N).step_by(4) {
                let at = |i: usize| (row + i / 4) * N + column + i % 4;
                let residuals = std::array::from_fn(|i| {
                    i16::from(source[at(i)]) - i16::from(prediction[at(i)])
                });
                sum += satd(&residuals);
            }
        }
        sum
    }

    fn transform(self, source: &BlockPixels, prediction: &BlockPixels) -> Block {
        forward_dct(&std::array::from_fn(|i| {
            i16::from(source[i]) - i16::from(prediction[i])
        }))
    }

    fn quantize(
        self,
        coefficients: &Block,
        quantizer: &Quantizer,
        factor: u16,
        first: usize,
    ) -> (Quantized, u32, u32) {
        let (levels, eob) = quantizer.quantize(coefficients, factor, first);
        let restored = quantizer.dequantize(&levels);
        let error = weighted_error(coefficients, &restored, first, &quantizer.weights.roots);
        let positions = levels.iter().enumerate();
        let nonzero = positions.fold(0, |all, (position, &level)| {
            all | u32::from(level != 0) << position
        });
        (Quantized { levels, eob }, error, nonzero)
    }

    fn add_row(self, pixels: &[u8; 32], moments: &mut [[i32; 16]; 2]) {
        let [sums, squares] = moments;
        for ((sum, square), pair) in sums.iter_mut().zip(squares).zip(pixels.as_chunks::<2>().0) {
            let pair = pair.map(i32::from);
            *sum += pair[0] + pair[1];
            *square += pair[0] * pair[0] + pair[1] * pair[1];
        }
    }

    fn nearest(self, coefficients: &Block, quantizer: &Quantizer, first: usize) -> Nearest {
        let mut nearest = Nearest {
            magnitudes: [0; 16],
            levels: [0; 16],
            nonzero: 0,
            negative: 0,
            energy: 0,
        };
        for position in first..16 {
            let coefficient = coefficients[ZIGZAG[position]];
            let magnitude = coefficient.unsigned_abs();
            let level = quantizer.nearest(magnitude, position);
            nearest.magnitudes[position] = magnitude;
            nearest.levels[position] = level;
            nearest.nonzero |= u32::from(level > 0) << position;
            nearest.negative |= u32::from(coefficient < 0) << position;
            nearest.energy +=
                u32::from(magnitude).pow(2) * quantizer.weights.zigzag[position] as u32;
        }
        nearest
    }

    fn candidates(
        self,
        nearest: &Nearest,
        quantizer: &Quantizer,
        rates: LeastRates<'_>,
    ) -> Candidates {
        let mut candidates = Candidates {
            changes: [[0; 16]; 2],
            least: 0,
        };
        for (position, weight) in quantizer.weights.zigzag.into_iter().enumerate() {
            let (magnitude, level) = (nearest.magnitudes[position], nearest.levels[position]);
            let mut least = 0;
            for below in 0..2 {
                let level = i32::from(level) - below;
                let restored = level * quantizer.step(position);
                let over = (restored - i32::from(magnitude)).max(0);
                let change = restored * (restored - 2 * i32::from(magnitude)) * weight
                    - ((over * over * weight * quantizer.overshoot_discount) >> 8);
                let rate = match level {
                    0 => 0,
                    1 | 2 => rates.costs[level as usize - 1][position],
                    _ => rates.costs[2][position],
                };
                candidates.changes[below as usize][position] = change;
                least = least.min(change + ((rate * rates.lambda) >> WEIGHTED_SCORE_SHIFT));
            }
            candidates.least += least;
        }
        candidates
    }

    fn reconstruct(
        self,
        prediction: &BlockPixels,
        levels: &Block,
        quantizer: &Quantizer,
        dc: Option<i16>,
    ) -> BlockPixels {
        let mut coefficients = quantizer.dequantize(levels);
        if let Some(dc) = dc {
            coefficients[0] = dc;
        }
        let residuals = inverse_dct(&coefficients);
        std::array::from_fn(|i| (i16::from(prediction[i]) + residuals[i]).clamp(0, 255) as u8)
    }
}
