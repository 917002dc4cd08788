//! Megapixels a second of decoding and encoding the photographs of `testdata/`, on one thread:
//! `cargo bench --bench encoder`. See `benches/README.md`.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use towebp::image::{self, Format, Image, Limits, Patience};
use towebp::webp::{self, Options, Picture};

const PICTURES: [&str; 3] = ["astronaut.jpg", "coffee.jpg", "rocket.jpg"];
const QUALITIES: [u8; 3] = [50, 75, 90];

/// Each figure is the median of runs that take this long together.
const TIME: Duration = Duration::from_secs(1);

fn main() {
    println!(
        "{:<15}{:>8}{:>12}{:>10}{:>10}{:>10}{:>10}",
        "MP/s", "MP", "JPEG in", "quality", "encode", "ms/MP", "bits/px"
    );
    for name in PICTURES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata")
            .join(name);
        let file = std::fs::read(path).expect("testdata has the photographs");
        let picture = decode(&file);
        let megapixels = f64::from(picture.width) * f64::from(picture.height) / 1e6;
        let decoding = megapixels / median_seconds(|| decode(&file));
        for quality in QUALITIES {
            let seconds = median_seconds(|| encode(&picture, quality));
            println!(
                "{name:<15}{megapixels:>8.2}{decoding:>12.1}{quality:>10}{:>10.2}{:>10.1}{:>10.3}",
                megapixels / seconds,
                seconds * 1e3 / megapixels,
                encode(&picture, quality).len() as f64 * 8.0 / (megapixels * 1e6),
            );
        }
    }
}

fn decode(file: &[u8]) -> Image {
    image::decode(file, Format::Jpeg, &Limits::default(), &Patience::endless())
        .expect("the photographs are good JPEGs")
}

fn encode(image: &Image, quality: u8) -> Vec<u8> {
    assert_eq!(
        image.layout,
        image::Layout::Rgb,
        "the photographs have no alpha"
    );
    let picture = Picture {
        width: image.width,
        height: image.height,
        layout: webp::Layout::Rgb,
        pixels: &image.pixels,
    };
    webp::encode(&picture, &Options::with_quality(quality)).expect("the photographs are small")
}

fn median_seconds<T>(mut work: impl FnMut() -> T) -> f64 {
    black_box(work());
    let began = Instant::now();
    let mut times = Vec::new();
    while began.elapsed() < TIME {
        let start = Instant::now();
        black_box(work());
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
