//! Two pictures of a run: rate-distortion curves, and the frontier of time and size.

mod axis;
mod frontier;
mod published;
mod rate_distortion;
mod svg;

use std::fmt::Write as _;
use std::path::Path;

use towebp_encoder::Effort;

use crate::libwebp::Settings;
use crate::measure::Point;
use crate::peer::Peer;
use crate::plot::svg::Stroke;
use crate::report::Results;

/// Writes `rate-distortion.svg` and, if times were taken, `frontier.svg` into `folder`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(results: &Results, folder: &Path) -> Result<(), String> {
    let save = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    save("rate-distortion.svg", &rate_distortion::draw(results))?;
    match frontier::draw(results) {
        Some(text) => save("frontier.svg", &text),
        None => Ok(()),
    }
}

/// A peer as both pictures show it.
struct Look {
    name: String,
    stroke: Stroke,
}

fn look(peer: Peer) -> Look {
    let stroke = |color, width, dashed| Stroke {
        color,
        width,
        dashed,
    };
    let (name, stroke) = match peer {
        Peer::Towebp(effort) => {
            let (name, color) = match effort {
                Effort::Low => ("towebp, low", "#e08a3c"),
                Effort::Medium => ("towebp", "#c2410c"),
                Effort::High => ("towebp, high", "#7f1d1d"),
                Effort::Max => ("towebp, max", "#450a0a"),
            };
            (name.to_owned(), stroke(color, 2.5, false))
        }
        Peer::Libwebp(Settings { method, sharpness }) => {
            let color = match (method, sharpness) {
                (5.., _) => "#1d6fd1",
                (_, 0) => "#3d4752",
                _ => "#7c5cc4",
            };
            let mut name = format!("libwebp m{method}");
            if sharpness > 0 {
                write!(name, ", sharpness {sharpness}").expect("a String takes everything");
            }
            (name, stroke(color, 1.75, sharpness > 0))
        }
    };
    Look { name, stroke }
}

/// One quality number: geometric mean of the bits per pixel, mean SSIMULACRA2.
#[derive(Clone, Copy)]
struct Mean {
    bits_per_pixel: f64,
    ssimulacra2: f64,
}

/// The curve of one peer over all pictures, from low quality to high.
fn mean_curve(results: &Results, peer: usize) -> Vec<Mean> {
    let pictures = &results.plan.pictures;
    let mean = |value: &dyn Fn(usize) -> f64| {
        (0..pictures.len()).map(value).sum::<f64>() / pictures.len() as f64
    };
    let mut curve: Vec<Mean> = (0..results.plan.qualities.len())
        .map(|q| {
            let point = |picture: usize| -> Point { results.points.row(picture, peer)[q] };
            let bits = |p: usize| point(p).bytes as f64 * 8.0 / pictures[p].1.pixel_count() as f64;
            Mean {
                bits_per_pixel: mean(&|p| bits(p).ln()).exp(),
                ssimulacra2: mean(&|p| point(p).scores.ssimulacra2),
            }
        })
        .collect();
    curve.sort_by(|a, b| a.bits_per_pixel.total_cmp(&b.bits_per_pixel));
    curve
}

/// On which pictures, for the foot of both.
fn conditions(results: &Results) -> String {
    let plan = &results.plan;
    let numbers: Vec<String> = plan.qualities.iter().map(u8::to_string).collect();
    format!(
        "{} pictures ({}), quality {}; {}",
        plan.pictures.len(),
        results.kind_names().join(", "),
        numbers.join(", "),
        results.origin
    )
}
