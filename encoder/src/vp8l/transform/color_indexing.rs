//! The color indexing transform: RFC 9649, section 3.5.4.

use super::subtract;
use crate::EncodeError;
use crate::checks::{Checks, PIXELS_PER_CHECK};
use crate::threads::Workers;

/// The colors of a picture that has few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Up to 256 colors, ARGB.
    colors: Vec<u32>,
}

/// Most colors of a palette.
pub const MAX_COLORS: usize = 256;

/// Number of slots of the hash table.
const SLOTS: usize = 1024;

/// A hash table from colors to palette indices.
struct Slots {
    /// Colors with their index plus 1; 0 is a free slot.
    slots: [(u32, u16); SLOTS],
}

impl Slots {
    fn new() -> Slots {
        Slots {
            slots: [(0, 0); SLOTS],
        }
    }

    /// Returns the slot of `color`, or the free one that it would take.
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
    /// Collects the colors of `pixels`, ordered so that each is similar to the one before. Returns
    /// `None` if there are more than [`MAX_COLORS`].
    pub fn new(pixels: &[u32], workers: Workers<'_>) -> Result<Option<Palette>, EncodeError> {
        let mut slots = Slots::new();
        let mut colors: Vec<u32> = Vec::new();
        let mut last = None;
        for part in pixels.chunks(PIXELS_PER_CHECK) {
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
            colors: order_by_similarity(colors),
        }))
    }

    /// Number of colors, 1 to [`MAX_COLORS`] if there are pixels.
    pub fn len(&self) -> usize {
        self.colors.len()
    }

    /// Base-2 logarithm of the number of indices packed into one pixel.
    pub fn pack_bits(&self) -> u32 {
        match self.len() {
            0..=2 => 3,
            3..=4 => 2,
            5..=16 => 1,
            _ => 0,
        }
    }

    /// Returns the colors as they are written: each less the one before, sample by sample.
    pub fn deltas(&self) -> Vec<u32> {
        let mut before = 0;
        self.colors
            .iter()
            .map(|&color| subtract(color, std::mem::replace(&mut before, color)))
            .collect()
    }

    /// Replaces colors by their indices, in green, packed where indices have few bits. Returns the
    /// new width.
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
        let mut checks = Checks::new(workers);
        for row in (0..pixels.len()).step_by(width) {
            checks.at(row)?;
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

/// Reorders `colors`, which ascend, so that each is followed by the nearest of the remaining ones.
fn order_by_similarity(mut colors: Vec<u32>) -> Vec<u32> {
    /// Returns the sum of the samples' differences, modulo 256 and in the shorter direction.
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
        // Ties are broken by the color, so that every machine decides the same.
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
    fn colors_are_ordered_by_similarity_and_written_as_differences() {
        // Starting at black, 1 is nearest, then 3; 200 is 56 away from 0 modulo 256, and 59 from 3.
        let palette = palette(&[200, 3, 3, 1, 200]).expect("three colors");
        assert_eq!(palette.colors, [1, 3, 200]);
        assert_eq!(palette.deltas(), [1, 2, 197]);
    }

    #[test]
    fn indices_are_packed_from_the_lowest_bits_on() {
        let apply = |pixels: &[u32], width| {
            let mut packed = pixels.to_vec();
            let palette = palette(pixels).expect("few colors");
            let width = palette.apply(&mut packed, width, Workers::unlimited(1));
            (width.expect("nothing cancels it"), packed)
        };
        // Two colors, eight per pixel; rows start in a new pixel.
        let bits = [0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(
            apply(&bits, 9),
            (2, vec![0xFF00_8600, 0xFF00_0100, 0xFF00_0000, 0xFF00_0100])
        );
        // Three colors, four per pixel.
        assert_eq!(
            apply(&[0, 1, 2, 2, 1], 5),
            (2, vec![0xFF00_A400, 0xFF00_0100])
        );
        // Five colors, two per pixel.
        assert_eq!(
            apply(&[0, 1, 2, 3, 4], 5).1,
            [0xFF00_1000, 0xFF00_3200, 0xFF00_0400]
        );
        // Seventeen colors, one per pixel.
        let many: Vec<u32> = (0..17).collect();
        assert_eq!(apply(&many, 17).1[16], 0xFF00_1000);
    }

    #[test]
    fn more_than_256_colors_have_no_palette() {
        let many: Vec<u32> = (0..257).map(|i| i * 77).collect();
        assert_eq!(
            palette(&many[..256]).map(|palette| palette.len()),
            Some(256)
        );
        assert_eq!(palette(&many), None);
    }
}
