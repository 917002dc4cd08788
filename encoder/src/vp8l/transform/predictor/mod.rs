//! The predictor transform: RFC 9649, section 3.5.1.
//!
//! [`scalar`] defines the kernels on rows; the vector implementation returns the same.

mod scalar;
#[cfg(test)]
mod tests;
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_feature = "simd128"
    )),
    allow(dead_code, reason = "there are no vectors to compute with")
)]
mod vector;

use super::subtract;
use crate::EncodeError;
use crate::checks::Checks;
use crate::cpu::{Simd, with_instructions};
use crate::threads::Workers;
use std::ops::Range;

/// Number of prediction modes.
pub const MODES: usize = 14;

/// The prediction of mode 0.
const BLACK: u32 = 0xFF00_0000;

/// Approximate bits of a block's residuals, by mode.
type Costs = [u32; MODES];

/// Consecutive pixels and those above them, four bytes each: blue, green, red, alpha.
pub struct Rows<'a> {
    /// The pixel before the pixels, and the pixels.
    own: &'a [u8],
    /// The pixels above `own`, and the next one in memory.
    above: &'a [u8],
}

/// The mode of each block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Base-2 logarithm of a block's side, 2 to 9.
    pub block_bits: u32,
    /// Number of blocks in a row.
    pub across: usize,
    /// Mode of each block, in raster order.
    pub by_block: Vec<u8>,
}

impl Modes {
    /// One mode for all blocks of a picture of this size, with sides of `2^block_bits`.
    pub fn same(mode: u8, block_bits: u32, width: usize, height: usize) -> Modes {
        let across = width.div_ceil(1 << block_bits);
        Modes {
            block_bits,
            across,
            by_block: vec![mode; across * height.div_ceil(1 << block_bits)],
        }
    }

    /// Returns the image as it is written: modes in green.
    pub fn pixels(&self) -> Vec<u32> {
        self.by_block
            .iter()
            .map(|mode| BLACK | u32::from(*mode) << 8)
            .collect()
    }

    /// Returns the runs of columns in row `y` with the same mode, from right to left.
    fn runs(&self, y: usize, width: usize) -> impl Iterator<Item = (Range<usize>, u8)> {
        let blocks = &self.by_block[(y >> self.block_bits) * self.across..][..self.across];
        runs(blocks).map(move |(run, mode)| {
            let end = (run.end << self.block_bits).min(width);
            (run.start << self.block_bits..end, mode)
        })
    }
}

/// Returns the runs of equal values, from the last to the first.
pub fn runs<T: Copy + PartialEq>(values: &[T]) -> impl Iterator<Item = (Range<usize>, T)> {
    let mut start = values.len();
    values.chunk_by(|a, b| a == b).rev().map(move |run| {
        start -= run.len();
        (start..start + run.len(), run[0])
    })
}

/// Buffers for [`Rows`].
pub struct RowBytes {
    own: Vec<u8>,
    above: Vec<u8>,
}

impl RowBytes {
    /// Buffers for rows of up to `width` pixels.
    pub fn new(width: usize) -> RowBytes {
        RowBytes {
            own: vec![0; (width + 1) * 4],
            above: vec![0; (width + 2) * 4],
        }
    }

    /// Loads the columns `run` of row `y`, from row 1 on. The pixel before the first column is not
    /// used: there a decoder predicts from above, whatever the mode.
    pub fn fill(&mut self, pixels: &[u32], width: usize, y: usize, run: &Range<usize>) -> Rows<'_> {
        let first = y * width + run.start;
        let end = y * width + run.end;
        let above = (first - width).saturating_sub(1);
        let missing = above + 1 - (first - width);
        let own = &mut self.own[..(run.len() + 1) * 4];
        store(own, &pixels[first - 1..end]);
        self.above[..missing * 4].fill(0);
        store(&mut self.above[missing * 4..], &pixels[above..=end - width]);
        Rows {
            own,
            above: &self.above[..(run.len() + 2) * 4],
        }
    }
}

/// Stores pixels as bytes.
fn store(bytes: &mut [u8], pixels: &[u32]) {
    for (bytes, pixel) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(pixels) {
        *bytes = pixel.to_le_bytes();
    }
}

/// Replaces `pixels` by the residuals of their prediction, sample by sample.
pub fn subtract_predicted(
    pixels: &mut [u32],
    width: usize,
    modes: &Modes,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    let mut rows = RowBytes::new(width);
    let mut residuals = vec![0; width * 4];
    // Pixels predict those after them, so the last ones are replaced first.
    let mut checks = Checks::new(workers);
    for y in (1..pixels.len() / width).rev() {
        let row = y * width;
        checks.at(row)?;
        let first = subtract(pixels[row], pixels[row - width]);
        for (run, mode) in modes.runs(y, width) {
            if mode == 0 {
                subtract_black(&mut pixels[row..][run]);
                continue;
            }
            let residuals = &mut residuals[..run.len() * 4];
            residual(mode, &rows.fill(pixels, width, y, &run), residuals, simd);
            for (pixel, bytes) in pixels[row..][run]
                .iter_mut()
                .zip(residuals.as_chunks::<4>().0)
            {
                *pixel = u32::from_le_bytes(*bytes);
            }
        }
        pixels[row] = first;
    }
    // In the first row, the first pixel is predicted as black, the others from the left.
    for x in (1..width).rev() {
        pixels[x] = subtract(pixels[x], pixels[x - 1]);
    }
    pixels[0] = subtract(pixels[0], BLACK);
    Ok(())
}

