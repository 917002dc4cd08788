//! Coefficients as tokens, and the contexts that tokens depend on: RFC 6386, section 13.

use super::bool_encoder::BoolEncoder;
use super::tables::{BANDS, BandProbabilities, CoefficientProbabilities};

/// The four kinds of block that have probabilities of their own (section 13.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Luma whose DC went to the Y2 block: starts at position 1.
    LumaAfterY2 = 0,
    /// The DCs of sixteen luma blocks.
    Y2 = 1,
    /// U or V.
    Chroma = 2,
    /// Luma with its DC, in macroblocks predicted by subblocks.
    Luma = 3,
}

impl BlockKind {
    /// The first zigzag position that is sent.
    pub const fn first(self) -> usize {
        matches!(self, BlockKind::LumaAfterY2) as usize
    }
}

/// A range of levels that share a token and differ in extra bits (section 13.2).
pub struct Category {
    /// The lowest level.
    pub base: u32,
    /// Probabilities of the extra bits, highest bit first.
    pub probabilities: &'static [u8],
}

/// The six categories.
pub const CATEGORIES: [Category; 6] = [
    Category {
        base: 5,
        probabilities: &[159],
    },
    Category {
        base: 7,
        probabilities: &[165, 145],
    },
    Category {
        base: 11,
        probabilities: &[173, 148, 140],
    },
    Category {
        base: 19,
        probabilities: &[176, 155, 140, 135],
    },
    Category {
        base: 35,
        probabilities: &[180, 157, 141, 134, 130],
    },
    Category {
        base: 67,
        probabilities: &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
    },
];

/// Sends the token, extra bits and sign of `level` to `write(value, probability)`, without the boolean
/// that says that the block goes on.
#[inline]
pub fn write_level(level: i16, p: &[u8; 11], write: &mut impl FnMut(bool, u8)) {
    let magnitude = u32::from(level.unsigned_abs());
    write(magnitude > 0, p[1]);
    if magnitude == 0 {
        return;
    }
    write(magnitude > 1, p[2]);
    if magnitude > 1 {
        write(magnitude > 4, p[3]);
        if magnitude <= 4 {
            write(magnitude > 2, p[4]);
            if magnitude > 2 {
                write(magnitude > 3, p[5]);
            }
        } else {
            write_category(magnitude, p, write);
        }
    }
    write(level < 0, 128);
}

fn write_category(magnitude: u32, p: &[u8; 11], write: &mut impl FnMut(bool, u8)) {
    let index = match magnitude {
        0..=6 => 0,
        7..=10 => 1,
        11..=18 => 2,
        19..=34 => 3,
        35..=66 => 4,
        _ => 5,
    };
    write(index > 1, p[6]);
    if index <= 1 {
        write(index == 1, p[7]);
    } else {
        write(index > 3, p[8]);
        write(index % 2 == 1, p[if index > 3 { 10 } else { 9 }]);
    }
    let Category {
        base,
        probabilities,
    } = &CATEGORIES[index];
    let offset = magnitude - base;
    for (i, &probability) in probabilities.iter().enumerate() {
        write(
            offset >> (probabilities.len() - 1 - i) & 1 != 0,
            probability,
        );
    }
}

/// Writes a block: `levels` in zigzag order, of which `count` positions (from 0) are sent and the rest
/// are zero. `context` is how many of the neighbours above and to the left have coefficients.
pub fn write_block(
    encoder: &mut BoolEncoder,
    probabilities: &BandProbabilities,
    levels: &[i16; 16],
    first: usize,
    count: usize,
    context: usize,
) {
    let mut p = &probabilities[BANDS[first]][context];
    if count <= first {
        encoder.write(false, p[0]);
        return;
    }
    let mut after_zero = false;
    for position in first..count {
        if !after_zero {
            encoder.write(true, p[0]);
        }
        let level = levels[position];
        write_level(level, p, &mut |value, probability| {
            encoder.write(value, probability);
        });
        after_zero = level == 0;
        p = &probabilities[BANDS[position + 1]][usize::from(level.unsigned_abs()).min(2)];
    }
    if count < 16 {
        encoder.write(false, p[0]);
    }
}

/// How often each node of the token tree was taken to either side.
#[derive(Clone)]
pub struct TokenCounts {
    /// By kind.
    pub nodes: Box<[BandCounts; 4]>,
}

/// Counts within one kind of block: by band, context, node, side.
pub type BandCounts = [[[[u32; 2]; 11]; 3]; 8];

impl TokenCounts {
    /// No tokens yet.
    pub fn new() -> TokenCounts {
        TokenCounts {
            nodes: Box::new([[[[[0; 2]; 11]; 3]; 8]; 4]),
        }
    }

