//! Our animations beside those of libwebp as `gif2webp` makes them: bytes, time, memory, exactness,
//! and how much they look like their GIFs.

mod libwebp;
mod peer;
mod playback;
mod score;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use crate::measure::{cpu_time, median};
use crate::{memory, output, picture, report};
use peer::{PEERS, Peer};
use playback::Playback;
use score::Score;

/// How to compare.
pub struct Settings {
    /// Of lossy frames, 0 to 100.
    pub quality: u8,
    /// Of which the median counts.
    pub runs: usize,
    /// Threads for scores.
    pub jobs: usize,
}

/// Prints a table for each GIF in `paths`, and one of all.
///
/// # Errors
/// The first file that cannot be read, encoded or decoded, and why.
pub fn run(paths: &[PathBuf], settings: &Settings) -> Result<(), String> {
    let files = picture::find(paths, &["gif"])?;
    if files.is_empty() {
        return Err("name at least one GIF file, or a folder of them".to_owned());
    }
    output::print(&format!(
        "towebp beside {}; libwebp with {}\nquality {}, one thread, {} timing runs",
        report::origin(&crate::libwebp::version()),
        crate::libwebp::simd(),
        settings.quality,
        settings.runs,
    ))?;
    let mut verdicts = Vec::new();
    for path in files {
        let fault = |error: String| format!("{}: {error}", path.display());
        let subject = Subject::open(&path, settings).map_err(fault)?;
        if subject.playback.states.len() < 2 {
            output::print(&format!("\n{}: does not move", subject.name))?;
            continue;
        }
        verdicts.push(subject.compare().map_err(fault)?);
    }
    output::print(
        "\nours beside the best of gif2webp's three at its score, our CPU time beside gif2webp-mixed's",
    )?;
    for verdict in verdicts {
        output::print(&verdict)?;
    }
    Ok(())
}

/// A GIF.
struct Subject<'a> {
    name: String,
    gif: Vec<u8>,
    playback: Playback,
    settings: &'a Settings,
}

/// What a peer made of it.
#[derive(Clone, Copy)]
struct Made {
    bytes: usize,
    /// By all states.
    score: Score,
    /// By those of [`SAMPLE`].
    sample: Score,
}

/// Most states by which the quality of an equal score is searched for, in each of ten encodes or
/// so.
const SAMPLE: usize = 16;

impl<'a> Subject<'a> {
    fn open(path: &Path, settings: &'a Settings) -> Result<Subject<'a>, String> {
        let gif = std::fs::read(path).map_err(|error| error.to_string())?;
        Ok(Subject {
            name: path.file_name().unwrap_or_default().display().to_string(),
            playback: Playback::of_gif(&gif)?,
            gif,
            settings,
        })
    }

    /// Prints its table, and gives the line of the last one.
    fn compare(&self) -> Result<String, String> {
        let Playback {
            width,
            height,
            states,
            ..
        } = &self.playback;
        output::print(&format!(
            "\n{}: {width} x {height}, {} states, {} bytes\n{:<18}{:>10}{:>8}{:>10}{:>7}{:>12}{:>8}{:>8}",
            self.name,
            states.len(),
            self.gif.len(),
            "",
            "bytes",
            "of GIF",
            "CPU, ms",
            "MB",
            "exact",
            "mean",
            "least",
        ))?;
        let times = self.times()?;
        let mut made = Vec::new();
        for (peer, milliseconds) in PEERS.into_iter().zip(&times) {
            let one = self.make(peer)?;
            let quality = self.settings.quality.to_string();
            let arguments = [memory::ANIMATION, &peer.to_string(), &quality];
            let peak = memory::ask(&arguments, &self.gif)?;
            output::print(&format!(
                "{peer:<18}{:>10}{:>8.3}{milliseconds:>10.1}{:>7}{:>12}{:>8.2}{:>8.2}",
                one.bytes,
                self.of_gif(one),
                peak.map_or("?".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6)),
                format!("{} of {}", one.score.exact, states.len()),
                one.score.mean,
                one.score.least,
            ))?;
            made.push(one);
        }
        self.judge(&made, &times)
    }

    fn of_gif(&self, made: Made) -> f64 {
        made.bytes as f64 / self.gif.len() as f64
    }

