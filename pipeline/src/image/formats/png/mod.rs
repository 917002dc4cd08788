//! PNG, by the crate `png`: every color type and depth becomes 8-bit RGB or RGBA, row by row into
//! the final buffer. 16-bit samples are converted to sRGB on the way, before they are rounded.

mod chunk;
mod decoder;
mod frame_reader;
mod frames;
mod header;
mod inflate;
mod input;
mod outline;
mod picture;
mod rows;

pub use frames::{Frames, kept_profile};
pub use header::Header;

use crate::image::color::Space;
use crate::image::decoded::{Decoded, PlanesOfRgb};
use crate::image::error::DecodeError;
use crate::image::guard::decode_guarded;
use crate::image::limits::Limits;
use crate::image::metadata::Keep;
use crate::image::planes::PlanesPath;
use ::png::Decoder;
use chunk::parts_without;
use input::Input;
use picture::{Rows, decoder, read_picture};
use rows::for_each_row;
use towebp_encoder::{Cancel, PlanesBuilder, Workers};

/// Decodes the (first) picture of a PNG. 16-bit samples are converted to sRGB, unless a profile of
/// RGB is kept, in whose space they then stay.
pub fn decode(
    bytes: &[u8],
    keep: Keep,
    header: &Header<'_>,
    limits: &Limits,
    workers: Workers<'_>,
) -> Result<Decoded, DecodeError> {
    let cancel = workers.cancel();
    with_decoder(bytes, header, workers, |decoder| {
        read_picture(decoder, keep, limits, cancel)
    })
}

/// Decodes the (first) picture of a PNG to planes, row by row; `None` if all of it has to be RGB
/// before. Unless it `takes_graphics`, it is also `None` if the file is as small as a graphic's.
pub fn decode_planes(
    bytes: &[u8],
    keep: Keep,
    takes_graphics: bool,
    header: &Header<'_>,
    limits: &Limits,
    workers: Workers<'_>,
) -> Result<Option<PlanesOfRgb>, DecodeError> {
    // A graphic would be decoded twice: to planes, and to RGB for its lossless coding. The files of
    // 84 photographs have at least 0.23 of the bytes of their pixels, and those of 13 screenshots
    // and charts at most 0.09. The first rows do not distinguish them: skies look like graphics.
    let is_graphic = !takes_graphics && bytes.len() as u64 * 8 <= header.pixel_bytes();
    let cancel = workers.cancel();
    if header.planes() == PlanesPath::Never || is_graphic {
        return Ok(None);
    }
    if header.planes() == PlanesPath::IfSpaceIsSrgb {
        let decoder = decoder(input(bytes, header, cancel));
        if !Rows::begin(decoder, keep, limits)?.are_planes(keep) {
            return Ok(None);
        }
    }
    with_decoder(bytes, header, workers, |decoder| {
        let mut rows = Rows::begin(decoder, keep, limits)?;
        let size = (rows.width, rows.height);
        let builder = if takes_graphics {
            PlanesBuilder::new(size)
        } else {
            PlanesBuilder::with_estimate(size)
        };
        let Ok(mut builder) = builder else {
            return Ok(None);
        };
        if !rows.are_planes(keep) {
            return Ok(None);
        }
        for_each_row(
            &mut rows.reader,
            &mut rows.expansion,
            rows.width as usize * 3,
            cancel,
            |row| builder.push_row(row).is_ok(),
        )?;
        rows.finish()?;
        let icc = match rows.space {
            Some(Space::Icc(profile)) if keep.profile => Some(profile),
            _ => None,
        };
        let finished = builder.finish_estimated().ok();
        Ok(finished.map(|(planes, estimate)| PlanesOfRgb {
            planes,
            estimate,
            icc,
        }))
    })
}

/// The frames of an animation, of which none is drawn yet. With [`Keep::profile`] they stay in the
/// color space of a profile of RGB.
///
/// # Errors
/// See [`DecodeError`].
pub fn frames<'a>(
    header: &'a Header<'a>,
    keep: Keep,
    limits: &Limits,
    cancel: &'a Cancel<'a>,
) -> Result<Frames<'a>, DecodeError> {
    decode_guarded(cancel, || Frames::new(header, keep, limits, cancel))
}

