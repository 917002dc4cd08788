//! Files of all kinds that are read, written here byte by byte, and damaged ones.

use super::header::Header;
use crate::image::color::profile_bytes;
use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::format::Format;
use crate::image::formats::jpeg::tests::{jpeg, subsampled, without_tables};
use crate::image::limits::Limits;
use crate::image::opened::open;
use crate::image::pixels::Layout;
use crate::image::testing::{LIMITS, assert_as_promised, assert_parts_are_rejected};
use fax::encoder::Encoder;
use fax::{Color, VecWriter};
use towebp_encoder::Cancel;
use towebp_encoder::testing::Random;

/// A file of one directory, in one order of bytes.
struct Writer {
    is_big_endian: bool,
    /// Tag, type (1, 2, 3 or 4) and values.
    fields: Vec<(u16, u16, Vec<u32>)>,
    /// The parts of the picture as stored; their offsets and lengths become fields.
    parts: Vec<Vec<u8>>,
    is_tiled: bool,
}

/// A picture of this size without compression, whose parts are strips.
fn writer(
    (width, height): (u32, u32),
    photometric: u32,
    bits: u32,
    samples: u32,
    parts: &[&[u8]],
) -> Writer {
    let fields = vec![
        (256, 3, vec![width]),
        (257, 4, vec![height]),
        (258, 3, vec![bits; samples as usize]),
        (262, 3, vec![photometric]),
        (277, 3, vec![samples]),
        (278, 3, vec![height.div_ceil(parts.len() as u32)]),
    ];
    Writer {
        is_big_endian: false,
        fields,
        parts: parts.iter().map(|part| part.to_vec()).collect(),
        is_tiled: false,
    }
}

impl Writer {
    fn field(mut self, tag: u16, kind: u16, values: &[u32]) -> Writer {
        self.fields.retain(|(other, ..)| *other != tag);
        self.fields.push((tag, kind, values.to_vec()));
        self
    }

    fn short(self, tag: u16, value: u32) -> Writer {
        self.field(tag, 3, &[value])
    }

    fn tiles(mut self, width: u32, height: u32) -> Writer {
        self.is_tiled = true;
        self.field(322, 4, &[width]).field(323, 4, &[height])
    }

    fn big_endian(mut self) -> Writer {
        self.is_big_endian = true;
        self
    }

    fn number(&self, value: u32, size: usize) -> Vec<u8> {
        if self.is_big_endian {
            value.to_be_bytes()[4 - size..].to_vec()
        } else {
            value.to_le_bytes()[..size].to_vec()
        }
    }

    /// The header, the directory, long values, and the parts.
    fn file(mut self) -> Vec<u8> {
        let [offsets, lengths] = if self.is_tiled {
            [324, 325]
        } else {
            [273, 279]
        };
        let count = self.parts.len();
        self.fields.push((offsets, 4, vec![0; count]));
        let of_parts: Vec<u32> = self.parts.iter().map(|part| part.len() as u32).collect();
        self.fields.push((lengths, 4, of_parts.clone()));
        self.fields.sort_by_key(|(tag, ..)| *tag);
        let size = |kind: u16| [1, 1, 2, 4][usize::from(kind) - 1];
        let long = |(_, kind, values): &(u16, u16, Vec<u32>)| {
            let bytes = values.len() * size(*kind);
            if bytes > 4 { bytes } else { 0 }
        };
        let values_at = 8 + 2 + 12 * self.fields.len() + 4;
        let parts_at = values_at + self.fields.iter().map(long).sum::<usize>();
        let mut at = parts_at as u32;
        let places = of_parts.iter().map(|length| {
            let place = at;
            at += length;
            place
        });
        let places: Vec<u32> = places.collect();
        for field in &mut self.fields {
            if field.0 == offsets {
                field.2.clone_from(&places);
            }
        }
        let mut file = if self.is_big_endian {
            b"MM\0*"
        } else {
            b"II*\0"
        }
        .to_vec();
        file.extend(self.number(8, 4));
        file.extend(self.number(self.fields.len() as u32, 2));
        let mut values = Vec::new();
        for (tag, kind, numbers) in &self.fields {
            file.extend(self.number(u32::from(*tag), 2));
            file.extend(self.number(u32::from(*kind), 2));
            file.extend(self.number(numbers.len() as u32, 4));
            let mut bytes: Vec<u8> = numbers
                .iter()
                .flat_map(|number| self.number(*number, size(*kind)))
                .collect();
            if bytes.len() > 4 {
                file.extend(self.number((values_at + values.len()) as u32, 4));
                values.extend(bytes);
            } else {
                bytes.resize(4, 0);
                file.extend(bytes);
            }
        }
        file.extend([0; 4]);
        [file, values, self.parts.concat()].concat()
    }
}

