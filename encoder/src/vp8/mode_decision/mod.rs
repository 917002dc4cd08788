//! Mode decision: chooses the prediction modes and the levels of a macroblock by rate and
//! distortion. RFC 6386, sections 8, 11 and 12, defines the modes; the choice is the encoder's.
//!
//! Modes are ranked by an estimate: the SATD of the residual plus `lambda_satd` times the bits of
//! the mode itself. Only the best few are tried in full, that is transformed, quantized and scored
//! by squared error plus `lambda_rd` times the bits. The errors of trials are measured on
//! coefficients, which needs no inverse transform. Only the winner goes through the trellis and is
//! reconstructed.

mod chroma;
mod luma;
mod trials;

pub use self::trials::Trials;

use super::block::{BlockKernels, Quantized};
use super::constants::Constants;
use super::levels::NonzeroFlags;
use super::macroblock::{MacroblockCoding, Neighbors, Pixels};
use super::masking::Weights;
use super::predict::SubblockMode;
use super::quantize::{MAX_FACTOR, Quantizer, QuantizerIndex, Quantizers, USUAL_FACTOR};
use super::rate::{BitCost, CoefficientCosts, KindCosts};
use super::tables::SUBBLOCK_MODE_PROBABILITIES;
use super::transform::Block;
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SUBBLOCK_MODE_PATHS,
};
use super::trellis::{self, Rating};
use crate::Effort;
use crate::fixed_point::exp2;

/// Costs of the four Intra16 modes and, fifth, of Intra4 (its subblock modes not included).
const LUMA_MODE_COSTS: [BitCost; 5] = {
    let mut costs = [0; 5];
    let mut mode = 0;
    while mode < 5 {
        costs[mode] = LUMA_MODE_PATHS[mode].cost(&LUMA_MODE_PROBABILITIES);
        mode += 1;
    }
    costs
};

/// Costs of the four chroma modes.
const CHROMA_MODE_COSTS: [BitCost; 4] = {
    let mut costs = [0; 4];
    let mut mode = 0;
    while mode < 4 {
        costs[mode] = CHROMA_MODE_PATHS[mode].cost(&CHROMA_MODE_PROBABILITIES);
        mode += 1;
    }
    costs
};

/// Costs of the ten subblock modes, by the mode above and the mode to the left. Lanes 10 to 15 are
/// unused.
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

/// Least cost of the modes of a macroblock: DC for luma and chroma.
pub const LEAST_MODE_COST: BitCost = LUMA_MODE_COSTS[0] + CHROMA_MODE_COSTS[0];

/// Lagrange multipliers of a segment or a macroblock, which convert bits to distortion.
#[derive(Clone, Copy, Debug)]
pub struct Lambdas {
    /// Squared luma error per bit, times 256; at most [`MAX_LAMBDA_RD`].
    lambda_rd: u64,
    /// Squared chroma error per bit, times 256; at most [`MAX_LAMBDA_RD`].
    lambda_rd_chroma: u64,
    /// Squared error of Y2's coefficients per bit, in the unit in which the trellis measures luma's
    /// and times 256; at most [`MAX_LAMBDA_RD`].
    lambda_rd_y2: u64,
    /// SATD per bit, times 128.
    lambda_satd: u16,
    /// The step of luma's AC coefficients, the unit of SATD thresholds.
    ac_step: u16,
    /// Factor of what dead zones exceed half a step by, times 256, where there is no trellis: that
    /// of luma's `lambda_rd` by macroblock.
    dead_zone_factor: u32,
}

/// The largest `lambda_rd`: with it, products with the least costs of coefficients fit into 31
/// bits.
const MAX_LAMBDA_RD: u64 = (1 << 18) - 1;

