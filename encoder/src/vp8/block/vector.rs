//! The kernels on 4x4 blocks with vectors of any processor (RFC 6386, sections 12 and 14). Each
//! function returns the same as the one of its name in `scalar.rs`.
//!
//! Every function is `#[inline(always)]`, and none takes a closure: see
//! [`with_instructions`](crate::cpu::with_instructions).

use super::{BlockKernels, BlockPixels, Candidates, LeastRates, Nearest, Quantized};
use crate::cpu::region;
use crate::vector_ops::Vector;
use crate::vp8::distortion::WEIGHTED_SCORE_SHIFT;
use crate::vp8::predict::{PATTERNS, SubblockEdges, SubblockMode};
use crate::vp8::quantize::Quantizer;
use crate::vp8::tables::ZIGZAG;
use crate::vp8::transform::{Block, COEFFICIENT_ERROR_SHIFT};
use fearless_simd::prelude::*;
use fearless_simd::{
    i16x8, i16x16, i32x4, i32x8, i64x2, u8x16, u8x32, u16x8, u16x16, u32x8, u64x2, u64x4,
};

impl<V: Vector> BlockKernels for V {
    #[inline(always)]
    fn predict(self, edges: &SubblockEdges, mode: SubblockMode) -> BlockPixels {
        region!(self, predict(self, edges, mode))
    }

    #[inline(always)]
    fn subblock_estimates(
        self,
        source: &BlockPixels,
        edges: &SubblockEdges,
        costs: &[u16; 16],
        lambda_satd: u16,
    ) -> [u16; 16] {
        region!(
            self,
            subblock_estimates(self, source, edges, costs, lambda_satd)
        )
    }

    #[inline(always)]
    fn argmin(self, estimates: &[u16; 16]) -> (usize, u16) {
        region!(self, argmin(self, estimates))
    }

    #[inline(always)]
    fn block_satd<const N: usize>(self, source: &[u8], prediction: &[u8]) -> u32 {
        region!(self, block_satd::<V, N>(self, source, prediction))
    }

    #[inline(always)]
    fn transform(self, source: &BlockPixels, prediction: &BlockPixels) -> Block {
        region!(self, transform(self, source, prediction))
    }

    #[inline(always)]
    fn quantize(
        self,
        coefficients: &Block,
        quantizer: &Quantizer,
        factor: u16,
        first: usize,
    ) -> (Quantized, u32, u32) {
        region!(self, quantize(self, coefficients, quantizer, factor, first))
    }

    #[inline(always)]
    fn add_row(self, pixels: &[u8; 32], moments: &mut [[i32; 16]; 2]) {
        region!(self, add_row(self, pixels, moments));
    }

    #[inline(always)]
    fn nearest(self, coefficients: &Block, quantizer: &Quantizer, first: usize) -> Nearest {
        region!(self, nearest(self, coefficients, quantizer, first))
    }

    #[inline(always)]
    fn candidates(
        self,
        nearest: &Nearest,
        quantizer: &Quantizer,
        rates: LeastRates<'_>,
    ) -> Candidates {
        region!(self, candidates(self, nearest, quantizer, rates))
    }

    #[inline(always)]
    fn reconstruct(
        self,
        prediction: &BlockPixels,
        levels: &Block,
        quantizer: &Quantizer,
        dc: Option<i16>,
    ) -> BlockPixels {
        region!(self, reconstruct(self, prediction, levels, quantizer, dc))
    }
}

/// Indices at which byte shuffles return 0.
const ZERO: u8 = 0xFF;

/// The smoothed edges that the directional modes consist of.
struct Slots<V: Vector> {
    /// `E[0]` to `E[12]`; then `E[12]`, and twice `E[0]`.
    edges: u8x16<V>,
    /// Byte `c` in 0..=12 is the edge smoothed over three pixels around `E[c]`.
    threes: u8x16<V>,
    /// Byte `i` in 0..=11 is the mean of `E[i]` and `E[i + 1]`; byte 14 is `E[0]`.
    twos: u8x16<V>,
}

