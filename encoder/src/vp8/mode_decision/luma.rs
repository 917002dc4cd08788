//! Luma as one block or by subblocks: RFC 6386, sections 11.2, 11.3 and 12.

use super::{
    BlockRanking, BlockSite, LUMA_MODE_COSTS, NOTHING, Quantization, SUBBLOCK_MODE_COSTS,
    Situation, Trellis, quantize,
};
use crate::vp8::block::{BlockKernels, BlockPixels, Quantized};
use crate::vp8::macroblock::{Coding, LumaCanvas, LumaMode, block_at, store_block};
use crate::vp8::predict::{BlockMode, SubblockMode};
use crate::vp8::rate::BitCost;
use crate::vp8::token::BlockKind;
use crate::vp8::transform::{Block, COEFFICIENT_ERROR_SHIFT, forward_wht, inverse_wht};

/// Decides on luma as one block or by subblocks. Gives the cost of the modes.
#[inline(always)]
pub(super) fn decide<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    budget: BitCost,
    coding: &mut Coding,
    pixels: &mut [u8; 256],
) -> BitCost {
    let mut source = [[0; 16]; 16];
    for (index, block) in source.iter_mut().enumerate() {
        *block = block_at(&situation.source.luma, 16, index / 4 * 64 + index % 4 * 4);
    }
    let Situation {
        lambdas, search, ..
    } = situation;
    let mut candidates = rank_whole_luma(kernels, situation, budget);
    let estimate = candidates.ranking.least();
    let parts = if estimate < u32::from(lambdas.step) * search.flat_steps {
        None
    } else {
        try_subblocks(kernels, situation, budget, &source)
    };
    if let Some(parts) = &parts {
        let is_detailed =
            u64::from(estimate) * 256 > u64::from(parts.estimate) * u64::from(search.detailed);
        if is_detailed {
            return take_subblocks(parts, coding, pixels);
        }
    }
    let mut whole = try_whole_luma(kernels, situation, &source, &mut candidates);
    // Parts went through the trellis already. Where they won by more than it could save the whole, there is
    // no need to ask.
    let is_close = parts
        .as_ref()
        .is_none_or(|parts| parts.score > whole.score - whole.score / 8);
    if situation.search.trellis == Trellis::Subblocks && is_close {
        quantize_whole_luma(kernels, situation, &mut whole, Quantization::Trellis);
    }
    match parts {
        Some(parts) if parts.score < whole.score => take_subblocks(&parts, coding, pixels),
        _ => {
            coding.luma = LumaMode::Block(BlockMode::ALL[whole.mode]);
            coding.levels.y2 = whole.y2.levels;
            coding.levels.y2_count = whole.y2.count;
            for (index, block) in whole.blocks.iter().enumerate() {
                coding.levels.luma[index] = block.levels;
                coding.levels.luma_counts[index] = block.count;
                let at = index / 4 * 64 + index % 4 * 4;
                let prediction = block_at(&whole.prediction, 16, at);
                let dc = Some(whole.dcs[index]);
                let block =
                    kernels.reconstruct(&prediction, &block.levels, &situation.quantizers.luma, dc);
                store_block(&block, pixels, 16, at);
            }
            LUMA_MODE_COSTS[whole.mode]
        }
    }
}

/// The luma of a macroblock predicted as one block.
struct WholeLuma {
    mode: usize,
    score: u64,
    prediction: [u8; 256],
    coefficients: [Block; 16],
    blocks: [Quantized; 16],
    /// The block of the DCs, its score, and the DCs as decoded.
    y2: Quantized,
    y2_score: u64,
    dcs: Block,
}

/// The whole-block modes: what they predict, and how they rank.
struct WholeLumaCandidates {
    predictions: [[u8; 256]; 4],
    ranking: BlockRanking,
}