impl Lambdas {
    /// Derives the multipliers of a segment from its index and its luma step: for fine uniform
    /// quantizers, the optimal multiplier grows with the square of the step (Sullivan and Wiegand,
    /// 1998). The factors were measured. The mode decision and the trellis do best with the same
    /// `lambda_rd`. With luma's own value, chroma would lose most of its coefficients, since its
    /// steps are luma's and its errors are smaller: colors would change in stairs between
    /// macroblocks.
    pub fn new(index: QuantizerIndex, quantizers: &Quantizers, constants: &Constants) -> Lambdas {
        let step = quantizers.luma.steps[1] as u64;
        let octaves = (i32::from(index) - 36) * constants.lambda_rd_by_index * 4;
        let factor = constants.lambda_rd as u64 * u64::from(exp2(octaves));
        let lambda_rd = ((step * step * factor) >> 20).min(MAX_LAMBDA_RD);
        Lambdas {
            lambda_rd,
            lambda_rd_chroma: (lambda_rd * constants.chroma_lambda as u64 / 256).min(MAX_LAMBDA_RD),
            lambda_rd_y2: (lambda_rd * constants.y2_lambda as u64 / 256).min(MAX_LAMBDA_RD),
            lambda_satd: (step as u32 * constants.lambda_satd as u32 / 2) as u16,
            ac_step: step as u16,
            dead_zone_factor: USUAL_FACTOR.into(),
        }
    }

    /// Returns the multipliers with all that convert bits to squared error times `factor`, and
    /// `lambda_satd` times its square root.
    pub fn with_feedback(&self, factor: f32) -> Lambdas {
        Lambdas {
            lambda_satd: (f32::from(self.lambda_satd) * factor.sqrt()) as u16,
            ..self.map_rd(|lambda| ((lambda as f32 * factor) as u64).max(1))
        }
    }

    /// Returns the multipliers of a macroblock: all that convert bits to squared error times
    /// `factor / 256`, and dead zones by this factor.
    #[inline]
    pub fn scaled(&self, factor: u32) -> Lambdas {
        Lambdas {
            dead_zone_factor: factor,
            ..self.map_rd(|lambda| lambda * u64::from(factor) / 256)
        }
    }

    /// Returns the multipliers with `change` of each `lambda_rd`, limited.
    #[inline]
    fn map_rd(&self, change: impl Fn(u64) -> u64) -> Lambdas {
        Lambdas {
            lambda_rd: change(self.lambda_rd).min(MAX_LAMBDA_RD),
            lambda_rd_chroma: change(self.lambda_rd_chroma).min(MAX_LAMBDA_RD),
            lambda_rd_y2: change(self.lambda_rd_y2).min(MAX_LAMBDA_RD),
            ..*self
        }
    }

    /// Returns the multipliers for chroma.
    #[inline]
    fn for_chroma(&self) -> Lambdas {
        Lambdas {
            lambda_rd: self.lambda_rd_chroma,
            dead_zone_factor: USUAL_FACTOR.into(),
            ..*self
        }
    }

    /// Estimates the score of a mode: SATD plus `lambda_satd` times the rate.
    #[inline]
    fn estimate(&self, satd: u32, rate: BitCost) -> u32 {
        satd + ((u32::from(self.lambda_satd) * rate) >> 15)
    }

    /// Returns squared pixel error plus `lambda_rd` times the rate, times 2^16.
    #[inline]
    pub fn score(&self, error: u32, rate: BitCost) -> u64 {
        (u64::from(error) << 16) + self.lambda_rd * u64::from(rate)
    }
}

/// How errors weigh in a macroblock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visibility {
    /// Factor of the macroblock's lambdas.
    pub lambda_factor: f32,
    /// Weights of the errors of its 4x4 luma blocks in 1/64, 32 to 128.
    pub block_weights: [u8; 16],
}

#[cfg(test)]
impl Visibility {
    /// All errors weigh the same.
    pub const EVEN: Visibility = Visibility {
        lambda_factor: 1.0,
        block_weights: [64; 16],
    };
}

