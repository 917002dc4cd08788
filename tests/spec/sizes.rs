//! What a conversion saves: told in every answer, and the original for those who want the smaller.

use crate::support::Response;
use crate::support::picture::Picture;
use crate::support::service::Service;
use towebp_pipeline::conversion::{Cancel, Fonts, Job, Params, run};
use towebp_pipeline::image::{Format, Limits};

const JPEG: &[u8] = include_bytes!("../../testdata/chelsea.jpg");

/// Without loss, a photograph becomes larger than its JPEG.
const LARGER: [(&str, &str); 2] = [("mode", "lossless"), ("effort", "low")];

const ORIGINAL: (&str, &str) = ("if_larger", "original");

fn assert_told(answer: &Response, input: &[u8]) -> i64 {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let number = |name: &str| -> i64 {
        let value = answer.header(name).unwrap_or_else(|| panic!("no {name}"));
        value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
    };
    assert_eq!(number("x-original-bytes"), input.len() as i64);
    let percent = number("x-saved-percent");
    let saved = 100.0 - answer.body.len() as f64 / input.len() as f64 * 100.0;
    assert!(
        (percent as f64) <= saved && saved < percent as f64 + 1.0,
        "{percent} for {saved}"
    );
    percent
}

#[test]
fn every_answer_tells_what_it_saves() {
    let server = Service::start();
    let picture = Picture::waves(90, 60);
    for (media_type, input) in [
        ("image/png", picture.png()),
        ("image/bmp", picture.bmp()),
        ("image/gif", picture.gif()),
        ("image/jpeg", JPEG.to_vec()),
    ] {
        assert_told(&server.convert(&[], media_type, &input), &input);
        let marked = server.convert(&[("watermark", "x")], media_type, &input);
        assert_told(&marked, &input);
    }
    let larger = server.convert(&LARGER, "image/jpeg", JPEG);
    assert_eq!(larger.header("content-type"), Some("image/webp"));
    assert!(assert_told(&larger, JPEG) < 0, "it is larger and says so");
    let page = server.get("/dashboard", &[]);
    assert_eq!(page.header("x-saved-percent"), None);
}

#[test]
fn the_original_stands_in_for_a_webp_that_is_not_smaller() {
    let server = Service::start();
    let parameters = [&LARGER[..], &[ORIGINAL, ("download", "a")]].concat();
    let answer = server.convert(&parameters, "image/jpg", JPEG);
    assert_eq!(assert_told(&answer, JPEG), 0);
    assert!(answer.body == JPEG, "not the bytes that were sent");
    for (name, value) in [
        ("content-type", Some("image/jpeg")),
        (
            "content-disposition",
            Some("attachment; filename=\"a.jpg\""),
        ),
        ("x-webp-mode", None),
        ("x-content-type-options", Some("nosniff")),
        ("image-width", Some("451")),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    // The history has what was sent.
    let usage = server.usage();
    let entry = &usage["entries"][0];
    for name in ["input_bytes", "output_bytes"] {
        assert_eq!(entry[name], JPEG.len(), "{name}");
        assert_eq!(usage["totals"][name], JPEG.len(), "{name}");
    }
    // What is smaller is sent.
    let png = Picture::waves(90, 60).png();
    let smaller = server.convert(&[ORIGINAL], "image/png", &png);
    assert_eq!(smaller.header("content-type"), Some("image/webp"));
    assert!(assert_told(&smaller, &png) > 0);
    assert_eq!(smaller.body, server.webp(&[], &png).as_ref());
}

#[test]
fn the_original_does_not_stand_in_for_another_picture() {
    let server = Service::start();
    for other in [
        ("watermark", "x"),
        ("watermark_image", "http://example.org/a.png"),
        ("width", "5000"),
        ("height", "10"),
    ] {
        let answer = server.convert(&[ORIGINAL, other], "image/jpeg", JPEG);
        let detail = answer.problem(400, "invalid_parameter");
        assert!(
            detail.contains("if_larger") && detail.contains(other.0),
            "{detail}"
        );
    }
    let wrong = server.convert(&[("if_larger", "jpeg")], "image/jpeg", JPEG);
    let detail = wrong.problem(400, "invalid_parameter");
    assert!(detail.contains("webp or original"), "{detail}");
}

/// A file of one color is smaller than any WebP of its first frame would have to be; what matters
/// is that the animation is not sent where a still picture is asked for.
#[test]
fn an_animation_does_not_stand_in_for_its_first_frame() {
    let mut file = Vec::new();
    let mut encoder = gif::Encoder::new(&mut file, 1, 1, &[1, 2, 3, 4, 5, 6]).expect("a palette");
    for index in [0, 1] {
        let frame = gif::Frame::from_indexed_pixels(1, 1, vec![index], None);
        encoder.write_frame(&frame).expect("a Vec takes all");
    }
    drop(encoder);
    let converted = |query: &[(&str, &str)]| {
        let params = Params::parse(query.iter().copied()).expect("valid parameters");
        let converted = run(&Job {
            bytes: &file,
            format: Format::Gif,
            params: &params,
            watermark_picture: None,
            fonts: Fonts::bundled(),
            limits: &Limits::DEFAULT,
            threads: 1,
            cpu_budget: None,
            cancel: &Cancel::never(),
        });
        converted.expect("a good GIF")
    };
    let whole = converted(&[ORIGINAL]);
    assert!(whole.webp.len() >= file.len() && whole.prefers_original);
    let first = converted(&[ORIGINAL, ("animation", "first")]);
    assert!(!first.prefers_original);
}
