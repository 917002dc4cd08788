//! Decodes a sequential JPEG at 1/2, 1/4 or 1/8 of its size: of each block only the lowest
//! frequencies are transformed, to as many pixels, which takes a fraction of the time and of the
//! memory of decoding all pixels.
//!
//! Such pixels are means of samples, which are darker than means of light, the more so the more
//! they vary. The frequencies that are left out show by how much (by Parseval's theorem, the sum of
//! their squares is that of what they make of pixels): their energy is added to that of the pixels
//! of their block, as if light were the square of samples.
//!
//! Data that no usual writer makes have no result here: the library's decoder then decodes all of
//! it, and reports the fault.

mod transform;

use super::bits::{Bits, Cursor};
use super::blocks::{Block, BlockReader};
use super::header::Header;
use super::scan_header::{Coded, ScanHeader};
use crate::image::pixels::{Image, Layout};
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};
use towebp_encoder::{Cancel, Cancelled};
use transform::{PORTION, Row, write_samples, write_shares};

/// The most pixels on each side in place of the 8 of a block.
const MOST: usize = 4;

/// Decodes to RGB the picture of these headers, whose only scan is `scan`, with `size` pixels in
/// place of 8 on each side; `None` if that cannot be done.
pub fn decode(
    header: &Header<'_>,
    scan: &[u8],
    size: usize,
    cancel: &Cancel<'_>,
) -> Result<Option<Image>, Cancelled> {
    let Some(scan_header) = ScanHeader::read(&header.segments) else {
        return Ok(None);
    };
    let coded = scan_header.coded().unwrap_or_default();
    let Some(mut scaled) = Scaled::new(header, &coded, size) else {
        return Ok(None);
    };
    let level = Level::new();
    let (mut bits, mut cursor) = (Bits::of(scan), Cursor::default());
    let mut pixels = vec![0; scaled.width * scaled.height * 3];
    let rows = pixels.chunks_mut(scaled.width * 3 * scaled.mcu_height);
    for (number, rows) in rows.enumerate() {
        cancel.check()?;
        // Shifts by any number of bits are faster with some vectors' other instructions.
        let Some(behind) = dispatch!(level, _simd => scaled.read_row(&mut bits, cursor, number))
        else {
            return Ok(None);
        };
        cursor = behind;
        dispatch!(level, simd => scaled.write_rows(simd, rows));
    }
    if bits.end_of_data(cursor).is_none() {
        return Ok(None);
    }
    Ok(Some(Image {
        width: scaled.width as u32,
        height: scaled.height as u32,
        layout: Layout::Rgb,
        pixels,
    }))
}

/// A picture that is being decoded, one row of MCUs after the other.
struct Scaled {
    components: Vec<Component>,
    readers: Vec<BlockReader>,
    /// Width and height in pixels.
    width: usize,
    height: usize,
    /// The number of rows that a row of MCUs makes.
    mcu_height: usize,
    /// The number of MCUs in a row.
    mcus: usize,
    /// The number of MCUs between restart markers; 0 if there are none.
    restart_interval: usize,
    /// The energy that pixels of a row get.
    shares: Vec<f32>,
    /// Rows of samples of which each stands for two pixels.
    doubled: [Vec<f32>; 2],
}

struct Component {
    /// The number of blocks in an MCU, across and down.
    factors: [usize; 2],
    /// The place of its reader.
    reader: usize,
    /// The number of samples on each side of a block.
    size: usize,
    /// The number of pixels, across and down, that have one sample.
    pixels: [usize; 2],
    /// The DC coefficient of the block before.
    prediction: i16,
    /// The blocks of a row of MCUs, row by row, and their energies, if these matter.
    blocks: Vec<Block>,
    energies: Vec<u64>,
    /// The number of blocks in a row.
    across: usize,
    /// The samples of a row of MCUs, and the distance from row to row.
    samples: Vec<f32>,
    stride: usize,
}

