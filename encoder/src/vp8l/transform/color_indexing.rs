//! The colour indexing transform: RFC 9649, section 3.5.4.

use super::subtract;
use crate::EncodeError;
use crate::threads::Workers;
use crate::vp8l::lz77::PIXELS_A_QUESTION;

/// The colours of a picture that has few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Up to 256, ARGB.
    colors: Vec<u32>,
}

/// Most colours of a palette.
pub const MAX_COLORS: usize = 256;

/// Entries of a table that finds a colour's place in a palette.
const SLOTS: usize = 1024;

/// Finds colours by their hash.
struct Slots {
    /// Colours with their index and 1; 0 is free.
    slots: [(u32, u16); SLOTS],
}

impl Slots {
    fn new() -> Slots {
        Slots {
            slots: [(0, 0); SLOTS],
        }
    }

    /// The slot of `color`, or the one it would have.
    #[inline]
    fn slot(&mut self, color: u32) -> &mut (u32, u16) {
        let mut at = (color.wrapping_mul(0x9E37_79B1) >> 22) as usize;
        while self.slots[at].1 > 0 && self.slots[at].0 != color {
            at = (at + 1) % SLOTS;
        }
        &mut self.slots[at]
    }
}

impl Palette {
    /// The colours of `pixels`, in an order in which each is like the one before; `None` if there are more than
    /// [`MAX_COLORS`].
    pub fn new(pixels: &[u32], workers: Workers<'_>) -> Result<Option<Palette>, EncodeError> {
        let mut slots = Slots::new();
        let mut colors: Vec<u32> = Vec::new();
        let mut last = None;
        for part in pixels.chunks(PIXELS_A_QUESTION) {
            workers.check()?;
            for &pixel in part {
                if last == Some(pixel) {
                    continue;
                }
                last = Some(pixel);
                let slot = slots.slot(pixel);
                if slot.1 == 0 {
                    if colors.len() == MAX_COLORS {
                        return Ok(None);
                    }
                    colors.push(pixel);
                    *slot = (pixel, colors.len() as u16);
                }
            }
        }
        colors.sort_unstable();
        Ok(Some(Palette {
            colors: chain_of_neighbours(colors),
        }))
    }

    /// How many colours there are, 1 to [`MAX_COLORS`] if there are any pixels.
    pub fn len(&self) -> usize {
        self.colors.len()
    }

    /// log2 of how many pixels are packed into one.
    pub fn pack_bits(&self) -> u32 {
        match self.len() {
            0..=2 => 3,
            3..=4 => 2,
            5..=16 => 1,
            _ => 0,
        }
    }

    /// The colours as they are written: each less the one before, sample by sample.
    pub fn deltas(&self) -> Vec<u32> {
        let mut before = 0;
        self.colors
            .iter()
            .map(|&color| subtract(color, std::mem::replace(&mut before, color)))
            .collect()
    }

    /// Replaces colours by their indices, which lie in green, several to a pixel where few bits do. Gives the new
    /// width.
    pub fn apply(
        &self,
        pixels: &mut Vec<u32>,
        width: usize,
        workers: Workers<'_>,
    ) -> Result<usize, EncodeError> {
        let mut slots = Slots::new();
        for (index, &color) in (1..).zip(&self.colors) {
            *slots.slot(color) = (color, index);
        }
        let pack_bits = self.pack_bits();
        let packed_width = width.div_ceil(1 << pack_bits);
        let index_bits = 8 >> pack_bits;
        let mut known = (self.colors[0], 0);
        let mut to = 0;
        for (y, row) in (0..pixels.len()).step_by(width).enumerate() {
            if y % 8 == 0 {
                workers.check()?;
            }
            for first in (row..row + width).step_by(1 << pack_bits) {
                let mut packed = 0;
                for (position, i) in
                    (first..(row + width).min(first + (1 << pack_bits))).enumerate()
                {
                    let color = pixels[i];
                    if color != known.0 {
                        known = (color, u32::from(slots.slot(color).1) - 1);
                    }
                    packed |= known.1 << (position * index_bits);
                }
                pixels[to] = 0xFF00_0000 | packed << 8;
                to += 1;
            }
        }
        pixels.truncate(to);
        pixels.shrink_to_fit(); // by up to seven eighths
        Ok(packed_width)
    }
}

/// Reorders `colors`, which ascend: from the first on, the one that is nearest of those that are left.
fn chain_of_neighbours(mut colors: Vec<u32>) -> Vec<u32> {
    /// How far from 0 a difference is, going around.
    fn distance(a: u32, b: u32) -> u32 {
        subtract(a, b)
            .to_le_bytes()
            .iter()
            .map(|&d| u32::from(d.min(d.wrapping_neg())))
            .sum()
    }
    let mut before = 0;
    for done in 0..colors.len() {
        let left = done..colors.len();
        // The first one of equal ones: the same on every machine.
        if let Some(nearest) = left.min_by_key(|i| (distance(colors[*i], before), colors[*i])) {
            colors.swap(done, nearest);
            before = colors[done];
        }
    }
    colors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(pixels: &[u32]) -> Option<Palette> {
        Palette::new(pixels, Workers::unlimited(1)).expect("nothing cancels it")
    }

    #[test]
    fn colours_are_ordered_by_nearness_and_written_as_differences() {
        // From black: 1 is nearest, then 3; 200 is 56 away from 0, going around, and 59 from 3.
        let palette = palette(&[200, 3, 3, 1, 200]).expect("three colours");
        assert_eq!(palette.colors, [1, 3, 200]);
        assert_eq!(palette.deltas(), [1, 2, 197]);
    }

    #[test]
    fn indices_are_packed_from_the_lowest_bits_on() {
        let apply = |pixels: &[u32], width| {
            let mut packed = pixels.to_vec();
            let palette = palette(pixels).expect("few colours");
            let width = palette.apply(&mut packed, width, Workers::unlimited(1));
            (width.expect("nothing cancels it"), packed)
        };
        // Two colours, eight to a pixel; rows begin anew.
        let bits = [0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(
            apply(&bits, 9),
            (2, vec![0xFF00_8600, 0xFF00_0100, 0xFF00_0000, 0xFF00_0100])
        );
        // Three colours, four to a pixel.
        assert_eq!(
            apply(&[0, 1, 2, 2, 1], 5),
            (2, vec![0xFF00_A400, 0xFF00_0100])
        );
        // Five, two to a pixel.
        assert_eq!(
            apply(&[0, 1, 2, 3, 4], 5).1,
            [0xFF00_1000, 0xFF00_3200, 0xFF00_0400]
        );
        // Seventeen, one.
        let many: Vec<u32> = (0..17).collect();
        assert_eq!(apply(&many, 17).1[16], 0xFF00_1000);
    }

    #[test]
    fn more_than_256_colours_are_too_many() {
        let many: Vec<u32> = (0..257).map(|i| i * 77).collect();
        assert_eq!(
            palette(&many[..256]).map(|palette| palette.len()),
            Some(256)
        );
        assert_eq!(palette(&many), None);
    }
}
