//! ICC profiles: the samples converted to sRGB, which is what WebP means without a profile.

use super::patience::PORTION_PIXELS;
use super::{Cancelled, Image, Layout, Patience};
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformOptions};

/// Larger profiles are ignored: real ones have a few KiB, those with tables up to about 2 MiB.
const MAX_PROFILE_BYTES: usize = 4 << 20;

/// Pixels that are converted at a time, from a copy: small enough for the cache.
const CHUNK_PIXELS: usize = 4096;

/// Converts the samples from the profile's space to sRGB. A profile that is too large, damaged, of a kind that does
/// not fit the picture (`grey`: its samples were grey in the file), or sRGB itself changes nothing.
pub(super) fn convert_to_srgb(
    image: &mut Image,
    profile: &[u8],
    grey: bool,
    patience: &Patience<'_>,
) -> Result<(), Cancelled> {
    if profile.len() > MAX_PROFILE_BYTES {
        return Ok(());
    }
    match try_convert(image, profile, grey, patience) {
        Err(Stop::Cancelled) => Err(Cancelled),
        Err(Stop::Profile(error)) => {
            log::debug!("an ICC profile is ignored: {error}");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Why a picture is not converted.
enum Stop {
    Profile(CmsError),
    Cancelled,
}

impl From<CmsError> for Stop {
    fn from(error: CmsError) -> Stop {
        Stop::Profile(error)
    }
}

impl From<Cancelled> for Stop {
    fn from(Cancelled: Cancelled) -> Stop {
        Stop::Cancelled
    }
}

fn try_convert(
    image: &mut Image,
    profile: &[u8],
    grey: bool,
    patience: &Patience<'_>,
) -> Result<(), Stop> {
    let profile = ColorProfile::new_from_slice(profile)?;
    match profile.color_space {
        DataColorSpace::Rgb => convert_rgb(image, &profile, patience),
        DataColorSpace::Gray if grey => convert_grey(image, &profile, patience),
        _ => Ok(()),
    }
}

fn convert_rgb(
    image: &mut Image,
    profile: &ColorProfile,
    patience: &Patience<'_>,
) -> Result<(), Stop> {
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
    let mut source = vec![0; CHUNK_PIXELS * channels];
    for chunk in image.pixels.chunks_mut(CHUNK_PIXELS * channels) {
        patience.check()?;
        let source = &mut source[..chunk.len()];
        source.copy_from_slice(chunk);
        transform.transform(source, chunk)?;
    }
    Ok(())
}

/// Whether the profile is sRGB under whatever name: a few colours come out as they went in, up to rounding.
fn is_nearly_identity(profile: &ColorProfile, srgb: &ColorProfile) -> Result<bool, CmsError> {
    let probes: Vec<u8> = [0, 16, 64, 128, 200, 255]
        .into_iter()
        .flat_map(|v| {
            [
                [v, v, v],
                [v, 0, 0],
                [0, v, 0],
                [0, 0, v],
                [255, v, 128],
                [v, 128, 255],
            ]
        })
        .flatten()
        .collect();
    let mut converted = vec![0; probes.len()];
    profile
        .create_transform_8bit(
            moxcms::Layout::Rgb,
            srgb,
            moxcms::Layout::Rgb,
            TransformOptions::default(),
        )?
        .transform(&probes, &mut converted)?;
    Ok(probes
        .iter()
        .zip(&converted)
        .all(|(before, after)| before.abs_diff(*after) <= 1))
}

/// Grey has 256 values: their sRGB greys are looked up.
fn convert_grey(
    image: &mut Image,
    profile: &ColorProfile,
    patience: &Patience<'_>,
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
    for portion in image.pixels.chunks_mut(PORTION_PIXELS * channels) {
        patience.check()?;
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

    fn converted(profile: &[u8], layout: Layout, pixels: &[u8], grey: bool) -> Vec<u8> {
        let width = (pixels.len() / layout.channels()) as u32;
        let mut image = Image {
            width,
            height: 1,
            layout,
            pixels: pixels.to_vec(),
        };
        convert_to_srgb(&mut image, profile, grey, &Patience::endless()).expect("nobody leaves");
        image.pixels
    }

    fn display_p3() -> Vec<u8> {
        ColorProfile::new_display_p3()
            .encode()
            .expect("a valid profile")
    }

    #[test]
    fn a_wider_space_becomes_srgb() {
        // By the matrices of both standards (200, 100, 50) of Display P3 is sRGB (214.9, 92.6, 31.0).
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
    fn alpha_is_left_alone() {
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
    fn grey_profiles_convert_grey_pictures_alone() {
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
