//! Sizes that follow the image's, and the lines into which long texts are broken.

use super::*;

fn of_size(text: &str, size: TextSize) -> TextWatermark {
    TextWatermark {
        size,
        ..watermark(text, 0)
    }
}

/// A text whose size is `percent` of the image's shorter side.
fn share(text: &str, percent: u32) -> TextWatermark {
    of_size(text, TextSize::Given(Length::Share(percent * 1000)))
}

/// The text on a black image.
fn drawn(size: Size, text: &TextWatermark, placement: &Placement) -> Image {
    let mut image = black(size.0, size.1);
    draw(&mut image, text, placement).expect("these letters exist");
    image
}

/// The number of lines: of stretches of rows that have something drawn.
fn lines(image: &Image) -> usize {
    let stride = image.width as usize * 3;
    let is_drawn = |row: &[u8]| row.iter().any(|&sample| sample > 60);
    let rows: Vec<bool> = image.pixels.chunks(stride).map(is_drawn).collect();
    rows.chunk_by(|a, b| a == b).filter(|rows| rows[0]).count()
}

#[test]
fn a_relative_size_is_a_share_of_the_shorter_side_with_a_least() {
    let em = |size: TextSize, image| size.em(image);
    for (image, expected) in [
        ((1000, 800), 20.0),
        ((800, 1000), 20.0),
        ((480, 9999), 12.0),
        ((30, 40), 12.0),
        ((16_000, 16_000), 400.0),
    ] {
        assert!(
            (em(TextSize::Auto, image) - expected).abs() < 1e-3,
            "{image:?}"
        );
    }
    let three = TextSize::Given(Length::Share(3000));
    assert!((em(three, (1000, 500)) - 15.0).abs() < 1e-3);
    assert!((em(three, (100, 100)) - 8.0).abs() < 1e-3);
    let pixels = TextSize::Given(Length::Pixels(24));
    assert!((em(pixels, (10, 10)) - 24.0).abs() < 1e-3);
}

#[test]
fn a_text_that_fits_is_drawn_as_one_of_the_same_pixels() {
    for outline in [Outline::None, Outline::Line, Outline::Shadow] {
        for rotate in [0, 30] {
            let placement = Placement {
                rotate,
                ..at(Position::BottomRight)
            };
            let with = |size| TextWatermark {
                outline,
                ..of_size("© Some One", size)
            };
            let size = (400, 300);
            let relative = drawn(
                size,
                &with(TextSize::Given(Length::Share(10_000))),
                &placement,
            );
            let pixels = drawn(size, &with(TextSize::Given(Length::Pixels(30))), &placement);
            assert!(relative == pixels, "{outline:?} {rotate}");
        }
    }
}

#[test]
fn a_long_text_is_broken_into_the_fewest_lines_that_fit() {
    // At 20 pixels, a word of four letters is 60 pixels wide.
    for (words, expected) in [
        (1, 1),
        (4, 1),
        (5, 2),
        (8, 2),
        (9, 3),
        (12, 3),
        (17, 5),
        (20, 5),
    ] {
        let text = vec!["HHHH"; words].join(" ");
        let image = drawn((300, 200), &share(&text, 10), &at(Position::BottomLeft));
        assert_eq!(lines(&image), expected, "{words} words");
        let edges = drawn_box(&image).expect("something was drawn");
        let (left, top, right, bottom) = edges;
        assert!(
            left >= 8 && top >= 8 && right <= 292 && bottom <= 192,
            "{words} words: {edges:?}"
        );
        // Capitals are 0.73 em high, and lines 1.164 em apart.
        let height = (14.6 + 23.3 * (expected - 1) as f32).round() as u32;
        assert!(
            (bottom - top).abs_diff(height) <= 2,
            "{words} words: {edges:?}"
        );
    }
}

