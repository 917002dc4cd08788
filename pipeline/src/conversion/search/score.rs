//! How near a file looks to its picture: SSIMULACRA2.

use crate::conversion::error::ConversionError;
use crate::image::{Image, Layout};
use enough::{Stop, StopReason};
use fast_ssim2::{
    PixelDescriptor, PixelSlice, Ssimulacra2Config, Ssimulacra2Error, StripConfig,
    compute_ssimulacra2_with_config,
};
use image_webp::WebPDecoder;
use std::io::Cursor;
use towebp_encoder::Cancel;

/// The most pixels that are compared as a whole. Larger pictures are compared in strips of
/// [`STRIP_ROWS`] rows, which takes a quarter of the memory.
const MAX_WHOLE: u64 = 4_000_000;

/// Rows of a strip, without those around it that are needed to blur.
const STRIP_ROWS: usize = 256;

/// Rows above and below a strip.
const HALO_ROWS: usize = 96;

/// The score of a WebP file of `original`, whose colors are taken as sRGB: at most 100, which is
/// the same picture. Where it is transparent, both are laid over dark and over light gray (10 and
/// 90 %), and the worse score counts, as in the reference implementation.
///
/// # Errors
/// [`ConversionError::Cancelled`], looked at once a scale and strip, which takes up to half a
/// second, and not while the file is decoded, which takes some 60 ms/MP;
/// [`ConversionError::Internal`] if the file does not decode.
pub(in crate::conversion) fn score(
    original: &Image,
    webp: &[u8],
    cancel: &Cancel<'_>,
) -> Result<f64, ConversionError> {
    let decoded = decode(webp)?;
    compare(original, &decoded, cancel)
}

/// The score of `decoded`, as [`score`] gives it.
///
/// # Errors
/// As [`score`].
pub(in crate::conversion) fn compare(
    original: &Image,
    decoded: &Image,
    cancel: &Cancel<'_>,
) -> Result<f64, ConversionError> {
    let has_alpha = original.layout == Layout::Rgba && decoded.layout == Layout::Rgba;
    let stop = StopIfCancelled(cancel);
    let mut config = Ssimulacra2Config::simd().with_stop(&stop);
    if u64::from(original.width) * u64::from(original.height) > MAX_WHOLE {
        config = config.with_strip(StripConfig::new(STRIP_ROWS).with_halo_rows(HALO_ROWS));
    }
    let (original, decoded) = (slice(original, has_alpha)?, slice(decoded, has_alpha)?);
    compute_ssimulacra2_with_config(&original, &decoded, &config).map_err(|error| match error {
        Ssimulacra2Error::Cancelled(_) => ConversionError::Cancelled,
        error => ConversionError::Internal(format!("there is no score: {error}")),
    })
}

/// The most bytes that [`score`] takes for a picture of `width` x `height` pixels.
pub(in crate::conversion) fn scoring_memory(width: u32, height: u32) -> u64 {
    /// Bytes a pixel that is compared: a pyramid of planes in floating point, and the blurred
    /// planes.
    const COMPARED: u64 = 120;
    /// Bytes a pixel of the decoded picture, the decoder's own, and copies of both with alpha.
    const COPIES: u64 = 24;
    /// The sides of the smallest picture that is compared as such.
    const LEAST: u64 = 8;
    let (width, height) = (u64::from(width).max(LEAST), u64::from(height).max(LEAST));
    let pixels = width * height;
    let compared = if pixels > MAX_WHOLE {
        width * height.min((STRIP_ROWS + 2 * HALO_ROWS) as u64)
    } else {
        pixels
    };
    compared * COMPARED + pixels * COPIES + (1 << 20)
}

fn slice(image: &Image, has_alpha: bool) -> Result<PixelSlice<'_>, ConversionError> {
    let descriptor = match (image.layout, has_alpha) {
        (Layout::Rgb, _) => PixelDescriptor::RGB8_SRGB,
        (Layout::Rgba, true) => PixelDescriptor::RGBA8_SRGB,
        (Layout::Rgba, false) => PixelDescriptor::RGBX8_SRGB,
    };
    let stride = image.width as usize * image.layout.channels();
    PixelSlice::new(&image.pixels, image.width, image.height, stride, descriptor)
        .map_err(|error| ConversionError::Internal(format!("there is no score: {error}")))
}

fn decode(webp: &[u8]) -> Result<Image, ConversionError> {
    let failed = |error| ConversionError::Internal(format!("the file does not decode: {error}"));
    let mut decoder = WebPDecoder::new(Cursor::new(webp)).map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let layout = if decoder.has_alpha() {
        Layout::Rgba
    } else {
        Layout::Rgb
    };
    let mut pixels = vec![0; width as usize * height as usize * layout.channels()];
    decoder.read_image(&mut pixels).map_err(failed)?;
    Ok(Image {
        width,
        height,
        layout,
        pixels,
    })
}

struct StopIfCancelled<'a>(&'a Cancel<'a>);

impl Stop for StopIfCancelled<'_> {
    fn check(&self) -> Result<(), StopReason> {
        self.0.check().map_err(|_| StopReason::Cancelled)
    }
}
