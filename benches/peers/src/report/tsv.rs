//! Files for other programs: every point, and every picture's BD-rates.

use std::fmt::Write as _;

use super::rate::METRICS;
use super::{Results, STRING};
use crate::measure::Point;
use crate::metric::Scores;

impl Results {
    /// Every point as tab-separated values with a header line.
    pub fn points_tsv(&self) -> String {
        let mut text = String::from(
            "kind\tpicture\twidth\theight\tpeer\tquality\tbytes\tssimulacra2\tdssim\tbutteraugli\tpsnr_y\tblocks_y\tblocks_cb\tblocks_cr\tcpu_ms\n",
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
                    let kind = self.kind(p);
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
                        "{kind}\t{name}\t{w}\t{h}\t{peer}\t{quality}\t{bytes}\t{ssimulacra2:.5}\t{dssim}\t{butteraugli}\t{psnr_y:.4}\t{y:.1}\t{cb:.1}\t{cr:.1}\t{time}"
                    )
                    .expect(STRING);
                }
            }
        }
        text
    }

    /// For each picture and peer: BD-rates in percent, CPU beside the reference's, and the most
    /// that steps at macroblock edges are beyond the reference's in any plane at any quality.
    pub fn rates_tsv(&self) -> String {
        let mut text = String::from("kind\tpicture\tpeer");
        for metric in METRICS {
            write!(text, "\t{}", metric.name).expect(STRING);
        }
        text += "\tCPU of m4\tsteps beyond m4\n";
        for picture in self.every() {
            let (kind, name) = (self.kind(picture), self.file_name(picture));
            for (peer, peer_name) in self.plan.peers.iter().enumerate() {
                write!(text, "{kind}\t{name}\t{peer_name}").expect(STRING);
                for metric in METRICS {
                    match self.bd_rate(picture, peer, metric) {
                        Some(rate) => write!(text, "\t{:.2}", rate * 100.0).expect(STRING),
                        None => text.push('\t'),
                    }
                }
                match self.cpu_ratio(peer, &[picture]) {
                    Some(ratio) => write!(text, "\t{ratio:.3}").expect(STRING),
                    None => text.push('\t'),
                }
                let steps = (0..self.plan.qualities.len())
                    .map(|q| self.beyond(peer, q, &[picture]).worst.0)
                    .fold(f64::NEG_INFINITY, f64::max);
                writeln!(text, "\t{steps:.0}").expect(STRING);
            }
        }
        text
    }
}
