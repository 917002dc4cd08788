//! Intra prediction: RFC 6386, section 12.

/// Prediction modes of Intra16 luma and of chroma, numbered as in the RFC (section 8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockMode {
    /// The mean of the row above and the column to the left.
    #[default]
    Dc,
    /// Each column repeats the pixel above it.
    Vertical,
    /// Each row repeats the pixel to its left.
    Horizontal,
    /// Left plus above minus corner, clamped.
    TrueMotion,
}

impl BlockMode {
    /// All modes, by number.
    pub const ALL: [BlockMode; 4] = [
        BlockMode::Dc,
        BlockMode::Vertical,
        BlockMode::Horizontal,
        BlockMode::TrueMotion,
    ];

    /// Returns the subblock mode that Intra4 neighbors use as context (section 11.3).
    pub fn as_context(self) -> SubblockMode {
        match self {
            BlockMode::Dc => SubblockMode::Dc,
            BlockMode::Vertical => SubblockMode::Vertical,
            BlockMode::Horizontal => SubblockMode::Horizontal,
            BlockMode::TrueMotion => SubblockMode::TrueMotion,
        }
    }
}

/// Prediction modes of a 4x4 luma subblock, numbered as in the RFC (section 8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SubblockMode {
    /// The mean of four pixels above and four to the left.
    #[default]
    Dc,
    /// Left plus above minus corner, clamped.
    TrueMotion,
    /// Down, from the smoothed row above.
    Vertical,
    /// Right, from the smoothed left column.
    Horizontal,
    /// Down and left at 45 degrees.
    LeftDown,
    /// Down and right at 45 degrees.
    RightDown,
    /// Down, and right by one pixel in two.
    VerticalRight,
    /// Down, and left by one pixel in two.
    VerticalLeft,
    /// Right, and down by one pixel in two.
    HorizontalDown,
    /// Right, and up by one pixel in two.
    HorizontalUp,
}

impl SubblockMode {
    /// All modes, by number.
    pub const ALL: [SubblockMode; 10] = [
        SubblockMode::Dc,
        SubblockMode::TrueMotion,
        SubblockMode::Vertical,
        SubblockMode::Horizontal,
        SubblockMode::LeftDown,
        SubblockMode::RightDown,
        SubblockMode::VerticalRight,
        SubblockMode::VerticalLeft,
        SubblockMode::HorizontalDown,
        SubblockMode::HorizontalUp,
    ];
}

/// Value of pixels above the picture (section 12.2).
pub const ABOVE_PICTURE: u8 = 127;
/// Value of pixels to the left of the picture, corners below its first row included (section 12.2).
pub const LEFT_OF_PICTURE: u8 = 129;

/// The edges of a block of `N` x `N` pixels.
#[derive(Clone, Copy, Debug)]
pub struct Edges<const N: usize> {
    /// The row above, or [`ABOVE_PICTURE`].
    pub above: [u8; N],
    /// The column to the left, or [`LEFT_OF_PICTURE`].
    pub left: [u8; N],
    /// The pixel above `left` and left of `above`.
    pub corner: u8,
    /// Whether the row above lies in the picture.
    pub has_above: bool,
    /// Whether the column to the left lies in the picture.
    pub has_left: bool,
}

impl<const N: usize> Edges<N> {
    /// Predicts the block in raster order (sections 12.2 and 12.3). `out` has `N * N` pixels.
    pub fn predict(&self, mode: BlockMode, out: &mut [u8]) {
        let rows = out.chunks_exact_mut(N);
        match mode {
            BlockMode::Dc => out.fill(self.mean()),
            BlockMode::Vertical => rows.for_each(|row| row.copy_from_slice(&self.above)),
            BlockMode::Horizontal => rows.zip(self.left).for_each(|(row, left)| row.fill(left)),
            BlockMode::TrueMotion => {
                for (row, left) in rows.zip(self.left) {
                    let slope = i16::from(left) - i16::from(self.corner);
                    for (pixel, above) in row.iter_mut().zip(self.above) {
                        *pixel = (i16::from(above) + slope).clamp(0, 255) as u8;
                    }
                }
            }
        }
    }

