//! Animated pictures: RFC 9649, section 2.7.1.1 (the `ANIM` and `ANMF` chunks).
//!
//! Frames come one by one, each as the whole canvas that a viewer is to see. Of each only what changes is coded, and only the
//! last one is kept: its time may grow yet, and the next one decides how it is left.

mod change;

use super::coded::{self, Coded};
use super::{Coding, EncodeError, Encoded, MAX_SIDE, Metadata, Options, hidden, riff};
use change::{Change, Rect};

/// An animation in the making.
#[derive(Debug)]
pub struct Animation<'a> {
    width: u32,
    height: u32,
    loops: u16,
    options: Options<'a>,
    /// What a viewer sees after the last frame, but for the errors of lossy ones.
    canvas: Vec<[u8; 4]>,
    last: Option<Frame>,
    /// The chunks of the frames before the last.
    chunks: Vec<u8>,
    has_alpha: bool,
    /// That of all frames before the last.
    coding: Option<Coding>,
}

/// A frame that is coded.
#[derive(Debug)]
struct Frame {
    rect: Rect,
    blends: bool,
    milliseconds: u32,
    coded: Coded,
}

/// Longest time of a frame, in milliseconds: it has 24 bits.
const LONGEST: u32 = (1 << 24) - 1;

impl<'a> Animation<'a> {
    /// Without frames. It is played `loops` times, or for ever if that is 0.
    ///
    /// # Errors
    /// [`EncodeError::Dimensions`] if a side is 0 or above [`MAX_SIDE`].
    pub fn new(
        width: u32,
        height: u32,
        loops: u16,
        options: Options<'a>,
    ) -> Result<Animation<'a>, EncodeError> {
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            return Err(EncodeError::Dimensions);
        }
        Ok(Animation {
            width,
            height,
            loops,
            options,
            canvas: vec![[0; 4]; width as usize * height as usize],
            last: None,
            chunks: Vec::new(),
            has_alpha: false,
            coding: None,
        })
    }

    /// Shows `canvas` (red, green, blue, alpha) for so many milliseconds, after what was shown before.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if it has another size, and those of [`super::encode`].
    pub fn add(&mut self, canvas: &[u8], milliseconds: u32) -> Result<(), EncodeError> {
        let (canvas, rest) = canvas.as_chunks::<4>();
        if canvas.len() != self.canvas.len() || !rest.is_empty() {
            return Err(EncodeError::PixelCount);
        }
        let milliseconds = milliseconds.min(LONGEST);
        let mut change = match (self.change_to(canvas), &mut self.last) {
            (Some(change), _) => change,
            (None, Some(last)) if last.milliseconds + milliseconds <= LONGEST => {
                last.milliseconds += milliseconds;
                return Ok(());
            }
            (None, _) => Change::none(false),
        };
        hidden::fill(&mut change.pixels, change.rect.width);
        let coded = coded::code(&change.picture(), &self.options)?;
        self.write_last(change.clears)?;
        self.canvas.copy_from_slice(canvas);
        self.last = Some(Frame {
            rect: change.rect,
            blends: change.blends,
            milliseconds,
            coded,
        });
        Ok(())
    }

    /// The file, with `metadata` behind the frames.
    ///
    /// # Errors
    /// [`EncodeError::PixelCount`] if there is no frame; [`EncodeError::TooLarge`] if a size does not fit its 32 bits.
    pub fn finish(mut self, metadata: &Metadata<'_>) -> Result<Encoded, EncodeError> {
        self.write_last(false)?;
        let size = (self.width, self.height);
        Ok(Encoded {
            coding: self.coding.ok_or(EncodeError::PixelCount)?,
            file: riff::animation(size, self.has_alpha, self.loops, &self.chunks, metadata)?,
        })
    }

    /// What makes `canvas` of what is seen, in one of three ways: drawn over it, which takes fewest pixels and cannot make any
    /// transparent; in its place; or over it once the last frame is cleared. `None` if nothing changes.
    fn change_to(&self, canvas: &[[u8; 4]]) -> Option<Change> {
        let width = self.width as usize;
        let change = change::between(&self.canvas, canvas, width, None)?;
        let Some(last) = self.last.as_ref().filter(|_| !change.blends) else {
            return Some(change);
        };
        let cleared = change::between(&self.canvas, canvas, width, Some(last.rect));
        let cleared = cleared.unwrap_or_else(|| Change::none(true));
        let is_better = cleared.blends && cleared.rect.area() <= change.rect.area();
        Some(if is_better { cleared } else { change })
    }

    /// Writes the last frame, now that it is known whether it is cleared after its time.
    fn write_last(&mut self, is_cleared: bool) -> Result<(), EncodeError> {
        let Some(frame) = self.last.take() else {
            return Ok(());
        };
        let coding = frame.coded.coding();
        let is_same = self.coding.is_none_or(|before| before == coding);
        self.coding = Some(if is_same { coding } else { Coding::Mixed });
        // A canvas begins transparent.
        let covers = frame.rect.area() == self.canvas.len();
        self.has_alpha |=
            frame.coded.has_alpha() || is_cleared || (self.chunks.is_empty() && !covers);
        let number = |value: usize| (value as u32).to_le_bytes();
        let mut header = [0; 16];
        header[..3].copy_from_slice(&number(frame.rect.left / 2)[..3]);
        header[3..6].copy_from_slice(&number(frame.rect.top / 2)[..3]);
        header[6..9].copy_from_slice(&number(frame.rect.width - 1)[..3]);
        header[9..12].copy_from_slice(&number(frame.rect.height - 1)[..3]);
        header[12..15].copy_from_slice(&frame.milliseconds.to_le_bytes()[..3]);
        header[15] = u8::from(is_cleared) | u8::from(!frame.blends) << 1;
        riff::append_frame(&mut self.chunks, &header, &frame.coded)
    }
}

#[cfg(test)]
mod tests;
