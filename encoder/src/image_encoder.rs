//! The encoder for users of the crate `image`, behind the feature `image`.

use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::picture::{ColorType, Picture};
use image::error::{
    EncodingError, ImageFormatHint, ParameterError, ParameterErrorKind, UnsupportedError,
    UnsupportedErrorKind,
};
use image::{ExtendedColorType, ImageEncoder, ImageError, ImageFormat, ImageResult};
use std::io::Write;

/// An [`ImageEncoder`] that writes a WebP file to any writer. It takes 8-bit gray, gray with alpha,
/// RGB and RGBA; `DynamicImage` converts the others by its `to_rgb8` and the like.
///
/// ```
/// use image::RgbImage;
/// use towebp_encoder::{Encoder, image_encoder::WebPEncoder};
///
/// let image = RgbImage::from_pixel(64, 48, image::Rgb([255, 128, 0]));
/// let mut file = Vec::new();
/// image.write_with_encoder(WebPEncoder::new(&mut file, Encoder::lossy(80)))?;
/// assert!(file.starts_with(b"RIFF"));
/// # Ok::<(), image::ImageError>(())
/// ```
#[derive(Debug)]
pub struct WebPEncoder<'a, W> {
    writer: W,
    encoder: Encoder<'a>,
    icc_profile: Option<Vec<u8>>,
    exif: Option<Vec<u8>>,
}

impl<'a, W: Write> WebPEncoder<'a, W> {
    /// An encoder with the options of `encoder` that writes to `writer`.
    pub fn new(writer: W, encoder: Encoder<'a>) -> WebPEncoder<'a, W> {
        WebPEncoder {
            writer,
            encoder,
            icc_profile: None,
            exif: None,
        }
    }
}

impl<W: Write> ImageEncoder for WebPEncoder<'_, W> {
    fn write_image(
        mut self,
        pixels: &[u8],
        width: u32,
        height: u32,
        color: ExtendedColorType,
    ) -> ImageResult<()> {
        let color = match color {
            ExtendedColorType::L8 => ColorType::L8,
            ExtendedColorType::La8 => ColorType::La8,
            ExtendedColorType::Rgb8 => ColorType::Rgb8,
            ExtendedColorType::Rgba8 => ColorType::Rgba8,
            other => {
                return Err(ImageError::Unsupported(
                    UnsupportedError::from_format_and_kind(
                        ImageFormatHint::Exact(ImageFormat::WebP),
                        UnsupportedErrorKind::Color(other),
                    ),
                ));
            }
        };
        let picture = Picture::new(width, height, color, pixels).map_err(image_error)?;
        let mut encoder = self.encoder;
        if let Some(profile) = &self.icc_profile {
            encoder = encoder.icc_profile(profile);
        }
        if let Some(exif) = &self.exif {
            encoder = encoder.exif(exif);
        }
        let encoded = encoder.encode(&picture).map_err(image_error)?;
        self.writer
            .write_all(&encoded.file)
            .map_err(ImageError::IoError)
    }

    fn set_icc_profile(&mut self, profile: Vec<u8>) -> Result<(), UnsupportedError> {
        self.icc_profile = Some(profile);
        Ok(())
    }

    fn set_exif_metadata(&mut self, exif: Vec<u8>) -> Result<(), UnsupportedError> {
        self.exif = Some(exif);
        Ok(())
    }
}

fn image_error(error: EncodeError) -> ImageError {
    match error {
        EncodeError::Dimensions | EncodeError::PixelCount => ImageError::Parameter(
            ParameterError::from_kind(ParameterErrorKind::Generic(error.to_string())),
        ),
        error => ImageError::Encoding(EncodingError::new(
            ImageFormatHint::Exact(ImageFormat::WebP),
            error,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};

    fn written(image: &DynamicImage) -> ImageResult<Vec<u8>> {
        let mut file = Vec::new();
        image.write_with_encoder(WebPEncoder::new(&mut file, Encoder::lossless()))?;
        Ok(file)
    }

    #[test]
    fn four_color_types_are_written_and_others_are_unsupported() {
        let sample = |x: u32, y: u32| (x * 31 + y * 7) as u8;
        let gray = GrayImage::from_fn(9, 5, |x, y| image::Luma([sample(x, y)]));
        let gray_alpha =
            GrayAlphaImage::from_fn(9, 5, |x, y| image::LumaA([sample(x, y), 255 - x as u8]));
        let rgb = RgbImage::from_fn(9, 5, |x, y| image::Rgb([sample(x, y), 7, 9]));
        let rgba = RgbaImage::from_fn(9, 5, |x, y| image::Rgba([sample(x, y), 7, 9, 90]));
        for image in [
            DynamicImage::from(gray),
            gray_alpha.into(),
            rgb.into(),
            rgba.into(),
        ] {
            let (size, pixels) = crate::reference::decode(&written(&image).expect("it is 8-bit"));
            assert_eq!(size, (9, 5));
            assert_eq!(pixels.as_flattened(), image.to_rgba8().as_raw().as_slice());
        }
        let deep = WebPEncoder::new(Vec::new(), Encoder::lossless());
        let outcome = deep.write_image(&[0; 6], 1, 1, ExtendedColorType::Rgb16);
        assert!(matches!(outcome, Err(ImageError::Unsupported(_))));
        let wrong = WebPEncoder::new(Vec::new(), Encoder::lossless());
        let outcome = wrong.write_image(&[0; 6], 1, 1, ExtendedColorType::Rgb8);
        assert!(matches!(outcome, Err(ImageError::Parameter(_))));
    }

    #[test]
    fn profile_and_exif_are_stored() {
        let mut file = Vec::new();
        let mut encoder = WebPEncoder::new(&mut file, Encoder::lossy(80));
        encoder.set_icc_profile(b"profile".to_vec()).expect("taken");
        encoder.set_exif_metadata(b"exif".to_vec()).expect("taken");
        let image = RgbImage::new(1, 1);
        image.write_with_encoder(encoder).expect("a small image");
        let holds = |part: &[u8]| file.windows(part.len()).any(|window| window == part);
        assert!(holds(b"ICCP\x07\0\0\0profile") && holds(b"EXIF\x04\0\0\0exif"));
    }
}
