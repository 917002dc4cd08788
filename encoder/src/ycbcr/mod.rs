//! Converts RGB to the planes that VP8 codes: Y' at full size, Cb and Cr at half size, BT.601 in
//! limited range (RFC 6386, section 9.2).
//!
//! Half of the chroma resolution is lost. Decoders make up for it with libwebp's smooth
//! interpolation (9, 3, 3 and 1 sixteenths of the four nearest samples), which browsers use too.
//! Where chroma changes abruptly, that smears: red text on black turns dull, and its outlines
//! bright. Two steps counter it where it shows ([`chroma`], [`luminance`]), and leave most of a
//! photograph as it is.

mod activity;
mod builder;
mod chroma;
mod convert;
mod luminance;
mod row_kernel;
mod stripe;

pub use activity::Activity;
pub use builder::PlanesBuilder;

use super::EncodeError;
use super::cpu::Simd;
use super::picture::{RgbPicture, check_sides};
use super::threads::Workers;
use std::sync::Mutex;
use stripe::Stripe;

/// Planes of a picture in `Y'CbCr`, padded to whole macroblocks by repeating the last row and
/// column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Width of the picture in pixels.
    pub(crate) width: u32,
    /// Height of the picture in pixels.
    pub(crate) height: u32,
    /// Number of macroblocks in a row. A luma row has 16 samples per macroblock, a chroma row 8.
    pub(crate) mb_width: usize,
    /// Number of rows of macroblocks.
    pub(crate) mb_height: usize,
    /// Luma (Y').
    pub(crate) luma: Vec<u8>,
    /// Chroma: Cb, then Cr.
    pub(crate) chroma: [Vec<u8>; 2],
}

impl Planes {
    /// Planes for a picture of `width` x `height` pixels, zeroed.
    pub(crate) fn new(width: usize, height: usize) -> Planes {
        let (mb_width, mb_height) = (width.div_ceil(16), height.div_ceil(16));
        let count = mb_width * mb_height;
        Planes {
            width: width as u32,
            height: height as u32,
            mb_width,
            mb_height,
            luma: vec![0; count * 256],
            chroma: [vec![0; count * 64], vec![0; count * 64]],
        }
    }

    /// Planes of a picture that is in `Y'CbCr` already: BT.601 in limited range, with each chroma
    /// sample in the middle of its 2x2 pixels. Planes have the size of whole macroblocks; the
    /// samples outside the picture are overwritten.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`](crate::MAX_SIDE),
    /// [`EncodeError::PixelCount`] if a plane has another length.
    pub fn from_samples(
        (width, height): (u32, u32),
        luma: Vec<u8>,
        chroma: [Vec<u8>; 2],
    ) -> Result<Planes, EncodeError> {
        check_sides((width, height))?;
        let (mb_width, mb_height) = (width.div_ceil(16) as usize, height.div_ceil(16) as usize);
        let count = mb_width * mb_height;
        if luma.len() != count * 256 || chroma.iter().any(|plane| plane.len() != count * 64) {
            return Err(EncodeError::PixelCount);
        }
        let mut planes = Planes {
            width,
            height,
            mb_width,
            mb_height,
            luma,
            chroma,
        };
        planes.repeat_edges();
        Ok(planes)
    }

    /// The samples: Y', then Cb and Cr, in planes of whole macroblocks, as
    /// [`Planes::from_samples`] takes them.
    pub fn into_samples(self) -> (Vec<u8>, [Vec<u8>; 2]) {
        (self.luma, self.chroma)
    }

