//! The model that predicts a picture's bytes and scores over quality.
//!
//! Each picture is a point in a space of four dimensions, in which those of the corpus are spread
//! normally around the origin: a factor model (principal components) of both curves and of the
//! activity. The observations of a picture give its most probable point, by the normal equations of
//! least squares with the origin as one more observation, and so the rest of its curves; the
//! residuals of the observations are interpolated.
//!
//! The figures are those of 100 photographs and screenshots of 0.2 to 10 megapixels (Kodak, CID22,
//! CLIC 2025, gb82, squoosh, lepton) at medium effort.

use towebp_encoder::Activity;

/// A curve over quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    /// The base-2 logarithm of the bits per pixel.
    Bits,
    /// The score of SSIMULACRA2.
    Score,
}

/// The prediction for one picture.
#[derive(Clone, Debug)]
pub(super) struct Model {
    activity: Option<Activity>,
    /// Observed: curve, quality and value.
    observed: Vec<(Curve, u8, f64)>,
}

/// The dimensions of the model.
const FACTORS: usize = 4;

/// A number that depends on the picture.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// Its mean.
    mean: f64,
    /// Its change along each dimension.
    weights: [f64; FACTORS],
    /// The standard deviation of the residual.
    deviation: f64,
}

/// Qualities of at most this are the arguments of a curve.
const QUALITIES: usize = 101;

impl Model {
    /// A picture of which nothing but its activity was observed.
    pub(super) fn new(activity: Option<Activity>) -> Model {
        Model {
            activity,
            observed: Vec::new(),
        }
    }

    /// Takes in a value of a curve.
    pub(super) fn observe(&mut self, curve: Curve, quality: u8, value: f64) {
        self.observed.push((curve, quality, value));
    }

    /// A curve as it is expected, rising throughout.
    pub(super) fn curve(&self, curve: Curve) -> [f64; QUALITIES] {
        let place = self.place();
        let mut residuals: Vec<(u8, f64)> = (self.observed.iter())
            .filter(|(of, ..)| *of == curve)
            .map(|&(_, quality, value)| (quality, value - expected(curve, quality).at(&place)))
            .collect();
        residuals.sort_by_key(|(quality, _)| *quality);
        let mut highest = f64::NEG_INFINITY;
        std::array::from_fn(|quality| {
            let quality = quality as u8;
            let value = expected(curve, quality).at(&place) + interpolated(&residuals, quality);
            highest = highest.max(value);
            highest
        })
    }

    /// Where the picture probably is.
    fn place(&self) -> [f64; FACTORS] {
        // The origin is an observation of each dimension.
        let mut matrix: [[f64; FACTORS]; FACTORS] =
            std::array::from_fn(|row| std::array::from_fn(|column| f64::from(row == column)));
        let mut right = [0.0; FACTORS];
        let activity = self.activity.map(|activity| {
            let [variance, flat] = &ACTIVITY;
            [(*variance, activity.log2_variance), (*flat, activity.flat)]
        });
        let curves = self.observed.iter();
        let curves = curves.map(|&(curve, quality, value)| (expected(curve, quality), value));
        for (expected, value) in activity.into_iter().flatten().chain(curves) {
            let precision = expected.deviation.powi(2).recip();
            let residual = value - expected.mean;
            for row in 0..FACTORS {
                let weight = expected.weights[row] * precision;
                right[row] += weight * residual;
                for (cell, other) in matrix[row].iter_mut().zip(expected.weights) {
                    *cell += weight * other;
                }
            }
        }
        solve(matrix, right)
    }
}

impl Expected {
    /// The number for a picture at `place`.
    fn at(&self, place: &[f64; FACTORS]) -> f64 {
        let products = self.weights.iter().zip(place);
        self.mean + products.map(|(weight, along)| weight * along).sum::<f64>()
    }
}

