//! Vector operations that `fearless_simd` lacks. Each has a definition that holds everywhere, and
//! the single instruction of the processors that have one.

#[cfg(target_arch = "aarch64")]
use fearless_simd::aarch64::Neon;
use fearless_simd::prelude::*;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use fearless_simd::wasm32::WasmSimd128;
#[cfg(target_arch = "x86_64")]
use fearless_simd::x86::{Avx2, Sse2, Sse4_2};
use fearless_simd::{i16x8, i16x16, u8x16, u8x32, u16x8, u16x16, u32x8};

/// A token of vector instructions with the operations of this file.
pub trait Vector: Simd {
    /// Whether a shuffle of bytes by indices that vary is one instruction.
    const SHUFFLES: bool = true;

    /// Returns the upper halves of the products.
    #[inline(always)]
    fn mul_high_u16(self, a: u16x8<Self>, b: u16x8<Self>) -> u16x8<Self> {
        let (low, high) = a.widening_mul(b);
        low.bitcast::<u16x8<Self>>()
            .unzip_high(high.bitcast::<u16x8<Self>>())
    }

    /// Returns the upper halves of the products, which are not of -32768 and -32768.
    #[inline(always)]
    fn mul_high_i16(self, a: i16x8<Self>, b: i16x8<Self>) -> i16x8<Self> {
        let (low, high) = a.widening_mul(b);
        low.bitcast::<i16x8<Self>>()
            .unzip_high(high.bitcast::<i16x8<Self>>())
    }

    /// Returns the products divided by 2^15 and rounded. They are not of -32768 and -32768.
    #[inline(always)]
    fn mul_round_i16(self, a: i16x8<Self>, b: i16x8<Self>) -> i16x8<Self> {
        let (low, high) = a.widening_mul(b);
        ((low + (1 << 14)) >> 15).saturating_narrow((high + (1 << 14)) >> 15)
    }

    /// Returns the means, rounded up.
    #[inline(always)]
    fn average_u8(self, a: u8x16<Self>, b: u8x16<Self>) -> u8x16<Self> {
        (a | b) - ((a ^ b) >> 1)
    }

    /// Returns the means, rounded up.
    #[inline(always)]
    fn average_u8x32(self, a: u8x32<Self>, b: u8x32<Self>) -> u8x32<Self> {
        let ((a_low, a_high), (b_low, b_high)) = (a.split(), b.split());
        let low = self.average_u8(a_low, b_low);
        low.combine(self.average_u8(a_high, b_high))
    }

    /// Returns the numbers of both vectors, limited to 0 to 255.
    #[inline(always)]
    fn pack_u8(self, low: i16x8<Self>, high: i16x8<Self>) -> u8x16<Self> {
        let (low, high) = (low.max(0).min(255), high.max(0).min(255));
        low.bitcast::<u16x8<Self>>()
            .narrow(high.bitcast::<u16x8<Self>>())
    }

    /// Returns the bytes of each half at `indices` in the same half, 0 for indices of 128 and more.
    #[inline(always)]
    fn shuffle_u8(self, bytes: u8x32<Self>, indices: u8x32<Self>) -> u8x32<Self> {
        let ((low, high), (for_low, for_high)) = (bytes.split(), indices.split());
        low.swizzle_dyn_precise(for_low)
            .combine(high.swizzle_dyn_precise(for_high))
    }

    /// Returns magnitudes, which are 0 where `signs` is, with the signs of `signs`.
    #[inline(always)]
    fn with_signs(self, magnitudes: i16x8<Self>, signs: i16x8<Self>) -> i16x8<Self> {
        let negative = signs >> 15;
        (magnitudes ^ negative) - negative
    }

    /// Returns the sum of the bytes.
    #[inline(always)]
    fn sum_u8(self, bytes: u8x16<Self>) -> u32 {
        u32::from(bytes.pairwise_widening_add().reduce_sum())
    }

