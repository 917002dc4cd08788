//! Chooses how a macroblock is predicted and which levels it sends, by rate and distortion (the choice
//! among the modes of RFC 6386, sections 8, 11 and 12, is the encoder's).
//!
//! Modes are ranked by an estimate: the Hadamard sum of the residual that they leave, and what the mode
//! itself costs. Only the best few are tried in full: transformed, quantized and priced. Errors of trials
//! are measured on coefficients, which need no inverse transform; the winner alone is quantized by the
//! trellis and reconstructed.

use super::distortion::{hadamard_sum, hadamard_sums};
use super::macroblock::{Coding, LumaCanvas, LumaMode, Pixels, Surroundings, block_at};
use super::predict::{BlockMode, Edges, SubblockMode, SubblockPredictor};
use super::quantize::{Quantizer, Quantizers};
use super::rate::{BitCost, CoefficientCosts, KindCosts};
use super::tables::SUBBLOCK_MODE_PROBABILITIES;
use super::token::{BlockKind, Levels, NonZero};
use super::transform::{
    Block, COEFFICIENT_ERROR_SHIFT, forward_dct, forward_wht, inverse_dct, inverse_wht,
};
use super::tree::{
    CHROMA_MODE_PATHS, CHROMA_MODE_PROBABILITIES, LUMA_MODE_PATHS, LUMA_MODE_PROBABILITIES,
    SUBBLOCK_MODE_PATHS,
};
use super::trellis;

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

/// Costs of the subblock modes, by the mode above and the mode to the left.
static SUBBLOCK_MODE_COSTS: [[[u16; 10]; 10]; 10] = {
    let mut costs = [[[0; 10]; 10]; 10];
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
    /// Squared pixel errors per bit, times 256, between modes.
    mode: u64,
    /// As `mode`, within the trellis.
    trellis: i64,
    /// Hadamard sum per bit, times 256.
    screen: u32,
}

/// Squared pixel errors per bit in squared steps, times 256.
const MODE_FACTOR: u64 = 5;
/// As [`MODE_FACTOR`]; lower, since the trellis otherwise flattens texture.
const TRELLIS_FACTOR: u64 = 3;
/// Hadamard sum per bit in steps, times 256.
const SCREEN_FACTOR: u32 = 200;

impl Lambdas {
    /// Rates by the luma step: for fine uniform quantizers, an error's worth in bits goes with the square of
    /// the step (Sullivan and Wiegand, 1998). The factors were found by measuring.
    pub fn new(quantizers: &Quantizers) -> Lambdas {
        let step = quantizers.luma.steps[1] as u64;
        Lambdas {
            mode: step * step * MODE_FACTOR,
            trellis: (step * step * TRELLIS_FACTOR) as i64,
            screen: step as u32 * SCREEN_FACTOR,
        }
    }

