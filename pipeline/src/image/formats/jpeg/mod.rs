//! JPEG (ITU-T T.81), by zune-jpeg in strict mode: its default returns gray areas for files that
//! are cut short.
//!
//! A baseline file in one scan decodes in little more than its output. A progressive one, or one
//! with a scan for each component, is held as 16-bit coefficients until its end: 3 to 6 bytes more
//! per pixel, 8 with four components.
//!
//! The headers are read here, once ([`Header`]). The decoder then gets the segments that were
//! found, without metadata and without the bytes between them.

mod averaged;
mod bits;
mod blocks;
mod centroids;
mod decoder;
mod header;
mod profile;
mod rows;
mod scaled;
mod scan_header;
mod scans;
mod segments;
mod skim;

pub use header::Header;

use crate::image::color::{CmykKind, Space, cmyk_to_srgb};
use crate::image::decoded::{Decoded, DecodedPlanes};
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::pixels::{Image, Layout};
use crate::image::reader::CancellableReader;
use decoder::{
    BYTES_PER_CHECK, LibraryDecoder, PADDING_AND_END, ambiguous, ends_too_early, invalid, options,
};
use rows::{LowerPart, LumaRange};
use towebp_encoder::{Cancel, Workers};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;

/// Decodes to RGB the picture of `bytes`, whose header was read.
pub fn decode(
    bytes: &[u8],
    header: &Header<'_>,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Decoded, DecodeError> {
    let Decoder {
        inner: mut decoder,
        width,
        height,
        count,
        stored,
        ..
    } = Decoder::new(bytes, header, limits, cancel)?;
    let mut profile = header.profile();
    let pixels = match cmyk_kind(stored) {
        Some(kind) => {
            decoder.set_options(options().jpeg_set_out_colorspace(stored));
            let mut samples = decode_pixels(&mut decoder, count * 4)?;
            cmyk_to_srgb(&mut samples, kind, profile.take().as_deref(), cancel)?;
            samples
        }
        None => decode_pixels(&mut decoder, count * 3)?,
    };
    Ok(Decoded {
        image: Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels,
        },
        is_gray: stored == ColorSpace::Luma,
        space: profile.map(Space::Icc),
    })
}

/// Decodes to RGB, with `size` pixels (1, 2 or 4) in place of 8 on each side, rounded up, the
/// picture of `bytes`, whose header was read and allows that ([`Header::can_be_scaled`]).
pub fn decode_scaled(
    bytes: &[u8],
    header: &Header<'_>,
    size: u32,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Decoded, DecodeError> {
    // The library's decoder has to agree about the headers.
    let mut decoder = Decoder::new(bytes, header, limits, cancel)?;
    let scaled = match decoder.scan {
        Some(scan) => scaled::decode(header, scan, size as usize, cancel)?,
        None => None,
    };
    let image = match scaled {
        Some(image) => image,
        None => averaged::decode(&mut decoder.inner, header, size as usize, cancel)?,
    };
    Ok(Decoded {
        image,
        is_gray: header.is_gray(),
        space: header.profile().map(Space::Icc),
    })
}

/// How luma's coefficients are put into the cells that they were quantized to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luma {
    /// Into the middle, as every decoder does.
    AsStored,
    /// To the centroid, if the quantizers are so coarse that it pays.
    AtCentroids,
}

/// Decodes to planes the picture of `bytes`, whose header was read and lets it stay in `Y'CbCr`. A
/// helper decodes the lower part of a large one, if there is a helper.
pub fn decode_planes(
    bytes: &[u8],
    header: &Header<'_>,
    luma: Luma,
    limits: &Limits,
    workers: Workers<'_>,
) -> Result<DecodedPlanes, DecodeError> {
    let Decoder {
        inner: mut decoder,
        width,
        height,
        stored,
        scan,
        ..
    } = Decoder::new(bytes, header, limits, workers.cancel())?;
    if !matches!(stored, ColorSpace::YCbCr | ColorSpace::Luma) {
        return Err(ambiguous());
    }
    let size = (width, height);
    let quantizers = match luma {
        Luma::AsStored => None,
        Luma::AtCentroids => header.luma_quantizers().filter(centroids::pays),
    };
    let range = match quantizers {
        Some(_) => LumaRange::Full,
        None => LumaRange::Limited,
    };
    let mut planes = if header.is_progressive() {
        rows::decode_progressive(&mut decoder, size, range, workers.cancel())?
    } else {
        let scan = scan.filter(|_| header.pays_two_threads());
        let lower = scan.and_then(|scan| LowerPart::of(header, scan));
        rows::decode(&mut decoder, size, range, lower.as_ref(), workers)?
    };
    drop(decoder);
    if let Some(quantizers) = &quantizers {
        centroids::limit_luma_at_centroids(&mut planes, quantizers, workers)?;
    }
    Ok(DecodedPlanes {
        planes: planes.orient(header.orientation(), workers)?,
        icc: header.profile(),
    })
}

