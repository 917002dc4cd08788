//! The frames of a GIF, drawn one after the other onto a canvas, as browsers show them.

use super::decoder::{invalid, no_frame, options};
use super::outline::{Outline, descriptor};
use crate::image::error::DecodeError;
use crate::image::guard::decode_guarded;
use crate::image::limits::Limits;
use crate::image::pixels::{Image, Layout};
use crate::image::reader::CancellableReader;
use crate::image::rectangle::Rectangle;
use ::gif::{ColorOutput, Decoder, DecodingError, DisposalMethod, Frame, MemoryLimit, Repeat};
use std::num::NonZeroU64;
use towebp_encoder::{Cancel, Cancelled};

/// Bytes of the file between two checks of the [`Cancel`]: LZW makes up to 2.7 million pixels of
/// them.
const BYTES_PER_CHECK: usize = 1 << 10;

/// The frames of a GIF, drawn one after the other.
pub struct Frames<'a> {
    decoder: Decoder<CancellableReader<'a>>,
    outline: &'a Outline<'a>,
    limits: Limits,
    cancel: &'a Cancel<'a>,
    /// The pixels that are shown; empty before the first frame.
    canvas: Image,
    /// The disposal of the frame that was drawn last.
    disposal: Disposal,
    /// The number of images that the decoder has passed.
    image_count: usize,
    /// The frame that was drawn last.
    last: Option<LastFrame<'a>>,
    /// Whether only the first frame is wanted, without the pixels that were there before it.
    is_still: bool,
}

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

/// The frame that was drawn last, as the file has it.
struct LastFrame<'a> {
    image: &'a [u8],
    transparent: Option<u8>,
    dispose: DisposalMethod,
    /// Whether the canvas was transparent below it.
    is_on_transparent: bool,
}

/// The disposal of a frame before the next one is drawn (GIF 89a, 23).
enum Disposal {
    /// The frame is kept.
    Keep,
    /// The rectangle becomes transparent: no browser draws the background color.
    Clear(Rectangle),
    /// The rectangle gets back the pixels that it had before the frame, row by row, as far as it is
    /// on the canvas.
    Restore(Rectangle, Vec<[u8; 4]>),
}

