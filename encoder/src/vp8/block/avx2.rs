//! The kernels on 4x4 blocks with AVX2 (RFC 6386, sections 12 and 14). Each function returns the
//! same as the one of its name in `scalar.rs`.
#![expect(
    unsafe_code,
    reason = "loads, stores, and calls into functions that need AVX2"
)]

use super::{BlockKernels, BlockPixels, Nearest, Quantized};
use crate::cpu::Avx2;
use crate::vp8::distortion::{ERROR_ROOTS, ERROR_WEIGHTS};
use crate::vp8::predict::{SubblockEdges, SubblockMode};
use crate::vp8::quantize::Quantizer;
use crate::vp8::transform::{Block, COEFFICIENT_ERROR_SHIFT};
#[allow(
    clippy::wildcard_imports,
    reason = "the vendor names every instruction in one flat module"
)]
use std::arch::x86_64::*;

// SAFETY (of every call here): an `Avx2` exists only where its `detect` found the instructions.
impl BlockKernels for Avx2 {
    #[inline(always)]
    fn predict(self, edges: &SubblockEdges, mode: SubblockMode) -> BlockPixels {
        unsafe { predict(edges, mode) }
    }

    #[inline(always)]
    fn subblock_estimates(
        self,
        source: &BlockPixels,
        edges: &SubblockEdges,
        costs: &[u16; 16],
        lambda_satd: u16,
    ) -> [u16; 16] {
        unsafe { subblock_estimates(source, edges, costs, lambda_satd) }
    }

    #[inline(always)]
    fn argmin(self, estimates: &[u16; 16]) -> (usize, u16) {
        unsafe { argmin(estimates) }
    }

    #[inline(always)]
    fn block_satd<const N: usize>(self, source: &[u8], prediction: &[u8]) -> u32 {
        unsafe { block_satd::<N>(source, prediction) }
    }

    #[inline(always)]
    fn transform(self, source: &BlockPixels, prediction: &BlockPixels) -> Block {
        unsafe { transform(source, prediction) }
    }

    #[inline(always)]
    fn quantize(
        self,
        coefficients: &Block,
        quantizer: &Quantizer,
        first: usize,
    ) -> (Quantized, u32) {
        unsafe { quantize(coefficients, quantizer, first) }
    }

    #[inline(always)]
    fn nearest(self, coefficients: &Block, quantizer: &Quantizer, first: usize) -> Nearest {
        unsafe { nearest(coefficients, quantizer, first) }
    }

