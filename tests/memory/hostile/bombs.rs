//! Small files that ask for much: memory, time, or both.

use super::{Canceller, SMALL, convert, convert_with};
use crate::counting::peak_of_thread;
use crate::is_alone;
use crate::peaks::measure;
use crate::support::hostile::{
    END_OF_IMAGE, baseline_scan, bmp_with_profile, chunk, deflated_zeros, empty_scan, first_scan,
    gif_beyond_its_screen, gif_head, gif_image, gif_with_extensions, ihdr, jpeg_head,
    jpeg_with_concealed_scans, png, run_length_bmp, scans_of_runs, segment,
};
use crate::support::picture::Picture;
use std::time::{Duration, Instant};
use towebp_pipeline::conversion::ConversionError;
use towebp_pipeline::image::{DecodeError, Limits};

/// The bytes of the decoders' own buffers, at most.
const OWN: usize = 12 << 20;

/// Asserts that the conversion gives a picture or an error for the caller, and holds no more than
/// `most` bytes beside the decoders' own buffers.
#[track_caller]
fn is_bounded(name: &str, file: &[u8], most: usize) -> Result<(), DecodeError> {
    let (outcome, held) = peak_of_thread(|| convert(file, &SMALL, None, &Canceller::never()));
    assert!(held <= OWN + most, "{name}: {held} bytes held");
    match outcome {
        Ok(_) => Ok(()),
        Err(ConversionError::Picture(error)) => Err(error),
        Err(other) => panic!("{name}: {other}"),
    }
}

/// A picture of that size of each format, with little or nothing behind its header.
fn empty(width: u16, height: u16) -> Vec<(&'static str, Vec<u8>)> {
    let (wide, high) = (u32::from(width), u32::from(height));
    let mut jpeg = jpeg_head(width, height, false);
    jpeg.extend(baseline_scan());
    jpeg.extend([0; 10]);
    jpeg.extend(END_OF_IMAGE);
    let mut gif = gif_head(width, height);
    gif.extend(&gif_image(width, height)[..30]);
    vec![
        (
            "PNG",
            png(&[ihdr(wide, high, false), chunk(*b"IDAT", &deflated_zeros(9))]),
        ),
        (
            "interlaced PNG",
            png(&[ihdr(wide, high, true), chunk(*b"IDAT", &deflated_zeros(9))]),
        ),
        ("JPEG", jpeg),
        ("progressive JPEG", scans_of_runs(width, height)),
        ("GIF", gif),
        (
            "BMP",
            run_length_bmp(i32::from(width), i32::from(height), &[0, 1]),
        ),
    ]
}

#[test]
fn sizes_over_the_limits_take_no_memory() {
    let limits = Limits::default();
    for (width, height, too_wide) in [(16384, 1, true), (10_001, 10_000, false)] {
        for (name, file) in empty(width, height) {
            let (outcome, held) =
                peak_of_thread(|| convert(&file, &limits, None, &Canceller::never()));
            let Err(ConversionError::Picture(error)) = outcome else {
                panic!("{name}: {width} x {height} is allowed");
            };
            match error {
                DecodeError::TooWide { .. } => assert!(too_wide, "{name}: {error}"),
                DecodeError::TooManyPixels { .. } => assert!(!too_wide, "{name}: {error}"),
                _ => panic!("{name}: {error}"),
            }
            assert!(held < 1 << 20, "{name}: {held} bytes");
        }
    }
}

#[test]
fn sizes_without_data_end_by_the_deadline() {
    let (width, height) = (4096, 4096);
    for (name, file) in empty(width, height) {
        let canceller = Canceller {
            until: Some(Instant::now() + Duration::from_millis(50)),
            ..Canceller::never()
        };
        let began = Instant::now();
        let (outcome, held) =
            peak_of_thread(|| convert(&file, &Limits::default(), None, &canceller));
        let pixels = usize::from(width) * usize::from(height);
        assert!(held <= pixels * 12 + OWN, "{name}: {held} bytes");
        assert!(
            matches!(
                outcome,
                Err(ConversionError::Cancelled | ConversionError::Picture(_))
            ),
            "{name} was encoded within 50 ms"
        );
        // Some 100 ms; the rest is for machines that are busy.
        assert!(began.elapsed() < Duration::from_secs(5), "{name}");
    }
}