    /// Counts the tokens of a block; arguments as of [`write_block`].
    pub fn count_block(
        &mut self,
        kind: BlockKind,
        levels: &[i16; 16],
        count: usize,
        context: usize,
    ) {
        let first = kind.first();
        let bands = &mut self.nodes[kind as usize];
        let mut nodes = &mut bands[BANDS[first]][context];
        if count <= first {
            nodes[0][0] += 1;
            return;
        }
        let mut after_zero = false;
        for position in first..count {
            if !after_zero {
                nodes[0][1] += 1;
            }
            let magnitude = levels[position].unsigned_abs();
            count_level(nodes, magnitude);
            after_zero = magnitude == 0;
            nodes = &mut bands[BANDS[position + 1]][usize::from(magnitude).min(2)];
        }
        if count < 16 {
            nodes[0][0] += 1;
        }
    }
}

impl TokenCounts {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &TokenCounts) {
        for (ours, theirs) in self.nodes.iter_mut().zip(other.nodes.iter()) {
            let ours = ours
                .as_flattened_mut()
                .as_flattened_mut()
                .as_flattened_mut();
            let theirs = theirs.as_flattened().as_flattened().as_flattened();
            for (a, b) in ours.iter_mut().zip(theirs) {
                *a += b;
            }
        }
    }
}

/// Counts the nodes that [`write_level`] takes.
#[inline]
fn count_level(nodes: &mut [[u32; 2]; 11], magnitude: u16) {
    let mut take = |node: usize, value: bool| nodes[node][usize::from(value)] += 1;
    take(1, magnitude > 0);
    if magnitude == 0 {
        return;
    }
    take(2, magnitude > 1);
    if magnitude == 1 {
        return;
    }
    take(3, magnitude > 4);
    if magnitude <= 4 {
        take(4, magnitude > 2);
        if magnitude > 2 {
            take(5, magnitude > 3);
        }
        return;
    }
    take(6, magnitude >= 11);
    if magnitude < 11 {
        take(7, magnitude >= 7);
        return;
    }
    take(8, magnitude >= 35);
    if magnitude < 35 {
        take(9, magnitude >= 19);
    } else {
        take(10, magnitude >= 67);
    }
}

/// Which blocks of the macroblocks above or to the left have coefficients: four luma, two U, two V,
/// and Y2 (section 13.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZero {
    /// Four columns or rows of luma.
    pub luma: [bool; 4],
    /// Two columns or rows each of U and V.
    pub chroma: [[bool; 2]; 2],
    /// The last Y2 block, which not every macroblock has.
    pub y2: bool,
}

impl NonZero {
    /// After a macroblock without coefficients: Y2 stays as it was where there is none.
    pub fn clear(&mut self, has_y2: bool) {
        *self = NonZero {
            y2: self.y2 && !has_y2,
            ..NonZero::default()
        };
    }
}

/// The quantized coefficients of a macroblock, each block in zigzag order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The sixteen luma blocks in raster order.
    pub luma: [[i16; 16]; 16],
    /// Four blocks of U, four of V.
    pub chroma: [[[i16; 16]; 4]; 2],
    /// The luma DCs, where prediction is of the whole block.
    pub y2: [i16; 16],
    /// One past the last position of each block that is not zero.
    pub luma_counts: [u8; 16],
    /// As `luma_counts`.
    pub chroma_counts: [[u8; 4]; 2],
    /// As `luma_counts`.
    pub y2_count: u8,
}

impl Levels {
    /// All zero.
    pub const ZERO: Levels = Levels {
        luma: [[0; 16]; 16],
        chroma: [[[0; 16]; 4]; 2],
        y2: [0; 16],
        luma_counts: [0; 16],
        chroma_counts: [[0; 4]; 2],
        y2_count: 0,
    };

    /// Whether there is nothing to send. `has_y2`: luma blocks start at position 1.
    pub fn is_empty(&self, has_y2: bool) -> bool {
        let first = u8::from(has_y2);
        self.luma_counts.iter().all(|&n| n <= first)
            && self.chroma_counts.as_flattened().iter().all(|&n| n == 0)
            && (!has_y2 || self.y2_count == 0)
    }

    /// Calls `visit` for each block in the order in which blocks are sent, and moves `above` and
    /// `left` on.
    pub fn for_each_block(
        &self,
        has_y2: bool,
        above: &mut NonZero,
        left: &mut NonZero,
        mut visit: impl FnMut(BlockKind, &[i16; 16], usize, usize),
    ) {
        let kind = if has_y2 {
            let count = usize::from(self.y2_count);
            visit(
                BlockKind::Y2,
                &self.y2,
                count,
                usize::from(above.y2) + usize::from(left.y2),
            );
            above.y2 = count > 0;
            left.y2 = count > 0;
            BlockKind::LumaAfterY2
        } else {
            BlockKind::Luma
        };
        for (i, levels) in self.luma.iter().enumerate() {
            let (row, column) = (i / 4, i % 4);
            let count = usize::from(self.luma_counts[i]);
            let context = usize::from(above.luma[column]) + usize::from(left.luma[row]);
            visit(kind, levels, count, context);
            above.luma[column] = count > kind.first();
            left.luma[row] = count > kind.first();
        }
        for plane in 0..2 {
            for (i, levels) in self.chroma[plane].iter().enumerate() {
                let (row, column) = (i / 2, i % 2);
                let count = usize::from(self.chroma_counts[plane][i]);
                let context =
                    usize::from(above.chroma[plane][column]) + usize::from(left.chroma[plane][row]);
                visit(BlockKind::Chroma, levels, count, context);
                above.chroma[plane][column] = count > 0;
                left.chroma[plane][row] = count > 0;
            }
        }
    }

