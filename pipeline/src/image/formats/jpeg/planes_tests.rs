//! Tests of decoding a JPEG to planes.

use super::tests::{
    adobe, blocks_of, entropy_code, jpeg, pixels, read, segment, subsampled, turning,
};
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::metadata::{Keep, Metadata};
use crate::image::planes::{Planes, limit_luma};
use crate::image::testing::LIMITS;
use crate::image::{Format, Luma, open};
use std::sync::atomic::{AtomicUsize, Ordering};
use towebp_encoder::{Cancel, Workers};

fn try_planes(
    bytes: &[u8],
    cancel: &Cancel<'_>,
) -> Result<Option<(Planes, Metadata)>, DecodeError> {
    let workers = Workers::new(1, None, cancel);
    open(bytes, Format::Jpeg, &LIMITS)?.decode_planes(Keep::NOTHING, Luma::AtCentroids, workers)
}

fn planes(bytes: &[u8]) -> Option<Planes> {
    let (planes, _) = try_planes(bytes, &Cancel::never()).expect("a valid picture")?;
    Some(planes)
}

/// A sample of full range in that of luma.
fn limited(sample: u8) -> u8 {
    let mut sample = [sample];
    limit_luma(&mut sample);
    sample[0]
}

const FOUR_UNITS: [[u8; 6]; 4] = [
    [0, 10, 20, 30, 128, 0],
    [40, 50, 60, 70, 255, 3],
    [80, 90, 100, 110, 7, 250],
    [255, 240, 230, 220, 60, 190],
];

/// 30 x 18 pixels of four units.
fn four_units(segments: &[u8]) -> Vec<u8> {
    subsampled((30, 18), &FOUR_UNITS, segments)
}

/// A file as a progressive one, of DC coefficients alone: component and sample of each block.
fn progressive(sequential: &[u8], blocks: &[(u8, u8)], components: usize) -> Vec<u8> {
    let mut file = sequential.to_vec();
    let place = |file: &[u8], marker| {
        let place = file.windows(2).position(|pair| pair == [0xff, marker]);
        place.expect("it has the segment")
    };
    let frame = place(&file, 0xc0);
    file[frame + 1] = 0xc2;
    // The first and the last coefficient stand behind marker, length, count and selectors.
    let coefficients = place(&file, 0xda) + 5 + 2 * components;
    file[coefficients + 1] = 0;
    file.truncate(coefficients + 3);
    file.extend(entropy_code(blocks, ""));
    file.extend([0xff, 0xd9]);
    file
}

#[test]
fn planes_are_the_samples_of_the_file_in_limited_range() {
    let planes = planes(&four_units(&[])).expect("it is in 4:2:0");
    assert_eq!((planes.width, planes.height), (30, 18));
    assert_eq!(
        (planes.luma.len(), planes.chroma[0].len()),
        (32 * 32, 16 * 16)
    );
    let luma = [[0, 10, 40, 50], [20, 30, 60, 70], [80, 90, 255, 240]];
    for (y, x) in (0..18).flat_map(|y| (0..30).map(move |x| (y, x))) {
        let expected = limited(luma[y / 8][x / 8]);
        assert_eq!(planes.luma[y * 32 + x], expected, "Y at {x}, {y}");
    }
    // 16 to 240, of which 128 is the middle.
    let chroma = [[[128, 240], [22, 68]], [[16, 18], [235, 182]]];
    for (y, x) in (0..9).flat_map(|y| (0..15).map(move |x| (y, x))) {
        for (plane, expected) in planes.chroma.iter().zip(chroma) {
            let expected = expected[y / 8][x / 8];
            assert_eq!(plane[y * 16 + x], expected, "chroma at {x}, {y}");
        }
    }
}

#[test]
fn progressive_gray_has_the_planes_of_sequential_gray() {
    for (width, height) in [(8u16, 8u16), (20, 30), (33, 9)] {
        let count = width.div_ceil(8) * height.div_ceil(8);
        let samples: Vec<[u8; 1]> = (0..count).map(|index| [(index * 19) as u8]).collect();
        let blocks: Vec<&[u8]> = samples.iter().map(<[u8; 1]>::as_slice).collect();
        let sequential = jpeg(width, height, &blocks, &[]);
        let blocks: Vec<(u8, u8)> = samples.iter().map(|[sample]| (0, *sample)).collect();
        let progressive = progressive(&sequential, &blocks, 1);
        let expected = planes(&sequential);
        assert!(expected.is_some() && planes(&progressive) == expected);
        for length in 3..progressive.len() {
            let outcome = try_planes(&progressive[..length], &Cancel::never());
            assert!(!matches!(outcome, Ok(Some(_))), "{length} bytes");
        }
    }
    let color = progressive(&four_units(&[]), &blocks_of(&FOUR_UNITS), 3);
    assert!(planes(&color).is_none(), "RGB takes less");
    assert!(!pixels(&color).is_empty(), "it is a good file");
}

#[test]
fn gray_is_mirrored_along_odd_sides() {
    for orientation in 1..=8 {
        let file = jpeg(9, 7, &[&[200], &[3]], &turning(orientation));
        assert!(planes(&file).is_some(), "orientation {orientation}");
    }
}

#[test]
fn gray_has_planes_without_color() {
    let planes = planes(&jpeg(9, 8, &[&[200], &[3]], &[])).expect("gray");
    assert_eq!(planes.luma[..8], [limited(200); 8]);
    assert_eq!(planes.luma[8], limited(3));
    assert_eq!(planes.chroma, [[128; 64], [128; 64]]);
}

