//! Scores of WebP files that others have made, each beside its picture.

use std::fs;
use std::path::{Path, PathBuf};

use crate::libwebp;
use crate::metric::Original;
use crate::output;
use crate::picture::{self, Picture};

/// Prints bytes and scores of the files in `folder` that are named as these pictures: of each, and
/// their means.
///
/// # Errors
/// A file cannot be read, or is no picture of the same size.
pub fn run(pictures: &[PathBuf], folder: &Path) -> Result<(), String> {
    output::print("| picture | bytes | SSIMULACRA2 | DSSIM | Butteraugli | PSNR-Y |")?;
    output::print("|---|---:|---:|---:|---:|---:|")?;
    let mut rows = Vec::new();
    for path in picture::find(pictures, picture::STILL)? {
        let stem = path.file_stem().unwrap_or_default();
        let file = folder.join(stem).with_extension("webp");
        let Ok(bytes) = fs::read(&file) else {
            continue;
        };
        let original = Picture::open(&path)?;
        let decoded = libwebp::decode_picture(&bytes, &original)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let scores = Original::new(&original, true)?.compare(&decoded)?;
        let [dssim, butteraugli] =
            [scores.dssim, scores.butteraugli].map(Option::unwrap_or_default);
        let row = [
            bytes.len() as f64,
            scores.ssimulacra2,
            dssim,
            butteraugli,
            scores.psnr_y,
        ];
        print(&stem.to_string_lossy(), row)?;
        rows.push(row);
    }
    let mean = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
    print("mean", std::array::from_fn(mean))
}

fn print(
    name: &str,
    [bytes, ssimulacra2, dssim, butteraugli, psnr_y]: [f64; 5],
) -> Result<(), String> {
    output::print(&format!(
        "| {name} | {bytes:.0} | {ssimulacra2:.2} | {dssim:.5} | {butteraugli:.3} | {psnr_y:.2} |"
    ))
}
