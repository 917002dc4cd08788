//! The pure service: the specification's parameters, and one picture in, one WebP out. Opens no file and no socket.

mod animation;
mod error;
mod estimate;
mod params;

pub use crate::watermark::{Color, FontError, Fonts, Outline, Placement, Position, TextWatermark};
pub use error::ConversionError;
pub use estimate::memory;
pub use params::{Animation, KNOWN_NAMES, ParamError, Params};
pub use towebp_encoder::{Cancel, Coding, CpuBudget, Mode};

use crate::image::{self, DecodeError, Format, Image, Keep, Layout, Limits, Metadata};
use crate::watermark;
use std::cell::Cell;
use std::time::{Duration, Instant};
use towebp_encoder::{self as webp, Cancelled};

/// One conversion to do.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file as it came.
    pub bytes: &'a [u8],
    /// What it was said to be.
    pub format: Format,
    /// What was asked for.
    pub params: &'a Params,
    /// The bytes of the watermark picture (PNG or JPEG), if one was asked for.
    pub watermark_picture: Option<&'a [u8]>,
    /// What texts are drawn with.
    pub fonts: &'a Fonts,
    /// Bounds on the picture.
    pub limits: &'a Limits,
    /// Most threads to encode with, at least 1. The file is the same with any number.
    pub threads: usize,
    /// The budget that gives cores to all threads but the first; without one they start freely.
    pub cpu_budget: Option<&'a CpuBudget>,
    /// What may stop the conversion.
    pub cancel: &'a Cancel<'a>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The WebP file.
    pub webp: Vec<u8>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// How the pixels are coded.
    pub coding: Coding,
    /// Time spent on each stage.
    pub timing: Timing,
}

/// Time spent on each stage of a conversion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Reading the input, orientation and colour.
    pub decode: Duration,
    /// Drawing watermarks.
    pub watermark: Duration,
    /// Writing the WebP.
    pub encode: Duration,
}

/// Decode, orient, colour, watermark (picture first, text over it), encode.
///
/// # Errors
/// See [`ConversionError`].
pub fn run(job: &Job<'_>) -> Result<Conversion, ConversionError> {
    let mut timing = Timing::default();
    let cancel = job.cancel;
    if is_animated(job) {
        return animation::run(job, cancel);
    }
    if let Some((planes, metadata)) = timed(&mut timing.decode, || decode_planes(job, cancel))? {
        let size = (planes.width, planes.height);
        let encode = || encode_planes(planes, &metadata, job, cancel);
        return Ok(Conversion::of(
            timed(&mut timing.encode, encode)?,
            size,
            timing,
        ));
    }
    let (mut image, metadata) = timed(&mut timing.decode, || decode(job, cancel))?;
    timed(&mut timing.watermark, || {
        draw_picture(&mut image, job, cancel)
    })?;
    timed(&mut timing.watermark, || draw_text(&mut image, job, cancel))?;
    timed(&mut timing.encode, || fill_hidden(&mut image, cancel))?;
    let encoded = timed(&mut timing.encode, || encode(&image, &metadata, job))?;
    Ok(Conversion::of(encoded, (image.width, image.height), timing))
}

impl Conversion {
    fn of(encoded: webp::Encoded, (width, height): (u32, u32), timing: Timing) -> Conversion {
        Conversion {
            webp: encoded.file,
            width,
            height,
            coding: encoded.coding,
            timing,
        }
    }
}

/// Most pixels of a watermark's picture: 4096 by 4096. It is drawn scaled down to the image, and its memory should not
/// outweigh the image's own.
const MAX_WATERMARK_PIXELS: u64 = 1 << 24;

fn timed<T>(spent: &mut Duration, stage: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = stage();
    *spent += start.elapsed();
    result
}

fn decode(job: &Job<'_>, cancel: &Cancel<'_>) -> Result<(Image, Metadata), ConversionError> {
    image::decode_keeping(keep(job), job.bytes, job.format, job.limits, cancel).map_err(undecoded)
}

