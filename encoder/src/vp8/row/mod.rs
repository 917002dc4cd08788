//! The decisions on a row of macroblocks (RFC 6386, section 5), as one region of code that may use a machine's
//! instructions: calls into such regions cost as much as a kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use super::block::BlockKernels;
use super::encoder::MacroblockRecord;
use super::macroblock::{Bottom, Coding, Pixels, Surroundings};
use super::mode_decision::{self, LEAST_MODE_COST, Lambdas, Search, Situation};
use super::predict::SubblockMode;
use super::quantize::Quantizers;
use super::rate::{BitCost, CoefficientCosts};
use super::segment::Segmentation;
use super::token::NonZero;
use super::token_counts::TokenCounts;
use crate::cpu::{Instructions, Simd};
use crate::ycbcr::Planes;
use std::ops::Range;

/// The decisions on a row of macroblocks.
pub struct Row {
    /// From left to right.
    pub records: Vec<MacroblockRecord>,
    /// The packed levels of those that are not skipped.
    pub packed: Vec<u8>,
    /// Which blocks of them have coefficients, as the row below sees it.
    pub non_zero: Vec<NonZero>,
    /// What a decoder has before its loop filter, if that was wanted.
    pub pixels: Vec<Pixels>,
}

/// What is the same for all macroblocks.
pub struct Context<'a> {
    /// The picture.
    pub source: &'a Planes,
    /// Its segments.
    pub segmentation: &'a Segmentation,
    /// By segment.
    pub quantizers: [Quantizers; 4],
    /// By segment.
    pub lambdas: [Lambdas; 4],
    /// What coefficients cost.
    pub costs: CoefficientCosts,
    /// What the modes of a macroblock may cost on average.
    pub mode_budget: u64,
    /// Whether the reconstruction is wanted.
    pub keeps_pixels: bool,
}

/// Macroblocks of one row.
#[derive(Clone, Debug)]
pub struct Span {
    /// The row.
    pub mb_y: usize,
    /// Their columns.
    pub columns: Range<usize>,
}

/// Decides on the macroblocks of `span`, given the bottom of each macroblock above (none above the picture), which is asked
/// for from left to right and may have to be waited for. `publish` takes their own.
pub fn decide(
    simd: Simd,
    context: &Context<'_>,
    search: Search,
    span: Span,
    above: impl Fn(usize) -> Option<Bottom>,
    publish: impl Fn(usize, Bottom),
    counts: &mut TokenCounts,
) -> Row {
    match simd.0 {
        Instructions::Scalar => scalar::decide(context, search, span, above, publish, counts),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(avx2) => {
            avx2::decide(avx2, context, search, span, above, publish, counts)
        }
    }
}

/// [`decide`] with one kind of kernels.
#[inline(always)]
fn decide_with<K: BlockKernels>(
    kernels: K,
    context: &Context<'_>,
    search: Search,
    Span { mb_y, columns }: Span,
    above: impl Fn(usize) -> Option<Bottom>,
    publish: impl Fn(usize, Bottom),
    counts: &mut TokenCounts,
) -> Row {
    let Context {
        source,
        segmentation,
        keeps_pixels,
        ..
    } = *context;
    let mb_width = source.mb_width;
    let mut row = Row {
        records: Vec::with_capacity(columns.len()),
        packed: Vec::new(),
        non_zero: Vec::with_capacity(columns.len()),
        pixels: Vec::new(),
    };
    let mut budget = context.mode_budget * columns.len() as u64;
    let mut non_zero_left = NonZero::default();
    let mut modes_left = [SubblockMode::Dc; 4];
    let before = columns.start.checked_sub(1);
    let mut pixels_left = before.map(|mb_x| Pixels::load(source, mb_x, mb_y));
    let (mut above_left, mut bottom) = (before.and_then(&above), above(columns.start));
    let mut coding = Coding::EMPTY;
    for mb_x in columns.clone() {
        let has_right = mb_x + 1 < mb_width;
        let above_right = has_right.then(|| above(mb_x + 1)).flatten();
        let mut non_zero_above = bottom.map_or(NonZero::default(), |b| b.non_zero);

        let segment = segmentation.of(mb_y * mb_width + mb_x);
        let reserved = u64::from(LEAST_MODE_COST) * (columns.end - 1 - mb_x) as u64;
        let situation = Situation {
            source: &Pixels::load(source, mb_x, mb_y),
            around: &Surroundings::new(
                pixels_left.as_ref(),
                above_left.as_ref(),
                bottom.as_ref(),
                above_right.as_ref(),
            ),
            non_zero: [non_zero_above, non_zero_left],
            modes: [
                bottom.map_or([SubblockMode::Dc; 4], |b| b.modes),
                modes_left,
            ],
            quantizers: &context.quantizers[usize::from(segment)],
            lambdas: &context.lambdas[usize::from(segment)],
            costs: &context.costs,
            mode_budget: BitCost::try_from(budget - reserved).unwrap_or(BitCost::MAX),
            search,
        };
        let mut pixels = Pixels::ZERO;
        let mode_cost = mode_decision::decide(kernels, &situation, &mut coding, &mut pixels);
        budget -= u64::from(mode_cost);

        let has_y2 = coding.luma.has_y2();
        let skipped = coding.levels.is_empty(has_y2);
        if skipped {
            non_zero_above.clear(has_y2);
            non_zero_left.clear(has_y2);
        } else {
            coding.levels.pack(
                has_y2,
                &mut non_zero_above,
                &mut non_zero_left,
                counts,
                &mut row.packed,
            );
        }
        let modes_above;
        (modes_above, modes_left) = coding.luma.contexts();
        let own = Bottom {
            non_zero: non_zero_above,
            modes: modes_above,
            ..Bottom::of(&pixels)
        };
        publish(mb_x, own);
        (above_left, bottom) = (bottom, above_right);
        row.non_zero.push(non_zero_above);
        row.records.push(MacroblockRecord {
            segment,
            skipped,
            luma: coding.luma,
            chroma: coding.chroma,
        });
        if keeps_pixels {
            row.pixels.push(pixels);
        }
        pixels_left = Some(pixels);
    }
    row.packed.shrink_to_fit();
    row
}
