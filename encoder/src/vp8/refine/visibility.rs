//! How much of a pass's error shows, and how errors weigh in the next pass.
//!
//! Segments know of the source alone how well it hides errors; this knows what became of it. A
//! macroblock that lost its structure, by SSIM, gets more bits in the next pass, and one whose
//! errors lie in structure that is still there gets fewer; within a macroblock, errors weigh more
//! in the blocks that lost theirs. Lambdas and weights are the encoder's own: RFC 6386 codes none.
//!
//! Everything is whole numbers, or sums, quotients and square roots of `f32` in a fixed order,
//! which are the same on every machine.

use crate::EncodeError;
use crate::threads::Workers;
use crate::vp8::constants::Constants;
use crate::vp8::mode_decision::Visibility;
use crate::vp8::segment::Segmentation;
use crate::ycbcr::Planes;

/// The errors of a pass in the luma of a macroblock.
#[derive(Clone, Copy)]
struct Damage {
    /// Mean squared error.
    error: f32,
    /// One less the structural similarity (SSIM) of each 4x4 block: the mean over the windows that
    /// it lies in, 0 to 2.
    dissimilarities: [f32; 16],
}

/// The bytes that a comparison holds for a macroblock, beside its outcome.
pub const DAMAGE_BYTES: u64 = size_of::<Damage>() as u64;

/// Returns for every macroblock, in raster order, how its errors weigh in the next pass.
///
/// By a fit to 22,000 macroblocks of photographs, SSIMULACRA2 gains by a unit less of squared error
/// in a macroblock in proportion to its dissimilarity to the power of 0.7, and to the error around
/// it to the power of -0.4; the optimal lambda falls as that rises. The powers here save as much as
/// full ones, and cost less by PSNR; half as high ones save 0.4 % less at equal SSIMULACRA2.
///
/// By the mean of judges (`benches/peers`), no other power of either is better (0 to 0.2 % worse),
/// nor does it help to count the structure of the means of 4x4 blocks, to weigh dark macroblocks
/// more or less, or to allow factors up to 3.
pub fn visibilities(
    source: &Planes,
    shown: &Planes,
    segmentation: &Segmentation,
    constants: &Constants,
    workers: Workers<'_>,
) -> Result<Vec<Visibility>, EncodeError> {
    let rows = workers.run(source.mb_height, |mb_y| damages(source, shown, mb_y))?;
    let rows = workers.run(rows.len(), |mb_y| {
        let near = &rows[mb_y.saturating_sub(1)..rows.len().min(mb_y + 2)];
        (0..source.mb_width)
            .map(|mb_x| unscaled(&rows[mb_y][mb_x], near, mb_x, constants))
            .collect::<Vec<Visibility>>()
    })?;
    let mut visibilities = rows.concat();
    scale_to_segments(&mut visibilities, segmentation);
    Ok(visibilities)
}

/// Returns the mean of what two comparisons gave, or `second` if `first` is empty.
///
/// In the second comparison, errors are weighed by the first already. Following it alone costs
/// 0.3 % at equal SSIMULACRA2, and so does following the first alone, on single pictures 3 %.
pub fn average(first: &[Visibility], mut second: Vec<Visibility>) -> Vec<Visibility> {
    for (first, second) in first.iter().zip(&mut second) {
        second.lambda_factor = (first.lambda_factor + second.lambda_factor) * 0.5;
        for (first, second) in first.block_weights.iter().zip(&mut second.block_weights) {
            *second = u8::midpoint(*first, *second);
        }
    }
    second
}

/// Returns the visibility in a macroblock, before the segment's others are known. The factor is the
/// fourth root of the error in it and around it, by the square root of its dissimilarity. `near`
/// are its row and those above and below.
fn unscaled(
    damage: &Damage,
    near: &[Vec<Damage>],
    mb_x: usize,
    constants: &Constants,
) -> Visibility {
    /// Below these lies what no eye sees.
    const LEAST_ERROR: f32 = 0.5;
    const LEAST_DISSIMILARITY: f32 = 0.005;
    let (mut error, mut count) = (0.0, 0.0);
    for row in near {
        for neighbor in &row[mb_x.saturating_sub(1)..row.len().min(mb_x + 2)] {
            error += neighbor.error;
            count += 1.0;
        }
    }
    let error = error / count + LEAST_ERROR;
    let mut sum = 0.0;
    for dissimilarity in damage.dissimilarities {
        sum += dissimilarity;
    }
    let mean = sum / 16.0 + LEAST_DISSIMILARITY;
    Visibility {
        lambda_factor: (error.sqrt() / mean).sqrt(),
        block_weights: damage.dissimilarities.map(|dissimilarity| {
            let ratio = (dissimilarity + LEAST_DISSIMILARITY) / mean;
            (power(ratio, constants.lost_structure) * 64.0).clamp(32.0, 128.0) as u8
        }),
    }
}

