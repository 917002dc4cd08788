//! The still pictures that the encoders are tried with, and what an independent decoder makes of
//! them.

use crate::content::Content;
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use towebp_encoder::{self as webp, ColorType, Picture, reference};

/// A still picture.
#[derive(Arbitrary, Debug)]
pub struct Still {
    sides: Sides,
    is_gray: bool,
    has_alpha: bool,
    content: Content,
}

impl Still {
    /// Its samples, row by row.
    pub fn pixels(&self) -> Vec<u8> {
        let Sides { width, height } = self.sides;
        let channels = self.color().bytes_per_pixel();
        self.content.pixels(width, height, channels)
    }

    /// The picture of [`Still::pixels`].
    pub fn picture<'a>(&self, pixels: &'a [u8]) -> Picture<'a> {
        let Sides { width, height } = self.sides;
        Picture::new(width, height, self.color(), pixels).expect("a good picture")
    }

    fn color(&self) -> ColorType {
        match (self.is_gray, self.has_alpha) {
            (true, false) => ColorType::L8,
            (true, true) => ColorType::La8,
            (false, false) => ColorType::Rgb8,
            (false, true) => ColorType::Rgba8,
        }
    }
}

/// Pixels before they were encoded and after, as red, green, blue and alpha.
///
/// # Panics
/// If the file does not decode, or to another size.
pub fn before_and_after<'a>(
    picture: &Picture<'_>,
    pixels: &'a [u8],
    file: &[u8],
) -> impl Iterator<Item = ([u8; 4], [u8; 4])> + use<'a> {
    let (size, after) = reference::decode(file);
    assert_eq!(size, (picture.width(), picture.height()));
    let before = pixels.chunks(picture.color().bytes_per_pixel());
    let before = before.map(|pixel| match *pixel {
        [gray] => [gray, gray, gray, 255],
        [gray, alpha] => [gray, gray, gray, alpha],
        [red, green, blue] => [red, green, blue, 255],
        [red, green, blue, alpha] => [red, green, blue, alpha],
        _ => unreachable!("a pixel has one to four samples"),
    });
    before.zip(after)
}

#[derive(Debug)]
struct Sides {
    width: u32,
    height: u32,
}

/// Small mostly, since the time goes with the pixels: a few macroblocks have every neighbourhood
/// that there is.
impl<'a> Arbitrary<'a> for Sides {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let (width, height) = match bytes.arbitrary::<u8>()? {
            0..=223 => (1..=50, 1..=50),
            224..=247 => (1..=130, 1..=130),
            248..=251 => (1..=300, 1..=300),
            252..=253 => (1..=webp::MAX_SIDE, 1..=2),
            254..=255 => (1..=2, 1..=webp::MAX_SIDE),
        };
        Ok(Sides {
            width: bytes.int_in_range(width)?,
            height: bytes.int_in_range(height)?,
        })
    }
}
