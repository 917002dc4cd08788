//! Macroblocks (RFC 6386, sections 2 and 12): their pixels, their neighbors and how they are coded.

use super::levels::{Levels, NonzeroFlags};
use super::predict::{
    ABOVE_PICTURE, BlockMode, Edges, LEFT_OF_PICTURE, SubblockEdges, SubblockMode,
};
use crate::ycbcr::Planes;

/// How the luma of a macroblock is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LumaMode {
    /// All 16x16 pixels by one mode. The DCs of the sixteen luma blocks form a block of their own,
    /// Y2.
    Intra16(BlockMode),
    /// Each of the sixteen 4x4 subblocks by a mode of its own, in raster order.
    Intra4([SubblockMode; 16]),
}

impl LumaMode {
    /// Whether the macroblock has a Y2 block.
    pub fn has_y2(&self) -> bool {
        matches!(self, LumaMode::Intra16(_))
    }

    /// Returns the modes of the bottom row and of the right column, which are contexts for the
    /// modes of the neighbors (section 11.3).
    pub fn contexts(&self) -> ([SubblockMode; 4], [SubblockMode; 4]) {
        match self {
            LumaMode::Intra16(mode) => ([mode.as_context(); 4], [mode.as_context(); 4]),
            LumaMode::Intra4(modes) => (
                std::array::from_fn(|column| modes[12 + column]),
                std::array::from_fn(|row| modes[row * 4 + 3]),
            ),
        }
    }
}

/// Everything that the bitstream holds of a macroblock.
#[derive(Clone, Debug)]
pub struct MacroblockCoding {
    /// Luma prediction.
    pub luma: LumaMode,
    /// Chroma prediction.
    pub chroma: BlockMode,
    /// Quantized coefficients.
    pub levels: Levels,
}

impl MacroblockCoding {
    /// DC prediction without coefficients.
    pub const EMPTY: MacroblockCoding = MacroblockCoding {
        luma: LumaMode::Intra16(BlockMode::Dc),
        chroma: BlockMode::Dc,
        levels: Levels::ZERO,
    };
}

/// The fields of a macroblock in the first partition: all but its coefficients.
#[derive(Clone, Copy, Debug)]
pub struct MacroblockRecord {
    /// The segment, 0 to 3.
    pub segment: u8,
    /// Whether the macroblock has no coefficients.
    pub skipped: bool,
    /// Luma prediction.
    pub luma: LumaMode,
    /// Chroma prediction.
    pub chroma: BlockMode,
}

/// The pixels of a macroblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// 16 rows of 16.
    pub luma: [u8; 256],
    /// Cb and Cr, 8 rows of 8 each.
    pub chroma: [[u8; 64]; 2],
}

impl Pixels {
    /// All zero.
    pub const ZERO: Pixels = Pixels {
        luma: [0; 256],
        chroma: [[0; 64]; 2],
    };

    /// Loads the macroblock in column `mb_x` of row `mb_y`.
    pub fn load(planes: &Planes, mb_x: usize, mb_y: usize) -> Pixels {
        let mut pixels = Pixels::ZERO;
        let stride = planes.luma_stride();
        for (row, out) in pixels.luma.chunks_exact_mut(16).enumerate() {
            out.copy_from_slice(&planes.luma[(mb_y * 16 + row) * stride + mb_x * 16..][..16]);
        }
        let stride = planes.chroma_stride();
        for (plane, out) in planes.chroma.iter().zip(&mut pixels.chroma) {
            for (row, out) in out.chunks_exact_mut(8).enumerate() {
                out.copy_from_slice(&plane[(mb_y * 8 + row) * stride + mb_x * 8..][..8]);
            }
        }
        pixels
    }
}

/// The planes' part of a row of macroblocks, which one thread writes.
pub struct PlaneRow<'a> {
    luma: &'a mut [u8],
    chroma: [&'a mut [u8]; 2],
}

