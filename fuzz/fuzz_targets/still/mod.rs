//! The still pictures that the encoders are tried with, and what an independent decoder makes of them.

use crate::content::Content;
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use std::io::Cursor;
use towebp::webp::{self, Layout, Picture};

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
    pub fn picture<'a>(&self, pixels: &'a [u8]) -> Picture<'a> {
        Picture {
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
pub fn before_and_after(
    picture: &Picture<'_>,
    file: &[u8],
) -> impl Iterator<Item = ([u8; 4], [u8; 4])> {
    let mut decoder =
        image_webp::WebPDecoder::new(Cursor::new(file)).expect("the container is in order");
    assert_eq!(decoder.dimensions(), (picture.width, picture.height));
    let mut samples = vec![0; decoder.output_buffer_size().expect("a picture of 64 bits")];
    decoder.read_image(&mut samples).expect("it decodes");
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let before = rgba(picture.pixels, picture.layout.channels());
    before.into_iter().zip(rgba(&samples, channels))
}

fn rgba(samples: &[u8], channels: usize) -> Vec<[u8; 4]> {
    let pixels = samples.chunks_exact(channels);
    let rgba = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2], *pixel.get(3).unwrap_or(&255)]);
    rgba.collect()
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
