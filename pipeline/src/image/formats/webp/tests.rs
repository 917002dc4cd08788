use super::*;
use crate::image::pixels::{Image, Layout};
use crate::image::testing::{LIMITS, assert_as_promised, assert_parts_are_rejected};
use crate::image::{Format, open};
use image_webp::WebPDecoder;
use outline::Frame;
use std::io::Cursor;
use towebp_encoder::testing::Random;
use towebp_encoder::{AnimationEncoder, ColorType, Encoder, Picture, Workers};

/// Soft colors with some noise, partly transparent.
fn pixels(random: &mut Random, (width, height): (u32, u32), layout: Layout) -> Vec<u8> {
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixel = |(x, y): (u32, u32)| {
        let noise = random.below(9);
        [x * 5 + noise, y * 6 + noise, 90 + noise, (x * y) % 256].map(|sample| sample as u8)
    };
    let pixels = places.map(pixel);
    let channels = layout.channels();
    pixels
        .flat_map(|pixel| pixel.into_iter().take(channels))
        .collect()
}

fn encoded(encoder: &Encoder<'_>, size: (u32, u32), layout: Layout) -> Vec<u8> {
    let pixels = pixels(&mut Random::new(7), size, layout);
    let color = match layout {
        Layout::Rgb => ColorType::Rgb8,
        Layout::Rgba => ColorType::Rgba8,
    };
    let picture = Picture::new(size.0, size.1, color, &pixels).expect("a picture");
    encoder.encode(&picture).expect("a picture").file
}

fn animated(encoder: Encoder<'_>) -> Vec<u8> {
    let mut animation = AnimationEncoder::new(encoder, (40, 30), 3).expect("an animation");
    for seed in 0..4 {
        let pixels = pixels(&mut Random::new(seed), (40, 30), Layout::Rgba);
        let picture = Picture::new(40, 30, ColorType::Rgba8, &pixels).expect("a picture");
        animation.add(&picture, 40 + seed as u32).expect("a frame");
    }
    animation.finish().expect("an animation").file
}

/// Files of every kind, by their names.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let (lossy, lossless) = (Encoder::lossy(80), Encoder::lossless());
    let rough = Encoder::lossy(80).alpha_quality(40);
    vec![
        ("lossy", encoded(&lossy, (33, 21), Layout::Rgb)),
        ("lossy with alpha", encoded(&lossy, (40, 30), Layout::Rgba)),
        ("rough alpha", encoded(&rough, (40, 30), Layout::Rgba)),
        (
            "partitions",
            encoded(&lossy.log2_partitions(2), (40, 60), Layout::Rgb),
        ),
        ("lossless", encoded(&lossless, (40, 30), Layout::Rgb)),
        (
            "lossless with alpha",
            encoded(&lossless, (33, 21), Layout::Rgba),
        ),
        ("one pixel", encoded(&lossless, (1, 1), Layout::Rgb)),
        ("animated", animated(lossy)),
        ("animated lossless", animated(lossless)),
    ]
}

fn read(bytes: &[u8], limits: &Limits, cancel: &Cancel<'_>) -> Result<Decoded, DecodeError> {
    let promised = *open(bytes, Format::Webp, limits)?.footprint();
    let decoded = decode(&Header::read(bytes, limits)?, limits, cancel)?;
    assert_as_promised(&promised, &decoded.image);
    Ok(decoded)
}

/// The picture as the decoder reads all of the file.
fn by_the_decoder_alone(file: &[u8]) -> Image {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).expect("a good file");
    let (width, height) = decoder.dimensions();
    let layout = if decoder.has_alpha() {
        Layout::Rgba
    } else {
        Layout::Rgb
    };
    let size = decoder.output_buffer_size().expect("it is small");
    let mut pixels = vec![0; size];
    decoder.read_image(&mut pixels).expect("a good file");
    Image {
        width,
        height,
        layout,
        pixels,
    }
}

#[test]
fn pictures_are_those_of_the_decoder() {
    for (name, file) in files() {
        if name.starts_with("animated") {
            continue; // the colors of what is transparent differ
        }
        let image = read(&file, &LIMITS, &Cancel::never()).expect(name).image;
        let never = Cancel::never();
        let image = image.drop_opaque_alpha(&never).expect("not cancelled");
        let expected = by_the_decoder_alone(&file).drop_opaque_alpha(&never);
        assert!(Ok(image) == expected, "{name}");
    }
}

