//! Pictures that stay in the `Y'CbCr` of their file. JPEG and WebP have in common the matrix of
//! BT.601 and chroma of half the size, whose samples are the means of 2x2 pixels and lie in their
//! middle. They differ only in the range: JPEG uses all 256 values (JFIF 1.02), WebP keeps Y within
//! 16 to 235 and U and V within 16 to 240 (RFC 6386, section 9.2).

use super::metadata::orientation::{self, Grid};
use ::image::metadata::Orientation;
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

    /// The distance from one row of luma to the next: twice that of chroma.
    pub(super) fn luma_stride(&self) -> usize {
        padded(self.width)
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
