//! A size or a score instead of a quality: `max_bytes`, `best_effort` and `target`.

use crate::support::Response;
use crate::support::animation::animated;
use crate::support::picture::Picture;
use crate::support::service::Service;
use fast_ssim2::{PixelDescriptor, PixelSlice, compute_ssimulacra2};
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{self, Format, Limits};

/// 600 x 400 pixels.
const JPEG: &[u8] = include_bytes!("../../testdata/coffee.jpg");

/// A part of a photograph, so far from its left side.
fn part(left: u32) -> Picture {
    let (width, pixels) = decoded(JPEG);
    Picture::of(240, 180, |x, y| {
        pixels[((y + 100) * width + x + left) as usize]
    })
}

/// The width and the pixels of a JPEG.
fn decoded(jpeg: &[u8]) -> (u32, Vec<[u8; 4]>) {
    let (limits, never) = (Limits::default(), Cancel::never());
    let image = image::decode(jpeg, Format::Jpeg, &limits, &never).expect("a good file");
    let pixels = image.pixels.chunks(3);
    let pixels = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2], 255]);
    (image.width, pixels.collect())
}

/// Flat colors, as a diagram has.
fn graphic() -> Picture {
    Picture::of(120, 90, |x, y| match (x / 30 + y / 30) % 3 {
        0 => [250, 250, 250, 255],
        1 => [200, 30, 40, 255],
        _ => [20, 40, 160, 255],
    })
}

/// What the answer says of the quality that was found.
fn quality(answer: &Response) -> u8 {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let quality = answer.header("x-webp-quality").expect("it was looked for");
    quality.parse().expect("a number")
}

/// SSIMULACRA2 by another decoder.
fn judge(original: &Picture, webp: &[u8]) -> f64 {
    let decoded = Picture::decode(webp);
    let is_opaque = original.pixels.iter().all(|pixel| pixel[3] == 255);
    let descriptor = if is_opaque {
        PixelDescriptor::RGBX8_SRGB
    } else {
        PixelDescriptor::RGBA8_SRGB
    };
    let (width, height) = (original.width, original.height);
    let [original, decoded] = [original, &decoded].map(|picture| {
        let pixels = picture.pixels.as_flattened();
        PixelSlice::new(pixels, width, height, width as usize * 4, descriptor).expect("whole rows")
    });
    compute_ssimulacra2(&original, &decoded).expect("of the same size")
}

#[test]
fn max_bytes_gives_the_best_quality_that_fits() {
    let service = Service::start();
    let picture = part(60);
    let files = [
        ("image/png", picture.png()),
        ("image/jpeg", JPEG.to_vec()),
        ("image/bmp", picture.bmp()),
    ];
    for (media_type, file) in &files {
        let bytes = |quality: u8| {
            let quality = quality.to_string();
            let plain = [("quality", quality.as_str()), ("mode", "lossy")];
            service.convert(&plain, media_type, file).body
        };
        for expected in [12, 50, 90] {
            let most = bytes(expected).len() + 10;
            let asked = [("max_bytes", &*most.to_string()), ("mode", "lossy")];
            let answer = service.convert(&asked, media_type, file);
            let found = quality(&answer);
            assert!(
                (expected - 4..=expected + 1).contains(&found),
                "{found} for {expected}"
            );
            assert!(answer.body.len() <= most && bytes(found) == answer.body);
            assert!(answer.header("x-webp-score").is_none());
        }
        let answer = service.convert(&[("max_bytes", "1M"), ("mode", "lossy")], media_type, file);
        assert_eq!(quality(&answer), 100, "all fit");
    }
    let plain = service.convert(&[], "image/png", &files[0].1);
    assert!(plain.header("x-webp-quality").is_none() && plain.header("x-webp-score").is_none());
}

#[test]
fn too_few_bytes_are_an_error_that_names_the_least() {
    let service = Service::start();
    let png = part(60).png();
    let answer = service.convert(&[("max_bytes", "100")], "image/png", &png);
    let detail = answer.problem(400, "max_bytes_unreachable");
    let effort = [("max_bytes", "100"), ("best_effort", "true")];
    let smallest = service.convert(&effort, "image/png", &png);
    assert_eq!(quality(&smallest), 0);
    let least = smallest.body.len().to_string();
    assert!(
        detail.contains("100 was given") && detail.contains(&least),
        "{detail}"
    );
    let enough = service.convert(&[("max_bytes", &least)], "image/png", &png);
    assert!(enough.status == 200 && enough.body == smallest.body);
    // 0 is capped to 1.
    let answer = service.convert(&[("max_bytes", "0")], "image/png", &png);
    assert!(
        answer
            .problem(400, "max_bytes_unreachable")
            .contains("1 was given")
    );
    // A lossless file is as large as it is.
    let lossless = [("max_bytes", "1k"), ("mode", "lossless")];
    let answer = service.convert(&lossless, "image/png", &png);
    answer.problem(400, "max_bytes_unreachable");
}

