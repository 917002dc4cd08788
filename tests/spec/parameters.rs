//! The table of query parameters, down to the pixels.

use crate::support::host::Host;
use crate::support::picture::{Area, HALVES_JPEG, Picture};
use crate::support::service::{Service, Webp};

const GRAY: [u8; 3] = [90, 90, 90];
const SIZE: (u32, u32) = (240, 180);

fn gray() -> Picture {
    Picture::flat(SIZE.0, SIZE.1, GRAY)
}

/// The gray picture with these parameters, at the best quality.
fn marked(server: &Service, parameters: &[(&str, &str)]) -> Picture {
    let mut all = vec![("quality", "100")];
    all.extend(parameters);
    let picture = Picture::decode(server.webp(&all, &gray().png()));
    assert_eq!((picture.width, picture.height), SIZE);
    picture
}

/// Where a picture is no longer gray: lossy coding moves a flat color by less than this.
fn mark(picture: &Picture) -> Area {
    let foreign = |pixel: [u8; 4]| (0..3).any(|i| pixel[i].abs_diff(GRAY[i]) > 24);
    picture.extent(foreign).expect("there is a watermark")
}

#[test]
fn token_is_taken_from_the_query() {
    let server = Service::start();
    server.webp(&[], &gray().png());
}

#[test]
fn quality_is_0_to_100_and_85_by_default() {
    let server = Service::start();
    let picture = Picture::waves(160, 120);
    let png = picture.png();
    let steps = ["0", "25", "50", "75", "85", "95", "100"];
    let answers: Vec<Webp> = steps
        .iter()
        .map(|quality| server.webp(&[("mode", "lossy"), ("quality", quality)], &png))
        .collect();
    let default = server.webp(&[("mode", "lossy")], &png);
    assert_eq!(default, answers[4], "the default is not 85");
    for (pair, names) in answers.windows(2).zip(steps.windows(2)) {
        assert!(
            pair[0].0.len() < pair[1].0.len(),
            "{names:?}: {} and {} bytes",
            pair[0].0.len(),
            pair[1].0.len()
        );
        let [worse, better] = [0, 1].map(|i| Picture::decode(&pair[i]).difference(&picture));
        assert!(
            worse > better,
            "{names:?}: mean differences {worse} and {better}"
        );
    }
}

#[test]
fn watermark_is_url_encoded_text() {
    let server = Service::start();
    let png = gray().png();
    let encoded = server.webp(&[("watermark", "© a+b & c")], &png);
    let target = |text: &str| format!("{}&watermark={text}", server.target(&[]));
    let typed = [("Content-Type", "image/png")];
    let plus = server.request("POST", &target("%C2%A9+a%2Bb+%26+c"), &typed, &png);
    assert_eq!(Webp(plus.body), encoded, "+ and %20 both mean a space");
    let other = server.request("POST", &target("%C2%A9+a+b+%26+c"), &typed, &png);
    assert_ne!(Webp(other.body), encoded, "%2B means a plus sign");
}

#[test]
fn watermark_size_is_8_to_200_and_scales_the_text() {
    let server = Service::start();
    let height = |size: &str| {
        let Area(_, top, _, bottom) = mark(&marked(
            &server,
            &[
                ("watermark", "H"),
                ("watermark_size", size),
                ("watermark_opacity", "100"),
            ],
        ));
        f64::from(bottom - top)
    };
    // A capital H is about 0.7 em high in any usual font.
    for (size, em) in [("24", 24.0), ("60", 60.0), ("120", 120.0)] {
        let share = height(size) / em;
        assert!(
            (0.55..0.85).contains(&share),
            "size {size}: H is {share:.2} em high"
        );
    }
    assert!(height("8") >= 4.0);
}

#[test]
fn watermark_color_is_a_name_or_hexadecimal() {
    let server = Service::start();
    let colors = [
        ("white", [255, 255, 255]),
        ("black", [0, 0, 0]),
        ("red", [255, 0, 0]),
        ("blue", [0, 0, 255]),
        ("yellow", [255, 255, 0]),
        ("#12C848", [0x12, 0xc8, 0x48]),
        ("#12c848", [0x12, 0xc8, 0x48]),
    ];
    for (name, color) in colors {
        let text = [
            ("watermark", "HHH"),
            ("watermark_size", "60"),
            ("watermark_color", name),
            ("watermark_opacity", "100"),
        ];
        let near = |pixel: [u8; 4]| (0..3).all(|i| pixel[i].abs_diff(color[i]) < 30);
        assert!(
            marked(&server, &text).extent(near).is_some(),
            "no pixel is {name}"
        );
    }
    // Which gray is not said.
    mark(&marked(
        &server,
        &[
            ("watermark", "HHH"),
            ("watermark_color", "gray"),
            ("watermark_opacity", "100"),
        ],
    ));
}

