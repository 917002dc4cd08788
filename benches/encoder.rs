//! Megapixels a second of decoding and encoding the photographs of `testdata/`, and milliseconds
//! that a megapixel of each kind of file takes to become sRGB, on one thread: `cargo bench --bench
//! encoder`. See `benches/README.md`.

use moxcms::ColorProfile;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use towebp_encoder::{ColorType, Encoder, Picture};
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{self, Format, Image, Limits};

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
        let file = read(name);
        let picture = decode(&file, Format::Jpeg);
        let megapixels = f64::from(picture.width) * f64::from(picture.height) / 1e6;
        let decoding = megapixels / median_seconds(|| decode(&file, Format::Jpeg));
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
    print_kinds(&read("coffee.jpg"));
}

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name);
    std::fs::read(path).expect("testdata has the photographs")
}

fn decode(file: &[u8], format: Format) -> Image {
    image::decode(file, format, &Limits::default(), &Cancel::never())
        .expect("the photographs are good files")
}

/// All kinds in turns, so that a busy machine is so for each of them.
fn print_kinds(photograph: &[u8]) {
    let kinds = kinds(photograph);
    let mut times = vec![Vec::new(); kinds.len()];
    let began = Instant::now();
    while began.elapsed() < TIME * kinds.len() as u32 {
        for ((_, format, file), times) in kinds.iter().zip(&mut times) {
            let start = Instant::now();
            let image = black_box(decode(file, *format));
            let pixels = f64::from(image.width) * f64::from(image.height);
            times.push(start.elapsed().as_secs_f64() * 1e9 / pixels);
        }
    }
    println!("{:<30}{:>8}", "file to sRGB", "ms/MP");
    for ((name, ..), mut times) in kinds.into_iter().zip(times) {
        println!("{name:<30}{:>8.2}", median(&mut times));
    }
}

/// A JPEG as it is, with profiles, and turned; and its pixels as PNGs.
fn kinds(jpeg: &[u8]) -> Vec<(&'static str, Format, Vec<u8>)> {
    let encoded = |profile: ColorProfile| profile.encode().expect("a sound profile");
    let p3 = encoded(ColorProfile::new_display_p3());
    let adobe = encoded(ColorProfile::new_adobe_rgb());
    let profile = |profile: &[u8]| [b"ICC_PROFILE\0\x01\x01", profile].concat();
    let turned = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let picture = decode(jpeg, Format::Jpeg);
    let png = |depth, gamma: Option<f32>, profile: Option<&[u8]>| {
        let mut info = png::Info::with_size(picture.width, picture.height);
        info.color_type = png::ColorType::Rgb;
        info.bit_depth = depth;
        info.source_gamma = gamma.map(png::ScaledFloat::new);
        info.icc_profile = profile.map(Into::into);
        let samples = match depth {
            png::BitDepth::Sixteen => picture.pixels.iter().flat_map(|&v| [v, v]).collect(),
            _ => picture.pixels.clone(),
        };
        let mut file = Vec::new();
        png::Encoder::with_info(&mut file, info)
            .and_then(png::Encoder::write_header)
            .and_then(|mut writer| writer.write_image_data(&samples))
            .expect("a Vec takes all");
        file
    };
    let (eight, sixteen) = (png::BitDepth::Eight, png::BitDepth::Sixteen);
    let jpegs = [
        ("JPEG", jpeg.to_vec()),
        ("JPEG, Display P3", with_segment(jpeg, 0xe2, &profile(&p3))),
        (
            "JPEG, Adobe RGB",
            with_segment(jpeg, 0xe2, &profile(&adobe)),
        ),
        ("JPEG, to be turned", with_segment(jpeg, 0xe1, turned)),
    ];
    let pngs = [
        ("PNG", png(eight, None, None)),
        ("PNG, gAMA 1.0", png(eight, Some(1.0), None)),
        ("PNG, Display P3", png(eight, None, Some(&p3))),
        ("PNG of 16 bits", png(sixteen, None, None)),
        ("PNG of 16 bits, gAMA 1.0", png(sixteen, Some(1.0), None)),
        ("PNG of 16 bits, Display P3", png(sixteen, None, Some(&p3))),
    ];
    let jpegs = jpegs.map(|(name, file)| (name, Format::Jpeg, file));
    let pngs = pngs.map(|(name, file)| (name, Format::Png, file));
    jpegs.into_iter().chain(pngs).collect()
}

/// A JPEG with this segment behind its start.
fn with_segment(jpeg: &[u8], marker: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &length, data, &jpeg[2..]].concat()
}

fn encode(image: &Image, quality: u8) -> Vec<u8> {
    assert_eq!(
        image.layout,
        image::Layout::Rgb,
        "the photographs have no alpha"
    );
    let picture = Picture::new(image.width, image.height, ColorType::Rgb8, &image.pixels);
    let encoded = Encoder::lossy(quality).encode(&picture.expect("they are whole"));
    encoded.expect("the photographs are small").file
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
    median(&mut times)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
