//! Watermarks beyond the specification: scripts, places, sizes, rotation, tiles and outlines.

use crate::support::host::Host;
use crate::support::picture::{Area, Picture};
use crate::support::service::Service;

const GRAY: [u8; 3] = [90, 90, 90];
const SIZE: (u32, u32) = (240, 180);

fn gray() -> Picture {
    Picture::flat(SIZE.0, SIZE.1, GRAY)
}

/// The gray picture with a solid watermark and these parameters, at the best quality.
fn marked(server: &Service, parameters: &[(&str, &str)]) -> Picture {
    let mut all = vec![("quality", "100"), ("watermark_opacity", "100")];
    all.extend(parameters);
    Picture::decode(server.webp(&all, &gray().png()))
}

/// Where a picture is no longer gray: lossy coding moves a flat color by less than this.
fn mark(picture: &Picture) -> Area {
    let foreign = |pixel: [u8; 4]| (0..3).any(|i| pixel[i].abs_diff(GRAY[i]) > 24);
    picture.extent(foreign).expect("there is a watermark")
}

#[test]
fn scripts_of_the_world_are_drawn_and_each_in_its_own_shape() {
    let server = Service::start();
    let width = |text: &str| {
        let Area(left, _, right, _) = mark(&marked(&server, &[("watermark", text)]));
        right - left
    };
    for text in [
        "Tiếng Việt",
        "Ελληνικά",
        "Кириллица",
        "مرحبا",
        "שלום",
        "हिन्दी",
        "e\u{301}q\u{323}",
        "a\u{202e}b\u{202c}c",
    ] {
        assert!(width(text) > 10, "{text}");
    }
    // Joined letters are narrower than isolated ones.
    let (joined, isolated) = (width("ححح"), width("ح\u{200c}ح\u{200c}ح"));
    assert!(joined < isolated, "{joined} and {isolated} pixels");
    // A mark takes no room of its own.
    assert!(width("xx\u{302}x").abs_diff(width("xxx")) <= 1);
}

#[test]
fn characters_that_no_font_has_are_named_beside_scripts_that_are_there() {
    let server = Service::start();
    let answer = server.convert(
        &[("watermark", "שלום 漢 नमस्ते \u{e123}")],
        "image/png",
        &gray().png(),
    );
    let detail = answer.problem(400, "missing_characters");
    assert!(
        detail.contains("漢 (U+6F22), \u{e123} (U+E123)."),
        "{detail}"
    );
    for (name, text) in [("a bell", "a\u{7}"), ("a C1 control", "a\u{85}")] {
        let answer = server.convert(&[("watermark", text)], "image/png", &gray().png());
        answer.problem(400, "missing_characters");
        assert!(answer.text().contains("U+00"), "{name}: {}", answer.text());
    }
}

#[test]
fn watermark_position_has_the_middles_of_the_sides_too() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(40, 30, [255, 255, 0]).png());
    let url = host.url();
    for (kind, value) in [("watermark", "HHH"), ("watermark_image", &*url)] {
        for (position, across, down) in [
            ("top", 0, -1),
            ("left", -1, 0),
            ("right", 1, 0),
            ("bottom", 0, 1),
        ] {
            let parameters = [(kind, value), ("watermark_position", position)];
            let Area(left, top, right, bottom) = mark(&marked(&server, &parameters));
            for (near, far, place) in [(left, SIZE.0 - right, across), (top, SIZE.1 - bottom, down)]
            {
                let is_there = match place {
                    -1 => near.abs_diff(8) <= 2,
                    0 => near.abs_diff(far) <= 4,
                    _ => far.abs_diff(8) <= 2,
                };
                assert!(is_there, "{kind} {position}: {near} and {far} pixels free");
            }
        }
    }
}

#[test]
fn watermark_margin_is_kept_free_up_to_a_quarter_of_the_shorter_side() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(40, 30, [255, 255, 0]).png());
    let url = host.url();
    for (kind, value) in [("watermark", "HHH"), ("watermark_image", &*url)] {
        for (margin, kept) in [("0", 0), ("30", 30), ("45", 45), ("46", 45), ("16383", 45)] {
            let parameters = [
                (kind, value),
                ("watermark_position", "topLeft"),
                ("watermark_margin", margin),
            ];
            let Area(left, top, ..) = mark(&marked(&server, &parameters));
            assert!(
                left.abs_diff(kept) <= 2 && top.abs_diff(kept) <= 2,
                "{kind}, {margin}: {left} and {top} pixels free"
            );
        }
    }
}

#[test]
fn watermark_scale_is_the_share_of_the_pictures_width() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(40, 10, [255, 255, 0]).png());
    let url = host.url();
    for (kind, value) in [("watermark", "HHHH"), ("watermark_image", &*url)] {
        for (scale, expected) in [("10", 24), ("50", 120), ("90", 216)] {
            let parameters = [
                (kind, value),
                ("watermark_position", "center"),
                ("watermark_scale", scale),
                ("watermark_size", "200"),
            ];
            let Area(left, _, right, _) = mark(&marked(&server, &parameters));
            assert!(
                (right - left).abs_diff(expected) <= 2,
                "{kind}, {scale} %: {} pixels",
                right - left
            );
        }
        // A full width leaves the margins.
        let parameters = [(kind, value), ("watermark_scale", "100")];
        let Area(left, _, right, _) = mark(&marked(&server, &parameters));
        assert!(left.abs_diff(8) <= 2 && (240 - right).abs_diff(8) <= 2);
    }
}

