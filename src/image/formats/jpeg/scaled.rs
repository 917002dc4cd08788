//! Decodes a sequential JPEG at 1/2, 1/4 or 1/8 of its size: of each block only the lowest
//! frequencies are transformed, to as many pixels. Coefficients of the others are passed over,
//! which takes a fraction of the time and of the memory of decoding all pixels.
//!
//! What is not as every writer leaves it has no outcome here: it is the library's decoder that then
//! decodes all of it, and tells what is wrong.

use super::header::Header;
use super::skim::{Bits, Coded, ScanHeader};
use crate::image::pixels::{Image, Layout};
use towebp_encoder::{Cancel, Cancelled};

/// The most pixels on each side in place of the 8 of a block.
const MOST: usize = 4;

/// The places in a block, row by row, of its coefficients in zigzag order (T.81, figure 5), as far
/// as they are needed.
const ZIGZAG: [u8; 25] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27,
];

/// Decodes to RGB the picture of `bytes`, whose only scan is `scan`, with `size` pixels in place of
/// 8 on each side; `None` if that cannot be done.
pub fn decode(
    bytes: &[u8],
    header: &Header<'_>,
    scan: &[u8],
    size: usize,
    cancel: &Cancel<'_>,
) -> Result<Option<Image>, Cancelled> {
    let Some(scan_header) = ScanHeader::read(bytes) else {
        return Ok(None);
    };
    let coded = scan_header.coded().unwrap_or_default();
    let Some(mut scaled) = Scaled::new(header, &coded, size) else {
        return Ok(None);
    };
    let mut bits = Bits::of(scan);
    let mut pixels = vec![0; scaled.width * scaled.height * 3];
    let rows = pixels.chunks_mut(scaled.width * 3 * scaled.mcu_height);
    for (number, rows) in rows.enumerate() {
        cancel.check()?;
        if scaled.read_row(&mut bits, number).is_none() {
            return Ok(None);
        }
        for (y, row) in rows.chunks_exact_mut(scaled.width * 3).enumerate() {
            scaled.write_row(y, row);
        }
    }
    if bits.end().is_none() {
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
struct Scaled<'a> {
    components: Vec<Component<'a>>,
    /// Width and height in pixels.
    width: usize,
    height: usize,
    /// The number of rows that a row of MCUs makes.
    mcu_height: usize,
    /// The number of MCUs in a row.
    mcus: usize,
    /// The number of MCUs between restart markers; 0 if there are none.
    restart_interval: usize,
}

struct Component<'a> {
    coded: Coded<'a>,
    /// The number of pixels on each side of a block.
    size: usize,
    /// The number of the last coefficient that is needed, in zigzag order.
    last: usize,
    /// By number: the quantizer with the factor of its frequency.
    quantizers: [f32; ZIGZAG.len()],
    /// The DC coefficient of the block before.
    prediction: i32,
    /// The samples of a row of MCUs, and the distance from row to row.
    samples: Vec<u8>,
    stride: usize,
    /// The number of pixels, across and down, that have one sample.
    pixels: [usize; 2],
}

impl<'a> Scaled<'a> {
    fn new(header: &Header<'_>, coded: &[Coded<'a>], size: usize) -> Option<Scaled<'a>> {
        let most = |axis: usize| coded.iter().map(|coded| coded.factors[axis]).max();
        // A single component comes block by block (A.2.2).
        let most = match coded.len() {
            1 => [1, 1],
            _ => [most(0)?, most(1)?],
        };
        let are_usual =
            |coded: &Coded<'_>| coded.factors.iter().all(|factor| matches!(factor, 1 | 2));
        if !coded.iter().all(are_usual) {
            return None;
        }
        let mcus = header.width().div_ceil(8 * most[0]);
        let component = |coded: &Coded<'a>| {
            let factors = if most == [1, 1] {
                [1, 1]
            } else {
                coded.factors
            };
            let mut coded = *coded;
            coded.factors = factors;
            Component::new(coded, most, size, mcus)
        };
        Some(Scaled {
            components: coded.iter().map(component).collect::<Option<_>>()?,
            width: (header.width() * size).div_ceil(8),
            height: (header.height() * size).div_ceil(8),
            mcu_height: most[1] * size,
            mcus,
            restart_interval: header.restart_interval(),
        })
    }

    /// Reads a row of MCUs, which is the one of this number.
    fn read_row(&mut self, bits: &mut Bits<'_>, number: usize) -> Option<()> {
        for mcu in 0..self.mcus {
            let before = number * self.mcus + mcu;
            if self.restart_interval > 0
                && before > 0
                && before.is_multiple_of(self.restart_interval)
            {
                bits.restart()?;
                for component in &mut self.components {
                    component.prediction = 0;
                }
            }
            for component in &mut self.components {
                component.read_mcu(bits, mcu)?;
            }
        }
        Some(())
    }

    /// Writes a row of pixels of the row of MCUs that was read.
    fn write_row(&self, y: usize, row: &mut [u8]) {
        let pixels = row.as_chunks_mut::<3>().0;
        match &self.components[..] {
            [luma] => {
                for (pixel, &sample) in pixels.iter_mut().zip(luma.row(y)) {
                    *pixel = [sample; 3];
                }
            }
            [luma, blue, red] => {
                let (luma_row, blue_row, red_row) = (luma.row(y), blue.row(y), red.row(y));
                let shift = |component: &Component<'_>| component.pixels[0].trailing_zeros();
                let [luma, blue, red] = [luma, blue, red].map(shift);
                for (x, pixel) in pixels.iter_mut().enumerate() {
                    let ycbcr = [luma_row[x >> luma], blue_row[x >> blue], red_row[x >> red]];
                    *pixel = to_rgb(ycbcr);
                }
            }
            _ => {}
        }
    }
}

