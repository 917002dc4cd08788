//! A model of how encoding scales with more cores than this machine has. The passes are timed on
//! one thread, piece by piece and macroblock by macroblock, and then laid out on more threads as
//! [`Workers`] does it ([`wavefront`] has the dependencies; RFC 6386, section 5).
//!
//! `cargo test -p towebp-encoder --features testing --release --lib model -- --ignored --nocapture`
//! prints it for 12 MP made of the photographs of `testdata/`, with the times measured on one
//! thread and on two. The model leaves out the memory that threads share, and clocks that sink when
//! all cores are busy.

use super::{
    Constants, FilterParameters, LossyOptions, MAX_TOKEN_PARTITION, ModeSearch, Simd,
    choose_segmentation, decide_macroblocks, mode_budget, partition, quantizer_index,
    write_partitions,
};
use crate::Cancel;
use crate::Effort;
use crate::Encoder;
use crate::picture::{Layout, Picture, RgbPicture};
use crate::threads::Workers;
use crate::vp8::wavefront::{self, DecisionPass};
use crate::ycbcr::Planes;
use std::sync::Mutex;
use std::time::Instant;

const WIDTH: u32 = 4000;
const HEIGHT: u32 = 3000;
const QUALITY: u8 = 75;
/// Number of runs. The fastest counts, because other programs can only add time.
const RUNS: usize = 7;

#[test]
#[ignore = "takes a minute, and says something in a release build only"]
fn print_speed_ups() {
    let pixels = mosaic();
    let picture = RgbPicture {
        width: WIDTH,
        height: HEIGHT,
        layout: Layout::Rgb,
        pixels: &pixels,
    };
    let mut profile = Profile::of(&picture);
    for _ in 1..RUNS {
        profile.take_least(&Profile::of(&picture));
    }
    let measured = measure(&picture);
    let alone = profile.seconds(1);
    profile.print();
    println!("threads  model ms  of one  speed-up  measured ms  of one");
    for threads in [1, 2, 3, 4, 8, 16] {
        let seconds = profile.seconds(threads);
        print!(
            "{threads:>7}{:>10.1}{:>8.3}{:>10.2}",
            seconds * 1e3,
            seconds / alone,
            alone / seconds
        );
        match measured.get(threads - 1) {
            Some(real) => println!("{:>13.1}{:>8.3}", real * 1e3, real / measured[0]),
            None => println!(),
        }
    }
}

