//! Pictures of another size: what `width`, `height`, `fit`, `gravity`, `enlarge` and `dpr` give.

use crate::support::animation::moving_squares;
use crate::support::jpeg::{Kind, jpeg};
use crate::support::picture::{Area, Picture};
use crate::support::service::Service;
use image_webp::WebPDecoder;
use std::io::Cursor;

type Parameters<'a> = &'a [(&'a str, &'a str)];

/// The picture with these parameters, without loss. The headers tell its size.
#[track_caller]
fn exact(service: &Service, parameters: Parameters<'_>, media_type: &str, file: &[u8]) -> Picture {
    let parameters = [&[("mode", "lossless")], parameters].concat();
    let answer = service.convert(&parameters, media_type, file);
    assert_eq!(answer.status, 200, "{parameters:?}: {}", answer.text());
    let picture = Picture::decode(&answer.body);
    let told = ["image-width", "image-height"].map(|name| answer.header(name));
    let sides = [picture.width, picture.height].map(|side| side.to_string());
    assert_eq!(told, [Some(&sides[0][..]), Some(&sides[1][..])]);
    picture
}

/// Four quarters: red and green above blue and white.
fn quarters(width: u32, height: u32) -> Picture {
    Picture::of(width, height, |x, y| {
        match (x < width / 2, y < height / 2) {
            (true, true) => [255, 0, 0, 255],
            (false, true) => [0, 255, 0, 255],
            (true, false) => [0, 0, 255, 255],
            (false, false) => [255; 4],
        }
    })
}

#[test]
fn each_fit_has_its_size_and_shows_its_part() {
    let service = Service::start();
    let png = quarters(240, 120).png();
    let (red, green, blue, white) = (
        [255, 0, 0, 255],
        [0, 255, 0, 255],
        [0, 0, 255, 255],
        [255; 4],
    );
    let all = [red, green, blue, white];
    for (parameters, size, corners) in [
        (&[("width", "60")][..], (60, 30), all),
        (&[("height", "60")], (120, 60), all),
        (&[("width", "60"), ("height", "60")], (60, 30), all),
        (
            &[("width", "60"), ("height", "60"), ("fit", "inside")],
            (60, 30),
            all,
        ),
        (
            &[("width", "60"), ("height", "60"), ("fit", "fill")],
            (60, 60),
            all,
        ),
        (
            &[("width", "60"), ("height", "60"), ("fit", "cover")],
            (60, 60),
            all,
        ),
        (
            &[
                ("width", "60"),
                ("height", "60"),
                ("fit", "cover"),
                ("gravity", "left"),
            ],
            (60, 60),
            [red, red, blue, blue],
        ),
        (
            &[
                ("width", "60"),
                ("height", "60"),
                ("fit", "cover"),
                ("gravity", "bottom-right"),
            ],
            (60, 60),
            [green, green, white, white],
        ),
        (
            &[
                ("width", "200"),
                ("height", "20"),
                ("fit", "cover"),
                ("gravity", "top"),
            ],
            (200, 20),
            [red, green, red, green],
        ),
        (&[("width", "30"), ("dpr", "1.5")], (45, 23), all),
        (
            &[("dpr", "2"), ("fit", "cover"), ("gravity", "top")],
            (240, 120),
            all,
        ),
        (&[("width", "500")], (240, 120), all),
        (&[("width", "500"), ("enlarge", "true")], (500, 250), all),
        (
            &[("width", "500"), ("height", "500"), ("fit", "cover")],
            (120, 120),
            all,
        ),
        (&[("width", "0")], (240, 120), all),
    ] {
        let picture = exact(&service, parameters, "image/png", &png);
        assert_eq!((picture.width, picture.height), size, "{parameters:?}");
        // Away from the edges, where the kernel reaches into what was cut off.
        let inset = size.0.min(size.1).min(13) / 4;
        let (right, bottom) = (size.0 - 1 - inset, size.1 - 1 - inset);
        let found = [
            (inset, inset),
            (right, inset),
            (inset, bottom),
            (right, bottom),
        ];
        for ((x, y), expected) in found.into_iter().zip(corners) {
            let pixel = picture.at(x, y);
            let is_near = pixel.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 3);
            assert!(is_near, "{parameters:?}: {pixel:?} at {x}, {y}");
        }
    }
}

