//! Which damage of a file is ignored and which is an error: the rows of the documentation's table
//! "Damaged files", one by one.
//!
//! Each test damages a good file. If that is ignored, the picture has to be the one of the good
//! file; if it is an error, the message has to say what is wrong.

use crate::support::hostile::{self, END_OF_IMAGE, chunk, segment};
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{DecodeError, Format, Image, Keep, Limits, decode, open};

fn read(file: &[u8]) -> Result<Image, DecodeError> {
    let format = Format::sniff(file).expect("one of the four formats");
    decode(file, format, &Limits::default(), &Cancel::never())
}

#[track_caller]
fn forgiven(what: &str, good: &[u8], damaged: &[u8]) {
    let good = read(good).expect("a good file");
    match read(damaged) {
        Ok(image) => assert!(image == good, "{what}: it looks otherwise"),
        Err(error) => panic!("{what}: {error}"),
    }
}

/// With this word among the reasons.
#[track_caller]
fn refused(what: &str, damaged: &[u8], word: &str) {
    match read(damaged) {
        Ok(image) => panic!("{what}: {} x {} pixels", image.width, image.height),
        Err(DecodeError::Invalid(reason)) => {
            assert!(reason.contains(word), "{what}: no {word:?} in: {reason}");
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

/// `bytes` with others in place of the first `old`.
#[track_caller]
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = position(bytes, old);
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

#[track_caller]
fn position(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
        .unwrap_or_else(|| panic!("no {wanted:x?}"))
}

/// A byte of the file changed.
fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0x55;
    bytes
}

mod png {
    use super::*;

    /// Of a palette with transparency: 4 x 4 pixels, the data in zlib without compression, its
    /// Adler-32 behind it.
    struct Parts {
        palette: Vec<u8>,
        transparency: Vec<u8>,
        zlib: Vec<u8>,
    }

    impl Parts {
        fn good() -> Parts {
            let rows: Vec<u8> = (0..4u8).flat_map(|y| [0, y, 1, 2, 3]).collect();
            Parts {
                palette: (0..12).map(|sample| sample * 20).collect(),
                transparency: vec![255, 100],
                zlib: zlib(&rows),
            }
        }

        /// The chunks before the pixels.
        fn head(&self) -> Vec<Vec<u8>> {
            let header = [0, 0, 0, 4, 0, 0, 0, 4, 8, 3, 0, 0, 0];
            vec![
                chunk(*b"IHDR", &header),
                chunk(*b"PLTE", &self.palette),
                chunk(*b"tRNS", &self.transparency),
            ]
        }

        fn file(&self) -> Vec<u8> {
            let mut chunks = self.head();
            chunks.push(chunk(*b"IDAT", &self.zlib));
            hostile::png(&chunks)
        }

        /// With this chunk behind the header.
        fn with(&self, extra: Vec<u8>) -> Vec<u8> {
            let mut chunks = self.head();
            chunks.insert(1, extra);
            chunks.push(chunk(*b"IDAT", &self.zlib));
            hostile::png(&chunks)
        }
    }

    /// RFC 1950 and RFC 1951, 3.2.4.
    fn zlib(data: &[u8]) -> Vec<u8> {
        let length = data.len() as u16;
        let (a, b) = data.iter().fold((1u32, 0u32), |(a, b), &byte| {
            let a = (a + u32::from(byte)) % 65521;
            (a, (a + b) % 65521)
        });
        let mut zlib = vec![0x78, 0x01, 1];
        zlib.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        zlib.extend(data);
        zlib.extend((b << 16 | a).to_be_bytes());
        zlib
    }

    #[test]
    fn ancillary_chunks_that_are_damaged_are_passed_over() {
        let parts = Parts::good();
        let good = parts.file();
        let gamma = chunk(*b"gAMA", &100_000u32.to_be_bytes());
        let last = gamma.len() - 1;
        let file = parts.with(flipped(&gamma, last));
        forgiven("a wrong checksum of gAMA", &good, &file);
        let profile = chunk(*b"iCCP", b"name\0\0no zlib at all");
        forgiven("a broken profile", &good, &parts.with(profile));
        let text = chunk(*b"tEXt", &[0xff; 40]);
        forgiven("text without a keyword", &good, &parts.with(text));
        let unknown = chunk(*b"abCd", b"anything");
        forgiven("an unknown chunk", &good, &parts.with(unknown));
        let long = chunk(*b"gAMA", &[7; 9]);
        forgiven("gAMA of another length", &good, &parts.with(long));
    }

    #[test]
    fn critical_chunks_have_to_be_right() {
        let good = Parts::good().file();
        for name in [b"IHDR", b"PLTE", b"IDAT"] {
            let at = position(&good, name);
            let length = u32::from_be_bytes(*good[at - 4..].first_chunk().expect("a chunk"));
            let crc = at + 4 + length as usize;
            let what = format!("a wrong checksum of {}", name.escape_ascii());
            refused(&what, &flipped(&good, crc), "checksum");
        }
        let unknown = Parts::good().with(chunk(*b"ABCD", b"anything"));
        refused("an unknown critical chunk", &unknown, "ABCD");
    }

    #[test]
    fn what_follows_the_end_is_not_looked_at() {
        let good = Parts::good().file();
        for rest in [&b"\0"[..], b"garbage that is no chunk", &good] {
            forgiven("bytes behind IEND", &good, &[&good, rest].concat());
        }
    }

    #[test]
    fn a_file_without_its_end_is_refused() {
        let good = Parts::good().file();
        let end = position(&good, b"IEND") - 4;
        // An orientation may stand behind the pixels.
        refused("no IEND", &good[..end], "too early");
        refused("half of IEND", &good[..end + 6], "too early");
        refused("half of IDAT", &good[..end - 20], "too early");
    }

    #[test]
    fn pixels_have_to_be_there_to_the_last() {
        let mut parts = Parts::good();
        let whole = parts.zlib.clone();
        // A chunk that is right in itself, and too short.
        for length in [1, 10, whole.len() - 5] {
            parts.zlib.truncate(length);
            let what = format!("{length} of {} bytes of IDAT", whole.len());
            refused(&what, &parts.file(), "");
            parts.zlib.clone_from(&whole);
        }
        parts.zlib = zlib(&[0, 1, 1, 1, 1]);
        refused("one row of four", &parts.file(), "");
    }

    #[test]
    fn the_sum_of_pixels_is_left_to_the_chunks_checksums() {
        let mut parts = Parts::good();
        let good = parts.file();
        let last = parts.zlib.len() - 1;
        parts.zlib[last] ^= 1;
        forgiven("a wrong Adler-32", &good, &parts.file());
        parts.zlib.truncate(last - 3);
        forgiven("no Adler-32", &good, &parts.file());
        parts.zlib = Parts::good().zlib;
        parts.zlib.extend([7; 30]);
        forgiven("bytes behind the pixels' data", &good, &parts.file());
    }

    #[test]
    fn palettes_and_their_transparency_may_be_of_the_wrong_length() {
        // All of it is then passed over, as libpng does.
        let mut parts = Parts::good();
        let mut opaque = Parts::good();
        parts.transparency = vec![255, 100, 255, 255, 9, 9, 9];
        opaque.transparency = vec![255];
        forgiven("more of tRNS than colors", &opaque.file(), &parts.file());
        // Index 3 is then black.
        let mut parts = Parts::good();
        let mut black = Parts::good();
        parts.palette.truncate(9);
        black.palette[9..].fill(0);
        forgiven("an index beyond the palette", &black.file(), &parts.file());
    }

    #[test]
    fn pixels_may_be_cut_into_chunks_but_not_interrupted() {
        let parts = Parts::good();
        let good = parts.file();
        let mut chunks = parts.head();
        chunks.extend(parts.zlib.chunks(3).map(|data| chunk(*b"IDAT", data)));
        chunks.insert(5, chunk(*b"IDAT", b""));
        forgiven("many chunks", &good, &hostile::png(&chunks));
        chunks.insert(6, chunk(*b"tEXt", b"name\0text"));
        refused("another chunk between", &hostile::png(&chunks), "");
    }
}

mod jpeg {
    use super::*;

    /// Baseline, with restart markers after each unit, and progressive.
    const BASELINE: &[u8] = include_bytes!("../support/halves.jpg");
    const RESTARTS: &[u8] = include_bytes!("conformance/jpeg-restarts.jpg");
    const PROGRESSIVE: &[u8] = include_bytes!("conformance/jpeg-progressive.jpg");
    const ALL: [&[u8]; 3] = [BASELINE, RESTARTS, PROGRESSIVE];

    /// Where the data of the first scan begins.
    fn scan(file: &[u8]) -> usize {
        let at = position(file, &[0xff, 0xda]);
        at + 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]))
    }

    #[test]
    fn what_follows_the_end_is_not_looked_at() {
        for good in ALL {
            for rest in [&b"\0"[..], b"garbage", &END_OF_IMAGE, good] {
                forgiven("bytes behind the end", good, &[good, rest].concat());
            }
        }
    }

    #[test]
    fn a_file_without_its_end_is_refused() {
        for good in ALL {
            let end = good.len() - 2;
            // What a decoder lacks of the last block, it makes up.
            refused("no end of image", &good[..end], "too early");
            refused("half of it", &good[..=end], "too early");
            refused("a cut scan", &good[..scan(good) + 9], "too early");
        }
    }

    #[test]
    fn an_end_in_the_midst_of_a_scan_is_refused() {
        for good in ALL {
            // A progressive picture of fewer scans is a whole one, only coarser.
            let begin = scan(good);
            let end = good[begin..]
                .windows(2)
                .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7))
                .expect("a scan ends");
            for length in begin..begin + end {
                let cut = [&good[..length], &END_OF_IMAGE[..]].concat();
                let what = format!("{length} of {} bytes and an end", good.len());
                refused(&what, &cut, "");
            }
        }
    }

    #[test]
    fn fill_bytes_stand_before_any_marker() {
        for good in ALL {
            let at = position(good, &[0xff, 0xdb]);
            let filled = [&good[..at], &[0xff; 5], &good[at..]].concat();
            forgiven("fill bytes", good, &filled);
            let end = good.len() - 2;
            let filled = [&good[..end], &[0xff; 3], &good[end..]].concat();
            forgiven("fill bytes before the end", good, &filled);
        }
    }

    #[test]
    fn bytes_between_segments_are_passed_over() {
        for good in ALL {
            for marker in [[0xff, 0xdb], [0xff, 0xc4], [0xff, 0xda]] {
                let at = position(good, &marker);
                for stray in [&[0][..], &[1, 2, 3, 4, 5]] {
                    let strayed = [&good[..at], stray, &good[at..]].concat();
                    forgiven("stray bytes", good, &strayed);
                }
            }
        }
    }

    #[test]
    fn restart_markers_may_have_another_number() {
        let swapped = replaced(RESTARTS, &[0xff, 0xd1], &[0xff, 0xd4]);
        forgiven("another restart marker", RESTARTS, &swapped);
    }

    #[test]
    fn metadata_may_be_nonsense() {
        for good in ALL {
            for (marker, data) in [
                (0xe1, &b"Exif\0\0MM\0*\xff\xff\xff\xff"[..]),
                (0xe1, b""),
                (0xe2, b"ICC_PROFILE\0\x01\x02half of a profile"),
                (0xe2, b"ICC_PROFILE\0\x01\x01nothing of a profile"),
                (0xe2, b"ICC_PROFILE\0"),
                (0xe2, b"ICC_PROFILE\0\x00\x01part zero"),
                (0xe2, b"ICC_PROFILE\0\x01\x00one of none"),
                (0xe2, b"ICC_PROFILE\0\x03\x02three of two"),
                (0xed, b"Photoshop 3.0\0"),
                (0xfe, b"a comment"),
            ] {
                let file = [&good[..2], &segment(marker, data), &good[2..]].concat();
                let what = format!("{marker:x} of {:?}", data.escape_ascii().to_string());
                forgiven(&what, good, &file);
            }
        }
    }

    #[test]
    fn markers_before_the_scan_have_to_begin_segments() {
        for good in ALL {
            let at = position(good, &[0xff, 0xdb]);
            let with = |marker| [&good[..at], &[0xff, marker, 0, 4, 9, 9], &good[at..]].concat();
            // Reserved, and a start and an end of image.
            for marker in [0x7f, 0xd8, 0xd9] {
                refused(&format!("FF {marker:02X}"), &with(marker), "headers");
            }
            // No marker, and those without data: the next segment is looked for behind them.
            for marker in [0x00, 0x01, 0xd0, 0xd7] {
                forgiven(&format!("FF {marker:02X}"), good, &with(marker));
            }
        }
    }

    #[test]
    fn what_applications_put_between_scans_does_not_matter() {
        let last = PROGRESSIVE
            .windows(2)
            .rposition(|pair| pair == [0xff, 0xda]);
        let (front, back) = PROGRESSIVE.split_at(last.expect("it has scans"));
        for data in [
            &b"Exif\0\0MM\0*"[..],
            b"ICC_PROFILE\0\x09\x01part",
            b"",
            &vec![7; 60_000],
        ] {
            for marker in [0xe1, 0xe2, 0xee, 0xfe] {
                let file = [front, &segment(marker, data).repeat(3), back].concat();
                forgiven(&format!("{marker:x} between scans"), PROGRESSIVE, &file);
            }
        }
    }

    #[test]
    fn segments_have_to_end_within_the_file() {
        for good in ALL {
            let file = [&good[..2], &[0xff, 0xe1, 0xff, 0xff], &good[2..]].concat();
            refused("a segment beyond the file", &file, "");
        }
    }

    #[test]
    fn codes_that_stand_for_nothing_are_refused() {
        for good in [BASELINE, RESTARTS] {
            let at = scan(good);
            let mut file = good.to_vec();
            file[at..at + 8].copy_from_slice(&[0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0]);
            refused("codes of ones", &file, "");
        }
    }
}

