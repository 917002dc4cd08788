//! The header of lossy pixels (RFC 6386, 9 and 19.2): the size, and what the decoder will hold.

use super::chunk::{damaged, u24};
use crate::image::error::DecodeError;

/// Bytes of the frame's tag, of the start code and of the sides.
const HEAD: usize = 10;

/// Width and height; `None` if it is no key frame that is shown.
pub fn size(data: &[u8]) -> Option<(u32, u32)> {
    let head = data.first_chunk::<HEAD>()?;
    let is_shown_key_frame = head[0] & 0x11 == 0x10;
    let side = |at: usize| u32::from(u16::from_le_bytes([head[at], head[at + 1]]) & 0x3fff);
    let (width, height) = (side(6), side(8));
    let is_sound = is_shown_key_frame && head[3..6] == [0x9d, 0x01, 0x2a];
    (is_sound && width > 0 && height > 0).then_some((width, height))
}

/// Most bytes that the decoder holds beside the pixels: the planes, a record of each macroblock in
/// a list that grows, and copies of the data.
///
/// # Errors
/// [`DecodeError::Invalid`] if a partition is not all there: the decoder would allocate it by its
/// size, which the file says.
pub fn memory(data: &[u8], (width, height): (u32, u32)) -> Result<u64, DecodeError> {
    /// Bytes of a macroblock in each of its three planes, together.
    const PLANES: u64 = 16 * 16 * 3 / 2;
    /// Bytes of its record, of which a list that grows holds three times as many.
    const RECORD: u64 = 3 * 40;
    /// Bytes beside each other for a byte of data: what was read so far, its copy while it grows,
    /// and a copy of all.
    const COPIES: u64 = 4;
    check_partitions(data).ok_or_else(|| damaged("it ends within its pixels"))?;
    let macroblocks = u64::from(width.div_ceil(16)) * u64::from(height.div_ceil(16));
    let border = 64 * u64::from(width);
    Ok(macroblocks * (PLANES + RECORD) + COPIES * data.len() as u64 + border)
}

/// Checks that the partitions are within the data (RFC 6386, 9.5).
fn check_partitions(data: &[u8]) -> Option<()> {
    let first = (u24(data, 0)? >> 5) as usize;
    let (first, others) = data.get(HEAD..)?.split_at_checked(first)?;
    let count = 1 << BoolDecoder::new(first).partition_bits();
    let sizes = (0..count - 1).map(|index| Some(u24(others, 3 * index)? as usize));
    let sizes: Option<usize> = sizes.sum();
    (3 * (count - 1) + sizes? <= others.len()).then_some(())
}

/// The boolean decoder (RFC 6386, 7.3) for values whose probability is one half.
struct BoolDecoder<'a> {
    data: std::slice::Iter<'a, u8>,
    value: u32,
    range: u32,
    bit_count: u32,
}

impl BoolDecoder<'_> {
    fn new(data: &[u8]) -> BoolDecoder<'_> {
        let mut decoder = BoolDecoder {
            data: data.iter(),
            value: 0,
            range: 255,
            bit_count: 0,
        };
        decoder.value = decoder.byte() << 8 | decoder.byte();
        decoder
    }

    /// The next byte; zeros follow the last one.
    fn byte(&mut self) -> u32 {
        self.data.next().map_or(0, |&byte| u32::from(byte))
    }

    fn flag(&mut self) -> bool {
        let split = 1 + ((self.range - 1) >> 1);
        let is_set = self.value >= split << 8;
        if is_set {
            self.range -= split;
            self.value -= split << 8;
        } else {
            self.range = split;
        }
        while self.range < 128 {
            self.value <<= 1;
            self.range <<= 1;
            self.bit_count += 1;
            if self.bit_count == 8 {
                self.bit_count = 0;
                self.value |= self.byte();
            }
        }
        is_set
    }

    fn literal(&mut self, bits: u32) -> u32 {
        (0..bits).fold(0, |number, _| number << 1 | u32::from(self.flag()))
    }

    /// Passes over so many fields of some bits, each behind a flag whether it is there.
    fn pass_optional(&mut self, count: u32, bits: u32) {
        for _ in 0..count {
            if self.flag() {
                self.literal(bits);
            }
        }
    }

    /// Reads the frame header (RFC 6386, 19.2) up to the binary logarithm of the number of
    /// partitions, which it returns.
    fn partition_bits(&mut self) -> u32 {
        self.literal(2); // the color space, and whether samples are clamped
        if self.flag() {
            let (has_map, has_data) = (self.flag(), self.flag());
            if has_data {
                self.literal(1);
                self.pass_optional(4, 8); // quantizers and their signs
                self.pass_optional(4, 7); // levels of the loop filter and their signs
            }
            if has_map {
                self.pass_optional(3, 8);
            }
        }
        self.literal(1 + 6 + 3); // the loop filter
        if self.flag() && self.flag() {
            self.pass_optional(8, 7); // its adjustments and their signs
        }
        self.literal(2)
    }
}
