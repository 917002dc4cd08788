//! The chunks of files that are walked and never decoded.

use super::tests::chunk;
use super::*;
use crate::image::color::{BYTES_PER_PROFILE_BYTE, MAX_PROFILE_BYTES, SixteenBitTransform};
use crate::image::pixels::Layout;
use crate::image::planes::PlanesPath;
use crate::image::testing::LIMITS;
use decoder::DECODER_BYTES;
use towebp_encoder::PlanesBuilder;

const GRAY: u8 = 0;
const RGB: u8 = 2;
const RGBA: u8 = 6;

type Chunks<'a> = &'a [(&'a [u8; 4], &'a [u8])];

/// A file of 30 x 20 pixels with these chunks in front of the pixels and behind them.
fn file((color, depth): (u8, u8), is_interlaced: bool, before: Chunks, behind: Chunks) -> Vec<u8> {
    let mut header = [30u32.to_be_bytes(), 20u32.to_be_bytes()].concat();
    header.extend([depth, color, 0, 0, u8::from(is_interlaced)]);
    let (begin, end) = ((b"IHDR", &header[..]), (b"IEND", &b""[..]));
    let all = [&[begin], before, &[(b"IDAT", b"")], behind, &[end]].concat();
    let chunks = all.iter().flat_map(|(name, data)| chunk(**name, data));
    b"\x89PNG\r\n\x1a\n".iter().copied().chain(chunks).collect()
}

fn header(file: &[u8]) -> Header<'_> {
    Header::read(file, &LIMITS).expect("a header")
}

fn memory(file: &[u8]) -> u64 {
    let footprint = header(file).footprint(&LIMITS);
    footprint.expect("a small picture").decoder
}

#[test]
fn opaque_rows_in_order_become_planes_and_those_of_another_space_may() {
    use PlanesPath::{Always, IfSpaceIsSrgb, Never};
    // Names with a bar have the pixels in front of them.
    for (names, expected) in [
        ("", Always),
        ("sRGB", Always),
        ("gAMA", IfSpaceIsSrgb),
        ("cHRM", IfSpaceIsSrgb),
        ("gAMA sRGB cHRM", Always),
        ("cICP", IfSpaceIsSrgb),
        ("iCCP", IfSpaceIsSrgb),
        ("iCCP sRGB", IfSpaceIsSrgb),
        ("tEXt", Always),
        ("tRNS", Never),
        ("eXIf", Never),
        ("|eXIf", Never),
        ("|tRNS |iCCP |gAMA", Always),
    ] {
        let chunk = |name: &'static str| {
            let name = name.trim_start_matches('|').as_bytes();
            (name.try_into().expect("four letters"), &b"12"[..])
        };
        let [before, behind] = [false, true].map(|is_behind| -> Vec<_> {
            let names = names.split_whitespace();
            let chosen = names.filter(|name| name.starts_with('|') == is_behind);
            chosen.map(chunk).collect()
        });
        let file = file((RGB, 8), false, &before, &behind);
        assert_eq!(header(&file).planes(), expected, "{names}");
    }
    for (color, is_interlaced, expected) in [
        (GRAY, false, Always),
        (RGBA, false, Never),
        (RGB, true, Never),
    ] {
        let file = file((color, 8), is_interlaced, &[], &[]);
        assert_eq!(header(&file).planes(), expected, "color type {color}");
    }
}

#[test]
fn transparent_colors_make_four_channels() {
    let layout = |before: Chunks, behind: Chunks| {
        let file = file((RGB, 8), false, before, behind);
        let header = header(&file);
        let footprint = header.footprint(&LIMITS).expect("a small picture");
        assert_eq!(header.size(), (footprint.width, footprint.height));
        assert_eq!(header.pixel_bytes(), footprint.pixel_bytes());
        footprint.layout
    };
    let colors = &[(b"tRNS", &[0; 6][..])];
    assert_eq!(layout(colors, &[]), Layout::Rgba);
    assert_eq!(layout(&[], colors), Layout::Rgb, "behind the pixels");
}

#[test]
fn each_part_takes_its_memory() {
    let plain = memory(&file((RGB, 8), false, &[], &[]));
    let window = PlanesBuilder::window_bytes((30, 20));
    assert_eq!(plain, (1 << 20) + window, "rows and planes");
    let other = |kind, before: Chunks, behind: Chunks| memory(&file(kind, false, before, behind));
    assert_eq!(other((RGBA, 8), &[], &[]), plain - window);
    let deep = other((RGB, 16), &[], &[]);
    assert_eq!(deep, plain + SixteenBitTransform::BYTES);
    // Deflate makes at most 1032 bytes of one.
    let profile = |bytes| other((RGB, 8), &[(b"iCCP", &vec![0; bytes])], &[]) - plain;
    assert_eq!(profile(9), BYTES_PER_PROFILE_BYTE * 9 * 1032);
    let most = BYTES_PER_PROFILE_BYTE * MAX_PROFILE_BYTES as u64;
    assert_eq!(profile(100_000), most);
    let first = (b"iCCP", &[0; 9][..]);
    let twice = other((RGB, 8), &[first, (b"iCCP", &[0; 99])], &[]);
    assert_eq!(twice, plain + profile(9), "the first one counts");
    assert_eq!(other((RGB, 8), &[], &[first]), plain, "behind the pixels");
    // The decoder copies all Exif but the first, as far as it may allocate.
    let exif = |bytes| {
        other(
            (RGB, 8),
            &[(b"eXIf", b"1"), (b"eXIf", &vec![0; bytes])],
            &[],
        )
    };
    assert_eq!(exif(70), plain - window + 70);
    let most = DECODER_BYTES as u64;
    assert_eq!(exif(DECODER_BYTES + 1), plain - window + most);
}

