//! The parameters `crop` and `background` do what they say.

use crate::support::animation::{animated, animated_rgba, animated_webp};
use crate::support::picture::Picture;
use crate::support::service::Service;
use png::{BlendOp, DisposeOp};
use towebp_encoder::Encoder;
use towebp_encoder::player::play;

const LOSSLESS: (&str, &str) = ("mode", "lossless");

/// The part of a picture from 5, 4 on, 20 x 10 pixels.
fn part(picture: &Picture) -> Picture {
    Picture::of(20, 10, |x, y| picture.at(x + 5, y + 4))
}

const CROP: (&str, &str) = ("crop", "5,4,20,10");

#[test]
fn a_part_is_converted_and_then_resized() {
    let service = Service::start();
    let picture = Picture::waves(60, 40);
    for (media_type, file) in [("image/png", picture.png()), ("image/bmp", picture.bmp())] {
        let answer = service.convert(&[LOSSLESS, CROP], media_type, &file);
        assert!(
            Picture::decode(&answer.body) == part(&picture),
            "{media_type}"
        );
        let answer = service.convert(&[CROP, ("width", "10")], media_type, &file);
        let small = Picture::decode(&answer.body);
        assert_eq!((small.width, small.height), (10, 5), "{media_type}");
    }
    // Upright, it is 40 x 60 pixels.
    let turned = include_bytes!("../../testdata/rotated.jpg");
    for (crop, is_within) in [("0,0,40,60", true), ("0,0,60,40", false)] {
        let answer = service.convert(&[("crop", crop)], "image/jpeg", turned);
        assert_eq!(answer.status == 200, is_within, "{crop}: {}", answer.text());
    }
    for crop in ["5,4,56,10", "60,40,1,1", "0,31,1,10", "65535,0,1,1"] {
        let answer = service.convert(&[("crop", crop)], "image/png", &picture.png());
        let detail = answer.problem(400, "invalid_parameter");
        assert!(
            detail.contains("60 x 40") && detail.contains(crop),
            "{detail}"
        );
    }
    for crop in ["", "1,2,3", "1,2,3,0", "-1,2,3,4", "1,2,3,4,5", "a,b,c,d"] {
        let answer = service.convert(&[("crop", crop)], "image/png", &picture.png());
        let detail = answer.problem(400, "invalid_parameter");
        assert!(detail.contains("such as 10,20,300,200"), "{detail}");
    }
}

#[test]
fn transparency_becomes_the_color() {
    let service = Service::start();
    let picture = Picture::of(40, 30, |x, y| [x as u8 * 6, y as u8 * 8, 9, (x * 6) as u8]);
    let expected = Picture::of(40, 30, |x, y| {
        let [red, green, blue, alpha] = picture.at(x, y).map(u32::from);
        let over = |above, below| ((above * alpha + below * (255 - alpha) + 127) / 255) as u8;
        [over(red, 255), over(green, 204), over(blue, 0), 255]
    });
    let background = ("background", "#ffcc00");
    let answer = service.convert(&[LOSSLESS, background], "image/png", &picture.png());
    assert!(Picture::decode(&answer.body) == expected);
    let answer = service.convert(&[LOSSLESS, background, CROP], "image/png", &picture.png());
    assert!(Picture::decode(&answer.body) == part(&expected));
    let wrong = service.convert(&[("background", "reddish")], "image/png", &picture.png());
    let detail = wrong.problem(400, "invalid_parameter");
    assert!(detail.contains("white, black"), "{detail}");
    let both = [background, ("if_larger", "original")];
    let answer = service.convert(&both, "image/png", &picture.png());
    answer.problem(400, "invalid_parameter");
}

#[test]
fn animations_are_cropped_and_laid_on_the_color() {
    let service = Service::start_with(&["--accept", "webp"]);
    let frame = |shift: u32| {
        Picture::of(40, 30, |x, y| {
            let is_inside = (x + shift) % 40 < 20 && y > 7;
            if is_inside {
                [200, y as u8, shift as u8, 255]
            } else {
                [0; 4]
            }
        })
    };
    let frames = [frame(0), frame(6), frame(25)];
    let files = [
        ("image/gif", animated(&frames)),
        (
            "image/png",
            animated_rgba(&frames, DisposeOp::Background, BlendOp::Over),
        ),
        ("image/webp", animated_webp(&frames, Encoder::lossless())),
    ];
    for (media_type, file) in files {
        let plain = service.convert(&[LOSSLESS], media_type, &file);
        let plain = play(&plain.body);
        let given = [LOSSLESS, CROP, ("background", "blue")];
        let answer = service.convert(&given, media_type, &file);
        let played = play(&answer.body);
        assert_eq!(answer.header("image-width"), Some("20"), "{media_type}");
        assert_eq!(played.len(), 3, "{media_type}");
        for (shown, whole) in played.iter().zip(&plain) {
            let whole = whole.0.as_chunks::<4>().0;
            let whole = Picture::of(40, 30, |x, y| match whole[(y * 40 + x) as usize] {
                [.., 0] => [0, 0, 255, 255],
                pixel => pixel,
            });
            assert!(
                shown.0 == part(&whole).pixels.as_flattened(),
                "{media_type}"
            );
        }
        let given = [
            CROP,
            ("width", "10"),
            ("background", "blue"),
            ("watermark", "a"),
        ];
        let answer = service.convert(&given, media_type, &file);
        let height = answer.header("image-height");
        assert_eq!(height, Some("5"), "{media_type}: {}", answer.text());
    }
}
