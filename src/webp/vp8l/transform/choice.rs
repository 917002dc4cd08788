//! Which transforms a picture gets: RFC 9649, section 3.5.
//!
//! Drawn parts of a picture (text, controls) are cheapest as they are, since they repeat; photographed parts are cheapest as what a
//! prediction leaves of them. So each block is predicted only where that is cheaper by an estimate of both, copies included. The
//! predictor transform's mode 0 is as good as none.

use super::color_indexing::Palette;
use super::predictor::{self, Modes};
use super::subtract_green;
use crate::webp::EncodeError;
use crate::webp::crew::Crew;
use crate::webp::vp8l::bit_writer::BitWriter;
use crate::webp::vp8l::encoder::Settings;
use crate::webp::vp8l::entropy::BIT;
use crate::webp::vp8l::estimate::Estimate;
use crate::webp::vp8l::token::Tokens;
use crate::webp::vp8l::{image_stream, lz77};

/// A transform with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Section 3.5.1.
    Predictor(Modes),
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
    /// Writes the transforms with their data, and that no more follow.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the crew's caller waits no more.
    pub fn write_transforms(
        &self,
        bits: &mut BitWriter,
        crew: Crew<'_>,
    ) -> Result<(), EncodeError> {
        for transform in &self.transforms {
            bits.put_flag(true);
            match transform {
                Transform::Predictor(modes) => {
                    bits.put(0, 2);
                    bits.put(modes.block_bits - 2, 3);
                    image_stream::write_small(bits, &modes.pixels(), modes.across, crew)?;
                }
                Transform::SubtractGreen => bits.put(2, 2),
                Transform::ColorIndexing(palette) => {
                    bits.put(3, 2);
                    bits.put(palette.len() as u32 - 1, 8);
                    image_stream::write_small(bits, &palette.deltas(), palette.len(), crew)?;
                }
            }
        }
        bits.put_flag(false);
        Ok(())
    }
}

/// Applies the transforms that make `pixels` cheapest.
///
/// # Errors
/// [`EncodeError::Cancelled`] if the crew's caller waits no more.
pub fn choose(
    mut pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Transformed, EncodeError> {
    if let Some(palette) = Palette::new(&pixels, settings.crew)? {
        let width = palette.apply(&mut pixels, width, settings.crew)?;
        return Ok(Transformed {
            tokens: lz77::quick(&pixels, width, settings.crew)?,
            pixels,
            width,
            transforms: vec![Transform::ColorIndexing(palette)],
        });
    }
    subtract_green::apply(&mut pixels, settings.crew)?;
    let mut predicted = predict(pixels, width, settings)?;
    predicted.transforms.insert(0, Transform::SubtractGreen);
    Ok(predicted)
}

/// log2 of the side of the predictor's blocks.
const BLOCK_BITS: u32 = 4;

/// Bits that prediction must save in nine blocks: where little is to be gained, it only hides what could be copied.
const LEAST_GAIN: u32 = 1500 * BIT as u32;

/// Eighths of what a block would cost predicted, beyond which it is left as it is.
const FACTORS: [u32; 2] = [8, 12];

/// Bits of the colour cache of estimates: what suits most pictures in which copies are found.
const CACHE_BITS: u32 = 10;

/// Predicts the blocks of `pixels` that it pays for.
fn predict(
    pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Transformed, EncodeError> {
    let (simd, crew) = (settings.simd, settings.crew);
    let estimate = |pixels: &[u32]| Estimate::new(pixels, width, CACHE_BITS, crew);
    let across = width.div_ceil(1 << BLOCK_BITS);
    let direct = estimate(&pixels)?;
    let direct_costs = sum_around(&direct.blocks(&pixels, width, BLOCK_BITS, crew)?, across);
    let is_open: Vec<bool> = direct_costs.iter().map(|cost| *cost > LEAST_GAIN).collect();
    let mut best = Candidate {
        total: direct.total,
        tokens: direct.tokens,
        predicted: None,
    };
    if is_open.contains(&true) {
        let all = predictor::choose(&pixels, width, BLOCK_BITS, &is_open, simd, crew)?;
        let predicted = predictor::residuals(&pixels, width, &all, simd, crew)?;
        let costs = estimate(&predicted)?.blocks(&predicted, width, BLOCK_BITS, crew)?;
        let predicted_costs = sum_around(&costs, across);
        let candidates = crew.run_checked(FACTORS.len(), |i| {
            let mut modes = all.clone();
            let costs = direct_costs.iter().zip(&predicted_costs);
            for (mode, (direct, predicted)) in modes.by_block.iter_mut().zip(costs) {
                if *direct <= predicted / 8 * FACTORS[i] + LEAST_GAIN {
                    *mode = 0;
                }
            }
            let mixed = predictor::residuals_of_fewer(&pixels, &predicted, width, &modes, crew)?;
            let estimate = estimate(&mixed)?;
            Ok(Candidate {
                total: estimate.total,
                tokens: estimate.tokens,
                predicted: Some((modes, mixed)),
            })
        })?;
        for candidate in candidates {
            if candidate.total < best.total {
                best = candidate;
            }
        }
    }
    let (transforms, pixels) = match best.predicted {
        None => (Vec::new(), pixels),
        Some((modes, predicted)) => (vec![Transform::Predictor(modes)], predicted),
    };
    Ok(Transformed {
        pixels,
        width,
        tokens: best.tokens,
        transforms,
    })
}

/// A choice of blocks to predict.
struct Candidate {
    total: u64,
    tokens: Tokens,
    /// If any are.
    predicted: Option<(Modes, Vec<u32>)>,
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
