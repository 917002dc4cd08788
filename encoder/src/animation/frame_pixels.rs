//! The pixels that a frame draws. Where it has alpha 0, what is there stays (RFC 9649, section
//! 2.7.1.1).

use super::damage::{PreviousCanvas, Rect, SIDE, Update, are_same, differs};
use crate::error::EncodeError;
use crate::picture::{Layout, RgbPicture};
use crate::pixel_source::{PixelSource, Target};
use crate::threads::Workers;
use crate::{transparent_fill, vp8l};
use std::borrow::Cow;
use std::ops::Range;

/// The unit in which pixels of a rectangle are drawn if not all of them change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Only the pixels that change, for lossless coding.
    Pixel,
    /// All opaque ones of a macroblock in which one changes: alpha then takes next to nothing, and
    /// lossy coding has no holes to go around.
    Macroblock,
}

/// A bit for each pixel of an update, set if the pixel is drawn: the first one is the lowest bit,
/// each row begins a new word, and there are no words at all if every pixel is drawn. With the mask
/// and the canvas after the update, the canvas before it is no longer needed.
#[derive(Debug)]
pub struct UpdateMask {
    pixels: Vec<u64>,
    macroblocks: Vec<u64>,
}

/// The pixels of a word.
const A_WORD: usize = 64;

impl UpdateMask {
    /// The mask of an update from the canvas `before` to the one `after`.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn new(
        before: PreviousCanvas<'_>,
        update: &Update,
        after: &[[u8; 4]],
        workers: Workers<'_>,
    ) -> Result<UpdateMask, EncodeError> {
        let Rect {
            left,
            top,
            width,
            height,
        } = update.rect;
        let across = width.div_ceil(A_WORD);
        let words = if update.blends { across * height } else { 0 };
        let mut mask = UpdateMask {
            pixels: Vec::with_capacity(words),
            macroblocks: Vec::with_capacity(words),
        };
        if !update.blends {
            return Ok(mask);
        }
        let now = |y: usize| &after[y * before.width + left..][..width];
        let mut was = vec![[0; 4]; width];
        for band in (top..top + height).step_by(SIDE) {
            workers.check()?;
            let rows = band..(band + SIDE).min(top + height);
            let begin = mask.pixels.len();
            for y in rows.clone() {
                was.copy_from_slice(now(y));
                before.undo((left, y), &mut was);
                let parts = was.chunks(A_WORD).zip(now(y).chunks(A_WORD));
                mask.pixels
                    .extend(parts.map(|(was, now)| changed(was, now)));
            }
            let changed = &mask.pixels[begin..];
            let column = |x: usize| changed.iter().skip(x).step_by(across);
            let touched = (0..across).map(|x| touched(column(x).fold(0, |all, word| all | word)));
            let touched: Vec<u64> = touched.collect();
            for (y, changed) in rows.zip(changed.chunks(across)) {
                let parts = touched.iter().zip(changed).zip(now(y).chunks(A_WORD));
                let drawn = parts.map(|((&touched, &changed), now)| match touched {
                    0 => 0,
                    _ => changed | touched & opaque(now),
                });
                mask.macroblocks.extend(drawn);
            }
        }
        Ok(mask)
    }

    fn words(&self, granularity: Granularity) -> &[u64] {
        match granularity {
            Granularity::Pixel => &self.pixels,
            Granularity::Macroblock => &self.macroblocks,
        }
    }

    /// The words of row `y`, which has `width` pixels.
    fn row(&self, granularity: Granularity, y: usize, width: usize) -> impl Iterator<Item = u64> {
        let across = width.div_ceil(A_WORD);
        let words = self
            .words(granularity)
            .get(y * across..)
            .unwrap_or_default();
        let all = std::iter::repeat_n(u64::MAX, across - words.len().min(across));
        words.iter().take(across).copied().chain(all)
    }
}

fn changed(was: &[[u8; 4]], now: &[[u8; 4]]) -> u64 {
    if are_same(was, now) {
        return 0;
    }
    bits(was.iter().zip(now).map(|(was, now)| differs(*was, *now)))
}

