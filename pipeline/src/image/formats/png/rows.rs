//! The rows of a PNG, expanded to 8-bit RGB or RGBA.

use super::decoder::{invalid, layout_of};
use crate::image::color::SixteenBitTransform;
use crate::image::error::DecodeError;
use crate::image::pixels::{Layout, to_8_bit};
use ::png::{BitDepth, ColorType, InterlaceInfo, Reader};
use std::io::{BufRead, Seek};
use towebp_encoder::Cancel;

/// Decodes all rows into `pixels`, whose rows have `stride` bytes.
pub fn read_rows<R: BufRead + Seek>(
    reader: &mut Reader<R>,
    expansion: &mut Expansion,
    pixels: &mut [u8],
    stride: usize,
    cancel: &Cancel<'_>,
) -> Result<(), DecodeError> {
    if !reader.info().interlaced && expansion.is_identity() {
        for row in pixels.chunks_exact_mut(stride) {
            cancel.check()?;
            reader.read_row(row).map_err(|error| invalid(&error))?;
        }
        return Ok(());
    }
    let bits_per_pixel = match layout_of(expansion.color) {
        Layout::Rgb => 24,
        Layout::Rgba => 32,
    };
    let mut expanded = vec![0; stride];
    let mut y = 0;
    while let Some(row) = reader
        .next_interlaced_row()
        .map_err(|error| invalid(&error))?
    {
        cancel.check()?;
        let length = expansion.expand(row.data(), &mut expanded);
        match row.interlace() {
            InterlaceInfo::Null(_) => {
                pixels[y * stride..][..stride].copy_from_slice(&expanded);
                y += 1;
            }
            InterlaceInfo::Adam7(pass) => {
                ::png::expand_interlaced_row(
                    pixels,
                    stride,
                    &expanded[..length],
                    pass,
                    bits_per_pixel,
                );
            }
        }
    }
    Ok(())
}

/// Decodes the rows of a picture that is not interlaced, from top to bottom, and has `take` take
/// each, as long as it returns true. They have `stride` bytes.
pub fn for_each_row<R: BufRead + Seek>(
    reader: &mut Reader<R>,
    expansion: &mut Expansion,
    stride: usize,
    cancel: &Cancel<'_>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), DecodeError> {
    let mut expanded = vec![0; stride];
    while let Some(row) = reader.next_row().map_err(|error| invalid(&error))? {
        cancel.check()?;
        let goes_on = if expansion.is_identity() {
            take(row.data())
        } else {
            expansion.expand(row.data(), &mut expanded);
            take(&expanded)
        };
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// Expands rows as the decoder gives them to rows of 8-bit RGB or RGBA.
pub struct Expansion {
    color: ColorType,
    depth: BitDepth,
    /// The conversion to sRGB, before 16 bits become 8.
    transform: Option<SixteenBitTransform>,
    /// A row of samples for the transform.
    samples: Vec<u16>,
}

impl Expansion {
    /// The expansion of rows of this color type and depth.
    pub fn new(color: ColorType, depth: BitDepth) -> Expansion {
        Expansion {
            color,
            depth,
            transform: None,
            samples: Vec::new(),
        }
    }

    /// Has rows of `samples` 16-bit samples converted before they are rounded.
    pub fn convert_by(&mut self, transform: SixteenBitTransform, samples: usize) {
        self.transform = Some(transform);
        self.samples = vec![0; samples];
    }

    fn is_identity(&self) -> bool {
        self.depth == BitDepth::Eight && matches!(self.color, ColorType::Rgb | ColorType::Rgba)
    }

    /// Expands a row to the beginning of `out`, and returns its length there in bytes.
    fn expand(&mut self, row: &[u8], out: &mut [u8]) -> usize {
        if self.depth != BitDepth::Sixteen {
            return expand_samples(row.iter().copied(), self.color, out);
        }
        let samples = row.as_chunks::<2>().0.iter();
        let samples = samples.map(|&sample| u16::from_be_bytes(sample));
        let Some(transform) = &mut self.transform else {
            return expand_samples(samples.map(to_8_bit), self.color, out);
        };
        let length = expand_samples(samples, self.color, &mut self.samples);
        transform.convert(&self.samples[..length], &mut out[..length]);
        length
    }
}

/// Writes red, green, blue and perhaps alpha of each pixel to the beginning of `out`, and returns
/// the number of samples.
fn expand_samples<T: Copy>(
    mut samples: impl ExactSizeIterator<Item = T>,
    color: ColorType,
    out: &mut [T],
) -> usize {
    let (inputs, outputs) = match color {
        ColorType::Grayscale => (1, 3),
        ColorType::GrayscaleAlpha => (2, 4),
        ColorType::Rgb | ColorType::Indexed => (3, 3),
        ColorType::Rgba => (4, 4),
    };
    let length = samples.len() / inputs * outputs;
    let mut next = || {
        samples
            .next()
            .expect("the loop takes as many samples as were counted")
    };
    for pixel in out[..length].chunks_exact_mut(outputs) {
        if inputs < 3 {
            pixel[..3].fill(next());
        } else {
            pixel[..3].fill_with(&mut next);
        }
        if outputs == 4 {
            pixel[3] = next();
        }
    }
    length
}
