//! An estimate of the bytes of a picture's lossless coding, by a sample of its rows.

use crate::checks::Checks;
use crate::error::EncodeError;
use crate::pixel_source::{PixelSource, Target};
use crate::threads::Workers;
use crate::vp8l::{log2, max_error};

/// An estimate of a picture's lossless size, by a sample of its rows.
/// [`PlanesBuilder::finish_estimated`](crate::PlanesBuilder::finish_estimated) returns it for
/// [`Encoder::encode_planes_if_lossy`](crate::Encoder::encode_planes_if_lossy).
///
/// A pixel that equals its left or its upper neighbor counts nothing. All others count the entropy
/// of their prediction residuals, or of their colors if that is less; strings of pixels that repeat
/// count once. The lossless files of ten Kodak photographs take 0.99 to 1.15 times the estimate,
/// and their lossy files at quality 100 less than half of it. The lossless files of ten screenshots
/// and charts take 0.9 to 4 times the estimate.
#[derive(Clone, Debug)]
pub struct LosslessEstimate {
    size: (usize, usize),
    /// The number of pixels in the sample.
    sampled: u64,
    /// The pixels of the sample that differ from both neighbors.
    coded: u32,
    /// How often each residual occurs: of green, of red and of blue less that of green, of alpha.
    residuals: [[u32; 256]; 4],
    /// How often each hash of a color occurs.
    colors: Vec<u32>,
    /// A hash table of strings of eight pixels: the latest string of each hash.
    strings: Vec<u32>,
    /// The number of strings that were looked up and not found.
    new_strings: u64,
    /// The pixels of the picture since the table of strings was cleared.
    within: usize,
}

/// The bits of a color's hash, and of a string's. If all hashes of colors are equally frequent, a
/// color counts twelve bits, many more than a pixel of a photograph takes lossy.
const COLOR_BITS: u32 = 12;
const STRING_BITS: u32 = 14;

/// One of `1 << SHARE_BITS` strings is looked up. Its colors decide, so that its copies are looked
/// up too.
const SHARE_BITS: u32 = 3;

/// The farthest distance in pixels of a backward reference (RFC 9649, section 4.2.2).
const FARTHEST: usize = 1 << 20;

/// The least number of rows in a sample, if the picture has as many.
const LEAST_ROWS: usize = 32;

/// The largest distance between two rows of a sample.
const MOST_APART: usize = 16;

/// The factor of multiplicative hashing: 2^32 over the golden ratio, made odd.
const HASH: u32 = 0x9E37_79B1;

impl LosslessEstimate {
    /// An estimate of a picture of this size, without a row yet.
    pub(crate) fn new(size: (usize, usize)) -> LosslessEstimate {
        LosslessEstimate {
            size,
            sampled: 0,
            coded: 0,
            residuals: [[0; 256]; 4],
            colors: vec![0; 1 << COLOR_BITS],
            strings: vec![0; 1 << STRING_BITS],
            new_strings: 0,
            within: 0,
        }
    }