impl Scaled {
    fn new(header: &Header<'_>, coded: &[Coded<'_>], size: usize) -> Option<Scaled> {
        let most = |axis: usize| coded.iter().map(|coded| coded.factors[axis]).max();
        // A single component comes block by block (A.2.2).
        let most = match coded.len() {
            1 => [1, 1],
            _ => [most(0)?, most(1)?],
        };
        let are_usual =
            |coded: &Coded<'_>| coded.factors.iter().all(|factor| matches!(factor, 1 | 2));
        if !matches!(coded.len(), 1 | 3) || !coded.iter().all(are_usual) {
            return None;
        }
        let mcus = header.width().div_ceil(8 * most[0]);
        let (mut components, mut readers) = (Vec::<Component>::new(), Vec::new());
        for (number, one) in coded.iter().enumerate() {
            let factors = if most == [1, 1] { [1, 1] } else { one.factors };
            let mut component = Component::new(factors, most, size, mcus)?;
            // The second component of chroma mostly has the tables of the first.
            if number == 2 && one.is_like(&coded[1]) && component.size == components[1].size {
                component.reader = 1;
            } else {
                component.reader = readers.len();
                readers.push(BlockReader::new(one, component.size, number == 0));
            }
            components.push(component);
        }
        if components[0].pixels != [1, 1] {
            return None;
        }
        let width = (header.width() * size).div_ceil(8);
        let padded = (mcus * most[0] * size).next_multiple_of(PORTION);
        Some(Scaled {
            components,
            readers,
            width,
            height: (header.height() * size).div_ceil(8),
            mcu_height: most[1] * size,
            mcus,
            restart_interval: header.restart_interval(),
            shares: vec![0.0; padded],
            doubled: [vec![0.0; padded], vec![0.0; padded]],
        })
    }

    /// Reads the row of MCUs of this number; returns the place behind it.
    #[inline(always)]
    fn read_row(&mut self, bits: &mut Bits<'_>, mut cursor: Cursor, row: usize) -> Option<Cursor> {
        for mcu in 0..self.mcus {
            let before = row * self.mcus + mcu;
            if self.restart_interval > 0
                && before > 0
                && before.is_multiple_of(self.restart_interval)
            {
                cursor = bits.restart(cursor)?;
                for component in &mut self.components {
                    component.prediction = 0;
                }
            }
            cursor = bits.prepare(cursor)?;
            for component in &mut self.components {
                let reader = &self.readers[component.reader];
                let [across, down] = component.factors;
                for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                    let prediction = &mut component.prediction;
                    let (block, energy) = reader.read(&mut cursor, bits.buffer(), prediction)?;
                    let place = y * component.across + mcu * across + x;
                    component.blocks[place] = block;
                    component.energies[place] = energy;
                }
            }
        }
        Some(cursor)
    }

    /// Writes the rows of pixels of the row of MCUs that was read.
    #[inline(always)]
    fn write_rows<S: Simd>(&mut self, simd: S, rows: &mut [u8]) {
        for component in &mut self.components {
            component.transform(simd);
        }
        let [luma, chroma @ ..] = &self.components[..] else {
            return;
        };
        for (y, pixels) in rows.chunks_exact_mut(self.width * 3).enumerate() {
            luma.write_shares(simd, y, &mut self.shares);
            for (component, doubled) in chroma.iter().zip(&mut self.doubled) {
                component.double_row(y, doubled);
            }
            let chroma_row = |number: usize| {
                let component = chroma.get(number)?;
                Some(component.row(y, &self.doubled[number]))
            };
            let row = Row {
                luma: luma.samples(y),
                shares: &self.shares,
                chroma: chroma_row(0)
                    .zip(chroma_row(1))
                    .map(|(blue, red)| [blue, red]),
            };
            row.write(simd, pixels);
        }
    }
}

