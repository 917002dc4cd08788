//! Whether conversions take the memory that was estimated: never more, and not much less for
//! photographs.
//!
//! Each picture is converted in a process of its own, whose peak tells. For other pictures:
//! `TOWEBP_PICTURES=FOLDER cargo test --test codec estimate -- --ignored --nocapture`

use crate::support::animation::{animated, animated_rgba, moving_squares};
use crate::support::jpeg::{Kind, jpeg};
use crate::support::picture::Picture;
use crate::support::{Folder, in_own_process};
use std::cell::Cell;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use towebp_pipeline::conversion::{self, Cancel, CpuBudget, Fonts, Job, Params, Plan, Resources};
use towebp_pipeline::image::{self, Format, Layout, Limits};

/// The environment variable that tells the converting process the picture's file and the
/// parameters. A watermark's picture is the file beside it with the ending `mark`.
const CASE: &str = "TOWEBP_ESTIMATE";

/// A watermark that covers much of a picture.
const WATERMARKED: &str = "watermark=towebp&watermark_size=200&watermark_position=center";

const OUTLINED: &str =
    "watermark=M&watermark_scale=100&watermark_rotate=30&watermark_outline=shadow";

const BROKEN: &str =
    "watermark=to+webp+in+four+lines&watermark_size=100%25&watermark_outline=outline";

/// As few bytes as there may be, and as many as there may be.
const SMALL: &str = "max_bytes=1k&best_effort=true";
const ALIKE: &str = "target=95";

const ANIMATED: &[&str] = &[
    "",
    "effort=high",
    "mode=lossless",
    "mode=lossy&quality=100",
    WATERMARKED,
    SMALL,
    ALIKE,
];

/// 1 MP of few colors, which is encoded both lossy and lossless to see which is smaller.
fn blocks(number: u32) -> Picture {
    Picture::of(1000, 1000, |x, y| {
        let block = (x / 10) * 7919 + (y / 10) * 104_729 + number * 31;
        let gray = (block.wrapping_mul(2_654_435_761) >> 24) as u8;
        [gray, gray & 0x80, gray & 0xF0, 255]
    })
}

/// Blocks on a flat background, which take part of the picture.
fn some_blocks(number: u32) -> Picture {
    let blocks = blocks(number);
    Picture::of(1000, 710, |x, y| match (x, y) {
        (..=699, ..=699) => blocks.at(x, y),
        _ => [40, 90, 40, 255],
    })
}

/// The upper left 1 MP of a larger picture.
fn upper_left(picture: &Picture) -> Picture {
    Picture::of(1000, 1000, |x, y| picture.at(x, y))
}

#[test]
fn no_conversion_takes_more_than_was_estimated() {
    let folder = Folder::new();
    let (width, height) = (2000, 1500);
    let noise = Picture::noise(width, height);
    let clear = Picture::of(width, height, |x, y| {
        let [red, green, blue, _] = noise.at(x, y);
        [red, green, blue, green ^ blue]
    });
    let primaries = Picture::of(width, height, |x, y| {
        noise
            .at(x, y)
            .map(|sample| if sample < 128 { 0 } else { 255 })
    });
    let waves = Picture::waves(width, height);
    // Alpha that looks like a photograph, and a mask of few values.
    let soft = Picture::of(width, height, |x, y| {
        let [red, green, blue, _] = waves.at(x, y);
        [red, green, blue, green]
    });
    let masked = Picture::of(width, height, |x, y| {
        let [red, green, blue, _] = noise.at(x, y);
        [red, green, blue, red >> 4]
    });
    let files = [
        (
            "noise.png",
            noise.png(),
            &[
                "",
                "quality=0",
                "quality=100",
                "effort=high",
                "effort=max",
                "mode=lossless",
            ][..],
        ),
        (
            "primaries.png",
            primaries.png(),
            &["", "quality=25", "quality=75", "quality=95", "quality=100"],
        ),
        (
            "clear.png",
            clear.png(),
            &[
                "",
                "quality=0",
                "quality=100",
                "mode=lossless",
                SMALL,
                ALIKE,
            ],
        ),
        (
            "waves.png",
            waves.png(),
            &[WATERMARKED, OUTLINED, BROKEN, "mode=lossless", SMALL, ALIKE],
        ),
        ("described.png", described(), &["", "metadata=keep"]),
        ("waves.gif", waves.gif(), &["", "quality=100"]),
        ("graphic.png", stored(&blocks(0)), &["", WATERMARKED]),
        ("graphic.bmp", blocks(0).bmp(), &[""]),
        ("noise.bmp", noise.bmp(), &["", "effort=low"]),
        ("squares.gif", moving_squares(1000, 1000, 12), ANIMATED),
        (
            "graphic-animation.gif",
            animated(&[0, 1, 2, 3].map(blocks)),
            ANIMATED,
        ),
        (
            "partly-graphic-animation.gif",
            animated(&[0, 1, 2, 3].map(some_blocks)),
            ANIMATED,
        ),
        (
            "noise-animation.gif",
            animated(&[&noise, &waves, &noise].map(upper_left)),
            ANIMATED,
        ),
        ("soft.png", soft.png(), &["", "effort=high"]),
        (
            "masked.png",
            masked.png(),
            &["effort=low", "", "effort=high"],
        ),
        (
            "stamped.png",
            masked.png(),
            &["watermark_scale=100&watermark_rotate=20", ""],
        ),
    ];
    fs::write(folder.path.join("stamped.mark"), clear.png()).expect("a new file");
    for (name, bytes, queries) in files {
        assert_estimated(&folder, name, &bytes, queries);
    }
}

