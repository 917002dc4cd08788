//! With loss or without, moving or still: what the parameters `mode`, `lossless`, `near_lossless`,
//! `alpha_quality` and `animation` give.

use crate::support::Response;
use crate::support::animation::animated_rgba;
use crate::support::picture::{Picture, chunks};
use crate::support::service::Service;
use gif::{DisposalMethod, Encoder, Frame, Repeat};
use image_webp::{LoopCount, WebPDecoder};
use png::{BlendOp, DisposeOp};
use std::io::Cursor;
use towebp_encoder::player::play;

/// Flat colors, as a diagram has.
fn graphic() -> Picture {
    Picture::of(120, 90, |x, y| match (x / 30 + y / 30) % 3 {
        0 => [250, 250, 250, 255],
        1 => [200, 30, 40, 255],
        _ => [20, 40, 160, 255],
    })
}

fn mode(answer: &Response) -> &str {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-webp-mode").expect("it is always told")
}

#[test]
fn drawings_lose_nothing_and_photographs_do_unless_it_is_asked_for() {
    let service = Service::start();
    let (graphic, waves) = (graphic(), Picture::waves(120, 90));
    for (picture, parameter, expected) in [
        (&graphic, None, "lossless"),
        (&graphic, Some("lossy"), "lossy"),
        (&graphic, Some("lossless"), "lossless"),
        (&waves, Some("auto"), "lossy"),
        (&waves, Some("lossless"), "lossless"),
    ] {
        let parameters: Vec<_> = parameter.map(|mode| ("mode", mode)).into_iter().collect();
        let answer = service.convert(&parameters, "image/png", &picture.png());
        assert_eq!(mode(&answer), expected, "{parameter:?}");
        let name = if expected == "lossy" { "VP8 " } else { "VP8L" };
        assert_eq!(chunks(&answer.body), [name], "{parameter:?}");
        if expected == "lossless" {
            let difference = Picture::decode(&answer.body).difference(picture);
            assert!(difference == 0.0, "{parameter:?}: {difference}");
        }
    }
    let smaller = service.convert(&[], "image/png", &graphic.png()).body.len();
    let larger = service.convert(&[("mode", "lossy")], "image/png", &graphic.png());
    assert!(smaller < larger.body.len(), "{smaller} bytes");
    let wrong = service.convert(&[("mode", "tiny")], "image/png", &graphic.png());
    let detail = wrong.problem(400, "invalid_parameter");
    assert!(detail.contains("auto, lossy or lossless"), "{detail}");
}

#[test]
fn alpha_may_be_rounded_beside_lossy_pixels() {
    let service = Service::start();
    let soft = Picture::of(64, 64, |x, y| [200, 100, 50, (x * 2 + y * 2) as u8]);
    let alphas = |quality: &str| {
        let parameters = [("mode", "lossy"), ("alpha_quality", quality)];
        let decoded = Picture::decode(service.webp(&parameters, &soft.png()));
        let mut alphas: Vec<u8> = (0..64)
            .flat_map(|y| (0..64).map(move |x| (x, y)))
            .map(|(x, y)| decoded.at(x, y)[3])
            .collect();
        alphas.sort_unstable();
        alphas.dedup();
        alphas.len()
    };
    assert_eq!(alphas("100"), 127);
    assert_eq!(alphas("-3"), 2, "capped to 0");
    assert!((3..30).contains(&alphas("60")));
}