#[test]
fn sizes_and_margins_in_percent_are_shares_of_the_shorter_side() {
    let server = Service::start();
    // The picture is 240 x 180.
    for (share, pixels) in [
        (("watermark_size", "10%"), ("watermark_size", "18")),
        (("watermark_size", "1%"), ("watermark_size", "8")),
        (("watermark_size", "auto"), ("watermark_size", "12")),
        (("watermark_margin", "12.5%"), ("watermark_margin", "23")),
        (("watermark_scale", "40%"), ("watermark_scale", "40")),
    ] {
        let [share, pixels] =
            [share, pixels].map(|pair| marked(&server, &[("watermark", "HHH"), pair]));
        assert!(share.pixels == pixels.pixels, "{pixels:?}");
    }
    // A sign that is not encoded is read, too.
    let png = gray().png();
    let convert = |size: &str| {
        let target = format!("{}&watermark=H&watermark_size={size}", server.target(&[]));
        let answer = server.request("POST", &target, &[("Content-Type", "image/png")], &png);
        assert_eq!(answer.status, 200, "{size}: {}", answer.text());
        answer.body
    };
    assert_eq!(convert("20%25"), convert("36"));
    assert_eq!(convert("20%"), convert("36"));
}

#[test]
fn a_long_text_of_a_relative_size_is_broken_at_spaces() {
    let server = Service::start();
    let height = |text: &str, size: &str| {
        let parameters = [
            ("watermark", text),
            ("watermark_size", size),
            ("watermark_position", "top"),
        ];
        let Area(left, top, right, bottom) = mark(&marked(&server, &parameters));
        assert!(
            left > 0 && right < 240,
            "{text} at {size}: {left} to {right}"
        );
        bottom - top
    };
    let long = ["HHHH"; 8].join(" ");
    let one = height("HHHH", "20");
    // Two lines of the same letters, where pixels give one line of smaller ones.
    assert!(height(&long, "auto") > 2 * height("HHHH", "12"));
    assert!(height(&long, "11%") > 2 * one);
    assert!(height(&long, "20") < one);
    assert!(height(&long.replace(' ', "\u{a0}"), "11%") < one);
}

#[test]
fn watermark_rotate_turns_clockwise_around_the_centre() {
    let server = Service::start();
    let host = Host::of(
        &Picture::of(80, 20, |x, _| {
            if x < 40 {
                [255, 0, 0, 255]
            } else {
                [255, 255, 0, 255]
            }
        })
        .png(),
    );
    let turned = |rotate: &str| {
        marked(
            &server,
            &[
                ("watermark_image", &host.url()),
                ("watermark_position", "center"),
                ("watermark_rotate", rotate),
            ],
        )
    };
    let upright = turned("0");
    assert_eq!(upright, turned("360"));
    assert_eq!(upright, turned("-360"));
    assert_eq!(turned("270"), turned("-90"));
    let Area(left, top, right, bottom) = mark(&turned("90"));
    assert!((right - left).abs_diff(20) <= 2 && (bottom - top).abs_diff(80) <= 2);
    // The red half, on the left, has come to the top.
    let above = turned("90").at(120, 70);
    assert!(above[1] < 90, "{above:?}");
    let Area(left, top, right, bottom) = mark(&turned("45"));
    assert!((right - left).abs_diff(71) <= 3 && (bottom - top).abs_diff(71) <= 3);
    // The corners of the box are free, those of the watermark are not.
    let picture = turned("45");
    let is_free = |x: u32, y: u32| (0..3).all(|i| picture.at(x, y)[i].abs_diff(GRAY[i]) < 24);
    assert!(is_free(right - 6, top + 6) && is_free(left + 6, bottom - 6));
    assert!(!is_free(right - 12, bottom - 12) && !is_free(left + 12, top + 12));
    let text = [("watermark", "HHHH"), ("watermark_rotate", "90")];
    let Area(left, top, right, bottom) = mark(&marked(&server, &text));
    assert!(bottom - top > 3 * (right - left), "text turns as well");
}

#[test]
fn watermark_tile_repeats_it_all_over() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(20, 12, [255, 255, 0]).png());
    let url = host.url();
    for (kind, value) in [("watermark", "HH"), ("watermark_image", &*url)] {
        for rotate in ["0", "-30"] {
            let parameters = [
                (kind, value),
                ("watermark_tile", "true"),
                ("watermark_rotate", rotate),
            ];
            let picture = marked(&server, &parameters);
            for y in (0..180).step_by(60) {
                for x in (0..240).step_by(60) {
                    let area = Area(x, y, x + 60, y + 60);
                    let difference = picture.difference_in(&gray(), area);
                    assert!(
                        difference > 5.0,
                        "{kind}, {rotate}: {difference:.1} in the 60 pixels at {x}, {y}"
                    );
                }
            }
        }
        let parameters = [(kind, value), ("watermark_tile", "false")];
        assert_eq!(
            marked(&server, &parameters),
            marked(&server, &[(kind, value)]),
            "{kind}"
        );
    }
}