    /// Copies borrowed planes: Y' at full size, Cb and Cr at half size, rounded up. `strides` are
    /// the distances between rows of Y', and between rows of Cb and Cr, in samples. Samples are
    /// BT.601 in limited range, with each chroma sample in the middle of its 2x2 pixels.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`](crate::MAX_SIDE);
    /// [`EncodeError::PixelCount`] if a stride is shorter than a row, or a plane ends within its
    /// last row.
    pub fn copied_from(
        (width, height): (u32, u32),
        planes: [&[u8]; 3],
        strides: [usize; 2],
    ) -> Result<Planes, EncodeError> {
        check_sides((width, height))?;
        let full = (width as usize, height as usize);
        let half = (full.0.div_ceil(2), full.1.div_ceil(2));
        let [luma_stride, chroma_stride] = strides;
        let mut copied = Planes::new(full.0, full.1);
        let (wide, narrow) = (copied.luma_stride(), copied.chroma_stride());
        let [u, v] = &mut copied.chroma;
        let [from_luma, from_u, from_v] = planes;
        for (from, stride, size, to, to_stride) in [
            (from_luma, luma_stride, full, &mut copied.luma, wide),
            (from_u, chroma_stride, half, u, narrow),
            (from_v, chroma_stride, half, v, narrow),
        ] {
            let before_last = stride.checked_mul(size.1 - 1);
            let end = before_last.and_then(|samples| samples.checked_add(size.0));
            if stride < size.0 || end.is_none_or(|end| from.len() < end) {
                return Err(EncodeError::PixelCount);
            }
            for (from, to) in from
                .chunks(stride)
                .zip(to.chunks_mut(to_stride))
                .take(size.1)
            {
                to[..size.0].copy_from_slice(&from[..size.0]);
            }
        }
        copied.repeat_edges();
        Ok(copied)
    }

    /// Distance from one luma row to the next.
    pub(crate) fn luma_stride(&self) -> usize {
        self.mb_width * 16
    }

    /// Distance from one chroma row to the next.
    pub(crate) fn chroma_stride(&self) -> usize {
        self.mb_width * 8
    }

    /// Converts a picture, without its alpha. The samples are the same for any `simd` and
    /// `workers`.
    pub(crate) fn from_picture(
        picture: &RgbPicture<'_>,
        simd: Simd,
        workers: Workers<'_>,
    ) -> Result<Planes, EncodeError> {
        let (width, height) = (picture.width as usize, picture.height as usize);
        let mut planes = Planes::new(width, height);
        let mb_rows = stripe_rows(planes.mb_width);
        planes.convert_stripes(picture, simd, workers, mb_rows)?;
        planes.repeat_edges();
        Ok(planes)
    }

    /// Cb and Cr of a pixel as decoders interpolate them.
    pub(crate) fn chroma_at(&self, x: usize, y: usize) -> [i32; 2] {
        let nearest = |at: usize, side: u32| {
            let last = (side as usize).div_ceil(2) - 1;
            let other = if at.is_multiple_of(2) {
                (at / 2).saturating_sub(1)
            } else {
                last.min(at / 2 + 1)
            };
            [at / 2, other]
        };
        let [column, other_column] = nearest(x, self.width);
        let [row, other_row] = nearest(y, self.height);
        self.chroma.each_ref().map(|plane| {
            let across = |row: usize| {
                let row = &plane[row * self.chroma_stride()..];
                3 * i32::from(row[column]) + i32::from(row[other_column])
            };
            (3 * across(row) + across(other_row) + 8) >> 4
        })
    }

    fn repeat_edges(&mut self) {
        let (width, height) = (self.width as usize, self.height as usize);
        let (luma_stride, chroma_stride) = (self.luma_stride(), self.chroma_stride());
        repeat_edges(&mut self.luma, luma_stride, width, height);
        for plane in &mut self.chroma {
            repeat_edges(plane, chroma_stride, width.div_ceil(2), height.div_ceil(2));
        }
    }

