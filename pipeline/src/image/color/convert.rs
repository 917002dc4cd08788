//! Conversion to sRGB, the color space of a WebP without a profile.

use super::hdr::is_high_dynamic_range;
use super::profile::is_nearly_identity;
use super::sixteen_bit::SixteenBitTransform;
use super::space::Space;
use crate::image::pixels::{CHUNK_PIXELS, Image, Layout, PIXELS_PER_CHECK};
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformOptions};
use towebp_encoder::{Cancel, Cancelled};

/// Converts the samples from `space` to sRGB. A profile that is too large, damaged, of a kind that
/// does not fit the picture (whose samples were gray in the file if `is_gray`), or that of sRGB
/// itself changes nothing.
pub fn convert_to_srgb(
    image: &mut Image,
    space: &Space,
    is_gray: bool,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    match try_convert(image, space, is_gray, cancel) {
        Err(Stop::Cancelled) => Err(Cancelled),
        Err(Stop::Space(error)) => {
            log::debug!("a color space is ignored: {error}");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// The reason why a picture is not converted.
enum Stop {
    Space(CmsError),
    Cancelled,
}

impl From<CmsError> for Stop {
    fn from(error: CmsError) -> Stop {
        Stop::Space(error)
    }
}

impl From<Cancelled> for Stop {
    fn from(Cancelled: Cancelled) -> Stop {
        Stop::Cancelled
    }
}

fn try_convert(
    image: &mut Image,
    space: &Space,
    is_gray: bool,
    cancel: &Cancel<'_>,
) -> Result<(), Stop> {
    if is_high_dynamic_range(space) {
        if let Some(mut transform) = SixteenBitTransform::new(space, image.layout, is_gray) {
            transform.convert_image(image, cancel)?;
        }
        return Ok(());
    }
    let Some(profile) = space.profile()? else {
        return Ok(());
    };
    match profile.color_space {
        DataColorSpace::Rgb => convert_rgb(image, &profile, cancel),
        DataColorSpace::Gray if is_gray => convert_gray(image, &profile, cancel),
        _ => Ok(()),
    }
}

fn convert_rgb(image: &mut Image, profile: &ColorProfile, cancel: &Cancel<'_>) -> Result<(), Stop> {
    let (layout, channels) = match image.layout {
        Layout::Rgb => (moxcms::Layout::Rgb, 3),
        Layout::Rgba => (moxcms::Layout::Rgba, 4),
    };
    let srgb = ColorProfile::new_srgb();
    let options = TransformOptions::default();
    if is_nearly_identity(profile, &srgb)? {
        return Ok(());
    }
    let transform = profile.create_transform_8bit(layout, &srgb, layout, options)?;
    let mut copy = vec![0; CHUNK_PIXELS * channels];
    for chunk in image.pixels.chunks_mut(CHUNK_PIXELS * channels) {
        cancel.check()?;
        let copy = &mut copy[..chunk.len()];
        copy.copy_from_slice(chunk);
        transform.transform(copy, chunk)?;
    }
    Ok(())
}

/// Converts gray samples by a table of the 256 values that they may have.
fn convert_gray(
    image: &mut Image,
    profile: &ColorProfile,
    cancel: &Cancel<'_>,
) -> Result<(), Stop> {
    let levels: Vec<u8> = (0..=255).collect();
    let mut table = vec![0; levels.len() * 3];
    profile
        .create_transform_8bit(
            moxcms::Layout::Gray,
            &ColorProfile::new_srgb(),
            moxcms::Layout::Rgb,
            TransformOptions::default(),
        )?
        .transform(&levels, &mut table)?;
    let channels = image.layout.channels();
    for portion in image.pixels.chunks_mut(PIXELS_PER_CHECK * channels) {
        cancel.check()?;
        for pixel in portion.chunks_exact_mut(channels) {
            let level = usize::from(pixel[0]);
            pixel[..3].copy_from_slice(&table[level * 3..][..3]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::color::MAX_PROFILE_BYTES;

    fn converted(profile: &[u8], layout: Layout, pixels: &[u8], is_gray: bool) -> Vec<u8> {
        let width = (pixels.len() / layout.channels()) as u32;
        let mut image = Image {
            width,
            height: 1,
            layout,
            pixels: pixels.to_vec(),
        };
        let space = Space::Icc(profile.to_vec());
        convert_to_srgb(&mut image, &space, is_gray, &Cancel::never())
            .expect("it is not cancelled");
        image.pixels
    }

    fn display_p3() -> Vec<u8> {
        ColorProfile::new_display_p3()
            .encode()
            .expect("a valid profile")
    }

    #[test]
    fn a_wider_space_becomes_srgb() {
        // By the matrices of both standards (200, 100, 50) of Display P3 is sRGB (214.9, 92.6,
        // 31.0).
        let pixels = converted(
            &display_p3(),
            Layout::Rgb,
            &[200, 100, 50, 128, 128, 128],
            false,
        );
        for (got, expected) in pixels.iter().zip([215, 93, 31, 128, 128, 128]) {
            assert!(got.abs_diff(expected) <= 1, "{pixels:?}");
        }
    }

    #[test]
    fn alpha_is_not_converted() {
        let pixels = converted(
            &display_p3(),
            Layout::Rgba,
            &[200, 100, 50, 7, 200, 100, 50, 255],
            false,
        );
        assert_eq!((pixels[3], pixels[7]), (7, 255));
        assert_ne!(pixels[..3], [200, 100, 50]);
    }

    #[test]
    fn every_pixel_is_converted_in_pictures_of_several_chunks() {
        let pixels = converted(
            &display_p3(),
            Layout::Rgb,
            &[200, 100, 50].repeat(2 * CHUNK_PIXELS + 5),
            false,
        );
        assert_eq!(pixels, pixels[..3].repeat(2 * CHUNK_PIXELS + 5));
    }

    #[test]
    fn srgb_changes_nothing() {
        let profile = ColorProfile::new_srgb().encode().expect("a valid profile");
        let samples: Vec<u8> = (0..=254).collect();
        assert_eq!(converted(&profile, Layout::Rgb, &samples, false), samples);
    }

    #[test]
    fn gray_profiles_convert_gray_pictures_only() {
        let profile = ColorProfile::new_gray_with_gamma(1.0)
            .encode()
            .expect("a valid profile");
        // Linear 55/255 is sRGB 0.5029.
        let pixels = converted(&profile, Layout::Rgba, &[55, 55, 55, 9], true);
        assert!(
            pixels[0].abs_diff(128) <= 1 && pixels[..3] == [pixels[0]; 3] && pixels[3] == 9,
            "{pixels:?}"
        );
        assert_eq!(
            converted(&profile, Layout::Rgb, &[1, 2, 3], false),
            [1, 2, 3]
        );
    }

    #[test]
    fn damaged_and_oversized_profiles_are_ignored() {
        let valid = display_p3();
        let samples = [200, 100, 50];
        assert_eq!(converted(b"", Layout::Rgb, &samples, false), samples);
        assert_eq!(
            converted(&valid[..100], Layout::Rgb, &samples, false),
            samples
        );
        let mut oversized = valid;
        oversized.resize(MAX_PROFILE_BYTES + 1, 0);
        assert_eq!(converted(&oversized, Layout::Rgb, &samples, false), samples);
    }
}