#[test]
fn watermark_outline_sets_the_text_off_in_black_or_white() {
    let server = Service::start();
    let counts = |color: &str, outline: &str| {
        let picture = marked(
            &server,
            &[
                ("watermark", "HHH"),
                ("watermark_size", "60"),
                ("watermark_color", color),
                ("watermark_outline", outline),
            ],
        );
        let near = |sample: u8| {
            let is_near = |pixel: &&[u8; 4]| (0..3).all(|i| pixel[i].abs_diff(sample) < 30);
            picture.pixels.iter().filter(is_near).count()
        };
        (near(255), near(0))
    };
    for outline in ["outline", "shadow"] {
        let (white, black) = counts("white", outline);
        assert!(white > 500 && black > 300, "{outline}: {white}, {black}");
        let (white, black) = counts("black", outline);
        assert!(white > 300 && black > 500, "{outline}: {white}, {black}");
    }
    let (white, black) = counts("white", "none");
    assert!(white > 500 && black == 0, "{white}, {black}");
}

#[test]
fn opacity_0_is_invisible_with_everything_else() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(60, 40, [250, 250, 0]).png());
    let all = [
        ("watermark", "HHH"),
        ("watermark_image", &host.url()),
        ("watermark_outline", "outline"),
        ("watermark_scale", "70"),
        ("watermark_rotate", "33"),
        ("watermark_tile", "true"),
        ("watermark_opacity", "0"),
    ];
    assert_eq!(
        server.webp(&all, &gray().png()),
        server.webp(&[], &gray().png())
    );
}

#[test]
fn a_jpeg_keeps_its_own_samples_beside_the_watermark() {
    let server = Service::start();
    for file in ["coffee.jpg", "rotated.jpg"] {
        let jpeg = std::fs::read(format!("{}/testdata/{file}", env!("CARGO_MANIFEST_DIR")));
        let jpeg = jpeg.expect("it is there");
        let webp = |parameters: &[(&str, &str)]| {
            let answer = server.convert(parameters, "image/jpeg", &jpeg);
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.body
        };
        let plain = webp(&[("quality", "90")]);
        let text = ("watermark", "Mine");
        let invisible = [("quality", "90"), text, ("watermark_opacity", "0")];
        assert_eq!(webp(&invisible), plain, "{file}: nothing is drawn");
        let plain = Picture::decode(&plain);
        for (position, is_left, is_above) in [
            ("topLeft", true, true),
            ("bottomRight", false, false),
            ("topRight", false, true),
        ] {
            let drawn = [
                ("quality", "90"),
                text,
                ("watermark_color", "red"),
                ("watermark_scale", "40"),
                ("watermark_position", position),
                ("watermark_opacity", "100"),
            ];
            let marked = Picture::decode(webp(&drawn));
            let (width, height) = (plain.width, plain.height);
            assert_eq!((marked.width, marked.height), (width, height));
            let area = |is_left: bool, is_above: bool| {
                let across = if is_left {
                    (0, width / 2)
                } else {
                    (width / 2, width)
                };
                let down = if is_above {
                    (0, height / 2)
                } else {
                    (height / 2, height)
                };
                Area(across.0, down.0, across.1, down.1)
            };
            let under = marked.difference_in(&plain, area(is_left, is_above));
            let beside = marked.difference_in(&plain, area(!is_left, !is_above));
            assert!(
                under > 1.0 && under > 4.0 * beside,
                "{file}, {position}: {under} and {beside}"
            );
        }
    }
}

#[test]
fn the_longest_text_with_everything_ends_in_time() {
    let server = Service::start_with(&["--conversion-timeout", "20"]);
    let png = Picture::flat(1500, 1000, GRAY).png();
    // 16 KiB of URL: 9 bytes of it for a letter of three bytes in UTF-8, 6 for one of two.
    for text in [
        "क्षि".repeat(400),
        "ب\u{64b}".repeat(1200),
        "a\u{334}".repeat(1800),
        format!("a{}", "\u{301}".repeat(2500)),
        "a\n".repeat(3800),
        "W".repeat(15_000),
    ] {
        for rotate in ["0", "31"] {
            let parameters = [
                ("quality", "1"),
                ("watermark", text.as_str()),
                ("watermark_size", "200"),
                ("watermark_outline", "outline"),
                ("watermark_rotate", rotate),
                ("watermark_tile", "true"),
            ];
            let answer = server.convert(&parameters, "image/png", &png);
            let beginning: String = text.chars().take(4).collect();
            assert_eq!(answer.status, 200, "{beginning:?}, {rotate}");
        }
    }
}
