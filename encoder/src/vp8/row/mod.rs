//! The decision on one row of macroblocks (RFC 6386, section 5). The whole row is one region of
//! code that may use a vector instruction set, because a call into such a region costs as much as a
//! kernel.

use super::block::{BlockKernels, Scalar};
use super::constants::Constants;
use super::levels::NonzeroFlags;
use super::macroblock::{AboveContext, MacroblockCoding, MacroblockRecord, Neighbors, Pixels};
use super::masking::{self, Weights};
use super::mode_decision::{
    self, LEAST_MODE_COST, Lambdas, MacroblockContext, ModeSearch, Trials, Visibility,
};
use super::predict::SubblockMode;
use super::quantize::Quantizers;
use super::rate::{BitCost, CoefficientCosts};
use super::segment::Segmentation;
use super::token_counts::TokenCounts;
use crate::cpu::{Simd, with_instructions};
use crate::ycbcr::Planes;
use std::ops::Range;

/// The decisions on a row of macroblocks.
pub struct MacroblockRow {
    /// The macroblocks, from left to right.
    pub records: Vec<MacroblockRecord>,
    /// The packed levels of the macroblocks that are not skipped, from left to right; empty unless
    /// [`PictureContext::keep_levels`] is set.
    pub packed: Vec<u8>,
    /// For each macroblock, which of its blocks have coefficients, as the row below sees them.
    pub nonzero: Vec<NonzeroFlags>,
}

/// The input that all macroblocks of a picture share.
pub struct PictureContext<'a> {
    /// The planes of the picture.
    pub source: &'a Planes,
    /// The segments of the picture.
    pub segmentation: &'a Segmentation,
    /// The constants of the decisions.
    pub constants: &'a Constants,
    /// Quantizers, by segment.
    pub quantizers: [Quantizers; 4],
    /// Lambdas, by segment.
    pub lambdas: [Lambdas; 4],
    /// For each macroblock, in raster order, how its errors weigh; the same for all if empty.
    pub visibilities: &'a [Visibility],
    /// Costs of the coefficients.
    pub costs: CoefficientCosts,
    /// Average bits, times 256, that the modes of a macroblock may cost.
    pub mode_budget: u64,
    /// Whether to keep the levels.
    pub keep_levels: bool,
}

impl PictureContext<'_> {
    /// Returns the lambdas of the macroblock at raster index `macroblock`.
    fn lambdas_of(&self, macroblock: usize) -> Lambdas {
        let lambdas = &self.lambdas[usize::from(self.segmentation.of(macroblock))];
        let factor = self.segmentation.lambda_factor(macroblock);
        let lambdas = lambdas.scaled(u32::from(factor));
        match self.visibilities.get(macroblock) {
            Some(visibility) => lambdas.with_feedback(visibility.lambda_factor),
            None => lambdas,
        }
    }

    /// Returns the weights of the errors of a macroblock's blocks.
    #[inline(always)]
    fn weights_of<K: BlockKernels>(&self, kernels: K, mb_x: usize, mb_y: usize) -> Weights {
        let at = (mb_x, mb_y);
        let mut weights = masking::weights(kernels, self.source, at, self.constants);
        if let Some(visibility) = self.visibilities.get(mb_y * self.source.mb_width + mb_x) {
            for (weight, &factor) in weights.iter_mut().zip(&visibility.block_weights) {
                *weight = (u32::from(*weight) * u32::from(factor) / 64).clamp(16, 4096) as u16;
            }
        }
        weights
    }
}

/// Consecutive macroblocks of one row.
#[derive(Clone, Debug)]
pub struct Span {
    /// Index of the row, from the top.
    pub mb_y: usize,
    /// Columns of the macroblocks.
    pub columns: Range<usize>,
}

/// Decides on the macroblocks of `span`, from left to right, and counts their tokens in `counts`.
///
/// `above_context` returns the context of the macroblock above a column, `None` above the picture;
/// it may wait for it. `publish` receives the context that each macroblock leaves to the row below,
/// and its reconstruction before the loop filter.
pub fn decide(
    simd: Simd,
    picture: &PictureContext<'_>,
    search: ModeSearch,
    span: Span,
    above_context: impl Fn(usize) -> Option<AboveContext>,
    publish: impl FnMut(usize, AboveContext, &Pixels),
    counts: &mut TokenCounts,
) -> MacroblockRow {
    with_instructions!(
        simd,
        scalar => decide_with(
            Scalar, picture, search, span, above_context, publish, counts,
        ),
        vectors => decide_with(
            vectors, picture, search, span, above_context, publish, counts,
        ),
    )
}

