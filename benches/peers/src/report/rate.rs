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

/// Of luma alone.
pub const PSNR_Y: Metric = Metric {
    name: "PSNR-Y",
    value: |scores| scores.psnr_y,
};

/// In the order of the tables' columns.
pub const METRICS: [&Metric; 4] = [&SSIMULACRA2, &DSSIM, &BUTTERAUGLI, &PSNR_Y];

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
