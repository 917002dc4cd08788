//! Kernels on 4x4 blocks, which the mode decision calls for every block (RFC 6386, sections 12 and
//! 14).
//!
//! [`Scalar`] defines each kernel; the vector implementations return exactly the same.

mod scalar;
mod vector;

use super::predict::{SubblockEdges, SubblockMode};
use super::quantize::Quantizer;
use super::transform::Block;

pub use scalar::Scalar;

/// The largest magnitude of a coefficient that [`BlockKernels::quantize`],
/// [`BlockKernels::nearest`] and [`BlockKernels::candidates`] take. Luma and chroma stay within it.
pub const MAX_COEFFICIENT: u16 = 2400;

/// The pixels of a 4x4 block in raster order.
pub type BlockPixels = [u8; 16];

/// A block after quantization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantized {
    /// Levels in zigzag order.
    pub levels: Block,
    /// End of block: one past the last nonzero level.
    pub eob: u8,
}

/// A block with every coefficient rounded to its nearest level, in zigzag order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Magnitudes of the coefficients; 0 before the first position.
    pub magnitudes: [u16; 16],
    /// Magnitudes of the nearest levels.
    pub levels: [u16; 16],
    /// Positions of levels other than zero, one bit each.
    pub nonzero: u32,
    /// Positions of negative coefficients, one bit each.
    pub negative: u32,
    /// Squared coefficient errors of a block of zeros, times the
    /// [weights](super::distortion::ErrorWeights).
    pub energy: u32,
}

/// The candidates of the trellis: by zigzag position the nearest level and the one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Squared coefficient errors of the nearest levels and of those below, times the
    /// [weights](super::distortion::ErrorWeights), less those of sending zero; mostly negative.
    /// [`Quantizer::overshoot_discount`] is taken off those of levels that are too large.
    pub changes: [[i32; 16]; 2],
    /// A lower bound of the error plus lambda times the rate of any choice, less the error of a
    /// block of zeros, in the unit of `changes`: at each position the least sum of the candidates
    /// and of zero, with each level at its least rate.
    pub least: i32,
}

/// The costs by which [`Candidates::least`] computes lower bounds.
#[derive(Clone, Copy, Debug)]
pub struct LeastRates<'a> {
    /// Least costs of level 1, of level 2, and of all levels above, by zigzag position.
    pub costs: &'a [[i32; 16]; 3],
    /// Squared pixel errors per bit, times 256. Its product with any of the costs is below 2^31.
    pub lambda: i32,
}

/// The kernels. A value of an implementation proves that the machine has its instructions.
pub trait BlockKernels: Copy {
    /// Returns the prediction by one mode (section 12.3).
    fn predict(self, edges: &SubblockEdges, mode: SubblockMode) -> BlockPixels;

    /// Returns the estimate of each subblock mode: the SATD of its residual (four times the
    /// orthonormal scale) plus `costs[mode] * lambda_satd / 2^15`, rounded down. Entries from the
    /// tenth on are 65535.
    fn subblock_estimates(
        self,
        source: &BlockPixels,
        edges: &SubblockEdges,
        costs: &[u16; 16],
        lambda_satd: u16,
    ) -> [u16; 16];

    /// Returns the index of the least entry, the first of equals, and the entry.
    fn argmin(self, estimates: &[u16; 16]) -> (usize, u16);

    /// Returns the sum of the SATDs of all 4x4 blocks in a block of `N` x `N` pixels, 16 or 8.
    fn block_satd<const N: usize>(self, source: &[u8], prediction: &[u8]) -> u32;

    /// Returns the forward DCT of `source - prediction`.
    fn transform(self, source: &BlockPixels, prediction: &BlockPixels) -> Block;

