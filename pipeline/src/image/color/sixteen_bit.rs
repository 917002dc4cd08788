//! 16-bit samples, converted to sRGB before they are rounded to 8 bits: in a space whose curve is
//! far from sRGB's, 8 bits are too few in the shadows. If linear light is stored in 256 levels,
//! only 13 of them fall below sRGB's level 64, and each step is visible.
//!
//! The rounding does not dither: half a level of sRGB is a smaller step than the eye sees, and
//! smaller than the changes of lossy coding.

use super::hdr::HdrTransform;
use super::profile::is_nearly_identity;
use super::space::Space;
use crate::image::pixels::{CHUNK_PIXELS, Image, Layout, to_8_bit};
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformExecutor, TransformOptions};
use std::sync::Arc;
use towebp_encoder::{Cancel, Cancelled};

/// The conversion of 16-bit samples from one space to sRGB, a row at a time.
pub struct SixteenBitTransform {
    transform: Transform,
    layout: Layout,
    /// Whether the profile is one of gray, so that one sample stands for red, green and blue.
    is_gray: bool,
    /// The row as the transform takes it, if that is gray: one sample in place of three, and alpha.
    grays: Vec<u16>,
    /// The row as the transform gives it, before it is rounded.
    converted: Vec<u16>,
}

enum Transform {
    /// To samples of 16 bits.
    Profile(Arc<dyn TransformExecutor<u16> + Send + Sync>),
    /// To samples of 8 bits.
    Hdr(HdrTransform),
}

impl SixteenBitTransform {
    /// Most bytes that a transform takes: for each color a table of numbers and one of samples, of
    /// 65536 entries each, one more of each while they are made, and rows.
    pub const BYTES: u64 = 4 << 20;

    /// The transform from `space` for pictures of `layout`, whose samples were gray in the file if
    /// `is_gray`. `None` if nothing is to be converted: the space is sRGB itself, does not fit the
    /// picture, is damaged or too large.
    pub fn new(space: &Space, layout: Layout, is_gray: bool) -> Option<SixteenBitTransform> {
        SixteenBitTransform::try_new(space, layout, is_gray).unwrap_or_else(|error| {
            log::debug!("a color space is ignored: {error}");
            None
        })
    }

    fn try_new(
        space: &Space,
        layout: Layout,
        is_gray: bool,
    ) -> Result<Option<SixteenBitTransform>, CmsError> {
        if let Some(hdr) = HdrTransform::new(space)? {
            return Ok(Some(SixteenBitTransform {
                transform: Transform::Hdr(hdr),
                layout,
                is_gray: false,
                grays: Vec::new(),
                converted: Vec::new(),
            }));
        }
        let Some(profile) = space.profile()? else {
            return Ok(None);
        };
        let srgb = ColorProfile::new_srgb();
        let is_gray_profile = profile.color_space == DataColorSpace::Gray;
        let fits = match profile.color_space {
            DataColorSpace::Rgb => !is_nearly_identity(&profile, &srgb)?,
            DataColorSpace::Gray => is_gray,
            _ => false,
        };
        if !fits {
            return Ok(None);
        }
        let target = match layout {
            Layout::Rgb => moxcms::Layout::Rgb,
            Layout::Rgba => moxcms::Layout::Rgba,
        };
        let source = match (is_gray_profile, layout) {
            (false, _) => target,
            (true, Layout::Rgb) => moxcms::Layout::Gray,
            (true, Layout::Rgba) => moxcms::Layout::GrayAlpha,
        };
        let options = TransformOptions::default();
        let transform = profile.create_transform_16bit(source, &srgb, target, options)?;
        Ok(Some(SixteenBitTransform {
            transform: Transform::Profile(transform),
            layout,
            is_gray: is_gray_profile,
            grays: Vec::new(),
            converted: Vec::new(),
        }))
    }

    /// Converts a picture of the transform's layout whose samples have 8 bits already.
    pub fn convert_image(
        &mut self,
        image: &mut Image,
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let mut samples = Vec::new();
        for chunk in image
            .pixels
            .chunks_mut(CHUNK_PIXELS * self.layout.channels())
        {
            cancel.check()?;
            samples.clear();
            samples.extend(chunk.iter().map(|&sample| u16::from(sample) * 257));
            self.convert(&samples, chunk);
        }
        Ok(())
    }

