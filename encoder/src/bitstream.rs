//! The chunks that hold the pixels of one picture or frame (RFC 9649, sections 2.5 to 2.7).

use crate::alpha;
use crate::error::EncodeError;
use crate::few_colors;
use crate::options::{Coding, Options};
use crate::pixel_source::PixelSource;
use crate::ycbcr::Planes;
use crate::{vp8, vp8l};
use std::borrow::Borrow;

/// A picture without its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitstream {
    /// The data of the `ALPH` chunk of a lossy picture with alpha.
    pub alpha: Option<Vec<u8>>,
    /// The data of the `VP8 ` or `VP8L` chunk.
    pub frame: Vec<u8>,
    /// Whether `frame` is the data of a `VP8L` chunk.
    pub is_lossless: bool,
    /// Whether the colors were reduced to a palette before.
    pub is_reduced: bool,
}

impl Bitstream {
    /// The names and data of the chunks, in the order of the file.
    pub fn chunks(&self) -> impl Iterator<Item = ([u8; 4], &[u8])> {
        let name = if self.is_lossless { *b"VP8L" } else { *b"VP8 " };
        let alpha = self.alpha.as_deref().map(|alpha| (*b"ALPH", alpha));
        alpha.into_iter().chain([(name, self.frame.as_slice())])
    }

    /// Whether a pixel may be other than opaque.
    pub fn has_alpha(&self) -> bool {
        /// The bit `alpha_is_used` of a lossless frame's header, after the signature and two sides
        /// of 14 bits (section 3.4).
        const LOSSLESS_ALPHA: u8 = 1 << 4;
        self.alpha.is_some() || self.is_lossless && self.frame[4] & LOSSLESS_ALPHA != 0
    }

    /// How the pixels are coded.
    pub fn coding(&self) -> Coding {
        if self.is_lossless && !self.is_reduced {
            Coding::Lossless
        } else {
            Coding::Lossy
        }
    }

    /// The bytes of the chunks in a file of one picture, with their headers and padding, and with
    /// the `VP8X` chunk that alpha beside lossy colors takes (section 2.7).
    pub fn size(&self) -> usize {
        const CHUNK_HEADER: usize = 8;
        const VP8X: usize = CHUNK_HEADER + 10;
        let sizes = self
            .chunks()
            .map(|(_, data)| data.len().next_multiple_of(2));
        let vp8x = if self.alpha.is_some() { VP8X } else { 0 };
        vp8x + sizes.map(|size| CHUNK_HEADER + size).sum::<usize>()
    }
}

/// Codes a picture lossy, with its alpha.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossy(source: &impl PixelSource, options: &Options<'_>) -> Result<Bitstream, EncodeError> {
    let mut bitstream = lossy_without_alpha(source, options)?;
    bitstream.alpha = lossy_alpha(source, options)?;
    Ok(bitstream)
}

/// Codes the colors of a picture lossy.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossy_without_alpha(
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Bitstream, EncodeError> {
    let settings = lossy_settings(options);
    let (width, height) = source.size();
    // The encoder needs no more of the picture than its planes.
    let planes = || planes(source, options);
    Ok(Bitstream {
        alpha: None,
        frame: vp8::encode(planes, width as u32, height as u32, &settings)?,
        is_lossless: false,
        is_reduced: false,
    })
}

/// The planes of a picture as they are coded lossy.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn planes(source: &impl PixelSource, options: &Options<'_>) -> Result<Planes, EncodeError> {
    let workers = options.workers();
    source.with_rgb(workers, |picture| {
        Planes::from_picture(picture, options.simd, workers)
    })
}

/// The `ALPH` chunk's data of a picture that is coded lossy; `None` if all of it is opaque.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossy_alpha(
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Option<Vec<u8>>, EncodeError> {
    let (width, _) = source.size();
    let quality = options.alpha_quality;
    let settings = lossless_settings(options);
    let plane = source.alpha(options.workers())?;
    plane
        .map(|plane| alpha::encode(plane, width, quality, &settings))
        .transpose()
}

/// Codes the `Y'CbCr` planes of an opaque picture lossy.
///
/// # Errors
/// See [`EncodeError`]; the errors of `source`.
pub fn lossy_planes<P: Borrow<Planes>>(
    (width, height): (u32, u32),
    source: impl Fn() -> Result<P, EncodeError>,
    options: &Options<'_>,
) -> Result<Bitstream, EncodeError> {
    let source = || {
        let planes = source()?;
        let given = planes.borrow();
        if (given.width, given.height) != (width, height) {
            return Err(EncodeError::PixelCount);
        }
        Ok(planes)
    };
    Ok(Bitstream {
        alpha: None,
        frame: vp8::encode(source, width, height, &lossy_settings(options))?,
        is_lossless: false,
        is_reduced: false,
    })
}