impl Component {
    /// A component with `factors` blocks in each MCU of a picture where another has `most`.
    fn new(factors: [usize; 2], most: [usize; 2], size: usize, mcus: usize) -> Option<Component> {
        // If there are fewer blocks, more frequencies are taken, so that there is a sample for each
        // pixel.
        let mut own = size;
        while own < MOST && (0..2).all(|axis| 2 * own * factors[axis] <= size * most[axis]) {
            own *= 2;
        }
        let pixels = |axis: usize| {
            let samples = own * factors[axis];
            let pixels = (size * most[axis]).checked_div(samples)?;
            (pixels * samples == size * most[axis] && pixels <= 2).then_some(pixels)
        };
        let across = mcus * factors[0];
        let stride = (across * own).next_multiple_of(PORTION);
        let blocks = across * factors[1];
        Some(Component {
            factors,
            reader: 0,
            size: own,
            pixels: [pixels(0)?, pixels(1)?],
            prediction: 0,
            blocks: vec![[0; 16]; blocks],
            energies: vec![0; blocks],
            across,
            samples: vec![0.0; stride * factors[1] * own],
            stride,
        })
    }

    #[inline(always)]
    fn transform<S: Simd>(&mut self, simd: S) {
        let rows = self.samples.chunks_exact_mut(self.stride * self.size);
        for (blocks, samples) in self.blocks.chunks_exact(self.across).zip(rows) {
            write_samples(simd, blocks, self.size, samples, self.stride);
        }
    }

    /// Writes what the pixels of row `y` get of the energy of their blocks, if it is the first row
    /// of these.
    #[inline(always)]
    fn write_shares<S: Simd>(&self, simd: S, y: usize, shares: &mut [f32]) {
        if y.is_multiple_of(self.size) {
            let energies = &self.energies[y / self.size * self.across..][..self.across];
            let samples = &self.samples[y * self.stride..];
            write_shares(simd, energies, self.size, samples, (shares, self.stride));
        }
    }

    /// Writes the samples of row `y` of pixels twice each, if each stands for two, and unless the
    /// row above has the same.
    #[inline(always)]
    fn double_row(&self, y: usize, doubled: &mut [f32]) {
        if self.pixels[0] == 2 && y.is_multiple_of(self.pixels[1]) {
            for (pair, &sample) in doubled
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(self.samples(y))
            {
                *pair = [sample; 2];
            }
        }
    }

    /// The samples of a row of pixels, one for each.
    fn row<'a>(&'a self, y: usize, doubled: &'a [f32]) -> &'a [f32] {
        match self.pixels[0] {
            1 => self.samples(y),
            _ => doubled,
        }
    }

