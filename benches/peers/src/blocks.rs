//! Blocks that show: steps at the edges of macroblocks, beyond those that the original has there.

use crate::picture::Picture;

/// Distance between the edges of macroblocks in pixels.
const MACROBLOCK: usize = 16;
/// Where the original's step is as large or larger, its own content hides an edge.
const SMOOTH: f32 = 4.0;

/// Steps at macroblock edges beside those elsewhere, in Y, Cb and Cr.
pub type Blocks = [f64; 3];

/// An original, prepared for many comparisons.
pub struct Original {
    planes: [Vec<f32>; 3],
    sums: [[Steps; 2]; 3],
}

/// Steps between neighbors at smooth places, summed: at edges of macroblocks, and elsewhere.
#[derive(Clone, Copy, Default)]
struct Steps {
    edge: f64,
    rest: f64,
}

impl Original {
    /// Prepares `picture`.
    pub fn new(picture: &Picture) -> Self {
        let planes = planes(picture);
        let sums = std::array::from_fn(|i| {
            [true, false].map(|is_across| steps(&planes[i], &planes[i], picture.width, is_across))
        });
        Self { planes, sums }
    }

    /// Y, Cb and Cr.
    pub fn planes(&self) -> &[Vec<f32>; 3] {
        &self.planes
    }

    /// For each plane, in percent: the mean step of `decoded` at macroblock edges over that of the
    /// original, divided by the same ratio elsewhere, less 100. Only places where the original's
    /// own step is below [`SMOOTH`] count; rows and columns weigh the same. 0 is no blocking; the
    /// eye sees it from about 30 on.
    pub fn compare(&self, decoded: &Picture) -> Blocks {
        let decoded_planes = planes(decoded);
        std::array::from_fn(|i| {
            let (mut edge, mut rest) = (0.0, 0.0);
            for (is_across, original) in [true, false].into_iter().zip(self.sums[i]) {
                let ours = steps(
                    &self.planes[i],
                    &decoded_planes[i],
                    decoded.width,
                    is_across,
                );
                // Both sums are over the same places, so their ratio is that of the means.
                edge += ours.edge / original.edge.max(1e-3);
                rest += ours.rest / original.rest.max(1e-3);
            }
            100.0 * (edge / rest.max(1e-3) - 1.0)
        })
    }
}

/// Y, Cb and Cr by BT.601, in floating point.
pub fn planes(picture: &Picture) -> [Vec<f32>; 3] {
    let count = picture.pixels.len() / 3;
    let mut planes = [(); 3].map(|()| Vec::with_capacity(count));
    for pixel in picture.pixels.chunks_exact(3) {
        let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(f32::from);
        let luma = 0.299 * r + 0.587 * g + 0.114 * b;
        planes[0].push(luma);
        planes[1].push((b - luma) / 1.772);
        planes[2].push((r - luma) / 1.402);
    }
    planes
}

/// The steps of `plane` from column to column (`is_across`) or row to row, where those of
/// `original` are small.
fn steps(original: &[f32], plane: &[f32], width: u32, is_across: bool) -> Steps {
    let width = width as usize;
    let mut sums = Steps::default();
    for (y, (a, b)) in original
        .chunks_exact(width)
        .zip(plane.chunks_exact(width))
        .enumerate()
    {
        let next = if is_across {
            y * width
        } else {
            (y + 1) * width
        };
        if next + width > original.len() {
            break;
        }
        let (next_a, next_b) = (&original[next..][..width], &plane[next..][..width]);
        for x in 0..if is_across { width - 1 } else { width } {
            let other = if is_across { x + 1 } else { x };
            if (next_a[other] - a[x]).abs() < SMOOTH {
                let step = f64::from((next_b[other] - b[x]).abs());
                let position = if is_across { x } else { y };
                if position % MACROBLOCK == MACROBLOCK - 1 {
                    sums.edge += step;
                } else {
                    sums.rest += step;
                }
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(pixel: impl Fn(u32, u32) -> u8) -> Picture {
        let (width, height) = (64, 48);
        Picture {
            width,
            height,
            pixels: (0..width * height)
                .flat_map(|i| [pixel(i % width, i / width); 3])
                .collect(),
        }
    }

    #[test]
    fn a_ramp_has_no_blocks_and_its_staircase_has_many() {
        let ramp = picture(|x, y| (2 * x + y) as u8);
        let original = Original::new(&ramp);
        let [y, ..] = original.compare(&ramp);
        assert!(y.abs() < 1e-6, "{y} without any error");
        // All of a macroblock's ramp at its edges, and a sixteenth of the steps elsewhere.
        let stairs = picture(|x, y| (2 * (x / 16 * 16) + y / 16 * 16 + x / 8 % 2) as u8);
        let [y, ..] = original.compare(&stairs);
        assert!(y > 1000.0, "{y} for stairs");
        let even = picture(|x, y| (x + y) as u8);
        let [y, ..] = original.compare(&even);
        assert!(y.abs() < 1e-3, "{y} where all steps are lower alike");
    }
}