    /// Returns the mean of the edges that lie in the picture; 128 if none does.
    fn mean(&self) -> u8 {
        let sum = |edge: &[u8; N]| edge.iter().map(|&p| u32::from(p)).sum::<u32>();
        let n = N as u32;
        let mean = match (self.has_above, self.has_left) {
            (true, true) => (sum(&self.above) + sum(&self.left) + n) / (2 * n),
            (true, false) => (sum(&self.above) + n / 2) / n,
            (false, true) => (sum(&self.left) + n / 2) / n,
            (false, false) => 128,
        };
        mean as u8
    }
}

/// The edge pixels of a subblock, as the RFC's array E: four to the left from the bottom up, the
/// corner, and eight above from left to right (section 12.3).
pub type SubblockEdges = [u8; 13];

/// Predicted pixels in raster order, one lane per mode; lanes 10 to 15 are unused.
pub type Predictions = [[i16; 16]; 16];

/// The smoothed edges that all modes but true motion consist of.
///
/// Slot `c` in 0..=12 is the edge smoothed over three pixels around `E[c]`, with the ends repeated.
/// Slot `13 + i` in 13..=24 is the mean of `E[i]` and `E[i + 1]`. Slot 25 is `E[0]`, slot 26 the
/// mean that [`SubblockMode::Dc`] predicts.
type Slots = [u8; 27];

/// The slot of each pixel, by mode; the entry of true motion is unused.
pub const PATTERNS: [[u8; 16]; 10] = [
    [26; 16],
    [26; 16],
    [5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8],
    [3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0],
    [6, 7, 8, 9, 7, 8, 9, 10, 8, 9, 10, 11, 9, 10, 11, 12],
    [4, 5, 6, 7, 3, 4, 5, 6, 2, 3, 4, 5, 1, 2, 3, 4],
    [17, 18, 19, 20, 4, 5, 6, 7, 3, 17, 18, 19, 2, 4, 5, 6],
    [18, 19, 20, 21, 6, 7, 8, 9, 19, 20, 21, 10, 7, 8, 9, 11],
    [16, 4, 5, 6, 15, 3, 16, 4, 14, 2, 15, 3, 13, 1, 14, 2],
    [15, 2, 14, 1, 14, 1, 13, 0, 13, 0, 25, 25, 25, 25, 25, 25],
];

/// Predicts one subblock by any mode.
pub struct SubblockPredictor {
    edges: SubblockEdges,
    slots: Slots,
}

impl SubblockPredictor {
    /// Computes the smoothed edges.
    #[inline]
    pub fn new(edges: SubblockEdges) -> SubblockPredictor {
        let e = |i: usize| u32::from(edges[i]);
        let mut slots = [0; 27];
        for (c, slot) in slots[..13].iter_mut().enumerate() {
            *slot = ((e(c.max(1) - 1) + 2 * e(c) + e((c + 1).min(12)) + 2) >> 2) as u8;
        }
        for (i, slot) in slots[13..25].iter_mut().enumerate() {
            *slot = ((e(i) + e(i + 1) + 1) >> 1) as u8;
        }
        slots[25] = edges[0];
        let sum: u32 = edges[..4]
            .iter()
            .chain(&edges[5..9])
            .map(|&p| u32::from(p))
            .sum();
        slots[26] = ((sum + 4) >> 3) as u8;
        SubblockPredictor { edges, slots }
    }

    /// Returns the pixel at `row` and `column` that [`SubblockMode::TrueMotion`] predicts.
    #[inline]
    fn true_motion(&self, row: usize, column: usize) -> u8 {
        let [left, above, corner] =
            [self.edges[3 - row], self.edges[5 + column], self.edges[4]].map(i16::from);
        (left + above - corner).clamp(0, 255) as u8
    }

    /// Returns the prediction by one mode, in raster order.
    #[inline]
    pub fn predict(&self, mode: SubblockMode) -> [u8; 16] {
        if mode == SubblockMode::TrueMotion {
            return std::array::from_fn(|i| self.true_motion(i / 4, i % 4));
        }
        PATTERNS[mode as usize].map(|slot| self.slots[usize::from(slot)])
    }

