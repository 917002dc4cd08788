//! ICC profiles: the samples converted to sRGB, which is what WebP means without a profile.

use super::{Image, Layout};
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformOptions};

/// Larger profiles are ignored: real ones have a few KiB, those with tables up to about 2 MiB.
const MAX_PROFILE_BYTES: usize = 4 << 20;

/// Pixels that are converted at a time, from a copy: small enough for the cache.
const CHUNK_PIXELS: usize = 4096;

/// Converts the samples from the profile's space to sRGB. A profile that is too large, damaged, of a kind that does
/// not fit the picture (`grey`: its samples were grey in the file), or sRGB itself changes nothing.
pub(super) fn convert_to_srgb(image: &mut Image, profile: &[u8], grey: bool) {
    if profile.len() > MAX_PROFILE_BYTES {
        return;
    }
    if let Err(error) = try_convert(image, profile, grey) {
        log::debug!("an ICC profile is ignored: {error}");
    }
}

fn try_convert(image: &mut Image, profile: &[u8], grey: bool) -> Result<(), CmsError> {
    let profile = ColorProfile::new_from_slice(profile)?;
    match profile.color_space {
        DataColorSpace::Rgb => convert_rgb(image, &profile),
        DataColorSpace::Gray if grey => convert_grey(image, &profile),
        _ => Ok(()),
    }
}

fn convert_rgb(image: &mut Image, profile: &ColorProfile) -> Result<(), CmsError> {
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
fn convert_grey(image: &mut Image, profile: &ColorProfile) -> Result<(), CmsError> {
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
    for pixel in image.pixels.chunks_exact_mut(image.layout.channels()) {
        let level = usize::from(pixel[0]);
        pixel[..3].copy_from_slice(&table[level * 3..][..3]);
    }
    Ok(())
}
