//! How much of a pass's error shows, macroblock by macroblock, and the lambdas that follow.
//!
//! Segments know of the source alone how well it hides errors; this knows what became of it. A
//! macroblock that lost its structure, by SSIM, gets more bits in the next pass, and one whose
//! errors lie in structure that is still there gets fewer. Lambdas are the encoder's own: RFC 6386 codes none.
//!
//! Everything is whole numbers, or sums, quotients and square roots of `f32` in a fixed order,
//! which are the same on every machine.

use crate::EncodeError;
use crate::threads::Workers;
use crate::vp8::segment::Segmentation;
use crate::ycbcr::Planes;

/// What a pass did to the luma of a macroblock.
#[derive(Clone, Copy)]
struct Damage {
    /// Mean squared error.
    error: f32,
    /// Mean over windows of one less their structural similarity (SSIM), 0 to 2.
    dissimilarity: f32,
}

/// Returns for every macroblock, in raster order, the factor of its lambdas in the next pass.
///
/// By a fit to 22,000 macroblocks of photographs, SSIMULACRA2 gains by a unit less of squared error
/// in a macroblock in proportion to its dissimilarity to the power of 0.7, and to the error around
/// it to the power of -0.4; the optimal lambda falls as that rises. The powers here save as much as
/// full ones, and cost less by PSNR; half as high ones save 0.4 % less at equal SSIMULACRA2.
pub fn lambda_factors(
    source: &Planes,
    shown: &Planes,
    segmentation: &Segmentation,
    workers: Workers<'_>,
) -> Result<Vec<f32>, EncodeError> {
    let rows = workers.run(source.mb_height, |mb_y| {
        (0..source.mb_width)
            .map(|mb_x| damage(source, shown, mb_x, mb_y))
            .collect::<Vec<Damage>>()
    })?;
    let rows = workers.run(rows.len(), |mb_y| {
        let near = &rows[mb_y.saturating_sub(1)..rows.len().min(mb_y + 2)];
        (0..source.mb_width)
            .map(|mb_x| unscaled_factor(rows[mb_y][mb_x], near, mb_x))
            .collect::<Vec<f32>>()
    })?;
    let mut factors = rows.concat();
    scale_to_segments(&mut factors, segmentation);
    Ok(factors)
}

/// Returns the factor of a macroblock, before the segment's others are known: the fourth root of
/// the error in it and around it, by the square root of its dissimilarity. `near` are its row and
/// those above and below.
fn unscaled_factor(damage: Damage, near: &[Vec<Damage>], mb_x: usize) -> f32 {
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
    (error.sqrt() / (damage.dissimilarity + LEAST_DISSIMILARITY)).sqrt()
}

/// Divides the factors of each segment by their mean: how a segment's lambda compares to another's
/// is settled by their quantizers.
fn scale_to_segments(factors: &mut [f32], segmentation: &Segmentation) {
    /// Factors lie between this and one over it.
    const LARGEST: f32 = 2.0;
    let (mut sums, mut counts) = ([0.0; 4], [0.0; 4]);
    for (i, factor) in factors.iter().enumerate() {
        let segment = usize::from(segmentation.of(i));
        sums[segment] += factor;
        counts[segment] += 1.0;
    }
    for (i, factor) in factors.iter_mut().enumerate() {
        let segment = usize::from(segmentation.of(i));
        *factor = (*factor * counts[segment] / sums[segment]).clamp(1.0 / LARGEST, LARGEST);
    }
}

/// Compares a macroblock, by nine windows that overlap by half.
fn damage(source: &Planes, shown: &Planes, mb_x: usize, mb_y: usize) -> Damage {
    /// Side of a window in pixels.
    const WINDOW: usize = 8;
    const WINDOWS: usize = 9;
    /// Added to the variances and covariances of windows, in 1/4096 of a squared pixel: variances
    /// of less than 8 are noise.
    const STABLE: f32 = 8.0 * 4096.0;
    let stride = source.luma_stride();
    let mut error = 0;
    let mut dissimilarity = 0.0;
    for window in 0..WINDOWS {
        let (x, y) = (mb_x * 16 + window % 3 * 4, mb_y * 16 + window / 3 * 4);
        let [mut a, mut b, mut aa, mut bb, mut ab] = [0i32; 5];
        for row in 0..WINDOW {
            let at = (y + row) * stride + x;
            let pair = source.luma[at..][..WINDOW]
                .iter()
                .zip(&shown.luma[at..][..WINDOW]);
            for (&source, &shown) in pair {
                let (source, shown) = (i32::from(source), i32::from(shown));
                a += source;
                b += shown;
                aa += source * source;
                bb += shown * shown;
                ab += source * shown;
            }
        }
        error += aa + bb - 2 * ab;
        let variances = 64 * (aa + bb) - a * a - b * b;
        let covariance = 64 * ab - a * b;
        dissimilarity += 1.0 - ((2 * covariance) as f32 + STABLE) / (variances as f32 + STABLE);
    }
    Damage {
        error: error as f32 / (WINDOWS * WINDOW * WINDOW) as f32,
        dissimilarity: (dissimilarity / WINDOWS as f32).max(0.0),
    }
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
        let segmentation = Segmentation::single(40, 0);
        let workers = Workers::unlimited(1);
        let factors =
            lambda_factors(&source, &shown, &segmentation, workers).expect("nothing cancels it");
        assert!(factors[1] < factors[2], "{factors:?}");
        assert!(factors[1] < 1.0 && factors[2] > 1.0, "{factors:?}");
        assert!(
            factors.iter().all(|f| (0.5..=2.0).contains(f)),
            "{factors:?}"
        );
    }

    #[test]
    fn where_nothing_was_lost_nothing_changes() {
        let planes = Planes::new(48, 48);
        let segmentation = Segmentation::single(40, 0);
        let factors = lambda_factors(&planes, &planes, &segmentation, Workers::unlimited(2));
        assert_eq!(factors.expect("nothing cancels it"), [1.0; 9]);
    }
}
