//! Which transforms a picture gets: RFC 9649, section 3.5.
//!
//! Drawn parts of a picture (text, controls) are cheapest as they are, since they repeat; photographed parts are cheapest as what a
//! prediction leaves of them. So each block is predicted only where that is cheaper by an estimate of both, copies included. The
//! predictor transform's mode 0 is as good as none.

use super::color::{self, Factors, SampleCosts};
use super::color_indexing::Palette;
use super::predictor::{self, Blocks, Modes};
use super::subtract_green;
use crate::threads::Workers;
use crate::vp8l::bit_writer::BitWriter;
use crate::vp8l::encoder::Settings;
use crate::vp8l::entropy::BIT;
use crate::vp8l::estimate::Estimate;
use crate::vp8l::token::{self, CacheHits, TokenImage, Tokens};
use crate::vp8l::{histogram, image_stream, lz77};
use crate::{Effort, EncodeError};
use std::sync::Mutex;

/// A transform with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Section 3.5.1.
    Predictor(Modes),
    /// Section 3.5.2.
    Color(Factors),
    /// Section 3.5.3.
    SubtractGreen,
    /// Section 3.5.4.
    ColorIndexing(Palette),
}

/// A picture after its transforms.
#[derive(Clone, Debug)]
pub struct Transformed {
    /// What is left to code.
    pub pixels: Vec<u32>,
    /// Pixels of a row.
    pub width: usize,
    /// What a quick look makes of it.
    pub tokens: Tokens,
    /// In the order of the bitstream, which is the order they were applied in.
    pub transforms: Vec<Transform>,
}

impl Transformed {
    /// Whether pixels are indices of a palette.
    pub fn is_indexed(&self) -> bool {
        matches!(self.transforms[..], [Transform::ColorIndexing(_), ..])
    }

    /// Whether it is small with little in it.
    pub fn has_little(&self) -> bool {
        self.pixels.len() <= SMALL && token::written(&self.tokens.0) <= LITTLE
    }

    /// What it comes to with the data of its transforms, in 1 / [`BIT`] bits: without a color cache or, unless pixels are indices,
    /// with a small one, whichever is less.
    fn estimate(&self, workers: Workers<'_>) -> Result<u64, EncodeError> {
        let caches: &[u32] = if self.is_indexed() { &[0] } else { &[0, 4] };
        let mut cost = u64::MAX;
        for &bits in caches {
            let image = TokenImage {
                pixels: &self.pixels,
                width: self.width,
                tokens: &self.tokens.0,
                cache: &CacheHits::new(&self.pixels, bits, workers)?,
            };
            cost = cost.min(histogram::total_cost(&histogram::count(&image, workers)?));
        }
        for transform in &self.transforms {
            let (pixels, width) = match transform {
                Transform::Predictor(modes) => (modes.pixels(), modes.across),
                Transform::Color(factors) => (factors.pixels(), factors.across),
                Transform::ColorIndexing(palette) => (palette.deltas(), palette.len()),
                Transform::SubtractGreen => continue,
            };
            cost += Estimate::new(&pixels, width, 0, workers)?.total;
        }
        Ok(cost)
    }

    /// Writes the transforms with their data, and that no more follow.
    pub fn write_transforms(
        &self,
        bits: &mut BitWriter,
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        for transform in &self.transforms {
            bits.put_flag(true);
            match transform {
                Transform::Predictor(modes) => {
                    bits.put(0, 2);
                    bits.put(modes.block_bits - 2, 3);
                    image_stream::write_small(bits, &modes.pixels(), modes.across, workers)?;
                }
                Transform::Color(factors) => {
                    bits.put(1, 2);
                    bits.put(factors.block_bits - 2, 3);
                    image_stream::write_small(bits, &factors.pixels(), factors.across, workers)?;
                }
                Transform::SubtractGreen => bits.put(2, 2),
                Transform::ColorIndexing(palette) => {
                    bits.put(3, 2);
                    bits.put(palette.len() as u32 - 1, 8);
                    image_stream::write_small(bits, &palette.deltas(), palette.len(), workers)?;
                }
            }
        }
        bits.put_flag(false);
        Ok(())
    }
}

