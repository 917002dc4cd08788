//! Texts drawn onto images, and the glyphs that shaping gives.

mod long;

use super::font::Face;
use super::*;
use crate::image::Layout;
use crate::watermark::{Length, Position};

fn watermark(text: &str, size: u16) -> TextWatermark {
    TextWatermark {
        text: text.to_owned(),
        size: TextSize::Given(Length::Pixels(size)),
        color: Color::new(255, 0, 0),
        outline: Outline::None,
    }
}

fn at(position: Position) -> Placement {
    Placement {
        position,
        opacity: 100,
        ..Placement::default()
    }
}

/// Draws with the bundled fonts.
fn draw(
    image: &mut Image,
    watermark: &TextWatermark,
    placement: &Placement,
) -> Result<(), TextError> {
    draw_text(
        image,
        watermark,
        Fonts::bundled(),
        placement,
        &Cancel::never(),
    )
}

fn black(width: u32, height: u32) -> Image {
    Image {
        width,
        height,
        layout: Layout::Rgb,
        pixels: vec![0; (width * height * 3) as usize],
    }
}

/// Left, top, right and bottom edge of what is not black.
fn drawn_box(image: &Image) -> Option<(u32, u32, u32, u32)> {
    let marked = (0..image.height)
        .flat_map(|y| (0..image.width).map(move |x| (x, y)))
        .filter(|(x, y)| image.pixels[(y * image.width + x) as usize * 3] != 0);
    marked.fold(None, |edges, (x, y)| {
        let (left, top, right, bottom) = edges.unwrap_or((x, y, x, y));
        Some((left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)))
    })
}

#[test]
fn the_letters_touch_the_margin_in_every_corner() {
    for (position, corner) in [
        (Position::TopLeft, (true, true)),
        (Position::TopRight, (false, true)),
        (Position::BottomLeft, (true, false)),
        (Position::BottomRight, (false, false)),
    ] {
        let mut image = black(300, 200);
        draw(&mut image, &watermark("Hgj\nlonger", 24), &at(position))
            .expect("these letters exist");
        let (left, top, right, bottom) = drawn_box(&image).expect("something was drawn");
        let (x, y) = corner;
        // The outermost pixels may be covered by less than half a level.
        let across = if x { left - 8 } else { 292 - right };
        let down = if y { top - 8 } else { 192 - bottom };
        assert!(
            across <= 1 && down <= 1,
            "{position:?}: {left}, {top} to {right}, {bottom}"
        );
    }
}

#[test]
fn the_center_is_central() {
    let mut image = black(301, 201);
    draw(&mut image, &watermark("HOH", 40), &at(Position::Center)).expect("these letters exist");
    let (left, top, right, bottom) = drawn_box(&image).expect("something was drawn");
    assert!(
        left.abs_diff(301 - right) <= 2 && top.abs_diff(201 - bottom) <= 2,
        "{left} {top} {right} {bottom}"
    );
}

#[test]
fn full_opacity_gives_exactly_the_color_and_none_leaves_the_image() {
    let mut image = black(200, 100);
    let before = image.clone();
    draw(
        &mut image,
        &watermark("███", 40),
        &Placement {
            opacity: 0,
            ..at(Position::Center)
        },
    )
    .expect("a full block exists");
    assert_eq!(image, before);
    draw(&mut image, &watermark("███", 40), &at(Position::Center)).expect("a full block exists");
    let (_, _, right, bottom) = drawn_box(&image).expect("something was drawn");
    let inside = ((bottom - 10) * 200 + right - 10) as usize * 3;
    assert_eq!(image.pixels[inside..inside + 3], [255, 0, 0]);
}

#[test]
fn edges_are_smooth() {
    let mut image = black(200, 100);
    draw(&mut image, &watermark("Ol/", 60), &at(Position::Center)).expect("these letters exist");
    let partial = image
        .pixels
        .iter()
        .step_by(3)
        .filter(|&&red| red != 0 && red != 255)
        .count();
    assert!(
        partial > 50,
        "only {partial} pixels between nothing and full"
    );
}

