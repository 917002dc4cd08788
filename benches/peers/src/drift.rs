//! Color that drifts: a smooth place as a whole comes out in another tint, which no step and no
//! texture shows.

use crate::blocks;
use crate::picture::Picture;

/// Width and height of the squares whose means are compared.
const MACROBLOCK: usize = 16;

/// Mean differences in Cb and Cr, in levels of 255.
pub type Drift = [f64; 2];

/// The mean over all macroblocks of the difference between the means of `decoded` and of the
/// original, whose planes are Y, Cb and Cr of `width` samples a row. What a picture has beyond its
/// last whole macroblock does not count.
pub fn drift(original: &[Vec<f32>; 3], decoded: &Picture) -> Drift {
    let width = decoded.width as usize;
    let planes = blocks::planes(decoded);
    [1, 2].map(|plane| {
        let means = |samples: &[f32]| means(samples, width);
        let pairs = means(&original[plane])
            .into_iter()
            .zip(means(&planes[plane]));
        let differences: Vec<f64> = pairs.map(|(a, b)| (a - b).abs()).collect();
        differences.iter().sum::<f64>() / differences.len().max(1) as f64
    })
}

/// The mean of each macroblock.
fn means(samples: &[f32], width: usize) -> Vec<f64> {
    let across = width / MACROBLOCK;
    let mut means = Vec::new();
    for rows in samples.chunks_exact(width * MACROBLOCK) {
        let mut sums = vec![0.0; across];
        for row in rows.chunks_exact(width) {
            for (sum, part) in sums.iter_mut().zip(row.chunks_exact(MACROBLOCK)) {
                *sum += part.iter().copied().map(f64::from).sum::<f64>();
            }
        }
        let area = (MACROBLOCK * MACROBLOCK) as f64;
        means.extend(sums.into_iter().map(|sum| sum / area));
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_drifts_and_noise_does_not() {
        let picture = |blue: &dyn Fn(u32) -> u8| Picture {
            width: 40,
            height: 32,
            pixels: (0..40 * 32).flat_map(|i| [100, 100, blue(i)]).collect(),
        };
        let original = blocks::planes(&picture(&|_| 100));
        let [cb, cr] = drift(&original, &picture(&|_| 110));
        // 10 of blue are 10 * (1 - 0.114) / 1.772 of Cb and -10 * 0.114 / 1.402 of Cr.
        assert!(
            (cb - 5.0).abs() < 0.01 && (cr - 0.813).abs() < 0.01,
            "{cb} {cr}"
        );
        let [cb, _] = drift(&original, &picture(&|i| if i % 2 == 0 { 90 } else { 110 }));
        assert!(cb < 1e-3, "{cb}");
    }
}
