//! The decision on chroma: RFC 6386, sections 11.2 and 12.2.

use super::trials::{ChromaTrial, ChromaTrials};
use super::{
    BlockSite, CHROMA_MODE_COSTS, MacroblockContext, ModeRanking, Quantization, TrellisUse,
    quantize,
};
use crate::vp8::block::BlockKernels;
use crate::vp8::macroblock::{MacroblockCoding, block_at, store_block};
use crate::vp8::predict::BlockMode;
use crate::vp8::rate::BitCost;
use crate::vp8::token::BlockKind;

/// Decides on chroma, and reconstructs it into `pixels`.
///
/// Error diffusion, which carries the errors of DCs on to the blocks to the right and below, was
/// tried. Carrying half of each costs 2.5 % at equal SSIMULACRA2 and removes 9 points of 85 of the
/// steps at macroblock edges. Carrying a quarter, in calm segments alone and with today's loop
/// filter, costs 0.9 % and removes none: it only moves the steps.
#[inline(always)]
pub(super) fn decide<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    budget: BitCost,
    trials: &mut ChromaTrials,
    coding: &mut MacroblockCoding,
    pixels: &mut [[u8; 64]; 2],
) {
    let source = &mb.source.chroma;
    let quantizer = &mb.quantizers.chroma;
    let ChromaTrials {
        predictions,
        trials,
    } = trials;
    let mut ranking = ModeRanking::new(mb.search);
    for mode in BlockMode::ALL {
        let cost = CHROMA_MODE_COSTS[mode as usize];
        if cost <= budget {
            let mut satd = 0;
            for plane in 0..2 {
                let prediction = &mut predictions[mode as usize][plane];
                mb.neighbors.chroma[plane].predict(mode, prediction);
                satd += kernels.block_satd::<8>(&source[plane], prediction);
            }
            ranking.estimates[mode as usize] = mb.lambdas.estimate(satd, cost);
        }
    }

    let (mut best, mut limit) = (0, u64::MAX);
    for trial in 0..mb.search.block_trials {
        let Some(mode) = ranking.take() else {
            break;
        };
        let slot = if trial == 0 { 0 } else { 1 - best };
        let trial = &mut trials[slot];
        if try_mode(kernels, mb, mode, &predictions[mode], trial, limit) {
            best = slot;
            limit = trial.score - 1;
        }
    }
    let best = &mut trials[best];
    if mb.search.trellis == TrellisUse::Intra4AndWinners {
        quantize_chroma(kernels, mb, best, Quantization::Trellis, u64::MAX);
    }
    coding.chroma = BlockMode::ALL[best.mode];
    for plane in 0..2 {
        for (index, block) in best.blocks[plane].iter().enumerate() {
            coding.levels.chroma[plane][index] = block.levels;
            coding.levels.chroma_eobs[plane][index] = block.eob;
            let at = index / 2 * 32 + index % 2 * 4;
            let prediction = block_at(&predictions[best.mode][plane], 8, at);
            let block = kernels.reconstruct(&prediction, &block.levels, quantizer, None);
            store_block(&block, &mut pixels[plane], 8, at);
        }
    }
}

/// Tries a mode. Returns whether its score is at most `limit`; if not, the trial is unfinished.
#[inline(always)]
fn try_mode<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    mode: usize,
    predictions: &[[u8; 64]; 2],
    trial: &mut ChromaTrial,
    limit: u64,
) -> bool {
    trial.mode = mode;
    for (plane, prediction) in predictions.iter().enumerate() {
        for index in 0..4 {
            let at = index / 2 * 32 + index % 2 * 4;
            let source = block_at(&mb.source.chroma[plane], 8, at);
            trial.coefficients[plane][index] =
                kernels.transform(&source, &block_at(prediction, 8, at));
        }
    }
    let quantization = Quantization::for_trials(mb.search);
    quantize_chroma(kernels, mb, trial, quantization, limit)
}

/// Quantizes the eight blocks, and sets the score of the mode. Returns whether it is at most
/// `limit`; stops as soon as it is not.
#[inline(always)]
fn quantize_chroma<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    chroma: &mut ChromaTrial,
    quantization: Quantization,
    limit: u64,
) -> bool {
    let [mut above, mut left] = mb.nonzero;
    let lambdas = &mb.lambdas.for_chroma();
    chroma.score = lambdas.score(0, CHROMA_MODE_COSTS[chroma.mode]);
    for plane in 0..2 {
        for index in 0..4 {
            let (row, column) = (index / 2, index % 2);
            let site = BlockSite {
                quantizer: &mb.quantizers.chroma,
                costs: mb.costs.of(BlockKind::Chroma),
                lambdas,
                weight: 256,
                first: 0,
                context: usize::from(above.chroma[plane][column])
                    + usize::from(left.chroma[plane][row]),
            };
            let Some(rest) = limit.checked_sub(chroma.score) else {
                return false;
            };
            let coefficients = &chroma.coefficients[plane][index];
            let trial = quantize(kernels, coefficients, &site, quantization, rest);
            let Some((block, score)) = trial else {
                return false;
            };
            chroma.score += score;
            above.chroma[plane][column] = block.eob > 0;
            left.chroma[plane][row] = block.eob > 0;
            chroma.blocks[plane][index] = block;
        }
    }
    chroma.score <= limit
}