fn keep(job: &Job<'_>) -> Keep {
    match (job.params.keeps_metadata, is_watermarked(job)) {
        (false, _) => Keep::Nothing,
        (true, true) => Keep::Descriptions,
        (true, false) => Keep::All,
    }
}

/// Whether anything is drawn, whose colours are sRGB.
fn is_watermarked(job: &Job<'_>) -> bool {
    job.params.text.is_some() || job.watermark_picture.is_some()
}

/// A JPEG as its file has it in YUV: RGB in between would take twice the memory, and round and blur.
fn decode_planes(
    job: &Job<'_>,
    cancel: &Cancel<'_>,
) -> Result<Option<(image::Planes, Metadata)>, ConversionError> {
    if !can_stay_in_yuv(job) {
        return Ok(None);
    }
    image::decode_planes(keep(job), job.bytes, job.format, job.limits, cancel).map_err(undecoded)
}

/// Whether nothing is to be done to the picture that takes RGB.
fn can_stay_in_yuv(job: &Job<'_>) -> bool {
    job.format == Format::Jpeg && job.params.mode != Mode::Lossless && !is_watermarked(job)
}

fn undecoded(error: DecodeError) -> ConversionError {
    match error {
        DecodeError::Cancelled => ConversionError::Cancelled,
        error => ConversionError::Picture(error),
    }
}

fn draw_picture(
    image: &mut Image,
    job: &Job<'_>,
    cancel: &Cancel<'_>,
) -> Result<(), ConversionError> {
    let Some(bytes) = job.watermark_picture else {
        return Ok(());
    };
    let picture = decode_watermark(bytes, job.limits, cancel).map_err(|error| match error {
        DecodeError::Cancelled => ConversionError::Cancelled,
        error => ConversionError::WatermarkPicture(error),
    })?;
    watermark::draw_picture(image, &picture, &job.params.placement, cancel)?;
    Ok(())
}

fn decode_watermark(
    bytes: &[u8],
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Image, DecodeError> {
    let (format, limits) = watermark_kind(bytes, limits)?;
    image::decode(bytes, format, &limits, cancel)
}

/// What a watermark's picture is, and the bounds that it is held to.
fn watermark_kind(bytes: &[u8], limits: &Limits) -> Result<(Format, Limits), DecodeError> {
    let limits = Limits {
        max_pixels: limits.max_pixels.min(MAX_WATERMARK_PIXELS),
        ..*limits
    };
    match Format::sniff(bytes) {
        Some(format @ (Format::Png | Format::Jpeg)) => Ok((format, limits)),
        Some(other) => Err(DecodeError::Invalid(format!(
            "it looks like {other}, and only PNG and JPEG are accepted"
        ))),
        None => Err(DecodeError::Invalid(
            "it is neither PNG nor JPEG".to_owned(),
        )),
    }
}

fn draw_text(image: &mut Image, job: &Job<'_>, cancel: &Cancel<'_>) -> Result<(), ConversionError> {
    let Some(text) = &job.params.text else {
        return Ok(());
    };
    watermark::draw_text(image, text, job.fonts, &job.params.placement, cancel)?;
    Ok(())
}

/// Colours what is transparent like what is beside it, so that no halo bleeds into visible edges.
fn fill_hidden(image: &mut Image, cancel: &Cancel<'_>) -> Result<(), Cancelled> {
    /// A row of macroblocks between two questions.
    const ROWS: usize = 16;
    if image.layout == Layout::Rgba {
        let width = image.width as usize;
        for rows in image.pixels.chunks_mut(ROWS * width * 4) {
            cancel.check()?;
            webp::fill_hidden(rows, width);
        }
    }
    Ok(())
}

fn encode(
    image: &Image,
    metadata: &Metadata,
    job: &Job<'_>,
) -> Result<webp::Encoded, ConversionError> {
    let picture = webp::RgbPicture {
        width: image.width,
        height: image.height,
        layout: webp_layout(image.layout),
        pixels: &image.pixels,
    };
    let pixels = u64::from(image.width) * u64::from(image.height);
    webp::encode_telling(&picture, &options(job, pixels), &beside(metadata)).map_err(refused)
}

fn beside(metadata: &Metadata) -> webp::Metadata<'_> {
    webp::Metadata {
        icc: metadata.icc.as_deref(),
        exif: metadata.exif.as_deref(),
        xmp: metadata.xmp.as_deref(),
    }
}