#[test]
fn files_that_conceal_their_size_are_refused_or_take_what_they_show() {
    let beyond = is_bounded("a frame", &gif_beyond_its_screen(16383, 6103), 0);
    assert!(matches!(beyond, Err(DecodeError::TooManyPixels { .. })));
    let extensions = gif_with_extensions(15 << 20);
    assert_eq!(is_bounded("extensions", &extensions, 0), Ok(()));
    let profile = bmp_with_profile(30 << 20);
    assert_eq!(is_bounded("a profile", &profile, 0), Ok(()));
    let concealed = is_bounded("scans", &jpeg_with_concealed_scans(60, 60), 0);
    assert!(matches!(concealed, Err(DecodeError::Invalid(_))));
    // Parts of profiles between the scans of a progressive file.
    let part = segment(
        0xe2,
        &[&b"ICC_PROFILE\0\x01\x01"[..], &vec![7; 60_000]].concat(),
    );
    let parts = [
        jpeg_head(60, 60, true),
        first_scan(64),
        part.repeat(300),
        empty_scan(1, 1, 64),
        END_OF_IMAGE.to_vec(),
    ];
    assert_eq!(is_bounded("parts of profiles", &parts.concat(), 0), Ok(()));
}

#[test]
fn watermarks_are_bounded_too() {
    let picture = Picture::flat(20, 20, [1, 2, 3]).png();
    for (name, file) in empty(10_001, 10_000) {
        let (outcome, held) = peak_of_thread(|| {
            convert(
                &picture,
                &Limits::default(),
                Some(&file),
                &Canceller::never(),
            )
        });
        assert!(
            matches!(outcome, Err(ConversionError::WatermarkPicture(_))),
            "{name}"
        );
        assert!(held < 1 << 20, "{name}: {held} bytes");
    }
}

/// 32 MiB of zeros in some 32 KB.
fn bomb() -> Vec<u8> {
    deflated_zeros(32 << 20)
}

#[test]
fn png_data_beyond_the_rows_is_not_inflated() {
    let file = png(&[ihdr(20, 20, false), chunk(*b"IDAT", &bomb())]);
    assert_eq!(is_bounded("IDAT", &file, 0), Ok(()));
    // And data that never becomes a row: empty stored blocks (RFC 1951, 3.2.4).
    let idle = [&[0x78, 1][..], &[0, 0, 0, 0xff, 0xff].repeat(200_000)].concat();
    let file = png(&[ihdr(20, 20, false), chunk(*b"IDAT", &idle)]);
    assert!(is_bounded("empty blocks", &file, file.len()).is_err());
}

#[test]
fn png_texts_and_profiles_are_bounded() {
    let bomb = bomb();
    let data = chunk(*b"IDAT", &deflated_zeros(2000));
    let compressed = |kind: [u8; 4], head: &[u8]| chunk(kind, &[head, &bomb].concat());
    let profile = compressed(*b"iCCP", b"p\0\0");
    let cases = [
        ("a profile", vec![profile.clone()]),
        ("many profiles", vec![profile; 30]),
        ("zTXt", vec![compressed(*b"zTXt", b"t\0\0"); 100]),
        ("iTXt", vec![compressed(*b"iTXt", b"t\0\x01\0\0\0"); 100]),
        ("tEXt", vec![chunk(*b"tEXt", b"key\0value"); 50_000]),
        ("a long tEXt", vec![chunk(*b"tEXt", &vec![b'x'; 2 << 20])]),
        ("unknown chunks", vec![chunk(*b"teST", b""); 50_000]),
        (
            "a long unknown chunk",
            vec![chunk(*b"teST", &vec![0; 2 << 20])],
        ),
        ("a long eXIf", vec![chunk(*b"eXIf", &vec![0; 2 << 20])]),
    ];
    for (name, chunks) in cases {
        let file = png(&[vec![ihdr(20, 20, false)], chunks, vec![data.clone()]].concat());
        // A file may be refused for them, but most are a picture.
        if let Err(error) = is_bounded(name, &file, file.len()) {
            assert!(matches!(error, DecodeError::Invalid(_)), "{name}: {error}");
        }
    }
}

