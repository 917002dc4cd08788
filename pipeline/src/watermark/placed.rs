//! Watermarks whose place is known before they are drawn, on parts of an image: those that are not
//! tiled.

use super::picture::prepare_picture;
use super::placement::Placement;
use super::position::Size;
use super::stamp::Stamp;
use super::text::{Fonts, TextError, TextWatermark, prepare_text};
use crate::image::{Image, Rectangle};
use towebp_encoder::{Cancel, Cancelled};

/// A watermark with its place on an image.
pub struct PlacedMark<'a> {
    stamp: Stamp<'a>,
    image: Size,
    /// Its left and top edge.
    place: (u32, u32),
    /// 0 to 100.
    opacity: u8,
}

impl<'a> PlacedMark<'a> {
    /// Places a picture on an image of this width and height, as
    /// [`draw_picture`](super::draw_picture) does.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn picture(
        picture: &'a Image,
        placement: &Placement,
        image: (u32, u32),
        cancel: &Cancel<'_>,
    ) -> Result<PlacedMark<'a>, Cancelled> {
        let (stamp, _) = prepare_picture(picture, placement, image, cancel)?;
        Ok(PlacedMark::new(stamp, placement, image))
    }

    /// Places a text, as [`draw_text`](super::draw_text) does; `None` if there is nothing to draw.
    ///
    /// # Errors
    /// [`TextError`]
    pub fn text(
        text: &TextWatermark,
        fonts: &Fonts,
        placement: &Placement,
        image: (u32, u32),
        cancel: &Cancel<'_>,
    ) -> Result<Option<PlacedMark<'static>>, TextError> {
        let prepared = prepare_text(text, fonts, placement, image, cancel)?;
        Ok(prepared.map(|(stamp, _)| PlacedMark::new(stamp, placement, image)))
    }

    fn new<'b>(stamp: Stamp<'b>, placement: &Placement, image: Size) -> PlacedMark<'b> {
        debug_assert!(!placement.is_tiled, "tiles are everywhere");
        PlacedMark {
            place: placement.place(image, stamp.size()),
            opacity: placement.opacity,
            image,
            stamp,
        }
    }

    /// The part of the image that it is drawn on.
    pub fn bounds(&self) -> Rectangle {
        let (left, top) = self.place;
        let (width, height) = self.stamp.size();
        Rectangle {
            left: left as usize,
            top: top as usize,
            width: width.min(self.image.0.saturating_sub(left)) as usize,
            height: height.min(self.image.1.saturating_sub(top)) as usize,
        }
    }

    /// Draws it on a part of the image that begins at `left` and `top`.
    ///
    /// # Errors
    /// [`Cancelled`]; the part may then have some of it.
    pub fn draw_on(
        &self,
        part: &mut Image,
        (left, top): (usize, usize),
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let at = (
            i64::from(self.place.0) - left as i64,
            i64::from(self.place.1) - top as i64,
        );
        self.stamp.blend(part, at, self.opacity, cancel)
    }
}
