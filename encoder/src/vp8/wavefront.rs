//! The decisions on all macroblocks of a picture, several rows at a time (RFC 6386, section 5: a macroblock
//! depends on those above and to the left).
//!
//! Row after row goes to the next free thread of the workers, and each follows the one above it at a distance of two
//! macroblocks. Nothing depends on how many threads there are: not even what coefficients are thought to cost, which is found
//! on a sample of rows beforehand.
//!
//! ```text
//!    row 0   x x x x x x x x x .
//!    row 1   x x x x x x x .
//!    row 2   x x x x x .
//! ```

use super::macroblock::{Bottom, Pixels};
use super::mode_decision::{Lambdas, Search};
use super::probability;
use super::quantize::Quantizers;
use super::rate::CoefficientCosts;
use super::row::{self, Context, Row, Span};
use super::segment::Segmentation;
use super::tables::DEFAULT_PROBABILITIES;
use super::token_counts::TokenCounts;
use crate::EncodeError;
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::ycbcr::Planes;
use std::sync::{Mutex, OnceLock};

/// What the decisions are made from.
pub struct Task<'a> {
    /// The picture.
    pub source: &'a Planes,
    /// Its segments.
    pub segmentation: &'a Segmentation,
    /// How much is tried.
    pub search: Search,
    /// How often each token is thought to occur; found on a sample if `None`.
    pub expected: Option<&'a TokenCounts>,
    /// What the modes of a macroblock may cost on average.
    pub mode_budget: u64,
    /// Vector instructions to use.
    pub simd: Simd,
    /// Who works on it.
    pub workers: Workers<'a>,
    /// Whether the reconstruction is wanted.
    pub keeps_pixels: bool,
}

/// Decides on all macroblocks. Gives the rows from top to bottom, and how often each token occurs.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn decide(task: &Task<'_>) -> Result<(Vec<Row>, TokenCounts), EncodeError> {
    let context = task.context()?;
    let Planes {
        mb_width,
        mb_height,
        ..
    } = *task.source;
    let bottoms: Vec<Vec<OnceLock<Bottom>>> = (0..mb_height)
        .map(|_| (0..mb_width).map(|_| OnceLock::new()).collect())
        .collect();
    let all_counts = Mutex::new(TokenCounts::new());
    // At a distance of two macroblocks, no more rows than that can be worked on at a time.
    let workers = task.workers.at_most(mb_width.div_ceil(2));
    let rows = workers.run(mb_height, |mb_y| {
        let above = |mb_x: usize| (mb_y > 0).then(|| *bottoms[mb_y - 1][mb_x].wait());
        let done = Published(&bottoms[mb_y]);
        let mut counts = TokenCounts::new();
        let span = Span {
            mb_y,
            columns: 0..mb_width,
        };
        let publish = |mb_x, bottom| done.publish(mb_x, bottom);
        let row = row::decide(
            task.simd,
            &context,
            task.search,
            span,
            above,
            publish,
            &mut counts,
        );
        add(&all_counts, &counts);
        row
    })?;
    let counts = all_counts.into_inner().expect("adding does not panic");
    Ok((rows, counts))
}