#[test]
fn png_chunks_may_claim_any_length() {
    for kind in [
        *b"IDAT", *b"iCCP", *b"tEXt", *b"PLTE", *b"tRNS", *b"teST", *b"eXIf",
    ] {
        for length in [0x7fff_ffffu32, 0xffff_ffff, 1 << 28] {
            let mut claim = chunk(kind, b"abcdef");
            claim[..4].copy_from_slice(&length.to_be_bytes());
            let file = png(&[ihdr(20, 20, false), claim]);
            let name = String::from_utf8_lossy(&kind).into_owned();
            assert!(is_bounded(&name, &file, 0).is_err(), "{name} of {length}");
        }
    }
}

#[test]
fn animated_pngs_with_odd_frames_are_bounded() {
    let frame = |sequence: u32, [width, height, x, y]: [u32; 4]| {
        let words = [sequence, width, height, x, y];
        let mut data: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        data.extend([0, 1, 0, 10, 0, 0]);
        chunk(*b"fcTL", &data)
    };
    let control = |frames: u32| {
        let data = [frames.to_be_bytes(), [0; 4]].concat();
        chunk(*b"acTL", &data)
    };
    let data = chunk(*b"IDAT", &deflated_zeros(2000));
    let huge = [0x7fff_ffff, 0x7fff_ffff, 0, 0];
    let areas = [
        [20, 20, 0, 0],
        [0, 0, 0, 0],
        [5, 5, 0, 0],
        [5, 5, 10, 10],
        [5, 5, u32::MAX, u32::MAX],
        [16383, 6103, 0, 0],
        huge,
    ];
    for frames in [0, 1, 2, u32::MAX] {
        for area in areas {
            let name = format!("{frames} frames, {area:?}");
            for chunks in [
                vec![control(frames), frame(0, area), data.clone()],
                vec![frame(0, area), control(frames), data.clone()],
                vec![frame(0, area), data.clone()],
                vec![control(frames), data.clone(), frame(0, area), data.clone()],
                vec![
                    control(frames),
                    frame(0, area),
                    frame(0, huge),
                    data.clone(),
                ],
                vec![
                    control(frames),
                    frame(7, area),
                    chunk(*b"fdAT", b"\0\0\0\x01"),
                    data.clone(),
                ],
            ] {
                let file = png(&[vec![ihdr(20, 20, false)], chunks].concat());
                let _ = is_bounded(&name, &file, 0);
            }
        }
    }
}

#[test]
fn jpegs_with_floods_of_scans_and_segments_are_bounded() {
    let blocks = 4;
    let scans = |count: usize| {
        let mut file = jpeg_head(16, 16, true);
        file.extend(first_scan(blocks));
        file.extend(empty_scan(1, 1, blocks).repeat(count));
        file.extend(END_OF_IMAGE);
        file
    };
    assert_eq!(is_bounded("50 scans", &scans(50), 0), Ok(()));
    let error = is_bounded("20,000 scans", &scans(20_000), 0).expect_err("too many");
    assert!(error.to_string().contains("scans"), "{error}");

    let head = jpeg_head(16, 16, false);
    let picture = |between: Vec<u8>, after: Vec<u8>| {
        let scan = [baseline_scan(), vec![0; 6]].concat();
        [&head[..], &between, &scan, &after, &END_OF_IMAGE].concat()
    };
    let restarts: Vec<u8> = (0..500_000u32)
        .flat_map(|n| [0xff, 0xd0 + (n % 8) as u8])
        .collect();
    let profile = |n: u8| {
        segment(
            0xe2,
            &[b"ICC_PROFILE\0", &[n, 255][..], &vec![7; 60_000]].concat(),
        )
    };
    let table = head[head.len() - 20..].to_vec();
    let cases = [
        (
            "restarts before the scan",
            picture(restarts.clone(), vec![]),
        ),
        (
            "restarts after it",
            picture(segment(0xdd, &[0, 1]), restarts),
        ),
        ("fill bytes", picture(vec![0xff; 1 << 20], vec![])),
        ("fill bytes after it", picture(vec![], vec![0xff; 1 << 20])),
        ("tables", picture(table.repeat(50_000), vec![])),
        (
            "comments",
            picture(segment(0xfe, b"").repeat(200_000), vec![]),
        ),
        (
            "profiles",
            picture((1..=255).flat_map(profile).collect(), vec![]),
        ),
        (
            "Exif",
            picture(segment(0xe1, b"Exif\0\0MM\0*").repeat(50_000), vec![]),
        ),
        (
            "scans",
            picture(
                vec![],
                [baseline_scan(), vec![0; 6]].concat().repeat(20_000),
            ),
        ),
        ("headers", picture(head[2..].repeat(2000), vec![])),
    ];
    for (name, file) in cases {
        // Profiles and tables that were read are held.
        let _ = is_bounded(name, &file, 3 * file.len());
    }
}

