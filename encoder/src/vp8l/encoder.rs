//! The lossless encoder as the list of its passes. RFC 9649, section 3.8, lists the parts in
//! bitstream order.

use super::bit_writer::BitWriter;
use super::coding;
use super::estimate::Estimate;
use super::options::LosslessOptions;
use super::parse_search::ParseSearch;
use super::transform::choice;
use crate::EncodeError;
use crate::checks::PIXELS_PER_CHECK;
use crate::threads::Workers;

#[cfg(test)]
mod tests;

/// Encodes `pixels` (ARGB, rows of `width`, up to 16384 per side) as the data of a `VP8L` chunk.
pub fn encode(
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    const SIGNATURE: u32 = 0x2F;
    const VERSION: u32 = 0;
    let height = pixels.len() / width;
    let has_alpha = has_alpha(&pixels, options.workers)?;
    let mut bits = BitWriter::default();
    // The image header (section 3.4).
    bits.put(SIGNATURE, 8);
    bits.put(width as u32 - 1, 14);
    bits.put(height as u32 - 1, 14);
    bits.put_flag(has_alpha);
    bits.put(VERSION, 3);
    write_stream(&mut bits, pixels, width, options)?;
    Ok(bits.finish())
}

/// [`encode`] without the header, as in an `ALPH` chunk (section 2.7.1.2), which stores alpha in
/// green.
pub fn encode_headless(
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bits = BitWriter::default();
    write_stream(&mut bits, pixels, width, options)?;
    Ok(bits.finish())
}

/// Estimates the size of [`encode_headless`]'s output by a greedy parse, in a unit that only serves
/// to compare estimates.
pub fn estimate(pixels: &[u32], width: usize, workers: Workers<'_>) -> Result<u64, EncodeError> {
    Ok(Estimate::new(pixels, width, 0, workers)?.total)
}

/// Whether any pixel is not opaque.
fn has_alpha(pixels: &[u32], workers: Workers<'_>) -> Result<bool, EncodeError> {
    for part in pixels.chunks(PIXELS_PER_CHECK) {
        workers.check()?;
        // The whole part is combined, which is several times faster than testing each pixel.
        let least = part.iter().fold(u32::MAX, |all, pixel| all & pixel);
        if least >> 24 != 255 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn write_stream(
    bits: &mut BitWriter,
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<(), EncodeError> {
    let mut smallest = None;
    for candidate in choice::list_candidates(pixels, width, options)? {
        let mut trial = bits.clone();
        let search = ParseSearch::for_effort(options.effort, &candidate);
        coding::write(&mut trial, candidate, &search, options)?;
        keep_smaller(&mut smallest, trial);
    }
    *bits = smallest.expect("there is a candidate");
    Ok(())
}

/// Replaces `smallest` by `trial` if `trial` is smaller.
fn keep_smaller(smallest: &mut Option<BitWriter>, trial: BitWriter) {
    if smallest
        .as_ref()
        .is_none_or(|known| trial.bits() < known.bits())
    {
        *smallest = Some(trial);
    }
}
