//! What the encoder is held to, and whether it keeps it.

use std::fmt::Write as _;

use towebp_encoder::Effort;

use super::rate::{BUTTERAUGLI, METRICS, SSIMULACRA2};
use super::{GRAPHICS, Results, STRING, mean};
use crate::peer::Peer;

/// What one effort is held to on photographs.
struct EffortLimits {
    effort: Effort,
    /// Mean BD-rate in percent by each of [`METRICS`].
    rates: [Option<f64>; 5],
    /// CPU time beside the reference's.
    cpu: f64,
}

const EFFORTS: [EffortLimits; 4] = [
    EffortLimits {
        effort: Effort::Low,
        rates: [Some(-15.0), Some(-12.5), Some(-11.5), Some(-12.0), None],
        cpu: 0.27,
    },
    EffortLimits {
        effort: Effort::Medium,
        rates: [
            Some(-21.5),
            Some(-19.5),
            Some(-18.0),
            Some(-19.0),
            Some(5.0),
        ],
        cpu: 0.45,
    },
    EffortLimits {
        effort: Effort::High,
        rates: [Some(-24.0), Some(-21.0), Some(-20.0), Some(-21.0), None],
        cpu: 1.5,
    },
    EffortLimits {
        effort: Effort::Max,
        rates: [Some(-26.5), Some(-23.0), Some(-21.0), Some(-23.0), None],
        cpu: 4.0,
    },
];

/// Mean BD-rate of screenshots, drawings and text by SSIMULACRA2, in percent.
const GRAPHICS_RATE: f64 = -5.0;
/// BD-rate of the worst picture of any kind.
const WORST_RATE: f64 = 0.0;
/// Mean steps at macroblock edges beyond the reference's, in percent, in any plane.
const BLOCKS: f64 = 10.0;
/// The same of the worst picture.
const WORST_BLOCKS: f64 = 40.0;
/// Mean drift of color beside the reference's at equal bytes, in any plane.
const DRIFT: f64 = 1.1;
/// Mean bytes at the same quality number, beside the reference's.
const BYTES: (f64, f64) = (0.75, 1.05);
/// Mean SSIMULACRA2 at the same quality number, less the reference's.
const SCORE: f64 = -0.5;
/// Spread of SSIMULACRA2 at the same quality number, beside the reference's.
const SPREAD: f64 = 1.0;

/// One line of the table.
struct Check {
    what: String,
    value: f64,
    limit: f64,
    /// Whether `limit` is the least rather than the most.
    is_least: bool,
    decimals: usize,
    note: String,
}

impl Check {
    fn at_most(what: &str, value: f64, limit: f64) -> Self {
        Self {
            what: what.to_owned(),
            value,
            limit,
            is_least: false,
            decimals: 1,
            note: String::new(),
        }
    }

    fn at_least(what: &str, value: f64, limit: f64) -> Self {
        Self {
            is_least: true,
            ..Self::at_most(what, value, limit)
        }
    }

    fn with_decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }

    fn with_note(self, note: String) -> Self {
        Self { note, ..self }
    }

    fn is_kept(&self) -> bool {
        if self.is_least {
            self.value >= self.limit
        } else {
            self.value <= self.limit
        }
    }
}

impl Results {
    /// For each of our efforts what was measured beside what it is held to.
    pub fn limits(&self) -> String {
        let mut text = String::new();
        for peer in self.ours() {
            let checks = self.checks(peer);
            let kept = checks.iter().filter(|check| check.is_kept()).count();
            writeln!(
                text,
                "\nLimits of {}, {kept} of {} kept",
                self.plan.peers[peer],
                checks.len()
            )
            .expect(STRING);
            for check in checks {
                let word = if check.is_kept() { "kept" } else { "MISSED" };
                let bound = if check.is_least {
                    "at least"
                } else {
                    "at most"
                };
                let Check {
                    what,
                    value,
                    limit,
                    decimals,
                    note,
                    ..
                } = &check;
                let line = format!(
                    "{what:<52}{value:>8.decimals$}   {bound:<8}{limit:>7.decimals$}   {word:<7}{note}"
                );
                writeln!(text, "{}", line.trim_end()).expect(STRING);
            }
        }
        text
    }