#[test]
fn near_lossless_is_off_by_no_more_than_it_says() {
    let service = Service::start();
    let noise = Picture::of(120, 90, |x, y| {
        let mixed = (x + 120 * y).wrapping_mul(2_654_435_761);
        let [red, green, blue, _] = (mixed ^ mixed >> 15)
            .wrapping_mul(2_246_822_519)
            .to_be_bytes();
        [red / 4, green / 4, blue / 4, 255]
    });
    let convert = |near: &str| {
        let parameters = [("lossless", "true"), ("near_lossless", near)];
        let answer = service.convert(&parameters, "image/png", &noise.png());
        assert_eq!(mode(&answer), "lossless", "near_lossless={near}");
        let decoded = Picture::decode(&answer.body);
        let places = (0..90).flat_map(|y| (0..120).map(move |x| (x, y)));
        let off = places.flat_map(|(x, y)| {
            let samples = noise.at(x, y).into_iter().zip(decoded.at(x, y));
            samples.map(|(a, b)| a.abs_diff(b))
        });
        (off.max().expect("pixels"), answer.body.len())
    };
    let (exact, bytes) = convert("100");
    assert_eq!(exact, 0);
    assert_eq!(convert("400"), (exact, bytes), "capped to 100");
    for (near, most) in [("80", 1), ("60", 2), ("-1", 5)] {
        let (off, fewer) = convert(near);
        assert_eq!(off, most, "near_lossless={near}");
        assert!(
            fewer < bytes,
            "near_lossless={near}: {fewer} bytes, {bytes} exactly"
        );
    }
    // Repeats exactly, and would no more once it is rounded.
    let waves = Picture::waves(120, 90).png();
    let waves = |near| {
        service
            .webp(&[("lossless", "true"), ("near_lossless", near)], &waves)
            .0
            .len()
    };
    assert!(waves("80") <= waves("100"), "never more than exactly");
    let contradiction = [("lossless", "true"), ("mode", "lossy")];
    let answer = service.convert(&contradiction, "image/png", &noise.png());
    let detail = answer.problem(400, "invalid_parameter");
    assert!(
        detail.contains("lossless") && detail.contains("mode"),
        "{detail}"
    );
}

/// A square that moves over a ground, `count` frames of 70 ms each.
fn moving(count: u16, repeat: Repeat) -> Vec<u8> {
    let mut file = Vec::new();
    let palette = [240, 240, 240, 200, 0, 0];
    let mut encoder = Encoder::new(&mut file, 60, 40, &palette).expect("a valid palette");
    encoder.set_repeat(repeat).expect("it is written");
    for number in 0..count {
        let inside =
            |x: u16, y: u16| (3 * number..3 * number + 8).contains(&x) && (10..18).contains(&y);
        let indices: Vec<u8> = (0..40)
            .flat_map(|y| (0..60).map(move |x| u8::from(inside(x, y))))
            .collect();
        let frame = Frame {
            width: 60,
            height: 40,
            delay: 7,
            dispose: DisposalMethod::Keep,
            buffer: indices.into(),
            ..Frame::default()
        };
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    file
}

#[test]
fn gifs_keep_moving() {
    let service = Service::start();
    let gif = moving(5, Repeat::Finite(2));
    let answer = service.convert(&[], "image/gif", &gif);
    assert_eq!(mode(&answer), "lossless", "it is graphic");
    assert_eq!(
        (answer.header("image-width"), answer.header("image-height")),
        (Some("60"), Some("40"))
    );
    assert!(
        answer.body.len() < gif.len(),
        "{} of {} bytes",
        answer.body.len(),
        gif.len()
    );
    let mut decoder = WebPDecoder::new(Cursor::new(&answer.body)).expect("a WebP file");
    assert_eq!(decoder.num_frames(), 5);
    assert_eq!(
        decoder.loop_count(),
        LoopCount::Times(3.try_into().expect("not 0"))
    );
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut frame = vec![0; decoder.output_buffer_size().expect("small")];
    for number in 0..5 {
        assert_eq!(decoder.read_frame(&mut frame).expect("a whole frame"), 70);
        let at = |x: usize| &frame[(12 * 60 + x) * channels..][..3];
        for (shown, expected) in [
            (at(3 * number), [200, 0, 0]),
            (at(3 * number + 8), [240; 3]),
        ] {
            // This decoder loses up to 1 where it draws one frame over another.
            let is_alike = shown.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1);
            assert!(
                is_alike,
                "frame {number}: {shown:?} instead of {expected:?}"
            );
        }
    }
    assert_eq!(service.conversions(), 1);

    let still = service.convert(&[("animation", "first")], "image/gif", &gif);
    let decoded = Picture::decode(&still.body);
    assert_eq!((decoded.width, decoded.at(1, 12)), (60, [200, 0, 0, 255]));
    let once = service.convert(&[], "image/gif", &moving(1, Repeat::Infinite));
    assert_eq!(chunks(&once.body), ["VP8L"], "one frame is a still picture");
}