#[test]
fn no_unusual_size_takes_more_than_was_estimated() {
    let folder = Folder::new();
    let files = [
        // What a score takes of the small picture before is more.
        ("small.png", (40, 30), &["", WATERMARKED, SMALL][..]),
        ("wide.png", (16383, 150), &["", ALIKE]),
        ("narrow.png", (1, 16383), &["", ALIKE]),
        ("huge.png", (2500, 1700), &[SMALL, ALIKE]),
        ("flat.png", (16383, 1), &[""]),
    ];
    for (name, (width, height), queries) in files {
        assert_estimated(&folder, name, &Picture::noise(width, height).png(), queries);
    }
}

#[test]
fn no_animated_png_takes_more_than_was_estimated() {
    let folder = Folder::new();
    let noise = Picture::noise(1000, 1000);
    let clear = Picture::of(1000, 1000, |x, y| {
        let [red, green, blue, _] = noise.at(x, y);
        [red, green, blue, green ^ blue]
    });
    let animation = animated_rgba(
        &[noise, clear.clone(), clear],
        png::DisposeOp::Previous,
        png::BlendOp::Over,
    );
    assert_estimated(&folder, "noise-animation.png", &animation, ANIMATED);
}

#[test]
fn no_jpeg_takes_more_than_was_estimated() {
    let folder = Folder::new();
    let noise = Picture::noise(2000, 1500);
    let files = [
        (
            "sequential.jpg",
            jpeg(&noise, Kind::Sequential),
            &[
                "",
                "quality=0",
                "quality=100",
                "effort=high",
                "mode=lossless",
                WATERMARKED,
                SMALL,
                ALIKE,
            ][..],
        ),
        ("turned.jpg", turned(&jpeg(&noise, Kind::Sequential)), &[""]),
        (
            "wide.jpg",
            jpeg(&Picture::noise(16383, 150), Kind::Sequential),
            &[""],
        ),
        ("progressive.jpg", jpeg(&noise, Kind::Progressive), &[""]),
        (
            "progressive-444.jpg",
            jpeg(&noise, Kind::ProgressiveFull),
            &[""],
        ),
    ];
    for (name, bytes, queries) in files {
        assert_estimated(&folder, name, &bytes, queries);
    }
}

#[test]
fn no_picture_of_16_bits_takes_more_than_was_estimated() {
    let folder = Folder::new();
    let large = Picture::noise(2000, 1500);
    for (name, bytes) in [
        ("plain.png", sixteen_bit(&large, None)),
        ("linear.png", sixteen_bit(&large, Some(1.0))),
        ("small.png", sixteen_bit(&Picture::noise(40, 30), Some(1.0))),
        (
            "wide.png",
            sixteen_bit(&Picture::noise(16383, 20), Some(1.0)),
        ),
    ] {
        assert_estimated(&folder, name, &bytes, &[""]);
    }
}

