//! The placement of a watermark on an image.

use super::length::Length;
use super::position::{Position, Size};
use super::rotation::Rotation;

/// The placement of a watermark, text or picture, on an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The position. It has no effect on tiles.
    pub position: Position,
    /// The free space on every side; between tiles, the gap. It is rounded to whole pixels.
    /// `None` stands for 2 % of the image's shorter side and at least 8 pixels, but never more than
    /// an eighth of that side, which leaves space for the watermark on tiny images; for no margin
    /// if the position is the center; and for the tiles' own shorter side between them, if that is
    /// more.
    pub margin: Option<Length>,
    /// The width of the watermark before it is rotated, in percent of the image's width, 1 to 100;
    /// `None` for its own size.
    pub scale: Option<u8>,
    /// The rotation around its center, in degrees clockwise, -360 to 360.
    pub rotate: i16,
    /// Whether it is repeated over the whole image.
    pub is_tiled: bool,
    /// The opacity, 0 (invisible) to 100 (solid).
    pub opacity: u8,
}

impl Placement {
    /// The size that a watermark may have on an image: at least 1 by 1.
    pub(super) fn available(&self, image: Size) -> Size {
        let margin = self.margin(image);
        (image.0 - 2 * margin, image.1 - 2 * margin)
    }

    /// [`Placement::available`], with a margin in the center, too.
    pub(super) fn available_with_margin(&self, image: Size) -> Size {
        let margin = match self.margin {
            Some(_) => self.margin(image),
            None => default_margin(image),
        };
        (image.0 - 2 * margin, image.1 - 2 * margin)
    }

    /// The left and top edge of a watermark. If it is larger than the available size, its beginning
    /// stays in the image.
    pub(super) fn place(&self, image: Size, mark: Size) -> (u32, u32) {
        self.position.place(image, mark, self.margin(image))
    }

    /// The width by `scale`, in pixels.
    pub(super) fn width(&self, image: Size) -> Option<u32> {
        let percent = u64::from(self.scale?);
        Some(((u64::from(image.0) * percent + 50) / 100).max(1) as u32)
    }

    /// The pixels between tiles of size `mark` before they are rotated.
    pub(super) fn gap(&self, image: Size, mark: Size) -> u32 {
        match self.margin {
            Some(_) => self.margin(image),
            None => mark.0.min(mark.1).max(default_margin(image)),
        }
    }

    pub(super) fn rotation(&self) -> Rotation {
        Rotation::degrees(self.rotate)
    }

    /// The margin in pixels, at most a quarter of the shorter side: half of that side is left for
    /// the watermark.
    fn margin(&self, image: Size) -> u32 {
        match (self.margin, self.position) {
            (Some(margin), _) => (margin.on(image).round() as u32).min(image.0.min(image.1) / 4),
            (None, Position::Center) => 0,
            (None, _) => default_margin(image),
        }
    }
}

