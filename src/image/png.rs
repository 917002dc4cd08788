//! PNG, by the crate `png`: every colour type and depth becomes 8-bit RGB or RGBA, row by row into the final buffer.

use super::{DecodeError, Image, Layout, Limits, Raw};
use ::png::{BitDepth, ColorType, Decoder, DecodingError, InterlaceInfo, Reader, Transformations};
use std::io::Cursor;

/// What the decoder may allocate for itself: a few rows and the compressed metadata. The pixels are ours.
const DECODER_BYTES: usize = 32 << 20;

/// Reads the (first) picture of a PNG.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Raw, DecodeError> {
    let mut decoder = Decoder::new_with_limits(
        Cursor::new(bytes),
        ::png::Limits {
            bytes: DECODER_BYTES,
        },
    );
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder
        .read_header_info()
        .map_err(|error| invalid(&error))?;
    let (width, height) = (header.width, header.height);
    let count = limits.check(width, height)?;

    let mut reader = decoder.read_info().map_err(|error| invalid(&error))?;
    let (color, depth) = reader.output_color_type();
    let layout = match color {
        ColorType::Grayscale | ColorType::Rgb | ColorType::Indexed => Layout::Rgb,
        ColorType::GrayscaleAlpha | ColorType::Rgba => Layout::Rgba,
    };
    let mut pixels = vec![0; count * layout.channels()];
    read_rows(
        &mut reader,
        &mut pixels,
        width as usize * layout.channels(),
        color,
        depth,
    )?;
    // Checks that the file is whole, and finds an eXIf chunk behind the pixels.
    reader.finish().map_err(|error| invalid(&error))?;

    let info = reader.info();
    Ok(Raw {
        image: Image {
            width,
            height,
            layout,
            pixels,
        },
        grey: matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha),
        profile: info.icc_profile.as_deref().map(<[u8]>::to_vec),
        exif: info.exif_metadata.as_deref().map(<[u8]>::to_vec),
    })
}

/// Decodes all rows into `pixels`, whose rows are `stride` bytes.
fn read_rows(
    reader: &mut Reader<Cursor<&[u8]>>,
    pixels: &mut [u8],
    stride: usize,
    color: ColorType,
    depth: BitDepth,
) -> Result<(), DecodeError> {
    if !reader.info().interlaced
        && depth == BitDepth::Eight
        && matches!(color, ColorType::Rgb | ColorType::Rgba)
    {
        for row in pixels.chunks_exact_mut(stride) {
            reader.read_row(row).map_err(|error| invalid(&error))?;
        }
        return Ok(());
    }
    let bits_per_pixel = if matches!(color, ColorType::Grayscale | ColorType::Rgb) {
        24
    } else {
        32
    };
    let mut expanded = vec![0; stride];
    let mut y = 0;
    while let Some(row) = reader
        .next_interlaced_row()
        .map_err(|error| invalid(&error))?
    {
        let length = expand_row(row.data(), color, depth, &mut expanded);
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

/// Makes 8-bit RGB or RGBA of a row; returns its length in bytes.
fn expand_row(row: &[u8], color: ColorType, depth: BitDepth, out: &mut [u8]) -> usize {
    if depth == BitDepth::Sixteen {
        let samples = row
            .as_chunks::<2>()
            .0
            .iter()
            .map(|&sample| to_8_bit(u16::from_be_bytes(sample)));
        expand_samples(samples, color, out)
    } else {
        expand_samples(row.iter().copied(), color, out)
    }
}

fn expand_samples(
    mut samples: impl ExactSizeIterator<Item = u8>,
    color: ColorType,
    out: &mut [u8],
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

/// The nearest of 256 levels (PNG 13.12), where cutting off the low byte would darken.
fn to_8_bit(sample: u16) -> u8 {
    ((u32::from(sample) * 255 + 32767) / 65535) as u8
}

fn invalid(error: &DecodingError) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the PNG data ends too early".to_owned()
        }
        DecodingError::LimitsExceeded => {
            "the PNG needs more memory than its size allows for".to_owned()
        }
        other => format!(
            "the PNG data is damaged ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}
