//! The colors of a picture and how often each occurs.

use crate::checks::PIXELS_PER_CHECK;
use crate::error::EncodeError;
use crate::threads::Workers;
use crate::vp8l::MAX_COLORS;

/// The most colors of a picture that is reduced. One of more is hardly shown by 256 of them.
const MOST: usize = 1 << 14;

/// The slots of the hash table of colors: twice as many as colors.
const SLOT_BITS: u32 = 15;

/// A color in a space whose distances are roughly seen distances: red, green and blue, multiplied
/// by alpha, in 1 / 5, 1 / 8 and 1 / 5 of a level, and alpha in 1 / 5.
pub type Point = [i32; 4];

/// A color of the picture.
#[derive(Clone, Copy, Debug)]
pub struct Color {
    pub argb: u32,
    pub point: Point,
    /// The number of its pixels, with [`REPEATED`] more for each that equals the one on its left.
    /// Each round in which one of them lay in an area that changed visibly multiplies it by 16, up
    /// to 9 for every 256 pixels of the picture. The sum over all colors is below 2^38.
    pub weight: u64,
    /// Whether its weight was raised in this round.
    pub is_raised: bool,
    /// The color that it is replaced by.
    pub replaced: u32,
}

/// The weight of a pixel that equals the one on its left, beyond that of others: in flat areas a
/// change of color is seen best.
const REPEATED: u64 = 8;

/// The colors of a picture.
#[derive(Debug)]
pub struct Colors {
    /// In any order; [`Colors::index`] renews the table.
    pub list: Vec<Color>,
    /// For each hash of a color its index in `list` plus 1, or 0.
    slots: Vec<u16>,
}

impl Colors {
    /// Counts the colors of `pixels`; `None` if there are at most [`MAX_COLORS`] or more than
    /// [`MOST`] of them.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn count(pixels: &[u32], workers: Workers<'_>) -> Result<Option<Colors>, EncodeError> {
        let mut colors = Colors {
            list: Vec::new(),
            slots: vec![0; 1 << SLOT_BITS],
        };
        let mut last = None;
        for part in pixels.chunks(PIXELS_PER_CHECK) {
            workers.check()?;
            for run in part.chunk_by(|a, b| a == b) {
                let argb = run[0];
                let repeated = run.len() as u64 - u64::from(last != Some(argb));
                last = Some(argb);
                let slot = colors.slot(argb);
                let index = match colors.slots[slot] {
                    0 if colors.list.len() == MOST => return Ok(None),
                    0 => {
                        colors.list.push(Color::new(argb));
                        colors.slots[slot] = colors.list.len() as u16;
                        colors.list.len() - 1
                    }
                    index => usize::from(index) - 1,
                };
                colors.list[index].weight += run.len() as u64 + REPEATED * repeated;
            }
        }
        Ok((colors.list.len() > MAX_COLORS).then_some(colors))
    }

    /// Renews the table after `list` was reordered.
    pub fn index(&mut self) {
        self.slots.fill(0);
        for index in 0..self.list.len() {
            let slot = self.slot(self.list[index].argb);
            self.slots[slot] = index as u16 + 1;
        }
    }

    /// The index of a color of the picture.
    #[inline]
    pub fn find(&self, argb: u32) -> usize {
        usize::from(self.slots[self.slot(argb)]) - 1
    }

    /// Replaces the colors of these pixels.
    pub fn replace(&self, pixels: &mut [u32]) {
        for run in pixels.chunk_by_mut(|a, b| a == b) {
            let replaced = self.list[self.find(run[0])].replaced;
            run.fill(replaced);
        }
    }

    /// The slot of a color, or the free one that it would take.
    #[inline]
    fn slot(&self, argb: u32) -> usize {
        let mut slot = (argb.wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOT_BITS)) as usize;
        loop {
            match self.slots[slot] {
                0 => return slot,
                index if self.list[usize::from(index) - 1].argb == argb => return slot,
                _ => slot = (slot + 1) % self.slots.len(),
            }
        }
    }
}

impl Color {
    /// Returns a color of no pixels, which is not replaced.
    pub fn new(argb: u32) -> Color {
        Color {
            argb,
            point: point(argb),
            weight: 0,
            is_raised: false,
            replaced: argb,
        }
    }
}

/// The point of a color.
pub fn point(argb: u32) -> Point {
    let [blue, green, red, alpha] = argb.to_le_bytes().map(i32::from);
    let [blue, green, red] = [(blue, 5), (green, 8), (red, 5)]
        .map(|(sample, scale)| (sample * alpha * scale + 127) / 255);
    [blue, green, red, alpha * 5]
}

/// The square of the distance between two points, below 2^23.
#[inline]
pub fn distance(a: &Point, b: &Point) -> u32 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<i32>() as u32
}
