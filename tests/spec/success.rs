//! What a successful conversion looks like: headers, alpha, determinism.

use crate::support::picture::{Picture, chunks};
use crate::support::service::{Service, Webp};

#[test]
fn success_is_a_webp_with_its_headers() {
    let server = Service::start();
    let answer = server.convert(&[], "image/png", &Picture::waves(123, 45).png());
    assert_eq!(answer.status, 200, "{}", answer.text());
    // The client of these tests reads exactly Content-Length bytes.
    assert_eq!(answer.header("content-type"), Some("image/webp"));
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.header("image-width"), Some("123"));
    assert_eq!(answer.header("image-height"), Some("45"));
    assert_eq!(
        answer.header("content-disposition"),
        None,
        "nobody asked for it"
    );
    assert!(
        answer
            .header("x-request-id")
            .is_some_and(|id| !id.is_empty())
    );
    let timing = answer
        .header("server-timing")
        .expect("a Server-Timing header");
    for stage in ["decode", "watermark", "encode"] {
        assert!(
            timing.contains(&format!("{stage};dur=")),
            "{stage} is not in {timing}"
        );
    }
    let decoded = Picture::decode(&answer.body);
    assert_eq!((decoded.width, decoded.height), (123, 45));
}

#[test]
fn large_answers_have_their_exact_length_too() {
    let server = Service::start();
    let answer = server.convert(
        &[("quality", "100"), ("mode", "lossy")],
        "image/png",
        &Picture::waves(500, 400).png(),
    );
    assert!(
        answer.body.len() > 32 << 10,
        "only {} bytes: too few to be a test",
        answer.body.len()
    );
    assert_eq!(
        answer.header("content-length"),
        Some(answer.body.len().to_string().as_str())
    );
}

#[test]
fn opaque_pictures_become_plain_lossy_webp() {
    let server = Service::start();
    let photograph = include_bytes!("../../testdata/coffee.jpg");
    let answer = server.convert(&[], "image/jpeg", photograph);
    assert_eq!(chunks(Webp(answer.body)), ["VP8 "]);
}

#[test]
fn alpha_is_kept_to_the_last_step() {
    let server = Service::start();
    let picture = Picture::of(70, 50, |x, y| {
        [x as u8 * 3, y as u8 * 5, 100, (x * 3 + y) as u8]
    });
    for quality in ["10", "85"] {
        let webp = server.webp(&[("quality", quality), ("mode", "lossy")], &picture.png());
        assert_eq!(chunks(&webp), ["VP8X", "ALPH", "VP8 "], "quality {quality}");
        let decoded = Picture::decode(&webp);
        let alpha = |picture: &Picture| {
            picture
                .pixels
                .iter()
                .map(|pixel| pixel[3])
                .collect::<Vec<u8>>()
        };
        assert!(
            alpha(&decoded) == alpha(&picture),
            "quality {quality}: alpha is not what it was"
        );
    }
}

#[test]
fn transparent_gif_keeps_its_transparency() {
    let server = Service::start();
    let picture = Picture::of(32, 32, |x, _| {
        if x < 16 {
            [200, 30, 30, 255]
        } else {
            [0, 0, 0, 0]
        }
    });
    let answer = server.convert(&[], "image/gif", &picture.gif());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let decoded = Picture::decode(&answer.body);
    assert_eq!((decoded.at(4, 4)[3], decoded.at(28, 4)[3]), (255, 0));
}

#[test]
fn real_photographs_come_out_smaller_and_close_to_what_they_were() {
    let server = Service::start();
    let path = |name| format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
    for (name, width, height) in [
        ("astronaut.jpg", 512, 512),
        ("coffee.jpg", 600, 400),
        ("chelsea.jpg", 451, 300),
        ("rocket.jpg", 629, 421),
    ] {
        let jpeg = std::fs::read(path(name)).expect(name);
        let [better, default, worse] = ["95", "85", "40"].map(|quality| {
            let answer = server.convert(&[("quality", quality)], "image/jpeg", &jpeg);
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            answer.body
        });
        assert!(
            default.len() < jpeg.len(),
            "{name}: {} bytes became {}",
            jpeg.len(),
            default.len()
        );
        let [better, default, worse] = [better, default, worse].map(Picture::decode);
        assert_eq!((default.width, default.height), (width, height), "{name}");
        // The picture at 95 stands for the original, which no other decoder is at hand to read.
        let differences = [&default, &worse].map(|picture| picture.difference(&better));
        assert!(
            differences[0] < 5.0 && differences[0] < differences[1],
            "{name}: 85 and 40 differ from 95 by {differences:?} on average"
        );
    }
}

#[test]
fn pictures_are_turned_upright() {
    let server = Service::start();
    let jpeg = include_bytes!("../../testdata/rotated.jpg");
    let answer = server.convert(&[], "image/jpeg", jpeg);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("image-width"), Some("40"));
    let picture = Picture::decode(&answer.body);
    assert_eq!((picture.width, picture.height), (40, 60));
    let [above, below] = [picture.at(20, 10), picture.at(20, 50)];
    assert!(
        above[0] > above[2] && below[2] > below[0],
        "red above blue: {above:?}, {below:?}"
    );
}

#[test]
fn the_same_request_gives_the_same_bytes() {
    let server = Service::start();
    let png = Picture::waves(99, 77).png();
    assert_eq!(
        server.webp(&[("watermark", "a")], &png),
        server.webp(&[("watermark", "a")], &png)
    );
}

#[test]
fn one_connection_carries_several_requests() {
    use std::io::{Read, Write};
    let server = Service::start();
    let mut stream = std::net::TcpStream::connect(server.address()).expect("it listens");
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(10)))
        .expect("a time");
    let png = Picture::waves(20, 20).png();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: image/png\r\nContent-Length: {}\r\n",
        server.target(&[]),
        server.address(),
        png.len()
    );
    stream
        .write_all(&[head.as_bytes(), b"\r\n", &png].concat())
        .expect("written");
    // The first answer's end is not looked for: the second request closes the connection after
    // both.
    stream
        .write_all(&[head.as_bytes(), b"Connection: close\r\n\r\n", &png].concat())
        .expect("written");
    let mut answers = Vec::new();
    stream
        .read_to_end(&mut answers)
        .expect("closed after the second answer");
    let count = String::from_utf8_lossy(&answers)
        .matches("HTTP/1.1 200 ")
        .count();
    assert_eq!(count, 2);
}
