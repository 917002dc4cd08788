//! Whatever a file holds, a conversion gives a picture or a clear error in bounded memory, and ends
//! soon after it is cancelled.

mod bombs;
mod cancel;
mod damage;

use crate::support::animation::{animated_rgba, animated_webp};
use crate::support::picture::Picture;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use towebp_encoder::Encoder;
use towebp_pipeline::conversion::{self, Cancel, Conversion, ConversionError, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

/// Cancels a conversion at a moment or after a number of checks, and counts them.
#[derive(Debug)]
struct Canceller {
    until: Option<Instant>,
    /// Checks that do not cancel.
    allowed: usize,
    checks: AtomicUsize,
}

impl Canceller {
    fn never() -> Canceller {
        Canceller::after(usize::MAX)
    }

    /// Cancels once it was checked so often.
    fn after(checks: usize) -> Canceller {
        Canceller {
            until: None,
            allowed: checks,
            checks: AtomicUsize::new(0),
        }
    }

    fn checks(&self) -> usize {
        self.checks.load(Ordering::Relaxed)
    }

    fn is_cancelled(&self) -> bool {
        let before = self.checks.fetch_add(1, Ordering::Relaxed);
        before >= self.allowed || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// A conversion on one thread, as quick as can be.
fn convert(
    bytes: &[u8],
    limits: &Limits,
    watermark: Option<&[u8]>,
    canceller: &Canceller,
) -> Result<Conversion, ConversionError> {
    let parameters = [("effort", "low"), ("watermark", "x")];
    convert_with(&parameters, bytes, limits, watermark, canceller)
}

fn convert_with(
    parameters: &[(&str, &str)],
    bytes: &[u8],
    limits: &Limits,
    watermark: Option<&[u8]>,
    canceller: &Canceller,
) -> Result<Conversion, ConversionError> {
    let params = Params::parse(parameters.iter().copied()).expect("good parameters");
    conversion::run(&Job {
        bytes,
        format: Format::sniff(bytes).unwrap_or(Format::Png),
        params: &params,
        watermark_picture: watermark,
        fonts: Fonts::bundled(),
        limits,
        threads: 1,
        cpu_budget: None,
        cancel: &Cancel::when(&|| canceller.is_cancelled()),
    })
}

/// Limits for small files.
const SMALL: Limits = Limits {
    max_side: 16383,
    max_pixels: 4096,
    ..Limits::DEFAULT
};

/// A small picture as a file of each format and kind, by its name.
fn files(width: u32, height: u32) -> Vec<(&'static str, Vec<u8>)> {
    let picture = Picture::of(width, height, |x, y| {
        [(x * 9) as u8, (y * 7) as u8, 90, (x + y) as u8 | 0xf0]
    });
    let opaque = Picture::of(width, height, |x, y| {
        let [red, green, blue, _] = picture.at(x, y);
        [red, green, blue, 255]
    });
    vec![
        ("PNG", opaque.png()),
        ("PNG with alpha", picture.png()),
        (
            "PNG with an opaque alpha channel",
            with_opaque_alpha(&opaque),
        ),
        ("interlaced PNG", interlaced(width, height)),
        ("rotated PNG with a profile", with_metadata(&opaque)),
        (
            "animated PNG",
            animated_rgba(
                &[picture.clone(), opaque.clone()],
                png::DisposeOp::Previous,
                png::BlendOp::Over,
            ),
        ),
        ("lossy WebP", picture.webp(&Encoder::lossy(80))),
        ("lossless WebP", picture.webp(&Encoder::lossless())),
        (
            "animated WebP",
            animated_webp(&[picture, opaque.clone()], Encoder::auto(80)),
        ),
        ("JPEG", crate::support::picture::HALVES_JPEG.to_vec()),
        ("progressive JPEG", progressive(width, height)),
        ("GIF", opaque.gif()),
        ("BMP", opaque.bmp()),
        ("BMP with run lengths", run_lengths(width, height)),
    ]
}

fn with_opaque_alpha(picture: &Picture) -> Vec<u8> {
    let samples: Vec<u8> = picture.pixels.iter().flatten().copied().collect();
    encoded(
        png::Info::with_size(picture.width, picture.height),
        png::ColorType::Rgba,
        &samples,
    )
}

/// Turned by a quarter, in the colors of Display P3.
fn with_metadata(picture: &Picture) -> Vec<u8> {
    let mut info = png::Info::with_size(picture.width, picture.height);
    let profile = moxcms::ColorProfile::new_display_p3().encode();
    info.icc_profile = Some(profile.expect("a good profile").into());
    info.exif_metadata =
        Some(b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"[..].into());
    let samples: Vec<u8> = picture
        .pixels
        .iter()
        .flat_map(|pixel| &pixel[..3])
        .copied()
        .collect();
    encoded(info, png::ColorType::Rgb, &samples)
}

fn encoded(mut info: png::Info<'_>, color: png::ColorType, samples: &[u8]) -> Vec<u8> {
    info.color_type = color;
    info.bit_depth = png::BitDepth::Eight;
    let mut file = Vec::new();
    png::Encoder::with_info(&mut file, info)
        .and_then(png::Encoder::write_header)
        .and_then(|mut writer| writer.write_image_data(samples))
        .expect("a Vec takes all");
    file
}

/// Black, as what inflates to zeros is.
fn interlaced(width: u32, height: u32) -> Vec<u8> {
    let zlib = crate::support::hostile::deflated_zeros((width * height * 3 + height * 8) as usize);
    crate::support::hostile::png(&[
        crate::support::hostile::ihdr(width, height, true),
        crate::support::hostile::chunk(*b"IDAT", &zlib),
    ])
}

/// Gray, in four scans.
fn progressive(width: u32, height: u32) -> Vec<u8> {
    let blocks = (width.div_ceil(8) * height.div_ceil(8)) as usize;
    let mut file = crate::support::hostile::jpeg_head(width as u16, height as u16, true);
    file.extend(crate::support::hostile::first_scan(blocks));
    for component in 1..=3 {
        file.extend(crate::support::hostile::empty_scan(component, 1, blocks));
    }
    file.extend(crate::support::hostile::END_OF_IMAGE);
    file
}

/// Vertical lines.
fn run_lengths(width: u32, height: u32) -> Vec<u8> {
    let row = (0..width).flat_map(|x| [1, x as u8]).chain([0, 0]);
    let mut runs: Vec<u8> = (0..height).flat_map(|_| row.clone()).collect();
    runs.extend([0, 1]);
    crate::support::hostile::run_length_bmp(width as i32, height as i32, &runs)
}