/// Returns `base` to the power of `eighths / 8`, by square roots alone, which are the same on every
/// machine.
fn power(base: f32, eighths: i32) -> f32 {
    let (mut root, mut power) = (base, 1.0);
    for bit in [8, 4, 2, 1] {
        if eighths & bit != 0 {
            power *= root;
        }
        root = root.sqrt();
    }
    power
}

/// Divides the factors of each segment by their mean: how a segment's lambda compares to another's
/// is settled by their quantizers.
fn scale_to_segments(visibilities: &mut [Visibility], segmentation: &Segmentation) {
    /// Factors lie between this and one over it.
    const LARGEST: f32 = 2.0;
    let (mut sums, mut counts) = ([0.0; 4], [0.0; 4]);
    for (i, visibility) in visibilities.iter().enumerate() {
        let segment = usize::from(segmentation.of(i));
        sums[segment] += visibility.lambda_factor;
        counts[segment] += 1.0;
    }
    for (i, visibility) in visibilities.iter_mut().enumerate() {
        let segment = usize::from(segmentation.of(i));
        let factor = visibility.lambda_factor * counts[segment] / sums[segment];
        visibility.lambda_factor = factor.clamp(1.0 / LARGEST, LARGEST);
    }
}

/// Sums over the pixels of a 4x4 block or of a window of four.
#[derive(Clone, Copy, Default)]
struct Sums {
    source: i32,
    shown: i32,
    squares: i32,
    products: i32,
}

impl Sums {
    fn of_block(source: &Planes, shown: &Planes, at: usize) -> Sums {
        let stride = source.luma_stride();
        let mut sums = Sums::default();
        for row in 0..4 {
            let at = at + row * stride;
            let pair = source.luma[at..][..4].iter().zip(&shown.luma[at..][..4]);
            for (&source, &shown) in pair {
                let (source, shown) = (i32::from(source), i32::from(shown));
                sums.source += source;
                sums.shown += shown;
                sums.squares += source * source + shown * shown;
                sums.products += source * shown;
            }
        }
        sums
    }

    fn add(&mut self, other: Sums) {
        self.source += other.source;
        self.shown += other.shown;
        self.squares += other.squares;
        self.products += other.products;
    }

    /// One less the structural similarity of the 64 pixels of a window. The term of the mean is
    /// left out, since other windows measure it.
    fn dissimilarity(self) -> f32 {
        /// Added to the variances and covariances, in 1/4096 of a squared pixel: variances of less
        /// than 8 are noise.
        const STABLE: f32 = 8.0 * 4096.0;
        let squares = self.source * self.source + self.shown * self.shown;
        let variances = 64 * self.squares - squares;
        let covariance = 64 * self.products - self.source * self.shown;
        let similarity = ((2 * covariance) as f32 + STABLE) / (variances as f32 + STABLE);
        (1.0 - similarity).max(0.0)
    }
}