fn default_margin(image: Size) -> u32 {
    let side = image.0.min(image.1);
    (side / 50).max(8).min(side / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(position: Position) -> Placement {
        Placement {
            position,
            ..Placement::default()
        }
    }

    #[test]
    fn corners_and_sides_keep_the_margin_and_the_rest_is_central() {
        // 1000 x 500: the margin is 2 % of 500.
        for (position, place) in [
            (Position::TopLeft, (10, 10)),
            (Position::Top, (450, 10)),
            (Position::TopRight, (890, 10)),
            (Position::Left, (10, 230)),
            (Position::Center, (450, 230)),
            (Position::Right, (890, 230)),
            (Position::BottomLeft, (10, 450)),
            (Position::Bottom, (450, 450)),
            (Position::BottomRight, (890, 450)),
        ] {
            assert_eq!(
                at(position).place((1000, 500), (100, 40)),
                place,
                "{position:?}"
            );
        }
    }

    #[test]
    fn the_margin_has_a_least_and_a_greatest_size() {
        let top_left = |image| at(Position::TopLeft).place(image, (1, 1));
        assert_eq!(top_left((200, 100)), (8, 8), "at least 8 pixels");
        assert_eq!(
            top_left((40, 200)),
            (5, 5),
            "at most an eighth of the shorter side"
        );
        assert_eq!(top_left((7, 7)), (0, 0));
    }

    #[test]
    fn a_margin_that_is_given_is_kept_up_to_a_quarter_of_the_shorter_side() {
        let of = |margin| Placement {
            margin: Some(margin),
            ..at(Position::BottomRight)
        };
        let with = |pixels| of(Length::Pixels(pixels));
        assert_eq!(with(0).place((200, 100), (20, 10)), (180, 90));
        assert_eq!(with(25).place((200, 100), (20, 10)), (155, 65));
        assert_eq!(with(26).place((200, 100), (20, 10)), (155, 65));
        assert_eq!(with(16383).available((200, 100)), (150, 50));
        assert_eq!(with(16383).available((3, 3)), (3, 3));
        let share = |thousandths| of(Length::Share(thousandths));
        assert_eq!(share(0).available((200, 100)), (200, 100));
        assert_eq!(share(10_400).available((200, 100)), (180, 80));
        assert_eq!(share(10_500).available((100, 200)), (78, 178));
        assert_eq!(share(25_000).available((200, 100)), (150, 50));
        assert_eq!(share(90_000).available((200, 100)), (150, 50));
        let central = Placement {
            margin: Some(Length::Pixels(20)),
            ..at(Position::Center)
        };
        assert_eq!(central.available((200, 100)), (160, 60));
        assert_eq!(central.available_with_margin((200, 100)), (160, 60));
        let central = at(Position::Center);
        assert_eq!(central.available((200, 100)), (200, 100));
        assert_eq!(central.available_with_margin((200, 100)), (184, 84));
    }

    #[test]
    fn watermarks_of_the_available_size_stay_inside_every_image() {
        for width in 1..70 {
            for height in [1, 2, 3, 7, 8, 16, 63, 64, 65] {
                for position in Position::ALL {
                    for margin in [
                        None,
                        Some(Length::Pixels(0)),
                        Some(Length::Pixels(5)),
                        Some(Length::Pixels(u16::MAX)),
                        Some(Length::Share(24_990)),
                    ] {
                        let placement = Placement {
                            margin,
                            ..at(position)
                        };
                        let image = (width, height);
                        let available = placement.available(image);
                        assert!(
                            available.0 >= 1 && available.1 >= 1,
                            "no space in {image:?}"
                        );
                        for mark in [available, (1, 1)] {
                            let (x, y) = placement.place(image, mark);
                            assert!(
                                x + mark.0 <= width && y + mark.1 <= height,
                                "{mark:?} at {x}, {y} leaves {image:?} ({placement:?})"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_mark_larger_than_the_image_starts_inside_it() {
        for position in Position::ALL {
            let (x, y) = at(position).place((20, 20), (500, 500));
            assert!(x <= 2 && y <= 2, "{position:?}: {x}, {y}");
        }
    }

    #[test]
    fn scale_is_a_share_of_the_width_to_the_nearest_pixel() {
        let with = |scale| Placement {
            scale,
            ..Placement::default()
        };
        assert_eq!(with(None).width((600, 400)), None);
        assert_eq!(with(Some(50)).width((601, 400)), Some(301));
        assert_eq!(with(Some(100)).width((16383, 1)), Some(16383));
        assert_eq!(with(Some(1)).width((3, 1)), Some(1), "at least a pixel");
    }

    #[test]
    fn tiles_are_their_shorter_side_apart_or_the_margin_that_is_given() {
        let image = (1000, 500);
        let mut placement = Placement::default();
        assert_eq!(placement.gap(image, (200, 40)), 40);
        assert_eq!(placement.gap(image, (200, 4)), 10, "at least the margin");
        placement.margin = Some(Length::Pixels(3));
        assert_eq!(placement.gap(image, (200, 40)), 3);
    }
}