#[test]
fn a_text_that_is_too_wide_is_drawn_smaller() {
    let mut image = black(200, 100);
    let long = "The quick brown fox jumps over the lazy dog";
    draw(&mut image, &watermark(long, 200), &at(Position::BottomLeft))
        .expect("these letters exist");
    let (left, top, right, bottom) = drawn_box(&image).expect("something was drawn");
    assert!(
        left >= 8 && right <= 192 && top >= 8 && bottom <= 92,
        "{left}, {top} to {right}, {bottom}"
    );
    assert!(
        right - left > 170,
        "only {} of 184 pixels are used",
        right - left
    );
}

#[test]
fn tiny_images_and_endless_texts_do_no_harm() {
    let endless = "W".repeat(5000);
    for (width, height) in [(1, 1), (2, 300), (300, 1), (40, 40)] {
        for position in [Position::TopLeft, Position::BottomRight, Position::Center] {
            for text in ["x", "two\nlines", &endless] {
                let mut image = black(width, height);
                draw(&mut image, &watermark(text, 200), &at(position))
                    .expect("these letters exist");
            }
        }
    }
}

#[test]
fn characters_that_cannot_be_drawn_are_named_once_in_order() {
    let mut image = black(50, 50);
    let before = image.clone();
    let error = draw(
        &mut image,
        &watermark("a漢b字漢\u{7}", 24),
        &at(Position::Center),
    );
    assert_eq!(
        error,
        Err(TextError::MissingCharacters(vec!['漢', '字', '\u{7}']))
    );
    assert_eq!(image, before);
    assert_eq!(
        error.expect_err("as above").to_string(),
        "The text has characters that cannot be drawn: 漢 (U+6F22), 字 (U+5B57), U+0007."
    );
}

#[test]
fn spaces_tabs_and_line_ends_are_no_characters_to_miss() {
    let mut image = black(50, 50);
    let before = image.clone();
    draw(
        &mut image,
        &watermark(" \t\r\n\u{a0}\u{2009}\n", 24),
        &at(Position::Center),
    )
    .expect("only spaces");
    assert_eq!(image, before);
}

/// Glyphs by number and their origins in the font's units, as `HarfBuzz` gives them: its `hb-shape`
/// 6.0 of Debian with `--no-glyph-names --no-clusters --no-advances --remove-default-ignorables`,
/// by the file of `fonts/` of this face.
type Reference = (&'static str, Face, &'static [(u32, i32, i32)]);