fn opaque(pixels: &[[u8; 4]]) -> u64 {
    bits(pixels.iter().map(|pixel| pixel[3] == 255))
}

/// A bit for each of up to 64 flags. They are bytes first, of which the compiler makes vector
/// instructions.
fn bits(are_set: impl Iterator<Item = bool>) -> u64 {
    /// Brings the lowest bit of byte `i` to bit 56 + `i`, and all others elsewhere.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut flags = [0; A_WORD];
    for (flag, is_set) in flags.iter_mut().zip(are_set) {
        *flag = u8::from(is_set);
    }
    let eights = flags.as_chunks().0.iter().rev();
    eights.fold(0, |word, eight| {
        word << 8 | u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56
    })
}

/// Sets all bits of the macroblocks that have one.
fn touched(changed: u64) -> u64 {
    const MACROBLOCK: u64 = (1 << SIDE) - 1;
    let masks = (0..A_WORD).step_by(SIDE).map(|x| MACROBLOCK << x);
    masks.filter(|mask| changed & mask != 0).sum()
}

/// The columns whose bits are set, in runs that lie side by side.
fn runs(mut word: u64) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        let begin = word.trailing_zeros();
        let length = word.checked_shr(begin)?.trailing_ones();
        word &= !ones(begin, length);
        Some(begin as usize..(begin + length) as usize)
    })
}

/// A word with `length` bits set from `begin` on, at least one.
fn ones(begin: u32, length: u32) -> u64 {
    u64::MAX >> (u64::BITS - length) << begin
}

/// The pixels of an update, made of the canvas after it.
#[derive(Clone, Copy, Debug)]
pub struct FramePixels<'a> {
    /// The mask of the drawn ones.
    pub mask: &'a UpdateMask,
    /// Where they come from.
    pub origin: Origin<'a>,
    /// The width and height in pixels.
    pub size: (usize, usize),
}

/// Where the pixels of an update come from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The canvas.
    Canvas {
        /// Pixels from the first one of the update on.
        pixels: &'a [[u8; 4]],
        /// The pixels from one row to the next.
        stride: usize,
    },
    /// A copy, since the canvas may show others.
    Kept(&'a KeptPixels),
}

/// A copy of the pixels of an update that are drawn.
#[derive(Debug)]
pub struct KeptPixels {
    granularity: Granularity,
    /// All of them, row by row.
    pixels: Vec<[u8; 4]>,
    /// The number of them above each row.
    before: Vec<usize>,
}

impl<'a> FramePixels<'a> {
    /// Copies the pixels that are drawn, for when the canvas shows others.
    pub fn keep(&self, granularity: Granularity) -> KeptPixels {
        let (width, height) = self.size;
        let words = self.mask.words(granularity);
        let drawn = words.iter().map(|word| word.count_ones() as usize);
        let count = if words.is_empty() {
            width * height
        } else {
            drawn.sum()
        };
        let mut pixels = Vec::with_capacity(count);
        let mut before = Vec::with_capacity(height);
        for y in 0..height {
            before.push(pixels.len());
            self.each_run(y, granularity, |_, run| pixels.extend_from_slice(run));
        }
        KeptPixels {
            granularity,
            pixels,
            before,
        }
    }

