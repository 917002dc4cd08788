//! Converts rows of RGB as they come, so that a decoder need not hold the whole picture.

use super::stripe::{ROWS_AROUND, Stripe};
use super::{Planes, convert, stripe_rows};
use crate::EncodeError;
use crate::cpu::Simd;
use crate::lossless_estimate::LosslessEstimate;
use crate::picture::{Layout, RgbPicture, check_sides};

/// Makes [`Planes`] of rows of RGB that come one after the other, from the top. It holds the planes
/// and some 70 rows of pixels, where a [`Picture`](crate::Picture) takes twice as much as the
/// planes; the planes are those of the picture.
///
/// ```
/// use towebp_encoder::{ColorType, Encoder, Picture, PlanesBuilder};
///
/// let (width, height) = (32, 20);
/// let row = [250, 120, 0].repeat(width);
/// let planes = || {
///     let mut builder = PlanesBuilder::new((width as u32, height))?;
///     for _ in 0..height {
///         builder.push_row(&row)?;
///     }
///     builder.finish()
/// };
/// let encoder = Encoder::lossy(80);
/// let encoded = encoder.encode_planes((width as u32, height), planes)?;
///
/// let pixels = row.repeat(height as usize);
/// let picture = Picture::new(width as u32, height, ColorType::Rgb8, &pixels)?;
/// assert_eq!(encoded, encoder.encode(&picture)?);
/// # Ok::<(), towebp_encoder::EncodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanesBuilder {
    planes: Planes,
    simd: Simd,
    /// The number of rows of macroblocks that are converted at a time.
    mb_rows: usize,
    /// The number of rows of macroblocks that were converted.
    converted: usize,
    /// The latest rows of pixels, from `first_row` up to `rows`.
    window: Vec<u8>,
    first_row: usize,
    rows: usize,
    /// The estimate of the lossless size from the rows so far, if that is wanted.
    estimate: Option<LosslessEstimate>,
}

impl PlanesBuilder {
    /// A builder for a picture of `width` x `height` pixels.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`](crate::MAX_SIDE).
    pub fn new((width, height): (u32, u32)) -> Result<PlanesBuilder, EncodeError> {
        check_sides((width, height))?;
        let planes = Planes::new(width as usize, height as usize);
        let mb_rows = stripe_rows(planes.mb_width);
        let rows = (mb_rows * 16 + 2 * ROWS_AROUND).min(height as usize);
        Ok(PlanesBuilder {
            window: Vec::with_capacity(rows * width as usize * 3),
            planes,
            simd: Simd::detect(),
            mb_rows,
            converted: 0,
            first_row: 0,
            rows: 0,
            estimate: None,
        })
    }

    /// As [`PlanesBuilder::new`], with an estimate of the lossless size, for
    /// [`Encoder::encode_planes_if_lossy`](crate::Encoder::encode_planes_if_lossy).
    ///
    /// # Errors
    /// As [`PlanesBuilder::new`].
    pub fn with_estimate((width, height): (u32, u32)) -> Result<PlanesBuilder, EncodeError> {
        Ok(PlanesBuilder {
            estimate: Some(LosslessEstimate::new((width as usize, height as usize))),
            ..PlanesBuilder::new((width, height))?
        })
    }

    /// Most bytes that a builder holds beside the planes.
    pub fn window_bytes((width, height): (u32, u32)) -> u64 {
        let rows = stripe_rows(width.div_ceil(16).max(1) as usize) * 16 + 2 * ROWS_AROUND;
        // The pixels, and some rows that a stripe is converted by.
        u64::from(width.next_multiple_of(16)) * (u64::from(height).min(rows as u64) * 3 + 24)
    }

    /// Adds the next row: red, green and blue of each pixel.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if the row has another number of pixels, or if the picture is
    /// complete.
    pub fn push_row(&mut self, row: &[u8]) -> Result<(), EncodeError> {
        let height = self.planes.height as usize;
        if row.len() != self.row_bytes() || self.rows == height {
            return Err(EncodeError::PixelCount);
        }
        if let Some(estimate) = &mut self.estimate
            && estimate.samples(self.rows)
        {
            let above = &self.window[self.window.len() - row.len()..];
            estimate.add_row(above, row, 3);
        }
        self.window.extend_from_slice(row);
        self.rows += 1;
        while self.converted < self.planes.mb_height {
            let stripe_end = (self.converted + self.mb_rows) * 16;
            if self.rows < height.min(stripe_end + ROWS_AROUND) {
                break;
            }
            self.convert_stripe();
        }
        Ok(())
    }

