//! `mode=auto` decides by the pixels alone: it never takes more bytes than `mode=lossless`,
//! whatever file the pixels came in, and small pictures change no colors for less than a fifth.

use crate::support::animation::animated;
use crate::support::picture::Picture;
use png::{BitDepth, ColorType, Compression};
use towebp_encoder::testing::Random;
use towebp_pipeline::conversion::{self, Cancel, Coding, Conversion, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

fn convert(file: &[u8], query: &str) -> Conversion {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    conversion::run(&Job {
        bytes: file,
        format: Format::sniff(file).expect("a picture"),
        params: &Params::parse(pairs).expect("good parameters"),
        watermark_picture: None,
        fonts: Fonts::bundled(),
        limits: &Limits::default(),
        threads: 2,
        cpu_budget: None,
        cancel: &Cancel::never(),
    })
    .expect("a good picture")
}

/// Converts a file by `mode=auto` and holds it to the size of `mode=lossless`.
#[track_caller]
fn assert_no_larger(name: &str, file: &[u8], query: &str) -> Conversion {
    let auto = convert(file, &format!("mode=auto&{query}"));
    let lossless = convert(file, &format!("mode=lossless&{query}"));
    let (bytes, most) = (auto.webp.len(), lossless.webp.len());
    assert!(
        bytes <= most,
        "{name} {query}: {bytes} bytes, {most} without loss"
    );
    auto
}

/// A PNG whose pixels are compressed so, with a text of so many bytes.
fn png_with(picture: &Picture, compression: Compression, text: usize) -> Vec<u8> {
    let is_opaque = picture.pixels.iter().all(|pixel| pixel[3] == 255);
    let channels = if is_opaque { 3 } else { 4 };
    let samples = picture.pixels.iter().flat_map(|pixel| &pixel[..channels]);
    let samples: Vec<u8> = samples.copied().collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(if is_opaque {
        ColorType::Rgb
    } else {
        ColorType::Rgba
    });
    encoder.set_compression(compression);
    if text > 0 {
        let text = "made by hand, ".chars().cycle().take(text).collect();
        let added = encoder.add_text_chunk("Comment".to_owned(), text);
        added.expect("plain letters");
    }
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&samples))
        .expect("a valid picture");
    bytes
}

/// A window with a title, a list and a gradient: what is on a screen.
fn screenshot(width: u32, height: u32) -> Picture {
    let letter = |x: u32, y: u32| {
        let glyph = (x / 7).wrapping_mul(2_654_435_761) ^ (y / 13).wrapping_mul(40_503);
        (glyph >> ((x % 7 + 7 * (y % 13 / 3)) % 32)) & 1 == 1 && y % 13 < 9 && x % 7 < 5
    };
    Picture::of(width, height, |x, y| match (x, y) {
        (_, 0..30) => [40 + y as u8, 60 + y as u8, 160 + 2 * y as u8, 255],
        (0..120, _) => [230, 232, 236, 255],
        (140.., 40..) if letter(x, y) && x < width - 60 => [20, 20, 30, 255],
        _ => [255, 255, 255, 255],
    })
}

/// A disk of one color with a soft edge, in front of another.
fn icon(side: u32, has_alpha: bool) -> Picture {
    let middle = side as f32 / 2.0 - 0.5;
    Picture::of(side, side, |x, y| {
        let distance = (x as f32 - middle).hypot(y as f32 - middle);
        let inside = (side as f32 / 2.5 - distance).clamp(0.0, 1.0);
        let mix = |on: f32, off: f32| (on * inside + off * (1.0 - inside)) as u8;
        if has_alpha {
            [220, 40 + 3 * y as u8, 30, mix(255.0, 0.0)]
        } else {
            [mix(220.0, 20.0), mix(40.0, 60.0), mix(30.0, 200.0), 255]
        }
    })
}

