//! Pixels to encode.

use crate::error::EncodeError;

/// The longest side of a picture in pixels: the frame header has 14 bits for it (RFC 6386, section
/// 9.1).
pub const MAX_SIDE: u32 = 16383;

/// Checks the width and height of a picture in pixels.
///
/// # Errors
/// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`].
pub(crate) fn check_sides((width, height): (u32, u32)) -> Result<(), EncodeError> {
    let sides = 1..=MAX_SIDE;
    if !sides.contains(&width) || !sides.contains(&height) {
        return Err(EncodeError::Dimensions);
    }
    Ok(())
}

/// The samples of a pixel: 8 bits each, interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColorType {
    /// Gray.
    L8,
    /// Gray, alpha.
    La8,
    /// Red, green, blue.
    Rgb8,
    /// Red, green, blue, alpha.
    Rgba8,
}

impl ColorType {
    /// The bytes of a pixel.
    pub const fn bytes_per_pixel(self) -> usize {
        match self {
            ColorType::L8 => 1,
            ColorType::La8 => 2,
            ColorType::Rgb8 => 3,
            ColorType::Rgba8 => 4,
        }
    }

    /// Whether pixels have an alpha sample.
    pub const fn has_alpha(self) -> bool {
        matches!(self, ColorType::La8 | ColorType::Rgba8)
    }
}

/// A picture to encode: borrowed full-range samples, top row first. Colors are sRGB, unless the
/// encoder is given an ICC profile, and not premultiplied by alpha.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    width: u32,
    height: u32,
    color: ColorType,
    /// Bytes from the beginning of a row to the beginning of the next.
    stride: usize,
    pixels: &'a [u8],
}

impl<'a> Picture<'a> {
    /// A picture of `width` x `height` pixels whose rows follow each other without padding.
    ///
    /// ```
    /// use towebp_encoder::{ColorType, Picture};
    ///
    /// let pixels = [200; 4 * 3 * 3];
    /// let picture = Picture::new(4, 3, ColorType::Rgb8, &pixels)?;
    /// assert_eq!((picture.width(), picture.height()), (4, 3));
    /// # Ok::<(), towebp_encoder::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`];
    /// [`EncodeError::PixelCount`] unless `pixels` has `width * height` pixels of this color type.
    pub fn new(
        width: u32,
        height: u32,
        color: ColorType,
        pixels: &'a [u8],
    ) -> Result<Picture<'a>, EncodeError> {
        let stride = width as usize * color.bytes_per_pixel();
        let picture = Picture::with_stride(width, height, color, stride, pixels)?;
        if pixels.len() != stride * height as usize {
            return Err(EncodeError::PixelCount);
        }
        Ok(picture)
    }

    /// A picture whose rows begin `stride` bytes apart, as a part of a larger picture has them, or
    /// one with padded rows. Bytes between the rows are not read; after the last row nothing needs
    /// to follow.
    ///
    /// ```
    /// use towebp_encoder::{ColorType, Picture};
    ///
    /// // The 2 x 2 pixels in the middle of 4 x 4 gray ones.
    /// let pixels: [u8; 16] = std::array::from_fn(|i| i as u8);
    /// let middle = Picture::with_stride(2, 2, ColorType::L8, 4, &pixels[5..])?;
    /// # Ok::<(), towebp_encoder::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`];
    /// [`EncodeError::PixelCount`] if `stride` is less than a row or `pixels` ends before the last
    /// row does.
    pub fn with_stride(
        width: u32,
        height: u32,
        color: ColorType,
        stride: usize,
        pixels: &'a [u8],
    ) -> Result<Picture<'a>, EncodeError> {
        check_sides((width, height))?;
        let row = width as usize * color.bytes_per_pixel();
        let before_last = stride.checked_mul(height as usize - 1);
        let end = before_last.and_then(|bytes| bytes.checked_add(row));
        if stride < row || end.is_none_or(|end| pixels.len() < end) {
            return Err(EncodeError::PixelCount);
        }
        Ok(Picture {
            width,
            height,
            color,
            stride,
            pixels,
        })
    }

    /// The width in pixels, 1 to [`MAX_SIDE`].
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// The height in pixels, 1 to [`MAX_SIDE`].
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// The channels of a pixel.
    pub const fn color(&self) -> ColorType {
        self.color
    }

    /// The pixels of row `y`.
    pub(crate) fn row(&self, y: usize) -> &'a [u8] {
        let length = self.width as usize * self.color.bytes_per_pixel();
        &self.pixels[y * self.stride..][..length]
    }

    /// All pixels, if they are red, green and blue, perhaps with alpha, and rows have no padding.
    pub(crate) fn as_rgb(&self) -> Option<RgbPicture<'a>> {
        let layout = match self.color {
            ColorType::Rgb8 => Layout::Rgb,
            ColorType::Rgba8 => Layout::Rgba,
            ColorType::L8 | ColorType::La8 => return None,
        };
        let row = self.width as usize * layout.channels();
        (self.stride == row).then(|| RgbPicture {
            width: self.width,
            height: self.height,
            layout,
            pixels: &self.pixels[..row * self.height as usize],
        })
    }
}