    /// Converts the pixels of the picture, in stripes of `mb_rows` rows of macroblocks.
    fn convert_stripes(
        &mut self,
        picture: &RgbPicture<'_>,
        simd: Simd,
        workers: Workers<'_>,
        mb_rows: usize,
    ) -> Result<(), EncodeError> {
        let (luma_stride, chroma_stride) = (self.luma_stride(), self.chroma_stride());
        let [u, v] = &mut self.chroma;
        let stripes: Vec<_> = self
            .luma
            .chunks_mut(mb_rows * 16 * luma_stride)
            .zip(u.chunks_mut(mb_rows * 8 * chroma_stride))
            .zip(v.chunks_mut(mb_rows * 8 * chroma_stride))
            .enumerate()
            .map(|(i, ((luma, u), v))| {
                Mutex::new(Stripe {
                    first_pair: i * mb_rows * 8,
                    first_row: 0,
                    luma,
                    chroma: [u, v],
                })
            })
            .collect();
        workers.run(stripes.len(), |i| {
            let mut stripe = stripes[i].lock().expect("each is taken once");
            convert::convert(picture, simd, &mut stripe);
        })?;
        Ok(())
    }
}

/// Number of pixels in a stripe: some 0.7 ms of work, so that starting a thread for it pays.
const STRIPE_PIXELS: usize = 1 << 18;
/// Least number of rows of macroblocks in a stripe, since a stripe also converts half a row of its
/// neighbors.
const MIN_STRIPE: usize = 4;

/// The number of rows of macroblocks in a stripe of a picture that is `mb_width` macroblocks wide.
fn stripe_rows(mb_width: usize) -> usize {
    (STRIPE_PIXELS / (mb_width * 256)).max(MIN_STRIPE)
}

/// Most bytes that [`Planes::from_picture`] by some threads holds beside the pixels and the planes,
/// of a picture of this size in macroblocks.
pub fn stripe_bytes(mb_width: usize, mb_height: usize, threads: usize) -> u64 {
    let stripes = mb_height.div_ceil(stripe_rows(mb_width));
    let under_way = threads.clamp(1, stripes.max(1));
    let lists = stripes * size_of::<Mutex<Stripe<'_>>>() + stripes * 64;
    (under_way * mb_width * 8 * stripe::BYTES_PER_SAMPLE + lists) as u64
}

