//! The definition of the conversion of two rows of pixels, written for readers (RFC 6386, section
//! 9.2).

use super::{CHROMA_OFFSET, U_WEIGHTS, V_WEIGHTS, Y_OFFSET, Y_WEIGHTS};
use crate::ycbcr::row_kernel::{ChromaRow, RowKernels};

/// The kernel without vector instructions.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl RowKernels for Scalar {
    #[inline(always)]
    fn convert<const CHANNELS: usize>(
        self,
        rows: [&[u8]; 2],
        luma: [&mut [u8]; 2],
        chroma: &mut ChromaRow,
    ) {
        convert_from::<CHANNELS>(0, rows, luma, chroma);
    }
}

/// Converts the pixels from `first`, an even number, on.
#[inline(always)]
pub fn convert_from<const CHANNELS: usize>(
    first: usize,
    rows: [&[u8]; 2],
    luma: [&mut [u8]; 2],
    chroma: &mut ChromaRow,
) {
    for (pixels, luma) in rows.into_iter().zip(luma) {
        luma_row::<CHANNELS>(first, pixels, luma);
    }
    chroma_row::<CHANNELS>(first / 2, rows, chroma);
}

#[inline(always)]
fn luma_row<const CHANNELS: usize>(first: usize, pixels: &[u8], luma: &mut [u8]) {
    let width = pixels.len() / CHANNELS;
    let rest = pixels.chunks_exact(CHANNELS).skip(first);
    for (y, pixel) in luma[first..].iter_mut().zip(rest) {
        let sum = Y_WEIGHTS[0] * i32::from(pixel[0])
            + Y_WEIGHTS[1] * i32::from(pixel[1])
            + Y_WEIGHTS[2] * i32::from(pixel[2]);
        *y = ((sum + (1 << 15)) >> 16) as u8 + Y_OFFSET as u8;
    }
    let last = luma[width - 1];
    luma[width..].fill(last);
}

#[inline(always)]
fn chroma_row<const CHANNELS: usize>(first: usize, rows: [&[u8]; 2], chroma: &mut ChromaRow) {
    let pixels = rows[0].len() / CHANNELS;
    let width = pixels.div_ceil(2);
    let ChromaRow {
        planes: [u, v],
        spread,
    } = chroma;
    for x in first..width {
        let left = 2 * x * CHANNELS;
        let right = (2 * x + 1).min(pixels - 1) * CHANNELS;
        let four = |c: usize| {
            [
                rows[0][left + c],
                rows[0][right + c],
                rows[1][left + c],
                rows[1][right + c],
            ]
            .map(i32::from)
        };
        let [red, green, blue] = [four(0), four(1), four(2)];
        let sums = [red, green, blue].map(|samples| samples.iter().sum::<i32>());
        let weigh = |weights: [i32; 3]| {
            let sum = weights[0] * sums[0] + weights[1] * sums[1] + weights[2] * sums[2];
            (((sum + (1 << 17)) >> 18) + CHROMA_OFFSET).clamp(0, 255) as u8
        };
        u[x] = weigh(U_WEIGHTS);
        v[x] = weigh(V_WEIGHTS);
        let widest = range_less(red, green).max(range_less(blue, green));
        spread[x] = widest.min(255) as u8;
    }
    for plane in [u, v] {
        let last = plane[width - 1];
        plane[width..].fill(last);
    }
}

/// Returns the range of `a - b`.
#[inline(always)]
fn range_less(a: [i32; 4], b: [i32; 4]) -> i32 {
    let [d, e, f, g] = std::array::from_fn(|i| a[i] - b[i]);
    d.max(e).max(f.max(g)) - d.min(e).min(f.min(g))
}