    /// Converts pixels of the transform's layout from `samples` to `out`, which is as long.
    pub fn convert(&mut self, samples: &[u16], out: &mut [u8]) {
        let transform = match &self.transform {
            Transform::Profile(transform) => transform,
            Transform::Hdr(hdr) => return hdr.convert(self.layout, samples, out),
        };
        let source = if self.is_gray {
            let pixels = samples.chunks_exact(self.layout.channels());
            let alpha = match self.layout {
                Layout::Rgb => 3..3,
                Layout::Rgba => 3..4,
            };
            self.grays.clear();
            for pixel in pixels {
                self.grays.push(pixel[0]);
                self.grays.extend_from_slice(&pixel[alpha.clone()]);
            }
            &self.grays
        } else {
            samples
        };
        self.converted.resize(samples.len(), 0);
        transform
            .transform(source, &mut self.converted)
            .expect("both have as many pixels");
        for (out, sample) in out.iter_mut().zip(&self.converted) {
            *out = to_8_bit(*sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::color::space::Calibrated;

    /// The sample of sRGB (IEC 61966-2-1), 0 to 255, for linear light from 0 to 1.
    fn srgb(linear: f64) -> f64 {
        255.0
            * if linear <= 0.003_130_8 {
                12.92 * linear
            } else {
                1.055 * linear.powf(1.0 / 2.4) - 0.055
            }
    }

    fn gamma(exponent: f64) -> Space {
        Calibrated::space(Some([exponent; 3]), None).expect("not sRGB")
    }

    fn gray_gamma(exponent: f32) -> Space {
        let profile = ColorProfile::new_gray_with_gamma(exponent);
        Space::Icc(profile.encode().expect("a valid profile"))
    }

    #[test]
    fn all_samples_are_rounded_to_the_nearest_level() {
        for sample in 0..=u16::MAX {
            let expected = (f64::from(sample) / 257.0).round() as u8;
            assert_eq!(to_8_bit(sample), expected, "{sample}");
        }
    }

    #[test]
    fn every_level_of_srgb_is_reached_from_linear_light_and_other_powers() {
        // Half a level, and a step of light in 65536 levels, which is 0.05 of a level of sRGB in
        // the shadows.
        let tolerance = 0.5 + 12.92 * 255.0 / 65536.0 + 0.001;
        // Profiles store exponents in units of 1/256.
        for exponent in [1.0, 1.75, 2.625, 4.0] {
            for (space, gray) in [
                (gamma(exponent), false),
                (gray_gamma(exponent as f32), true),
            ] {
                let mut transform =
                    SixteenBitTransform::new(&space, Layout::Rgb, gray).expect("it is not sRGB");
                let samples: Vec<u16> = (0..=u16::MAX).flat_map(|sample| [sample; 3]).collect();
                let mut levels = vec![0; samples.len()];
                transform.convert(&samples, &mut levels);
                let mut reached = [false; 256];
                for (sample, level) in samples.iter().zip(&levels) {
                    reached[usize::from(*level)] = true;
                    let exact = srgb((f64::from(*sample) / 65535.0).powf(exponent));
                    assert!(
                        (exact - f64::from(*level)).abs() < tolerance,
                        "{sample} to the power of {exponent} is {exact}, not {level}"
                    );
                }
                assert!(reached.iter().all(|&is| is), "{exponent}: {reached:?}");
            }
        }
    }

    #[test]
    fn alpha_is_rounded_but_not_converted() {
        for (space, gray) in [(gamma(1.0), false), (gray_gamma(1.0), true)] {
            let mut transform =
                SixteenBitTransform::new(&space, Layout::Rgba, gray).expect("it is not sRGB");
            let mut out = [0; 8];
            // Linear 0.01 is sRGB 25.46 of 255.
            transform.convert(&[655, 655, 655, 0x0181, 0, 0, 0, 0xffff], &mut out);
            assert_eq!(out, [25, 25, 25, 1, 0, 0, 0, 255]);
        }
    }

    #[test]
    fn spaces_that_change_nothing_or_do_not_fit_give_no_transform() {
        let has_transform =
            |space, gray| SixteenBitTransform::new(&space, Layout::Rgb, gray).is_some();
        let srgb = ColorProfile::new_srgb().encode().expect("a valid profile");
        assert!(
            !has_transform(Space::Icc(srgb.clone()), false),
            "it is sRGB"
        );
        assert!(
            !has_transform(Space::Icc(srgb[..100].to_vec()), false),
            "it is cut"
        );
        assert!(
            !has_transform(Space::Icc(vec![0; 5 << 20]), false),
            "it is too large"
        );
        assert!(
            !has_transform(gray_gamma(1.0), false),
            "the picture has colors"
        );
        assert!(has_transform(gray_gamma(1.0), true));
        assert!(has_transform(gamma(1.0), false));
    }
}
