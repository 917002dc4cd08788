//! The size of the WebP: the box that was requested, and how the picture is fitted to it.

use crate::image::{Resize, Span};
use crate::watermark::Position;
use towebp_encoder::MAX_SIDE;

/// The requested size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Width of the box, before it is multiplied by `dpr` (`width`), 1 to 16383.
    pub width: Option<u16>,
    /// Height of the box (`height`), 1 to 16383.
    pub height: Option<u16>,
    /// How the picture is fitted to the box (`fit`).
    pub fit: Fit,
    /// The part of the picture that stays where it is cut off (`gravity`).
    pub gravity: Position,
    /// Whether the picture may become larger (`enlarge`).
    pub enlarges: bool,
    /// Thousandths of a pixel for each unit of the box (`dpr`).
    pub dpr: u16,
}

/// How a picture is fitted to a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// All of it is shown, within the box, with its own proportions.
    #[default]
    Contain,
    /// The box is filled, and the picture is cut off at its edges.
    Cover,
    /// The box is filled: the picture gets its proportions.
    Fill,
}

/// A width and a height, in pixels.
type Size = (u32, u32);

impl Fit {
    /// The names that [`Fit::parse`] accepts, for error texts.
    pub const ALLOWED: &str = "contain, cover, fill or inside";

    /// Reads its exact name. `inside` is `contain`: nothing is ever padded.
    pub fn parse(text: &str) -> Option<Fit> {
        match text {
            "contain" | "inside" => Some(Fit::Contain),
            "cover" => Some(Fit::Cover),
            "fill" => Some(Fit::Fill),
            _ => None,
        }
    }
}

impl Default for Sizing {
    fn default() -> Sizing {
        Sizing {
            width: None,
            height: None,
            fit: Fit::default(),
            gravity: Position::Center,
            enlarges: false,
            dpr: 1000,
        }
    }
}

impl Sizing {
    /// The resize of an upright picture of this size; `None` if it stays as it is.
    pub(super) fn resize(&self, picture: Size) -> Option<Resize> {
        if self.width.is_none() && self.height.is_none() {
            return None;
        }
        let [width, height] = [self.width, self.height].map(|side| self.side(side));
        let (fit, (width, height)) = match (width, height) {
            (Some(width), Some(height)) => (self.fit, (width, height)),
            // The other side follows from the proportions.
            (width, height) => {
                let side = |side: Option<u32>| side.unwrap_or(MAX_SIDE);
                (Fit::Contain, (side(width), side(height)))
            }
        };
        let [whole_width, whole_height] = [picture.0, picture.1].map(f64::from);
        let (size, part) = match fit {
            Fit::Contain => {
                let size = within(picture, (width, height));
                let is_larger = size.0 > picture.0 || size.1 > picture.1;
                let stays = is_larger && !self.enlarges;
                (
                    if stays { picture } else { size },
                    (whole_width, whole_height),
                )
            }
            Fit::Fill => (
                self.capped((width, height), picture),
                (whole_width, whole_height),
            ),
            Fit::Cover => {
                let size = self.capped((width, height), picture);
                let [width, height] = [size.0, size.1].map(f64::from);
                let part_width = (whole_height * width / height).min(whole_width);
                let part_height = (whole_width * height / width).min(whole_height);
                (size, (part_width, part_height))
            }
        };
        let [left, above] = self.gravity.shares();
        let resize = Resize {
            across: Span {
                start: (whole_width - part.0) * left,
                length: part.0,
                size: size.0,
            },
            down: Span {
                start: (whole_height - part.1) * above,
                length: part.1,
                size: size.1,
            },
        };
        (size != picture).then_some(resize)
    }

    /// A side of the box, in pixels.
    fn side(&self, side: Option<u16>) -> Option<u32> {
        let pixels = (u32::from(side?) * u32::from(self.dpr) + 500) / 1000;
        Some(pixels.clamp(1, MAX_SIDE))
    }

    /// A box that is not to be filled by something larger than the picture becomes smaller, and
    /// keeps its proportions.
    fn capped(&self, size: Size, picture: Size) -> Size {
        let is_larger = size.0 > picture.0 || size.1 > picture.1;
        if is_larger && !self.enlarges {
            within(size, picture)
        } else {
            size
        }
    }
}

