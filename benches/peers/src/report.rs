//! The tables that people read, and the file with every point.

use std::fmt::Write as _;
use std::path::Path;

use crate::blocks::Blocks;
use crate::curve::bd_rate;
use crate::measure::{Grid, Plan, Point, median};
use crate::metric::Scores;
use crate::peer::REFERENCE;

/// Everything that was measured.
pub struct Results {
    /// CPU, libwebp and date.
    pub origin: String,
    /// What was to be measured.
    pub plan: Plan,
    /// Bytes and scores.
    pub points: Grid<Point>,
    /// CPU milliseconds; `None` if no times were taken.
    pub times: Option<Grid<f64>>,
    /// Peak memory beyond the input in bytes per pixel, by peer; empty if it was not measured.
    pub memory: Vec<Option<f64>>,
}

impl Results {
    /// [`Self::table`] for each folder, and for all pictures together.
    pub fn summary(&self) -> String {
        let pictures = &self.plan.pictures;
        let mut folders: Vec<&Path> = pictures.iter().filter_map(|(p, _)| p.parent()).collect();
        folders.dedup();
        let every: Vec<usize> = (0..pictures.len()).collect();
        let mut text = String::from(
            "BD-rate against m4, mean / median over the pictures; negative: fewer bytes at equal quality\n",
        );
        if folders.len() > 1 {
            for folder in folders {
                let inside = |index: &usize| pictures[*index].0.parent() == Some(folder);
                let inside: Vec<usize> = every.iter().copied().filter(inside).collect();
                let name = folder.file_name().unwrap_or_default().display();
                text += &self.table(&format!("{name}, {} pictures", inside.len()), &inside);
            }
        }
        text + &self.table(&format!("all {} pictures", every.len()), &every)
    }

    /// One line for each peer: BD-rate by metric, CPU ratio, memory.
    fn table(&self, title: &str, pictures: &[usize]) -> String {
        let mut text = format!(
            "{title}\n\
             peer               SSIMULACRA2             DSSIM       Butteraugli            PSNR-Y      CPU of m4 (min - max)   ms/MP   memory B/px\n",
        );
        for (index, peer) in self.plan.peers.iter().enumerate() {
            let bd = |metric: Metric| self.bd_text(index, metric, pictures);
            let (mut ratios, mut per_megapixel) = self.cpu(index, pictures);
            let cpu = if ratios.is_empty() {
                "-".to_owned()
            } else {
                let middle = median(&mut ratios);
                format!(
                    "{middle:.2} ({:.2} - {:.2})",
                    ratios[0],
                    ratios[ratios.len() - 1]
                )
            };
            let speed = if per_megapixel.is_empty() {
                "-".into()
            } else {
                format!("{:.1}", median(&mut per_megapixel))
            };
            let memory = self
                .memory
                .get(index)
                .copied()
                .flatten()
                .map_or_else(|| "-".into(), |m| format!("{m:.2}"));
            writeln!(
                text,
                "{peer:<15}{:>15}{:>18}{:>18}{:>18}{cpu:>25}{speed:>8}{memory:>14}",
                bd(ssimulacra2),
                bd(dssim_db),
                bd(butteraugli_db),
                bd(psnr_y),
            )
            .expect(STRING);
        }
        text + "\n"
    }

    /// For each quality: bytes, SSIMULACRA2 and CPU beside the reference at the same quality
    /// number.
    pub fn by_quality(&self) -> String {
        let mut text = String::from(
            "The same quality number, means over the pictures\n\
             peer              q   bits/px   bytes/m4   SSIMULACRA2   minus m4   PSNR-Y minus m4   CPU/m4   ms/MP\n",
        );
        let reference = self.reference();
        let pictures = self.plan.pictures.len();
        for (index, peer) in self.plan.peers.iter().enumerate() {
            for (q, quality) in self.plan.qualities.iter().enumerate() {
                let mean = |value: &dyn Fn(usize) -> f64| {
                    (0..pictures).map(value).sum::<f64>() / pictures as f64
                };
                let point = |picture: usize, peer: usize| self.points.row(picture, peer)[q];
                let pixels = |picture: usize| self.plan.pictures[picture].1.pixel_count() as f64;
                let bits = mean(&|p| point(p, index).bytes as f64 * 8.0 / pixels(p));
                let bytes = mean(&|p| {
                    (point(p, index).bytes as f64 / point(p, reference).bytes as f64).ln()
                })
                .exp();
                let score = mean(&|p| point(p, index).scores.ssimulacra2);
                let score_more = mean(&|p| {
                    point(p, index).scores.ssimulacra2 - point(p, reference).scores.ssimulacra2
                });
                let psnr_more =
                    mean(&|p| point(p, index).scores.psnr_y - point(p, reference).scores.psnr_y);
                write!(
                    text,
                    "{peer:<15}{quality:>4}{bits:>10.3}{bytes:>11.3}{score:>14.2}{score_more:>+11.2}{psnr_more:>+18.2}",
                )
                .expect(STRING);
                if let Some(times) = &self.times {
                    let time = |picture: usize, peer: usize| times.row(picture, peer)[q];
                    let ratio = mean(&|p| (time(p, index) / time(p, reference)).ln()).exp();
                    let speed = mean(&|p| time(p, index) / pixels(p) * 1e6);
                    write!(text, "{ratio:>9.2}{speed:>8.1}").expect(STRING);
                }
                text.push('\n');
            }
        }
        text
    }