#[test]
fn a_million_frames_are_refused_once_they_are_too_many_and_the_first_is_read_soon() {
    let mut endless = gif_head(16, 16);
    endless.extend(gif_image(16, 16));
    endless.extend(gif_image(1, 1).repeat(200_000));
    endless.push(b';');
    assert!(endless.len() > 3 << 20);
    let asked = |animation, limits: &Limits| {
        let canceller = Canceller::never();
        let parameters = [("effort", "low"), ("animation", animation)];
        let outcome = convert_with(&parameters, &endless, limits, None, &canceller);
        (outcome.map(|_| ()), canceller.checks())
    };
    let (first, checks) = asked("first", &SMALL);
    assert_eq!(first, Ok(()));
    assert!(checks < 100, "{checks} checks for one small frame");
    let limits = Limits {
        max_frames: 100,
        ..SMALL
    };
    let too_many = DecodeError::TooManyFrames { max_frames: 100 };
    let (all, checks) = asked("all", &limits);
    assert_eq!(all, Err(ConversionError::Picture(too_many)));
    assert!(checks < 100 * 100, "{checks} checks for 100 frames");
}

#[test]
fn gifs_that_inflate_are_bounded() {
    let picture =
        |before: Vec<u8>, image: Vec<u8>| [gif_head(60, 60), before, image, vec![b';']].concat();
    let image = gif_image(60, 60);
    assert_eq!(
        is_bounded("60 x 60", &picture(vec![], image.clone()), 0),
        Ok(())
    );
    let bomb = gif_image(16383, 1000);
    let mut small = bomb;
    small[5..9].copy_from_slice(&[60, 0, 60, 0]);
    let comment = [
        &[0x21, 0xfe][..],
        &[&[255][..], &[b'x'; 255]].concat().repeat(8000),
        &[0],
    ]
    .concat();
    let xmp = [
        &b"\x21\xff\x0bXMP DataXMP"[..],
        &[&[255][..], &[b'x'; 255]].concat().repeat(8000),
        &[0],
    ]
    .concat();
    let cases = [
        ("more data than pixels", picture(vec![], small)),
        ("a long comment", picture(comment, image.clone())),
        ("long XMP", picture(xmp, image.clone())),
        (
            "extensions",
            picture(
                [0x21, 0xf9, 4, 0, 0, 0, 0, 0].repeat(200_000),
                image.clone(),
            ),
        ),
        (
            "empty comments",
            picture([0x21, 0xfe, 0].repeat(300_000), image),
        ),
    ];
    for (name, file) in cases {
        let _ = is_bounded(name, &file, 2 * file.len());
    }
    let large = [gif_head(16383, 1000), gif_image(16383, 1000), vec![b';']].concat();
    assert!(
        large.len() < 20_000,
        "{} bytes for 16 million pixels",
        large.len()
    );
    let (outcome, held) =
        peak_of_thread(|| convert(&large, &Limits::default(), None, &Canceller::after(50)));
    assert_eq!(outcome.map(|_| ()), Err(ConversionError::Cancelled));
    assert!(held <= 16_383_000 * 12, "{held} bytes");
}