/// How many modes and levels are tried. Savings are at equal SSIMULACRA2 on photographs.
#[derive(Clone, Copy, Debug)]
pub struct ModeSearch {
    /// Number of subblock modes tried in full, 1 to 10. Two instead of one save 3 %, a third 0.3 %,
    /// all ten 0.3 % more.
    pub intra4_trials: usize,
    /// A subblock mode is tried only if its estimate exceeds the best mode's by at most this many
    /// steps.
    pub intra4_slack: u64,
    /// Number of Intra16 modes and of chroma modes tried in full, 1 to 4. A second chroma mode
    /// saves 1 %, a second luma mode 0.1 %.
    pub block_trials: usize,
    /// A whole-block mode is tried only if its estimate exceeds the best mode's by at most
    /// `block_slack / 256` of it.
    pub block_slack: u32,
    /// Intra4 is not tried if the best Intra16 estimate is below this many steps.
    pub flat_steps: u32,
    /// Intra16 is not tried if its best estimate exceeds `intra16_cutoff / 256` times the estimate
    /// of Intra4. 288 saves a tenth of the time at no cost, 256 a further twentieth for 0.6 %. At
    /// low effort, trials are little better than estimates: 0, with which Intra4 always wins, costs
    /// only 0.3 % there.
    pub intra16_cutoff: u32,
    /// The blocks that go through the trellis.
    pub trellis: TrellisUse,
}

/// The blocks that go through the trellis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrellisUse {
    /// None, which costs 5 %. No decision compares scores then: none are computed, and the
    /// coefficient costs are not used. One mode of each kind is tried, and Intra4 wins where it is.
    Never,
    /// All Intra4 trials, and the winning Intra16 and chroma modes. Only the winning subblock modes
    /// instead of all Intra4 trials costs 0.4 % more.
    Intra4AndWinners,
    /// All trials, which saves 0.1 %.
    Always,
}

impl ModeSearch {
    /// Returns the limits of an effort.
    pub fn for_effort(effort: Effort) -> ModeSearch {
        match effort {
            Effort::Low => ModeSearch {
                intra4_trials: 1,
                intra4_slack: 0,
                block_trials: 1,
                block_slack: 0,
                flat_steps: 64,
                intra16_cutoff: 0,
                trellis: TrellisUse::Never,
            },
            Effort::Medium => ModeSearch {
                intra4_trials: 4,
                intra4_slack: 6,
                block_trials: 2,
                block_slack: 64,
                flat_steps: 48,
                intra16_cutoff: 288,
                trellis: TrellisUse::Intra4AndWinners,
            },
            Effort::Max => ModeSearch {
                intra4_trials: 10,
                intra4_slack: 30,
                block_trials: 4,
                block_slack: 512,
                flat_steps: 4,
                intra16_cutoff: 768,
                trellis: TrellisUse::Always,
            },
            Effort::High => ModeSearch {
                intra4_trials: 6,
                intra4_slack: 8,
                block_trials: 4,
                block_slack: 128,
                flat_steps: 16,
                intra16_cutoff: 384,
                trellis: TrellisUse::Intra4AndWinners,
            },
        }
    }

    /// Returns limits that give about the same token counts in less time.
    pub fn for_sampling(self) -> ModeSearch {
        ModeSearch {
            intra4_trials: 1,
            block_trials: 1,
            ..self
        }
    }
}

/// The input of the decision on a macroblock.
pub struct MacroblockContext<'a> {
    /// The pixels of the macroblock.
    pub source: &'a Pixels,
    /// The reconstructed pixels around it.
    pub neighbors: &'a Neighbors,
    /// The flags of the macroblocks above and to the left.
    pub nonzero: [NonzeroFlags; 2],
    /// Subblock modes above, from left to right, and to the left, from top to bottom.
    pub modes: [[SubblockMode; 4]; 2],
    /// Quantizers of the segment.
    pub quantizers: &'a Quantizers,
    /// Lambdas of the macroblock.
    pub lambdas: &'a Lambdas,
    /// Weights of the errors of its blocks.
    pub weights: &'a Weights,
    /// Costs of the coefficients.
    pub costs: &'a CoefficientCosts,
    /// Most bits, times 256, that the modes may cost; at least [`LEAST_MODE_COST`].
    pub mode_budget: BitCost,
    /// How many modes and levels are tried.
    pub search: ModeSearch,
}

impl MacroblockContext<'_> {
    /// Returns the context of the first coefficient of the Y2 block.
    #[inline(always)]
    fn y2_context(&self) -> usize {
        let [above, left] = self.nonzero;
        usize::from(above.y2) + usize::from(left.y2)
    }
}

