//! A frame on its way into the file: RFC 9649, section 2.7.1.1.

use super::change::{Before, Change, Grain};
use super::habit::Habit;
use crate::webp::coded::{self, Coded, Way};
use crate::webp::vp8l::Omitted;
use crate::webp::{EncodeError, Layout, Mode, Options, Picture};

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
        /// Red, green, blue and alpha.
        pixels: Vec<u8>,
        /// What is drawn for loss alone.
        omitted: Omitted,
    },
    Coded(Coded),
}

impl Frame {
    /// Draws a change to the canvas `after`, to be coded as `options` say, or if they leave it open, as `habit` does.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the file is no longer waited for.
    pub fn draw(
        before: Before<'_>,
        change: Change,
        after: &[[u8; 4]],
        habit: &mut Habit,
        options: &Options<'_>,
    ) -> Result<Frame, EncodeError> {
        let crew = options.crew();
        let draw = |grain, room| before.draw(&change, after, grain, room, crew);
        let mut way = match options.mode {
            Mode::Auto => habit.way(change.rect.area()),
            Mode::Lossless => Way::Lossless,
            Mode::Lossy => Way::Lossy,
        };
        let mut pixels = Vec::new();
        let mut omitted = Omitted::NONE;
        if way != Way::Lossy {
            pixels = draw(Grain::Pixel, pixels)?;
            if Way::of(&picture(&change, &pixels), options)? == Way::Lossy {
                way = Way::Lossy;
            }
        }
        if way == Way::Either {
            omitted = Omitted::hidden(&pixels, crew)?;
        }
        if way != Way::Lossless {
            pixels = draw(Grain::Macroblock, pixels)?;
        }
        Ok(Frame {
            change,
            milliseconds: 0,
            is_cleared: false,
            content: Content::Drawn {
                way,
                pixels,
                omitted,
            },
        })
    }

    /// Codes its pixels, if that is not done yet, and gives them up. If both ways were needed, gives the bytes of the larger one.
    ///
    /// # Errors
    /// As [`coded::code`].
    pub fn code(&mut self, options: &Options<'_>) -> Result<Option<usize>, EncodeError> {
        let Content::Drawn {
            way,
            pixels,
            omitted,
        } = &self.content
        else {
            return Ok(None);
        };
        let picture = picture(&self.change, pixels);
        let (coded, larger) = match way {
            Way::Lossless => (coded::lossless(&picture, omitted, options)?, None),
            Way::Lossy => (coded::lossy(&picture, options)?, None),
            Way::Either => coded::either(&picture, omitted, options)?,
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

fn picture<'a>(change: &Change, pixels: &'a [u8]) -> Picture<'a> {
    Picture {
        width: change.rect.width as u32,
        height: change.rect.height as u32,
        layout: Layout::Rgba,
        pixels,
    }
}
