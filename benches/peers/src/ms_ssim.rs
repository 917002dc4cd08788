//! Structural similarity at several scales (MS-SSIM; Wang, Simoncelli and Bovik, 2003) of luma.

/// The weight of each scale, from the full size down.
const WEIGHTS: [f64; 5] = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333];
/// Side of the window, a Gaussian with a standard deviation of 1.5 pixels.
const WINDOW: usize = 11;
/// Added to products of means and to variances: (0.01 * 255)² and (0.03 * 255)².
const STABLE: [f32; 2] = [6.5025, 58.5225];

/// A plane of samples.
struct Plane {
    width: usize,
    samples: Vec<f32>,
}

/// Returns 1 less the similarity of two planes of `width`, 0 if they are equal. Where a scale has
/// no room for a window, the scales above share its weight; a picture without room for any has
/// none.
pub fn dissimilarity(original: &[f32], decoded: &[f32], width: u32) -> Option<f64> {
    let mut planes = [original, decoded].map(|samples| Plane {
        width: width as usize,
        samples: samples.to_vec(),
    });
    let (mut logarithm, mut weights) = (0.0, 0.0);
    for (scale, weight) in WEIGHTS.into_iter().enumerate() {
        if planes[0].width < WINDOW || planes[0].height() < WINDOW {
            break;
        }
        let [luminance, structure] = means(&planes[0], &planes[1]);
        planes = planes.map(|plane| plane.half());
        let is_last =
            scale + 1 == WEIGHTS.len() || planes[0].width < WINDOW || planes[0].height() < WINDOW;
        let similarity = if is_last { luminance } else { structure };
        logarithm += weight * similarity.max(1e-6).ln();
        weights += weight;
    }
    (weights > 0.0).then(|| (-(logarithm / weights).exp_m1()).max(0.0))
}

impl Plane {
    fn height(&self) -> usize {
        self.samples.len() / self.width
    }

    /// The means of 2x2 samples.
    fn half(&self) -> Plane {
        let width = self.width / 2;
        let rows = self.samples.chunks_exact(2 * self.width);
        let samples = rows.flat_map(|pair| {
            let (upper, lower) = pair.split_at(self.width);
            let cells = upper.chunks_exact(2).zip(lower.chunks_exact(2));
            cells.map(|(a, b)| (a[0] + a[1] + b[0] + b[1]) * 0.25)
        });
        Plane {
            width: width.max(1),
            samples: samples.collect(),
        }
    }
}

/// The mean over all windows of the whole similarity, and of its contrast and structure alone.
fn means(a: &Plane, b: &Plane) -> [f64; 2] {
    let product = |x: &Plane, y: &Plane| -> Vec<f32> {
        let pairs = x.samples.iter().zip(&y.samples);
        pairs.map(|(x, y)| x * y).collect()
    };
    let blurred = |samples: &[f32]| blur(samples, a.width);
    let [mean_a, mean_b] = [&a.samples, &b.samples].map(|samples| blurred(samples));
    let [aa, bb, ab] = [(a, a), (b, b), (a, b)].map(|(x, y)| blurred(&product(x, y)));
    let mut sums = [0.0; 2];
    for i in 0..mean_a.len() {
        let (x, y) = (mean_a[i], mean_b[i]);
        let variances = aa[i] - x * x + bb[i] - y * y;
        let structure = (2.0 * (ab[i] - x * y) + STABLE[1]) / (variances + STABLE[1]);
        let luminance = (2.0 * x * y + STABLE[0]) / (x * x + y * y + STABLE[0]);
        sums[0] += f64::from(luminance * structure);
        sums[1] += f64::from(structure);
    }
    sums.map(|sum| sum / mean_a.len() as f64)
}

/// The means over windows that lie within the plane.
fn blur(samples: &[f32], width: usize) -> Vec<f32> {
    let taps: [f32; WINDOW] = std::array::from_fn(|i| (-(i as f32 - 5.0).powi(2) / 4.5).exp());
    let sum: f32 = taps.iter().sum();
    let taps = taps.map(|tap| tap / sum);
    let columns = width + 1 - WINDOW;
    let rows = samples.chunks_exact(width);
    let across: Vec<f32> = rows
        .flat_map(|row| {
            let mut sums = vec![0.0; columns];
            for (tap, weight) in taps.into_iter().enumerate() {
                for (sum, sample) in sums.iter_mut().zip(&row[tap..]) {
                    *sum += weight * sample;
                }
            }
            sums
        })
        .collect();
    let mut blurred = vec![0.0; across.len() + columns - WINDOW * columns];
    for (tap, weight) in taps.into_iter().enumerate() {
        for (sum, sample) in blurred.iter_mut().zip(&across[tap * columns..]) {
            *sum += weight * sample;
        }
    }
    blurred
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<f32> {
        let mut state = 1u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as f32
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn only_what_is_equal_has_no_dissimilarity() {
        let a = noise(256 * 200);
        let same = dissimilarity(&a, &a, 256).expect("room for all scales");
        assert!(same < 1e-5, "{same}");
        let half: Vec<f32> = a.iter().map(|a| a * 0.5 + 64.0).collect();
        let quarter: Vec<f32> = a.iter().map(|a| a * 0.25 + 96.0).collect();
        let [half, quarter] =
            [half, quarter].map(|b| dissimilarity(&a, &b, 256).expect("room for all scales"));
        assert!(
            0.1 < half && half < quarter && quarter < 1.0,
            "{half} {quarter}"
        );
    }

    #[test]
    fn a_change_of_contrast_is_known_exactly() {
        // A plane of one scale: contrast and structure of noise halved are 2 / (1 + 1/4) / 2.
        let a = noise(20 * 20);
        let b: Vec<f32> = a.iter().map(|a| a * 0.5 + 63.75).collect();
        let found = dissimilarity(&a, &b, 20).expect("room for one scale");
        assert!((found - 0.2).abs() < 0.01, "{found}");
        assert_eq!(dissimilarity(&a[..200], &b[..200], 20), None, "10 rows");
    }

    #[test]
    fn errors_at_a_coarse_scale_are_seen_there() {
        let width = 256;
        let a = noise(width * 192);
        // Macroblocks are off by 8 levels in turns, which a window of 11 pixels hardly sees.
        let b: Vec<f32> = a
            .iter()
            .enumerate()
            .map(|(i, a)| {
                a + if (i % width / 16 + i / width / 16) % 2 == 0 {
                    8.0
                } else {
                    -8.0
                }
            })
            .collect();
        let off = dissimilarity(&a, &b, width as u32).expect("room for all scales");
        assert!(off > 0.01, "{off}");
    }
}