/// [`decide`] with one implementation of the kernels.
#[inline(always)]
fn decide_with<K: BlockKernels>(
    kernels: K,
    picture: &PictureContext<'_>,
    search: ModeSearch,
    Span { mb_y, columns }: Span,
    above_context: impl Fn(usize) -> Option<AboveContext>,
    mut publish: impl FnMut(usize, AboveContext, &Pixels),
    counts: &mut TokenCounts,
) -> MacroblockRow {
    let PictureContext {
        source,
        segmentation,
        keep_levels,
        ..
    } = *picture;
    let mb_width = source.mb_width;
    let mut row = MacroblockRow {
        records: Vec::with_capacity(columns.len()),
        packed: Vec::new(),
        nonzero: Vec::with_capacity(columns.len()),
    };
    let mut budget = picture.mode_budget * columns.len() as u64;
    let mut nonzero_left = NonzeroFlags::default();
    let mut modes_left = [SubblockMode::Dc; 4];
    let before = columns.start.checked_sub(1);
    let mut pixels_left = before.map(|mb_x| Pixels::load(source, mb_x, mb_y));
    let (mut above_left, mut above) = (
        before.and_then(&above_context),
        above_context(columns.start),
    );
    let mut trials = Trials::EMPTY;
    let mut coding = MacroblockCoding::EMPTY;
    for mb_x in columns.clone() {
        let has_right = mb_x + 1 < mb_width;
        let above_right = has_right.then(|| above_context(mb_x + 1)).flatten();
        let mut nonzero_above = above.map_or(NonzeroFlags::default(), |above| above.nonzero);

        let macroblock = mb_y * mb_width + mb_x;
        let segment = segmentation.of(macroblock);
        let reserved = u64::from(LEAST_MODE_COST) * (columns.end - 1 - mb_x) as u64;
        let mb = MacroblockContext {
            source: &Pixels::load(source, mb_x, mb_y),
            neighbors: &Neighbors::new(
                pixels_left.as_ref(),
                above_left.as_ref(),
                above.as_ref(),
                above_right.as_ref(),
            ),
            nonzero: [nonzero_above, nonzero_left],
            modes: [
                above.map_or([SubblockMode::Dc; 4], |above| above.modes),
                modes_left,
            ],
            quantizers: &picture.quantizers[usize::from(segment)],
            lambdas: &picture.lambdas_of(macroblock),
            weights: &picture.weights_of(kernels, mb_x, mb_y),
            costs: &picture.costs,
            mode_budget: BitCost::try_from(budget - reserved).unwrap_or(BitCost::MAX),
            search,
        };
        let mut pixels = Pixels::ZERO;
        let mode_cost = mode_decision::decide(kernels, &mb, &mut trials, &mut coding, &mut pixels);
        budget -= u64::from(mode_cost);

        let has_y2 = coding.luma.has_y2();
        let skipped = coding.levels.is_empty(has_y2);
        if skipped {
            nonzero_above.clear(has_y2);
            nonzero_left.clear(has_y2);
        } else {
            coding.levels.pack(
                has_y2,
                &mut nonzero_above,
                &mut nonzero_left,
                counts,
                &mut row.packed,
            );
        }
        let modes_above;
        (modes_above, modes_left) = coding.luma.contexts();
        let below = AboveContext {
            nonzero: nonzero_above,
            modes: modes_above,
            ..AboveContext::from_pixels(&pixels)
        };
        publish(mb_x, below, &pixels);
        (above_left, above) = (above, above_right);
        row.nonzero.push(nonzero_above);
        row.records.push(MacroblockRecord {
            segment,
            skipped,
            luma: coding.luma,
            chroma: coding.chroma,
        });
        if !keep_levels {
            row.packed.clear();
        }
        pixels_left = Some(pixels);
    }
    row.packed.shrink_to_fit();
    row
}