/// The largest size with the proportions of `size` within `available`, at least 1 by 1.
fn within(size: Size, available: Size) -> Size {
    let [width, height] = [size.0, size.1].map(u64::from);
    let [most_width, most_height] = [available.0, available.1].map(u64::from);
    let divide = |product: u64, by: u64| (product + by / 2) / by;
    let (width, height) = if width * most_height >= height * most_width {
        (
            most_width,
            divide(height * most_width, width).min(most_height),
        )
    } else {
        (
            divide(width * most_height, height).min(most_width),
            most_height,
        )
    };
    (width.max(1) as u32, height.max(1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size and shown part (left, top, width, height) of a picture of 600 by 400.
    fn resized(sizing: Sizing) -> Option<(Size, [f64; 4])> {
        let Resize { across, down } = sizing.resize((600, 400))?;
        let part = [across.start, down.start, across.length, down.length];
        Some(((across.size, down.size), part))
    }

    fn boxed(width: u16, height: u16, fit: Fit) -> Sizing {
        Sizing {
            width: Some(width),
            height: Some(height),
            fit,
            ..Sizing::default()
        }
    }

    const WHOLE: [f64; 4] = [0.0, 0.0, 600.0, 400.0];

    #[test]
    fn all_of_the_picture_stays_within_the_box() {
        for (width, height, size) in [
            (300, 300, (300, 200)),
            (300, 100, (150, 100)),
            (599, 400, (599, 399)),
            (1, 1, (1, 1)),
            (16383, 3, (5, 3)),
        ] {
            let sizing = boxed(width, height, Fit::Contain);
            assert_eq!(resized(sizing), Some((size, WHOLE)), "{width} x {height}");
        }
        assert_eq!(resized(boxed(600, 400, Fit::Contain)), None);
        assert_eq!(resized(boxed(900, 900, Fit::Contain)), None);
        let enlarged = Sizing {
            enlarges: true,
            ..boxed(900, 900, Fit::Contain)
        };
        assert_eq!(resized(enlarged), Some(((900, 600), WHOLE)));
    }

    #[test]
    fn one_side_follows_from_the_other_with_every_fit() {
        for fit in [Fit::Contain, Fit::Cover, Fit::Fill] {
            let sizing = Sizing {
                fit,
                enlarges: true,
                ..Sizing::default()
            };
            let wide = Sizing {
                width: Some(300),
                ..sizing
            };
            assert_eq!(resized(wide), Some(((300, 200), WHOLE)));
            let high = Sizing {
                height: Some(800),
                ..sizing
            };
            assert_eq!(resized(high), Some(((1200, 800), WHOLE)));
            let too_high = Sizing {
                height: Some(16383),
                ..sizing
            };
            assert_eq!(resized(too_high), Some(((16383, 10922), WHOLE)));
            assert_eq!(resized(sizing), None);
        }
    }

    #[test]
    fn the_box_is_covered_and_gravity_says_by_what() {
        for (gravity, left) in [
            (Position::TopLeft, 0.0),
            (Position::Center, 100.0),
            (Position::BottomRight, 200.0),
        ] {
            let sizing = Sizing {
                gravity,
                ..boxed(200, 200, Fit::Cover)
            };
            let part = [left, 0.0, 400.0, 400.0];
            assert_eq!(resized(sizing), Some(((200, 200), part)));
        }
        for (gravity, top) in [
            (Position::Top, 0.0),
            (Position::Left, 100.0),
            (Position::Bottom, 200.0),
        ] {
            let sizing = Sizing {
                gravity,
                ..boxed(300, 100, Fit::Cover)
            };
            let part = [0.0, top, 600.0, 200.0];
            assert_eq!(resized(sizing), Some(((300, 100), part)));
        }
        // A larger box keeps its proportions within the picture.
        let part = [100.0, 0.0, 400.0, 400.0];
        let larger = boxed(1000, 1000, Fit::Cover);
        assert_eq!(resized(larger), Some(((400, 400), part)));
        let enlarged = Sizing {
            enlarges: true,
            ..larger
        };
        assert_eq!(resized(enlarged), Some(((1000, 1000), part)));
    }

    #[test]
    fn the_box_is_filled_by_stretching() {
        assert_eq!(resized(boxed(60, 300, Fit::Fill)), Some(((60, 300), WHOLE)));
        let larger = boxed(1200, 400, Fit::Fill);
        assert_eq!(resized(larger), Some(((600, 200), WHOLE)));
        let higher = boxed(600, 1200, Fit::Fill);
        assert_eq!(resized(higher), Some(((200, 400), WHOLE)));
        let enlarged = Sizing {
            enlarges: true,
            ..larger
        };
        assert_eq!(resized(enlarged), Some(((1200, 400), WHOLE)));
    }

    #[test]
    fn device_pixels_multiply_the_box_up_to_the_largest_side() {
        let sizing = |dpr| Sizing {
            dpr,
            ..boxed(100, 101, Fit::Fill)
        };
        assert_eq!(
            resized(sizing(1500)).map(|(size, _)| size),
            Some((150, 152))
        );
        assert_eq!(resized(sizing(100)).map(|(size, _)| size), Some((10, 10)));
        let most = Sizing {
            dpr: 8000,
            enlarges: true,
            ..boxed(16383, 1, Fit::Fill)
        };
        assert_eq!(resized(most).map(|(size, _)| size), Some((16383, 8)));
        let least = Sizing {
            dpr: 100,
            ..boxed(1, 1, Fit::Fill)
        };
        assert_eq!(resized(least).map(|(size, _)| size), Some((1, 1)));
    }
}
