//! Pictures that `image` holds are encoded by towebp. `scripts/test` runs it.

use image::{ImageResult, RgbImage};
use towebp_encoder::{Encoder, image_encoder::WebPEncoder};

/// A picture as a WebP file.
///
/// # Errors
/// Those of the encoder: the picture has no pixels, or more than 16383 a side.
pub fn webp(picture: &RgbImage) -> ImageResult<Vec<u8>> {
    let mut file = Vec::new();
    picture.write_with_encoder(WebPEncoder::new(&mut file, Encoder::lossy(80)))?;
    Ok(file)
}

#[test]
fn a_jpeg_that_image_decodes_becomes_a_webp() {
    let file = include_bytes!("../../support/halves.jpg");
    let decoded = image::load_from_memory(file).expect("a JPEG").into_rgb8();
    let webp = webp(&decoded).expect("it is a good picture");
    assert!(webp.starts_with(b"RIFF") && &webp[8..12] == b"WEBP");
}