#[test]
fn graphics_in_large_files_take_no_more_bytes_than_without_loss() {
    let distinct = Picture::of(6, 6, |x, y| {
        let color = (x * 6 + y) * 7919;
        [color as u8, (color >> 3) as u8, (color >> 5) as u8, 255]
    });
    let screenshot = screenshot(700, 500);
    let files = [
        ("icon", icon(16, false).png()),
        ("icon with alpha", icon(16, true).png()),
        ("6 x 6 colors", distinct.png()),
        ("one pixel", Picture::flat(1, 1, [9, 200, 90]).png()),
        ("one row", Picture::noise(90, 1).png()),
        (
            "stored screenshot",
            png_with(&screenshot, Compression::NoCompression, 0),
        ),
        (
            "text",
            png_with(&icon(60, false), Compression::High, 100_000),
        ),
        ("screenshot as BMP", screenshot.bmp()),
        ("noise as BMP", Picture::noise(120, 90).bmp()),
    ];
    for (name, file) in files {
        for query in [
            "quality=75",
            "quality=85",
            "quality=100",
            "quality=85&effort=high",
        ] {
            let auto = assert_no_larger(name, &file, query);
            if name != "noise as BMP" {
                assert_eq!(auto.coding, Coding::Lossless, "{name} {query}");
            }
        }
    }
}

/// A picture of up to 150 x 150 pixels, of one of the kinds that differ in what codes them well.
fn random_picture(random: &mut Random) -> Picture {
    let [width, height] = match random.below(3) {
        0 => [(); 2].map(|()| 1 + random.below(24)),
        1 => [(); 2].map(|()| 1 + random.below(64)),
        _ => [(); 2].map(|()| 60 + random.below(90)),
    };
    let colors: Vec<[u8; 4]> = (0..2 + random.index(30))
        .map(|_| [random.byte(), random.byte(), random.byte(), 255])
        .collect();
    let kind = random.below(8);
    let alpha = if random.below(3) == 0 {
        random.byte()
    } else {
        255
    };
    let (tile_width, tile_height) = (2 + random.below(40), 2 + random.below(40));
    let tile: Vec<[u8; 4]> = (0..tile_width * tile_height)
        .map(|_| [random.byte(), random.byte(), random.byte(), 255])
        .collect();
    let (slope, grain) = (1 + random.below(9), random.below(20));
    let noise = Random::new(random.next_u64());
    let noise = std::cell::RefCell::new(noise);
    Picture::of(width, height, |x, y| {
        let mut noise = noise.borrow_mut();
        let cell = |size: u32| ((x / size).wrapping_mul(7) + (y / size).wrapping_mul(13)) as usize;
        let [red, green, blue, _] = match kind {
            0 => colors[noise.index(colors.len())],
            1 => colors[noise.index(2)],
            2 => colors[cell(1 + slope) % colors.len()],
            3 => tile[((y % tile_height) * tile_width + x % tile_width) as usize],
            4 => tile[((y % tile_height * 31 + x) % (tile_width * tile_height)) as usize],
            5 => [noise.byte(), noise.byte(), noise.byte(), 255],
            6 => {
                let sample = |along: u32| (along * slope + noise.below(grain + 1)) as u8;
                [x, y, x + y]
                    .map(sample)
                    .into_iter()
                    .chain([255])
                    .collect::<Vec<u8>>()
                    .try_into()
                    .expect("four samples")
            }
            _ => {
                // Dots of two colors in the shares of a gradient.
                let threshold = (x % 4 * 5 + y % 4 * 3) % 16;
                colors[usize::from(x * 16 / width > threshold)]
            }
        };
        [red, green, blue, if x > width / 2 { alpha } else { 255 }]
    })
}

#[test]
fn no_random_picture_takes_more_bytes_than_without_loss() {
    let mut random = Random::new(0x5EED_0A70);
    let mut codings = Vec::new();
    for number in 0..150 {
        let picture = random_picture(&mut random);
        let quality = [30, 75, 85, 95, 100][random.index(5)];
        let (width, height) = (picture.width, picture.height);
        let name = format!("number {number}, {width} x {height}");
        let file = match random.below(3) {
            0 => picture.png(),
            1 => png_with(&picture, Compression::NoCompression, 0),
            _ => picture.bmp(),
        };
        let auto = assert_no_larger(&name, &file, &format!("quality={quality}"));
        codings.push(auto.coding);
    }
    for coding in [Coding::Lossy, Coding::Lossless] {
        let count = codings.iter().filter(|other| **other == coding).count();
        assert!(
            count > 10,
            "{count} of {} pictures {coding:?}",
            codings.len()
        );
    }
}

