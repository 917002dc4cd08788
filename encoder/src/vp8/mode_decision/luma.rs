//! The decision on luma, Intra16 or Intra4: RFC 6386, sections 11.2, 11.3 and 12.

use super::{
    BlockSite, LUMA_MODE_COSTS, MacroblockContext, ModeRanking, NO_COEFFICIENTS, Quantization,
    SUBBLOCK_MODE_COSTS, TrellisUse, quantize,
};
use crate::vp8::block::{BlockKernels, BlockPixels, Quantized};
use crate::vp8::macroblock::{LumaMode, LumaWorkspace, MacroblockCoding, block_at, store_block};
use crate::vp8::predict::{BlockMode, SubblockMode};
use crate::vp8::rate::BitCost;
use crate::vp8::token::BlockKind;
use crate::vp8::transform::{Block, COEFFICIENT_ERROR_SHIFT, forward_wht, inverse_wht};

/// Decides between Intra16 and Intra4, and reconstructs luma into `pixels`. Returns the bit cost of
/// the modes.
#[inline(always)]
pub(super) fn decide<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
    coding: &mut MacroblockCoding,
    pixels: &mut [u8; 256],
) -> BitCost {
    let mut source = [[0; 16]; 16];
    for (index, block) in source.iter_mut().enumerate() {
        *block = block_at(&mb.source.luma, 16, index / 4 * 64 + index % 4 * 4);
    }
    let MacroblockContext {
        lambdas, search, ..
    } = mb;
    let mut candidates = rank_intra16(kernels, mb, budget);
    let estimate = candidates.ranking.min();
    let intra4 = if estimate < u32::from(lambdas.ac_step) * search.flat_steps {
        None
    } else {
        try_intra4(kernels, mb, budget, &source)
    };
    if let Some(intra4) = &intra4 {
        let is_intra4_clear = u64::from(estimate) * 256
            > u64::from(intra4.estimate) * u64::from(search.intra16_cutoff);
        if is_intra4_clear {
            return take_intra4(intra4, coding, pixels);
        }
    }
    let mut intra16 = try_intra16(kernels, mb, &source, &mut candidates);
    // Intra4 trials went through the trellis already. Where Intra4 is better by more than the
    // trellis can save Intra16, the trellis is skipped.
    let is_close = intra4
        .as_ref()
        .is_none_or(|intra4| intra4.score > intra16.score - intra16.score / 8);
    if mb.search.trellis == TrellisUse::Intra4AndWinners && is_close {
        quantize_intra16(kernels, mb, &mut intra16, Quantization::Trellis);
    }
    match intra4 {
        Some(intra4) if intra4.score < intra16.score => take_intra4(&intra4, coding, pixels),
        _ => {
            coding.luma = LumaMode::Intra16(BlockMode::ALL[intra16.mode]);
            coding.levels.y2 = intra16.y2.levels;
            coding.levels.y2_eob = intra16.y2.eob;
            for (index, block) in intra16.blocks.iter().enumerate() {
                coding.levels.luma[index] = block.levels;
                coding.levels.luma_eobs[index] = block.eob;
                let at = index / 4 * 64 + index % 4 * 4;
                let prediction = block_at(&intra16.prediction, 16, at);
                let dc = Some(intra16.dcs[index]);
                let block =
                    kernels.reconstruct(&prediction, &block.levels, &mb.quantizers.luma, dc);
                store_block(&block, pixels, 16, at);
            }
            LUMA_MODE_COSTS[intra16.mode]
        }
    }
}

/// Luma of a macroblock, predicted by one Intra16 mode.
struct Intra16Trial {
    mode: usize,
    score: u64,
    prediction: [u8; 256],
    coefficients: [Block; 16],
    blocks: [Quantized; 16],
    /// The Y2 block, its score, and the DCs as a decoder restores them.
    y2: Quantized,
    y2_score: u64,
    dcs: Block,
}

/// The predictions of the four Intra16 modes, and their ranking by estimate.
struct Intra16Candidates {
    predictions: [[u8; 256]; 4],
    ranking: ModeRanking,
}

#[inline(always)]
fn rank_intra16<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
) -> Intra16Candidates {
    let mut candidates = Intra16Candidates {
        predictions: [[0; 256]; 4],
        ranking: ModeRanking::new(mb.search),
    };
    for mode in BlockMode::ALL {
        let cost = LUMA_MODE_COSTS[mode as usize];
        if cost <= budget {
            let prediction = &mut candidates.predictions[mode as usize];
            mb.neighbors.luma.predict(mode, prediction);
            let satd = kernels.block_satd::<16>(&mb.source.luma, prediction);
            candidates.ranking.estimates[mode as usize] = mb.lambdas.estimate(satd, cost);
        }
    }
    candidates
}

/// Tries the Intra16 modes that rank first, and returns the best.
#[inline(always)]
fn try_intra16<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    source: &[BlockPixels; 16],
    candidates: &mut Intra16Candidates,
) -> Intra16Trial {
    let Intra16Candidates {
        predictions,
        ranking,
    } = candidates;
    let first = ranking.take().expect("DC fits every budget");
    let mut best = try_intra16_mode(kernels, mb, source, first, &predictions[first]);
    for _ in 1..mb.search.block_trials {
        let Some(mode) = ranking.take() else {
            break;
        };
        let trial = try_intra16_mode(kernels, mb, source, mode, &predictions[mode]);
        if trial.score < best.score {
            best = trial;
        }
    }
    best
}

