//! The still pictures that the encoders are tried with, and what an independent decoder makes of them.

use crate::content::Content;
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use towebp_encoder::{self as webp, Layout, RgbPicture, judge};

#[derive(Arbitrary, Debug)]
pub struct Still {
    sides: Sides,
    has_alpha: bool,
    content: Content,
}

impl Still {
    pub fn pixels(&self) -> Vec<u8> {
        let Sides { width, height } = self.sides;
        self.content.pixels(width, height, self.layout().channels())
    }

    /// Of [`Still::pixels`].
    pub fn picture<'a>(&self, pixels: &'a [u8]) -> RgbPicture<'a> {
        RgbPicture {
            width: self.sides.width,
            height: self.sides.height,
            layout: self.layout(),
            pixels,
        }
    }

    fn layout(&self) -> Layout {
        if self.has_alpha {
            Layout::Rgba
        } else {
            Layout::Rgb
        }
    }
}

/// Pixels before they were encoded and after, as red, green, blue and alpha.
///
/// # Panics
/// If the file does not decode, or to another size.
pub fn before_and_after<'a>(
    picture: &RgbPicture<'a>,
    file: &[u8],
) -> impl Iterator<Item = ([u8; 4], [u8; 4])> + use<'a> {
    let (size, after) = judge::decode(file);
    assert_eq!(size, (picture.width, picture.height));
    let before = picture.pixels.chunks(picture.layout.channels());
    let before = before.map(|pixel| [pixel[0], pixel[1], pixel[2], *pixel.get(3).unwrap_or(&255)]);
    before.zip(after)
}

#[derive(Debug)]
struct Sides {
    width: u32,
    height: u32,
}

/// Small mostly, since the time goes with the pixels: a few macroblocks have every neighbourhood that there is.
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