fn read(bytes: &[u8], limits: &Limits, cancel: &Cancel<'_>) -> Result<Decoded, DecodeError> {
    let header = Header::read(bytes, limits)?;
    let promised = super::footprint(&header, limits)?;
    let decoded = super::decode(&header, limits, cancel)?;
    assert_as_promised(&promised, &decoded.image);
    Ok(decoded)
}

fn decoded(writer: Writer) -> Decoded {
    read(&writer.file(), &LIMITS, &Cancel::never()).expect("a good file")
}

fn pixels(writer: Writer) -> Vec<u8> {
    decoded(writer).image.pixels
}

fn fault(writer: Writer) -> String {
    let decoded = read(&writer.file(), &LIMITS, &Cancel::never());
    decoded.err().expect("it is not read").to_string()
}

#[test]
fn gray_of_each_depth() {
    let of = |bits, row: &[u8]| writer((4, 1), 1, bits, 1, &[row]);
    let first = |writer| -> Vec<u8> { pixels(writer).into_iter().step_by(3).collect() };
    assert_eq!(first(of(1, &[0b0101_0000])), [0, 255, 0, 255]);
    assert_eq!(first(of(2, &[0b0001_1011])), [0, 85, 170, 255]);
    assert_eq!(first(of(4, &[0x0f, 0x18])), [0, 255, 17, 136]);
    assert_eq!(first(of(8, &[0, 1, 128, 255])), [0, 1, 128, 255]);
    let sixteen = [0, 0, 0x80, 0, 0x81, 0, 0xff, 0xff];
    // 128 and 129 are less than half of a level of 257.
    assert_eq!(first(of(16, &sixteen)), [0, 0, 1, 255]);
    let swapped = [0, 0, 0x80, 0, 0x7f, 0x7f, 0xff, 0xff];
    assert_eq!(first(of(16, &swapped).big_endian()), [0, 128, 127, 255]);
    let inverted = writer((4, 1), 0, 8, 1, &[&[0, 1, 128, 255]]);
    assert_eq!(first(inverted), [255, 254, 127, 0]);
    assert!(decoded(of(8, &[0; 4])).is_gray);
}

#[test]
fn a_palette_has_all_reds_first() {
    let colors = [1, 2, 3, 4, 5, 6].map(|sample| sample << 8 | sample);
    let of = |colors: &[u32]| writer((3, 1), 3, 1, 1, &[&[0b0100_0000]]).field(320, 3, colors);
    assert_eq!(pixels(of(&colors)), [1, 3, 5, 2, 4, 6, 1, 3, 5]);
    // Of 8 bits, as some writers have it.
    assert_eq!(pixels(of(&[1, 2, 3, 4, 5, 6])), [1, 3, 5, 2, 4, 6, 1, 3, 5]);
    let darkest = of(&[256, 0, 0, 0, 0, 255]);
    assert_eq!(pixels(darkest), [1, 0, 0, 0, 0, 0, 1, 0, 0], "of 16 bits");
    assert!(fault(of(&[1, 2, 3])).contains("field 320"));
}