#[rustfmt::skip]
const REFERENCES: &[Reference] = &[
    // Kerning: AV, VA, AT and To draw together.
    ("AVATAR To", 0, &[
        (36, 0, 0), (57, 1270, 0), (36, 2540, 0), (55, 3782, 0), (36, 4874, 0), (53, 6275, 0), (3, 7698, 0),
        (55, 8349, 0), (82, 9252, 0),
    ]),
    // Ligatures: ffi and ffl are one glyph.
    ("office fflag", 0, &[
        (82, 0, 0), (5044, 1253, 0), (70, 3233, 0), (72, 4359, 0), (3, 5619, 0), (5045, 6270, 0), (68, 8250, 0),
        (74, 9505, 0),
    ]),
    ("Tiếng Việt", 0, VIETNAMESE),
    // The same letters, and one that has no glyph with its marks, which are put onto it.
    ("e\u{301} Tie\u{302}\u{301}ng q\u{323}\u{307}", 0, &[
        (171, 0, 0), (3, 1260, 0), (55, 1911, 0), (76, 3099, 0), (2493, 3668, 0), (81, 4928, 0), (74, 6226, 0),
        (3, 7526, 0), (84, 8177, 0), (724, 9337, -429), (696, 9312, 0),
    ]),
    ("Ελλάδα", 0, &[(811, 0, 0), (848, 1294, 0), (848, 2506, 0), (833, 3718, 0), (841, 5068, 0), (838, 6321, 0)]),
    ("Москва", 0, &[(945, 0, 0), (979, 1767, 0), (982, 3020, 0), (975, 4146, 0), (967, 5383, 0), (965, 6590, 0)]),
    // Letters join, lam and alef are one, and all go from right to left.
    ("مرحبا", 0, &[(5256, 0, 0), (5260, 624, 0), (5277, 1242, 0), (5288, 2508, 0), (5341, 3638, 0)]),
    ("السلام", 0, &[(1390, 0, 0), (5366, 1268, 0), (5294, 2490, 0), (5337, 4317, 0), (1365, 4941, 0)]),
    ("مُحَمَّد", 0, &[
        (5284, 0, 0), (6020, 1113, -350), (5342, 1075, 0), (1399, 2347, -200), (5278, 2259, 0), (1400, 3619, -350),
        (5341, 3581, 0),
    ]),
    ("שלום", 0, &[(1332, 0, 0), (1324, 1359, 0), (1331, 1917, 0), (1344, 3081, 0)]),
    // The sign of i stands before the consonant that it follows in the text; half letters,
    // conjuncts, reph.
    ("हिन्दी", 1, &[(607, 0, 0), (61, 259, 0), (202, 790, 0), (42, 1099, 0), (653, 1619, 0)]),
    ("क्षत्रिय", 1, &[(179, 0, 0), (607, 712, 0), (269, 971, 0), (51, 1523, 0)]),
    ("र्कि", 1, &[(631, 0, 0), (25, 259, 0), (652, 1021, 0)]),
    ("मुझे", 1, &[(50, 0, 0), (69, 598, 0), (33, 598, 0), (75, 1354, 0)]),
    // A joiner keeps the half letter, a non-joiner the virama: neither is seen.
    ("क्\u{200d}ष", 1, &[(183, 0, 0), (59, 603, 0)]),
    ("क्\u{200c}ष", 1, &[(25, 0, 0), (81, 541, 0), (59, 762, 0)]),
];

const VIETNAMESE: &[(u32, i32, i32)] = &[
    (55, 0, 0),
    (76, 1188, 0),
    (2493, 1757, 0),
    (81, 3017, 0),
    (74, 4315, 0),
    (3, 5615, 0),
    (57, 6266, 0),
    (76, 7622, 0),
    (2501, 8191, 0),
    (87, 9451, 0),
];

/// The glyphs of a line: face, number and origin in the face's units.
fn shaped(text: &str) -> Vec<(Face, u32, i32, i32)> {
    let fonts = Fonts::bundled();
    let mut missing = Vec::new();
    let line = Paragraph::new(fonts, text, &Cancel::never()).as_line(&mut missing);
    assert!(missing.is_empty(), "{text}: {missing:?}");
    line.glyphs
        .iter()
        .map(|glyph| {
            let units = f32::from(fonts.font(glyph.face).units_per_em());
            let [x, y] = [glyph.x, -glyph.y].map(|length| (length * units).round() as i32);
            (glyph.face, glyph.id, x, y)
        })
        .collect()
}

#[test]
fn lines_are_shaped_as_by_harfbuzz() {
    for (text, face, expected) in REFERENCES {
        let expected: Vec<(Face, u32, i32, i32)> = expected
            .iter()
            .map(|&(id, x, y)| (*face, id, x, y))
            .collect();
        assert_eq!(shaped(text), expected, "{text}");
    }
}

/// The characters of a line from left to right, for those that are glyphs of their own.
fn seen(text: &str) -> String {
    let charmap = Fonts::bundled().font(0).charmap();
    let character = |id: u32| {
        let found = charmap
            .unicodes()
            .find(|(_, glyph)| glyph.to_u32() == id)
            .map(|(code, _)| code);
        found.and_then(char::from_u32).unwrap_or('?')
    };
    shaped(text)
        .iter()
        .map(|&(_, id, ..)| character(id))
        .collect()
}