#[test]
fn the_same_pixels_give_the_same_file_whatever_they_came_in() {
    let qualities = ["mode=auto&quality=85", "mode=auto&quality=100"];
    let bytes = ["mode=auto&max_bytes=9k&best_effort=true"];
    let pictures = [
        ("icon", icon(40, false), &qualities[..]),
        ("screenshot", screenshot(300, 200), &bytes),
        // Above 512 x 512 pixels, memory is asked for.
        ("large screenshot", screenshot(600, 450), &qualities),
        ("waves", Picture::waves(300, 200), &bytes),
        ("large waves", Picture::waves(600, 450), &qualities),
        ("noise", Picture::noise(90, 90), &qualities),
    ];
    for (name, picture, queries) in pictures {
        for query in queries {
            let expected = convert(&picture.png(), query).webp;
            for (file, bytes) in [
                ("stored", png_with(&picture, Compression::NoCompression, 0)),
                ("compressed well", png_with(&picture, Compression::High, 0)),
                ("with text", png_with(&picture, Compression::Fast, 100_000)),
                ("BMP", picture.bmp()),
                ("16 bits", sixteen_bits(&picture)),
                ("opaque alpha", with_opaque_alpha(&picture)),
            ] {
                let webp = convert(&bytes, query).webp;
                assert!(
                    webp == expected,
                    "{name} {file} {query}: {} bytes, {}",
                    webp.len(),
                    expected.len()
                );
            }
        }
    }
}

#[test]
fn the_chunk_headers_of_alpha_count() {
    // The lossless and the lossy data of these rings of one color take about as many bytes, but a
    // lossy file with alpha has two chunks more.
    for side in (65..80).step_by(3) {
        let middle = side as f32 / 2.0 - 0.5;
        let rings = Picture::of(side, side, |x, y| {
            let distance = (x as f32 - middle).hypot(y as f32 - middle);
            let alpha = 3.0 - (distance % 12.0 - 6.0).abs();
            [46, 52, 54, (alpha.clamp(0.0, 1.0) * 255.0) as u8]
        });
        for query in ["quality=10", "quality=50"] {
            assert_no_larger(&format!("rings {side}"), &rings.png(), query);
        }
    }
}

#[test]
fn photographs_in_png_are_coded_lossy() {
    let coffee = std::fs::read("testdata/coffee.jpg").expect("it is shipped");
    let coffee = Picture::decode(convert(&coffee, "mode=lossless&effort=low").webp);
    // Flat rows at the top look like those of a graphic.
    let sky = Picture::of(coffee.width, coffee.height, |x, y| match y {
        0..100 => [255; 4],
        _ => coffee.at(x, y),
    });
    for (name, picture) in [("coffee", coffee), ("sky", sky)] {
        for compression in [Compression::NoCompression, Compression::High] {
            let file = png_with(&picture, compression, 0);
            let auto = convert(&file, "mode=auto&quality=85");
            assert_eq!(auto.coding, Coding::Lossy, "{name} {compression:?}");
            let lossy = convert(&file, "mode=lossy&quality=85");
            assert!(auto.webp == lossy.webp, "{name} {compression:?}");
        }
    }
}

#[test]
fn metadata_of_any_size_does_not_decide() {
    let picture = icon(12, false);
    let expected = convert(&picture.png(), "mode=auto&quality=85");
    assert_eq!(expected.coding, Coding::Lossless);
    let samples: Vec<u8> = picture
        .pixels
        .iter()
        .flat_map(|p| [p[0], p[1], p[2]])
        .collect();
    let mut info = png::Info::with_size(picture.width, picture.height);
    (info.color_type, info.bit_depth) = (ColorType::Rgb, BitDepth::Eight);
    // No decoder knows this profile, so that the colors stay as they are.
    let noise = Picture::noise(200, 200);
    info.icc_profile = Some(noise.pixels.as_flattened().into());
    let with_profile = encoded_with(info, &samples);
    assert!(with_profile.len() > 100_000, "the profile is in the file");
    for file in [
        with_profile,
        png_with(&picture, Compression::High, 1_000_000),
    ] {
        assert!(convert(&file, "mode=auto&quality=85").webp == expected.webp);
    }
}