#[test]
fn strips_tiles_and_planes_give_the_same_pixels() {
    let expected: Vec<u8> = (0..5 * 4 * 3).map(|at| at * 4).collect();
    let rows: Vec<&[u8]> = expected.chunks(15).collect();
    let strips = [rows[..3].concat(), rows[3..].concat()];
    let two_strips = writer((5, 4), 2, 8, 3, &[&strips[0], &strips[1]]).short(278, 3);
    assert_eq!(pixels(two_strips), expected);
    let planes = [0, 1, 2]
        .map(|plane| -> Vec<u8> { expected[plane..].iter().step_by(3).copied().collect() });
    let planes = writer((5, 4), 2, 8, 3, &[&planes[0], &planes[1], &planes[2]]);
    assert_eq!(pixels(planes.short(278, 4).short(284, 2)), expected);
    // Tiles of 4 x 3 pixels, filled up with 99.
    let tile = |x: usize, y: usize| -> Vec<u8> {
        let places = (y..y + 3).flat_map(|y| (x..x + 4).map(move |x| (x, y)));
        let pixel = |(x, y): (usize, usize)| match rows.get(y) {
            Some(row) if x < 5 => row[3 * x..3 * x + 3].to_vec(),
            _ => vec![99; 3],
        };
        places.flat_map(pixel).collect()
    };
    let tiles = [tile(0, 0), tile(4, 0), tile(0, 3), tile(4, 3)];
    let tiles = tiles.each_ref().map(Vec::as_slice);
    assert_eq!(
        pixels(writer((5, 4), 2, 8, 3, &tiles).tiles(4, 3)),
        expected
    );
}

#[test]
fn alpha_is_kept_and_colors_are_divided_by_it() {
    let row = [50, 100, 20, 128, 200, 0, 10, 0];
    let of = |kind| writer((2, 1), 2, 8, 4, &[&row]).short(338, kind);
    let image = decoded(of(2)).image;
    assert_eq!(
        (image.layout, image.pixels.as_slice()),
        (Layout::Rgba, &row[..])
    );
    assert_eq!(pixels(of(1)), [100, 199, 40, 128, 200, 0, 10, 0]);
    // Writers leave its kind out.
    assert_eq!(pixels(writer((2, 1), 2, 8, 4, &[&row])), row);
    // A fourth sample of no meaning is passed over.
    assert_eq!(pixels(of(0)), [50, 100, 20, 200, 0, 10]);
    // There is none among three samples of RGB, and beside inks it is not read.
    let opaque = writer((2, 1), 2, 8, 3, &[&row[..6]]).short(338, 1);
    assert_eq!(pixels(opaque), row[..6]);
    let inks = writer((1, 1), 5, 8, 5, &[&[0, 0, 0, 255, 9]]).short(338, 2);
    assert_eq!(pixels(inks), [0, 0, 0]);
    let gray = writer((2, 1), 1, 8, 2, &[&[7, 100, 9, 255]]).short(338, 2);
    assert_eq!(pixels(gray), [7, 7, 7, 100, 9, 9, 9, 255]);
}

#[test]
fn inks_let_light_through() {
    let row = [0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255];
    let cmyk = writer((3, 1), 5, 8, 4, &[&row]);
    assert_eq!(pixels(cmyk), [255, 255, 255, 0, 255, 255, 0, 0, 0]);
}

/// A gradient with noise of 40 x 30 pixels.
fn samples() -> Vec<u8> {
    let mut random = Random::new(1);
    let sample = |at: usize| (at / 3 % 40 * 5 + at % 3) as u8 + random.byte() / 64;
    (0..40 * 30 * 3).map(sample).collect()
}

fn lzw(data: &[u8]) -> Vec<u8> {
    let encoder = weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8);
    { encoder }.encode(data).expect("it fits")
}

/// Literal runs, and repeated bytes.
fn pack_bits(data: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x80];
    for run in data.chunk_by(|a, b| a == b) {
        for run in run.chunks(128) {
            match run.len() {
                1 => packed.extend([0, run[0]]),
                length => packed.extend([(1 - length as i32) as i8 as u8, run[0]]),
            }
        }
    }
    packed
}

