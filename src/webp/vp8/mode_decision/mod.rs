//! Chooses how a macroblock is predicted and which levels it sends, by rate and distortion (the choice
//! among the modes of RFC 6386, sections 8, 11 and 12, is the encoder's).
//!
//! Modes are ranked by an estimate: the Hadamard sum of the residual that they leave, and what the mode
//! itself costs. Only the best few are tried in full: transformed, quantized and priced. Errors of trials
//! are measured on coefficients, which need no inverse transform; the winner alone is quantized by the
//! trellis and reconstructed.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod chroma;
mod luma;
mod scalar;

use super::block::{BlockKernels, Quantized};
use super::macroblock::{Coding, Pixels, Surroundings};
use super::predict::SubblockMode;
use super::quantize::{Quantizer, Quantizers};
use super::rate::{BitCost, CoefficientCosts, KindCosts};
use super::tables::SUBBLOCK_MODE_PROBABILITIES;
use super::token::NonZero;
use super::transform::Block;
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SUBBLOCK_MODE_PATHS,
};
use super::trellis;
use crate::webp::cpu::{Instructions, Simd};

/// Costs of the four whole-block luma modes and, fifth, of prediction by subblocks.
const LUMA_MODE_COSTS: [BitCost; 5] = {
    let mut costs = [0; 5];
    let mut mode = 0;
    while mode < 5 {
        costs[mode] = LUMA_MODE_PATHS[mode].cost(&LUMA_MODE_PROBABILITIES);
        mode += 1;
    }
    costs
};

/// Costs of the chroma modes.
const CHROMA_MODE_COSTS: [BitCost; 4] = {
    let mut costs = [0; 4];
    let mut mode = 0;
    while mode < 4 {
        costs[mode] = CHROMA_MODE_PATHS[mode].cost(&CHROMA_MODE_PROBABILITIES);
        mode += 1;
    }
    costs
};

/// Costs of the subblock modes, by the mode above and the mode to the left. Lanes past the tenth hold none.
static SUBBLOCK_MODE_COSTS: [[[u16; 16]; 10]; 10] = {
    let mut costs = [[[0; 16]; 10]; 10];
    let mut above = 0;
    while above < 10 {
        let mut left = 0;
        while left < 10 {
            let mut mode = 0;
            while mode < 10 {
                let cost =
                    SUBBLOCK_MODE_PATHS[mode].cost(&SUBBLOCK_MODE_PROBABILITIES[above][left]);
                costs[above][left][mode] = cost as u16;
                mode += 1;
            }
            left += 1;
        }
        above += 1;
    }
    costs
};

/// What the modes of a macroblock cost at the least: both DC.
pub const LEAST_MODE_COST: BitCost = LUMA_MODE_COSTS[0] + CHROMA_MODE_COSTS[0];

/// The exchange rates between bits and errors of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Lambdas {
    /// Squared pixel errors per bit, times 256.
    error: u64,
    /// Hadamard sum per bit, times 128.
    screen: u16,
    /// A subblock mode that ranks behind the first by a Hadamard sum of more than this is not worth a trial.
    hopeless: u16,
}

/// Squared pixel errors per bit in squared steps, times 4096. Modes and the trellis do best at the same rate.
const ERROR_FACTOR: u64 = 42;
/// Hadamard sum per bit in steps, times 256.
const SCREEN_FACTOR: u32 = 250;
/// In steps. Without this bound more is tried, and nothing saved.
const HOPELESS_STEPS: u64 = 4;

impl Lambdas {
    /// Rates by the luma step: for fine uniform quantizers, an error's worth in bits goes with the square of
    /// the step (Sullivan and Wiegand, 1998). The factors were found by measuring.
    pub fn new(quantizers: &Quantizers) -> Lambdas {
        let step = quantizers.luma.steps[1] as u64;
        Lambdas {
            error: step * step * ERROR_FACTOR / 16,
            screen: (step as u32 * SCREEN_FACTOR / 2) as u16,
            hopeless: (step * HOPELESS_STEPS) as u16,
        }
    }

    /// What a mode will score, in Hadamard sums.
    #[inline]
    fn estimate(&self, sum: u32, rate: BitCost) -> u32 {
        sum + ((u32::from(self.screen) * rate) >> 15)
    }

    /// Error and rate as one number: squared pixel errors times 2^16.
    #[inline]
    pub fn score(&self, error: u32, rate: BitCost) -> u64 {
        (u64::from(error) << 16) + self.error * u64::from(rate)
    }
}

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Subblock modes tried in full, 1 to 10.
    pub subblock_trials: usize,
    /// Whole-block luma and chroma modes tried in full, 1 to 4.
    pub block_trials: usize,
    /// Whether winners are quantized by the trellis.
    pub trellis: bool,
}

