//! How close one playback is to another.

use std::thread;

use super::playback::{Playback, State};
use crate::metric::Original;
use crate::picture::Picture;

/// Over states of the original.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    /// Of SSIMULACRA2, on white: 100 is identical.
    pub mean: f64,
    /// The least of them.
    pub least: f64,
    /// How many of the states are the same in every pixel.
    pub exact: usize,
}

/// Of `playback` beside `original`, by at most so many of its states, evenly spaced, on so many
/// threads.
///
/// # Errors
/// When the metric refuses the size.
pub fn score(
    original: &Playback,
    playback: &Playback,
    most: usize,
    jobs: usize,
) -> Result<Score, String> {
    let mut pairs = original.beside(playback);
    if pairs.len() < original.states.len() || original.states.is_empty() {
        return Err("it ends before the GIF does".to_owned());
    }
    let apart = pairs.len().div_ceil(most);
    pairs = pairs.into_iter().step_by(apart).collect();
    let size = (original.width, original.height);
    let share = pairs.len().div_ceil(jobs.max(1));
    let scores = thread::scope(|scope| {
        let shares = pairs.chunks(share).map(|share| {
            scope.spawn(move || -> Result<Vec<f64>, String> {
                share.iter().map(|pair| ssimulacra2(*pair, size)).collect()
            })
        });
        let threads: Vec<_> = shares.collect();
        let done = threads.into_iter();
        let done = done.map(|thread| thread.join().expect("metrics do not panic"));
        done.collect::<Result<Vec<_>, String>>()
    })?;
    let scores: Vec<f64> = scores.into_iter().flatten().collect();
    Ok(Score {
        mean: scores.iter().sum::<f64>() / scores.len() as f64,
        least: scores.iter().copied().fold(f64::INFINITY, f64::min),
        exact: pairs.iter().filter(|(a, b)| a.pixels == b.pixels).count(),
    })
}

fn ssimulacra2((own, other): (&State, &State), size: (u32, u32)) -> Result<f64, String> {
    if own.pixels == other.pixels {
        return Ok(100.0);
    }
    let own = on_white(&own.pixels, size);
    let original = Original::new(&own, false)?;
    Ok(original
        .compare(&on_white(&other.pixels, size))?
        .ssimulacra2)
}

fn on_white(rgba: &[u8], (width, height): (u32, u32)) -> Picture {
    let blend = |sample: u8, alpha: u8| {
        let (sample, alpha) = (u32::from(sample), u32::from(alpha));
        ((sample * alpha + 255 * (255 - alpha) + 127) / 255) as u8
    };
    let pixels = rgba.as_chunks::<4>().0.iter();
    let pixels = pixels.flat_map(|&[red, green, blue, alpha]| {
        [red, green, blue].map(|sample| blend(sample, alpha))
    });
    Picture {
        width,
        height,
        pixels: pixels.collect(),
    }
}
