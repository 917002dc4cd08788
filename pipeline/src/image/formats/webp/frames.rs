//! The frames of an animated WebP, drawn one after the other onto a canvas (RFC 9649, 2.7.1.1),
//! oriented by the Exif of the file.

use super::header::Header;
use super::outline::Frame;
use crate::image::animation::{AnimationCanvas, AnimationFrame, shown_milliseconds};
use crate::image::color::{Space, convert_to_srgb, is_srgb};
use crate::image::error::DecodeError;
use crate::image::guard::decode_guarded;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use crate::image::metadata::orientation::{self, Orientation};
use crate::image::pixels::Image;
use std::slice;
use towebp_encoder::{Cancel, Workers};

/// The frames of an animated WebP, drawn one after the other.
pub struct Frames<'a> {
    header: &'a Header<'a>,
    limits: Limits,
    cancel: &'a Cancel<'a>,
    /// The frames that are not drawn yet, and the number of times that all are played.
    coming: slice::Iter<'a, &'a [u8]>,
    loops: u16,
    canvas: AnimationCanvas<'a>,
    /// How the frames have to be turned.
    orientation: Orientation,
    /// The color space from which they have to be converted.
    space: Option<Space>,
}

impl<'a> Frames<'a> {
    /// The frames of a file, of which none is drawn yet. With [`Keep::profile`] they stay in
    /// the color space of a profile of RGB.
    pub(super) fn new(
        header: &'a Header<'a>,
        keep: Keep,
        limits: &Limits,
        cancel: &'a Cancel<'a>,
    ) -> Frames<'a> {
        let stays = |profile: &Vec<u8>| is_srgb(profile) || header.kept_profile(keep).is_some();
        let profile = header.profile().filter(|profile| !stays(profile));
        Frames {
            canvas: AnimationCanvas::new(header.upright_size(), cancel),
            orientation: header.orientation(),
            space: profile.map(Space::Icc),
            ..Frames::as_stored(header, limits, cancel)
        }
    }

    /// The frames of a file as they are stored, neither oriented nor in sRGB.
    pub(super) fn as_stored(
        header: &'a Header<'a>,
        limits: &Limits,
        cancel: &'a Cancel<'a>,
    ) -> Frames<'a> {
        let (frames, loops) = header.frames();
        Frames {
            header,
            limits: *limits,
            cancel,
            coming: frames.iter(),
            loops,
            canvas: AnimationCanvas::new(header.size(), cancel),
            orientation: Orientation::NoTransforms,
            space: None,
        }
    }

    /// Draws the next frame; `None` after the last one.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn draw(&mut self) -> Result<Option<AnimationFrame>, DecodeError> {
        let Some(frame) = self.coming.next() else {
            return Ok(None);
        };
        decode_guarded(self.cancel, || self.draw_frame(frame).map(Some))
    }

    /// The canvas as it is shown now; its pixels are empty before the first frame.
    pub fn canvas(&self) -> &Image {
        &self.canvas.image
    }

    /// The number of times that the animation is played; 0 is for ever.
    pub fn loops(&self) -> u16 {
        self.loops
    }

    /// Draws the first frame, and gives the canvas.
    pub(super) fn into_first(mut self) -> Result<Image, DecodeError> {
        self.draw()?;
        Ok(self.canvas.image)
    }

    fn draw_frame(&mut self, data: &'a [u8]) -> Result<AnimationFrame, DecodeError> {
        let canvas = self.header.size();
        let frame = Frame::read(data, canvas)?;
        let mut image = frame.bitstream.decode(&self.limits, self.cancel)?;
        if let Some(space) = &self.space {
            convert_to_srgb(&mut image, space, false, self.cancel)?;
        }
        let workers = Workers::new(1, None, self.cancel);
        let image = orientation::apply(image, self.orientation, workers)?;
        let rectangle = orientation::apply_to_rectangle(frame.rectangle, canvas, self.orientation);
        self.canvas.draw(
            &image,
            rectangle,
            frame.disposal,
            frame.is_drawn_over,
            shown_milliseconds(frame.milliseconds),
            &self.limits,
        )
    }
}
