//! Predicts a picture, refines that, and keeps what costs less: RFC 9649, sections 3.5.1 to 3.5.3.
//!
//! Screenshots are cheapest with prediction in some blocks only. Photographs are cheapest with
//! prediction and the color transform everywhere, in smaller blocks, some with and some without
//! subtract green, which the color transform can replace. Small pictures are either, whatever the
//! first estimates say, so that all of it is tried.

use super::prediction::{CACHE_BITS, predict_blocks};
use super::predictor::Modes;
use super::refinement::{self, Refined, Refinement};
use super::subtract_green;
use super::transformed::{Transform, Transformed};
use crate::vp8l::estimate::Estimate;
use crate::vp8l::greedy_parse;
use crate::vp8l::options::LosslessOptions;
use crate::vp8l::token::Tokens;
use crate::{Effort, EncodeError};

/// Base-2 logarithm of the side of the color transform's blocks.
const COLOR_BITS: u32 = 4;

/// Base-2 logarithms of the sides of blocks in a small picture: of the predictor's, and of the
/// color transform's that are tried.
const ICON_BLOCK_BITS: u32 = 3;
const ICON_COLOR_BITS: [u32; 2] = [COLOR_BITS, 3];

/// The mode of blocks that are predicted although the first choice was not to.
const SELECT: u8 = 11;