    /// Calls `work` with the runs of pixels of a row that are drawn, and the column of the first of
    /// each.
    fn each_run(
        &self,
        y: usize,
        granularity: Granularity,
        mut work: impl FnMut(usize, &'a [[u8; 4]]),
    ) {
        let (width, _) = self.size;
        let words = (0..width)
            .step_by(A_WORD)
            .zip(self.mask.row(granularity, y, width));
        let kept = match self.origin {
            Origin::Canvas { pixels, stride } => {
                let row = &pixels[y * stride..][..width];
                for (left, word) in words {
                    for run in runs(word) {
                        let end = width.min(left + run.end);
                        work(left + run.start, &row[left + run.start..end]);
                    }
                }
                return;
            }
            Origin::Kept(kept) => kept,
        };
        let mut rest = &kept.pixels[kept.before[y]..];
        let there = self.mask.row(kept.granularity, y, width);
        for ((left, word), there) in words.zip(there) {
            for there in runs(there) {
                let length = there.len().min(width - left - there.start);
                let (now, later) = rest.split_at(length);
                rest = later;
                for run in runs(word & ones(there.start as u32, length as u32)) {
                    let part = &now[run.start - there.start..run.end - there.start];
                    work(left + run.start, part);
                }
            }
        }
    }

    /// Appends a row: pixels that are not drawn are 0.
    fn push_row(&self, y: usize, granularity: Granularity, pixels: &mut Vec<[u8; 4]>) {
        let begin = pixels.len();
        pixels.resize(begin + self.size.0, [0; 4]);
        let row = &mut pixels[begin..];
        self.each_run(y, granularity, |x, run| {
            row[x..x + run.len()].copy_from_slice(run);
        });
    }

    /// Calls `work` with all runs of pixels that are drawn, and the number of the first pixel of
    /// each.
    fn each(
        &self,
        granularity: Granularity,
        workers: Workers<'_>,
        mut work: impl FnMut(usize, &[[u8; 4]]),
    ) -> Result<(), EncodeError> {
        let (width, height) = self.size;
        for y in 0..height {
            if y.is_multiple_of(SIDE) {
                workers.check()?;
            }
            self.each_run(y, granularity, |x, run| work(y * width + x, run));
        }
        Ok(())
    }

    /// All pixels for lossy coding: those that are not drawn have the color of drawn ones close by.
    fn filled(&self, workers: Workers<'_>) -> Result<Vec<[u8; 4]>, EncodeError> {
        let (width, height) = self.size;
        let mut pixels = Vec::with_capacity(width * height);
        let mut color = [0; 3];
        for band in (0..height).step_by(SIDE) {
            workers.check()?;
            let begin = pixels.len();
            for y in band..(band + SIDE).min(height) {
                self.push_row(y, Granularity::Macroblock, &mut pixels);
            }
            color = transparent_fill::fill(pixels[begin..].as_flattened_mut(), width, color);
        }
        Ok(pixels)
    }
}

impl PixelSource for FramePixels<'_> {
    fn size(&self) -> (usize, usize) {
        self.size
    }

    fn layout(&self) -> Layout {
        Layout::Rgba
    }

