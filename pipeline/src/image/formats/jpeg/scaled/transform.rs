//! From coefficients to samples and from samples to colors, by whichever vectors the machine has.
//! Products are rounded before they are added, and sums have one order, so that the result is the
//! same with all of them.

use crate::image::formats::jpeg::blocks::Block;
use fearless_simd::prelude::*;
use fearless_simd::{f32x4, f32x8, i32x4, i32x8};

/// Pixels whose colors are made at a time. Rows of samples are padded to a multiple of it.
pub const PORTION: usize = 8;

/// The factor of the energy that is left out, such that what stays has the light of all of it.
///
/// Light is about the power of 2.2 of a sample. With a power of 2 the factor would be 1; 1.2 is
/// what a power of 2.2 has where the energy is small, and what half black and half white need.
/// 0.9, 1.2 and 1.5 gave a mean SSIMULACRA2 of 85.5, 88.4 and 87.2 at 1/9, without weights.
const ENERGY_FACTOR: f32 = 1.2;

/// Writes the samples of blocks beside each other, around 0, into `size` rows with this stride.
#[inline(always)]
pub fn write_samples<S: Simd>(
    simd: S,
    blocks: &[Block],
    size: usize,
    samples: &mut [f32],
    stride: usize,
) {
    match size {
        1 => {
            for (block, sample) in blocks.iter().zip(samples) {
                *sample = block[0] as f32 * (SCALES[0] * SCALES[0]);
            }
        }
        2 => {
            let (above, below) = samples.split_at_mut(stride);
            let pairs = above.as_chunks_mut::<2>().0.iter_mut();
            let pairs = pairs.zip(below.as_chunks_mut::<2>().0);
            for (block, (above, below)) in blocks.iter().zip(pairs) {
                (*above, *below) = two_by_two(block);
            }
        }
        _ => {
            for (number, block) in blocks.iter().enumerate() {
                let rows = four_by_four(simd, block);
                for (y, row) in rows.into_iter().enumerate() {
                    samples[y * stride + 4 * number..][..4].copy_from_slice(&<[f32; 4]>::from(row));
                }
            }
        }
    }
}

/// The factors of frequencies of an inverse cosine transform, but for what the transforms below
/// multiply by: that of frequency 0, and of all others.
const SCALES: [f32; 2] = [0.5 * std::f32::consts::FRAC_1_SQRT_2, 0.5];

/// The inverse cosine transform of two by two points.
#[inline(always)]
fn two_by_two(block: &Block) -> ([f32; 2], [f32; 2]) {
    const DC: f32 = SCALES[0];
    const AC: f32 = SCALES[1] * std::f32::consts::FRAC_1_SQRT_2;
    let mean = block[0] as f32 * (DC * DC);
    let [down, across] = [1, 4].map(|place| block[place] as f32 * (DC * AC));
    let both = block[5] as f32 * (AC * AC);
    let (left, right) = ([mean + across, down + both], [mean - across, down - both]);
    (
        [left[0] + left[1], right[0] + right[1]],
        [left[0] - left[1], right[0] - right[1]],
    )
}

/// The inverse cosine transform of four by four points: its rows.
#[inline(always)]
fn four_by_four<S: Simd>(simd: S, block: &Block) -> [f32x4<S>; 4] {
    let down = f32x4::simd_from(simd, [SCALES[0], SCALES[1], SCALES[1], SCALES[1]]);
    let columns = block.as_chunks::<4>().0;
    let columns = [
        column(simd, columns[0]) * down * SCALES[0],
        column(simd, columns[1]) * down * SCALES[1],
        column(simd, columns[2]) * down * SCALES[1],
        column(simd, columns[3]) * down * SCALES[1],
    ];
    four_points(transpose(four_points(columns)))
}

#[inline(always)]
fn column<S: Simd>(simd: S, coefficients: [i32; 4]) -> f32x4<S> {
    i32x4::simd_from(simd, coefficients).to_float()
}

