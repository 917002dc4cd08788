//! Whether a picture is likely drawn rather than photographed: then coding it without loss may take fewer bytes.

use super::EncodeError;
use super::source::{Form, Source};
use super::threads::Workers;

/// One row of so many is looked at, with the one above it.
const ROWS_APART: usize = 8;

/// Rows between two questions whether the file is waited for: a fraction of a millisecond of the longest.
const ROWS_A_QUESTION: usize = 128;

/// Up to so many bits a pixel, by the estimate, a picture is tried without loss. The 24 Kodak photographs come to 5.1 to 10.8,
/// nine screenshots, charts and logos to 0.2 to 1.5.
const MOST_BITS: u64 = 4;

/// Whether a cheap estimate of what it takes without loss is low.
///
/// A pixel that repeats its left or its upper neighbour is taken to cost nothing, and any other two bits, and for each sample as
/// many again as its difference to the nearer of both has.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn is_likely(source: &impl Source, workers: Workers<'_>) -> Result<bool, EncodeError> {
    let channels = source.layout().channels();
    let (width, height) = source.size();
    let mut bits = 0;
    let mut pixels = 0;
    for y in (0..height).step_by(ROWS_APART) {
        if y.is_multiple_of(ROWS_A_QUESTION) {
            workers.check()?;
        }
        let above = source.row(y.saturating_sub(1), Form::Exact);
        bits += row_bits(&source.row(y, Form::Exact), &above, channels);
        pixels += width as u64;
    }
    Ok(bits <= MOST_BITS * pixels)
}

fn row_bits(row: &[u8], above: &[u8], channels: usize) -> u64 {
    let mut bits = 0;
    let mut left = &row[..channels];
    for (pixel, above) in row.chunks_exact(channels).zip(above.chunks_exact(channels)) {
        if pixel != left && pixel != above {
            bits += 2 + difference_bits(pixel, left).min(difference_bits(pixel, above));
        }
        left = pixel;
    }
    bits
}

/// Bytes that a picture takes with loss at `quality`, by how many of its blocks of 4 x 4 pixels have contrast and how much. Most
/// pictures take more: of 326 screenshots, drawings and parts of them some three quarters, and of those that take no more than this
/// without loss 97 of 100.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn bytes_with_loss(
    source: &impl Source,
    quality: u8,
    workers: Workers<'_>,
) -> Result<usize, EncodeError> {
    /// Per block and bit of its contrast in steps of [`STEP_BITS`] bits, in 120ths of a byte: at quality 0, and more by the quality.
    const BYTES: usize = 60;
    const STEP_BITS: u32 = 4;
    let channels = source.layout().channels();
    let (width, height) = source.size();
    let mut ranges = vec![Range::NONE; width.div_ceil(4)];
    let mut bits = 0;
    for top in (0..height).step_by(4) {
        workers.check()?;
        ranges.fill(Range::NONE);
        for y in top..(top + 4).min(height) {
            let row = source.row(y, Form::Lossy);
            for (range, four) in ranges.iter_mut().zip(row.chunks(channels * 4)) {
                four.chunks_exact(channels)
                    .for_each(|pixel| range.add(pixel));
            }
        }
        let contrast = ranges.iter().map(|range| range.contrast() >> STEP_BITS);
        bits += contrast
            .map(|steps| (u8::BITS - steps.leading_zeros()) as usize)
            .sum::<usize>();
    }
    Ok(bits * (BYTES + usize::from(quality)) / 120)
}

/// The luma of pixels that are seen, at least and at most.
#[derive(Clone, Copy)]
struct Range {
    least: u8,
    most: u8,
}

impl Range {
    const NONE: Range = Range {
        least: 255,
        most: 0,
    };

    #[inline]
    fn add(&mut self, pixel: &[u8]) {
        if let [red, green, blue, rest @ ..] = pixel
            && rest != [0]
        {
            let luma = (u16::from(*red) + 2 * u16::from(*green) + u16::from(*blue)) / 4;
            self.least = self.least.min(luma as u8);
            self.most = self.most.max(luma as u8);
        }
    }

    fn contrast(self) -> u8 {
        self.most.saturating_sub(self.least)
    }
}

fn difference_bits(a: &[u8], b: &[u8]) -> u64 {
    let bits = |(a, b): (&u8, &u8)| u64::from(u8::BITS - a.abs_diff(*b).leading_zeros());
    a.iter().zip(b).map(bits).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, RgbPicture};

    fn is_likely_drawn(pixel: impl Fn(u32, u32) -> [u8; 3]) -> bool {
        let places = (0..64).flat_map(|y| (0..64).map(move |x| (x, y)));
        let pixels: Vec<u8> = places.flat_map(|(x, y)| pixel(x, y)).collect();
        let picture = RgbPicture {
            width: 64,
            height: 64,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        is_likely(&picture, Workers::unlimited(1)).expect("it is not cancelled")
    }

    #[test]
    fn flat_and_repeated_pixels_are_drawn_and_noise_is_not() {
        assert!(is_likely_drawn(|_, _| [7; 3]));
        assert!(is_likely_drawn(|x, y| if (x / 16 + y / 16) % 2 == 0 {
            [0; 3]
        } else {
            [255; 3]
        }));
        let noise = |x: u32, y: u32| {
            x.wrapping_mul(40_503)
                .wrapping_add(y * 977)
                .wrapping_mul(2_654_435_761)
                >> 24
        };
        assert!(!is_likely_drawn(|x, y| [noise(x, y) as u8; 3]));
        // Shades of one level in each sample: 2 bits, and 1 for each of the three.
        assert!(!is_likely_drawn(|x, y| [(x + y) as u8; 3]));
    }

    #[test]
    fn contrast_of_what_is_seen_takes_bytes_with_loss() {
        let bytes = |pixels: &[u8], quality| {
            let picture = RgbPicture {
                width: 8,
                height: 5,
                layout: Layout::Rgba,
                pixels,
            };
            bytes_with_loss(&picture, quality, Workers::unlimited(1)).expect("nobody leaves")
        };
        // Four blocks, two of them of one row.
        let mut pixels = [90, 90, 90, 255].repeat(40);
        assert_eq!(bytes(&pixels, 100), 0, "all alike");
        pixels[..4].copy_from_slice(&[0, 0, 0, 0]);
        assert_eq!(bytes(&pixels, 100), 0, "nobody sees it");
        pixels[..4].copy_from_slice(&[90, 90, 74, 255]);
        assert_eq!(bytes(&pixels, 100), 0, "4 levels of luma");
        for corner in [0, 7, 32, 39] {
            pixels[corner * 4..][..3].copy_from_slice(&[255, 255, 255]);
        }
        // 165 levels are 10 times 16, which has 4 bits.
        assert_eq!(bytes(&pixels, 60), 16);
        assert_eq!(bytes(&pixels, 0), 8);
    }

    #[test]
    fn what_a_row_is_taken_to_cost() {
        let row = [10, 10, 10, 10, 10, 10, 13, 10, 10, 90, 0, 200];
        let above = [10, 10, 10, 0, 0, 0, 0, 0, 0, 90, 0, 200];
        // The first two repeat their left neighbour, the last what is above; 3 more in one sample takes 2 bits.
        assert_eq!(row_bits(&row, &above, 3), 2 + 2);
    }
}
