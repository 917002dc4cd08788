//! The residuals of each prediction mode and their cost with vectors of any processor (RFC 9649,
//! section 3.5.1). Each function returns the same as the one of its name in `scalar.rs`.
//!
//! Every function is `#[inline(always)]`, and none takes a closure: see
//! [`with_instructions`](crate::cpu::with_instructions).

use super::{Costs, MODES, Rows, scalar};
use crate::vector_ops::Vector;
use fearless_simd::prelude::*;
use fearless_simd::{i16x16, i32x8, u8x16, u8x32, u32x8};

/// Number of bytes computed at a time.
const STEP: usize = 32;

/// See [`super::residual`].
#[inline(always)]
pub fn residual<V: Vector>(simd: V, mode: u8, rows: &Rows<'_>, out: &mut [u8]) {
    match mode {
        1 => residual_of::<V, 1>(simd, rows, out),
        2 => residual_of::<V, 2>(simd, rows, out),
        3 => residual_of::<V, 3>(simd, rows, out),
        4 => residual_of::<V, 4>(simd, rows, out),
        5 => residual_of::<V, 5>(simd, rows, out),
        6 => residual_of::<V, 6>(simd, rows, out),
        7 => residual_of::<V, 7>(simd, rows, out),
        8 => residual_of::<V, 8>(simd, rows, out),
        9 => residual_of::<V, 9>(simd, rows, out),
        10 => residual_of::<V, 10>(simd, rows, out),
        11 => residual_of::<V, 11>(simd, rows, out),
        12 => residual_of::<V, 12>(simd, rows, out),
        13 => residual_of::<V, 13>(simd, rows, out),
        _ => residual_of::<V, 0>(simd, rows, out),
    }
}

#[inline(always)]
fn residual_of<V: Vector, const MODE: u8>(simd: V, rows: &Rows<'_>, out: &mut [u8]) {
    let n = out.len();
    let (own, above) = (&rows.own[..4 + n], &rows.above[..8 + n]);
    let mut i = 0;
    while i + STEP <= n {
        let predicted = predict::<V, MODE>(
            simd,
            u8x32::from_slice(simd, &own[i..i + STEP]),
            u8x32::from_slice(simd, &above[i..i + STEP]),
            u8x32::from_slice(simd, &above[i + 4..i + 4 + STEP]),
            u8x32::from_slice(simd, &above[i + 8..i + 8 + STEP]),
        );
        let own = u8x32::from_slice(simd, &own[i + 4..i + 4 + STEP]);
        (own - predicted).store_slice(&mut out[i..i + STEP]);
        i += STEP;
    }
    let rest = Rows {
        own: &own[i..],
        above: &above[i..],
    };
    scalar::residual(MODE, &rest, &mut out[i..]);
}

/// Predicts eight pixels from those to the left, above to the left, above, and above to the right.
#[inline(always)]
fn predict<V: Vector, const MODE: u8>(
    simd: V,
    left: u8x32<V>,
    top_left: u8x32<V>,
    top: u8x32<V>,
    top_right: u8x32<V>,
) -> u8x32<V> {
    match MODE {
        0 => u32x8::splat(simd, super::BLACK).bitcast(),
        1 => left,
        2 => top,
        3 => top_right,
        4 => top_left,
        5 => average(simd, average(simd, left, top_right), top),
        6 => average(simd, left, top_left),
        7 => average(simd, left, top),
        8 => average(simd, top_left, top),
        9 => average(simd, top, top_right),
        10 => average(
            simd,
            average(simd, left, top_left),
            average(simd, top, top_right),
        ),
        11 => select(simd, left, top, top_left),
        12 => {
            let (up, down) = (top.saturating_sub(top_left), top_left.saturating_sub(top));
            left.saturating_add(up).saturating_sub(down)
        }
        _ => {
            let mean = average(simd, left, top);
            let up = mean.saturating_sub(top_left) >> 1;
            let down = top_left.saturating_sub(mean) >> 1;
            mean.saturating_add(up).saturating_sub(down)
        }
    }
}

/// Returns half of the sums, rounded down.
#[inline(always)]
fn average<V: Vector>(simd: V, a: u8x32<V>, b: u8x32<V>) -> u8x32<V> {
    simd.average_u8x32(a, b) - ((a ^ b) & 1)
}

/// Predicts from the left or the upper pixel, whichever is nearer to left + upper - upper left.
#[inline(always)]
fn select<V: Vector>(simd: V, left: u8x32<V>, top: u8x32<V>, top_left: u8x32<V>) -> u8x32<V> {
    // The distance of the estimate from the left pixel, less that from the upper one.
    let to_left = distance(top, top_left).pairwise_widening_add();
    let to_top = distance(left, top_left).pairwise_widening_add();
    let nearer = to_left.bitcast::<i16x16<V>>() - to_top.bitcast::<i16x16<V>>();
    let nearer = nearer.pairwise_dot_product(i16x16::splat(simd, 1));
    let is_left = nearer.simd_lt(i32x8::splat(simd, 0));
    is_left
        .select(left.bitcast::<u32x8<V>>(), top.bitcast::<u32x8<V>>())
        .bitcast()
}

#[inline(always)]
fn distance<V: Vector>(a: u8x32<V>, b: u8x32<V>) -> u8x32<V> {
    a.max(b) - a.min(b)
}

/// See [`super::add_costs`].
#[inline(always)]
pub fn add_costs<V: Vector>(
    simd: V,
    rows: &Rows<'_>,
    block: usize,
    scratch: &mut [u8],
    costs: &mut [Costs],
) {
    for mode in 0..MODES {
        residual(simd, mode as u8, rows, scratch);
        for (residual, costs) in scratch.chunks(block * 4).zip(costs.iter_mut()) {
            costs[mode] += magnitude(simd, residual);
        }
    }
}

/// Returns the sum of the bytes' bit lengths, without signs.
#[inline(always)]
fn magnitude<V: Vector>(simd: V, residual: &[u8]) -> u32 {
    /// Number of vectors whose bit lengths of at most 7 fit into a byte when they are added.
    const GROUP: usize = 36;
    let (vectors, rest) = residual.as_chunks::<STEP>();
    let mut sum = 0;
    for group in vectors.chunks(GROUP) {
        let mut lengths = u8x32::splat(simd, 0);
        for &bytes in group {
            lengths += bit_lengths(simd, u8x32::simd_from(simd, bytes));
        }
        let (low, high) = lengths.split();
        sum += simd.sum_u8(low) + simd.sum_u8(high);
    }
    sum + scalar::magnitude(rest)
}

/// Returns the bit lengths of the bytes' distances from 0 modulo 256, at most 7.
#[inline(always)]
fn bit_lengths<V: Vector>(simd: V, bytes: u8x32<V>) -> u8x32<V> {
    let sizes = bytes.min(u8x32::splat(simd, 0) - bytes);
    if V::SHUFFLES {
        let of_low = [0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4];
        let of_high = [0, 5, 6, 6, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0];
        let of_low = u8x32::block_splat(u8x16::simd_from(simd, of_low));
        let of_high = u8x32::block_splat(u8x16::simd_from(simd, of_high));
        let low = of_low.swizzle_dyn_within_blocks(sizes & 0x0F);
        let high = of_high.swizzle_dyn_within_blocks(sizes >> 4);
        return low.max(high);
    }
    let one = u8x32::splat(simd, 1);
    let mut lengths = sizes.min(one);
    for bits in 1..7 {
        lengths += sizes.saturating_sub((1 << bits) - 1).min(one);
    }
    lengths
}
