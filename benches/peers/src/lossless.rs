//! Our lossless encoder beside libwebp's and image-webp's: bytes and CPU time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use towebp_encoder::{self as webp, ColorType, Effort, Encoder};
use towebp_pipeline::image::Layout;

use crate::measure::{cpu_time, median};
use crate::{libwebp, output, picture, report};

/// One encoder with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Towebp(Effort),
    Libwebp(u8),
    ImageWebp,
}

/// The default of `cwebp -lossless`, with which all are compared.
const REFERENCE: Peer = Peer::Libwebp(4);

const PEERS: [(&str, Peer); 8] = [
    ("m0", Peer::Libwebp(0)),
    ("m2", Peer::Libwebp(2)),
    ("m4", REFERENCE),
    ("m6", Peer::Libwebp(6)),
    ("image-webp", Peer::ImageWebp),
    ("towebp-low", Peer::Towebp(Effort::Low)),
    ("towebp", Peer::Towebp(Effort::Medium)),
    ("towebp-high", Peer::Towebp(Effort::High)),
];

/// RGBA, and RGB if all is opaque, as an encoder would be given it.
struct Picture {
    path: PathBuf,
    width: u32,
    height: u32,
    rgba: Vec<u8>,
    rgb: Option<Vec<u8>>,
}

/// What one encoder made of one picture.
struct Outcome {
    bytes: f64,
    milliseconds: f64,
}

/// Prints a table for the pictures in `paths`, times as medians of `runs`.
///
/// # Errors
/// The first file that cannot be read, encoded or decoded to what it was, and why.
pub fn run(paths: &[PathBuf], runs: usize) -> Result<(), String> {
    let files = picture::find(paths, picture::STILL)?;
    if files.is_empty() {
        return Err("name at least one PNG file, or a folder of them".to_owned());
    }
    output::print(&format!(
        "towebp beside {}, without loss; libwebp with {}\n",
        report::origin(&libwebp::version()),
        libwebp::simd()
    ))?;
    let mut columns: Vec<Vec<Outcome>> = PEERS.iter().map(|_| Vec::new()).collect();
    let mut pixels = Vec::new();
    for path in files {
        let picture = Picture::open(&path)?;
        pixels.push(f64::from(picture.width) * f64::from(picture.height));
        let mut line = format!("{:<28}", path.file_name().unwrap_or_default().display());
        for (outcome, column) in picture.measure(runs)?.into_iter().zip(&mut columns) {
            write!(line, "{:>11}", outcome.bytes).expect("a String takes everything");
            column.push(outcome);
        }
        output::print(&line)?;
    }
    output::print(&table(&columns, &pixels))
}

/// One line for each peer.
fn table(columns: &[Vec<Outcome>], pixels: &[f64]) -> String {
    let reference = PEERS.iter().position(|(_, peer)| *peer == REFERENCE);
    let reference = &columns[reference.expect("it is among the peers")];
    let sum = |column: &[Outcome], what: fn(&Outcome) -> f64| column.iter().map(what).sum::<f64>();
    let bytes = |outcome: &Outcome| outcome.bytes;
    let time = |outcome: &Outcome| outcome.milliseconds;
    let mut text = format!(
        "\n{} pictures, {:.1} MP; bytes and CPU time of all together beside m4, and bytes as the geometric mean over the pictures\n\
         peer             bytes   mean of bytes     CPU    ms/MP\n",
        pixels.len(),
        pixels.iter().sum::<f64>() / 1e6,
    );
    for ((name, _), column) in PEERS.iter().zip(columns) {
        let ratios = column.iter().zip(reference);
        let logs = ratios.map(|(own, other)| (own.bytes / other.bytes).ln());
        let mean = (logs.sum::<f64>() / column.len() as f64).exp();
        writeln!(
            text,
            "{name:<12}{:>10.3}{mean:>16.3}{:>8.3}{:>9.1}",
            sum(column, bytes) / sum(reference, bytes),
            sum(column, time) / sum(reference, time),
            sum(column, time) / pixels.iter().sum::<f64>() * 1e6,
        )
        .expect("a String takes everything");
    }
    text
}

impl Picture {
    fn open(path: &Path) -> Result<Picture, String> {
        let image = image::open(path)
            .map_err(|error| format!("{}: {error}", path.display()))?
            .into_rgba8();
        let (width, height) = image.dimensions();
        let rgba = image.into_raw();
        let is_opaque = rgba.chunks_exact(4).all(|pixel| pixel[3] == 255);
        let rgb = is_opaque.then(|| {
            rgba.chunks_exact(4)
                .flat_map(|p| [p[0], p[1], p[2]])
                .collect()
        });
        Ok(Picture {
            path: path.to_owned(),
            width,
            height,
            rgba,
            rgb,
        })
    }

    /// One outcome for each of [`PEERS`], which take turns.
    fn measure(&self, runs: usize) -> Result<Vec<Outcome>, String> {
        let mut times = vec![Vec::with_capacity(runs); PEERS.len()];
        let mut bytes = vec![0.0; PEERS.len()];
        for run in 0..runs {
            for (i, (name, peer)) in PEERS.iter().enumerate() {
                let fault = |error: String| format!("{}, {name}: {error}", self.path.display());
                let before = cpu_time();
                let file = self.encode(*peer).map_err(fault)?;
                times[i].push((cpu_time() - before) * 1e3);
                bytes[i] = file.len() as f64;
                if run == 0 {
                    self.check(&file).map_err(fault)?;
                }
            }
        }
        let outcomes = bytes.into_iter().zip(&mut times);
        Ok(outcomes
            .map(|(bytes, times)| Outcome {
                bytes,
                milliseconds: median(times),
            })
            .collect())
    }

    /// The pixels as the encoder is given them.
    fn samples(&self) -> &[u8] {
        self.rgb.as_deref().unwrap_or(&self.rgba)
    }

    fn encode(&self, peer: Peer) -> Result<Vec<u8>, String> {
        match peer {
            Peer::Libwebp(method) => {
                libwebp::encode_lossless(&self.rgba, (self.width, self.height), method)
            }
            Peer::Towebp(effort) => {
                let color = if self.rgb.is_some() {
                    ColorType::Rgb8
                } else {
                    ColorType::Rgba8
                };
                let encoder = Encoder::lossless().effort(effort);
                webp::Picture::new(self.width, self.height, color, self.samples())
                    .and_then(|picture| encoder.encode(&picture))
                    .map(|encoded| encoded.file)
                    .map_err(|error| error.to_string())
            }
            Peer::ImageWebp => {
                let mut file = Vec::new();
                let color = if self.rgb.is_some() {
                    image_webp::ColorType::Rgb8
                } else {
                    image_webp::ColorType::Rgba8
                };
                image_webp::WebPEncoder::new(&mut file)
                    .encode(self.samples(), self.width, self.height, color)
                    .map_err(|error| error.to_string())?;
                Ok(file)
            }
        }
    }

    /// Whether every pixel is what it was, but for the color of fully transparent ones.
    fn check(&self, file: &[u8]) -> Result<(), String> {
        let decoded = libwebp::decode(file, (self.width, self.height), Layout::Rgba)?;
        let before = self.rgba.as_chunks::<4>().0;
        let after = decoded.as_chunks::<4>().0;
        let same = |(a, b): (&[u8; 4], &[u8; 4])| a == b || (a[3] == 0 && b[3] == 0);
        if before.iter().zip(after).all(same) {
            return Ok(());
        }
        Err("the file shows another picture".to_owned())
    }
}