impl Effort {
    /// One mode of each kind, quantized as it comes.
    pub const LEAST: Effort = Effort {
        subblock_trials: 1,
        block_trials: 1,
        trellis: false,
    };
}

/// What the decision on a macroblock depends on.
pub struct Situation<'a> {
    /// Its pixels.
    pub source: &'a Pixels,
    /// The reconstructed pixels around it.
    pub around: &'a Surroundings,
    /// Which blocks above and to the left have coefficients.
    pub non_zero: [NonZero; 2],
    /// Subblock modes above and to the left.
    pub modes: [[SubblockMode; 4]; 2],
    /// The segment's quantizers.
    pub quantizers: &'a Quantizers,
    /// The segment's exchange rates.
    pub lambdas: &'a Lambdas,
    /// What coefficients cost.
    pub costs: &'a CoefficientCosts,
    /// What its modes may cost at the most; at least [`LEAST_MODE_COST`].
    pub mode_budget: BitCost,
    /// How much is tried.
    pub effort: Effort,
}

/// Decides on a macroblock, and reconstructs it, into `coding` and `pixels`. Gives the cost of its modes.
pub fn decide(
    simd: Simd,
    situation: &Situation<'_>,
    coding: &mut Coding,
    pixels: &mut Pixels,
) -> BitCost {
    match simd.0 {
        Instructions::Scalar => scalar::decide(situation, coding, pixels),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(avx2) => avx2::decide(avx2, situation, coding, pixels),
    }
}

/// [`decide`] with one kind of kernels: all of it is compiled into one region that may use their instructions, since calls
/// into such regions cost as much as a kernel.
#[inline(always)]
fn decide_with<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    coding: &mut Coding,
    pixels: &mut Pixels,
) -> BitCost {
    let budget = situation.mode_budget - CHROMA_MODE_COSTS[0];
    let luma_cost = luma::decide(kernels, situation, budget, coding, &mut pixels.luma);
    chroma::decide(
        kernels,
        situation,
        situation.mode_budget - luma_cost,
        coding,
        &mut pixels.chroma,
    );
    luma_cost + CHROMA_MODE_COSTS[coding.chroma as usize]
}

/// No coefficients.
const NOTHING: Quantized = Quantized {
    levels: [0; 16],
    count: 0,
};

/// The estimates of the four whole-block modes, which are taken out in order.
struct BlockRanking {
    /// `u32::MAX` is no mode.
    estimates: [u32; 4],
    /// Modes with more are not worth a trial.
    limit: u32,
}

impl BlockRanking {
    const NONE: BlockRanking = BlockRanking {
        estimates: [u32::MAX; 4],
        limit: u32::MAX - 1,
    };

    /// Takes out the best of those left, unless the first of all was better by a quarter: trying such modes saves nothing.
    #[inline(always)]
    fn take(&mut self) -> Option<usize> {
        let mut least = 0;
        for mode in 1..4 {
            if self.estimates[mode] < self.estimates[least] {
                least = mode;
            }
        }
        let estimate = std::mem::replace(&mut self.estimates[least], u32::MAX);
        if estimate > self.limit {
            return None;
        }
        self.limit = self.limit.min(estimate + estimate / 4);
        Some(least)
    }
}

/// How a block is quantized.
#[derive(Clone, Copy)]
enum Quantization {
    /// Each coefficient by itself.
    Plain,
    /// By the trellis.
    Trellis,
}

/// Where a block stands, and by what it is quantized.
struct BlockSite<'a> {
    quantizer: &'a Quantizer,
    costs: &'a KindCosts,
    lambdas: &'a Lambdas,
    /// The first position that is sent.
    first: usize,
    /// How many of the blocks above and to the left have coefficients.
    context: usize,
}

/// Quantizes a block, and scores it.
#[inline(always)]
fn quantize<K: BlockKernels>(
    kernels: K,
    coefficients: &Block,
    site: &BlockSite<'_>,
    quantization: Quantization,
) -> (Quantized, u64) {
    let &BlockSite {
        quantizer,
        costs,
        lambdas,
        first,
        context,
    } = site;
    match quantization {
        Quantization::Plain => {
            let (block, error) = kernels.quantize(coefficients, quantizer, first);
            let rate = costs.block(&block.levels, first, usize::from(block.count), context);
            (block, lambdas.score(error, rate))
        }
        Quantization::Trellis => trellis::quantize(
            kernels,
            coefficients,
            quantizer,
            costs,
            first,
            context,
            lambdas.error as i64,
        ),
    }
}
