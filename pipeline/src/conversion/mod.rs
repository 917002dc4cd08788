//! One picture in, one WebP out, by the parameters of a request: pure, without files and sockets.
//!
//! [`image::open`](crate::image::open) reads the header, [`Plan::new`] decides, [`Plan::memory`]
//! is the memory to reserve, and [`Plan::run`] decodes, orients, converts colors, resizes, draws
//! watermarks and encodes.

mod animation;
mod cost;
mod error;
mod framing;
mod goal;
mod growth;
mod marking;
mod memory;
mod outcome;
mod params;
mod placeholder;
mod plan;
mod preset;
mod run;
mod search;
mod sizing;
mod source_quality;
mod steps;
mod still;

pub use crate::watermark::{
    Color, FontError, Fonts, Length, Outline, Placement, Position, TextSize, TextWatermark,
};
pub use error::ConversionError;
pub use goal::Goal;
pub use growth::MayHold;
pub use outcome::{Conversion, FoundQuality, Timing};
pub use params::{Animation, IfLarger, ParamError, ParamProblem, Params};
#[doc(hidden)]
pub use params::{CAPPED, DefaultValue, OR_ABSENT, PARAMETERS, Parameter, TOKEN, Value, size};
pub use plan::{Plan, Resources};
pub use preset::Preset;
pub use run::{Job, memory, run};
pub use sizing::{Fit, Sizing};
pub use towebp_encoder::{Cancel, Coding, CpuBudget, Mode};

#[cfg(test)]
mod tests {
    use super::plan::{MAX_WATERMARK_PIXELS, Path};
    use super::steps::{draw_picture, draw_text};
    use super::still::encode;
    use super::*;
    use crate::image::{self, DecodeError, Format, Image, Layout, Limits, Luma, Metadata, Opened};
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