/// Up to so many pixels, 64 x 64, a picture is tiny: what goes with a palette may be more than the picture, and so all ways to
/// code it are compared.
const TINY: usize = 1 << 12;
/// Up to so many pixels, 256 x 128, a picture is small.
const SMALL: usize = 1 << 15;
/// Up to so many literals and copies, it has little in it: more can be tried.
const LITTLE: usize = 1 << 10;
/// Up to so many, what goes with a palette may be more than what it saves, even if it saves most pixels.
const NEXT_TO_NOTHING: usize = 1 << 9;

/// `pixels` after the transforms that make them cheapest. Of a small picture that has few colours and little in it, what goes with
/// transforms and codes may outweigh what they save: a palette is taken if it looks cheaper. Of a tiny picture, whatever its colours,
/// and at high effort there are several candidates, of which one has to be the smallest.
pub fn candidates(
    pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Vec<Transformed>, EncodeError> {
    let is_tiny = pixels.len() <= TINY && settings.effort != Effort::Low;
    let Some(palette) = Palette::new(&pixels, settings.workers)? else {
        let mut candidates = Vec::new();
        if is_tiny {
            let mut cheapest = Cheapest::default();
            cheapest.consider_all(pixels.clone(), width, settings)?;
            candidates = cheapest.into_candidates(is_tiny);
        }
        if !is_tiny || settings.effort == Effort::High {
            candidates.push(without_palette(pixels, width, settings)?);
        }
        return Ok(candidates);
    };
    let is_small = pixels.len() <= SMALL && settings.effort != Effort::Low;
    let direct = is_small.then(|| pixels.clone());
    let indexed = index(palette, pixels, width, settings.workers)?;
    let Some(direct) = direct.filter(|_| is_tiny || indexed.has_little()) else {
        return Ok(vec![indexed]);
    };
    let is_packed = indexed.width < width;
    if settings.effort != Effort::High {
        // Several indices to a pixel are too much to be without, unless there is next to nothing to code.
        let is_little =
            token::written(&indexed.tokens.0) <= NEXT_TO_NOTHING || is_tiny && indexed.has_little();
        if is_packed && !is_little {
            return Ok(vec![indexed]);
        }
        let mut cheapest = Cheapest::default();
        if is_tiny && !is_packed {
            cheapest.consider(indexed, settings.workers)?;
            cheapest.consider_all(direct, width, settings)?;
        } else {
            let untransformed = plain(direct, width, &indexed, settings.workers)?;
            let direct = unpredicted(
                untransformed.pixels.clone(),
                width,
                &indexed,
                settings.workers,
            )?;
            cheapest.consider(indexed, settings.workers)?;
            cheapest.consider(direct, settings.workers)?;
            cheapest.consider(untransformed, settings.workers)?;
        }
        return Ok(cheapest.into_candidates(is_tiny));
    }
    let mut candidates = Vec::new();
    if is_tiny && !is_packed {
        let mut cheapest = Cheapest::default();
        cheapest.consider_all(direct.clone(), width, settings)?;
        candidates.extend(cheapest.into_candidates(is_tiny));
    }
    let direct = without_palette(direct, width, settings)?;
    let mut predicted = predict(indexed.pixels.clone(), indexed.width, settings)?;
    predicted
        .transforms
        .splice(0..0, indexed.transforms.clone());
    candidates.extend([indexed, direct]);
    if predicted.transforms.len() > 1 {
        candidates.push(predicted);
    }
    Ok(candidates)
}

/// The two candidates that look cheapest of those that were considered, the cheapest first.
#[derive(Default)]
struct Cheapest(Vec<(u64, Transformed)>);

impl Cheapest {
    /// Takes `candidate` if it looks cheaper than one of those that there are.
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

    /// The cheapest, and of a tiny picture the other one if it comes close: then estimates cannot tell, and to write both takes
    /// little time. Of drawings of 32 x 32 pixels with ten colors that saves a tenth.
    fn into_candidates(self, is_tiny: bool) -> Vec<Transformed> {
        let most = match self.0.first() {
            Some((least, _)) if is_tiny => least + least / 8,
            _ => 0,
        };
        let candidates = self.0.into_iter().enumerate();
        let close = candidates.filter(|(rank, (cost, _))| *rank == 0 || *cost <= most);
        close.map(|(_, (_, candidate))| candidate).collect()
    }

    /// Considers the ways without a palette that a tiny picture may need: as it is and with subtract green, each of them with one
    /// mode of prediction for the whole picture and with none, and with subtract green and a mode for each block of 8 x 8 pixels.
    fn consider_all(
        &mut self,
        pixels: Vec<u32>,
        width: usize,
        settings: &Settings<'_>,
    ) -> Result<(), EncodeError> {
        /// log2 of the side of a block: the whole picture, and small blocks.
        const WHOLE: u32 = 9;
        const BLOCK: u32 = 3;
        let workers = settings.workers;
        let mut apart = pixels.clone();
        subtract_green::apply(&mut apart, workers)?;
        for (pixels, transforms) in [
            (apart, vec![Transform::SubtractGreen]),
            (pixels, Vec::new()),
        ] {
            let plain = Transformed {
                tokens: lz77::quick(&pixels, width, workers)?,
                pixels,
                width,
                transforms,
            };
            self.consider_predicted(&plain, WHOLE, settings)?;
            if !plain.transforms.is_empty() {
                self.consider_predicted(&plain, BLOCK, settings)?;
            }
            self.consider(plain, workers)?;
        }
        Ok(())
    }

    /// Considers `plain` predicted by blocks of a side of 2^`block_bits`.
    fn consider_predicted(
        &mut self,
        plain: &Transformed,
        block_bits: u32,
        settings: &Settings<'_>,
    ) -> Result<(), EncodeError> {
        let (simd, workers) = (settings.simd, settings.workers);
        let width = plain.width;
        let side = 1 << block_bits;
        let blocks = width.div_ceil(side) * (plain.pixels.len() / width).div_ceil(side);
        let blocks = Blocks {
            bits: block_bits,
            is_open: &vec![true; blocks],
            rows_apart: 1,
        };
        let (modes, left) = predictor::choose(&plain.pixels, width, blocks, simd, workers)?;
        // What prediction leaves, if nothing of it is copied.
        let left: u64 = left.iter().map(|left| u64::from(*left)).sum();
        let is_dearer = self.0.first().is_some_and(|(least, _)| left * BIT > *least);
        if is_dearer {
            return Ok(());
        }
        let mut pixels = plain.pixels.clone();
        predictor::subtract_predicted(&mut pixels, width, &modes, simd, workers)?;
        let mut transforms = plain.transforms.clone();
        transforms.push(Transform::Predictor(modes));
        let candidate = Transformed {
            tokens: lz77::quick(&pixels, width, workers)?,
            pixels,
            width,
            transforms,
        };
        self.consider(candidate, workers)
    }
}

/// Colours replaced by their indices.
fn index(
    palette: Palette,
    mut pixels: Vec<u32>,
    width: usize,
    workers: Workers<'_>,
) -> Result<Transformed, EncodeError> {
    let width = palette.apply(&mut pixels, width, workers)?;
    Ok(Transformed {
        tokens: lz77::quick(&pixels, width, workers)?,
        pixels,
        width,
        transforms: vec![Transform::ColorIndexing(palette)],
    })
}

/// What [`without_palette`] comes to for nearly all pictures with little in them. `indexed` is the same picture.
fn unpredicted(
    mut pixels: Vec<u32>,
    width: usize,
    indexed: &Transformed,
    workers: Workers<'_>,
) -> Result<Transformed, EncodeError> {
    subtract_green::apply(&mut pixels, workers)?;
    let mut direct = plain(pixels, width, indexed, workers)?;
    direct.transforms.push(Transform::SubtractGreen);
    Ok(direct)
}

/// `pixels` as they are. `indexed` is the same picture.
fn plain(
    pixels: Vec<u32>,
    width: usize,
    indexed: &Transformed,
    workers: Workers<'_>,
) -> Result<Transformed, EncodeError> {
    Ok(Transformed {
        // Where each index has a pixel of its own, they repeat where colours do.
        tokens: if indexed.width == width {
            indexed.tokens.clone()
        } else {
            lz77::quick(&pixels, width, workers)?
        },
        pixels,
        width,
        transforms: Vec::new(),
    })
}

fn without_palette(
    mut pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Transformed, EncodeError> {
    subtract_green::apply(&mut pixels, settings.workers)?;
    let mut predicted = predict(pixels, width, settings)?;
    predicted.transforms.insert(0, Transform::SubtractGreen);
    Ok(predicted)
}

/// log2 of the side of the predictor's blocks.
const BLOCK_BITS: u32 = 4;

/// Bits that prediction must save in nine blocks: where little is to be gained, it only hides what could be copied.
const LEAST_GAIN: u32 = 1500 * BIT as u32;

/// How much is tried to find out which blocks to predict.
struct Search {
    /// One row of so many tells how to predict a block.
    rows_apart: usize,
    /// Whether the cost of predicted blocks is estimated with copies, and not only by their samples.
    looks_for_copies: bool,
    /// Eighths of what a block would cost predicted, beyond which it is left as it is; the best is taken.
    factors: &'static [u32],
    /// Whether what that comes to is estimated, and the picture left as it is if that is less.
    compares: bool,
    /// Bits of the colour cache of estimates. Where copies are found, 10 suit most pictures.
    cache_bits: u32,
    /// Whether the color transform is tried. On what is left after subtract green and prediction it gains 0.5 % at best, and
    /// often loses, since it makes like pixels unlike.
    tries_color: bool,
}

impl Search {
    fn of(effort: Effort) -> Search {
        match effort {
            Effort::Low => Search {
                rows_apart: 8,
                looks_for_copies: false,
                factors: &[9],
                compares: false,
                cache_bits: 0,
                tries_color: false,
            },
            Effort::Medium => Search {
                rows_apart: 1,
                looks_for_copies: false,
                factors: &[8],
                compares: true,
                cache_bits: 10,
                tries_color: false,
            },
            Effort::High => Search {
                rows_apart: 1,
                looks_for_copies: true,
                factors: &[6, 8, 10, 12, 16],
                compares: true,
                cache_bits: 10,
                tries_color: true,
            },
        }
    }
}

/// Predicts the blocks of `pixels` that it pays for.
fn predict(
    mut pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Transformed, EncodeError> {
    let (simd, workers) = (settings.simd, settings.workers);
    let search = Search::of(settings.effort);
    let estimate = |pixels: &[u32]| Estimate::new(pixels, width, search.cache_bits, workers);
    let across = width.div_ceil(1 << BLOCK_BITS);
    let direct = estimate(&pixels)?;
    let direct_costs = sum_around(&direct.blocks(&pixels, width, BLOCK_BITS, workers)?, across);
    let is_open: Vec<bool> = direct_costs.iter().map(|cost| *cost > LEAST_GAIN).collect();
    let mut best = Candidate::new(direct, None);
    if is_open.contains(&true) {
        let blocks = Blocks {
            bits: BLOCK_BITS,
            is_open: &is_open,
            rows_apart: search.rows_apart,
        };
        let (all, left) = predictor::choose(&pixels, width, blocks, simd, workers)?;
        let mut predicted = Vec::new();
        let costs = if search.looks_for_copies {
            predicted = workers.copy(&pixels)?;
            predictor::subtract_predicted(&mut predicted, width, &all, simd, workers)?;
            estimate(&predicted)?.blocks(&predicted, width, BLOCK_BITS, workers)?
        } else {
            left.iter().map(|left| left * COST_OF_LEFT).collect()
        };
        let predicted_costs = sum_around(&costs, across);
        let modes = |factor| {
            let costs = direct_costs.iter().zip(&predicted_costs);
            of_cheaper_blocks(&all, costs, factor)
        };
        if !search.compares {
            let modes = modes(search.factors[0]);
            predictor::subtract_predicted(&mut pixels, width, &modes, simd, workers)?;
            return Ok(Transformed {
                tokens: lz77::quick(&pixels, width, workers)?,
                pixels,
                width,
                transforms: vec![Transform::Predictor(modes)],
            });
        }
        let cheapest = Mutex::new((0, best));
        workers.run_checked(search.factors.len(), |i| {
            let modes = modes(search.factors[i]);
            let mixed = if search.looks_for_copies {
                predictor::residuals_of_fewer(&pixels, &predicted, width, &modes, workers)?
            } else {
                let mut mixed = workers.copy(&pixels)?;
                predictor::subtract_predicted(&mut mixed, width, &modes, simd, workers)?;
                mixed
            };
            let candidate = Candidate::new(estimate(&mixed)?, Some((modes, mixed)));
            let mut other = (i + 1, candidate);
            {
                let mut cheapest = cheapest.lock().expect(NO_PANIC);
                // The first of equals, whichever was done first.
                if (other.1.total, other.0) < (cheapest.1.total, cheapest.0) {
                    std::mem::swap(&mut *cheapest, &mut other);
                }
            }
            let left = other.1.predicted.map(|(_, pixels)| pixels);
            workers.release(left.unwrap_or_default())
        })?;
        workers.release(predicted)?;
        best = cheapest.into_inner().expect(NO_PANIC).1;
    }
    let Some((modes, mut predicted)) = best.predicted else {
        return Ok(Transformed {
            pixels,
            width,
            tokens: best.tokens,
            transforms: Vec::new(),
        });
    };
    workers.release(pixels)?;
    let mut transforms = Vec::new();
    if search.tries_color
        && let Some((apart, factors)) =
            color::apply(&predicted, width, &modes, &best.costs, workers)?
    {
        let estimate = estimate(&apart)?;
        let mut other = apart;
        if estimate.total < best.total {
            best.tokens = estimate.tokens;
            std::mem::swap(&mut predicted, &mut other);
            transforms.push(Transform::Color(factors));
        }
        workers.release(other)?;
    }
    transforms.insert(0, Transform::Predictor(modes));
    Ok(Transformed {
        pixels: predicted,
        width,
        tokens: best.tokens,
        transforms,
    })
}

/// `modes` of the blocks that cost more by themselves than so many eighths of what they cost predicted, and 0 of the others.
/// `costs` are both.
fn of_cheaper_blocks<'a>(
    modes: &Modes,
    costs: impl Iterator<Item = (&'a u32, &'a u32)>,
    factor: u32,
) -> Modes {
    let mut modes = modes.clone();
    for (mode, (direct, predicted)) in modes.by_block.iter_mut().zip(costs) {
        if *direct <= predicted / 8 * factor + LEAST_GAIN {
            *mode = 0;
        }
    }
    modes
}

const NO_PANIC: &str = "nothing that panics holds the lock";

/// What a bit that a prediction leaves costs in the end, on screenshots and photographs alike.
const COST_OF_LEFT: u32 = 9 * BIT as u32 / 4;

/// A choice of blocks to predict.
struct Candidate {
    total: u64,
    tokens: Tokens,
    costs: SampleCosts,
    /// If any are.
    predicted: Option<(Modes, Vec<u32>)>,
}

impl Candidate {
    fn new(estimate: Estimate, predicted: Option<(Modes, Vec<u32>)>) -> Candidate {
        Candidate {
            total: estimate.total,
            costs: estimate.sample_costs(),
            tokens: estimate.tokens,
            predicted,
        }
    }
}

/// For each block, the sum of it and its neighbours.
fn sum_around(costs: &[u32], across: usize) -> Vec<u32> {
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
