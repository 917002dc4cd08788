//! TIFF files of pictures.

use super::jpeg::{self, Kind};
use super::picture::Picture;

/// The samples of a pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Samples {
    /// Red, green and blue.
    #[default]
    Rgb,
    /// Alpha as well.
    Rgba,
    /// The same four as inks.
    Cmyk,
    /// `Y'CbCr` in JPEGs, whatever [`Tiff::is_deep`] and [`Tiff::is_compressed`] are.
    Jpeg,
}

/// How a picture is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tiff<'a> {
    /// Whether its samples have 16 bits.
    pub is_deep: bool,
    /// The samples of a pixel.
    pub samples: Samples,
    /// Whether it is compressed by Deflate.
    pub is_compressed: bool,
    /// The side of its tiles, or 0 for strips of `rows` rows.
    pub tile: u32,
    /// The rows of a strip, or 0 for one strip.
    pub rows: u32,
    /// Its orientation, 1 to 8, or 0 for none.
    pub orientation: u32,
    /// An ICC profile.
    pub profile: &'a [u8],
}

impl Tiff<'_> {
    /// Writes the file, little-endian.
    pub fn file(self, picture: &Picture) -> Vec<u8> {
        let Picture { width, height, .. } = *picture;
        let is_jpeg = self.samples == Samples::Jpeg;
        let samples = match self.samples {
            Samples::Rgb | Samples::Jpeg => 3,
            Samples::Rgba | Samples::Cmyk => 4,
        };
        let (part_width, part_height) = match (self.tile, self.rows) {
            (0, 0) => (width, height),
            (0, rows) => (width, rows),
            (side, _) => (side, side),
        };
        let mut parts = Vec::new();
        for y in (0..height).step_by(part_height as usize) {
            for x in (0..width).step_by(part_width as usize) {
                let rows = if self.tile > 0 {
                    part_height
                } else {
                    part_height.min(height - y)
                };
                if is_jpeg {
                    let pixel = |dx, dy| match (x + dx < width, y + dy < height) {
                        (true, true) => picture.at(x + dx, y + dy),
                        _ => [99; 4],
                    };
                    let part = Picture::of(part_width, rows, pixel);
                    parts.push(jpeg::jpeg(&part, Kind::Sequential));
                    continue;
                }
                let places = (y..y + rows).flat_map(|y| (x..x + part_width).map(move |x| (x, y)));
                let mut part = Vec::new();
                for (x, y) in places {
                    let is_inside = x < width && y < height;
                    let pixel = if is_inside { picture.at(x, y) } else { [99; 4] };
                    for &sample in &pixel[..samples] {
                        part.push(sample);
                        part.extend(self.is_deep.then_some(sample));
                    }
                }
                parts.push(if self.is_compressed {
                    fdeflate::compress_to_vec(&part)
                } else {
                    part
                });
            }
        }
        let bits = if self.is_deep && !is_jpeg { 16 } else { 8 };
        let (compression, photometric) = match self.samples {
            Samples::Jpeg => (7, 6),
            Samples::Cmyk => (if self.is_compressed { 8 } else { 1 }, 5),
            Samples::Rgb | Samples::Rgba => (if self.is_compressed { 8 } else { 1 }, 2),
        };
        let lengths: Vec<u32> = parts.iter().map(|part| part.len() as u32).collect();
        let profile = self.profile.iter().map(|byte| u32::from(*byte)).collect();
        // Tag, bytes of a number, numbers.
        let mut fields: Vec<(u16, usize, Vec<u32>)> = vec![
            (256, 4, vec![width]),
            (257, 4, vec![height]),
            (258, 2, vec![bits; samples]),
            (259, 2, vec![compression]),
            (262, 2, vec![photometric]),
            (274, 2, vec![self.orientation]),
            (277, 2, vec![samples as u32]),
            (338, 2, vec![2]),
            (34_675, 1, profile),
        ];
        let [offsets, counts] = if self.tile > 0 {
            [324, 325]
        } else {
            [273, 279]
        };
        fields.extend([(offsets, 4, vec![0; parts.len()]), (counts, 4, lengths)]);
        if self.tile > 0 {
            fields.extend([(322, 4, vec![part_width]), (323, 4, vec![part_height])]);
        } else {
            fields.push((278, 4, vec![part_height]));
        }
        fields.retain(|(tag, _, numbers)| match tag {
            274 => self.orientation > 0,
            338 => self.samples == Samples::Rgba,
            _ => !numbers.is_empty(),
        });
        fields.sort();
        assemble(fields, offsets, &parts)
    }
}

/// A picture of bits in group 4 whose first row has runs of no pixels alone, in so many bytes.
pub fn fax_of_empty_runs(bytes: usize) -> Vec<u8> {
    // Horizontal mode, no white pixels, no black ones (ITU-T T.4 and T.6).
    const RUNS: u32 = 0b0_0100_1101_0100_0011_0111;
    const BITS: usize = 21;
    let bit = |at: usize| (RUNS >> (BITS - 1 - at % BITS) & 1) as u8;
    let byte = |at: usize| (0..8).fold(0, |byte, place| byte << 1 | bit(8 * at + place));
    let part: Vec<u8> = (0..bytes).map(byte).collect();
    let fields = vec![
        (256, 4, vec![1000]),
        (257, 4, vec![1000]),
        (258, 2, vec![1]),
        (259, 2, vec![4]),
        (262, 2, vec![0]),
        (273, 4, vec![0]),
        (277, 2, vec![1]),
        (279, 4, vec![bytes as u32]),
    ];
    assemble(fields, 273, &[part])
}

/// The header, the directory, the values of more than four bytes, and the parts of the picture.
fn assemble(mut fields: Vec<(u16, usize, Vec<u32>)>, offsets: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    let values_at = 8 + 2 + 12 * fields.len() + 4;
    let long = |size: usize, numbers: &[u32]| Some(size * numbers.len()).filter(|bytes| *bytes > 4);
    let sizes = fields
        .iter()
        .filter_map(|(_, size, numbers)| long(*size, numbers));
    let mut at = values_at + sizes.sum::<usize>();
    let field = fields.iter_mut().find(|(tag, ..)| *tag == offsets);
    let (_, _, places) = field.expect("it is there");
    for (place, part) in places.iter_mut().zip(parts) {
        *place = at as u32;
        at += part.len();
    }
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend((fields.len() as u16).to_le_bytes());
    let mut values = Vec::new();
    for (tag, size, numbers) in &fields {
        file.extend(tag.to_le_bytes());
        file.extend(
            [
                [0u16, 1, 3, 0, 4][*size].to_le_bytes(),
                (numbers.len() as u16).to_le_bytes(),
            ]
            .concat(),
        );
        file.extend(((numbers.len() >> 16) as u16).to_le_bytes());
        let bytes = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes()[..*size].to_vec());
        let mut bytes: Vec<u8> = bytes.collect();
        if long(*size, numbers).is_some() {
            file.extend(((values_at + values.len()) as u32).to_le_bytes());
            values.extend(bytes);
        } else {
            bytes.resize(4, 0);
            file.extend(bytes);
        }
    }
    file.extend([0; 4]);
    [file, values, parts.concat()].concat()
}
