//! Samples as stored to pixels.

use super::header::{Alpha, Header, Ink, Part};
use towebp_encoder::{Cancel, Cancelled};

/// Adds to each sample the one on its left (section 14).
pub fn add_differences(stored: &mut [u8], part: &Part<'_>, header: &Header<'_>) {
    let samples = part.samples;
    for row in stored.chunks_exact_mut(part.row_bytes) {
        if header.bits == 8 {
            for at in samples..row.len() {
                row[at] = row[at].wrapping_add(row[at - samples]);
            }
            continue;
        }
        let row = row.as_chunks_mut::<2>().0;
        for at in samples..row.len() {
            let before = row[at - samples];
            row[at] = if header.is_big_endian() {
                let sum = u16::from_be_bytes(row[at]).wrapping_add(u16::from_be_bytes(before));
                sum.to_be_bytes()
            } else {
                let sum = u16::from_le_bytes(row[at]).wrapping_add(u16::from_le_bytes(before));
                sum.to_le_bytes()
            };
        }
    }
}

/// Converts parts to pixels.
pub struct Converter<'a> {
    header: &'a Header<'a>,
    /// The sample of each number of up to 8 bits: 0 to 255, or the index of a color.
    levels: [u8; 256],
}

impl<'a> Converter<'a> {
    pub fn new(header: &'a Header<'a>) -> Converter<'a> {
        let largest = (1usize << header.bits.min(8)) - 1;
        let level = |number: usize| match header.ink {
            Ink::Palette(_) => number as u8,
            _ => (number.min(largest) * 255 / largest) as u8,
        };
        Converter {
            header,
            levels: std::array::from_fn(level),
        }
    }

    /// Converts the samples of a part to their places in `pixels`.
    ///
    /// # Errors
    /// It is cancelled.
    pub fn convert(
        &self,
        stored: &[u8],
        part: &Part<'_>,
        pixels: &mut [u8],
        cancel: &Cancel<'_>,
    ) -> Result<(), Cancelled> {
        let (width, height) = self.header.size();
        let (width, height) = (width as usize, height as usize);
        let channels = self.header.channels();
        let columns = part.width.min(width - part.x);
        let rows = stored.chunks_exact(part.row_bytes);
        for (y, row) in (part.y..height).zip(rows) {
            cancel.check()?;
            let begin = (y * width + part.x) * channels;
            let target = &mut pixels[begin..begin + columns * channels];
            for sample in 0..part.samples {
                let numbers = self.numbers(row, sample, part.samples);
                self.place(part.first_sample + sample, numbers, target);
            }
            let is_last = part.first_sample + part.samples == self.header.samples;
            if is_last && self.header.alpha == Some(Alpha::Associated) {
                divide_by_alpha(target);
            }
        }
        Ok(())
    }

    /// One sample of each pixel of a row that has so many of each, in 8 bits.
    fn numbers(&self, row: &[u8], sample: usize, samples: usize) -> impl Iterator<Item = u8> {
        let bits = self.header.bits;
        let is_big_endian = self.header.is_big_endian();
        (0..).map_while(move |pixel| {
            let index = pixel * samples + sample;
            let number = match bits {
                8 => *row.get(index)?,
                16 => {
                    let pair = *row.get(2 * index..)?.first_chunk()?;
                    let number = if is_big_endian {
                        u16::from_be_bytes(pair)
                    } else {
                        u16::from_le_bytes(pair)
                    };
                    ((u32::from(number) * 255 + 32_767) / 65_535) as u8
                }
                _ => {
                    let shift = 8 - bits - index * bits % 8;
                    row.get(index * bits / 8)? >> shift & ((1 << bits) - 1)
                }
            };
            Some(self.levels[usize::from(number)])
        })
    }

    /// Puts a sample of each pixel to its place.
    fn place(&self, sample: usize, numbers: impl Iterator<Item = u8>, target: &mut [u8]) {
        let channels = self.header.channels();
        let pixels = target.chunks_exact_mut(channels).zip(numbers);
        match (&self.header.ink, sample) {
            (Ink::Gray { is_inverted }, 0) => {
                let invert = if *is_inverted { 255 } else { 0 };
                pixels.for_each(|(pixel, number)| pixel[..3].fill(number ^ invert));
            }
            (Ink::Palette(colors), 0) => {
                let color = |number| &colors[usize::from(number)];
                pixels.for_each(|(pixel, number)| pixel[..3].copy_from_slice(color(number)));
            }
            // What converts inks takes them as JPEGs have them, inverted.
            (Ink::Cmyk, 0..4) => pixels.for_each(|(pixel, number)| pixel[sample] = !number),
            (Ink::Rgb, 0..3) => pixels.for_each(|(pixel, number)| pixel[sample] = number),
            (ink, sample) if sample == ink.samples() && self.header.alpha.is_some() => {
                pixels.for_each(|(pixel, number)| pixel[3] = number);
            }
            // Samples that are not shown.
            _ => {}
        }
    }
}

/// Divides the colors of pixels by their alpha.
fn divide_by_alpha(pixels: &mut [u8]) {
    for [colors @ .., alpha] in pixels.as_chunks_mut::<4>().0 {
        let alpha = u32::from(*alpha);
        if alpha == 255 || alpha == 0 {
            continue;
        }
        for color in colors {
            *color = ((u32::from(*color) * 255 + alpha / 2) / alpha).min(255) as u8;
        }
    }
}
