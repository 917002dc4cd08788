//! The tables that people read, and the files with every point.

mod blocks;
mod kinds;
mod limits;
mod quality;
mod rate;
mod tsv;
mod worst;

pub use blocks::{at_bytes, drift};
pub use rate::{JUDGES, METRICS, Metric, mean_of_judges};

use crate::measure::{Grid, Plan, Point};
use crate::peer::{Peer, REFERENCE};

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

/// The folder whose pictures are screenshots, drawings and text. All others are photographs.
const GRAPHICS: &str = "graphics";

impl Results {
    /// All tables.
    pub fn text(&self) -> String {
        self.summary() + &self.by_quality() + &self.blocks() + &self.worst() + &self.limits()
    }

    /// The indices of all pictures.
    fn every(&self) -> Vec<usize> {
        (0..self.plan.pictures.len()).collect()
    }

    /// The kind of a picture is the name of its folder.
    fn kind(&self, picture: usize) -> String {
        let folder = self.plan.pictures[picture].0.parent();
        let name = folder.and_then(|folder| folder.file_name());
        name.unwrap_or_default().display().to_string()
    }

    /// The kinds in the order of the command line, and the indices of their pictures.
    fn kinds(&self) -> Vec<(String, Vec<usize>)> {
        let mut kinds: Vec<(String, Vec<usize>)> = Vec::new();
        for picture in self.every() {
            let name = self.kind(picture);
            match kinds.iter_mut().find(|(known, _)| *known == name) {
                Some((_, pictures)) => pictures.push(picture),
                None => kinds.push((name, vec![picture])),
            }
        }
        kinds
    }

    /// The kinds in the order of the command line.
    pub fn kind_names(&self) -> Vec<String> {
        self.kinds().into_iter().map(|(name, _)| name).collect()
    }

    fn file_name(&self, picture: usize) -> String {
        let path = &self.plan.pictures[picture].0;
        path.file_name().unwrap_or_default().display().to_string()
    }

    /// Kind and file of a picture.
    fn name(&self, picture: usize) -> String {
        format!("{}/{}", self.kind(picture), self.file_name(picture))
    }

    fn reference(&self) -> usize {
        self.plan
            .peers
            .iter()
            .position(|peer| *peer == REFERENCE)
            .expect("the plan always has the reference")
    }

    /// The indices of our peers.
    fn ours(&self) -> Vec<usize> {
        let is_ours = |peer: &usize| matches!(self.plan.peers[*peer], Peer::Towebp(_));
        (0..self.plan.peers.len()).filter(is_ours).collect()
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

/// The arithmetic mean; NaN of nothing.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

const STRING: &str = "writing to a String does not fail";