mod gif {
    use super::*;

    /// 3 x 2, whose pixels come in three sub-blocks; the delay of a frame before each image.
    fn frame(place: [u8; 2], indices: &[u8]) -> Vec<u8> {
        let mut frame = vec![b'!', 0xf9, 4, 0, 7, 0, 0, 0];
        frame.extend([b',', place[0], 0, place[1], 0, 3, 0, 2, 0, 0, 2]);
        // Codes of 3 bits: a clear before each two pixels keeps them so.
        let mut codes = Vec::new();
        for pair in indices.chunks(2) {
            codes.push(4);
            codes.extend(pair);
        }
        codes.push(5);
        let bits: Vec<u8> = codes
            .iter()
            .flat_map(|code| [code & 1, code >> 1 & 1, code >> 2])
            .collect();
        let bytes = bits.chunks(8).map(|bits| {
            let places = bits.iter().enumerate();
            places.fold(0, |byte, (place, bit)| byte | bit << place)
        });
        let bytes: Vec<u8> = bytes.collect();
        for block in bytes.chunks(2) {
            frame.push(block.len() as u8);
            frame.extend(block);
        }
        frame.push(0);
        frame
    }

    const INDICES: [u8; 6] = [0, 1, 2, 3, 2, 1];

    fn head() -> Vec<u8> {
        let mut head = b"GIF89a\x03\0\x02\0\x81\0\0".to_vec();
        head.extend([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255]);
        head
    }

