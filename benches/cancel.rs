//! How long a conversion goes on after it was cancelled, for each of the given files: `cargo bench
//! --bench cancel -- FILES [WATERMARK=FILE] [QUERY=PARAMETERS]`. See `benches/README.md`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use towebp_pipeline::conversion::{self, Cancel, ConversionError, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

/// Each conversion is stopped at so many moments, evenly spread.
const STOPS: u32 = 10;

fn main() {
    let mut files = Vec::new();
    let mut watermark = None;
    let mut query = "watermark=towebp".to_owned();
    // cargo adds `--bench`.
    for argument in std::env::args().skip(1).filter(|text| text != "--bench") {
        match argument.split_once('=') {
            Some(("WATERMARK", path)) => watermark = Some(read(Path::new(path))),
            Some(("QUERY", given)) => given.clone_into(&mut query),
            _ => files.push(PathBuf::from(argument)),
        }
    }
    if files.is_empty() {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
        files = ["coffee.jpg", "graphic.png", "animated.gif", "rgb24.bmp"]
            .map(|name| testdata.join(name))
            .to_vec();
    }
    println!(
        "{:<28}{:>8}{:>10}{:>11}{:>10}{:>10}{:>14}{:>12}",
        "", "MP", "decode ms", "all ms", "questions", "gap ms", "after ms", "stop ms"
    );
    for path in files {
        report(&path, watermark.as_deref(), &query);
    }
}

fn report(path: &Path, watermark: Option<&[u8]>, query: &str) {
    let bytes = read(path);
    let format = Format::sniff(&bytes).expect("a picture");
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_ref()));
    let params = Params::parse(pairs).expect("good parameters");
    let limits = Limits::default();
    let run = |watch: &Watch| {
        conversion::run(&Job {
            bytes: &bytes,
            format,
            params: &params,
            watermark_picture: watermark,
            fonts: Fonts::bundled(),
            limits: &limits,
            threads: 1,
            cpu_budget: None,
            cancel: &Cancel::when(&|| watch.is_over()),
        })
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();

    let watch = Watch::until(None);
    let began = Instant::now();
    let outcome = run(&watch);
    let whole = began.elapsed();
    let asked = watch.asked();
    let (size, decode) = match outcome {
        Ok(done) => (
            format!(
                "{:.1}",
                f64::from(done.width) * f64::from(done.height) / 1e6
            ),
            format!("{:.1}", milliseconds(done.timing.decode)),
        ),
        Err(error) => {
            eprintln!("{name}: {error}");
            Default::default()
        }
    };
    let longest_stop = (0..STOPS)
        .map(|stop| {
            let after = whole * stop / STOPS;
            let began = Instant::now();
            let outcome = run(&Watch::until(Some(began + after)));
            let Err(ConversionError::Cancelled) = outcome else {
                return Duration::ZERO; // it was quicker this time
            };
            began.elapsed().saturating_sub(after)
        })
        .max()
        .unwrap_or_default();
    println!(
        "{name:<28}{size:>8}{decode:>10}{:>11.1}{:>10}{:>10.2}{:>14.1}{:>12.1}",
        milliseconds(whole),
        asked.questions,
        milliseconds(asked.longest),
        milliseconds(asked.longest_began),
        milliseconds(longest_stop),
    );
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Waits until a moment, and sees how far apart the questions are.
#[derive(Debug)]
struct Watch {
    until: Option<Instant>,
    began: Instant,
    asked: Mutex<Asked>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    questions: usize,
    last: Instant,
    longest: Duration,
    /// When the longest pause began, after the start.
    longest_began: Duration,
}

impl Watch {
    fn until(until: Option<Instant>) -> Watch {
        let now = Instant::now();
        Watch {
            until,
            began: now,
            asked: Mutex::new(Asked {
                questions: 0,
                last: now,
                longest: Duration::ZERO,
                longest_began: Duration::ZERO,
            }),
        }
    }

    fn asked(&self) -> Asked {
        *self.asked.lock().expect("nothing panics while it counts")
    }

    fn ask(&self) -> Instant {
        let now = Instant::now();
        let mut asked = self.asked.lock().expect("nothing panics while it counts");
        let pause = now - asked.last;
        if pause > asked.longest {
            asked.longest = pause;
            asked.longest_began = asked.last - self.began;
        }
        asked.last = now;
        asked.questions += 1;
        now
    }
}

impl Watch {
    /// Whether the conversion is to be cancelled.
    fn is_over(&self) -> bool {
        let now = self.ask();
        self.until.is_some_and(|until| now >= until)
    }
}
