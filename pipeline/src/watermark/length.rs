//! Lengths that are given in pixels, or as a share of the image.

use super::position::Size;

/// A length on an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many pixels.
    Pixels(u16),
    /// This many thousandths of a percent of the image's shorter side: 2500 is 2.5 %.
    Share(u32),
}

impl Length {
    /// The length on an image, in pixels.
    pub(super) fn on(self, image: Size) -> f64 {
        match self {
            Length::Pixels(pixels) => f64::from(pixels),
            Length::Share(share) => f64::from(image.0.min(image.1)) * f64::from(share) / 1e5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_of_the_shorter_side() {
        for image in [(800, 600), (600, 800), (600, 600)] {
            let apart = (Length::Share(2500).on(image) - 15.0).abs();
            assert!(apart < 1e-9, "{apart}");
            assert!((Length::Pixels(24).on(image) - 24.0).abs() < 1e-9);
        }
    }
}
