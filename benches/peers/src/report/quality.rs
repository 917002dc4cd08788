//! What the same quality number gives beside the reference, and from picture to picture.

use std::fmt::Write as _;

use super::{Results, STRING, mean};
use crate::measure::Point;

/// One peer at one quality number, over all pictures.
pub struct SameNumber {
    /// Mean bits per pixel.
    pub bits: f64,
    /// Bytes beside the reference's: geometric mean, least and most.
    pub bytes: (f64, f64, f64),
    /// Mean SSIMULACRA2.
    pub score: f64,
    /// Standard deviation of SSIMULACRA2 over the pictures: how far a number means the same on
    /// each.
    pub spread: f64,
    /// Mean SSIMULACRA2 less the reference's.
    pub score_more: f64,
    /// Mean PSNR-Y less the reference's.
    psnr_more: f64,
}

impl Results {
    /// What `peer` gives at the quality with index `q`.
    pub fn same_number(&self, peer: usize, q: usize, pictures: &[usize]) -> SameNumber {
        let reference = self.reference();
        let point = |picture: usize, peer: usize| -> Point { self.points.row(picture, peer)[q] };
        let each = |value: &dyn Fn(Point, Point, usize) -> f64| -> Vec<f64> {
            pictures
                .iter()
                .map(|&p| value(point(p, peer), point(p, reference), p))
                .collect()
        };
        let pixels = |picture: usize| self.plan.pictures[picture].1.pixel_count() as f64;
        let ratios = each(&|own, theirs, _| own.bytes as f64 / theirs.bytes as f64);
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let scores = each(&|own, _, _| own.scores.ssimulacra2);
        SameNumber {
            bits: mean(&each(&|own, _, p| own.bytes as f64 * 8.0 / pixels(p))),
            bytes: (
                mean(&logarithms).exp(),
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                ratios.iter().copied().fold(0.0, f64::max),
            ),
            score: mean(&scores),
            spread: deviation(&scores),
            score_more: mean(&each(&|own, theirs, _| {
                own.scores.ssimulacra2 - theirs.scores.ssimulacra2
            })),
            psnr_more: mean(&each(&|own, theirs, _| {
                own.scores.psnr_y - theirs.scores.psnr_y
            })),
        }
    }

    /// For each quality: bytes, SSIMULACRA2, its spread and CPU beside the reference at the same
    /// quality number.
    pub fn by_quality(&self) -> String {
        let mut text = String::from(
            "The same quality number, means over the pictures; spread: the standard deviation of SSIMULACRA2\n\
             peer              q   bits/px   bytes/m4 (min - max)   SSIMULACRA2   minus m4   spread   PSNR-Y minus m4   CPU/m4   ms/MP\n",
        );
        let every = self.every();
        let reference = self.reference();
        for (index, peer) in self.plan.peers.iter().enumerate() {
            for (q, quality) in self.plan.qualities.iter().enumerate() {
                let SameNumber {
                    bits,
                    bytes: (bytes, least, most),
                    score,
                    spread,
                    score_more,
                    psnr_more,
                } = self.same_number(index, q, &every);
                let bytes = format!("{bytes:.3} ({least:.2} - {most:.2})");
                write!(
                    text,
                    "{peer:<15}{quality:>4}{bits:>10.3}{bytes:>23}{score:>14.2}{score_more:>+11.2}{spread:>9.2}{psnr_more:>+18.2}",
                )
                .expect(STRING);
                if let Some(times) = &self.times {
                    let time = |picture: usize, peer: usize| times.row(picture, peer)[q];
                    let pixels = |p: usize| self.plan.pictures[p].1.megapixels();
                    let over = |value: &dyn Fn(usize) -> f64| {
                        mean(&every.iter().map(|&p| value(p)).collect::<Vec<_>>())
                    };
                    let ratio = over(&|p| (time(p, index) / time(p, reference)).ln()).exp();
                    let speed = over(&|p| time(p, index) / pixels(p));
                    write!(text, "{ratio:>9.2}{speed:>8.1}").expect(STRING);
                }
                text.push('\n');
            }
        }
        text
    }
}

/// The standard deviation of a population.
fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: Vec<f64> = values
        .iter()
        .map(|value| (value - middle).powi(2))
        .collect();
    mean(&squares).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_all() {
        assert!((deviation(&[1.0, 3.0, 1.0, 3.0]) - 1.0).abs() < 1e-12);
    }
}
