//! The decision on all macroblocks of a picture, several rows at a time. A macroblock depends on
//! those above it and to its left (RFC 6386, section 5).
//!
//! The next row goes to the next free thread, and each row follows the one above it at a distance
//! of two macroblocks. The result does not depend on the number of threads: even the coefficient
//! costs are estimated on a sample of rows beforehand.
//!
//! ```text
//!    row 0   x x x x x x x x x .
//!    row 1   x x x x x x x .
//!    row 2   x x x x x .
//! ```

use super::constants::Constants;
use super::macroblock::{AboveContext, Pixels, PlaneRow};
use super::mode_decision::{Lambdas, ModeSearch, TrellisUse, Visibility};
use super::probability;
use super::quantize::Quantizers;
use super::rate::CoefficientCosts;
use super::row::{self, MacroblockRow, PictureContext, Span};
use super::segment::Segmentation;
use super::tables::DEFAULT_PROBABILITIES;
use super::token_counts::TokenCounts;
use crate::EncodeError;
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::ycbcr::Planes;
use std::sync::{Mutex, OnceLock};

/// The input of the decision pass.
#[derive(Clone, Copy)]
pub struct DecisionPass<'a> {
    /// The planes of the picture.
    pub source: &'a Planes,
    /// The segments of the picture.
    pub segmentation: &'a Segmentation,
    /// The constants of the decisions.
    pub constants: &'a Constants,
    /// How many modes and levels are tried.
    pub search: ModeSearch,
    /// How often each token is expected to occur; estimated on a sample if `None`.
    pub expected_counts: Option<&'a TokenCounts>,
    /// For each macroblock, in raster order, how its errors weigh; the same for all if empty.
    pub visibilities: &'a [Visibility],
    /// Average bits, times 256, that the modes of a macroblock may cost.
    pub mode_budget: u64,
    /// Vector instructions to use.
    pub simd: Simd,
    /// Threads to use, and what may cancel the work.
    pub workers: Workers<'a>,
    /// Whether to keep the levels.
    pub keep_levels: bool,
}

/// Decides on all macroblocks. Returns the rows from top to bottom, and how often each token
/// occurs. `reconstruction` receives the pixels before the loop filter.
pub fn decide(
    pass: &DecisionPass<'_>,
    reconstruction: Option<&mut Planes>,
) -> Result<(Vec<MacroblockRow>, TokenCounts), EncodeError> {
    let picture = pass.picture_context()?;
    let Planes {
        mb_width,
        mb_height,
        ..
    } = *pass.source;
    let published: Vec<Vec<OnceLock<AboveContext>>> = (0..mb_height)
        .map(|_| (0..mb_width).map(|_| OnceLock::new()).collect())
        .collect();
    let all_counts = Mutex::new(TokenCounts::new());
    let plane_rows: Vec<Mutex<PlaneRow<'_>>> = reconstruction
        .map(|planes| PlaneRow::divide(planes).map(Mutex::new).collect())
        .unwrap_or_default();
    // At a distance of two macroblocks, no more rows than this can be in progress at a time.
    let workers = pass.workers.at_most(mb_width.div_ceil(2));
    let rows = workers.run(mb_height, |mb_y| {
        let above = |mb_x: usize| (mb_y > 0).then(|| *published[mb_y - 1][mb_x].wait());
        let row_contexts = RowPublisher(&published[mb_y]);
        let mut counts = TokenCounts::new();
        let span = Span {
            mb_y,
            columns: 0..mb_width,
        };
        let mut plane_row = plane_rows
            .get(mb_y)
            .map(|row| row.lock().expect("each row has one thread"));
        let publish = |mb_x, above, pixels: &Pixels| {
            row_contexts.publish(mb_x, above);
            if let Some(row) = &mut plane_row {
                row.store(mb_x, pixels);
            }
        };
        let row = row::decide(
            pass.simd,
            &picture,
            pass.search,
            span,
            above,
            publish,
            &mut counts,
        );
        add_counts(&all_counts, &counts);
        row
    })?;
    let counts = all_counts.into_inner().expect("adding does not panic");
    Ok((rows, counts))
}

/// Measures the seconds that each macroblock of each row takes on one thread.
#[cfg(test)]
pub fn macroblock_times(pass: &DecisionPass<'_>) -> Vec<Vec<f64>> {
    let picture = pass.picture_context().expect("nothing cancels it");
    let mb_width = pass.source.mb_width;
    let mut above = vec![None; mb_width];
    let mut counts = TokenCounts::new();
    (0..pass.source.mb_height)
        .map(|mb_y| {
            let done = std::cell::RefCell::new((vec![std::time::Instant::now()], Vec::new()));
            let publish = |_, context, _: &Pixels| {
                let mut done = done.borrow_mut();
                done.0.push(std::time::Instant::now());
                done.1.push(Some(context));
            };
            let span = Span {
                mb_y,
                columns: 0..mb_width,
            };
            row::decide(
                pass.simd,
                &picture,
                pass.search,
                span,
                |mb_x| above[mb_x],
                publish,
                &mut counts,
            );
            let (times, own) = done.into_inner();
            above = own;
            let between = |w: &[std::time::Instant]| (w[1] - w[0]).as_secs_f64();
            times.windows(2).map(between).collect()
        })
        .collect()
}