impl<'a> Component<'a> {
    /// A component of a picture whose MCUs have `most` blocks of another across and down.
    fn new(coded: Coded<'a>, most: [usize; 2], size: usize, mcus: usize) -> Option<Component<'a>> {
        // Of fewer blocks more frequencies are taken, so that there is a sample for each pixel.
        let mut own = size;
        while own < MOST && (0..2).all(|axis| 2 * own * coded.factors[axis] <= size * most[axis]) {
            own *= 2;
        }
        let pixels = |axis: usize| {
            let samples = own * coded.factors[axis];
            let pixels = (size * most[axis]).checked_div(samples)?;
            (pixels * samples == size * most[axis] && pixels.is_power_of_two()).then_some(pixels)
        };
        let last = ZIGZAG.iter().rposition(|&place| is_needed(place, own))?;
        let stride = mcus * coded.factors[0] * own;
        let scale = |frequency: u8| match frequency {
            0 => std::f32::consts::FRAC_1_SQRT_2 / 2.0,
            _ => 0.5,
        };
        Some(Component {
            size: own,
            last,
            quantizers: std::array::from_fn(|number| {
                let place = ZIGZAG[number];
                f32::from(coded.quantizers[number]) * (scale(place / 8) * scale(place % 8))
            }),
            prediction: 0,
            samples: vec![0; stride * coded.factors[1] * own],
            stride,
            pixels: [pixels(0)?, pixels(1)?],
            coded,
        })
    }

    /// The samples of a row of pixels.
    fn row(&self, y: usize) -> &[u8] {
        &self.samples[y / self.pixels[1] * self.stride..][..self.stride]
    }

    fn read_mcu(&mut self, bits: &mut Bits<'_>, mcu: usize) -> Option<()> {
        let [across, down] = self.coded.factors;
        for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
            let mut block = [0; 64];
            let (coded, last) = (self.coded, self.last);
            coded.read_block(bits, &mut self.prediction, last, &mut block)?;
            let place = y * self.size * self.stride + (mcu * across + x) * self.size;
            self.transform(&block, place);
        }
        Some(())
    }

    /// Writes the pixels of a block.
    #[inline(always)]
    fn transform(&mut self, block: &[i32; 64], place: usize) {
        let number = |number: usize| block[number] as f32 * self.quantizers[number];
        let (size, stride) = (self.size, self.stride);
        let mut values = [0.0; MOST * MOST];
        values[0] = number(0);
        if block[1..=self.last]
            .iter()
            .all(|&coefficient| coefficient == 0)
        {
            let sample = to_sample(values[0]);
            for row in self.samples[place..].chunks_mut(stride).take(size) {
                row[..size].fill(sample);
            }
            return;
        }
        for (at, &in_block) in ZIGZAG.iter().enumerate().take(self.last + 1).skip(1) {
            if is_needed(in_block, size) {
                values[usize::from(in_block / 8) * MOST + usize::from(in_block % 8)] = number(at);
            }
        }
        let transform = match size {
            2 => two_points,
            _ => four_points,
        };
        for row in values.as_chunks_mut::<MOST>().0 {
            *row = transform(*row);
        }
        for x in 0..size {
            let column = std::array::from_fn(|y| values[y * MOST + x]);
            for (y, value) in transform(column).into_iter().enumerate().take(size) {
                self.samples[place + y * stride + x] = to_sample(value);
            }
        }
    }
}

