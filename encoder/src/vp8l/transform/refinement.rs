//! Chooses prediction modes (RFC 9649, section 3.5.1) and color factors (section 3.5.2) by the
//! entropy of their residuals.
//!
//! A first choice went by the size of the residuals. From then on, blocks with similar residuals
//! share counts of them, as they will share prefix codes in the end, and each block takes the mode,
//! the factors and the counts with which it costs the least. A few rounds of that converge.

use super::color::{self, Factors};
use super::predictor::{self, MODES, Modes};
use super::residual_classes::{self, ResidualClasses};
use crate::EncodeError;
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::vp8l::entropy::{BIT_SHIFT, log2};
use std::ops::Range;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Refinement {
    /// Most classes of blocks.
    pub classes: usize,
    /// Number of rounds.
    pub rounds: usize,
    /// Base-2 logarithm of the side of the color transform's blocks, at least that of the
    /// predictor's; `None` without the color transform.
    pub color_bits: Option<u32>,
}

/// A prediction and its residuals.
pub struct Refined {
    /// The mode of each block.
    pub modes: Modes,
    /// The factors of the color transform.
    pub factors: Option<Factors>,
    /// Pixels after both transforms.
    pub residuals: Vec<u32>,
}

/// Improves `modes`, but for blocks of mode 0, which stay. `pixels` are those before prediction.
pub fn refine(
    pixels: &[u32],
    width: usize,
    mut modes: Modes,
    search: Refinement,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Refined, EncodeError> {
    let mut residuals = workers.copy(pixels)?;
    predictor::subtract_predicted(&mut residuals, width, &modes, simd, workers)?;
    let mut classes = ResidualClasses::by_size(&residuals, width, &modes, search.classes, workers)?;
    classes.measure(&residuals, width, &modes, workers)?;
    let mut factors: Option<Factors> = None;
    for round in 1..=search.rounds {
        if let Some(bits) = search.color_bits {
            let before = factors.as_ref();
            let chosen = color::choose(&residuals, width, &modes, bits, &classes, before, workers)?;
            color::apply(&mut residuals, width, &chosen, workers)?;
            classes.measure(&residuals, width, &modes, workers)?;
            factors = Some(chosen);
        }
        let trial = Trial {
            pixels,
            width,
            modes: &modes,
            factors: factors.as_ref(),
            classes: &classes,
        };
        let costs = trial.costs(simd, workers)?;
        choose_modes(&mut modes, &costs);
        residuals.copy_from_slice(pixels);
        predictor::subtract_predicted(&mut residuals, width, &modes, simd, workers)?;
        if round == search.rounds {
            break;
        }
        // The classes are those of residuals after both transforms; the next factors are chosen for
        // residuals of the prediction alone.
        if let Some(factors) = &factors {
            color::apply(&mut residuals, width, factors, workers)?;
        }
        classes.choose(&residuals, width, &modes, workers)?;
        classes.measure(&residuals, width, &modes, workers)?;
        if factors.is_some() {
            residuals.copy_from_slice(pixels);
            predictor::subtract_predicted(&mut residuals, width, &modes, simd, workers)?;
        }
    }
    if let Some(factors) = &factors {
        color::apply(&mut residuals, width, factors, workers)?;
    }
    Ok(Refined {
        modes,
        factors,
        residuals,
    })
}

/// All modes but 0, which is as good as no prediction.
const PREDICTING: Range<usize> = 1..MODES;

/// Cost of a block with each mode.
type Costs = [u32; MODES];

/// Takes the mode with the least cost for each block.
fn choose_modes(modes: &mut Modes, costs: &[Costs]) {
    // The bits of the modes themselves follow from how many blocks have each mode now.
    let mut counts = [1u32; MODES];
    for mode in &modes.by_block {
        counts[usize::from(*mode)] += 1;
    }
    let total: u32 = counts.iter().sum();
    let own = counts.map(|count| (log2(total) - log2(count)) >> (16 - BIT_SHIFT));
    for (mode, costs) in modes.by_block.iter_mut().zip(costs) {
        if *mode > 0 {
            let cost = |mode: &usize| costs[*mode] + own[*mode];
            *mode = PREDICTING.min_by_key(cost).expect("there are modes") as u8;
        }
    }
}

/// The pixels whose residuals are counted with all modes.
struct Trial<'a> {
    pixels: &'a [u32],
    width: usize,
    modes: &'a Modes,
    factors: Option<&'a Factors>,
    classes: &'a ResidualClasses,
}

impl Trial<'_> {
    /// Returns the costs of all blocks that are predicted.
    fn costs(&self, simd: Simd, workers: Workers<'_>) -> Result<Vec<Costs>, EncodeError> {
        let rows = self.modes.by_block.len() / self.modes.across;
        let rows = workers.run_checked(rows, |row| self.costs_of_row(row, simd, workers))?;
        Ok(rows.concat())
    }

    /// Returns the costs of a row of blocks.
    fn costs_of_row(
        &self,
        block_row: usize,
        simd: Simd,
        workers: Workers<'_>,
    ) -> Result<Vec<Costs>, EncodeError> {
        let (width, modes) = (self.width, self.modes);
        let height = self.pixels.len() / width;
        let block = 1 << modes.block_bits;
        let first = block_row * modes.across;
        let is_predicted: Vec<bool> = modes.by_block[first..first + modes.across]
            .iter()
            .map(|mode| *mode > 0)
            .collect();
        let mut costs = vec![[0; MODES]; modes.across];
        let mut bytes = predictor::RowBytes::new(width);
        let mut residuals = vec![0; width * 4];
        // The first row is predicted from the left, whatever the mode.
        for y in (block_row * block).max(1)..height.min((block_row + 1) * block) {
            workers.check()?;
            for (run, is_predicted) in predictor::runs(&is_predicted) {
                if !is_predicted {
                    continue;
                }
                let columns = run.start * block..(run.end * block).min(width);
                let residuals = &mut residuals[..columns.len() * 4];
                let rows = bytes.fill(self.pixels, width, y, &columns);
                for mode in PREDICTING {
                    predictor::residual(mode as u8, &rows, residuals, simd);
                    for (x, residuals) in run.clone().zip(residuals.chunks(block * 4)) {
                        let by_value = self.classes.costs_in(first + x);
                        let factors = self.factors.map(|f| f.at_block(x, block_row, modes));
                        let pixels = residuals.as_chunks::<4>().0;
                        let cost = |bytes: &[u8; 4]| {
                            let pixel = u32::from_le_bytes(*bytes);
                            let pixel = factors.map_or(pixel, |factors| factors.apply(pixel));
                            residual_classes::cost(by_value, pixel)
                        };
                        costs[x][mode] += pixels.iter().map(cost).sum::<u32>();
                    }
                }
            }
        }
        Ok(costs)
    }
}
