//! The Bjøntegaard rate difference between two encoders on one picture.

/// Mean difference in bytes at equal metric: -0.05 is 5 % fewer bytes than `reference`.
///
/// A curve is a list of (metric, bytes), in any order; the metric grows with quality, and NaN
/// leaves a point out. `ln(bytes)` over the metric is interpolated by PCHIP, which does not
/// overshoot as the original's cubic does, and averaged over the interval that both curves cover.
/// `None` if there is no such interval or a curve has fewer than two distinct points.
pub fn bd_rate(reference: &[(f64, f64)], test: &[(f64, f64)]) -> Option<f64> {
    let reference = Pchip::new(reference)?;
    let test = Pchip::new(test)?;
    let low = reference.first().max(test.first());
    let high = reference.last().min(test.last());
    if high <= low {
        return None;
    }
    let mut cuts: Vec<f64> = reference
        .x
        .iter()
        .chain(&test.x)
        .copied()
        .filter(|x| (low..=high).contains(x))
        .collect();
    cuts.extend([low, high]);
    cuts.sort_by(f64::total_cmp);
    let difference = |x| test.at(x) - reference.at(x);
    // Simpson's rule is exact here: between two cuts both curves are cubic.
    let area: f64 = cuts
        .windows(2)
        .map(|cut| {
            let (a, b) = (cut[0], cut[1]);
            (b - a) / 6.0 * (difference(a) + 4.0 * difference(f64::midpoint(a, b)) + difference(b))
        })
        .sum();
    Some((area / (high - low)).exp_m1())
}

/// Piecewise cubic Hermite interpolation of `ln(bytes)` with Fritsch and Carlson's slopes, as in
/// `scipy`.
pub struct Pchip {
    x: Vec<f64>,
    y: Vec<f64>,
    slope: Vec<f64>,
}

impl Pchip {
    /// Through (metric, bytes), as [`bd_rate`] takes them. `None` if there are fewer than two
    /// distinct points.
    pub fn new(points: &[(f64, f64)]) -> Option<Self> {
        let mut points: Vec<_> = points
            .iter()
            .filter(|(x, bytes)| x.is_finite() && *bytes > 0.0)
            .copied()
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 - b.0 < 1e-9);
        if points.len() < 2 {
            return None;
        }
        let x: Vec<f64> = points.iter().map(|p| p.0).collect();
        let y: Vec<f64> = points.iter().map(|p| p.1.ln()).collect();
        let step: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
        let rise: Vec<f64> = y
            .windows(2)
            .zip(&step)
            .map(|(w, h)| (w[1] - w[0]) / h)
            .collect();
        let n = x.len();
        let mut slope = vec![rise[0]; n];
        if n > 2 {
            for k in 1..n - 1 {
                slope[k] = inner_slope(step[k - 1], step[k], rise[k - 1], rise[k]);
            }
            slope[0] = end_slope(step[0], step[1], rise[0], rise[1]);
            slope[n - 1] = end_slope(step[n - 2], step[n - 3], rise[n - 2], rise[n - 3]);
        }
        Some(Self { x, y, slope })
    }

    /// The least metric.
    pub fn first(&self) -> f64 {
        self.x[0]
    }

    /// The greatest metric.
    pub fn last(&self) -> f64 {
        self.x[self.x.len() - 1]
    }

    /// `ln(bytes)` at a metric between the two.
    pub fn at(&self, x: f64) -> f64 {
        let k = self
            .x
            .partition_point(|knot| *knot <= x)
            .clamp(1, self.x.len() - 1)
            - 1;
        let h = self.x[k + 1] - self.x[k];
        let t = (x - self.x[k]) / h;
        let (t2, t3) = (t * t, t * t * t);
        (2.0 * t3 - 3.0 * t2 + 1.0) * self.y[k]
            + (t3 - 2.0 * t2 + t) * h * self.slope[k]
            + (3.0 * t2 - 2.0 * t3) * self.y[k + 1]
            + (t3 - t2) * h * self.slope[k + 1]
    }
}

/// The weighted harmonic mean of the slopes on both sides, 0 at a turning point.
fn inner_slope(h0: f64, h1: f64, d0: f64, d1: f64) -> f64 {
    if d0 * d1 <= 0.0 {
        return 0.0;
    }
    let (w0, w1) = (2.0 * h1 + h0, h1 + 2.0 * h0);
    (w0 + w1) / (w0 / d0 + w1 / d1)
}

/// A three-point estimate that keeps the shape.
fn end_slope(h0: f64, h1: f64, d0: f64, d1: f64) -> f64 {
    let slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
    if slope * d0 <= 0.0 {
        0.0
    } else if d0 * d1 <= 0.0 && slope.abs() > 3.0 * d0.abs() {
        3.0 * d0
    } else {
        slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: [(f64, f64); 5] = [
        (40.0, 10_000.0),
        (55.0, 16_000.0),
        (68.0, 27_000.0),
        (77.0, 44_000.0),
        (86.0, 90_000.0),
    ];

    #[test]
    fn the_same_curve_makes_no_difference() {
        assert_eq!(bd_rate(&CURVE, &CURVE), Some(0.0));
    }

    #[test]
    fn ten_percent_more_bytes_everywhere_is_ten_percent() {
        let more = CURVE.map(|(metric, bytes)| (metric, bytes * 1.1));
        let rate = bd_rate(&CURVE, &more).expect("the curves overlap");
        assert!((rate - 0.1).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn agrees_with_scipy() {
        // expm1((PchipInterpolator(x, ln y).integrate(45, 80) of `test` - the same of `CURVE`) /
        // 35).
        let test = [
            (45.0, 11_000.0),
            (57.0, 16_500.0),
            (66.0, 23_000.0),
            (75.0, 37_000.0),
            (80.0, 52_000.0),
        ];
        let rate = bd_rate(&CURVE, &test).expect("the curves overlap");
        assert!((rate - SCIPY).abs() < 1e-9, "{rate} instead of {SCIPY}");
    }
    const SCIPY: f64 = -0.049_127_779_496_967_66;

    #[test]
    fn curves_without_a_common_interval_have_no_difference() {
        let far = CURVE.map(|(metric, bytes)| (metric + 100.0, bytes));
        assert_eq!(bd_rate(&CURVE, &far), None);
        assert_eq!(bd_rate(&CURVE, &[(50.0, 1000.0)]), None);
    }
}
