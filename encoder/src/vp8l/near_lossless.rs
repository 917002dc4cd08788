//! Near-lossless preprocessing: rounds samples where it does not show, before lossless coding. It
//! is the encoder's own; RFC 9649, section 3, does not describe it.
//!
//! Flat, smooth and synthetic areas stay as they are. Other areas, where each pixel differs from
//! all its neighbors, mask small errors.

use super::transform::has_palette;
use crate::EncodeError;
use crate::checks::Checks;
use crate::threads::Workers;

/// Returns the largest error of a sample for `near_lossless`, 0 to 100: 0 at 100, 1 from 80 on, 2
/// from 60 on, and so on to 5 below 20.
pub fn max_error(near_lossless: u8) -> u8 {
    100u8.saturating_sub(near_lossless).div_ceil(20)
}

/// Rounds red, green and blue of `pixels`, in rows of `width`, by at most `max_error`. These stay:
/// alpha; pixels with alpha 0; pictures of up to 256 colors; pixels at the picture's border; pixels
/// that equal two of their four neighbors, as in flat areas and along edges; and pixels within
/// `max_error` of all four, as in gradients.
pub fn round(
    pixels: &mut [u32],
    width: usize,
    max_error: u8,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    let height = pixels.len() / width;
    if max_error == 0 || has_palette(pixels, workers)? {
        return Ok(());
    }
    let rounded = rounded(max_error);
    let is_close = |a: u32, b: u32| {
        let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
        pairs.into_iter().all(|(a, b)| a.abs_diff(b) <= max_error)
    };
    // The row above, before rounding.
    let mut above = pixels[..width].to_vec();
    let mut checks = Checks::new(workers);
    for y in 1..height - 1 {
        checks.at(y * width)?;
        let (row, below) = pixels[y * width..].split_at_mut(width);
        let mut left = row[0];
        above[0] = left;
        for x in 1..width - 1 {
            let own = row[x];
            let around = [left, row[x + 1], above[x], below[x]];
            let equal = around.iter().filter(|other| **other == own).count();
            if own >> 24 > 0 && equal < 2 && !around.iter().all(|other| is_close(own, *other)) {
                let [blue, green, red, alpha] = own.to_le_bytes();
                let [blue, green, red] =
                    [blue, green, red].map(|sample| rounded[usize::from(sample)]);
                row[x] = u32::from_le_bytes([blue, green, red, alpha]);
            }
            above[x] = own;
            left = own;
        }
        above[width - 1] = row[width - 1];
    }
    Ok(())
}

/// Returns, for each sample, the nearest multiple of the largest step that errs by at most
/// `max_error`.
fn rounded(max_error: u8) -> [u8; 256] {
    let step = 2 * u16::from(max_error) + 1;
    std::array::from_fn(|sample| {
        let multiple = (sample as u16 + u16::from(max_error)) / step * step;
        multiple.min(255) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Random pixels.
    fn noise(width: usize, height: usize) -> Vec<u32> {
        let mut random = Random::new(1);
        let pixels = (0..width * height).map(|_| random.next_u32() | 0xFF00_0000);
        pixels.collect()
    }

    fn round_for(near_lossless: u8, pixels: &[u32], width: usize) -> Vec<u32> {
        let mut rounded = pixels.to_vec();
        let max_error = max_error(near_lossless);
        round(&mut rounded, width, max_error, Workers::unlimited(1)).expect("nothing cancels it");
        rounded
    }

    #[test]
    fn the_error_is_bounded_and_alpha_is_exact() {
        let mut pixels = noise(50, 40);
        pixels[777] &= 0x00FF_FFFF;
        pixels[888] &= 0x7FFF_FFFF;
        for (near_lossless, max_error) in [
            (0, 5),
            (19, 5),
            (20, 4),
            (59, 3),
            (60, 2),
            (79, 2),
            (80, 1),
            (99, 1),
            (100, 0),
            (255, 0),
        ] {
            assert_eq!(super::max_error(near_lossless), max_error);
            let rounded = round_for(near_lossless, &pixels, 50);
            assert_eq!(rounded[777], pixels[777], "fully transparent");
            let mut most = 0;
            for (a, b) in pixels.iter().zip(&rounded) {
                let ([.., old_alpha], [.., alpha]) = (a.to_le_bytes(), b.to_le_bytes());
                assert_eq!(alpha, old_alpha);
                for (a, b) in a.to_le_bytes().into_iter().zip(b.to_le_bytes()) {
                    most = most.max(a.abs_diff(b));
                }
            }
            assert_eq!(most, max_error, "near_lossless {near_lossless}");
        }
    }

    #[test]
    fn flat_areas_lines_and_gradients_stay() {
        // Noise, a flat square of 10 x 10 pixels with a line through it, and a slope of 1 per
        // pixel.
        let (width, height) = (60, 20);
        let mut pixels = noise(width, height);
        for y in 5..15 {
            for x in 5..15 {
                pixels[y * width + x] = if x == 9 { 0xFF12_3456 } else { 0xFF77_7777 };
            }
            for x in 30..50 {
                pixels[y * width + x] = 0xFF40_4040 + (x + y) as u32 * 0x0001_0101;
            }
        }
        let rounded = round_for(80, &pixels, width);
        for y in 6..14 {
            for x in (5..15).chain(31..49) {
                let i = y * width + x;
                assert_eq!(rounded[i], pixels[i], "at {x}, {y}");
            }
        }
        let changed = rounded.iter().zip(&pixels).filter(|(a, b)| a != b).count();
        assert!(changed > 500, "{changed} pixels of noise");
    }

    #[test]
    fn pictures_of_few_colors_stay() {
        let pixels: Vec<u32> = noise(50, 40)
            .iter()
            .map(|pixel| pixel | 0x00FF_FF1F)
            .collect();
        assert_eq!(round_for(0, &pixels, 50), pixels);
    }

    #[test]
    fn every_size_and_the_border() {
        // Pictures of more than two pixels each way are rounded inside of their border, since they
        // have more than 256 colors.
        for (width, height) in [
            (1, 1),
            (1, 300),
            (300, 1),
            (2, 300),
            (300, 2),
            (3, 300),
            (300, 3),
        ] {
            let pixels = noise(width, height);
            let rounded = round_for(0, &pixels, width);
            for (i, (a, b)) in pixels.iter().zip(&rounded).enumerate() {
                let (x, y) = (i % width, i / width);
                if x == 0 || y == 0 || x + 1 == width || y + 1 == height {
                    assert_eq!(a, b, "{width} x {height} at {x}, {y}");
                }
            }
            let has_inside = width > 2 && height > 2;
            assert_eq!(rounded != pixels, has_inside, "{width} x {height}");
        }
    }
}