    /// Quantizes coefficients (raster order, of at most [`MAX_COEFFICIENT`]) from position `first`
    /// (0 or 1) on, with dead zones as [`Quantizer::quantize`]. Returns the block, its
    /// [weighted error](super::distortion::weighted_error) in squared pixels, and the positions of
    /// levels that are not zero, one bit each.
    fn quantize(
        self,
        coefficients: &Block,
        quantizer: &Quantizer,
        factor: u16,
        first: usize,
    ) -> (Quantized, u32, u32);

    /// Adds a row of pixels: to `moments[0]` the sum of each two neighbors, to `moments[1]` that of
    /// their squares.
    fn add_row(self, pixels: &[u8; 32], moments: &mut [[i32; 16]; 2]);

    /// Returns the nearest levels of coefficients as for [`BlockKernels::quantize`].
    fn nearest(self, coefficients: &Block, quantizer: &Quantizer, first: usize) -> Nearest;

    /// Returns the errors of the levels that the trellis may choose.
    fn candidates(
        self,
        nearest: &Nearest,
        quantizer: &Quantizer,
        rates: LeastRates<'_>,
    ) -> Candidates;

    /// Returns `prediction` plus the inverse DCT of `levels`. `dc` replaces the DC if given.
    fn reconstruct(
        self,
        prediction: &BlockPixels,
        levels: &Block,
        quantizer: &Quantizer,
        dc: Option<i16>,
    ) -> BlockPixels;
}

#[cfg(test)]
mod tests {
    use super::super::constants::Constants;
    use super::super::quantize::{MAX_FACTOR, QuantizerDeltas, Quantizers, USUAL_FACTOR};
    use super::*;
    use crate::cpu::{Simd, with_instructions};
    use crate::testing::Random;

    const CONSTANTS: Constants = Constants {
        overshoot_discount: 50,
        ..Constants::DEFAULT
    };

    /// Blocks of pixels: extremes first, then random ones.
    fn pixels() -> impl Iterator<Item = BlockPixels> {
        let mut random = Random::new(1);
        let impulses = (0..16).flat_map(|at| {
            [0, 255].map(|background| {
                std::array::from_fn(|i| {
                    if i == at {
                        255 - background
                    } else {
                        background
                    }
                })
            })
        });
        let alternating = [1, 2, 4, 8]
            .map(|period| std::array::from_fn(|i| if i / period % 2 == 0 { 0 } else { 255 }));
        let extremes = [[0; 16], [255; 16]]
            .into_iter()
            .chain(alternating)
            .chain(impulses)
            .collect::<Vec<_>>();
        let randoms = (0..3000).map(move |i| {
            // Full range, and small differences around a mean, as in real blocks.
            let (mean, range) = (random.below(256), [256, 64, 16, 4][i % 4]);
            std::array::from_fn(|_| (mean + random.below(range)).min(255) as u8)
        });
        extremes.into_iter().chain(randoms)
    }

    /// Calls `check` with each implementation that this machine supports.
    macro_rules! for_each_implementation {
        ($check:ident) => {
            for simd in Simd::supported() {
                with_instructions!(simd, scalar => $check(Scalar), vectors => $check(vectors));
            }
        };
    }

    fn check_prediction(kernels: impl BlockKernels) {
        for (block, other) in pixels().zip(pixels().skip(1)) {
            let edges: SubblockEdges = std::array::from_fn(|i| block[i]);
            for mode in SubblockMode::ALL {
                assert_eq!(
                    kernels.predict(&edges, mode),
                    Scalar.predict(&edges, mode),
                    "{mode:?} from {edges:?}"
                );
            }
            let costs = std::array::from_fn(|i| u16::from(other[15 - i]) * 16);
            for lambda in [0, 1, 1000, u16::MAX] {
                let ours = kernels.subblock_estimates(&other, &edges, &costs, lambda);
                let theirs = Scalar.subblock_estimates(&other, &edges, &costs, lambda);
                assert_eq!(
                    ours, theirs,
                    "estimates of {other:?} with {edges:?} at {lambda}"
                );
                assert_eq!(kernels.argmin(&ours), Scalar.argmin(&ours), "of {ours:?}");
            }
        }
        for all in [0, 77, u16::MAX] {
            assert_eq!(kernels.argmin(&[all; 16]), (0, all), "the first of equals");
        }
    }

