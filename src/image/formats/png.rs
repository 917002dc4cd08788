//! PNG, by the crate `png`: every colour type and depth becomes 8-bit RGB or RGBA, row by row into the final buffer.
//! Colours of 16 bits are converted to sRGB on the way, before they are rounded.

use crate::image::color::sixteen_bit::{Deep, to_8_bit};
use crate::image::color::{Calibrated, MAX_PROFILE_BYTES, PROFILE_COPIES, Space, is_of_rgb};
use crate::image::source::Source;
use crate::image::{DecodeError, Footprint, Image, Layout, Limits, Raw, metadata};
use ::png::{
    BitDepth, ColorType, Decoder, DecodingError, Info, InterlaceInfo, Reader, ScaledFloat,
    Transformations,
};
use std::io::Cursor;
use towebp_encoder::Cancel;

/// What the decoder may allocate for itself: a few rows of at most 128 KiB, and a profile that we take up to 4 MiB of.
/// The pixels are ours.
const DECODER_BYTES: usize = 8 << 20;

/// Bytes of the file between two questions, beside one for each row: chunks that are passed over, and data without rows.
const PORTION: usize = 64 << 10;

/// Reads the (first) picture of a PNG. Where samples have 16 bits, they come out in sRGB.
pub(in crate::image) fn read(
    bytes: &[u8],
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Raw, DecodeError> {
    read_converting(|_| true, bytes, limits, cancel)
}

/// As [`read`], but where there is a profile of RGB, samples of 16 bits stay in its space.
pub(in crate::image) fn read_beside_profile(
    bytes: &[u8],
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Raw, DecodeError> {
    let stays = |space: &Space| matches!(space, Space::Icc(profile) if is_of_rgb(profile));
    read_converting(|space| !stays(space), bytes, limits, cancel)
}

fn read_converting(
    converts: impl Fn(&Space) -> bool,
    bytes: &[u8],
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Raw, DecodeError> {
    let mut decoder = Decoder::new_with_limits(
        Source::new(bytes, PORTION, cancel),
        ::png::Limits {
            bytes: DECODER_BYTES,
        },
    );
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder
        .read_header_info()
        .map_err(|error| invalid(&error))?;
    let (width, height) = (header.width, header.height);
    let count = limits.check(width, height)?;

    let mut reader = decoder.read_info().map_err(|error| invalid(&error))?;
    let palette = reader.info().palette.as_deref().unwrap_or_default();
    if !palette.len().is_multiple_of(3) {
        // PNG 11.2.2 demands an error, and the decoder would panic.
        return Err(DecodeError::Invalid(
            "the PNG data is damaged (its palette ends within a colour)".to_owned(),
        ));
    }
    let (color, depth) = reader.output_color_type();
    let layout = layout_of(color);
    let is_grey = matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    // All that says so comes before the pixels (PNG 5.6).
    let mut space = space(reader.info());
    let mut expansion = Expansion {
        color,
        depth,
        deep: None,
        samples: Vec::new(),
    };
    if depth == BitDepth::Sixteen
        && let Some(space) = space.take_if(|space| converts(space))
    {
        expansion.deep = Deep::of(&space, layout, is_grey);
        expansion.samples = vec![0; width as usize * layout.channels()];
    }
    let mut pixels = vec![0; count * layout.channels()];
    let stride = width as usize * layout.channels();
    read_rows(&mut reader, &mut expansion, &mut pixels, stride, cancel)?;
    // Checks that the file is whole, and finds an eXIf chunk behind the pixels.
    reader.finish().map_err(|error| invalid(&error))?;

    let info = reader.info();
    Ok(Raw {
        image: Image {
            width,
            height,
            layout,
            pixels,
        },
        grey: is_grey,
        space,
        exif: info.exif_metadata.as_deref().map(<[u8]>::to_vec),
    })
}

/// What [`read`] takes.
pub(in crate::image) fn probe(bytes: &[u8], limits: &Limits) -> Result<Footprint, DecodeError> {
    /// Rows, and the window of what is unpacked.
    const ROWS: u64 = 1 << 20;
    /// Exif, and its copy.
    const TWICE: u64 = 2;
    // The header alone, since the decoder would copy Exif.
    let mut decoder = Decoder::new(Cursor::new(bytes));
    let header = decoder
        .read_header_info()
        .map_err(|error| invalid(&error))?;
    let (width, height) = (header.width, header.height);
    limits.check(width, height)?;
    let layout = match layout_of(header.color_type) {
        Layout::Rgb if has_transparency(bytes) => Layout::Rgba,
        layout => layout,
    };
    let deep = match header.bit_depth {
        BitDepth::Sixteen => Deep::BYTES,
        _ => 0,
    };
    Ok(Footprint {
        width,
        height,
        layout,
        decoder: ROWS
            + deep
            + PROFILE_COPIES * profile_bytes(bytes).min(MAX_PROFILE_BYTES as u64)
            + TWICE * metadata::descriptions_of_png(bytes),
        planes: None,
    })
}

/// Whether colours of a palette, or one colour, are transparent.
fn has_transparency(bytes: &[u8]) -> bool {
    chunks(bytes)
        .take_while(|(name, _)| *name != b"IDAT")
        .any(|(name, _)| name == b"tRNS")
}

/// Most bytes that a profile in front of the pixels may unpack to.
pub(in crate::image) fn profile_bytes(bytes: &[u8]) -> u64 {
    /// Of Deflate: 258 bytes by two bits, nearly.
    const MOST_BY_ONE: u64 = 1032;
    let profile = chunks(bytes)
        .take_while(|(name, _)| *name != b"IDAT")
        .find(|(name, _)| *name == b"iCCP");
    profile.map_or(0, |(_, data)| {
        (data.len() as u64 * MOST_BY_ONE).min(DECODER_BYTES as u64)
    })
}

/// Chunks by name and data, as far as they are whole.
pub(in crate::image) fn chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    const CHECKSUM: usize = 4;
    let mut rest = bytes.get(8..).unwrap_or_default(); // behind the signature
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (name, behind) = behind.split_first_chunk::<4>()?;
        let (data, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        rest = behind.get(CHECKSUM..).unwrap_or_default();
        Some((name, data))
    })
}

fn layout_of(color: ColorType) -> Layout {
    match color {
        ColorType::Grayscale | ColorType::Rgb | ColorType::Indexed => Layout::Rgb,
        ColorType::GrayscaleAlpha | ColorType::Rgba => Layout::Rgba,
    }
}

/// What the file says of its colours, in the order of PNG (third edition), 4.3: `cICP`, `iCCP`, `sRGB`, then `gAMA` and
/// `cHRM`.
fn space(info: &Info<'_>) -> Option<Space> {
    if let Some(points) = info.coding_independent_code_points
        && points.is_video_full_range_image
    {
        return Some(Space::Cicp {
            primaries: points.color_primaries,
            transfer: points.transfer_function,
        });
    }
    if let Some(profile) = info.icc_profile.as_deref() {
        return Some(Space::Icc(profile.to_vec()));
    }
    if info.srgb.is_some() {
        return None;
    }
    let number = |scaled: ScaledFloat| f64::from(scaled.into_scaled()) / 100_000.0;
    let pair = |(x, y)| [number(x), number(y)];
    Calibrated::space(
        info.gama_chunk.map(|gamma| [1.0 / number(gamma); 3]),
        info.chrm_chunk
            .map(|points| [points.white, points.red, points.green, points.blue].map(pair)),
    )
}

/// Decodes all rows into `pixels`, whose rows are `stride` bytes.
fn read_rows(
    reader: &mut Reader<Source<'_>>,
    expansion: &mut Expansion,
    pixels: &mut [u8],
    stride: usize,
    cancel: &Cancel<'_>,
) -> Result<(), DecodeError> {
    if !reader.info().interlaced && expansion.is_identity() {
        for row in pixels.chunks_exact_mut(stride) {
            cancel.check()?;
            reader.read_row(row).map_err(|error| invalid(&error))?;
        }
        return Ok(());
    }
    let bits_per_pixel = match layout_of(expansion.color) {
        Layout::Rgb => 24,
        Layout::Rgba => 32,
    };
    let mut expanded = vec![0; stride];
    let mut y = 0;
    while let Some(row) = reader
        .next_interlaced_row()
        .map_err(|error| invalid(&error))?
    {
        cancel.check()?;
        let length = expansion.expand(row.data(), &mut expanded);
        match row.interlace() {
            InterlaceInfo::Null(_) => {
                pixels[y * stride..][..stride].copy_from_slice(&expanded);
                y += 1;
            }
            InterlaceInfo::Adam7(pass) => {
                ::png::expand_interlaced_row(
                    pixels,
                    stride,
                    &expanded[..length],
                    pass,
                    bits_per_pixel,
                );
            }
        }
    }
    Ok(())
}

/// Rows as the decoder gives them, to rows of 8-bit RGB or RGBA.
struct Expansion {
    color: ColorType,
    depth: BitDepth,
    /// To sRGB, before 16 bits become 8.
    deep: Option<Deep>,
    /// A row for that.
    samples: Vec<u16>,
}

impl Expansion {
    fn is_identity(&self) -> bool {
        self.depth == BitDepth::Eight && matches!(self.color, ColorType::Rgb | ColorType::Rgba)
    }

    /// Returns the row's length in bytes.
    fn expand(&mut self, row: &[u8], out: &mut [u8]) -> usize {
        if self.depth != BitDepth::Sixteen {
            return expand_samples(row.iter().copied(), self.color, out);
        }
        let samples = row.as_chunks::<2>().0.iter();
        let samples = samples.map(|&sample| u16::from_be_bytes(sample));
        let Some(deep) = &mut self.deep else {
            return expand_samples(samples.map(to_8_bit), self.color, out);
        };
        let length = expand_samples(samples, self.color, &mut self.samples);
        deep.convert(&self.samples[..length], &mut out[..length]);
        length
    }
}

/// Red, green, blue and perhaps alpha of each pixel; returns how many samples that is.
fn expand_samples<T: Copy>(
    mut samples: impl ExactSizeIterator<Item = T>,
    color: ColorType,
    out: &mut [T],
) -> usize {
    let (inputs, outputs) = match color {
        ColorType::Grayscale => (1, 3),
        ColorType::GrayscaleAlpha => (2, 4),
        ColorType::Rgb | ColorType::Indexed => (3, 3),
        ColorType::Rgba => (4, 4),
    };
    let length = samples.len() / inputs * outputs;
    let mut next = || {
        samples
            .next()
            .expect("the loop takes as many samples as were counted")
    };
    for pixel in out[..length].chunks_exact_mut(outputs) {
        if inputs < 3 {
            pixel[..3].fill(next());
        } else {
            pixel[..3].fill_with(&mut next);
        }
        if outputs == 4 {
            pixel[3] = next();
        }
    }
    length
}

fn invalid(error: &DecodingError) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the PNG data ends too early".to_owned()
        }
        DecodingError::LimitsExceeded => {
            "the PNG needs more memory than its size allows for".to_owned()
        }
        other => match other.to_string().trim_end_matches('.') {
            // What follows are numbers of the decoder's.
            crc if crc.starts_with("CRC error") => {
                "the PNG data is damaged (a checksum is wrong)".to_owned()
            }
            reason => format!("the PNG data is damaged ({reason})"),
        },
    })
}

