//! The entropy image, which assigns a group of prefix codes to each tile of the picture: RFC 9649,
//! section 3.7.2.2.

/// The group of prefix codes of each tile.
#[derive(Clone, Debug)]
pub struct EntropyImage {
    /// Base-2 logarithm of a tile's side, 2 to 9.
    pub tile_bits: u32,
    /// Number of tiles in a row.
    pub width: usize,
    /// Group of each tile, in raster order.
    pub groups: Vec<u16>,
}

impl EntropyImage {
    /// Returns the image as it is written: group indices in red and green.
    pub fn pixels(&self) -> Vec<u32> {
        self.groups
            .iter()
            .map(|group| 0xFF00_0000 | u32::from(*group) << 8)
            .collect()
    }

    /// Returns the group of pixel `i` in rows of `width`.
    #[inline]
    pub fn group_at(&self, i: usize, width: usize) -> usize {
        usize::from(self.groups[tile_at(i, width, self.tile_bits, self.width)])
    }

    /// Returns the first pixel of the next tile in the row of pixel `i`, or the row's end.
    #[inline]
    pub fn tile_end(&self, i: usize, width: usize) -> usize {
        let x = i % width;
        let next = ((x >> self.tile_bits) + 1) << self.tile_bits;
        i - x + next.min(width)
    }

    /// Returns the first pixel of the tile's row of pixels in which pixel `i` is.
    #[inline]
    pub fn tile_begin(&self, i: usize, width: usize) -> usize {
        i - (i % width) % (1 << self.tile_bits)
    }
}

#[inline]
fn tile_at(i: usize, width: usize, tile_bits: u32, across: usize) -> usize {
    ((i / width) >> tile_bits) * across + ((i % width) >> tile_bits)
}