    /// The planes, once all rows are there.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if rows are missing.
    pub fn finish(self) -> Result<Planes, EncodeError> {
        let (planes, _) = self.finish_estimated()?;
        Ok(planes)
    }

    /// The planes, and the estimate if this builder makes one.
    ///
    /// # Errors
    /// As [`PlanesBuilder::finish`].
    pub fn finish_estimated(mut self) -> Result<(Planes, Option<LosslessEstimate>), EncodeError> {
        if self.rows < self.planes.height as usize {
            return Err(EncodeError::PixelCount);
        }
        self.planes.repeat_edges();
        Ok((self.planes, self.estimate))
    }

    fn row_bytes(&self) -> usize {
        self.planes.width as usize * 3
    }

    /// Converts the next stripe, and drops the rows that no other needs.
    fn convert_stripe(&mut self) {
        let luma_rows = self.converted * 16;
        let luma = luma_rows * self.planes.luma_stride();
        let chroma = luma_rows / 2 * self.planes.chroma_stride();
        let mb_count =
            self.mb_rows.min(self.planes.mb_height - self.converted) * self.planes.mb_width;
        let [u, v] = &mut self.planes.chroma;
        let mut stripe = Stripe {
            first_pair: luma_rows / 2,
            first_row: self.first_row,
            luma: &mut self.planes.luma[luma..][..mb_count * 256],
            chroma: [u, v].map(|plane| &mut plane[chroma..][..mb_count * 64]),
        };
        let picture = RgbPicture {
            width: self.planes.width,
            height: self.planes.height,
            layout: Layout::Rgb,
            pixels: &self.window,
        };
        convert::convert(&picture, self.simd, &mut stripe);
        self.converted += self.mb_rows;
        let first_row = (self.converted * 16 - ROWS_AROUND).min(self.rows);
        let dropped = (first_row - self.first_row) * self.row_bytes();
        self.window.drain(..dropped);
        self.first_row = first_row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Workers;

    #[test]
    fn rows_give_the_planes_of_the_picture() {
        for (width, height) in [
            (1, 1),
            (3, 70),
            (17, 33),
            (64, 64),
            (64, 69),
            (1700, 150),
            (2048, 129),
        ] {
            let byte = |i: usize| [0, 255, i * 89 % 256, 128][(i / 9 + i / width / 15) % 4] as u8;
            let pixels: Vec<u8> = (0..width * height * 3).map(byte).collect();
            let size = (width as u32, height as u32);
            let picture = RgbPicture {
                width: size.0,
                height: size.1,
                layout: Layout::Rgb,
                pixels: &pixels,
            };
            let expected = Planes::from_picture(&picture, Simd::detect(), Workers::unlimited(1));
            let mut builder = PlanesBuilder::new(size).expect("a good size");
            let capacity = builder.window.capacity();
            for row in pixels.chunks(width * 3) {
                assert_eq!(builder.clone().finish(), Err(EncodeError::PixelCount));
                builder.push_row(row).expect("a good row");
            }
            assert_eq!(
                builder.push_row(&pixels[..width * 3]),
                Err(EncodeError::PixelCount)
            );
            assert_eq!(
                builder.window.capacity(),
                capacity,
                "the window does not grow"
            );
            assert!(capacity as u64 <= PlanesBuilder::window_bytes(size));
            assert!(builder.finish() == expected, "{width} x {height}");
        }
    }

    #[test]
    fn sizes_and_rows_that_do_not_fit_are_rejected() {
        for size in [(0, 1), (1, 0), (1, 16384)] {
            let dimensions = Some(EncodeError::Dimensions);
            assert_eq!(PlanesBuilder::new(size).err(), dimensions, "{size:?}");
        }
        let mut builder = PlanesBuilder::new((2, 2)).expect("a good size");
        for length in [0, 5, 7, 12] {
            assert_eq!(
                builder.push_row(&[0; 12][..length]),
                Err(EncodeError::PixelCount)
            );
        }
    }
}