    fn check_sums(kernels: impl BlockKernels) {
        let all: Vec<u8> = pixels().flatten().collect();
        for (source, prediction) in all
            .windows(256)
            .step_by(128)
            .zip(all.windows(256).skip(77).step_by(144))
        {
            let sums = (
                kernels.block_satd::<16>(source, prediction),
                Scalar.block_satd::<16>(source, prediction),
            );
            assert_eq!(sums.0, sums.1, "16x16: {source:?} {prediction:?}");
            let (source, prediction) = (&source[..64], &prediction[..64]);
            let sums = (
                kernels.block_satd::<8>(source, prediction),
                Scalar.block_satd::<8>(source, prediction),
            );
            assert_eq!(sums.0, sums.1, "8x8: {source:?} {prediction:?}");
            let pixels = source.first_chunk().expect("64 pixels");
            let [mut ours, mut theirs] = [[0, 5].map(|sum| [sum; 16]); 2];
            kernels.add_row(pixels, &mut ours);
            Scalar.add_row(pixels, &mut theirs);
            assert_eq!(ours, theirs, "{pixels:?}");
        }
    }

    fn check_transforms(kernels: impl BlockKernels) {
        for (i, (source, prediction)) in pixels().zip(pixels().skip(3)).enumerate() {
            let coefficients = Scalar.transform(&source, &prediction);
            assert_eq!(
                kernels.transform(&source, &prediction),
                coefficients,
                "{source:?} less {prediction:?}"
            );
            for index in [0, (i % 128) as u8, 127] {
                let Quantizers { luma, chroma, .. } =
                    Quantizers::new(index, QuantizerDeltas::at(index, &CONSTANTS), &CONSTANTS);
                for (quantizer, first) in [(luma, 0), (luma, 1), (chroma, 0)] {
                    let factor = [USUAL_FACTOR, 0, 511, MAX_FACTOR][i % 4];
                    let quantized = Scalar.quantize(&coefficients, &quantizer, factor, first);
                    let twin = kernels.quantize(&coefficients, &quantizer, factor, first);
                    assert_eq!(
                        twin, quantized,
                        "{coefficients:?} by {quantizer:?} from {first}"
                    );
                    let nearest = Scalar.nearest(&coefficients, &quantizer, first);
                    let twin = kernels.nearest(&coefficients, &quantizer, first);
                    assert_eq!(
                        twin, nearest,
                        "{coefficients:?} by {quantizer:?} from {first}"
                    );
                    let rates = LeastRates {
                        costs: &[[500; 16], [900; 16], [1100 + i as i32; 16]],
                        lambda: i32::from(quantizer.steps[1]).pow(2) * 42 / 16,
                    };
                    assert_eq!(
                        kernels.candidates(&nearest, &quantizer, rates),
                        Scalar.candidates(&nearest, &quantizer, rates),
                        "{nearest:?} by {quantizer:?}"
                    );
                    let dc = (first == 1).then_some(coefficients[0]);
                    let ours =
                        kernels.reconstruct(&prediction, &quantized.0.levels, &quantizer, dc);
                    let theirs =
                        Scalar.reconstruct(&prediction, &quantized.0.levels, &quantizer, dc);
                    assert_eq!(
                        ours, theirs,
                        "{:?} by {quantizer:?} onto {prediction:?}",
                        quantized.0.levels
                    );
                }
            }
        }
    }

    #[test]
    fn vector_kernels_predict_the_same() {
        for_each_implementation!(check_prediction);
    }

    #[test]
    fn vector_kernels_have_the_same_satd() {
        for_each_implementation!(check_sums);
    }

    #[test]
    fn vector_kernels_transform_the_same() {
        for_each_implementation!(check_transforms);
    }
}
