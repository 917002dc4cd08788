//! JPEG, by zune-jpeg in strict mode: its default returns grey areas for files that are cut short.
//!
//! A baseline file in one scan decodes in little more than its output. A progressive one, or one with a scan for each
//! component, is held as 16-bit coefficients until its end: 3 to 6 bytes a pixel more, 8 for four components.

mod frame;

pub(super) use frame::segments;

use super::colour::Space;
use super::ink::{self, Inks};
use super::patience::Source;
use super::{Cancelled, DecodeError, Footprint, Image, Layout, Limits, Patience, Raw};
use frame::Frame;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Bytes of the file between two questions. They are so few because eight blocks of a picture may take one bit, and 32767
/// of a progressive scan four.
const PORTION: usize = 1 << 10;

/// Reads a JPEG.
pub(super) fn read(
    bytes: &[u8],
    limits: &Limits,
    patience: &Patience<'_>,
) -> Result<Raw, DecodeError> {
    let outline = Outline::of(bytes);
    outline.check_kind()?;
    // The decoder's own bounds are opened as far as the format goes: ours give the clearer message.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let end = outline.end(patience)?;
    let source = match &end {
        // Right behind the first scan of a progressive file, the decoder wants a marker.
        Some(end) if end.scans > 1 || !outline.is_progressive() => {
            Source::new(&bytes[..end.at], PORTION, patience).with_tail(BEHIND_SCANS)
        }
        _ => Source::new(bytes, PORTION, patience),
    };
    // Bytes between segments are passed over, as browsers do, which the strict mode would refuse.
    let mut decoder = JpegDecoder::new_with_options(source, options.set_strict_mode(false));
    decoder.decode_headers().map_err(|error| invalid(&error))?;
    decoder.set_options(options);
    let header = decoder.info().expect("decode_headers filled it in");
    let (width, height) = (u32::from(header.width), u32::from(header.height));
    let count = limits.check(width, height)?;
    let components = usize::from(header.components);
    let found = (
        header.width,
        header.height,
        components,
        header.sof.is_progressive(),
    );
    if found != frame(bytes)?.outline() {
        // The memory was estimated by what has been read here.
        return Err(DecodeError::Invalid(
            "the JPEG's headers are ambiguous".to_owned(),
        ));
    }

    let stored = decoder
        .input_colorspace()
        .expect("decode_headers filled it in");
    if end.is_none() {
        return Err(ends_too_early()); // the decoder would make up what is missing
    }
    let mut profile = decoder.icc_profile();
    let pixels = match inks(stored) {
        Some(inks) => {
            decoder.set_options(options.jpeg_set_out_colorspace(stored));
            let mut samples = decode(&mut decoder, count * 4)?;
            ink::to_srgb(&mut samples, inks, profile.take().as_deref(), patience)?;
            samples
        }
        None => decode(&mut decoder, count * 3)?,
    };
    Ok(Raw {
        image: Image {
            width,
            height,
            layout: Layout::Rgb,
            pixels,
        },
        grey: stored == ColorSpace::Luma,
        space: profile.map(Space::Icc),
        exif: decoder.exif().cloned(),
    })
}

/// What [`read`] takes.
pub(super) fn probe(bytes: &[u8], limits: &Limits) -> Result<Footprint, DecodeError> {
    Outline::of(bytes).check_kind()?;
    let frame = frame(bytes)?;
    let (width, height) = (u32::from(frame.width), u32::from(frame.height));
    limits.check(width, height)?;
    Ok(Footprint {
        width,
        height,
        layout: Layout::Rgb,
        decoder: frame.decoder_bytes(),
    })
}

fn frame(bytes: &[u8]) -> Result<Frame, DecodeError> {
    Frame::read(bytes).ok_or_else(|| {
        DecodeError::Invalid("the JPEG's headers are damaged or of a rare kind".to_owned())
    })
}

fn inks(stored: ColorSpace) -> Option<Inks> {
    match stored {
        ColorSpace::CMYK => Some(Inks::Cmyk),
        ColorSpace::YCCK => Some(Inks::Ycck),
        _ => None,
    }
}

fn decode(decoder: &mut JpegDecoder<Source<'_>>, length: usize) -> Result<Vec<u8>, DecodeError> {
    let mut pixels = vec![0; length];
    decoder
        .decode_into(&mut pixels)
        .map_err(|error| invalid(&error))?;
    Ok(pixels)
}

/// What the decoder reads in place of the end of image: ones, of which no code is made (T.81, C), and then that marker. It
/// makes up zeros where a scan ends too early, and says so of the ones; behind a whole scan they are more of the padding.
const BEHIND_SCANS: &[u8] = &{
    let mut bytes = [0xff; 1026];
    let mut at = 1;
    while at < 1024 {
        bytes[at] = 0; // what follows an FF that is no marker
        at += 2;
    }
    bytes[1025] = 0xd9;
    bytes
};

/// Bytes that are looked through for their end between two questions.
const END_PORTION: usize = 1 << 20;