/// Seconds of each part on one thread.
struct Profile {
    /// Seconds until a second thread works.
    start: f64,
    /// Parts that only one thread can work on.
    serial: Vec<(&'static str, f64)>,
    /// Parts of independent pieces.
    pieces: Vec<(&'static str, Vec<f64>)>,
    /// Seconds of each macroblock, by row.
    rows: Vec<Vec<f64>>,
}

impl Profile {
    fn of(picture: &RgbPicture<'_>) -> Profile {
        let recorder = Recorder::default();
        let is_unwanted = || recorder.note();
        let cancel = Cancel::when(&is_unwanted);
        let workers = Workers::new(1, None, &cancel);
        let options = LossyOptions {
            quality: QUALITY,
            effort: Effort::Medium,
            log2_partitions: None,
            constants: &Constants::DEFAULT,
            simd: Simd::detect(),
            workers,
        };
        let (source, planes) =
            recorder.time(|| Planes::from_picture(picture, options.simd, workers));
        let source = source.expect("nothing cancels it");
        let index = quantizer_index(QUALITY);
        let (segmentation, segments) =
            recorder.time(|| choose_segmentation(&source, index, &options));
        let segmentation = segmentation.expect("nothing cancels it");
        let (decisions, decided) =
            recorder.time(|| decide_macroblocks(&source, &segmentation, &options, None));
        let decisions = decisions.expect("nothing cancels it");
        let filter = FilterParameters::choose(&segmentation, options.constants);
        let size = (picture.width, picture.height);
        let (_, written) = recorder.time(|| {
            let partitions = write_partitions(&decisions, &segmentation, filter, &options)?;
            partition::assemble(size.0, size.1, &partitions, MAX_TOKEN_PARTITION)
        });
        let rows = wavefront::macroblock_times(&DecisionPass {
            source: &source,
            segmentation: &segmentation,
            constants: options.constants,
            search: ModeSearch::for_effort(Effort::Medium),
            expected_counts: None,
            visibilities: &[],
            mode_budget: mode_budget(source.mb_width, source.mb_height, true),
            simd: options.simd,
            workers: Workers::unlimited(1),
            keep_levels: true,
        });
        let samples = decided.pieces.len() - source.mb_height;
        let [first, second] = [
            &decided.pieces[..samples.div_ceil(4)],
            &decided.pieces[samples.div_ceil(4)..samples],
        ];
        let start = (0..100).map(|_| {
            let begun = Instant::now();
            let both = Workers::unlimited(2).run(2, |_| ());
            both.expect("nothing cancels it");
            begun.elapsed().as_secs_f64()
        });
        Profile {
            start: start.fold(f64::MAX, f64::min),
            serial: vec![
                ("before planes", planes.before),
                ("before segments", segments.before),
                ("clusters", segments.after),
                ("before the sample", decided.before),
                ("after rows", decided.after),
                ("probabilities", written.before),
                ("assembly", written.after),
            ],
            pieces: vec![
                ("planes", planes.pieces.clone()),
                ("activities", segments.pieces.clone()),
                ("sample, first round", first.to_vec()),
                ("sample, second round", second.to_vec()),
                ("partitions", written.pieces.clone()),
            ],
            rows,
        }
    }

    fn take_least(&mut self, other: &Profile) {
        let least = |own: &mut f64, other: &f64| *own = own.min(*other);
        least(&mut self.start, &other.start);
        for (own, other) in self.serial.iter_mut().zip(&other.serial) {
            least(&mut own.1, &other.1);
        }
        let own = self.pieces.iter_mut().flat_map(|(_, times)| times);
        let theirs = other.pieces.iter().flat_map(|(_, times)| times);
        own.zip(theirs).for_each(|(own, other)| least(own, other));
        let own = self.rows.iter_mut().flatten();
        own.zip(other.rows.iter().flatten())
            .for_each(|(own, other)| least(own, other));
    }

    /// Returns the seconds of the whole encode on `threads` threads.
    fn seconds(&self, threads: usize) -> f64 {
        let serial: f64 = self.serial.iter().map(|(_, time)| time).sum();
        let pieces: f64 = self
            .pieces
            .iter()
            .map(|(_, times)| side_by_side(times, threads, self.start))
            .sum();
        serial + pieces + follow(&self.rows, threads, self.start)
    }

    fn print(&self) {
        let milliseconds = |times: &[f64]| times.iter().sum::<f64>() * 1e3;
        for (name, time) in &self.serial {
            println!("{name:<22}{:>8.2} ms", time * 1e3);
        }
        for (name, times) in &self.pieces {
            println!(
                "{name:<22}{:>8.2} ms in {}",
                milliseconds(times),
                times.len()
            );
        }
        let rows = milliseconds(&self.rows.concat());
        println!("{:<22}{rows:>8.2} ms in {}", "rows", self.rows.len());
        println!("a helper starts within {:.0} us", self.start * 1e6);
    }
}

/// Returns the times at which the threads start.
fn starts(threads: usize, start: f64) -> Vec<f64> {
    (0..threads).map(|thread| thread as f64 * start).collect()
}

/// Returns the thread that is free first.
fn first_free(free: &mut [f64]) -> &mut f64 {
    free.iter_mut()
        .min_by(|a, b| a.total_cmp(b))
        .expect("there is a thread")
}

/// Returns the time at which the last of several independent pieces is done, if each goes to the
/// next free thread.
fn side_by_side(times: &[f64], threads: usize, start: f64) -> f64 {
    let mut free = starts(threads.min(times.len()).max(1), start);
    let mut end = 0.0f64;
    for time in times {
        let thread = first_free(&mut free);
        *thread += time;
        end = end.max(*thread);
    }
    end
}

/// Returns the time at which the last macroblock is done, if rows go to the next free thread, and
/// each macroblock waits for the one before it and for the one above to the right.
fn follow(rows: &[Vec<f64>], threads: usize, start: f64) -> f64 {
    let mut free = starts(threads, start);
    let mut above: Vec<f64> = Vec::new();
    for row in rows {
        let thread = first_free(&mut free);
        let mut ends = Vec::with_capacity(row.len());
        for (mb_x, time) in row.iter().enumerate() {
            let needed = above.get((mb_x + 1).min(row.len() - 1));
            *thread = thread.max(needed.copied().unwrap_or(0.0)) + time;
            ends.push(*thread);
        }
        above = ends;
    }
    above.last().copied().unwrap_or(0.0)
}

/// Records the time of each cancellation check, which precedes each piece of work.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Instant>>);

impl Recorder {
    /// Records the time. The work is never cancelled.
    fn note(&self) -> bool {
        self.0.lock().expect("pushing").push(Instant::now());
        false
    }
}

/// Seconds of a pass, and of its pieces.
struct Times {
    before: f64,
    pieces: Vec<f64>,
    after: f64,
}

impl Recorder {
    /// Times a pass. No check follows the last piece, so it is taken to be as long as the one
    /// before it.
    fn time<T>(&self, pass: impl FnOnce() -> T) -> (T, Times) {
        self.0.lock().expect("pushing").clear();
        let begun = Instant::now();
        let result = pass();
        let ended = Instant::now();
        let checks = std::mem::take(&mut *self.0.lock().expect("pushing"));
        let seconds = |from: Instant, to: Instant| (to - from).as_secs_f64();
        let before = seconds(begun, checks.first().copied().unwrap_or(ended));
        let mut pieces: Vec<f64> = checks.windows(2).map(|w| seconds(w[0], w[1])).collect();
        let last = checks.last().map_or(0.0, |&last| seconds(last, ended));
        let last_piece = pieces.last().copied().unwrap_or(0.0).min(last);
        if !checks.is_empty() {
            pieces.push(last_piece);
        }
        let after = last - last_piece;
        let times = Times {
            before,
            pieces,
            after,
        };
        (result, times)
    }
}

/// Measures the seconds on one thread and on two, in turns.
fn measure(picture: &RgbPicture<'_>) -> [f64; 2] {
    let mut least = [f64::MAX; 2];
    for _ in 0..2 * RUNS {
        for (threads, least) in least.iter_mut().enumerate() {
            let encoder = Encoder::lossy(QUALITY).threads(threads + 1);
            let begun = Instant::now();
            let encoded = encoder.encode(&Picture::from(picture));
            encoded.expect("a sound picture");
            *least = least.min(begun.elapsed().as_secs_f64());
        }
    }
    least
}

/// The photographs, at their own size, one after another.
fn mosaic() -> Vec<u8> {
    let photographs = ["coffee.jpg", "astronaut.jpg", "rocket.jpg", "chelsea.jpg"].map(|name| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
        let file = std::fs::read(path.join(name)).expect(name);
        let mut decoder = zune_jpeg::JpegDecoder::new(std::io::Cursor::new(file));
        let pixels = decoder.decode().expect(name);
        let (width, height) = decoder.dimensions().expect(name);
        assert_eq!(pixels.len(), width * height * 3, "{name} is in color");
        (pixels, width, height)
    });
    let pixel = |x: usize, y: usize| {
        let (pixels, width, height) = &photographs[(x / 700 + y / 500) % photographs.len()];
        let at = (y % height * width + x % width) * 3;
        [pixels[at], pixels[at + 1], pixels[at + 2]]
    };
    (0..HEIGHT as usize)
        .flat_map(|y| (0..WIDTH as usize).map(move |x| (x, y)))
        .flat_map(|(x, y)| pixel(x, y))
        .collect()
}

#[test]
fn rows_follow_at_a_distance_of_two_macroblocks() {
    let rows = vec![vec![1.0; 10]; 6];
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(close(follow(&rows, 1, 0.0), 60.0), "one after another");
    assert!(
        close(follow(&rows, 6, 0.0), 20.0),
        "10, and 2 for each row below"
    );
    // The second thread's last row ends 2 after the first's, which has three rows.
    assert!(
        close(follow(&rows, 2, 0.0), 32.0),
        "{}",
        follow(&rows, 2, 0.0)
    );
    assert!(close(side_by_side(&[1.0, 1.0, 3.0], 2, 0.0), 4.0));
    assert!(close(side_by_side(&[1.0; 4], 2, 0.5), 2.5));
}
