//! The quantized coefficients of a macroblock, the contexts of its blocks, and the packed form in
//! which levels are kept until they are written: RFC 6386, section 13.

use super::token::BlockKind;
use super::token_counts::TokenCounts;

/// Whether each block of a neighboring macroblock has coefficients: four luma, two Cb, two Cr, and
/// Y2 (section 13.3). The macroblock above counts by columns, the one to the left by rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonzeroFlags {
    /// Luma, by column or row.
    pub luma: [bool; 4],
    /// Cb and Cr, by column or row.
    pub chroma: [[bool; 2]; 2],
    /// The most recent Y2 block; not every macroblock has one.
    pub y2: bool,
}

impl NonzeroFlags {
    /// Moves on past a macroblock without coefficients. If it has no Y2 block, the flag of Y2
    /// stays.
    pub fn clear(&mut self, has_y2: bool) {
        *self = NonzeroFlags {
            y2: self.y2 && !has_y2,
            ..NonzeroFlags::default()
        };
    }
}

/// The quantized coefficients of a macroblock, each block in zigzag order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The sixteen luma blocks in raster order.
    pub luma: [[i16; 16]; 16],
    /// The four blocks of Cb, then the four of Cr.
    pub chroma: [[[i16; 16]; 4]; 2],
    /// The DCs of luma; used by Intra16 only.
    pub y2: [i16; 16],
    /// End of block: one past the last nonzero position, of each luma block.
    pub luma_eobs: [u8; 16],
    /// End of block of each chroma block.
    pub chroma_eobs: [[u8; 4]; 2],
    /// End of block of Y2.
    pub y2_eob: u8,
}

impl Levels {
    /// All zero.
    pub const ZERO: Levels = Levels {
        luma: [[0; 16]; 16],
        chroma: [[[0; 16]; 4]; 2],
        y2: [0; 16],
        luma_eobs: [0; 16],
        chroma_eobs: [[0; 4]; 2],
        y2_eob: 0,
    };

    /// Whether all blocks are empty. With `has_y2`, luma blocks start at position 1.
    pub fn is_empty(&self, has_y2: bool) -> bool {
        let first = u8::from(has_y2);
        self.luma_eobs.iter().all(|&n| n <= first)
            && self.chroma_eobs.as_flattened().iter().all(|&n| n == 0)
            && (!has_y2 || self.y2_eob == 0)
    }

    /// Counts the tokens of all blocks in `counts`, appends the blocks to `packed`, and updates the
    /// contexts. A coefficient takes about a byte: a block is its end of block and its levels, and
    /// a level is one byte or, beyond ±127, [`ESCAPE`] and two bytes.
    #[inline(always)]
    pub fn pack(
        &self,
        has_y2: bool,
        above: &mut NonzeroFlags,
        left: &mut NonzeroFlags,
        counts: &mut TokenCounts,
        packed: &mut Vec<u8>,
    ) {
        for_each_block(
            has_y2,
            above,
            left,
            #[inline(always)]
            |kind, index, context| {
                let (levels, eob) = match kind {
                    BlockKind::Y2 => (&self.y2, self.y2_eob),
                    BlockKind::Luma | BlockKind::LumaAfterY2 => {
                        (&self.luma[index], self.luma_eobs[index])
                    }
                    BlockKind::Chroma => (
                        &self.chroma.as_flattened()[index],
                        self.chroma_eobs.as_flattened()[index],
                    ),
                };
                let eob = usize::from(eob);
                let small = pack_block(levels, kind.first(), eob, packed);
                counts.count_block(kind, &small, eob, context);
                eob
            },
        );
    }
}

/// Announces a level of two bytes.
pub const ESCAPE: i8 = i8::MIN;

/// Appends a block to `packed`. Returns its levels, clamped to ±127.
#[inline(always)]
pub fn pack_block(levels: &[i16; 16], first: usize, eob: usize, packed: &mut Vec<u8>) -> [i8; 16] {
    let mut small = [0; 16];
    let mut is_small = true;
    for (small, &level) in small.iter_mut().zip(levels) {
        let clamped = level.clamp(-127, 127);
        is_small &= clamped == level;
        *small = clamped as i8;
    }
    if is_small {
        let all = small.map(|level| level as u8);
        let mut after_dc = [0; 16];
        after_dc[..15].copy_from_slice(&all[1..]);
        packed.push(eob as u8);
        // Copying a fixed length is faster.
        let length = packed.len() + eob.saturating_sub(first);
        packed.extend_from_slice(if first == 0 { &all } else { &after_dc });
        packed.truncate(length);
        return small;
    }
    packed.push(eob as u8);
    for &level in levels.iter().take(eob).skip(first) {
        match i8::try_from(level) {
            Ok(small) if small != ESCAPE => packed.push(small as u8),
            _ => {
                packed.push(ESCAPE as u8);
                packed.extend(level.to_le_bytes());
            }
        }
    }
    small
}