fn deflate(data: &[u8]) -> Vec<u8> {
    fdeflate::compress_to_vec(data)
}

#[test]
fn each_compression_is_undone() {
    type Compress = fn(&[u8]) -> Vec<u8>;
    let expected = samples();
    let differences = |samples: &[u8]| -> Vec<u8> {
        let rows = samples.chunks(120).map(|row| {
            let mut row = row.to_vec();
            for at in (3..120).rev() {
                row[at] = row[at].wrapping_sub(row[at - 3]);
            }
            row
        });
        rows.collect::<Vec<_>>().concat()
    };
    let ways: [(u32, Compress); 5] = [
        (1, <[u8]>::to_vec),
        (5, lzw),
        (8, deflate),
        (32_946, deflate),
        (32_773, pack_bits),
    ];
    for (number, compress) in ways {
        let of = |data: &[u8]| {
            let halves = data.split_at(data.len() / 2);
            let parts = [compress(halves.0), compress(halves.1)];
            let parts = parts.each_ref().map(Vec::as_slice);
            writer((40, 30), 2, 8, 3, &parts).short(259, number)
        };
        assert!(pixels(of(&expected)) == expected, "compression {number}");
        if number == 5 || number == 8 {
            let predicted = of(&differences(&expected)).short(317, 2);
            assert!(pixels(predicted) == expected, "predicted, {number}");
        }
        let file = of(&expected).file();
        let short = file.len() - compress(&expected[..1800]).len() / 2;
        let error = read(&file[..short], &LIMITS, &Cancel::never()).err();
        let text = error.expect("it is cut short").to_string();
        assert!(text.contains("ends too early"), "{number}: {text}");
    }
}

fn with_jpegs(size: (u32, u32), photometric: u32, samples: u32, parts: &[Vec<u8>]) -> Writer {
    let split: Vec<[Vec<u8>; 2]> = parts.iter().map(|part| without_tables(part)).collect();
    let tables: Vec<u32> = split[0][0].iter().map(|byte| u32::from(*byte)).collect();
    let parts: Vec<&[u8]> = split.iter().map(|[_, part]| part.as_slice()).collect();
    writer(size, photometric, 8, samples, &parts)
        .short(259, 7)
        .field(347, 1, &tables)
}

#[test]
fn parts_that_are_jpegs_have_common_tables_and_the_colors_of_the_picture() {
    let red = [76, 85, 255];
    let blocks: [&[u8]; 2] = [&red, &[255, 128, 128]];
    let strips = [jpeg(16, 8, &blocks, &[]), jpeg(16, 3, &blocks, &[])];
    let writer = || with_jpegs((16, 11), 6, 3, &strips).short(278, 8);
    let decoded = pixels(writer());
    assert_eq!(decoded.len(), 16 * 11 * 3);
    for row in decoded.chunks(48) {
        let (left, right) = row.split_at(24);
        assert!(left.chunks(3).all(|pixel| pixel == [254, 0, 0]), "{left:?}");
        assert!(right.iter().all(|sample| *sample == 255), "{right:?}");
    }
    let rgb = pixels(with_jpegs((16, 11), 2, 3, &strips).short(278, 8));
    assert_eq!((&rgb[..3], &rgb[24..27]), (&red[..], &[255, 128, 128][..]));
    let gray = with_jpegs((8, 8), 1, 1, &[jpeg(8, 8, &[&[9]], &[])]);
    assert_eq!(pixels(gray), [9; 192]);

    for (writer, words) in [
        (
            with_jpegs((16, 12), 6, 3, &strips).short(278, 8),
            "too early",
        ),
        (
            with_jpegs((15, 11), 6, 3, &strips).short(278, 8),
            "another size",
        ),
        (with_jpegs((16, 8), 1, 1, &strips[..1]), "other colors"),
        (writer().field(347, 1, &[1, 2, 3]), "JPEG tables"),
        (writer().short(277, 4).short(338, 2), "not read"),
    ] {
        let fault = fault(writer);
        assert!(fault.contains(words), "{fault}");
    }
}

