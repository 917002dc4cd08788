//! An independent decoder that tests and fuzz targets hold the encoder to. Only the feature
//! `testing` has it.

use image_webp::WebPDecoder;
use std::io::Cursor;

/// Decodes the file of a still picture: the width and height in pixels, and the pixels as red,
/// green, blue and alpha.
///
/// # Panics
/// If the file does not decode.
pub fn decode(file: &[u8]) -> ((u32, u32), Vec<[u8; 4]>) {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).expect("the container is in order");
    let mut samples = vec![0; decoder.output_buffer_size().expect("it fits into memory")];
    decoder.read_image(&mut samples).expect("it decodes");
    let pixels = samples.chunks(if decoder.has_alpha() { 4 } else { 3 });
    let rgba = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2], *pixel.get(3).unwrap_or(&255)]);
    (decoder.dimensions(), rgba.collect())
}
