//! Plays an animated WebP beside the animation that it was made of.

use crate::conversion::error::ConversionError;
use crate::image::{Image, Layout};
use image_webp::WebPDecoder;
use std::io::Cursor;

/// An animated WebP while it is played.
pub(in crate::conversion) struct Player<'a> {
    decoder: WebPDecoder<Cursor<&'a [u8]>>,
    /// The canvas as it is shown.
    canvas: Image,
    /// Milliseconds for which it is still shown.
    left: u64,
}

impl<'a> Player<'a> {
    /// Opens a file; nothing is shown yet.
    ///
    /// # Errors
    /// [`ConversionError::Internal`] if it is not a WebP.
    pub(in crate::conversion) fn new(webp: &'a [u8]) -> Result<Player<'a>, ConversionError> {
        let failed =
            |error| ConversionError::Internal(format!("the file does not decode: {error}"));
        let decoder = WebPDecoder::new(Cursor::new(webp)).map_err(failed)?;
        let (width, height) = decoder.dimensions();
        let layout = if decoder.has_alpha() {
            Layout::Rgba
        } else {
            Layout::Rgb
        };
        Ok(Player {
            decoder,
            canvas: Image {
                width,
                height,
                layout,
                pixels: vec![0; width as usize * height as usize * layout.channels()],
            },
            left: 0,
        })
    }

    /// Returns the canvas that is shown during the next frame of the original, which lasts for
    /// `milliseconds`. Frames of the original that changed nothing are one frame of the file.
    ///
    /// # Errors
    /// [`ConversionError::Internal`] if the file does not decode, or ends.
    pub(in crate::conversion) fn show(
        &mut self,
        milliseconds: u32,
    ) -> Result<&Image, ConversionError> {
        if self.left == 0 {
            let read = self.decoder.read_frame(&mut self.canvas.pixels);
            let duration = read.map_err(|error| {
                ConversionError::Internal(format!("a frame does not decode: {error}"))
            })?;
            self.left = u64::from(duration);
        }
        self.left = self.left.saturating_sub(u64::from(milliseconds));
        Ok(&self.canvas)
    }
}