/// Calls `visit` with the kind, the index within the kind and the context of each block of a
/// macroblock, in bitstream order. `visit` returns the end of block, which updates `above` and
/// `left`.
#[inline(always)]
pub fn for_each_block(
    has_y2: bool,
    above: &mut NonzeroFlags,
    left: &mut NonzeroFlags,
    mut visit: impl FnMut(BlockKind, usize, usize) -> usize,
) {
    let luma = if has_y2 {
        let context = usize::from(above.y2) + usize::from(left.y2);
        let has_levels = visit(BlockKind::Y2, 0, context) > 0;
        (above.y2, left.y2) = (has_levels, has_levels);
        BlockKind::LumaAfterY2
    } else {
        BlockKind::Luma
    };
    for index in 0..16 {
        let (above, left) = (&mut above.luma[index % 4], &mut left.luma[index / 4]);
        let context = usize::from(*above) + usize::from(*left);
        let has_levels = visit(luma, index, context) > luma.first();
        (*above, *left) = (has_levels, has_levels);
    }
    for index in 0..8 {
        let (plane, row, column) = (index / 4, index / 2 % 2, index % 2);
        let (above, left) = (
            &mut above.chroma[plane][column],
            &mut left.chroma[plane][row],
        );
        let context = usize::from(*above) + usize::from(*left);
        let has_levels = visit(BlockKind::Chroma, index, context) > 0;
        (*above, *left) = (has_levels, has_levels);
    }
}

/// Returns the end of block: one past the last nonzero position of `levels`.
pub fn eob_of(levels: &[i16; 16]) -> u8 {
    levels
        .iter()
        .rposition(|&level| level != 0)
        .map_or(0, |last| last as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a block from the front of `packed`. Returns its levels and its end of block.
    fn unpack_block(packed: &mut &[u8], first: usize) -> ([i16; 16], usize) {
        let mut next = || {
            let (&byte, rest) = packed.split_first().expect("more bytes were packed");
            *packed = rest;
            byte
        };
        let eob = usize::from(next());
        let mut levels = [0; 16];
        for level in levels.iter_mut().take(eob).skip(first) {
            let byte = next() as i8;
            *level = if byte == ESCAPE {
                i16::from_le_bytes([next(), next()])
            } else {
                i16::from(byte)
            };
        }
        (levels, eob)
    }

    #[test]
    fn packing_is_undone_by_unpacking() {
        let mut levels = Levels::ZERO;
        for (i, block) in levels.luma.iter_mut().enumerate() {
            block[1 + i % 15] = [1, -1, 127, -127, -128, 128, 2047, -2047][i % 8];
        }
        levels.y2 = [-2047, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2047];
        levels.chroma[1][3][0] = -128;
        levels.luma_eobs = levels.luma.map(|block| eob_of(&block));
        levels.chroma_eobs = levels.chroma.map(|plane| plane.map(|block| eob_of(&block)));
        levels.y2_eob = eob_of(&levels.y2);
        let mut packed = Vec::new();
        let mut contexts = (NonzeroFlags::default(), NonzeroFlags::default());
        let counts = &mut TokenCounts::new();
        levels.pack(true, &mut contexts.0, &mut contexts.1, counts, &mut packed);
        let mut rest = packed.as_slice();
        let y2 = (&levels.y2, levels.y2_eob, 0);
        let luma = levels.luma.iter().zip(levels.luma_eobs);
        let chroma = levels.chroma.as_flattened().iter();
        let chroma = chroma.zip(levels.chroma_eobs.into_iter().flatten());
        let blocks = [y2]
            .into_iter()
            .chain(luma.map(|(levels, eob)| (levels, eob, 1)))
            .chain(chroma.map(|(levels, eob)| (levels, eob, 0)));
        for (levels, eob, first) in blocks {
            assert_eq!(unpack_block(&mut rest, first), (*levels, usize::from(eob)));
        }
        assert!(rest.is_empty(), "{} bytes left", rest.len());
    }
}
