//! A frame on its way into the file: RFC 9649, section 2.7.1.1.

use super::change::{Before, Change, Grain};
use super::habit::Habit;
use crate::webp::coded::{self, Coded, Way};
use crate::webp::crew::Crew;
use crate::webp::{EncodeError, Layout, Mode, Options, Picture};

/// A frame that is drawn.
#[derive(Debug)]
pub struct Frame {
    pub change: Change,
    /// How long it is shown.
    pub milliseconds: u32,
    /// Whether its rectangle becomes transparent after that.
    pub is_cleared: bool,
    pixels: Pixels,
}

/// Red, green, blue and alpha of its rectangle, by how they are to be coded.
#[derive(Debug)]
enum Pixels {
    Lossless(Vec<u8>),
    Lossy(Vec<u8>),
    /// `near` if it is not the same.
    Either {
        exact: Vec<u8>,
        near: Option<Vec<u8>>,
    },
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
        let crew = Crew::new(options.threads, options.caller);
        let draw = |grain| before.draw(&change, after, grain, crew);
        let way = match options.mode {
            Mode::Auto => habit.way(change.rect.area()),
            Mode::Lossless => Way::Lossless,
            Mode::Lossy => Way::Lossy,
        };
        let exact = if way == Way::Lossy {
            None
        } else {
            let exact = draw(Grain::Pixel)?;
            let is_tried = Way::of(&picture(&change, &exact), options.mode) != Way::Lossy;
            is_tried.then_some(exact)
        };
        let pixels = match exact {
            None => Pixels::Lossy(draw(Grain::Macroblock)?),
            Some(exact) if way == Way::Lossless => Pixels::Lossless(exact),
            Some(exact) => {
                let near = draw(Grain::Macroblock)?;
                let near = (near != exact).then_some(near);
                Pixels::Either { exact, near }
            }
        };
        Ok(Frame {
            change,
            milliseconds: 0,
            is_cleared: false,
            pixels,
        })
    }

    /// Codes its pixels. If both ways were needed, gives the bytes of the larger one, too.
    ///
    /// # Errors
    /// As [`coded::code`].
    pub fn code(&self, options: &Options<'_>) -> Result<(Coded, Option<usize>), EncodeError> {
        let picture = |pixels| picture(&self.change, pixels);
        Ok(match &self.pixels {
            Pixels::Lossless(exact) => (coded::lossless(&picture(exact), options)?, None),
            Pixels::Lossy(near) => (coded::lossy(&picture(near), options)?, None),
            Pixels::Either { exact, near } => {
                let near = near.as_ref().unwrap_or(exact);
                coded::either(&picture(exact), &picture(near), options)?
            }
        })
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
