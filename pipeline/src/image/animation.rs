//! The canvas of an animation, on which the frames of a file are drawn one after the other.

use super::error::DecodeError;
use super::limits::Limits;
use super::pixels::{Image, Layout};
use super::rectangle::Rectangle;
use towebp_encoder::{Cancel, Cancelled};

/// A frame that was drawn onto the canvas.
#[derive(Debug, PartialEq, Eq)]
pub struct AnimationFrame {
    /// The time for which it is shown.
    pub milliseconds: u32,
    /// The rectangle in which the canvas may have changed; the whole canvas for the first frame.
    pub damage: Rectangle,
    /// The pixels of the damage rectangle before the change, row by row.
    pub previous: Vec<[u8; 4]>,
    /// The number of pixels of the frame or of the canvas, whichever has more.
    pub pixel_count: u64,
}

/// The canvas, and the disposal of its last frame.
pub struct AnimationCanvas<'a> {
    /// The pixels that are shown, [`Layout::Rgba`]; empty before the first frame.
    pub image: Image,
    /// The disposal of the frame that was drawn last.
    disposal: Disposal,
    cancel: &'a Cancel<'a>,
}

/// The disposal of a frame before the next one is drawn (GIF 89a, 23; PNG, third edition,
/// 11.3.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisposalMethod {
    /// The frame is kept.
    Keep,
    /// Its rectangle becomes transparent: no browser draws the background color of a GIF.
    Clear,
    /// Its rectangle gets back the pixels that it had before the frame.
    Restore,
}

/// The disposal of the last frame.
enum Disposal {
    Keep,
    Clear(Rectangle),
    /// The pixels are given row by row, as far as the rectangle is on the canvas.
    Restore(Rectangle, Vec<[u8; 4]>),
}

impl<'a> AnimationCanvas<'a> {
    /// A canvas of this size. It has no pixels yet.
    pub fn new((width, height): (u32, u32), cancel: &'a Cancel<'a>) -> AnimationCanvas<'a> {
        AnimationCanvas {
            image: Image {
                width,
                height,
                layout: Layout::Rgba,
                pixels: Vec::new(),
            },
            disposal: Disposal::Keep,
            cancel,
        }
    }

    /// Whether no frame was drawn yet.
    pub fn is_empty(&self) -> bool {
        self.image.pixels.is_empty()
    }

    /// The number of pixels of a frame of `frame` pixels, or of the canvas, whichever has more.
    pub fn pixel_count(&self, frame: usize) -> u64 {
        (frame as u64).max(u64::from(self.image.width) * u64::from(self.image.height))
    }

    /// Whether drawing at `rectangle` begins with clearing just that.
    pub fn will_clear(&self, rectangle: Rectangle) -> bool {
        matches!(self.disposal, Disposal::Clear(cleared) if cleared == rectangle)
    }

    /// Allocates the canvas for the first frame: `count` transparent pixels, all of which the frame
    /// may change. Returns its rectangle.
    pub fn begin(&mut self, count: usize) -> Rectangle {
        // Zeroed memory takes none before it is written to.
        self.image.pixels = vec![0; count * 4];
        Rectangle::whole(self.image.width, self.image.height)
    }

    /// The rectangle in which a frame and the disposal of the one before will change the canvas,
    /// and its pixels now.
    pub fn damage(&mut self, frame: Rectangle) -> Result<(Rectangle, Vec<[u8; 4]>), Cancelled> {
        let (width, height) = (self.image.width, self.image.height);
        let frame = frame.clip(width, height);
        let damage = match &self.disposal {
            Disposal::Keep => frame,
            Disposal::Clear(other) | Disposal::Restore(other, _) => {
                frame.union(other.clip(width, height))
            }
        };
        Ok((damage, self.copy(damage)?))
    }

    /// Disposes of the last frame, and prepares the disposal of the one that will be drawn at
    /// `rectangle`.
    pub fn dispose(
        &mut self,
        rectangle: Rectangle,
        method: DisposalMethod,
    ) -> Result<(), Cancelled> {
        match std::mem::replace(&mut self.disposal, Disposal::Keep) {
            Disposal::Keep => {}
            Disposal::Clear(rectangle) => {
                for row in self.image.rows_of(rectangle) {
                    self.cancel.check()?;
                    row.fill([0; 4]);
                }
            }
            Disposal::Restore(rectangle, pixels) => {
                let mut rest = pixels.as_slice();
                for row in self.image.rows_of(rectangle) {
                    self.cancel.check()?;
                    let (pixels, below) = rest.split_at(row.len());
                    row.copy_from_slice(pixels);
                    rest = below;
                }
            }
        }
        self.disposal = match method {
            DisposalMethod::Keep => Disposal::Keep,
            DisposalMethod::Clear => Disposal::Clear(rectangle),
            DisposalMethod::Restore => Disposal::Restore(rectangle, self.copy(rectangle)?),
        };
        Ok(())
    }

    /// Draws a frame at `rectangle`, over the canvas or in its place, after the disposal of the one
    /// before, and shows the canvas for so many milliseconds.
    ///
    /// # Errors
    /// The canvas is not within `limits`, or drawing was cancelled.
    pub fn draw(
        &mut self,
        frame: &Image,
        rectangle: Rectangle,
        mut disposal: DisposalMethod,
        is_drawn_over: bool,
        milliseconds: u32,
        limits: &Limits,
    ) -> Result<AnimationFrame, DecodeError> {
        let (damage, previous) = if self.is_empty() {
            if disposal == DisposalMethod::Restore {
                // There is nothing before it.
                disposal = DisposalMethod::Clear;
            }
            let count = limits.check(self.image.width, self.image.height)?;
            (self.begin(count), vec![[0; 4]; count])
        } else {
            self.damage(rectangle)?
        };
        self.dispose(rectangle, disposal)?;
        let stride = frame.width as usize * frame.layout.channels();
        let (rows, cancel) = (frame.pixels.chunks_exact(stride), self.cancel);
        for (canvas, row) in self.rows_of(rectangle).zip(rows) {
            cancel.check()?;
            draw_row(canvas, row, frame.layout, is_drawn_over);
        }
        let count = frame.width as usize * frame.height as usize;
        Ok(AnimationFrame {
            milliseconds,
            damage,
            previous,
            pixel_count: self.pixel_count(count),
        })
    }

    /// The rows of a rectangle, as far as they are on the canvas, to be drawn on.
    pub fn rows_of(&mut self, rectangle: Rectangle) -> impl Iterator<Item = &mut [[u8; 4]]> {
        self.image.rows_of(rectangle)
    }

    /// The pixels of a rectangle, row by row, as far as it is on the canvas.
    fn copy(&mut self, rectangle: Rectangle) -> Result<Vec<[u8; 4]>, Cancelled> {
        let visible = rectangle.clip(self.image.width, self.image.height);
        let mut pixels = Vec::with_capacity(visible.width * visible.height);
        for row in self.image.rows_of(rectangle) {
            self.cancel.check()?;
            pixels.extend_from_slice(row);
        }
        Ok(pixels)
    }
}