#[inline(always)]
fn slots<V: Vector>(simd: V, edges: &SubblockEdges) -> Slots<V> {
    // Two words in registers, since a vector cannot be loaded from bytes that were just stored.
    let [first, .., last] = *edges;
    let low = u64::from_le_bytes(*edges.first_chunk().expect("there are 13"));
    let high = u64::from_le_bytes(*edges.last_chunk().expect("there are 13"));
    let words = [
        low,
        high >> 24 | u64::from(last) << 40 | (u64::from(first) * 0x0101) << 48,
    ];
    let edges: u8x16<V> = u64x2::simd_from(simd, words).bitcast();
    // The previous and the next pixel of each, with the ends repeated.
    let before =
        edges.swizzle_dyn_within_blocks([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    let after = edges.slide::<1>(edges);
    // `(a + c) >> 1` is the rounded mean less the bit that was rounded up.
    let outer = simd.average_u8(before, after) - ((before ^ after) & 1);
    Slots {
        edges,
        threes: simd.average_u8(outer, edges),
        twos: simd.average_u8(edges, after),
    }
}

/// The bytes of [`Slots::threes`], and from 16 on of [`Slots::twos`], that make up the prediction
/// of each mode; those of the first two modes are unused.
const PICKS: [[u8; 16]; 10] = {
    let mut picks = PATTERNS;
    let mut i = 0;
    while i < 160 {
        let pick = &mut picks[i / 16][i % 16];
        *pick = match *pick {
            slot @ 0..=12 => slot,
            slot @ 13..=24 => slot - 13 + 16,
            _ => 14 + 16,
        };
        i += 1;
    }
    picks
};

#[inline(always)]
fn predict<V: Vector>(simd: V, edges: &SubblockEdges, mode: SubblockMode) -> BlockPixels {
    let s = &slots(simd, edges);
    let pixels = match mode {
        SubblockMode::Dc => u8x16::splat(simd, mean(simd, s)),
        SubblockMode::TrueMotion => true_motion(simd, s),
        _ => s
            .threes
            .concat_swizzle_dyn_precise(s.twos, PICKS[mode as usize]),
    };
    pixels.into()
}

#[inline(always)]
fn mean<V: Vector>(simd: V, s: &Slots<V>) -> u8 {
    let used = [
        255, 255, 255, 255, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0,
    ];
    ((simd.sum_u8(s.edges & u8x16::simd_from(simd, used)) + 4) >> 3) as u8
}

#[inline(always)]
fn true_motion<V: Vector>(simd: V, s: &Slots<V>) -> u8x16<V> {
    const C: u8 = 4;
    let above = s
        .edges
        .swizzle_dyn_within_blocks([5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8]);
    let left = s
        .edges
        .swizzle_dyn_within_blocks([3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0]);
    let corner = s.edges.swizzle_dyn_within_blocks([C; 16]);
    let sum = widen(above) + widen(left) - widen(corner);
    let (low, high) = sum.split();
    simd.pack_u8(low, high)
}

/// Returns bytes as 16-bit numbers.
#[inline(always)]
fn widen<V: Vector>(bytes: u8x16<V>) -> i16x16<V> {
    bytes.combine(bytes).widen().0.bitcast()
}

/// The bytes of each row for four modes at once, which [`satd_of_four`] takes: columns 0 and 1 by
/// mode, then columns 2 and 3 by mode.
const fn by_row(modes: [[u8; 16]; 4]) -> [[u8; 16]; 4] {
    let mut rows = [[0; 16]; 4];
    let mut i = 0;
    while i < 64 {
        let (row, half, mode, odd) = (i / 16, i / 8 % 2, i / 2 % 4, i % 2);
        rows[row][i % 16] = modes[mode][4 * row + 2 * half + odd];
        i += 1;
    }
    rows
}

/// The pixels in raster order.
const RASTER: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

#[inline(always)]
fn subblock_estimates<V: Vector>(
    simd: V,
    source: &BlockPixels,
    edges: &SubblockEdges,
    costs: &[u16; 16],
    lambda_satd: u16,
) -> [u16; 16] {
    const SOURCE: [[u8; 16]; 4] = by_row([RASTER; 4]);
    /// Vertical, horizontal, left down, right down: all of them of [`Slots::threes`].
    const FIRST: [[u8; 16]; 4] = by_row([PICKS[2], PICKS[3], PICKS[4], PICKS[5]]);
    /// Vertical right, vertical left, horizontal down, horizontal up.
    const SECOND: [[u8; 16]; 4] = by_row([PICKS[6], PICKS[7], PICKS[8], PICKS[9]]);

    let s = &slots(simd, edges);
    let source = u8x16::simd_from(simd, *source);
    let rows = [
        widen(source.swizzle_dyn_within_blocks(SOURCE[0])),
        widen(source.swizzle_dyn_within_blocks(SOURCE[1])),
        widen(source.swizzle_dyn_within_blocks(SOURCE[2])),
        widen(source.swizzle_dyn_within_blocks(SOURCE[3])),
    ];
    let first = satd_of_four(
        simd,
        [
            rows[0] - widen(s.threes.swizzle_dyn_within_blocks(FIRST[0])),
            rows[1] - widen(s.threes.swizzle_dyn_within_blocks(FIRST[1])),
            rows[2] - widen(s.threes.swizzle_dyn_within_blocks(FIRST[2])),
            rows[3] - widen(s.threes.swizzle_dyn_within_blocks(FIRST[3])),
        ],
    );
    let second = satd_of_four(
        simd,
        [
            rows[0] - widen(s.threes.concat_swizzle_dyn_precise(s.twos, SECOND[0])),
            rows[1] - widen(s.threes.concat_swizzle_dyn_precise(s.twos, SECOND[1])),
            rows[2] - widen(s.threes.concat_swizzle_dyn_precise(s.twos, SECOND[2])),
            rows[3] - widen(s.threes.concat_swizzle_dyn_precise(s.twos, SECOND[3])),
        ],
    );
    let others = satd_of_dc_and_true_motion(simd, source, s);
    // In the order of the mode numbers; doubled here, since the sums are of half of the SATD.
    let others = others.saturating_narrow(others) << 1;
    let directional = first.saturating_narrow(second) << 1;
    let low: u16x8<V> = others.slide::<6>(directional).bitcast();
    let high: u16x8<V> = directional.slide::<6>(i16x8::splat(simd, -1)).bitcast();
    // The costs, which are below 2^15, are doubled, because the upper half of a product is a shift
    // by 16 and not by 15.
    let lambda = u16x8::splat(simd, lambda_satd);
    let costs = halves(simd, costs);
    let low = low + simd.mul_high_u16(costs[0] << 1, lambda);
    let high = high.saturating_add(simd.mul_high_u16(costs[1] << 1, lambda));
    low.combine(high).into()
}

/// Returns half of the SATDs of four residuals, whose rows are as [`by_row`] orders them. The last
/// butterflies are not computed, because the larger of two magnitudes is half of those of the sum
/// and the difference.
#[inline(always)]
fn satd_of_four<V: Vector>(simd: V, [a, b, c, d]: [i16x16<V>; 4]) -> i32x4<V> {
    let (e, f, g, h) = (a + b, a - b, c + d, c - d);
    let (i, j) = add_and_subtract_halves(e + g, e - g);
    let (k, l) = add_and_subtract_halves(f + h, f - h);
    let sums = simd.sum_larger_of_pairs([i, j, k, l]);
    let (low, high) = sums.bitcast::<i32x8<V>>().split();
    low + high
}

/// Adds the upper to the lower halves of two vectors, and subtracts them.
#[inline(always)]
fn add_and_subtract_halves<V: Vector>(a: i16x16<V>, b: i16x16<V>) -> (i16x16<V>, i16x16<V>) {
    let ((a_low, a_high), (b_low, b_high)) = (a.split(), b.split());
    let (low, high) = (a_low.combine(b_low), a_high.combine(b_high));
    (low + high, low - high)
}

/// Returns half of the SATDs of the first two modes, twice.
#[inline(always)]
fn satd_of_dc_and_true_motion<V: Vector>(simd: V, source: u8x16<V>, s: &Slots<V>) -> i32x4<V> {
    const Z: u8 = ZERO;
    // A row is two columns of either mode, then the other two columns of either. There are two rows
    // in a vector.
    let above = [Z, Z, 5, 6, Z, Z, 7, 8, Z, Z, 5, 6, Z, Z, 7, 8];
    let corner = [Z, Z, 4, 4, Z, Z, 4, 4, Z, Z, 4, 4, Z, Z, 4, 4];
    let left = [
        [Z, Z, 3, 3, Z, Z, 3, 3, Z, Z, 2, 2, Z, Z, 2, 2],
        [Z, Z, 1, 1, Z, Z, 1, 1, Z, Z, 0, 0, Z, Z, 0, 0],
    ];
    let rows = [
        [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7],
        [8, 9, 8, 9, 10, 11, 10, 11, 12, 13, 12, 13, 14, 15, 14, 15],
    ];
    let dc = u64x4::splat(simd, u64::from(mean(simd, s)) * 0x1_0001);
    let base = widen(s.edges.swizzle_dyn_precise(above))
        - widen(s.edges.swizzle_dyn_precise(corner))
        + dc.bitcast::<i16x16<V>>();
    let upper = base + widen(s.edges.swizzle_dyn_precise(left[0]));
    let lower = base + widen(s.edges.swizzle_dyn_precise(left[1]));
    let upper = widen(source.swizzle_dyn_within_blocks(rows[0])) - upper.max(0).min(255);
    let lower = widen(source.swizzle_dyn_within_blocks(rows[1])) - lower.max(0).min(255);
    let (a, b) = add_and_subtract_rows(upper + lower);
    let (c, d) = add_and_subtract_rows(upper - lower);
    let (e, f) = add_and_subtract_columns(a, b);
    let (g, h) = add_and_subtract_columns(c, d);
    let zero = i16x16::splat(simd, 0);
    let sums = simd.sum_larger_of_pairs([e.combine(f), g.combine(h), zero, zero]);
    let (low, high) = sums.bitcast::<i32x8<V>>().split();
    let sums = low + high;
    sums + sums.slide::<2>(sums)
}

/// Adds the upper to the lower half of a vector, and subtracts it.
#[inline(always)]
fn add_and_subtract_rows<V: Vector>(rows: i16x16<V>) -> (i16x8<V>, i16x8<V>) {
    let (upper, lower) = rows.split();
    (upper + lower, upper - lower)
}

/// Adds the upper to the lower halves of two vectors, and subtracts them.
#[inline(always)]
fn add_and_subtract_columns<V: Vector>(a: i16x8<V>, b: i16x8<V>) -> (i16x8<V>, i16x8<V>) {
    let (left, right) = (zip_low_halves(a, b), zip_high_halves(a, b));
    (left + right, left - right)
}

/// Returns the lower halves of two vectors.
#[inline(always)]
fn zip_low_halves<V: Vector>(a: i16x8<V>, b: i16x8<V>) -> i16x8<V> {
    a.bitcast::<i64x2<V>>()
        .zip_low(b.bitcast::<i64x2<V>>())
        .bitcast()
}

/// Returns the upper halves of two vectors.
#[inline(always)]
fn zip_high_halves<V: Vector>(a: i16x8<V>, b: i16x8<V>) -> i16x8<V> {
    a.bitcast::<i64x2<V>>()
        .zip_high(b.bitcast::<i64x2<V>>())
        .bitcast()
}

/// Returns 16 numbers as two vectors.
#[inline(always)]
fn halves<V: Vector>(simd: V, numbers: &[u16; 16]) -> [u16x8<V>; 2] {
    let (low, high) = u16x16::simd_from(simd, *numbers).split();
    [low, high]
}

#[inline(always)]
fn argmin<V: Vector>(simd: V, estimates: &[u16; 16]) -> (usize, u16) {
    let [low, high] = halves(simd, estimates);
    simd.argmin_u16(low, high)
}

#[inline(always)]
fn block_satd<V: Vector, const N: usize>(simd: V, source: &[u8], prediction: &[u8]) -> u32 {
    let (source, prediction) = (&source[..N * N], &prediction[..N * N]);
    let mut sums = u32x8::splat(simd, 0);
    for strip in (0..N * N).step_by(64) {
        let rows = [
            residuals(simd, source, prediction, strip),
            residuals(simd, source, prediction, strip + 16),
            residuals(simd, source, prediction, strip + 32),
            residuals(simd, source, prediction, strip + 48),
        ];
        // With N = 8, the 64 pixels hold four blocks, and rows of the same number are brought
        // together.
        let [a, b, c, d] = if N == 16 {
            rows
        } else {
            rows_of_upper_and_lower(rows)
        };
        let (e, f, g, h) = (a + b, a - b, c + d, c - d);
        let (i, j) = add_and_subtract_pairs(e + g, e - g);
        let (k, l) = add_and_subtract_pairs(f + h, f - h);
        sums += simd.sum_larger_of_pairs([i, j, k, l]);
    }
    // The larger magnitude is half of those of the pair's sum and difference.
    sums.reduce_sum() * 2
}

/// Returns the residuals of 16 pixels: one row of 16, or two rows of 8.
#[inline(always)]
fn residuals<V: Vector>(simd: V, source: &[u8], prediction: &[u8], at: usize) -> i16x16<V> {
    widen(u8x16::from_slice(simd, &source[at..at + 16]))
        - widen(u8x16::from_slice(simd, &prediction[at..at + 16]))
}

/// Reorders eight rows of 8, two per vector, to row 0 of the upper and lower blocks, row 1 of both,
/// and so on.
#[inline(always)]
fn rows_of_upper_and_lower<V: Vector>([r01, r23, r45, r67]: [i16x16<V>; 4]) -> [i16x16<V>; 4] {
    let ((r0, r1), (r2, r3)) = (r01.split(), r23.split());
    let ((r4, r5), (r6, r7)) = (r45.split(), r67.split());
    [
        r0.combine(r4),
        r1.combine(r5),
        r2.combine(r6),
        r3.combine(r7),
    ]
}

/// Adds columns 2 and 3 to columns 0 and 1 of each four lanes of two vectors, and subtracts them.
/// The lanes of the results are in another order.
#[inline(always)]
fn add_and_subtract_pairs<V: Vector>(a: i16x16<V>, b: i16x16<V>) -> (i16x16<V>, i16x16<V>) {
    let ((a_low, a_high), (b_low, b_high)) = (
        a.bitcast::<i32x8<V>>().split(),
        b.bitcast::<i32x8<V>>().split(),
    );
    let left = a_low.unzip_low(b_low).combine(a_high.unzip_low(b_high));
    let right = a_low.unzip_high(b_low).combine(a_high.unzip_high(b_high));
    let (left, right): (i16x16<V>, i16x16<V>) = (left.bitcast(), right.bitcast());
    (left + right, left - right)
}

/// Returns pairs of two numbers.
#[inline(always)]
fn pairs<V: Vector>(simd: V, a: i16, b: i16) -> i16x8<V> {
    i16x8::simd_from(simd, [a, b, a, b, a, b, a, b])
}

#[inline(always)]
fn transform<V: Vector>(simd: V, source: &BlockPixels, prediction: &BlockPixels) -> Block {
    const SINE: i16 = 2217;
    const COSINE: i16 = 5352;
    // Pixels 0 and 1 of each row, then pixels 3 and 2. The last two rows are swapped, so that the
    // columns are in that order later.
    let outside_in = [0, 1, 4, 5, 12, 13, 8, 9, 3, 2, 7, 6, 15, 14, 11, 10];
    let source = u8x16::simd_from(simd, *source).swizzle_dyn_within_blocks(outside_in);
    let prediction = u8x16::simd_from(simd, *prediction).swizzle_dyn_within_blocks(outside_in);
    let (left, right) = (widen(source) - widen(prediction)).split();
    // The terms a and b, and d and c, of each row.
    let (sums, differences) = (left + right, left - right);
    let out0 = sums.pairwise_dot_product(pairs(simd, 8, 8));
    let out2 = sums.pairwise_dot_product(pairs(simd, 8, -8));
    let out1 = differences.pairwise_dot_product(pairs(simd, COSINE, SINE));
    let out3 = differences.pairwise_dot_product(pairs(simd, SINE, -COSINE));
    let columns01 = out0.saturating_narrow((out1 + (1 << 8)) >> 9);
    let columns23 = out2.saturating_narrow((out3 + (1 << 8)) >> 9);

    // Rows 0 and 1, then rows 3 and 2, of each column.
    let (columns01, columns23): (i32x4<V>, i32x4<V>) = (columns01.bitcast(), columns23.bitcast());
    let upper: i16x8<V> = columns01.unzip_low(columns23).bitcast();
    let lower: i16x8<V> = columns01.unzip_high(columns23).bitcast();
    let (sums, differences) = (upper + lower, upper - lower);
    let row0 = (sums.pairwise_dot_product(pairs(simd, 1, 1)) + (1 << 3)) >> 4;
    let row2 = (sums.pairwise_dot_product(pairs(simd, 1, -1)) + (1 << 3)) >> 4;
    let row1 = (differences.pairwise_dot_product(pairs(simd, COSINE, SINE)) + (1 << 15)) >> 16;
    let row3 = (differences.pairwise_dot_product(pairs(simd, SINE, -COSINE)) + (1 << 15)) >> 16;
    row0.saturating_narrow(row1)
        .combine(row2.saturating_narrow(row3))
        .into()
}

/// Returns the values by zigzag position: `[dc, ac, ac ...]` and `[ac, ac ...]`.
#[inline(always)]
fn by_position<V: Vector>(simd: V, [dc, ac]: [u16; 2]) -> [u16x8<V>; 2] {
    let all = u16x8::splat(simd, ac);
    let mut first = all;
    first[0] = dc;
    [first, all]
}

/// Returns the coefficients as two vectors, without those before position `first`.
#[inline(always)]
fn load_coefficients<V: Vector>(simd: V, coefficients: &Block, first: usize) -> [i16x8<V>; 2] {
    let (mut low, high) = i16x16::simd_from(simd, *coefficients).split();
    if first == 1 {
        low[0] = 0;
    }
    [low, high]
}

#[inline(always)]
fn quantize<V: Vector>(
    simd: V,
    coefficients: &Block,
    quantizer: &Quantizer,
    factor: u16,
    first: usize,
) -> (Quantized, u32, u32) {
    let halves = load_coefficients(simd, coefficients, first);
    let steps = by_position(simd, quantizer.steps);
    let reciprocals = by_position(simd, quantizer.reciprocals);
    let dead_zones = u16x16::simd_from(simd, quantizer.dead_zones).split();
    let dead_zones = [dead_zones.0, dead_zones.1];
    let factor = u16x8::splat(simd, factor);
    let roots = i16x16::simd_from(simd, quantizer.weights.roots).split();
    let roots = [roots.0, roots.1];
    let mut levels = [i16x8::splat(simd, 0); 2];
    let mut errors = i32x4::splat(simd, 0);
    for i in 0..2 {
        // A rounding is at least 0.
        let half = steps[i] >> 1;
        let excess = ((dead_zones[i] * factor) >> 8).min(half);
        let rounded = halves[i].abs().bitcast::<u16x8<V>>() + (half - excess);
        let magnitudes = simd.mul_high_u16(rounded, reciprocals[i]);
        levels[i] = simd.with_signs(magnitudes.bitcast(), halves[i]);
        let error = halves[i] - levels[i] * steps[i].bitcast::<i16x8<V>>();
        let weighted = simd.mul_round_i16(error << 3, roots[i]);
        errors += weighted.pairwise_dot_product(weighted);
    }
    let levels = in_zigzag(levels);
    let nonzero = nonzero_positions(levels);
    let quantized = Quantized {
        levels: levels[0].combine(levels[1]).into(),
        eob: (32 - nonzero.leading_zeros()) as u8,
    };
    let error = errors.reduce_sum() as u32 >> (6 + COEFFICIENT_ERROR_SHIFT);
    (quantized, error, nonzero)
}

/// Reorders values from raster to zigzag order.
#[inline(always)]
fn in_zigzag<V: Vector>([low, high]: [i16x8<V>; 2]) -> [i16x8<V>; 2] {
    const ORDER: [[u8; 16]; 2] = bytes_of(ZIGZAG);
    [
        low.concat_swizzle_dyn_precise(high, ORDER[0]),
        low.concat_swizzle_dyn_precise(high, ORDER[1]),
    ]
}

/// Reorders values from zigzag to raster order.
#[inline(always)]
fn in_raster<V: Vector>([start, end]: [i16x8<V>; 2]) -> [i16x8<V>; 2] {
    const ORDER: [[u8; 16]; 2] = {
        let mut positions = [0; 16];
        let mut i = 0;
        while i < 16 {
            positions[ZIGZAG[i]] = i;
            i += 1;
        }
        bytes_of(positions)
    };
    [
        start.concat_swizzle_dyn_precise(end, ORDER[0]),
        start.concat_swizzle_dyn_precise(end, ORDER[1]),
    ]
}

/// Returns the indices of the bytes of 16-bit values.
const fn bytes_of(values: [usize; 16]) -> [[u8; 16]; 2] {
    let mut bytes = [[0; 16]; 2];
    let mut i = 0;
    while i < 32 {
        bytes[i / 16][i % 16] = (2 * values[i / 2] + i % 2) as u8;
        i += 1;
    }
    bytes
}

/// Returns the positions of nonzero values, one bit each.
#[inline(always)]
fn nonzero_positions<V: Vector>([start, end]: [i16x8<V>; 2]) -> u32 {
    let zeros = start.saturating_narrow(end).simd_eq(0).to_bitmask();
    !(zeros as u32) & 0xFFFF
}

#[inline(always)]
fn add_row<V: Vector>(simd: V, pixels: &[u8; 32], [sums, squares]: &mut [[i32; 16]; 2]) {
    let sums = sums.as_chunks_mut::<4>().0.iter_mut();
    let moments = sums.zip(squares.as_chunks_mut::<4>().0);
    let (left, right) = u8x32::simd_from(simd, *pixels).split();
    let ((a, b), (c, d)) = (widen(left).split(), widen(right).split());
    for (pixels, (sum, square)) in [a, b, c, d].into_iter().zip(moments) {
        let sums = pixels.pairwise_dot_product(pairs(simd, 1, 1));
        *sum = (i32x4::simd_from(simd, *sum) + sums).into();
        let squares = pixels.pairwise_dot_product(pixels);
        *square = (i32x4::simd_from(simd, *square) + squares).into();
    }
}

#[inline(always)]
fn nearest<V: Vector>(
    simd: V,
    coefficients: &Block,
    quantizer: &Quantizer,
    first: usize,
) -> Nearest {
    let [start, end] = in_zigzag(load_coefficients(simd, coefficients, first));
    let magnitudes = [start.abs(), end.abs()];
    let steps = by_position(simd, quantizer.steps);
    let reciprocals = by_position(simd, quantizer.reciprocals);
    let mut levels = magnitudes;
    for i in 0..2 {
        let rounded = magnitudes[i].bitcast::<u16x8<V>>() + (steps[i] >> 1);
        levels[i] = simd.mul_high_u16(rounded, reciprocals[i]).bitcast();
    }
    let negative = start.saturating_narrow(end).simd_lt(0).to_bitmask();
    let magnitudes: u16x16<V> = magnitudes[0].combine(magnitudes[1]).bitcast();
    let (low, high) = magnitudes.widen();
    let [low_weights, high_weights] = pair(simd, &quantizer.weights.zigzag);
    let energies = low * low * low_weights.bitcast::<u32x8<V>>()
        + high * high * high_weights.bitcast::<u32x8<V>>();
    Nearest {
        magnitudes: magnitudes.into(),
        levels: levels[0].combine(levels[1]).bitcast::<u16x16<V>>().into(),
        nonzero: nonzero_positions(levels),
        negative: negative as u32,
        energy: energies.reduce_sum(),
    }
}

/// Returns 16 numbers as two vectors.
#[inline(always)]
fn pair<V: Vector>(simd: V, numbers: &[i32; 16]) -> [i32x8<V>; 2] {
    let (low, high) = numbers.split_at(8);
    [i32x8::from_slice(simd, low), i32x8::from_slice(simd, high)]
}

#[inline(always)]
fn candidates<V: Vector>(
    simd: V,
    nearest: &Nearest,
    quantizer: &Quantizer,
    rates: LeastRates<'_>,
) -> Candidates {
    let [ones, twos, others] = rates.costs;
    let (ones, twos, others) = (pair(simd, ones), pair(simd, twos), pair(simd, others));
    let weights = pair(simd, &quantizer.weights.zigzag);
    let steps = by_position(simd, quantizer.steps);
    let steps = steps[0].combine(steps[1]);
    let levels = u16x16::simd_from(simd, nearest.levels);
    // All of these are below 2^15.
    let restored = signed_pair((levels * steps).widen());
    let magnitudes = u16x16::simd_from(simd, nearest.magnitudes);
    let doubled = signed_pair((magnitudes << 1).widen());
    let (levels, steps) = (signed_pair(levels.widen()), signed_pair(steps.widen()));
    let zero = i32x8::splat(simd, 0);
    let mut changes = [[zero; 2]; 2];
    let mut least = zero;
    for i in 0..2 {
        let below = restored[i] - steps[i];
        // Only the nearest level can be larger than the coefficient.
        let over = (restored[i] - (doubled[i] >> 1)).max(zero);
        let discount = (over * over * weights[i] * quantizer.overshoot_discount) >> 8;
        let change = restored[i] * (restored[i] - doubled[i]) * weights[i] - discount;
        let change_below = below * (below - doubled[i]) * weights[i];
        changes[0][i] = change;
        changes[1][i] = change_below;
        let (is_one, is_two) = (levels[i].simd_eq(1), levels[i].simd_eq(2));
        let rate = is_one.select(ones[i], is_two.select(twos[i], others[i]));
        let is_three = levels[i].simd_eq(3);
        let rate_below = is_two.select(ones[i], is_three.select(twos[i], others[i]));
        let rate_below = is_one.select(zero, rate_below);
        let score = change + ((rate * rates.lambda) >> WEIGHTED_SCORE_SHIFT);
        let score_below = change_below + ((rate_below * rates.lambda) >> WEIGHTED_SCORE_SHIFT);
        least += score.min(score_below).min(zero);
    }
    let [[n0, n1], [b0, b1]] = changes;
    Candidates {
        changes: [joined(n0, n1), joined(b0, b1)],
        least: least.reduce_sum(),
    }
}

#[inline(always)]
fn signed_pair<V: Vector>((low, high): (u32x8<V>, u32x8<V>)) -> [i32x8<V>; 2] {
    [low.bitcast(), high.bitcast()]
}

#[inline(always)]
fn joined<V: Vector>(low: i32x8<V>, high: i32x8<V>) -> [i32; 16] {
    let mut numbers = [0; 16];
    low.store_slice(&mut numbers[..8]);
    high.store_slice(&mut numbers[8..]);
    numbers
}

#[inline(always)]
fn reconstruct<V: Vector>(
    simd: V,
    prediction: &BlockPixels,
    levels: &Block,
    quantizer: &Quantizer,
    dc: Option<i16>,
) -> BlockPixels {
    let levels = i16x16::simd_from(simd, *levels).split();
    let [low, high] = in_raster([levels.0, levels.1]);
    let steps = by_position(simd, quantizer.steps);
    let mut low = low * steps[0].bitcast::<i16x8<V>>();
    let high = high * steps[1].bitcast::<i16x8<V>>();
    if let Some(dc) = dc {
        low[0] = dc;
    }
    let [low, high] = transposed(inverse_pass(simd, [low, high]));
    let [low, high] = inverse_pass(simd, [low, high]);
    let [low, high] = transposed([(low + 4) >> 3, (high + 4) >> 3]);
    let (upper, lower) = u8x16::simd_from(simd, *prediction).widen();
    simd.pack_u8(
        upper.bitcast::<i16x8<V>>() + low,
        lower.bitcast::<i16x8<V>>() + high,
    )
    .into()
}

/// One dimension of the inverse DCT, over columns. The vectors hold rows 0 and 1, and rows 2 and 3.
#[inline(always)]
fn inverse_pass<V: Vector>(simd: V, [r01, r23]: [i16x8<V>; 2]) -> [i16x8<V>; 2] {
    let (r02, r13) = (zip_low_halves(r01, r23), zip_high_halves(r01, r23));
    // The terms a and b. Of sums with swapped halves, only the lower half is used.
    let r20 = swapped(r02);
    let ab = zip_low_halves(r02 + r20, r02 - r20);
    let cosines = r13 + simd.mul_high_i16(r13, i16x8::splat(simd, 20091));
    // 35468 does not fit into 16 bits: 35468 - 65536 is used, and the value is added once more.
    let sines = r13 + simd.mul_high_i16(r13, i16x8::splat(simd, 35468u16 as i16));
    // The terms d and c.
    let dc = zip_low_halves(cosines + swapped(sines), sines - swapped(cosines));
    [ab + dc, swapped(ab - dc)]
}

/// Swaps the halves of a vector.
#[inline(always)]
fn swapped<V: Vector>(x: i16x8<V>) -> i16x8<V> {
    x.slide::<4>(x)
}

/// Transposes four rows of four.
#[inline(always)]
fn transposed<V: Vector>([r01, r23]: [i16x8<V>; 2]) -> [i16x8<V>; 2] {
    let (r02, r13) = (r01.zip_low(r23), r01.zip_high(r23));
    [r02.zip_low(r13), r02.zip_high(r13)]
}
