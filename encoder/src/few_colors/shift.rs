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