    /// Returns the sums of the larger magnitudes in each pair of lanes of the four vectors. The sum
    /// of a lane's magnitudes is below 2^16.
    #[inline(always)]
    fn sum_larger_of_pairs(self, vectors: [i16x16<Self>; 4]) -> u32x8<Self> {
        let [a, b, c, d] = vectors;
        let sums = larger_of_pair(a) + larger_of_pair(b) + larger_of_pair(c) + larger_of_pair(d);
        sums.bitcast::<u32x8<Self>>() & u32x8::splat(self, 0xFFFF)
    }

    /// Returns the index of the least of 16 numbers, the first of equals, and the number.
    #[inline(always)]
    fn argmin_u16(self, low: u16x8<Self>, high: u16x8<Self>) -> (usize, u16) {
        let least = low.min(high).reduce_min();
        let found = low.simd_eq(least).to_bitmask() | high.simd_eq(least).to_bitmask() << 8;
        (found.trailing_zeros() as usize, least)
    }
}

/// Returns the larger magnitude of each pair of lanes in the lower one; the upper one is undefined.
#[inline(always)]
fn larger_of_pair<V: Vector>(x: i16x16<V>) -> u16x16<V> {
    let magnitudes: u16x16<V> = x.abs().bitcast();
    magnitudes.max((magnitudes.bitcast::<u32x8<V>>() >> 16).bitcast::<u16x16<V>>())
}