    /// Error and rate as one number: squared pixel errors times 2^16.
    #[inline]
    fn score(&self, error: u32, rate: BitCost) -> u64 {
        (u64::from(error) << 16) + self.mode * u64::from(rate)
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

/// Decides on a macroblock, and reconstructs it.
pub fn decide(situation: &Situation<'_>) -> (Coding, Pixels, BitCost) {
    let mut levels = Levels::ZERO;
    let mut reconstruction = Pixels::ZERO;
    let luma_budget = situation.mode_budget - CHROMA_MODE_COSTS[0];

    let whole = decide_whole_luma(
        situation,
        luma_budget,
        &mut levels,
        &mut reconstruction.luma,
    );
    let mut luma = LumaMode::Block(whole.mode);
    let mut luma_cost = LUMA_MODE_COSTS[whole.mode as usize];
    if let Some(parts) = decide_subblocks(situation, luma_budget, whole.score) {
        levels.y2 = [0; 16];
        levels.y2_count = 0;
        levels.luma = parts.levels;
        levels.luma_counts = parts.counts;
        reconstruction.luma = parts.pixels;
        luma = LumaMode::Subblocks(parts.modes);
        luma_cost = parts.mode_cost;
    }

    let chroma_budget = situation.mode_budget - luma_cost;
    let chroma = decide_chroma(
        situation,
        chroma_budget,
        &mut levels,
        &mut reconstruction.chroma,
    );
    let mode_cost = luma_cost + CHROMA_MODE_COSTS[chroma as usize];
    (
        Coding {
            luma,
            chroma,
            levels,
        },
        reconstruction,
        mode_cost,
    )
}

/// A block after quantization.
struct Trial {
    levels: Block,
    count: u8,
    rate: BitCost,
    /// Squared pixel errors.
    error: u32,
}

/// Quantizes plainly, and prices the result.
#[inline]
fn try_block(
    coefficients: &Block,
    quantizer: &Quantizer,
    costs: &KindCosts,
    first: usize,
    context: usize,
) -> Trial {
    let (levels, count) = quantizer.quantize(coefficients, first);
    price_block(
        coefficients,
        quantizer,
        costs,
        first,
        context,
        levels,
        count,
    )
}

#[inline]
fn price_block(
    coefficients: &Block,
    quantizer: &Quantizer,
    costs: &KindCosts,
    first: usize,
    context: usize,
    levels: Block,
    count: u8,
) -> Trial {
    let rate = costs.block(&levels, first, usize::from(count), context);
    let error = coefficient_error(coefficients, &quantizer.dequantize(&levels), first);
    Trial {
        levels,
        count,
        rate,
        error,
    }
}

/// Squared pixel errors between two sets of coefficients, from raster position `first`.
#[inline]
fn coefficient_error(a: &Block, b: &Block, first: usize) -> u32 {
    let sum: u32 = a[first..]
        .iter()
        .zip(&b[first..])
        .map(|(&a, &b)| {
            let difference = i32::from(a) - i32::from(b);
            (difference * difference) as u32
        })
        .sum();
    sum >> COEFFICIENT_ERROR_SHIFT
}

#[inline]
fn residual(source: &[u8; 16], prediction: &[u8; 16]) -> Block {
    std::array::from_fn(|i| i16::from(source[i]) - i16::from(prediction[i]))
}

/// The prediction with the inverse transform of `coefficients` added.
#[inline]
fn reconstruct(prediction: &[u8; 16], coefficients: &Block) -> [u8; 16] {
    let residuals = inverse_dct(coefficients);
    std::array::from_fn(|i| (i16::from(prediction[i]) + residuals[i]).clamp(0, 255) as u8)
}

struct WholeLuma {
    mode: BlockMode,
    score: u64,
}

/// Ranks the modes by `estimates` and gives the best `trials` of those that are allowed.
fn ranked<const N: usize>(
    estimates: [Option<u32>; N],
    trials: usize,
) -> impl Iterator<Item = usize> {
    let mut order: [usize; N] = std::array::from_fn(|i| i);
    order.sort_by_key(|&i| estimates[i].unwrap_or(u32::MAX));
    order
        .into_iter()
        .take(trials)
        .filter(move |&i| estimates[i].is_some())
}

/// Estimates of the four modes of a luma or chroma block: Hadamard sums of the residuals, and the modes' costs.
fn estimate_blocks<const N: usize>(
    source: &[u8],
    edges: &Edges<N>,
    prediction: &mut [u8],
    mode: BlockMode,
) -> u32 {
    edges.predict(mode, prediction);
    let mut sum = 0;
    for row in (0..N).step_by(4) {
        for column in (0..N).step_by(4) {
            let at = row * N + column;
            let residuals = residual(&block_at(source, N, at), &block_at(prediction, N, at));
            sum += hadamard_sum(&residuals);
        }
    }
    sum
}

fn decide_whole_luma(
    situation: &Situation<'_>,
    budget: BitCost,
    levels: &mut Levels,
    pixels: &mut [u8; 256],
) -> WholeLuma {
    let edges = &situation.around.luma;
    let source = &situation.source.luma;
    let mut predictions = [[0; 256]; 4];
    let estimates = BlockMode::ALL.map(|mode| {
        let cost = LUMA_MODE_COSTS[mode as usize];
        let sum = estimate_blocks(source, edges, &mut predictions[mode as usize], mode);
        (cost <= budget).then_some(sum + ((situation.lambdas.screen * cost) >> 16))
    });

    let mut best: Option<(u64, usize, WholeTrial)> = None;
    for mode in ranked(estimates, situation.effort.block_trials) {
        let trial = try_whole_luma(situation, &predictions[mode]);
        let score = situation
            .lambdas
            .score(trial.error, trial.rate + LUMA_MODE_COSTS[mode]);
        if best.as_ref().is_none_or(|(best, ..)| score < *best) {
            best = Some((score, mode, trial));
        }
    }
    let (mut score, mode, mut trial) = best.expect("DC fits every budget");

    if situation.effort.trellis {
        refine_whole_luma(situation, &mut trial);
        score = situation
            .lambdas
            .score(trial.error, trial.rate + LUMA_MODE_COSTS[mode]);
    }
    let prediction = &predictions[mode];
    for index in 0..16 {
        let at = index / 4 * 64 + index % 4 * 4;
        let mut coefficients = situation.quantizers.luma.dequantize(&trial.levels[index]);
        coefficients[0] = trial.dcs[index];
        let block = reconstruct(&block_at(prediction, 16, at), &coefficients);
        for (row, block) in block.chunks_exact(4).enumerate() {
            pixels[at + row * 16..][..4].copy_from_slice(block);
        }
    }
    levels.luma = trial.levels;
    levels.luma_counts = trial.counts;
    levels.y2 = trial.y2_levels;
    levels.y2_count = trial.y2_count;
    WholeLuma {
        mode: BlockMode::ALL[mode],
        score,
    }
}

/// The luma of a macroblock predicted as one block.
struct WholeTrial {
    coefficients: [Block; 16],
    levels: [Block; 16],
    counts: [u8; 16],
    y2_levels: Block,
    y2_count: u8,
    y2_rate: BitCost,
    /// Reconstructed DCs, in place of the first coefficients.
    dcs: Block,
    dc_error: u32,
    rate: BitCost,
    error: u32,
}

fn try_whole_luma(situation: &Situation<'_>, prediction: &[u8; 256]) -> WholeTrial {
    let quantizers = situation.quantizers;
    let coefficients: [Block; 16] = std::array::from_fn(|index| {
        let at = index / 4 * 64 + index % 4 * 4;
        forward_dct(&residual(
            &block_at(&situation.source.luma, 16, at),
            &block_at(prediction, 16, at),
        ))
    });

    let dcs: Block = std::array::from_fn(|index| coefficients[index][0]);
    let (mut y2_levels, mut y2_count) = quantizers.y2.quantize(&forward_wht(&dcs), 0);
    let mut restored = inverse_wht(&quantizers.y2.dequantize(&y2_levels));
    if restored == [0; 16] {
        // Levels too small to reach a pixel. Decoders also differ in whether they count them as coefficients
        // for the loop filter.
        (y2_levels, y2_count) = ([0; 16], 0);
        restored = [0; 16];
    }
    let [above, left] = situation.non_zero;
    let y2_context = usize::from(above.y2) + usize::from(left.y2);
    let y2_rate =
        situation
            .costs
            .of(BlockKind::Y2)
            .block(&y2_levels, 0, usize::from(y2_count), y2_context);
    let dc_error = coefficient_error(&dcs, &restored, 0);

    let mut trial = WholeTrial {
        coefficients,
        levels: [[0; 16]; 16],
        counts: [0; 16],
        y2_levels,
        y2_count,
        y2_rate,
        dcs: restored,
        dc_error,
        rate: 0,
        error: 0,
    };
    quantize_whole_luma(situation, &mut trial, |coefficients, costs, context| {
        try_block(coefficients, &quantizers.luma, costs, 1, context)
    });
    trial
}

/// Quantizes the sixteen blocks again, by the trellis.
fn refine_whole_luma(situation: &Situation<'_>, trial: &mut WholeTrial) {
    let quantizer = &situation.quantizers.luma;
    quantize_whole_luma(situation, trial, |coefficients, costs, context| {
        let (levels, count) = trellis::quantize(
            coefficients,
            quantizer,
            costs,
            1,
            context,
            situation.lambdas.trellis,
        );
        price_block(coefficients, quantizer, costs, 1, context, levels, count)
    });
}

fn quantize_whole_luma(
    situation: &Situation<'_>,
    trial: &mut WholeTrial,
    quantize: impl Fn(&Block, &KindCosts, usize) -> Trial,
) {
    let costs = situation.costs.of(BlockKind::LumaAfterY2);
    let [mut above, mut left] = situation.non_zero;
    trial.rate = trial.y2_rate;
    trial.error = trial.dc_error;
    for index in 0..16 {
        let (row, column) = (index / 4, index % 4);
        let context = usize::from(above.luma[column]) + usize::from(left.luma[row]);
        let block = quantize(&trial.coefficients[index], costs, context);
        trial.rate += block.rate;
        trial.error += block.error;
        trial.levels[index] = block.levels;
        trial.counts[index] = block.count;
        above.luma[column] = block.count > 1;
        left.luma[row] = block.count > 1;
    }
}

struct Subblocks {
    modes: [SubblockMode; 16],
    levels: [Block; 16],
    counts: [u8; 16],
    pixels: [u8; 256],
    mode_cost: BitCost,
}

/// Predicts by subblocks, if that scores under `bound` and its modes cost at most `budget`.
fn decide_subblocks(situation: &Situation<'_>, budget: BitCost, bound: u64) -> Option<Subblocks> {
    let Situation {
        source,
        quantizers,
        lambdas,
        effort,
        ..
    } = situation;
    let costs = situation.costs.of(BlockKind::Luma);
    let [mut above, mut left] = situation.non_zero;
    let [mut modes_above, mut modes_left] = situation.modes;
    let mut canvas = LumaCanvas::new(situation.around);
    let mut parts = Subblocks {
        modes: [SubblockMode::Dc; 16],
        levels: [[0; 16]; 16],
        counts: [0; 16],
        pixels: [0; 256],
        mode_cost: LUMA_MODE_COSTS[4],
    };
    let mut score = lambdas.score(0, parts.mode_cost);

    for index in 0..16 {
        let (row, column) = (index / 4, index % 4);
        let context = usize::from(above.luma[column]) + usize::from(left.luma[row]);
        let mode_costs =
            &SUBBLOCK_MODE_COSTS[modes_above[column] as usize][modes_left[row] as usize];
        let block = block_at(&source.luma, 16, row * 64 + column * 4);
        let predictor = SubblockPredictor::new(canvas.edges(index));

        let sums = hadamard_sums(&block, &predictor.predict_all());
        let estimates: [u32; 10] = std::array::from_fn(|mode| {
            u32::from(sums[mode]) + ((lambdas.screen * u32::from(mode_costs[mode])) >> 16)
        });
        let mut best: Option<(u64, usize, [u8; 16], Block, Trial)> = None;
        for mode in ranked(estimates.map(Some), effort.subblock_trials) {
            let prediction = predictor.predict(SubblockMode::ALL[mode]);
            let coefficients = forward_dct(&residual(&block, &prediction));
            let trial = try_block(&coefficients, &quantizers.luma, costs, 0, context);
            let trial_score =
                lambdas.score(trial.error, trial.rate + BitCost::from(mode_costs[mode]));
            if best.as_ref().is_none_or(|(best, ..)| trial_score < *best) {
                best = Some((trial_score, mode, prediction, coefficients, trial));
            }
        }
        let (mut block_score, mode, prediction, coefficients, mut trial) =
            best.expect("at least one mode is tried");
        if effort.trellis {
            let (levels, count) = trellis::quantize(
                &coefficients,
                &quantizers.luma,
                costs,
                0,
                context,
                lambdas.trellis,
            );
            trial = price_block(
                &coefficients,
                &quantizers.luma,
                costs,
                0,
                context,
                levels,
                count,
            );
            block_score = lambdas.score(trial.error, trial.rate + BitCost::from(mode_costs[mode]));
        }

        score += block_score;
        parts.mode_cost += BitCost::from(mode_costs[mode]);
        if score >= bound || parts.mode_cost > budget {
            return None;
        }
        canvas.store(
            index,
            &reconstruct(&prediction, &quantizers.luma.dequantize(&trial.levels)),
        );
        let mode = SubblockMode::ALL[mode];
        parts.modes[index] = mode;
        parts.levels[index] = trial.levels;
        parts.counts[index] = trial.count;
        (modes_above[column], modes_left[row]) = (mode, mode);
        (above.luma[column], left.luma[row]) = (trial.count > 0, trial.count > 0);
    }
    parts.pixels = canvas.luma();
    Some(parts)
}

fn decide_chroma(
    situation: &Situation<'_>,
    budget: BitCost,
    levels: &mut Levels,
    pixels: &mut [[u8; 64]; 2],
) -> BlockMode {
    let edges = &situation.around.chroma;
    let source = &situation.source.chroma;
    let mut predictions = [[[0; 64]; 2]; 4];
    let estimates = BlockMode::ALL.map(|mode| {
        let cost = CHROMA_MODE_COSTS[mode as usize];
        let prediction = &mut predictions[mode as usize];
        let sums: u32 = (0..2)
            .map(|plane| {
                estimate_blocks(&source[plane], &edges[plane], &mut prediction[plane], mode)
            })
            .sum();
        (cost <= budget).then_some(sums + ((situation.lambdas.screen * cost) >> 16))
    });

    let mut best: Option<(u64, usize, ChromaTrial)> = None;
    for mode in ranked(estimates, situation.effort.block_trials) {
        let trial = try_chroma(situation, &predictions[mode]);
        let score = situation
            .lambdas
            .score(trial.error, trial.rate + CHROMA_MODE_COSTS[mode]);
        if best.as_ref().is_none_or(|(best, ..)| score < *best) {
            best = Some((score, mode, trial));
        }
    }
    let (_, mode, mut trial) = best.expect("DC fits every budget");
    let quantizer = &situation.quantizers.chroma;
    if situation.effort.trellis {
        quantize_chroma(situation, &mut trial, |coefficients, costs, context| {
            let (levels, count) = trellis::quantize(
                coefficients,
                quantizer,
                costs,
                0,
                context,
                situation.lambdas.trellis,
            );
            price_block(coefficients, quantizer, costs, 0, context, levels, count)
        });
    }
    for plane in 0..2 {
        for index in 0..4 {
            let at = index / 2 * 32 + index % 2 * 4;
            let coefficients = quantizer.dequantize(&trial.levels[plane][index]);
            let block = reconstruct(&block_at(&predictions[mode][plane], 8, at), &coefficients);
            for (row, block) in block.chunks_exact(4).enumerate() {
                pixels[plane][at + row * 8..][..4].copy_from_slice(block);
            }
        }
    }
    levels.chroma = trial.levels;
    levels.chroma_counts = trial.counts;
    BlockMode::ALL[mode]
}

/// The chroma of a macroblock.
struct ChromaTrial {
    coefficients: [[Block; 4]; 2],
    levels: [[Block; 4]; 2],
    counts: [[u8; 4]; 2],
    rate: BitCost,
    error: u32,
}

fn try_chroma(situation: &Situation<'_>, predictions: &[[u8; 64]; 2]) -> ChromaTrial {
    let coefficients = std::array::from_fn(|plane| {
        std::array::from_fn(|index| {
            let at = index / 2 * 32 + index % 2 * 4;
            let source = block_at(&situation.source.chroma[plane], 8, at);
            forward_dct(&residual(&source, &block_at(&predictions[plane], 8, at)))
        })
    });
    let mut trial = ChromaTrial {
        coefficients,
        levels: [[[0; 16]; 4]; 2],
        counts: [[0; 4]; 2],
        rate: 0,
        error: 0,
    };
    let quantizer = &situation.quantizers.chroma;
    quantize_chroma(situation, &mut trial, |coefficients, costs, context| {
        try_block(coefficients, quantizer, costs, 0, context)
    });
    trial
}

fn quantize_chroma(
    situation: &Situation<'_>,
    trial: &mut ChromaTrial,
    quantize: impl Fn(&Block, &KindCosts, usize) -> Trial,
) {
    let costs = situation.costs.of(BlockKind::Chroma);
    let [mut above, mut left] = situation.non_zero;
    (trial.rate, trial.error) = (0, 0);
    for plane in 0..2 {
        for index in 0..4 {
            let (row, column) = (index / 2, index % 2);
            let context =
                usize::from(above.chroma[plane][column]) + usize::from(left.chroma[plane][row]);
            let block = quantize(&trial.coefficients[plane][index], costs, context);
            trial.rate += block.rate;
            trial.error += block.error;
            trial.levels[plane][index] = block.levels;
            trial.counts[plane][index] = block.count;
            above.chroma[plane][column] = block.count > 0;
            left.chroma[plane][row] = block.count > 0;
        }
    }
}