/// The value of a curve at a quality: a straight line between the values of the table.
fn expected(curve: Curve, quality: u8) -> Expected {
    let table = match curve {
        Curve::Bits => &BITS,
        Curve::Score => &SCORES,
    };
    let upper = KNOTS
        .partition_point(|knot| *knot < quality)
        .clamp(1, KNOTS.len() - 1);
    let [low, high] = [KNOTS[upper - 1], KNOTS[upper]].map(f64::from);
    let share = (f64::from(quality) - low) / (high - low);
    let mix = |from: f64, to: f64| from + (to - from) * share;
    let [from, to] = [table[upper - 1], table[upper]];
    Expected {
        mean: mix(from.mean, to.mean),
        weights: std::array::from_fn(|factor| mix(from.weights[factor], to.weights[factor])),
        deviation: mix(from.deviation, to.deviation),
    }
}

/// Straight lines between points in order of their qualities, and level lines beyond them.
fn interpolated(points: &[(u8, f64)], quality: u8) -> f64 {
    let after = points.partition_point(|point| point.0 < quality);
    match (
        after.checked_sub(1).map(|before| points[before]),
        points.get(after),
    ) {
        (None, None) => 0.0,
        (Some((_, value)), None) | (None, Some(&(_, value))) => value,
        (Some((low, from)), Some(&(high, to))) => {
            let share = f64::from(quality - low) / f64::from(high - low);
            from + (to - from) * share
        }
    }
}