#[test]
fn lines_of_both_directions_are_ordered_by_the_bidirectional_algorithm() {
    for (text, expected) in [
        // The first letter decides on the line; numbers keep their direction.
        ("abc אבג 12 דה xyz", "abc הד 12 גבא xyz"),
        ("אבג abc דה", "הד abc גבא"),
        ("אב 12-34", "12-34 בא"),
        // Brackets are mirrored, and belong to the line.
        ("אב (גד)", "(דג) בא"),
        ("a (אב) c", "a (בא) c"),
        // Marks, embeddings, overrides and isolates.
        ("אב!", "!בא"),
        ("\u{200e}אב!", "בא!"),
        ("אב!\u{200e}", "!בא"),
        ("\u{200f}ab!", "!ab"),
        ("\u{202b}ab!\u{202c}", "!ab"),
        ("\u{202e}abc\u{202c}d", "cbad"),
        ("a \u{2067}b! \u{5d0}\u{2069} c", "a א !b c"),
    ] {
        assert_eq!(seen(text), expected, "{text:?}");
    }
}

#[test]
fn characters_without_a_shape_of_their_own_are_not_seen() {
    let plain = shaped("ab");
    for invisible in [
        "\u{ad}",
        "\u{34f}",
        "\u{200b}",
        "\u{200c}",
        "\u{200d}",
        "\u{200e}",
        "\u{2060}",
        "\u{2066}\u{2069}",
        "\u{202a}\u{202c}",
        "\u{fe0e}",
        "\u{fe0f}",
        "\u{feff}",
        "\u{e0100}",
        "\u{61c}",
    ] {
        assert_eq!(shaped(&format!("a{invisible}b")), plain, "{invisible:?}");
        assert_eq!(shaped(invisible), [], "{invisible:?} alone");
    }
}

#[test]
fn each_character_comes_from_the_first_font_that_has_it() {
    let faces: Vec<Face> = shaped("a क b").iter().map(|glyph| glyph.0).collect();
    assert_eq!(faces, [0, 0, 1, 0, 0]);
    let mut fonts = Fonts::default();
    let devanagari = include_bytes!("../../../fonts/NotoSansDevanagari-Regular.ttf");
    fonts.add(devanagari.to_vec()).expect("a whole font");
    let mut missing = Vec::new();
    let line = Paragraph::new(&fonts, "a क b", &Cancel::never()).as_line(&mut missing);
    // The added font has the letter and the spaces around it.
    let faces: Vec<Face> = line.glyphs.iter().map(|glyph| glyph.face).collect();
    assert_eq!(faces, [1, 0, 0, 0, 1]);
    // A mark that the letter's font lacks still stands with its letter.
    let mixed = shaped("क\u{302}");
    assert_eq!(mixed.len(), 2, "{mixed:?}");
}

#[test]
fn arabic_letters_join_over_invisible_characters_and_not_over_a_space() {
    let isolated = shaped("ح ح");
    let joined = shaped("حح");
    assert_ne!(isolated[0].1, joined[0].1);
    assert_ne!(isolated[2].1, joined[1].1);
    let marked = shaped("ح\u{61c}ح");
    assert_eq!(
        joined.iter().map(|glyph| glyph.1).collect::<Vec<_>>(),
        marked.iter().map(|glyph| glyph.1).collect::<Vec<_>>()
    );
}

#[test]
fn the_size_is_the_height_of_the_em() {
    let mut image = black(300, 300);
    draw(&mut image, &watermark("H", 100), &at(Position::Center)).expect("H exists");
    let (_, top, _, bottom) = drawn_box(&image).expect("H is not blank");
    // Capitals of DejaVu Sans are 1493 of 2048 units high.
    assert_eq!(bottom - top, 73);
}

