//! Pixels to encode.

use crate::error::EncodeError;

/// How the samples of a [`RgbPicture`] lie in memory, 8 bits each, interleaved, rows without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, alpha (not premultiplied).
    Rgba,
}

impl Layout {
    /// Bytes per pixel.
    pub const fn channels(self) -> usize {
        match self {
            Layout::Rgb => 3,
            Layout::Rgba => 4,
        }
    }
}

/// A picture to encode: full-range sRGB samples.
#[derive(Clone, Copy, Debug)]
pub struct RgbPicture<'a> {
    /// Width in pixels, 1 to [`MAX_SIDE`].
    pub width: u32,
    /// Height in pixels, 1 to [`MAX_SIDE`].
    pub height: u32,
    /// What `pixels` holds.
    pub layout: Layout,
    /// `width * height` pixels, top row first.
    pub pixels: &'a [u8],
}

impl RgbPicture<'_> {
    pub(crate) fn check(&self) -> Result<(), EncodeError> {
        let sides = 1..=MAX_SIDE;
        if !sides.contains(&self.width) || !sides.contains(&self.height) {
            return Err(EncodeError::Dimensions);
        }
        let count = self.width as usize * self.height as usize;
        if self.pixels.len() != count * self.layout.channels() {
            return Err(EncodeError::PixelCount);
        }
        Ok(())
    }
}

/// Longest side of a picture: the frame header has 14 bits for it (RFC 6386, section 9.1).
pub const MAX_SIDE: u32 = 16383;
