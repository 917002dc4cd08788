//! The animation encoder for callers that know what each frame may have changed.

use super::damage::{Damage, PreviousCanvas, Update};
use super::frame::{BothSizes, Canvas, Frame};
use super::frame_pixels::UpdateMask;
use super::mode_history::ModeHistory;
use crate::auto_mode::SIDE_BY_SIDE;
use crate::bitstream::Bitstream;
use crate::container;
use crate::encoder::{Encoded, Encoder};
use crate::error::EncodeError;
use crate::options::{Coding, Metadata, Options};
use crate::picture::check_sides;
use crate::threads::Workers;
use std::sync::Mutex;

/// Encodes an animation whose frames come with what they replaced, as a decoder of animations knows
/// it. It keeps no canvas; [`AnimationEncoder`](crate::AnimationEncoder) does, and needs no more
/// than the canvases.
#[derive(Debug)]
pub struct IncrementalAnimation<'a> {
    /// The width and height of the canvas in pixels.
    size: (u32, u32),
    options: Options<'a>,
    metadata: Metadata<'a>,
    /// Frames that are not in the file yet. They are coded side by side, so that several threads
    /// have work. The last of them may yet be shown for longer, and the next frame decides whether
    /// it is cleared.
    pending: Vec<Frame>,
    history: ModeHistory,
    file: container::Animation,
    growth: Growth<'a>,
    has_alpha: bool,
    /// The coding of all frames in the file; `None` before the first one.
    coding: Option<Coding>,
}

/// The function that decides whether the file may take more memory; without one it always may.
struct Growth<'a>(Option<&'a dyn Fn(usize) -> bool>);

impl std::fmt::Debug for Growth<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Growth").field(&self.0.is_some()).finish()
    }
}

/// The longest time of a frame in milliseconds: it has 24 bits.
pub(super) const LONGEST: u32 = (1 << 24) - 1;