impl<'a> Frames<'a> {
    /// Reads the blocks in front of the first frame.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub(super) fn new(
        outline: &'a Outline<'a>,
        limits: Limits,
        cancel: &'a Cancel<'a>,
    ) -> Result<Frames<'a>, DecodeError> {
        let mut options = options();
        options.set_color_output(ColorOutput::Indexed);
        options.set_memory_limit(MemoryLimit::Bytes(
            NonZeroU64::new(limits.max_pixels).unwrap_or(NonZeroU64::MIN),
        ));
        let reader = CancellableReader::of_parts(&outline.parts, BYTES_PER_CHECK, cancel);
        let decoder = options.read_info(reader).map_err(|error| invalid(&error))?;
        let (width, height) = (u32::from(decoder.width()), u32::from(decoder.height()));
        if width != 0 && height != 0 {
            limits.check(width, height)?;
        }
        Ok(Frames {
            decoder,
            outline,
            limits,
            cancel,
            canvas: Image {
                width,
                height,
                layout: Layout::Rgba,
                pixels: Vec::new(),
            },
            disposal: Disposal::Keep,
            image_count: 0,
            last: None,
            is_still: false,
        })
    }

    /// Draws the first frame, and gives the canvas.
    pub(super) fn into_first(mut self) -> Result<Image, DecodeError> {
        self.is_still = true;
        match self.draw_next()? {
            Some(_) => Ok(self.canvas),
            None => Err(no_frame()),
        }
    }

    /// Draws the next frame; `None` after the last one. A file may end between two frames, as in
    /// browsers.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn draw(&mut self) -> Result<Option<AnimationFrame>, DecodeError> {
        decode_guarded(self.cancel, || self.draw_next())
    }

    /// The canvas as it is shown now; its pixels are empty before the first frame.
    pub fn canvas(&self) -> &Image {
        &self.canvas
    }

    /// The number of times that the animation is played, one more than its repetitions; 0 is for
    /// ever. It is known after the first frame.
    pub fn loops(&self) -> u16 {
        match (self.outline.repetitions, self.decoder.repeat()) {
            (Some(0), _) | (None, Repeat::Infinite) => 0,
            (Some(times), _) | (None, Repeat::Finite(times)) => times.saturating_add(1),
        }
    }

    fn draw_next(&mut self) -> Result<Option<AnimationFrame>, DecodeError> {
        let is_first = self.canvas.pixels.is_empty();
        let frame = match self.decoder.next_frame_info() {
            Ok(Some(frame)) => frame.clone(),
            Ok(None) => return Ok(None),
            Err(DecodingError::UnexpectedEof) if !is_first => return Ok(None),
            Err(error) => return Err(invalid(&error)),
        };
        // The indices take one byte per pixel of the frame, which may be larger than the canvas.
        let size = (u32::from(frame.width), u32::from(frame.height));
        let count = self.limits.check(size.0, size.1)?;
        let image = self.outline.images.get(self.image_count).copied();
        self.image_count += 1;
        let described = image.or(self.outline.cut_image).and_then(descriptor);
        if described != Some([frame.left, frame.top, frame.width, frame.height]) {
            // The memory was estimated by the descriptors of the outline.
            return Err(DecodeError::Invalid(
                "the GIF's blocks are ambiguous".to_owned(),
            ));
        }
        if image.is_some_and(|image| self.repeats(image, &frame)) {
            return Ok(Some(AnimationFrame {
                milliseconds: milliseconds(frame.delay),
                damage: Rectangle::EMPTY,
                previous: Vec::new(),
                pixel_count: self.pixel_count(count),
            }));
        }
        let palette = self.decoder.palette().map_err(|error| invalid(&error))?;
        let palette = rgba_palette(&frame, palette);
        let mut indices = vec![0; count];
        // All rows at once, and interlaced ones in the order of the file: read one at a time, the
        // decoder loses codes that go beyond a row.
        match self.decoder.fill_buffer(&mut indices) {
            Ok(true) => {}
            Ok(false) => return Err(invalid(&DecodingError::UnexpectedEof)),
            Err(error) => return Err(invalid(&error)),
        }

        let mut rectangle = Rectangle {
            left: usize::from(frame.left),
            top: usize::from(frame.top),
            width: usize::from(frame.width),
            height: usize::from(frame.height),
        };
        if is_first {
            // Some writers leave the size of the logical screen 0: viewers then show the frame
            // alone.
            if self.canvas.width == 0 || self.canvas.height == 0 {
                (self.canvas.width, self.canvas.height) = size;
                (rectangle.left, rectangle.top) = (0, 0);
            }
            let count = self.limits.check(self.canvas.width, self.canvas.height)?;
            self.canvas.pixels = vec![0; count * 4];
        }
        let (damage, previous) = self.damage(rectangle, is_first)?;
        let is_in_place = (rectangle.left, rectangle.top) == (frame.left.into(), frame.top.into());
        self.last = image.filter(|_| is_in_place).map(|image| LastFrame {
            image,
            transparent: frame.transparent,
            dispose: frame.dispose,
            is_on_transparent: is_first
                || matches!(self.disposal, Disposal::Clear(cleared) if cleared == rectangle),
        });
        self.dispose()?;
        self.disposal = match frame.dispose {
            DisposalMethod::Background => Disposal::Clear(rectangle),
            DisposalMethod::Previous => Disposal::Restore(rectangle, self.copy(rectangle)?),
            DisposalMethod::Any | DisposalMethod::Keep => Disposal::Keep,
        };
        let row = if frame.interlaced {
            interlaced_row
        } else {
            |y, _| y
        };
        self.draw_indices(rectangle, |y| row(y, rectangle.height), &indices, &palette)?;
        Ok(Some(AnimationFrame {
            milliseconds: milliseconds(frame.delay),
            damage,
            previous,
            pixel_count: self.pixel_count(count),
        }))
    }

    /// The number of pixels of a frame of `frame` pixels, or of the canvas, whichever has more.
    fn pixel_count(&self, frame: usize) -> u64 {
        (frame as u64).max(u64::from(self.canvas.width) * u64::from(self.canvas.height))
    }

    /// Whether a frame makes the same canvas as the last one, before and after its disposal: it
    /// need not be decoded.
    fn repeats(&self, image: &[u8], frame: &Frame<'_>) -> bool {
        self.last.as_ref().is_some_and(|last| {
            // Pixels below it that were restored or kept are still there. Cleared ones are not,
            // unless they were transparent.
            last.image == image
                && last.transparent == frame.transparent
                && last.dispose == frame.dispose
                && (last.is_on_transparent || last.dispose != DisposalMethod::Background)
        })
    }

    /// The rectangle in which a frame and the disposal of the one before will change the canvas,
    /// and its pixels now.
    fn damage(
        &mut self,
        frame: Rectangle,
        is_first: bool,
    ) -> Result<(Rectangle, Vec<[u8; 4]>), Cancelled> {
        let (width, height) = (self.canvas.width, self.canvas.height);
        let whole = Rectangle::whole(width, height);
        if self.is_still {
            return Ok((whole, Vec::new()));
        }
        if is_first {
            // Zeroed memory takes none before it is written to.
            return Ok((whole, vec![[0; 4]; whole.width * whole.height]));
        }
        let frame = frame.clip(width, height);
        let damage = match &self.disposal {
            Disposal::Keep => frame,
            Disposal::Clear(other) | Disposal::Restore(other, _) => {
                frame.union(other.clip(width, height))
            }
        };
        Ok((damage, self.copy(damage)?))
    }

    /// Disposes of the last frame.
    fn dispose(&mut self) -> Result<(), Cancelled> {
        match std::mem::replace(&mut self.disposal, Disposal::Keep) {
            Disposal::Keep => {}
            Disposal::Clear(rectangle) => {
                for row in self.canvas.rows_of(rectangle) {
                    self.cancel.check()?;
                    row.fill([0; 4]);
                }
            }
            Disposal::Restore(rectangle, pixels) => {
                let mut rest = pixels.as_slice();
                for row in self.canvas.rows_of(rectangle) {
                    self.cancel.check()?;
                    let (pixels, below) = rest.split_at(row.len());
                    row.copy_from_slice(pixels);
                    rest = below;
                }
            }
        }
        Ok(())
    }

    /// The pixels of a rectangle, row by row, as far as it is on the canvas.
    fn copy(&mut self, rectangle: Rectangle) -> Result<Vec<[u8; 4]>, Cancelled> {
        let visible = rectangle.clip(self.canvas.width, self.canvas.height);
        let mut pixels = Vec::with_capacity(visible.width * visible.height);
        for row in self.canvas.rows_of(rectangle) {
            self.cancel.check()?;
            pixels.extend_from_slice(row);
        }
        Ok(pixels)
    }

    /// Draws the indices of a frame. `stored_row` maps each row of the frame to its place among the
    /// stored ones.
    fn draw_indices(
        &mut self,
        rectangle: Rectangle,
        stored_row: impl Fn(usize) -> usize,
        indices: &[u8],
        palette: &[[u8; 4]; 256],
    ) -> Result<(), Cancelled> {
        for (y, row) in self.canvas.rows_of(rectangle).enumerate() {
            self.cancel.check()?;
            let indices = &indices[stored_row(y) * rectangle.width..][..rectangle.width];
            for (pixel, &index) in row.iter_mut().zip(indices) {
                let color = palette[usize::from(index)];
                if color[3] != 0 {
                    *pixel = color;
                }
            }
        }
        Ok(())
    }
}

/// The place of a row of an interlaced frame among the rows of the file, in which those of four
/// passes follow each other (GIF 89a, appendix E).
fn interlaced_row(y: usize, height: usize) -> usize {
    match y % 8 {
        0 => y / 8,
        4 => height.div_ceil(8) + y / 8,
        2 | 6 => height.div_ceil(4) + y / 4,
        _ => height.div_ceil(2) + y / 2,
    }
}

/// The time that a frame is shown. As in browsers, a delay of none or of a hundredth of a second is
/// a tenth.
fn milliseconds(hundredths: u16) -> u32 {
    match hundredths {
        0 | 1 => 100,
        more => u32::from(more) * 10,
    }
}

/// The frame's colors; indices beyond its palette are transparent, as in browsers.
fn rgba_palette(frame: &Frame<'_>, palette: &[u8]) -> [[u8; 4]; 256] {
    let mut colors = [[0; 4]; 256];
    for (color, &[red, green, blue]) in colors.iter_mut().zip(palette.as_chunks::<3>().0) {
        *color = [red, green, blue, 255];
    }
    if let Some(transparent) = frame.transparent {
        colors[usize::from(transparent)] = [0; 4];
    }
    colors
}