impl<'a> PlaneRow<'a> {
    /// Divides planes into rows of macroblocks, from top to bottom.
    pub fn divide(planes: &'a mut Planes) -> impl Iterator<Item = PlaneRow<'a>> {
        let (luma_stride, chroma_stride) = (planes.luma_stride(), planes.chroma_stride());
        let luma = planes.luma.chunks_exact_mut(16 * luma_stride);
        let [u, v] = &mut planes.chroma;
        let u = u.chunks_exact_mut(8 * chroma_stride);
        let v = v.chunks_exact_mut(8 * chroma_stride);
        luma.zip(u.zip(v)).map(|(luma, (u, v))| PlaneRow {
            luma,
            chroma: [u, v],
        })
    }

    /// Stores the macroblock in column `mb_x`.
    pub fn store(&mut self, mb_x: usize, pixels: &Pixels) {
        let stride = self.luma.len() / 16;
        for (row, pixels) in pixels.luma.chunks_exact(16).enumerate() {
            self.luma[row * stride + mb_x * 16..][..16].copy_from_slice(pixels);
        }
        let stride = self.chroma[0].len() / 8;
        for (plane, pixels) in self.chroma.iter_mut().zip(&pixels.chroma) {
            for (row, pixels) in pixels.chunks_exact(8).enumerate() {
                plane[row * stride + mb_x * 8..][..8].copy_from_slice(pixels);
            }
        }
    }
}

/// The reconstructed pixels around a macroblock, before the loop filter.
#[derive(Clone, Copy, Debug)]
pub struct Neighbors {
    /// Edges of luma.
    pub luma: Edges<16>,
    /// The four luma pixels right of the row above: those of the next macroblock, or at the right
    /// border the last pixel of the row above, repeated.
    pub above_right: [u8; 4],
    /// Edges of Cb and Cr.
    pub chroma: [Edges<8>; 2],
}

impl Neighbors {
    /// Collects the edges from the neighboring macroblocks, `None` where one lies outside the
    /// picture.
    pub fn new(
        left: Option<&Pixels>,
        above_left: Option<&AboveContext>,
        above: Option<&AboveContext>,
        above_right: Option<&AboveContext>,
    ) -> Neighbors {
        let (has_above, has_left) = (above.is_some(), left.is_some());
        let above = above.unwrap_or(&AboveContext::ABOVE_PICTURE);
        let above_left = above_left.unwrap_or(if has_above {
            &AboveContext::LEFT_OF_PICTURE
        } else {
            &AboveContext::ABOVE_PICTURE
        });
        let mut luma = Edges {
            above: above.luma,
            left: [LEFT_OF_PICTURE; 16],
            corner: above_left.luma[15],
            has_above,
            has_left,
        };
        let mut chroma = [0, 1].map(|plane| Edges {
            above: above.chroma[plane],
            left: [LEFT_OF_PICTURE; 8],
            corner: above_left.chroma[plane][7],
            has_above,
            has_left,
        });
        if let Some(pixels) = left {
            for (row, edge) in luma.left.iter_mut().enumerate() {
                *edge = pixels.luma[row * 16 + 15];
            }
            for (edges, pixels) in chroma.iter_mut().zip(&pixels.chroma) {
                for (row, edge) in edges.left.iter_mut().enumerate() {
                    *edge = pixels[row * 8 + 7];
                }
            }
        }
        let mut right = [above.luma[15]; 4];
        if let Some(above_right) = above_right {
            right.copy_from_slice(&above_right.luma[..4]);
        }
        Neighbors {
            luma,
            above_right: right,
            chroma,
        }
    }
}

/// The samples and modes of a macroblock by which the row below is predicted.
#[derive(Clone, Copy, Debug)]
pub struct AboveContext {
    /// Its last row of luma.
    pub luma: [u8; 16],
    /// Its last rows of Cb and Cr.
    pub chroma: [[u8; 8]; 2],
    /// Whether each of its blocks has coefficients.
    pub nonzero: NonzeroFlags,
    /// The modes of its bottom row of subblocks.
    pub modes: [SubblockMode; 4],
}

impl AboveContext {
    /// Stands for the macroblocks above the picture.
    pub const ABOVE_PICTURE: AboveContext = AboveContext::flat(ABOVE_PICTURE);
    /// Stands for the macroblocks to the left of the picture.
    pub const LEFT_OF_PICTURE: AboveContext = AboveContext::flat(LEFT_OF_PICTURE);