#[inline(always)]
fn try_intra16_mode<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    source: &[BlockPixels; 16],
    mode: usize,
    prediction: &[u8; 256],
) -> Intra16Trial {
    let quantizers = mb.quantizers;
    let mut intra16 = Intra16Trial {
        mode,
        score: 0,
        prediction: *prediction,
        coefficients: [[0; 16]; 16],
        blocks: [NO_COEFFICIENTS; 16],
        y2: NO_COEFFICIENTS,
        y2_score: 0,
        dcs: [0; 16],
    };
    let mut dcs = [0; 16];
    for index in 0..16 {
        let prediction = block_at(prediction, 16, index / 4 * 64 + index % 4 * 4);
        intra16.coefficients[index] = kernels.transform(&source[index], &prediction);
        dcs[index] = intra16.coefficients[index][0];
    }
    let (levels, eob) = quantizers.y2.quantize(&forward_wht(&dcs), 0);
    intra16.y2 = Quantized { levels, eob };
    intra16.dcs = inverse_wht(&quantizers.y2.dequantize(&levels));
    if intra16.dcs == [0; 16] {
        // The levels are too small to reach a pixel. Decoders also differ in whether such a block
        // counts as coefficients for the loop filter.
        intra16.y2 = NO_COEFFICIENTS;
    }
    let mut error = 0;
    for (dc, restored) in dcs.iter().zip(&intra16.dcs) {
        error += (i32::from(*dc) - i32::from(*restored)).pow(2) as u32;
    }
    error >>= COEFFICIENT_ERROR_SHIFT;
    let [above, left] = mb.nonzero;
    let context = usize::from(above.y2) + usize::from(left.y2);
    let y2_costs = mb.costs.of(BlockKind::Y2);
    let rate = y2_costs.block(&intra16.y2.levels, 0, usize::from(intra16.y2.eob), context);
    intra16.y2_score = mb.lambdas.score(error, rate);

    let quantization = Quantization::for_trials(mb.search);
    quantize_intra16(kernels, mb, &mut intra16, quantization);
    intra16
}

/// Quantizes the sixteen luma blocks, and sets the score of the mode.
#[inline(always)]
fn quantize_intra16<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    intra16: &mut Intra16Trial,
    quantization: Quantization,
) {
    let [mut above, mut left] = mb.nonzero;
    intra16.score = intra16.y2_score + mb.lambdas.score(0, LUMA_MODE_COSTS[intra16.mode]);
    for index in 0..16 {
        let (row, column) = (index / 4, index % 4);
        let site = BlockSite {
            quantizer: &mb.quantizers.luma,
            costs: mb.costs.of(BlockKind::LumaAfterY2),
            lambdas: mb.lambdas,
            first: 1,
            context: usize::from(above.luma[column]) + usize::from(left.luma[row]),
        };
        let (block, score) = quantize(kernels, &intra16.coefficients[index], &site, quantization);
        intra16.score += score;
        above.luma[column] = block.eob > 1;
        left.luma[row] = block.eob > 1;
        intra16.blocks[index] = block;
    }
}

/// Luma of a macroblock, predicted by Intra4.
struct Intra4Trial {
    score: u64,
    /// Sum of the least estimates of the subblocks.
    estimate: u32,
    modes: [SubblockMode; 16],
    mode_cost: BitCost,
    blocks: [Quantized; 16],
    workspace: LumaWorkspace,
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
    *pixels = intra4.workspace.luma();
    intra4.mode_cost
}

/// Predicts by Intra4. Returns `None` if the modes cost more than `budget`.
#[inline(always)]
fn try_intra4<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
    source: &[BlockPixels; 16],
) -> Option<Intra4Trial> {
    let MacroblockContext {
        quantizers,
        lambdas,
        search,
        ..
    } = mb;
    let quantization = match search.trellis {
        TrellisUse::Never => Quantization::Plain,
        TrellisUse::Intra4AndWinners | TrellisUse::Always => Quantization::Trellis,
    };
    let slack =
        (u64::from(lambdas.ac_step) * search.intra4_slack).min(u64::from(u16::MAX / 2)) as u16;
    let [mut above, mut left] = mb.nonzero;
    let [mut modes_above, mut modes_left] = mb.modes;
    let mut intra4 = Intra4Trial {
        score: lambdas.score(0, LUMA_MODE_COSTS[4]),
        estimate: 0,
        modes: [SubblockMode::Dc; 16],
        mode_cost: LUMA_MODE_COSTS[4],
        blocks: [NO_COEFFICIENTS; 16],
        workspace: LumaWorkspace::new(mb.neighbors),
    };

    for (index, source) in source.iter().enumerate() {
        let (row, column) = (index / 4, index % 4);
        let site = BlockSite {
            quantizer: &quantizers.luma,
            costs: mb.costs.of(BlockKind::Luma),
            lambdas,
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
        intra4.score += best;
        intra4.mode_cost += mode_cost;
        if intra4.mode_cost > budget {
            return None;
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
    Some(intra4)
}