/// Whether a coefficient at this place of a block is among the lowest `size` frequencies of both
/// directions.
fn is_needed(place: u8, size: usize) -> bool {
    usize::from(place / 8) < size && usize::from(place % 8) < size
}

/// The cosines of an eighth and of three eighths of pi.
const COS_1: f32 = 0.923_879_5;
const COS_3: f32 = 0.382_683_43;

/// The inverse cosine transform of two points, but for the factors of frequencies.
#[inline(always)]
fn two_points([a, b, ..]: [f32; MOST]) -> [f32; MOST] {
    let b = b * std::f32::consts::FRAC_1_SQRT_2;
    [a + b, a - b, 0.0, 0.0]
}

/// That of four points.
#[inline(always)]
fn four_points([a, b, c, d]: [f32; MOST]) -> [f32; MOST] {
    let c = c * std::f32::consts::FRAC_1_SQRT_2;
    let (even, odd) = (
        [a + c, a - c],
        [b * COS_1 + d * COS_3, b * COS_3 - d * COS_1],
    );
    [
        even[0] + odd[0],
        even[1] + odd[1],
        even[1] - odd[1],
        even[0] - odd[0],
    ]
}

/// A sample of a value around 0.
#[inline(always)]
fn to_sample(value: f32) -> u8 {
    (value + 128.5) as u8
}

/// Red, green and blue of a pixel (JFIF 1.02), in units of 1/65536.
#[inline(always)]
fn to_rgb(ycbcr: [u8; 3]) -> [u8; 3] {
    let [luma, blue, red] = ycbcr.map(i32::from);
    let (blue, red) = (blue - 128, red - 128);
    let luma = (luma << 16) + (1 << 15);
    [
        luma + 91_881 * red,
        luma - 22_554 * blue - 46_802 * red,
        luma + 116_130 * blue,
    ]
    .map(|sample| (sample >> 16).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::formats::jpeg;
    use crate::image::limits::Limits;

    const PHOTOGRAPHS: [&[u8]; 3] = [
        include_bytes!("../../../../testdata/astronaut.jpg"),
        include_bytes!("../../../../testdata/coffee.jpg"),
        include_bytes!("../../../../testdata/rotated.jpg"),
    ];

    fn scaled(bytes: &[u8], size: u32) -> Option<Image> {
        let header = Header::read(bytes).ok()?;
        let (limits, cancel) = (Limits::DEFAULT, Cancel::never());
        let decoded = jpeg::decode_scaled(bytes, &header, size, &limits, &cancel);
        Some(decoded.ok()??.image)
    }

    #[test]
    fn pixels_are_nearly_the_means_of_those_they_stand_for() {
        for bytes in &PHOTOGRAPHS[..2] {
            let header = Header::read(bytes).expect("a valid header");
            let whole = jpeg::decode(bytes, &header, &Limits::DEFAULT, &Cancel::never());
            let whole = whole.expect("a valid picture").image;
            let (width, height) = (whole.width as usize, whole.height as usize);
            for size in [1, 2, 4] {
                let scaled = scaled(bytes, size).expect("a sequential picture");
                let size = size as usize;
                let sides = [width, height].map(|side| (side * size).div_ceil(8) as u32);
                assert_eq!([scaled.width, scaled.height], sides);
                let step = 8 / size;
                let (mut apart, mut count) = (0, 0);
                let columns = width / step;
                for (x, y) in (0..height / step).flat_map(|y| (0..columns).map(move |x| (x, y))) {
                    for channel in 0..3 {
                        let places =
                            (0..step * step).map(|at| (x * step + at % step, y * step + at / step));
                        let at = |(x, y): (usize, usize)| {
                            usize::from(whole.pixels[(y * width + x) * 3 + channel])
                        };
                        let sum: usize = places.map(at).sum();
                        let place = (y * scaled.width as usize + x) * 3 + channel;
                        apart += (sum / (step * step)).abs_diff(usize::from(scaled.pixels[place]));
                        count += 1;
                    }
                }
                let mean = apart as f64 / f64::from(count);
                assert!(mean < 2.5, "{size}: {mean} apart");
            }
        }
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
