//! Decodes a sequential JPEG in its own size and averages squares of pixels, row of MCUs by row of
//! MCUs, so that the memory follows the outcome: for files that [`super::scaled`] does not take,
//! damaged ones among them.

use super::decoder::{LibraryDecoder, ends_too_early, invalid};
use super::header::Header;
use crate::image::error::DecodeError;
use crate::image::pixels::{Image, Layout};
use towebp_encoder::Cancel;
use zune_jpeg::RawImcuRowStatus;

/// Decodes to RGB what `decoder`, which has read its headers, has, with `size` pixels (1, 2 or 4)
/// in place of 8 on each side, rounded up.
pub fn decode(
    decoder: &mut LibraryDecoder<'_>,
    header: &Header<'_>,
    size: usize,
    cancel: &Cancel<'_>,
) -> Result<Image, DecodeError> {
    let mut raw = decoder.raw_output();
    let count = raw.num_components().expect("the headers are read");
    let layout = raw.layout().expect("the headers are read");
    let factors = layout.map(|plane| {
        [
            plane.horizontal_sampling_factor,
            plane.vertical_sampling_factor,
        ]
    });
    let strides = layout.map(|plane| plane.width);
    let samples = |plane: usize| vec![0; strides[plane] * factors[plane][1] * 8];
    let mut planes: Vec<Vec<u8>> = (0..count).map(samples).collect();
    let [width, height] = [header.width(), header.height()].map(|side| (side * size).div_ceil(8));
    let mut pixels = Vec::with_capacity(width * height * 3);
    let mut done = 0;
    loop {
        cancel.check()?;
        let mut slices: Vec<&mut [u8]> = planes.iter_mut().map(Vec::as_mut_slice).collect();
        match raw.decode_next_imcu_row(&mut slices, &strides[..count]) {
            Ok(RawImcuRowStatus::RowReady { rows_written }) => {
                let rows = Rows {
                    planes: &planes,
                    strides: &strides[..count],
                    factors: &factors[..count],
                    width: header.width(),
                    height: rows_written[0],
                };
                done += rows.height;
                rows.average(8 / size, &mut pixels);
            }
            Ok(RawImcuRowStatus::Complete) if done == header.height() => break,
            Ok(_) => return Err(ends_too_early()),
            Err(error) => return Err(invalid(&error)),
        }
    }
    Ok(Image {
        width: width as u32,
        height: height as u32,
        layout: Layout::Rgb,
        pixels,
    })
}

/// The samples of a row of MCUs.
struct Rows<'a> {
    planes: &'a [Vec<u8>],
    strides: &'a [usize],
    /// How many samples each component has, across and down, where luma has as many as any.
    factors: &'a [[usize; 2]],
    /// Width and height in samples of luma.
    width: usize,
    height: usize,
}

impl Rows<'_> {
    /// Adds a pixel for each square of this side. Light is taken to be the square of samples.
    fn average(&self, side: usize, pixels: &mut Vec<u8>) {
        for top in (0..self.height).step_by(side) {
            for left in (0..self.width).step_by(side) {
                let (right, bottom) = (self.width.min(left + side), self.height.min(top + side));
                let mut sums = [0u32; 3];
                for (y, x) in (top..bottom).flat_map(|y| (left..right).map(move |x| (y, x))) {
                    for (sum, sample) in sums.iter_mut().zip(self.pixel(x, y)) {
                        *sum += u32::from(sample) * u32::from(sample);
                    }
                }
                let count = ((right - left) * (bottom - top)) as f32;
                pixels.extend(sums.map(|sum| ((sum as f32 / count).sqrt() + 0.5) as u8));
            }
        }
    }

    /// Red, green and blue of a pixel.
    fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let sample = |plane: usize| {
            let [x, y] = [(x, 0), (y, 1)]
                .map(|(place, axis)| place * self.factors[plane][axis] / self.factors[0][axis]);
            self.planes[plane][y * self.strides[plane] + x]
        };
        match self.planes.len() {
            3 => to_rgb([sample(0), sample(1), sample(2)]),
            _ => [sample(0); 3],
        }
    }
}

/// Red, green and blue of a pixel (JFIF 1.02), in units of 1/65536.
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