/// Implements a method of [`Vector`] by an expression of the processor's intrinsics.
#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
))]
macro_rules! native {
    ($level:ident: $name:ident($($operand:ident),*: $from:ident) -> $to:ident = $value:expr) => {
        #[inline(always)]
        fn $name(self, $($operand: $from<Self>),*) -> $to<Self> {
            fearless_simd::kernel!(
                #[inline(always)]
                fn native(token: $level, $($operand: $from<$level>),*) -> $to<$level> {
                    $value.simd_into(token)
                }
            );
            native(self, $($operand),*)
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Avx2, SimdInto, Sse2, Sse4_2, Vector, i16x8, u8x16, u8x32, u16x8};
    use std::arch::x86_64::{
        _mm_avg_epu8, _mm_minpos_epu16, _mm_mulhi_epi16, _mm_mulhi_epu16, _mm_mulhrs_epi16,
        _mm_packus_epi16, _mm_sad_epu8, _mm_setzero_si128, _mm_sign_epi16, _mm256_avg_epu8,
        _mm256_shuffle_epi8,
    };

    /// The operations of all levels.
    macro_rules! with_sse2 {
        ($level:ident) => {
            native!($level: mul_high_u16(a, b: u16x8) -> u16x8 = _mm_mulhi_epu16(a.into(), b.into()));
            native!($level: mul_high_i16(a, b: i16x8) -> i16x8 = _mm_mulhi_epi16(a.into(), b.into()));
            native!($level: average_u8(a, b: u8x16) -> u8x16 = _mm_avg_epu8(a.into(), b.into()));
            native!($level: pack_u8(a, b: i16x8) -> u8x16 = _mm_packus_epi16(a.into(), b.into()));

            #[inline(always)]
            fn sum_u8(self, bytes: u8x16<Self>) -> u32 {
                fearless_simd::kernel!(
                    #[inline(always)]
                    fn native(token: $level, bytes: u8x16<$level>) -> u16x8<$level> {
                        _mm_sad_epu8(bytes.into(), _mm_setzero_si128()).simd_into(token)
                    }
                );
                let sums = native(self, bytes);
                u32::from(sums[0] + sums[4])
            }
        };
    }

    /// The operations that SSSE3 and SSE4.1 add.
    macro_rules! with_sse4 {
        ($level:ident) => {
            native!($level: mul_round_i16(a, b: i16x8) -> i16x8 = _mm_mulhrs_epi16(a.into(), b.into()));
            native!($level: with_signs(a, b: i16x8) -> i16x8 = _mm_sign_epi16(a.into(), b.into()));

            #[inline(always)]
            fn argmin_u16(self, low: u16x8<Self>, high: u16x8<Self>) -> (usize, u16) {
                fearless_simd::kernel!(
                    #[inline(always)]
                    fn native(token: $level, numbers: u16x8<$level>) -> u16x8<$level> {
                        _mm_minpos_epu16(numbers.into()).simd_into(token)
                    }
                );
                // The least number and its lane.
                let (low, high) = (native(self, low), native(self, high));
                if high[0] >= low[0] {
                    (usize::from(low[1]), low[0])
                } else {
                    (8 + usize::from(high[1]), high[0])
                }
            }
        };
    }

    impl Vector for Sse2 {
        const SHUFFLES: bool = false;

        with_sse2!(Sse2);
    }

    impl Vector for Sse4_2 {
        with_sse2!(Sse4_2);
        with_sse4!(Sse4_2);
    }

    impl Vector for Avx2 {
        with_sse2!(Avx2);
        with_sse4!(Avx2);
        native!(Avx2: average_u8x32(a, b: u8x32) -> u8x32 = _mm256_avg_epu8(a.into(), b.into()));
        native!(Avx2: shuffle_u8(a, b: u8x32) -> u8x32 = _mm256_shuffle_epi8(a.into(), b.into()));
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{Neon, Vector, i16x8, i16x16, u8x16, u16x8, u16x16, u32x8};
    use fearless_simd::prelude::*;
    use std::arch::aarch64::{
        vaddlvq_u8, vcombine_u8, vpmaxq_u16, vqdmulhq_s16, vqmovun_s16, vqrdmulhq_s16, vrhaddq_u8,
        vshrq_n_s16,
    };

    /// Returns the larger magnitude of each pair of lanes.
    #[inline(always)]
    fn larger_of_pairs(neon: Neon, x: i16x16<Neon>) -> u16x8<Neon> {
        fearless_simd::kernel!(
            #[inline(always)]
            fn native(token: Neon, low: u16x8<Neon>, high: u16x8<Neon>) -> u16x8<Neon> {
                vpmaxq_u16(low.into(), high.into()).simd_into(token)
            }
        );
        let (low, high) = x.abs().bitcast::<u16x16<Neon>>().split();
        native(neon, low, high)
    }

    impl Vector for Neon {
        #[inline(always)]
        fn sum_larger_of_pairs(self, vectors: [i16x16<Self>; 4]) -> u32x8<Self> {
            let [a, b, c, d] = vectors;
            let sums = larger_of_pairs(self, a)
                + larger_of_pairs(self, b)
                + larger_of_pairs(self, c)
                + larger_of_pairs(self, d);
            let (low, high) = sums.widen();
            low.combine(high)
        }

        // The instruction doubles the product.
        native!(Neon: mul_high_i16(a, b: i16x8) -> i16x8 =
            vshrq_n_s16::<1>(vqdmulhq_s16(a.into(), b.into())));
        native!(Neon: mul_round_i16(a, b: i16x8) -> i16x8 = vqrdmulhq_s16(a.into(), b.into()));
        native!(Neon: average_u8(a, b: u8x16) -> u8x16 = vrhaddq_u8(a.into(), b.into()));
        native!(Neon: pack_u8(a, b: i16x8) -> u8x16 =
            vcombine_u8(vqmovun_s16(a.into()), vqmovun_s16(b.into())));

        #[inline(always)]
        fn sum_u8(self, bytes: u8x16<Self>) -> u32 {
            fearless_simd::kernel!(
                #[inline(always)]
                fn native(token: Neon, bytes: u8x16<Neon>) -> u32 {
                    u32::from(vaddlvq_u8(bytes.into()))
                }
            );
            native(self, bytes)
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    use super::{SimdInto, Vector, WasmSimd128, i16x8, u8x16};
    use std::arch::wasm32::{i16x8_q15mulr_sat, u8x16_avgr, u8x16_narrow_i16x8};

    impl Vector for WasmSimd128 {
        native!(WasmSimd128: mul_round_i16(a, b: i16x8) -> i16x8 =
            i16x8_q15mulr_sat(a.into(), b.into()));
        native!(WasmSimd128: average_u8(a, b: u8x16) -> u8x16 = u8x16_avgr(a.into(), b.into()));
        native!(WasmSimd128: pack_u8(a, b: i16x8) -> u8x16 =
            u8x16_narrow_i16x8(a.into(), b.into()));
    }
}
