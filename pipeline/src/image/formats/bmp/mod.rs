//! BMP, by a reader of our own: the reader of the crate `image` reads neither the second version of
//! OS/2 nor color spaces, and does not report which pixels run-length coding leaves out.

mod error;
mod header;
mod runs;

pub use header::Header;

use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::limits::Limits;
use crate::image::pixels::{Image, PIXELS_PER_CHECK};
use error::ends_too_early;
use header::{Coding, Fields};
use runs::Unit;
use towebp_encoder::{Cancel, Cancelled};

/// Decodes the bitmap of `bytes`, whose header was read.
pub fn decode(
    bytes: &[u8],
    header: &Header<'_>,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Decoded, DecodeError> {
    let count = limits.check(header.width, header.height)?;
    let stored = bytes.get(header.pixels_at..).unwrap_or_default();
    let layout = header.layout();
    let allocate = || vec![0; count * layout.channels()];
    let pixels = match header.coding {
        Coding::Runs(bits) => {
            let mut pixels = allocate();
            draw_runs(header, Unit::of_bits(bits), stored, &mut pixels, cancel)?;
            pixels
        }
        Coding::Indices(bits) => {
            let rows = Rows::new(header, bits as usize, stored, cancel)?;
            let palette = &header.palette;
            rows.convert::<3>(allocate(), |row, pixels| {
                look_up(row, bits, palette, pixels);
            })?
        }
        Coding::Bytes => {
            let rows = Rows::new(header, 24, stored, cancel)?;
            rows.convert::<3>(allocate(), |row, pixels| {
                for (pixel, stored) in pixels.iter_mut().zip(row.as_chunks::<3>().0) {
                    *pixel = [stored[2], stored[1], stored[0]];
                }
            })?
        }
        Coding::Fields(bytes, fields) => {
            let rows = Rows::new(header, bytes * 8, stored, cancel)?;
            read_fields(&rows, bytes, &fields, allocate())?
        }
    };
    Ok(Decoded {
        image: Image {
            width: header.width,
            height: header.height,
            layout,
            pixels,
        },
        is_gray: false,
        space: header.space(),
    })
}

/// Rows as stored: each filled up to a multiple of 4 bytes, the bottom one first unless the height
/// in the header is negative.
struct Rows<'a> {
    bytes: &'a [u8],
    stride: usize,
    width: usize,
    height: usize,
    is_top_down: bool,
    cancel: &'a Cancel<'a>,
}

impl<'a> Rows<'a> {
    /// The rows of a picture of `bits` bits per pixel.
    fn new(
        header: &Header<'_>,
        bits: usize,
        stored: &'a [u8],
        cancel: &'a Cancel<'a>,
    ) -> Result<Rows<'a>, DecodeError> {
        let (width, height) = (header.width as usize, header.height as usize);
        let stride = (width * bits).div_ceil(32) * 4;
        if stored.len() < stride * height {
            return Err(ends_too_early());
        }
        Ok(Rows {
            bytes: stored,
            stride,
            width,
            height,
            is_top_down: header.is_top_down,
            cancel,
        })
    }

    /// Converts each row, by `convert`, to its place in `pixels`, which have `N` bytes each.
    fn convert<const N: usize>(
        &self,
        mut pixels: Vec<u8>,
        convert: impl Fn(&[u8], &mut [[u8; N]]),
    ) -> Result<Vec<u8>, Cancelled> {
        let mut targets = pixels.as_chunks_mut().0.chunks_exact_mut(self.width);
        for row in self.bytes.chunks(self.stride).take(self.height) {
            self.cancel.check()?;
            let target = if self.is_top_down {
                targets.next()
            } else {
                targets.next_back()
            };
            convert(row, target.expect("there are as many rows in the picture"));
        }
        Ok(pixels)
    }
}

/// Converts a row of palette indices of `bits` bits each.
fn look_up(row: &[u8], bits: u32, palette: &[[u8; 3]; 256], pixels: &mut [[u8; 3]]) {
    let indices_per_byte = (8 / bits) as usize;
    let mask = 0xff >> (8 - bits);
    for (pixels, byte) in pixels.chunks_mut(indices_per_byte).zip(row) {
        for (pixel, number) in pixels.iter_mut().zip(1..) {
            let index = byte.unbounded_shr(8 - bits * number) & mask;
            *pixel = palette[usize::from(index)];
        }
    }
}