#[test]
fn a_text_that_fits_in_no_five_lines_is_shrunk_in_them() {
    let text = vec!["HHHH"; 60].join(" ");
    for position in Position::ALL {
        let image = drawn((300, 200), &share(&text, 10), &at(position));
        assert_eq!(lines(&image), 5, "{position:?}");
        let (left, top, right, bottom) = drawn_box(&image).expect("something was drawn");
        assert!(left >= 8 && right <= 292, "{position:?}: {left} to {right}");
        assert!(right - left > 270, "{position:?}: {left} to {right}");
        assert!(bottom - top < 80, "{position:?}: {top} to {bottom}");
    }
    // Where there is no height for several lines, one is larger.
    let image = drawn((900, 20), &share(&text, 90), &at(Position::Center));
    assert_eq!(lines(&image), 2);
}

/// Each long text, and the same with its line breaks.
const BROKEN: [(&str, &str); 7] = [
    (
        "Hamburg fonts kerned Avocado",
        "Hamburg fonts\nkerned Avocado",
    ),
    (
        "Hamburg fonts\tkerned Avocado",
        "Hamburg fonts\nkerned Avocado",
    ),
    (
        "Hamburg fonts   kerned Avocado",
        "Hamburg fonts\nkerned Avocado",
    ),
    // The first words stand in the first line, on its right.
    ("שלום עולם מאוד תודה", "שלום עולם\nמאוד תודה"),
    ("مرحبا بالعالم الجميل شكرا", "مرحبا بالعالم\nالجميل شكرا"),
    // The paragraph's direction is that of its first letter.
    ("שלום עולם Latin end!", "שלום עולם\n\u{200f}Latin end!"),
    (
        "Latin begins שלום עולם!",
        "Latin begins\n\u{200e}שלום עולם!",
    ),
];

#[test]
fn a_broken_text_is_drawn_as_its_lines() {
    for (text, expected) in BROKEN {
        for position in [Position::TopLeft, Position::Bottom, Position::Right] {
            let size = (220, 200);
            let [broken, lines] =
                [text, expected].map(|text| drawn(size, &share(text, 12), &at(position)));
            assert!(broken == lines, "{text} {position:?}");
        }
    }
}

#[test]
fn lines_are_broken_nowhere_but_at_spaces_that_allow_it() {
    for (space, expected) in [
        (" ", 2),
        ("\t", 2),
        ("\u{2003}", 2),
        ("\u{200b}", 2),
        ("\u{a0}", 1),
        ("\u{202f}", 1),
        ("\u{2007}", 1),
        ("\u{2060}", 1),
        (" \u{2060}", 1),
        ("-", 1),
    ] {
        let text = ["HHHH"; 6].join(space);
        let image = drawn((300, 200), &share(&text, 10), &at(Position::Center));
        assert_eq!(lines(&image), expected, "{space:?}");
    }
}

#[test]
fn line_breaks_of_the_text_stay_and_count() {
    let long = ["HHHH"; 7].join(" ");
    for (text, expected) in [
        (format!("H\n{long}"), 3),
        (format!("{long}\n{long}"), 4),
        (format!("H\nH\nH\nH\n{long}"), 5),
        (format!("H\nH\nH\nH\nH\n{long}"), 6),
        (format!("{long}\n\nH"), 3),
    ] {
        let image = drawn((300, 300), &share(&text, 7), &at(Position::Top));
        assert_eq!(lines(&image), expected, "{text:?}");
    }
}

#[test]
fn texts_of_a_fixed_size_or_scale_and_tiles_are_not_broken() {
    let text = ["HHHH"; 9].join(" ");
    let image = drawn((300, 200), &watermark(&text, 20), &at(Position::Center));
    assert_eq!(lines(&image), 1);
    let scaled = Placement {
        scale: Some(80),
        ..at(Position::Center)
    };
    let image = drawn((300, 200), &share(&text, 10), &scaled);
    assert_eq!(lines(&image), 1);
    let tiled = Placement {
        is_tiled: true,
        ..at(Position::Center)
    };
    // A line that is as wide as the image allows.
    let tiles = |text: &TextWatermark| drawn((300, 200), text, &tiled);
    assert!(tiles(&share(&text, 10)) == tiles(&watermark(&text, 20)));
}

