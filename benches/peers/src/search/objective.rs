//! What a joint search makes small: bytes at equal quality by the mean of the judges, with blocks,
//! PSNR-Y and CPU time as constraints.

use rustix::time::{ClockId, clock_gettime};

use crate::cache::{self, Cache};
use crate::curve::Pchip;
use crate::drift::Drift;
use crate::measure::{self, Point};
use crate::metric::Original;
use crate::peer::REFERENCE;
use crate::picture::Picture;
use crate::report::{self, JUDGES, METRICS, Metric, drift, mean_of_judges};

/// PSNR-Y in percent of bytes beyond which each further percent costs [`PSNR_PRICE`].
const PSNR_LIMIT: f64 = 4.0;
const PSNR_PRICE: f64 = 0.4;
/// Mean steps at macroblock edges beyond the reference's at equal bytes, in points, and the price
/// of a point more in each plane.
const BLOCKS_LIMIT: f64 = 6.0;
const BLOCKS_PRICE: f64 = 0.2;
/// The same of the worst picture and plane.
const WORST_BLOCKS_LIMIT: f64 = 36.0;
const WORST_BLOCKS_PRICE: f64 = 0.05;
/// Mean drift of color beside the reference's, of the worse plane, and the price of a tenth more.
const DRIFT_LIMIT: f64 = 1.1;
const DRIFT_PRICE: f64 = 1.0;
/// What single pictures lose, in percent, summed over those that lose and over the metrics, divided
/// by the number of all pictures.
const LOSS_PRICE: f64 = 1.0;
/// CPU time beside the start's, whose noise is some hundredths, and the price of a hundredth more.
const CPU_LIMIT: f64 = 1.05;
const CPU_PRICE: f64 = 0.1;

/// Qualities of the reference: more than are searched, since ours may score as they do.
const REFERENCE_QUALITIES: [u8; 10] = [5, 12, 20, 30, 42, 55, 66, 76, 85, 93];

/// A picture with what does not change during a search.
pub struct Case<'a> {
    picture: &'a Picture,
    original: Original<'a>,
    /// `ln(bytes)` of the reference over each of [`METRICS`].
    curves: Vec<Pchip>,
    reference: Vec<Point>,
}

/// What one set of constants gives, means over pictures and qualities.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// By metric: bytes at equal quality beside the reference's, in percent.
    pub rates: [f64; METRICS.len()],
    /// The bytes by the mean of the judges.
    pub judged: f64,
    /// Steps beyond the reference's at equal bytes, by plane: means and the most.
    pub blocks: [f64; 3],
    pub worst_blocks: f64,
    /// Drift of color, Cb and Cr: its own, and the reference's at equal bytes.
    drift: (Drift, Drift),
    /// Sum of what single pictures lose, in percent by picture and metric.
    pub losses: f64,
    /// CPU seconds of each encode.
    pub cpu: Vec<f64>,
}

/// What one picture gives at one quality.
pub struct Sample {
    rates: [f64; METRICS.len()],
    judged: f64,
    blocks: [f64; 3],
    drift: (Drift, Drift),
    cpu: f64,
}

impl<'a> Case<'a> {
    /// Scores the reference, or takes its points from the cache.
    ///
    /// # Errors
    /// What libwebp or a metric says.
    pub fn new(picture: &'a Picture, cache: &Cache) -> Result<Self, String> {
        let original = Original::new(picture, true)?;
        let fingerprint = cache::fingerprint(picture);
        let mut reference = Vec::with_capacity(REFERENCE_QUALITIES.len());
        for quality in REFERENCE_QUALITIES {
            let key = cache::key_of_settings(&fingerprint, REFERENCE, quality);
            if let Some(point) = cache.find(&key, true) {
                reference.push(point);
                continue;
            }
            let file = REFERENCE.encode(picture, quality)?;
            let point = measure::score(&file, picture, &original)?;
            cache.add(key, point)?;
            reference.push(point);
        }
        let curve = |metric: &&Metric| {
            let points: Vec<(f64, f64)> = reference
                .iter()
                .map(|point| ((metric.value)(&point.scores), point.bytes as f64))
                .collect();
            Pchip::new(&points).ok_or_else(|| "a picture without a curve".to_owned())
        };
        let curves = METRICS.iter().map(curve).collect::<Result<_, _>>()?;
        Ok(Self {
            picture,
            original,
            curves,
            reference,
        })
    }

    /// Encodes and scores.
    ///
    /// # Errors
    /// What an encoder or a metric says.
    pub fn sample(
        &self,
        encode: impl FnOnce(&Picture) -> Result<Vec<u8>, String>,
    ) -> Result<Sample, String> {
        let before = thread_time();
        let file = encode(self.picture)?;
        let cpu = thread_time() - before;
        let point = measure::score(&file, self.picture, &self.original)?;
        let bytes = point.bytes as f64;
        let mut rates = [0.0; METRICS.len()];
        for ((rate, metric), curve) in rates.iter_mut().zip(METRICS).zip(&self.curves) {
            *rate = 100.0 * (bytes.ln() - extended(curve, (metric.value)(&point.scores))).exp_m1();
        }
        let theirs = report::at_bytes(&self.reference, bytes, |scores| scores.blocks);
        let judged = std::array::from_fn(|judge| rates[judge] / 100.0);
        Ok(Sample {
            rates,
            judged: 100.0 * mean_of_judges(judged),
            blocks: std::array::from_fn(|plane| point.scores.blocks[plane] - theirs[plane]),
            drift: (
                drift(&point.scores),
                report::at_bytes(&self.reference, bytes, drift),
            ),
            cpu,
        })
    }
}