#[inline(always)]
fn rank_whole_luma<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    budget: BitCost,
) -> WholeLumaCandidates {
    let mut candidates = WholeLumaCandidates {
        predictions: [[0; 256]; 4],
        ranking: BlockRanking::new(situation.search),
    };
    for mode in BlockMode::ALL {
        let cost = LUMA_MODE_COSTS[mode as usize];
        if cost <= budget {
            let prediction = &mut candidates.predictions[mode as usize];
            situation.around.luma.predict(mode, prediction);
            let sum = kernels.block_sum::<16>(&situation.source.luma, prediction);
            candidates.ranking.estimates[mode as usize] = situation.lambdas.estimate(sum, cost);
        }
    }
    candidates
}

/// Tries the whole-block modes that rank first.
#[inline(always)]
fn try_whole_luma<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    source: &[BlockPixels; 16],
    candidates: &mut WholeLumaCandidates,
) -> WholeLuma {
    let WholeLumaCandidates {
        predictions,
        ranking,
    } = candidates;
    let first = ranking.take().expect("DC fits every budget");
    let mut best = try_whole_mode(kernels, situation, source, first, &predictions[first]);
    for _ in 1..situation.search.block_trials {
        let Some(mode) = ranking.take() else {
            break;
        };
        let trial = try_whole_mode(kernels, situation, source, mode, &predictions[mode]);
        if trial.score < best.score {
            best = trial;
        }
    }
    best
}

#[inline(always)]
fn try_whole_mode<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    source: &[BlockPixels; 16],
    mode: usize,
    prediction: &[u8; 256],
) -> WholeLuma {
    let quantizers = situation.quantizers;
    let mut whole = WholeLuma {
        mode,
        score: 0,
        prediction: *prediction,
        coefficients: [[0; 16]; 16],
        blocks: [NOTHING; 16],
        y2: NOTHING,
        y2_score: 0,
        dcs: [0; 16],
    };
    let mut dcs = [0; 16];
    for index in 0..16 {
        let prediction = block_at(prediction, 16, index / 4 * 64 + index % 4 * 4);
        whole.coefficients[index] = kernels.transform(&source[index], &prediction);
        dcs[index] = whole.coefficients[index][0];
    }
    let (levels, count) = quantizers.y2.quantize(&forward_wht(&dcs), 0);
    whole.y2 = Quantized { levels, count };
    whole.dcs = inverse_wht(&quantizers.y2.dequantize(&levels));
    if whole.dcs == [0; 16] {
        // Levels too small to reach a pixel. Decoders also differ in whether they count them as coefficients
        // for the loop filter.
        whole.y2 = NOTHING;
    }
    let mut error = 0;
    for (dc, restored) in dcs.iter().zip(&whole.dcs) {
        error += (i32::from(*dc) - i32::from(*restored)).pow(2) as u32;
    }
    error >>= COEFFICIENT_ERROR_SHIFT;
    let [above, left] = situation.non_zero;
    let context = usize::from(above.y2) + usize::from(left.y2);
    let y2_costs = situation.costs.of(BlockKind::Y2);
    let rate = y2_costs.block(&whole.y2.levels, 0, usize::from(whole.y2.count), context);
    whole.y2_score = situation.lambdas.score(error, rate);

    let quantization = Quantization::of_trials(situation.search);
    quantize_whole_luma(kernels, situation, &mut whole, quantization);
    whole
}

/// Quantizes the sixteen blocks, and scores the macroblock.
#[inline(always)]
fn quantize_whole_luma<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    whole: &mut WholeLuma,
    quantization: Quantization,
) {
    let [mut above, mut left] = situation.non_zero;
    whole.score = whole.y2_score + situation.lambdas.score(0, LUMA_MODE_COSTS[whole.mode]);
    for index in 0..16 {
        let (row, column) = (index / 4, index % 4);
        let site = BlockSite {
            quantizer: &situation.quantizers.luma,
            costs: situation.costs.of(BlockKind::LumaAfterY2),
            lambdas: situation.lambdas,
            first: 1,
            context: usize::from(above.luma[column]) + usize::from(left.luma[row]),
        };
        let (block, score) = quantize(kernels, &whole.coefficients[index], &site, quantization);
        whole.score += score;
        above.luma[column] = block.count > 1;
        left.luma[row] = block.count > 1;
        whole.blocks[index] = block;
    }
}