    /// Returns the predictions by all modes.
    #[inline]
    pub fn predict_all(&self) -> Predictions {
        let mut all = [[0; 16]; 16];
        for (i, pixel) in all.iter_mut().enumerate() {
            for (mode, pattern) in PATTERNS.iter().enumerate() {
                pixel[mode] = i16::from(self.slots[usize::from(pattern[i])]);
            }
            pixel[SubblockMode::TrueMotion as usize] = i16::from(self.true_motion(i / 4, i % 4));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// The formulas of section 12.3, on an edge whose pixels all differ.
    #[test]
    fn subblock_modes_follow_the_rfc() {
        let e: SubblockEdges = [3, 17, 40, 90, 101, 128, 77, 200, 255, 0, 31, 64, 180];
        let l = |i: usize| u32::from(e[3 - i]);
        let a = |i: usize| u32::from(e[5 + i]);
        let p = u32::from(e[4]);
        let avg2 = |x: u32, y: u32| ((x + y + 1) >> 1) as u8;
        let avg3 = |x: u32, y: u32, z: u32| ((x + 2 * y + z + 2) >> 2) as u8;
        let ee = |i: usize| u32::from(e[i]);
        let predictor = SubblockPredictor::new(e);
        let at = |mode: SubblockMode, row: usize, column: usize| {
            predictor.predict(mode)[row * 4 + column]
        };
        let cases = [
            (SubblockMode::Vertical, 0, 0, avg3(p, a(0), a(1))),
            (SubblockMode::Vertical, 3, 3, avg3(a(2), a(3), a(4))),
            (SubblockMode::Horizontal, 0, 2, avg3(p, l(0), l(1))),
            (SubblockMode::Horizontal, 3, 1, avg3(l(2), l(3), l(3))),
            (SubblockMode::LeftDown, 0, 0, avg3(a(0), a(1), a(2))),
            (SubblockMode::LeftDown, 3, 3, avg3(a(6), a(7), a(7))),
            (SubblockMode::RightDown, 3, 0, avg3(ee(0), ee(1), ee(2))),
            (SubblockMode::RightDown, 0, 3, avg3(ee(6), ee(7), ee(8))),
            (SubblockMode::VerticalRight, 3, 0, avg3(ee(1), ee(2), ee(3))),
            (SubblockMode::VerticalRight, 2, 1, avg2(ee(4), ee(5))),
            (SubblockMode::VerticalRight, 0, 3, avg2(ee(7), ee(8))),
            (SubblockMode::VerticalLeft, 0, 0, avg2(a(0), a(1))),
            (SubblockMode::VerticalLeft, 2, 3, avg3(a(4), a(5), a(6))),
            (SubblockMode::VerticalLeft, 3, 3, avg3(a(5), a(6), a(7))),
            (SubblockMode::HorizontalDown, 3, 0, avg2(ee(0), ee(1))),
            (
                SubblockMode::HorizontalDown,
                0,
                3,
                avg3(ee(5), ee(6), ee(7)),
            ),
            (
                SubblockMode::HorizontalDown,
                1,
                1,
                avg3(ee(2), ee(3), ee(4)),
            ),
            (SubblockMode::HorizontalUp, 0, 0, avg2(l(0), l(1))),
            (SubblockMode::HorizontalUp, 1, 3, avg3(l(2), l(3), l(3))),
            (SubblockMode::HorizontalUp, 2, 2, l(3) as u8),
            (
                SubblockMode::TrueMotion,
                0,
                3,
                (l(0) + a(3)).saturating_sub(p).min(255) as u8,
            ),
            (
                SubblockMode::Dc,
                2,
                2,
                ((a(0) + a(1) + a(2) + a(3) + l(0) + l(1) + l(2) + l(3) + 4) >> 3) as u8,
            ),
        ];
        for (mode, row, column, expected) in cases {
            assert_eq!(
                at(mode, row, column),
                expected,
                "{mode:?} at {row}, {column}"
            );
        }
    }

    #[test]
    fn all_predictions_at_once_are_each_prediction() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let edges = std::array::from_fn(|_| random.byte());
            let predictor = SubblockPredictor::new(edges);
            let all = predictor.predict_all();
            for mode in SubblockMode::ALL {
                let one = predictor.predict(mode);
                let lane: [u8; 16] = std::array::from_fn(|i| all[i][mode as usize] as u8);
                assert_eq!(lane, one, "{mode:?}");
            }
        }
    }

    #[test]
    fn the_mean_takes_only_edges_in_the_picture() {
        let mut edges = Edges {
            above: [10; 8],
            left: [21; 8],
            corner: 0,
            has_above: true,
            has_left: true,
        };
        assert_eq!(edges.mean(), 16, "15.5 rounds up");
        edges.has_left = false;
        assert_eq!(edges.mean(), 10);
        (edges.has_left, edges.has_above) = (true, false);
        assert_eq!(edges.mean(), 21);
        edges.has_left = false;
        assert_eq!(edges.mean(), 128);
    }
}
