//! The decision on luma, Intra16 or Intra4: RFC 6386, sections 11.2, 11.3 and 12.

use super::trials::{Intra4Trial, Intra16Trial, LumaTrials, NO_COEFFICIENTS};
use super::{
    BlockSite, LUMA_MODE_COSTS, MacroblockContext, ModeRanking, Quantization, SUBBLOCK_MODE_COSTS,
    TrellisUse, quantize,
};
use crate::vp8::block::{BlockKernels, BlockPixels, MAX_COEFFICIENT, Quantized};
use crate::vp8::macroblock::{LumaMode, MacroblockCoding, block_at, store_block};
use crate::vp8::predict::{BlockMode, SubblockMode};
use crate::vp8::quantize::USUAL_FACTOR;
use crate::vp8::rate::BitCost;
use crate::vp8::token::BlockKind;
use crate::vp8::transform::{Block, COEFFICIENT_ERROR_SHIFT, forward_wht, inverse_wht};
use crate::vp8::trellis::{self, Rating};

/// Decides between Intra16 and Intra4, and reconstructs luma into `pixels`. Returns the bit cost of
/// the modes.
#[inline(always)]
pub(super) fn decide<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
    trials: &mut LumaTrials,
    coding: &mut MacroblockCoding,
    pixels: &mut [u8; 256],
) -> BitCost {
    let LumaTrials {
        source,
        predictions,
        intra16,
        intra4,
    } = trials;
    for (index, block) in source.iter_mut().enumerate() {
        *block = block_at(&mb.source.luma, 16, index / 4 * 64 + index % 4 * 4);
    }
    let MacroblockContext {
        lambdas, search, ..
    } = mb;
    let mut ranking = rank_intra16(kernels, mb, budget, predictions);
    let estimate = ranking.min();
    let is_flat = estimate < u32::from(lambdas.ac_step) * search.flat_steps;
    // The score that Intra16 must not exceed.
    let mut limit = u64::MAX;
    if !is_flat && try_intra4(kernels, mb, budget, source, intra4) {
        let is_intra4_clear = u64::from(estimate) * 256
            > u64::from(intra4.estimate) * u64::from(search.intra16_cutoff);
        if is_intra4_clear {
            return take_intra4(intra4, coding, pixels);
        }
        limit = intra4.score;
    }
    let best = try_intra16(
        kernels,
        mb,
        source,
        &mut ranking,
        predictions,
        intra16,
        limit,
    );
    let Some(best) = best else {
        return take_intra4(intra4, coding, pixels);
    };
    let intra16 = &mut intra16[best];
    let is_better = match search.trellis {
        // Intra4 trials went through the trellis already. Where Intra4 is better by more than the
        // trellis can save Intra16, the trellis is skipped.
        TrellisUse::Intra4AndWinners if limit > intra16.score - intra16.score / 8 => {
            quantize_intra16(kernels, mb, intra16, Quantization::Trellis, limit)
        }
        _ => intra16.score <= limit,
    };
    if !is_better {
        return take_intra4(intra4, coding, pixels);
    }
    coding.luma = LumaMode::Intra16(BlockMode::ALL[intra16.mode]);
    coding.levels.y2 = intra16.y2.levels;
    coding.levels.y2_eob = intra16.y2.eob;
    for (index, block) in intra16.blocks.iter().enumerate() {
        coding.levels.luma[index] = block.levels;
        coding.levels.luma_eobs[index] = block.eob;
        let at = index / 4 * 64 + index % 4 * 4;
        let prediction = block_at(&predictions[intra16.mode], 16, at);
        let dc = Some(intra16.dcs[index]);
        let block = kernels.reconstruct(&prediction, &block.levels, &mb.quantizers.luma, dc);
        store_block(&block, pixels, 16, at);
    }
    LUMA_MODE_COSTS[intra16.mode]
}

/// Predicts by the Intra16 modes, and ranks them.
#[inline(always)]
fn rank_intra16<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
    predictions: &mut [[u8; 256]; 4],
) -> ModeRanking {
    let mut ranking = ModeRanking::new(mb.search);
    for mode in BlockMode::ALL {
        let cost = LUMA_MODE_COSTS[mode as usize];
        if cost <= budget {
            let prediction = &mut predictions[mode as usize];
            mb.neighbors.luma.predict(mode, prediction);
            let satd = kernels.block_satd::<16>(&mb.source.luma, prediction);
            ranking.estimates[mode as usize] = mb.lambdas.estimate(satd, cost);
        }
    }
    ranking
}

