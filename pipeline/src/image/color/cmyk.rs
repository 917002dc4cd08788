//! CMYK and YCCK, as Adobe's programs write them into JPEG, to sRGB.
//!
//! Samples are inverted: 255 stands for no ink. Files without Adobe's marker are read in the same
//! way, as browsers do.

use super::profile::is_too_large;
use crate::image::pixels::CHUNK_PIXELS;
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformExecutor, TransformOptions};
use std::sync::Arc;
use towebp_encoder::{Cancel, Cancelled};

/// The meaning of the first three of the four samples; the fourth is black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmykKind {
    /// Cyan, magenta, yellow.
    Cmyk,
    /// Y, Cb and Cr of the red, green and blue that are the complement of inks not inverted.
    Ycck,
}

/// Converts pixels of four bytes to pixels of three bytes in sRGB, in place: by the profile, or,
/// without a usable one, by multiplying the light that each ink lets through.
pub fn cmyk_to_srgb(
    samples: &mut Vec<u8>,
    kind: CmykKind,
    profile: Option<&[u8]>,
    cancel: &Cancel<'_>,
) -> Result<(), Cancelled> {
    let transform = profile.and_then(|bytes| match transform(bytes) {
        Ok(transform) => transform,
        Err(error) => {
            log::debug!("an ICC profile is ignored: {error}");
            None
        }
    });
    let pixels = samples.len() / 4;
    let mut chunk = vec![0; CHUNK_PIXELS * 4];
    let mut converted = vec![0; CHUNK_PIXELS * 3];
    for begin in (0..pixels).step_by(CHUNK_PIXELS) {
        cancel.check()?;
        let count = CHUNK_PIXELS.min(pixels - begin);
        let (chunk, converted) = (&mut chunk[..count * 4], &mut converted[..count * 3]);
        chunk.copy_from_slice(&samples[begin * 4..][..count * 4]);
        if kind == CmykKind::Ycck {
            for pixel in chunk.as_chunks_mut::<4>().0 {
                ycck_to_cmyk(pixel);
            }
        }
        match &transform {
            Some(transform) => {
                for sample in &mut *chunk {
                    *sample = !*sample;
                }
                let outcome = transform.transform(chunk, converted);
                outcome.expect("both have as many pixels");
            }
            None => multiply(chunk, converted),
        }
        samples[begin * 3..][..count * 3].copy_from_slice(converted);
    }
    samples.truncate(pixels * 3);
    samples.shrink_to_fit();
    Ok(())
}

/// The transform from CMYK that is not inverted to sRGB; `None` if the profile is too large or not
/// one of CMYK.
fn transform(
    profile: &[u8],
) -> Result<Option<Arc<dyn TransformExecutor<u8> + Send + Sync>>, CmsError> {
    if is_too_large(profile) {
        return Ok(None);
    }
    let profile = ColorProfile::new_from_slice(profile)?;
    if profile.color_space != DataColorSpace::Cmyk {
        return Ok(None);
    }
    profile
        .create_transform_8bit(
            // The library's name for four samples.
            moxcms::Layout::Rgba,
            &ColorProfile::new_srgb(),
            moxcms::Layout::Rgb,
            TransformOptions::default(),
        )
        .map(Some)
}

/// Converts Y, Cb and Cr to inverted cyan, magenta and yellow (ITU-T T.871, inverted), in fixed
/// point.
fn ycck_to_cmyk(pixel: &mut [u8; 4]) {
    /// 1.0, with 16 bits behind the point.
    const ONE: i32 = 1 << 16;
    let [luma, blue, red] = [pixel[0], pixel[1], pixel[2]].map(i32::from);
    let (blue, red) = (blue - 128, red - 128);
    let sample = |offset: i32| (!(luma + ((offset + ONE / 2) >> 16)).clamp(0, 255)) as u8;
    pixel[0] = sample(91881 * red);
    pixel[1] = sample(-22554 * blue - 46802 * red);
    pixel[2] = sample(116_130 * blue);
}

/// Multiplies, for each of red, green and blue, the light that its ink and that black lets through.
fn multiply(inks: &[u8], colors: &mut [u8]) {
    let pairs = inks
        .as_chunks::<4>()
        .0
        .iter()
        .zip(colors.as_chunks_mut::<3>().0);
    for ([cyan, magenta, yellow, black], color) in pairs {
        *color = [cyan, magenta, yellow]
            .map(|ink| ((u32::from(*ink) * u32::from(*black) + 127) / 255) as u8);
    }
}
