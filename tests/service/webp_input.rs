//! WebP files as input, which the specification leaves out: converted with `--accept webp` alone.

use crate::support::animation::animated_webp;
use crate::support::picture::Picture;
use crate::support::service::Service;
use towebp_encoder::Encoder;

const TYPE: &str = "image/webp";

#[test]
fn a_webp_is_an_input_only_with_the_flag() {
    let webp = Picture::waves(60, 40).webp(&Encoder::lossy(90));
    let service = Service::start_with(&["--sniff"]);
    for media_type in [TYPE, "application/octet-stream"] {
        let answer = service.convert(&[], media_type, &webp);
        assert_eq!(answer.status, 400, "{media_type}");
    }
    let service = Service::start_with(&["--sniff", "--accept", "webp"]);
    let small = [("width", "30"), ("quality", "40")];
    for media_type in [TYPE, "application/octet-stream"] {
        let answer = service.convert(&small, media_type, &webp);
        let converted = Picture::decode(&answer.body);
        assert_eq!((converted.width, converted.height), (30, 20));
        assert_eq!(answer.header("x-webp-unchanged"), None);
    }
    let answer = service.convert(&[("watermark", "hello")], TYPE, &webp);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-webp-unchanged"), None);
    let wrong = service.convert(&[], "image/tiff", &webp);
    let detail = wrong.problem(400, "content_type_unsupported");
    assert!(detail.contains("image/bmp and image/webp"), "{detail}");
    let usage = service.usage().to_string();
    assert!(usage.contains("\"format\":\"webp\""), "{usage}");
}

#[test]
fn a_webp_that_becomes_no_smaller_comes_back_as_it_is() {
    let service = Service::start_with(&["--accept", "webp"]);
    let picture = Picture::waves(60, 40);
    let lossless = picture.webp(&Encoder::lossless());
    let frames = [picture.clone(), Picture::waves(60, 40)];
    for webp in [
        picture.webp(&Encoder::lossy(20)),
        animated_webp(&frames, Encoder::lossy(20)),
    ] {
        let answer = service.convert(&[], TYPE, &webp);
        assert_eq!(answer.header("x-webp-unchanged"), Some("true"));
        assert_eq!(answer.header("x-saved-percent"), Some("0"));
        assert!(answer.body == webp);
    }
    let answer = service.convert(&[("mode", "lossy")], TYPE, &lossless);
    assert_eq!(answer.header("x-webp-unchanged"), None);
    assert!(answer.body.len() < lossless.len());
    // Its metadata would come back with it.
    let described = picture.webp(&Encoder::lossy(20).xmp(b"<x/>"));
    let stripped = service.convert(&[], TYPE, &described);
    assert_eq!(stripped.header("x-webp-unchanged"), None);
    assert_eq!(crate::support::picture::chunks(&stripped.body), ["VP8 "]);
    let kept = service.convert(&[("metadata", "keep")], TYPE, &described);
    assert_eq!(kept.header("x-webp-unchanged"), Some("true"));
}

#[test]
fn a_damaged_webp_is_an_error() {
    let service = Service::start_with(&["--accept", "webp"]);
    let picture = Picture::waves(60, 40);
    for webp in [
        picture.webp(&Encoder::lossy(80)),
        picture.webp(&Encoder::lossless()),
        animated_webp(
            &[picture.clone(), Picture::noise(60, 40)],
            Encoder::lossy(80),
        ),
    ] {
        for length in [13, 20, 40, webp.len() / 2, webp.len() - 1] {
            let answer = service.convert(&[], TYPE, &webp[..length]);
            answer.problem(400, "invalid_image");
        }
    }
}
