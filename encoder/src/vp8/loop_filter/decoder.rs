//! The normal loop filter as a decoder runs it, over a finished reconstruction: RFC 6386, section
//! 15.

use super::FilterParameters;
use crate::vp8::macroblock::MacroblockRecord;
use crate::ycbcr::Planes;

/// The thresholds of one macroblock (section 15.2).
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    /// Limit of the differences across macroblock edges.
    macroblock_edge: i32,
    /// Limit of the differences across subblock edges.
    subblock_edge: i32,
    /// Limit of the differences beside an edge.
    interior: i32,
    /// Differences beside an edge that exceed it belong to the picture.
    high_variance: i32,
}

impl Thresholds {
    /// Computes the thresholds; `None` if the level is 0.
    fn new(level: u8, sharpness: u8) -> Option<Thresholds> {
        if level == 0 {
            return None;
        }
        let level = i32::from(level);
        let mut interior = level;
        if sharpness > 0 {
            interior >>= if sharpness > 4 { 2 } else { 1 };
            interior = interior.min(9 - i32::from(sharpness));
        }
        let interior = interior.max(1);
        Some(Thresholds {
            macroblock_edge: (level + 2) * 2 + interior,
            subblock_edge: level * 2 + interior,
            interior,
            high_variance: match level {
                40.. => 2,
                15.. => 1,
                _ => 0,
            },
        })
    }
}

/// Filters row `mb_y` of the macroblocks of `planes`, whose rows above are filtered already.
/// `records` are its macroblocks from left to right. This changes up to three rows of pixels above
/// it.
pub fn filter_row(
    planes: &mut Planes,
    mb_y: usize,
    records: &[MacroblockRecord],
    parameters: &FilterParameters,
) {
    if parameters.frame_level() == 0 {
        return;
    }
    let thresholds = parameters
        .levels
        .map(|level| Thresholds::new(level, parameters.sharpness));
    let (luma_stride, chroma_stride) = (planes.luma_stride(), planes.chroma_stride());
    let [u, v] = &mut planes.chroma;
    let planes = [
        (&mut planes.luma, luma_stride, 16),
        (u, chroma_stride, 8),
        (v, chroma_stride, 8),
    ];
    for (plane, stride, size) in planes {
        for (mb_x, record) in records.iter().enumerate() {
            let Some(thresholds) = thresholds[usize::from(record.segment)] else {
                continue;
            };
            let has_inner_edges = !record.luma.has_y2() || !record.skipped;
            let at = mb_y * size * stride + mb_x * size;
            // Vertical edges come before horizontal ones, macroblock edges before subblock edges.
            for (is_outermost, step, along) in [(mb_x == 0, 1, stride), (mb_y == 0, stride, 1)] {
                let edge = |distance| Edge {
                    at: at + distance * step,
                    step,
                    along,
                    size,
                };
                if !is_outermost {
                    edge(0).each_run(plane, |pixels| macroblock_edge(pixels, thresholds));
                }
                if has_inner_edges {
                    for distance in (4..size).step_by(4) {
                        edge(distance).each_run(plane, |pixels| subblock_edge(pixels, thresholds));
                    }
                }
            }
        }
    }
}

/// The eight pixels across an edge, four on either side, less 128.
type EdgePixels = [i32; 8];

fn clamp(value: i32) -> i32 {
    value.clamp(-128, 127)
}

/// Whether the differences are small enough to come from quantization (section 15.3).
fn is_filtered([p3, p2, p1, p0, q0, q1, q2, q3]: EdgePixels, edge: i32, interior: i32) -> bool {
    (p0 - q0).abs() * 2 + (p1 - q1).abs() / 2 <= edge
        && [p3 - p2, p2 - p1, p1 - p0, q1 - q0, q2 - q1, q3 - q2]
            .iter()
            .all(|d| d.abs() <= interior)
}

fn has_high_variance([_, _, p1, p0, q0, q1, ..]: EdgePixels, threshold: i32) -> bool {
    (p1 - p0).abs() > threshold || (q1 - q0).abs() > threshold
}

