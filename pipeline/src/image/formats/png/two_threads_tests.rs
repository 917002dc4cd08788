//! Tests of [`super::inflate`] and [`super::decode_planes`]: two threads give what one gives, and
//! rows give what the whole picture gives, whatever the file has.

use super::tests::{info, png};
use super::{Header, decode, decode_planes};
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use crate::image::pixels::Layout;
use crate::image::testing::with_a_core_needed_elsewhere;
use ::png::{BitDepth, ColorType};
use std::sync::atomic::{AtomicUsize, Ordering};
use towebp_encoder::testing::Random;
use towebp_encoder::{Cancel, Planes, PlanesBuilder, Workers};

/// Noise, half of which repeats from all distances that a match may have.
fn noise(length: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    let mut bytes: Vec<u8> = Vec::with_capacity(length);
    while bytes.len() < length {
        let distance = random.index(1 << 15) + 1;
        match bytes.len().checked_sub(distance) {
            Some(from) if random.below(2) == 0 => {
                bytes.extend_from_within(from..from + distance.min(100));
            }
            _ => bytes.push(random.byte()),
        }
    }
    bytes.truncate(length);
    bytes
}

/// A picture that is large enough for a helper, and its samples.
fn large(color: ColorType, depth: BitDepth) -> (Vec<u8>, Vec<u8>) {
    let samples = noise(700 * 510 * color.samples() * depth as usize / 8);
    (png(info(700, 510, color, depth), &samples), samples)
}

fn pixels(file: &[u8], workers: Workers<'_>) -> Result<(Layout, Vec<u8>), DecodeError> {
    let header = Header::read(file, &Limits::DEFAULT)?;
    let decoded = decode(file, Keep::NOTHING, &header, &Limits::DEFAULT, workers)?;
    Ok((decoded.image.layout, decoded.image.pixels))
}

fn planes(file: &[u8], workers: Workers<'_>) -> Result<Option<Planes>, DecodeError> {
    let header = Header::read(file, &Limits::DEFAULT)?;
    let planes = decode_planes(
        file,
        Keep::NOTHING,
        true,
        &header,
        &Limits::DEFAULT,
        workers,
    )?;
    Ok(planes.map(|decoded| decoded.planes))
}

fn assert_same(file: &[u8], what: &str) {
    let never = Cancel::never();
    let [one, two] = [1, 2].map(|threads| {
        let workers = Workers::new(threads, None, &never);
        (pixels(file, workers), planes(file, workers))
    });
    assert!(one == two, "{what}");
    assert_eq!(one.0.as_ref().err(), one.1.as_ref().err(), "{what}");
    let (Ok((layout, rgb)), Ok(planes)) = one else {
        return;
    };
    assert_eq!(planes.is_some(), layout == Layout::Rgb, "{what}");
    if let Some(planes) = planes {
        let mut builder = PlanesBuilder::new((700, 510)).expect("a good size");
        for row in rgb.chunks(700 * 3) {
            builder.push_row(row).expect("a good row");
        }
        assert!(builder.finish().as_ref() == Ok(&planes), "{what}");
    }
}

#[test]
fn every_kind_of_picture_is_the_same() {
    for (color, depth) in [
        (ColorType::Rgb, BitDepth::Eight),
        (ColorType::Rgb, BitDepth::Sixteen),
        (ColorType::Rgba, BitDepth::Eight),
        (ColorType::Grayscale, BitDepth::Eight),
        (ColorType::Grayscale, BitDepth::Two),
        (ColorType::GrayscaleAlpha, BitDepth::Sixteen),
    ] {
        let (file, samples) = large(color, depth);
        assert_same(&file, &format!("{color:?} {depth:?}"));
        if (color, depth) == (ColorType::Rgb, BitDepth::Eight) {
            let never = Cancel::never();
            let decoded = pixels(&file, Workers::new(2, None, &never));
            assert!(decoded == Ok((Layout::Rgb, samples)));
        }
    }
}

