//! Encodes every picture with every peer at every quality: bytes and scores first, times
//! afterwards.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::time::{ClockId, clock_gettime};

use crate::cache::{self, Cache};
use crate::libwebp;
use crate::metric::{Original, Scores};
use crate::peer::Peer;
use crate::picture::Picture;
use crate::progress::Progress;

/// What one encode gave.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Of the whole file.
    pub bytes: u64,
    /// Of what libwebp decodes from it.
    pub scores: Scores,
}

/// What is encoded, and how.
pub struct Plan {
    /// The pictures with their names.
    pub pictures: Vec<(PathBuf, Picture)>,
    /// The encoders; the reference is among them.
    pub peers: Vec<Peer>,
    /// WebP qualities, 0 to 100.
    pub qualities: Vec<u8>,
    /// Whether DSSIM and Butteraugli are wanted.
    pub slow_metrics: bool,
}

/// One value for each picture, peer and quality, in the plan's order.
pub struct Grid<T> {
    values: Vec<T>,
    peers: usize,
    qualities: usize,
}

impl<T> Grid<T> {
    /// The values of one picture and peer, by quality.
    pub fn row(&self, picture: usize, peer: usize) -> &[T] {
        &self.values[(picture * self.peers + peer) * self.qualities..][..self.qualities]
    }
}

/// Bytes and scores. Uses `jobs` threads, one picture each.
///
/// # Errors
/// The first picture that cannot be encoded or decoded, and why.
pub fn points(plan: &Plan, jobs: usize, cache: &Cache) -> Result<Grid<Point>, String> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Vec<Point>>>> =
        Mutex::new((0..plan.pictures.len()).map(|_| None).collect());
    let failure: Mutex<Option<String>> = Mutex::default();
    let progress = Mutex::new(Progress::new("bytes and scores", plan.pictures.len()));
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, plan.pictures.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= plan.pictures.len() {
                        return;
                    }
                    match picture_points(plan, index, cache) {
                        Ok(points) => {
                            done.lock().expect(NO_PANIC)[index] = Some(points);
                            progress.lock().expect(NO_PANIC).step();
                        }
                        Err(error) => {
                            *failure.lock().expect(NO_PANIC) =
                                Some(format!("{}: {error}", plan.pictures[index].0.display()));
                            next.store(plan.pictures.len(), Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect(NO_PANIC) {
        return Err(error);
    }
    let values = done
        .into_inner()
        .expect(NO_PANIC)
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    Ok(Grid {
        values,
        peers: plan.peers.len(),
        qualities: plan.qualities.len(),
    })
}

/// CPU milliseconds of one encode: the median of `runs`. On this thread alone; the peers take turns
/// within each run, so that what else the machine does hits all of them.
///
/// # Errors
/// When an encoder refuses a picture.
pub fn times(plan: &Plan, runs: usize) -> Result<Grid<f64>, String> {
    let mut progress = Progress::new("times", plan.pictures.len());
    let mut values = Vec::new();
    for (path, picture) in &plan.pictures {
        let mut samples =
            vec![vec![Vec::with_capacity(runs); plan.qualities.len()]; plan.peers.len()];
        for run in 0..runs {
            for (q, &quality) in plan.qualities.iter().enumerate() {
                for turn in 0..plan.peers.len() {
                    let peer = (turn + run + q) % plan.peers.len();
                    let before = cpu_time();
                    let file = plan.peers[peer]
                        .encode(picture, quality)
                        .map_err(|error| format!("{}: {error}", path.display()))?;
                    samples[peer][q].push((cpu_time() - before) * 1e3);
                    std::hint::black_box(file);
                }
            }
        }
        values.extend(samples.iter_mut().flatten().map(|samples| median(samples)));
        progress.step();
    }
    Ok(Grid {
        values,
        peers: plan.peers.len(),
        qualities: plan.qualities.len(),
    })
}

/// The middle value (the mean of the two middle ones); NaN for none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

fn picture_points(plan: &Plan, index: usize, cache: &Cache) -> Result<Vec<Point>, String> {
    let picture = &plan.pictures[index].1;
    let fingerprint = cache::fingerprint(picture);
    let mut original = None;
    let mut points = Vec::with_capacity(plan.peers.len() * plan.qualities.len());
    for &peer in &plan.peers {
        for &quality in &plan.qualities {
            let encode = || {
                peer.encode(picture, quality)
                    .map_err(|error| format!("{peer}, quality {quality}: {error}"))
            };
            // Ours change from one build to the next, so their files are the key.
            let (mut file, key) = match peer {
                Peer::Libwebp(_) => (None, cache::key_of_settings(&fingerprint, peer, quality)),
                Peer::Towebp(_) => {
                    let file = encode()?;
                    let key = cache::key_of_file(&fingerprint, &file);
                    (Some(file), key)
                }
            };
            if let Some(point) = cache.find(&key, plan.slow_metrics) {
                points.push(point);
                continue;
            }
            let file = match file.take() {
                Some(file) => file,
                None => encode()?,
            };
            let original = match &mut original {
                Some(original) => original,
                none => none.insert(Original::new(picture, plan.slow_metrics)?),
            };
            let point = score(&file, picture, original)
                .map_err(|error| format!("{peer}, quality {quality}: {error}"))?;
            cache.add(key, point)?;
            points.push(point);
        }
    }
    Ok(points)
}

/// The point of a file of `picture`.
///
/// # Errors
/// When libwebp cannot decode it to a picture of that size.
pub fn score(file: &[u8], picture: &Picture, original: &Original<'_>) -> Result<Point, String> {
    let decoded = libwebp::decode_picture(file, picture)?;
    Ok(Point {
        bytes: file.len() as u64,
        scores: original.compare(&decoded)?,
    })
}

/// Seconds of CPU that this process has used. Of the process, not the thread: a peer that starts
/// threads pays for them. No other thread of ours runs while times are taken.
pub fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&mut [4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&mut []).is_nan());
    }
}
