//! Converts a stripe of a picture, in pairs of rows. Each step runs a little behind the one that it
//! needs:
//!
//! ```text
//!    pair p      means of 2x2 pixels
//!    pair p - 1  sharpened chroma, from the means of p - 2 to p
//!    pair p - 2  corrected luma, from the sharpened chroma of p - 3 to p - 1
//! ```

#![allow(
    clippy::needless_range_loop,
    reason = "loops over several arrays at once, which become vector instructions"
)]

use super::chroma::sharpen;
use super::luminance::{self, GROUP, GroupColors, Samples};
use super::row_kernel::{ChromaRow, RowKernels};
use crate::picture::{Layout, RgbPicture};

/// The output of a stripe: consecutive rows of the planes.
pub struct Stripe<'a> {
    /// Index of the first pair of rows, from the top of the picture.
    pub first_pair: usize,
    /// Index of the row at which the pixels begin that it is converted from: 0, unless only those
    /// around the stripe are there.
    pub first_row: usize,
    /// Luma of whole pairs of rows.
    pub luma: &'a mut [u8],
    /// Cb and Cr, one row per pair.
    pub chroma: [&'a mut [u8]; 2],
}

/// The number of rows above a stripe, and below it, that it is converted from, too.
pub const ROWS_AROUND: usize = 4;

/// Converts the rows of `stripe` that lie in the picture.
#[inline(always)]
pub fn convert_with(kernels: impl RowKernels, picture: &RgbPicture<'_>, stripe: &mut Stripe<'_>) {
    match picture.layout {
        Layout::Rgb => convert_layout::<3>(kernels, picture, stripe),
        Layout::Rgba => convert_layout::<4>(kernels, picture, stripe),
    }
}

#[inline(always)]
fn convert_layout<const CHANNELS: usize>(
    kernels: impl RowKernels,
    picture: &RgbPicture<'_>,
    stripe: &mut Stripe<'_>,
) {
    let source = PixelRows::<CHANNELS> {
        pixels: picture.pixels,
        first_row: stripe.first_row,
        width: picture.width as usize,
        height: picture.height as usize,
    };
    let stride = source.width.div_ceil(16) * 8;
    let pairs = source.height.div_ceil(2);
    let first = stripe.first_pair;
    let end = pairs.min(first + stripe.chroma[0].len() / stride);
    let mut means: [ChromaRow; RING] = std::array::from_fn(|_| ChromaRow::new(stride));
    let mut sharp: [[Vec<u8>; 2]; RING] =
        std::array::from_fn(|_| [vec![0; stride], vec![0; stride]]);
    let mut unused = vec![0; 4 * stride];
    let mut scratch = Scratch {
        marks: vec![false; stride],
        columns: [vec![0; stride + 2], vec![0; stride + 2]],
    };
    // Pairs outside the stripe are converted as far as its own rows need them.
    let (first_mean, first_sharp) = (first.saturating_sub(2), first.saturating_sub(1));
    for step in first_mean..end + 2 {
        if step < pairs {
            let luma = if (first..end).contains(&step) {
                &mut stripe.luma[(step - first) * 4 * stride..][..4 * stride]
            } else {
                &mut unused
            };
            let (top, bottom) = luma.split_at_mut(2 * stride);
            let means = &mut means[step % RING];
            kernels.convert::<CHANNELS>(source.pair(step), [top, bottom], means);
        }
        if let Some(pair) = step
            .checked_sub(1)
            .filter(|pair| (first_sharp..pairs).contains(pair))
        {
            let around = ring_slots(pair, pairs).map(|pair| &means[pair]);
            for plane in 0..2 {
                let sharp = &mut sharp[pair % RING][plane];
                sharpen(around.map(|row| row.planes[plane].as_slice()), sharp);
                if (first..end).contains(&pair) {
                    stripe.chroma[plane][(pair - first) * stride..][..stride]
                        .copy_from_slice(sharp);
                }
            }
        }
        if let Some(pair) = step
            .checked_sub(2)
            .filter(|pair| (first..end).contains(pair))
        {
            let luma = &mut stripe.luma[(pair - first) * 4 * stride..][..4 * stride];
            let around = ring_slots(pair, pairs).map(|pair| &sharp[pair]);
            let spread = &means[pair % RING].spread;
            correct_pair(&source, pair, luma, spread, around, &mut scratch);
        }
    }
}

