//! Pictures that stay in the `Y'CbCr` of their file. JPEG and WebP have in common the matrix of
//! BT.601 and chroma of half the size, whose samples are the means of 2x2 pixels and lie in their
//! middle. They differ only in the range: JPEG uses all 256 values (JFIF 1.02), WebP keeps Y within
//! 16 to 235 and U and V within 16 to 240 (RFC 6386, section 9.2).

use super::metadata::orientation::{self, Grid, Orientation};
use super::rectangle::Rectangle;
use towebp_encoder::{Cancelled, Workers};

/// A picture in `Y'CbCr` 4:2:0, BT.601 in limited range.
///
/// Width and height of the luma plane are those of the picture, rounded up to multiples of 16, and
/// those of the chroma planes are half of that. Samples beyond the picture are undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Width of the picture in pixels, at least 1.
    pub width: u32,
    /// Its height, at least 1.
    pub height: u32,
    /// Y.
    pub luma: Vec<u8>,
    /// U and V.
    pub chroma: [Vec<u8>; 2],
}

/// Whether a picture can become planes without all of it being RGB in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanesPath {
    /// It cannot.
    Never,
    /// It can.
    Always,
    /// It can if the color space that its file names is sRGB. Comparing them takes too long and too
    /// much memory for an estimate.
    IfSpaceIsSrgb,
}

/// The chroma sample of gray.
const GRAY: u8 = 128;

impl Planes {
    /// Planes without color: black until luma is written.
    pub(super) fn new(width: u32, height: u32) -> Planes {
        let count = padded(width) * padded(height);
        Planes {
            width,
            height,
            luma: vec![0; count],
            chroma: [vec![GRAY; count / 4], vec![GRAY; count / 4]],
        }
    }

    /// The bytes of the planes of a picture of this size.
    pub(super) fn bytes(width: u32, height: u32) -> u64 {
        padded(width) as u64 * padded(height) as u64 * 3 / 2
    }

    /// The distance from one row of luma to the next: twice the distance of chroma rows.
    pub(super) fn luma_stride(&self) -> usize {
        padded(self.width)
    }

    /// Writes red, green and blue of the pixels of a part to `pixels`, row by row. Chroma is
    /// interpolated as decoders do it, from the nearest four samples, beyond the part, too.
    pub fn write_rgb(&self, part: Rectangle, pixels: &mut Vec<u8>) {
        pixels.clear();
        let stride = self.luma_stride();
        let columns = self.width.div_ceil(2) as usize;
        let rows = self.height.div_ceil(2) as usize;
        for y in part.top..part.top + part.height {
            let luma = &self.luma[y * stride..][..self.width as usize];
            let (near, far) = chroma_samples(y, rows);
            let [u, v] = self
                .chroma
                .each_ref()
                .map(|plane| [near, far].map(|row| &plane[row * (stride / 2)..][..columns]));
            for (x, &luma) in luma.iter().enumerate().skip(part.left).take(part.width) {
                let at = chroma_samples(x, columns);
                pixels.extend(to_rgb([luma, interpolated(u, at), interpolated(v, at)]));
            }
        }
    }

    /// Red, green and blue of a pixel, with the chroma sample that is nearest to it.
    pub fn nearest_rgb(&self, x: usize, y: usize) -> [u8; 3] {
        let stride = self.luma_stride();
        let chroma = y / 2 * (stride / 2) + x / 2;
        let [u, v] = &self.chroma;
        to_rgb([self.luma[y * stride + x], u[chroma], v[chroma]])
    }

    /// Copies a macroblock of other planes. Both are at these columns and rows of macroblocks.
    pub fn copy_macroblock(
        &mut self,
        (column, row): (usize, usize),
        from: &Planes,
        (from_column, from_row): (usize, usize),
    ) {
        let (stride, from_stride) = (self.luma_stride(), from.luma_stride());
        let [u, v] = &mut self.chroma;
        let [from_u, from_v] = &from.chroma;
        for (to, from, size, stride, from_stride) in [
            (&mut self.luma, &from.luma, 16, stride, from_stride),
            (u, from_u, 8, stride / 2, from_stride / 2),
            (v, from_v, 8, stride / 2, from_stride / 2),
        ] {
            for y in 0..size {
                let at = (row * size + y) * stride + column * size;
                let there = (from_row * size + y) * from_stride + from_column * size;
                to[at..at + size].copy_from_slice(&from[there..there + size]);
            }
        }
    }

    /// Rotates and mirrors the picture.
    pub(super) fn orient(
        mut self,
        orientation: Orientation,
        workers: Workers<'_>,
    ) -> Result<Planes, Cancelled> {
        let grids = [1, 2, 2].map(|size| Grid {
            width: self.width.div_ceil(size) as usize,
            height: self.height.div_ceil(size) as usize,
            stride: padded(self.width) / size as usize,
        });
        let [u, v] = &mut self.chroma;
        for (plane, grid) in [&mut self.luma, u, v].into_iter().zip(grids) {
            orientation::orient::<1>(plane, grid, orientation, workers)?;
        }
        if orientation::swaps_sides(orientation) {
            (self.width, self.height) = (self.height, self.width);
        }
        Ok(self)
    }
}

/// Whether the chroma samples of a picture in 4:2:0 are still the means of 2x2 pixels, counted from
/// the corner, once it is oriented.
pub(super) fn can_orient(width: u16, height: u16, orientation: Orientation) -> bool {
    let [mirrors_width, mirrors_height] = orientation::mirrored_sides(orientation);
    (width.is_multiple_of(2) || !mirrors_width) && (height.is_multiple_of(2) || !mirrors_height)
}

