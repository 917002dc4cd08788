//! Parameters whose values are one of two words.

/// The frames of a GIF that are converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Animation {
    /// All of them, as an animation.
    #[default]
    All,
    /// The first one, as a still picture.
    First,
}

impl Animation {
    /// The names that [`Animation::parse`] accepts, for error texts.
    pub const ALLOWED: &str = "all or first";

    /// Reads its exact name.
    pub fn parse(text: &str) -> Option<Animation> {
        match text {
            "all" => Some(Animation::All),
            "first" => Some(Animation::First),
            _ => None,
        }
    }
}

/// The file that is sent if the WebP is not smaller than the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfLarger {
    /// The WebP.
    #[default]
    Webp,
    /// The input as it came, with its own media type.
    Original,
}

impl IfLarger {
    /// The names that [`IfLarger::parse`] accepts, for error texts.
    pub const ALLOWED: &str = "webp or original";

    /// Reads its exact name.
    pub fn parse(text: &str) -> Option<IfLarger> {
        match text {
            "webp" => Some(IfLarger::Webp),
            "original" => Some(IfLarger::Original),
            _ => None,
        }
    }
}