/// Seconds that each macroblock of each row takes.
#[cfg(test)]
pub fn macroblock_times(task: &Task<'_>) -> Vec<Vec<f64>> {
    let context = task.context().expect("is waited for");
    let mb_width = task.source.mb_width;
    let mut above = vec![None; mb_width];
    let mut counts = TokenCounts::new();
    (0..task.source.mb_height)
        .map(|mb_y| {
            let done = std::cell::RefCell::new((vec![std::time::Instant::now()], Vec::new()));
            let publish = |_, bottom| {
                let mut done = done.borrow_mut();
                done.0.push(std::time::Instant::now());
                done.1.push(Some(bottom));
            };
            let span = Span {
                mb_y,
                columns: 0..mb_width,
            };
            row::decide(
                task.simd,
                &context,
                task.search,
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

fn add(all: &Mutex<TokenCounts>, counts: &TokenCounts) {
    all.lock().expect("adding does not panic").add(counts);
}

/// The bottoms of a row's macroblocks, for the row below to wait for. One that is dropped before it is complete, because
/// its thread panics, is completed with nothing, so that nobody waits for ever.
struct Published<'a>(&'a [OnceLock<Bottom>]);

impl Published<'_> {
    fn publish(&self, mb_x: usize, bottom: Bottom) {
        self.0[mb_x].get_or_init(|| bottom);
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        for bottom in self.0 {
            bottom.get_or_init(|| Bottom::OUTSIDE);
        }
    }
}

/// The fractional part of the golden ratio, of 65536: steps of that size spread evenly, however many there are.
const GOLDEN_RATIO: usize = 40503;

impl<'a> Task<'a> {
    /// What is the same for all macroblocks.
    fn context(&self) -> Result<Context<'a>, EncodeError> {
        let quantizers = self
            .segmentation
            .indices
            .map(|index| Quantizers::new(index, self.segmentation.deltas));
        let mut context = Context {
            source: self.source,
            segmentation: self.segmentation,
            quantizers,
            lambdas: std::array::from_fn(|i| {
                Lambdas::new(&quantizers[i], self.segmentation.activities[i])
            }),
            costs: CoefficientCosts::new(&DEFAULT_PROBABILITIES),
            mode_budget: self.mode_budget,
            keeps_pixels: self.keeps_pixels,
        };
        match self.expected {
            Some(counts) => context.costs = costs_by(counts),
            None => self.sample_costs(&mut context)?,
        }
        Ok(context)
    }

    /// Estimates what coefficients cost from pieces of rows all over the picture, which are decided on as if the source
    /// were the reconstruction around them. That takes two rounds, so that all pieces of a round can be decided on at
    /// the same time: a few by the default costs, then the others by what those cost.
    fn sample_costs(&self, context: &mut Context<'_>) -> Result<(), EncodeError> {
        /// Macroblocks in a row that are decided on together.
        const PIECE: usize = 32;
        /// One macroblock in this many, and as many as make a sample: twice as many save nothing.
        const SPARSITY: usize = 16;
        const SAMPLE: usize = 1000;
        /// One piece in this many belongs to the first round.
        const FIRST: usize = 4;
        let Planes {
            mb_width,
            mb_height,
            ..
        } = *self.source;
        let length = PIECE.min(mb_width);
        let pieces = (mb_width * mb_height / SPARSITY).min(SAMPLE) / length;
        let pieces = pieces.max(1);
        let (first, second): (Vec<usize>, Vec<usize>) =
            (0..pieces).partition(|piece| piece % FIRST == 0);
        let all_counts = Mutex::new(TokenCounts::new());
        for round in [first, second] {
            self.workers.run(round.len(), |i| {
                let piece = round[i];
                let mb_y = (2 * piece + 1) * mb_height / (2 * pieces);
                let mb_x = (((piece * GOLDEN_RATIO) & 0xffff) * (mb_width - length + 1)) >> 16;
                let columns = mb_x..mb_x + length;
                let counts = self.count(context, Span { mb_y, columns });
                add(&all_counts, &counts);
            })?;
            let counts = all_counts.lock().expect("adding does not panic");
            context.costs = costs_by(&counts);
        }
        Ok(())
    }

    /// The tokens of the macroblocks of `span`, with the source around it.
    fn count(&self, context: &Context<'_>, span: Span) -> TokenCounts {
        let mb_y = span.mb_y;
        let bottom = |mb_x| Bottom::of(&Pixels::load(self.source, mb_x, mb_y - 1));
        let above = |mb_x| (mb_y > 0).then(|| bottom(mb_x));
        let mut counts = TokenCounts::new();
        let search = self.search.of_sample();
        row::decide(
            self.simd,
            context,
            search,
            span,
            above,
            |_, _| (),
            &mut counts,
        );
        counts
    }
}

fn costs_by(counts: &TokenCounts) -> CoefficientCosts {
    CoefficientCosts::new(&probability::estimate(&counts.nodes()))
}
