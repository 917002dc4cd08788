//! Pictures in memory.

use super::rectangle::Rectangle;
use towebp_encoder::{Cancel, Cancelled};

/// The number of pixels that a pass over a picture takes between two checks of its [`Cancel`]: well
/// below a millisecond of the slowest pass.
pub(super) const PIXELS_PER_CHECK: usize = 1 << 16;

/// The number of pixels that a color conversion takes at a time, from a copy: small enough for the
/// cache.
pub(super) const CHUNK_PIXELS: usize = 4096;

/// The order of the samples in memory: 8 bits each, interleaved, rows without padding, sRGB, alpha
/// not premultiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Red, green and blue: three bytes per pixel.
    Rgb,
    /// Red, green, blue and alpha: four bytes per pixel.
    Rgba,
}

impl Layout {
    /// The number of samples, and of bytes, per pixel.
    pub fn channels(self) -> usize {
        match self {
            Layout::Rgb => 3,
            Layout::Rgba => 4,
        }
    }
}

/// A picture: `width * height` pixels, top row first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// The order of the samples in `pixels`.
    pub layout: Layout,
    /// The samples.
    pub pixels: Vec<u8>,
}

impl Image {
    /// Removes, in place, an alpha channel in which every pixel is opaque.
    pub(super) fn drop_opaque_alpha(mut self, cancel: &Cancel<'_>) -> Result<Image, Cancelled> {
        if self.layout == Layout::Rgb {
            return Ok(self);
        }
        for portion in self.pixels.chunks(PIXELS_PER_CHECK * 4) {
            cancel.check()?;
            if portion.iter().skip(3).step_by(4).any(|&alpha| alpha != 255) {
                return Ok(self);
            }
        }
        let count = self.pixels.len() / 4;
        for start in (0..count).step_by(PIXELS_PER_CHECK) {
            cancel.check()?;
            for pixel in start..count.min(start + PIXELS_PER_CHECK) {
                self.pixels.copy_within(pixel * 4..pixel * 4 + 3, pixel * 3);
            }
        }
        self.pixels.truncate(count * 3);
        self.pixels.shrink_to_fit();
        self.layout = Layout::Rgb;
        Ok(self)
    }

    /// The parts of an RGBA picture's rows that lie within `rectangle`, from top to bottom.
    pub(super) fn rows_of(&mut self, rectangle: Rectangle) -> impl Iterator<Item = &mut [[u8; 4]]> {
        let width = self.width as usize;
        let left = rectangle.left.min(width);
        let columns = left..(rectangle.left + rectangle.width).min(width);
        let rows = self.pixels.as_chunks_mut::<4>().0.chunks_exact_mut(width);
        let rows = rows.skip(rectangle.top).take(rectangle.height);
        rows.map(move |row| &mut row[columns.clone()])
    }
}

/// Rounds a sample of 16 bits to the nearest of 256 levels (PNG 13.12); cutting off the low byte
/// would darken.
pub(super) fn to_8_bit(sample: u16) -> u8 {
    ((u32::from(sample) * 255 + 32767) / 65535) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opaque_alpha_channel_is_dropped() {
        let image = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![1, 2, 3, 255, 4, 5, 6, 255],
        };
        let image = image.drop_opaque_alpha(&Cancel::never());
        let image = image.expect("it is not cancelled");
        assert_eq!(
            (image.layout, image.pixels),
            (Layout::Rgb, vec![1, 2, 3, 4, 5, 6])
        );
    }

    #[test]
    fn one_pixel_that_is_not_opaque_keeps_the_alpha_channel() {
        let before = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![1, 2, 3, 255, 4, 5, 6, 254],
        };
        let image = before.clone().drop_opaque_alpha(&Cancel::never());
        assert_eq!(image, Ok(before));
    }
}