/// Compares the macroblocks of a row, by windows of 2x2 blocks at all blocks.
fn damages(source: &Planes, shown: &Planes, mb_y: usize) -> Vec<Damage> {
    let (width, height) = (source.mb_width * 4, source.mb_height * 4);
    let stride = source.luma_stride();
    // Rows of blocks, with the one above and the one below.
    let first = (mb_y * 4).saturating_sub(1);
    let end = height.min(mb_y * 4 + 5);
    let blocks: Vec<Vec<Sums>> = (first..end)
        .map(|y| {
            (0..width)
                .map(|x| Sums::of_block(source, shown, y * 4 * stride + x * 4))
                .collect()
        })
        .collect();
    // The window at (x, y) begins at the block there.
    let windows: Vec<Vec<f32>> = blocks
        .windows(2)
        .map(|rows| {
            (0..width - 1)
                .map(|x| {
                    let mut sums = rows[0][x];
                    sums.add(rows[0][x + 1]);
                    sums.add(rows[1][x]);
                    sums.add(rows[1][x + 1]);
                    sums.dissimilarity()
                })
                .collect()
        })
        .collect();
    (0..source.mb_width)
        .map(|mb_x| {
            let mut error = 0;
            let mut dissimilarities = [0.0; 16];
            for (block, dissimilarity) in dissimilarities.iter_mut().enumerate() {
                let (x, y) = (mb_x * 4 + block % 4, mb_y * 4 + block / 4 - first);
                let sums = blocks[y][x];
                error += sums.squares - 2 * sums.products;
                let (mut sum, mut count) = (0.0, 0.0);
                for row in &windows[y.saturating_sub(1)..windows.len().min(y + 1)] {
                    for window in &row[x.saturating_sub(1)..row.len().min(x + 1)] {
                        sum += window;
                        count += 1.0;
                    }
                }
                *dissimilarity = sum / count;
            }
            Damage {
                error: error as f32 / 256.0,
                dissimilarities,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Four macroblocks of noise side by side, the second of which is shown flat, and the third
    /// with its mean off by 3.
    #[test]
    fn lost_structure_gets_more_bits_than_an_error_that_keeps_it() {
        let mut random = Random::new(5);
        let mut source = Planes::new(64, 16);
        source.luma.fill_with(|| 100 + random.byte() % 32);
        let mut shown = source.clone();
        for (i, pixel) in shown.luma.iter_mut().enumerate() {
            match i % 64 / 16 {
                1 => *pixel = 116,
                2 => *pixel += 3,
                _ => {}
            }
        }
        let segmentation = Segmentation::single(40, &Constants::DEFAULT);
        let workers = Workers::unlimited(1);
        let all = visibilities(&source, &shown, &segmentation, &Constants::MAX, workers)
            .expect("not cancelled");
        let factors: Vec<f32> = all.iter().map(|v| v.lambda_factor).collect();
        assert!(factors[1] < factors[2], "{factors:?}");
        assert!(factors[1] < 1.0 && factors[2] > 1.0, "{factors:?}");
        assert!(
            factors.iter().all(|f| (0.5..=2.0).contains(f)),
            "{factors:?}"
        );
    }

    /// A macroblock of noise of which one block is shown flat.
    #[test]
    fn errors_weigh_most_in_the_block_that_lost_structure() {
        let mut random = Random::new(6);
        let mut source = Planes::new(16, 16);
        source.luma.fill_with(|| 100 + random.byte() % 32);
        let mut shown = source.clone();
        for y in 8..12 {
            shown.luma[y * 16 + 4..][..4].fill(116);
        }
        let segmentation = Segmentation::single(40, &Constants::DEFAULT);
        let all = visibilities(
            &source,
            &shown,
            &segmentation,
            &Constants {
                lost_structure: 4,
                ..Constants::MAX
            },
            Workers::unlimited(1),
        )
        .expect("not cancelled");
        let weights = all[0].block_weights;
        assert!(
            (all[0].lambda_factor - 1.0).abs() < 1e-6,
            "it is the only one of its segment"
        );
        // Its windows reach the blocks around it.
        assert!(weights[3] < 40 && weights[9] > 90, "{weights:?}");
        assert!(
            weights.iter().all(|w| (32..=128).contains(w)),
            "{weights:?}"
        );
    }

    #[test]
    fn powers_are_products_of_square_roots() {
        for (eighths, expected) in [(0, 1.0), (2, 2.0), (4, 4.0), (3, 2.828_427), (8, 16.0)] {
            let found = power(16.0, eighths);
            assert!((found - expected).abs() < 1e-4, "{found} for {eighths}");
        }
    }

    #[test]
    fn two_comparisons_are_averaged_and_the_first_stands_alone() {
        let first = Visibility {
            lambda_factor: 0.5,
            block_weights: [33; 16],
        };
        let mean = average(&[first], vec![Visibility::EVEN]);
        assert!((mean[0].lambda_factor - 0.75).abs() < 1e-6);
        assert_eq!(mean[0].block_weights, [48; 16]);
        assert_eq!(average(&[], vec![first]), [first]);
    }

    #[test]
    fn where_nothing_was_lost_nothing_changes() {
        let planes = Planes::new(48, 48);
        let segmentation = Segmentation::single(40, &Constants::DEFAULT);
        let all = visibilities(
            &planes,
            &planes,
            &segmentation,
            &Constants::MAX,
            Workers::unlimited(2),
        );
        assert_eq!(all.expect("not cancelled"), [Visibility::EVEN; 9]);
    }
}
