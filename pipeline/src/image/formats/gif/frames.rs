//! The frames of a GIF, drawn one after the other onto a canvas, as browsers show them.

use super::decoder::{invalid, no_frame};
use super::outline::{Outline, descriptor};
use crate::image::animation::{self, AnimationCanvas, AnimationFrame, shown_milliseconds};
use crate::image::error::DecodeError;
use crate::image::guard::decode_guarded;
use crate::image::limits::Limits;
use crate::image::pixels::Image;
use crate::image::reader::CancellableReader;
use crate::image::rectangle::Rectangle;
use ::gif::{
    ColorOutput, DecodeOptions, Decoder, DecodingError, DisposalMethod, Frame, MemoryLimit, Repeat,
};
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
    canvas: AnimationCanvas<'a>,
    /// The number of images that the decoder has passed.
    image_count: usize,
    /// The frame that was drawn last.
    last: Option<LastFrame<'a>>,
    /// Whether only the first frame is wanted, without the pixels that were there before it.
    is_still: bool,
}

/// The frame that was drawn last, as the file has it.
struct LastFrame<'a> {
    image: &'a [u8],
    transparent: Option<u8>,
    dispose: DisposalMethod,
    /// Whether the canvas was transparent below it.
    is_on_transparent: bool,
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
        let mut options = DecodeOptions::new();
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
            canvas: AnimationCanvas::new((width, height), cancel),
            image_count: 0,
            last: None,
            is_still: false,
        })
    }

    /// Draws the first frame, and gives the canvas.
    pub(super) fn into_first(mut self) -> Result<Image, DecodeError> {
        self.is_still = true;
        match self.draw_next()? {
            Some(_) => Ok(self.canvas.image),
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
        &self.canvas.image
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
        let is_first = self.canvas.is_empty();
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
                milliseconds: shown_milliseconds(u32::from(frame.delay) * 10),
                damage: Rectangle::EMPTY,
                previous: Vec::new(),
                pixel_count: self.canvas.pixel_count(count),
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
        let (damage, previous) = if is_first {
            // Some writers leave the size of the logical screen 0: viewers then show the frame
            // alone.
            let canvas = &mut self.canvas.image;
            if canvas.width == 0 || canvas.height == 0 {
                (canvas.width, canvas.height) = size;
                (rectangle.left, rectangle.top) = (0, 0);
            }
            let count = self.limits.check(canvas.width, canvas.height)?;
            let damage = self.canvas.begin(count);
            let previous = if self.is_still { 0 } else { count };
            (damage, vec![[0; 4]; previous])
        } else {
            self.canvas.damage(rectangle)?
        };
        let is_in_place = (rectangle.left, rectangle.top) == (frame.left.into(), frame.top.into());
        self.last = image.filter(|_| is_in_place).map(|image| LastFrame {
            image,
            transparent: frame.transparent,
            dispose: frame.dispose,
            is_on_transparent: is_first || self.canvas.will_clear(rectangle),
        });
        self.canvas.dispose(
            rectangle,
            match frame.dispose {
                DisposalMethod::Background => animation::DisposalMethod::Clear,
                DisposalMethod::Previous => animation::DisposalMethod::Restore,
                DisposalMethod::Any | DisposalMethod::Keep => animation::DisposalMethod::Keep,
            },
        )?;
        let row = if frame.interlaced {
            interlaced_row
        } else {
            |y, _| y
        };
        self.draw_indices(rectangle, |y| row(y, rectangle.height), &indices, &palette)?;
        Ok(Some(AnimationFrame {
            milliseconds: shown_milliseconds(u32::from(frame.delay) * 10),
            damage,
            previous,
            pixel_count: self.canvas.pixel_count(count),
        }))
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
