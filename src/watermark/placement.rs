//! How a watermark is laid onto an image.

use super::position::{Position, Size};
use super::turn::Turn;

/// How a watermark is laid onto an image: text and pictures alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Where it goes. It plays no part for tiles.
    pub position: Position,
    /// Pixels kept free on every side; between tiles, the gap. None: 2 % of the image's shorter side and at least 8
    /// pixels, but never more than an eighth of that side, so that tiny images keep room for the watermark; `center` keeps
    /// nothing free, and tiles are their own shorter side apart if that is more.
    pub margin: Option<u16>,
    /// Percent of the image's width that the watermark takes before it is turned, 1 to 100. None: its own size.
    pub scale: Option<u8>,
    /// Degrees by which it is turned around its centre, clockwise, -360 to 360.
    pub rotate: i16,
    /// Repeated over the whole image.
    pub is_tiled: bool,
    /// 0 (invisible) to 100 (solid).
    pub opacity: u8,
}

impl Placement {
    /// The size that a watermark may have on an image: at least 1 by 1.
    pub(super) fn room(&self, image: Size) -> Size {
        let margin = self.margin(image);
        (image.0 - 2 * margin, image.1 - 2 * margin)
    }

    /// The left and top edge of a watermark. One that is larger than the room keeps its beginning in the image.
    pub(super) fn place(&self, image: Size, mark: Size) -> (u32, u32) {
        self.position.place(image, mark, self.margin(image))
    }

    /// What `scale` asks for, in pixels.
    pub(super) fn width(&self, image: Size) -> Option<u32> {
        let percent = u64::from(self.scale?);
        Some(((u64::from(image.0) * percent + 50) / 100).max(1) as u32)
    }

    /// The pixels between tiles that are no larger than `mark` before they are turned.
    pub(super) fn gap(&self, image: Size, mark: Size) -> u32 {
        match self.margin {
            Some(_) => self.margin(image),
            None => mark.0.min(mark.1).max(default_margin(image)),
        }
    }

    pub(super) fn turn(&self) -> Turn {
        Turn::degrees(self.rotate)
    }

    /// At most a quarter of the shorter side: half of that side is left for the watermark.
    fn margin(&self, image: Size) -> u32 {
        match (self.margin, self.position) {
            (Some(margin), _) => u32::from(margin).min(image.0.min(image.1) / 4),
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
        let with = |margin| Placement {
            margin: Some(margin),
            ..at(Position::BottomRight)
        };
        assert_eq!(with(0).place((200, 100), (20, 10)), (180, 90));
        assert_eq!(with(25).place((200, 100), (20, 10)), (155, 65));
        assert_eq!(with(26).place((200, 100), (20, 10)), (155, 65));
        assert_eq!(with(16383).room((200, 100)), (150, 50));
        assert_eq!(with(16383).room((3, 3)), (3, 3));
        let central = Placement {
            margin: Some(20),
            ..at(Position::Center)
        };
        assert_eq!(central.room((200, 100)), (160, 60));
    }

    #[test]
    fn what_fits_the_room_stays_inside_every_image() {
        for width in 1..70 {
            for height in [1, 2, 3, 7, 8, 16, 63, 64, 65] {
                for position in Position::ALL {
                    for margin in [None, Some(0), Some(5), Some(u16::MAX)] {
                        let placement = Placement {
                            margin,
                            ..at(position)
                        };
                        let image = (width, height);
                        let room = placement.room(image);
                        assert!(room.0 >= 1 && room.1 >= 1, "no room in {image:?}");
                        for mark in [room, (1, 1)] {
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
    fn tiles_are_their_shorter_side_apart_or_what_is_asked_for() {
        let image = (1000, 500);
        let mut placement = Placement::default();
        assert_eq!(placement.gap(image, (200, 40)), 40);
        assert_eq!(placement.gap(image, (200, 4)), 10, "at least the margin");
        placement.margin = Some(3);
        assert_eq!(placement.gap(image, (200, 40)), 3);
    }
}