#[test]
fn a_goal_decides_before_auto_does() {
    let shipped = |name: &str| std::fs::read(format!("testdata/{name}")).expect("it is shipped");
    let pictures = [
        ("letters", letters().png(), true),
        ("photograph", shipped("astronaut.png"), true),
        ("graphic", shipped("graphic.png"), false),
    ];
    for (name, file, is_smaller_lossy) in pictures {
        let lossless = convert(&file, "mode=lossless").webp.len();
        let fits = convert(&file, &format!("mode=auto&max_bytes={lossless}"));
        assert!(fits.webp.len() <= lossless, "{name}");
        let scored = convert(&file, "mode=auto&target=80");
        let score = scored.found.and_then(|found| found.score);
        assert!(score.expect("it is measured") >= 80.0, "{name}");
        assert!(scored.webp.len() <= lossless, "{name}");
        if is_smaller_lossy {
            // Even the letters, whose colors `auto` keeps if there is no goal.
            let most = lossless * 3 / 4;
            let small = convert(&file, &format!("mode=auto&max_bytes={most}"));
            assert!(small.webp.len() <= most, "{name}");
            assert_eq!(small.coding, Coding::Lossy, "{name}");
        } else {
            assert_eq!(fits.coding, Coding::Lossless, "{name}");
            assert_eq!(scored.coding, Coding::Lossless, "{name}");
        }
    }
}

/// The picture in 16 bits a sample.
fn sixteen_bits(picture: &Picture) -> Vec<u8> {
    let samples = picture.pixels.iter().flat_map(|pixel| &pixel[..3]);
    let samples: Vec<u8> = samples.flat_map(|&sample| [sample; 2]).collect();
    encoded(picture, ColorType::Rgb, BitDepth::Sixteen, &samples)
}

/// The picture with an alpha channel in which nothing shows through.
fn with_opaque_alpha(picture: &Picture) -> Vec<u8> {
    encoded(
        picture,
        ColorType::Rgba,
        BitDepth::Eight,
        picture.pixels.as_flattened(),
    )
}

fn encoded(picture: &Picture, color: ColorType, depth: BitDepth, samples: &[u8]) -> Vec<u8> {
    let mut info = png::Info::with_size(picture.width, picture.height);
    (info.color_type, info.bit_depth) = (color, depth);
    encoded_with(info, samples)
}

fn encoded_with(info: png::Info<'_>, samples: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    png::Encoder::with_info(&mut bytes, info)
        .and_then(png::Encoder::write_header)
        .and_then(|mut writer| writer.write_image_data(samples))
        .expect("a valid picture");
    bytes
}

#[test]
fn gray_is_decided_by_its_pixels_too() {
    let soft = Picture::waves(200, 150);
    let gray: Vec<u8> = soft.pixels.iter().map(|pixel| pixel[0]).collect();
    let drawn: Vec<u8> = screenshot(400, 300)
        .pixels
        .iter()
        .map(|pixel| pixel[2])
        .collect();
    for (name, (width, height), samples) in
        [("soft", (200, 150), &gray), ("drawn", (400, 300), &drawn)]
    {
        let picture = Picture::flat(width, height, [0; 3]);
        let deep: Vec<u8> = samples.iter().flat_map(|&sample| [sample; 2]).collect();
        let eight = encoded(&picture, ColorType::Grayscale, BitDepth::Eight, samples);
        let sixteen = encoded(&picture, ColorType::Grayscale, BitDepth::Sixteen, &deep);
        let auto = assert_no_larger(name, &eight, "quality=85");
        assert!(convert(&sixteen, "quality=85").webp == auto.webp, "{name}");
    }
}

