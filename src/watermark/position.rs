//! Where a watermark goes.

/// Where a watermark goes, with a margin from the edges.
///
/// The margin is 2 % of the image's shorter side and at least 8 pixels, but never more than an eighth of that side, so that
/// tiny images keep room for the watermark. `center` has no margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// `topLeft`
    TopLeft,
    /// `topRight`
    TopRight,
    /// `bottomLeft`
    BottomLeft,
    /// `bottomRight`
    #[default]
    BottomRight,
    /// `center`
    Center,
}

/// A width and a height, in pixels.
pub(super) type Size = (u32, u32);

impl Position {
    /// What [`Position::parse`] accepts, for messages.
    pub const ALLOWED: &str = "topLeft, topRight, bottomLeft, bottomRight or center";

    /// Reads a position's exact name.
    pub fn parse(text: &str) -> Option<Position> {
        match text {
            "topLeft" => Some(Position::TopLeft),
            "topRight" => Some(Position::TopRight),
            "bottomLeft" => Some(Position::BottomLeft),
            "bottomRight" => Some(Position::BottomRight),
            "center" => Some(Position::Center),
            _ => None,
        }
    }

    /// The size that a watermark may have on an image: at least 1 by 1.
    pub(super) fn room(self, image: Size) -> Size {
        let margin = self.margin(image);
        (image.0 - 2 * margin, image.1 - 2 * margin)
    }

    /// The left and top edge of a watermark. One that is larger than the room keeps its beginning in the image.
    pub(super) fn place(self, image: Size, mark: Size) -> (u32, u32) {
        let margin = self.margin(image);
        let far = |side: u32, length: u32| side.saturating_sub(length + margin).max(margin);
        let (right, bottom) = (far(image.0, mark.0), far(image.1, mark.1));
        match self {
            Position::TopLeft => (margin, margin),
            Position::TopRight => (right, margin),
            Position::BottomLeft => (margin, bottom),
            Position::BottomRight => (right, bottom),
            Position::Center => (
                image.0.saturating_sub(mark.0) / 2,
                image.1.saturating_sub(mark.1) / 2,
            ),
        }
    }

    fn margin(self, image: Size) -> u32 {
        let side = image.0.min(image.1);
        match self {
            Position::Center => 0,
            _ => (side / 50).max(8).min(side / 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Position; 5] = [
        Position::TopLeft,
        Position::TopRight,
        Position::BottomLeft,
        Position::BottomRight,
        Position::Center,
    ];

    #[test]
    fn names_are_exact() {
        assert_eq!(Position::parse("topLeft"), Some(Position::TopLeft));
        assert_eq!(Position::parse("topRight"), Some(Position::TopRight));
        assert_eq!(Position::parse("bottomLeft"), Some(Position::BottomLeft));
        assert_eq!(Position::parse("bottomRight"), Some(Position::BottomRight));
        assert_eq!(Position::parse("center"), Some(Position::Center));
        for text in ["", "topleft", "Center", "centre", "middle", " center"] {
            assert_eq!(Position::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn corners_keep_the_margin_and_the_centre_is_central() {
        // 1000 x 500: the margin is 2 % of 500.
        let image = (1000, 500);
        let mark = (100, 40);
        assert_eq!(Position::TopLeft.place(image, mark), (10, 10));
        assert_eq!(Position::TopRight.place(image, mark), (890, 10));
        assert_eq!(Position::BottomLeft.place(image, mark), (10, 450));
        assert_eq!(Position::BottomRight.place(image, mark), (890, 450));
        assert_eq!(Position::Center.place(image, mark), (450, 230));
    }

    #[test]
    fn the_margin_has_a_least_and_a_greatest_size() {
        assert_eq!(
            Position::TopLeft.place((200, 100), (1, 1)),
            (8, 8),
            "at least 8 pixels"
        );
        assert_eq!(
            Position::TopLeft.place((40, 200), (1, 1)),
            (5, 5),
            "at most an eighth of the shorter side"
        );
        assert_eq!(Position::TopLeft.place((7, 7), (1, 1)), (0, 0));
    }

    #[test]
    fn what_fits_the_room_stays_inside_every_image() {
        for width in 1..70 {
            for height in [1, 2, 3, 7, 8, 16, 63, 64, 65] {
                for position in ALL {
                    let image = (width, height);
                    let room = position.room(image);
                    assert!(room.0 >= 1 && room.1 >= 1, "no room in {image:?}");
                    for mark in [room, (1, 1)] {
                        let (x, y) = position.place(image, mark);
                        assert!(
                            x + mark.0 <= width && y + mark.1 <= height,
                            "{mark:?} at {x}, {y} leaves {image:?} ({position:?})"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_mark_larger_than_the_image_starts_inside_it() {
        for position in ALL {
            let (x, y) = position.place((20, 20), (500, 500));
            assert!(x <= 2 && y <= 2, "{position:?}: {x}, {y}");
        }
    }
}
