//! Contact sheets of watermarks for the eye: `TOWEBP_SHEETS=FOLDER cargo test --test codec
//! watermark_sheet -- --ignored` writes PNGs into that folder. With `TOWEBP_TEST_FONTS`, a folder
//! that is searched for NotoSansThai-Regular.ttf and NotoSansCJK-Regular.ttc, these are on it too.

use std::fs;
use std::path::{Path, PathBuf};
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{self, Format, Image, Layout, Limits};
use towebp_pipeline::watermark::{
    Color, Fonts, Length, Outline, Placement, Position, TextSize, TextWatermark, draw_picture,
    draw_text,
};

const TEXTS: [&str; 11] = [
    "© Latin fjord, AVATAR To; office",
    "Tiếng Việt: ẤỖỮ ặộợ",
    "Ελληνικά: ἀρχὴ ᾧ",
    "Кириллица, ё й Ђ",
    "مرحبا بالعالم، مُحَمَّد ٢٠٢٦",
    "עברית: שָׁלוֹם (2026)",
    "हिन्दी: क्षत्रिय श्री र्कि",
    "ไทย: น้ำ ที่นี่ ปู่",
    "中文 日本語 한국어 Latin",
    "q\u{323}\u{307} x\u{302}\u{301} Z\u{300}\u{301}\u{302}\u{303}",
    "mixed עברית and عربي\nsecond line, हिन्दी",
];

#[test]
#[ignore = "draws for the eye: set TOWEBP_SHEETS to a folder, and run with --ignored"]
fn contact_sheets() {
    let folder = std::env::var_os("TOWEBP_SHEETS").map(PathBuf::from);
    let folder = folder.expect("TOWEBP_SHEETS is a folder");
    let fonts = fonts();
    let grounds = ["coffee.jpg", "rocket.jpg"].map(photograph);
    write(&folder, "scripts.png", &scripts(&fonts, &grounds), 3);
    write(&folder, "positions.png", &positions(&fonts, &grounds[0]), 3);
    write(&folder, "placements.png", &placements(&fonts, &grounds), 3);
    write(&folder, "sizes.png", &sizes(&fonts, &grounds[0]), 4);
}

/// In the centre, solid.
const SOLID: Placement = Placement {
    position: Position::Center,
    margin: None,
    scale: None,
    rotate: 0,
    is_tiled: false,
    opacity: 100,
};

/// Of `testdata/`.
fn photograph(name: &str) -> Image {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name);
    let bytes = fs::read(path).expect("it is shipped");
    let format = Format::sniff(&bytes).expect("a picture");
    image::decode(&bytes, format, &Limits::default(), &Cancel::never()).expect("a picture")
}

fn scripts(fonts: &Fonts, [light, dark]: &[Image; 2]) -> Vec<Image> {
    let mut scripts = Vec::new();
    for (number, text) in TEXTS.iter().enumerate() {
        let color = if number % 2 == 0 {
            Color::WHITE
        } else {
            Color::new(255, 220, 0)
        };
        for (ground, outline) in [
            (light, Outline::None),
            (dark, Outline::Line),
            (light, Outline::Shadow),
        ] {
            let mut image = part(ground, number as u32, (430, 110));
            let text = TextWatermark {
                text: (*text).to_owned(),
                size: TextSize::Given(Length::Pixels(36)),
                color,
                outline,
            };
            if draw_text(&mut image, &text, fonts, &SOLID, &Cancel::never()).is_err() {
                eprintln!("not drawn: {}", text.text);
            }
            scripts.push(image);
        }
    }
    scripts
}

fn positions(fonts: &Fonts, ground: &Image) -> Vec<Image> {
    let mut places = Vec::new();
    for position in Position::ALL {
        let mut image = part(ground, 3, (300, 200));
        let text = plain(&format!("{}\ng", position.name()), 28);
        let placement = Placement { position, ..SOLID };
        draw_text(&mut image, &text, fonts, &placement, &Cancel::never()).expect("Latin");
        places.push(image);
    }
    places
}

fn placements(fonts: &Fonts, [light, dark]: &[Image; 2]) -> Vec<Image> {
    let mut laid = Vec::new();
    let logo = photograph("alpha.png");
    for (number, (rotate, is_tiled, scale, outline)) in [
        (0, false, Some(80), Outline::None),
        (-30, false, Some(80), Outline::Line),
        (90, false, None, Outline::Shadow),
        (0, true, None, Outline::None),
        (-30, true, None, Outline::None),
        (45, true, Some(30), Outline::Line),
        (-90, true, None, Outline::Shadow),
        (200, true, Some(20), Outline::None),
    ]
    .into_iter()
    .enumerate()
    {
        let placement = Placement {
            rotate,
            is_tiled,
            scale,
            opacity: if number % 2 == 0 { 60 } else { 100 },
            ..SOLID
        };
        for (ground, is_text) in [(light, true), (dark, true), (dark, false)] {
            let mut image = part(ground, 0, (420, 280));
            if is_text {
                let text = TextWatermark {
                    outline,
                    ..plain("© example.org مرحبا", 24)
                };
                draw_text(&mut image, &text, fonts, &placement, &Cancel::never())
                    .expect("bundled scripts");
            } else {
                draw_picture(&mut image, &logo, &placement, &Cancel::never())
                    .expect("nothing cancels it");
            }
            laid.push(image);
        }
    }
    laid
}

