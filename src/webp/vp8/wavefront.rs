//! The decisions on all macroblocks of a picture, several rows at a time (RFC 6386, section 5: a macroblock
//! depends on those above and to the left).
//!
//! Row after row goes to the next free thread of the crew, and each follows the one above it at a distance of two
//! macroblocks. Nothing depends on how many threads there are: not even what coefficients are thought to cost, which is found
//! on a sample of rows beforehand.
//!
//! ```text
//!    row 0   x x x x x x x x x .
//!    row 1   x x x x x x x .
//!    row 2   x x x x x .
//! ```

use super::encoder::MacroblockRecord;
use super::macroblock::{Bottom, Coding, Pixels, Surroundings};
use super::mode_decision::{self, Effort, LEAST_MODE_COST, Lambdas, Situation};
use super::predict::SubblockMode;
use super::probability;
use super::quantize::Quantizers;
use super::rate::{BitCost, CoefficientCosts};
use super::segment::Segmentation;
use super::tables::DEFAULT_PROBABILITIES;
use super::token::NonZero;
use super::token_counts::TokenCounts;
use crate::webp::EncodeError;
use crate::webp::cpu::Simd;
use crate::webp::crew::Crew;
use crate::webp::yuv::Planes;
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

/// What the decisions are made from.
pub struct Task<'a> {
    /// The picture.
    pub source: &'a Planes,
    /// Its segments.
    pub segmentation: &'a Segmentation,
    /// How much is tried.
    pub effort: Effort,
    /// What the modes of a macroblock may cost on average.
    pub mode_budget: u64,
    /// Vector instructions to use.
    pub simd: Simd,
    /// Who works on it.
    pub crew: Crew<'a>,
    /// Whether the reconstruction is wanted.
    pub keeps_pixels: bool,
}

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

/// Decides on all macroblocks. Gives the rows from top to bottom, and how often each token occurs.
///
/// # Errors
/// [`EncodeError::Cancelled`] if the crew's caller waits no more.
pub fn decide(task: &Task<'_>) -> Result<(Vec<Row>, TokenCounts), EncodeError> {
    let context = Context::new(task)?;
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
    let crew = task.crew.at_most(mb_width.div_ceil(2));
    let rows = crew.run(mb_height, |mb_y| {
        let above = |mb_x: usize| (mb_y > 0).then(|| *bottoms[mb_y - 1][mb_x].wait());
        let done = Published(&bottoms[mb_y]);
        let mut counts = TokenCounts::new();
        let row = context.decide_row(
            task.effort,
            (mb_y, 0..mb_width),
            above,
            |mb_x, bottom| done.publish(mb_x, bottom),
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
    let context = Context::new(task).expect("is waited for");
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
            context.decide_row(
                task.effort,
                (mb_y, 0..mb_width),
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

/// A task, and what is the same for all of its macroblocks.
struct Context<'a> {
    task: &'a Task<'a>,
    quantizers: [Quantizers; 4],
    lambdas: [Lambdas; 4],
    costs: CoefficientCosts,
}

impl<'a> Context<'a> {
    fn new(task: &'a Task<'a>) -> Result<Context<'a>, EncodeError> {
        let quantizers = task.segmentation.indices.map(Quantizers::new);
        let lambdas = quantizers.map(|q| Lambdas::new(&q));
        let costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let mut context = Context {
            task,
            quantizers,
            lambdas,
            costs,
        };
        context.sample_costs()?;
        Ok(context)
    }

    /// Estimates what coefficients cost from pieces of rows all over the picture, which are decided on as if the source
    /// were the reconstruction around them. That takes two rounds, so that all pieces of a round can be decided on at
    /// the same time: a few by the default costs, then the others by what those cost.
    fn sample_costs(&mut self) -> Result<(), EncodeError> {
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
        } = *self.task.source;
        let length = PIECE.min(mb_width);
        let pieces = (mb_width * mb_height / SPARSITY).min(SAMPLE) / length;
        let pieces = pieces.max(1);
        let (first, second): (Vec<usize>, Vec<usize>) =
            (0..pieces).partition(|piece| piece % FIRST == 0);
        let all_counts = Mutex::new(TokenCounts::new());
        for round in [first, second] {
            self.task.crew.run(round.len(), |i| {
                let piece = round[i];
                let mb_y = (2 * piece + 1) * mb_height / (2 * pieces);
                let mb_x = (((piece * GOLDEN_RATIO) & 0xffff) * (mb_width - length + 1)) >> 16;
                let counts = self.count_piece(mb_y, mb_x..mb_x + length);
                add(&all_counts, &counts);
            })?;
            let counts = all_counts.lock().expect("adding does not panic");
            self.costs = CoefficientCosts::new(&probability::estimate(&counts.nodes()));
        }
        Ok(())
    }

    /// The tokens of a piece of row `mb_y`, with the source around it.
    fn count_piece(&self, mb_y: usize, columns: Range<usize>) -> TokenCounts {
        let source = self.task.source;
        let above = |mb_x| (mb_y > 0).then(|| Bottom::of(&Pixels::load(source, mb_x, mb_y - 1)));
        let mut counts = TokenCounts::new();
        self.decide_row(
            Effort::LEAST,
            (mb_y, columns),
            above,
            |_, _| (),
            &mut counts,
        );
        counts
    }

    /// Decides with `effort` on the macroblocks in some `columns` of row `mb_y`, given the bottom of each above (none above the picture),
    /// which is asked for from left to right and may have to be waited for. `publish` takes their own.
    fn decide_row(
        &self,
        effort: Effort,
        (mb_y, columns): (usize, Range<usize>),
        above: impl Fn(usize) -> Option<Bottom>,
        publish: impl Fn(usize, Bottom),
        counts: &mut TokenCounts,
    ) -> Row {
        let Task {
            source,
            segmentation,
            simd,
            keeps_pixels,
            ..
        } = *self.task;
        let mb_width = source.mb_width;
        let mut row = Row {
            records: Vec::with_capacity(columns.len()),
            packed: Vec::new(),
            non_zero: Vec::with_capacity(columns.len()),
            pixels: Vec::new(),
        };
        let mut budget = self.task.mode_budget * columns.len() as u64;
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
                quantizers: &self.quantizers[usize::from(segment)],
                lambdas: &self.lambdas[usize::from(segment)],
                costs: &self.costs,
                mode_budget: BitCost::try_from(budget - reserved).unwrap_or(BitCost::MAX),
                effort,
            };
            let mut pixels = Pixels::ZERO;
            let mode_cost = mode_decision::decide(simd, &situation, &mut coding, &mut pixels);
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
}
