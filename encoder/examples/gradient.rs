//! Encodes raw RGB pixels, a gradient, to `gradient.webp`: `cargo run --example gradient`.

use std::fs::File;
use towebp_encoder::{ColorType, Encoder, Picture};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (width, height) = (640, 480);
    let mut pixels = Vec::with_capacity(640 * 480 * 3);
    for y in 0..height {
        for x in 0..width {
            pixels.extend([(x * 255 / width) as u8, (y * 255 / height) as u8, 128]);
        }
    }
    let picture = Picture::new(width, height, ColorType::Rgb8, &pixels)?;
    Encoder::lossy(80).write(&picture, File::create("gradient.webp")?)?;
    Ok(())
}