#[test]
fn frames_are_those_of_the_decoder() {
    for (name, file) in files()
        .into_iter()
        .filter(|(name, _)| name.starts_with("animated"))
    {
        let never = Cancel::never();
        let header = Header::read(&file, &LIMITS).expect("a good file");
        let mut frames = frames(&header, Keep::NOTHING, &LIMITS, &never);
        let mut decoder = WebPDecoder::new(Cursor::new(&file)).expect("a good file");
        let mut expected = vec![0; decoder.output_buffer_size().expect("it is small")];
        let mut milliseconds = Vec::new();
        while let Some(frame) = frames.draw().expect("a good frame") {
            decoder.read_frame(&mut expected).expect("a good frame");
            let apart = |(a, b): (&[u8; 4], &[u8; 4])| {
                // The color of what is transparent is nobody's.
                a != b && (a[3], b[3]) != (0, 0)
            };
            let drawn = frames.canvas().pixels.as_chunks().0;
            let wrong = drawn
                .iter()
                .zip(expected.as_chunks().0)
                .filter(|pair| apart(*pair));
            assert_eq!(wrong.count(), 0, "{name}");
            milliseconds.push(frame.milliseconds);
        }
        assert_eq!((milliseconds, frames.loops()), (vec![40, 41, 42, 43], 3));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_rejected() {
    for (_, file) in files() {
        assert_parts_are_rejected(read, &file, 12..file.len());
    }
}

#[test]
fn a_damaged_file_never_panics_beyond_its_reader() {
    for (name, file) in files() {
        for at in 0..file.len() {
            for flipped in [1 << (at % 8), 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flipped;
                let opened = open(&damaged, Format::Webp, &LIMITS);
                let never = Cancel::never();
                let workers = Workers::new(1, None, &never);
                let read = opened.and_then(|opened| opened.decode(Keep::ALL, workers));
                if let Err(error) = read {
                    assert!(!matches!(error, DecodeError::Cancelled), "{name} at {at}");
                }
            }
        }
    }
}

#[test]
fn sizes_are_held_to_the_limits() {
    for (name, file) in files() {
        let limits = Limits {
            max_pixels: 0,
            ..LIMITS
        };
        let error = open(&file, Format::Webp, &limits).err();
        assert!(
            matches!(error, Some(DecodeError::TooManyPixels { .. })),
            "{name}"
        );
    }
    let limits = Limits {
        max_frames: 3,
        ..LIMITS
    };
    let file = animated(Encoder::lossless());
    let opened = open(&file, Format::Webp, &limits).expect("a good header");
    let animation = opened.animation().expect("it is animated");
    let too_many = DecodeError::TooManyFrames { max_frames: 3 };
    assert_eq!(animation.footprint(), Err(too_many));
}

#[test]
fn the_header_tells_what_the_file_is() {
    for (name, file) in files() {
        let header = Header::read(&file, &LIMITS).expect("a good header");
        assert_eq!(header.is_animated(), name.starts_with("animated"), "{name}");
        let is_lossy = ["lossy", "lossy with alpha", "rough alpha", "partitions"].contains(&name);
        assert_eq!(header.is_lossy(), is_lossy, "{name}");
        assert_eq!(header.upright_size(), header.size(), "{name}");
    }
}

#[test]
fn an_animation_takes_its_canvas_its_largest_frame_twice_and_the_list() {
    let file = animated(Encoder::lossless());
    let header = Header::read(&file, &LIMITS).expect("a good header");
    let first = header.footprint(&LIMITS).expect("a small picture");
    let all = header.animation_footprint(&first, &LIMITS);
    let all = all.expect("small frames").decoder;
    let (frames, _) = header.frames();
    assert_eq!(frames.len(), 4);
    let frame = Frame::read(frames[0], (40, 30)).expect("a good frame");
    assert_eq!(frame.bitstream.size, (40, 30), "all of it is new");
    let decoding = frame.bitstream.memory(&mut { u64::MAX });
    let pixels = 4 * 40 * 30;
    assert_eq!(first.decoder, 3 * pixels + decoding.expect("a good frame"));
    let list = 4 * size_of::<&[u8]>() as u64;
    assert!(
        (first.decoder + list..2 * first.decoder).contains(&all),
        "{all}"
    );
}

#[test]
fn metadata_is_read_and_the_picture_oriented() {
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let profile = moxcms::ColorProfile::new_display_p3().encode();
    let profile = profile.expect("a good profile");
    let encoder = Encoder::lossless()
        .exif(exif)
        .xmp(b"<x/>")
        .icc_profile(&profile);
    for file in [encoded(&encoder, (40, 30), Layout::Rgb), animated(encoder)] {
        let opened = open(&file, Format::Webp, &LIMITS).expect("a good file");
        let never = Cancel::never();
        let workers = Workers::new(1, None, &never);
        assert_eq!(opened.upright_size(), Some((30, 40)));
        let header = Header::read(&file, &LIMITS).expect("a good file");
        assert_eq!(header.kept_profile(Keep::ALL), Some(profile.clone()));
        assert_eq!(header.kept_profile(Keep::NOTHING), None);
        let (image, metadata) = opened.decode(Keep::ALL, workers).expect("a good file");
        assert_eq!((image.width, image.height), (30, 40));
        assert_eq!(metadata.icc, Some(profile.clone()));
        assert_eq!(metadata.xmp.as_deref(), Some(&b"<x/>"[..]));
        assert!(metadata.exif.is_some());
        let (other, metadata) = opened.decode(Keep::NOTHING, workers).expect("a good file");
        assert!(other != image, "its colors became sRGB");
        assert_eq!(metadata, crate::image::Metadata::default());
    }
}
