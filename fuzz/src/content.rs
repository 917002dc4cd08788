//! The pictures and options that the encoders are tried with.

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use towebp_encoder::Effort;

/// An effort.
#[derive(Debug)]
pub struct AnyEffort(pub Effort);

impl<'a> Arbitrary<'a> for AnyEffort {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes
            .choose(&[Effort::Low, Effort::Medium, Effort::High, Effort::Max])
            .map(|effort| AnyEffort(*effort))
    }
}

/// 1 to 3.
#[derive(Debug)]
pub struct Threads(pub usize);

impl<'a> Arbitrary<'a> for Threads {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        bytes.int_in_range(1..=3).map(Threads)
    }
}

/// What the pixels are made of.
#[derive(Arbitrary, Debug)]
pub enum Content {
    /// These samples, again and again.
    Samples(Vec<u8>),
    /// One filling.
    Whole(Filling),
    /// Squares of so many pixels (and one more) with a filling each, again and again.
    Patches(u8, Vec<Filling>),
}

impl Content {
    /// The samples of a picture of this size, row by row.
    pub fn pixels(&self, width: u32, height: u32, channels: usize) -> Vec<u8> {
        let count = width as usize * height as usize * channels;
        if let Content::Samples(samples) = self {
            let mut samples = samples.iter().copied().cycle();
            return (0..count).map(|_| samples.next().unwrap_or(0)).collect();
        }
        let mut noise = Noise(0x9E37_79B9);
        let mut pixels = Vec::with_capacity(count);
        for y in 0..height {
            for x in 0..width {
                let filling = self.filling(x, y, width);
                for channel in 0..channels {
                    pixels.push(filling.sample(x, y, channel, &mut noise));
                }
            }
        }
        pixels
    }

    fn filling(&self, x: u32, y: u32, width: u32) -> &Filling {
        match self {
            Content::Samples(_) => &Filling::Noise,
            Content::Whole(filling) => filling,
            Content::Patches(side, fillings) => {
                let side = u32::from(*side) % 40 + 1;
                let patch = y / side * width.div_ceil(side) + x / side;
                let count = fillings.len().max(1);
                fillings
                    .get(patch as usize % count)
                    .unwrap_or(&Filling::Noise)
            }
        }
    }
}

/// A pattern that fills an area.
#[derive(Arbitrary, Debug)]
pub enum Filling {
    /// One color.
    Flat([u8; 4]),
    /// So much more from one pixel to the next, across and down.
    Gradient([u8; 4], i8, i8),
    /// Two colors in squares of so many pixels (and one more).
    Checkers(u8, [u8; 4], [u8; 4]),
    /// Any value.
    Noise,
    /// Around a color, by so much.
    Grain([u8; 4], u8),
    /// 0 or 255.
    Extremes,
}

impl Filling {
    fn sample(&self, x: u32, y: u32, channel: usize, noise: &mut Noise) -> u8 {
        match self {
            Filling::Flat(color) => color[channel],
            Filling::Gradient(color, across, down) => color[channel]
                .wrapping_add((x as u8).wrapping_mul(across.cast_unsigned()))
                .wrapping_add((y as u8).wrapping_mul(down.cast_unsigned())),
            Filling::Checkers(side, even, odd) => {
                let side = u32::from(*side) % 20 + 1;
                let color = if (x / side + y / side).is_multiple_of(2) {
                    even
                } else {
                    odd
                };
                color[channel]
            }
            Filling::Noise => noise.next(),
            Filling::Grain(color, strength) => {
                let grain = u16::from(noise.next()) * u16::from(*strength) / 256;
                color[channel].saturating_add(grain as u8)
            }
            Filling::Extremes => {
                if noise.next() < 128 {
                    0
                } else {
                    255
                }
            }
        }
    }
}

/// Xorshift.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 >> 16) as u8
    }
}
