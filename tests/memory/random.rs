//! Random conversions hold no more bytes than was estimated: extreme shapes, pictures that no
//! encoder saves anything on, every format and parameter, and up to 16 threads.
//!
//! `TOWEBP_MEMORY_JOBS` is the number of jobs (120 if it is not set), `TOWEBP_MEMORY_SEED` the seed
//! of the first one. Each job has a seed of its own, which is printed if its estimate does not
//! hold: `TOWEBP_MEMORY_JOBS=1 TOWEBP_MEMORY_SEED=N cargo test --test memory random`
//!
//! With `TOWEBP_MEMORY_SHOW`, all jobs are printed: held / estimated, both, the seed.

use crate::is_alone;
use crate::peaks::{described_jpeg, described_png, measure};
use crate::support::animation::{animated, animated_rgba, animated_webp};
use crate::support::hostile;
use crate::support::jpeg::{self as jpegs, Kind};
use crate::support::picture::Picture;
use crate::support::tiff::{Samples, Tiff};
use std::env;
use std::fmt::Write;
use towebp_encoder::testing::Random;
use towebp_encoder::{Effort, Encoder, Mode};

/// The most pixels of a picture, before and after it is resized.
const MOST_PIXELS: f64 = 2_000_000.0;

/// The longest side of a picture.
const MOST_SIDE: f64 = 16383.0;