/// Codes a picture lossless.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossless(
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Bitstream, EncodeError> {
    let settings = lossless_settings(options);
    let (width, _) = source.size();
    let pixels = || source.argb(options.exact, settings.workers);
    let mut frame = vp8l::encode(pixels()?, width, &settings)?;
    let max_error = vp8l::max_error(options.near_lossless);
    if max_error > 0 {
        let mut near = pixels()?;
        vp8l::round(&mut near, width, max_error, settings.workers)?;
        let near = vp8l::encode(near, width, &settings)?;
        // Pixels that repeat exactly may no longer do so once they are rounded.
        if near.len() < frame.len() {
            frame = near;
        }
    }
    Ok(Bitstream {
        alpha: None,
        frame,
        is_lossless: true,
        is_reduced: false,
    })
}

/// Codes a picture with fewer colors, without loss beside that; `None` if one of few colors would
/// look different at the quality, or if transparent pixels are to keep their colors.
///
/// # Errors
/// See [`EncodeError`].
pub fn reduced(
    source: &impl PixelSource,
    options: &Options<'_>,
) -> Result<Option<Bitstream>, EncodeError> {
    let settings = lossless_settings(options);
    let (width, _) = source.size();
    if options.exact {
        return Ok(None);
    }
    let mut pixels = source.argb(false, settings.workers)?;
    if !few_colors::reduce(&mut pixels, width, options.quality, settings.workers)? {
        return Ok(None);
    }
    Ok(Some(Bitstream {
        alpha: None,
        frame: vp8l::encode(pixels, width, &settings)?,
        is_lossless: true,
        is_reduced: true,
    }))
}

/// The options of the lossy encoder.
pub fn lossy_settings<'a>(options: &Options<'a>) -> vp8::LossyOptions<'a> {
    vp8::LossyOptions {
        quality: options.quality,
        effort: options.effort,
        log2_partitions: options.log2_partitions,
        constants: options.constants.unwrap_or(options.effort.constants()),
        simd: options.simd,
        workers: options.workers(),
    }
}

fn lossless_settings<'a>(options: &Options<'a>) -> vp8l::LosslessOptions<'a> {
    vp8l::LosslessOptions {
        effort: options.effort,
        simd: options.simd,
        workers: options.workers(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container;
    use crate::options::Metadata;
    use crate::picture::{ColorType, Picture};
    use crate::testing::Random;
    use crate::threads::Workers;

    const SIDE: u32 = 24;

    fn noise(channels: usize) -> Vec<u8> {
        let mut random = Random::new(5);
        let samples = SIDE as usize * SIDE as usize * channels;
        (0..samples).map(|_| random.byte()).collect()
    }

    fn picture(color: ColorType, samples: &[u8]) -> Picture<'_> {
        Picture::new(SIDE, SIDE, color, samples).expect("a good picture")
    }

    #[test]
    fn the_size_is_that_of_the_file_after_its_header() {
        for (color, channels) in [
            (ColorType::Rgb8, 3),
            (ColorType::La8, 2),
            (ColorType::Rgba8, 4),
        ] {
            let samples = noise(channels);
            let picture = picture(color, &samples);
            // The frames of ten qualities have odd and even lengths.
            for quality in 60..70 {
                let options = Options::lossy(quality);
                let coded = [lossy(&picture, &options), lossless(&picture, &options)];
                for bitstream in coded.map(|coded| coded.expect("it is not cancelled")) {
                    let size = (SIDE, SIDE);
                    let workers = Workers::unlimited(1);
                    let file = container::still(size, &bitstream, &Metadata::default(), workers);
                    let file = file.expect("it is not cancelled");
                    assert_eq!(12 + bitstream.size(), file.len(), "{color:?}");
                    assert_eq!(bitstream.has_alpha(), color.has_alpha(), "{color:?}");
                }
            }
        }
    }

    #[test]
    fn rounded_pixels_are_sent_where_they_take_fewer_bytes() {
        let size = |samples: &[u8], near_lossless| {
            let options = Options {
                near_lossless,
                ..Options::lossy(85)
            };
            let coded = lossless(&picture(ColorType::Rgb8, samples), &options);
            coded.expect("it is not cancelled").size()
        };
        let noise = noise(3);
        assert!(size(&noise, 40) < size(&noise, 100));
        // Each row again: rounding by what is beside a pixel makes others of the same ones.
        let repeated = noise[..SIDE as usize * 3].repeat(SIDE as usize);
        for near_lossless in [0, 40, 80] {
            assert!(size(&repeated, near_lossless) <= size(&repeated, 100));
        }
    }
}