/// Decides on a macroblock. Writes the decision to `coding` and the reconstruction to `pixels`, and
/// returns the bit cost of the modes.
#[inline(always)]
pub fn decide<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    trials: &mut Trials,
    coding: &mut MacroblockCoding,
    pixels: &mut Pixels,
) -> BitCost {
    let budget = mb.mode_budget - CHROMA_MODE_COSTS[0];
    let luma_cost = luma::decide(
        kernels,
        mb,
        budget,
        &mut trials.luma,
        coding,
        &mut pixels.luma,
    );
    chroma::decide(
        kernels,
        mb,
        mb.mode_budget - luma_cost,
        &mut trials.chroma,
        coding,
        &mut pixels.chroma,
    );
    luma_cost + CHROMA_MODE_COSTS[coding.chroma as usize]
}

/// The four whole-block modes, ranked by estimate.
struct ModeRanking {
    /// Estimate of each mode; `u32::MAX` if the mode is taken or costs too much.
    estimates: [u32; 4],
    /// Modes with a higher estimate are not tried.
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

    /// Takes the best remaining mode; `None` if its estimate is over the limit, which the first
    /// mode sets.
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
    /// Each coefficient is rounded by itself, with wider dead zones where errors show less and for
    /// the last one. The score is not computed.
    Unscored,
    /// Each coefficient is rounded by itself.
    Plain,
    /// The trellis chooses the levels of a block together.
    Trellis,
}

impl Quantization {
    /// Returns how Intra4 trials are quantized.
    fn for_intra4(search: ModeSearch) -> Quantization {
        match search.trellis {
            TrellisUse::Never => Quantization::Unscored,
            TrellisUse::Intra4AndWinners | TrellisUse::Always => Quantization::Trellis,
        }
    }

    /// Returns how Intra16 and chroma trials are quantized.
    fn for_trials(search: ModeSearch) -> Quantization {
        match search.trellis {
            TrellisUse::Intra4AndWinners => Quantization::Plain,
            TrellisUse::Never | TrellisUse::Always => Quantization::for_intra4(search),
        }
    }
}

/// The place of a block, and the parameters of its quantization.
struct BlockSite<'a> {
    quantizer: &'a Quantizer,
    costs: &'a KindCosts,
    /// Lambdas of the macroblock.
    lambdas: &'a Lambdas,
    /// Weight of the block's squared errors, times 256.
    weight: u16,
    /// The first zigzag position that is sent, 0 or 1.
    first: usize,
    /// Number of blocks above and to the left that have coefficients, 0 to 2.
    context: usize,
}

/// Quantizes a block. Returns it with its score, errors weighed; `None` if the score is seen early
/// to exceed `limit`.
#[inline(always)]
fn quantize<K: BlockKernels>(
    kernels: K,
    coefficients: &Block,
    site: &BlockSite<'_>,
    quantization: Quantization,
    limit: u64,
) -> Option<(Quantized, u64)> {
    let &BlockSite {
        quantizer,
        costs,
        lambdas,
        weight,
        first,
        context,
    } = site;
    let weight = u64::from(weight);
    match quantization {
        Quantization::Unscored => {
            let factor = lambdas.dead_zone_factor * 256 / weight as u32;
            let factor = factor.min(u32::from(MAX_FACTOR)) as u16;
            let (mut block, _, nonzero) = kernels.quantize(coefficients, quantizer, factor, first);
            let levels = &mut block.levels;
            block.eob = quantizer.leave_out_last(coefficients, levels, nonzero, first, factor);
            Some((block, 0))
        }
        Quantization::Plain => {
            let (block, error, _) = kernels.quantize(coefficients, quantizer, USUAL_FACTOR, first);
            let rate = costs.block(&block.levels, first, usize::from(block.eob), context);
            let error = u64::from(error) << 16;
            let score = error * weight / 256 + lambdas.lambda_rd * u64::from(rate);
            Some((block, score))
        }
        Quantization::Trellis => {
            let lambda = lambdas.lambda_rd * 256 / weight;
            let rating = Rating {
                costs,
                first,
                context,
                lambda: lambda.min(MAX_LAMBDA_RD) as u32,
            };
            let limit = limit.saturating_mul(256) / weight;
            let (block, score) =
                trellis::quantize(kernels, coefficients, quantizer, rating, limit)?;
            Some((block, score * weight / 256))
        }
    }
}