#[test]
fn lines_are_aligned_at_the_side_that_the_text_is_put_to() {
    let rows = |image: &Image| {
        let (_, top, _, bottom) = drawn_box(image).expect("something was drawn");
        let half = u32::midpoint(top, bottom);
        let part = |from: u32, to: u32| {
            let mut part = image.clone();
            for y in (0..image.height).filter(|y| !(from..to).contains(y)) {
                part.pixels[(y * 300 * 3) as usize..][..900].fill(0);
            }
            drawn_box(&part).expect("a line")
        };
        (part(0, half), part(half, image.height))
    };
    for position in Position::ALL {
        let mut image = black(300, 200);
        draw(&mut image, &watermark("HHHH\nHH", 24), &at(position)).expect("H exists");
        let (first, second) = rows(&image);
        let (left, right) = (first.0.abs_diff(second.0), first.2.abs_diff(second.2));
        match position.across() {
            Side::Near => assert!(
                left <= 1 && right > 20,
                "{position:?}: {first:?} {second:?}"
            ),
            Side::Middle => assert!(left.abs_diff(right) <= 2, "{position:?}: {left} {right}"),
            Side::Far => assert!(
                right <= 1 && left > 20,
                "{position:?}: {first:?} {second:?}"
            ),
        }
    }
}

#[test]
fn scale_gives_the_text_its_share_of_the_width() {
    for (percent, outline) in [
        (10, Outline::None),
        (50, Outline::None),
        (50, Outline::Line),
        (50, Outline::Shadow),
        (90, Outline::None),
    ] {
        let mut image = black(400, 300);
        let placement = Placement {
            scale: Some(percent),
            ..at(Position::Center)
        };
        let text = TextWatermark {
            color: Color::WHITE,
            outline,
            ..watermark("HOH", 24)
        };
        // White under the black outline.
        if outline != Outline::None {
            image.pixels.fill(90);
        }
        draw(&mut image, &text, &placement).expect("these letters exist");
        for pixel in image.pixels.chunks_mut(3) {
            pixel[0] = pixel[0].wrapping_sub(if outline == Outline::None { 0 } else { 90 });
        }
        let (left, _, right, _) = drawn_box(&image).expect("something was drawn");
        let (width, expected) = (right - left, 4 * u32::from(percent));
        // The end of a shadow is lighter than a level.
        let slack = match outline {
            Outline::None => 2,
            Outline::Line => 4,
            Outline::Shadow => 8,
        };
        assert!(
            width <= expected && width + slack >= expected,
            "{percent} %, {outline:?}: {width} pixels"
        );
    }
}

#[test]
fn a_quarter_turn_turns_every_pixel() {
    let mut upright = black(200, 200);
    let placement = Placement {
        margin: Some(Length::Pixels(20)),
        ..at(Position::Center)
    };
    draw(&mut upright, &watermark("Rg", 80), &placement).expect("these letters exist");
    for (rotate, from) in [
        (90, (|x, y| (y, 199 - x)) as fn(u32, u32) -> (u32, u32)),
        (180, |x, y| (199 - x, 199 - y)),
        (-90, |x, y| (199 - y, x)),
    ] {
        let mut turned = black(200, 200);
        let placement = Placement {
            rotate,
            ..placement
        };
        draw(&mut turned, &watermark("Rg", 80), &placement).expect("these letters exist");
        let at = |image: &Image, (x, y): (u32, u32)| image.pixels[(y * 200 + x) as usize * 3];
        // The center of an odd size lies on half a pixel: look at both neighbors.
        let differing = (1..199)
            .flat_map(|y| (1..199).map(move |x| (x, y)))
            .filter(|&(x, y)| {
                let (u, v) = from(x, y);
                let near = |dx: u32, dy: u32| {
                    at(&turned, (x, y)).abs_diff(at(&upright, (u + dx - 1, v + dy - 1))) <= 4
                };
                !(0..3).any(|dx| (0..3).any(|dy| near(dx, dy)))
            })
            .count();
        assert_eq!(differing, 0, "{rotate}");
    }
}