    /// For each quality: steps at macroblock edges, and what they are beyond the reference's at
    /// equal bytes.
    pub fn blocks(&self) -> String {
        let mut text = String::from(
            "\nSteps at macroblock edges in smooth places, Y / Cb / Cr in percent, means over the pictures\n\
             peer              q             blocks   minus m4 of equal bytes\n",
        );
        let pictures = self.plan.pictures.len();
        for (index, peer) in self.plan.peers.iter().enumerate() {
            for (q, quality) in self.plan.qualities.iter().enumerate() {
                let (mut own, mut beyond) = ([0.0; 3], [0.0; 3]);
                for picture in 0..pictures {
                    let point = self.points.row(picture, index)[q];
                    let reference = self.points.row(picture, self.reference());
                    let theirs = blocks_at(reference, point.bytes as f64);
                    for plane in 0..3 {
                        own[plane] += point.scores.blocks[plane] / pictures as f64;
                        beyond[plane] +=
                            (point.scores.blocks[plane] - theirs[plane]) / pictures as f64;
                    }
                }
                let ([y, cb, cr], [more_y, more_cb, more_cr]) = (own, beyond);
                let own = format!("{y:.0} / {cb:.0} / {cr:.0}");
                writeln!(
                    text,
                    "{peer:<15}{quality:>4}{own:>19}   {more_y:+.0} / {more_cb:+.0} / {more_cr:+.0}"
                )
                .expect(STRING);
            }
        }
        text
    }

    /// Every point as tab-separated values with a header line.
    pub fn tsv(&self) -> String {
        let mut text = String::from(
            "picture\twidth\theight\tpeer\tquality\tbytes\tssimulacra2\tdssim\tbutteraugli\tpsnr_y\tblocks_y\tblocks_cb\tblocks_cr\tcpu_ms\n",
        );
        for (p, (path, picture)) in self.plan.pictures.iter().enumerate() {
            for (index, peer) in self.plan.peers.iter().enumerate() {
                for (q, quality) in self.plan.qualities.iter().enumerate() {
                    let Point {
                        bytes,
                        scores:
                            Scores {
                                ssimulacra2,
                                dssim,
                                butteraugli,
                                psnr_y,
                                blocks: [y, cb, cr],
                            },
                    } = self.points.row(p, index)[q];
                    let name = path.file_name().unwrap_or_default().display();
                    let optional = |score: Option<f64>| {
                        score.map_or_else(String::new, |score| format!("{score:.8}"))
                    };
                    let (dssim, butteraugli) = (optional(dssim), optional(butteraugli));
                    let time = self
                        .times
                        .as_ref()
                        .map_or_else(String::new, |t| format!("{:.4}", t.row(p, index)[q]));
                    let (w, h) = (picture.width, picture.height);
                    writeln!(
                        text,
                        "{name}\t{w}\t{h}\t{peer}\t{quality}\t{bytes}\t{ssimulacra2:.5}\t{dssim}\t{butteraugli}\t{psnr_y:.4}\t{y:.1}\t{cb:.1}\t{cr:.1}\t{time}"
                    )
                    .expect(STRING);
                }
            }
        }
        text
    }

    fn reference(&self) -> usize {
        self.plan
            .peers
            .iter()
            .position(|peer| *peer == REFERENCE)
            .expect("the plan always has the reference")
    }

    /// The mean BD-rate of a peer by SSIMULACRA2; `None` where no curves overlap.
    pub fn mean_bd_rate(&self, peer: usize) -> Option<f64> {
        let every: Vec<usize> = (0..self.plan.pictures.len()).collect();
        let rates = self.bd_rates(peer, ssimulacra2, &every);
        (!rates.is_empty()).then(|| mean(&rates))
    }