#[test]
fn run_lengths_of_a_bitmap_are_bounded() {
    let cases: [(&str, Vec<u8>, bool); 7] = [
        ("no step", [0, 2, 0, 0].repeat(500_000), false),
        ("steps to the right", [0, 2, 255, 0].repeat(500_000), false),
        ("steps down", [0, 2, 0, 255].repeat(500_000), false),
        ("ends of rows", [0, 0].repeat(500_000), true),
        ("runs beyond the row", [255, 1].repeat(500_000), false),
        ("the end at once", vec![0, 1], true),
        ("nothing", vec![], false),
    ];
    for (name, runs, is_picture) in cases {
        let outcome = is_bounded(name, &run_length_bmp(60, 60, &runs), 0);
        assert_eq!(outcome.is_ok(), is_picture, "{name}: {outcome:?}");
    }
    let good = run_length_bmp(60, 60, &[0, 1]);
    for (at, what) in [
        (10, "the offset"),
        (14, "the header's size"),
        (46, "the palette's size"),
    ] {
        for value in [0, 1, 255, 1 << 16, i32::MAX as u32, u32::MAX] {
            let mut file = good.clone();
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let _ = is_bounded(&format!("{what} is {value}"), &file, 0);
        }
    }
}

/// Bits, the lowest first.
#[derive(Default)]
struct Bits(Vec<u8>, usize);

impl Bits {
    fn push(&mut self, count: usize, value: usize) {
        for index in 0..count {
            if self.1.is_multiple_of(8) {
                self.0.push(0);
            }
            self.0[self.1 / 8] |= ((value >> index & 1) << (self.1 % 8)) as u8;
            self.1 += 1;
        }
    }

    /// The code of a single symbol.
    fn push_single(&mut self, symbol: usize) {
        self.push(3, 0b101);
        self.push(8, symbol);
    }

    /// A code whose longest has ten bits, in 86 bits (RFC 9649, 3.7.2.1.2).
    fn push_long(&mut self) {
        self.push(1, 0);
        self.push(4, 10);
        // These are the lengths of 17, 18, 0 to 5, 16 and 6 to 10.
        for length in [0, 0, 0, 3, 3, 3, 3, 3, 0, 3, 4, 4, 4, 4] {
            self.push(3, length);
        }
        self.push(1, 1);
        self.push(3, 1);
        self.push(4, 11 - 2);
        for length in (1..=10).chain([10]) {
            // The highest bit of a code comes first.
            let (bits, code): (usize, usize) = match length {
                1..=6 => (3, length - 1),
                _ => (4, 0b1100 + length - 7),
            };
            self.push(bits, code.reverse_bits() >> (usize::BITS as usize - bits));
        }
    }
}

/// A lossless WebP of a megapixel with 65,536 groups of five prefix codes.
fn webp_of_many_codes(has_long_codes: bool) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.push(8, 0x2f);
    bits.push(28, 1023 << 14 | 1023);
    bits.push(4, 0);
    bits.push(2, 0); // no transforms, no cache of colors
    bits.push(1, 1);
    bits.push(4, 0); // blocks of 4 x 4 pixels, of which each is of the last group
    for symbol in [255, 255, 0, 0, 0] {
        bits.push_single(symbol);
    }
    for _ in 0..65536 {
        for _ in 0..5 {
            if has_long_codes {
                bits.push_long();
            } else {
                bits.push(4, 1);
            }
        }
    }
    let mut data = bits.0;
    data.resize(data.len().next_multiple_of(2) + (1 << 20), 0); // the pixels
    let size = |bytes: usize| u32::try_from(bytes).expect("it is small").to_le_bytes();
    let riff = size(data.len() + 12);
    let parts = [&b"RIFF"[..], &riff, b"WEBPVP8L", &size(data.len()), &data];
    parts.concat()
}

#[test]
fn prefix_codes_of_a_webp_are_estimated() {
    if !is_alone() {
        return;
    }
    for (has_long_codes, most) in [(false, 200 << 20), (true, 2 << 30)] {
        let file = webp_of_many_codes(has_long_codes);
        let measured = measure(&file, "effort=low&mode=lossy", None, 1);
        assert_eq!(measured.fault(), None);
        assert_eq!(measured.outcome, Ok(()));
        let estimated = measured.estimated.expect("a good header");
        assert!(estimated < most, "{estimated}");
        assert!(
            estimated < measured.held * 4,
            "{estimated} for {}",
            measured.held
        );
    }
}