/// Tries the Intra16 modes that rank first. Returns the index in `trials` of the best one; `None`
/// if all are seen to be worse than Intra4, whose score is `intra4_score`.
#[inline(always)]
fn try_intra16<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    source: &[BlockPixels; 16],
    ranking: &mut ModeRanking,
    predictions: &[[u8; 256]; 4],
    trials: &mut [Intra16Trial; 2],
    intra4_score: u64,
) -> Option<usize> {
    let mut limit = match mb.search.trellis {
        // The highest score with which the winner goes through the trellis.
        TrellisUse::Intra4AndWinners => intra4_score.saturating_add(intra4_score / 7),
        TrellisUse::Never | TrellisUse::Always => intra4_score,
    };
    let mut best = None;
    for _ in 0..mb.search.block_trials {
        let Some(mode) = ranking.take() else {
            break;
        };
        let slot = best.map_or(0, |best| 1 - best);
        let trial = &mut trials[slot];
        if try_intra16_mode(kernels, mb, source, mode, &predictions[mode], trial, limit) {
            best = Some(slot);
            limit = trial.score - 1;
        }
    }
    best
}

/// Tries a mode. Returns whether its score is at most `limit`; if not, the trial is unfinished.
#[inline(always)]
fn try_intra16_mode<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    source: &[BlockPixels; 16],
    mode: usize,
    prediction: &[u8; 256],
    intra16: &mut Intra16Trial,
    limit: u64,
) -> bool {
    let quantizers = mb.quantizers;
    intra16.mode = mode;
    let mut dcs = [0; 16];
    for index in 0..16 {
        let prediction = block_at(prediction, 16, index / 4 * 64 + index % 4 * 4);
        intra16.coefficients[index] = kernels.transform(&source[index], &prediction);
        dcs[index] = intra16.coefficients[index][0];
    }
    intra16.y2 = quantize_y2(kernels, mb, &forward_wht(&dcs));
    intra16.dcs = inverse_wht(&quantizers.y2.dequantize(&intra16.y2.levels));
    if intra16.dcs == [0; 16] {
        // The levels are too small to reach a pixel. Decoders also differ in whether such a block
        // counts as coefficients for the loop filter.
        intra16.y2 = NO_COEFFICIENTS;
    }
    intra16.y2_score = match mb.search.trellis {
        TrellisUse::Never => 0,
        _ => score_y2(mb, &dcs, intra16),
    };

    let quantization = Quantization::for_trials(mb.search);
    quantize_intra16(kernels, mb, intra16, quantization, limit)
}

/// The most energy of a block of Y2 that goes through the trellis. Weighted by at most 127, it and
/// the changes of it fit into 31 bits; blocks of luma have a quarter of it.
const MAX_ENERGY: u64 = 1 << 24;

/// Quantizes the Y2 block: through the trellis if its coefficients are no larger than luma's, as
/// those of all but the strongest edges are. `benches/README.md` has what that saves.
#[inline(always)]
fn quantize_y2<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    coefficients: &Block,
) -> Quantized {
    let magnitudes = coefficients.map(i16::unsigned_abs);
    let energy: u64 = magnitudes.iter().map(|&it| u64::from(it).pow(2)).sum();
    let is_small = energy <= MAX_ENERGY && magnitudes.iter().all(|it| *it <= MAX_COEFFICIENT);
    if mb.search.trellis == TrellisUse::Never || !is_small {
        let (levels, eob) = mb.quantizers.y2.quantize(coefficients, USUAL_FACTOR, 0);
        return Quantized { levels, eob };
    }
    let rating = Rating {
        costs: mb.costs.of(BlockKind::Y2),
        first: 0,
        context: mb.y2_context(),
        lambda: mb.lambdas.lambda_rd_y2 as u32,
    };
    let trial = trellis::quantize(kernels, coefficients, &mb.quantizers.y2, rating, u64::MAX);
    trial.expect("there is no limit").0
}

/// Returns the score of the Y2 block of `dcs`.
#[inline(always)]
fn score_y2(mb: &MacroblockContext<'_>, dcs: &Block, intra16: &Intra16Trial) -> u64 {
    let mut error = 0;
    for (dc, restored) in dcs.iter().zip(&intra16.dcs) {
        error += (i32::from(*dc) - i32::from(*restored)).pow(2) as u32;
    }
    error >>= COEFFICIENT_ERROR_SHIFT;
    let costs = mb.costs.of(BlockKind::Y2);
    let eob = usize::from(intra16.y2.eob);
    let rate = costs.block(&intra16.y2.levels, 0, eob, mb.y2_context());
    mb.lambdas.score(error, rate)
}