#[test]
fn planes_are_oriented_as_pixels_are() {
    let units = [
        [0, 10, 20, 30, 128, 128],
        [40, 50, 60, 70, 128, 128],
        [80, 90, 100, 110, 128, 128],
        [255, 240, 230, 220, 128, 128],
    ];
    for orientation in 1..=8 {
        let file = subsampled((30, 18), &units, &turning(orientation));
        let limits = Limits::DEFAULT;
        let cancel = Cancel::never();
        let image =
            crate::image::decode(&file, Format::Jpeg, &limits, &cancel).expect("a valid picture");
        let planes = planes(&file).expect("even sides");
        assert_eq!((planes.width, planes.height), (image.width, image.height));
        let (width, stride) = (image.width as usize, planes.luma_stride());
        for (y, row) in image.pixels.chunks_exact(width * 3).enumerate() {
            let expected: Vec<u8> = row.iter().step_by(3).map(|&gray| limited(gray)).collect();
            let got = &planes.luma[y * stride..][..width];
            assert_eq!(got, expected, "row {y}, orientation {orientation}");
        }
    }
}

#[test]
fn pictures_that_cannot_stay_in_ycbcr_have_no_planes() {
    let colors = [[9, 8, 7].as_slice(); 4];
    assert!(planes(&jpeg(30, 8, &colors, &[])).is_none(), "4:4:4");
    let broken = segment(0xe2, b"ICC_PROFILE\0\x01\x01profile");
    assert!(planes(&four_units(&broken)).is_none(), "a profile");
    let profile = |profile: moxcms::ColorProfile| {
        let profile = profile.encode().expect("a valid profile");
        segment(0xe2, &[b"ICC_PROFILE\0\x01\x01", &profile[..]].concat())
    };
    let display_p3 = profile(moxcms::ColorProfile::new_display_p3());
    assert!(planes(&four_units(&display_p3)).is_none(), "Display P3");
    let srgb = profile(moxcms::ColorProfile::new_srgb());
    assert_eq!(planes(&four_units(&srgb)), planes(&four_units(&[])), "sRGB");
    // Numbers that are impossible make it none.
    let mut first_of_two = broken.clone();
    first_of_two[4 + 13] = 2; // behind marker, length, name and its number
    let plain = planes(&four_units(&[]));
    assert_eq!(planes(&four_units(&first_of_two)), plain, "a part");
    let twice = [broken.clone(), broken].concat();
    assert_eq!(planes(&four_units(&twice)), plain, "twice the first");
    let halves = [&b"\x02\x02file"[..], b"\x01\x02pro"]
        .map(|half| segment(0xe2, &[&b"ICC_PROFILE\0"[..], half].concat()));
    assert!(planes(&four_units(&halves.concat())).is_none(), "two parts");
    assert!(planes(&four_units(&adobe(0))).is_none(), "RGB");
    assert!(planes(&four_units(&adobe(1))).is_some(), "YCbCr by name");
    let cmyk: &[&[u8]] = &[&[9, 8, 7, 6]];
    assert!(planes(&jpeg(8, 8, cmyk, &adobe(0))).is_none(), "CMYK");
    // The sides of 9 x 8 that an orientation mirrors: none, width, both, height, none, height,
    // both, width.
    for (orientation, stays) in (1..).zip([true, false, false, true, true, true, false, false]) {
        let odd = subsampled((9, 8), &[[1, 2, 3, 4, 5, 6]], &turning(orientation));
        assert_eq!(planes(&odd).is_some(), stays, "orientation {orientation}");
    }
}

#[test]
fn planes_of_a_file_that_is_cut_short_anywhere_are_rejected() {
    let file = four_units(&[]);
    let is_rejected = |file: &[u8]| !matches!(try_planes(file, &Cancel::never()), Ok(Some(_)));
    for length in 3..file.len() {
        assert!(is_rejected(&file[..length]), "{length} bytes were enough");
    }
    let start = file.windows(2).position(|pair| pair == [0xff, 0xda]);
    let scan = start.expect("it has a scan") + 14..file.len() - 2;
    for length in scan {
        let ended = [&file[..length], &[0xff, 0xd9]].concat();
        assert!(is_rejected(&ended), "{length} bytes and an end were enough");
    }
}

#[test]
fn planes_are_given_up_once_it_is_cancelled() {
    let file = four_units(&[]);
    let outcome = |most: usize| {
        let checks = AtomicUsize::new(0);
        let question = || checks.fetch_add(1, Ordering::Relaxed) >= most;
        let cancel = Cancel::when(&question);
        try_planes(&file, &cancel)
    };
    let enough = (0..100).find(|&most| outcome(most) != Err(DecodeError::Cancelled));
    let enough = enough.expect("a small picture");
    assert!(matches!(outcome(enough), Ok(Some(_))));
    assert!(enough >= 4, "{enough} checks");
}

#[test]
fn a_profile_with_impossible_numbers_is_ignored() {
    let plain = four_units(&[]);
    for numbers in [[0, 1], [1, 0], [2, 1], [0, 0], [1, 2], [3, 2]] {
        let data = [&b"ICC_PROFILE\0"[..], &numbers, b"profile"].concat();
        let file = four_units(&segment(0xe2, &data));
        let raw = read(&file, &LIMITS, &Cancel::never()).expect("the picture is whole");
        assert_eq!(raw.space, None, "{numbers:?}");
        assert_eq!(raw.image.pixels, pixels(&plain), "{numbers:?}");
        assert_eq!(planes(&file), planes(&plain), "{numbers:?}");
    }
}