    /// Ours at the score of each of the others.
    fn judge(&self, made: &[Made], times: &[f64]) -> Result<String, String> {
        let mut known: HashMap<u8, (usize, Score)> = HashMap::new();
        let at = |wanted: Peer| {
            PEERS
                .iter()
                .position(|peer| *peer == wanted)
                .expect("it is one of them")
        };
        let lossless = made[at(Peer::TowebpLossless)];
        let own = made[at(Peer::Towebp)];
        known.insert(self.settings.quality, (own.bytes, own.sample));
        let mut worst = 0.0_f64;
        for (peer, other) in PEERS.iter().zip(made) {
            if !matches!(peer, Peer::Gif2webp(_)) {
                continue;
            }
            let found = self.quality_for(other.sample.mean, &mut known)?;
            let lossy = found.map(|quality| (format!("quality {quality}"), known[&quality]));
            let exact = ("lossless".to_owned(), (lossless.bytes, lossless.sample));
            let (how, (bytes, score)) = lossy
                .filter(|(_, (bytes, _))| *bytes <= lossless.bytes)
                .unwrap_or(exact);
            let ratio = bytes as f64 / other.bytes as f64;
            worst = worst.max(ratio);
            output::print(&format!(
                "at the mean of {peer}, {:.2}: {how}, {:.2}, {bytes} bytes, {ratio:.3} of its",
                other.sample.mean, score.mean
            ))?;
        }
        let mixed = at(Peer::Gif2webp(libwebp::Way::Mixed));
        Ok(format!(
            "{:<34}{worst:>7.3} of its bytes, {:>6.3} of the GIF's, {:>6.3} of its time",
            self.name,
            self.of_gif(made[at(Peer::Towebp)]),
            times[at(Peer::Towebp)] / times[mixed],
        ))
    }

    /// The least of our qualities that scores no less, which are then among the `known` ones;
    /// `None` if none does.
    fn quality_for(
        &self,
        mean: f64,
        known: &mut HashMap<u8, (usize, Score)>,
    ) -> Result<Option<u8>, String> {
        let (mut least, mut most) = (0, 101);
        while least < most {
            let quality = u8::midpoint(least, most);
            if let Entry::Vacant(unknown) = known.entry(quality) {
                let (bytes, playback) = self.convert(Peer::Towebp, quality)?;
                unknown.insert((bytes, self.score(&playback, SAMPLE)?));
            }
            if known[&quality].1.mean >= mean {
                most = quality;
            } else {
                least = quality + 1;
            }
        }
        Ok((most <= 100).then_some(most))
    }

    /// The bytes of a WebP, and what libwebp shows of it, held to what the GIF shows.
    fn convert(&self, peer: Peer, quality: u8) -> Result<(usize, Playback), String> {
        let fault = |error: String| format!("{peer}: {error}");
        let webp = peer.convert(&self.gif, quality).map_err(fault)?;
        let playback = Playback::of_webp(&webp).map_err(fault)?;
        for difference in self.playback.faults_of(&playback) {
            output::print(&format!("{peer}, quality {quality}: {difference}"))?;
        }
        Ok((webp.len(), playback))
    }

    fn score(&self, playback: &Playback, most: usize) -> Result<Score, String> {
        score::score(&self.playback, playback, most, self.settings.jobs)
    }

    fn make(&self, peer: Peer) -> Result<Made, String> {
        let (bytes, playback) = self.convert(peer, self.settings.quality)?;
        Ok(Made {
            bytes,
            score: self.score(&playback, usize::MAX)?,
            sample: self.score(&playback, SAMPLE)?,
        })
    }

    /// CPU milliseconds of each of [`PEERS`], which take turns.
    fn times(&self) -> Result<Vec<f64>, String> {
        let mut times = vec![Vec::new(); PEERS.len()];
        for run in 0..self.settings.runs {
            for turn in 0..PEERS.len() {
                let index = (turn + run) % PEERS.len();
                let before = cpu_time();
                let file = PEERS[index].convert(&self.gif, self.settings.quality)?;
                times[index].push((cpu_time() - before) * 1e3);
                std::hint::black_box(file);
            }
        }
        Ok(times.iter_mut().map(|times| median(times)).collect())
    }
}

/// Converts a GIF as the child that memory is measured of.
///
/// # Errors
/// When the peer is not known, or refuses.
pub fn convert(peer: &str, gif: &[u8], quality: u8) -> Result<Vec<u8>, String> {
    peer.parse::<Peer>()?.convert(gif, quality)
}