    #[inline(always)]
    fn reconstruct(
        self,
        prediction: &BlockPixels,
        levels: &Block,
        quantizer: &Quantizer,
        dc: Option<i16>,
    ) -> BlockPixels {
        unsafe { reconstruct(prediction, levels, quantizer, dc) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_pixels(pixels: &BlockPixels) -> __m128i {
    // SAFETY: 16 bytes, at any alignment.
    unsafe { _mm_loadu_si128(pixels.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_pixels(pixels: __m128i) -> BlockPixels {
    let mut out = [0; 16];
    // SAFETY: 16 bytes, at any alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), pixels) };
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_block(block: &Block) -> [__m128i; 2] {
    // SAFETY: twice 8 values of 16 bits, at any alignment.
    unsafe {
        [
            _mm_loadu_si128(block.as_ptr().cast()),
            _mm_loadu_si128(block[8..].as_ptr().cast()),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_block(halves: [__m128i; 2]) -> Block {
    let mut out = [0; 16];
    // SAFETY: twice 8 values of 16 bits, at any alignment.
    unsafe {
        _mm_storeu_si128(out.as_mut_ptr().cast(), halves[0]);
        _mm_storeu_si128(out[8..].as_mut_ptr().cast(), halves[1]);
    }
    out
}

/// The smoothed edges that the directional modes consist of.
struct Slots {
    edges: __m128i,
    /// Byte `c` in 0..=12 is the edge smoothed over three pixels around `E[c]`; byte 13 is `E[0]`.
    threes: __m128i,
    /// Byte `i` in 0..=11 is the mean of `E[i]` and `E[i + 1]`.
    twos: __m128i,
}

#[inline]
#[target_feature(enable = "avx2")]
fn slots(edges: &SubblockEdges) -> Slots {
    let mut padded = [0; 16];
    padded[..13].copy_from_slice(edges);
    let edges = load_pixels(&padded);
    // The previous and the next pixel of each, with the ends repeated.
    let before = _mm_shuffle_epi8(
        edges,
        _mm_setr_epi8(0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12),
    );
    let after = _mm_shuffle_epi8(
        edges,
        _mm_setr_epi8(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 12, 12, 12),
    );
    // `(a + c) >> 1` is the rounded mean less the bit that was rounded up.
    let odd = _mm_and_si128(_mm_xor_si128(before, after), _mm_set1_epi8(1));
    let outer = _mm_sub_epi8(_mm_avg_epu8(before, after), odd);
    let threes = _mm_avg_epu8(outer, edges);
    let first = _mm_shuffle_epi8(
        edges,
        _mm_setr_epi8(
            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1,
        ),
    );
    let kept = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0);
    Slots {
        edges,
        threes: _mm_or_si128(_mm_and_si128(threes, kept), first),
        twos: _mm_avg_epu8(edges, after),
    }
}

/// Picks the byte of [`Slots::threes`] or [`Slots::twos`] for each pixel; -1 picks 0.
macro_rules! pick {
    ($slots:expr, threes $($a:literal)*) => {
        _mm_shuffle_epi8($slots.threes, _mm_setr_epi8($($a),*))
    };
    ($slots:expr, threes $($a:literal)*, twos $($b:literal)*) => {
        _mm_or_si128(
            _mm_shuffle_epi8($slots.threes, _mm_setr_epi8($($a),*)),
            _mm_shuffle_epi8($slots.twos, _mm_setr_epi8($($b),*)),
        )
    };
}

#[inline]
#[target_feature(enable = "avx2")]
fn vertical(s: &Slots) -> __m128i {
    pick!(s, threes 5 6 7 8 5 6 7 8 5 6 7 8 5 6 7 8)
}

#[inline]
#[target_feature(enable = "avx2")]
fn horizontal(s: &Slots) -> __m128i {
    pick!(s, threes 3 3 3 3 2 2 2 2 1 1 1 1 0 0 0 0)
}

#[inline]
#[target_feature(enable = "avx2")]
fn left_down(s: &Slots) -> __m128i {
    pick!(s, threes 6 7 8 9 7 8 9 10 8 9 10 11 9 10 11 12)
}

#[inline]
#[target_feature(enable = "avx2")]
fn right_down(s: &Slots) -> __m128i {
    pick!(s, threes 4 5 6 7 3 4 5 6 2 3 4 5 1 2 3 4)
}

#[inline]
#[target_feature(enable = "avx2")]
fn vertical_right(s: &Slots) -> __m128i {
    pick!(s,
        threes -1 -1 -1 -1 4 5 6 7 3 -1 -1 -1 2 4 5 6,
        twos 4 5 6 7 -1 -1 -1 -1 -1 4 5 6 -1 -1 -1 -1)
}

#[inline]
#[target_feature(enable = "avx2")]
fn vertical_left(s: &Slots) -> __m128i {
    pick!(s,
        threes -1 -1 -1 -1 6 7 8 9 -1 -1 -1 10 7 8 9 11,
        twos 5 6 7 8 -1 -1 -1 -1 6 7 8 -1 -1 -1 -1 -1)
}

#[inline]
#[target_feature(enable = "avx2")]
fn horizontal_down(s: &Slots) -> __m128i {
    pick!(s,
        threes -1 4 5 6 -1 3 -1 4 -1 2 -1 3 -1 1 -1 2,
        twos 3 -1 -1 -1 2 -1 3 -1 1 -1 2 -1 0 -1 1 -1)
}

#[inline]
#[target_feature(enable = "avx2")]
fn horizontal_up(s: &Slots) -> __m128i {
    pick!(s,
        threes -1 2 -1 1 -1 1 -1 0 -1 0 13 13 13 13 13 13,
        twos 2 -1 1 -1 1 -1 0 -1 0 -1 -1 -1 -1 -1 -1 -1)
}

#[inline]
#[target_feature(enable = "avx2")]
fn mean(s: &Slots) -> __m128i {
    let used = _mm_setr_epi8(-1, -1, -1, -1, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0);
    let sums = _mm_sad_epu8(_mm_and_si128(s.edges, used), _mm_setzero_si128());
    let sum = _mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums));
    let mean = _mm_srli_epi16::<3>(_mm_add_epi16(sum, _mm_set1_epi16(4)));
    _mm_shuffle_epi8(mean, _mm_setzero_si128())
}

#[inline]
#[target_feature(enable = "avx2")]
fn true_motion(s: &Slots) -> __m128i {
    let above = _mm_shuffle_epi8(
        s.edges,
        _mm_setr_epi8(5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8),
    );
    let left = _mm_shuffle_epi8(
        s.edges,
        _mm_setr_epi8(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0),
    );
    let corner = _mm256_broadcastw_epi16(_mm_shuffle_epi8(
        s.edges,
        _mm_setr_epi8(4, -1, 4, -1, 4, -1, 4, -1, 4, -1, 4, -1, 4, -1, 4, -1),
    ));
    let sum = _mm256_sub_epi16(
        _mm256_add_epi16(_mm256_cvtepu8_epi16(above), _mm256_cvtepu8_epi16(left)),
        corner,
    );
    _mm_packus_epi16(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn predict(edges: &SubblockEdges, mode: SubblockMode) -> BlockPixels {
    let s = &slots(edges);
    store_pixels(match mode {
        SubblockMode::Dc => mean(s),
        SubblockMode::TrueMotion => true_motion(s),
        SubblockMode::Vertical => vertical(s),
        SubblockMode::Horizontal => horizontal(s),
        SubblockMode::LeftDown => left_down(s),
        SubblockMode::RightDown => right_down(s),
        SubblockMode::VerticalRight => vertical_right(s),
        SubblockMode::VerticalLeft => vertical_left(s),
        SubblockMode::HorizontalDown => horizontal_down(s),
        SubblockMode::HorizontalUp => horizontal_up(s),
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn subblock_estimates(
    source: &BlockPixels,
    edges: &SubblockEdges,
    costs: &[u16; 16],
    lambda_satd: u16,
) -> [u16; 16] {
    let s = &slots(edges);
    let source = _mm256_cvtepu8_epi16(load_pixels(source));
    // In the order of the mode numbers.
    let predictions = [
        mean(s),
        true_motion(s),
        vertical(s),
        horizontal(s),
        left_down(s),
        right_down(s),
        vertical_right(s),
        vertical_left(s),
        horizontal_down(s),
        horizontal_up(s),
    ];
    let mut sums = [_mm256_setzero_si256(); 10];
    for mode in 0..10 {
        sums[mode] = residual_satd_parts(_mm256_sub_epi16(
            source,
            _mm256_cvtepu8_epi16(predictions[mode]),
        ));
    }
    // Sums the eight 32-bit parts of four modes.
    let fours = |i: usize| {
        let pairs = _mm256_hadd_epi32(
            _mm256_hadd_epi32(sums[i], sums[i + 1]),
            _mm256_hadd_epi32(sums[i + 2], sums[i + 3]),
        );
        _mm_add_epi32(
            _mm256_castsi256_si128(pairs),
            _mm256_extracti128_si256::<1>(pairs),
        )
    };
    // The third group holds the last two modes, and two of the second group again.
    let [first, second, third] = [fours(0), fours(4), fours(6)];
    let sums = [
        _mm_packus_epi32(first, second),
        _mm_packus_epi32(_mm_shuffle_epi32::<0b11_10_11_10>(third), third),
    ];
    // SAFETY: twice 8 values of 16 bits, at any alignment.
    let costs = unsafe {
        [
            _mm_loadu_si128(costs.as_ptr().cast()),
            _mm_loadu_si128(costs[8..].as_ptr().cast()),
        ]
    };
    // The costs, which are below 2^15, are doubled, because the upper half of a product is a shift
    // by 16 and not by 15.
    let lambda = _mm_set1_epi16(lambda_satd as i16);
    let added = costs.map(|costs| _mm_mulhi_epu16(_mm_slli_epi16::<1>(costs), lambda));
    let none = _mm_setr_epi16(0, 0, -1, -1, -1, -1, -1, -1);
    store_lanes([
        _mm_add_epi16(sums[0], added[0]),
        _mm_or_si128(_mm_add_epi16(sums[1], added[1]), none),
    ])
}

#[inline]
#[target_feature(enable = "avx2")]
fn argmin(estimates: &[u16; 16]) -> (usize, u16) {
    // SAFETY: twice 8 values of 16 bits, at any alignment.
    let halves = unsafe {
        [
            _mm_loadu_si128(estimates.as_ptr().cast()),
            _mm_loadu_si128(estimates[8..].as_ptr().cast()),
        ]
    };
    // The least value is in the lowest 16 bits, its lane in the next ones.
    let [lower, upper] = halves.map(|half| _mm_cvtsi128_si32(_mm_minpos_epu16(half)) as u32);
    let (offset, found) = if upper as u16 >= lower as u16 {
        (0, lower)
    } else {
        (8, upper)
    };
    (offset + (found >> 16) as usize, found as u16)
}

/// Returns the SATD of a 4x4 residual as eight parts, which the caller adds up.
#[inline]
#[target_feature(enable = "avx2")]
fn residual_satd_parts(residuals: __m256i) -> __m256i {
    // Rows 0 and 1 in the lower lane, 2 and 3 in the upper.
    let swapped = _mm256_permute4x64_epi64::<0b01_00_11_10>(residuals);
    let lower = _mm256_add_epi16(residuals, swapped);
    let upper = _mm256_sub_epi16(residuals, swapped);
    let rows = _mm256_blend_epi32::<0b1111_0000>(lower, upper);
    let swapped = _mm256_shuffle_epi32::<0b01_00_11_10>(rows);
    let lower = _mm256_add_epi16(rows, swapped);
    let upper = _mm256_sub_epi16(rows, swapped);
    row_satd_parts(_mm256_blend_epi32::<0b1100_1100>(lower, upper))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_lanes(halves: [__m128i; 2]) -> [u16; 16] {
    let mut out = [0; 16];
    // SAFETY: twice 8 values of 16 bits, at any alignment.
    unsafe {
        _mm_storeu_si128(out.as_mut_ptr().cast(), halves[0]);
        _mm_storeu_si128(out[8..].as_mut_ptr().cast(), halves[1]);
    }
    out
}

/// Hadamard-transforms each group of four lanes, and returns the sum of absolute values as eight
/// parts.
#[inline]
#[target_feature(enable = "avx2")]
fn row_satd_parts(rows: __m256i) -> __m256i {
    let swap = _mm256_setr_epi8(
        2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9,
        14, 15, 12, 13,
    );
    let signs = _mm256_set1_epi32(0xFFFF_0001u32 as i32);
    let pairs = _mm256_add_epi16(
        _mm256_shuffle_epi8(rows, swap),
        _mm256_sign_epi16(rows, signs),
    );
    // `|a + b| + |a - b|` is twice the larger of `|a|` and `|b|`.
    let absolute = _mm256_abs_epi16(pairs);
    let larger = _mm256_max_epi16(absolute, _mm256_shuffle_epi32::<0b10_11_00_01>(absolute));
    _mm256_madd_epi16(larger, _mm256_set1_epi16(1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn block_satd<const N: usize>(source: &[u8], prediction: &[u8]) -> u32 {
    let (source, prediction) = (&source[..N * N], &prediction[..N * N]);
    // Loads 16 pixels: one row of 16, or two rows of 8.
    let residuals = |at: usize| {
        let load = |pixels: &[u8]| {
            // SAFETY: 16 bytes, at any alignment.
            _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(pixels[at..at + 16].as_ptr().cast()) })
        };
        _mm256_sub_epi16(load(source), load(prediction))
    };
    let mut sums = _mm256_setzero_si256();
    for strip in (0..N * N).step_by(64) {
        let rows = [
            residuals(strip),
            residuals(strip + 16),
            residuals(strip + 32),
            residuals(strip + 48),
        ];
        // With N = 8, the 64 pixels hold four blocks, and rows of the same number are brought
        // together.
        let [a, b, c, d] = if N == 16 { rows } else { by_row(rows) };
        let (e, f) = (_mm256_add_epi16(a, b), _mm256_sub_epi16(a, b));
        let (g, h) = (_mm256_add_epi16(c, d), _mm256_sub_epi16(c, d));
        for row in [
            _mm256_add_epi16(e, g),
            _mm256_add_epi16(f, h),
            _mm256_sub_epi16(e, g),
            _mm256_sub_epi16(f, h),
        ] {
            sums = _mm256_add_epi32(sums, row_satd_parts(row));
        }
    }
    sum_of_lanes(sums)
}

/// Reorders eight rows of 8, two per vector, to row 0 of the upper and lower blocks, row 1 of both,
/// and so on.
#[inline]
#[target_feature(enable = "avx2")]
fn by_row([r01, r23, r45, r67]: [__m256i; 4]) -> [__m256i; 4] {
    [
        _mm256_permute2x128_si256::<0x20>(r01, r45),
        _mm256_permute2x128_si256::<0x31>(r01, r45),
        _mm256_permute2x128_si256::<0x20>(r23, r67),
        _mm256_permute2x128_si256::<0x31>(r23, r67),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_lanes(lanes: __m256i) -> u32 {
    sum_of_four(_mm_add_epi32(
        _mm256_castsi256_si128(lanes),
        _mm256_extracti128_si256::<1>(lanes),
    ))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_four(lanes: __m128i) -> u32 {
    let pairs = _mm_add_epi32(lanes, _mm_unpackhi_epi64(lanes, lanes));
    _mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_shuffle_epi32::<0b01>(pairs))) as u32
}

#[inline]
#[target_feature(enable = "avx2")]
fn transform(source: &BlockPixels, prediction: &BlockPixels) -> Block {
    const SINE: i16 = 2217;
    const COSINE: i16 = 5352;
    let pairs = |a: i16, b: i16| i32::from(a as u16) | i32::from(b) << 16;
    let wide = |even: i32, odd: i32| _mm256_setr_epi32(even, odd, even, odd, even, odd, even, odd);

    let source = _mm256_cvtepu8_epi16(load_pixels(source));
    let rows = _mm256_sub_epi16(source, _mm256_cvtepu8_epi16(load_pixels(prediction)));
    // Adding each row r0 r1 r2 r3 and its reverse gives a b b a, subtracting gives d c -c -d.
    let reversed =
        _mm256_shufflehi_epi16::<0b00_01_10_11>(_mm256_shufflelo_epi16::<0b00_01_10_11>(rows));
    let sums = _mm256_shuffle_epi32::<0b10_10_00_00>(_mm256_add_epi16(rows, reversed));
    let differences = _mm256_shuffle_epi32::<0b10_10_00_00>(_mm256_sub_epi16(rows, reversed));
    // Each lane holds two rows: outputs 0 and 2 of each, and outputs 1 and 3 of each.
    let even = _mm256_madd_epi16(sums, wide(pairs(8, 8), pairs(8, -8)));
    let odd = _mm256_madd_epi16(differences, wide(pairs(COSINE, SINE), pairs(SINE, -COSINE)));
    let odd = _mm256_srai_epi32::<9>(_mm256_add_epi32(odd, _mm256_set1_epi32(1 << 8)));
    let outputs = _mm256_packs_epi32(even, odd);

    // Rows 0 and 1, and rows 3 and 2, give a b and d c of each column.
    let upper = _mm256_castsi256_si128(outputs);
    let lower = _mm_shuffle_epi32::<0b10_11_00_01>(_mm256_extracti128_si256::<1>(outputs));
    let by_column = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    let sums = _mm_shuffle_epi8(_mm_add_epi16(upper, lower), by_column);
    let differences = _mm_shuffle_epi8(_mm_sub_epi16(upper, lower), by_column);
    let narrow =
        |terms: __m128i, a: i16, b: i16| _mm_madd_epi16(terms, _mm_set1_epi32(pairs(a, b)));
    let by_16 = |x: __m128i| _mm_srai_epi32::<4>(_mm_add_epi32(x, _mm_set1_epi32(1 << 3)));
    let by_65536 = |x: __m128i| _mm_srai_epi32::<16>(_mm_add_epi32(x, _mm_set1_epi32(1 << 15)));
    store_block([
        _mm_packs_epi32(
            by_16(narrow(sums, 1, 1)),
            by_65536(narrow(differences, COSINE, SINE)),
        ),
        _mm_packs_epi32(
            by_16(narrow(sums, 1, -1)),
            by_65536(narrow(differences, SINE, -COSINE)),
        ),
    ])
}

/// Returns the values by zigzag position: `[dc, ac, ac ...]` and `[ac, ac ...]`.
#[inline]
#[target_feature(enable = "avx2")]
fn by_position([dc, ac]: [u16; 2]) -> [__m128i; 2] {
    let all = _mm_set1_epi16(ac as i16);
    [_mm_insert_epi16::<0>(all, i32::from(dc)), all]
}

#[inline]
#[target_feature(enable = "avx2")]
fn quantize(coefficients: &Block, quantizer: &Quantizer, first: usize) -> (Quantized, u32) {
    let mut halves = load_block(coefficients);
    if first == 1 {
        halves[0] = _mm_insert_epi16::<0>(halves[0], 0);
    }
    let steps = by_position(quantizer.steps);
    let reciprocals = by_position(quantizer.reciprocals);
    let roundings = by_position(quantizer.roundings);
    let roots = load_block(&ERROR_ROOTS);
    let (mut levels, mut errors) = ([_mm_setzero_si128(); 2], _mm_setzero_si128());
    for i in 0..2 {
        let rounded = _mm_add_epi16(_mm_abs_epi16(halves[i]), roundings[i]);
        levels[i] = _mm_sign_epi16(_mm_mulhi_epu16(rounded, reciprocals[i]), halves[i]);
        let error = _mm_sub_epi16(halves[i], _mm_mullo_epi16(levels[i], steps[i]));
        let weighted = _mm_mulhrs_epi16(_mm_slli_epi16::<3>(error), roots[i]);
        errors = _mm_add_epi32(errors, _mm_madd_epi16(weighted, weighted));
    }
    let [start, end] = in_zigzag(levels);
    let quantized = Quantized {
        levels: store_block([start, end]),
        eob: eob([start, end]),
    };
    (
        quantized,
        sum_of_four(errors) >> (6 + COEFFICIENT_ERROR_SHIFT),
    )
}

/// Reorders values from raster to zigzag order.
#[inline]
#[target_feature(enable = "avx2")]
fn in_zigzag([lower, upper]: [__m128i; 2]) -> [__m128i; 2] {
    // The raster positions in zigzag order: 0 1 4 8 5 2 3 6 and 9 12 13 10 7 11 14 15.
    let from_lower = _mm_setr_epi8(0, 1, 2, 3, 8, 9, -1, -1, 10, 11, 4, 5, 6, 7, 12, 13);
    let from_upper = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 0, 1, -1, -1, -1, -1, -1, -1, -1, -1);
    let start = _mm_or_si128(
        _mm_shuffle_epi8(lower, from_lower),
        _mm_shuffle_epi8(upper, from_upper),
    );
    let from_lower = _mm_setr_epi8(
        -1, -1, -1, -1, -1, -1, -1, -1, 14, 15, -1, -1, -1, -1, -1, -1,
    );
    let from_upper = _mm_setr_epi8(2, 3, 8, 9, 10, 11, 4, 5, -1, -1, 6, 7, 12, 13, 14, 15);
    let end = _mm_or_si128(
        _mm_shuffle_epi8(lower, from_lower),
        _mm_shuffle_epi8(upper, from_upper),
    );
    [start, end]
}

/// Returns one past the last nonzero value of 16.
#[inline]
#[target_feature(enable = "avx2")]
fn eob([start, end]: [__m128i; 2]) -> u8 {
    let zeros = _mm_cmpeq_epi8(_mm_packs_epi16(start, end), _mm_setzero_si128());
    let others = !(_mm_movemask_epi8(zeros) as u32) & 0xFFFF;
    (32 - others.leading_zeros()) as u8
}

#[inline]
#[target_feature(enable = "avx2")]
fn nearest(coefficients: &Block, quantizer: &Quantizer, first: usize) -> Nearest {
    let mut halves = load_block(coefficients);
    if first == 1 {
        halves[0] = _mm_insert_epi16::<0>(halves[0], 0);
    }
    let halves = [_mm_abs_epi16(halves[0]), _mm_abs_epi16(halves[1])];
    let steps = by_position(quantizer.steps);
    let reciprocals = by_position(quantizer.reciprocals);
    let mut levels = [_mm_setzero_si128(); 2];
    let mut energies = _mm256_setzero_si256();
    for i in 0..2 {
        let rounded = _mm_add_epi16(halves[i], _mm_srli_epi16::<1>(steps[i]));
        levels[i] = _mm_mulhi_epu16(rounded, reciprocals[i]);
        let wide = _mm256_cvtepu16_epi32(halves[i]);
        // SAFETY: 8 values of 32 bits, at any alignment.
        let weights =
            unsafe { _mm256_loadu_si256(ERROR_WEIGHTS[8 * i..8 * i + 8].as_ptr().cast()) };
        let energy = _mm256_mullo_epi32(_mm256_mullo_epi32(wide, wide), weights);
        energies = _mm256_add_epi32(energies, energy);
    }
    let levels = in_zigzag(levels);
    let magnitudes = in_zigzag(halves);
    Nearest {
        magnitudes: store_lanes(magnitudes),
        levels: store_lanes(levels),
        eob: eob(levels),
        energy: sum_of_lanes(energies),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn reconstruct(
    prediction: &BlockPixels,
    levels: &Block,
    quantizer: &Quantizer,
    dc: Option<i16>,
) -> BlockPixels {
    let [start, end] = load_block(levels);
    // The zigzag positions of raster positions 0 to 7 are 0 1 5 6 2 4 7 12, those of 8 to 15 are 3
    // 8 11 13 9 10 14 15.
    let from_start = _mm_setr_epi8(0, 1, 2, 3, 10, 11, 12, 13, 4, 5, 8, 9, 14, 15, -1, -1);
    let from_end = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 8, 9);
    let lower = _mm_or_si128(
        _mm_shuffle_epi8(start, from_start),
        _mm_shuffle_epi8(end, from_end),
    );
    let from_start = _mm_setr_epi8(6, 7, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    let from_end = _mm_setr_epi8(-1, -1, 0, 1, 6, 7, 10, 11, 2, 3, 4, 5, 12, 13, 14, 15);
    let upper = _mm_or_si128(
        _mm_shuffle_epi8(start, from_start),
        _mm_shuffle_epi8(end, from_end),
    );
    let steps = by_position(quantizer.steps);
    let mut lower = _mm_mullo_epi16(lower, steps[0]);
    let upper = _mm_mullo_epi16(upper, steps[1]);
    if let Some(dc) = dc {
        lower = _mm_insert_epi16::<0>(lower, i32::from(dc));
    }

    let [lower, upper] = transposed(inverse_pass([lower, upper]));
    let [lower, upper] = inverse_pass([lower, upper]);
    let round = |x: __m128i| _mm_srai_epi16::<3>(_mm_add_epi16(x, _mm_set1_epi16(4)));
    let [lower, upper] = transposed([round(lower), round(upper)]);
    let prediction = load_pixels(prediction);
    let zero = _mm_setzero_si128();
    store_pixels(_mm_packus_epi16(
        _mm_add_epi16(_mm_unpacklo_epi8(prediction, zero), lower),
        _mm_add_epi16(_mm_unpackhi_epi8(prediction, zero), upper),
    ))
}

/// One dimension of the inverse DCT, over columns. The vectors hold rows 0 and 1, and rows 2 and 3.
#[inline]
#[target_feature(enable = "avx2")]
fn inverse_pass([r01, r23]: [__m128i; 2]) -> [__m128i; 2] {
    let second_negated = _mm_setr_epi16(1, 1, 1, 1, -1, -1, -1, -1);
    let (r02, r13) = (_mm_unpacklo_epi64(r01, r23), _mm_unpackhi_epi64(r01, r23));
    let r22 = _mm_unpackhi_epi64(r02, r02);
    // The terms a and b.
    let ab = _mm_add_epi16(
        _mm_unpacklo_epi64(r02, r02),
        _mm_sign_epi16(r22, second_negated),
    );
    let cosines = _mm_add_epi16(r13, _mm_mulhi_epi16(r13, _mm_set1_epi16(20091)));
    // 35468 does not fit into 16 bits: 35468 - 65536 is used, and the value is added once more.
    let sines = _mm_add_epi16(r13, _mm_mulhi_epi16(r13, _mm_set1_epi16(35468u16 as i16)));
    // The terms d and c.
    let of_r3 = _mm_sign_epi16(_mm_unpackhi_epi64(sines, cosines), second_negated);
    let dc = _mm_add_epi16(_mm_unpacklo_epi64(cosines, sines), of_r3);
    let o01 = _mm_add_epi16(ab, dc);
    let o32 = _mm_sub_epi16(ab, dc);
    [o01, _mm_shuffle_epi32::<0b01_00_11_10>(o32)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn transposed([r01, r23]: [__m128i; 2]) -> [__m128i; 2] {
    let upper = _mm_unpacklo_epi16(r01, _mm_unpackhi_epi64(r01, r01));
    let lower = _mm_unpacklo_epi16(r23, _mm_unpackhi_epi64(r23, r23));
    [
        _mm_unpacklo_epi32(upper, lower),
        _mm_unpackhi_epi32(upper, lower),
    ]
}