    /// A white disc on transparent black: nothing visible may darken.
    #[test]
    fn no_halo_bleeds_from_transparent_pixels_into_edges() {
        let is_inside = |x: u32, y: u32| (x as i32 - 32).pow(2) + (y as i32 - 30).pow(2) < 500;
        let places = || (0..64).flat_map(|y| (0..64).map(move |x| (x, y)));
        let pixel = |(x, y)| if is_inside(x, y) { [255; 4] } else { [0; 4] };
        let pixels: Vec<u8> = places().flat_map(pixel).collect();
        let input = png(64, 64, ::png::ColorType::Rgba, &pixels);
        for quality in ["30", "75"] {
            let params = params(&[("quality", quality)]);
            let converted = run(&job(&input, &params, None)).expect("a valid picture");
            let (_, decoded) = towebp_encoder::reference::decode(&converted.webp);
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

    fn plan<'a>(opened: &'a Opened<'a>, job: &Job<'a>) -> Plan<'a> {
        let resources = Resources {
            fonts: job.fonts,
            threads: job.threads,
            cpu_budget: job.cpu_budget,
        };
        Plan::new(opened, job.params, job.watermark_picture, resources).expect("valid pictures")
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

    fn jpeg_job<'a>(
        bytes: &'a [u8],
        params: &'a Params,
        watermark_picture: Option<&'a [u8]>,
    ) -> Job<'a> {
        Job {
            format: Format::Jpeg,
            ..job(bytes, params, watermark_picture)
        }
    }

    fn opened<'a>(job: &Job<'a>) -> Opened<'a> {
        image::open(job.bytes, job.format, job.limits).expect("a valid picture")
    }

    #[test]
    fn a_resized_animation_is_held_to_the_limits_before_it_runs() {
        let mut file = Vec::new();
        let mut encoder = ::gif::Encoder::new(&mut file, 20, 10, &[0, 0, 0, 255, 255, 255])
            .expect("a valid palette");
        for index in 0..4 {
            let indices = vec![index % 2; 200];
            let frame = ::gif::Frame::from_indexed_pixels(20, 10, indices, None);
            encoder.write_frame(&frame).expect("a valid frame");
        }
        drop(encoder);
        for (width, is_allowed) in [("100", true), ("101", false)] {
            let params = params(&[("width", width), ("enlarge", "true")]);
            let limits = Limits {
                max_animation_pixels: 4 * 100 * 50,
                ..Limits::DEFAULT
            };
            let job = Job {
                format: Format::Gif,
                limits: &limits,
                ..job(&file, &params, None)
            };
            let too_large = DecodeError::AnimationTooLarge { max_pixels: 20_000 };
            let expected = if is_allowed {
                Ok(())
            } else {
                Err(ConversionError::Picture(too_large))
            };
            assert_eq!(memory(&job).map(drop), expected, "{width}");
        }
    }

    #[test]
    fn a_resized_picture_is_held_to_the_most_pixels() {
        let input = png(20, 10, ::png::ColorType::Rgb, &[90; 600]);
        for (height, is_allowed) in [("500", true), ("501", false)] {
            let box_of = [
                ("width", "2000"),
                ("height", height),
                ("fit", "fill"),
                ("enlarge", "true"),
            ];
            let params = params(&box_of);
            let too_large = ConversionError::ResizedTooLarge {
                width: 2000,
                height: 501,
                max_pixels: 1_000_000,
            };
            let expected = if is_allowed { Ok(()) } else { Err(too_large) };
            assert_eq!(memory(&job(&input, &params, None)).map(drop), expected);
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

    /// 60 x 40 pixels in 4:2:0, whose Exif has a rotation to the right.
    const TURNED_JPEG: &[u8] = include_bytes!("../../testdata/rotated.jpg");

    #[test]
    fn a_jpeg_looks_the_same_with_and_without_rgb_in_between() {
        let convert = |pairs: &[(&str, &str)]| {
            let params = params(&[&[("quality", "95")], pairs].concat());
            let job = jpeg_job(TURNED_JPEG, &params, None);
            let opened = opened(&job);
            let plan = plan(&opened, &job);
            let is_planes = matches!(plan.path, Path::Planes);
            let never = Cancel::never();
            let workers = plan.workers(&never);
            let planes = opened.decode_planes(plan.keep, Luma::AtCentroids, workers);
            let stays = is_planes && planes.expect("a valid picture").is_some();
            let conversion = run(&job).expect("a valid picture");
            assert_eq!((conversion.width, conversion.height), (40, 60));
            let (size, pixels) = towebp_encoder::reference::decode(&conversion.webp);
            assert_eq!(size, (40, 60));
            let samples = pixels.into_iter().flat_map(|[r, g, b, _]| [r, g, b]);
            (stays, samples.collect::<Vec<u8>>())
        };
        let (stays, planes) = convert(&[]);
        assert!(stays, "it has 4:2:0 and no profile");
        // An invisible watermark touches nothing, and tiles of it go by way of RGB.
        let invisible = [("watermark", "x"), ("watermark_opacity", "0")];
        let (stays, same) = convert(&invisible);
        assert!(stays && same == planes);
        let (stays, rgb) = convert(&[&invisible[..], &[("watermark_tile", "true")]].concat());
        assert!(!stays);
        assert_ne!(rgb, planes, "RGB in between rounds");
        let (_, drawn) = convert(&[("watermark", "x"), ("watermark_size", "30")]);
        assert_ne!(drawn, planes, "a watermark in planes is visible");
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

    /// Whether the samples of a picture stay in planes.
    fn stays_in_planes(job: &Job<'_>) -> bool {
        let opened = opened(job);
        matches!(plan(&opened, job).path, Path::Planes)
    }

    #[test]
    fn what_changes_all_pixels_goes_by_way_of_rgb() {
        let graphic = png(40, 60, ::png::ColorType::Rgb, &[90; 40 * 60 * 3]);
        let text = ("watermark", "x");
        for (pairs, jpeg_stays, png_stays) in [
            (&[][..], true, true),
            (&[("mode", "lossless")], false, false),
            (&[("width", "20")], false, false),
            (&[("crop", "0,0,20,20")], false, false),
            (&[("max_bytes", "9000")], true, false),
            (&[("target", "60")], true, false),
            (&[text], true, false),
            (&[text, ("max_bytes", "9000")], true, false),
            (&[text, ("target", "60")], false, false),
            (&[text, ("watermark_tile", "true")], false, false),
        ] {
            let params = params(pairs);
            let of_png = job(&graphic, &params, None);
            assert_eq!(stays_in_planes(&of_png), png_stays, "PNG: {pairs:?}");
            let of_jpeg = jpeg_job(TURNED_JPEG, &params, None);
            assert_eq!(stays_in_planes(&of_jpeg), jpeg_stays, "JPEG: {pairs:?}");
        }
    }

    #[test]
    fn the_quality_that_a_jpeg_has_left_is_that_of_its_own_size() {
        // Quantizers are four times as long as those of quality 92: 64 % of those of 50.
        let mut coarse = TURNED_JPEG.to_vec();
        let table = coarse.windows(2).position(|bytes| *bytes == [0xff, 0xdb]);
        let luma = table.expect("it has quantizers") + 5;
        for quantizer in &mut coarse[luma..luma + 64] {
            *quantizer *= 4;
        }
        let quality = |pairs: &[(&str, &str)]| {
            let params = params(pairs);
            let job = jpeg_job(&coarse, &params, None);
            let opened = opened(&job);
            plan(&opened, &job).quality
        };
        let source = ("default_quality", "source");
        assert_eq!(quality(&[source]), 68);
        assert_eq!(quality(&[]), 85);
        assert_eq!(quality(&[source, ("width", "20")]), 85);
        assert_eq!(quality(&[source, ("quality", "90")]), 90);
    }

    #[test]
    fn a_watermark_over_half_of_a_jpeg_goes_by_way_of_rgb() {
        // The picture has 40 x 60 pixels, and a width of 50 % is 20.
        for (width, height, scale, stays) in [
            (40, 29, None, true),
            (40, 30, None, false),
            (10, 29, Some("50"), true),
            (10, 30, Some("50"), false),
        ] {
            let pixels = vec![200; (width * height * 3) as usize];
            let mark = png(width, height, ::png::ColorType::Rgb, &pixels);
            let scale = scale.map(|percent| ("watermark_scale", percent));
            let params = params(scale.as_slice());
            let job = jpeg_job(TURNED_JPEG, &params, Some(&mark));
            assert_eq!(
                stays_in_planes(&job),
                stays,
                "{width} x {height}, {scale:?}"
            );
        }
    }

    #[test]
    fn a_webp_stays_what_it_is_if_nothing_changes_it() {
        let photograph = include_bytes!("../../testdata/chelsea.jpg");
        let small = params(&[("quality", "20"), ("metadata", "keep")]);
        let [webp, with_metadata] = [&photograph[..], TURNED_JPEG].map(|jpeg| {
            let conversion = run(&jpeg_job(jpeg, &small, None));
            conversion.expect("a valid picture").webp
        });
        let prefers_original = |webp: &[u8], pairs: &[(&str, &str)]| {
            let params = params(&[&[("quality", "95")], pairs].concat());
            let conversion = run(&Job {
                format: Format::Webp,
                ..job(webp, &params, None)
            });
            conversion.expect("a valid picture").prefers_original
        };
        assert!(prefers_original(&webp, &[]));
        for change in [
            ("width", "400"),
            ("watermark", "x"),
            ("background", "red"),
            ("crop", "0,0,450,290"),
        ] {
            assert!(!prefers_original(&webp, &[change]), "{change:?}");
        }
        assert!(prefers_original(&with_metadata, &[("metadata", "keep")]));
        assert!(!prefers_original(&with_metadata, &[]), "its Exif goes");
    }

    #[test]
    fn the_picture_is_drawn_first_and_the_text_over_it() {
        let image = Image {
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
        let job = job(&input, &params, Some(&mark));
        let conversion = run(&job).expect("valid pictures");

        let opened = opened(&job);
        let plan = plan(&opened, &job);
        let never = Cancel::never();
        let image = draw_picture(&plan, image, &never).expect("a valid picture");
        let image = draw_text(&plan, image, &never).expect("a full block exists");
        let center = (32 * 64 + 32) * 3;
        assert_eq!(
            image.pixels[center..center + 3],
            [255, 0, 0],
            "the text is above"
        );
        assert_eq!(
            image.pixels[..3],
            [255, 255, 255],
            "the picture is there too"
        );
        let encoded = encode(&plan, &image, &Metadata::default(), &never, &|_| true);
        assert_eq!(
            conversion.webp,
            encoded.expect("a valid picture").file,
            "run draws in this order"
        );
    }

    #[test]
    fn each_failure_has_its_case_and_a_text() {
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
        let stages_and_rows = 3 + 320 / 16;
        assert!(checks(&job(&input, &params, None)) >= stages_and_rows);
    }

    /// The number of checks in a conversion, each of which ends it if it is then cancelled.
    fn checks(job: &Job<'_>) -> usize {
        let run_until = |allowed: usize| {
            let checks = AtomicUsize::new(0);
            let is_unwanted = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
            let outcome = run(&Job {
                cancel: &Cancel::when(&is_unwanted),
                ..*job
            });
            (outcome.map(drop), checks.into_inner())
        };
        let (outcome, all) = run_until(usize::MAX);
        assert_eq!(outcome, Ok(()));
        // All of the first, then fewer and fewer.
        let growing = |allowed: &usize| Some(allowed + 1 + allowed / 64);
        for allowed in std::iter::successors(Some(0), growing).take_while(|&allowed| allowed < all)
        {
            let (outcome, checks) = run_until(allowed);
            // Threads that work beside each other do not check equally often each time.
            if checks > allowed {
                assert_eq!(outcome, Err(ConversionError::Cancelled), "after {allowed}");
            }
        }
        all
    }

    #[test]
    fn every_stage_of_a_resize_ends_once_it_is_cancelled() {
        let in_png = png(160, 320, ::png::ColorType::Rgb, &vec![90; 160 * 320 * 3]);
        // The file itself, a byte behind its data, and frames.
        let photograph = include_bytes!("../../testdata/chelsea.jpg");
        let (front, end) = photograph.split_at(photograph.len() - 2);
        let padded = [front, &[0], end].concat();
        let film = include_bytes!("../../testdata/animated.gif");
        let resized = |side: &str| params(&[("width", side), ("effort", "low")]);
        for (bytes, format, side, least) in [
            // Rows of the PNG, each of which is a row of the resize, too.
            (&in_png[..], Format::Png, "40", 320),
            // Rows of MCUs, and of the picture at a fourth of its size.
            (photograph, Format::Jpeg, "50", 300 / 16 + 300 / 4),
            (&padded, Format::Jpeg, "50", 300 / 16 + 300 / 4),
            (film, Format::Gif, "30", 20),
        ] {
            let params = resized(side);
            let job = Job {
                format,
                ..job(bytes, &params, None)
            };
            let checks = checks(&job);
            assert!(checks >= least, "{format}: {checks}");
        }
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
        let opened = image::open(&large, Format::Png, &limits).expect("it is within limits");
        let params = params(&[]);
        let job = Job {
            limits: &limits,
            ..job(&large, &params, None)
        };
        let resources = plan(&opened, &job).resources;
        assert_eq!(
            Plan::new(&opened, &params, Some(&large), resources).err(),
            Some(ConversionError::WatermarkPicture(
                DecodeError::TooManyPixels {
                    width: 4097,
                    height: 4096,
                    max_pixels: MAX_WATERMARK_PIXELS
                }
            ))
        );
    }
}