impl Outcome {
    /// Of the samples of each picture.
    pub fn of(pictures: &[Vec<Sample>]) -> Self {
        let mut outcome = Self {
            worst_blocks: f64::NEG_INFINITY,
            ..Self::default()
        };
        for samples in pictures {
            let share = 1.0 / (pictures.len() * samples.len()) as f64;
            let mut own = [0.0; METRICS.len()];
            for sample in samples {
                for (metric, rate) in sample.rates.into_iter().enumerate() {
                    own[metric] += rate / samples.len() as f64;
                    outcome.rates[metric] += rate * share;
                }
                outcome.judged += sample.judged * share;
                for (plane, steps) in sample.blocks.into_iter().enumerate() {
                    outcome.blocks[plane] += steps * share;
                    outcome.worst_blocks = outcome.worst_blocks.max(steps);
                }
                for plane in 0..2 {
                    outcome.drift.0[plane] += sample.drift.0[plane] * share;
                    outcome.drift.1[plane] += sample.drift.1[plane] * share;
                }
                outcome.cpu.push(sample.cpu);
            }
            let lost = own[..JUDGES].iter().map(|rate| rate.max(0.0));
            outcome.losses += lost.sum::<f64>();
        }
        outcome.losses /= pictures.len() as f64;
        outcome
    }

    /// CPU time beside that of `start` on the same pictures: the median, since other programs slow
    /// some encodes down.
    pub fn cpu_beside(&self, start: &Self) -> f64 {
        let pairs = self.cpu.iter().zip(&start.cpu);
        let mut ratios: Vec<f64> = pairs.map(|(own, theirs)| own / theirs).collect();
        measure::median(&mut ratios)
    }

    /// Drift of color beside the reference's, of the worse plane.
    pub fn drift(&self) -> f64 {
        let (own, theirs) = self.drift;
        f64::max(own[0] / theirs[0], own[1] / theirs[1])
    }

    /// The lower the better.
    pub fn objective(&self, start: &Self) -> f64 {
        let beyond = |value: f64, limit: f64, price: f64| (value - limit).max(0.0) * price;
        let block_price = BLOCKS_PRICE / 3.0;
        let blocks = self
            .blocks
            .map(|steps| beyond(steps, BLOCKS_LIMIT, block_price));
        self.judged
            + beyond(self.rates[JUDGES], PSNR_LIMIT, PSNR_PRICE)
            + blocks.iter().sum::<f64>()
            + beyond(self.worst_blocks, WORST_BLOCKS_LIMIT, WORST_BLOCKS_PRICE)
            + beyond(self.drift(), DRIFT_LIMIT, 10.0 * DRIFT_PRICE)
            + self.losses * LOSS_PRICE
            + beyond(self.cpu_beside(start), CPU_LIMIT, 100.0 * CPU_PRICE)
    }
}

/// A curve that goes on straight beyond its ends, by the slope of its last tenth.
fn extended(curve: &Pchip, value: f64) -> f64 {
    let (first, last) = (curve.first(), curve.last());
    let tenth = (last - first) * 0.1;
    if value < first {
        curve.at(first) + (value - first) * (curve.at(first + tenth) - curve.at(first)) / tenth
    } else if value > last {
        curve.at(last) + (value - last) * (curve.at(last) - curve.at(last - tenth)) / tenth
    } else {
        curve.at(value)
    }
}

/// Seconds of CPU that this thread has used.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(judged: f64, psnr: f64, blocks: [f64; 3], cpu: f64) -> Outcome {
        Outcome::of(&[vec![Sample {
            rates: [judged, judged, judged, judged, psnr],
            judged,
            blocks,
            drift: ([0.5; 2], [0.5; 2]),
            cpu,
        }]])
    }

    #[test]
    fn constraints_cost_nothing_until_they_are_broken() {
        let good = outcome(-17.0, 2.0, [4.0, 5.0, 6.0], 1.0);
        assert!((good.objective(&good) + 17.0).abs() < 1e-9, "{good:?}");
        for worse in [
            outcome(-17.0, 9.0, [4.0, 5.0, 6.0], 1.0),
            outcome(-17.0, 2.0, [4.0, 5.0, 20.0], 1.0),
            outcome(-17.0, 2.0, [4.0, 5.0, 6.0], 1.2),
        ] {
            assert!(worse.objective(&good) > -17.0, "{worse:?}");
        }
    }

    #[test]
    fn a_picture_that_loses_costs_more_than_its_mean() {
        let sample = |rate| Sample {
            rates: [rate, 0.0, 0.0, 0.0, 0.0],
            judged: rate / 4.0,
            blocks: [0.0; 3],
            drift: ([0.5; 2], [0.5; 2]),
            cpu: 1.0,
        };
        let even = Outcome::of(&[vec![sample(-10.0)], vec![sample(-10.0)]]);
        let uneven = Outcome::of(&[vec![sample(-30.0)], vec![sample(10.0)]]);
        assert!((even.rates[0] - uneven.rates[0]).abs() < 1e-9);
        assert!(even.objective(&even) < uneven.objective(&even));
    }

    #[test]
    fn a_curve_goes_on_beyond_its_ends() {
        let points: Vec<_> = (1..5).map(|x| (f64::from(x), f64::from(x).exp())).collect();
        let curve = Pchip::new(&points).expect("a curve");
        for value in [0.0, 2.5, 6.0] {
            let found = extended(&curve, value);
            assert!((found - value).abs() < 1e-9, "{found} at {value}");
        }
    }
}
