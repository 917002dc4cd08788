//! The sums of a resize, by whichever vectors the machine has. Products are rounded before they are
//! added, and sums have one order, so that the result is the same with all of them.

use super::axis::Axis;
use super::gamma::{Levels, STEPS};
use crate::image::pixels::Layout;
use fearless_simd::f32x8;
use fearless_simd::prelude::*;
use std::ops::Range;

/// The number of rows that are resized across at a time.
pub(super) const ROWS: usize = 4;

/// The pixels at one place of as many rows, in linear light: red, green, blue, and alpha, which the
/// others are multiplied by.
pub(super) type Column = [f32; 4 * ROWS];

/// The number of pixels of a row that are made at a time: their sums stay in registers. Rows in the
/// ring are padded to whole portions.
pub(super) const PORTION: usize = 8;

/// Resizes rows across. `columns` has their boxes from `first_box` on, and `new` are the new pixels
/// by number. Those of each row go to its place in `ring`.
#[inline(always)]
pub(super) fn resize_across<S: Simd>(
    simd: S,
    (columns, first_box): (&[Column], usize),
    axis: &Axis,
    new: Range<usize>,
    ring: &mut [f32],
    places: [usize; ROWS],
) {
    let zero = f32x8::splat(simd, 0.0);
    for (x, pixel) in new.enumerate() {
        let (first, weights) = axis.taps(pixel);
        let columns = &columns[first - first_box..][..weights.len()];
        let (pairs, last) = columns.as_chunks::<2>();
        let (weight_pairs, last_weight) = weights.as_chunks::<2>();
        // Rows 0 and 1, rows 2 and 3: of columns of even and of odd numbers.
        let mut sums = [zero; 4];
        for ([even, odd], &[even_weight, odd_weight]) in pairs.iter().zip(weight_pairs) {
            add_column(simd, &mut sums, 0, even, even_weight);
            add_column(simd, &mut sums, 2, odd, odd_weight);
        }
        if let ([column], &[weight]) = (last, last_weight) {
            add_column(simd, &mut sums, 0, column, weight);
        }
        let upper: [f32; 8] = (sums[0] + sums[2]).into();
        let lower: [f32; 8] = (sums[1] + sums[3]).into();
        let (upper, lower) = (upper.as_chunks::<4>().0, lower.as_chunks::<4>().0);
        for (place, pixel) in places
            .into_iter()
            .zip([upper[0], upper[1], lower[0], lower[1]])
        {
            ring[place + 4 * x..][..4].copy_from_slice(&pixel);
        }
    }
}

#[inline(always)]
fn add_column<S: Simd>(simd: S, sums: &mut [f32x8<S>; 4], at: usize, column: &Column, weight: f32) {
    let halves = column.as_chunks::<8>().0;
    let weight = f32x8::splat(simd, weight);
    sums[at] += f32x8::simd_from(simd, halves[0]) * weight;
    sums[at + 1] += f32x8::simd_from(simd, halves[1]) * weight;
}

/// Makes a row of new pixels of rows in the ring, which are given by place and weight.
#[inline(always)]
pub(super) fn make_row<S: Simd>(
    simd: S,
    ring: &[f32],
    rows: &[(usize, f32)],
    layout: Layout,
    new: &mut [u8],
) {
    let levels = Levels::get();
    let zero = f32x8::splat(simd, 0.0);
    for (portion, new) in new.chunks_mut(PORTION * layout.channels()).enumerate() {
        let mut sums = [zero; PORTION / 2];
        for &(place, weight) in rows {
            let row = &ring[place + portion * PORTION * 4..][..PORTION * 4];
            let weight = f32x8::splat(simd, weight);
            for (sum, &pixels) in sums.iter_mut().zip(row.as_chunks::<8>().0) {
                *sum += f32x8::simd_from(simd, pixels) * weight;
            }
        }
        match layout {
            Layout::Rgb => {
                let new = new.chunks_exact_mut(6);
                for (sum, new) in sums.into_iter().zip(new) {
                    write_opaque(simd, sum, levels, new);
                }
            }
            Layout::Rgba => {
                for (sum, new) in sums.into_iter().zip(new.chunks_mut(8)) {
                    let pixels: [f32; 8] = sum.into();
                    for (pixel, new) in pixels.as_chunks::<4>().0.iter().zip(new.chunks_mut(4)) {
                        new.copy_from_slice(&with_alpha(*pixel, levels));
                    }
                }
            }
        }
        if layout == Layout::Rgb && !new.len().is_multiple_of(6) {
            let pixels: [f32; 8] = sums[new.len() / 6].into();
            let last = new.len() - 3;
            for (new, light) in new[last..].iter_mut().zip(pixels) {
                *new = levels.nearest(light);
            }
        }
    }
}

/// Writes two opaque pixels.
#[inline(always)]
fn write_opaque<S: Simd>(simd: S, sum: f32x8<S>, levels: Levels, new: &mut [u8]) {
    let (zero, one) = (f32x8::splat(simd, 0.0), f32x8::splat(simd, 1.0));
    let steps = sum.max(zero).min(one) * STEPS as f32 + 0.5;
    let steps: [f32; 8] = steps.into();
    for (new, step) in new.iter_mut().zip([0, 1, 2, 4, 5, 6]) {
        *new = levels.at(steps[step] as u16);
    }
}

/// A pixel whose color is no longer multiplied by its alpha. A transparent one has no color.
#[inline(always)]
fn with_alpha([red, green, blue, alpha]: [f32; 4], levels: Levels) -> [u8; 4] {
    let level = (alpha * 255.0 + 0.5) as u8;
    if level == 0 {
        return [0; 4];
    }
    let [red, green, blue] = [red / alpha, green / alpha, blue / alpha];
    [
        levels.nearest(red),
        levels.nearest(green),
        levels.nearest(blue),
        level,
    ]
}