/// The library's decoder, which has read its headers and agrees with ours about them.
struct Decoder<'a> {
    inner: LibraryDecoder<'a>,
    width: u32,
    height: u32,
    /// The number of pixels.
    count: usize,
    /// The color model of the samples in the file.
    stored: ColorSpace,
    /// The data of the only scan, if there is no other, and the file is whole.
    scan: Option<&'a [u8]>,
}

impl<'a> Decoder<'a> {
    fn new(
        bytes: &'a [u8],
        header: &Header<'a>,
        limits: &Limits,
        cancel: &'a Cancel<'a>,
    ) -> Result<Decoder<'a>, DecodeError> {
        let scans = scans::find(bytes, header.scan_begin, cancel)?;
        let mut parts = header.parts.as_slice().to_vec();
        match &scans {
            Some(scans) => {
                parts.extend(scans.parts.as_slice());
                parts.push(PADDING_AND_END);
            }
            None => parts.push(&bytes[header.scan_begin..]),
        }
        // Headers are not read strictly, so that unknown color models get an error text of ours.
        let reader = CancellableReader::of_parts(&parts, BYTES_PER_CHECK, cancel);
        let mut decoder = JpegDecoder::new_with_options(reader, options().set_strict_mode(false));
        decoder.decode_headers().map_err(|error| invalid(&error))?;
        decoder.set_options(options());
        let info = decoder.info().expect("decode_headers filled it in");
        let (width, height) = (u32::from(info.width), u32::from(info.height));
        let count = limits.check(width, height)?;
        let is_progressive = info.sof.is_progressive();
        let geometry = (
            info.width,
            info.height,
            is_progressive,
            sampling(&mut decoder),
        );
        let position = decoder.inner_reader().position().ok();
        if geometry != header.geometry() || position != Some(header.parts.length() as u64) {
            // The memory was estimated by our reading of the headers, up to the same scan header.
            return Err(ambiguous());
        }
        let stored = decoder
            .input_colorspace()
            .expect("decode_headers filled it in");
        if let ColorSpace::MultiBand(components) = stored {
            // Only the strict mode would reject it.
            let reason = format!("the JPEG has {components} components, which stand for no colors");
            return Err(DecodeError::Invalid(reason));
        }
        // The decoder would make up missing data, in the last row even where a restart marker
        // should be.
        let Some(scans) = scans.filter(|scans| scans.restarts >= header.restarts()) else {
            return Err(ends_too_early());
        };
        let scan = match scans.parts.as_slice() {
            [scan] if scans.restarts == header.restarts() => Some(*scan),
            _ => None,
        };
        Ok(Decoder {
            inner: decoder,
            width,
            height,
            count,
            stored,
            scan,
        })
    }
}

/// The sampling factors of each component, as the decoder has read them.
fn sampling(decoder: &mut LibraryDecoder<'_>) -> Vec<[usize; 2]> {
    let raw = decoder.raw_output();
    let count = raw.num_components().unwrap_or(0);
    let planes = raw.layout().unwrap_or_default();
    let factors = planes.iter().map(|plane| {
        [
            plane.horizontal_sampling_factor,
            plane.vertical_sampling_factor,
        ]
    });
    factors.take(count).collect()
}

fn cmyk_kind(stored: ColorSpace) -> Option<CmykKind> {
    match stored {
        ColorSpace::CMYK => Some(CmykKind::Cmyk),
        ColorSpace::YCCK => Some(CmykKind::Ycck),
        _ => None,
    }
}

