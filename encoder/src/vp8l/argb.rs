//! Pixels as the format counts them: alpha, red, green and blue in a number of 32 bits (RFC 9649, section 3.5).

use super::lz77::PIXELS_A_QUESTION;
use crate::threads::Workers;
use crate::{EncodeError, Layout, RgbPicture};

/// The pixels of a picture. Unless it is to be `exact`, those that are fully transparent become black, since nobody sees their
/// colour and one is cheaper than many.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn from_picture(
    picture: &RgbPicture<'_>,
    exact: bool,
    workers: Workers<'_>,
) -> Result<Vec<u32>, EncodeError> {
    let channels = picture.layout.channels();
    let mut argb = Vec::with_capacity(picture.pixels.len() / channels);
    for part in picture.pixels.chunks(PIXELS_A_QUESTION * channels) {
        workers.check()?;
        match picture.layout {
            Layout::Rgb => {
                let opaque = |&[red, green, blue]: &[u8; 3]| [255, red, green, blue];
                let pixels = part.as_chunks().0.iter();
                argb.extend(pixels.map(opaque).map(u32::from_be_bytes));
            }
            Layout::Rgba => {
                let pixels = part.as_chunks().0.iter();
                argb.extend(pixels.map(|pixel| from_rgba(*pixel, exact)));
            }
        }
    }
    Ok(argb)
}

/// A pixel of red, green, blue and alpha, as [`from_picture`] takes it.
#[inline]
pub fn from_rgba([red, green, blue, alpha]: [u8; 4], exact: bool) -> u32 {
    match alpha {
        0 if !exact => 0,
        _ => u32::from_be_bytes([alpha, red, green, blue]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_that_nobody_sees_is_kept_only_on_request() {
        let picture = RgbPicture {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: &[1, 2, 3, 0, 4, 5, 6, 7],
        };
        let workers = Workers::unlimited(1);
        let pixels = |exact| from_picture(&picture, exact, workers);
        assert_eq!(pixels(false), Ok(vec![0, 0x0704_0506]));
        assert_eq!(pixels(true), Ok(vec![0x0001_0203, 0x0704_0506]));
        let picture = RgbPicture {
            layout: Layout::Rgb,
            pixels: &[1, 2, 3, 4, 5, 6],
            ..picture
        };
        let pixels = from_picture(&picture, false, workers);
        assert_eq!(pixels, Ok(vec![0xFF01_0203, 0xFF04_0506]));
    }
}
