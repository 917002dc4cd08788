//! Animated pictures: RFC 9649, section 2.7.1.1 (the `ANIM` and `ANMF` chunks).
//!
//! Frames come one by one, each as the whole canvas that a viewer is to see, with what it has covered of the one before. Of each only
//! what changes is coded, and no canvas is kept.

mod change;
mod drawing;
mod frame;
mod habit;
#[cfg(feature = "testing")]
pub mod player;

use super::coded::{self, Coded};
use super::threads::Workers;
use super::{Coding, EncodeError, Encoded, MAX_SIDE, Metadata, Options, riff};
use change::{Before, Change};
pub use change::{Covered, Rect};
use drawing::Mask;
use frame::{Canvas, Frame};
use habit::Habit;
use std::sync::Mutex;

/// An animation in the making.
#[derive(Debug)]
pub struct Animation<'a> {
    size: (u32, u32),
    options: Options<'a>,
    metadata: Metadata<'a>,
    /// Frames that are not in the file yet. They are coded side by side, so that several threads have work. The last of them may be
    /// shown for longer yet, and the next one decides how it is left.
    waiting: Vec<Frame>,
    habit: Habit,
    file: riff::Animation,
    has_alpha: bool,
    /// That of all coded frames.
    coding: Option<Coding>,
}

/// Longest time of a frame, in milliseconds: it has 24 bits.
const LONGEST: u32 = (1 << 24) - 1;