    const fn flat(pixel: u8) -> AboveContext {
        AboveContext {
            luma: [pixel; 16],
            chroma: [[pixel; 8]; 2],
            nonzero: NonzeroFlags {
                luma: [false; 4],
                chroma: [[false; 2]; 2],
                y2: false,
            },
            modes: [SubblockMode::Dc; 4],
        }
    }

    /// Takes the last rows of `pixels`, with no coefficients and DC modes.
    pub fn from_pixels(pixels: &Pixels) -> AboveContext {
        let mut context = AboveContext::ABOVE_PICTURE;
        context.luma.copy_from_slice(&pixels.luma[15 * 16..]);
        for (row, pixels) in context.chroma.iter_mut().zip(&pixels.chroma) {
            row.copy_from_slice(&pixels[7 * 8..]);
        }
        context
    }
}

/// The luma of a macroblock while its subblocks are reconstructed one after another, with the edges
/// that prediction reads:
///
/// ```text
///        0   1 ............ 16  17 .. 20
///    0   c   above              above right
///    1   l   subblocks  0  1  2  3
///    .   e              4  5  6  7
///    .   f              8  9 10 11
///   16   t             12 13 14 15
/// ```
pub struct LumaWorkspace {
    pixels: [u8; ROWS * STRIDE],
}

const STRIDE: usize = 21;
const ROWS: usize = 17;

impl LumaWorkspace {
    /// All zero.
    pub const EMPTY: LumaWorkspace = LumaWorkspace {
        pixels: [0; ROWS * STRIDE],
    };

    /// Fills in the edges. The subblocks are left as they are.
    pub fn set_edges(&mut self, neighbors: &Neighbors) {
        let pixels = &mut self.pixels;
        pixels[0] = neighbors.luma.corner;
        pixels[1..17].copy_from_slice(&neighbors.luma.above);
        pixels[17..21].copy_from_slice(&neighbors.above_right);
        for (row, &left) in neighbors.luma.left.iter().enumerate() {
            pixels[(row + 1) * STRIDE] = left;
        }
    }

    /// Returns the edges of subblock `index`. All subblocks of the right column use the four pixels
    /// above and right of the macroblock, whatever their row (section 12.3).
    #[inline(always)]
    pub fn edges(&self, index: usize) -> SubblockEdges {
        let (row, column) = (index / 4 * 4, index % 4 * 4);
        let corner = row * STRIDE + column;
        let left = |i: usize| self.pixels[corner + (i + 1) * STRIDE];
        let above: [u8; 4] = std::array::from_fn(|i| self.pixels[corner + 1 + i]);
        let right_at = if column == 12 { 17 } else { corner + 5 };
        let right: [u8; 4] = std::array::from_fn(|i| self.pixels[right_at + i]);
        [
            left(3),
            left(2),
            left(1),
            left(0),
            self.pixels[corner],
            above[0],
            above[1],
            above[2],
            above[3],
            right[0],
            right[1],
            right[2],
            right[3],
        ]
    }

    /// Stores the reconstruction of subblock `index`.
    #[inline(always)]
    pub fn store(&mut self, index: usize, pixels: &[u8; 16]) {
        let at = (index / 4 * 4 + 1) * STRIDE + index % 4 * 4 + 1;
        store_block(pixels, &mut self.pixels, STRIDE, at);
    }

    /// Stores the pixels of all subblocks in `luma`, 16 rows of 16.
    pub fn store_luma(&self, luma: &mut [u8; 256]) {
        for (row, out) in luma.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            out.copy_from_slice(&self.pixels[(row + 1) * STRIDE + 1..][..16]);
        }
    }
}

/// Returns the 4x4 block whose upper left corner is at `at`, from rows of `stride` pixels.
#[inline(always)]
pub fn block_at(pixels: &[u8], stride: usize, at: usize) -> [u8; 16] {
    let mut block = [0; 16];
    for (row, out) in block.chunks_exact_mut(4).enumerate() {
        out.copy_from_slice(&pixels[at + row * stride..][..4]);
    }
    block
}

