//! The conversion of two rows of pixels with vectors of any processor (RFC 6386, section 9.2). Each
//! function returns the same as the one of its name in `scalar.rs`.
//!
//! Every function is `#[inline(always)]`, and none takes a closure: see
//! [`with_instructions`](crate::cpu::with_instructions).

use super::{CHROMA_OFFSET, U_WEIGHTS, V_WEIGHTS, Y_OFFSET, Y_WEIGHTS, scalar};
use crate::vector_ops::Vector;
use crate::ycbcr::row_kernel::{ChromaRow, RowKernels};
use fearless_simd::prelude::*;
use fearless_simd::{i16x8, i16x16, i32x4, i32x8, u8x16, u8x32, u64x2};

impl<V: Vector> RowKernels for V {
    #[inline(always)]
    fn convert<const CHANNELS: usize>(
        self,
        rows: [&[u8]; 2],
        luma: [&mut [u8]; 2],
        chroma: &mut ChromaRow,
    ) {
        convert_rows::<V, CHANNELS>(self, rows, luma, chroma);
    }
}

/// Number of pixels converted at a time.
const STEP: usize = 16;

#[inline(always)]
fn convert_rows<V: Vector, const CHANNELS: usize>(
    simd: V,
    rows: [&[u8]; 2],
    luma: [&mut [u8]; 2],
    chroma: &mut ChromaRow,
) {
    let width = rows[0].len() / CHANNELS;
    let mut x = 0;
    // The last four pixels of a step are loaded with the bytes after them, up to 16.
    while (x + STEP - 4) * CHANNELS + 16 <= rows[0].len() && x + STEP <= width {
        let tops = [
            load::<V, CHANNELS>(simd, rows[0], x),
            load::<V, CHANNELS>(simd, rows[0], x + 8),
        ];
        let bottoms = [
            load::<V, CHANNELS>(simd, rows[1], x),
            load::<V, CHANNELS>(simd, rows[1], x + 8),
        ];
        luma_of(simd, tops).store_slice(&mut luma[0][x..x + STEP]);
        luma_of(simd, bottoms).store_slice(&mut luma[1][x..x + STEP]);
        let half = x / 2..x / 2 + STEP / 2;
        let sums = Pixels {
            red_green: sum_of_blocks(
                tops[0].red_green + bottoms[0].red_green,
                tops[1].red_green + bottoms[1].red_green,
            ),
            green_blue: sum_of_blocks(
                tops[0].green_blue + bottoms[0].green_blue,
                tops[1].green_blue + bottoms[1].green_blue,
            ),
        };
        let [u, v] = &mut chroma.planes;
        store_half(&mut u[half.clone()], chroma_of(simd, &sums, U_WEIGHTS));
        store_half(&mut v[half.clone()], chroma_of(simd, &sums, V_WEIGHTS));
        store_half(&mut chroma.spread[half], spread_of(simd, tops, bottoms));
        x += STEP;
    }
    scalar::convert_from::<CHANNELS>(x, rows, luma, chroma);
}

/// Eight pixels, or sums of pixels, as pairs of 16 bits.
#[derive(Clone, Copy)]
struct Pixels<V: Vector> {
    red_green: i16x16<V>,
    green_blue: i16x16<V>,
}

#[inline(always)]
fn load<V: Vector, const CHANNELS: usize>(simd: V, row: &[u8], x: usize) -> Pixels<V> {
    let low = u8x16::from_slice(simd, &row[x * CHANNELS..x * CHANNELS + 16]);
    let high = u8x16::from_slice(simd, &row[(x + 4) * CHANNELS..(x + 4) * CHANNELS + 16]);
    let eight = low.combine(high);
    Pixels {
        red_green: simd
            .shuffle_u8(eight, u8x32::block_splat(pairs::<V, CHANNELS>(simd, 0)))
            .bitcast(),
        green_blue: simd
            .shuffle_u8(eight, u8x32::block_splat(pairs::<V, CHANNELS>(simd, 1)))
            .bitcast(),
    }
}

/// Returns the indices of two channels of four pixels, `first` and the next, as 16-bit numbers.
#[inline(always)]
fn pairs<V: Vector, const CHANNELS: usize>(simd: V, first: u8) -> u8x16<V> {
    const ZERO: u8 = 0xFF;
    let mut indices = [ZERO; 16];
    for pixel in 0..4 {
        indices[4 * pixel] = (pixel * CHANNELS) as u8 + first;
        indices[4 * pixel + 2] = (pixel * CHANNELS) as u8 + first + 1;
    }
    u8x16::simd_from(simd, indices)
}

