//! Encodes an animation, a bar that moves, to `bar.webp`: `cargo run --example animation`.

use towebp_encoder::{AnimationEncoder, ColorType, Encoder, Picture};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (width, height) = (320, 200);
    let forever = 0;
    let mut animation = AnimationEncoder::new(Encoder::auto(80), (width, height), forever)?;
    for frame in 0..width / 8 {
        let is_bar = |x: u32| (frame * 8..frame * 8 + 16).contains(&x);
        let row = (0..width).map(|x| if is_bar(x) { 255 } else { 40 });
        let canvas: Vec<u8> = row.collect::<Vec<u8>>().repeat(height as usize);
        let canvas = Picture::new(width, height, ColorType::L8, &canvas)?;
        animation.add(&canvas, 40)?; // milliseconds
    }
    std::fs::write("bar.webp", animation.finish()?.file)?;
    Ok(())
}
