//! The interface before [`Encoder`], until its callers have moved.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "it goes away")]

use crate::options::{Metadata, Options};
use crate::picture::{ColorType, Layout, Picture, RgbPicture};
use crate::{Damage, EncodeError, Encoded, Encoder, IncrementalAnimation, Planes, Rect};

pub fn memory(size: (u32, u32), layout: Layout, options: &Options<'_>) -> u64 {
    let color = match layout {
        Layout::Rgb => ColorType::Rgb8,
        Layout::Rgba => ColorType::Rgba8,
    };
    encoder(*options, Metadata::default()).memory(size, color)
}

pub fn fill_hidden(pixels: &mut [u8], width: usize) {
    crate::transparent_fill::fill(pixels, width, [0; 3]);
}

pub fn encode(picture: &RgbPicture<'_>, options: &Options<'_>) -> Result<Vec<u8>, EncodeError> {
    encode_telling(picture, options, &Metadata::default()).map(|encoded| encoded.file)
}

pub fn encode_telling(
    picture: &RgbPicture<'_>,
    options: &Options<'_>,
    metadata: &Metadata<'_>,
) -> Result<Encoded, EncodeError> {
    let RgbPicture {
        width,
        height,
        layout,
        pixels,
    } = *picture;
    let color = match layout {
        Layout::Rgb => ColorType::Rgb8,
        Layout::Rgba => ColorType::Rgba8,
    };
    let picture = Picture::new(width, height, color, pixels)?;
    encoder(*options, *metadata).encode(&picture)
}

pub fn encode_planes(
    size: (u32, u32),
    source: impl Fn() -> Result<Planes, EncodeError>,
    options: &Options<'_>,
    metadata: &Metadata<'_>,
) -> Result<Encoded, EncodeError> {
    encoder(*options, *metadata).encode_planes(size, source)
}

fn encoder<'a>(options: Options<'a>, metadata: Metadata<'a>) -> Encoder<'a> {
    Encoder { options, metadata }
}

#[derive(Debug)]
pub struct Covered {
    pub rect: Rect,
    pub pixels: Vec<[u8; 4]>,
}

#[derive(Debug)]
pub struct Animation<'a>(IncrementalAnimation<'a>);

impl<'a> Animation<'a> {
    pub fn new(
        width: u32,
        height: u32,
        loops: u16,
        options: Options<'a>,
        metadata: Metadata<'a>,
    ) -> Result<Animation<'a>, EncodeError> {
        IncrementalAnimation::new(encoder(options, metadata), (width, height), loops).map(Animation)
    }

    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    pub fn add(&mut self, canvas: &[u8], covered: Covered, ms: u32) -> Result<(), EncodeError> {
        let Covered { rect, pixels } = covered;
        let damage = Damage {
            rect,
            before: pixels,
        };
        self.0.add(canvas, damage, ms)
    }

    pub fn finish(self) -> Result<Encoded, EncodeError> {
        self.0.finish()
    }
}