fn encode_planes(
    planes: image::Planes,
    metadata: &Metadata,
    job: &Job<'_>,
    cancel: &Cancel<'_>,
) -> Result<webp::Encoded, ConversionError> {
    let size = (planes.width, planes.height);
    let first = Cell::new(Some(planes));
    let source = || {
        let planes = match first.take() {
            Some(planes) => planes,
            // Once more, which only fails if the caller has left.
            None => match decode_planes(job, cancel) {
                Ok(Some((planes, _))) => planes,
                _ => return Err(webp::EncodeError::Cancelled),
            },
        };
        webp::Planes::from_samples(size, planes.luma, planes.chroma)
    };
    let options = options(job, u64::from(size.0) * u64::from(size.1));
    webp::encode_planes(size, source, &options, &beside(metadata)).map_err(refused)
}

/// For a picture of so many pixels.
fn options<'a>(job: &Job<'a>, pixels: u64) -> webp::Options<'a> {
    webp::Options {
        mode: mode(job, pixels),
        alpha_quality: job.params.alpha_quality,
        near_lossless: job.params.near_lossless,
        effort: job.params.effort,
        threads: job.threads,
        cpu_budget: job.cpu_budget,
        cancel: job.cancel,
        ..webp::Options::lossy(job.params.quality)
    }
}

fn webp_layout(layout: Layout) -> webp::Layout {
    match layout {
        Layout::Rgb => webp::Layout::Rgb,
        Layout::Rgba => webp::Layout::Rgba,
    }
}

/// What was asked for, or what [`Mode::Auto`] comes to for a picture of so many `pixels`. Trying without loss takes time and memory, and is left out where
/// the file shows that it cannot pay: a JPEG was coded with loss already, a drawing as PNG takes few bytes, and as BMP it repeats
/// itself.
fn mode(job: &Job<'_>, pixels: u64) -> Mode {
    /// A PNG of more bits a pixel is a photograph.
    const MOST_BITS: u64 = 6;
    if job.params.mode != Mode::Auto {
        return job.params.mode;
    }
    let can_pay = match job.format {
        Format::Jpeg => false,
        Format::Png => job.bytes.len() as u64 * 8 <= MOST_BITS * pixels,
        Format::Gif => true,
        Format::Bmp => repeats_itself(job.bytes),
    };
    if can_pay { Mode::Auto } else { Mode::Lossy }
}

/// Whether at least a third of the pixels of a bitmap equal the one before, by the bytes of a part of them.
fn repeats_itself(bitmap: &[u8]) -> bool {
    /// Of three bytes, and four in a row of four: enough of either kind of pixel.
    const PIXEL: usize = 12;
    let pixels = bitmap.as_chunks::<PIXEL>().0;
    let pairs = pixels.iter().zip(pixels.iter().skip(1)).step_by(64);
    let (all, same) = pairs.fold((0, 0), |(all, same), (a, b)| {
        (all + 1, same + usize::from(a == b))
    });
    same * 3 >= all
}

/// Whether a WebP of several frames is to be made.
fn is_animated(job: &Job<'_>) -> bool {
    job.format == Format::Gif
        && job.params.animation == Animation::All
        && image::is_animated(job.bytes)
}

