//! RGB to the planes that VP8 codes: Y at full and U, V at half size, BT.601 in limited range
//! (RFC 6386, section 9.2).

use super::{Layout, Picture};

/// Y, U and V planes, padded to whole macroblocks by repeating the last row and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Macroblocks across: luma rows are 16 times that, chroma rows 8 times.
    pub mb_width: usize,
    /// Macroblocks down.
    pub mb_height: usize,
    /// Y.
    pub luma: Vec<u8>,
    /// U and V.
    pub chroma: [Vec<u8>; 2],
}

/// The weights of red, green and blue in Y, U and V, times 65536.
const Y_WEIGHTS: [i32; 3] = [16_839, 33_059, 6_420];
const U_WEIGHTS: [i32; 3] = [-9_719, -19_081, 28_800];
const V_WEIGHTS: [i32; 3] = [28_800, -24_116, -4_684];
/// Y of black, and U and V of grey.
const Y_OFFSET: i32 = 16;
const CHROMA_OFFSET: i32 = 128;

impl Planes {
    /// Planes for a picture of `width` x `height` pixels, zeroed.
    pub fn new(width: usize, height: usize) -> Planes {
        let (mb_width, mb_height) = (width.div_ceil(16), height.div_ceil(16));
        let count = mb_width * mb_height;
        Planes {
            mb_width,
            mb_height,
            luma: vec![0; count * 256],
            chroma: [vec![0; count * 64], vec![0; count * 64]],
        }
    }

    /// Distance from one luma row to the next.
    pub fn luma_stride(&self) -> usize {
        self.mb_width * 16
    }

    /// Distance from one chroma row to the next.
    pub fn chroma_stride(&self) -> usize {
        self.mb_width * 8
    }

    /// Converts a picture. Alpha is left out. Chroma is the mean of 2x2 pixels.
    pub fn from_picture(picture: &Picture<'_>) -> Planes {
        let (width, height) = (picture.width as usize, picture.height as usize);
        let mut planes = Planes::new(width, height);
        let (luma_stride, chroma_stride) = (planes.luma_stride(), planes.chroma_stride());
        let channels = picture.layout.channels();
        let row_of =
            |y: usize| &picture.pixels[y.min(height - 1) * width * channels..][..width * channels];
        let [u_plane, v_plane] = &mut planes.chroma;
        let chroma_rows = u_plane
            .chunks_exact_mut(chroma_stride)
            .zip(v_plane.chunks_exact_mut(chroma_stride));
        for (pair, (luma, (u, v))) in planes
            .luma
            .chunks_exact_mut(2 * luma_stride)
            .zip(chroma_rows)
            .enumerate()
        {
            let rows = [row_of(2 * pair), row_of(2 * pair + 1)];
            for (row, luma) in rows.iter().zip(luma.chunks_exact_mut(luma_stride)) {
                match picture.layout {
                    Layout::Rgb => luma_row::<3>(row, luma),
                    Layout::Rgba => luma_row::<4>(row, luma),
                }
            }
            match picture.layout {
                Layout::Rgb => chroma_row::<3>(rows, u, v),
                Layout::Rgba => chroma_row::<4>(rows, u, v),
            }
        }
        planes
    }
}

fn luma_row<const CHANNELS: usize>(rgb: &[u8], luma: &mut [u8]) {
    let width = rgb.len() / CHANNELS;
    for (y, pixel) in luma.iter_mut().zip(rgb.chunks_exact(CHANNELS)) {
        let sum = Y_WEIGHTS[0] * i32::from(pixel[0])
            + Y_WEIGHTS[1] * i32::from(pixel[1])
            + Y_WEIGHTS[2] * i32::from(pixel[2]);
        *y = ((sum + (1 << 15)) >> 16) as u8 + Y_OFFSET as u8;
    }
    let last = luma[width - 1];
    luma[width..].fill(last);
}

fn chroma_row<const CHANNELS: usize>(rows: [&[u8]; 2], u: &mut [u8], v: &mut [u8]) {
    let pixels = rows[0].len() / CHANNELS;
    let width = pixels.div_ceil(2);
    for x in 0..width {
        let left = 2 * x * CHANNELS;
        let right = (2 * x + 1).min(pixels - 1) * CHANNELS;
        let sums: [i32; 3] = std::array::from_fn(|c| {
            [
                rows[0][left + c],
                rows[0][right + c],
                rows[1][left + c],
                rows[1][right + c],
            ]
            .map(i32::from)
            .iter()
            .sum()
        });
        let weigh = |weights: [i32; 3]| {
            let sum = weights[0] * sums[0] + weights[1] * sums[1] + weights[2] * sums[2];
            (((sum + (1 << 17)) >> 18) + CHROMA_OFFSET).clamp(0, 255) as u8
        };
        u[x] = weigh(U_WEIGHTS);
        v[x] = weigh(V_WEIGHTS);
    }
    for plane in [u, v] {
        let last = plane[width - 1];
        plane[width..].fill(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planes_of(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Planes {
        let pixels: Vec<u8> = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| pixel(x, y))
            .collect();
        Planes::from_picture(&Picture {
            width,
            height,
            layout: Layout::Rgb,
            pixels: &pixels,
        })
    }

    #[test]
    fn known_colours() {
        // BT.601 in limited range, as ITU-R gives it: Y 16..=235, U and V 16..=240.
        let cases = [
            ([0, 0, 0], [16, 128, 128]),
            ([255, 255, 255], [235, 128, 128]),
            ([255, 0, 0], [82, 90, 240]),
            ([0, 255, 0], [145, 54, 34]),
            ([0, 0, 255], [41, 240, 110]),
            ([128, 128, 128], [126, 128, 128]),
        ];
        for (rgb, [y, u, v]) in cases {
            let planes = planes_of(3, 3, |_, _| rgb);
            assert!(
                planes.luma.iter().all(|&p| p == y),
                "Y of {rgb:?} is {}, not {y}",
                planes.luma[0]
            );
            assert!(
                planes.chroma[0].iter().all(|&p| p == u),
                "U of {rgb:?} is {}, not {u}",
                planes.chroma[0][0]
            );
            assert!(
                planes.chroma[1].iter().all(|&p| p == v),
                "V of {rgb:?} is {}, not {v}",
                planes.chroma[1][0]
            );
        }
    }

    #[test]
    fn edges_are_repeated() {
        let planes = planes_of(17, 17, |x, y| [(x * 15) as u8, (y * 15) as u8, 0]);
        assert_eq!((planes.mb_width, planes.mb_height), (2, 2));
        for y in 0..32 {
            let row = &planes.luma[y * 32..][..32];
            assert!(row[16..].iter().all(|&p| p == row[16]), "row {y}");
            assert_eq!(row, &planes.luma[y.min(16) * 32..][..32], "row {y}");
        }
        for plane in &planes.chroma {
            for y in 0..16 {
                let row = &plane[y * 16..][..16];
                assert!(row[8..].iter().all(|&p| p == row[8]), "row {y}");
                assert_eq!(row, &plane[y.min(8) * 16..][..16], "row {y}");
            }
        }
    }
}
