//! The definition of the residuals of each prediction mode and of their cost (RFC 9649, section
//! 3.5.1). Written over bytes, so that the compiler emits vector instructions.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over several arrays at once, which become vector instructions"
)]

use super::{Costs, MODES, Rows};

/// See [`super::residual`].
#[inline(always)]
pub fn residual(mode: u8, rows: &Rows<'_>, out: &mut [u8]) {
    let n = out.len();
    let own = &rows.own[4..4 + n];
    let left = &rows.own[..n];
    let top_left = &rows.above[..n];
    let top = &rows.above[4..4 + n];
    let top_right = &rows.above[8..8 + n];
    match mode {
        0 => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = own[i].wrapping_sub(if i % 4 == 3 { 255 } else { 0 });
            }
        }
        1 => difference(own, left, out),
        2 => difference(own, top, out),
        3 => difference(own, top_right, out),
        4 => difference(own, top_left, out),
        5 => {
            for i in 0..n {
                let predicted = average(average(left[i], top_right[i]), top[i]);
                out[i] = own[i].wrapping_sub(predicted);
            }
        }
        6 => average_difference(own, left, top_left, out),
        7 => average_difference(own, left, top, out),
        8 => average_difference(own, top_left, top, out),
        9 => average_difference(own, top, top_right, out),
        10 => {
            for i in 0..n {
                let predicted =
                    average(average(left[i], top_left[i]), average(top[i], top_right[i]));
                out[i] = own[i].wrapping_sub(predicted);
            }
        }
        11 => select(own, [left, top, top_left], out),
        12 => {
            for i in 0..n {
                let up = top[i].saturating_sub(top_left[i]);
                let down = top_left[i].saturating_sub(top[i]);
                let predicted = left[i].saturating_add(up).saturating_sub(down);
                out[i] = own[i].wrapping_sub(predicted);
            }
        }
        _ => {
            for i in 0..n {
                let mean = average(left[i], top[i]);
                let up = mean.saturating_sub(top_left[i]) >> 1;
                let down = top_left[i].saturating_sub(mean) >> 1;
                let predicted = mean.saturating_add(up).saturating_sub(down);
                out[i] = own[i].wrapping_sub(predicted);
            }
        }
    }
}

/// Returns half of the sum, rounded down.
#[inline(always)]
fn average(a: u8, b: u8) -> u8 {
    (a & b) + ((a ^ b) >> 1)
}

#[inline(always)]
fn difference(own: &[u8], predicted: &[u8], out: &mut [u8]) {
    for i in 0..out.len() {
        out[i] = own[i].wrapping_sub(predicted[i]);
    }
}

#[inline(always)]
fn average_difference(own: &[u8], a: &[u8], b: &[u8], out: &mut [u8]) {
    for i in 0..out.len() {
        out[i] = own[i].wrapping_sub(average(a[i], b[i]));
    }
}

/// Predicts from the left or the upper pixel, whichever is nearer to left + upper - upper left.
#[inline(always)]
fn select(own: &[u8], [left, top, top_left]: [&[u8]; 3], out: &mut [u8]) {
    for i in (0..out.len()).step_by(4) {
        // The distance of the estimate from the left pixel, less that from the upper one.
        let mut nearer = 0i16;
        for c in i..i + 4 {
            nearer += i16::from(top[c].abs_diff(top_left[c]));
            nearer -= i16::from(left[c].abs_diff(top_left[c]));
        }
        let predicted = if nearer < 0 { left } else { top };
        for c in i..i + 4 {
            out[c] = own[c].wrapping_sub(predicted[c]);
        }
    }
}

/// See [`super::add_costs`].
#[inline(always)]
pub fn add_costs(rows: &Rows<'_>, block: usize, scratch: &mut [u8], costs: &mut [Costs]) {
    for mode in 0..MODES {
        residual(mode as u8, rows, scratch);
        for (residual, costs) in scratch.chunks(block * 4).zip(costs.iter_mut()) {
            costs[mode] += magnitude(residual);
        }
    }
}

/// Returns the sum of the bytes' bit lengths, without signs.
#[inline(always)]
pub fn magnitude(residual: &[u8]) -> u32 {
    /// Number of bytes per group: sums of up to 36 bit lengths of at most 7 fit into a byte.
    const LANES: usize = 32;
    let mut sum = 0;
    let mut groups = residual.chunks_exact(LANES);
    for group in &mut groups {
        let mut lanes = [0u8; LANES];
        for i in 0..LANES {
            lanes[i] = bit_length(group[i]);
        }
        for lane in lanes {
            sum += u32::from(lane);
        }
    }
    for &byte in groups.remainder() {
        sum += u32::from(bit_length(byte));
    }
    sum
}

/// Returns the bit length of a byte's distance from 0 modulo 256, at most 7.
#[inline(always)]
fn bit_length(byte: u8) -> u8 {
    let size = byte.min(byte.wrapping_neg());
    u8::from(size > 0)
        + u8::from(size > 1)
        + u8::from(size > 3)
        + u8::from(size > 7)
        + u8::from(size > 15)
        + u8::from(size > 31)
        + u8::from(size > 63)
}
