//! The predictor transform: RFC 9649, section 3.5.1.
//!
//! [`scalar`] defines what is done to a row; its twin gives the same numbers.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
#[cfg(test)]
mod tests;

use super::subtract;
use crate::EncodeError;
use crate::cpu::{Instructions, Simd};
use crate::threads::Workers;
use std::ops::Range;

/// Ways to predict a pixel.
pub const MODES: usize = 14;

/// What mode 0 predicts.
const BLACK: u32 = 0xFF00_0000;

/// What each mode leaves of a block: bits, roughly.
type Costs = [u32; MODES];

/// Pixels side by side and those above them, four bytes each: blue, green, red, alpha.
struct Rows<'a> {
    /// The pixel before them, and they.
    own: &'a [u8],
    /// Those above `own`, and the one that follows in memory.
    above: &'a [u8],
}

/// Which mode each block uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes {
    /// log2 of a block's side, 2 to 9.
    pub block_bits: u32,
    /// Blocks across.
    pub across: usize,
    /// By block.
    pub by_block: Vec<u8>,
}

impl Modes {
    /// The image as it is written: modes in green.
    pub fn pixels(&self) -> Vec<u32> {
        self.by_block
            .iter()
            .map(|mode| BLACK | u32::from(*mode) << 8)
            .collect()
    }

    /// The columns of row `y` that have a mode in common, and the mode, from right to left.
    fn runs(&self, y: usize, width: usize) -> impl Iterator<Item = (Range<usize>, u8)> {
        let blocks = &self.by_block[(y >> self.block_bits) * self.across..][..self.across];
        runs(blocks).map(move |(run, mode)| {
            let end = (run.end << self.block_bits).min(width);
            (run.start << self.block_bits..end, mode)
        })
    }
}

/// Where values that follow each other are the same, and the value, from the last to the first.
fn runs<T: Copy + PartialEq>(values: &[T]) -> impl Iterator<Item = (Range<usize>, T)> {
    let mut start = values.len();
    values.chunk_by(|a, b| a == b).rev().map(move |run| {
        start -= run.len();
        (start..start + run.len(), run[0])
    })
}

/// Room for [`Rows`].
struct RowBytes {
    own: Vec<u8>,
    above: Vec<u8>,
}

impl RowBytes {
    /// For rows of up to `width` pixels.
    fn new(width: usize) -> RowBytes {
        RowBytes {
            own: vec![0; (width + 1) * 4],
            above: vec![0; (width + 2) * 4],
        }
    }

    /// Columns `run` of row `y`, from 1 on. What is before the first column means nothing: a decoder takes the pixel
    /// above there, whatever the mode.
    fn fill(&mut self, pixels: &[u32], width: usize, y: usize, run: &Range<usize>) -> Rows<'_> {
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

/// Pixels as bytes.
fn store(bytes: &mut [u8], pixels: &[u32]) {
    for (bytes, pixel) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(pixels) {
        *bytes = pixel.to_le_bytes();
    }
}

/// Rows between two questions to the caller.
const ROWS_A_QUESTION: usize = 8;

/// Replaces `pixels` by what prediction leaves of them, sample by sample.
pub fn subtract_predicted(
    pixels: &mut [u32],
    width: usize,
    modes: &Modes,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    let mut bytes = RowBytes::new(width);
    let mut left = vec![0; width * 4];
    // A pixel is predicted by those before it, and so they are replaced later.
    for y in (1..pixels.len() / width).rev() {
        if y % ROWS_A_QUESTION == 0 {
            workers.check()?;
        }
        let row = y * width;
        let first = subtract(pixels[row], pixels[row - width]);
        for (run, mode) in modes.runs(y, width) {
            if mode == 0 {
                leave_unpredicted(&mut pixels[row..][run]);
                continue;
            }
            let left = &mut left[..run.len() * 4];
            residual(mode, &bytes.fill(pixels, width, y, &run), left, simd);
            for (pixel, left) in pixels[row..][run].iter_mut().zip(left.as_chunks::<4>().0) {
                *pixel = u32::from_le_bytes(*left);
            }
        }
        pixels[row] = first;
    }
    // The first row: black, then what is to the left.
    for x in (1..width).rev() {
        pixels[x] = subtract(pixels[x], pixels[x - 1]);
    }
    pixels[0] = subtract(pixels[0], BLACK);
    Ok(())
}

/// What mode 0 leaves.
fn leave_unpredicted(pixels: &mut [u32]) {
    for pixel in pixels {
        *pixel = pixel.wrapping_sub(BLACK);
    }
}

/// What `modes` leave of `pixels`, where some other modes left `predicted`, from which these differ in that more of them
/// are 0.
pub fn residuals_of_fewer(
    pixels: &[u32],
    predicted: &[u32],
    width: usize,
    modes: &Modes,
    workers: Workers<'_>,
) -> Result<Vec<u32>, EncodeError> {
    let mut out = Vec::with_capacity(pixels.len());
    for (y, predicted) in predicted.chunks_exact(width).enumerate() {
        if y % ROWS_A_QUESTION == 0 {
            workers.check()?;
        }
        let start = out.len();
        out.extend_from_slice(predicted);
        if y == 0 {
            continue;
        }
        let row = &mut out[start..];
        for (run, mode) in modes.runs(y, width) {
            if mode == 0 {
                row[run.clone()].copy_from_slice(&pixels[y * width..][run.clone()]);
                leave_unpredicted(&mut row[run]);
            }
        }
        row[0] = predicted[0];
    }
    Ok(out)
}

/// The blocks of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// log2 of a block's side, 2 to 9.
    pub bits: u32,
    /// Which of them may be predicted.
    pub is_open: &'a [bool],
    /// One row of so many is looked at, for all of them.
    pub rows_apart: usize,
}