/// Converts rows whose pixels are numbers of `bytes` bytes each, in which each sample is a field of
/// bits.
fn read_fields(
    rows: &Rows<'_>,
    bytes: usize,
    fields: &Fields,
    pixels: Vec<u8>,
) -> Result<Vec<u8>, Cancelled> {
    let [red, green, blue] = fields.colors.map(Field::new);
    let color = |number| [&red, &green, &blue].map(|field| field.sample(number));
    let Some(alpha) = fields.alpha.map(Field::new) else {
        return rows.convert::<3>(pixels, |row, pixels| {
            for (pixel, number) in pixels.iter_mut().zip(numbers(row, bytes)) {
                *pixel = color(number);
            }
        });
    };
    let mut pixels = rows.convert::<4>(pixels, |row, pixels| {
        for (pixel, number) in pixels.iter_mut().zip(numbers(row, bytes)) {
            let [red, green, blue] = color(number);
            *pixel = [red, green, blue, alpha.sample(number)];
        }
    })?;
    reveal_if_all_transparent(&mut pixels, rows.cancel)?;
    Ok(pixels)
}

/// The numbers of `bytes` bytes each in a row, little-endian.
fn numbers(row: &[u8], bytes: usize) -> impl Iterator<Item = u32> {
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rfold(0, |value, byte| value << 8 | u32::from(*byte))
    };
    row.chunks_exact(bytes).map(number)
}

/// A sample's place in a pixel's number.
struct Field {
    mask: u32,
    shift: u32,
    /// The levels, 0 to 255, of the sample's values, if these have at most 8 bits.
    levels: Option<Box<[u8; 256]>>,
}

impl Field {
    fn new(mask: u32) -> Field {
        let shift = mask.trailing_zeros().min(31);
        let largest = u64::from(mask >> shift);
        let level = |value: usize| scale(value as u64, largest.max(1));
        Field {
            mask,
            shift,
            levels: (largest < 256).then(|| Box::new(std::array::from_fn(level))),
        }
    }

    /// The sample of a pixel, 0 to 255.
    fn sample(&self, number: u32) -> u8 {
        let value = (number & self.mask) >> self.shift;
        match &self.levels {
            Some(levels) => levels[value as usize & 255],
            None => scale(u64::from(value), u64::from(self.mask >> self.shift)),
        }
    }
}

/// Scales a value from 0 to `largest` to the nearest of 256 levels.
fn scale(value: u64, largest: u64) -> u8 {
    ((value.min(largest) * 255 + largest / 2) / largest) as u8
}

/// Draws run-length coded pixels; those that no run reaches stay transparent.
fn draw_runs(
    header: &Header<'_>,
    unit: Unit,
    stored: &[u8],
    pixels: &mut [u8],
    cancel: &Cancel<'_>,
) -> Result<(), DecodeError> {
    let (width, height) = (header.width as usize, header.height as usize);
    let targets = pixels.as_chunks_mut::<4>().0;
    runs::decode(stored, unit, (width, height), cancel, |x, y, pixel| {
        let [red, green, blue] = match unit {
            Unit::Color => [pixel[2], pixel[1], pixel[0]],
            Unit::Half | Unit::Byte => header.palette[usize::from(pixel[0])],
        };
        let y = if header.is_top_down {
            y
        } else {
            height - 1 - y
        };
        targets[y * width + x] = [red, green, blue, 255];
    })
}

