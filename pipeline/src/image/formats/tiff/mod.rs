//! TIFF (TIFF 6.0), the first picture of a file, by a reader of our own on the crates that other
//! formats decompress with: the crate `tiff` 0.11 reads no palettes, nor gray with alpha as such,
//! and its JPEG decoder would be a second version of ours.

mod decompress;
mod error;
mod fax;
mod header;
mod jpeg_part;
mod samples;

pub use header::Header;

use crate::image::color::{CmykKind, Space, cmyk_to_srgb, profile_bytes};
use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::limits::Limits;
use crate::image::pixels::Image;
use decompress::Decompressor;
use header::Ink;
use samples::Converter;
use towebp_encoder::Cancel;

/// The memory that [`decode`] takes.
///
/// # Errors
/// The parts are far larger than the picture.
pub fn footprint(header: &Header<'_>, limits: &Limits) -> Result<Footprint, DecodeError> {
    header.check_parts(limits)?;
    let (width, height) = header.size();
    let inks = match header.ink {
        Ink::Cmyk => u64::from(width) * u64::from(height),
        _ => 0,
    };
    let profile = header.profile().map_or(0, <[u8]>::len);
    Ok(Footprint {
        width,
        height,
        layout: header.layout(),
        decoder: header.part_bytes()? as u64
            + inks
            + decompress::most_bytes(header)
            + profile_bytes(profile, header.ink.samples()),
    })
}

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
    let mut decompressor = Decompressor::new(header, cancel);
    let converter = Converter::new(header);
    for index in 0..header.parts() {
        cancel.check()?;
        let part = header.part(index)?;
        let stored = &mut stored[..part.row_bytes * part.rows];
        decompressor.read(&part, stored)?;
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