impl<'a> IncrementalAnimation<'a> {
    /// An animation on a canvas of `width` x `height` pixels, without frames yet. It is played
    /// `loops` times, or for ever if that is 0.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`](crate::MAX_SIDE);
    /// [`EncodeError::TooLarge`] if the ICC profile does not fit its size field.
    pub fn new(
        encoder: Encoder<'a>,
        (width, height): (u32, u32),
        loops: u16,
    ) -> Result<IncrementalAnimation<'a>, EncodeError> {
        check_sides((width, height))?;
        let Encoder { options, metadata } = encoder;
        Ok(IncrementalAnimation {
            size: (width, height),
            options,
            metadata,
            pending: Vec::new(),
            history: ModeHistory::default(),
            file: container::Animation::new((width, height), loops, &metadata)?,
            growth: Growth(None),
            has_alpha: false,
            coding: None,
        })
    }

    /// Reserves memory for a file of so many bytes, if it is known about how large it becomes.
    pub fn reserve(&mut self, bytes: usize) {
        self.file.reserve(bytes);
    }

    /// Has `may_grow` decide each time before the file takes more memory than was reserved. It is
    /// called with all bytes that the file would then take, and if it returns `false`, encoding
    /// ends with [`EncodeError::GrowthDenied`].
    pub fn limit_growth(&mut self, may_grow: &'a dyn Fn(usize) -> bool) {
        self.growth = Growth(Some(may_grow));
    }

    /// Shows `canvas` (red, green, blue and alpha, rows without padding) for `milliseconds`, at
    /// most 16,777,215. Outside of the rectangle of `damage` it is what was shown before; at first
    /// that is transparent everywhere.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if `canvas` has another size than the animation or the
    /// rectangle is not within it; those of [`Encoder::encode`], of this or an earlier canvas.
    pub fn add(
        &mut self,
        canvas: &[u8],
        damage: Damage,
        milliseconds: u32,
    ) -> Result<(), EncodeError> {
        let (canvas, rest) = canvas.as_chunks::<4>();
        if canvas.len() != self.area() || !rest.is_empty() || !self.holds(&damage) {
            return Err(EncodeError::PixelCount);
        }
        let milliseconds = milliseconds.min(LONGEST);
        let before = PreviousCanvas {
            damage: &damage,
            width: self.size.0 as usize,
            cleared: None,
        };
        let update = match (self.update_to(canvas, before)?, self.pending.last_mut()) {
            (Some(update), _) => update,
            (None, Some(last)) if last.milliseconds + milliseconds <= LONGEST => {
                last.milliseconds += milliseconds;
                return Ok(());
            }
            (None, _) => Update::none(false),
        };
        let cleared = self.pending.last_mut().filter(|_| update.clears);
        let cleared = cleared.map(|last| {
            last.is_cleared = true;
            last.update.rect
        });
        let before = PreviousCanvas { cleared, ..before };
        let mask = UpdateMask::new(before, &update, canvas, self.workers())?;
        drop(damage);
        let canvas = Canvas {
            pixels: canvas,
            width: self.size.0 as usize,
        };
        // Frames wait only up to the area of a canvas, so that memory is bounded.
        let most = self.area().min(SIDE_BY_SIDE);
        if self.pending_area() + update.rect.area() > most {
            self.code_pending(canvas)?;
            self.write_pending()?;
        }
        let mut frame = Frame::new(update, mask, canvas, &mut self.history, &self.options)?;
        frame.milliseconds = milliseconds;
        if self.pending_area() + update.rect.area() < most {
            frame.keep(canvas);
            self.pending.push(frame);
            return Ok(());
        }
        // No further frame is coded beside these.
        self.pending.push(frame);
        self.code_pending(canvas)
    }

    /// The file.
    ///
    /// # Errors
    /// [`EncodeError::NoFrames`] if there is none; [`EncodeError::TooLarge`] if a size
    /// does not fit its 32 bits; those of [`Encoder::encode`].
    pub fn finish(mut self) -> Result<Encoded, EncodeError> {
        self.code_pending(Canvas {
            pixels: &[],
            width: 0,
        })?;
        self.write_pending()?;
        let coding = self.coding.ok_or(EncodeError::NoFrames)?;
        let file = self.file.finish(self.has_alpha, &self.metadata)?;
        Ok(Encoded::new(file, coding))
    }

    /// The threads that may work on the animation.
    pub(super) fn workers(&self) -> Workers<'a> {
        self.options.workers()
    }

    /// The pixels of all frames that are not in the file yet.
    pub(super) fn pending_area(&self) -> usize {
        let areas = self.pending.iter().map(|frame| frame.update.rect.area());
        areas.sum()
    }

    /// The pixels of the canvas.
    fn area(&self) -> usize {
        self.size.0 as usize * self.size.1 as usize
    }

    fn holds(&self, damage: &Damage) -> bool {
        let Damage { rect, before } = damage;
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        rect.right() <= width && rect.bottom() <= height && before.len() == rect.area()
    }

    /// The update that makes `canvas` of what is shown: drawn over it, which takes fewest pixels
    /// and cannot make any transparent, or in its place; either of them perhaps after the last
    /// frame is cleared. `None` if nothing changes.
    fn update_to(
        &self,
        canvas: &[[u8; 4]],
        before: PreviousCanvas<'_>,
    ) -> Result<Option<Update>, EncodeError> {
        let Some(update) = before.update_to(canvas, self.workers())? else {
            return Ok(None);
        };
        let Some(last) = self.pending.last().filter(|_| !update.blends) else {
            return Ok(Some(update));
        };
        let before = PreviousCanvas {
            cleared: Some(last.update.rect),
            ..before
        };
        let cleared = before.update_to(canvas, self.workers())?;
        let cleared = cleared.unwrap_or_else(|| Update::none(true));
        let (least, other) = (cleared.rect.area(), update.rect.area());
        let is_better = least < other || cleared.blends && least == other;
        Ok(Some(if is_better { cleared } else { update }))
    }

    /// Codes the pending frames side by side. The pixels of the last one may be on `canvas` only.
    fn code_pending(&mut self, canvas: Canvas<'_>) -> Result<(), EncodeError> {
        let (workers, options) = (self.workers(), &self.options);
        let frames: Vec<_> = self.pending.iter_mut().map(Mutex::new).collect();
        let sizes = workers.run_checked(frames.len(), |index| {
            let mut frame = frames[index].lock().expect("each is taken once");
            frame.code(canvas, options)
        })?;
        for (frame, sizes) in self.pending.iter().zip(sizes) {
            if let Some(BothSizes {
                plan,
                smaller,
                larger,
            }) = sizes
            {
                let area = frame.update.rect.area();
                self.history.learn(area, plan, smaller, larger);
            }
        }
        Ok(())
    }

    /// Moves the pending frames, which are coded, to the file.
    fn write_pending(&mut self) -> Result<(), EncodeError> {
        for frame in std::mem::take(&mut self.pending) {
            if let Some(bitstream) = frame.bitstream() {
                self.write(&frame, bitstream)?;
            }
        }
        Ok(())
    }

    /// Makes space in the file for so many bytes more, by steps of a quarter.
    fn grow_by(&mut self, bytes: usize) -> Result<(), EncodeError> {
        const LEAST: usize = 64 << 10;
        let (length, capacity) = self.file.length_and_capacity();
        let needed = length + bytes;
        if needed <= capacity {
            return Ok(());
        }
        let larger = needed.max(capacity + (capacity / 4).max(LEAST));
        let may_grow = |to: &usize| self.growth.0.is_none_or(|may_grow| may_grow(*to));
        let granted = [larger, needed].into_iter().find(may_grow);
        let granted = granted.ok_or(EncodeError::GrowthDenied)?;
        self.file.reserve(granted - length);
        Ok(())
    }

    fn write(&mut self, frame: &Frame, bitstream: &Bitstream) -> Result<(), EncodeError> {
        let coding = bitstream.coding();
        let is_same = self.coding.is_none_or(|before| before == coding);
        // The canvas begins transparent; a first frame that does not cover it leaves some of that.
        let covers = frame.update.rect.area() == self.area();
        let leaves_some = self.coding.is_none() && !covers;
        self.coding = Some(if is_same { coding } else { Coding::Mixed });
        self.has_alpha |= bitstream.has_alpha() || frame.is_cleared || leaves_some;
        self.grow_by(container::Animation::frame_size(bitstream))?;
        self.file.frame(&frame.header(), bitstream)
    }
}