/// Sizes that follow the picture's, on pictures of many shapes, each on a sheet of its own color.
fn sizes(fonts: &Fonts, ground: &Image) -> Vec<Image> {
    let long =
        "© 2026 Some Studio of Photography. All rights reserved, no copies without permission.";
    let texts = [
        "© example.org",
        long,
        "جميع الحقوق محفوظة © ٢٠٢٦ لا يجوز النسخ بدون إذن كتابي مسبق من المصور",
        "כל הזכויות שמורות © 2026 Studio Photo אין להעתיק ללא אישור בכתב מראש",
        "Two lines,\nof which the second one is longer than the picture is wide",
        "Unbreakable\u{a0}text\u{a0}that\u{a0}is\u{a0}longer\u{a0}than\u{a0}the\u{a0}picture",
    ];
    let mut sizes = Vec::new();
    for text in texts {
        for ((width, height), size, position, rotate) in [
            ((420, 280), TextSize::Auto, Position::BottomRight, 0),
            ((120, 280), TextSize::Auto, Position::BottomLeft, 0),
            ((420, 40), TextSize::Auto, Position::Center, 0),
            ((64, 48), TextSize::Auto, Position::BottomRight, 0),
            ((420, 280), percent(9), Position::Center, 0),
            ((420, 280), percent(9), Position::BottomRight, 90),
            ((420, 280), percent(9), Position::Center, -30),
            ((200, 280), percent(40), Position::Top, 0),
        ] {
            let mut image = part(ground, 0, (width, height));
            let text = TextWatermark {
                size,
                outline: Outline::Line,
                ..plain(text, 0)
            };
            let placement = Placement {
                position,
                rotate,
                ..SOLID
            };
            draw_text(&mut image, &text, fonts, &placement, &Cancel::never()).expect("letters");
            sizes.push(padded(&image, (420, 280)));
        }
    }
    sizes
}

fn percent(number: u32) -> TextSize {
    TextSize::Given(Length::Share(number * 1000))
}

/// The image in the upper left of a larger gray one.
fn padded(image: &Image, (width, height): (u32, u32)) -> Image {
    let mut pixels = vec![128; (width * height * 3) as usize];
    let (stride, large) = (image.width as usize * 3, width as usize * 3);
    for (row, into) in image.pixels.chunks(stride).zip(pixels.chunks_mut(large)) {
        into[..stride].copy_from_slice(row);
    }
    Image {
        width,
        height,
        layout: Layout::Rgb,
        pixels,
    }
}

fn plain(text: &str, size: u16) -> TextWatermark {
    TextWatermark {
        text: text.to_owned(),
        size: TextSize::Given(Length::Pixels(size)),
        color: Color::WHITE,
        outline: Outline::None,
    }
}

fn fonts() -> Fonts {
    let mut fonts = Fonts::default();
    let Some(folder) = std::env::var_os("TOWEBP_TEST_FONTS").map(PathBuf::from) else {
        return fonts;
    };
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of fonts") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if ["NotoSansThai-Regular.ttf", "NotoSansCJK-Regular.ttc"]
                .iter()
                .any(|name| path.ends_with(name))
            {
                fonts
                    .add(fs::read(&path).expect("it can be read"))
                    .expect("a font");
            }
        }
    }
    fonts
}

/// A part of a photograph that differs from number to number.
fn part(image: &Image, number: u32, (width, height): (u32, u32)) -> Image {
    let (left, top) = (
        number * 37 % (image.width - width),
        number * 53 % (image.height - height),
    );
    let pixels = (top..top + height)
        .flat_map(|y| {
            let start = (y * image.width + left) as usize * 3;
            image.pixels[start..start + width as usize * 3].to_vec()
        })
        .collect();
    Image {
        width,
        height,
        layout: Layout::Rgb,
        pixels,
    }
}

/// All of one size, so many in a row.
fn write(folder: &Path, name: &str, images: &[Image], columns: usize) {
    let (width, height) = (images[0].width as usize, images[0].height as usize);
    let rows = images.len().div_ceil(columns);
    let stride = columns * (width + 4) * 3;
    let mut sheet = vec![255; stride * rows * (height + 4)];
    for (number, image) in images.iter().enumerate() {
        let (left, top) = (
            number % columns * (width + 4),
            number / columns * (height + 4),
        );
        for (y, row) in image.pixels.chunks(width * 3).enumerate() {
            sheet[(top + y) * stride + left * 3..][..width * 3].copy_from_slice(row);
        }
    }
    let file = fs::File::create(folder.join(name)).expect("the folder can be written");
    let mut encoder = png::Encoder::new(
        file,
        (columns * (width + 4)) as u32,
        (rows * (height + 4)) as u32,
    );
    encoder.set_color(png::ColorType::Rgb);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&sheet))
        .expect("the file can be written");
}
