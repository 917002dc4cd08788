//! Samples of 16 bits, converted to sRGB before they are rounded to 8: in a space whose curve is far from sRGB's, 8 bits
//! are too few in the shadows. Of linear light, 256 levels are 13 below sRGB's 64, and one would see each.
//!
//! What is rounded afterwards is not dithered: half a level of sRGB is below what the eye sees of a step, and below what
//! lossy coding changes.

use crate::image::color::hdr::Hdr;
use crate::image::color::{CHUNK_PIXELS, Space, is_nearly_identity};
use crate::image::{Image, Layout};
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformExecutor, TransformOptions};
use std::sync::Arc;
use towebp_encoder::{Cancel, Cancelled};

/// From one space to sRGB, a row at a time.
pub(in crate::image) struct Deep {
    transform: Transform,
    layout: Layout,
    /// One sample stands for red, green and blue, as in a profile of greys.
    is_grey: bool,
    /// What the transform takes, where that is not what it is given.
    greys: Vec<u16>,
    converted: Vec<u16>,
}

enum Transform {
    /// To samples of 16 bits.
    Profile(Arc<dyn TransformExecutor<u16> + Send + Sync>),
    /// To samples of 8 bits.
    Hdr(Hdr),
}

impl Deep {
    /// Most bytes that it takes: a table of numbers and one of samples for each colour, of 65536 entries, one more of each while
    /// they are made, and rows.
    pub(in crate::image) const BYTES: u64 = 4 << 20;

    /// For pictures of this layout, whose samples were grey in the file or not. `None` if nothing is to be converted: the
    /// space is sRGB itself, does not fit the picture, is damaged or too large.
    pub(in crate::image) fn of(space: &Space, layout: Layout, grey: bool) -> Option<Deep> {
        Deep::try_of(space, layout, grey).unwrap_or_else(|error| {
            log::debug!("a colour space is ignored: {error}");
            None
        })
    }

    fn try_of(space: &Space, layout: Layout, grey: bool) -> Result<Option<Deep>, CmsError> {
        if let Some(hdr) = Hdr::of(space)? {
            return Ok(Some(Deep {
                transform: Transform::Hdr(hdr),
                layout,
                is_grey: false,
                greys: Vec::new(),
                converted: Vec::new(),
            }));
        }
        let Some(profile) = space.profile()? else {
            return Ok(None);
        };
        let srgb = ColorProfile::new_srgb();
        let is_grey = profile.color_space == DataColorSpace::Gray;
        let fits = match profile.color_space {
            DataColorSpace::Rgb => !is_nearly_identity(&profile, &srgb)?,
            DataColorSpace::Gray => grey,
            _ => false,
        };
        if !fits {
            return Ok(None);
        }
        let target = match layout {
            Layout::Rgb => moxcms::Layout::Rgb,
            Layout::Rgba => moxcms::Layout::Rgba,
        };
        let source = match (is_grey, layout) {
            (false, _) => target,
            (true, Layout::Rgb) => moxcms::Layout::Gray,
            (true, Layout::Rgba) => moxcms::Layout::GrayAlpha,
        };
        let options = TransformOptions::default();
        let transform = profile.create_transform_16bit(source, &srgb, target, options)?;
        Ok(Some(Deep {
            transform: Transform::Profile(transform),
            layout,
            is_grey,
            greys: Vec::new(),
            converted: Vec::new(),
        }))
    }

    /// Converts a picture of the layout that it was made for, whose samples have 8 bits already.
    pub(in crate::image) fn convert_image(
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

    /// Converts pixels of the layout that it was made for; `out` has as many samples.
    pub(in crate::image) fn convert(&mut self, samples: &[u16], out: &mut [u8]) {
        let transform = match &self.transform {
            Transform::Profile(transform) => transform,
            Transform::Hdr(hdr) => return hdr.convert(self.layout, samples, out),
        };
        let source = if self.is_grey {
            let pixels = samples.chunks_exact(self.layout.channels());
            let alpha = match self.layout {
                Layout::Rgb => 3..3,
                Layout::Rgba => 3..4,
            };
            self.greys.clear();
            for pixel in pixels {
                self.greys.push(pixel[0]);
                self.greys.extend_from_slice(&pixel[alpha.clone()]);
            }
            &self.greys
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

/// The nearest of 256 levels (PNG 13.12), where cutting off the low byte would darken.
pub(in crate::image) fn to_8_bit(sample: u16) -> u8 {
    ((u32::from(sample) * 255 + 32767) / 65535) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::color::Calibrated;

    /// IEC 61966-2-1, of linear light from 0 to 1, in levels of 255.
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

    fn grey_gamma(exponent: f32) -> Space {
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
        // Half a level, and a step of 65536 levels of light, which is 0.05 of a level of sRGB in the shadows.
        let tolerance = 0.5 + 12.92 * 255.0 / 65536.0 + 0.001;
        // Profiles hold them in parts of 256.
        for exponent in [1.0, 1.75, 2.625, 4.0] {
            for (space, grey) in [
                (gamma(exponent), false),
                (grey_gamma(exponent as f32), true),
            ] {
                let mut deep = Deep::of(&space, Layout::Rgb, grey).expect("it is not sRGB");
                let samples: Vec<u16> = (0..=u16::MAX).flat_map(|sample| [sample; 3]).collect();
                let mut levels = vec![0; samples.len()];
                deep.convert(&samples, &mut levels);
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
    fn alpha_is_rounded_alone() {
        for (space, grey) in [(gamma(1.0), false), (grey_gamma(1.0), true)] {
            let mut deep = Deep::of(&space, Layout::Rgba, grey).expect("it is not sRGB");
            let mut out = [0; 8];
            // Linear 0.01 is sRGB 25.46 of 255.
            deep.convert(&[655, 655, 655, 0x0181, 0, 0, 0, 0xffff], &mut out);
            assert_eq!(out, [25, 25, 25, 1, 0, 0, 0, 255]);
        }
    }

    #[test]
    fn what_changes_nothing_and_what_does_not_fit_is_left_out() {
        let of = |space, grey| Deep::of(&space, Layout::Rgb, grey).is_some();
        let srgb = ColorProfile::new_srgb().encode().expect("a valid profile");
        assert!(!of(Space::Icc(srgb.clone()), false), "it is sRGB");
        assert!(!of(Space::Icc(srgb[..100].to_vec()), false), "it is cut");
        assert!(!of(Space::Icc(vec![0; 5 << 20]), false), "it is too large");
        assert!(!of(grey_gamma(1.0), false), "the picture has colours");
        assert!(of(grey_gamma(1.0), true));
        assert!(of(gamma(1.0), false));
    }
}
