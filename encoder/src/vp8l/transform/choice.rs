//! Chooses the transforms of a picture: RFC 9649, section 3.5.
//!
//! Synthetic parts of a picture (text, controls) are cheapest untransformed, because they repeat.
//! Photographic parts are cheapest as residuals of a prediction.

use super::color_indexing::Palette;
use super::prediction::predict_blocks;
use super::predictor::{self, Blocks};
use super::refined_prediction::{predict_icon, predict_in_one_round, predict_thoroughly};
use super::subtract_green;
use super::transformed::{MAX_ICON_PIXELS, MAX_SMALL_PIXELS, Transform, Transformed};
use crate::threads::Workers;
use crate::vp8l::entropy::BIT;
use crate::vp8l::greedy_parse;
use crate::vp8l::options::LosslessOptions;
use crate::vp8l::token;
use crate::{Effort, EncodeError};

/// Largest tiny picture, 64 x 64 pixels. Its palette and codes may outweigh its pixels, so all
/// kinds of coding are compared.
const MAX_TINY_PIXELS: usize = 1 << 12;
/// Up to this many tokens, a palette may cost more than it saves, even if it packs several pixels
/// into one.
const MAX_TRIVIAL_TOKENS: usize = 1 << 9;

/// Returns the most promising combinations of transforms, applied to `pixels`; the smallest file
/// decides among them.
///
/// In a small picture with few colors and few tokens, the data of transforms and codes may outweigh
/// what they save: the palette is used only if its estimate is lower. Tiny pictures, whatever their
/// colors, and high effort give several candidates.
pub fn list_candidates(
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Vec<Transformed>, EncodeError> {
    let is_tiny = pixels.len() <= MAX_TINY_PIXELS && options.effort != Effort::Low;
    let Some(palette) = Palette::new(&pixels, options.workers)? else {
        let mut candidates = Vec::new();
        if is_tiny {
            let mut best = BestCandidates::default();
            best.consider_all(pixels.clone(), width, options)?;
            candidates = best.into_candidates(is_tiny);
        }
        candidates.push(predict_without_palette(pixels, width, options)?);
        return Ok(candidates);
    };
    let is_small = pixels.len() <= MAX_SMALL_PIXELS && options.effort != Effort::Low;
    let direct = is_small.then(|| pixels.clone());
    let indexed = apply_palette(palette, pixels, width, options.workers)?;
    let Some(direct) = direct.filter(|_| is_tiny || indexed.is_simple()) else {
        return Ok(vec![indexed]);
    };
    let is_packed = indexed.width < width;
    if options.effort < Effort::High {
        // Packing several indices into a pixel always pays, unless there are very few tokens.
        let is_little = token::count_literals_and_copies(&indexed.tokens.0) <= MAX_TRIVIAL_TOKENS
            || is_tiny && indexed.is_simple();
        if is_packed && !is_little {
            return Ok(vec![indexed]);
        }
        let mut best = BestCandidates::default();
        if is_tiny && !is_packed {
            best.consider(indexed, options.workers)?;
            best.consider_all(direct, width, options)?;
        } else {
            let untransformed = keep_pixels(direct, width, &indexed, options.workers)?;
            let direct = subtract_green_only(
                untransformed.pixels.clone(),
                width,
                &indexed,
                options.workers,
            )?;
            best.consider(indexed, options.workers)?;
            best.consider(direct, options.workers)?;
            best.consider(untransformed, options.workers)?;
        }
        return Ok(best.into_candidates(is_tiny));
    }
    let mut candidates = Vec::new();
    if is_tiny && !is_packed {
        let mut best = BestCandidates::default();
        best.consider_all(direct.clone(), width, options)?;
        candidates.extend(best.into_candidates(is_tiny));
    }
    let direct = predict_without_palette(direct, width, options)?;
    let (mut predicted, _) = predict_blocks(indexed.pixels.clone(), indexed.width, options)?;
    predicted
        .transforms
        .splice(0..0, indexed.transforms.clone());
    candidates.extend([indexed, direct]);
    if predicted.transforms.len() > 1 {
        candidates.push(predicted);
    }
    Ok(candidates)
}

/// The two candidates with the lowest estimates, the lowest first.
#[derive(Default)]
struct BestCandidates(Vec<(u64, Transformed)>);

impl BestCandidates {
    /// Adds `candidate` if its estimate is among the two lowest.
    fn consider(
        &mut self,
        candidate: Transformed,
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        let cost = candidate.estimate(workers)?;
        let at = self.0.partition_point(|(known, _)| *known <= cost);
        self.0.insert(at, (cost, candidate));
        self.0.truncate(2);
        Ok(())
    }

    /// Returns the best candidate; of a tiny picture also the second one, if its estimate is close.
    /// There estimates cannot decide, and writing both takes little time: it saves a tenth of
    /// drawings of 32 x 32 pixels with ten colors.
    fn into_candidates(self, is_tiny: bool) -> Vec<Transformed> {
        let most = match self.0.first() {
            Some((least, _)) if is_tiny => least + least / 8,
            _ => 0,
        };
        let candidates = self.0.into_iter().enumerate();
        let close = candidates.filter(|(rank, (cost, _))| *rank == 0 || *cost <= most);
        close.map(|(_, (_, candidate))| candidate).collect()
    }

    /// Adds the candidates without a palette that a tiny picture may need: with and without
    /// subtract green, each with one prediction mode for the whole picture and without prediction,
    /// and subtract green with a mode per block of 8 x 8 pixels.
    fn consider_all(
        &mut self,
        pixels: Vec<u32>,
        width: usize,
        options: &LosslessOptions<'_>,
    ) -> Result<(), EncodeError> {
        /// Base-2 logarithm of a block's side: the whole picture, and small blocks.
        const WHOLE: u32 = 9;
        const BLOCK: u32 = 3;
        let workers = options.workers;
        let mut apart = pixels.clone();
        subtract_green::apply(&mut apart, workers)?;
        for (pixels, transforms) in [
            (apart, vec![Transform::SubtractGreen]),
            (pixels, Vec::new()),
        ] {
            let plain = Transformed {
                tokens: greedy_parse::parse_greedily(&pixels, width, workers)?,
                pixels,
                width,
                transforms,
            };
            self.consider_predicted(&plain, WHOLE, options)?;
            if !plain.transforms.is_empty() {
                self.consider_predicted(&plain, BLOCK, options)?;
            }
            self.consider(plain, workers)?;
        }
        Ok(())
    }

    /// Adds `plain`, predicted in blocks with sides of `2^block_bits`.
    fn consider_predicted(
        &mut self,
        plain: &Transformed,
        block_bits: u32,
        options: &LosslessOptions<'_>,
    ) -> Result<(), EncodeError> {
        let (simd, workers) = (options.simd, options.workers);
        let width = plain.width;
        let side = 1 << block_bits;
        let blocks = width.div_ceil(side) * (plain.pixels.len() / width).div_ceil(side);
        let blocks = Blocks {
            bits: block_bits,
            may_predict: &vec![true; blocks],
            row_step: 1,
        };
        let (modes, residual_bits) =
            predictor::choose(&plain.pixels, width, blocks, simd, workers)?;
        // Bits of the residuals, if no copies are found in them.
        let residual_bits: u64 = residual_bits.iter().map(|bits| u64::from(*bits)).sum();
        let costs_more = self
            .0
            .first()
            .is_some_and(|(least, _)| residual_bits * BIT > *least);
        if costs_more {
            return Ok(());
        }
        let mut pixels = plain.pixels.clone();
        predictor::subtract_predicted(&mut pixels, width, &modes, simd, workers)?;
        let mut transforms = plain.transforms.clone();
        transforms.push(Transform::Predictor(modes));
        let candidate = Transformed {
            tokens: greedy_parse::parse_greedily(&pixels, width, workers)?,
            pixels,
            width,
            transforms,
        };
        self.consider(candidate, workers)
    }
}

/// Replaces colors by their palette indices.
fn apply_palette(
    palette: Palette,
    mut pixels: Vec<u32>,
    width: usize,
    workers: Workers<'_>,
) -> Result<Transformed, EncodeError> {
    let width = palette.apply(&mut pixels, width, workers)?;
    Ok(Transformed {
        tokens: greedy_parse::parse_greedily(&pixels, width, workers)?,
        pixels,
        width,
        transforms: vec![Transform::ColorIndexing(palette)],
    })
}

/// Applies subtract green alone, which is what [`predict_without_palette`] amounts to for nearly
/// all pictures with few tokens. `indexed` is the same picture with a palette.
fn subtract_green_only(
    mut pixels: Vec<u32>,
    width: usize,
    indexed: &Transformed,
    workers: Workers<'_>,
) -> Result<Transformed, EncodeError> {
    subtract_green::apply(&mut pixels, workers)?;
    let mut direct = keep_pixels(pixels, width, indexed, workers)?;
    direct.transforms.push(Transform::SubtractGreen);
    Ok(direct)
}

/// Applies no transform. `indexed` is the same picture with a palette.
fn keep_pixels(
    pixels: Vec<u32>,
    width: usize,
    indexed: &Transformed,
    workers: Workers<'_>,
) -> Result<Transformed, EncodeError> {
    Ok(Transformed {
        // If each index has a pixel of its own, indices repeat where colors do.
        tokens: if indexed.width == width {
            indexed.tokens.clone()
        } else {
            greedy_parse::parse_greedily(&pixels, width, workers)?
        },
        pixels,
        width,
        transforms: Vec::new(),
    })
}

fn predict_without_palette(
    mut pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Transformed, EncodeError> {
    subtract_green::apply(&mut pixels, options.workers)?;
    match options.effort {
        Effort::Medium | Effort::High | Effort::Max if pixels.len() <= MAX_ICON_PIXELS => {
            predict_icon(pixels, width, options)
        }
        Effort::Low => {
            let (mut predicted, _) = predict_blocks(pixels, width, options)?;
            predicted.transforms.insert(0, Transform::SubtractGreen);
            Ok(predicted)
        }
        Effort::Medium => predict_in_one_round(pixels, width, options),
        Effort::High | Effort::Max => predict_thoroughly(pixels, width, options),
    }
}