/// Measures the conversion of a file of this name with each of the queries.
#[track_caller]
fn assert_estimated(folder: &Folder, name: &str, bytes: &[u8], queries: &[&str]) {
    let path = folder.path.join(name);
    fs::write(&path, bytes).expect("a new file");
    for query in queries {
        let Measured { taken, estimated } = measure(&path, query);
        assert!(
            taken <= estimated,
            "{name} {query}: {taken} bytes, estimated were {estimated}"
        );
    }
}

#[test]
fn photographs_are_estimated_within_twice_as_much() {
    let folder = Folder::new();
    let photograph = photograph();
    // The encoder's part is that of noise. Where a picture is RGB before, that takes more.
    for (name, bytes, most_tenths) in [
        ("photograph.png", photograph.png(), 21),
        ("photograph.bmp", photograph.bmp(), 15),
    ] {
        let path = folder.path.join(name);
        fs::write(&path, bytes).expect("a new file");
        for query in ["quality=75", "", "quality=95"] {
            // What a smaller conversion before has left is used again, more or less of it as the
            // threads come, so the largest of three is what the conversion takes.
            let measured = [(); 3].map(|()| measure(&path, query));
            let largest = measured.into_iter().max_by_key(|measured| measured.taken);
            let Measured { taken, estimated } = largest.expect("there are three");
            assert!(
                taken <= estimated && estimated <= taken * most_tenths / 10,
                "{name} {query}: {taken} bytes, estimated were {estimated}"
            );
        }
    }
}

#[test]
#[ignore = "of a folder that the environment names"]
fn pictures_of_a_folder() {
    let folder = std::env::var("TOWEBP_PICTURES").expect("TOWEBP_PICTURES names a folder");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let mut exceeded = Vec::new();
    for (file, query) in files
        .iter()
        .flat_map(|file| ["quality=50", "", "quality=100"].map(|query| (file, query)))
    {
        let Measured { taken, estimated } = measure(file, query);
        let name = file.file_name().unwrap_or_default().display();
        let ratio = estimated as f64 / taken as f64;
        println!("{name:24} {query:12} {taken:11} {estimated:11} {ratio:5.2}");
        if taken > estimated {
            exceeded.push(file);
        }
    }
    assert!(exceeded.is_empty(), "more than estimated: {exceeded:?}");
}

/// A photograph of 2400 x 1600 pixels, made of a shipped one and its mirror images.
fn photograph() -> Picture {
    let bytes = fs::read("testdata/coffee.jpg").expect("it is shipped");
    let image = image::decode(&bytes, Format::Jpeg, &Limits::default(), &Cancel::never())
        .expect("it is valid");
    assert_eq!(image.layout, Layout::Rgb);
    let mirrored = |at: u32, side: u32| {
        if (at / side).is_multiple_of(2) {
            at % side
        } else {
            side - 1 - at % side
        }
    };
    Picture::of(image.width * 4, image.height * 4, |x, y| {
        let (x, y) = (mirrored(x, image.width), mirrored(y, image.height));
        let pixel = &image.pixels[(y * image.width + x) as usize * 3..][..3];
        [pixel[0], pixel[1], pixel[2], 255]
    })
}

/// The JPEG with Exif data by which it is shown turned to the right.
fn turned(jpeg: &[u8]) -> Vec<u8> {
    let exif =
        b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let (start, rest) = jpeg.split_at(2);
    [start, exif, rest].concat()
}

/// A PNG of 16 bits per sample, with a `gAMA` chunk if a gamma is given.
fn sixteen_bit(picture: &Picture, gamma: Option<f32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    if let Some(gamma) = gamma {
        encoder.set_source_gamma(png::ScaledFloat::new(gamma));
    }
    let samples: Vec<u8> = picture
        .pixels
        .iter()
        .flatten()
        .flat_map(|&sample| [sample, 0])
        .collect();
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&samples))
        .expect("a valid picture");
    bytes
}