/// The chroma sample of a pixel, and the other one that is nearest to it, among `count`.
fn chroma_samples(pixel: usize, count: usize) -> (usize, usize) {
    let own = pixel / 2;
    let other = if pixel.is_multiple_of(2) {
        own.saturating_sub(1)
    } else {
        (own + 1).min(count - 1)
    };
    (own, other)
}

/// The chroma of a pixel: 9, 3, 3 and 1 sixteenths of the nearest four samples.
fn interpolated([near, far]: [&[u8]; 2], (own, other): (usize, usize)) -> u8 {
    let column = |x: usize| 3 * u16::from(near[x]) + u16::from(far[x]);
    ((3 * column(own) + column(other) + 8) >> 4) as u8
}

/// Red, green and blue of a pixel in limited range (ITU-R BT.601), in units of 1/65536.
fn to_rgb(ycbcr: [u8; 3]) -> [u8; 3] {
    let [luma, blue, red] = ycbcr.map(i32::from);
    let (luma, blue, red) = (76_309 * (luma - 16) + (1 << 15), blue - 128, red - 128);
    [
        luma + 104_597 * red,
        luma - 25_675 * blue - 53_279 * red,
        luma + 132_201 * blue,
    ]
    .map(|sample| (sample >> 16).clamp(0, 255) as u8)
}

/// A side in whole macroblocks.
fn padded(side: u32) -> usize {
    side.next_multiple_of(16) as usize
}

/// Maps Y from full to limited range: `16 + Y * 219 / 255`, rounded.
pub(super) fn limit_luma(samples: &mut [u8]) {
    for sample in samples {
        *sample = 16 + divide_by_255(u16::from(*sample) * 219);
    }
}

/// Maps U or V from full to limited range: `128 + (C - 128) * 224 / 255`, rounded.
pub(super) fn limit_chroma(samples: &mut [u8]) {
    /// `128 - 128 * 224 / 255`, times 255.
    const OFFSET: u16 = 128 * (255 - 224);
    for sample in samples {
        *sample = divide_by_255(OFFSET + u16::from(*sample) * 224);
    }
}

/// Divides a number up to 65,149, rounded to the nearest.
#[inline(always)]
fn divide_by_255(number: u16) -> u8 {
    let number = number + 128;
    ((number + (number >> 8)) >> 8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rgb_is_that_of_bt_601_with_chroma_between_samples() {
        let mut planes = Planes::new(6, 4);
        for (at, luma) in planes.luma.iter_mut().enumerate() {
            *luma = (20 + at * 37 % 210) as u8;
        }
        for (plane, factor) in planes.chroma.iter_mut().zip([41, 67]) {
            for (at, sample) in plane.iter_mut().enumerate() {
                *sample = (60 + at * factor % 130) as u8;
            }
        }
        let mut pixels = Vec::new();
        planes.write_rgb(Rectangle::whole(6, 4), &mut pixels);
        // Chroma samples lie in the middle of 2 x 2 pixels, and those at the edge go on beyond it.
        let chroma = |plane: &[u8], x: usize, y: usize| {
            let weighted = |at: usize, count: usize| {
                let place = (at as f64 - 0.5) / 2.0;
                let first = place.floor();
                [(first, 1.0 - place + first), (first + 1.0, place - first)]
                    .map(|(sample, weight)| (sample.clamp(0.0, count as f64 - 1.0), weight))
            };
            let mut sum = 0.0;
            for (row, row_weight) in weighted(y, 2) {
                for (column, weight) in weighted(x, 3) {
                    let sample = plane[row as usize * 8 + column as usize];
                    sum += f64::from(sample) * row_weight * weight;
                }
            }
            sum - 128.0
        };
        for (at, pixel) in pixels.as_chunks::<3>().0.iter().enumerate() {
            let (x, y) = (at % 6, at / 6);
            let luma = (f64::from(planes.luma[y * 16 + x]) - 16.0) * 255.0 / 219.0;
            let [u, v] = planes.chroma.each_ref().map(|plane| chroma(plane, x, y));
            let (u, v) = (u * 255.0 / 112.0, v * 255.0 / 112.0);
            let expected = [
                luma + (1.0 - 0.299) * v,
                luma - 0.114 / 0.587 * (1.0 - 0.114) * u - 0.299 / 0.587 * (1.0 - 0.299) * v,
                luma + (1.0 - 0.114) * u,
            ];
            for (sample, expected) in pixel.iter().zip(expected) {
                let apart = (f64::from(*sample) - expected.clamp(0.0, 255.0)).abs();
                // Chroma and the outcome are rounded.
                assert!(apart < 1.6, "{sample}, not {expected}, at {x}, {y}");
            }
        }
        let corner = planes.nearest_rgb(0, 0);
        assert_eq!(corner, pixels[..3], "beyond the corner is the same sample");
    }

    #[test]
    fn every_sample_is_mapped_to_the_nearest_of_its_range() {
        let mut luma: Vec<u8> = (0..=255).collect();
        let mut chroma = luma.clone();
        limit_luma(&mut luma);
        limit_chroma(&mut chroma);
        for sample in 0..=255u8 {
            let full = f64::from(sample);
            let y = (16.0 + full * 219.0 / 255.0).round() as u8;
            let c = (128.0 + (full - 128.0) * 224.0 / 255.0).round() as u8;
            let limited = [&luma, &chroma].map(|plane| plane[usize::from(sample)]);
            assert_eq!(limited, [y, c], "of {sample}");
        }
    }
}