/// Returns two weights for pairs of 16 bits.
#[inline(always)]
fn weights<V: Vector>(simd: V, first: i32, second: i32) -> i16x16<V> {
    i32x8::splat(simd, (second << 16) | (first & 0xFFFF)).bitcast()
}

#[inline(always)]
fn luma_of<V: Vector>(simd: V, [low, high]: [Pixels<V>; 2]) -> u8x16<V> {
    let (low, high) = (luma_of_eight(simd, low), luma_of_eight(simd, high));
    let (low, high) = low.saturating_narrow(high).split();
    simd.pack_u8(low, high)
}

#[inline(always)]
fn luma_of_eight<V: Vector>(simd: V, pixels: Pixels<V>) -> i32x8<V> {
    // The weight of green needs 17 bits: half of it is multiplied with red's pair, half with
    // blue's.
    let half = Y_WEIGHTS[1] / 2;
    let red_green = weights(simd, Y_WEIGHTS[0], half);
    let green_blue = weights(simd, Y_WEIGHTS[1] - half, Y_WEIGHTS[2]);
    let sum = pixels.red_green.pairwise_dot_product(red_green)
        + pixels.green_blue.pairwise_dot_product(green_blue);
    // Below 2^24, so that the sign bit is clear.
    (sum + ((1 << 15) + (Y_OFFSET << 16))) >> 16
}

/// Returns the sums of neighboring pixels, for both of their pairs.
#[inline(always)]
fn sum_of_blocks<V: Vector>(low: i16x16<V>, high: i16x16<V>) -> i16x16<V> {
    // Pairs are added as 16-bit numbers below 1,024.
    let (low, high): (i32x8<V>, i32x8<V>) = (low.bitcast(), high.bitcast());
    let ((a, b), (c, d)) = (low.split(), high.split());
    let left = a.unzip_low(b).combine(c.unzip_low(d));
    let right = a.unzip_high(b).combine(c.unzip_high(d));
    left.bitcast::<i16x16<V>>() + right.bitcast::<i16x16<V>>()
}

#[inline(always)]
fn chroma_of<V: Vector>(simd: V, sums: &Pixels<V>, [red, green, blue]: [i32; 3]) -> u8x16<V> {
    let sum = sums
        .red_green
        .pairwise_dot_product(weights(simd, red, green))
        + sums.green_blue.pairwise_dot_product(weights(simd, 0, blue));
    bytes(simd, (sum + ((1 << 17) + (CHROMA_OFFSET << 18))) >> 18)
}

/// Returns eight 32-bit numbers as bytes, in the lower half.
#[inline(always)]
fn bytes<V: Vector>(simd: V, numbers: i32x8<V>) -> u8x16<V> {
    let (low, high) = numbers.split();
    let words = low.saturating_narrow(high);
    simd.pack_u8(words, words)
}

#[inline(always)]
fn spread_of<V: Vector>(simd: V, tops: [Pixels<V>; 2], bottoms: [Pixels<V>; 2]) -> u8x16<V> {
    let low = ranges(simd, tops[0], bottoms[0]);
    let high = ranges(simd, tops[1], bottoms[1]);
    simd.pack_u8(low.saturating_narrow(high), i16x8::splat(simd, 0))
}

/// Returns the wider of the ranges of red - green and of blue - green in each of four blocks.
#[inline(always)]
fn ranges<V: Vector>(simd: V, top: Pixels<V>, bottom: Pixels<V>) -> i32x4<V> {
    let red = ranges_less_green(simd, top.red_green, bottom.red_green, 1, -1);
    let blue = ranges_less_green(simd, top.green_blue, bottom.green_blue, -1, 1);
    red.max(blue)
}

#[inline(always)]
fn ranges_less_green<V: Vector>(
    simd: V,
    top: i16x16<V>,
    bottom: i16x16<V>,
    first: i32,
    second: i32,
) -> i32x4<V> {
    let signs = weights(simd, first, second);
    let (top, bottom) = (
        top.pairwise_dot_product(signs),
        bottom.pairwise_dot_product(signs),
    );
    let (most, least) = (top.max(bottom), top.min(bottom));
    let ((a, b), (c, d)) = (most.split(), least.split());
    a.unzip_low(b).max(a.unzip_high(b)) - c.unzip_low(d).min(c.unzip_high(d))
}

#[inline(always)]
fn store_half<V: Vector>(to: &mut [u8], from: u8x16<V>) {
    let half = from.bitcast::<u64x2<V>>()[0];
    to.copy_from_slice(&half.to_le_bytes());
}
