//! Finds the areas whose color changes visibly.

use super::colors::{Color, Colors};
use crate::error::EncodeError;
use crate::threads::Workers;

/// The side of the blocks whose means are compared.
const SIDE: usize = 8;

/// Counts the blocks in which the mean of a sample (multiplied by alpha), or of alpha, changes by
/// more than `limit`, in 64ths of a level, and raises the weight of their colors.
///
/// # Errors
/// [`EncodeError::Cancelled`].
pub fn raise_weights(
    pixels: &[u32],
    width: usize,
    colors: &mut Colors,
    limit: u64,
    workers: Workers<'_>,
) -> Result<usize, EncodeError> {
    let changes: Vec<[i32; 4]> = colors.list.iter().map(change).collect();
    let blocks = width.div_ceil(SIDE);
    let mut shifted = 0;
    let mut sums = vec![[0i32; 4]; blocks];
    for rows in pixels.chunks(SIDE * width) {
        workers.check()?;
        sums.fill([0; 4]);
        for row in rows.chunks(width) {
            let mut last = (row[0], changes[colors.find(row[0])]);
            for (block, sums) in row.chunks(SIDE).zip(&mut sums) {
                for &argb in block {
                    if argb != last.0 {
                        last = (argb, changes[colors.find(argb)]);
                    }
                    for (sum, change) in sums.iter_mut().zip(last.1) {
                        *sum += change;
                    }
                }
            }
        }
        for (index, sums) in sums.iter().enumerate() {
            let columns = index * SIDE..width.min((index + 1) * SIDE);
            // A block at the border has fewer pixels.
            let count = columns.len() * (rows.len() / width);
            let most = sums.iter().map(|sum| sum.unsigned_abs()).max();
            // In 1 / 255 of a level.
            if u64::from(most.expect("four sums")) * 64 <= limit * 255 * count as u64 {
                continue;
            }
            shifted += 1;
            for row in rows.chunks(width) {
                for &argb in &row[columns.clone()] {
                    let index = colors.find(argb);
                    colors.list[index].is_raised = true;
                }
            }
        }
    }
    let most = pixels.len() as u64 * 9 / 256;
    for color in &mut colors.list {
        if std::mem::take(&mut color.is_raised) {
            color.weight = color.weight.max(most.min(color.weight * 16));
        }
    }
    Ok(shifted)
}

/// The change of a color's samples, multiplied by alpha, and of alpha, in 1 / 255 of a level.
fn change(color: &Color) -> [i32; 4] {
    let [before, after] = [color.argb, color.replaced].map(|argb| {
        let [blue, green, red, alpha] = argb.to_le_bytes().map(i32::from);
        [blue * alpha, green * alpha, red * alpha, alpha * 255]
    });
    std::array::from_fn(|sample| after[sample] - before[sample])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAY: u32 = 0xff80_8080;
    const HALF_CLEAR_RED: u32 = 0x80ff_0000;

    /// The colors of a picture, of which [`HALF_CLEAR_RED`] is replaced by one of less red and more
    /// alpha.
    fn colors(pixels: &[u32]) -> Colors {
        let counted = Colors::count(pixels, Workers::unlimited(1)).expect("not cancelled");
        let mut colors = counted.expect("enough colors");
        let index = colors.find(HALF_CLEAR_RED);
        colors.list[index].replaced = 0x82f6_0000;
        colors
    }

    /// A gray picture of 20 columns and 30 rows. Its last rows have 280 further colors, since fewer
    /// than 257 are not counted. Row 2 has three pixels of [`HALF_CLEAR_RED`] in its first block,
    /// and one in its last.
    fn picture() -> Vec<u32> {
        let mut pixels = vec![GRAY; 20 * 30];
        for (index, pixel) in pixels[16 * 20..].iter_mut().enumerate() {
            *pixel = 0xff00_0000 | index as u32;
        }
        pixels[2 * 20..][..3].fill(HALF_CLEAR_RED);
        pixels[2 * 20 + 19] = HALF_CLEAR_RED;
        pixels
    }

    #[test]
    fn samples_change_by_their_product_with_alpha() {
        let pixels = picture();
        let colors = colors(&pixels);
        let changes = change(&colors.list[colors.find(HALF_CLEAR_RED)]);
        assert_eq!(changes, [0, 0, 246 * 130 - 255 * 128, 2 * 255]);
        assert_eq!(change(&colors.list[colors.find(GRAY)]), [0; 4]);
    }

    #[test]
    fn blocks_count_whose_mean_changes_by_more_than_the_limit() {
        let pixels = picture();
        // Red, which changes most, changes by 660 in 255ths of a level: in three pixels of the 64
        // of the first block, and in one of the 32 of the narrow last one.
        let first = 660 * 3 * 64 / (255 * 64);
        let last = 660 * 64 / (255 * 32);
        for (limit, expected) in [(last, 2), (last + 1, 1), (first, 1), (first + 1, 0)] {
            let mut colors = colors(&pixels);
            let shifted = raise_weights(&pixels, 20, &mut colors, limit, Workers::unlimited(1));
            assert_eq!(shifted.expect("not cancelled"), expected, "limit {limit}");
        }
    }

    #[test]
    fn colors_of_counted_blocks_weigh_more_up_to_a_limit() {
        let pixels = picture();
        let mut colors = colors(&pixels);
        let weights = |colors: &Colors| {
            [HALF_CLEAR_RED, GRAY, 0xff00_0001].map(|argb| colors.list[colors.find(argb)].weight)
        };
        let before = weights(&colors);
        // Two of the four pixels equal the one on their left.
        assert_eq!(before[0], 4 + 2 * 8);
        let shifted = raise_weights(&pixels, 20, &mut colors, 0, Workers::unlimited(1));
        assert_eq!(shifted.expect("not cancelled"), 2);
        // The limit of 600 * 9 / 256 is less than 16 times 20. Gray weighs more than it, and stays.
        assert_eq!(weights(&colors), [21, before[1], before[2]]);
        assert!(colors.list.iter().all(|color| !color.is_raised));
    }
}
