//! Fax compression of group 4 (TIFF 6.0, section 11; ITU-T T.6).

use super::error::{damaged, ends_too_early};
use super::header::Part;
use crate::image::error::DecodeError;
use fax::decoder::{DecodeError as FaxError, DecodeStatus, Group4Decoder};
use towebp_encoder::{Cancel, Cancelled};

/// Bytes of data between two checks for cancellation, since a byte may take a row's time.
const BYTES_PER_CHECK: usize = 64;

/// Most bytes that [`read`] holds for parts with so many bytes of data: a code of 12 bits at least
/// adds two changes of color to a row, of four bytes each, and the rows grow by doubling.
pub fn most_bytes(data: usize) -> u64 {
    (1 << 16) + 32 * data as u64
}

/// Decodes a part to rows of bits, of which those that are set are black.
///
/// # Errors
/// The data is damaged or ends too early.
pub fn read(
    data: &[u8],
    part: &Part<'_>,
    output: &mut [u8],
    cancel: &Cancel<'_>,
) -> Result<(), DecodeError> {
    let bytes = data.iter().enumerate().map(|(at, byte)| {
        if at.is_multiple_of(BYTES_PER_CHECK) {
            cancel.check()?;
        }
        Ok::<u8, Cancelled>(*byte)
    });
    let mut decoder = Group4Decoder::new(bytes, part.width as u32)?;
    for row in output.chunks_exact_mut(part.row_bytes) {
        match decoder.advance() {
            Ok(DecodeStatus::Incomplete) => {}
            Ok(DecodeStatus::End) => return Err(ends_too_early()),
            Err(FaxError::Reader(cancelled)) => return Err(cancelled.into()),
            Err(_) => return Err(damaged("its fax codes")),
        }
        row.fill(0);
        // Each second change is the end of black pixels.
        for black in decoder.transition().chunks(2) {
            let end = black.get(1).map_or(part.width, |end| *end as usize);
            set_bits(row, black[0] as usize, end.min(part.width));
        }
    }
    Ok(())
}

/// Sets the bits of a row from `begin` to `end`; the first one is the highest of a byte.
fn set_bits(row: &mut [u8], begin: usize, end: usize) {
    if begin >= end {
        return;
    }
    let (first, last) = (begin / 8, (end - 1) / 8);
    let (head, tail) = (0xff >> (begin % 8), 0xff << (7 - (end - 1) % 8));
    if first == last {
        row[first] |= head & tail;
    } else {
        row[first] |= head;
        row[first + 1..last].fill(0xff);
        row[last] |= tail;
    }
}