/// Solves `matrix * solution = right` by elimination. The matrix is the identity and squares, so
/// that every pivot is at least 1.
fn solve(mut matrix: [[f64; FACTORS]; FACTORS], mut right: [f64; FACTORS]) -> [f64; FACTORS] {
    for pivot in 0..FACTORS {
        let above = matrix[pivot];
        for row in pivot + 1..FACTORS {
            let factor = matrix[row][pivot] / above[pivot];
            for (cell, above) in matrix[row].iter_mut().zip(above) {
                *cell -= factor * above;
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..FACTORS).rev() {
        for column in row + 1..FACTORS {
            right[row] -= matrix[row][column] * right[column];
        }
        right[row] /= matrix[row][row];
    }
    right
}

const fn of(mean: f64, weights: [f64; FACTORS], deviation: f64) -> Expected {
    Expected {
        mean,
        weights,
        deviation,
    }
}

/// The qualities of the tables.
const KNOTS: [u8; 18] = [
    0, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100,
];

/// [`Curve::Bits`] at [`KNOTS`].
const BITS: [Expected; KNOTS.len()] = [
    of(-3.295, [-0.569, 0.319, -0.012, -0.039], 0.166),
    of(-2.799, [-0.767, 0.299, -0.034, 0.013], 0.106),
    of(-2.520, [-0.822, 0.261, -0.044, 0.014], 0.080),
    of(-2.278, [-0.867, 0.235, -0.056, 0.014], 0.065),
    of(-2.073, [-0.902, 0.212, -0.066, 0.008], 0.055),
    of(-1.872, [-0.941, 0.196, -0.076, 0.003], 0.041),
    of(-1.667, [-0.974, 0.173, -0.079, -0.003], 0.031),
    of(-1.573, [-0.988, 0.161, -0.079, -0.008], 0.028),
    of(-1.388, [-1.004, 0.136, -0.075, -0.018], 0.026),
    of(-1.207, [-1.022, 0.112, -0.069, -0.027], 0.030),
    of(-1.036, [-1.036, 0.088, -0.061, -0.034], 0.037),
    of(-0.849, [-1.051, 0.061, -0.054, -0.046], 0.045),
    of(-0.757, [-1.055, 0.042, -0.047, -0.050], 0.047),
    of(-0.470, [-1.068, -0.003, -0.024, -0.062], 0.062),
    of(-0.170, [-1.070, -0.055, 0.010, -0.075], 0.068),
    of(0.210, [-1.067, -0.120, 0.066, -0.083], 0.070),
    of(0.733, [-1.044, -0.213, 0.163, -0.076], 0.075),
    of(1.289, [-0.991, -0.288, 0.253, -0.072], 0.125),
];

/// [`Curve::Score`] at [`KNOTS`].
const SCORES: [Expected; KNOTS.len()] = [
    of(-5.896, [13.385, 11.864, 5.137, -4.811], 2.201),
    of(16.504, [7.363, 12.818, 3.567, -1.214], 2.062),
    of(27.739, [5.948, 11.048, 3.091, -0.406], 1.468),
    of(36.304, [4.766, 10.029, 1.888, 0.283], 1.776),
    of(43.022, [3.948, 9.083, 0.942, 0.701], 1.591),
    of(49.007, [3.150, 8.273, 0.191, 1.196], 1.417),
    of(54.432, [2.423, 7.315, -0.022, 1.150], 1.243),
    of(56.738, [2.239, 6.897, -0.320, 1.265], 1.268),
    of(60.901, [1.840, 5.982, -0.485, 1.292], 1.051),
    of(64.504, [1.461, 5.384, -0.626, 1.266], 0.993),
    of(67.611, [1.041, 4.805, -0.710, 1.214], 1.072),
    of(70.634, [0.764, 4.359, -0.695, 1.182], 1.082),
    of(72.070, [0.647, 4.086, -0.744, 1.163], 1.021),
    of(75.983, [0.214, 3.250, -0.707, 1.043], 1.193),
    of(79.632, [0.124, 2.555, -0.609, 0.872], 1.185),
    of(83.328, [-0.118, 1.820, -0.329, 0.878], 1.348),
    of(86.728, [-0.390, 1.129, 0.028, 0.815], 1.549),
    of(88.870, [-0.333, 0.601, 0.303, 0.816], 1.582),
];

/// The two numbers of [`Activity`].
const ACTIVITY: [Expected; 2] = [
    of(4.884, [-1.960, 0.266, 0.168, 0.281], 0.300),
    of(0.213, [0.218, 0.082, -0.115, -0.050], 0.029),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let matrix = [
            [4.0, 1.0, 0.0, 2.0],
            [1.0, 3.0, 1.0, 0.0],
            [0.0, 1.0, 5.0, 1.0],
            [2.0, 0.0, 1.0, 6.0],
        ];
        let expected = [1.0, -2.0, 3.0, 0.5];
        let product = |row: [f64; 4]| row.iter().zip(expected).map(|(a, b)| a * b).sum();
        let solution = solve(matrix, matrix.map(product));
        for (found, expected) in solution.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{solution:?}");
        }
    }

    #[test]
    fn curves_rise_and_go_through_what_was_observed() {
        let mut model = Model::new(None);
        let before = model.curve(Curve::Score);
        model.observe(Curve::Score, 40, before[40] + 3.0);
        model.observe(Curve::Score, 80, before[80] - 1.0);
        model.observe(Curve::Bits, 40, 0.5);
        let after = model.curve(Curve::Score);
        assert!(after.is_sorted() && before.is_sorted());
        assert!((after[40] - before[40] - 3.0).abs() < 1e-9);
        assert!((after[80] - before[80] + 1.0).abs() < 1e-9);
        assert!(after[45] > before[45], "what is near is higher, too");
        assert!((model.curve(Curve::Bits)[40] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn busy_pictures_take_more_bytes() {
        let bits = |log2_variance: f64| {
            let mut activity = busy();
            activity.log2_variance = log2_variance;
            Model::new(Some(activity)).curve(Curve::Bits)[60]
        };
        assert!(bits(3.0) + 0.5 < bits(6.0));
    }

    fn busy() -> Activity {
        let picture = [90; 16 * 16];
        let picture = towebp_encoder::Picture::new(16, 16, towebp_encoder::ColorType::L8, &picture);
        let prepared = towebp_encoder::Encoder::lossy(80).prepare(&picture.expect("a picture"));
        prepared
            .expect("it is not cancelled")
            .activity()
            .expect("it is not cancelled")
    }
}
