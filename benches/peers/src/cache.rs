//! Remembers libwebp's points: they do not change between two runs of a tuning loop. Times are
//! never kept.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::measure::Point;
use crate::metric::Scores;
use crate::picture::Picture;

/// Points by picture, peer and quality, kept in one TSV file.
pub struct Cache {
    path: PathBuf,
    header: String,
    points: HashMap<String, Point>,
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
            "# 2, libwebp {libwebp_version}: picture-peer-quality bytes ssimulacra2 dssim butteraugli psnr_y y cb cr"
        );
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = text.lines();
        let points = if lines.next() == Some(&header) {
            lines.filter_map(read_line).collect()
        } else {
            HashMap::new()
        };
        Self {
            path,
            header,
            points,
        }
    }

    /// The point under `key`, if it is there and has the slow scores where they are wanted.
    pub fn find(&self, key: &str, with_slow: bool) -> Option<Point> {
        self.points
            .get(key)
            .copied()
            .filter(|point| point.scores.dssim.is_some() || !with_slow)
    }

    /// Adds points and writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, points: impl IntoIterator<Item = (String, Point)>) -> Result<(), String> {
        let mut points = points.into_iter().peekable();
        if points.peek().is_none() {
            return Ok(());
        }
        self.points.extend(points);
        let mut text = format!("{}\n", self.header);
        let mut keys: Vec<_> = self.points.keys().collect();
        keys.sort();
        for key in keys {
            let Point { bytes, scores } = self.points[key];
            let optional = |score: Option<f64>| {
                score.map_or_else(|| "-".to_owned(), |score| score.to_string())
            };
            let [y, cb, cr] = scores.blocks;
            writeln!(
                text,
                "{key}\t{bytes}\t{}\t{}\t{}\t{}\t{y}\t{cb}\t{cr}",
                scores.ssimulacra2,
                optional(scores.dssim),
                optional(scores.butteraugli),
                scores.psnr_y
            )
            .expect("writing to a String does not fail");
        }
        fs::write(&self.path, text).map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

/// Names a picture by its size and pixels, not by its file.
pub fn fingerprint(picture: &Picture) -> String {
    // FNV-1a, 64 bits: the same number in every release of Rust, unlike the standard library's
    // hasher.
    let hash = picture
        .pixels
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{}x{}-{hash:016x}", picture.width, picture.height)
}

fn read_line(line: &str) -> Option<(String, Point)> {
    let mut fields = line.split('\t');
    let key = fields.next()?.to_owned();
    let bytes = fields.next()?.parse().ok()?;
    let ssimulacra2 = fields.next()?.parse().ok()?;
    let dssim = read_optional(fields.next()?)?;
    let butteraugli = read_optional(fields.next()?)?;
    let psnr_y = fields.next()?.parse().ok()?;
    let mut blocks = [0.0; 3];
    for plane in &mut blocks {
        *plane = fields.next()?.parse().ok()?;
    }
    Some((
        key,
        Point {
            bytes,
            scores: Scores {
                ssimulacra2,
                dssim,
                butteraugli,
                psnr_y,
                blocks,
            },
        },
    ))
}

/// A score, or `-` for one that was not computed; `None` if it is neither.
fn read_optional(field: &str) -> Option<Option<f64>> {
    match field {
        "-" => Some(None),
        number => number.parse().ok().map(Some),
    }
}