    fn file(frames: &[Vec<u8>]) -> Vec<u8> {
        [head(), frames.concat(), b";".to_vec()].concat()
    }

    /// The number of frames that are drawn, or the error of the first one that is not.
    fn play(file: &[u8]) -> Result<usize, DecodeError> {
        let (limits, cancel) = (Limits::default(), Cancel::never());
        let opened = open(file, Format::Gif, &limits)?;
        let animation = opened.animation().expect("it is a GIF");
        let mut frames = animation.frames(Keep::NOTHING, &cancel)?;
        let mut count = 0;
        while frames.draw()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    #[test]
    fn the_trailer_and_what_follows_it_do_not_matter() {
        let good = file(&[frame([0, 0], &INDICES), frame([0, 0], &INDICES)]);
        assert_eq!(play(&good), Ok(2));
        let end = good.len() - 1;
        assert_eq!(play(&good[..end]), Ok(2), "no trailer");
        assert_eq!(play(&[&good[..], b"garbage"].concat()), Ok(2));
        forgiven("no trailer", &good, &good[..end]);
        forgiven("garbage", &good, &[&good[..], b"garbage"].concat());
    }

    #[test]
    fn bytes_between_frames_end_the_animation() {
        let one = frame([0, 0], &INDICES);
        for stray in [&b"\0"[..], b"\0\0\0", b"x", b"\xff\xff"] {
            let good = file(std::slice::from_ref(&one));
            let damaged = file(&[one.clone(), stray.to_vec(), one.clone()]);
            forgiven("stray bytes", &good, &damaged);
            assert_eq!(play(&damaged), Ok(1), "{stray:x?}");
        }
        refused("no image", &file(&[b"x".to_vec(), one]), "too early");
    }

    #[test]
    fn extensions_that_nobody_knows_are_passed_over() {
        let one = frame([0, 0], &INDICES);
        let good = file(&[one.clone(), one.clone()]);
        let unknown = b"!\x77\x04abcd\x02ef\0".to_vec();
        let damaged = file(&[unknown.clone(), one.clone(), unknown, one]);
        forgiven("unknown extensions", &good, &damaged);
        assert_eq!(play(&damaged), Ok(2));
    }

    #[test]
    fn a_frame_that_is_cut_is_refused_though_those_before_it_are_whole() {
        let good = file(&[frame([0, 0], &INDICES), frame([0, 0], &INDICES)]);
        let second = head().len() + frame([0, 0], &INDICES).len();
        let cut = &good[..second + 22];
        let error = play(cut).expect_err("the second frame is not whole");
        assert!(error.to_string().contains("too early"), "{error}");
        // With `animation=first` it does not matter.
        forgiven("a cut second frame", &good, cut);
        refused("a cut first frame", &good[..head().len() + 22], "too early");
    }

    #[test]
    fn codes_that_stand_for_nothing_are_refused() {
        let good = frame([0, 0], &INDICES);
        // 4 clears, 7 is not yet known.
        let mut damaged = good.clone();
        damaged[20] = 0b0011_1100;
        refused("an unknown code", &file(&[damaged]), "");
    }

    #[test]
    fn pixels_have_to_be_there_to_the_last() {
        let short = frame([0, 0], &INDICES[..4]);
        refused("four pixels of six", &file(&[short]), "");
        let more = frame([0, 0], &[0, 1, 2, 3, 2, 1, 3, 3, 3]);
        let good = file(&[frame([0, 0], &INDICES)]);
        forgiven("nine pixels of six", &good, &file(&[more]));
    }

    #[test]
    fn the_end_code_does_not_matter() {
        let mut frame = frame([0, 0], &INDICES);
        let good = file(std::slice::from_ref(&frame));
        // The last code, 5, ends the last sub-block of two bytes.
        let last = frame.len() - 2;
        frame[last] &= 0b0000_0001;
        let without = file(&[frame]);
        forgiven("no end code", &good, &without);
    }

    #[test]
    fn what_leaves_the_screen_is_cut_off() {
        let outside = frame([9, 9], &INDICES);
        let image = read(&file(&[outside])).expect("nothing is drawn");
        assert_eq!((image.width, image.height), (3, 2));
        assert!(image.pixels.iter().all(|&sample| sample == 0));
        let partly = read(&file(&[frame([2, 1], &INDICES)])).expect("one pixel is there");
        let alpha: Vec<_> = partly.pixels.chunks(4).map(|pixel| pixel[3]).collect();
        assert_eq!(alpha, [0, 0, 0, 0, 0, 255]);
    }
}

mod bmp {
    use super::*;

