//! The definition of the kernels on 4x4 blocks, written for readers (RFC 6386, sections 12 and 14).

use super::{BlockKernels, BlockPixels, Nearest, Quantized};
use crate::vp8::distortion::{ERROR_WEIGHTS, satd, satd_of_modes, weighted_error};
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
        first: usize,
    ) -> (Quantized, u32) {
        let (levels, eob) = quantizer.quantize(coefficients, first);
        let restored = quantizer.dequantize(&levels);
        let error = weighted_error(coefficients, &restored, first);
        (Quantized { levels, eob }, error)
    }

    fn nearest(self, coefficients: &Block, quantizer: &Quantizer, first: usize) -> Nearest {
        let mut nearest = Nearest {
            magnitudes: [0; 16],
            levels: [0; 16],
            eob: 0,
            energy: 0,
        };
        for position in first..16 {
            let magnitude = coefficients[ZIGZAG[position]].unsigned_abs();
            nearest.magnitudes[position] = magnitude;
            nearest.levels[position] = quantizer.nearest(magnitude, position);
            if nearest.levels[position] > 0 {
                nearest.eob = position as u8 + 1;
            }
            nearest.energy += u32::from(magnitude).pow(2) * ERROR_WEIGHTS[ZIGZAG[position]] as u32;
        }
        nearest
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
