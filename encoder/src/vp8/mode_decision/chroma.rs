//! The decision on chroma: RFC 6386, sections 11.2 and 12.2.

use super::{
    BlockSite, CHROMA_MODE_COSTS, MacroblockContext, ModeRanking, NO_COEFFICIENTS, Quantization,
    TrellisUse, quantize,
};
use crate::vp8::block::{BlockKernels, Quantized};
use crate::vp8::macroblock::{MacroblockCoding, block_at, store_block};
use crate::vp8::predict::BlockMode;
use crate::vp8::rate::BitCost;
use crate::vp8::token::BlockKind;
use crate::vp8::transform::Block;

/// Chroma of a macroblock, predicted by one mode.
struct ChromaTrial {
    mode: usize,
    score: u64,
    coefficients: [[Block; 4]; 2],
    blocks: [[Quantized; 4]; 2],
}

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
    coding: &mut MacroblockCoding,
    pixels: &mut [[u8; 64]; 2],
) {
    let source = &mb.source.chroma;
    let quantizer = &mb.quantizers.chroma;
    let mut predictions = [[[0; 64]; 2]; 4];
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

    let first = ranking.take().expect("DC fits every budget");
    let mut best = try_mode(kernels, mb, first, &predictions[first]);
    for _ in 1..mb.search.block_trials {
        let Some(mode) = ranking.take() else {
            break;
        };
        let trial = try_mode(kernels, mb, mode, &predictions[mode]);
        if trial.score < best.score {
            best = trial;
        }
    }
    if mb.search.trellis == TrellisUse::Intra4AndWinners {
        quantize_chroma(kernels, mb, &mut best, Quantization::Trellis);
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

#[inline(always)]
fn try_mode<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    mode: usize,
    predictions: &[[u8; 64]; 2],
) -> ChromaTrial {
    let mut trial = ChromaTrial {
        mode,
        score: 0,
        coefficients: [[[0; 16]; 4]; 2],
        blocks: [[NO_COEFFICIENTS; 4]; 2],
    };
    for (plane, prediction) in predictions.iter().enumerate() {
        for index in 0..4 {
            let at = index / 2 * 32 + index % 2 * 4;
            let source = block_at(&mb.source.chroma[plane], 8, at);
            trial.coefficients[plane][index] =
                kernels.transform(&source, &block_at(prediction, 8, at));
        }
    }
    let quantization = Quantization::for_trials(mb.search);
    quantize_chroma(kernels, mb, &mut trial, quantization);
    trial
}

/// Quantizes the eight blocks, and sets the score of the mode.
#[inline(always)]
fn quantize_chroma<K: BlockKernels>(
    kernels: K,
    mb: &MacroblockContext<'_>,
    chroma: &mut ChromaTrial,
    quantization: Quantization,
) {
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
                first: 0,
                context: usize::from(above.chroma[plane][column])
                    + usize::from(left.chroma[plane][row]),
            };
            let (block, score) = quantize(
                kernels,
                &chroma.coefficients[plane][index],
                &site,
                quantization,
            );
            chroma.score += score;
            above.chroma[plane][column] = block.eob > 0;
            left.chroma[plane][row] = block.eob > 0;
            chroma.blocks[plane][index] = block;
        }
    }
}
