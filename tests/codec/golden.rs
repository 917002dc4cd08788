//! The files that the encoder makes of shipped and made-up pictures, held to the figures of
//! `testdata/golden.tsv`. A change of the encoder changes them: `scripts/bless` writes them again,
//! and the difference is what a reviewer reads.
//!
//! Another test holds what `quality` promises: a higher one gives more bytes and a higher
//! SSIMULACRA2.

use crate::support::animation::moving_squares;
use crate::support::picture::Picture as MadeUp;
use crate::support::wasm::fnv1a;
use fast_ssim2::{PixelDescriptor, PixelSlice, Ssimulacra2Reference};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use towebp_pipeline::conversion::{self, Cancel, Conversion, Fonts, Job, Params};
use towebp_pipeline::image::{self, Format, Limits};

const PHOTOGRAPHS: [&str; 4] = ["astronaut.jpg", "chelsea.jpg", "coffee.jpg", "rocket.jpg"];
const SHIPPED: [&str; 5] = [
    "alpha.png",
    "graphic.png",
    "grey16.png",
    "palette.png",
    "rgb24.bmp",
];
const QUALITIES: [u8; 7] = [0, 1, 25, 50, 75, 85, 100];

/// Parameters of the shipped and made-up pictures below, beside the qualities above.
const MORE: [(&[&str], &[&str]); 7] = [
    (
        &["astronaut.jpg", "alpha.png", "graphic.png"],
        &[
            "mode=lossy&effort=low&quality=75",
            "mode=lossy&effort=high&quality=75",
            "mode=lossy&effort=max&quality=75",
            "mode=auto",
        ],
    ),
    (
        &["alpha.png", "half-clear"],
        &["mode=lossy&alpha_quality=70", "mode=lossy&alpha_quality=20"],
    ),
    (
        &[
            "alpha.png",
            "astronaut.png",
            "graphic.png",
            "grey16.png",
            "palette.png",
            "palette8.bmp",
            "rgba32.bmp",
            "2-colors",
            "5-colors",
            "40-colors",
            "half-clear",
            "noise",
        ],
        &[
            "mode=lossless&effort=low",
            "mode=lossless",
            "mode=lossless&effort=high",
        ],
    ),
    // Pictures of more than 256 x 256 pixels are predicted in other ways than icons are.
    (
        &["chelsea.jpg", "rocket.jpg", "discs", "page"],
        &[
            "mode=lossless&effort=low",
            "mode=lossless",
            "mode=lossless&effort=high",
            "mode=lossless&near_lossless=60",
            "mode=auto",
        ],
    ),
    (
        &["astronaut.png", "alpha.png", "graphic.png"],
        &[
            "mode=lossless&near_lossless=80",
            "mode=lossless&near_lossless=40",
            "mode=lossless&near_lossless=0",
        ],
    ),
    (
        &["animated.gif", "moving-squares"],
        &[
            "mode=lossy",
            "mode=lossy&effort=low",
            "mode=lossy&effort=high",
            "mode=lossless",
            "mode=lossless&effort=low",
            "mode=lossless&effort=high",
            "mode=lossless&near_lossless=40",
            "mode=auto",
        ],
    ),
    (&["palette.png", "noise", "half-clear"], &["mode=auto"]),
];

