//! Where the passes of the encoder get their pixels from: a picture, or a frame of an animation.

use crate::checks::Checks;
use crate::error::EncodeError;
use crate::picture::{ColorType, Layout, Picture, RgbPicture};
use crate::threads::Workers;
use crate::{transparent_fill, vp8l};
use std::borrow::Cow;

/// The coding that the pixels are for. The pixels of an animation's frame differ between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Lossless,
    Lossy,
}

/// Makes the pixels of a picture in each form that a coding takes, whenever it is needed: each form
/// takes as much memory as a picture.
pub trait PixelSource: Sync {
    /// The width and height in pixels.
    fn size(&self) -> (usize, usize);

    /// The layout of the rows that [`PixelSource::row`] returns.
    fn layout(&self) -> Layout;

    /// A row as it is coded, but for the colors of transparent pixels.
    fn row(&self, y: usize, target: Target) -> Cow<'_, [u8]>;

    /// All pixels as they are coded lossless: ARGB. Unless they are to be `exact`, fully
    /// transparent ones are 0, since nobody sees their color and one is cheaper than many.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    fn argb(&self, exact: bool, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError>;

    /// The alpha of each pixel as it is coded beside lossy colors; `None` if all are opaque.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    fn alpha(&self, workers: Workers<'_>) -> Result<Option<Vec<u8>>, EncodeError>;

