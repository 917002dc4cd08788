//! The kernel from two rows of pixels to two rows of luma and one of chroma.
//!
//! [`scalar`] defines it; its twin gives the same numbers.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use super::stripe::Stripe;
use crate::RgbPicture;
use crate::cpu::{Instructions, Simd};

/// A row of chroma at half size, and how much it hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChromaRow {
    /// U and V, padded to whole macroblocks.
    pub planes: [Vec<u8>; 2],
    /// How far apart in colour the four pixels of each sample are: the range of red less green or of blue less green,
    /// whichever is wider, at most 255. 0 in the padding.
    pub spread: Vec<u8>,
}

impl ChromaRow {
    /// Zeroed, `stride` samples long.
    pub fn new(stride: usize) -> ChromaRow {
        ChromaRow {
            planes: [vec![0; stride], vec![0; stride]],
            spread: vec![0; stride],
        }
    }
}

/// The kernel. Values of an implementation prove that the machine has its instructions.
pub trait RowKernels: Copy {
    /// Converts two rows of pixels to luma, and the means of 2x2 pixels to chroma (an odd last column counts twice). The last
    /// sample fills what is left of a row. Any width from 1 on; the rows of luma are twice as long as those of chroma.
    fn convert<const CHANNELS: usize>(
        self,
        rows: [&[u8]; 2],
        luma: [&mut [u8]; 2],
        chroma: &mut ChromaRow,
    );
}

/// Converts the rows of `stripe` that are in the picture.
pub fn convert(picture: &RgbPicture<'_>, simd: Simd, stripe: &mut Stripe<'_>) {
    match simd.0 {
        Instructions::Scalar => scalar::convert(picture, stripe),
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(avx2) => avx2::convert(avx2, picture, stripe),
    }
}

/// The weights of red, green and blue in Y, U and V, times 65536.
const Y_WEIGHTS: [i32; 3] = [16_839, 33_059, 6_420];
const U_WEIGHTS: [i32; 3] = [-9_719, -19_081, 28_800];
const V_WEIGHTS: [i32; 3] = [28_800, -24_116, -4_684];
/// Y of black, and U and V of grey.
const Y_OFFSET: i32 = 16;
const CHROMA_OFFSET: i32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of bytes: extremes first, then random ones, some of them nearly of one colour.
    fn rows(length: usize) -> impl Iterator<Item = [Vec<u8>; 2]> {
        let mut state = 0x1234_5678u32;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        let extremes = [1, 2, 3, 4, 6, 7].into_iter().flat_map(move |period| {
            [[0, 0], [255, 255], [0, 255], [255, 0]].map(|grounds| {
                grounds.map(|ground| {
                    let byte = |i: usize| {
                        if (i / period).is_multiple_of(2) {
                            ground
                        } else {
                            255 - ground
                        }
                    };
                    (0..length).map(byte).collect()
                })
            })
        });
        let impulses = (0..length.min(60)).flat_map(move |at| {
            [0, 255].map(|ground| {
                let mut row = vec![ground; length];
                row[at] = 255 - ground;
                [vec![ground; length], row]
            })
        });
        let randoms = (0..40).map(move |i| {
            let (least, range) = (random() % 256, [256, 64, 16, 4][i % 4]);
            [0, 1].map(|_| {
                (0..length)
                    .map(|_| (least + random() % range).min(255) as u8)
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
    fn twins_convert_the_same() {
        for simd in Simd::supported() {
            match simd.0 {
                Instructions::Scalar => check::<3>(scalar::Scalar),
                #[cfg(target_arch = "x86_64")]
                Instructions::Avx2(avx2) => {
                    check::<3>(avx2);
                    check::<4>(avx2);
                }
            }
        }
    }

    #[test]
    fn spread_is_that_of_colour_not_of_brightness() {
        let grey = [vec![0, 0, 0, 255, 255, 255], vec![9, 9, 9, 70, 70, 70]];
        assert_eq!(converted::<3>(scalar::Scalar, &grey).1.spread[0], 0);
        let red = [vec![0, 0, 0, 255, 255, 255], vec![9, 9, 9, 100, 70, 70]];
        assert_eq!(converted::<3>(scalar::Scalar, &red).1.spread[0], 30);
        let most = [vec![0, 255, 0, 255, 0, 255], vec![0; 6]];
        assert_eq!(converted::<3>(scalar::Scalar, &most).1.spread[0], 255);
    }
}