#[test]
fn metadata_count_whatever_they_unpack_to() {
    let bytes = |before: Chunks| header(&file((RGB, 8), false, before, &[])).metadata_bytes();
    assert_eq!(bytes(&[(b"tEXt", b"123")]), 0);
    assert_eq!(bytes(&[(b"eXIf", b"123"), (b"iTXt", b"4567")]), 7);
    assert_eq!(bytes(&[(b"iCCP", b"123"), (b"eXIf", b"1")]), 3 * 1032 + 1);
}

#[test]
fn the_first_sound_exif_and_the_first_packet_are_taken() {
    let text = |packet: &str| [b"XML:com.adobe.xmp\0\0\0\0\0", packet.as_bytes()].concat();
    let (first, second) = (text("<a/>"), text("<b/>"));
    let before: Chunks = &[(b"eXIf", b"one"), (b"iTXt", &first)];
    let behind: Chunks = &[(b"eXIf", b"other"), (b"iTXt", &second)];
    let mut file = file((RGB, 8), false, before, behind);
    let [one, other] = [&b"one"[..], b"other"].map(|exif| {
        let found = file.windows(exif.len()).position(|bytes| bytes == exif);
        found.expect("it is there")
    });
    let header_of_chunk = 8;
    let whole = |begin: usize, length| begin - header_of_chunk..begin + length + 4;
    let sound = header(&file);
    assert_eq!(sound.exif(), Some(&b"one"[..]));
    assert_eq!(sound.left_out(), [whole(one, 3)]);
    assert_eq!(sound.xmp(), Some(&b"<a/>"[..]));
    assert!(sound.has_exif());
    // One bit of the first one's checksum.
    file[one + 3] ^= 1;
    let damaged = header(&file);
    assert_eq!(damaged.exif(), Some(&b"other"[..]));
    assert_eq!(damaged.left_out(), [whole(other, 5)]);
    assert!(!header(&self::file((RGB, 8), false, &[], &[])).has_exif());
}

#[test]
fn an_animation_takes_canvases_and_is_held_to_the_limits() {
    let play = |count: u32| [count.to_be_bytes(), [0; 4]].concat();
    let control = |sequence: u32| {
        let size = [sequence, 30, 20, 0, 0].map(u32::to_be_bytes).concat();
        [&size[..], &[0, 1, 0, 10, 0, 0]].concat()
    };
    let data = [&2u32.to_be_bytes()[..], b"data"].concat();
    let animated = |exif: Option<&[u8]>| {
        let (play, control_0, control_1) = (play(2), control(0), control(1));
        let exif = exif.map(|exif| (b"eXIf", exif));
        let before: Vec<_> = exif
            .into_iter()
            .chain([(b"acTL", &play[..]), (b"fcTL", &control_0)])
            .collect();
        let behind: Chunks = &[(b"fcTL", &control_1), (b"fdAT", &data)];
        file((RGB, 8), false, &before, behind)
    };
    let still = file((RGB, 8), false, &[], &[]);
    assert!(!header(&still).is_animated());
    let first = header(&still).footprint(&LIMITS).expect("a small picture");
    let same = header(&still).animation_footprint(&first, &LIMITS);
    assert_eq!(same, Ok(first), "there is no animation");

    let file = animated(None);
    let header = header(&file);
    assert!(header.is_animated());
    let held = header.outline().expect("two frames").held_bytes();
    let first = header.footprint(&LIMITS).expect("a small picture");
    assert_eq!(first.decoder, memory(&still) + held);
    let canvas = 30 * 20 * 4;
    let all = header.animation_footprint(&first, &LIMITS);
    let all = all.expect("two small frames");
    assert_eq!(all.layout, Layout::Rgba);
    assert_eq!(all.decoder, first.decoder + 2 * canvas);
    let limits = |max_animation_pixels| Limits {
        max_animation_pixels,
        ..LIMITS
    };
    assert_eq!(header.check_animation(600, &limits(1200)), Ok(()));
    assert!(header.check_animation(600, &limits(1199)).is_err());

    // Orientation 6 makes columns of the rows, of a second canvas.
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let file = animated(Some(exif));
    let header = self::header(&file);
    let first = header.footprint(&LIMITS).expect("a small picture");
    let turned = header.animation_footprint(&first, &LIMITS);
    let turned = turned.expect("two small frames");
    assert_eq!((turned.width, turned.height), (20, 30));
    assert_eq!(turned.decoder, first.decoder + 3 * canvas);
}