    /// Calls `work` with all pixels as they are coded lossy, transparent ones filled
    /// ([`transparent_fill`]).
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`], and the errors of `work`.
    fn with_rgb<T>(
        &self,
        workers: Workers<'_>,
        work: impl FnOnce(&RgbPicture<'_>) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError>;
}

impl PixelSource for Picture<'_> {
    fn size(&self) -> (usize, usize) {
        (self.width() as usize, self.height() as usize)
    }

    fn layout(&self) -> Layout {
        if self.color().has_alpha() {
            Layout::Rgba
        } else {
            Layout::Rgb
        }
    }

    fn row(&self, y: usize, _: Target) -> Cow<'_, [u8]> {
        let row = Picture::row(self, y);
        match self.color() {
            ColorType::Rgb8 | ColorType::Rgba8 => Cow::Borrowed(row),
            ColorType::L8 => Cow::Owned(row.iter().flat_map(|gray| [*gray; 3]).collect()),
            ColorType::La8 => {
                let pixels = row.as_chunks().0.iter();
                let rgba = pixels.flat_map(|&[gray, alpha]| [gray, gray, gray, alpha]);
                Cow::Owned(rgba.collect())
            }
        }
    }

    fn argb(&self, exact: bool, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError> {
        let (width, height) = self.size();
        let mut argb = Vec::with_capacity(width * height);
        let mut checks = Checks::new(workers);
        for y in 0..height {
            checks.at(y * width)?;
            let row = PixelSource::row(self, y, Target::Lossless);
            let opaque = |[red, green, blue]: [u8; 3]| u32::from_be_bytes([255, red, green, blue]);
            match self.layout() {
                Layout::Rgb => argb.extend(row.as_chunks().0.iter().map(|pixel| opaque(*pixel))),
                Layout::Rgba => {
                    let pixels = row.as_chunks().0.iter();
                    argb.extend(pixels.map(|pixel| vp8l::from_rgba(*pixel, exact)));
                }
            }
        }
        Ok(argb)
    }

    fn alpha(&self, workers: Workers<'_>) -> Result<Option<Vec<u8>>, EncodeError> {
        if !has_alpha_where(self, workers, |alpha| alpha != 255)? {
            return Ok(None);
        }
        let (width, height) = self.size();
        let mut plane = Vec::with_capacity(width * height);
        let mut checks = Checks::new(workers);
        for y in 0..height {
            checks.at(y * width)?;
            let row = Picture::row(self, y);
            match self.color() {
                ColorType::L8 | ColorType::Rgb8 => {}
                ColorType::La8 => plane.extend(alphas::<2>(row)),
                ColorType::Rgba8 => plane.extend(alphas::<4>(row)),
            }
        }
        Ok(Some(plane))
    }

    fn with_rgb<T>(
        &self,
        workers: Workers<'_>,
        work: impl FnOnce(&RgbPicture<'_>) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError> {
        let needs_fill = has_alpha_where(self, workers, |alpha| alpha == 0)?;
        if let Some(picture) = self.as_rgb().filter(|_| !needs_fill) {
            return work(&picture);
        }
        let pixels = filled(self, workers)?;
        work(&RgbPicture {
            width: self.width(),
            height: self.height(),
            layout: self.layout(),
            pixels: &pixels,
        })
    }
}

/// The alpha samples of a row of pixels of `CHANNELS` samples, of which alpha is the last.
fn alphas<const CHANNELS: usize>(row: &[u8]) -> impl Iterator<Item = u8> {
    let pixels = row.as_chunks::<CHANNELS>().0.iter();
    pixels.map(|pixel| pixel[CHANNELS - 1])
}

/// Whether an alpha sample meets a condition.
fn has_alpha_where(
    picture: &Picture<'_>,
    workers: Workers<'_>,
    condition: impl Fn(u8) -> bool,
) -> Result<bool, EncodeError> {
    workers.check()?;
    if !picture.color().has_alpha() {
        return Ok(false);
    }
    // A fold, unlike a search, becomes vector instructions.
    let either = |found, alpha| found | condition(alpha);
    let (width, height) = picture.size();
    let mut checks = Checks::new(workers);
    for y in 0..height {
        checks.at(y * width)?;
        let row = picture.row(y);
        let found = match picture.color() {
            ColorType::La8 => alphas::<2>(row).fold(false, either),
            _ => alphas::<4>(row).fold(false, either),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The pixels as red, green, blue and, if the picture has it, alpha, transparent ones filled.
fn filled(picture: &Picture<'_>, workers: Workers<'_>) -> Result<Vec<u8>, EncodeError> {
    let (width, height) = picture.size();
    let layout = picture.layout();
    let mut pixels = Vec::with_capacity(width * height * layout.channels());
    for top in (0..height).step_by(transparent_fill::ROWS) {
        workers.check()?;
        let begin = pixels.len();
        for y in top..(top + transparent_fill::ROWS).min(height) {
            pixels.extend_from_slice(&PixelSource::row(picture, y, Target::Lossy));
        }
        if layout == Layout::Rgba {
            // Each part begins with black: going on with the color above took 4 % more bytes for
            // a picture whose left side is transparent.
            transparent_fill::fill(&mut pixels[begin..], width, [0; 3]);
        }
    }
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_of_transparent_pixels_is_kept_only_on_request() {
        let workers = Workers::unlimited(1);
        let pixels = [1, 2, 3, 0, 4, 5, 6, 7];
        let picture = Picture::new(2, 1, ColorType::Rgba8, &pixels).expect("good");
        let argb = |exact| picture.argb(exact, workers);
        assert_eq!(argb(false), Ok(vec![0, 0x0704_0506]));
        assert_eq!(argb(true), Ok(vec![0x0001_0203, 0x0704_0506]));
        let picture = Picture::new(2, 1, ColorType::Rgb8, &pixels[..6]).expect("good");
        let argb = picture.argb(false, workers);
        assert_eq!(argb, Ok(vec![0xFF01_0203, 0xFF00_0405]));
    }

    #[test]
    fn every_color_type_and_stride_gives_the_same_pixels() {
        let workers = Workers::unlimited(1);
        let (width, height) = (37, 40);
        let gray = |at: usize| (at * 7 + at / 37 * 3) as u8;
        // A third is opaque, a third transparent.
        let alpha = |at: usize| [255, 0, 90][at / 50 % 3];
        for has_alpha in [false, true] {
            let rgb = (0..width * height).flat_map(|at| {
                let channels = if has_alpha { 4 } else { 3 };
                [gray(at), gray(at), gray(at), alpha(at)]
                    .into_iter()
                    .take(channels)
            });
            let rgb: Vec<u8> = rgb.collect();
            let gray = (0..width * height).flat_map(|at| {
                let channels = if has_alpha { 2 } else { 1 };
                [gray(at), alpha(at)].into_iter().take(channels)
            });
            let gray: Vec<u8> = gray.collect();
            let (rgb_type, gray_type) = if has_alpha {
                (ColorType::Rgba8, ColorType::La8)
            } else {
                (ColorType::Rgb8, ColorType::L8)
            };
            let given = |color: ColorType, pixels: &[u8], padding: usize| {
                let row = width * color.bytes_per_pixel();
                let rows = pixels.chunks(row);
                let padded: Vec<u8> = rows
                    .flat_map(|row| [row, &[9; 99][..padding]].concat())
                    .collect();
                let size = (width as u32, height as u32);
                let picture = Picture::with_stride(size.0, size.1, color, row + padding, &padded);
                let picture = picture.expect("a good picture");
                let rgb = picture.with_rgb(workers, |rgb| Ok(rgb.pixels.to_vec()));
                let row = PixelSource::row(&picture, 17, Target::Lossless).into_owned();
                let argb = picture.argb(false, workers);
                (rgb, row, argb, picture.alpha(workers))
            };
            let expected = given(rgb_type, &rgb, 0);
            let seen = expected.0.as_ref().expect("it is not cancelled");
            assert_eq!(*seen == rgb, !has_alpha, "transparent pixels are filled");
            assert!(given(rgb_type, &rgb, 5) == expected, "padded");
            assert!(given(gray_type, &gray, 0) == expected, "gray");
            assert!(given(gray_type, &gray, 3) == expected, "gray, padded");
        }
    }
}
