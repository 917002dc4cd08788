//! JPEG, by zune-jpeg in strict mode: its default returns grey areas for files that are cut short.
//!
//! A baseline file in one scan decodes in little more than its output. A progressive one, or one with a scan for each
//! component, is held as 16-bit coefficients until its end: 3 to 6 bytes a pixel more, 8 for four components.

use super::{DecodeError, Image, Layout, Limits, Raw};
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Reads a JPEG.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Raw, DecodeError> {
    // The decoder's own bounds are opened as far as the format goes: ours give the clearer message.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| invalid(&error))?;
    let header = decoder.info().expect("decode_headers filled it in");
    let (width, height) = (u32::from(header.width), u32::from(header.height));
    let count = limits.check(width, height)?;

    let stored = decoder
        .input_colorspace()
        .expect("decode_headers filled it in");
    let four_components = matches!(stored, ColorSpace::CMYK | ColorSpace::YCCK);
    if four_components {
        return Err(DecodeError::Invalid(format!(
            "{stored:?} JPEG is not supported; convert it to RGB first"
        )));
    }
    let mut pixels = vec![0; count * 3];
    decoder
        .decode_into(&mut pixels)
        .map_err(|error| invalid(&error))?;
    Ok(Raw {
        image: Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels,
        },
        grey: stored == ColorSpace::Luma,
        profile: decoder.icc_profile(),
        exif: decoder.exif().cloned(),
    })
}

fn invalid(error: &DecodeErrors) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => {
            "the JPEG data ends too early".to_owned()
        }
        DecodeErrors::ZeroError => "the JPEG's width or height is 0".to_owned(),
        other => format!(
            "the JPEG data is damaged or of a rare kind ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}