/// Red letters on grainy blue, whose chroma does not survive at half the resolution.
fn letters() -> Picture {
    let grain = Picture::waves(48, 48);
    Picture::of(48, 48, |x, y| {
        let [red, green, blue, _] = grain.at(x, y).map(|sample| sample / 5);
        if (x / 2 + y / 3) % 4 == 0 {
            [190 + red, green, blue, 255]
        } else {
            [red, green, 190 + blue, 255]
        }
    })
}

#[test]
fn a_small_picture_keeps_its_colors_unless_much_is_saved() {
    let (letters, grain) = (letters(), Picture::waves(48, 48));
    let auto = assert_no_larger("letters", &letters.png(), "quality=85");
    let lossy = convert(&letters.png(), "mode=lossy&quality=85");
    assert!(
        lossy.webp.len() < auto.webp.len() * 4 / 5,
        "lossy saves a fifth"
    );
    // A palette changes them by a fraction of that, and at quality 100 they are exact.
    let difference = |webp: &[u8]| Picture::decode(webp).difference(&letters);
    let [palette, lossy] = [&auto.webp, &lossy.webp].map(|webp| difference(webp));
    assert!(palette * 8.0 < lossy, "{palette} levels, lossy {lossy}");
    let exact = assert_no_larger("letters", &letters.png(), "quality=100");
    assert_eq!(exact.coding, Coding::Lossless);
    assert!(difference(&exact.webp) == 0.0);
    // Gray grain, which loses no color, and much of its bytes.
    assert_eq!(
        assert_no_larger("grain", &grain.png(), "quality=75").coding,
        Coding::Lossy
    );
    // The same letters as an animation of one and of two frames.
    let mirrored = Picture::of(48, 48, |x, y| letters.at(47 - x, y));
    let moving = animated(&[letters.clone(), mirrored]);
    assert_eq!(convert(&moving, "quality=85").coding, Coding::Lossless);
    let first = convert(&moving, "animation=first&quality=85");
    assert!(difference(&first.webp) * 8.0 < lossy);
}

/// Curves with soft edges on a flat ground, as of a chart.
fn drawn_curves() -> Picture {
    Picture::of(300, 200, |x, y| {
        let mut color = [38.0, 36.0, 32.0];
        for curve in 0..6u8 {
            let number = f32::from(curve);
            let middle = 100.0 + 80.0 * (x as f32 / (30.0 + 9.0 * number) + number).sin();
            let cover = (1.8 - (y as f32 - middle).abs()).clamp(0.0, 1.0);
            let own = [
                230.0 - 30.0 * number,
                60.0 + 25.0 * number,
                250.0 - 60.0 * number,
            ];
            for (sample, own) in color.iter_mut().zip(own) {
                *sample += (own - *sample) * cover;
            }
        }
        let [red, green, blue] = color.map(|sample: f32| sample.clamp(0.0, 255.0) as u8);
        [red, green, blue, 255]
    })
}

#[test]
fn a_graphic_becomes_a_palette_that_is_smaller_and_nearer_to_it_than_lossy() {
    let curves = drawn_curves();
    let file = curves.png();
    let decoded = |query: &str| {
        let conversion = convert(&file, query);
        let picture = Picture::decode(&conversion.webp);
        (conversion, picture)
    };
    let (auto, palette) = decoded("quality=85");
    let (lossy, of_lossy) = decoded("mode=lossy&quality=85");
    let (lossless, _) = decoded("mode=lossless&quality=85");
    let sizes = [&auto, &lossy, &lossless].map(|conversion| conversion.webp.len());
    assert!(sizes[0] < sizes[1].min(sizes[2]), "{sizes:?}");
    assert_eq!(auto.coding, Coding::Lossy, "its pixels are not all exact");
    assert_eq!(&auto.webp[12..16], b"VP8L", "it is coded without loss");
    let colors = |picture: &Picture| {
        let colors: std::collections::BTreeSet<_> = picture.pixels.iter().collect();
        colors.len()
    };
    assert!(colors(&curves) > 256 && colors(&palette) <= 256);
    assert!(palette.difference(&curves) * 4.0 < of_lossy.difference(&curves));
    assert_eq!(&palette.at(0, 0), &curves.at(0, 0), "the ground");
}