impl<'a> Animation<'a> {
    /// Without frames, with this metadata. It is played `loops` times, or for ever if that is 0.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`]; [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
    pub fn new(
        width: u32,
        height: u32,
        loops: u16,
        options: Options<'a>,
        metadata: Metadata<'a>,
    ) -> Result<Animation<'a>, EncodeError> {
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            return Err(EncodeError::Dimensions);
        }
        Ok(Animation {
            size: (width, height),
            options,
            metadata,
            waiting: Vec::new(),
            habit: Habit::default(),
            file: riff::Animation::new((width, height), loops, &metadata)?,
            has_alpha: false,
            coding: None,
        })
    }

    /// Makes room for a file of so many bytes, if it is known about how large it becomes.
    pub fn reserve(&mut self, bytes: usize) {
        self.file.reserve(bytes);
    }

    /// Shows `canvas` (red, green, blue, alpha) for so many milliseconds. `covered` is what was shown before, where it may be another:
    /// at first all is transparent.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if either has another size, and those of [`super::encode`], of this or an earlier canvas.
    pub fn add(
        &mut self,
        canvas: &[u8],
        covered: Covered,
        milliseconds: u32,
    ) -> Result<(), EncodeError> {
        let (canvas, rest) = canvas.as_chunks::<4>();
        if canvas.len() != self.area() || !rest.is_empty() || !self.holds(&covered) {
            return Err(EncodeError::PixelCount);
        }
        let milliseconds = milliseconds.min(LONGEST);
        let before = Before {
            covered: &covered,
            width: self.size.0 as usize,
            cleared: None,
        };
        let change = match (self.change_to(canvas, before)?, self.waiting.last_mut()) {
            (Some(change), _) => change,
            (None, Some(last)) if last.milliseconds + milliseconds <= LONGEST => {
                last.milliseconds += milliseconds;
                return Ok(());
            }
            (None, _) => Change::none(false),
        };
        let cleared = self.waiting.last_mut().filter(|_| change.clears);
        let cleared = cleared.map(|last| {
            last.is_cleared = true;
            last.change.rect
        });
        let before = Before { cleared, ..before };
        let mask = Mask::new(before, &change, canvas, self.workers())?;
        drop(covered);
        let canvas = Canvas {
            pixels: canvas,
            width: self.size.0 as usize,
        };
        // No more than one canvas, so that memory is bounded.
        let most = self.area().min(coded::SIDE_BY_SIDE);
        if self.waiting_area() + change.rect.area() > most {
            self.code_waiting(canvas)?;
            self.write_waiting()?;
        }
        let mut frame = Frame::new(change, mask, canvas, &mut self.habit, &self.options)?;
        frame.milliseconds = milliseconds;
        if self.waiting_area() + change.rect.area() < most {
            frame.keep(canvas);
            self.waiting.push(frame);
            return Ok(());
        }
        // Nothing more goes beside these.
        self.waiting.push(frame);
        self.code_waiting(canvas)
    }

    /// The file.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if there is no frame; [`EncodeError::TooLarge`] if a size does not fit its 32 bits; those of
    /// [`super::encode`].
    pub fn finish(mut self) -> Result<Encoded, EncodeError> {
        self.code_waiting(Canvas {
            pixels: &[],
            width: 0,
        })?;
        self.write_waiting()?;
        Ok(Encoded {
            coding: self.coding.ok_or(EncodeError::PixelCount)?,
            file: self.file.finish(self.has_alpha, &self.metadata)?,
        })
    }

    fn workers(&self) -> Workers<'a> {
        self.options.workers()
    }

    /// Pixels of the canvas.
    fn area(&self) -> usize {
        self.size.0 as usize * self.size.1 as usize
    }

    fn holds(&self, covered: &Covered) -> bool {
        let Covered { rect, pixels } = covered;
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        rect.right() <= width && rect.bottom() <= height && pixels.len() == rect.area()
    }

    /// What makes `canvas` of what is seen: drawn over it, which takes fewest pixels and cannot make any transparent, or in its place;
    /// and either of them once the last frame is cleared. `None` if nothing changes.
    fn change_to(
        &self,
        canvas: &[[u8; 4]],
        before: Before<'_>,
    ) -> Result<Option<Change>, EncodeError> {
        let Some(change) = before.change_to(canvas, self.workers())? else {
            return Ok(None);
        };
        let Some(last) = self.waiting.last().filter(|_| !change.blends) else {
            return Ok(Some(change));
        };
        let before = Before {
            cleared: Some(last.change.rect),
            ..before
        };
        let cleared = before.change_to(canvas, self.workers())?;
        let cleared = cleared.unwrap_or_else(|| Change::none(true));
        let (least, other) = (cleared.rect.area(), change.rect.area());
        let is_better = least < other || cleared.blends && least == other;
        Ok(Some(if is_better { cleared } else { change }))
    }

    fn waiting_area(&self) -> usize {
        let areas = self.waiting.iter().map(|frame| frame.change.rect.area());
        areas.sum()
    }

    /// Codes the frames that wait, side by side. The last one may be what `canvas` shows.
    fn code_waiting(&mut self, canvas: Canvas<'_>) -> Result<(), EncodeError> {
        let (workers, options) = (self.workers(), &self.options);
        let frames: Vec<_> = self.waiting.iter_mut().map(Mutex::new).collect();
        let larger = workers.run_checked(frames.len(), |index| {
            let mut frame = frames[index].lock().expect("each is taken once");
            frame.code(canvas, options)
        })?;
        for (frame, larger) in self.waiting.iter().zip(larger) {
            if let (Some(coded), Some(larger)) = (frame.coded(), larger) {
                self.habit.learn(frame.change.rect.area(), coded, larger);
            }
        }
        Ok(())
    }

    /// Writes those that are coded.
    fn write_waiting(&mut self) -> Result<(), EncodeError> {
        for frame in std::mem::take(&mut self.waiting) {
            if let Some(coded) = frame.coded() {
                self.write(&frame, coded)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, frame: &Frame, coded: &Coded) -> Result<(), EncodeError> {
        let coding = coded.coding();
        let is_same = self.coding.is_none_or(|before| before == coding);
        // A canvas begins transparent.
        let covers = frame.change.rect.area() == self.area();
        let leaves_some = self.coding.is_none() && !covers;
        self.coding = Some(if is_same { coding } else { Coding::Mixed });
        self.has_alpha |= coded.has_alpha() || frame.is_cleared || leaves_some;
        self.file.frame(&frame.header(), coded)
    }
}

#[cfg(test)]
mod tests;