/// Of a file.
struct End {
    /// Where its end of image stands.
    at: usize,
    /// How many scans there are before it.
    scans: usize,
}

/// What the decoder does not tell, or not by name.
struct Outline<'a> {
    /// Marker and precision of the first frame header.
    frame: Option<(u8, u8)>,
    /// Where the first scan begins in the file.
    begin: usize,
    /// From there on.
    scans: &'a [u8],
}

impl Outline<'_> {
    fn of(bytes: &[u8]) -> Outline<'_> {
        let mut frame = None;
        let mut rest = bytes.get(2..).unwrap_or_default(); // after the start of image
        while let &[prefix, marker, ref segment @ ..] = rest {
            let length = match (marker, segment) {
                _ if prefix != 0xff || marker == 0xff => 1, // a stray byte, or a fill byte
                (0xda, _) => break,                         // start of scan
                (_, &[high, low, first, ..]) => {
                    // Among these, C4, C8 and CC are tables and a reserved marker.
                    if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
                        frame = frame.or(Some((marker, first)));
                    }
                    2 + usize::from(u16::from_be_bytes([high, low]))
                }
                _ => break,
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        Outline {
            frame,
            begin: bytes.len() - rest.len(),
            scans: rest,
        }
    }

    /// Refuses by name what T.81, table B.1, has and hardly any program reads.
    fn check_kind(&self) -> Result<(), DecodeError> {
        let kind = match self.frame {
            Some((0xc3, _)) => "it is coded without loss",
            Some((0xc5..=0xc7, _)) => "it is coded in a hierarchy",
            Some((0xc9..=0xcf, _)) => "its entropy coding is arithmetic",
            Some((_, precision)) if precision != 8 => "its samples do not have 8 bits",
            _ => return Ok(()),
        };
        Err(DecodeError::Invalid(format!(
            "the JPEG is of a rare kind: {kind}"
        )))
    }

    /// SOF2.
    fn is_progressive(&self) -> bool {
        matches!(self.frame, Some((0xc2, _)))
    }

    /// The end of image, if it is there.
    fn end(&self, patience: &Patience<'_>) -> Result<Option<End>, Cancelled> {
        let mut scans = 0;
        let mut rest = self.scans;
        while !rest.is_empty() {
            patience.check()?;
            let portion = &rest[..rest.len().min(END_PORTION)];
            let Some(found) = portion.chunks(64).position(|chunk| chunk.contains(&0xff)) else {
                rest = &rest[portion.len()..];
                continue;
            };
            let Some(at) = rest.iter().skip(found * 64).position(|&byte| byte == 0xff) else {
                break;
            };
            rest = &rest[found * 64 + at..];
            // Among entropy-coded bytes FF is followed by 00 or is part of a restart marker (T.81, B.1.1.5).
            let length = match *rest {
                [_, 0xd9, ..] => {
                    let at = self.begin + self.scans.len() - rest.len();
                    return Ok(Some(End { at, scans }));
                }
                [_, 0 | 0xd0..=0xd7, ..] => 2,
                [_, 0xff, ..] => 1,
                [_, _, high, low, ..] => 2 + usize::from(u16::from_be_bytes([high, low])),
                _ => break,
            };
            scans += usize::from(rest[1] == 0xda);
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(None)
    }
}

fn ends_too_early() -> DecodeError {
    DecodeError::Invalid("the JPEG data ends too early".to_owned())
}