#[test]
fn what_is_not_allowed_is_named_and_numbers_are_capped() {
    let service = Service::start_with(&["--max-pixels", "20000"]);
    let png = quarters(40, 20).png();
    for (name, value, allowed) in [
        ("width", "wide", "1 to 16383"),
        ("height", "1.5", "1 to 16383"),
        ("dpr", "two", "0.1 to 8"),
        ("fit", "outside", "contain, cover, fill or inside"),
        ("gravity", "middle", "bottomRight"),
        ("enlarge", "1", "true or false"),
    ] {
        let answer = service.convert(&[(name, value)], "image/png", &png);
        let detail = answer.problem(400, "invalid_parameter");
        assert!(
            detail.contains(name) && detail.contains(allowed),
            "{detail}"
        );
    }
    let least = exact(&service, &[("width", "-7")], "image/png", &png);
    assert_eq!((least.width, least.height), (1, 1));
    let most = [
        ("width", "99999"),
        ("height", "1"),
        ("fit", "fill"),
        ("enlarge", "true"),
    ];
    let most = exact(&service, &most, "image/png", &png);
    assert_eq!((most.width, most.height), (16383, 1));
    // 200 x 100 are as many as are allowed.
    let enlarged = |width| {
        let parameters = [("width", width), ("enlarge", "true"), ("effort", "low")];
        service.convert(&parameters, "image/png", &png)
    };
    assert_eq!(enlarged("200").status, 200);
    let detail = enlarged("202").problem(400, "too_many_pixels");
    assert!(
        detail.contains("202 x 101") && detail.contains("20000"),
        "{detail}"
    );
}

#[test]
fn black_and_white_become_the_gray_that_is_half_of_the_light() {
    let service = Service::start();
    let board = Picture::of(256, 256, |x, y| {
        [(x + y) as u8 % 2 * 255; 4].map(|gray| gray)
    });
    let board = Picture::of(256, 256, |x, y| {
        let [gray, ..] = board.at(x, y);
        [gray, gray, gray, 255]
    });
    for width in ["128", "32", "8"] {
        for (media_type, file) in [("image/png", board.png()), ("image/bmp", board.bmp())] {
            let picture = exact(&service, &[("width", width)], media_type, &file);
            let middle = picture.at(picture.width / 2, picture.height / 2);
            assert!(middle[0].abs_diff(188) <= 1, "{width}: {middle:?}");
        }
    }
}

#[test]
fn a_turned_jpeg_has_the_width_that_is_seen() {
    let service = Service::start();
    // 60 x 40 pixels, turned to 40 x 60.
    let turned = include_bytes!("../../testdata/rotated.jpg");
    let upright = exact(&service, &[], "image/jpeg", turned);
    assert_eq!((upright.width, upright.height), (40, 60));
    let half = exact(&service, &[("width", "20")], "image/jpeg", turned);
    assert_eq!((half.width, half.height), (20, 30));
    let png = upright.png();
    for parameters in [
        &[("width", "20")][..],
        &[("width", "5")],
        &[
            ("height", "7"),
            ("width", "7"),
            ("fit", "cover"),
            ("gravity", "top"),
        ],
        &[
            ("height", "9"),
            ("width", "3"),
            ("fit", "cover"),
            ("gravity", "right"),
        ],
    ] {
        let [of_jpeg, of_png] = [("image/jpeg", &turned[..]), ("image/png", &png)]
            .map(|(media_type, file)| exact(&service, parameters, media_type, file));
        assert_eq!(
            (of_jpeg.width, of_jpeg.height),
            (of_png.width, of_png.height)
        );
        let difference = of_jpeg.difference(&of_png);
        assert!(difference < 8.0, "{parameters:?}: {difference}");
    }
}