    /// 2 x 2 of 24 bits, each row filled up by two bytes.
    const ROWS: [u8; 16] = [1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0];

    fn file() -> Vec<u8> {
        let mut file = b"BM".to_vec();
        let words = [70, 0, 54, 40, 2, 2, 1 | 24 << 16, 0, 16, 0, 0, 0, 0u32];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        file.extend(ROWS);
        file
    }

    #[test]
    fn sizes_that_the_header_repeats_do_not_matter() {
        let good = file();
        for (what, at) in [("of the file", 2), ("of the pixels", 34)] {
            for size in [0, 1, 69, 71, u32::MAX] {
                let mut damaged = good.clone();
                damaged[at..at + 4].copy_from_slice(&size.to_le_bytes());
                forgiven(&format!("{size} as the size {what}"), &good, &damaged);
            }
        }
        forgiven(
            "bytes behind the pixels",
            &good,
            &[&good[..], b"garbage"].concat(),
        );
    }

    #[test]
    fn pixels_begin_behind_the_header() {
        let good = file();
        let at = |offset: u32| {
            let mut file = good.clone();
            file[10..14].copy_from_slice(&offset.to_le_bytes());
            file
        };
        forgiven("nothing said", &good, &at(0));
        for offset in [1, 14, 53] {
            refused(&format!("{offset}"), &at(offset), "header");
        }
        for offset in [55, 70, 71, u32::MAX] {
            refused(&format!("{offset}"), &at(offset), "too early");
        }
        // Odd places are as good as others.
        let moved = [&at(57)[..54], b"gap", &ROWS].concat();
        forgiven("a gap", &good, &moved);
    }