#[test]
fn pictures_in_another_color_space_are_rgb_first() {
    let mut calibrated = info(700, 510, ColorType::Rgb, BitDepth::Eight);
    calibrated.source_gamma = Some(::png::ScaledFloat::new(1.0));
    let samples = noise(700 * 510 * 3);
    let never = Cancel::never();
    let workers = Workers::new(2, None, &never);
    assert_eq!(
        planes(&png(calibrated.clone(), &samples), workers),
        Ok(None)
    );
    calibrated.source_gamma = Some(::png::ScaledFloat::from_scaled(45455));
    let is_planes = planes(&png(calibrated, &samples), workers).map(|planes| planes.is_some());
    assert_eq!(is_planes, Ok(true), "it is that of sRGB");
}

#[test]
fn damaged_files_have_the_same_outcome() {
    let (file, _) = large(ColorType::Rgb, BitDepth::Eight);
    let mut state = 1u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for _ in 0..40 {
        let mut damaged = file.clone();
        let place = 33 + random(file.len() - 33);
        match random(3) {
            0 => damaged[place] ^= 1 << random(8),
            1 => damaged.truncate(place),
            _ => drop(damaged.drain(place..(place + random(40)).min(file.len()))),
        }
        assert_same(&damaged, "damaged");
    }
    // Between chunks, and behind the end.
    let end = file.len() - 12;
    let foreign = [
        &[0, 0, 0, 0][..],
        b"abCd",
        &crc32fast::hash(b"abCd").to_be_bytes(),
    ]
    .concat();
    let empty = [
        &[0, 0, 0, 0][..],
        b"IDAT",
        &crc32fast::hash(b"IDAT").to_be_bytes(),
    ]
    .concat();
    for (place, inserted) in [
        (33, &foreign),
        (end, &foreign),
        (end, &empty),
        (33, &empty),
        (file.len(), &foreign),
    ] {
        let mut longer = file.clone();
        drop(longer.splice(place..place, inserted.iter().copied()));
        assert_same(&longer, "with one more chunk");
    }
}

/// Bytes whose checksum is right may inflate to something else.
#[test]
fn damaged_compressed_data_have_the_same_outcome() {
    let (file, _) = large(ColorType::Rgb, BitDepth::Eight);
    let first = file
        .windows(4)
        .position(|name| name == b"IDAT")
        .expect("one");
    let length = u32::from_be_bytes(file[first - 4..first].try_into().expect("four bytes"));
    let end = first + 4 + length as usize;
    for place in [
        first + 4,
        first + 6,
        first + 90,
        first + 5000,
        end - 5000,
        end - 2,
    ] {
        let mut damaged = file.clone();
        damaged[place] ^= 0x10;
        let checksum = crc32fast::hash(&damaged[first..end]).to_be_bytes();
        damaged[end..end + 4].copy_from_slice(&checksum);
        assert_same(&damaged, "damaged compressed data");
    }
}

#[test]
fn a_core_that_is_needed_elsewhere_is_given_back() {
    let (file, samples) = large(ColorType::Rgb, BitDepth::Eight);
    with_a_core_needed_elsewhere(20, |workers| {
        let decoded = pixels(&file, workers);
        assert!(decoded.is_ok_and(|(_, pixels)| pixels == samples));
    });
}

#[test]
fn it_ends_whenever_it_is_cancelled() {
    let (file, _) = large(ColorType::Rgb, BitDepth::Eight);
    for allowed in (0..600).step_by(19) {
        let asked = AtomicUsize::new(0);
        let is_unwanted = || asked.fetch_add(1, Ordering::Relaxed) >= allowed;
        let cancel = Cancel::when(&is_unwanted);
        let decoded = planes(&file, Workers::new(2, None, &cancel));
        assert!(
            decoded.is_err() || !cancel.is_set(),
            "after {allowed} checks"
        );
    }
}
