//! Parts that are baseline JPEGs (TIFF technical note 2): the tables that all have in common stand
//! in a field of the directory.

use super::error::{damaged, ends_too_early, not_read};
use super::header::{Header, Part};
use crate::image::error::DecodeError;
use crate::image::formats::jpeg;
use crate::image::limits::Limits;
use towebp_encoder::Cancel;

/// Start and end of a JPEG.
const START: &[u8] = &[0xff, 0xd8];
const END: &[u8] = &[0xff, 0xd9];

/// Most bytes that the decoder of a part of so many pixels' width holds, beside the file and the
/// pixels that it returns.
fn decoder_bytes(width: usize) -> u64 {
    /// Those of the rows of blocks of three components, for each pixel of the width.
    const ROWS: u64 = 3 * 256;
    /// Those of tables, and of the decoder of a second thread, which does not run.
    const TABLES: u64 = 1 << 20;
    width as u64 * 2 * ROWS + TABLES
}

/// Most bytes that [`read`] holds beside the samples, with parts of such a size and so many bytes
/// of data.
pub fn most_bytes((width, rows): (usize, usize), data: usize, tables: usize) -> u64 {
    let pixels = (width as u64).saturating_mul(3 * rows as u64);
    pixels.saturating_add(decoder_bytes(width) + (data + tables + 64) as u64)
}

/// Decodes a part to `samples`.
///
/// # Errors
/// It is damaged, ends too early, or is of a kind that no TIFF should have.
pub fn read(
    header: &Header<'_>,
    is_luma_and_chroma: bool,
    part: &Part<'_>,
    samples: &mut [u8],
    cancel: &Cancel<'_>,
) -> Result<(), DecodeError> {
    let file = with_tables(header.jpeg_tables, is_luma_and_chroma, part.data)?;
    let jpeg = jpeg::Header::read(&file)?;
    let limits = Limits {
        max_side: u32::MAX,
        max_pixels: u64::MAX,
        ..Limits::DEFAULT
    };
    let footprint = jpeg.footprint(&limits)?;
    let (width, rows) = (footprint.width as usize, footprint.height as usize);
    if width != part.width || rows > header.part_size().1 {
        return Err(damaged("a JPEG in it has another size than its part"));
    }
    if rows < part.rows {
        return Err(ends_too_early());
    }
    let (.., components) = jpeg.geometry();
    if components.len() != part.samples {
        return Err(damaged("a JPEG in it has other colors than the picture"));
    }
    if footprint.decoder > decoder_bytes(width) {
        return Err(not_read("JPEGs that are progressive or in several scans"));
    }
    let pixels = jpeg::decode(&file, &jpeg, &limits, cancel)?.image.pixels;
    let pixels = pixels.as_chunks::<3>().0.iter();
    for (sample, pixel) in samples.chunks_exact_mut(part.samples).zip(pixels) {
        sample.copy_from_slice(&pixel[..part.samples]);
    }
    Ok(())
}

/// A part's data as a file of its own. Adobe's segment in front of the others has the colors of the
/// picture, which the part's own segment may contradict.
fn with_tables(
    tables: Option<&[u8]>,
    is_luma_and_chroma: bool,
    data: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let data = data.strip_prefix(START).ok_or_else(ends_too_early)?;
    let tables = match tables {
        None => &[],
        Some(tables) => tables
            .strip_prefix(START)
            .and_then(|tables| tables.strip_suffix(END))
            .ok_or_else(|| damaged("its JPEG tables"))?,
    };
    let transform = u8::from(is_luma_and_chroma);
    let adobe = [&b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0"[..], &[transform]].concat();
    Ok([START, &adobe, tables, data].concat())
}