/// A PNG of few pixels and several megabytes of metadata.
fn described() -> Vec<u8> {
    let mut exif = b"II*\0".to_vec();
    exif.resize(6 << 20, 7);
    let mut info = png::Info::with_size(40, 30);
    info.color_type = png::ColorType::Rgb;
    info.exif_metadata = Some(exif.into());
    let mut bytes = Vec::new();
    png::Encoder::with_info(&mut bytes, info)
        .and_then(png::Encoder::write_header)
        .and_then(|mut writer| {
            let packet = [&b"XML:com.adobe.xmp\0\0\0\0\0"[..], &vec![b' '; 4 << 20]].concat();
            writer.write_chunk(png::chunk::iTXt, &packet)?;
            writer.write_image_data(&[90; 40 * 30 * 3])
        })
        .expect("a valid picture");
    bytes
}

/// A PNG without compression, as some programs store screenshots.
fn stored(picture: &Picture) -> Vec<u8> {
    let samples: Vec<u8> = (picture.pixels.iter())
        .flat_map(|pixel| &pixel[..3])
        .copied()
        .collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::NoCompression);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&samples))
        .expect("a valid picture");
    bytes
}

/// What one conversion took and what was estimated for it, in bytes.
struct Measured {
    taken: u64,
    estimated: u64,
}

fn measure(picture: &Path, query: &str) -> Measured {
    let case = format!("{} {query}", picture.display());
    let tunables = "glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=1048576";
    let text = in_own_process(
        "estimate::conversion_in_a_process_of_its_own",
        &[(CASE, &case), ("GLIBC_TUNABLES", tunables)],
    );
    let numbers = text
        .lines()
        .find_map(|line| line.split_once("measured ")?.1.split_once(' '));
    let (taken, estimated) = numbers.unwrap_or_else(|| panic!("{case}: {text}"));
    Measured {
        taken: taken.parse().expect("a number"),
        estimated: estimated.parse().expect("a number"),
    }
}

/// [`measure`] starts it in a process of its own, with [`CASE`] set. It does nothing without.
#[test]
fn conversion_in_a_process_of_its_own() {
    let Ok(case) = std::env::var(CASE) else {
        return;
    };
    let (path, query) = case.split_once(' ').expect("a file and a query");
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_ref()));
    let params = Params::parse(pairs).expect("valid parameters");
    let cpu_budget = CpuBudget::new(NonZeroUsize::new(2).expect("not zero"));
    let limits = Limits::default();
    let mark = fs::read(Path::new(path).with_extension("mark")).ok();
    let cancel = Cancel::never();
    let job = |bytes| Job {
        bytes,
        format: Format::sniff(bytes).expect("a picture"),
        params: &params,
        watermark_picture: mark.as_deref(),
        limits: &limits,
        fonts: Fonts::bundled(),
        threads: cpu_budget.total(),
        cpu_budget: Some(&cpu_budget),
        cancel: &cancel,
    };
    // The program's own pages.
    let small = fs::read("testdata/coffee.jpg").expect("it is shipped");
    conversion::run(&job(&small)).expect("it is valid");

    let bytes = fs::read(path).expect("the file was written");
    let Job { format, .. } = job(&bytes);
    let before = memory("VmRSS");
    let opened = image::open(&bytes, format, &limits).expect("valid headers");
    let resources = Resources {
        fonts: Fonts::bundled(),
        threads: cpu_budget.total(),
        cpu_budget: Some(&cpu_budget),
    };
    let plan = Plan::new(&opened, &params, mark.as_deref(), resources).expect("valid headers");
    let estimated = Cell::new(plan.memory());
    let may_hold = |bytes| {
        estimated.set(bytes);
        true
    };
    let converted = plan.run_within(&cancel, &may_hold);
    let taken = memory("VmHWM").saturating_sub(before);
    drop(converted.expect("a valid picture"));
    let estimated = estimated.get();
    assert!(estimated <= conversion::memory(&job(&bytes)).expect("valid headers"));
    println!("measured {taken} {estimated}");
}

/// A line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = value.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.expect("it is in KiB") * 1024
}
