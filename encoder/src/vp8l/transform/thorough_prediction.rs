//! Predicts a picture in several ways, and keeps the best: RFC 9649, sections 3.5.1 to 3.5.3.
//!
//! Screenshots are cheapest with prediction in some blocks only. Photographs are cheapest with
//! prediction and the color transform everywhere, in smaller blocks, some with and some without
//! subtract green, which the color transform can replace.

use super::prediction::predict_blocks;
use super::predictor::Modes;
use super::refinement::{self, Refinement};
use super::subtract_green;
use super::transformed::{Transform, Transformed};
use crate::EncodeError;
use crate::vp8l::greedy_parse;
use crate::vp8l::options::LosslessOptions;

/// Base-2 logarithm of the side of the color transform's blocks.
const COLOR_BITS: u32 = 4;

/// The mode of blocks that are predicted although the first choice was not to.
const SELECT: u8 = 11;

/// Returns `pixels` with the transforms that suit them best, a palette aside.
pub fn predict_thoroughly(
    mut pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Transformed, EncodeError> {
    let workers = options.workers;
    subtract_green::apply(&mut pixels, workers)?;
    let mut first = predict_blocks(workers.copy(&pixels)?, width, options)?;
    first.transforms.insert(0, Transform::SubtractGreen);
    let Some(Transform::Predictor(modes)) = first.transforms.last() else {
        return Ok(first);
    };
    let mut modes = modes.clone();
    let blocks = modes.by_block.len();
    let direct: usize = modes
        .by_block
        .iter()
        .map(|mode| usize::from(*mode == 0))
        .sum();
    let mut best = BestPrediction {
        cost: first.estimate_in_groups(options)?,
        transformed: first,
    };
    if direct * 8 > blocks {
        best.consider_refined(
            &pixels,
            width,
            halved(&modes, &pixels, width),
            true,
            None,
            options,
        )?;
    }
    if direct * 2 < blocks {
        for mode in &mut modes.by_block {
            if *mode == 0 {
                *mode = SELECT;
            }
        }
        let modes = halved(&modes, &pixels, width);
        let color = Some(COLOR_BITS);
        best.consider_refined(&pixels, width, modes.clone(), true, color, options)?;
        subtract_green::undo(&mut pixels, workers)?;
        best.consider_refined(&pixels, width, modes, false, color, options)?;
    }
    workers.release(pixels)?;
    Ok(best.transformed)
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
            rounds: 3,
            color_bits,
        };
        let refined = refinement::refine(pixels, width, modes, search, simd, workers)?;
        let green = subtracts_green.then_some(Transform::SubtractGreen);
        let mode = Some(Transform::Predictor(refined.modes));
        let color = refined.factors.map(Transform::Color);
        let mut other = Transformed {
            tokens: greedy_parse::parse_greedily(&refined.residuals, width, workers)?,
            pixels: refined.residuals,
            width,
            transforms: [green, mode, color].into_iter().flatten().collect(),
        };
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
}