/// Decodes by `decode`, while a helper inflates if there is one. Whatever stops that, the decoder
/// then does alone: its error describes the fault of the file.
fn with_decoder<T>(
    bytes: &[u8],
    header: &Header<'_>,
    workers: Workers<'_>,
    decode: impl Fn(Decoder<Input<'_, '_>>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let needed = (header.pixel_bytes(), header.left_out());
    let inflated = inflate::with_helper(bytes, needed, workers, |reader| {
        let mut decoder = decoder(Input::Inflated(Box::new(reader)));
        // They were checked.
        decoder.ignore_checksums(true);
        decode(decoder)
    });
    if let Some(Ok(decoded)) = inflated {
        return Ok(decoded);
    }
    workers.cancel().check()?;
    decode(decoder(input(bytes, header, workers.cancel())))
}

/// The file as the decoder reads it alone. Of an animation it reads the default image, whatever
/// follows.
fn input<'a>(bytes: &'a [u8], header: &'a Header<'a>, cancel: &'a Cancel<'a>) -> Input<'a, 'a> {
    if let Some(image) = header.default_image(cancel) {
        Input::Frame(image)
    } else {
        let parts = parts_without(bytes, 0..bytes.len(), header.left_out());
        Input::of_parts(&parts, cancel)
    }
}