#[test]
fn target_gives_a_file_that_looks_at_least_so_good() {
    let service = Service::start();
    let picture = part(60);
    let see_through = Picture::of(240, 180, |x, y| {
        let [red, green, blue, _] = picture.at(x, y);
        [red, green, blue, if x < 100 { (x * 2) as u8 } else { 255 }]
    });
    for (original, target) in [
        (&picture, 40),
        (&picture, 60),
        (&picture, 75),
        (&see_through, 55),
    ] {
        let asked = target.to_string();
        let answer = service.convert(&[("target", &asked)], "image/png", &original.png());
        let found = quality(&answer);
        let score = judge(original, &answer.body);
        assert!(score >= f64::from(target), "{score} for {target}");
        assert_eq!(
            answer.header("x-webp-score"),
            Some(format!("{score:.2}").as_str())
        );
        let worse = found.saturating_sub(8).to_string();
        let worse = service.convert(&[("quality", &worse)], "image/png", &original.png());
        let worse = judge(original, &worse.body);
        assert!(
            worse < f64::from(target),
            "{found} for {target}: {worse} would do"
        );
    }
    let answer = service.convert(&[("target", "60")], "image/jpeg", JPEG);
    let (width, pixels) = decoded(JPEG);
    let height = pixels.len() as u32 / width;
    let original = Picture::of(width, height, |x, y| pixels[(y * width + x) as usize]);
    let score = judge(&original, &answer.body);
    assert!(quality(&answer) < 100 && score >= 60.0, "{score}");
}

#[test]
fn targets_that_no_quality_reaches_are_met_without_loss_or_missed_by_the_best() {
    let service = Service::start();
    let noise = Picture::noise(64, 64);
    let answer = service.convert(&[("target", "200")], "image/png", &noise.png());
    assert_eq!(
        answer.header("x-webp-mode"),
        Some("lossless"),
        "{}",
        answer.text()
    );
    assert_eq!(answer.header("x-webp-score"), Some("100.00"));
    assert!(answer.header("x-webp-quality").is_none());
    assert!(Picture::decode(&answer.body).difference(&noise) == 0.0);
    let lossy = [("target", "95"), ("mode", "lossy")];
    let answer = service.convert(&lossy, "image/png", &noise.png());
    assert_eq!(quality(&answer), 100);
    let score = format!("{:.2}", judge(&noise, &answer.body));
    assert_eq!(answer.header("x-webp-score"), Some(score.as_str()));
    // 3 is capped to 30.
    let [low, least] = ["3", "30"].map(|target| {
        let answer = service.convert(&[("target", target)], "image/png", &part(60).png());
        quality(&answer)
    });
    assert_eq!(low, least);
    // A diagram is smaller without loss.
    let answer = service.convert(&[("target", "50")], "image/png", &graphic().png());
    assert_eq!(answer.header("x-webp-mode"), Some("lossless"));
}

#[test]
fn goals_hold_for_animations_and_watermarks() {
    let service = Service::start();
    let frames = [0, 40, 80].map(part);
    let gif = animated(&frames);
    let lossy = ("mode", "lossy");
    let plain = |quality: u8| {
        let quality = quality.to_string();
        service
            .convert(&[("quality", &quality), lossy], "image/gif", &gif)
            .body
    };
    let answer = service.convert(&[("max_bytes", "20k"), lossy], "image/gif", &gif);
    assert!(answer.body.len() <= 20_000, "{} bytes", answer.body.len());
    assert!(plain(quality(&answer)) == answer.body);
    let answer = service.convert(&[("target", "55"), lossy], "image/gif", &gif);
    let score: f64 = answer
        .header("x-webp-score")
        .expect("a score")
        .parse()
        .expect("a number");
    assert!(
        score >= 55.0 && plain(quality(&answer)) == answer.body,
        "{score}"
    );

    let marked = [
        ("target", "60"),
        ("watermark", "towebp"),
        ("watermark_opacity", "90"),
    ];
    let answer = service.convert(&marked, "image/png", &part(60).png());
    let found = quality(&answer).to_string();
    let plain = [("quality", found.as_str()), marked[1], marked[2]];
    assert!(service.convert(&plain, "image/png", &part(60).png()).body == answer.body);
}

#[test]
fn goals_exclude_each_other_and_a_quality() {
    let service = Service::start();
    let png = graphic().png();
    for pair in [
        [("max_bytes", "1k"), ("quality", "80")],
        [("quality", "80"), ("target", "80")],
        [("target", "80"), ("max_bytes", "1k")],
    ] {
        let answer = service.convert(&pair, "image/png", &png);
        let detail = answer.problem(400, "invalid_parameter");
        assert!(
            pair.iter().all(|(name, _)| detail.contains(name)),
            "{detail}"
        );
    }
    for (name, value) in [
        ("max_bytes", "1.5k"),
        ("target", "good"),
        ("best_effort", "1"),
    ] {
        let answer = service.convert(&[(name, value)], "image/png", &png);
        let detail = answer.problem(400, "invalid_parameter");
        assert!(detail.contains(name) && detail.contains(value), "{detail}");
    }
}