/// Inverse cosine transforms of four points beside each other.
#[inline(always)]
fn four_points<S: Simd>([a, b, c, d]: [f32x4<S>; 4]) -> [f32x4<S>; 4] {
    /// The cosines of an eighth and of three eighths of pi.
    const COSINES: [f32; 2] = [0.923_879_5, 0.382_683_43];
    let c = c * std::f32::consts::FRAC_1_SQRT_2;
    let even = [a + c, a - c];
    let odd = [
        b * COSINES[0] + d * COSINES[1],
        b * COSINES[1] - d * COSINES[0],
    ];
    [
        even[0] + odd[0],
        even[1] + odd[1],
        even[1] - odd[1],
        even[0] - odd[0],
    ]
}

#[inline(always)]
fn transpose<S: Simd>([a, b, c, d]: [f32x4<S>; 4]) -> [f32x4<S>; 4] {
    let (ac, bd) = ([a.zip_low(c), a.zip_high(c)], [b.zip_low(d), b.zip_high(d)]);
    [
        ac[0].zip_low(bd[0]),
        ac[0].zip_high(bd[0]),
        ac[1].zip_low(bd[1]),
        ac[1].zip_high(bd[1]),
    ]
}

/// The weight of a pixel, of which this is the sample of luma around 0, in the energy that its
/// block leaves out.
///
/// The variance of samples is at most the product of the distances of their mean from both ends:
/// what is black or white is plain. Sharing evenly gave a mean SSIMULACRA2 of 88.4 in place of 90.4
/// at 1/9, sharing by that product 90.3, by the differences from neighbors 88.8.
#[inline(always)]
fn weight<S: Simd>(simd: S, luma: f32x8<S>) -> f32x8<S> {
    let distance = f32x8::splat(simd, 128.5) - luma.abs();
    distance.max(f32x8::splat(simd, 1.0))
}

/// Writes what each pixel of a row of blocks gets of the energy that its block leaves out, for each
/// unit of its weight. `samples` are `size` rows of luma with this stride.
#[inline(always)]
pub fn write_shares<S: Simd>(
    simd: S,
    energies: &[u64],
    size: usize,
    samples: &[f32],
    (shares, stride): (&mut [f32], usize),
) {
    // The sums of the weights of each column.
    for x in (0..stride).step_by(PORTION) {
        let mut sum = f32x8::splat(simd, 0.0);
        for row in samples.chunks_exact(stride).take(size) {
            sum += weight(simd, f32x8::from_slice(simd, &row[x..x + PORTION]));
        }
        sum.store_slice(&mut shares[x..x + PORTION]);
    }
    // The energy is a sum over 64 pixels.
    let factor = ENERGY_FACTOR * (size * size) as f32 / 64.0;
    for (&energy, shares) in energies.iter().zip(shares.chunks_exact_mut(size)) {
        let weights: f32 = shares.iter().sum();
        shares.fill(energy as f32 * factor / weights);
    }
}

/// A row of pixels in samples around 0, each row padded to whole portions.
pub struct Row<'a> {
    pub luma: &'a [f32],
    pub shares: &'a [f32],
    /// Blue and red, unless the picture is gray.
    pub chroma: Option<[&'a [f32]; 2]>,
}

impl Row<'_> {
    /// Writes red, green and blue of each pixel (JFIF 1.02), with the energy that was left out.
    #[inline(always)]
    pub fn write<S: Simd>(&self, simd: S, pixels: &mut [u8]) {
        let portions = self
            .luma
            .chunks_exact(PORTION)
            .zip(self.shares.chunks_exact(PORTION));
        let portions = portions.zip(pixels.chunks_mut(3 * PORTION));
        for (number, ((luma, shares), pixels)) in portions.enumerate() {
            let luma = f32x8::from_slice(simd, luma);
            let energy = f32x8::from_slice(simd, shares) * weight(simd, luma);
            let [red, green, blue] = match self.chroma {
                None => [level(simd, luma, energy); 3],
                Some([blue, red]) => {
                    let blue = f32x8::from_slice(simd, &blue[number * PORTION..][..PORTION]);
                    let red = f32x8::from_slice(simd, &red[number * PORTION..][..PORTION]);
                    [
                        level(simd, luma + red * 1.402, energy),
                        level(simd, luma - blue * 0.344_136 - red * 0.714_136, energy),
                        level(simd, luma + blue * 1.772, energy),
                    ]
                }
            };
            let packed: [i32; 8] = (red | green << 8 | blue << 16).into();
            write_pixels(&packed, pixels);
        }
    }
}