    fn checks(&self, peer: usize) -> Vec<Check> {
        let (graphics, photographs): (Vec<usize>, Vec<usize>) = self
            .every()
            .into_iter()
            .partition(|&picture| self.kind(picture) == GRAPHICS);
        let mut checks = self.effort_checks(peer, &photographs);
        let rates = self.bd_rates(peer, &SSIMULACRA2, &graphics);
        if !rates.is_empty() {
            let rate = mean(&rates) * 100.0;
            checks.push(Check::at_most(
                "graphics, SSIMULACRA2, mean, %",
                rate,
                GRAPHICS_RATE,
            ));
        }
        for (name, pictures) in [("photographs", &photographs), ("graphics", &graphics)] {
            let by_metric = [&SSIMULACRA2, &BUTTERAUGLI].map(Some);
            for metric in by_metric.into_iter().chain([None]) {
                let rate = |picture| match metric {
                    Some(metric) => self.bd_rate(picture, peer, metric),
                    None => self.judged_rate(picture, peer),
                };
                let worst = pictures
                    .iter()
                    .filter_map(|&picture| Some((rate(picture)?, picture)))
                    .max_by(|a, b| a.0.total_cmp(&b.0));
                if let Some((rate, picture)) = worst {
                    let by = metric.map_or("mean of judges", |metric| metric.name);
                    let what = format!("{name}, {by}, worst, %");
                    checks.push(
                        Check::at_most(&what, rate * 100.0, WORST_RATE)
                            .with_note(self.name(picture)),
                    );
                }
            }
        }
        if !photographs.is_empty() {
            checks.extend(self.block_checks(peer, &photographs));
            checks.extend(self.number_checks(peer, &photographs));
        }
        checks
    }

    fn effort_checks(&self, peer: usize, photographs: &[usize]) -> Vec<Check> {
        let mut checks = Vec::new();
        let limits = EFFORTS
            .iter()
            .find(|limits| self.plan.peers[peer] == Peer::Towebp(limits.effort));
        let Some(limits) = limits else {
            return checks;
        };
        for (metric, limit) in METRICS.into_iter().zip(limits.rates) {
            let rates = self.bd_rates(peer, metric, photographs);
            if let (Some(limit), false) = (limit, rates.is_empty()) {
                let what = format!("photographs, {}, mean, %", metric.name);
                checks.push(Check::at_most(&what, mean(&rates) * 100.0, limit));
            }
        }
        if let Some(ratio) = self.cpu_ratio(peer, photographs) {
            checks.push(Check::at_most("CPU of m4", ratio, limits.cpu).with_decimals(2));
        }
        checks
    }

    /// The quality and plane at which most steps are seen.
    fn block_checks(&self, peer: usize, photographs: &[usize]) -> Vec<Check> {
        let mut mean = f64::NEG_INFINITY;
        let mut worst = (f64::NEG_INFINITY, 0);
        let mut drift = f64::NEG_INFINITY;
        for q in 0..self.plan.qualities.len() {
            let beyond = self.beyond(peer, q, photographs);
            mean = beyond.mean.into_iter().fold(mean, f64::max);
            if beyond.worst.0 > worst.0 {
                worst = beyond.worst;
            }
            let (own, theirs) = beyond.drift;
            let ratios = own
                .into_iter()
                .zip(theirs)
                .map(|(own, theirs)| own / theirs);
            drift = ratios.fold(drift, f64::max);
        }
        let mut checks = vec![
            Check::at_most(
                "steps beyond m4, worst plane and quality, mean",
                mean,
                BLOCKS,
            ),
            Check::at_most(
                "steps beyond m4, worst plane, quality and picture",
                worst.0,
                WORST_BLOCKS,
            )
            .with_note(self.name(worst.1)),
        ];
        if drift.is_finite() {
            let what = "drift of color beside m4's, worst plane and quality";
            checks.push(Check::at_most(what, drift, DRIFT).with_decimals(2));
        }
        checks
    }

    /// The quality numbers that are furthest from the reference's.
    fn number_checks(&self, peer: usize, photographs: &[usize]) -> [Check; 4] {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        let (mut score, mut spread) = (f64::INFINITY, 0.0_f64);
        for q in 0..self.plan.qualities.len() {
            let ours = self.same_number(peer, q, photographs);
            let theirs = self.same_number(self.reference(), q, photographs);
            least = least.min(ours.bytes.0);
            most = most.max(ours.bytes.0);
            score = score.min(ours.score_more);
            spread = spread.max(ours.spread / theirs.spread);
        }
        [
            Check::at_least("bytes of m4 at the same number, least", least, BYTES.0)
                .with_decimals(2),
            Check::at_most("bytes of m4 at the same number, most", most, BYTES.1).with_decimals(2),
            Check::at_least(
                "SSIMULACRA2 less m4's at the same number, least",
                score,
                SCORE,
            )
            .with_decimals(2),
            Check::at_most("spread of SSIMULACRA2 beside m4's, most", spread, SPREAD)
                .with_decimals(2),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_kept_on_its_own_side() {
        assert!(Check::at_most("bytes", 1.0, 1.0).is_kept());
        assert!(!Check::at_most("bytes", 1.1, 1.0).is_kept());
        assert!(!Check::at_least("score", -0.6, SCORE).is_kept());
        assert!(!Check::at_most("nothing", f64::NAN, 1.0).is_kept());
    }
}