fn add_counts(all: &Mutex<TokenCounts>, counts: &TokenCounts) {
    all.lock().expect("adding does not panic").add(counts);
}

/// Publishes the contexts of a row's macroblocks to the row below. If it is dropped before all are
/// published, because its thread panics, it publishes placeholders, so that no thread waits
/// forever.
struct RowPublisher<'a>(&'a [OnceLock<AboveContext>]);

impl RowPublisher<'_> {
    fn publish(&self, mb_x: usize, context: AboveContext) {
        self.0[mb_x].get_or_init(|| context);
    }
}

impl Drop for RowPublisher<'_> {
    fn drop(&mut self) {
        for slot in self.0 {
            slot.get_or_init(|| AboveContext::ABOVE_PICTURE);
        }
    }
}

/// The fractional part of the golden ratio times 65536. Multiples of it, modulo 1, are spread
/// evenly for any number of samples.
const GOLDEN_RATIO: usize = 40503;

impl<'a> DecisionPass<'a> {
    /// Builds the input that all macroblocks share.
    fn picture_context(&self) -> Result<PictureContext<'a>, EncodeError> {
        let quantizers = self
            .segmentation
            .indices
            .map(|index| Quantizers::new(index, self.segmentation.deltas, self.constants));
        let mut picture = PictureContext {
            source: self.source,
            segmentation: self.segmentation,
            constants: self.constants,
            quantizers,
            lambdas: std::array::from_fn(|i| {
                Lambdas::new(self.segmentation.indices[i], &quantizers[i], self.constants)
            }),
            visibilities: self.visibilities,
            costs: CoefficientCosts::new(&DEFAULT_PROBABILITIES),
            mode_budget: self.mode_budget,
            keep_levels: self.keep_levels,
        };
        match self.expected_counts {
            Some(counts) => picture.costs = costs_by(counts),
            None if self.search.trellis != TrellisUse::Never => self.sample_costs(&mut picture)?,
            None => {}
        }
        Ok(picture)
    }

    /// Estimates the coefficient costs from pieces of rows all over the picture, which are decided
    /// on as if the source were the reconstruction around them. Two rounds let all pieces of a
    /// round run at the same time: a few pieces with the default costs, then the others with the
    /// costs of the first.
    fn sample_costs(&self, picture: &mut PictureContext<'_>) -> Result<(), EncodeError> {
        /// Macroblocks of a piece.
        const PIECE_WIDTH: usize = 32;
        /// One macroblock in this many is sampled, up to `MAX_SAMPLE`; twice as many save nothing.
        const SPARSITY: usize = 16;
        const MAX_SAMPLE: usize = 1000;
        /// One piece in this many belongs to the first round.
        const FIRST_ROUND: usize = 4;
        let Planes {
            mb_width,
            mb_height,
            ..
        } = *self.source;
        let length = PIECE_WIDTH.min(mb_width);
        let pieces = (mb_width * mb_height / SPARSITY).min(MAX_SAMPLE) / length;
        let pieces = pieces.max(1);
        let (first, second): (Vec<usize>, Vec<usize>) =
            (0..pieces).partition(|piece| piece % FIRST_ROUND == 0);
        let all_counts = Mutex::new(TokenCounts::new());
        for round in [first, second] {
            self.workers.run(round.len(), |i| {
                let piece = round[i];
                let mb_y = (2 * piece + 1) * mb_height / (2 * pieces);
                let mb_x = (((piece * GOLDEN_RATIO) & 0xffff) * (mb_width - length + 1)) >> 16;
                let columns = mb_x..mb_x + length;
                let counts = self.count_tokens(picture, Span { mb_y, columns });
                add_counts(&all_counts, &counts);
            })?;
            let counts = all_counts.lock().expect("adding does not panic");
            picture.costs = costs_by(&counts);
        }
        Ok(())
    }

    /// Counts the tokens of the macroblocks of `span`, predicted from the source around them.
    fn count_tokens(&self, picture: &PictureContext<'_>, span: Span) -> TokenCounts {
        let mb_y = span.mb_y;
        let above_row = |mb_x| Pixels::load(self.source, mb_x, mb_y - 1);
        let above = |mb_x| (mb_y > 0).then(|| AboveContext::from_pixels(&above_row(mb_x)));
        let mut counts = TokenCounts::new();
        let search = self.search.for_sampling();
        row::decide(
            self.simd,
            picture,
            search,
            span,
            above,
            |_, _, _| (),
            &mut counts,
        );
        counts
    }
}

fn costs_by(counts: &TokenCounts) -> CoefficientCosts {
    CoefficientCosts::new(&probability::estimate(&counts.nodes()))
}
