//! Remembers points from run to run: libwebp's by picture, method and quality, since they never
//! change, and ours by picture and the bytes of the file, so that only what a change of the encoder
//! changed is scored anew. Times are never kept.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::num::ParseFloatError;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::measure::Point;
use crate::metric::Scores;
use crate::peer::Peer;
use crate::picture::Picture;

/// Points by key, kept in one TSV file. Threads share it.
pub struct Cache {
    path: PathBuf,
    header: String,
    state: Mutex<State>,
}

struct State {
    points: HashMap<String, Point>,
    /// Opened by the first point that is added.
    file: Option<File>,
    /// Whether what the file holds is of this libwebp and these metrics.
    is_current: bool,
}

impl Cache {
    /// Reads `target/libwebp-points.tsv`; starts anew if another libwebp or metric wrote it.
    pub fn open(libwebp_version: &str) -> Self {
        let path = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/target/libwebp-points.tsv"
        ));
        // Raise the number when a metric's crate or definition changes.
        let header = format!(
            "# 3, libwebp {libwebp_version}: picture-peer-quality bytes ssimulacra2 dssim butteraugli ms_ssim psnr_y y cb cr blue red"
        );
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        let is_current = lines.next() == Some(&header);
        // A later line replaces an earlier one that lacked some scores.
        let points = if is_current {
            lines.filter_map(read_line).collect()
        } else {
            HashMap::new()
        };
        let state = State {
            points,
            file: None,
            is_current,
        };
        Self {
            path,
            header,
            state: Mutex::new(state),
        }
    }

    /// The point under `key`, if it is there and has the slow scores where they are wanted.
    pub fn find(&self, key: &str, with_slow: bool) -> Option<Point> {
        let state = self.state.lock().expect(NO_PANIC);
        state
            .points
            .get(key)
            .copied()
            .filter(|point| !with_slow || is_complete(point))
    }

    /// Adds a point, and writes it to the file at once: a run that is stopped loses nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, key: String, point: Point) -> Result<(), String> {
        let text = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut state = self.state.lock().expect(NO_PANIC);
        if state.file.is_none() {
            if !state.is_current {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder).map_err(text)?;
                }
                fs::write(&self.path, format!("{}\n", self.header)).map_err(text)?;
                state.is_current = true;
            }
            let file = OpenOptions::new().append(true).open(&self.path);
            state.file = Some(file.map_err(text)?);
        }
        let line = line(&key, &point);
        let file = state.file.as_mut().expect("it was opened");
        // One call for one line, so that two runs at once do not mix theirs.
        file.write_all(line.as_bytes()).map_err(text)?;
        state.points.insert(key, point);
        Ok(())
    }
}

/// The key of libwebp's file of a picture with this [`fingerprint`].
pub fn key_of_settings(fingerprint: &str, peer: Peer, quality: u8) -> String {
    format!("{fingerprint}-{peer}-{quality}")
}

/// The key of any file of a picture with this [`fingerprint`].
pub fn key_of_file(fingerprint: &str, file: &[u8]) -> String {
    format!("{fingerprint}-file-{:016x}", fnv1a(file))
}

/// Names a picture by its size and pixels, not by its file.
pub fn fingerprint(picture: &Picture) -> String {
    let hash = fnv1a(&picture.pixels);
    format!("{}x{}-{hash:016x}", picture.width, picture.height)
}

fn is_complete(point: &Point) -> bool {
    point.scores.dssim.is_some() && point.scores.drift.is_some()
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

/// FNV-1a, 64 bits: the same number in every release of Rust, unlike the standard library's hasher.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A point as [`read_line`] reads it.
fn line(key: &str, point: &Point) -> String {
    let Point { bytes, scores } = point;
    let optional =
        |score: Option<f64>| score.map_or_else(|| "-".to_owned(), |score| score.to_string());
    let [y, cb, cr] = scores.blocks;
    let [blue, red] = optional_pair(scores.drift).map(optional);
    format!(
        "{key}\t{bytes}\t{}\t{}\t{}\t{}\t{}\t{y}\t{cb}\t{cr}\t{blue}\t{red}\n",
        scores.ssimulacra2,
        optional(scores.dssim),
        optional(scores.butteraugli),
        optional(scores.ms_ssim),
        scores.psnr_y
    )
}

fn read_line(line: &str) -> Option<(String, Point)> {
    let mut fields = line.split('\t');
    let key = fields.next()?.to_owned();
    let bytes = fields.next()?.parse().ok()?;
    let ssimulacra2 = fields.next()?.parse().ok()?;
    let dssim = read_optional(fields.next()?).ok()?;
    let butteraugli = read_optional(fields.next()?).ok()?;
    let ms_ssim = read_optional(fields.next()?).ok()?;
    let psnr_y = fields.next()?.parse().ok()?;
    let mut blocks = [0.0; 3];
    for plane in &mut blocks {
        *plane = fields.next()?.parse().ok()?;
    }
    // Lines of before the drift was measured end here.
    let mut drift = || read_optional(fields.next().unwrap_or("-")).ok();
    let drift = match [drift()?, drift()?] {
        [Some(cb), Some(cr)] => Some([cb, cr]),
        _ => None,
    };
    Some((
        key,
        Point {
            bytes,
            scores: Scores {
                ssimulacra2,
                dssim,
                butteraugli,
                ms_ssim,
                psnr_y,
                blocks,
                drift,
            },
        },
    ))
}

fn optional_pair(pair: Option<[f64; 2]>) -> [Option<f64>; 2] {
    pair.map_or([None; 2], |pair| pair.map(Some))
}

/// A score, or `-` for one that was not computed.
///
/// # Errors
/// When it is neither.
fn read_optional(field: &str) -> Result<Option<f64>, ParseFloatError> {
    match field {
        "-" => Ok(None),
        number => number.parse().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_read_as_it_was_written() {
        let point = Point {
            bytes: 12_345,
            scores: Scores {
                ssimulacra2: 71.25,
                dssim: Some(0.001),
                butteraugli: None,
                ms_ssim: Some(0.02),
                psnr_y: 38.5,
                blocks: [1.0, -2.0, 3.5],
                drift: Some([0.5, 0.25]),
            },
        };
        let (key, read) = read_line(line("2x2-00-m4-75", &point).trim_end()).expect("a line");
        assert_eq!(key, "2x2-00-m4-75");
        assert_eq!(format!("{read:?}"), format!("{point:?}"));
    }
}