    /// Writes the blocks and moves the contexts on.
    pub fn write(
        &self,
        encoder: &mut BoolEncoder,
        probabilities: &CoefficientProbabilities,
        has_y2: bool,
        above: &mut NonZero,
        left: &mut NonZero,
    ) {
        self.for_each_block(has_y2, above, left, |kind, levels, count, context| {
            write_block(
                encoder,
                &probabilities[kind as usize],
                levels,
                kind.first(),
                count,
                context,
            );
        });
    }
}

/// One past the last position of `levels` that is not zero.
pub fn count_of(levels: &[i16; 16]) -> u8 {
    levels
        .iter()
        .rposition(|&level| level != 0)
        .map_or(0, |last| last as u8 + 1)
}

/// Appends `levels` to `bytes`, in about a byte for each coefficient that is sent: each block as its
/// count and its levels, each level as one byte or, beyond ±127, as [`ESCAPE`] and two.
pub fn pack(levels: &Levels, has_y2: bool, bytes: &mut Vec<u8>) {
    let mut nothing = (NonZero::default(), NonZero::default());
    levels.for_each_block(
        has_y2,
        &mut nothing.0,
        &mut nothing.1,
        |kind, levels, count, _| {
            bytes.push(count as u8);
            for &level in levels.iter().take(count).skip(kind.first()) {
                match i8::try_from(level) {
                    Ok(small) if small != ESCAPE => bytes.push(small as u8),
                    _ => {
                        bytes.push(ESCAPE as u8);
                        bytes.extend(level.to_le_bytes());
                    }
                }
            }
        },
    );
}

/// Says that a level of two bytes follows.
const ESCAPE: i8 = i8::MIN;

/// Takes what [`pack`] appended from the front of `bytes`.
pub fn unpack(bytes: &mut &[u8], has_y2: bool) -> Levels {
    let mut next = || {
        let (&first, rest) = bytes
            .split_first()
            .expect("pack wrote as many bytes as unpack reads");
        *bytes = rest;
        first
    };
    let mut block = |first: usize| {
        let count = next();
        let mut levels = [0; 16];
        for level in levels.iter_mut().take(usize::from(count)).skip(first) {
            let byte = next() as i8;
            *level = if byte == ESCAPE {
                i16::from_le_bytes([next(), next()])
            } else {
                i16::from(byte)
            };
        }
        (levels, count)
    };
    let mut all = Levels::ZERO;
    if has_y2 {
        (all.y2, all.y2_count) = block(0);
    }
    for i in 0..16 {
        (all.luma[i], all.luma_counts[i]) = block(usize::from(has_y2));
    }
    for plane in 0..2 {
        for i in 0..4 {
            (all.chroma[plane][i], all.chroma_counts[plane][i]) = block(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_undone_by_unpacking() {
        let mut levels = Levels::ZERO;
        for (i, block) in levels.luma.iter_mut().enumerate() {
            block[1 + i % 15] = [1, -1, 127, -127, -128, 128, 2047, -2047][i % 8];
        }
        levels.y2 = [-2047, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2047];
        levels.chroma[1][3][0] = -128;
        levels.luma_counts = levels.luma.map(|block| count_of(&block));
        levels.chroma_counts = levels
            .chroma
            .map(|plane| plane.map(|block| count_of(&block)));
        levels.y2_count = count_of(&levels.y2);
        let mut bytes = Vec::new();
        pack(&levels, true, &mut bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(unpack(&mut rest, true), levels);
        assert!(rest.is_empty(), "{} bytes left", rest.len());
    }

    #[test]
    fn counting_takes_the_nodes_that_writing_takes() {
        // Each node that write_level asks for a probability is one that count_level counts.
        for level in (0..300).chain([2047]) {
            let probabilities = [100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110];
            let mut written = [[0u32; 2]; 11];
            write_level(level, &probabilities, &mut |value, probability| {
                if (100..111).contains(&probability) {
                    written[usize::from(probability) - 100][usize::from(value)] += 1;
                }
            });
            let mut counted = [[0u32; 2]; 11];
            count_level(&mut counted, level.unsigned_abs());
            assert_eq!(counted, written, "level {level}");
        }
    }
}
