//! The position of a watermark.

/// One of the nine positions of a watermark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// `topLeft`
    TopLeft,
    /// `top`
    Top,
    /// `topRight`
    TopRight,
    /// `left`
    Left,
    /// `center`
    Center,
    /// `right`
    Right,
    /// `bottomLeft`
    BottomLeft,
    /// `bottom`
    Bottom,
    /// `bottomRight`
    #[default]
    BottomRight,
}

/// A width and a height, in pixels.
pub(super) type Size = (u32, u32);

/// The end of a side that a watermark is put to, and that its lines are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Left or top.
    Near,
    Middle,
    /// Right or bottom.
    Far,
}

impl Position {
    /// The names that [`Position::parse`] accepts, for error texts.
    pub const ALLOWED: &str =
        "topLeft, top, topRight, left, center, right, bottomLeft, bottom or bottomRight";

    /// All of them, row by row.
    pub const ALL: [Position; 9] = [
        Position::TopLeft,
        Position::Top,
        Position::TopRight,
        Position::Left,
        Position::Center,
        Position::Right,
        Position::BottomLeft,
        Position::Bottom,
        Position::BottomRight,
    ];

    /// Reads a position's name in any case of letters, written as one word (`bottomRight`) or as
    /// two (`bottom-right`, `bottom_right`).
    pub fn parse(text: &str) -> Option<Position> {
        let text = text.replace('_', "-");
        Position::ALL.into_iter().find(|position| {
            let name = position.name();
            let kebab = name.replace("Left", "-Left").replace("Right", "-Right");
            text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(&kebab)
        })
    }

    /// The name as the parameter has it.
    pub fn name(self) -> &'static str {
        match self {
            Position::TopLeft => "topLeft",
            Position::Top => "top",
            Position::TopRight => "topRight",
            Position::Left => "left",
            Position::Center => "center",
            Position::Right => "right",
            Position::BottomLeft => "bottomLeft",
            Position::Bottom => "bottom",
            Position::BottomRight => "bottomRight",
        }
    }

    /// The shares of what is free beside something that lie to its left and above it: 0, a half or
    /// 1.
    pub fn shares(self) -> [f64; 2] {
        [self.across(), self.down()].map(|side| match side {
            Side::Near => 0.0,
            Side::Middle => 0.5,
            Side::Far => 1.0,
        })
    }

    /// The left and top edge of a watermark that keeps `margin` free on the sides that it is put
    /// to. If it is too large, its beginning stays in the image.
    pub(super) fn place(self, image: Size, mark: Size, margin: u32) -> (u32, u32) {
        (
            self.across().start(image.0, mark.0, margin),
            self.down().start(image.1, mark.1, margin),
        )
    }

    /// The horizontal position.
    pub(super) fn across(self) -> Side {
        match self {
            Position::TopLeft | Position::Left | Position::BottomLeft => Side::Near,
            Position::Top | Position::Center | Position::Bottom => Side::Middle,
            Position::TopRight | Position::Right | Position::BottomRight => Side::Far,
        }
    }

    /// The vertical position.
    fn down(self) -> Side {
        match self {
            Position::TopLeft | Position::Top | Position::TopRight => Side::Near,
            Position::Left | Position::Center | Position::Right => Side::Middle,
            Position::BottomLeft | Position::Bottom | Position::BottomRight => Side::Far,
        }
    }
}

impl Side {
    /// The offset at which a length begins within `whole`.
    fn start(self, whole: u32, length: u32, margin: u32) -> u32 {
        match self {
            Side::Near => margin,
            Side::Middle => whole.saturating_sub(length) / 2,
            Side::Far => whole.saturating_sub(length + margin).max(margin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_the_usual_spellings() {
        for position in Position::ALL {
            assert_eq!(Position::parse(position.name()), Some(position));
            assert!(Position::ALLOWED.contains(position.name()), "{position:?}");
        }
        for (text, position) in [
            ("bottom-right", Position::BottomRight),
            ("top_left", Position::TopLeft),
            ("TOPRIGHT", Position::TopRight),
            ("Bottom-Left", Position::BottomLeft),
            ("Center", Position::Center),
            ("TOP", Position::Top),
            ("LEFT", Position::Left),
        ] {
            assert_eq!(Position::parse(text), Some(position), "{text}");
        }
        for text in [
            "",
            "-left",
            "centre",
            "middle",
            " center",
            "top-",
            "right-bottom",
            "top--left",
            "top left",
            "b-ottomright",
        ] {
            assert_eq!(Position::parse(text), None, "{text:?}");
        }
    }
}