    #[test]
    fn the_last_row_has_to_be_whole() {
        let good = file();
        for length in [54, 61, 62, 69] {
            refused(&format!("{length} bytes"), &good[..length], "too early");
        }
    }

    #[test]
    fn runs_may_leave_their_row_but_not_the_picture() {
        let good = hostile::run_length_bmp(3, 2, &[3, 5, 0, 0, 3, 6, 0, 1]);
        let file = |runs: &[u8]| hostile::run_length_bmp(3, 2, runs);
        forgiven("long runs", &good, &file(&[9, 5, 0, 0, 200, 6, 0, 1]));
        forgiven(
            "no mark of the end",
            &good,
            &file(&[3, 5, 0, 0, 3, 6, 0, 0]),
        );
        forgiven(
            "bytes behind the end",
            &good,
            &file(&[3, 5, 0, 0, 3, 6, 0, 1, 9, 9]),
        );
        refused(
            "a step below it",
            &file(&[3, 5, 0, 2, 0, 9, 3, 6, 0, 1]),
            "step",
        );
        refused("no second row", &file(&[3, 5, 0, 0]), "too early");
        refused("half a pair", &file(&[3, 5, 0, 0, 3]), "too early");
        refused(
            "a row without its end",
            &file(&[3, 5, 0, 0, 3, 6]),
            "too early",
        );
    }