/// Buffers for the search for abrupt color changes.
struct Scratch {
    marks: Vec<bool>,
    columns: [Vec<u8>; 2],
}

/// Most bytes that converting a stripe holds for each chroma sample of a row: rings of three and of
/// two rows, four rows of luma that belong to no stripe, and the buffers of the search.
pub const BYTES_PER_SAMPLE: usize = RING * 3 + RING * 2 + 4 + 4;

/// Number of rows kept of each kind: at least the three around the current one, and a power of two.
const RING: usize = 4;

/// Returns the ring positions of the rows above, at and below `pair`; the picture's last row
/// repeats.
fn ring_slots(pair: usize, pairs: usize) -> [usize; 3] {
    [pair.saturating_sub(1), pair, (pair + 1).min(pairs - 1)].map(|pair| pair % RING)
}

#[inline(always)]
fn correct_pair<const CHANNELS: usize>(
    source: &PixelRows<'_, CHANNELS>,
    pair: usize,
    luma: &mut [u8],
    spread: &[u8],
    around: [&[Vec<u8>; 2]; 3],
    Scratch { marks, columns }: &mut Scratch,
) {
    let stride = spread.len();
    let [above, own, below] = around;
    let rows = [
        [above[0].as_slice(), &own[0], &below[0]],
        [above[1].as_slice(), &own[1], &below[1]],
    ];
    let [highest, lowest] = columns;
    luminance::mark_abrupt(marks, spread, &rows, [highest, lowest]);
    for (group, marks) in marks.as_chunks::<{ GROUP / 2 }>().0.iter().enumerate() {
        if *marks == [false; GROUP / 2] {
            continue;
        }
        let [u, v] = [
            [
                samples(rows[0][0], group),
                samples(rows[0][1], group),
                samples(rows[0][2], group),
            ],
            [
                samples(rows[1][0], group),
                samples(rows[1][1], group),
                samples(rows[1][2], group),
            ],
        ];
        for (row, far) in [(0, 0), (1, 2)] {
            let colors = source.colors(2 * pair + row, group);
            let at = row * 2 * stride + group * GROUP;
            let luma = luma[at..].first_chunk_mut().expect("a row is whole groups");
            luminance::correct(luma, &colors, [&u[1], &v[1]], [&u[far], &v[far]]);
        }
    }
}

/// Returns the samples of a group and those on both sides of it; the last sample repeats.
#[inline(always)]
fn samples(row: &[u8], group: usize) -> Samples {
    let first = group * GROUP / 2;
    if let Some(inner) = row.get(first.wrapping_sub(1)..first.wrapping_add(15)) {
        return inner.try_into().expect("it has 16 samples");
    }
    let mut samples = [0; 16];
    for i in 0..GROUP / 2 + 2 {
        samples[i] = row[(first + i).saturating_sub(1).min(row.len() - 1)];
    }
    samples
}

/// The pixels of a picture, by row.
struct PixelRows<'a, const CHANNELS: usize> {
    pixels: &'a [u8],
    /// Index of the first row of `pixels`.
    first_row: usize,
    width: usize,
    height: usize,
}

impl<'a, const CHANNELS: usize> PixelRows<'a, CHANNELS> {
    /// Returns row `y`; below the picture, the last row.
    fn row(&self, y: usize) -> &'a [u8] {
        let length = self.width * CHANNELS;
        let row = y.min(self.height - 1) - self.first_row;
        &self.pixels[row * length..][..length]
    }

    fn pair(&self, pair: usize) -> [&'a [u8]; 2] {
        [self.row(2 * pair), self.row(2 * pair + 1)]
    }

    /// Returns the colors of a group of pixels of row `y`; the last pixel repeats.
    #[inline(always)]
    fn colors(&self, y: usize, group: usize) -> GroupColors {
        let row = &self.row(y)[group * GROUP * CHANNELS..];
        let count = GROUP.min(row.len() / CHANNELS);
        let mut colors = [[0.0; GROUP]; 3];
        for i in 0..GROUP {
            let pixel = &row[i.min(count - 1) * CHANNELS..][..3];
            for c in 0..3 {
                colors[c][i] = f32::from(pixel[c]);
            }
        }
        colors
    }
}