    /// CPU time of a peer relative to the reference, the median over the pictures; `None` without
    /// times.
    pub fn cpu_ratio(&self, peer: usize) -> Option<f64> {
        let every: Vec<usize> = (0..self.plan.pictures.len()).collect();
        let (mut ratios, _) = self.cpu(peer, &every);
        (!ratios.is_empty()).then(|| median(&mut ratios))
    }

    fn bd_rates(&self, peer: usize, metric: Metric, pictures: &[usize]) -> Vec<f64> {
        pictures
            .iter()
            .filter_map(|&picture| {
                let reference = curve(self.points.row(picture, self.reference()), metric);
                bd_rate(&reference, &curve(self.points.row(picture, peer), metric))
            })
            .collect()
    }

    fn bd_text(&self, peer: usize, metric: Metric, pictures: &[usize]) -> String {
        if self.plan.peers[peer] == REFERENCE {
            return "0".to_owned();
        }
        let mut rates = self.bd_rates(peer, metric, pictures);
        if rates.is_empty() {
            return "-".to_owned();
        }
        let missing = pictures.len() - rates.len();
        let note = if missing == 0 {
            String::new()
        } else {
            format!(" ({missing} without overlap)")
        };
        format!(
            "{:+.1} / {:+.1}{note}",
            mean(&rates) * 100.0,
            median(&mut rates) * 100.0
        )
    }

    /// By picture: CPU relative to the reference over all qualities together, and milliseconds per
    /// megapixel.
    fn cpu(&self, peer: usize, pictures: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let Some(times) = &self.times else {
            return (Vec::new(), Vec::new());
        };
        let sum = |picture, peer| times.row(picture, peer).iter().sum::<f64>();
        let qualities = self.plan.qualities.len() as f64;
        pictures
            .iter()
            .map(|&p| {
                let mine = sum(p, peer);
                (
                    mine / sum(p, self.reference()),
                    mine / qualities / self.plan.pictures[p].1.megapixels(),
                )
            })
            .unzip()
    }
}

/// With which libwebp, where and when.
pub fn origin(libwebp: &str) -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("", |(_, n)| n);
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap_or_default();
    format!("libwebp {libwebp}, {cpu}, {date}")
}

/// What is compared, and on what: the first lines of a run.
pub fn heading(plan: &Plan, origin: &str, simd: &str, runs: usize) -> String {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (_, picture) in &plan.pictures {
        least = least.min(picture.megapixels());
        most = most.max(picture.megapixels());
    }
    let qualities = plan
        .qualities
        .iter()
        .map(u8::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    format!(
        "towebp beside {origin}; libwebp with {simd}\n\
         {} pictures of {least:.2} to {most:.2} MP, qualities {qualities}, {runs} timing runs, one thread\n",
        plan.pictures.len(),
    )
}

/// Grows with quality; NaN where it was not computed.
type Metric = fn(&Scores) -> f64;

fn ssimulacra2(scores: &Scores) -> f64 {
    scores.ssimulacra2
}

fn dssim_db(scores: &Scores) -> f64 {
    distance_db(scores.dssim)
}

fn butteraugli_db(scores: &Scores) -> f64 {
    distance_db(scores.butteraugli)
}

/// In dB, so that it grows with quality and equal ratios weigh alike.
fn distance_db(distance: Option<f64>) -> f64 {
    distance.map_or(f64::NAN, |distance| -10.0 * distance.max(1e-12).log10())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn psnr_y(scores: &Scores) -> f64 {
    scores.psnr_y
}

fn curve(points: &[Point], metric: Metric) -> Vec<(f64, f64)> {
    points
        .iter()
        .map(|point| (metric(&point.scores), point.bytes as f64))
        .collect()
}

/// The blocks of a file of `bytes` by an encoder that made `points`: linear in the logarithm of the
/// bytes between the two nearest, and those of the nearest outside of all.
fn blocks_at(points: &[Point], bytes: f64) -> Blocks {
    let mut points: Vec<(f64, Blocks)> = points
        .iter()
        .map(|point| ((point.bytes as f64).ln(), point.scores.blocks))
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
    std::array::from_fn(|plane| low.1[plane] + share * (high.1[plane] - low.1[plane]))
}

const STRING: &str = "writing to a String does not fail";

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
                psnr_y: 0.0,
                blocks: [y, 0.0, 0.0],
            },
        };
        let points = [point(4000, 10.0), point(1000, 50.0)];
        for (bytes, expected) in [
            (500.0, 50.0),
            (1000.0, 50.0),
            (2000.0, 30.0),
            (9000.0, 10.0),
        ] {
            let [y, ..] = blocks_at(&points, bytes);
            assert!((y - expected).abs() < 1e-9, "{y} at {bytes} bytes");
        }
    }
}