/// Moves the two pixels at the edge towards each other (section 15.2). Returns how far the second
/// one moved.
fn adjust(pixels: &mut EdgePixels, use_outer: bool) -> i32 {
    let [_, _, p1, p0, q0, q1, ..] = *pixels;
    let a = clamp(if use_outer { clamp(p1 - q1) } else { 0 } + 3 * (q0 - p0));
    let (f, g) = (clamp(a + 4) >> 3, clamp(a + 3) >> 3);
    pixels[4] = clamp(q0 - f);
    pixels[3] = clamp(p0 + g);
    f
}

/// An edge in a plane.
struct Edge {
    /// Index of the first pixel behind the edge.
    at: usize,
    /// Distance from one pixel to the next across the edge.
    step: usize,
    /// Distance from one pixel to the next along the edge.
    along: usize,
    /// Length of the edge in pixels.
    size: usize,
}

impl Edge {
    /// Applies `change` to the eight pixels across the edge, at each pixel along it. `change`
    /// returns whether it changed them.
    #[inline]
    fn each_run(&self, plane: &mut [u8], change: impl Fn(&mut EdgePixels) -> bool) {
        for i in 0..self.size {
            let start = self.at + i * self.along - 4 * self.step;
            let mut pixels = std::array::from_fn(|k| i32::from(plane[start + k * self.step]) - 128);
            if change(&mut pixels) {
                for k in 1..7 {
                    plane[start + k * self.step] = (pixels[k] + 128) as u8;
                }
            }
        }
    }
}

/// Filters across an edge between macroblocks (section 15.3).
fn macroblock_edge(pixels: &mut EdgePixels, thresholds: Thresholds) -> bool {
    if !is_filtered(*pixels, thresholds.macroblock_edge, thresholds.interior) {
        return false;
    }
    if has_high_variance(*pixels, thresholds.high_variance) {
        adjust(pixels, true);
        return true;
    }
    let [_, _, p1, p0, q0, q1, ..] = *pixels;
    let w = clamp(clamp(p1 - q1) + 3 * (q0 - p0));
    for (distance, weight) in [27, 18, 9].into_iter().enumerate() {
        let a = clamp((weight * w + 63) >> 7);
        pixels[4 + distance] = clamp(pixels[4 + distance] - a);
        pixels[3 - distance] = clamp(pixels[3 - distance] + a);
    }
    true
}

/// Filters across an edge within a macroblock (section 15.3).
fn subblock_edge(pixels: &mut EdgePixels, thresholds: Thresholds) -> bool {
    if !is_filtered(*pixels, thresholds.subblock_edge, thresholds.interior) {
        return false;
    }
    let high_variance = has_high_variance(*pixels, thresholds.high_variance);
    let a = (adjust(pixels, high_variance) + 1) >> 1;
    if !high_variance {
        pixels[5] = clamp(pixels[5] - a);
        pixels[2] = clamp(pixels[2] + a);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_by_hand() {
        assert!(Thresholds::new(0, 0).is_none());
        let t = Thresholds::new(32, 0).expect("not 0");
        assert_eq!(
            (
                t.macroblock_edge,
                t.subblock_edge,
                t.interior,
                t.high_variance
            ),
            (100, 96, 32, 1)
        );
        let t = Thresholds::new(63, 7).expect("not 0");
        assert_eq!(
            (
                t.macroblock_edge,
                t.subblock_edge,
                t.interior,
                t.high_variance
            ),
            (132, 128, 2, 2)
        );
        let t = Thresholds::new(1, 3).expect("not 0");
        assert_eq!((t.interior, t.high_variance), (1, 0), "never under 1");
    }

    #[test]
    fn a_small_step_is_smoothed_and_a_large_one_kept() {
        let run = |step: u8| {
            let thresholds = Thresholds::new(10, 0).expect("not 0");
            let mut row: [u8; 8] = std::array::from_fn(|x| if x < 4 { 100 } else { 100 + step });
            let edge = Edge {
                at: 4,
                step: 1,
                along: 8,
                size: 1,
            };
            edge.each_run(&mut row, |pixels| macroblock_edge(pixels, thresholds));
            row
        };
        // w = clamp(-8 + 24) = 16: 27 * 16 + 63 >> 7 = 3, 18: 2, 9: 1.
        assert_eq!(run(8), [100, 101, 102, 103, 105, 106, 107, 108]);
        assert_eq!(run(100), [100, 100, 100, 100, 200, 200, 200, 200]);
    }
}
