//! The table of limits, and the limits that the specification leaves open.

use crate::support::host::Host;
use crate::support::picture::{HALVES_JPEG, Picture};
use crate::support::service::{Service, send};

/// The default bound of a body.
const MAX_BODY: usize = 32 << 20;

#[test]
fn quality_bounds_give_valid_pictures() {
    let server = Service::start();
    let picture = Picture::waves(33, 17);
    for quality in ["0", "100"] {
        let decoded = Picture::decode(server.webp(&[("quality", quality)], &picture.png()));
        assert_eq!((decoded.width, decoded.height), (33, 17));
    }
}

#[test]
fn watermark_size_bounds_are_drawn() {
    let server = Service::start();
    let png = Picture::flat(500, 300, [90, 90, 90]).png();
    let plain = server.webp(&[], &png);
    for size in ["8", "200"] {
        let marked = server.webp(&[("watermark", "Hi"), ("watermark_size", size)], &png);
        assert_ne!(marked, plain, "size {size} drew nothing");
    }
}

#[test]
fn input_formats_are_png_jpeg_jpg_gif_and_bmp() {
    let server = Service::start();
    let halves = Picture::of(64, 48, |x, _| {
        if x < 32 {
            [200, 30, 30, 255]
        } else {
            [30, 30, 200, 255]
        }
    });
    let cases = [
        ("image/png", halves.png()),
        ("image/jpeg", HALVES_JPEG.to_vec()),
        ("image/jpg", HALVES_JPEG.to_vec()),
        ("image/gif", halves.gif()),
        ("image/bmp", halves.bmp()),
    ];
    for (content_type, body) in cases {
        let answer = server.convert(&[("quality", "95")], content_type, &body);
        assert_eq!(answer.status, 200, "{content_type}: {}", answer.text());
        let decoded = Picture::decode(&answer.body);
        assert_eq!((decoded.width, decoded.height), (64, 48), "{content_type}");
        for x in [8, 56] {
            let (is, was) = (decoded.at(x, 24), halves.at(x, 24));
            assert!(
                (0..3).all(|i| is[i].abs_diff(was[i]) < 16),
                "{content_type} at {x}: {is:?} instead of {was:?}"
            );
        }
    }
}

#[test]
fn watermark_image_formats_are_png_and_jpg_alone() {
    let server = Service::start();
    let logo = Picture::flat(10, 10, [250, 250, 0]);
    let png = Picture::waves(40, 40).png();
    for (file, name) in [
        (logo.gif(), "GIF"),
        (logo.bmp(), "BMP"),
        (b"<html>".to_vec(), "HTML"),
        (vec![], "nothing"),
    ] {
        let host = Host::of(&file);
        let answer = server.convert(&[("watermark_image", &host.url())], "image/png", &png);
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        answer.problem(400, "watermark_not_png_or_jpeg");
    }
}

#[test]
fn body_over_the_limit_is_413_before_it_is_sent() {
    let server = Service::start();
    let target = server.target(&[]);
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        server.address(),
        MAX_BODY + 1
    );
    let answer =
        send(server.address(), head.as_bytes()).expect("an answer although the body is withheld");
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(
        answer.text().contains(&MAX_BODY.to_string()),
        "the limit is not named: {}",
        answer.text()
    );
}

#[test]
fn body_of_the_limit_is_read() {
    let server = Service::start();
    // PNG readers stop at IEND: what follows is ballast.
    let mut body = b"GIF89a".to_vec();
    body.resize(MAX_BODY, 0);
    let answer = server.convert(&[], "image/gif", &body);
    assert_eq!(
        answer.status,
        400,
        "taken in, and found to be no picture: {}",
        answer.text()
    );
}

#[test]
fn chunked_body_over_the_limit_is_413() {
    let server = Service::start();
    let target = server.target(&[]);
    let mut message = format!(
        "POST {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: image/png\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        server.address(),
        MAX_BODY + 1
    )
    .into_bytes();
    message.resize(message.len() + MAX_BODY + 1, 0);
    message.extend_from_slice(b"\r\n0\r\n\r\n");
    let answer = send(server.address(), &message).expect("an answer");
    assert_eq!(answer.status, 413, "{}", answer.text());
}

#[test]
fn picture_may_be_16383_wide_or_high_and_no_more() {
    let server = Service::start();
    for (width, height) in [(16383, 1), (1, 16383)] {
        let picture = Picture::of(width, height, |x, y| {
            [(x + y) as u8; 4].map(|sample| sample | 1)
        });
        let opaque = Picture {
            pixels: picture
                .pixels
                .iter()
                .map(|&[r, g, b, _]| [r, g, b, 255])
                .collect(),
            ..picture
        };
        let answer = server.convert(&[], "image/png", &opaque.png());
        assert_eq!(answer.status, 200, "{width}x{height}: {}", answer.text());
        let decoded = Picture::decode(&answer.body);
        assert_eq!((decoded.width, decoded.height), (width, height));
    }
    for (width, height) in [(16384, 1), (1, 16384)] {
        let answer = server.convert(
            &[],
            "image/png",
            &Picture::flat(width, height, [1, 2, 3]).png(),
        );
        let detail = answer.problem(400, "image_too_wide");
        assert!(detail.contains("16383"), "the bound is not named: {detail}");
    }
}

#[test]
fn picture_over_100_million_pixels_is_400() {
    let server = Service::start();
    // 100,016,000 pixels of one bit: 12 KB as a file.
    let (width, height) = (16_000, 6251);
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let data = vec![0; width as usize / 8 * height as usize];
    encoder
        .write_header()
        .expect("a Vec takes all")
        .write_image_data(&data)
        .expect("as many as declared");
    let detail = server
        .convert(&[], "image/png", &png)
        .problem(400, "too_many_pixels");
    assert!(
        detail.contains("100000000"),
        "the bound is not named: {detail}"
    );
}

#[test]
fn one_pixel_is_a_picture_in_every_format() {
    let server = Service::start();
    let dot = Picture::flat(1, 1, [200, 100, 50]);
    for (content_type, body) in [
        ("image/png", dot.png()),
        ("image/gif", dot.gif()),
        ("image/bmp", dot.bmp()),
    ] {
        let answer = server.convert(&[], content_type, &body);
        assert_eq!(answer.status, 200, "{content_type}: {}", answer.text());
        let decoded = Picture::decode(&answer.body);
        assert_eq!((decoded.width, decoded.height), (1, 1), "{content_type}");
    }
}