/// Makes a picture opaque whose alpha is 0 throughout: many writers declare an alpha channel and do
/// not fill it, and viewers show such a picture as opaque.
fn reveal_if_all_transparent(pixels: &mut [u8], cancel: &Cancel<'_>) -> Result<(), Cancelled> {
    let pixels = pixels.as_chunks_mut::<4>().0;
    for portion in pixels.chunks(PIXELS_PER_CHECK) {
        cancel.check()?;
        if portion.iter().any(|pixel| pixel[3] != 0) {
            return Ok(());
        }
    }
    for portion in pixels.chunks_mut(PIXELS_PER_CHECK) {
        cancel.check()?;
        for pixel in portion {
            pixel[3] = 255;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::color::{BYTES_PER_PROFILE_BYTE, Space};
    use crate::image::pixels::Layout;
    use crate::image::testing::{LIMITS, assert_parts_are_rejected, rejection};

    /// A bitmap with a BITMAPINFOHEADER; `extra` lies between that and the rows: masks or a
    /// palette.
    fn bmp(
        width: i32,
        height: i32,
        bits: u16,
        compression: u32,
        extra: &[u8],
        rows: &[u8],
    ) -> Vec<u8> {
        let header = |size: u32| {
            let mut header = size.to_le_bytes().to_vec();
            header.extend([width.to_le_bytes(), height.to_le_bytes()].concat());
            header.extend([1u16.to_le_bytes(), bits.to_le_bytes()].concat());
            header.extend(compression.to_le_bytes());
            header.extend([0; 12]); // size of the rows and resolution, which readers ignore
            header.extend((if bits <= 8 { extra.len() as u32 / 4 } else { 0 }).to_le_bytes());
            header.extend([0; 4]);
            header
        };
        // Four masks of coding 3 make it a BITMAPV3INFOHEADER.
        let has_masks = extra.len() == 16 && bits > 8 && compression == 3;
        let header = header(if has_masks { 56 } else { 40 });
        let offset = 14 + header.len() + extra.len();
        let mut file = b"BM".to_vec();
        file.extend(((offset + rows.len()) as u32).to_le_bytes());
        file.extend([0; 4]);
        file.extend((offset as u32).to_le_bytes());
        [file, header, extra.to_vec(), rows.to_vec()].concat()
    }

    fn read(bytes: &[u8], limits: &Limits, cancel: &Cancel<'_>) -> Result<Decoded, DecodeError> {
        decode(bytes, &Header::read(bytes)?, limits, cancel)
    }

    fn image(file: &[u8]) -> Image {
        read(file, &LIMITS, &Cancel::never())
            .expect("a valid picture")
            .image
    }

    /// Two rows of one pixel and 1 byte of padding, blue first; the bottom row comes first.
    const ROWS: [u8; 8] = [3, 2, 1, 0, 6, 5, 4, 0];

    #[test]
    fn rows_run_upwards_and_samples_blue_first() {
        assert_eq!(
            image(&bmp(1, 2, 24, 0, &[], &ROWS)).pixels,
            [4, 5, 6, 1, 2, 3]
        );
    }

    #[test]
    fn a_negative_height_runs_downwards() {
        assert_eq!(
            image(&bmp(1, -2, 24, 0, &[], &ROWS)).pixels,
            [1, 2, 3, 4, 5, 6]
        );
    }

    #[test]
    fn a_palette_is_looked_up() {
        let palette = [3, 2, 1, 0, 6, 5, 4, 0];
        let file = bmp(3, 1, 1, 0, &palette, &[0b0100_0000, 0, 0, 0]);
        assert_eq!(image(&file).pixels, [1, 2, 3, 4, 5, 6, 1, 2, 3]);
        for (bits, row) in [(2, [0b0001_1001, 0b1000_0000]), (4, [0x01, 0x21])] {
            let row = [row[0], row[1], if bits == 4 { 0x20 } else { 0 }, 0];
            let indexed = image(&bmp(5, 1, bits, 0, &grays(), &row)).pixels;
            let indices: Vec<u8> = indexed.iter().step_by(3).map(|gray| gray / 10).collect();
            assert_eq!(indices, [0, 1, 2, 1, 2], "{bits} bits");
        }
    }

    #[test]
    fn pixels_follow_what_lies_before_them_if_the_file_names_no_place() {
        let masks = [0xf800u32, 0x07e0, 0x1f].map(u32::to_le_bytes).concat();
        for mut file in [
            bmp(
                3,
                1,
                1,
                0,
                &[3, 2, 1, 0, 6, 5, 4, 0],
                &[0b0100_0000, 0, 0, 0],
            ),
            bmp(1, 1, 16, 3, &masks, &[0x10, 0x42, 0, 0]),
        ] {
            let named = image(&file).pixels;
            file[10..14].fill(0);
            assert_eq!(image(&file).pixels, named);
        }
    }

    #[test]
    fn pixels_do_not_begin_within_the_header() {
        let masks = [0xf800u32, 0x07e0, 0x1f].map(u32::to_le_bytes).concat();
        for (file, end) in [
            (bmp(1, 1, 24, 0, &[], &[0; 4]), 14 + 40),
            (bmp(1, 1, 16, 3, &masks, &[0; 4]), 14 + 40 + 12),
        ] {
            image(&file);
            let mut early = file;
            early[10..14].copy_from_slice(&(end - 1u32).to_le_bytes());
            let reason = rejection(read, &early);
            assert!(reason.contains("within its header"), "{end}: {reason}");
        }
    }

    /// Red, green, blue and alpha of 32-bit pixels stored blue first.
    const MASKS: [u8; 16] = [0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255];

    #[test]
    fn alpha_is_kept() {
        let image = image(&bmp(2, 1, 32, 3, &MASKS, &[3, 2, 1, 9, 6, 5, 4, 0]));
        assert_eq!(
            (image.layout, image.pixels.as_slice()),
            (Layout::Rgba, &[1, 2, 3, 9, 4, 5, 6, 0][..])
        );
    }

    #[test]
    fn masks_may_lie_behind_a_header_of_the_first_version_of_windows() {
        let rows = [3, 2, 1, 9, 6, 5, 4, 0];
        let with_alpha = image(&bmp(2, 1, 32, 6, &MASKS, &rows));
        assert_eq!(with_alpha.pixels, [1, 2, 3, 9, 4, 5, 6, 0]);
        let swapped = [0xffu32, 0xff00, 0xff_0000].map(u32::to_le_bytes).concat();
        let without = image(&bmp(2, 1, 32, 3, &swapped, &rows));
        assert_eq!(without.pixels, [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn an_alpha_channel_of_zeros_means_opaque() {
        let image = image(&bmp(2, 1, 32, 3, &MASKS, &[3, 2, 1, 0, 6, 5, 4, 0]));
        assert_eq!(image.pixels, [1, 2, 3, 255, 4, 5, 6, 255]);
    }

    #[test]
    fn fields_of_any_width_are_scaled_to_the_whole_range() {
        let masks = |masks: [u32; 4]| masks.map(u32::to_le_bytes).concat();
        // 5, 6 and 5 bits, and no alpha.
        let file = bmp(
            2,
            1,
            16,
            3,
            &masks([0xf800, 0x07e0, 0x1f, 0]),
            &[0xff, 0xff, 0x10, 0x42],
        );
        assert_eq!(image(&file).pixels, [255, 255, 255, 66, 65, 132]);
        // 4 bits each.
        let file = bmp(
            1,
            1,
            16,
            3,
            &masks([0xf00, 0xf0, 0xf, 0xf000]),
            &[0x21, 0x43, 0, 0],
        );
        assert_eq!(image(&file).pixels, [3 * 17, 2 * 17, 17, 4 * 17]);
        // 11, 11 and 10 bits: 1024 of 2047 is 127.56 of 255, 512 of 1023 is 127.62.
        let pixel = (1024u32 << 21 | 2047 << 10 | 512).to_le_bytes();
        let file = bmp(
            1,
            1,
            32,
            3,
            &masks([0x7ff << 21, 0x7ff << 10, 0x3ff, 0]),
            &pixel,
        );
        assert_eq!(image(&file).pixels, [128, 255, 128]);
        // No bit at all: that sample is 0.
        let file = bmp(
            1,
            1,
            16,
            3,
            &masks([0, 0x07e0, 0x1f, 0]),
            &[0xff, 0xff, 0, 0],
        );
        assert_eq!(image(&file).pixels, [0, 255, 255]);
    }

    #[test]
    fn fields_that_make_no_sense_are_rejected() {
        for masks in [
            [0xff00, 0xff00, 0xff, 0],
            [0xf0f, 0xf0, 0xf000, 0],
            [0x1_0000, 0xff, 0xff00, 0],
        ] {
            let file = bmp(1, 1, 16, 3, &masks.map(u32::to_le_bytes).concat(), &[0; 4]);
            let error = read(&file, &LIMITS, &Cancel::never()).err();
            assert!(
                matches!(error, Some(DecodeError::Invalid(_))),
                "{masks:x?}: {error:?}"
            );
        }
    }

    /// Black, then 10 for index 1 and so on; blue, green, red.
    fn grays() -> Vec<u8> {
        (0..16)
            .flat_map(|gray| [gray * 10, gray * 10, gray * 10, 0])
            .collect()
    }

    /// One letter a pixel, rows from the top: the index of a gray of [`grays`], `.` where nothing
    /// was drawn.
    fn drawn(file: &[u8]) -> String {
        let image = image(file);
        let rows = image.pixels.chunks_exact(image.width as usize * 4);
        let letter = |pixel: &[u8; 4]| match pixel[3] {
            0 => '.',
            _ => char::from_digit(u32::from(pixel[0]) / 10, 16).expect("one of the grays"),
        };
        let row = |row: &[u8]| row.as_chunks::<4>().0.iter().map(letter).collect();
        rows.map(row).collect::<Vec<String>>().join(" ")
    }

    #[test]
    fn runs_of_every_unit_are_drawn_from_the_bottom() {
        // A run, the row's end, three pixels, the end.
        let bytes = [3, 1, 0, 0, 0, 3, 2, 3, 4, 0, 0, 1];
        assert_eq!(drawn(&bmp(4, 2, 8, 1, &grays(), &bytes)), "234. 111.");
        let halves = [3, 0x12, 0, 0, 0, 4, 0x34, 0x56, 0, 1];
        assert_eq!(drawn(&bmp(4, 2, 4, 2, &grays(), &halves)), "3456 121.");
    }

    #[test]
    fn pixels_that_are_stepped_over_are_transparent() {
        let bytes = [1, 7, 0, 2, 1, 1, 1, 8, 0, 1]; // one to the right, one up
        assert_eq!(drawn(&bmp(4, 3, 8, 1, &grays(), &bytes)), ".... ..8. 7...");
    }

    #[test]
    fn runs_beyond_the_picture_are_cut_and_only_the_pictures_end_may_be_missing() {
        let bytes = [9, 1, 0, 0, 2, 2, 0, 2, 200, 0, 5, 3, 0, 0, 9, 4];
        assert_eq!(drawn(&bmp(3, 2, 8, 1, &grays(), &bytes)), "22. 111");
        assert_eq!(drawn(&bmp(3, 1, 8, 1, &grays(), &[3, 5, 0, 0])), "555");
        let short = read(
            &bmp(3, 1, 8, 1, &grays(), &[3, 5]),
            &LIMITS,
            &Cancel::never(),
        )
        .err();
        assert!(matches!(short, Some(DecodeError::Invalid(_))), "{short:?}");
    }

    /// A bitmap of OS/2 with this header.
    fn os2(header: &[u8], rest: &[u8]) -> Vec<u8> {
        let size = header.len() as u32 + 4;
        let offset = 14 + size + 6; // two entries of 3 bytes
        let file = [
            &b"BM\0\0\0\0\0\0\0\0"[..],
            &offset.to_le_bytes(),
            &size.to_le_bytes(),
        ];
        [&file.concat(), header, rest].concat()
    }

    #[test]
    fn os2_headers_are_read() {
        let first = os2(
            &[3, 0, 1, 0, 1, 0, 1, 0],
            &[3, 2, 1, 6, 5, 4, 0b0100_0000, 0, 0, 0],
        );
        assert_eq!(image(&first).pixels, [1, 2, 3, 4, 5, 6, 1, 2, 3]);
        // The second version may end behind the bits of a pixel.
        let second = os2(
            &[3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0],
            &[0, 0, 0, 0, 0, 0, 3, 2, 1, 6, 5, 4, 9, 8, 7, 0, 0, 0],
        );
        assert_eq!(image(&second).pixels, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Its coding 4 is runs of colors.
        let mut header = vec![2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0, 4, 0, 0, 0];
        header.resize(60, 0);
        let runs = os2(&header, &[0, 0, 0, 0, 0, 0, 2, 3, 2, 1, 0, 1]);
        assert_eq!(image(&runs).pixels, [1, 2, 3, 255, 1, 2, 3, 255]);
    }

    #[test]
    fn the_format_that_a_bitmap_wraps_is_named() {
        for (bits, compression, name) in [(0, 4, "JPEG"), (24, 4, "JPEG"), (0, 5, "PNG")] {
            let reason = rejection(read, &bmp(1, 1, bits, compression, &[], &[0; 9]));
            assert!(reason.contains(name), "{bits}: {reason}");
        }
    }

    #[test]
    fn codings_of_one_system_are_not_read_in_files_of_the_other() {
        // Bits and coding: a facsimile code, and runs of colors that are not of three bytes.
        for (bits, coding) in [(16, 3), (8, 4)] {
            let mut header = vec![2, 0, 0, 0, 1, 0, 0, 0, 1, 0, bits, 0, coding, 0, 0, 0];
            header.resize(60, 0);
            let reason = rejection(read, &os2(&header, &[0; 40]));
            assert!(reason.contains("is not supported"), "{coding}: {reason}");
        }
    }

    /// A bitmap of one pixel with a header of this size whose color space is given by these bytes,
    /// from byte 56 on.
    fn with_space(size: u8, space: &[u8]) -> Vec<u8> {
        let mut header = vec![size, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0];
        header.resize(56, 0);
        header.extend_from_slice(space);
        header.resize(usize::from(size), 0);
        let mut file = b"BM\0\0\0\0\0\0\0\0".to_vec();
        file.extend((14 + u32::from(size)).to_le_bytes());
        [file, header, vec![3, 2, 1, 0], b"profile".to_vec()].concat()
    }

    fn space(file: &[u8]) -> Option<Space> {
        read(file, &LIMITS, &Cancel::never())
            .expect("a valid picture")
            .space
    }

    fn space_of(bytes: &[u8]) -> Option<Space> {
        space(&with_space(124, bytes))
    }

    #[test]
    fn an_embedded_profile_is_handed_over() {
        let place = |begin: u32, length: u32| {
            let mut space = b"DEBM".to_vec();
            space.resize(56, 0);
            space.extend([begin.to_le_bytes(), length.to_le_bytes()].concat());
            with_space(124, &space)
        };
        let file = place(128, 7);
        assert_eq!(space(&file), Some(Space::Icc(b"profile".to_vec())));
        let decoder = |file: &[u8]| {
            let header = Header::read(file).expect("a valid picture");
            header.footprint(&LIMITS).expect("a small picture").decoder
        };
        let more = decoder(&place(0, 0)) + 7 * BYTES_PER_PROFILE_BYTE;
        assert_eq!(decoder(&file), more, "it takes memory");
        assert_eq!(
            space(&place(128, 8)),
            None,
            "it would reach beyond the file"
        );
        assert_eq!(space(&place(u32::MAX, u32::MAX)), None);
        assert_eq!(
            space(&with_space(108, b"DEBM")),
            None,
            "the fourth version of the header has no place for a profile"
        );
    }

    #[test]
    fn primaries_and_gamma_are_handed_over_if_they_are_not_srgbs() {
        let calibrated = |gamma: f64, green_x: f64| {
            let xyz = [
                0.64,
                0.33,
                0.03,
                green_x,
                0.6,
                0.4 - green_x,
                0.15,
                0.06,
                0.79,
            ];
            let mut space = vec![0; 4];
            space.extend(
                xyz.map(|value| ((value * f64::from(1 << 30)) as u32).to_le_bytes())
                    .concat(),
            );
            space.extend([((gamma * 65536.0) as u32).to_le_bytes(); 3].concat());
            let [fifth, fourth] =
                [124, 108].map(|size| super::tests::space(&with_space(size, &space)));
            assert_eq!(fifth, fourth);
            fifth
        };
        assert_eq!(calibrated(2.2, 0.3), None);
        assert_eq!(calibrated(1.0 / 2.2, 0.3), None, "the other way round");
        let inverse = calibrated(0.5, 0.3);
        assert!(matches!(inverse, Some(Space::Calibrated(_))));
        assert!(matches!(calibrated(1.8, 0.3), Some(Space::Calibrated(_))));
        assert!(matches!(calibrated(2.2, 0.2), Some(Space::Calibrated(_))));
        assert_eq!(space_of(&[0; 60]), None, "nothing is said");
        assert_eq!(space_of(b"BGRs"), None);
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_rejected() {
        let file = bmp(20, 10, 24, 0, &[], &[7; 600]);
        image(&file);
        assert_parts_are_rejected(read, &file, 2..file.len());
    }

    #[test]
    fn the_header_is_held_to_the_limits_before_the_pixels_are_needed() {
        let error = |width, height| {
            read(
                &bmp(width, height, 24, 0, &[], &[]),
                &LIMITS,
                &Cancel::never(),
            )
            .err()
        };
        assert_eq!(
            error(1001, 1),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            error(1, -1001),
            Some(DecodeError::TooWide {
                width: 1,
                height: 1001,
                max_side: 1000
            })
        );
        assert_eq!(
            error(101, 100),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        for (width, height) in [(i32::MAX, i32::MAX), (1, i32::MIN)] {
            let error = error(width, height);
            assert!(
                matches!(error, Some(DecodeError::TooWide { .. })),
                "{width} x {height}: {error:?}"
            );
        }
        for (width, height) in [(0, 5), (5, 0), (-5, 5), (i32::MIN, 1)] {
            assert!(
                matches!(error(width, height), Some(DecodeError::Invalid(_))),
                "{width} x {height}"
            );
        }
        image(&bmp(100, 100, 24, 0, &[], &vec![0; 30_000]));
    }
}