    /// The samples of a row of pixels.
    fn samples(&self, y: usize) -> &[f32] {
        &self.samples[y / self.pixels[1] * self.stride..][..self.stride]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::formats::jpeg;
    use crate::image::limits::Limits;

    const PHOTOGRAPHS: [&[u8]; 3] = [
        include_bytes!("../../../../../testdata/astronaut.jpg"),
        include_bytes!("../../../../../testdata/coffee.jpg"),
        include_bytes!("../../../../../testdata/rotated.jpg"),
    ];

    fn scaled(bytes: &[u8], size: u32) -> Option<Image> {
        let header = Header::read(bytes).ok()?;
        let cancel = Cancel::never();
        let decoder = jpeg::Decoder::new(bytes, &header, &Limits::DEFAULT, &cancel).ok()?;
        decode(&header, decoder.scan?, size as usize, &cancel).ok()?
    }

    fn averaged(bytes: &[u8], size: u32) -> Option<Image> {
        let header = Header::read(bytes).ok()?;
        let cancel = Cancel::never();
        let mut decoder = jpeg::Decoder::new(bytes, &header, &Limits::DEFAULT, &cancel).ok()?;
        jpeg::averaged::decode(&mut decoder.inner, &header, size as usize, &cancel).ok()
    }

    #[test]
    fn pixels_have_nearly_the_light_of_those_they_stand_for() {
        for bytes in &PHOTOGRAPHS[..2] {
            let header = Header::read(bytes).expect("a valid header");
            let whole = jpeg::decode(bytes, &header, &Limits::DEFAULT, &Cancel::never());
            let whole = whole.expect("a valid picture").image;
            for size in [1, 2, 4] {
                for decode in [scaled, averaged] {
                    let scaled = decode(bytes, size).expect("a sequential picture");
                    let sides = [whole.width, whole.height].map(|side| (side * size).div_ceil(8));
                    assert_eq!([scaled.width, scaled.height], sides);
                    let (apart, signed) = difference_in_light(&whole, &scaled, 8 / size as usize);
                    assert!(
                        apart < 2.5 && signed.abs() < 1.0,
                        "{size}: {apart}, {signed}"
                    );
                }
            }
        }
    }

    /// How far the pixels of a picture are from the means, in light, of squares of this side of
    /// another: the means of the distances and of the differences.
    fn difference_in_light(whole: &Image, scaled: &Image, side: usize) -> (f64, f64) {
        let light = |image: &Image, x: usize, y: usize, channel: usize| {
            let place = (y * image.width as usize + x) * 3 + channel;
            (f64::from(image.pixels[place]) / 255.0).powf(2.2)
        };
        let level = |light: f64| light.powf(1.0 / 2.2) * 255.0;
        let (columns, rows) = (whole.width as usize / side, whole.height as usize / side);
        let (mut apart, mut signed, mut count) = (0.0, 0.0, 0.0);
        for (x, y) in (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))) {
            for channel in 0..3 {
                let places =
                    (0..side * side).map(|at| (x * side + at % side, y * side + at / side));
                let lights = places.map(|(x, y)| light(whole, x, y, channel));
                let mean = lights.sum::<f64>() / (side * side) as f64;
                let difference = level(light(scaled, x, y, channel)) - level(mean);
                apart += difference.abs();
                signed += difference;
                count += 1.0;
            }
        }
        (apart / count, signed / count)
    }

    #[test]
    fn restart_markers_are_passed() {
        for (size, interval) in [((200, 120), 5), ((200, 120), 13), ((16, 160), 1)] {
            let file = jpeg::tests::restarted(size, interval);
            let header = Header::read(&file).expect("a valid header");
            let whole = jpeg::decode(&file, &header, &Limits::DEFAULT, &Cancel::never());
            let whole = whole.expect("a valid picture").image;
            // Blocks are plain: each pixel of them is the block's.
            let scaled = scaled(&file, 1).expect("a sequential picture");
            for (at, &gray) in scaled.pixels.iter().step_by(3).enumerate() {
                let (x, y) = (at % scaled.width as usize, at / scaled.width as usize);
                let there = (y * 8 + 4) * whole.width as usize + x * 8 + 4;
                let other = whole.pixels[there * 3];
                assert!(gray.abs_diff(other) <= 12, "{gray} and {other} at {x}, {y}");
            }
        }
    }

    #[test]
    fn a_file_that_is_cut_short_or_damaged_is_left_to_the_library() {
        let bytes = PHOTOGRAPHS[2];
        assert!(scaled(bytes, 2).is_some());
        let begin = Header::read(bytes).expect("a valid header").scan_begin;
        for length in begin..bytes.len() - 2 {
            assert_eq!(scaled(&bytes[..length], 2), None, "{length} bytes");
            let ended = [&bytes[..length], &[0xff, 0xd9]].concat();
            assert_eq!(scaled(&ended, 2), None, "{length} bytes and an end");
        }
        // Whatever is changed, nothing panics.
        for place in 2..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[place] ^= 0x55;
            for size in [1, 4] {
                let _ = scaled(&damaged, size);
            }
        }
    }
}