#[test]
fn rotated_text_keeps_its_coverage_and_stays_inside_the_margins() {
    let sum = |image: &Image| -> u64 {
        let reds = image.pixels.iter().step_by(3);
        reds.map(|&red| u64::from(red)).sum()
    };
    let mut upright = black(300, 300);
    draw(
        &mut upright,
        &watermark("Watermark", 40),
        &at(Position::Center),
    )
    .expect("letters");
    for rotate in [-360, -135, -45, 1, 30, 45, 89, 200, 315] {
        for position in Position::ALL {
            let mut image = black(300, 300);
            let placement = Placement {
                rotate,
                margin: Some(Length::Pixels(9)),
                ..at(position)
            };
            draw(&mut image, &watermark("Watermark", 40), &placement).expect("letters");
            let ratio = sum(&image) as f64 / sum(&upright) as f64;
            assert!(
                (ratio - 1.0).abs() < 0.01,
                "{rotate}, {position:?}: {ratio}"
            );
            let (left, top, right, bottom) = drawn_box(&image).expect("something was drawn");
            assert!(
                left >= 9 && top >= 9 && right <= 291 && bottom <= 291,
                "{rotate}, {position:?}: {left} {top} {right} {bottom}"
            );
        }
    }
}

#[test]
fn an_outline_surrounds_the_text_in_the_color_that_differs_most() {
    for (color, contrast) in [
        (Color::WHITE, Color::new(0, 0, 0)),
        (Color::new(0, 0, 90), Color::WHITE),
    ] {
        let mut image = black(200, 160);
        image.pixels.fill(128);
        let text = TextWatermark {
            color,
            outline: Outline::Line,
            ..watermark("█", 64)
        };
        draw(&mut image, &text, &at(Position::Center)).expect("a full block exists");
        let row: Vec<[u8; 3]> = image.pixels[80 * 600..81 * 600].as_chunks().0.to_vec();
        let of = |color: Color| [color.red, color.green, color.blue];
        let count = |color| row.iter().filter(|pixel| **pixel == of(color)).count();
        // The block is 0.77 em wide, the line 1/16 em on each side; a pixel of each edge may be
        // mixed.
        assert!((47..=50).contains(&count(color)), "{}", count(color));
        assert!((6..=8).contains(&count(contrast)), "{}", count(contrast));
        let first = row.iter().position(|pixel| *pixel != [128; 3]);
        let last = row.iter().rposition(|pixel| *pixel != [128; 3]);
        let (first, last) = first.zip(last).expect("something was drawn");
        assert!((first + last).abs_diff(199) <= 1, "{first} to {last}");
    }
}

#[test]
fn opacity_is_exact_at_both_ends_with_everything_else() {
    for outline in [Outline::None, Outline::Line, Outline::Shadow] {
        for (rotate, is_tiled) in [(0, false), (33, false), (0, true), (-30, true)] {
            let mut image = black(300, 200);
            image.pixels.fill(77);
            let before = image.clone();
            let text = TextWatermark {
                color: Color::new(250, 200, 3),
                outline,
                ..watermark("██", 40)
            };
            let with = |opacity| Placement {
                rotate,
                is_tiled,
                opacity,
                ..at(Position::Center)
            };
            draw(&mut image, &text, &with(0)).expect("a full block exists");
            assert!(image == before, "{outline:?} {rotate} {is_tiled}");
            draw(&mut image, &text, &with(100)).expect("a full block exists");
            let pixels = image.pixels.as_chunks::<3>().0;
            let solid = pixels
                .iter()
                .filter(|pixel| **pixel == [250, 200, 3])
                .count();
            let expected = if is_tiled { 8000 } else { 2000 };
            assert!(solid > expected, "{outline:?} {rotate} {is_tiled}: {solid}");
            assert!(
                pixels.contains(&[77; 3]) && (outline != Outline::Line || pixels.contains(&[0; 3])),
                "{outline:?} {rotate} {is_tiled}"
            );
        }
    }
}

