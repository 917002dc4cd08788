//! Animated GIFs and PNGs.

use super::picture::Picture;
use gif::{Encoder, Frame, Repeat};
use towebp_encoder as webp;
use towebp_encoder::testing::Random;

/// A GIF of a gray picture, over which six squares move from frame to frame. Each frame has the
/// size of the whole, and is transparent but for the squares.
pub fn moving_squares(width: u16, height: u16, frames: usize) -> Vec<u8> {
    const SIDE: usize = 40;
    let palette: Vec<u8> = (0..=255).flat_map(|gray| [gray; 3]).collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height, &palette).expect("a valid palette");
    encoder.set_repeat(Repeat::Infinite).expect("it is written");
    let (across, down) = (usize::from(width), usize::from(height));
    for number in 0..frames {
        let ground = if number == 0 { 100 } else { 0 };
        let mut indices = vec![ground; across * down];
        for square in 0..6 {
            let left = (number * (7 + square) + square * 190) % (across - SIDE);
            let top = (number * (3 + square) + square * 170) % (down - SIDE);
            for row in indices[top * across..].chunks_mut(across).take(SIDE) {
                row[left..left + SIDE].fill((1 + number * 11 + square * 40) as u8 | 1);
            }
        }
        let frame = Frame {
            width,
            height,
            delay: 4,
            transparent: (number > 0).then_some(0),
            buffer: indices.into(),
            ..Frame::default()
        };
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    file
}

/// A GIF whose frames are these pictures of one size.
pub fn animated(pictures: &[Picture]) -> Vec<u8> {
    let (width, height) = (pictures[0].width as u16, pictures[0].height as u16);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height, &[]).expect("a Vec takes all");
    for picture in pictures {
        let mut samples = picture.pixels.as_flattened().to_vec();
        let frame = Frame::from_rgba_speed(width, height, &mut samples, 30);
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    file
}

/// A WebP whose frames are these pictures of one size, by this encoder.
pub fn animated_webp(pictures: &[Picture], encoder: webp::Encoder<'_>) -> Vec<u8> {
    let (width, height) = (pictures[0].width, pictures[0].height);
    let mut animation =
        webp::AnimationEncoder::new(encoder, (width, height), 0).expect("a good size");
    for (time, picture) in (50..).zip(pictures) {
        let samples = picture.pixels.as_flattened();
        let frame = webp::Picture::new(width, height, webp::ColorType::Rgba8, samples);
        animation
            .add(&frame.expect("a picture"), time)
            .expect("a frame");
    }
    animation.finish().expect("an animation").file
}

/// A GIF of 4,000 frames, black and white in turn. It is a small file whose lossy conversion at
/// high effort takes a minute or more.
pub fn flicker(width: u16, height: u16) -> Vec<u8> {
    const PALETTE: [u8; 6] = [0, 0, 0, 255, 255, 255];
    /// Signature, size and flags, and the palette.
    const HEAD: usize = 13 + PALETTE.len();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height, &PALETTE).expect("a valid palette");
    for index in [0, 1] {
        let indices = vec![index; usize::from(width) * usize::from(height)];
        let frame = Frame::from_indexed_pixels(width, height, indices, None);
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    let (head, frames) = file.split_at(HEAD);
    let frames = frames.strip_suffix(b";").expect("a trailer");
    [head, &frames.repeat(2000), b";"].concat()
}

/// The rows of a frame of noise of two colors, one bit a pixel, that repeat so soon that deflate
/// finds them, but not in a WebP.
fn repeating_noise(width: u32, height: u32, number: u64) -> Vec<u8> {
    const PERIOD: usize = 30;
    let mut random = Random::new(number);
    let row = (width as usize).div_ceil(8);
    let noise: Vec<u8> = (0..row * PERIOD).map(|_| random.byte()).collect();
    noise
        .iter()
        .copied()
        .cycle()
        .take(row * height as usize)
        .collect()
}

/// The colors of the noise.
const TWO_COLORS: [u8; 6] = [255, 0, 0, 0, 0, 255];

/// An animated PNG whose WebP is many times as large at quality 100.
pub fn growing_png(width: u32, height: u32, frames: u64) -> Vec<u8> {
    let mut info = png::Info::with_size(width, height);
    info.color_type = png::ColorType::Indexed;
    info.bit_depth = png::BitDepth::One;
    info.palette = Some(TWO_COLORS[..].into());
    let frames: Vec<_> = (0..frames)
        .map(|number| repeating_noise(width, height, number))
        .collect();
    animated_png(info, &frames, png::DisposeOp::None, png::BlendOp::Source)
}

/// As [`growing_png`], a GIF.
pub fn growing_gif(width: u16, height: u16, frames: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height, &TWO_COLORS).expect("a valid palette");
    for number in 0..frames {
        let rows = repeating_noise(width.into(), height.into(), number);
        let row = usize::from(width).div_ceil(8);
        let indices = (0..usize::from(height)).flat_map(|y| {
            let rows = &rows;
            (0..usize::from(width)).map(move |x| rows[y * row + x / 8] >> (x % 8) & 1)
        });
        let frame = Frame::from_indexed_pixels(width, height, indices.collect::<Vec<u8>>(), None);
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    file
}

/// A PNG of `info` whose frames have these samples, each as large as the canvas.
pub fn animated_png(
    info: png::Info<'_>,
    frames: &[Vec<u8>],
    dispose: png::DisposeOp,
    blend: png::BlendOp,
) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::with_info(&mut file, info).expect("no animation yet");
    encoder.set_animated(frames.len() as u32, 0).expect("some");
    encoder.set_frame_delay(1, 25).expect("an animation");
    encoder.set_dispose_op(dispose).expect("an animation");
    encoder.set_blend_op(blend).expect("an animation");
    let mut writer = encoder.write_header().expect("a Vec takes all");
    for samples in frames {
        writer
            .write_image_data(samples)
            .expect("as many as declared");
    }
    writer.finish().expect("as many as declared");
    file
}

/// A PNG of 8-bit RGBA whose frames are these pictures of one size.
pub fn animated_rgba(
    pictures: &[Picture],
    dispose: png::DisposeOp,
    blend: png::BlendOp,
) -> Vec<u8> {
    let mut info = png::Info::with_size(pictures[0].width, pictures[0].height);
    info.color_type = png::ColorType::Rgba;
    info.bit_depth = png::BitDepth::Eight;
    let samples = |picture: &Picture| picture.pixels.as_flattened().to_vec();
    let frames: Vec<Vec<u8>> = pictures.iter().map(samples).collect();
    animated_png(info, &frames, dispose, blend)
}