/// Quantizes the sixteen luma blocks, and sets the score of the mode. Returns whether it is at most
/// `limit`; stops as soon as it is not.
#[inline(always)]
fn quantize_intra16<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    intra16: &mut Intra16Trial,
    quantization: Quantization,
    limit: u64,
) -> bool {
    let [mut above, mut left] = mb.nonzero;
    intra16.score = intra16.y2_score + mb.lambdas.score(0, LUMA_MODE_COSTS[intra16.mode]);
    for index in 0..16 {
        let (row, column) = (index / 4, index % 4);
        let site = BlockSite {
            quantizer: &mb.quantizers.luma,
            costs: mb.costs.of(BlockKind::LumaAfterY2),
            lambdas: mb.lambdas,
            weight: mb.weights[index],
            first: 1,
            context: usize::from(above.luma[column]) + usize::from(left.luma[row]),
        };
        let Some(rest) = limit.checked_sub(intra16.score) else {
            return false;
        };
        let coefficients = &intra16.coefficients[index];
        let Some((block, score)) = quantize(kernels, coefficients, &site, quantization, rest)
        else {
            return false;
        };
        intra16.score += score;
        above.luma[column] = block.eob > 1;
        left.luma[row] = block.eob > 1;
        intra16.blocks[index] = block;
    }
    intra16.score <= limit
}

fn take_intra4(
    intra4: &Intra4Trial,
    coding: &mut MacroblockCoding,
    pixels: &mut [u8; 256],
) -> BitCost {
    coding.luma = LumaMode::Intra4(intra4.modes);
    for (index, block) in intra4.blocks.iter().enumerate() {
        coding.levels.luma[index] = block.levels;
        coding.levels.luma_eobs[index] = block.eob;
    }
    intra4.workspace.store_luma(pixels);
    intra4.mode_cost
}

/// Predicts by Intra4. Returns whether the modes cost at most `budget`; if not, the trial is
/// unfinished.
#[inline(always)]
fn try_intra4<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
    source: &[BlockPixels; 16],
    intra4: &mut Intra4Trial,
) -> bool {
    let MacroblockContext {
        quantizers,
        lambdas,
        search,
        ..
    } = mb;
    let quantization = Quantization::for_intra4(*search);
    let slack =
        (u64::from(lambdas.ac_step) * search.intra4_slack).min(u64::from(u16::MAX / 2)) as u16;
    let [mut above, mut left] = mb.nonzero;
    let [mut modes_above, mut modes_left] = mb.modes;
    intra4.score = lambdas.score(0, LUMA_MODE_COSTS[4]);
    intra4.estimate = 0;
    intra4.mode_cost = LUMA_MODE_COSTS[4];
    intra4.workspace.set_edges(mb.neighbors);

    for (index, source) in source.iter().enumerate() {
        let (row, column) = (index / 4, index % 4);
        let site = BlockSite {
            quantizer: &quantizers.luma,
            costs: mb.costs.of(BlockKind::Luma),
            lambdas,
            weight: mb.weights[index],
            first: 0,
            context: usize::from(above.luma[column]) + usize::from(left.luma[row]),
        };
        let mode_costs =
            &SUBBLOCK_MODE_COSTS[modes_above[column] as usize][modes_left[row] as usize];
        let edges = intra4.workspace.edges(index);

        let mut estimates =
            kernels.subblock_estimates(source, &edges, mode_costs, lambdas.lambda_satd);
        intra4.estimate += u32::from(kernels.argmin(&estimates).1);
        let mut limit = u16::MAX - 1;
        let mut best = u64::MAX;
        let (mut mode, mut block) = (SubblockMode::Dc, NO_COEFFICIENTS);
        let mut prediction = [0; 16];
        for _ in 0..search.intra4_trials {
            let (next, estimate) = kernels.argmin(&estimates);
            if estimate > limit {
                break;
            }
            estimates[next] = u16::MAX;
            limit = limit.min(estimate + slack);
            let mode_score = lambdas.score(0, BitCost::from(mode_costs[next]));
            let Some(rest) = (best - 1).checked_sub(mode_score) else {
                continue;
            };
            let next_prediction = kernels.predict(&edges, SubblockMode::ALL[next]);
            let next_coefficients = kernels.transform(source, &next_prediction);
            let trial = quantize(kernels, &next_coefficients, &site, quantization, rest);
            if let Some((trial, score)) = trial
                && score <= rest
            {
                best = score + mode_score;
                (mode, block) = (SubblockMode::ALL[next], trial);
                prediction = next_prediction;
            }
        }
        let mode_cost = BitCost::from(mode_costs[mode as usize]);
        intra4.score += best;
        intra4.mode_cost += mode_cost;
        if intra4.mode_cost > budget {
            return false;
        }
        intra4.workspace.store(
            index,
            &kernels.reconstruct(&prediction, &block.levels, &quantizers.luma, None),
        );
        intra4.modes[index] = mode;
        (modes_above[column], modes_left[row]) = (mode, mode);
        (above.luma[column], left.luma[row]) = (block.eob > 0, block.eob > 0);
        intra4.blocks[index] = block;
    }
    true
}
