//! Chooses the blocks of a picture that are predicted: RFC 9649, section 3.5.1.
//!
//! A block is predicted only where that saves bits by estimates that include copies. Mode 0 of the
//! predictor transform is as good as no prediction.

use super::predictor::{self, Blocks, Modes};
use super::transformed::{Transform, Transformed};
use crate::vp8l::entropy::BIT;
use crate::vp8l::estimate::Estimate;
use crate::vp8l::greedy_parse;
use crate::vp8l::options::LosslessOptions;
use crate::vp8l::token::Tokens;
use crate::{Effort, EncodeError};
use std::sync::Mutex;

/// Base-2 logarithm of the side of the predictor's blocks.
const BLOCK_BITS: u32 = 4;

/// Bits that prediction must save in nine blocks. Smaller gains are not worth it, because
/// prediction makes copies harder to find.
const MIN_GAIN: u32 = 1500 * BIT as u32;

/// How much is tried to choose the blocks that are predicted.
struct TransformSearch {
    /// One row in this many is used to choose a block's mode.
    row_step: usize,
    /// Whether the cost of predicted blocks is estimated with a parse, and not only from their
    /// residuals.
    estimates_with_parse: bool,
    /// A block is predicted if that costs less than 8 / factor of its cost without; the factor with
    /// the lowest estimate is taken.
    factors: &'static [u32],
    /// Whether the result is estimated, and dropped if the picture is cheaper without prediction.
    may_skip: bool,
    /// Base-2 logarithm of the estimates' color cache.
    cache_bits: u32,
}

/// Base-2 logarithm of the color cache that suits most pictures with copies.
pub const CACHE_BITS: u32 = 10;

impl TransformSearch {
    fn for_effort(effort: Effort) -> TransformSearch {
        match effort {
            Effort::Low => TransformSearch {
                row_step: 8,
                estimates_with_parse: false,
                factors: &[9],
                may_skip: false,
                cache_bits: 0,
            },
            Effort::Medium => TransformSearch {
                row_step: 1,
                estimates_with_parse: false,
                factors: &[8],
                may_skip: true,
                cache_bits: CACHE_BITS,
            },
            Effort::High | Effort::Max => TransformSearch {
                row_step: 1,
                estimates_with_parse: true,
                factors: &[6, 8, 10, 12, 16],
                may_skip: true,
                cache_bits: CACHE_BITS,
            },
        }
    }
}

