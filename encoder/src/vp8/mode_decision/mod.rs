//! Chooses how a macroblock is predicted and which levels it sends, by rate and distortion (the choice
//! among the modes of RFC 6386, sections 8, 11 and 12, is the encoder's).
//!
//! Modes are ranked by an estimate: the Hadamard sum of the residual that they leave, and what the mode
//! itself costs. Only the best few are tried in full: transformed, quantized and priced. Errors of trials
//! are measured on coefficients, which need no inverse transform; the winner alone is quantized by the
//! trellis and reconstructed.

mod chroma;
mod luma;

use super::block::{BlockKernels, Quantized};
use super::levels::NonzeroFlags;
use super::macroblock::{MacroblockCoding, Neighbors, Pixels};
use super::predict::SubblockMode;
use super::quantize::{Quantizer, Quantizers};
use super::rate::{BitCost, CoefficientCosts, KindCosts};
use super::segment::{Activity, BUSY, CALM};
use super::tables::SUBBLOCK_MODE_PROBABILITIES;
use super::transform::Block;
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SUBBLOCK_MODE_PATHS,
};
use super::trellis;
use crate::Effort;

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
    lambda_rd: u64,
    /// The same for chroma.
    lambda_rd_chroma: u64,
    /// Hadamard sum per bit, times 128.
    lambda_satd: u16,
    /// A step as a Hadamard sum.
    ac_step: u16,
}

/// Squared pixel errors per bit in squared steps, times 4096. Modes and the trellis do best at the same rate.
const LAMBDA_RD_FACTOR: u64 = 42;
/// Hadamard sum per bit in steps, times 256.
const LAMBDA_SATD_FACTOR: u32 = 250;

impl Lambdas {
    /// Rates by the luma step: for fine uniform quantizers, an error's worth in bits goes with the square of
    /// the step (Sullivan and Wiegand, 1998). The factors were found by measuring.
    pub fn new(quantizers: &Quantizers, activity: Activity) -> Lambdas {
        let step = quantizers.luma.steps[1] as u64;
        let lambda_rd = step * step * LAMBDA_RD_FACTOR / 16;
        Lambdas {
            lambda_rd,
            lambda_rd_chroma: lambda_rd * chroma_lambda_factor(activity) / 256,
            lambda_satd: (step as u32 * LAMBDA_SATD_FACTOR / 2) as u16,
            ac_step: step as u16,
        }
    }

    /// The same with chroma's rates.
    #[inline]
    fn for_chroma(&self) -> Lambdas {
        Lambdas {
            lambda_rd: self.lambda_rd_chroma,
            ..*self
        }
    }

    /// What a mode will score, in Hadamard sums.
    #[inline]
    fn estimate(&self, satd: u32, rate: BitCost) -> u32 {
        satd + ((u32::from(self.lambda_satd) * rate) >> 15)
    }

    /// Error and rate as one number: squared pixel errors times 2^16.
    #[inline]
    pub fn score(&self, error: u32, rate: BitCost) -> u64 {
        (u64::from(error) << 16) + self.lambda_rd * u64::from(rate)
    }
}

/// Squared chroma errors per bit in those of luma, times 256.
///
/// At luma's rate, chroma loses most of its coefficients, since its steps are luma's and its errors are smaller: macroblocks
/// become flat, and colors change in stairs between them. Where luma is busy, its rate is high, and hides little of that. 256
/// for all costs 0.8 % at equal SSIMULACRA2 and leaves 6 points more of chroma's steps at macroblock edges.
fn chroma_lambda_factor(activity: Activity) -> u64 {
    match activity {
        ..CALM => 256,
        CALM..BUSY => 160,
        BUSY.. => 64,
    }
}

/// How much is tried. Savings are at equal SSIMULACRA2 on photographs.
#[derive(Clone, Copy, Debug)]
pub struct ModeSearch {
    /// Subblock modes tried in full, 1 to 10. Two instead of one save 3 %, a third 0.3 %, all ten 0.3 % more.
    pub intra4_trials: usize,
    /// How far behind the first a subblock mode may rank for a trial: its Hadamard sum in steps.
    pub intra4_slack: u64,
    /// Whole-block luma and chroma modes tried in full, 1 to 4. A second chroma mode saves 1 %, one of luma 0.1 %.
    pub block_trials: usize,
    /// The same for these, of 256 of the first one's sum.
    pub block_slack: u32,
    /// Luma that ranks below that as one block, its Hadamard sum in steps, is not tried by subblocks.
    pub flat_steps: u32,
    /// Luma whose estimate as one block is more than that, of 256 of its estimate by subblocks, is not tried as one.
    /// 288 saves a tenth of the time for nothing, 256 a further twentieth for 0.6 %. With little effort, trials are not worth more
    /// than estimates: 0, which is any, costs but 0.3 % there.
    pub intra16_cutoff: u32,
    /// Where levels are chosen by the trellis.
    pub trellis: TrellisUse,
}