/// Draws a row of a frame.
fn draw_row(canvas: &mut [[u8; 4]], row: &[u8], layout: Layout, is_drawn_over: bool) {
    match layout {
        Layout::Rgb => {
            for (pixel, &[red, green, blue]) in canvas.iter_mut().zip(row.as_chunks::<3>().0) {
                *pixel = [red, green, blue, 255];
            }
        }
        Layout::Rgba => {
            for (pixel, &drawn) in canvas.iter_mut().zip(row.as_chunks::<4>().0) {
                *pixel = match drawn[3] {
                    255 => drawn,
                    0 if is_drawn_over => *pixel,
                    0 => [0; 4],
                    _ if is_drawn_over && pixel[3] != 0 => over(drawn, *pixel),
                    _ => drawn,
                };
            }
        }
    }
}

/// A pixel over another, of which at least one is not transparent, rounded to the nearest value
/// (PNG, third edition, 13.16). As in browsers, samples of 16 bits were rounded before.
pub fn over(above: [u8; 4], below: [u8; 4]) -> [u8; 4] {
    let above_weight = u32::from(above[3]) * 255;
    let below_weight = u32::from(255 - above[3]) * u32::from(below[3]);
    let weights = above_weight + below_weight;
    let mut pixel = [0, 1, 2, 3].map(|channel| {
        let sum =
            u32::from(above[channel]) * above_weight + u32::from(below[channel]) * below_weight;
        ((sum + weights / 2) / weights) as u8
    });
    pixel[3] = ((weights + 127) / 255) as u8;
    pixel
}

/// The time that browsers show a frame for that is to be shown for so many milliseconds: a tenth of
/// a second, if it is at most 10 (Blink and Gecko do so in every format).
pub fn shown_milliseconds(asked: u32) -> u32 {
    match asked {
        0..=10 => 100,
        more => more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pixel_over_another_has_the_share_of_each() {
        for (above, below, expected) in [
            ([9, 8, 7, 255], [1, 2, 3, 255], [9, 8, 7, 255]),
            ([9, 8, 7, 0], [1, 2, 3, 40], [1, 2, 3, 40]),
            ([9, 8, 7, 60], [1, 2, 3, 0], [9, 8, 7, 60]),
            // 128 and 127 of 255.
            ([255, 0, 10, 128], [0, 255, 10, 255], [128, 127, 10, 255]),
            // 128 and 127 * 128 / 255 = 63.75 of 191.75.
            ([255, 0, 90, 128], [0, 255, 90, 128], [170, 85, 90, 192]),
        ] {
            assert_eq!(over(above, below), expected, "{above:?} over {below:?}");
        }
    }

    #[test]
    fn drawn_rows_replace_or_cover_what_was_there() {
        let drawn = [
            [5, 5, 5, 255],
            [6, 6, 6, 0],
            [255, 0, 10, 128],
            [7, 7, 7, 128],
        ];
        let row = drawn.as_flattened();
        let canvas = [[0, 255, 10, 255], [1, 1, 1, 255], [0, 255, 10, 255], [0; 4]];
        let mut covered = canvas;
        draw_row(&mut covered, row, Layout::Rgba, true);
        let half = [128, 127, 10, 255];
        assert_eq!(covered, [drawn[0], canvas[1], half, drawn[3]]);
        let mut replaced = canvas;
        draw_row(&mut replaced, row, Layout::Rgba, false);
        assert_eq!(replaced, [drawn[0], [0; 4], drawn[2], drawn[3]]);
        draw_row(&mut replaced[..1], &[1, 2, 3], Layout::Rgb, false);
        assert_eq!(replaced[0], [1, 2, 3, 255]);
    }
}