fn decode_pixels(decoder: &mut LibraryDecoder<'_>, length: usize) -> Result<Vec<u8>, DecodeError> {
    let mut pixels = vec![0; length];
    decoder
        .decode_into(&mut pixels)
        .map_err(|error| invalid(&error))?;
    Ok(pixels)
}

#[cfg(test)]
mod planes_tests;
#[cfg(test)]
mod two_threads_tests;

#[cfg(test)]
pub mod tests {
    use super::segments::{Segment, Segments};
    use super::*;
    use crate::image::testing::{LIMITS, assert_parts_are_rejected};
    use std::collections::BTreeSet;
    use std::fmt::Write;
    use std::mem;

    /// A baseline JPEG of plain 8 x 8 blocks. `blocks` has a sample for each component of each
    /// block; `segments` come right after the start of image.
    pub fn jpeg(width: u16, height: u16, blocks: &[&[u8]], segments: &[u8]) -> Vec<u8> {
        let factors = vec![0x11; blocks[0].len()];
        let blocks = blocks
            .iter()
            .flat_map(|block| (0..).zip(block.iter().copied()));
        file((width, height), &factors, &[blocks.collect()], segments)
    }

    /// The tables of a JPEG as one without a picture, and the JPEG without them, as a TIFF has it.
    pub fn without_tables(jpeg: &[u8]) -> [Vec<u8>; 2] {
        let segments = Segments::of(jpeg).filter(|segment| matches!(segment.marker, 0xc4 | 0xdb));
        let (mut tables, mut rest) = (jpeg[..2].to_vec(), Vec::new());
        let mut end = 0;
        for Segment { place, .. } in segments {
            tables.extend(&jpeg[place.clone()]);
            rest.extend(&jpeg[end..place.start]);
            end = place.end;
        }
        tables.extend([0xff, 0xd9]);
        rest.extend(&jpeg[end..]);
        [tables, rest]
    }

    /// A baseline JPEG in 4:2:0. Each unit has four samples of Y, one of U and one of V.
    pub fn subsampled(size: (u16, u16), units: &[[u8; 6]], segments: &[u8]) -> Vec<u8> {
        file(size, &[0x22, 0x11, 0x11], &[blocks_of(units)], segments)
    }

    /// Component and sample of each block of units in 4:2:0.
    pub fn blocks_of(units: &[[u8; 6]]) -> Vec<(u8, u8)> {
        let unit = |unit: &[u8; 6]| [0, 0, 0, 0, 1, 2].into_iter().zip(*unit);
        units.iter().flat_map(unit).collect()
    }

    /// A baseline JPEG in 4:2:0 with a restart marker after every `interval` units of a gradient.
    pub fn restarted((width, height): (u16, u16), interval: usize) -> Vec<u8> {
        let restarts = segment(0xdd, &(interval as u16).to_be_bytes());
        let empty = subsampled((width, height), &[[0; 6]], &restarts);
        let begin = Header::read(&empty).expect("a valid header").scan_begin;
        let mut file = empty[..begin].to_vec();
        let count = width.div_ceil(16) * height.div_ceil(16);
        let units: Vec<u16> = (0..count).collect();
        for (number, units) in (0..).zip(units.chunks(interval)) {
            let blocks = units.iter().flat_map(|&unit| {
                let sample = (unit * 7) as u8;
                [
                    (0, sample),
                    (0, 9),
                    (0, 200),
                    (0, 30),
                    (1, sample),
                    (2, 255 - sample),
                ]
            });
            file.extend(entropy_code(&blocks.collect::<Vec<_>>(), END_OF_BLOCK));
            file.extend([0xff, 0xd0 + number % 8]);
        }
        file.truncate(file.len() - 2);
        file.extend([0xff, 0xd9]);
        file
    }

