//! A frame on its way into the file: RFC 9649, section 2.7.1.1.

use super::change::{Change, Rect};
use super::drawing::{Drawing, Grain, Kept, Mask, Origin};
use super::habit::Habit;
use crate::coded::{self, Coded, Way};
use crate::{EncodeError, Mode, Options};

/// A frame that is drawn.
#[derive(Debug)]
pub struct Frame {
    pub change: Change,
    /// How long it is shown.
    pub milliseconds: u32,
    /// Whether its rectangle becomes transparent after that.
    pub is_cleared: bool,
    content: Content,
}

/// What is in its rectangle.
#[derive(Debug)]
enum Content {
    Drawn {
        way: Way,
        mask: Mask,
        /// What is to be coded, once the canvas may show others.
        kept: Option<Kept>,
    },
    Coded(Coded),
}

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub struct Canvas<'a> {
    /// Red, green, blue and alpha.
    pub pixels: &'a [[u8; 4]],
    /// Pixels of a row.
    pub width: usize,
}

impl Frame {
    /// A change to `canvas` whose pixels `mask` tells, to be coded as `options` say, or if they leave it open, as `habit` does.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the file is no longer waited for.
    pub fn new(
        change: Change,
        mask: Mask,
        canvas: Canvas<'_>,
        habit: &mut Habit,
        options: &Options<'_>,
    ) -> Result<Frame, EncodeError> {
        let mut way = match options.mode {
            Mode::Auto => habit.way(change.rect.area()),
            Mode::Lossless => Way::Lossless,
            Mode::Lossy => Way::Lossy,
        };
        if way != Way::Lossy {
            let drawing = canvas.drawing(change.rect, &mask);
            if Way::of(&drawing, options)? == Way::Lossy {
                way = Way::Lossy;
            }
        }
        Ok(Frame {
            change,
            milliseconds: 0,
            is_cleared: false,
            content: Content::Drawn {
                way,
                mask,
                kept: None,
            },
        })
    }

    /// Keeps what it needs of `canvas` before another is shown.
    pub fn keep(&mut self, canvas: Canvas<'_>) {
        if let Content::Drawn { way, mask, kept } = &mut self.content {
            let grain = match way {
                Way::Lossless => Grain::Pixel,
                Way::Lossy | Way::Either => Grain::Macroblock,
            };
            *kept = Some(canvas.drawing(self.change.rect, mask).keep(grain));
        }
    }

    /// Codes its pixels, if that is not done yet, and gives them up. `canvas` is what is shown now. If both ways were needed, gives the
    /// bytes of the larger one.
    ///
    /// # Errors
    /// As [`coded::code`].
    pub fn code(
        &mut self,
        canvas: Canvas<'_>,
        options: &Options<'_>,
    ) -> Result<Option<usize>, EncodeError> {
        let Content::Drawn { way, mask, kept } = &self.content else {
            return Ok(None);
        };
        let rect = self.change.rect;
        let drawing = match kept {
            Some(kept) => Drawing {
                mask,
                origin: Origin::Kept(kept),
                size: (rect.width, rect.height),
            },
            None => canvas.drawing(rect, mask),
        };
        let (coded, larger) = match way {
            Way::Lossless => (coded::lossless(&drawing, options)?, None),
            Way::Lossy => (coded::lossy(&drawing, options)?, None),
            Way::Either => coded::either(&drawing, options)?,
        };
        self.content = Content::Coded(coded);
        Ok(larger)
    }

    /// What it came to, once it is coded.
    pub fn coded(&self) -> Option<&Coded> {
        match &self.content {
            Content::Drawn { .. } => None,
            Content::Coded(coded) => Some(coded),
        }
    }

    /// What stands before the pixels.
    pub fn header(&self) -> [u8; 16] {
        let number = |value: usize| (value as u32).to_le_bytes();
        let rect = self.change.rect;
        let mut header = [0; 16];
        header[..3].copy_from_slice(&number(rect.left / 2)[..3]);
        header[3..6].copy_from_slice(&number(rect.top / 2)[..3]);
        header[6..9].copy_from_slice(&number(rect.width - 1)[..3]);
        header[9..12].copy_from_slice(&number(rect.height - 1)[..3]);
        header[12..15].copy_from_slice(&self.milliseconds.to_le_bytes()[..3]);
        header[15] = u8::from(self.is_cleared) | u8::from(!self.change.blends) << 1;
        header
    }
}

impl<'a> Canvas<'a> {
    /// What `mask` draws of a rectangle.
    fn drawing(self, rect: Rect, mask: &'a Mask) -> Drawing<'a> {
        Drawing {
            mask,
            origin: Origin::Canvas {
                pixels: &self.pixels[rect.top * self.width + rect.left..],
                stride: self.width,
            },
            size: (rect.width, rect.height),
        }
    }
}
