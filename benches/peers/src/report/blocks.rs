//! What people see before metrics do, beside the reference's at equal bytes: steps at macroblock
//! edges, and color that drifts.

use std::fmt::Write as _;

use super::{Results, STRING};
use crate::blocks::Blocks;
use crate::drift::Drift;
use crate::measure::Point;
use crate::metric::Scores;

/// One peer at one quality, over some pictures.
pub struct Beyond {
    /// Mean of its own steps.
    pub own: Blocks,
    /// Mean of what they are beyond the reference's at equal bytes.
    pub mean: Blocks,
    /// The most that any plane of a picture is beyond the reference's, and that picture.
    pub worst: (f64, usize),
    /// Mean of its own drift, and of the reference's at equal bytes; NaN where it was not measured.
    pub drift: (Drift, Drift),
}

impl Results {
    /// The steps of `peer` at the quality with index `q`.
    pub fn beyond(&self, peer: usize, q: usize, pictures: &[usize]) -> Beyond {
        let count = pictures.len() as f64;
        let mut sum = Beyond {
            own: [0.0; 3],
            mean: [0.0; 3],
            worst: (f64::NEG_INFINITY, 0),
            drift: ([0.0; 2], [0.0; 2]),
        };
        for &picture in pictures {
            let point = self.points.row(picture, peer)[q];
            let reference = self.points.row(picture, self.reference());
            let bytes = point.bytes as f64;
            let theirs = at_bytes(reference, bytes, drift);
            for (plane, (own, theirs)) in drift(&point.scores).into_iter().zip(theirs).enumerate() {
                sum.drift.0[plane] += own / count;
                sum.drift.1[plane] += theirs / count;
            }
            let theirs = at_bytes(reference, bytes, |scores| scores.blocks);
            for (plane, theirs) in theirs.into_iter().enumerate() {
                let own = point.scores.blocks[plane];
                sum.own[plane] += own / count;
                sum.mean[plane] += (own - theirs) / count;
                if own - theirs > sum.worst.0 {
                    sum.worst = (own - theirs, picture);
                }
            }
        }
        sum
    }

    /// For each quality and each kind of picture: steps at macroblock edges, and what they are
    /// beyond the reference's at equal bytes, on average and on the worst picture; and the drift of
    /// color beside the reference's.
    pub fn blocks(&self) -> String {
        let mut kinds = self.kinds();
        if kinds.len() > 1 {
            kinds.push(("all".to_owned(), self.every()));
        }
        let mut text = String::new();
        for (kind, pictures) in kinds {
            write!(
                text,
                "\nSteps at macroblock edges in smooth places, Y / Cb / Cr in percent, and drift of color, Cb / Cr in levels; means over {kind}, {} pictures\n\
                 peer              q             blocks   minus m4 of equal bytes   drift (m4 of equal bytes)   worst blocks\n",
                pictures.len()
            )
            .expect(STRING);
            for (index, peer) in self.plan.peers.iter().enumerate() {
                for (q, quality) in self.plan.qualities.iter().enumerate() {
                    let Beyond {
                        own,
                        mean,
                        worst,
                        drift,
                    } = self.beyond(index, q, &pictures);
                    let drift = format!("{} ({})", levels(drift.0), levels(drift.1));
                    let own = own.map(|steps| format!("{steps:.0}")).join(" / ");
                    let more = mean.map(|steps| format!("{steps:+.0}")).join(" / ");
                    let worst = if index == self.reference() {
                        String::new()
                    } else {
                        format!("{:>+6.0}   {}", worst.0, self.name(worst.1))
                    };
                    writeln!(
                        text,
                        "{peer:<15}{quality:>4}{own:>19}{more:>26}{drift:>28}{worst}"
                    )
                    .expect(STRING);
                }
            }
        }
        text
    }
}

fn levels([cb, cr]: Drift) -> String {
    if cb.is_nan() {
        return "-".to_owned();
    }
    format!("{cb:.2} / {cr:.2}")
}

/// Cb and Cr; NaN where it was not measured.
pub fn drift(scores: &Scores) -> Drift {
    scores.drift.unwrap_or([f64::NAN; 2])
}

/// The value of a file of `bytes` by an encoder that made `points`: linear in the logarithm of the
/// bytes between the two nearest, and that of the nearest outside of all.
pub fn at_bytes<const N: usize>(
    points: &[Point],
    bytes: f64,
    value: impl Fn(&Scores) -> [f64; N],
) -> [f64; N] {
    let mut points: Vec<(f64, [f64; N])> = points
        .iter()
        .map(|point| ((point.bytes as f64).ln(), value(&point.scores)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bytes = bytes.ln();
    let above = points.partition_point(|point| point.0 < bytes);
    let (low, high) = (
        points[above.saturating_sub(1)],
        points[above.min(points.len() - 1)],
    );
    let share = if high.0 > low.0 {
        (bytes - low.0) / (high.0 - low.0)
    } else {
        0.0
    };
    std::array::from_fn(|i| low.1[i] + share * (high.1[i] - low.1[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_at_equal_bytes() {
        let point = |bytes, y| Point {
            bytes,
            scores: Scores {
                ssimulacra2: 0.0,
                dssim: None,
                butteraugli: None,
                ms_ssim: None,
                psnr_y: 0.0,
                blocks: [y, 0.0, 0.0],
                drift: None,
            },
        };
        let points = [point(4000, 10.0), point(1000, 50.0)];
        for (bytes, expected) in [
            (500.0, 50.0),
            (1000.0, 50.0),
            (2000.0, 30.0),
            (9000.0, 10.0),
        ] {
            let [y, ..] = at_bytes(&points, bytes, |scores| scores.blocks);
            assert!((y - expected).abs() < 1e-9, "{y} at {bytes} bytes");
        }
    }
}
