//! Text and pictures drawn onto an image.

/// Where a watermark goes, with a margin from the edges.
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

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}

/// A text to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct TextWatermark {
    /// Not empty.
    pub text: String,
    /// Height of the em in pixels, 8 to 200.
    pub size: u16,
    /// Its colour.
    pub color: Color,
}