/// How the samples of an [`RgbPicture`] lie in memory, 8 bits each, interleaved, rows without
/// padding.
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

/// A picture as the passes of the encoder take it: rows of red, green, blue and perhaps alpha
/// without padding.
#[derive(Clone, Copy, Debug)]
pub struct RgbPicture<'a> {
    /// Width in pixels, 1 to [`MAX_SIDE`].
    pub width: u32,
    /// Height in pixels, 1 to [`MAX_SIDE`].
    pub height: u32,
    /// The layout of `pixels`.
    pub layout: Layout,
    /// `width * height` pixels, top row first.
    pub pixels: &'a [u8],
}

impl<'a> From<&RgbPicture<'a>> for Picture<'a> {
    fn from(picture: &RgbPicture<'a>) -> Picture<'a> {
        Picture {
            width: picture.width,
            height: picture.height,
            color: match picture.layout {
                Layout::Rgb => ColorType::Rgb8,
                Layout::Rgba => ColorType::Rgba8,
            },
            stride: picture.width as usize * picture.layout.channels(),
            pixels: picture.pixels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(
        (width, height): (u32, u32),
        stride: usize,
        length: usize,
    ) -> Result<(), EncodeError> {
        let pixels = vec![0; length];
        Picture::with_stride(width, height, ColorType::Rgb8, stride, &pixels).map(|_| ())
    }

    #[test]
    fn pictures_have_as_many_samples_as_their_sides_say() {
        let of = |width, height, length: usize| {
            let pixels = vec![0; length];
            Picture::new(width, height, ColorType::La8, &pixels).map(|_| ())
        };
        assert_eq!(of(5, 3, 30), Ok(()));
        assert_eq!(of(5, 3, 29), Err(EncodeError::PixelCount));
        assert_eq!(of(5, 3, 31), Err(EncodeError::PixelCount));
        assert_eq!(of(0, 3, 0), Err(EncodeError::Dimensions));
        assert_eq!(of(3, 0, 0), Err(EncodeError::Dimensions));
        assert_eq!(of(MAX_SIDE + 1, 1, 0), Err(EncodeError::Dimensions));
        assert_eq!(of(1, MAX_SIDE, MAX_SIDE as usize * 2), Ok(()));
    }

    #[test]
    fn rows_lie_a_stride_apart_and_the_last_needs_no_padding() {
        assert_eq!(outcome((2, 3), 10, 26), Ok(()));
        assert_eq!(outcome((2, 3), 10, 40), Ok(()));
        assert_eq!(outcome((2, 3), 10, 25), Err(EncodeError::PixelCount));
        assert_eq!(outcome((2, 3), 5, 40), Err(EncodeError::PixelCount));
        assert_eq!(
            outcome((2, 3), usize::MAX, 40),
            Err(EncodeError::PixelCount)
        );
        let pixels: Vec<u8> = (0..26).collect();
        let picture = Picture::with_stride(2, 3, ColorType::Rgb8, 10, &pixels).expect("good");
        assert_eq!(picture.row(2), [20, 21, 22, 23, 24, 25]);
        assert!(picture.as_rgb().is_none(), "rows are apart");
    }
}