/// Rows of 45 pixels in bits, among them white and black ones, and each in group 4.
fn scanned() -> (Vec<u8>, Vec<u8>) {
    let mut random = Random::new(3);
    let mut rows = vec![[0; 6], [0xff; 6]];
    for _ in 0..18 {
        let before: [u8; 6] = rows[rows.len() - 1];
        let change = |byte: u8| match random.byte() % 4 {
            0 => random.byte(),
            1 => byte << 1,
            _ => byte,
        };
        rows.push(before.map(change));
    }
    let mut encoder = Encoder::new(VecWriter::new());
    for row in &mut rows {
        row[5] &= 0xf8;
        let is_black = |x: usize| row[x / 8] >> (7 - x % 8) & 1 == 1;
        let pixels = (0..45).map(|x| {
            if is_black(x) {
                Color::Black
            } else {
                Color::White
            }
        });
        let Ok(()) = encoder.encode_line(pixels, 45);
    }
    let Ok(writer) = encoder.finish();
    (rows.concat(), writer.finish())
}

#[test]
fn faxes_of_group_4_have_the_pixels_of_their_bits() {
    let (bits, fax) = scanned();
    let of = |data: &[u8], compression| writer((45, 20), 0, 1, 1, &[data]).short(259, compression);
    let expected = pixels(of(&bits, 1));
    assert!(expected.contains(&0) && expected.contains(&255));
    assert_eq!(pixels(of(&fax, 4)), expected);
    let [bits, reversed] = [&bits, &fax]
        .map(|data| -> Vec<u8> { data.iter().map(|byte| byte.reverse_bits()).collect() });
    assert_eq!(pixels(of(&reversed, 4).short(266, 2)), expected);
    assert_eq!(pixels(of(&bits, 1).short(266, 2)), expected);
    for (data, words) in [
        (&fax[..fax.len() / 2], "fax codes"),
        (&[0x00, 0x10, 0x01], "too early"),
    ] {
        let fault = fault(of(data, 4));
        assert!(fault.contains(words), "{fault}");
    }
}

#[test]
fn differences_of_16_bits_run_in_the_order_of_bytes_of_the_file() {
    let row = [0x1000u16, 0x0102, 0xff00];
    for is_big_endian in [false, true] {
        let bytes = row.map(if is_big_endian {
            u16::to_be_bytes
        } else {
            u16::to_le_bytes
        });
        let data = deflate(bytes.as_flattened());
        let mut gray = writer((3, 1), 1, 16, 1, &[&data])
            .short(259, 8)
            .short(317, 2);
        gray.is_big_endian = is_big_endian;
        // 0x1000, 0x1102, 0x1002 of 0xffff, times 255.
        assert_eq!(pixels(gray), [16, 16, 16, 17, 17, 17, 16, 16, 16]);
    }
}

#[test]
fn the_tag_of_the_orientation_and_the_profile_count() {
    let profile = [7, 7, 7, 7, 7, 7];
    let writer = writer((3, 2), 1, 8, 1, &[&[1, 2, 3, 4, 5, 6]])
        .short(274, 6)
        .field(34_675, 1, &profile);
    let file = writer.file();
    let opened = open(&file, Format::Tiff, &LIMITS).expect("a good file");
    assert_eq!(opened.upright_size(), Some((2, 3)));
    assert!(opened.metadata_bytes() >= 6);
    let header = Header::read(&file, &LIMITS).expect("a good file");
    assert_eq!(header.profile(), Some(&[7; 6][..]));
    assert_eq!(header.longest_part(), 6);
}