fn invalid(error: &DecodeErrors) -> DecodeError {
    let reason = match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => return ends_too_early(),
        DecodeErrors::ZeroError => "its width or height is 0".to_owned(),
        // These two would print themselves in quotes.
        DecodeErrors::Format(reason) => reason.clone(),
        DecodeErrors::FormatStatic(reason) => (*reason).to_owned(),
        other => other.to_string(),
    };
    let reason = reason.trim_end_matches(['.', '\n']);
    DecodeError::Invalid(format!(
        "the JPEG data is damaged or of a rare kind ({reason})"
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fmt::Write;

    const LIMITS: Limits = Limits {
        max_side: 1000,
        max_pixels: 10_000,
        ..Limits::DEFAULT
    };

    /// A baseline JPEG of plain 8 x 8 blocks, written out here since no JPEG encoder is among the dependencies: DC
    /// coefficients alone, all quantizers 1. `blocks` has a sample for each component of each block; `segments` come right
    /// after the start of image.
    pub(in crate::image) fn jpeg(
        width: u16,
        height: u16,
        blocks: &[&[u8]],
        segments: &[u8],
    ) -> Vec<u8> {
        let components = blocks[0].len() as u8;
        let mut file = vec![0xff, 0xd8];
        file.extend_from_slice(segments);
        file.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
        let [height, width] = [height, width].map(u16::to_be_bytes);
        let mut frame = vec![8, height[0], height[1], width[0], width[1], components];
        frame.extend((1..=components).flat_map(|id| [id, 0x11, 0]));
        file.extend(segment(0xc0, &frame));
        // DC: the categories 0 to 11 as codes of 4 bits. AC: end of block as the one code, of 1 bit.
        let mut dc = vec![0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        dc.extend(0..12);
        file.extend(segment(0xc4, &dc));
        file.extend(segment(
            0xc4,
            &[0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ));
        let mut scan = vec![components];
        scan.extend((1..=components).flat_map(|id| [id, 0]));
        scan.extend([0, 63, 0]);
        file.extend(segment(0xda, &scan));
        file.extend(entropy_code(blocks));
        file.extend([0xff, 0xd9]);
        file
    }

    /// A marker segment.
    pub(in crate::image) fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker], &length[..], data].concat()
    }

    fn entropy_code(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bits = String::new();
        let mut last = vec![0; blocks[0].len()];
        for block in blocks {
            for (&sample, last) in block.iter().zip(&mut last) {
                let dc = 8 * (i32::from(sample) - 128);
                let difference = dc - *last;
                *last = dc;
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
                bits += "0";
            }
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

    fn pixels(bytes: &[u8]) -> Vec<u8> {
        read(bytes, &LIMITS, &Patience::endless())
            .expect("a valid picture")
            .image
            .pixels
    }

    /// The Adobe segment; 0: no colour transform, 1: YCbCr, 2: YCCK.
    fn adobe(transform: u8) -> Vec<u8> {
        segment(0xee, &[&b"Adobe\0\x64\0\0\0\0"[..], &[transform]].concat())
    }

    #[test]
    fn blocks_come_out_in_their_places_and_colours() {
        // Y, Cb, Cr of white, red (255, 0, 0 is 76, 85, 255) and black.
        let file = jpeg(
            20,
            7,
            &[&[255, 128, 128], &[76, 85, 255], &[0, 128, 128]],
            &[],
        );
        let raw = read(&file, &LIMITS, &Patience::endless()).expect("a valid picture");
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
    fn grey_becomes_rgb() {
        let raw = read(
            &jpeg(9, 8, &[&[200], &[3]], &[]),
            &LIMITS,
            &Patience::endless(),
        )
        .expect("a valid picture");
        assert!(raw.grey);
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
    fn without_adobes_marker_inks_are_taken_to_be_inverted_too() {
        let file = jpeg(8, 8, &[&[255, 0, 200, 128]], &[]);
        assert_eq!(pixels(&file)[..3], [128, 0, 100]);
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_refused() {
        let samples: Vec<[u8; 3]> = (0..60u8)
            .map(|index| [index * 4, 128 - index, 128 + index])
            .collect();
        let blocks: Vec<&[u8]> = samples.iter().map(<[u8; 3]>::as_slice).collect();
        let file = jpeg(80, 48, &blocks, &[]);
        read(&file, &LIMITS, &Patience::endless()).expect("the whole file is valid");
        for length in 3..file.len() {
            assert!(
                read(&file[..length], &LIMITS, &Patience::endless()).is_err(),
                "{length} of {} bytes were enough",
                file.len()
            );
        }
    }

    #[test]
    fn the_header_is_held_to_the_limits_before_the_pixels_are_needed() {
        let file = |width, height| jpeg(width, height, &[&[128]], &[]);
        assert_eq!(
            read(&file(1001, 1), &LIMITS, &Patience::endless()).err(),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            read(&file(1, 65535), &LIMITS, &Patience::endless()).err(),
            Some(DecodeError::TooWide {
                width: 1,
                height: 65535,
                max_side: 1000
            })
        );
        assert_eq!(
            read(&file(101, 100), &LIMITS, &Patience::endless()).err(),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        assert!(matches!(
            read(&file(0, 5), &LIMITS, &Patience::endless()),
            Err(DecodeError::Invalid(_))
        ));
        assert!(matches!(
            read(&file(5, 0), &LIMITS, &Patience::endless()),
            Err(DecodeError::Invalid(_))
        ));
    }

    #[test]
    fn components_that_stand_for_no_colours_are_refused() {
        for samples in [&[9, 9][..], &[9; 5]] {
            let outcome = read(&jpeg(8, 8, &[samples], &[]), &LIMITS, &Patience::endless());
            assert!(
                matches!(outcome, Err(DecodeError::Invalid(_))),
                "{} components",
                samples.len()
            );
        }
    }

    #[test]
    fn profile_and_exif_are_handed_over() {
        let profile = segment(0xe2, b"ICC_PROFILE\0\x01\x01profile");
        let exif = segment(0xe1, b"Exif\0\0MM\0*");
        let file = jpeg(8, 8, &[&[128]], &[profile, exif].concat());
        let raw = read(&file, &LIMITS, &Patience::endless()).expect("a valid picture");
        assert_eq!(raw.space, Some(Space::Icc(b"profile".to_vec())));
        assert_eq!(raw.exif.as_deref(), Some(&b"MM\0*"[..]));
    }
}
