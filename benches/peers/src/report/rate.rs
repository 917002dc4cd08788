//! BD-rates and times of single pictures, from which every table is made.

use super::{Results, mean};
use crate::curve::bd_rate;
use crate::measure::Point;
use crate::metric::Scores;

/// A measure of how near a picture is to its original.
pub struct Metric {
    /// As tables name it.
    pub name: &'static str,
    /// Grows with quality; NaN where it was not computed.
    pub value: fn(&Scores) -> f64,
}

/// What all tables begin with.
pub const SSIMULACRA2: Metric = Metric {
    name: "SSIMULACRA2",
    value: |scores| scores.ssimulacra2,
};

/// As -10 log10, so that it grows with quality and equal ratios weigh alike.
pub const DSSIM: Metric = Metric {
    name: "DSSIM",
    value: |scores| distance_db(scores.dssim),
};

/// The 3-norm, as -10 log10.
pub const BUTTERAUGLI: Metric = Metric {
    name: "Butteraugli",
    value: |scores| distance_db(scores.butteraugli),
};

/// Of luma alone, at five scales, as -10 log10.
pub const MS_SSIM: Metric = Metric {
    name: "MS-SSIM",
    value: |scores| distance_db(scores.ms_ssim),
};

/// Of luma alone.
pub const PSNR_Y: Metric = Metric {
    name: "PSNR-Y",
    value: |scores| scores.psnr_y,
};

/// In the order of the tables' columns.
pub const METRICS: [&Metric; 5] = [&SSIMULACRA2, &DSSIM, &BUTTERAUGLI, &MS_SSIM, &PSNR_Y];

/// How many of [`METRICS`], from the first on, judge together; PSNR-Y is only watched.
pub const JUDGES: usize = 4;

/// The geometric mean of the bytes that the judges say, where -0.05 is 5 % fewer: one judge alone
/// can be flattered.
pub fn mean_of_judges(rates: [f64; JUDGES]) -> f64 {
    let sum: f64 = rates.into_iter().map(f64::ln_1p).sum();
    (sum / JUDGES as f64).exp_m1()
}

fn distance_db(distance: Option<f64>) -> f64 {
    distance.map_or(f64::NAN, |distance| -10.0 * distance.max(1e-12).log10())
}

impl Results {
    /// BD-rate of one picture against the reference; `None` where the curves do not overlap.
    pub fn bd_rate(&self, picture: usize, peer: usize, metric: &Metric) -> Option<f64> {
        let curve = |points: &[Point]| -> Vec<(f64, f64)> {
            points
                .iter()
                .map(|point| ((metric.value)(&point.scores), point.bytes as f64))
                .collect()
        };
        bd_rate(
            &curve(self.points.row(picture, self.reference())),
            &curve(self.points.row(picture, peer)),
        )
    }

    /// The mean of the judges on one picture; `None` where curves do not overlap.
    pub fn judged_rate(&self, picture: usize, peer: usize) -> Option<f64> {
        let mut rates = [0.0; JUDGES];
        for (rate, metric) in rates.iter_mut().zip(METRICS) {
            *rate = self.bd_rate(picture, peer, metric)?;
        }
        Some(mean_of_judges(rates))
    }

    /// The mean of the judges on those of `pictures` that have one.
    pub fn judged_rates(&self, peer: usize, pictures: &[usize]) -> Vec<f64> {
        let judged = pictures.iter();
        judged
            .filter_map(|&picture| self.judged_rate(picture, peer))
            .collect()
    }

    /// Those of `pictures` that have one.
    pub fn bd_rates(&self, peer: usize, metric: &Metric, pictures: &[usize]) -> Vec<f64> {
        pictures
            .iter()
            .filter_map(|&picture| self.bd_rate(picture, peer, metric))
            .collect()
    }

    /// The mean BD-rate of a peer by SSIMULACRA2; `None` where no curves overlap.
    pub fn mean_bd_rate(&self, peer: usize) -> Option<f64> {
        let rates = self.bd_rates(peer, &SSIMULACRA2, &self.every());
        (!rates.is_empty()).then(|| mean(&rates))
    }

    /// CPU time of a peer relative to the reference, all qualities of a picture together, the
    /// median over the pictures; `None` without times.
    pub fn cpu_ratio(&self, peer: usize, pictures: &[usize]) -> Option<f64> {
        let mut ratios = self.cpu_ratios(peer, pictures);
        (!ratios.is_empty()).then(|| crate::measure::median(&mut ratios))
    }

    /// By picture: CPU time over all qualities together, beside the reference's; empty without
    /// times.
    pub fn cpu_ratios(&self, peer: usize, pictures: &[usize]) -> Vec<f64> {
        let Some(times) = &self.times else {
            return Vec::new();
        };
        let sum = |picture, peer| times.row(picture, peer).iter().sum::<f64>();
        pictures
            .iter()
            .map(|&picture| sum(picture, peer) / sum(picture, self.reference()))
            .collect()
    }

    /// By picture: milliseconds a megapixel, the mean over the qualities; empty without times.
    pub fn speeds(&self, peer: usize, pictures: &[usize]) -> Vec<f64> {
        let Some(times) = &self.times else {
            return Vec::new();
        };
        pictures
            .iter()
            .map(|&picture| {
                mean(times.row(picture, peer)) / self.plan.pictures[picture].1.megapixels()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_weigh_the_same() {
        assert!((mean_of_judges([-0.2; JUDGES]) + 0.2).abs() < 1e-12);
        // Half of the bytes by one, twice as many by another.
        assert!(mean_of_judges([-0.5, 0.0, 1.0, 0.0]).abs() < 1e-12);
    }
}
