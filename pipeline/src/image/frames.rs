//! The frames of an animation of any format.

use super::animation::AnimationFrame;
use super::error::DecodeError;
use super::formats::{gif, png, webp};
use super::pixels::Image;

/// The frames of an animation, drawn one after the other onto a canvas.
pub enum Frames<'a> {
    /// The frames of a GIF.
    Gif(Box<gif::Frames<'a>>),
    /// The frames of a PNG.
    Png(png::Frames<'a>),
    /// The frames of a WebP.
    Webp(webp::Frames<'a>),
}

impl Frames<'_> {
    /// Draws the next frame; `None` after the last one.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn draw(&mut self) -> Result<Option<AnimationFrame>, DecodeError> {
        match self {
            Frames::Gif(frames) => frames.draw(),
            Frames::Png(frames) => frames.draw(),
            Frames::Webp(frames) => frames.draw(),
        }
    }

    /// The canvas as it is shown now; its pixels are empty before the first frame.
    pub fn canvas(&self) -> &Image {
        match self {
            Frames::Gif(frames) => frames.canvas(),
            Frames::Png(frames) => frames.canvas(),
            Frames::Webp(frames) => frames.canvas(),
        }
    }

    /// The number of times that the animation is played; 0 is for ever. It is known after the first
    /// frame.
    pub fn loops(&self) -> u16 {
        match self {
            Frames::Gif(frames) => frames.loops(),
            Frames::Png(frames) => frames.loops(),
            Frames::Webp(frames) => frames.loops(),
        }
    }
}