/// Predicts a picture of at most
/// [`MAX_ICON_PIXELS`](super::transformed::MAX_ICON_PIXELS), from which green is subtracted, in the
/// way that costs least.
///
/// The gain that a larger picture's blocks have to promise, and the share of blocks in which they
/// do, mean little here: half of an icon's blocks are transparent.
pub fn predict_icon(
    mut pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Transformed, EncodeError> {
    let workers = options.workers;
    let (mut first, _) = predict_blocks(workers.copy(&pixels)?, width, options)?;
    first.transforms.insert(0, Transform::SubtractGreen);
    let filled = match first.transforms.last() {
        Some(Transform::Predictor(modes)) => {
            let mut modes = halved(modes, &pixels, width);
            predict_everywhere(&mut modes);
            Some(modes)
        }
        _ => None,
    };
    let everywhere = Modes::same(SELECT, ICON_BLOCK_BITS, width, pixels.len() / width);
    let mut best = BestPrediction {
        cost: first.estimate_in_groups(options)?,
        transformed: first,
    };
    let mut consider = |pixels: &[u32], modes: &Modes, green, color| {
        best.consider_refined(pixels, width, modes.clone(), green, color, options)
    };
    for bits in ICON_COLOR_BITS {
        consider(&pixels, &everywhere, true, Some(bits))?;
    }
    if options.effort >= Effort::High {
        if let Some(filled) = &filled {
            consider(&pixels, filled, true, Some(COLOR_BITS))?;
        }
        subtract_green::undo(&mut pixels, workers)?;
        if let Some(filled) = &filled {
            consider(&pixels, filled, false, Some(COLOR_BITS))?;
        }
        for bits in ICON_COLOR_BITS {
            consider(&pixels, &everywhere, false, Some(bits))?;
        }
    }
    workers.release(pixels)?;
    Ok(best.transformed)
}

/// Predicts `pixels`, from which green is subtracted. Where that pays in most blocks, as in
/// photographs, it is refined in one round, which is kept if it costs less. The round saves 1.5 to
/// 4 % of a photograph's bytes, and takes half as much time again.
pub fn predict_in_one_round(
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Transformed, EncodeError> {
    let (simd, workers) = (options.simd, options.workers);
    let (mut first, first_cost) = predict_blocks(workers.copy(&pixels)?, width, options)?;
    first.transforms.insert(0, Transform::SubtractGreen);
    let Some(Transform::Predictor(modes)) = first.transforms.last() else {
        return Ok(first);
    };
    if count_direct(modes) * 2 >= modes.by_block.len() {
        return Ok(first);
    }
    let mut modes = halved(modes, &pixels, width);
    if count_direct(&modes) * 8 <= modes.by_block.len() {
        predict_everywhere(&mut modes);
    }
    let search = Refinement {
        classes: 1,
        rounds: 1,
        color_bits: Some(COLOR_BITS),
    };
    let refined = refinement::refine(&pixels, width, modes, search, simd, workers)?;
    workers.release(pixels)?;
    let estimate = Estimate::new(&refined.residuals, width, CACHE_BITS, workers)?;
    let refined_cost = estimate.total;
    let mut refined = transformed(refined, width, true, estimate.tokens);
    let saves = refined_cost + refined.estimate_transforms(workers)?
        < first_cost + first.estimate_transforms(workers)?;
    if saves {
        std::mem::swap(&mut first, &mut refined);
    }
    workers.release(refined.pixels)?;
    Ok(first)
}

/// Predicts `pixels`, from which green is subtracted, in the way that costs least.
pub fn predict_thoroughly(
    mut pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Transformed, EncodeError> {
    let workers = options.workers;
    let sparse = predict_sparsely(&pixels, width, options)?;
    let (mut first, _) = predict_blocks(workers.copy(&pixels)?, width, options)?;
    first.transforms.insert(0, Transform::SubtractGreen);
    let Some(Transform::Predictor(modes)) = first.transforms.last() else {
        return Ok(first);
    };
    let mut modes = halved(modes, &pixels, width);
    let (direct, blocks) = (count_direct(&modes), modes.by_block.len());
    let mut best = BestPrediction {
        cost: first.estimate_in_groups(options)?,
        transformed: first,
    };
    if direct * 8 > blocks {
        best.consider_refined(&pixels, width, modes.clone(), true, None, options)?;
    }
    if direct * 2 < blocks {
        predict_everywhere(&mut modes);
        let color = Some(COLOR_BITS);
        best.consider_refined(&pixels, width, modes.clone(), true, color, options)?;
        if let Some(modes) = sparse {
            best.consider_refined(&pixels, width, modes, true, color, options)?;
        }
        subtract_green::undo(&mut pixels, workers)?;
        best.consider_refined(&pixels, width, modes, false, color, options)?;
    }
    workers.release(pixels)?;
    Ok(best.transformed)
}

/// Returns the modes that effort `medium` chooses, if they leave more than an eighth of the blocks
/// without prediction: a few photographs repeat so much that this suits them best.
fn predict_sparsely(
    pixels: &[u32],
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Option<Modes>, EncodeError> {
    let workers = options.workers;
    let options = LosslessOptions {
        effort: Effort::Medium,
        ..*options
    };
    let (predicted, _) = predict_blocks(workers.copy(pixels)?, width, &options)?;
    let modes = match predicted.transforms.last() {
        Some(Transform::Predictor(modes)) if count_direct(modes) * 8 > modes.by_block.len() => {
            Some(halved(modes, pixels, width))
        }
        _ => None,
    };
    workers.release(predicted.pixels)?;
    Ok(modes)
}

/// Returns the number of blocks without prediction.
fn count_direct(modes: &Modes) -> usize {
    let is_direct = |mode: &u8| usize::from(*mode == 0);
    modes.by_block.iter().map(is_direct).sum()
}

/// Gives all blocks without prediction a mode.
fn predict_everywhere(modes: &mut Modes) {
    for mode in &mut modes.by_block {
        if *mode == 0 {
            *mode = SELECT;
        }
    }
}

/// Returns the picture that a refinement leaves, whose greedy parse is `tokens`.
fn transformed(
    refined: Refined,
    width: usize,
    subtracts_green: bool,
    tokens: Tokens,
) -> Transformed {
    let green = subtracts_green.then_some(Transform::SubtractGreen);
    let mode = Some(Transform::Predictor(refined.modes));
    let color = refined.factors.map(Transform::Color);
    Transformed {
        tokens,
        pixels: refined.residuals,
        width,
        transforms: [green, mode, color].into_iter().flatten().collect(),
    }
}

/// The best prediction so far.
struct BestPrediction {
    cost: u64,
    transformed: Transformed,
}

impl BestPrediction {
    /// Replaces the best prediction by a refinement of `modes` if that costs less.
    fn consider_refined(
        &mut self,
        pixels: &[u32],
        width: usize,
        modes: Modes,
        subtracts_green: bool,
        color_bits: Option<u32>,
        options: &LosslessOptions<'_>,
    ) -> Result<(), EncodeError> {
        let (simd, workers) = (options.simd, options.workers);
        let search = Refinement {
            classes: 8,
            rounds: if options.effort == Effort::Medium {
                1
            } else {
                3
            },
            color_bits,
        };
        let refined = refinement::refine(pixels, width, modes, search, simd, workers)?;
        let tokens = greedy_parse::parse_greedily(&refined.residuals, width, workers)?;
        let mut other = transformed(refined, width, subtracts_green, tokens);
        let cost = other.estimate_in_groups(options)?;
        if cost < self.cost {
            self.cost = cost;
            std::mem::swap(&mut self.transformed, &mut other);
        }
        workers.release(other.pixels)
    }
}

/// Returns `modes` of blocks with half the side.
fn halved(modes: &Modes, pixels: &[u32], width: usize) -> Modes {
    let block_bits = modes.block_bits - 1;
    let across = width.div_ceil(1 << block_bits);
    let down = (pixels.len() / width).div_ceil(1 << block_bits);
    let mode = |i: usize| modes.by_block[i / across / 2 * modes.across + i % across / 2];
    Modes {
        block_bits,
        across,
        by_block: (0..across * down).map(mode).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halved_blocks_keep_their_modes() {
        let modes = Modes {
            block_bits: 4,
            across: 2,
            by_block: vec![1, 2, 3, 4],
        };
        // 20 x 24 pixels are 3 x 3 blocks of 8 x 8.
        let halved = halved(&modes, &[0; 20 * 24], 20);
        assert_eq!((halved.block_bits, halved.across), (3, 3));
        assert_eq!(halved.by_block, [1, 1, 2, 1, 1, 2, 3, 3, 4]);
    }

    #[test]
    fn one_mode_covers_blocks_that_begin_in_the_picture() {
        let modes = Modes::same(SELECT, ICON_BLOCK_BITS, 20, 17);
        assert_eq!((modes.block_bits, modes.across), (3, 3));
        assert_eq!(modes.by_block, [SELECT; 9]);
    }
}