#[cfg(test)]
pub(in crate::image) mod tests {
    use super::*;
    use crate::image::tests::{LIMITS, assert_parts_are_refused};
    use ::png::Encoder;
    use std::borrow::Cow;

    /// A PNG of `info`, whose sizes, colour type, depth and metadata are the caller's.
    pub(in crate::image) fn png(info: Info<'_>, rows: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        Encoder::with_info(&mut file, info)
            .and_then(Encoder::write_header)
            .and_then(|mut writer| writer.write_image_data(rows))
            .expect("a valid picture");
        file
    }

    pub(in crate::image) fn info(
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
    fn eight_bit_colour_is_taken_as_it_is() {
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
    fn grey_of_every_depth_becomes_rgb() {
        let grey = |width, depth, row: &[u8]| png(info(width, 1, ColorType::Grayscale, depth), row);
        expect(
            &grey(3, BitDepth::One, &[0b0100_0000]),
            Layout::Rgb,
            &[0, 0, 0, 255, 255, 255, 0, 0, 0],
        );
        expect(
            &grey(3, BitDepth::Two, &[0b0001_1100]),
            Layout::Rgb,
            &[0, 0, 0, 85, 85, 85, 255, 255, 255],
        );
        expect(
            &grey(2, BitDepth::Four, &[0x3c]),
            Layout::Rgb,
            &[51, 51, 51, 204, 204, 204],
        );
        expect(
            &grey(2, BitDepth::Eight, &[7, 250]),
            Layout::Rgb,
            &[7, 7, 7, 250, 250, 250],
        );
        expect(
            &grey(2, BitDepth::Sixteen, &[1, 1, 254, 254]),
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
        // 0x0181 is 1.498 of 255, 0x0182 is 1.502 and 0xff7e is 254.498: cutting would give 1, 1 and 255.
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
    fn one_transparent_colour_becomes_alpha() {
        let mut rgb = info(2, 1, ColorType::Rgb, BitDepth::Eight);
        rgb.trns = Some(Cow::Borrowed(&[0, 1, 0, 2, 0, 3]));
        expect(
            &png(rgb, &[1, 2, 3, 1, 2, 4]),
            Layout::Rgba,
            &[1, 2, 3, 0, 1, 2, 4, 255],
        );
        let mut grey = info(2, 1, ColorType::Grayscale, BitDepth::Sixteen);
        grey.trns = Some(Cow::Borrowed(&[1, 0]));
        expect(
            &png(grey, &[1, 0, 1, 1]),
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
    fn a_file_that_is_cut_short_anywhere_is_refused() {
        let samples: Vec<u8> = (0..=255).cycle().take(40 * 30 * 3).collect();
        let file = png(info(40, 30, ColorType::Rgb, BitDepth::Eight), &samples);
        image(&file);
        assert_parts_are_refused(read, &file, 8..file.len());
    }

    #[test]
    fn a_changed_byte_among_the_pixels_is_noticed() {
        let mut file = png(
            info(40, 30, ColorType::Rgb, BitDepth::Eight),
            &[77; 40 * 30 * 3],
        );
        let middle = file.len() - 30;
        file[middle] ^= 1;
        assert!(matches!(
            read(&file, &LIMITS, &Cancel::never()),
            Err(DecodeError::Invalid(_))
        ));
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
        // Within the limits, what is missing is the data.
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
        let raw =
            read(&png(with_metadata, &[5]), &LIMITS, &Cancel::never()).expect("a valid picture");
        assert_eq!(raw.space, Some(Space::Icc(b"profile".to_vec())));
        assert_eq!(raw.exif.as_deref(), Some(&b"MM\0*"[..]));
        assert!(raw.grey);
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
        let kept = read_beside_profile(&file, &LIMITS, &cancel).expect("a valid picture");
        assert_eq!(kept.image.pixels, [200, 100, 50]);
        assert_eq!(kept.space, Some(Space::Icc(profile)));
        let converted = read(&file, &LIMITS, &cancel).expect("a valid picture");
        assert_eq!(converted.image.pixels, [215, 93, 31]);
        assert_eq!(converted.space, None);
    }

    #[test]
    fn a_palette_that_ends_within_a_colour_is_refused() {
        let file = |palette: &[u8]| {
            let header = [&[0, 0, 0, 1, 0, 0, 0, 1][..], &[8, 3, 0, 0, 0]].concat();
            [
                &b"\x89PNG\r\n\x1a\n"[..],
                &chunk(*b"IHDR", &header),
                &chunk(*b"PLTE", palette),
                &chunk(*b"tRNS", &[9]),
                &chunk(*b"IDAT", &stored(&[0, 0])),
                &chunk(*b"IEND", &[]),
            ]
            .concat()
        };
        assert_eq!(image(&file(&[1, 2, 3])).pixels, [1, 2, 3, 9]);
        for length in [4, 5] {
            let error = read(&file(&[7; 5][..length]), &LIMITS, &Cancel::never()).err();
            assert!(
                matches!(&error, Some(DecodeError::Invalid(reason)) if reason.contains("palette")),
                "{length} bytes: {error:?}"
            );
        }
    }

    /// A chunk (PNG 5.3).
    fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
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