    #[test]
    fn pixels_may_begin_among_the_colors() {
        // Chromium and Pillow take the same bytes for both, and the palette is whole.
        let entry = |index: u8| [index, 255 - index, index.wrapping_mul(7), 0];
        let palette: Vec<u8> = (0..=255).flat_map(entry).collect();
        let file = |offset: usize, rows: &[u8]| {
            let mut file = b"BM".to_vec();
            let words = [0, 0, offset as u32, 40, 4, 2, 1 | 8 << 16, 0, 0, 0, 0, 0, 0];
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            [&file, &palette, rows].concat()
        };
        for begin in [0, 1, 40, 1016] {
            let good = file(54 + 1024, &palette[begin..begin + 8]);
            let what = format!("pixels from byte {begin} of the palette on");
            forgiven(&what, &good, &file(54 + begin, &[9; 8]));
        }
    }

    #[test]
    fn colors_that_the_palette_lacks_are_black() {
        let good = hostile::run_length_bmp(1, 1, &[1, 0, 0, 1]);
        let mut damaged = hostile::run_length_bmp(1, 1, &[1, 200, 0, 1]);
        // Ten colors are used, the header says.
        damaged[46] = 10;
        damaged[47] = 0;
        forgiven("no such color", &good, &damaged);
    }
}