    /// The estimate of a picture or frame.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub(crate) fn of(
        source: &impl PixelSource,
        workers: Workers<'_>,
    ) -> Result<LosslessEstimate, EncodeError> {
        let (width, height) = source.size();
        let mut estimate = LosslessEstimate::new((width, height));
        let mut checks = Checks::new(workers);
        for y in 0..height {
            if !estimate.samples(y) {
                continue;
            }
            checks.at(y * width)?;
            let above = source.row(y - 1, Target::Lossless);
            let row = source.row(y, Target::Lossless);
            estimate.add_row(&above, &row, source.layout().channels());
        }
        Ok(estimate)
    }

    /// Whether the sample has row `y`, which [`LosslessEstimate::add_row`] then takes.
    pub(crate) fn samples(&self, y: usize) -> bool {
        y > 0 && y.is_multiple_of(self.rows_apart())
    }

    fn rows_apart(&self) -> usize {
        (self.size.1 / LEAST_ROWS).clamp(1, MOST_APART)
    }

    /// Adds a row, whose pixels have 3 or 4 channels, with the row above it.
    pub(crate) fn add_row(&mut self, above: &[u8], row: &[u8], channels: usize) {
        self.within += self.size.0 * self.rows_apart();
        if self.within > FARTHEST {
            self.strings.fill(0);
            self.within = 0;
        }
        if channels == 3 {
            self.add_pixels::<3>(above.as_chunks().0, row.as_chunks().0);
        } else {
            let visible = |&pixel: &[u8; 4]| if pixel[3] == 0 { [0; 4] } else { pixel };
            let [above, row]: [Vec<_>; 2] =
                [above, row].map(|row| row.as_chunks().0.iter().map(visible).collect());
            self.add_pixels::<4>(&above, &row);
        }
    }

    fn add_pixels<const CHANNELS: usize>(
        &mut self,
        above: &[[u8; CHANNELS]],
        row: &[[u8; CHANNELS]],
    ) {
        self.sampled += row.len() as u64;
        let residuals = residuals(above, row);
        let mut left = above.first().map_or(0, word);
        let mut string = 0u32;
        let residuals = residuals.as_chunks::<CHANNELS>().0;
        for ((above, pixel), residual) in above.iter().zip(row).zip(residuals) {
            let pixel = word(pixel);
            let hash = pixel.wrapping_mul(HASH);
            // The latest eight pixels have an effect on its 32 bits.
            string = (string << 4).wrapping_add(hash >> 4);
            let repeats = pixel == left || pixel == word(above);
            left = pixel;
            if repeats {
                continue;
            }
            self.coded += 1;
            self.colors[(hash >> (u32::BITS - COLOR_BITS)) as usize] += 1;
            let [red, green, blue, alpha] = word(residual).to_le_bytes();
            let residuals = [
                green,
                red.wrapping_sub(green),
                blue.wrapping_sub(green),
                alpha,
            ];
            for (counts, residual) in self.residuals.iter_mut().zip(residuals).take(CHANNELS) {
                counts[usize::from(residual)] += 1;
            }
            let mixed = string.wrapping_mul(HASH);
            if mixed >> (u32::BITS - SHARE_BITS) == 0 {
                let place = mixed >> (u32::BITS - SHARE_BITS - STRING_BITS);
                let seen = std::mem::replace(&mut self.strings[place as usize], string);
                self.new_strings += u64::from(seen != string);
            }
        }
    }

    /// The width and height of the picture.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Whether the picture is a graphic (a screenshot, a chart, a logo) rather than a photograph:
    /// then it is coded lossless first. The estimates of 13 screenshots and charts are at most 1.1
    /// bits a pixel, those of 84 photographs at least 2.9.
    pub(crate) fn is_graphic(&self) -> bool {
        self.bits() >> 16 <= 2 * self.sampled
    }

    /// The estimated bytes of the picture's lossless file. With [`Encoder::near_lossless`] below
    /// 100, each sample of color counts fewer bits.
    ///
    /// [`Encoder::near_lossless`]: crate::Encoder::near_lossless
    pub(crate) fn bytes(&self, near_lossless: u8) -> usize {
        let rounded = log2(2 * u32::from(max_error(near_lossless)) + 1);
        let rounded = 3 * u64::from(rounded) * u64::from(self.coded);
        let bits = self.bits().saturating_sub(rounded) >> 16;
        let coded = u64::from(self.coded).max(1);
        // A picture of few strings may have none in the share that is looked up.
        let new = (self.new_strings << SHARE_BITS).min(coded);
        let pixels = self.size.0 as u128 * self.size.1 as u128;
        let sampled = u128::from(self.sampled.max(1)) * u128::from(coded);
        (u128::from(bits) * u128::from(new) * pixels / sampled / 8) as usize
    }

    /// The bits of the sample in 1 / 65536, without the effect of repeated strings.
    fn bits(&self) -> u64 {
        let residuals: u64 = self.residuals.iter().map(|counts| entropy(counts)).sum();
        residuals.min(entropy(&self.colors))
    }
}

/// A pixel as a number; one without alpha is opaque.
#[inline]
fn word<const CHANNELS: usize>(pixel: &[u8; CHANNELS]) -> u32 {
    let mut bytes = [255; 4];
    bytes[..CHANNELS].copy_from_slice(pixel);
    u32::from_le_bytes(bytes)
}