/// A picture of the tests' own, by integer arithmetic, so that it is the same on every machine;
/// none if the name is that of a shipped file.
fn made_up(name: &str) -> Option<Vec<u8>> {
    /// So many colors in blocks of 3 x 2 pixels, in no order.
    fn colors(count: u32) -> MadeUp {
        let noise = MadeUp::noise(40, 40);
        MadeUp::of(97, 61, |x, y| {
            let [sample, ..] = noise.at(x / 3, y / 2);
            let color = u32::from(sample) * count / 256;
            [color * 251, color * 83, color * 29, 255].map(|sample| sample as u8)
        })
    }
    /// Discs in front of each other, with shades and soft edges.
    fn discs(x: u32, y: u32) -> [u8; 4] {
        let mut pixel = [240, 240, 235];
        for disc in 0..12 {
            let (across, down) = (x as i32 - disc * 97 % 420, y as i32 - disc * 61 % 300);
            let radius = 30 + disc * 5;
            // The depth inside of the disc grows by 64 a pixel at its edge.
            let depth = (radius * radius - across * across - down * down) * 32 / radius;
            let cover = depth.clamp(0, 64);
            let shade = if disc % 3 == 0 { down / 2 } else { 0 };
            let color = [disc * 83 % 200, disc * 29 % 200, disc * 151 % 200];
            for (sample, color) in pixel.iter_mut().zip(color) {
                let inside = (color + shade).clamp(0, 255);
                *sample = (*sample * (64 - cover) + inside * cover) / 64;
            }
        }
        let [red, green, blue] = pixel.map(|sample| sample as u8);
        [red, green, blue, 255]
    }
    /// Squares of text, between squares that are like a photograph: grain on slopes.
    fn page() -> MadeUp {
        let noise = MadeUp::noise(321, 281);
        let slope = |at: u32, length: u32| (at % (2 * length)).abs_diff(length);
        MadeUp::of(320, 280, |x, y| {
            let sample = |x, y| u32::from(noise.at(x, y)[0]);
            if sample(x / 32, y / 32) < 118 {
                let strokes =
                    sample((y / 7 * 13 + x) % 97, 100) / 52 + sample(x / 5 % 97, 101) / 52;
                let is_paper = strokes + y % 7 < 9;
                return [[40, 30, 60, 255], [200, 190, 170, 255]][usize::from(is_paper)];
            }
            let [_, green, blue, _] = noise.at(x, y).map(u32::from);
            let grain = (sample(x, y) + sample(x + 1, y) + sample(x, y + 1)) / 64;
            let light = 50 + slope(x, 80) + slope(y + x / 3, 66);
            let color = [light, light * 4 / 5 + green / 86, light * 3 / 5 + blue / 64];
            let [red, green, blue] = color.map(|sample| (sample + grain) as u8);
            [red, green, blue, 255]
        })
    }
    match name {
        "2-colors" => Some(colors(2).png()),
        "5-colors" => Some(colors(5).png()),
        "40-colors" => Some(colors(40).png()),
        "half-clear" => {
            let pixel = |x: u32, y: u32| {
                [x * 2, y * 3, x + y, (x * y / 16).min(255)].map(|sample| sample as u8)
            };
            Some(MadeUp::of(90, 70, pixel).png())
        }
        "discs" => Some(MadeUp::of(420, 300, discs).png()),
        "noise" => Some(MadeUp::noise(45, 33).png()),
        "page" => Some(page().png()),
        "moving-squares" => Some(moving_squares(160, 120, 8)),
        _ => None,
    }
}

/// How far a metric may lie from what is written. Half of it is the rounding to the digits that are
/// written, the other half is for other machines, whose powers and logarithms may differ in their
/// last bits.
const TOLERANCE: f64 = 0.01;

const HEADER: &str = "\
# What the encoder makes of shipped and made-up pictures. Written by scripts/bless, held by tests/codec/golden.rs.
# fnv1a: the 32-bit FNV-1a hash of the file. psnr: of red, green and blue together, in dB. ssim2: SSIMULACRA2.
# Both compare what image-webp decodes with what was encoded, over middle grey where alpha lets it through.
# The parameters are those of /convert; a number alone is quality with mode=lossy. Pictures without an ending
# are made by the test. The metrics of animations are those of their first frames, which image-webp does not
# blend exactly.
picture\tparameters\tbytes\tfnv1a\tpsnr\tssim2
";

#[test]
fn figures_are_those_of_the_table() {
    let row = |picture: &Picture, name: &str, parameters: &str| Row {
        picture: name.to_owned(),
        parameters: parameters.to_owned(),
        figures: picture.encoded(parameters),
    };
    let mut measured: Vec<Row> = PHOTOGRAPHS
        .iter()
        .chain(&SHIPPED)
        .flat_map(|name| {
            let picture = Picture::named(name);
            QUALITIES.map(|quality| row(&picture, name, &quality.to_string()))
        })
        .collect();
    for (names, all_parameters) in MORE {
        for name in names {
            let picture = Picture::named(name);
            let rows = all_parameters
                .iter()
                .map(|parameters| row(&picture, name, parameters));
            measured.extend(rows);
        }
    }
    if std::env::var_os("TOWEBP_BLESS").is_some() {
        let lines: Vec<String> = measured.iter().map(Row::to_string).collect();
        let table = format!("{HEADER}{}\n", lines.join("\n"));
        std::fs::write(table_path(), table).expect("testdata is writable");
        return;
    }
    let mut table = read_table();
    let mut changes: Vec<String> = measured
        .into_iter()
        .filter_map(|row| {
            let name = format!("{} by {}", row.picture, row.parameters);
            match table.remove(&(row.picture, row.parameters)) {
                None => Some(format!("{name}: is not in the table")),
                Some(old) => old
                    .difference(&row.figures)
                    .map(|difference| format!("{name}: {difference}")),
            }
        })
        .collect();
    changes.extend(
        table.keys().map(|(picture, parameters)| {
            format!("{picture} by {parameters}: is in the table only")
        }),
    );
    assert!(
        changes.is_empty(),
        "testdata/golden.tsv has other figures (old -> new). If the change is meant, run scripts/bless:\n{}",
        changes.join("\n")
    );
}

