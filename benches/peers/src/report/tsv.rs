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
            "kind\tpicture\twidth\theight\tpeer\tquality\tbytes\tssimulacra2\tdssim\tbutteraugli\tms_ssim\tpsnr_y\tblocks_y\tblocks_cb\tblocks_cr\tdrift_cb\tdrift_cr\tcpu_ms\n",
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
                                ms_ssim,
                                psnr_y,
                                blocks: [y, cb, cr],
                                drift,
                            },
                    } = self.points.row(p, index)[q];
                    let kind = self.kind(p);
                    let name = path.file_name().unwrap_or_default().display();
                    let optional = |score: Option<f64>| {
                        score.map_or_else(String::new, |score| format!("{score:.8}"))
                    };
                    let [dssim, butteraugli, ms_ssim] = [dssim, butteraugli, ms_ssim].map(optional);
                    let drift = drift
                        .map_or_else(|| "\t".to_owned(), |[cb, cr]| format!("{cb:.3}\t{cr:.3}"));
                    let time = self
                        .times
                        .as_ref()
                        .map_or_else(String::new, |t| format!("{:.4}", t.row(p, index)[q]));
                    let (w, h) = (picture.width, picture.height);
                    writeln!(
                        text,
                        "{kind}\t{name}\t{w}\t{h}\t{peer}\t{quality}\t{bytes}\t{ssimulacra2:.5}\t{dssim}\t{butteraugli}\t{ms_ssim}\t{psnr_y:.4}\t{y:.1}\t{cb:.1}\t{cr:.1}\t{drift}\t{time}"
                    )
                    .expect(STRING);
                }
            }
        }
        text
    }

    /// For each picture and peer: BD-rates in percent, CPU beside the reference's, and the most
    /// that steps at macroblock edges and the drift of color are beyond the reference's in any
    /// plane at any quality.
    pub fn rates_tsv(&self) -> String {
        let mut text = String::from("kind\tpicture\tpeer");
        for metric in METRICS {
            write!(text, "\t{}", metric.name).expect(STRING);
        }
        text += "\tmean of judges\tCPU of m4\tsteps beyond m4\tdrift beyond m4\n";
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
                match self.judged_rate(picture, peer) {
                    Some(rate) => write!(text, "\t{:.2}", rate * 100.0).expect(STRING),
                    None => text.push('\t'),
                }
                match self.cpu_ratio(peer, &[picture]) {
                    Some(ratio) => write!(text, "\t{ratio:.3}").expect(STRING),
                    None => text.push('\t'),
                }
                let (mut steps, mut drift) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
                for q in 0..self.plan.qualities.len() {
                    let beyond = self.beyond(peer, q, &[picture]);
                    steps = steps.max(beyond.worst.0);
                    let (own, theirs) = beyond.drift;
                    let more = own
                        .into_iter()
                        .zip(theirs)
                        .map(|(own, theirs)| own - theirs);
                    drift = more.fold(drift, f64::max);
                }
                write!(text, "\t{steps:.0}\t").expect(STRING);
                if drift.is_finite() {
                    write!(text, "{drift:.2}").expect(STRING);
                }
                text.push('\n');
            }
        }
        text
    }
}