#[cfg(test)]
mod header_tests;
#[cfg(test)]
mod two_threads_tests;

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::image::pixels::{Image, Layout};
    use crate::image::testing::{LIMITS, assert_parts_are_rejected, rejection};
    use ::png::{BitDepth, ColorType, Encoder, Info};
    use std::borrow::Cow;

    /// A PNG of `info`, whose sizes, color type, depth and metadata are the caller's.
    pub fn png(info: Info<'_>, rows: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        Encoder::with_info(&mut file, info)
            .and_then(Encoder::write_header)
            .and_then(|mut writer| writer.write_image_data(rows))
            .expect("a valid picture");
        file
    }

    pub fn info(
        width: u32,
        height: u32,
        color_type: ColorType,
        bit_depth: BitDepth,
    ) -> Info<'static> {
        let mut info = Info::with_size(width, height);
        info.color_type = color_type;
        info.bit_depth = bit_depth;
        info
    }

    fn read(bytes: &[u8], limits: &Limits, cancel: &Cancel<'_>) -> Result<Decoded, DecodeError> {
        let workers = Workers::new(2, None, cancel);
        decode(
            bytes,
            Keep::NOTHING,
            &Header::read(bytes, limits)?,
            limits,
            workers,
        )
    }

    fn image(file: &[u8]) -> Image {
        read(file, &LIMITS, &Cancel::never())
            .expect("a valid picture")
            .image
    }

    fn expect(file: &[u8], layout: Layout, pixels: &[u8]) {
        let image = image(file);
        assert_eq!((image.layout, image.pixels.as_slice()), (layout, pixels));
    }

    #[test]
    fn eight_bit_color_is_taken_as_it_is() {
        use BitDepth::Eight;
        let samples: Vec<u8> = (0..24).map(|index| index * 10).collect();
        expect(
            &png(info(2, 4, ColorType::Rgb, Eight), &samples),
            Layout::Rgb,
            &samples,
        );
        expect(
            &png(info(3, 2, ColorType::Rgba, Eight), &samples),
            Layout::Rgba,
            &samples,
        );
    }

    #[test]
    fn gray_of_every_depth_becomes_rgb() {
        let gray = |width, depth, row: &[u8]| png(info(width, 1, ColorType::Grayscale, depth), row);
        expect(
            &gray(3, BitDepth::One, &[0b0100_0000]),
            Layout::Rgb,
            &[0, 0, 0, 255, 255, 255, 0, 0, 0],
        );
        expect(
            &gray(3, BitDepth::Two, &[0b0001_1100]),
            Layout::Rgb,
            &[0, 0, 0, 85, 85, 85, 255, 255, 255],
        );
        expect(
            &gray(2, BitDepth::Four, &[0x3c]),
            Layout::Rgb,
            &[51, 51, 51, 204, 204, 204],
        );
        expect(
            &gray(2, BitDepth::Eight, &[7, 250]),
            Layout::Rgb,
            &[7, 7, 7, 250, 250, 250],
        );
        expect(
            &gray(2, BitDepth::Sixteen, &[1, 1, 254, 254]),
            Layout::Rgb,
            &[1, 1, 1, 254, 254, 254],
        );
        let with_alpha = png(
            info(2, 1, ColorType::GrayscaleAlpha, BitDepth::Eight),
            &[9, 1, 8, 2],
        );
        expect(&with_alpha, Layout::Rgba, &[9, 9, 9, 1, 8, 8, 8, 2]);
    }

    #[test]
    fn sixteen_bits_are_rounded_not_cut() {
        // 0x0181 is 1.498 of 255, 0x0182 is 1.502 and 0xff7e is 254.498: cutting would give 1, 1
        // and 255.
        let row = [0x01, 0x81, 0x01, 0x82, 0xff, 0x7e];
        expect(
            &png(info(1, 1, ColorType::Rgb, BitDepth::Sixteen), &row),
            Layout::Rgb,
            &[1, 2, 254],
        );
        let row = [0xff, 0xff, 0x00, 0x7f, 0x00, 0x81, 0x80, 0x00];
        expect(
            &png(info(1, 1, ColorType::Rgba, BitDepth::Sixteen), &row),
            Layout::Rgba,
            &[255, 0, 1, 128],
        );
    }

    #[test]
    fn palettes_and_their_transparency_are_looked_up() {
        let palette = Some(Cow::Borrowed(&[10, 20, 30, 40, 50, 60, 70, 80, 90][..]));
        let mut plain = info(3, 1, ColorType::Indexed, BitDepth::Two);
        plain.palette = palette;
        let rows = [0b10_00_01_00];
        expect(
            &png(plain.clone(), &rows),
            Layout::Rgb,
            &[70, 80, 90, 10, 20, 30, 40, 50, 60],
        );
        let mut transparent = plain;
        transparent.trns = Some(Cow::Borrowed(&[255, 128]));
        let expected = [70, 80, 90, 255, 10, 20, 30, 255, 40, 50, 60, 128];
        expect(&png(transparent, &rows), Layout::Rgba, &expected);
    }

    #[test]
    fn one_transparent_color_becomes_alpha() {
        let mut rgb = info(2, 1, ColorType::Rgb, BitDepth::Eight);
        rgb.trns = Some(Cow::Borrowed(&[0, 1, 0, 2, 0, 3]));
        expect(
            &png(rgb, &[1, 2, 3, 1, 2, 4]),
            Layout::Rgba,
            &[1, 2, 3, 0, 1, 2, 4, 255],
        );
        let mut gray = info(2, 1, ColorType::Grayscale, BitDepth::Sixteen);
        gray.trns = Some(Cow::Borrowed(&[1, 0]));
        expect(
            &png(gray, &[1, 0, 1, 1]),
            Layout::Rgba,
            &[1, 1, 1, 0, 1, 1, 1, 255],
        );
    }

    #[test]
    fn interlaced_pictures_are_put_together() {
        // 5 x 5, each pixel numbered 10 * y + x, in the seven passes of PNG 8.2.
        let passes: [(usize, usize, usize, usize); 7] = [
            (0, 0, 8, 8),
            (4, 0, 8, 8),
            (0, 4, 4, 8),
            (2, 0, 4, 4),
            (0, 2, 2, 4),
            (1, 0, 2, 2),
            (0, 1, 1, 2),
        ];
        let mut rows = Vec::new();
        for (left, top, step_x, step_y) in passes {
            for y in (top..5).step_by(step_y) {
                let row: Vec<u8> = (left..5)
                    .step_by(step_x)
                    .map(|x| (10 * y + x) as u8)
                    .collect();
                if !row.is_empty() {
                    rows.push(0); // no filter
                    rows.extend(row);
                }
            }
        }
        let header = [0, 0, 0, 5, 0, 0, 0, 5, 8, 0, 0, 0, 1];
        let file = [
            &b"\x89PNG\r\n\x1a\n"[..],
            &chunk(*b"IHDR", &header),
            &chunk(*b"IDAT", &stored(&rows)),
            &chunk(*b"IEND", b""),
        ];
        let expected: Vec<u8> = (0..25)
            .flat_map(|index| [index / 5 * 10 + index % 5; 3])
            .collect();
        expect(&file.concat(), Layout::Rgb, &expected);
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_rejected() {
        let samples: Vec<u8> = (0..=255).cycle().take(40 * 30 * 3).collect();
        let file = png(info(40, 30, ColorType::Rgb, BitDepth::Eight), &samples);
        image(&file);
        assert_parts_are_rejected(read, &file, 8..file.len());
        assert_eq!(rejection(read, &file[..70]), "the PNG data ends too early");
    }

    #[test]
    fn a_changed_byte_among_the_pixels_is_noticed() {
        let mut file = png(
            info(40, 30, ColorType::Rgb, BitDepth::Eight),
            &[77; 40 * 30 * 3],
        );
        let middle = file.len() - 30;
        file[middle] ^= 1;
        assert!(rejection(read, &file).starts_with("the PNG data is damaged ("));
        file[middle] ^= 1;
        // The checksum of the header.
        file[8 + 25 - 1] ^= 1;
        let expected = "the PNG data is damaged (a checksum is wrong)";
        assert_eq!(rejection(read, &file), expected);
    }

    #[test]
    fn the_header_is_held_to_the_limits_before_the_pixels_are_needed() {
        let header = |width: u32, height: u32| {
            let header = [
                &width.to_be_bytes()[..],
                &height.to_be_bytes(),
                &[8, 6, 0, 0, 0],
            ]
            .concat();
            [&b"\x89PNG\r\n\x1a\n"[..], &chunk(*b"IHDR", &header)].concat()
        };
        assert_eq!(
            read(&header(1001, 1), &LIMITS, &Cancel::never()).err(),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            read(&header(101, 100), &LIMITS, &Cancel::never()).err(),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        assert_eq!(
            read(&header(0x7fff_ffff, 0x7fff_ffff), &LIMITS, &Cancel::never()).err(),
            Some(DecodeError::TooWide {
                width: 0x7fff_ffff,
                height: 0x7fff_ffff,
                max_side: 1000
            })
        );
        // Within the limits, the data is missing.
        assert!(matches!(
            read(&header(1000, 10), &LIMITS, &Cancel::never()),
            Err(DecodeError::Invalid(_))
        ));
        image(&png(
            info(1000, 10, ColorType::Grayscale, BitDepth::Eight),
            &[0; 10_000],
        ));
    }

    #[test]
    fn profile_and_exif_are_handed_over() {
        let mut with_metadata = info(1, 1, ColorType::Grayscale, BitDepth::Eight);
        with_metadata.icc_profile = Some(Cow::Borrowed(b"profile"));
        with_metadata.exif_metadata = Some(Cow::Borrowed(b"MM\0*"));
        let file = png(with_metadata, &[5]);
        let raw = read(&file, &LIMITS, &Cancel::never()).expect("a valid picture");
        assert_eq!(raw.space, Some(Space::Icc(b"profile".to_vec())));
        let header = Header::read(&file, &LIMITS).expect("a valid header");
        assert_eq!(header.exif(), Some(&b"MM\0*"[..]));
        assert!(raw.is_gray);
    }

    #[test]
    fn a_profile_that_is_kept_leaves_samples_of_16_bits_in_its_space() {
        let profile = moxcms::ColorProfile::new_display_p3().encode();
        let profile = profile.expect("a valid profile");
        let mut with_profile = info(1, 1, ColorType::Rgb, BitDepth::Sixteen);
        with_profile.icc_profile = Some(profile.clone().into());
        // (200, 100, 50) of 255.
        let file = png(with_profile, &[200, 200, 100, 100, 50, 50]);
        let cancel = Cancel::never();
        let header = Header::read(&file, &LIMITS).expect("a valid header");
        let workers = Workers::new(1, None, &cancel);
        let kept = decode(&file, Keep::ALL, &header, &LIMITS, workers).expect("a valid picture");
        assert_eq!(kept.image.pixels, [200, 100, 50]);
        assert_eq!(kept.space, Some(Space::Icc(profile)));
        let converted = read(&file, &LIMITS, &cancel).expect("a valid picture");
        assert_eq!(converted.image.pixels, [215, 93, 31]);
        assert_eq!(converted.space, None);
    }

    #[test]
    fn a_palette_that_ends_within_a_color_is_rejected() {
        let file = |palette: &[u8]| indexed(&[(b"PLTE", palette), (b"tRNS", &[9])]);
        assert_eq!(image(&file(&[1, 2, 3])).pixels, [1, 2, 3, 9]);
        for length in [4, 5] {
            let error = read(&file(&[7; 5][..length]), &LIMITS, &Cancel::never()).err();
            assert!(
                matches!(&error, Some(DecodeError::Invalid(reason)) if reason.contains("palette")),
                "{length} bytes: {error:?}"
            );
        }
    }

    #[test]
    fn chunks_that_cannot_be_used_are_ignored() {
        let plain = png(info(1, 1, ColorType::Rgb, BitDepth::Eight), &[200, 100, 50]);
        let read_with = |chunks: &[u8]| {
            let (head, rest) = plain.split_at(33);
            let file = [head, chunks, rest].concat();
            read(&file, &LIMITS, &Cancel::never())
                .map(|decoded| (decoded.image.pixels, decoded.space))
        };
        let unchanged = Ok((vec![200, 100, 50], None));
        for (name, data) in [
            (b"cICP", &[9, 16, 1, 1][..]),
            (b"cICP", &[9, 16, 0, 2]),
            (b"cICP", &[9, 16, 0, 1, 0]),
            (b"cICP", &[9, 16, 0]),
            (b"mDCV", &[1; 25]),
            (b"cLLI", &[1; 9]),
            (b"bKGD", &[1]),
            (b"gAMA", &[1; 5]),
            (b"cHRM", &[1; 33]),
        ] {
            let decoded = read_with(&chunk(*name, data));
            assert_eq!(decoded, unchanged, "{name:?} of {data:?}");
        }
        assert_ne!(read_with(&chunk(*b"cICP", &[9, 16, 0, 1])), unchanged);
        let many = chunk(*b"cICP", &[9, 16, 1, 1]);
        assert_eq!(read_with(&many.repeat(16)), unchanged);
        assert!(read_with(&many.repeat(17)).is_err());

        let file = indexed(&[(b"bKGD", &[0]), (b"PLTE", &[1, 2, 3])]);
        assert_eq!(image(&file).pixels, [1, 2, 3]);
    }

    /// A picture of one pixel, the first color of the palette, with these chunks in front of it.
    fn indexed(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let header = [0, 0, 0, 1, 0, 0, 0, 1, 8, 3, 0, 0, 0];
        let pixel = stored(&[0, 0]);
        let (begin, data, end) = (
            (b"IHDR", &header[..]),
            (b"IDAT", &pixel[..]),
            (b"IEND", &[][..]),
        );
        let all = [&[begin], chunks, &[data, end]].concat();
        let chunks = all.iter().flat_map(|(name, data)| chunk(**name, data));
        b"\x89PNG\r\n\x1a\n".iter().copied().chain(chunks).collect()
    }

    /// A chunk (PNG 5.3).
    pub fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
        let checked = [&kind[..], data].concat();
        [
            &(data.len() as u32).to_be_bytes()[..],
            &checked,
            &crc32fast::hash(&checked).to_be_bytes(),
        ]
        .concat()
    }

    /// Zlib without compression (RFC 1950, RFC 1951 3.2.4).
    fn stored(data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u16).to_le_bytes();
        let inverted = (!(data.len() as u16)).to_le_bytes();
        let (a, b) = data.iter().fold((1u32, 0u32), |(a, b), &byte| {
            let a = (a + u32::from(byte)) % 65521;
            (a, (a + b) % 65521)
        });
        [
            &[0x78, 0x01, 1][..],
            &length,
            &inverted,
            data,
            &(b << 16 | a).to_be_bytes(),
        ]
        .concat()
    }
}
