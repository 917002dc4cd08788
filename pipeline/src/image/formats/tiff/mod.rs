//! TIFF (TIFF 6.0), the first picture of a file, by a reader of our own on the crates that other
//! formats decompress with: the crate `tiff` 0.11 reads no palettes, nor gray with alpha as such,
//! and its JPEG decoder would be a second version of ours.

mod decompress;
mod error;
mod header;
mod samples;

pub use header::Header;

use crate::image::color::{CmykKind, Space, cmyk_to_srgb};
use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::pixels::Image;
use decompress::Decompressor;
use header::Ink;
use samples::Converter;
use towebp_encoder::Cancel;

/// Decodes the picture.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode(
    header: &Header<'_>,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Decoded, DecodeError> {
    let (width, height) = header.size();
    let count = limits.check(width, height)?;
    let mut pixels = vec![0; count * header.channels()];
    let mut stored = vec![0; header.part_bytes()?];
    let mut decompressor = Decompressor::new(header.compression, cancel);
    let converter = Converter::new(header);
    for index in 0..header.parts() {
        cancel.check()?;
        let part = header.part(index)?;
        let stored = &mut stored[..part.row_bytes * part.rows];
        decompressor.read(part.data, stored)?;
        if header.has_differences {
            samples::add_differences(stored, &part, header);
        }
        converter.convert(stored, &part, &mut pixels, cancel)?;
    }
    drop(stored);
    let mut profile = header.profile().map(<[u8]>::to_vec);
    if header.ink == Ink::Cmyk {
        let kind = CmykKind::Cmyk;
        cmyk_to_srgb(&mut pixels, kind, profile.take().as_deref(), cancel)?;
    }
    Ok(Decoded {
        image: Image {
            width,
            height,
            layout: header.layout(),
            pixels,
        },
        is_gray: matches!(header.ink, Ink::Gray { .. }),
        space: profile.map(Space::Icc),
    })
}

#[cfg(test)]
mod tests;
