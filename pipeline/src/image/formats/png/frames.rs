//! The frames of an animated PNG, drawn one after the other onto a canvas (PNG, third edition,
//! 11.3.6), oriented by the Exif of the file.

use super::decoder::damaged_animation;
use super::header::Header;
use super::input::Input;
use super::outline::FrameControl;
use super::picture::{decoder, read_picture, read_space};
use crate::image::animation::{AnimationCanvas, AnimationFrame, shown_milliseconds};
use crate::image::color::{Space, convert_to_srgb, is_rgb, is_srgb};
use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::guard::decode_guarded;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use crate::image::metadata::orientation::{self, Orientation};
use crate::image::pixels::Image;
use std::slice;
use towebp_encoder::{Cancel, Cancelled, Workers};

/// The frames of an animated PNG, drawn one after the other.
pub struct Frames<'a> {
    header: &'a Header<'a>,
    limits: Limits,
    cancel: &'a Cancel<'a>,
    /// The frames that are not drawn yet.
    coming: slice::Iter<'a, FrameControl<'a>>,
    canvas: AnimationCanvas<'a>,
    clock: Clock,
    /// How the frames have to be turned.
    orientation: Option<Orientation>,
    /// Whether the samples have to be converted from the color space that the file names.
    is_converted: bool,
}

impl<'a> Frames<'a> {
    /// The frames of a file, of which none is drawn yet. With [`Keep::profile`] they stay in
    /// the color space of a profile of RGB.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub(super) fn new(
        header: &'a Header<'a>,
        keep: Keep,
        limits: &Limits,
        cancel: &'a Cancel<'a>,
    ) -> Result<Frames<'a>, DecodeError> {
        let frames = header.outline().map_or(&[][..], |outline| &outline.frames);
        let (width, height) = header.size();
        limits.check(width, height)?;
        let space = space(header, cancel)?;
        let orientation = header.orientation();
        let swaps = orientation.is_some_and(orientation::swaps_sides);
        let size = if swaps {
            (height, width)
        } else {
            (width, height)
        };
        Ok(Frames {
            header,
            limits: *limits,
            cancel,
            coming: frames.iter(),
            canvas: AnimationCanvas::new(size, cancel),
            clock: Clock::default(),
            orientation,
            is_converted: match space {
                None => false,
                Some(Space::Icc(profile)) => {
                    !(is_srgb(&profile) || keep.profile && is_rgb(&profile))
                }
                Some(_) => true,
            },
        })
    }

    /// Draws the next frame; `None` after the last one.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn draw(&mut self) -> Result<Option<AnimationFrame>, DecodeError> {
        let Some(frame) = self.coming.next() else {
            return Ok(None);
        };
        decode_guarded(self.cancel, || {
            let drawn = self.draw_frame(frame);
            drawn.map(Some).map_err(|error| match error {
                DecodeError::Invalid(reason) if !frame.is_default_image => {
                    damaged_animation(&reason)
                }
                error => error,
            })
        })
    }

    /// The canvas as it is shown now; its pixels are empty before the first frame.
    pub fn canvas(&self) -> &Image {
        &self.canvas.image
    }

    /// The number of times that the animation is played; 0 is for ever. WebP knows 65535, which is
    /// what a larger number becomes.
    pub fn loops(&self) -> u16 {
        let plays = self.header.outline().map_or(0, |outline| outline.plays);
        u16::try_from(plays).unwrap_or(u16::MAX)
    }

    fn draw_frame(&mut self, frame: &FrameControl<'a>) -> Result<AnimationFrame, DecodeError> {
        let image = self.decode(frame)?;
        let mut rectangle = frame.rectangle;
        if let Some(orientation) = self.orientation {
            rectangle = orientation::apply_to_rectangle(rectangle, self.header.size(), orientation);
        }
        self.canvas.draw(
            &image,
            rectangle,
            frame.disposal,
            frame.is_drawn_over,
            self.clock.tick(frame.delay),
            &self.limits,
        )
    }

    /// Decodes a frame, converts it to sRGB and orients it.
    fn decode(&self, frame: &FrameControl<'a>) -> Result<Image, DecodeError> {
        let cancel = self.cancel;
        let reader = self.header.frame(frame, self.is_converted, cancel);
        let input = Input::Frame(reader);
        let decoded = read_picture(decoder(input), Keep::NOTHING, &self.limits, cancel)?;
        let Decoded {
            mut image,
            is_gray,
            space,
            ..
        } = decoded;
        if let Some(space) = space {
            convert_to_srgb(&mut image, &space, is_gray, cancel)?;
        }
        Ok(self.orient(image)?)
    }

    fn orient(&self, image: Image) -> Result<Image, Cancelled> {
        match self.orientation {
            Some(orientation) => {
                orientation::apply(image, orientation, Workers::new(1, None, self.cancel))
            }
            None => Ok(image),
        }
    }
}

/// The profile of RGB in whose color space the frames stay, if `keep` selects it.
///
/// # Errors
/// See [`DecodeError`].
pub fn kept_profile(
    header: &Header<'_>,
    keep: Keep,
    cancel: &Cancel<'_>,
) -> Result<Option<Vec<u8>>, DecodeError> {
    Ok(match space(header, cancel)? {
        Some(Space::Icc(profile)) if keep.profile && is_rgb(&profile) => Some(profile),
        _ => None,
    })
}

/// The color space that the file names.
fn space(header: &Header<'_>, cancel: &Cancel<'_>) -> Result<Option<Space>, DecodeError> {
    match header.default_image(cancel) {
        Some(image) => read_space(decoder(Input::Frame(image))),
        None => Ok(None),
    }
}

/// The time of an animation in milliseconds, whose rounding does not add up from frame to frame.
#[derive(Default)]
struct Clock {
    /// The microseconds by which the frames so far are shown too short, or too long if negative.
    behind: i64,
}

impl Clock {
    /// The milliseconds of a frame that is to be shown for so many seconds, a numerator and a
    /// denominator.
    fn tick(&mut self, (numerator, denominator): (u16, u16)) -> u32 {
        let exact = i64::from(numerator) * 1_000_000 / i64::from(denominator.max(1));
        let rounded = ((exact + 500) / 1000) as u32;
        let shown = shown_milliseconds(rounded);
        if shown != rounded {
            return shown;
        }
        let milliseconds = (exact + self.behind + 500) / 1000;
        self.behind += exact - milliseconds * 1000;
        milliseconds as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_without_adding_up() {
        let times = |delays: &[(u16, u16)]| {
            let mut clock = Clock::default();
            delays
                .iter()
                .map(|delay| clock.tick(*delay))
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&[(1, 30); 6]), [33, 34, 33, 33, 34, 33]);
        assert_eq!(times(&[(3, 2), (1, 16), (1, 16)]), [1500, 63, 62]);
        // Browsers show it for a tenth of a second, which does not count as too long.
        assert_eq!(times(&[(1, 30), (1, 100), (1, 30)]), [33, 100, 34]);
    }
}
