//! BMP, by the crate `image`.

use super::{DecodeError, Image, Layout, Limits, Raw};
use ::image::codecs::bmp::BmpDecoder;
use ::image::{ColorType, ImageDecoder, ImageError};
use std::io::Cursor;

/// Reads a bitmap.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Raw, DecodeError> {
    let decoder = BmpDecoder::new(Cursor::new(bytes)).map_err(|error| invalid(&error))?;
    let (width, height) = decoder.dimensions();
    let count = limits.check(width, height)?;
    let layout = if decoder.color_type() == ColorType::Rgba8 {
        Layout::Rgba
    } else {
        Layout::Rgb
    };
    let mut pixels = vec![0; count * layout.channels()];
    decoder
        .read_image(&mut pixels)
        .map_err(|error| invalid(&error))?;
    if layout == Layout::Rgba {
        reveal_if_all_transparent(&mut pixels);
    }
    Ok(Raw {
        image: Image {
            width,
            height,
            layout,
            pixels,
        },
        grey: false,
        profile: None,
        exif: None,
    })
}

/// Many writers declare an alpha channel and leave it 0: viewers then show the picture as opaque.
fn reveal_if_all_transparent(pixels: &mut [u8]) {
    let pixels = pixels.as_chunks_mut::<4>().0;
    if pixels.iter().all(|pixel| pixel[3] == 0) {
        for pixel in pixels {
            pixel[3] = 255;
        }
    }
}

fn invalid(error: &ImageError) -> DecodeError {
    DecodeError::Invalid(match error {
        ImageError::IoError(_) => "the BMP data ends too early".to_owned(),
        other => format!(
            "the BMP data is damaged or of a rare kind ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}