#[test]
fn descriptions_are_handed_over() {
    let writer = writer((3, 2), 1, 8, 1, &[&[1, 2, 3, 4, 5, 6]])
        .field(700, 1, &[1, 2, 3, 4, 5])
        .field(34_377, 1, &[9, 8, 7, 6, 5, 4]);
    let file = writer.file();
    let header = Header::read(&file, &LIMITS).expect("a good file");
    assert_eq!(header.xmp(), Some(&[1, 2, 3, 4, 5][..]));
    assert_eq!(header.iptc(), Some(&[9, 8, 7, 6, 5, 4][..]));
    assert_eq!(header.directory(), file);
}

#[test]
fn memory_is_that_of_the_largest_part_and_of_what_is_beside_it() {
    let decoder = |writer: Writer| {
        let file = writer.file();
        let header = Header::read(&file, &LIMITS).expect("a good file");
        let footprint = super::footprint(&header, &LIMITS);
        footprint.expect("a small picture").decoder
    };
    let rgb = || writer((5, 4), 2, 8, 3, &[&[0; 45], &[0; 15]]).short(278, 3);
    let plain = decoder(rgb());
    let (libraries, strip, pixels) = (256 << 10, 3 * 15, 5 * 4);
    assert_eq!(plain, libraries + strip);
    assert_eq!(decoder(rgb().short(266, 2)), plain + 45, "reversed data");
    let profile = decoder(rgb().field(34_675, 1, &[0; 30]));
    assert_eq!(profile, plain + profile_bytes(30, 3));
    let cmyk = writer((5, 4), 5, 8, 4, &[&[0; 80]]).field(34_675, 1, &[0; 30]);
    let expected = libraries + 80 + pixels + profile_bytes(30, 4);
    assert_eq!(
        decoder(cmyk),
        expected,
        "with a byte for each pixel of inks"
    );
}

#[test]
fn a_predictor_counts_only_beside_a_compression_that_has_one() {
    let row = [1, 2, 3, 4, 5, 6];
    let of = |compression, predictor| {
        let writer = writer((2, 1), 2, 8, 3, &[&row]);
        writer.short(259, compression).short(317, predictor)
    };
    assert_eq!(pixels(of(1, 2)), row);
    assert_eq!(pixels(of(1, 9)), row);
    let bits = writer((2, 1), 1, 4, 1, &[&[0]]).short(259, 5).short(317, 2);
    assert!(fault(bits).contains("predictor"));
}

#[test]
fn kinds_that_are_not_read_are_named() {
    let plain = || writer((2, 1), 2, 8, 3, &[&[0; 6]]);
    for (file, words) in [
        (plain().short(259, 6), "JPEG compression of the older kind"),
        (
            plain().short(259, 7).short(258, 16),
            "other than gray or RGB",
        ),
        (plain().short(259, 3), "fax compression of group 3"),
        (
            plain().short(259, 4),
            "fax compression of more than one bit",
        ),
        (plain().short(259, 50_000), "compression 50000"),
        (plain().short(262, 6), "Y'CbCr"),
        (plain().short(262, 8), "L*a*b*"),
        (plain().short(339, 3), "floating point"),
        (plain().short(339, 2), "sign"),
        (plain().short(259, 8).short(317, 3), "predictor"),
        (plain().short(258, 32), "32 bits"),
        (plain().field(258, 3, &[8, 8, 4]), "several kinds"),
        (plain().short(277, 2), "2 samples"),
        (writer((1, 1), 2, 8, 17, &[&[0; 17]]), "17 samples"),
        (
            writer((1, 1), 5, 8, 4, &[&[0; 4]]).short(332, 2),
            "inks other than CMYK",
        ),
    ] {
        let fault = fault(file);
        assert!(
            fault.contains(words) && fault.contains("not read"),
            "{fault}"
        );
    }
    let big = [b"II+\0", &[8, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0][..]].concat();
    let error = open(&big, Format::Tiff, &LIMITS)
        .err()
        .map(|error| error.to_string());
    assert!(error.expect("it is not read").contains("BigTIFF"));
}