/// The residuals of a row's samples. The prediction is left + above - above left, clamped to 0 to
/// 255, and above for the first pixel. The compiler vectorizes this loop: together with the counts,
/// prediction took twice as long pixel by pixel.
fn residuals<const CHANNELS: usize>(above: &[[u8; CHANNELS]], row: &[[u8; CHANNELS]]) -> Vec<u8> {
    let [above, row] = [above, row].map(<[_]>::as_flattened);
    let first = row.iter().zip(above).take(CHANNELS);
    let mut residuals: Vec<u8> = Vec::with_capacity(row.len());
    residuals.extend(first.map(|(sample, above)| sample.wrapping_sub(*above)));
    let rest = CHANNELS.min(row.len())..;
    let neighbors = row.iter().zip(above);
    residuals.extend(
        row[rest.clone()]
            .iter()
            .zip(&above[rest])
            .zip(neighbors)
            .map(|((sample, above), (left, above_left))| {
                let gradient = i16::from(*left) + i16::from(*above) - i16::from(*above_left);
                sample.wrapping_sub(gradient.clamp(0, 255) as u8)
            }),
    );
    residuals
}

/// The entropy of all symbols together, by the count of each, in 1 / 65536 bit.
fn entropy(counts: &[u32]) -> u64 {
    let n_log2 = |n: u32| u64::from(n) * u64::from(log2(n));
    let sum = n_log2(counts.iter().sum());
    counts
        .iter()
        .fold(sum, |rest, &count| rest.saturating_sub(n_log2(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitstream;
    use crate::options::Options;
    use crate::picture::{ColorType, Picture};
    use crate::testing::Random;

    /// The bytes of a picture of 300 x 200 pixels, estimated and lossless.
    fn bytes(mut pixel: impl FnMut(u32, u32) -> [u8; 3]) -> [usize; 2] {
        let mut pixels = Vec::new();
        for y in 0..200 {
            for x in 0..300 {
                pixels.extend(pixel(x, y));
            }
        }
        let picture = Picture::new(300, 200, ColorType::Rgb8, &pixels).expect("a good picture");
        let estimate = LosslessEstimate::of(&picture, Workers::unlimited(1));
        let lossless = bitstream::lossless(&picture, &Options::lossy(85));
        [
            estimate.expect("it is not cancelled").bytes(100),
            lossless.expect("it is not cancelled").size(),
        ]
    }

    #[test]
    fn estimates_are_not_far_above_the_lossless_size() {
        let mut random = Random::new(4);
        let tile: Vec<[u8; 3]> = (0..64 * 48)
            .map(|_| [random.byte(), random.byte(), random.byte()])
            .collect();
        let mut noise = || random.byte();
        let cases: [(&str, [usize; 2]); 8] = [
            ("flat", bytes(|_, _| [7; 3])),
            ("noise", bytes(|_, _| [noise(), noise(), noise()])),
            ("gray noise", bytes(|_, _| [noise(); 3])),
            (
                "grain",
                bytes(|x, y| [(x / 2) as u8 + noise() / 16, y as u8 + noise() / 16, 90]),
            ),
            (
                "eight colors",
                bytes(|_, _| [noise() & 128, noise() & 128, noise() & 128]),
            ),
            ("tiles", bytes(|x, y| tile[(y % 48 * 64 + x % 64) as usize])),
            ("rows", bytes(|x, y| tile[(y % 9 * 300 + x) as usize])),
            (
                "dots",
                bytes(|x, y| {
                    [[20, 60, 200], [250, 230, 90]][usize::from(x % 4 * 5 + y % 4 * 3 > x / 20)]
                }),
            ),
        ];
        for (name, [estimated, lossless]) in cases {
            assert!(
                estimated <= lossless * 5 / 4,
                "{name}: {estimated} bytes estimated, {lossless} lossless"
            );
            if ["gray noise", "grain"].contains(&name) {
                assert!(
                    estimated >= lossless * 4 / 5,
                    "{name}: {estimated} bytes estimated, {lossless} lossless"
                );
            }
        }
    }

    #[test]
    fn invisible_colors_and_rounded_bits_count_nothing() {
        let mut random = Random::new(5);
        let pixels: Vec<u8> = (0..64 * 64)
            .flat_map(|_| [random.byte(), random.byte(), random.byte(), 0])
            .collect();
        let picture = Picture::new(64, 64, ColorType::Rgba8, &pixels).expect("a good picture");
        let of = |picture: &Picture<'_>| {
            let estimate = LosslessEstimate::of(picture, Workers::unlimited(1));
            estimate.expect("it is not cancelled")
        };
        assert_eq!(of(&picture).bytes(100), 0);
        let picture = Picture::new(64, 85, ColorType::Rgb8, &pixels[..64 * 85 * 3]);
        let noise = of(&picture.expect("a good picture"));
        let sizes = [100, 80, 0].map(|near_lossless| noise.bytes(near_lossless));
        assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
    }
}
