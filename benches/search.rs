//! What searches over quality find, and in how many encodings: `cargo bench --bench search --
//! FOLDER...`, each folder with PNGs and JPEGs. For each goal and folder it prints means, the
//! spread (standard deviation) and extremes. See `benches/README.md`.

use fast_ssim2::{PixelDescriptor, PixelSlice, compute_ssimulacra2};
use std::path::Path;
use std::time::Instant;
use towebp_pipeline::conversion::{self, Cancel, Conversion, ConversionError, Fonts, Job, Params};
use towebp_pipeline::image::{self, Format, Image, Layout, Limits};

/// The parameter of each goal and its value.
const GOALS: [(&str, &str); 6] = [
    ("target", "50"),
    ("target", "70"),
    ("target", "85"),
    ("max_bytes", "20k"),
    ("max_bytes", "50k"),
    ("max_bytes", "100k"),
];

fn main() {
    let folders: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    if folders.is_empty() {
        println!("name folders of pictures: cargo bench --bench search -- FOLDER...");
        return;
    }
    println!(
        "{:<16}{:<12}{:>5}{:>7}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}",
        "goal",
        "folder",
        "n",
        "unmet",
        "mean",
        "spread",
        "least",
        "most",
        "encodes",
        "most",
        "time"
    );
    for (name, value) in GOALS {
        let mut all = Vec::new();
        for folder in &folders {
            let mut pictures: Vec<_> = std::fs::read_dir(folder)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| Format::sniff(&read(path)).is_some())
                .collect();
            pictures.sort();
            let results: Vec<_> = pictures
                .iter()
                .map(|path| measure(path, name, value))
                .collect();
            let folder = Path::new(folder).file_name().unwrap_or_default();
            print(name, value, &folder.to_string_lossy(), &results);
            all.extend(results);
        }
        print(name, value, "all", &all);
    }
}

/// What a search gave.
#[derive(Clone, Copy)]
struct Searched {
    /// Points above the target by an independent judgment of the file, or percent of the bytes that
    /// are left; `None` if the goal was not met.
    above: Option<f64>,
    encodings: f64,
    /// The time, in that of the same conversion at the quality that was found.
    times: f64,
}

fn print(name: &str, value: &str, folder: &str, results: &[Searched]) {
    let above: Vec<f64> = results.iter().filter_map(|result| result.above).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let average = mean(&above);
    let squares: Vec<f64> = above
        .iter()
        .map(|value| (value - average).powi(2))
        .collect();
    let encodings: Vec<f64> = results.iter().map(|result| result.encodings).collect();
    let times: Vec<f64> = results.iter().map(|result| result.times).collect();
    println!(
        "{:<16}{folder:<12}{:>5}{:>7}{average:>9.2}{:>9.2}{:>9.2}{:>9.2}{:>9.2}{:>9}{:>8.1}",
        format!("{name}={value}"),
        results.len(),
        results.len() - above.len(),
        mean(&squares).sqrt(),
        above.iter().copied().fold(f64::INFINITY, f64::min),
        above.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        mean(&encodings),
        encodings.iter().copied().fold(0.0, f64::max),
        mean(&times),
    );
}

fn measure(path: &Path, name: &str, value: &str) -> Searched {
    let bytes = read(path);
    let (searched, time) = timed(|| convert(&bytes, &[(name, value), ("best_effort", "true")]));
    let searched = searched.expect("a good picture");
    let found = searched.found.expect("it was a search");
    let plain = match found.quality {
        Some(quality) => ("quality", quality.to_string()),
        None => ("mode", "lossless".to_owned()),
    };
    let (plain, plain_time) = timed(|| convert(&bytes, &[(plain.0, &plain.1)]));
    let plain = plain.expect("a good picture");
    // A target that no quality reaches is met by lossless coding, even of a JPEG.
    assert!(
        plain.webp == searched.webp,
        "{}: another file",
        path.display()
    );
    let limit = Params::parse([(name, value)].into_iter())
        .expect("good parameters")
        .goal;
    let above = match limit.expect("a goal") {
        conversion::Goal::Score(least) => judge(&bytes, &searched.webp) - f64::from(least),
        conversion::Goal::MaxBytes { bytes, .. } => {
            100.0 * (1.0 - searched.webp.len() as f64 / bytes as f64)
        }
    };
    if std::env::var_os("TOWEBP_VERBOSE").is_some() {
        let name = path.file_name().unwrap_or_default().display();
        println!("  {name} {found:?} {above:.3}");
    }
    Searched {
        above: (above >= 0.0).then_some(above),
        encodings: f64::from(found.encodings),
        times: time / plain_time,
    }
}

/// The score of a file, by another decoding of both.
fn judge(original: &[u8], webp: &[u8]) -> f64 {
    let format = Format::sniff(original).expect("a picture");
    let original = image::decode(original, format, &Limits::default(), &Cancel::never());
    let original = original.expect("a good picture");
    let mut decoder =
        image_webp::WebPDecoder::new(std::io::Cursor::new(webp)).expect("a good file");
    let mut pixels = vec![0; decoder.output_buffer_size().expect("it fits into memory")];
    decoder.read_image(&mut pixels).expect("it decodes");
    let decoded = Image {
        layout: if decoder.has_alpha() {
            Layout::Rgba
        } else {
            Layout::Rgb
        },
        pixels,
        ..original
    };
    compute_ssimulacra2(&slice(&original), &slice(&decoded)).expect("of the same size")
}

fn slice(image: &Image) -> PixelSlice<'_> {
    let descriptor = match image.layout {
        Layout::Rgb => PixelDescriptor::RGB8_SRGB,
        Layout::Rgba => PixelDescriptor::RGBA8_SRGB,
    };
    let stride = image.width as usize * image.layout.channels();
    PixelSlice::new(&image.pixels, image.width, image.height, stride, descriptor)
        .expect("as many samples as it says")
}

fn convert(bytes: &[u8], parameters: &[(&str, &str)]) -> Result<Conversion, ConversionError> {
    let params = Params::parse(parameters.iter().copied()).expect("good parameters");
    conversion::run(&Job {
        bytes,
        format: Format::sniff(bytes).expect("a picture"),
        params: &params,
        watermark_picture: None,
        fonts: Fonts::bundled(),
        limits: &Limits::default(),
        threads: 1,
        cpu_budget: None,
        cancel: &Cancel::never(),
    })
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed().as_secs_f64())
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file that can be read")
}