#[test]
fn a_rotated_text_is_broken_to_the_space_that_it_has() {
    let text = ["HHHH"; 12].join(" ");
    // Upright there is space for three lines of four words, and for two of eight on its side.
    let quarter = Placement {
        rotate: 90,
        ..at(Position::Center)
    };
    let upright = drawn((300, 600), &share(&text, 7), &at(Position::Center));
    assert_eq!(lines(&upright), 3);
    let turned = drawn((600, 300), &share(&text, 7), &quarter);
    let (left, top, right, bottom) = drawn_box(&turned).expect("something was drawn");
    assert!(
        bottom - top > 2 * (right - left),
        "{left} {top} {right} {bottom}"
    );
    for rotate in [-300, -45, 10, 45, 80, 135] {
        let placement = Placement {
            rotate,
            margin: Some(Length::Pixels(9)),
            ..at(Position::BottomRight)
        };
        let unbroken = text.replace(' ', "\u{a0}");
        let [broken, unbroken] =
            [&text, &unbroken].map(|text| drawn((300, 300), &share(text, 10), &placement));
        let sum = |image: &Image| -> u64 { image.pixels.iter().map(|&s| u64::from(s)).sum() };
        assert!(sum(&broken) > 2 * sum(&unbroken), "{rotate}: it is larger");
        let edges = drawn_box(&broken).expect("something was drawn");
        let (left, top, right, bottom) = edges;
        assert!(
            left >= 9 && top >= 9 && right <= 291 && bottom <= 291,
            "{rotate}: {edges:?}"
        );
    }
}

#[test]
fn of_a_text_without_end_the_beginning_is_drawn() {
    let size = (80, 60);
    for (position, rotate) in [
        (Position::TopLeft, 0),
        (Position::Top, 0),
        (Position::BottomRight, 0),
        (Position::BottomRight, 90),
        (Position::Center, 45),
    ] {
        let placement = Placement {
            rotate,
            ..at(position)
        };
        for text in [
            format!("██ {}", "word ".repeat(3000)),
            format!("██ {}", "שלום ".repeat(3000)),
            "W".repeat(3000),
            format!("{}\n{}", "word ".repeat(300), "W".repeat(400)),
        ] {
            let image = drawn(size, &of_size(&text, TextSize::Auto), &placement);
            let drawn = image.pixels.iter().step_by(3).filter(|&&red| red > 40);
            assert!(drawn.count() > 60, "{position:?} {rotate}");
            if rotate == 0 {
                let expected = if text.contains(' ') { 5 } else { 1 };
                assert!(lines(&image) <= expected, "{position:?}");
            }
        }
    }
    // The lines are filled: the same with what fits alone.
    let words = ["word"; 200].join(" ");
    let image = drawn(
        size,
        &of_size(&words, TextSize::Auto),
        &at(Position::TopRight),
    );
    let enough = ["word"; 60].join(" ");
    let same = drawn(
        size,
        &of_size(&enough, TextSize::Auto),
        &at(Position::TopRight),
    );
    assert!(image == same);
}

#[test]
fn breaking_ends_once_it_is_cancelled() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let text = share(&["HHHH"; 40].join(" "), 10);
    let checks = |text: &TextWatermark| {
        (0..20_000).find(|&allowed| {
            let checks = AtomicUsize::new(0);
            let is_unwanted = || checks.fetch_add(1, Ordering::Relaxed) >= allowed;
            let mut image = black(120, 80);
            let placement = at(Position::Center);
            let cancel = Cancel::when(&is_unwanted);
            match draw_text(&mut image, text, Fonts::bundled(), &placement, &cancel) {
                Ok(()) => true,
                Err(error) => {
                    assert_eq!(error, TextError::Cancelled, "after {allowed}");
                    false
                }
            }
        })
    };
    let [unbroken, broken] = [watermark(&text.text, 8), text].map(|text| checks(&text));
    assert!(broken > unbroken, "{broken:?} and {unbroken:?} checks");
}