    fn row(&self, y: usize, target: Target) -> Cow<'_, [u8]> {
        let granularity = match target {
            Target::Lossless => Granularity::Pixel,
            Target::Lossy => Granularity::Macroblock,
        };
        let mut row = Vec::with_capacity(self.size.0);
        self.push_row(y, granularity, &mut row);
        Cow::Owned(row.into_flattened())
    }

    fn argb(&self, exact: bool, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError> {
        let (width, height) = self.size;
        // Zeroed memory takes none before it is written to.
        let mut argb = vec![0; width * height];
        self.each(Granularity::Pixel, workers, |at, run| {
            for (argb, pixel) in argb[at..].iter_mut().zip(run) {
                *argb = vp8l::from_rgba(*pixel, exact);
            }
        })?;
        Ok(argb)
    }

    fn alpha(&self, workers: Workers<'_>) -> Result<Option<Vec<u8>>, EncodeError> {
        let (width, height) = self.size;
        let mut plane = vec![0; width * height];
        self.each(Granularity::Macroblock, workers, |at, run| {
            for (alpha, pixel) in plane[at..].iter_mut().zip(run) {
                *alpha = pixel[3];
            }
        })?;
        Ok(plane.iter().any(|alpha| *alpha != 255).then_some(plane))
    }

    fn with_rgb<T>(
        &self,
        workers: Workers<'_>,
        work: impl FnOnce(&RgbPicture<'_>) -> Result<T, EncodeError>,
    ) -> Result<T, EncodeError> {
        let pixels = self.filled(workers)?;
        work(&RgbPicture {
            width: self.size.0 as u32,
            height: self.size.1 as u32,
            layout: Layout::Rgba,
            pixels: pixels.as_flattened(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::animation::damage::Damage;
    use crate::testing::Random;

    fn workers() -> Workers<'static> {
        Workers::unlimited(1)
    }

    /// Two canvases of 150 x 40 pixels that differ in places, where the second one is opaque.
    fn canvases() -> [Vec<[u8; 4]>; 2] {
        let mut random = Random::new(1);
        let before: Vec<[u8; 4]> = (0..150 * 40)
            .map(|at| match (at / 7 % 3, random.byte()) {
                (0, _) => [0; 4],
                (1, gray) => [gray, 1, 2, 90],
                (_, gray) => [gray, 3, 4, 255],
            })
            .collect();
        let mut after = before.clone();
        for (at, pixel) in after.iter_mut().enumerate() {
            // Some macroblocks do not change, some pixels of others do, and some whole columns of
            // 64.
            let (x, y) = (at % 150, at / 150);
            let changes = match (x / 16 + y / 16) % 3 {
                0 => false,
                1 => random.below(9) == 0,
                _ => y % 8 < 5,
            };
            if changes || (y == 21 && x >= 64) {
                *pixel = [random.byte(), 5, 6, 255];
            }
        }
        [before, after]
    }

    /// All that a [`PixelSource`] gives.
    type Given = (Vec<Vec<u8>>, Vec<u32>, Option<Vec<u8>>, Vec<u8>);

    fn given(frame: &FramePixels<'_>) -> Given {
        let rows = [Target::Lossless, Target::Lossy]
            .map(|form| (0..frame.size.1).map(move |y| frame.row(y, form).into_owned()))
            .into_iter()
            .flatten();
        let filled = frame.with_rgb(workers(), |picture| Ok(picture.pixels.to_vec()));
        (
            rows.collect(),
            frame.argb(false, workers()).expect("it is not cancelled"),
            frame.alpha(workers()).expect("it is not cancelled"),
            filled.expect("it is not cancelled"),
        )
    }

    #[test]
    fn kept_pixels_are_those_of_the_canvas() {
        let [before, after] = canvases();
        let damage = Damage {
            rect: Rect {
                left: 0,
                top: 0,
                width: 150,
                height: 40,
            },
            before,
        };
        let before = PreviousCanvas {
            damage: &damage,
            width: 150,
            cleared: None,
        };
        for (left, top, width, height) in [(0, 0, 150, 40), (2, 4, 129, 33), (10, 2, 64, 1)] {
            for blends in [true, false] {
                let rect = Rect {
                    left,
                    top,
                    width,
                    height,
                };
                let update = Update {
                    rect,
                    clears: false,
                    blends,
                };
                let mask = UpdateMask::new(before, &update, &after, workers())
                    .expect("it is not cancelled");
                let shown = FramePixels {
                    mask: &mask,
                    origin: Origin::Canvas {
                        pixels: &after[top * 150 + left..],
                        stride: 150,
                    },
                    size: (width, height),
                };
                let kept = shown.keep(Granularity::Macroblock);
                let frame = FramePixels {
                    origin: Origin::Kept(&kept),
                    ..shown
                };
                assert!(given(&frame) == given(&shown), "{update:?}");
                let kept = shown.keep(Granularity::Pixel);
                let frame = FramePixels {
                    origin: Origin::Kept(&kept),
                    ..shown
                };
                assert!(
                    frame.argb(true, workers()) == shown.argb(true, workers()),
                    "{update:?}"
                );
                let rows = after.chunks(150).skip(top).take(height);
                let drawn = rows.zip(damage.before.chunks(150).skip(top));
                let drawn = drawn.flat_map(|(now, was)| {
                    let columns = left..left + width;
                    columns.filter(|x| !blends || differs(was[*x], now[*x]))
                });
                assert_eq!(kept.pixels.len(), drawn.count(), "{update:?}");
            }
        }
    }
}