#[test]
fn sizes_are_checked_before_anything_of_them_is_allocated() {
    let of = |width, height| writer((width, height), 2, 8, 3, &[&[0; 6]]);
    for (width, height) in [(0, 1), (1, 0), (1001, 1), (1, 1_000_000_000), (500, 500)] {
        let file = of(width, height).field(256, 4, &[width]).file();
        assert!(
            open(&file, Format::Tiff, &LIMITS).is_err(),
            "{width} x {height}"
        );
    }
    let tiles = of(2, 1).tiles(1 << 15, 1 << 15);
    assert!(fault(tiles).contains("far larger"));
    assert!(fault(of(2, 1).tiles(0, 16)).contains("size of its parts"));
    for (width, height) in [(1, (1 << 20) + 1), ((1 << 20) + 1, 1)] {
        let fault = fault(of(1, 1).tiles(width, height));
        assert!(fault.contains("size of its parts"), "{width} x {height}");
        let at_most = of(1, 1).tiles(width.min(1 << 20), height.min(1 << 20));
        assert!(Header::read(&at_most.file(), &LIMITS).is_ok());
    }
    // Four times the picture, and 2^24 pixels more.
    let check = |width| {
        let file = of(100, 1).tiles(width, 100).file();
        let header = Header::read(&file, &LIMITS).expect("its tile is there");
        header.check_parts(&LIMITS)
    };
    assert_eq!(check(167_776), Ok(()));
    assert!(check(167_777).is_err());
    let strips = of(2, 9).short(278, 1);
    assert!(fault(strips).contains("missing"));
}

#[test]
fn parts_of_files_are_rejected() {
    let data = deflate(&samples());
    let file = writer((40, 30), 2, 8, 3, &[&data]).short(259, 8).file();
    assert_parts_are_rejected(read, &file, 0..file.len() - 8);
}

#[test]
fn cancelled_decoding_ends() {
    let file = writer((40, 30), 2, 8, 3, &[&samples()]).file();
    let cancel = Cancel::when(&|| true);
    assert!(matches!(
        read(&file, &LIMITS, &cancel),
        Err(DecodeError::Cancelled)
    ));
}

#[test]
fn damaged_files_do_no_harm() {
    let (plain, mut random) = (samples(), Random::new(20));
    let compressed = [
        lzw(&plain),
        deflate(&plain),
        pack_bits(&plain),
        plain.clone(),
    ];
    let colors: Vec<u32> = (0..768).collect();
    let numbers = [5, 8, 32_773, 1];
    let mut files: Vec<Vec<u8>> = compressed
        .iter()
        .zip(numbers)
        .map(|(data, number)| writer((40, 30), 2, 8, 3, &[data]).short(259, number).file())
        .collect();
    let indices = writer((40, 30), 3, 8, 1, &[&plain[..1200]]);
    files.push(indices.field(320, 3, &colors).file());
    let tiles = writer((40, 30), 1, 8, 1, &[&plain[..1024], &plain[1024..2048]]);
    files.push(tiles.tiles(32, 32).big_endian().file());
    let inks = writer((20, 45), 5, 8, 4, &[&plain]);
    files.push(inks.short(274, 5).file());
    let unit = [76, 200, 30, 40, 85, 255];
    let halves = [(); 2].map(|()| subsampled((40, 15), &[unit; 3], &[]));
    files.push(
        writer((45, 20), 0, 1, 1, &[&scanned().1])
            .short(259, 4)
            .file(),
    );
    files.push(with_jpegs((40, 30), 6, 3, &halves).file());
    let mut good = 0;
    for round in 0..20_000 {
        let mut file = files[round % files.len()].clone();
        // Half of the damage is in the directory.
        let length = if round % 2 == 0 {
            file.len().min(200)
        } else {
            file.len()
        };
        for _ in 0..=random.byte() % 4 {
            let at = random.next_u32() as usize % length;
            file[at] = if random.byte() % 2 == 0 {
                random.byte()
            } else {
                file[at] ^ 1
            };
        }
        good += usize::from(read(&file, &LIMITS, &Cancel::never()).is_ok());
    }
    assert!((1000..19_000).contains(&good), "{good} of 20000 are read");
}