/// Computes the residuals of mode 0.
fn subtract_black(pixels: &mut [u32]) {
    for pixel in pixels {
        *pixel = pixel.wrapping_sub(BLACK);
    }
}

/// Computes the residuals of `modes` from `predicted`, the residuals of other modes that differ
/// only in having fewer blocks of mode 0.
pub fn restrict_residuals(
    pixels: &[u32],
    predicted: &[u32],
    width: usize,
    modes: &Modes,
    workers: Workers<'_>,
) -> Result<Vec<u32>, EncodeError> {
    let mut out = Vec::with_capacity(pixels.len());
    let mut checks = Checks::new(workers);
    for (y, predicted) in predicted.chunks_exact(width).enumerate() {
        checks.at(y * width)?;
        let start = out.len();
        out.extend_from_slice(predicted);
        if y == 0 {
            continue;
        }
        let row = &mut out[start..];
        for (run, mode) in modes.runs(y, width) {
            if mode == 0 {
                row[run.clone()].copy_from_slice(&pixels[y * width..][run.clone()]);
                subtract_black(&mut row[run]);
            }
        }
        row[0] = predicted[0];
    }
    Ok(out)
}

/// The blocks of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// Base-2 logarithm of a block's side, 2 to 9.
    pub bits: u32,
    /// Whether each block may be predicted.
    pub may_predict: &'a [bool],
    /// One row in this many is measured, and stands for all of them.
    pub row_step: usize,
}

/// Chooses the mode with the smallest residuals for each block that may be predicted, and 0 for the
/// others. Returns the modes, and the approximate bits of each block's residuals.
pub fn choose(
    pixels: &[u32],
    width: usize,
    blocks: Blocks<'_>,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<(Modes, Vec<u32>), EncodeError> {
    let height = pixels.len() / width;
    let Blocks { may_predict, .. } = blocks;
    let block = 1usize << blocks.bits;
    let across = width.div_ceil(block);
    let rows = workers.run_checked(height.div_ceil(block), |block_row| {
        let may_predict = &may_predict[block_row * across..][..across];
        let mut bytes = RowBytes::new(width);
        let mut scratch = vec![0; width * 4];
        let mut costs = vec![[0; MODES]; across];
        let rows = (block_row * block).max(1)..(block_row * block + block).min(height);
        for y in rows.step_by(blocks.row_step) {
            workers.check()?;
            for (run, may_predict) in runs(may_predict) {
                if may_predict {
                    let columns = run.start * block..(run.end * block).min(width);
                    let scratch = &mut scratch[..columns.len() * 4];
                    let rows = bytes.fill(pixels, width, y, &columns);
                    add_costs(&rows, block, scratch, &mut costs[run], simd);
                }
            }
        }
        Ok(costs)
    })?;
    let mut modes: Vec<u8> = Vec::with_capacity(across * rows.len());
    let mut least = Vec::with_capacity(across * rows.len());
    for costs in rows.iter().flatten() {
        let i = modes.len();
        if i.is_multiple_of(across) {
            workers.check()?;
        }
        let left = if i.is_multiple_of(across) {
            0
        } else {
            modes[i - 1]
        };
        let above = if i >= across { modes[i - across] } else { left };
        let mode = if may_predict[i] {
            cheapest(costs, left, above)
        } else {
            0
        };
        modes.push(mode);
        least.push(costs[usize::from(mode)] * blocks.row_step as u32);
    }
    let modes = Modes {
        block_bits: blocks.bits,
        across,
        by_block: modes,
    };
    Ok((modes, least))
}

/// Computes the residuals of `mode` for the first `out.len() / 4` pixels of `rows`.
pub fn residual(mode: u8, rows: &Rows<'_>, out: &mut [u8], simd: Simd) {
    with_instructions!(
        simd,
        scalar => scalar::residual(mode, rows, out),
        vectors => vector::residual(vectors, mode, rows, out),
    );
}

/// Adds the costs of one row's residuals to `costs`, for every mode. Blocks are `block` pixels
/// wide, and the row has `scratch.len() / 4` pixels.
fn add_costs(rows: &Rows<'_>, block: usize, scratch: &mut [u8], costs: &mut [Costs], simd: Simd) {
    with_instructions!(
        simd,
        scalar => scalar::add_costs(rows, block, scratch, costs),
        vectors => vector::add_costs(vectors, rows, block, scratch, costs),
    );
}

/// Returns the cheapest mode; a neighbor's mode wins if it costs hardly more.
fn cheapest(costs: &Costs, left: u8, above: u8) -> u8 {
    /// Bits for a mode that differs from the neighbors'.
    const SWITCH_COST: u32 = 8;
    let cost = |mode: u8| {
        let is_known = mode == left || mode == above;
        let switch_cost = if is_known { 0 } else { SWITCH_COST };
        (costs[usize::from(mode)] + switch_cost, mode != left, mode)
    };
    (0..MODES as u8)
        .min_by_key(|mode| cost(*mode))
        .expect("there are modes")
}
