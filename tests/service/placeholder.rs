//! The placeholder that a conversion gives if the request asks for it.

use crate::support::picture::{HALVES_JPEG, Picture};
use crate::support::service::Service;

const HEADER: &str = "x-towebp-thumbhash";
const ASKED: (&str, &str) = ("placeholder", "true");

/// The JPEG stays in planes, the PNG becomes planes row by row or stays in RGB, the GIF is drawn.
#[test]
fn a_placeholder_comes_with_the_same_bytes_if_it_is_asked_for() {
    let service = Service::start();
    let picture = Picture::waves(160, 120);
    let (png, gif, bmp) = (picture.png(), picture.gif(), picture.bmp());
    for (kind, file) in [
        ("image/jpeg", HALVES_JPEG),
        ("image/png", &png),
        ("image/gif", &gif),
        ("image/bmp", &bmp),
    ] {
        for more in [
            &[][..],
            &[("mode", "lossy")],
            &[("mode", "lossless")],
            &[("max_bytes", "3k"), ("best_effort", "true")],
            &[("width", "40")],
        ] {
            let plain = service.convert(more, kind, file);
            assert_eq!(plain.header(HEADER), None);
            let asked = service.convert(&[&[ASKED], more].concat(), kind, file);
            assert_eq!(asked.status, 200, "{}", asked.text());
            assert!(asked.body == plain.body, "{kind}, {more:?}");
            let hash = asked.header(HEADER).expect("it was asked for");
            assert!((24..40).contains(&hash.len()), "{hash}");
        }
    }
    let wrong = service.convert(&[("placeholder", "thumb")], "image/png", &png);
    let detail = wrong.problem(400, "invalid_parameter");
    assert!(detail.contains("true or false"), "{detail}");
}

/// The first bits are those of the mean brightness, 63 for white.
#[test]
fn a_placeholder_is_of_the_picture_as_it_is_encoded() {
    let service = Service::start();
    let mut black = Vec::new();
    png::Encoder::new(&mut black, 30, 20)
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&[0; 600]))
        .expect("a valid picture");
    let hash = |more: &[(&str, &str)]| {
        let answer = service.convert(&[&[ASKED], more].concat(), "image/png", &black);
        answer.header(HEADER).expect("it was asked for").to_owned()
    };
    // Six zeros, and an even digit.
    let plain = hash(&[]);
    assert!(plain.starts_with("AAgC"), "{plain}");
    let marked = [
        ("watermark", "█████"),
        ("watermark_opacity", "100"),
        ("watermark_tile", "true"),
    ];
    let marked = hash(&marked);
    assert!(marked[..1] > plain[..1] && marked != plain, "{marked}");
    assert!(hash(&[("crop", "0,0,10,20")]) != plain, "it is upright");
}
