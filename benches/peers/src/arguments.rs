//! The command line, and what it asks to be measured.

use std::path::PathBuf;

use argh::FromArgs;

use crate::half::Half;
use crate::measure::Plan;
use crate::peer::{Peer, REFERENCE};
use crate::picture::{self, Picture};

/// BD-rate, CPU time and memory of towebp's encoder beside libwebp's.
#[derive(FromArgs)]
pub struct Arguments {
    /// every 4th picture, qualities 30,50,75,92, no DSSIM, no Butteraugli, no memory, one timing
    /// run
    #[argh(switch)]
    pub quick: bool,
    /// without loss: bytes and CPU time beside cwebp -lossless and image-webp, of PNG files with
    /// their alpha
    #[argh(switch)]
    pub lossless: bool,
    /// animations beside gif2webp (by default, -mixed and -lossy): bytes, CPU time, memory,
    /// exactness and SSIMULACRA2, of GIF files, at the first of the qualities (default 75)
    #[argh(switch)]
    pub animation: bool,
    /// webP qualities, at least two (default 30,50,65,75,85,92; of sheets 30,50,75, of a
    /// search 32,55,75,91)
    #[argh(option, from_str_fn(list))]
    pub quality: Option<List<u8>>,
    /// encoders: towebp-low, towebp (medium effort), towebp-high, towebp-max, m0 to m6 (libwebp's
    /// methods), m4s7 (method 4, sharpness 7) (default m0,m1,m2,m4,m4s7,m6,m6s7 and ours; quick
    /// m2,m4,m6,towebp; of sheets towebp)
    #[argh(option, from_str_fn(list))]
    pub peers: Option<List<Peer>>,
    /// which half of each folder's pictures: tuning (in the order of the names the first, third,
    /// fifth, ...), acceptance (the others) or all (default all). Constants are found on the first
    /// and judged on the second
    #[argh(option, default = "Half::All")]
    pub half: Half,
    /// every Nth picture of those (default 1; quick 4)
    #[argh(option)]
    pub every: Option<usize>,
    /// timing runs of which the median counts; 0 takes no times (default 3)
    #[argh(option)]
    pub runs: Option<usize>,
    /// threads for the metrics (default: all cores); times are always taken on one
    #[argh(option)]
    pub jobs: Option<usize>,
    /// write every point to this file
    #[argh(option)]
    pub tsv: Option<PathBuf>,
    /// write every picture's BD-rates to this file
    #[argh(option)]
    pub rates: Option<PathBuf>,
    /// write rate-distortion.svg and frontier.svg into this folder
    #[argh(option)]
    pub plot: Option<PathBuf>,
    /// write contact sheets into this folder, and measure nothing: for each picture and quality,
    /// crops of the original, of libwebp's method 4 and of ours at its bytes
    #[argh(option)]
    pub sheet: Option<PathBuf>,
    /// scores of the WebP files in this folder that are named as the pictures, and nothing else
    #[argh(option)]
    pub scores: Option<PathBuf>,
    /// search constants of the encoder jointly (CMA-ES) and measure nothing else: their names, or
    /// all. Bytes by the mean of judges (SSIMULACRA2, DSSIM, Butteraugli, MS-SSIM) on the middle of
    /// each picture of the tuning halves, with steps at macroblock edges, drift of color, PSNR-Y,
    /// CPU time and single pictures that lose as constraints, for the effort of the first of the
    /// peers that is ours (default medium); at the end both halves are judged
    #[argh(option)]
    pub search: Option<String>,
    /// moves of a search (default 30)
    #[argh(option, default = "30")]
    pub generations: usize,
    /// sets of constants for each move of a search (default 12)
    #[argh(option, default = "12")]
    pub population: usize,
    /// seed of a search (default 1)
    #[argh(option, default = "1")]
    pub seed: u64,
    /// PNG and JPEG files, or folders of them, whose names are the kinds of pictures; above 6 MP
    /// they are halved
    #[argh(positional)]
    pub pictures: Vec<PathBuf>,
}

/// Values that commas divide.
pub struct List<T>(pub Vec<T>);

/// Enough for both pictures of `--plot`.
const PEERS: &str = "m0,m1,m2,m4,m4s7,m6,m6s7,towebp-low,towebp,towebp-high,towebp-max";
const QUICK_PEERS: &str = "m2,m4,m6,towebp";
const OUR_DEFAULT: &str = "towebp";

impl Arguments {
    /// Timing runs.
    pub fn runs(&self) -> usize {
        self.runs.unwrap_or(if self.quick { 1 } else { 3 })
    }

    /// Threads for the metrics.
    pub fn jobs(&self) -> usize {
        self.jobs
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Pictures, encoders and qualities.
    ///
    /// # Errors
    /// What is wrong with an argument or a file.
    pub fn plan(&self) -> Result<Plan, String> {
        self.plan_of(self.half)
    }

    /// The same of another half.
    ///
    /// # Errors
    /// What is wrong with an argument or a file.
    pub fn plan_of(&self, half: Half) -> Result<Plan, String> {
        let (qualities, peers): (&[u8], _) = if self.search.is_some() {
            (&[32, 55, 75, 91], OUR_DEFAULT)
        } else if self.sheet.is_some() {
            (&[30, 50, 75], OUR_DEFAULT)
        } else if self.quick {
            (&[30, 50, 75, 92], QUICK_PEERS)
        } else {
            (&[30, 50, 65, 75, 85, 92], PEERS)
        };
        let qualities = match &self.quality {
            Some(list) => list.0.clone(),
            None => qualities.to_vec(),
        };
        if let Some(wrong) = qualities.iter().find(|quality| **quality > 100) {
            return Err(format!("--quality: {wrong} is above 100"));
        }
        let mut peers = match &self.peers {
            Some(peers) => peers.0.clone(),
            None => list(peers)?.0,
        };
        if !peers.contains(&REFERENCE) {
            peers.insert(0, REFERENCE);
        }
        let step = self.every.unwrap_or(if self.quick { 4 } else { 1 }).max(1);
        let files = picture::find(&self.pictures, picture::STILL)?;
        let pictures = half
            .of(files)?
            .into_iter()
            .step_by(step)
            .map(|path| Picture::open(&path).map(|picture| (path, picture)))
            .collect::<Result<Vec<_>, _>>()?;
        if pictures.is_empty() {
            return Err(
                "name at least one PNG or JPEG file of the half, or a folder of them".to_owned(),
            );
        }
        Ok(Plan {
            pictures,
            peers,
            qualities,
            slow_metrics: !self.quick,
        })
    }
}

fn list<T: std::str::FromStr>(text: &str) -> Result<List<T>, String> {
    let parse = |item: &str| {
        item.trim()
            .parse()
            .map_err(|_| format!("{item:?} is not allowed in this list"))
    };
    text.split(',')
        .map(parse)
        .collect::<Result<_, _>>()
        .map(List)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_always_measured() {
        let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/coffee.jpg");
        let arguments = ["--peers", "towebp", "--half", "all", picture];
        let arguments = Arguments::from_args(&["peers"], &arguments).expect("good arguments");
        let plan = arguments.plan().expect("a picture");
        assert!(plan.peers.contains(&REFERENCE), "{:?}", plan.peers);
        assert_eq!(plan.pictures.len(), 1);
        assert!(Arguments::from_args(&["peers"], &["--half", "best", picture]).is_err());
    }
}