#[test]
fn the_start_page_shows_what_this_encoder_makes() {
    let made = Picture::named("chelsea.jpg").converted("quality=85").webp;
    let path = testdata("chelsea.webp");
    if std::env::var_os("TOWEBP_BLESS").is_some() {
        std::fs::write(path, made).expect("testdata is writable");
        return;
    }
    let shown = std::fs::read(path).expect("the picture is shipped");
    assert!(
        shown == made,
        "testdata/chelsea.webp has {} bytes, and would have {} now. If the change is meant, run scripts/bless",
        shown.len(),
        made.len()
    );
}

#[test]
fn more_quality_gives_more_bytes_and_a_better_picture() {
    let mut faults = Vec::new();
    for name in PHOTOGRAPHS {
        let picture = Picture::named(name);
        let curve: Vec<(u8, Figures)> = (0..=100)
            .step_by(10)
            .map(|quality| (quality, picture.encoded(&quality.to_string())))
            .collect();
        for pair in curve.windows(2) {
            let [(low, worse), (high, better)] = pair else {
                unreachable!("windows of two");
            };
            if better.bytes <= worse.bytes || better.ssim2 <= worse.ssim2 {
                faults.push(format!(
                    "{name}: {} bytes and SSIMULACRA2 {:.2} at quality {low}, but {} and {:.2} at {high}",
                    worse.bytes, worse.ssim2, better.bytes, better.ssim2
                ));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The rows of the table: a picture, its parameters, and the length and hash of the file.
pub(crate) fn rows() -> Vec<(String, String, String)> {
    let row = |((picture, parameters), figures): (_, Figures)| {
        let file = format!("{} {:08x}", figures.bytes, figures.hash);
        (picture, parameters, file)
    };
    read_table().into_iter().map(row).collect()
}

/// The file of a picture of the table.
pub(crate) fn file(name: &str) -> Vec<u8> {
    made_up(name).unwrap_or_else(|| std::fs::read(testdata(name)).expect("the picture is shipped"))
}

/// Names and values of parameters in the form of [`Row::parameters`].
pub(crate) fn pairs(parameters: &str) -> Vec<(&str, &str)> {
    if !parameters.contains('=') {
        return vec![("quality", parameters), ("mode", "lossy")];
    }
    let pairs = parameters.split('&');
    pairs.filter_map(|pair| pair.split_once('=')).collect()
}

/// A picture: its file, and its pixels over gray; of an animation, those of the first frame.
struct Picture {
    file: Vec<u8>,
    format: Format,
    rgb: Vec<u8>,
    reference: Ssimulacra2Reference,
}

impl Picture {
    fn named(name: &str) -> Picture {
        let file = file(name);
        let format = Format::sniff(&file).expect("a picture");
        let image = image::decode(&file, format, &Limits::default(), &Cancel::never())
            .expect("a good picture");
        let rgb = over_gray(&image.pixels, image.layout.channels());
        let reference = Ssimulacra2Reference::new(&slice(&rgb, image.width, image.height))
            .expect("pictures are large enough");
        Picture {
            file,
            format,
            rgb,
            reference,
        }
    }

    /// Converts it by parameters in the form of [`Row::parameters`].
    fn converted(&self, parameters: &str) -> Conversion {
        let params = Params::parse(pairs(parameters).into_iter()).expect("good parameters");
        conversion::run(&Job {
            bytes: &self.file,
            format: self.format,
            params: &params,
            watermark_picture: None,
            fonts: Fonts::bundled(),
            limits: &Limits::default(),
            threads: 2,
            cpu_budget: None,
            cancel: &Cancel::never(),
        })
        .expect("a good picture")
    }

    /// Converts it, and measures what comes out.
    fn encoded(&self, parameters: &str) -> Figures {
        let webp = self.converted(parameters).webp;
        let (width, height, rgb) = decode(&webp);
        assert_eq!(rgb.len(), self.rgb.len(), "the size is kept");
        Figures {
            bytes: webp.len(),
            hash: fnv1a(&webp),
            psnr: psnr(&self.rgb, &rgb),
            ssim2: self
                .reference
                .compare(&slice(&rgb, width, height))
                .expect("the sizes are equal"),
        }
    }
}

/// One line of the table.
struct Row {
    picture: String,
    /// As in a query; or a number alone, the quality of coding with loss.
    parameters: String,
    figures: Figures,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            bytes,
            hash,
            psnr,
            ssim2,
        } = self.figures;
        write!(
            f,
            "{}\t{}\t{bytes}\t{hash:08x}\t{psnr:.2}\t{ssim2:.2}",
            self.picture, self.parameters
        )
    }
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        let mut fields = line.split('\t');
        let mut field = || fields.next();
        Some(Row {
            picture: field()?.to_owned(),
            parameters: field()?.to_owned(),
            figures: Figures {
                bytes: field()?.parse().ok()?,
                hash: u32::from_str_radix(field()?, 16).ok()?,
                psnr: field()?.parse().ok()?,
                ssim2: field()?.parse().ok()?,
            },
        })
    }
}

/// What came out of one encoding.
#[derive(Clone, Copy)]
struct Figures {
    bytes: usize,
    hash: u32,
    /// In dB.
    psnr: f64,
    ssim2: f64,
}

impl Figures {
    /// The figures that differ, as `old -> new`.
    fn difference(&self, new: &Figures) -> Option<String> {
        let mut parts = Vec::new();
        if self.bytes != new.bytes {
            let percent = (new.bytes as f64 / self.bytes as f64 - 1.0) * 100.0;
            parts.push(format!(
                "bytes {} -> {} ({percent:+.2} %)",
                self.bytes, new.bytes
            ));
        }
        if self.hash != new.hash {
            parts.push(format!("fnv1a {:08x} -> {:08x}", self.hash, new.hash));
        }
        for (name, old, new) in [
            ("psnr", self.psnr, new.psnr),
            ("ssim2", self.ssim2, new.ssim2),
        ] {
            if new.is_nan() || (old - new).abs() > TOLERANCE {
                parts.push(format!("{name} {old:.2} -> {new:.2}"));
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn read_table() -> BTreeMap<(String, String), Figures> {
    let text = std::fs::read_to_string(table_path())
        .expect("testdata/golden.tsv is missing: run scripts/bless");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .skip(1) // the names of the columns
        .map(|line| {
            let row = Row::parse(line)
                .unwrap_or_else(|| panic!("testdata/golden.tsv: not a row: {line}"));
            ((row.picture, row.parameters), row.figures)
        })
        .collect()
}

fn table_path() -> PathBuf {
    testdata("golden.tsv")
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name)
}

/// Width, height, and pixels over grey.
fn decode(webp: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(webp)).expect("a WebP file");
    let (width, height) = decoder.dimensions();
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut pixels = vec![0; width as usize * height as usize * channels];
    decoder.read_image(&mut pixels).expect("a whole WebP file");
    (width, height, over_gray(&pixels, channels))
}

/// The pixels over middle gray: colors under full transparency do not count.
fn over_gray(pixels: &[u8], channels: usize) -> Vec<u8> {
    let shown = |pixel: &[u8]| -> [u8; 3] {
        let alpha = pixel.get(3).map_or(255, |&alpha| u32::from(alpha));
        let blend = |sample: u8| (u32::from(sample) * alpha + 128 * (255 - alpha) + 127) / 255;
        [0, 1, 2].map(|channel| blend(pixel[channel]) as u8)
    };
    pixels.chunks_exact(channels).flat_map(shown).collect()
}

fn slice(rgb: &[u8], width: u32, height: u32) -> PixelSlice<'_> {
    let stride = width as usize * 3;
    PixelSlice::new(rgb, width, height, stride, PixelDescriptor::RGB8_SRGB)
        .expect("as many samples as the sides say")
}

/// Peak signal-to-noise ratio over all samples, in dB; 99 for equal pictures.
fn psnr(before: &[u8], after: &[u8]) -> f64 {
    let squares = before
        .iter()
        .zip(after)
        .map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2));
    let mean = squares.sum::<u64>() as f64 / before.len() as f64;
    (10.0 * (255.0 * 255.0 / mean).log10()).min(99.0)
}