#[test]
fn large_jpegs_look_as_their_pixels_do() {
    let service = Service::start();
    // Blocks of 16 pixels have one color each.
    let waves = Picture::waves(40, 30);
    let blocks = Picture::of(640, 480, |x, y| waves.at(x / 16, y / 16));
    for kind in [Kind::Sequential, Kind::Progressive, Kind::ProgressiveFull] {
        let file = jpeg(&blocks, kind);
        let png = exact(&service, &[], "image/jpeg", &file).png();
        for width in ["320", "200", "150", "80", "40", "33", "3"] {
            let [of_jpeg, of_png] = [("image/jpeg", &file), ("image/png", &png)]
                .map(|(media_type, file)| exact(&service, &[("width", width)], media_type, file));
            let difference = of_jpeg.difference(&of_png);
            assert!(difference < 2.5, "{kind:?}, {width}: {difference}");
        }
    }
}

#[test]
fn transparency_keeps_its_colors() {
    let service = Service::start();
    // A white disc on transparent black.
    let disc = Picture::of(200, 200, |x, y| {
        let (x, y) = (x as i32 - 100, y as i32 - 100);
        if x * x + y * y < 6400 {
            [255; 4]
        } else {
            [0; 4]
        }
    });
    for width in ["100", "33", "330"] {
        let parameters = [("width", width), ("enlarge", "true")];
        let picture = exact(&service, &parameters, "image/png", &disc.png());
        let pixels = picture.pixels.as_flattened().as_chunks::<4>().0;
        let soft = pixels.iter().filter(|pixel| !matches!(pixel[3], 0 | 255));
        assert!(soft.count() > 50, "the edge is soft");
        for pixel in pixels {
            assert!(
                pixel[3] == 0 || pixel[..3] == [255; 3],
                "{width}: {pixel:?}"
            );
        }
    }
}

#[test]
fn a_watermark_has_its_size_in_the_resized_picture() {
    let service = Service::start();
    let size = |width: u32| {
        let png = Picture::flat(width, width, [0, 0, 90]).png();
        let parameters = [
            ("width", "300"),
            ("watermark", "M"),
            ("watermark_opacity", "100"),
            ("watermark_size", "80"),
            ("watermark_position", "center"),
        ];
        let picture = exact(&service, &parameters, "image/png", &png);
        assert_eq!((picture.width, picture.height), (300, 300));
        let Area(left, top, right, bottom) =
            picture.extent(|pixel| pixel[0] > 60).expect("a letter");
        (right - left, bottom - top)
    };
    assert_eq!(size(300), size(1200));
    assert!(size(300).1 > 40, "{:?}", size(300));
}

#[test]
fn animations_keep_their_timing_and_each_frame_is_resized() {
    let service = Service::start();
    let gif = moving_squares(300, 200, 5);
    let frames = |parameters: Parameters<'_>| {
        let parameters = [&[("mode", "lossless")], parameters].concat();
        let answer = service.convert(&parameters, "image/gif", &gif);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut decoder = WebPDecoder::new(Cursor::new(answer.body)).expect("a valid file");
        let (width, height) = decoder.dimensions();
        let channels = if decoder.has_alpha() { 4 } else { 3 };
        let mut frames = Vec::new();
        for _ in 0..decoder.num_frames() {
            let mut pixels = vec![0; (width * height) as usize * channels];
            let time = decoder.read_frame(&mut pixels).expect("a whole frame");
            let pixels = pixels.chunks_exact(channels);
            let pixels: Vec<[u8; 4]> = pixels.map(|p| [p[0], p[1], p[2], 255]).collect();
            let at = |x, y| pixels[(y * width + x) as usize];
            frames.push((time, Picture::of(width, height, at)));
        }
        frames
    };
    let whole = frames(&[]);
    for parameters in [
        &[("width", "150")][..],
        &[
            ("width", "70"),
            ("height", "70"),
            ("fit", "cover"),
            ("gravity", "right"),
        ],
        &[("width", "450"), ("enlarge", "true")],
    ] {
        let resized = frames(parameters);
        assert_eq!(resized.len(), whole.len());
        for ((time, frame), (whole_time, whole)) in resized.iter().zip(&whole) {
            assert_eq!(time, whole_time);
            let alone = exact(&service, parameters, "image/png", &whole.png());
            assert_eq!((frame.width, frame.height), (alone.width, alone.height));
            assert!(
                frame.difference(&alone) < 0.02,
                "{parameters:?}: {}",
                frame.difference(&alone)
            );
        }
    }
}
