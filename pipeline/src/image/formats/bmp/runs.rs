//! The run-length coding of BMP: pairs of bytes, which are a count and a value, or 0 and a command.
//!
//! | pair | meaning |
//! |---|---|
//! | n, v | n pixels of v: an index of 8 bits, or two of 4 bits in turn |
//! | n, b, g, r | n pixels of this color, in bitmaps of 24 bits |
//! | 0, 0 | the row ends |
//! | 0, 1 | the picture ends |
//! | 0, 2 | two bytes follow: the number of pixels to skip to the right, and of rows to skip |
//! | 0, n | n pixels follow one by one, filled up to an even number of bytes |

use super::error::{damaged, ends_too_early};
use crate::image::error::DecodeError;
use crate::image::pixels::PIXELS_PER_CHECK;
use towebp_encoder::Cancel;

/// The packing of pixels into bytes.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Two indices a byte, the first in the high half.
    Half,
    /// One index a byte.
    Byte,
    /// A color in three bytes, blue first.
    Color,
}

impl Unit {
    /// The unit of pixels of 4, 8 or 24 bits.
    pub fn of_bits(bits: u32) -> Unit {
        match bits {
            4 => Unit::Half,
            8 => Unit::Byte,
            _ => Unit::Color,
        }
    }

    /// The number of bytes of `count` pixels.
    fn bytes(self, count: usize) -> usize {
        match self {
            Unit::Half => count.div_ceil(2),
            Unit::Byte => count,
            Unit::Color => count * 3,
        }
    }

    /// Pixel `index` of `bytes`.
    fn pixel(self, bytes: &[u8], index: usize) -> [u8; 3] {
        match self {
            Unit::Half if index.is_multiple_of(2) => [bytes[index / 2] >> 4, 0, 0],
            Unit::Half => [bytes[index / 2] & 15, 0, 0],
            Unit::Byte => [bytes[index], 0, 0],
            Unit::Color => [0, 1, 2].map(|sample| bytes[3 * index + sample]),
        }
    }

    /// The number of pixels after which a run repeats its value.
    fn period(self) -> usize {
        match self {
            Unit::Half => 2,
            Unit::Byte | Unit::Color => 1,
        }
    }
}

/// Calls `draw` for each pixel of the runs, with its column, its row as stored, and its value: an
/// index and two zeros, or blue, green and red. Pixels beyond the end of their row are left out,
/// and so are those that no run reaches.
///
/// # Errors
/// The data ends before the picture does, or a skip leads below its last row.
pub fn decode(
    mut bytes: &[u8],
    unit: Unit,
    (width, height): (usize, usize),
    cancel: &Cancel<'_>,
    mut draw: impl FnMut(usize, usize, [u8; 3]),
) -> Result<(), DecodeError> {
    let (mut x, mut y) = (0, 0);
    let mut work = 0;
    while y < height {
        work += 1;
        if work >= PIXELS_PER_CHECK {
            work = 0;
            cancel.check()?;
        }
        let (count, pixels, period) = match *bytes {
            [0, 0, ref rest @ ..] => {
                bytes = rest;
                (x, y) = (0, y + 1);
                continue;
            }
            [0, 1, ..] => break,
            [0, 2, right, down, ref rest @ ..] => {
                bytes = rest;
                x += usize::from(right);
                y += usize::from(down);
                if y >= height {
                    return Err(damaged("its runs step out of it"));
                }
                continue;
            }
            [0, count, ref rest @ ..] => {
                let count = usize::from(count);
                let length = unit.bytes(count);
                bytes = rest;
                (count, take(&mut bytes, length.next_multiple_of(2))?, count)
            }
            [count, ref rest @ ..] => {
                bytes = rest;
                let pixels = take(&mut bytes, unit.bytes(1))?;
                (usize::from(count), pixels, unit.period())
            }
            [] => return Err(ends_too_early()),
        };
        for index in 0..count.min(width.saturating_sub(x)) {
            draw(x + index, y, unit.pixel(pixels, index % period));
        }
        x += count;
        work += count;
    }
    Ok(())
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], DecodeError> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(ends_too_early)?;
    *bytes = rest;
    Ok(taken)
}
