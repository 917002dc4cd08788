//! Bounds on pictures.

use super::error::DecodeError;

/// Bounds that a picture's header is held to before anything of its size is allocated.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest side, in pixels. 16383 is WebP's own bound (RFC 9649, 14 bits).
    pub max_side: u32,
    /// Most pixels of a picture, or of one frame of an animation.
    pub max_pixels: u64,
    /// Most frames of an animation.
    pub max_frames: u32,
    /// Most pixels of all frames of an animation together. Each frame counts as the whole canvas,
    /// or as its own size if that is larger.
    pub max_animation_pixels: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

impl Limits {
    /// The default bounds. 100 megapixels are above today's cameras. 5000 frames of an animation
    /// last minutes, and a thousand frames of a megapixel take about as long as a conversion may.
    pub const DEFAULT: Limits = Limits {
        max_side: 16383,
        max_pixels: 100_000_000,
        max_frames: 5000,
        max_animation_pixels: 1_000_000_000,
    };

    /// Checks an animation whose first `frames` frames have `pixels` pixels together.
    ///
    /// # Errors
    /// [`DecodeError::TooManyFrames`] or [`DecodeError::AnimationTooLarge`].
    pub fn check_animation(&self, frames: u32, pixels: u64) -> Result<(), DecodeError> {
        if frames > self.max_frames {
            let max_frames = self.max_frames;
            return Err(DecodeError::TooManyFrames { max_frames });
        }
        if pixels > self.max_animation_pixels {
            let max_pixels = self.max_animation_pixels;
            return Err(DecodeError::AnimationTooLarge { max_pixels });
        }
        Ok(())
    }

    /// The number of pixels of a picture of `width` by `height`.
    ///
    /// # Errors
    /// [`DecodeError::TooWide`] or [`DecodeError::TooManyPixels`]; [`DecodeError::Invalid`] if
    /// there are none.
    pub(super) fn check(&self, width: u32, height: u32) -> Result<usize, DecodeError> {
        if width == 0 || height == 0 {
            return Err(DecodeError::Invalid(format!(
                "the picture is {width} x {height} pixels, which is empty"
            )));
        }
        if width > self.max_side || height > self.max_side {
            return Err(DecodeError::TooWide {
                width,
                height,
                max_side: self.max_side,
            });
        }
        let too_many = DecodeError::TooManyPixels {
            width,
            height,
            max_pixels: self.max_pixels,
        };
        let pixels = u64::from(width) * u64::from(height);
        // Every buffer of a few bytes per pixel has to fit the address space.
        let fits = |pixels: &usize| *pixels <= isize::MAX as usize / 8;
        let count = usize::try_from(pixels).ok().filter(fits);
        count.filter(|_| pixels <= self.max_pixels).ok_or(too_many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_from_both_sides() {
        let limits = Limits {
            max_side: 100,
            max_pixels: 5000,
            ..Limits::DEFAULT
        };
        assert_eq!(limits.check(100, 50), Ok(5000));
        assert_eq!(limits.check(50, 100), Ok(5000));
        assert_eq!(
            limits.check(101, 1),
            Err(DecodeError::TooWide {
                width: 101,
                height: 1,
                max_side: 100
            })
        );
        assert_eq!(
            limits.check(1, 101),
            Err(DecodeError::TooWide {
                width: 1,
                height: 101,
                max_side: 100
            })
        );
        assert_eq!(
            limits.check(51, 99),
            Err(DecodeError::TooManyPixels {
                width: 51,
                height: 99,
                max_pixels: 5000
            })
        );
        assert!(matches!(limits.check(0, 5), Err(DecodeError::Invalid(_))));
        let wide = Limits {
            max_side: u32::MAX,
            max_pixels: u64::MAX,
            ..Limits::DEFAULT
        };
        assert!(
            wide.check(u32::MAX, u32::MAX).is_err(),
            "a size that no buffer can have is rejected"
        );
    }
}