/// Where levels are chosen by the trellis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrellisUse {
    /// Nowhere, which costs 5 %.
    Never,
    /// In each trial of a subblock mode, and in those of whole blocks that won. Subblocks that won alone cost 0.4 % more.
    Intra4AndWinners,
    /// In each trial: 0.1 % for a quarter of the time.
    Always,
}

impl ModeSearch {
    /// What belongs to an effort.
    pub fn for_effort(effort: Effort) -> ModeSearch {
        match effort {
            Effort::Low => ModeSearch {
                intra4_trials: 1,
                intra4_slack: 0,
                block_trials: 1,
                block_slack: 0,
                flat_steps: 120,
                intra16_cutoff: 0,
                trellis: TrellisUse::Never,
            },
            Effort::Medium => ModeSearch {
                intra4_trials: 3,
                intra4_slack: 4,
                block_trials: 2,
                block_slack: 64,
                flat_steps: 48,
                intra16_cutoff: 288,
                trellis: TrellisUse::Intra4AndWinners,
            },
            Effort::High => ModeSearch {
                intra4_trials: 6,
                intra4_slack: 8,
                block_trials: 4,
                block_slack: 128,
                flat_steps: 16,
                intra16_cutoff: 384,
                trellis: TrellisUse::Always,
            },
        }
    }

    /// What gives about the same tokens in less time.
    pub fn for_sampling(self) -> ModeSearch {
        ModeSearch {
            intra4_trials: 1,
            block_trials: 1,
            ..self
        }
    }
}

/// What the decision on a macroblock depends on.
pub struct MacroblockContext<'a> {
    /// Its pixels.
    pub source: &'a Pixels,
    /// The reconstructed pixels around it.
    pub neighbors: &'a Neighbors,
    /// Which blocks above and to the left have coefficients.
    pub nonzero: [NonzeroFlags; 2],
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
    pub search: ModeSearch,
}

/// Decides on a macroblock, and reconstructs it, into `coding` and `pixels`. Gives the cost of its modes.
#[inline(always)]
pub fn decide<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    coding: &mut MacroblockCoding,
    pixels: &mut Pixels,
) -> BitCost {
    let budget = mb.mode_budget - CHROMA_MODE_COSTS[0];
    let luma_cost = luma::decide(kernels, mb, budget, coding, &mut pixels.luma);
    chroma::decide(
        kernels,
        mb,
        mb.mode_budget - luma_cost,
        coding,
        &mut pixels.chroma,
    );
    luma_cost + CHROMA_MODE_COSTS[coding.chroma as usize]
}

/// No coefficients.
const NO_COEFFICIENTS: Quantized = Quantized {
    levels: [0; 16],
    eob: 0,
};

/// The estimates of the four whole-block modes, which are taken out in order.
struct ModeRanking {
    /// `u32::MAX` is no mode.
    estimates: [u32; 4],
    /// Modes with more are not worth a trial.
    limit: u32,
    slack: u32,
}

impl ModeRanking {
    fn new(search: ModeSearch) -> ModeRanking {
        ModeRanking {
            estimates: [u32::MAX; 4],
            limit: u32::MAX - 1,
            slack: search.block_slack,
        }
    }

    fn min(&self) -> u32 {
        self.estimates.into_iter().fold(u32::MAX, u32::min)
    }

    /// Takes out the best of those left, unless the first of all was better by more than the slack.
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
        self.limit = self.limit.min(estimate + estimate / 256 * self.slack);
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

impl Quantization {
    /// How trials of whole blocks are quantized.
    fn for_trials(search: ModeSearch) -> Quantization {
        match search.trellis {
            TrellisUse::Never | TrellisUse::Intra4AndWinners => Quantization::Plain,
            TrellisUse::Always => Quantization::Trellis,
        }
    }
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
            let rate = costs.block(&block.levels, first, usize::from(block.eob), context);
            (block, lambdas.score(error, rate))
        }
        Quantization::Trellis => trellis::quantize(
            kernels,
            coefficients,
            quantizer,
            costs,
            first,
            context,
            lambdas.lambda_rd as i64,
        ),
    }
}