/// Stores the 4x4 block whose upper left corner is at `at`, into rows of `stride` pixels.
#[inline(always)]
pub fn store_block(block: &[u8; 16], pixels: &mut [u8], stride: usize, at: usize) {
    for (row, block) in block.chunks_exact(4).enumerate() {
        pixels[at + row * stride..][..4].copy_from_slice(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planes of 3x3 macroblocks whose pixel values encode their position.
    fn planes() -> Planes {
        let mut planes = Planes::new(48, 48);
        for (i, pixel) in planes.luma.iter_mut().enumerate() {
            *pixel = (i % 48 + i / 48 * 5) as u8;
        }
        for plane in 0..2 {
            for (i, pixel) in planes.chroma[plane].iter_mut().enumerate() {
                *pixel = (i % 24 * 3 + i / 24 * 7 + plane) as u8;
            }
        }
        planes
    }

    #[test]
    fn stored_macroblocks_are_loaded_back() {
        let planes = planes();
        let mut copy = Planes::new(48, 48);
        for (mb_y, mut row) in PlaneRow::divide(&mut copy).enumerate() {
            for mb_x in 0..3 {
                row.store(mb_x, &Pixels::load(&planes, mb_x, mb_y));
            }
        }
        assert_eq!(copy, planes);
    }

    /// The neighbors of a macroblock, with the source as the reconstruction.
    fn neighbors_of(planes: &Planes, mb_x: usize, mb_y: usize) -> Neighbors {
        let context =
            |mb_x: usize| AboveContext::from_pixels(&Pixels::load(planes, mb_x, mb_y - 1));
        let above = (mb_y > 0).then(|| context(mb_x));
        let above_left = (mb_y > 0 && mb_x > 0).then(|| context(mb_x - 1));
        let above_right = (mb_y > 0 && mb_x + 1 < planes.mb_width).then(|| context(mb_x + 1));
        let left = (mb_x > 0).then(|| Pixels::load(planes, mb_x - 1, mb_y));
        Neighbors::new(
            left.as_ref(),
            above_left.as_ref(),
            above.as_ref(),
            above_right.as_ref(),
        )
    }

    #[test]
    fn neighbors_at_the_corners() {
        let planes = planes();
        let first = neighbors_of(&planes, 0, 0);
        assert_eq!(
            (first.luma.corner, first.luma.above[0], first.luma.left[0]),
            (127, 127, 129)
        );
        assert_eq!(first.above_right, [127; 4]);
        let below = neighbors_of(&planes, 0, 1);
        assert_eq!((below.luma.corner, below.luma.left[15]), (129, 129));
        assert_eq!(below.above_right, [91, 92, 93, 94], "15 * 5 + 16 and on");
        let right = neighbors_of(&planes, 2, 1);
        assert_eq!(
            right.above_right,
            [15 * 5 + 47; 4],
            "repeated past the right edge"
        );
        assert_eq!(right.chroma[1].corner, 15 * 3 + 7 * 7 + 1);
    }

    /// The layout drawn at [`LumaWorkspace`] is the real one.
    #[test]
    fn the_workspace_has_the_documented_layout() {
        let planes = planes();
        let around = neighbors_of(&planes, 1, 1);
        let mut workspace = LumaWorkspace::EMPTY;
        workspace.set_edges(&around);
        let source = Pixels::load(&planes, 1, 1);
        for index in 0..16 {
            let edges = workspace.edges(index);
            let (x, y) = (16 + index % 4 * 4, 16 + index / 4 * 4);
            let at = |x: usize, y: usize| planes.luma[y * 48 + x];
            for i in 0..4 {
                assert_eq!(
                    edges[3 - i],
                    at(x - 1, y + i),
                    "left {i} of subblock {index}"
                );
                assert_eq!(
                    edges[5 + i],
                    at(x + i, y - 1),
                    "above {i} of subblock {index}"
                );
                let right_row = if index % 4 == 3 { 15 } else { y - 1 };
                assert_eq!(
                    edges[9 + i],
                    at(x + 4 + i, right_row),
                    "above right {i} of subblock {index}"
                );
            }
            assert_eq!(edges[4], at(x - 1, y - 1), "corner of subblock {index}");
            workspace.store(
                index,
                &block_at(&source.luma, 16, index / 4 * 64 + index % 4 * 4),
            );
        }
        let mut luma = [0; 256];
        workspace.store_luma(&mut luma);
        assert_eq!(luma, source.luma);
    }
}
