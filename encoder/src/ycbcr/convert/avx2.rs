//! The conversion of two rows of pixels with AVX2 (RFC 6386, section 9.2). Each function returns
//! the same as the one of its name in `scalar.rs`.
#![expect(
    unsafe_code,
    reason = "loads, stores, and calls into functions that need AVX2"
)]

use super::{U_WEIGHTS, V_WEIGHTS, Y_WEIGHTS, scalar};
use crate::cpu::Avx2;
use crate::picture::RgbPicture;
use crate::ycbcr::row_kernel::{ChromaRow, RowKernels};
use crate::ycbcr::stripe::{self, Stripe};
#[allow(
    clippy::wildcard_imports,
    reason = "the vendor names every instruction in one flat module"
)]
use std::arch::x86_64::*;

/// [`stripe::convert_with`] as one region of code that may use AVX2.
pub fn convert(avx2: Avx2, picture: &RgbPicture<'_>, stripe: &mut Stripe<'_>) {
    // SAFETY: an `Avx2` exists only where its `detect` found all of these instructions.
    unsafe { region(avx2, picture, stripe) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn region(avx2: Avx2, picture: &RgbPicture<'_>, stripe: &mut Stripe<'_>) {
    stripe::convert_with(avx2, picture, stripe);
}

// SAFETY (of every call here): an `Avx2` exists only where its `detect` found the instructions.
impl RowKernels for Avx2 {
    #[inline(always)]
    fn convert<const CHANNELS: usize>(
        self,
        rows: [&[u8]; 2],
        luma: [&mut [u8]; 2],
        chroma: &mut ChromaRow,
    ) {
        unsafe { convert_rows::<CHANNELS>(rows, luma, chroma) }
    }
}

/// Number of pixels converted at a time.
const STEP: usize = 16;

#[inline]
#[target_feature(enable = "avx2")]
fn convert_rows<const CHANNELS: usize>(
    rows: [&[u8]; 2],
    luma: [&mut [u8]; 2],
    chroma: &mut ChromaRow,
) {
    let width = rows[0].len() / CHANNELS;
    let mut x = 0;
    // The last four pixels of a step are loaded with the bytes after them, up to 16.
    while (x + STEP - 4) * CHANNELS + 16 <= rows[0].len() && x + STEP <= width {
        let tops = [
            load::<CHANNELS>(rows[0], x),
            load::<CHANNELS>(rows[0], x + 8),
        ];
        let bottoms = [
            load::<CHANNELS>(rows[1], x),
            load::<CHANNELS>(rows[1], x + 8),
        ];
        store(&mut luma[0][x..x + STEP], luma_of(tops));
        store(&mut luma[1][x..x + STEP], luma_of(bottoms));
        let half = x / 2..x / 2 + STEP / 2;
        let sums = Pixels {
            red_green: sum_of_blocks([tops, bottoms].map(|row| row.map(|p| p.red_green))),
            green_blue: sum_of_blocks([tops, bottoms].map(|row| row.map(|p| p.green_blue))),
        };
        let [u, v] = &mut chroma.planes;
        store_half(&mut u[half.clone()], chroma_of(&sums, U_WEIGHTS));
        store_half(&mut v[half.clone()], chroma_of(&sums, V_WEIGHTS));
        store_half(&mut chroma.spread[half], spread_of(tops, bottoms));
        x += STEP;
    }
    scalar::convert_from::<CHANNELS>(x, rows, luma, chroma);
}

/// Eight pixels, or sums of pixels, as pairs of 16 bits.
#[derive(Clone, Copy)]
struct Pixels {
    red_green: __m256i,
    green_blue: __m256i,
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<const CHANNELS: usize>(row: &[u8], x: usize) -> Pixels {
    let four = |x: usize| {
        let bytes: &[u8; 16] = row[x * CHANNELS..]
            .first_chunk()
            .expect("the caller checked the row's length");
        // SAFETY: 16 bytes, at any alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    };
    let eight = _mm256_set_m128i(four(x + 4), four(x));
    let c = CHANNELS as i8;
    let pairs = |first: i8| {
        let at = |pixel: i8, channel: i8| pixel * c + first + channel;
        let order = _mm_setr_epi8(
            at(0, 0),
            -1,
            at(0, 1),
            -1,
            at(1, 0),
            -1,
            at(1, 1),
            -1,
            at(2, 0),
            -1,
            at(2, 1),
            -1,
            at(3, 0),
            -1,
            at(3, 1),
            -1,
        );
        _mm256_shuffle_epi8(eight, _mm256_broadcastsi128_si256(order))
    };
    Pixels {
        red_green: pairs(0),
        green_blue: pairs(1),
    }
}

/// Returns two weights for pairs of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn weights(first: i32, second: i32) -> __m256i {
    _mm256_set1_epi32((second << 16) | (first & 0xffff))
}

#[inline]
#[target_feature(enable = "avx2")]
fn luma_of(pixels: [Pixels; 2]) -> __m128i {
    // The weight of green needs 17 bits: half of it is multiplied with red's pair, half with
    // blue's.
    let half = Y_WEIGHTS[1] / 2;
    let red_green = weights(Y_WEIGHTS[0], half);
    let green_blue = weights(Y_WEIGHTS[1] - half, Y_WEIGHTS[2]);
    let rounding = _mm256_set1_epi32((1 << 15) + (super::Y_OFFSET << 16));
    let [low, high] = pixels.map(|p| {
        let sum = _mm256_add_epi32(
            _mm256_madd_epi16(p.red_green, red_green),
            _mm256_madd_epi16(p.green_blue, green_blue),
        );
        _mm256_srli_epi32::<16>(_mm256_add_epi32(sum, rounding))
    });
    // Packing interleaves groups of four pixels of both halves.
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
    _mm_packus_epi16(
        _mm256_castsi256_si128(words),
        _mm256_extracti128_si256::<1>(words),
    )
}

/// Returns the sums of 2x2 pixels, for both of their pairs.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_blocks(rows: [[__m256i; 2]; 2]) -> __m256i {
    let [low, high] = [0, 1].map(|half| _mm256_add_epi16(rows[0][half], rows[1][half]));
    // Pairs are added as 32-bit numbers: their lower halves stay below 1,024, so nothing carries
    // over.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(low, high))
}

#[inline]
#[target_feature(enable = "avx2")]
fn chroma_of(sums: &Pixels, [red, green, blue]: [i32; 3]) -> __m128i {
    let sum = _mm256_add_epi32(
        _mm256_madd_epi16(sums.red_green, weights(red, green)),
        _mm256_madd_epi16(sums.green_blue, weights(0, blue)),
    );
    let rounding = _mm256_set1_epi32((1 << 17) + (super::CHROMA_OFFSET << 18));
    bytes(_mm256_srai_epi32::<18>(_mm256_add_epi32(sum, rounding)))
}

/// Returns eight 32-bit numbers as bytes, in the lower half.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(numbers: __m256i) -> __m128i {
    let words = _mm_packs_epi32(
        _mm256_castsi256_si128(numbers),
        _mm256_extracti128_si256::<1>(numbers),
    );
    _mm_packus_epi16(words, words)
}

#[inline]
#[target_feature(enable = "avx2")]
fn spread_of(tops: [Pixels; 2], bottoms: [Pixels; 2]) -> __m128i {
    // For four pixels each: red - green, then blue - green, as 16 bits.
    let less_green = |p: Pixels| {
        _mm256_packs_epi32(
            _mm256_madd_epi16(p.red_green, weights(1, -1)),
            _mm256_madd_epi16(p.green_blue, weights(-1, 1)),
        )
    };
    let [low, high] = [0, 1].map(|half| {
        let (top, bottom) = (less_green(tops[half]), less_green(bottoms[half]));
        let most = _mm256_max_epi16(top, bottom);
        let least = _mm256_min_epi16(top, bottom);
        // Compares with the neighboring pixel; only the lower half of each 32 bits is used.
        let most = _mm256_max_epi16(most, _mm256_srli_epi32::<16>(most));
        let least = _mm256_min_epi16(least, _mm256_srli_epi32::<16>(least));
        let range = _mm256_and_si256(_mm256_sub_epi16(most, least), _mm256_set1_epi32(0xffff));
        // The wider of the two ranges, in the lower 64 bits of both lanes.
        _mm256_max_epi16(range, _mm256_shuffle_epi32::<0b01_00_11_10>(range))
    });
    bytes(_mm256_permute4x64_epi64::<0b11_01_10_00>(
        _mm256_unpacklo_epi64(low, high),
    ))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(to: &mut [u8], from: __m128i) {
    let to: &mut [u8; 16] = to.try_into().expect("a step is 16 pixels");
    // SAFETY: 16 bytes, at any alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), from) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_half(to: &mut [u8], from: __m128i) {
    let to: &mut [u8; 8] = to.try_into().expect("a step is 8 samples");
    // SAFETY: 8 bytes, at any alignment.
    unsafe { _mm_storel_epi64(to.as_mut_ptr().cast(), from) }
}