/// Fills `plane` beyond `width` x `height` samples with the last column and row.
fn repeat_edges(plane: &mut [u8], stride: usize, width: usize, height: usize) {
    for row in plane.chunks_exact_mut(stride).take(height) {
        let last = row[width - 1];
        row[width..].fill(last);
    }
    let (inside, below) = plane.split_at_mut(height * stride);
    let last = &inside[(height - 1) * stride..];
    for row in below.chunks_exact_mut(stride) {
        row.copy_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Layout;

    fn planes_of(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Planes {
        let pixels: Vec<u8> = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| pixel(x, y))
            .collect();
        Planes::from_picture(
            &RgbPicture {
                width,
                height,
                layout: Layout::Rgb,
                pixels: &pixels,
            },
            Simd::detect(),
            Workers::unlimited(1),
        )
        .expect("nothing cancels it")
    }

    #[test]
    fn known_colors() {
        // BT.601 in limited range as ITU-R defines it: Y' is 16 to 235, Cb and Cr are 16 to 240.
        let cases = [
            ([0, 0, 0], [16, 128, 128]),
            ([255, 255, 255], [235, 128, 128]),
            ([255, 0, 0], [82, 90, 240]),
            ([0, 255, 0], [145, 54, 34]),
            ([0, 0, 255], [41, 240, 110]),
            ([128, 128, 128], [126, 128, 128]),
        ];
        for (rgb, [y, u, v]) in cases {
            let planes = planes_of(3, 3, |_, _| rgb);
            assert!(
                planes.luma.iter().all(|&p| p == y),
                "Y of {rgb:?} is {}, not {y}",
                planes.luma[0]
            );
            assert!(
                planes.chroma[0].iter().all(|&p| p == u),
                "U of {rgb:?} is {}, not {u}",
                planes.chroma[0][0]
            );
            assert!(
                planes.chroma[1].iter().all(|&p| p == v),
                "V of {rgb:?} is {}, not {v}",
                planes.chroma[1][0]
            );
        }
    }

    #[test]
    fn edges_are_repeated() {
        let planes = planes_of(17, 17, |x, y| [(x * 15) as u8, (y * 15) as u8, 0]);
        assert_eq!((planes.mb_width, planes.mb_height), (2, 2));
        for y in 0..32 {
            let row = &planes.luma[y * 32..][..32];
            assert!(row[16..].iter().all(|&p| p == row[16]), "row {y}");
            assert_eq!(row, &planes.luma[y.min(16) * 32..][..32], "row {y}");
        }
        for plane in &planes.chroma {
            for y in 0..16 {
                let row = &plane[y * 16..][..16];
                assert!(row[8..].iter().all(|&p| p == row[8]), "row {y}");
                assert_eq!(row, &plane[y.min(8) * 16..][..16], "row {y}");
            }
        }
    }

    #[test]
    fn chroma_is_sharpened_in_text_and_not_in_slopes() {
        // Red strokes, two pixels wide, on black: the means of their blocks would be 240 beside
        // 128.
        let strokes = planes_of(64, 16, |x, _| if x % 8 < 2 { [255, 0, 0] } else { [0; 3] });
        let row = &strokes.chroma[1][..32];
        assert!(
            row[4] > 250 && row[5] < 120 && row[6] == 128,
            "V goes beyond its means on both sides of an edge: {row:?}"
        );
        assert!(
            strokes.luma[16] > 88 && strokes.luma[20] == 16,
            "Y of red is lifted, and black stays: {:?}",
            &strokes.luma[16..24]
        );
        let slope = planes_of(64, 16, |x, y| [100 + x as u8, 100 + y as u8, 90]);
        let row = &slope.chroma[1][..32];
        assert!(
            row.windows(2)
                .all(|pair| (0..=2).contains(&(i16::from(pair[1]) - i16::from(pair[0])))),
            "a slope stays one: {row:?}"
        );
    }

    #[test]
    fn samples_are_the_same_with_all_instructions_and_stripes() {
        for (width, height) in [(1, 1), (1, 100), (100, 1), (17, 33), (64, 129), (95, 160)] {
            for layout in [Layout::Rgb, Layout::Rgba] {
                // Patches of saturated colors, three by five pixels, and noise on every other one.
                let byte = |i: usize| {
                    let (x, c) = (i / layout.channels() % width, i % layout.channels());
                    let y = i / layout.channels() / width;
                    let blot = (x / 3 * 7 + y / 5 * 11 + c * 5) % 4;
                    [0, 255, i * 89 % 256, 128][blot] as u8
                };
                let pixels: Vec<u8> = (0..width * height * layout.channels()).map(byte).collect();
                let picture = RgbPicture {
                    width: width as u32,
                    height: height as u32,
                    layout,
                    pixels: &pixels,
                };
                let converted = |simd, mb_rows| {
                    let mut planes = Planes::new(width, height);
                    let workers = Workers::unlimited(2);
                    let outcome = planes.convert_stripes(&picture, simd, workers, mb_rows);
                    outcome.expect("nothing cancels it");
                    planes
                };
                let expected = converted(Simd::SCALAR, 100);
                for simd in Simd::supported() {
                    for mb_rows in [1, 2, 3, 5, 16] {
                        assert!(
                            converted(simd, mb_rows) == expected,
                            "{width}x{height} {layout:?}, {simd:?}, stripes of {mb_rows}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn many_threads_give_the_same_picture() {
        let pixel = |x: u32, y: u32| [(x * 3 + y) as u8, (x ^ y) as u8, (y * 5) as u8];
        let (width, height) = (1024, 1025);
        let pixels: Vec<u8> = (0..height)
            .flat_map(|y| (0..width).flat_map(move |x| pixel(x, y)))
            .collect();
        let picture = RgbPicture {
            width,
            height,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        let converted =
            |threads| Planes::from_picture(&picture, Simd::detect(), Workers::unlimited(threads));
        let one = converted(1);
        for threads in [2, 3, 64] {
            assert!(converted(threads) == one, "{threads} threads");
        }
    }
}