fn refused(error: webp::EncodeError) -> ConversionError {
    match error {
        webp::EncodeError::Cancelled => ConversionError::Cancelled,
        error => ConversionError::Internal(format!("the encoder refused the picture: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn png(width: u32, height: u32, color: ::png::ColorType, pixels: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = ::png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(pixels))
            .expect("a valid picture");
        bytes
    }

    /// A white disc on hidden black: nothing visible may darken.
    #[test]
    fn no_halo_bleeds_from_what_is_transparent_into_edges() {
        let is_inside = |x: u32, y: u32| (x as i32 - 32).pow(2) + (y as i32 - 30).pow(2) < 500;
        let places = || (0..64).flat_map(|y| (0..64).map(move |x| (x, y)));
        let pixel = |(x, y)| if is_inside(x, y) { [255; 4] } else { [0; 4] };
        let pixels: Vec<u8> = places().flat_map(pixel).collect();
        let input = png(64, 64, ::png::ColorType::Rgba, &pixels);
        for quality in ["30", "75"] {
            let params = params(&[("quality", quality)]);
            let converted = run(&job(&input, &params, None)).expect("a valid picture");
            let (_, decoded) = webp::judge::decode(&converted.webp);
            for ((x, y), pixel) in places().zip(decoded) {
                let expected = if is_inside(x, y) { 255 } else { 0 };
                assert_eq!(pixel[3], expected, "alpha at {x}, {y}");
                let darkest = pixel[..3].iter().min().expect("three samples");
                assert!(
                    pixel[3] == 0 || *darkest > 250,
                    "quality {quality}: {pixel:?} at {x}, {y}"
                );
            }
        }
    }

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::parse(pairs.iter().copied()).expect("valid parameters")
    }

    fn job<'a>(
        bytes: &'a [u8],
        params: &'a Params,
        watermark_picture: Option<&'a [u8]>,
    ) -> Job<'a> {
        static NEVER: Cancel<'_> = Cancel::never();
        const LIMITS: &Limits = &Limits {
            max_side: 16383,
            max_pixels: 1_000_000,
            ..Limits::DEFAULT
        };
        Job {
            bytes,
            format: Format::Png,
            params,
            watermark_picture,
            fonts: Fonts::bundled(),
            limits: LIMITS,
            threads: 2,
            cpu_budget: None,
            cancel: &NEVER,
        }
    }

    #[test]
    fn a_picture_comes_out_as_webp_of_its_size() {
        let input = png(31, 17, ::png::ColorType::Rgb, &[90; 31 * 17 * 3]);
        let conversion = run(&job(&input, &params(&[]), None)).expect("a valid picture");
        assert_eq!(
            (&conversion.webp[..4], &conversion.webp[8..12]),
            (&b"RIFF"[..], &b"WEBP"[..])
        );
        assert_eq!((conversion.width, conversion.height), (31, 17));
    }

    /// 60 x 40 pixels in 4:2:0, which are to be turned to the right.
    const TURNED_JPEG: &[u8] = include_bytes!("../../testdata/rotated.jpg");

    #[test]
    fn a_jpeg_looks_the_same_with_and_without_rgb_in_between() {
        let convert = |pairs: &[(&str, &str)]| {
            let params = params(&[&[("quality", "95")], pairs].concat());
            let job = Job {
                format: Format::Jpeg,
                ..job(TURNED_JPEG, &params, None)
            };
            let stays = decode_planes(&job, &Cancel::never()).expect("a valid picture");
            let conversion = run(&job).expect("a valid picture");
            assert_eq!((conversion.width, conversion.height), (40, 60));
            let (size, pixels) = webp::judge::decode(&conversion.webp);
            assert_eq!(size, (40, 60));
            let samples = pixels.into_iter().flat_map(|[r, g, b, _]| [r, g, b]);
            (stays.is_some(), samples.collect::<Vec<u8>>())
        };
        let (stays, planes) = convert(&[]);
        assert!(stays, "it has 4:2:0 and no profile");
        // What nobody sees takes the way of what is drawn.
        let (stays, rgb) = convert(&[("watermark", "x"), ("watermark_opacity", "0")]);
        assert!(!stays);
        let (stays, exact) = convert(&[("mode", "lossless")]);
        assert!(!stays);
        for other in [rgb, exact] {
            let apart: u32 = planes
                .iter()
                .zip(&other)
                .map(|(a, b)| u32::from(a.abs_diff(*b)))
                .sum();
            let mean = f64::from(apart) / planes.len() as f64;
            assert!(mean < 2.5, "{mean} apart");
        }
    }

    #[test]
    fn the_picture_is_drawn_first_and_the_text_over_it() {
        let mut image = Image {
            width: 64,
            height: 64,
            layout: Layout::Rgb,
            pixels: vec![0; 64 * 64 * 3],
        };
        let params = params(&[
            ("watermark", "█"),
            ("watermark_size", "40"),
            ("watermark_color", "red"),
            ("watermark_opacity", "100"),
            ("watermark_position", "center"),
        ]);
        let mark = png(64, 64, ::png::ColorType::Rgb, &[255; 64 * 64 * 3]);
        let input = png(64, 64, ::png::ColorType::Rgb, &image.pixels);
        let conversion = run(&job(&input, &params, Some(&mark))).expect("valid pictures");

        draw_picture(
            &mut image,
            &job(&input, &params, Some(&mark)),
            &Cancel::never(),
        )
        .expect("a valid picture");
        draw_text(&mut image, &job(&input, &params, None), &Cancel::never())
            .expect("a full block exists");
        let centre = (32 * 64 + 32) * 3;
        assert_eq!(
            image.pixels[centre..centre + 3],
            [255, 0, 0],
            "the text is above"
        );
        assert_eq!(
            image.pixels[..3],
            [255, 255, 255],
            "the picture is there too"
        );
        assert_eq!(
            conversion.webp,
            encode(
                &image,
                &Metadata::default(),
                &job(&input, &params, Some(&mark))
            )
            .expect("a valid picture")
            .file,
            "run draws in this order"
        );
    }

    #[test]
    fn each_failure_has_its_case_and_says_what_is_wrong() {
        let input = png(2, 2, ::png::ColorType::Rgb, &[90; 12]);
        let nothing = params(&[]);

        let error = run(&job(b"GIF89a", &nothing, None)).expect_err("not a PNG");
        assert_eq!(
            error.to_string(),
            "The data was declared as PNG but looks like GIF."
        );

        let error =
            run(&job(&input, &nothing, Some(b"GIF89a"))).expect_err("a GIF is no watermark");
        assert!(matches!(error, ConversionError::WatermarkPicture(_)));
        assert_eq!(
            error.to_string(),
            "The watermark's picture cannot be used. The picture cannot be read: \
             it looks like GIF, and only PNG and JPEG are accepted."
        );

        let error =
            run(&job(&input, &params(&[("watermark", "a漢")]), None)).expect_err("no font has it");
        assert_eq!(error, ConversionError::MissingCharacters(vec!['漢']));
        assert!(error.to_string().contains("漢 (U+6F22)"), "{error}");
    }

    #[test]
    fn every_stage_ends_once_it_is_cancelled() {
        let input = png(160, 320, ::png::ColorType::Rgb, &vec![90; 160 * 320 * 3]);
        let params = params(&[("watermark", "x")]);
        let enough = (0..1000).find(|&allowed| {
            let checks = AtomicUsize::new(0);
            let question = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
            let job = Job {
                cancel: &Cancel::when(&question),
                ..job(&input, &params, None)
            };
            match run(&job) {
                Ok(_) => true,
                Err(error) => {
                    assert_eq!(error, ConversionError::Cancelled, "after {allowed}");
                    false
                }
            }
        });
        let stages_and_rows = 3 + 320 / 16;
        assert!(enough >= Some(stages_and_rows), "{enough:?} checks in all");
    }

    #[test]
    fn a_watermark_picture_has_a_limit_of_its_own() {
        let limits = Limits {
            max_side: 16383,
            max_pixels: u64::MAX,
            ..Limits::DEFAULT
        };
        let large = png(
            4097,
            4096,
            ::png::ColorType::Grayscale,
            &vec![0; 4097 * 4096],
        );
        assert_eq!(
            decode_watermark(&large, &limits, &Cancel::never()),
            Err(DecodeError::TooManyPixels {
                width: 4097,
                height: 4096,
                max_pixels: MAX_WATERMARK_PIXELS
            })
        );
    }
}
