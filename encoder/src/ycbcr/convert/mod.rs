//! The kernel that converts two rows of pixels to two rows of luma and one of chroma (RFC 6386,
//! section 9.2).
//!
//! [`scalar`] defines it; the vector implementation returns the same.

mod scalar;
mod vector;

use super::stripe::{self, Stripe};
use crate::cpu::{Simd, with_instructions};
use crate::picture::RgbPicture;

/// Converts the rows of `stripe` that lie in the picture.
pub fn convert(picture: &RgbPicture<'_>, simd: Simd, stripe: &mut Stripe<'_>) {
    with_instructions!(
        simd,
        scalar => stripe::convert_with(scalar::Scalar, picture, stripe),
        vectors => stripe::convert_with(vectors, picture, stripe),
    );
}

/// Weights of red, green and blue in Y', Cb and Cr, times 65536.
const Y_WEIGHTS: [i32; 3] = [16_839, 33_059, 6_420];
const U_WEIGHTS: [i32; 3] = [-9_719, -19_081, 28_800];
const V_WEIGHTS: [i32; 3] = [28_800, -24_116, -4_684];
/// Y' of black, and Cb and Cr of gray.
const Y_OFFSET: i32 = 16;
const CHROMA_OFFSET: i32 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use crate::ycbcr::row_kernel::{ChromaRow, RowKernels};

    /// Two rows of bytes: extremes first, then random ones, some of them nearly of one color.
    fn rows(length: usize) -> impl Iterator<Item = [Vec<u8>; 2]> {
        let mut random = Random::new(1);
        let extremes = [1, 2, 3, 4, 6, 7].into_iter().flat_map(move |period| {
            [[0, 0], [255, 255], [0, 255], [255, 0]].map(|backgrounds| {
                backgrounds.map(|background| {
                    let byte = |i: usize| {
                        if (i / period).is_multiple_of(2) {
                            background
                        } else {
                            255 - background
                        }
                    };
                    (0..length).map(byte).collect()
                })
            })
        });
        let impulses = (0..length.min(60)).flat_map(move |at| {
            [0, 255].map(|background| {
                let mut row = vec![background; length];
                row[at] = 255 - background;
                [vec![background; length], row]
            })
        });
        let randoms = (0..40).map(move |i| {
            let (least, range) = (random.below(256), [256, 64, 16, 4][i % 4]);
            [0, 1].map(|_| {
                (0..length)
                    .map(|_| (least + random.below(range)).min(255) as u8)
                    .collect()
            })
        });
        extremes.chain(impulses).chain(randoms)
    }

    fn converted<const CHANNELS: usize>(
        kernels: impl RowKernels,
        rows: &[Vec<u8>; 2],
    ) -> ([Vec<u8>; 2], ChromaRow) {
        let stride = (rows[0].len() / CHANNELS).div_ceil(16) * 8;
        let mut luma = [vec![7; 2 * stride], vec![7; 2 * stride]];
        let mut chroma = ChromaRow::new(stride);
        let [top, bottom] = &mut luma;
        kernels.convert::<CHANNELS>(
            [&rows[0], &rows[1]],
            [top.as_mut_slice(), bottom.as_mut_slice()],
            &mut chroma,
        );
        (luma, chroma)
    }

    fn check<const CHANNELS: usize>(kernels: impl RowKernels) {
        for width in (1..40).chain([63, 64, 65, 257]) {
            for rows in rows(width * CHANNELS) {
                assert_eq!(
                    converted::<CHANNELS>(kernels, &rows),
                    converted::<CHANNELS>(scalar::Scalar, &rows),
                    "{width} pixels of {CHANNELS} channels: {rows:?}"
                );
            }
        }
    }

    #[test]
    fn vector_kernels_convert_the_same() {
        for simd in Simd::supported() {
            with_instructions!(
                simd,
                scalar => check_both(scalar::Scalar),
                vectors => check_both(vectors),
            );
        }
    }

    fn check_both(kernels: impl RowKernels) {
        check::<3>(kernels);
        check::<4>(kernels);
    }

    #[test]
    fn spread_is_that_of_color_not_of_brightness() {
        let gray = [vec![0, 0, 0, 255, 255, 255], vec![9, 9, 9, 70, 70, 70]];
        assert_eq!(converted::<3>(scalar::Scalar, &gray).1.spread[0], 0);
        let red = [vec![0, 0, 0, 255, 255, 255], vec![9, 9, 9, 100, 70, 70]];
        assert_eq!(converted::<3>(scalar::Scalar, &red).1.spread[0], 30);
        let most = [vec![0, 255, 0, 255, 0, 255], vec![0; 6]];
        assert_eq!(converted::<3>(scalar::Scalar, &most).1.spread[0], 255);
    }
}