fn from_environment(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

#[test]
fn random_conversions_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let jobs = from_environment("TOWEBP_MEMORY_JOBS").unwrap_or(120);
    let first = from_environment("TOWEBP_MEMORY_SEED").unwrap_or(1);
    println!("TOWEBP_MEMORY_JOBS={jobs} TOWEBP_MEMORY_SEED={first}");
    let is_shown = env::var_os("TOWEBP_MEMORY_SHOW").is_some();
    let mut faults = Vec::new();
    for seed in first..first + jobs {
        let job = RandomJob::new(&mut Random::new(seed));
        let measured = measure(&job.file, &job.query, job.mark.as_deref(), job.threads);
        if is_shown && let Some(estimated) = measured.estimated {
            let ratio = measured.held as f64 / estimated as f64;
            println!(
                "{ratio:.3} {} {estimated} {seed} {}",
                measured.held, job.name
            );
        }
        if let Some(fault) = measured.fault() {
            faults.push(format!("seed {seed}: {}: {fault}", job.name));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {jobs}\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The shapes and parameters that once took most beside their estimates.
#[test]
fn extreme_shapes_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let noise = |width, height| Picture::noise(width, height);
    let primaries = |width, height| {
        let noise = noise(width, height);
        let pure = |sample: u8| if sample < 128 { 0 } else { 255 };
        Picture::of(width, height, |x, y| {
            let [red, green, blue, _] = noise.at(x, y).map(pure);
            [red, green, blue, 255]
        })
    };
    let clear = |width, height| {
        let noise = noise(width, height);
        Picture::of(width, height, |x, y| {
            let [red, green, blue, _] = noise.at(x, y);
            [red, green, blue, green ^ blue]
        })
    };
    let best = "quality=100&mode=lossy";
    let marked = "width=600&height=400&fit=fill&enlarge=true&watermark=M&watermark_scale=100&\
                  watermark_rotate=45&watermark_outline=outline&animation=all";
    let frames = [clear(60, 40), noise(60, 40), clear(60, 40)];
    let animation = animated_rgba(&frames, png::DisposeOp::Previous, png::BlendOp::Over);
    let mut faults = Vec::new();
    for (name, file, query) in [
        ("primaries 16383 x 120", primaries(16383, 120).png(), best),
        ("primaries 16383 x 17", primaries(16383, 17).png(), best),
        ("primaries 120 x 16383", primaries(120, 16383).png(), best),
        ("primaries 1 x 16383", primaries(1, 16383).png(), best),
        ("clear 8000 x 60", clear(8000, 60).png(), best),
        ("clear 60 x 8000", clear(60, 8000).png(), best),
        ("noise 16383 x 19", noise(16383, 19).png(), "effort=low"),
        ("low quality", primaries(3000, 200).png(), "quality=8"),
        ("marked animation", animation, marked),
        ("narrow", noise(1, 16383).png(), "target=95"),
    ] {
        for threads in [1, 4, 16] {
            let measured = measure(&file, query, None, threads);
            assert_eq!(measured.outcome, Ok(()), "{name}");
            if let Some(fault) = measured.fault() {
                faults.push(format!("{name}, {threads} threads: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A conversion.
struct RandomJob {
    /// What it is, for the report.
    name: String,
    file: Vec<u8>,
    query: String,
    /// The watermark's picture.
    mark: Option<Vec<u8>>,
    threads: usize,
}

impl RandomJob {
    fn new(random: &mut Random) -> RandomJob {
        let query = query(random);
        // What takes long is done to smaller pictures.
        let is_slow = ["target", "max_bytes", "effort=high", "effort=max"];
        let divisor = if is_slow.iter().any(|slow| query.contains(slow)) {
            10.0
        } else {
            1.0
        };
        let (kind, file) = file(random, MOST_PIXELS / divisor);
        let mark = (random.below(6) == 0).then(|| {
            let size = size(random, MOST_PIXELS / 4.0);
            picture(random, size).1.png()
        });
        let threads = [1, 2, 3, 4, 8, 16][random.index(6)];
        let marked = if mark.is_some() { ", marked" } else { "" };
        RandomJob {
            name: format!("{kind}, {query}, {threads} threads{marked}"),
            file,
            query,
            mark,
            threads,
        }
    }
}

/// From 0 to 1.
fn share(random: &mut Random) -> f64 {
    f64::from(random.below(1 << 20)) / f64::from((1 << 20) - 1)
}

/// A width and a height of any proportions, up to so many pixels.
fn size(random: &mut Random, most_pixels: f64) -> (u32, u32) {
    let pixels = most_pixels.powf(share(random).sqrt());
    let across = match random.below(4) {
        0 => MOST_SIDE,
        1 => (pixels / MOST_SIDE).max(1.0),
        _ => pixels.powf(share(random)),
    };
    let side = |side: f64| side.round().clamp(1.0, MOST_SIDE) as u32;
    (side(across), side(pixels / across))
}

/// A picture, and what is on it.
fn picture(random: &mut Random, (width, height): (u32, u32)) -> (&'static str, Picture) {
    let seed = random.next_u32();
    let noise = Picture::noise(width, height);
    let at = |x: u32, y: u32| noise.at(x.wrapping_add(seed) % width, y);
    match random.below(13) {
        0 => ("noise", noise),
        1 => ("waves", Picture::waves(width, height)),
        2 => ("flat", Picture::flat(width, height, [seed as u8, 8, 7])),
        3 | 8 | 9 => {
            let primaries = |x, y| at(x, y).map(|sample| if sample < 128 { 0 } else { 255 });
            let opaque = |[r, g, b, _]: [u8; 4]| [r, g, b, 255];
            (
                "primaries",
                Picture::of(width, height, |x, y| opaque(primaries(x, y))),
            )
        }
        4 | 11 => (
            "clear noise",
            Picture::of(width, height, |x, y| {
                let [red, green, blue, _] = at(x, y);
                [red, green, blue, green ^ blue]
            }),
        ),
        5 | 10 => (
            "clear primaries",
            Picture::of(width, height, |x, y| {
                let [red, green, blue, _] = at(x, y);
                [red, green, blue, red ^ blue].map(|sample| if sample < 128 { 0 } else { 255 })
            }),
        ),
        6 => (
            "black and white",
            Picture::of(width, height, |x, y| {
                let sample = if at(x, y)[0] < 128 { 0 } else { 255 };
                [sample, sample, sample, 255]
            }),
        ),
        12 => (
            "patterns",
            Picture::of(width, height, |x, y| {
                // Short copies of few earlier pixels, with others between them.
                match (x % 4, noise.at(x / 4 * 4, y)) {
                    (3, _) => at(x, y),
                    (number, [pattern, ..]) => {
                        noise.at(u32::from(pattern % 64) % width, number % height)
                    }
                }
            }),
        ),
        _ => (
            "soft",
            Picture::of(width, height, |x, y| {
                let [red, green, blue, _] = Picture::waves(1, 1)
                    .at(0, 0)
                    .map(|s| s.wrapping_add((x / 9 + y / 5) as u8));
                [
                    red,
                    green,
                    blue,
                    (u64::from(x) * 255 / u64::from(width)) as u8,
                ]
            }),
        ),
    }
}

/// A file of any format, and what it is.
fn file(random: &mut Random, most_pixels: f64) -> (String, Vec<u8>) {
    let format = random.below(20);
    let share = if matches!(format, 8..=11 | 18) {
        3.0
    } else {
        1.0
    };
    let (width, height) = size(random, most_pixels / share);
    let (content, drawn) = picture(random, (width, height));
    let (format, file) = match format {
        0..=4 => ("png", drawn.png()),
        5 => ("jpeg", jpegs::jpeg(&drawn, Kind::Sequential)),
        6 => ("progressive jpeg", jpegs::jpeg(&drawn, Kind::Progressive)),
        7 => {
            let size = (width as u16, height as u16);
            let factors: [&[u8]; 6] = [
                &[0x11],
                &[0x22, 0x11, 0x11],
                &[0x11; 3],
                &[0x41, 0x11, 0x11],
                &[0x11; 4],
                &[0x22, 0x11, 0x11, 0x22],
            ];
            let factors = factors[random.index(factors.len())];
            let all: Vec<u8> = (0..factors.len() as u8).collect();
            let each: Vec<&[u8]> = all.chunks(1).collect();
            let scans = if random.below(2) == 0 {
                each
            } else {
                vec![all.as_slice()]
            };
            let flat = hostile::flat_jpeg(size, factors, &scans);
            match random.below(3) {
                0 => ("described flat jpeg", described_jpeg(&flat)),
                _ => ("flat jpeg", flat),
            }
        }
        8 | 9 => {
            let frames: Vec<Picture> = (0..2 + random.below(4))
                .map(|_| picture(random, (width, height)).1)
                .collect();
            let dispose = [
                png::DisposeOp::None,
                png::DisposeOp::Background,
                png::DisposeOp::Previous,
            ][random.index(3)];
            let blend = [png::BlendOp::Source, png::BlendOp::Over][random.index(2)];
            ("apng", animated_rgba(&frames, dispose, blend))
        }
        10 | 11 => {
            let frames: Vec<Picture> = (0..2 + random.below(4))
                .map(|_| picture(random, (width, height)).1)
                .collect();
            ("animated gif", animated(&frames))
        }
        12 => ("bmp", drawn.bmp()),
        19 => ("tiff", tiff(random).file(&drawn)),
        14 | 15 => {
            let partitions = random.below(4) as u8;
            let encoder = webp_encoder(random).mode(Mode::Lossy);
            (
                "lossy webp",
                drawn.webp(&encoder.log2_partitions(partitions)),
            )
        }
        16 | 17 => ("lossless webp", drawn.webp(&webp_encoder(random))),
        18 => {
            let frames: Vec<Picture> = (0..2 + random.below(4))
                .map(|_| picture(random, (width, height)).1)
                .collect();
            let mode = [Mode::Lossy, Mode::Lossless, Mode::Auto][random.index(3)];
            let encoder = webp_encoder(random).mode(mode);
            ("animated webp", animated_webp(&frames, encoder))
        }
        _ => match random.below(2) {
            0 => ("gif", drawn.gif()),
            _ => ("described png", described_png(&drawn)),
        },
    };
    (format!("{format} of {content}, {width} x {height}"), file)
}

/// How a TIFF is stored.
fn tiff(random: &mut Random) -> Tiff<'static> {
    Tiff {
        is_deep: random.below(2) == 0,
        samples: [Samples::Rgb, Samples::Rgba, Samples::Cmyk, Samples::Jpeg][random.index(4)],
        is_compressed: random.below(2) == 0,
        tile: [0, 16, 256][random.index(3)],
        rows: [0, 1, 50][random.index(3)],
        orientation: random.below(9),
        profile: &[],
    }
}

/// An encoder for a source file.
fn webp_encoder(random: &mut Random) -> Encoder<'static> {
    let effort = [Effort::Low, Effort::Medium][random.index(2)];
    let quality = [5, 75, 100][random.index(3)];
    Encoder::lossless().effort(effort).alpha_quality(quality)
}

/// Parameters of which each is there or not.
fn query(random: &mut Random) -> String {
    let mut query = String::new();
    let mut add = |random: &mut Random, one_in: u32, name: &str, values: &[&str]| {
        if random.below(one_in) == 0 {
            write!(query, "&{name}={}", values[random.index(values.len())])
                .expect("a String takes all");
            return true;
        }
        false
    };
    if !add(random, 7, "target", &["30", "70", "95"])
        && !add(random, 8, "max_bytes", &["1", "20k", "1M"])
    {
        add(
            random,
            2,
            "quality",
            &["0", "25", "75", "95", "99", "100", "100", "100", "100"],
        );
    }
    query_tail(random, &mut add);
    query.push_str("&best_effort=true");
    query
}

fn query_tail(random: &mut Random, add: &mut impl FnMut(&mut Random, u32, &str, &[&str]) -> bool) {
    add(
        random,
        2,
        "effort",
        &["low", "low", "low", "medium", "high", "max"],
    );
    add(random, 2, "mode", &["lossy", "lossy", "lossless", "auto"]);
    add(random, 8, "near_lossless", &["40"]);
    add(random, 8, "alpha_quality", &["30"]);
    add(random, 6, "metadata", &["keep", "copyright", "icc"]);
    add(random, 8, "animation", &["first"]);
    add(random, 8, "placeholder", &["true"]);
    add(random, 6, "background", &["red"]);
    add(
        random,
        6,
        "crop",
        &["0,0,1,1", "0,1,400,2", "3,0,2,300", "1,1,90,70"],
    );
    let is_wide = add(random, 5, "width", &["7", "300", "1000", "16383"]);
    let is_high = add(random, 5, "height", &["3", "50", "800", "16383"]);
    if is_wide || is_high {
        add(random, 3, "fit", &["cover", "fill"]);
        add(random, 3, "enlarge", &["true"]);
    }
    if add(
        random,
        4,
        "watermark",
        &["towebp", "M", "a+longer+text+in+some+lines"],
    ) {
        add(random, 2, "watermark_size", &["200", "auto", "100%25"]);
        add(random, 3, "watermark_outline", &["shadow", "outline"]);
    }
    add(random, 6, "watermark_scale", &["1", "90", "100"]);
    add(random, 4, "watermark_rotate", &["20", "45", "90"]);
    add(random, 6, "watermark_tile", &["true"]);
    add(random, 6, "watermark_position", &["center"]);
}