/// The mode for each open block that leaves least, 0 for the others; and what it leaves of each block: bits, roughly.
pub fn choose(
    pixels: &[u32],
    width: usize,
    blocks: Blocks<'_>,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<(Modes, Vec<u32>), EncodeError> {
    let height = pixels.len() / width;
    let Blocks { is_open, .. } = blocks;
    let block = 1usize << blocks.bits;
    let across = width.div_ceil(block);
    let rows = workers.run_checked(height.div_ceil(block), |block_row| {
        let is_open = &is_open[block_row * across..][..across];
        let mut bytes = RowBytes::new(width);
        let mut scratch = vec![0; width * 4];
        let mut costs = vec![[0; MODES]; across];
        let rows = (block_row * block).max(1)..(block_row * block + block).min(height);
        for y in rows.step_by(blocks.rows_apart) {
            workers.check()?;
            for (run, is_open) in runs(is_open) {
                if is_open {
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
        let mode = if is_open[i] {
            cheapest(costs, left, above)
        } else {
            0
        };
        modes.push(mode);
        least.push(costs[usize::from(mode)] * blocks.rows_apart as u32);
    }
    let modes = Modes {
        block_bits: blocks.bits,
        across,
        by_block: modes,
    };
    Ok((modes, least))
}

/// What `mode` leaves of the pixels of `rows`, as many as `out` has room for.
fn residual(mode: u8, rows: &Rows<'_>, out: &mut [u8], simd: Simd) {
    match simd.0 {
        Instructions::Scalar => scalar::residual(mode, rows, out),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(avx2) => avx2::residual(avx2, mode, rows, out),
    }
}

/// Adds to the costs of blocks that are `block` pixels wide what each mode leaves of one row of them, as many pixels as
/// `scratch` has room for.
fn add_costs(rows: &Rows<'_>, block: usize, scratch: &mut [u8], costs: &mut [Costs], simd: Simd) {
    match simd.0 {
        Instructions::Scalar => scalar::add_costs(rows, block, scratch, costs),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(avx2) => avx2::add_costs(avx2, rows, block, scratch, costs),
    }
}

/// The mode of the least cost, those of neighbours if they cost hardly more.
fn cheapest(costs: &Costs, left: u8, above: u8) -> u8 {
    /// Bits for saying that it is another.
    const NEWS: u32 = 8;
    let cost = |mode: u8| {
        let is_known = mode == left || mode == above;
        let news = if is_known { 0 } else { NEWS };
        (costs[usize::from(mode)] + news, mode != left, mode)
    };
    (0..MODES as u8)
        .min_by_key(|mode| cost(*mode))
        .expect("there are modes")
}
