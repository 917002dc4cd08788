//! Pixels as the format counts them: alpha, red, green and blue in a number of 32 bits (RFC 9649, section 3.5).

use super::lz77::PIXELS_A_QUESTION;
use crate::webp::crew::Crew;
use crate::webp::{EncodeError, Layout, Picture};

/// Pixels of a picture that are taken to be transparent.
#[derive(Clone, Debug)]
pub struct Omitted {
    /// A bit for each pixel, the first one the lowest; none at all if no pixel is omitted.
    words: Vec<u64>,
}

impl Omitted {
    /// None.
    pub const NONE: Omitted = Omitted { words: Vec::new() };

    /// Those that are transparent now, of red, green, blue and alpha.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the crew's caller waits no more.
    pub fn hidden(pixels: &[u8], crew: Crew<'_>) -> Result<Omitted, EncodeError> {
        let pixels = pixels.as_chunks().0;
        let mut words = Vec::with_capacity(pixels.len().div_ceil(64));
        let word = |pixels: &[[u8; 4]]| {
            let hidden = pixels.iter().map(|pixel| u64::from(pixel[3] == 0));
            hidden.rev().fold(0, |word, bit| word << 1 | bit)
        };
        for part in pixels.chunks(PIXELS_A_QUESTION) {
            crew.check()?;
            words.extend(part.chunks(64).map(word));
        }
        Ok(Omitted { words })
    }

    /// Clears those among `pixels`, the first of which is number `begin`, a multiple of 64.
    fn clear(&self, begin: usize, pixels: &mut [u32]) {
        let words = self.words.iter().skip(begin / 64);
        for (word, pixels) in words.zip(pixels.chunks_mut(64)) {
            for (i, pixel) in pixels.iter_mut().enumerate() {
                *pixel = if word >> i & 1 == 1 { 0 } else { *pixel };
            }
        }
    }
}

/// The pixels of a picture. Unless it is to be `exact`, those that are fully transparent become black, since nobody sees their
/// colour and one is cheaper than many. So do those that are `omitted`.
///
/// # Errors
/// [`EncodeError::Cancelled`] if the crew's caller waits no more.
pub fn from_picture(
    picture: &Picture<'_>,
    omitted: &Omitted,
    exact: bool,
    crew: Crew<'_>,
) -> Result<Vec<u32>, EncodeError> {
    let channels = picture.layout.channels();
    let mut pixels = Vec::with_capacity(picture.pixels.len() / channels);
    for part in picture.pixels.chunks(PIXELS_A_QUESTION * channels) {
        crew.check()?;
        let begin = pixels.len();
        match picture.layout {
            Layout::Rgb => {
                let opaque = |&[red, green, blue]: &[u8; 3]| [255, red, green, blue];
                pixels.extend(
                    part.as_chunks()
                        .0
                        .iter()
                        .map(opaque)
                        .map(u32::from_be_bytes),
                );
            }
            Layout::Rgba => {
                let argb = |&[red, green, blue, alpha]: &[u8; 4]| match alpha {
                    0 if !exact => [0; 4],
                    _ => [alpha, red, green, blue],
                };
                pixels.extend(part.as_chunks().0.iter().map(argb).map(u32::from_be_bytes));
            }
        }
        omitted.clear(begin, &mut pixels[begin..]);
    }
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::crew::Patient;

    #[test]
    fn colour_that_nobody_sees_is_kept_only_on_request() {
        let picture = Picture {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: &[1, 2, 3, 0, 4, 5, 6, 7],
        };
        let crew = Crew::new(1, &Patient);
        let pixels = |exact| from_picture(&picture, &Omitted::NONE, exact, crew);
        assert_eq!(pixels(false), Ok(vec![0, 0x0704_0506]));
        assert_eq!(pixels(true), Ok(vec![0x0001_0203, 0x0704_0506]));
        let picture = Picture {
            layout: Layout::Rgb,
            pixels: &[1, 2, 3, 4, 5, 6],
            ..picture
        };
        let pixels = from_picture(&picture, &Omitted::NONE, false, crew);
        assert_eq!(pixels, Ok(vec![0xFF01_0203, 0xFF04_0506]));
    }

    #[test]
    fn what_was_hidden_is_omitted() {
        let is_hidden = |i: usize| i.is_multiple_of(3) || i * i % 1001 < 500;
        let (width, height) = (257, 300); // more than one question, and no whole word at the end
        let hidden = (0..width * height).flat_map(|i| [1, 2, 3, if is_hidden(i) { 0 } else { 9 }]);
        let crew = Crew::new(1, &Patient);
        let omitted = Omitted::hidden(&hidden.collect::<Vec<u8>>(), crew).expect("patient");
        let picture = Picture {
            width: width as u32,
            height: height as u32,
            layout: Layout::Rgba,
            pixels: &[4, 5, 6, 7].repeat(width * height),
        };
        let pixels = from_picture(&picture, &omitted, false, crew);
        let expected = |i| if is_hidden(i) { 0 } else { 0x0704_0506 };
        assert!(pixels == Ok((0..width * height).map(expected).collect()));
    }
}