#[test]
fn a_shadow_is_soft_and_to_the_lower_right() {
    let mut image = black(300, 200);
    image.pixels.fill(200);
    let text = TextWatermark {
        color: Color::WHITE,
        outline: Outline::Shadow,
        ..watermark("█", 100)
    };
    draw(&mut image, &text, &at(Position::Center)).expect("a full block exists");
    let red = |x: u32, y: u32| image.pixels[(y * 300 + x) as usize * 3];
    let whites: Vec<u32> = (0..300).filter(|&x| red(x, 100) == 255).collect();
    let (left, right) = (whites[0], whites[whites.len() - 1]);
    assert!(red(right + 3, 100) < 100, "{}", red(right + 3, 100));
    assert!(red(left - 3, 100) > 150, "{}", red(left - 3, 100));
    let shades: Vec<u8> = (right + 2..right + 16).map(|x| red(x, 100)).collect();
    assert!(shades.is_sorted(), "{shades:?}");
}

#[test]
fn the_end_of_lines_that_do_not_fit_is_cut_off() {
    for (text, side) in [("HHHH", 0), ("אאאא", 1)] {
        let mut image = black(60, 40);
        let long = format!("█ {}", text.repeat(40));
        let long = if side == 1 {
            format!("\u{200f}{long}")
        } else {
            long
        };
        draw(&mut image, &watermark(&long, 24), &at(Position::Center)).expect("letters");
        let (left, top, right, bottom) = drawn_box(&image).expect("something was drawn");
        let column = if side == 0 { left + 1 } else { right - 2 };
        let middle = u32::midpoint(top, bottom) * 60 + column;
        assert_eq!(
            image.pixels[middle as usize * 3],
            255,
            "{text}: the beginning is there"
        );
    }
}

#[test]
fn no_text_on_any_picture_panics() {
    let endless = ["W".repeat(2000), "א".repeat(2000), "a\n".repeat(2000)];
    for size in [(1, 1), (2, 300), (300, 1), (40, 40)] {
        for rotate in [0, 45, 90, 133] {
            for (is_tiled, scale) in [
                (false, None),
                (true, None),
                (false, Some(100)),
                (true, Some(1)),
            ] {
                for outline in [Outline::None, Outline::Line, Outline::Shadow] {
                    for text in endless.iter().map(String::as_str).chain(["x", "."]) {
                        let mut image = black(size.0, size.1);
                        let text = TextWatermark {
                            outline,
                            ..watermark(text, 200)
                        };
                        let placement = Placement {
                            scale,
                            rotate,
                            is_tiled,
                            ..at(Position::Top)
                        };
                        draw(&mut image, &text, &placement).expect("these letters exist");
                    }
                }
            }
        }
    }
}

#[test]
fn of_a_line_16384_characters_are_looked_at() {
    for (length, drawn) in [(16_383, 16_383), (16_384, 16_384), (16_385, 16_384)] {
        assert_eq!(shaped(&"i".repeat(length)).len(), drawn, "{length}");
    }
    let mut missing = Vec::new();
    let text = format!("{}漢", "i".repeat(16_384));
    Paragraph::new(Fonts::bundled(), &text, &Cancel::never()).as_line(&mut missing);
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_line_of_many_runs_is_cancelled_between_them() {
    let text = "aक".repeat(1000);
    let asked = std::cell::Cell::new(0);
    let shape = |limit: usize| {
        let checks = std::sync::atomic::AtomicUsize::new(0);
        let is_unwanted = || checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= limit;
        let cancel = Cancel::when(&is_unwanted);
        let line = Paragraph::new(Fonts::bundled(), &text, &cancel).as_line(&mut Vec::new());
        asked.set(checks.into_inner());
        line.glyphs.len()
    };
    let whole = shape(usize::MAX);
    assert!(
        whole >= 2000 && asked.get() >= 2000,
        "{} checks",
        asked.get()
    );
    let some = shape(100);
    assert!((1..=100).contains(&some), "{some} glyphs after 100 checks");
    assert_eq!(asked.get(), 101);
}