/// Predicts the blocks of `pixels` where that saves bits. Returns also the cost of the tokens by
/// [`Estimate`], which effort `low` leaves at 0 for what it predicts.
pub fn predict_blocks(
    mut pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<(Transformed, u64), EncodeError> {
    let (simd, workers) = (options.simd, options.workers);
    let search = TransformSearch::for_effort(options.effort);
    let estimate = |pixels: &[u32]| Estimate::new(pixels, width, search.cache_bits, workers);
    let across = width.div_ceil(1 << BLOCK_BITS);
    let direct = estimate(&pixels)?;
    let direct_costs =
        sum_neighborhoods(&direct.blocks(&pixels, width, BLOCK_BITS, workers)?, across);
    let may_predict: Vec<bool> = direct_costs.iter().map(|cost| *cost > MIN_GAIN).collect();
    let mut best = PredictionTrial::new(direct, None);
    if may_predict.contains(&true) {
        let blocks = Blocks {
            bits: BLOCK_BITS,
            may_predict: &may_predict,
            row_step: search.row_step,
        };
        let (all, residual_bits) = predictor::choose(&pixels, width, blocks, simd, workers)?;
        let mut predicted = Vec::new();
        let costs = if search.estimates_with_parse {
            predicted = workers.copy(&pixels)?;
            predictor::subtract_predicted(&mut predicted, width, &all, simd, workers)?;
            estimate(&predicted)?.blocks(&predicted, width, BLOCK_BITS, workers)?
        } else {
            residual_bits
                .iter()
                .map(|bits| bits * COST_PER_RESIDUAL_BIT)
                .collect()
        };
        let predicted_costs = sum_neighborhoods(&costs, across);
        let modes = |factor| {
            let costs = direct_costs.iter().zip(&predicted_costs);
            keep_cheaper_blocks(&all, costs, factor)
        };
        if !search.may_skip {
            let modes = modes(search.factors[0]);
            predictor::subtract_predicted(&mut pixels, width, &modes, simd, workers)?;
            let transformed = Transformed {
                tokens: greedy_parse::parse_greedily(&pixels, width, workers)?,
                pixels,
                width,
                transforms: vec![Transform::Predictor(modes)],
            };
            return Ok((transformed, 0));
        }
        let cheapest = Mutex::new((0, best));
        workers.run_checked(search.factors.len(), |i| {
            let modes = modes(search.factors[i]);
            let mixed = if search.estimates_with_parse {
                predictor::restrict_residuals(&pixels, &predicted, width, &modes, workers)?
            } else {
                let mut mixed = workers.copy(&pixels)?;
                predictor::subtract_predicted(&mut mixed, width, &modes, simd, workers)?;
                mixed
            };
            let candidate = PredictionTrial::new(estimate(&mixed)?, Some((modes, mixed)));
            let mut other = (i + 1, candidate);
            {
                let mut cheapest = cheapest.lock().expect(NO_PANIC);
                // The first of equals wins, whichever thread finishes first.
                if (other.1.total, other.0) < (cheapest.1.total, cheapest.0) {
                    std::mem::swap(&mut *cheapest, &mut other);
                }
            }
            let dropped = other.1.predicted.map(|(_, pixels)| pixels);
            workers.release(dropped.unwrap_or_default())
        })?;
        workers.release(predicted)?;
        best = cheapest.into_inner().expect(NO_PANIC).1;
    }
    let (pixels, transforms) = match best.predicted {
        Some((modes, predicted)) => {
            workers.release(pixels)?;
            (predicted, vec![Transform::Predictor(modes)])
        }
        None => (pixels, Vec::new()),
    };
    let transformed = Transformed {
        pixels,
        width,
        tokens: best.tokens,
        transforms,
    };
    Ok((transformed, best.total))
}

/// Returns `modes` with 0 for each block whose cost without prediction is at most `factor / 8` of
/// its cost with prediction. `costs` holds both costs of each block.
fn keep_cheaper_blocks<'a>(
    modes: &Modes,
    costs: impl Iterator<Item = (&'a u32, &'a u32)>,
    factor: u32,
) -> Modes {
    let mut modes = modes.clone();
    for (mode, (direct, predicted)) in modes.by_block.iter_mut().zip(costs) {
        if *direct <= predicted / 8 * factor + MIN_GAIN {
            *mode = 0;
        }
    }
    modes
}

const NO_PANIC: &str = "nothing that panics holds the lock";

/// The cost of a bit of the residuals in the end, on screenshots and photographs alike.
const COST_PER_RESIDUAL_BIT: u32 = 9 * BIT as u32 / 4;

/// A choice of blocks to predict, with its estimate.
struct PredictionTrial {
    total: u64,
    tokens: Tokens,
    /// The modes and residuals; `None` without prediction.
    predicted: Option<(Modes, Vec<u32>)>,
}

impl PredictionTrial {
    fn new(estimate: Estimate, predicted: Option<(Modes, Vec<u32>)>) -> PredictionTrial {
        PredictionTrial {
            total: estimate.total,
            tokens: estimate.tokens,
            predicted,
        }
    }
}

/// Returns the sum of each block and its eight neighbors.
fn sum_neighborhoods(costs: &[u32], across: usize) -> Vec<u32> {
    let mut sums = vec![0; costs.len()];
    for (sums, row) in sums
        .chunks_exact_mut(across)
        .zip(costs.chunks_exact(across))
    {
        for (x, sum) in sums.iter_mut().enumerate() {
            *sum = row[x.saturating_sub(1)..across.min(x + 2)].iter().sum();
        }
    }
    let rows = sums.clone();
    for (i, sum) in sums.iter_mut().enumerate() {
        let above = i.checked_sub(across).map_or(0, |i| rows[i]);
        *sum += above + rows.get(i + across).copied().unwrap_or(0);
    }
    sums
}