#[test]
fn watermark_image_is_a_png_or_jpeg_drawn_as_it_is() {
    let server = Service::start();
    let png = Host::of(
        &Picture::of(64, 48, |x, _| {
            if x < 32 {
                [200, 30, 30, 255]
            } else {
                [30, 30, 200, 255]
            }
        })
        .png(),
    );
    let jpeg = Host::of(HALVES_JPEG);
    for host in [png, jpeg] {
        let picture = marked(
            &server,
            &[
                ("watermark_image", &host.url()),
                ("watermark_opacity", "100"),
            ],
        );
        let Area(left, top, right, bottom) = mark(&picture);
        let (width, height) = (right - left, bottom - top);
        assert!(
            width.abs_diff(64) <= 2 && height.abs_diff(48) <= 2,
            "64x48 became {width}x{height}"
        );
        let [red, blue] = [
            picture.at(left + 12, top + 24),
            picture.at(right - 12, top + 24),
        ];
        assert!(red[0] > 180 && red[2] < 60, "the left half is {red:?}");
        assert!(blue[2] > 180 && blue[0] < 60, "the right half is {blue:?}");
    }
}

#[test]
fn transparent_parts_of_watermark_image_leave_the_picture_alone() {
    let server = Service::start();
    let ring = Picture::of(60, 60, |x, y| {
        let inside = (20..40).contains(&x) && (20..40).contains(&y);
        [255, 255, 0, if inside { 0 } else { 255 }]
    });
    let host = Host::of(&ring.png());
    let picture = marked(
        &server,
        &[
            ("watermark_image", &host.url()),
            ("watermark_opacity", "100"),
        ],
    );
    let Area(left, top, ..) = mark(&picture);
    let hole = picture.at(left + 30, top + 30);
    assert!(
        (0..3).all(|i| hole[i].abs_diff(GRAY[i]) < 24),
        "the hole is {hole:?}"
    );
    let rim = picture.at(left + 10, top + 30);
    assert!(
        rim[0] > 220 && rim[1] > 220 && rim[2] < 60,
        "the rim is {rim:?}"
    );
}

#[test]
fn watermark_position_puts_both_kinds_in_their_corner() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(40, 30, [255, 255, 0]).png());
    let url = host.url();
    let (width, height) = SIZE;
    let plain = marked(&server, &[]);
    let positions = [
        ("topLeft", [true, false, false, false]),
        ("topRight", [false, true, false, false]),
        ("bottomLeft", [false, false, true, false]),
        ("bottomRight", [false, false, false, true]),
        ("center", [false; 4]),
    ];
    for (kind, value) in [("watermark", "Hello"), ("watermark_image", &*url)] {
        for (position, touched) in positions {
            let picture = marked(
                &server,
                &[
                    (kind, value),
                    ("watermark_position", position),
                    ("watermark_opacity", "100"),
                ],
            );
            let Area(left, top, right, bottom) = mark(&picture);
            let corners = [
                (0, 0),
                (width - 80, 0),
                (0, height - 60),
                (width - 80, height - 60),
            ];
            for ((x, y), touched) in corners.into_iter().zip(touched) {
                let difference = picture.difference_in(&plain, Area(x, y, x + 80, y + 60));
                assert_eq!(
                    difference > 3.0,
                    touched,
                    "{kind} {position}: the 80x60 pixels at {x},{y} differ by {difference:.2} on average"
                );
            }
            if position == "center" {
                let off = (
                    i64::from(left + right) - i64::from(width),
                    i64::from(top + bottom) - i64::from(height),
                );
                // A line of text is centred as a line, not by the outline of its glyphs.
                assert!(
                    off.0.abs() <= 6 && off.1.abs() <= 24,
                    "{kind}: off the centre by half of {off:?}"
                );
            } else {
                let margins = [left.min(width - right), top.min(height - bottom)];
                assert!(
                    margins.iter().all(|margin| (1..=30).contains(margin)),
                    "{kind} {position}: {margins:?}"
                );
            }
        }
    }
}

#[test]
fn watermark_settings_without_a_watermark_change_nothing() {
    let server = Service::start();
    let png = Picture::waves(50, 40).png();
    let settings = [
        ("watermark_size", "40"),
        ("watermark_color", "red"),
        ("watermark_position", "center"),
        ("watermark_opacity", "100"),
        ("watermark_outline", "outline"),
        ("watermark_margin", "3"),
        ("watermark_scale", "30"),
        ("watermark_rotate", "45"),
        ("watermark_tile", "true"),
    ];
    assert_eq!(server.webp(&settings, &png), server.webp(&[], &png));
}

#[test]
fn watermark_opacity_0_is_invisible_50_is_half_and_100_is_solid() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(60, 40, [250, 250, 0]).png());
    let url = host.url();
    let plain = server.webp(&[("quality", "100")], &gray().png());
    for (kind, value) in [("watermark", "Hello"), ("watermark_image", &*url)] {
        let all = [
            ("quality", "100"),
            (kind, value),
            ("watermark_opacity", "0"),
        ];
        assert_eq!(
            server.webp(&all, &gray().png()),
            plain,
            "{kind} at opacity 0 is visible"
        );
    }
    let center = |opacity: &str| {
        let all = [
            ("watermark_image", &*url),
            ("watermark_position", "center"),
            ("watermark_opacity", opacity),
        ];
        marked(&server, &all).at(SIZE.0 / 2, SIZE.1 / 2)
    };
    for (opacity, expected) in [("50", [170, 170, 45]), ("100", [250, 250, 0])] {
        let pixel = center(opacity);
        assert!(
            (0..3).all(|i| pixel[i].abs_diff(expected[i]) < 10),
            "opacity {opacity}: {pixel:?}"
        );
    }
}
