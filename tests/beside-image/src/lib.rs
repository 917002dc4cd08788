//! A picture that `image` decodes is encoded by towebp. `scripts/test` runs it.

#[test]
fn a_jpeg_that_image_decodes_becomes_a_webp() {
    let file = include_bytes!("../../support/halves.jpg");
    let decoded = image::load_from_memory(file).expect("a JPEG").into_rgb8();
    let picture = towebp_encoder::RgbPicture {
        width: decoded.width(),
        height: decoded.height(),
        layout: towebp_encoder::Layout::Rgb,
        pixels: decoded.as_raw(),
    };
    let options = towebp_encoder::Options::lossy(80);
    let webp = towebp_encoder::encode(&picture, &options).expect("it is a good picture");
    assert!(webp.starts_with(b"RIFF") && &webp[8..12] == b"WEBP");
}