/// The luma of a macroblock predicted by subblocks.
struct Subblocks {
    score: u64,
    /// Of the modes that ranked first, together.
    estimate: u32,
    modes: [SubblockMode; 16],
    mode_cost: BitCost,
    blocks: [Quantized; 16],
    canvas: LumaCanvas,
}

fn take_subblocks(parts: &Subblocks, coding: &mut Coding, pixels: &mut [u8; 256]) -> BitCost {
    coding.luma = LumaMode::Subblocks(parts.modes);
    for (index, block) in parts.blocks.iter().enumerate() {
        coding.levels.luma[index] = block.levels;
        coding.levels.luma_counts[index] = block.count;
    }
    *pixels = parts.canvas.luma();
    parts.mode_cost
}

/// Predicts by subblocks, if the modes cost at most `budget`.
#[inline(always)]
fn try_subblocks<K: BlockKernels>(
    kernels: K,
    situation: &Situation<'_>,
    budget: BitCost,
    source: &[BlockPixels; 16],
) -> Option<Subblocks> {
    let Situation {
        quantizers,
        lambdas,
        search,
        ..
    } = situation;
    let quantization = match search.trellis {
        Trellis::Never => Quantization::Plain,
        Trellis::Subblocks | Trellis::Always => Quantization::Trellis,
    };
    let slack =
        (u64::from(lambdas.step) * search.subblock_slack).min(u64::from(u16::MAX / 2)) as u16;
    let [mut above, mut left] = situation.non_zero;
    let [mut modes_above, mut modes_left] = situation.modes;
    let mut parts = Subblocks {
        score: lambdas.score(0, LUMA_MODE_COSTS[4]),
        estimate: 0,
        modes: [SubblockMode::Dc; 16],
        mode_cost: LUMA_MODE_COSTS[4],
        blocks: [NOTHING; 16],
        canvas: LumaCanvas::new(situation.around),
    };

    for (index, source) in source.iter().enumerate() {
        let (row, column) = (index / 4, index % 4);
        let site = BlockSite {
            quantizer: &quantizers.luma,
            costs: situation.costs.of(BlockKind::Luma),
            lambdas,
            first: 0,
            context: usize::from(above.luma[column]) + usize::from(left.luma[row]),
        };
        let mode_costs =
            &SUBBLOCK_MODE_COSTS[modes_above[column] as usize][modes_left[row] as usize];
        let edges = parts.canvas.edges(index);

        let mut estimates = kernels.subblock_estimates(source, &edges, mode_costs, lambdas.screen);
        parts.estimate += u32::from(kernels.least(&estimates).1);
        let mut limit = u16::MAX - 1;
        let mut best = u64::MAX;
        let (mut mode, mut block) = (SubblockMode::Dc, NOTHING);
        let mut prediction = [0; 16];
        for _ in 0..search.subblock_trials {
            let (next, estimate) = kernels.least(&estimates);
            if estimate > limit {
                break;
            }
            estimates[next] = u16::MAX;
            limit = limit.min(estimate + slack);
            let next_prediction = kernels.predict(&edges, SubblockMode::ALL[next]);
            let next_coefficients = kernels.transform(source, &next_prediction);
            let (trial, score) = quantize(kernels, &next_coefficients, &site, quantization);
            let score = score + lambdas.score(0, BitCost::from(mode_costs[next]));
            if score < best {
                best = score;
                (mode, block) = (SubblockMode::ALL[next], trial);
                prediction = next_prediction;
            }
        }
        let mode_cost = BitCost::from(mode_costs[mode as usize]);
        parts.score += best;
        parts.mode_cost += mode_cost;
        if parts.mode_cost > budget {
            return None;
        }
        parts.canvas.store(
            index,
            &kernels.reconstruct(&prediction, &block.levels, &quantizers.luma, None),
        );
        parts.modes[index] = mode;
        (modes_above[column], modes_left[row]) = (mode, mode);
        (above.luma[column], left.luma[row]) = (block.count > 0, block.count > 0);
        parts.blocks[index] = block;
    }
    Some(parts)
}