/// Samples around 0 with the energy that was left out, as samples of 8 bits.
#[inline(always)]
fn level<S: Simd>(simd: S, sample: f32x8<S>, energy: f32x8<S>) -> i32x8<S> {
    let sample = (sample + 128.0).max(f32x8::splat(simd, 0.0));
    let bright = (sample * sample + energy).sqrt() + 0.5;
    bright.min(f32x8::splat(simd, 255.0)).to_int()
}

/// Writes pixels of three bytes.
#[inline(always)]
fn write_pixels(packed: &[i32; PORTION], pixels: &mut [u8]) {
    if let Ok(pixels) = <&mut [u8; 3 * PORTION]>::try_from(&mut *pixels) {
        // The fourth byte is the first of the next one.
        for (number, pixel) in packed[..PORTION - 1].iter().enumerate() {
            pixels[3 * number..][..4].copy_from_slice(&pixel.to_le_bytes());
        }
        pixels[3 * PORTION - 3..].copy_from_slice(&packed[PORTION - 1].to_le_bytes()[..3]);
        return;
    }
    for (pixel, packed) in pixels.chunks_exact_mut(3).zip(packed) {
        pixel.copy_from_slice(&packed.to_le_bytes()[..3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fearless_simd::{Level, dispatch};

    const BLOCKS: usize = 24;

    /// The pixels of blocks beside each other, in color.
    fn pixels(level: Level, blocks: &[Block], energies: &[u64], size: usize) -> Vec<u8> {
        let stride = (blocks.len() * size).next_multiple_of(PORTION);
        let mut samples = vec![0.0; stride * size];
        let mut shares = vec![0.0; stride];
        let mut pixels = vec![0; stride * size * 3];
        dispatch!(level, simd => {
            write_samples(simd, blocks, size, &mut samples, stride);
            write_shares(simd, energies, size, &samples, (&mut shares, stride));
            for (luma, pixels) in samples.chunks(stride).zip(pixels.chunks_mut(stride * 3)) {
                let reversed: Vec<f32> = luma.iter().rev().copied().collect();
                let row = Row {
                    luma,
                    shares: &shares,
                    chroma: Some([&reversed, luma]),
                };
                row.write(simd, pixels);
            }
        });
        pixels
    }

    #[test]
    fn all_vectors_make_the_same() {
        let mut state = 1u64;
        let mut random = |range: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % range
        };
        for size in [1, 2, 4].repeat(200) {
            let range = [4, 300, 3000][random(3) as usize];
            let blocks: Vec<Block> = (0..BLOCKS)
                .map(|_| std::array::from_fn(|_| random(2 * range) as i32 - range as i32))
                .collect();
            let energies: Vec<u64> = (0..BLOCKS).map(|_| random(range * range)).collect();
            let [scalar, vector] = [Level::baseline(), Level::new()]
                .map(|level| pixels(level, &blocks, &energies, size));
            assert_eq!(scalar, vector, "{size}");
        }
    }

    #[test]
    fn a_block_of_one_value_is_plain_and_its_energy_is_light() {
        // The mean of 8 by 8 samples of 64 around 0 is a coefficient of 512.
        let mut block = [0; 16];
        block[0] = 512;
        for size in [1, 2, 4] {
            let plain = pixels(Level::new(), &[block; BLOCKS], &[0; BLOCKS], size);
            let bright = pixels(Level::new(), &[block; BLOCKS], &[64 * 3000; BLOCKS], size);
            // Red and blue are no less than luma, and green is less.
            assert!(plain.chunks(3).all(|pixel| pixel == &plain[..3]), "{size}");
            assert!(bright[1] > plain[1], "{size}");
        }
    }
}