#[test]
fn animated_pngs_keep_moving_and_are_limited() {
    let service = Service::start_with(&["--max-frames", "3"]);
    let pictures =
        [[200, 0, 0], [0, 200, 0], [0, 0, 200]].map(|color| Picture::flat(60, 40, color));
    let png = |pictures: &[Picture]| animated_rgba(pictures, DisposeOp::None, BlendOp::Source);
    let answer = service.convert(&[], "image/png", &png(&pictures));
    assert_eq!(mode(&answer), "lossless", "it is graphic");
    let decoder = WebPDecoder::new(Cursor::new(&answer.body)).expect("a WebP file");
    assert_eq!(
        (decoder.num_frames(), decoder.loop_count()),
        (3, LoopCount::Forever)
    );
    let played = play(&answer.body);
    for ((canvas, milliseconds), picture) in played.iter().zip(&pictures) {
        assert_eq!(*milliseconds, 40);
        assert!(canvas == picture.pixels.as_flattened());
    }
    let four = png(&[&pictures[..], &pictures[..1]].concat());
    let refused = service.convert(&[], "image/png", &four);
    let detail = refused.problem(400, "too_many_frames");
    assert!(detail.contains("animation=first"), "{detail}");
    let first = service.convert(&[("animation", "first")], "image/png", &four);
    assert_eq!(Picture::decode(&first.body), pictures[0]);
    // Without its last byte the end is missing, and a changed one is in the last frame.
    let mut damaged = png(&pictures);
    let in_data = damaged.len() - 40;
    damaged[in_data] ^= 1;
    for file in [&damaged, &png(&pictures)[..in_data]] {
        let detail = service
            .convert(&[], "image/png", file)
            .problem(400, "invalid_image");
        assert!(detail.contains("animation is damaged"), "{detail}");
    }
    assert_eq!(service.conversions(), 2);
}

#[test]
fn every_frame_has_the_watermark() {
    let service = Service::start();
    let gif = moving(3, Repeat::Infinite);
    let parameters = [
        ("watermark", "\u{2588}"),
        ("watermark_color", "black"),
        ("watermark_opacity", "100"),
        ("watermark_position", "bottomLeft"),
        ("mode", "lossless"),
    ];
    let answer = service.convert(&parameters, "image/gif", &gif);
    let mut decoder = WebPDecoder::new(Cursor::new(&answer.body)).expect("a WebP file");
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut frame = vec![0; decoder.output_buffer_size().expect("small")];
    for number in 0..3 {
        decoder.read_frame(&mut frame).expect("a whole frame");
        let black = frame
            .chunks(channels)
            .filter(|pixel| pixel[..3] == [0; 3])
            .count();
        assert!(black > 50, "frame {number}: {black} black pixels");
    }
}

#[test]
fn frames_and_their_pixels_are_limited() {
    let service = Service::start_with(&["--max-frames", "4"]);
    let four = service.convert(&[], "image/gif", &moving(4, Repeat::Infinite));
    assert_eq!(four.status, 200, "{}", four.text());
    let five = moving(5, Repeat::Infinite);
    let refused = service.convert(&[], "image/gif", &five);
    let detail = refused.problem(400, "too_many_frames");
    assert!(
        detail.contains('4') && detail.contains("animation=first"),
        "{detail}"
    );
    let first = service.convert(&[("animation", "first")], "image/gif", &five);
    assert_eq!(first.status, 200, "{}", first.text());

    let service = Service::start_with(&["--max-animation-pixels", "9600"]);
    let four = service.convert(&[], "image/gif", &moving(4, Repeat::Infinite));
    assert_eq!(four.status, 200, "{}", four.text());
    let refused = service.convert(&[], "image/gif", &five);
    let detail = refused.problem(400, "too_many_pixels");
    assert!(detail.contains("9600"), "{detail}");
    // They count as they come out, too: four of 66 x 44.
    let larger = [("width", "66"), ("enlarge", "true")];
    let four = service.convert(&larger, "image/gif", &moving(4, Repeat::Infinite));
    let detail = four.problem(400, "too_many_pixels");
    assert!(detail.contains("9600"), "{detail}");
}
