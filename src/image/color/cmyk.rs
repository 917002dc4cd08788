//! Inks of JPEG: CMYK and YCCK as Adobe's programs write them, to sRGB.
//!
//! Samples are inverted: 255 is no ink. Files without Adobe's marker are read in the same way, as browsers read them.

use crate::image::color::{CHUNK_PIXELS, is_too_large};
use moxcms::{CmsError, ColorProfile, DataColorSpace, TransformExecutor, TransformOptions};
use std::sync::Arc;
use towebp_encoder::{Cancel, Cancelled};

/// What the first three of the four samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::image) enum Inks {
    /// Cyan, magenta, yellow.
    Cmyk,
    /// What red, green and blue would be with the inks not inverted, as luma and chroma.
    Ycck,
}

/// Makes three bytes a pixel, red, green and blue, of four, in place: by the profile, or without a usable one by
/// multiplying what each ink lets through.
pub(in crate::image) fn to_srgb(
    samples: &mut Vec<u8>,
    inks: Inks,
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
        if inks == Inks::Ycck {
            for pixel in chunk.as_chunks_mut::<4>().0 {
                separate(pixel);
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

/// From inks that are not inverted to sRGB; `None` if the profile is of something else.
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

/// Y, Cb, Cr to inverted cyan, magenta, yellow (T.871, inverted).
fn separate(pixel: &mut [u8; 4]) {
    /// Parts of one.
    const ONE: i32 = 1 << 16;
    let [luma, blue, red] = [pixel[0], pixel[1], pixel[2]].map(i32::from);
    let (blue, red) = (blue - 128, red - 128);
    let sample = |parts: i32| (!(luma + ((parts + ONE / 2) >> 16)).clamp(0, 255)) as u8;
    pixel[0] = sample(91881 * red);
    pixel[1] = sample(-22554 * blue - 46802 * red);
    pixel[2] = sample(116_130 * blue);
}

fn multiply(inks: &[u8], colours: &mut [u8]) {
    let pairs = inks
        .as_chunks::<4>()
        .0
        .iter()
        .zip(colours.as_chunks_mut::<3>().0);
    for ([cyan, magenta, yellow, key], colour) in pairs {
        *colour = [cyan, magenta, yellow]
            .map(|ink| ((u32::from(*ink) * u32::from(*key) + 127) / 255) as u8);
    }
}