    /// Written out here since no JPEG encoder is among the dependencies: DC coefficients alone, all
    /// quantizers 1. A scan has the component and the sample of each block.
    fn file(
        (width, height): (u16, u16),
        factors: &[u8],
        scans: &[Vec<(u8, u8)>],
        segments: &[u8],
    ) -> Vec<u8> {
        let mut file = vec![0xff, 0xd8];
        file.extend_from_slice(segments);
        file.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
        let [height, width] = [height, width].map(u16::to_be_bytes);
        let count = factors.len() as u8;
        let mut frame = vec![8, height[0], height[1], width[0], width[1], count];
        frame.extend((1..).zip(factors).flat_map(|(id, &pair)| [id, pair, 0]));
        file.extend(segment(0xc0, &frame));
        // DC: the categories 0 to 11 as codes of 4 bits. AC: end of block as the one code, of 1
        // bit.
        let mut dc = vec![0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        dc.extend(0..12);
        file.extend(segment(0xc4, &dc));
        file.extend(segment(
            0xc4,
            &[0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ));
        for blocks in scans {
            let components: BTreeSet<u8> = blocks.iter().map(|(component, _)| *component).collect();
            let mut scan = vec![components.len() as u8];
            scan.extend(components.iter().flat_map(|component| [component + 1, 0]));
            scan.extend([0, 63, 0]);
            file.extend(segment(0xda, &scan));
            file.extend(entropy_code(blocks, END_OF_BLOCK));
        }
        file.extend([0xff, 0xd9]);
        file
    }

    /// A marker segment.
    pub fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker], &length[..], data].concat()
    }

    /// The code of the AC coefficients of a block that has none.
    pub const END_OF_BLOCK: &str = "0";

    pub fn entropy_code(blocks: &[(u8, u8)], ac_code: &str) -> Vec<u8> {
        let mut bits = String::new();
        let mut last = [0; 4];
        for &(component, sample) in blocks {
            let dc = 8 * (i32::from(sample) - 128);
            let difference = dc - mem::replace(&mut last[usize::from(component)], dc);
            let category = (32 - difference.unsigned_abs().leading_zeros()) as usize;
            let _ = write!(bits, "{category:04b}");
            if category > 0 {
                let value = if difference < 0 {
                    difference + (1 << category) - 1
                } else {
                    difference
                };
                let _ = write!(bits, "{value:0category$b}");
            }
            bits += ac_code;
        }
        while !bits.len().is_multiple_of(8) {
            bits += "1";
        }
        let bytes = bits
            .as_bytes()
            .chunks(8)
            .map(|byte| byte.iter().fold(0, |value, bit| value * 2 + (bit - b'0')));
        bytes
            .flat_map(|byte| {
                if byte == 0xff {
                    vec![0xff, 0]
                } else {
                    vec![byte]
                }
            })
            .collect()
    }

    pub fn read(
        bytes: &[u8],
        limits: &Limits,
        cancel: &Cancel<'_>,
    ) -> Result<Decoded, DecodeError> {
        decode(bytes, &Header::read(bytes)?, limits, cancel)
    }

    pub fn pixels(bytes: &[u8]) -> Vec<u8> {
        read(bytes, &LIMITS, &Cancel::never())
            .expect("a valid picture")
            .image
            .pixels
    }

    /// The Adobe segment; 0: no color transform, 1: YCbCr, 2: YCCK.
    pub fn adobe(transform: u8) -> Vec<u8> {
        segment(0xee, &[&b"Adobe\0\x64\0\0\0\0"[..], &[transform]].concat())
    }

    #[test]
    fn blocks_have_their_places_and_colors() {
        // Y, Cb, Cr of white, red (255, 0, 0 is 76, 85, 255) and black.
        let file = jpeg(
            20,
            7,
            &[&[255, 128, 128], &[76, 85, 255], &[0, 128, 128]],
            &[],
        );
        let raw = read(&file, &LIMITS, &Cancel::never()).expect("a valid picture");
        assert_eq!(
            (raw.image.width, raw.image.height, raw.image.layout),
            (20, 7, Layout::Rgb)
        );
        for (index, pixel) in raw.image.pixels.chunks_exact(3).enumerate() {
            let expected = match index % 20 {
                0..8 => [255, 255, 255],
                8..16 => [254, 0, 0],
                _ => [0, 0, 0],
            };
            assert_eq!(pixel, expected, "at {}, {}", index % 20, index / 20);
        }
    }

    #[test]
    fn a_scan_for_each_component_is_as_good_as_one() {
        let blocks: [&[u8]; 3] = [&[255, 128, 128], &[76, 85, 255], &[0, 128, 128]];
        let scan = |component: u8| {
            let sample = |block: &&[u8]| (component, block[usize::from(component)]);
            blocks.iter().map(sample).collect()
        };
        let scans: [Vec<(u8, u8)>; 3] = [0, 1, 2].map(scan);
        let several = file((20, 7), &[0x11; 3], &scans, &[]);
        assert_eq!(pixels(&several), pixels(&jpeg(20, 7, &blocks, &[])));
        let wide: [Vec<(u8, u8)>; 3] = [
            (0..6).map(|block| (0, 40 * block)).collect(),
            vec![(1, 90), (1, 200)],
            vec![(2, 170), (2, 30)],
        ];
        let several = file((20, 16), &[0x22, 0x11, 0x11], &wide, &[]);
        let one = subsampled(
            (20, 16),
            &[[0, 40, 120, 160, 90, 170], [80, 80, 200, 200, 200, 30]],
            &[],
        );
        assert_eq!(pixels(&several), pixels(&one));
    }

    /// Exif with this orientation.
    pub fn turning(orientation: u8) -> Vec<u8> {
        let mut exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
        segment(0xe1, &exif)
    }

    #[test]
    fn gray_becomes_rgb() {
        let raw = read(&jpeg(9, 8, &[&[200], &[3]], &[]), &LIMITS, &Cancel::never())
            .expect("a valid picture");
        assert!(raw.is_gray);
        assert_eq!(
            raw.image.pixels[..27],
            [[200; 24].as_slice(), &[3; 3]].concat()
        );
    }

    #[test]
    fn inverted_cmyk_as_adobe_writes_it_is_read() {
        // Stored inverted: 255 is no ink. Full magenta, half key.
        let file = jpeg(8, 8, &[&[255, 0, 200, 128]], &adobe(0));
        assert_eq!(pixels(&file)[..3], [128, 0, 100]);
        // White paper and solid black.
        assert_eq!(
            pixels(&jpeg(8, 8, &[&[255, 255, 255, 255]], &adobe(0)))[..3],
            [255; 3]
        );
        assert_eq!(
            pixels(&jpeg(8, 8, &[&[255, 255, 255, 0]], &adobe(0)))[..3],
            [0; 3]
        );
    }

    #[test]
    fn ycck_is_read() {
        // Libjpeg makes 255 - R of the first three, which Adobe stores inverted: Y = 0 is no ink.
        assert_eq!(
            pixels(&jpeg(8, 8, &[&[0, 128, 128, 255]], &adobe(2)))[..3],
            [255; 3]
        );
        assert_eq!(
            pixels(&jpeg(8, 8, &[&[55, 128, 128, 128]], &adobe(2)))[..3],
            [100; 3]
        );
    }

    #[test]
    fn without_adobes_marker_cmyk_samples_are_taken_to_be_inverted_too() {
        let file = jpeg(8, 8, &[&[255, 0, 200, 128]], &[]);
        assert_eq!(pixels(&file)[..3], [128, 0, 100]);
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_rejected() {
        let samples: Vec<[u8; 3]> = (0..60u8)
            .map(|index| [index * 4, 128 - index, 128 + index])
            .collect();
        let blocks: Vec<&[u8]> = samples.iter().map(<[u8; 3]>::as_slice).collect();
        let file = jpeg(80, 48, &blocks, &[]);
        read(&file, &LIMITS, &Cancel::never()).expect("the whole file is valid");
        assert_parts_are_rejected(read, &file, 3..file.len());
    }

    #[test]
    fn the_header_is_held_to_the_limits_before_the_pixels_are_needed() {
        let file = |width, height| jpeg(width, height, &[&[128]], &[]);
        assert_eq!(
            read(&file(1001, 1), &LIMITS, &Cancel::never()).err(),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            read(&file(1, 65535), &LIMITS, &Cancel::never()).err(),
            Some(DecodeError::TooWide {
                width: 1,
                height: 65535,
                max_side: 1000
            })
        );
        assert_eq!(
            read(&file(101, 100), &LIMITS, &Cancel::never()).err(),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        assert!(matches!(
            read(&file(0, 5), &LIMITS, &Cancel::never()),
            Err(DecodeError::Invalid(_))
        ));
        assert!(matches!(
            read(&file(5, 0), &LIMITS, &Cancel::never()),
            Err(DecodeError::Invalid(_))
        ));
    }

    #[test]
    fn components_that_stand_for_no_colors_are_rejected() {
        let file = jpeg(8, 8, &[&[9, 9]], &[]);
        let outcome = read(&file, &LIMITS, &Cancel::never());
        assert!(matches!(outcome, Err(DecodeError::Invalid(_))));
    }

    #[test]
    fn profile_and_exif_are_handed_over() {
        let profile = segment(0xe2, b"ICC_PROFILE\0\x01\x01profile");
        let exif = segment(0xe1, b"Exif\0\0MM\0*");
        let file = jpeg(8, 8, &[&[128]], &[profile, exif].concat());
        let raw = read(&file, &LIMITS, &Cancel::never()).expect("a valid picture");
        assert_eq!(raw.space, Some(Space::Icc(b"profile".to_vec())));
        let header = Header::read(&file).expect("valid headers");
        assert_eq!(header.exif(), Some(&b"MM\0*"[..]));
    }

    #[test]
    fn a_profile_in_several_segments_is_put_together() {
        let halves = [&b"\x02\x02file"[..], b"\x01\x02pro"]
            .map(|half| segment(0xe2, &[&b"ICC_PROFILE\0"[..], half].concat()));
        let file = jpeg(8, 8, &[&[128]], &halves.concat());
        let raw = read(&file, &LIMITS, &Cancel::never()).expect("a valid picture");
        assert_eq!(raw.space, Some(Space::Icc(b"profile".to_vec())));
    }

    /// Stray bytes between the headers' segments are skipped, as libjpeg does.
    #[test]
    fn bytes_between_segments_change_nothing() {
        let units = [[20, 60, 100, 140, 90, 200], [9, 8, 7, 6, 128, 30]];
        let plain = subsampled((32, 16), &units, &[]);
        let expected = pixels(&plain);
        let header = Header::read(&plain).expect("valid headers");
        for stray in [
            &[0xff, 0x00][..],
            &[0xff, 0xff, 0x00, 0x12, 0x34],
            &[0, 2],
            &[0xff, 0x01],
            &[0xff, 0xd3],
        ] {
            for segment in &header.segments {
                let (front, behind) = plain.split_at(segment.place.start);
                let strange = [front, stray, behind].concat();
                assert_eq!(pixels(&strange), expected, "{stray:x?}");
            }
        }
    }

    /// Each of four components has a scan of its own. FF 00 in front of them looks like a segment
    /// that ends behind the first scan header: a reader that takes it for one reads a header of all
    /// components, and expects no coefficients to be kept. Ours and the decoder's skip FF 00 alone.
    #[test]
    fn no_scan_hides_behind_ff_00() {
        let scans = [0, 1, 2, 3].map(|component| vec![(component, 100); 4]);
        let file = file((16, 16), &[0x11; 4], &scans, &[]);
        assert_eq!(pixels(&file).len(), 16 * 16 * 3);
        let first = file.windows(2).position(|pair| pair == [0xff, 0xda]);
        let first = first.expect("it has four scans");
        let header = segment(0xda, &[4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0]);
        let hidden = 2 + (segment(0xda, &[1, 1, 0, 0, 63, 0]).len() as u16);
        let mut hiding = file[..first].to_vec();
        hiding.extend([0xff, 0x00]);
        hiding.extend(hidden.to_be_bytes());
        hiding.extend(&file[first..first + usize::from(hidden) - 2]);
        hiding.extend(&header);
        hiding.extend(&file[first..]);
        let header = Header::read(&hiding).expect("the first scan header is found");
        assert_eq!(header.scan_begin, first + usize::from(hidden) + 2);
        let plain = Header::read(&file).expect("valid headers");
        assert_eq!(header.segments.len(), plain.segments.len());
        let footprint = |header: &Header<'_>| header.footprint(&LIMITS).expect("within the limits");
        assert_eq!(footprint(&header), footprint(&plain));
    }

    #[test]
    fn exif_between_scans_is_none() {
        let scans = [0, 1, 2].map(|component| vec![(component, 100)]);
        let mut file = file((8, 8), &[0x11; 3], &scans, &[]);
        let last = file.windows(2).rposition(|pair| pair == [0xff, 0xda]);
        let last = last.expect("it has three scans");
        file.splice(last..last, turning(6));
        read(&file, &LIMITS, &Cancel::never()).expect("a valid picture");
        let header = Header::read(&file).expect("valid headers");
        assert_eq!(header.exif(), None);
    }
}
