//! TIFF files as input, which the specification leaves out: converted with `--accept tiff` alone.

use crate::support::picture::Picture;
use crate::support::service::Service;
use crate::support::tiff::{Samples, Tiff};

const TYPE: &str = "image/tiff";

#[test]
fn a_tiff_is_an_input_only_with_the_flag() {
    let picture = Picture::waves(60, 40);
    let tiff = Tiff::default().file(&picture);
    let service = Service::start_with(&["--sniff", "--accept", "webp"]);
    for media_type in [TYPE, "application/octet-stream"] {
        assert_eq!(
            service.convert(&[], media_type, &tiff).status,
            400,
            "{media_type}"
        );
    }
    let service = Service::start_with(&["--sniff", "--accept", "tiff"]);
    for media_type in [TYPE, "application/octet-stream"] {
        let answer = service.convert(&[("mode", "lossless")], media_type, &tiff);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(Picture::decode(&answer.body).difference(&picture) == 0.0);
    }
    let wrong = service.convert(&[], "image/webp", &tiff);
    let detail = wrong.problem(400, "content_type_unsupported");
    assert!(detail.contains("image/bmp and image/tiff"), "{detail}");
    let usage = service.usage().to_string();
    assert!(usage.contains("\"format\":\"tiff\""), "{usage}");
}

#[test]
fn the_orientation_of_a_tiff_is_applied_and_both_formats_can_be_accepted() {
    let service = Service::start_with(&["--accept", "webp,tiff"]);
    let picture = Picture::waves(60, 40);
    let tiff = Tiff {
        orientation: 6,
        samples: Samples::Rgba,
        is_compressed: true,
        tile: 32,
        ..Tiff::default()
    };
    let answer = service.convert(&[("mode", "lossless")], TYPE, &tiff.file(&picture));
    let turned = Picture::of(40, 60, |x, y| picture.at(y, 39 - x));
    assert!(Picture::decode(&answer.body).difference(&turned) == 0.0);
    let webp = answer.body;
    assert_eq!(service.convert(&[], "image/webp", &webp).status, 200);
}

#[test]
fn a_damaged_tiff_is_an_error_and_its_pixels_are_no_metadata() {
    let service = Service::start_with(&["--accept", "tiff"]);
    let tiff = Tiff {
        is_compressed: true,
        ..Tiff::default()
    };
    let tiff = tiff.file(&Picture::noise(60, 40));
    for length in [4, 8, 100, tiff.len() / 2, tiff.len() - 8] {
        let answer = service.convert(&[], TYPE, &tiff[..length]);
        answer.problem(400, "invalid_image");
    }
    let kept = service.convert(&[("metadata", "keep")], TYPE, &tiff);
    assert_eq!(crate::support::picture::chunks(&kept.body), ["VP8L"]);
}
