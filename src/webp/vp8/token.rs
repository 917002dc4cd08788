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

/// How often each token occurs in each place.
#[derive(Clone)]
pub struct TokenCounts {
    /// By kind, band, context and token: the levels 0 to 4, the six categories, and the end of the block.
    tokens: Box<[[[[u32; 12]; 3]; 8]; 4]>,
    /// By kind: blocks that do not end at once, though their neighbours have no coefficients. Elsewhere, context 0
    /// means that a zero came before, where no block may end.
    starts: [u32; 4],
}

/// How often each node of the token tree was taken to either side: by kind, band, context, node, side.
pub type NodeCounts = [[[[[u64; 2]; 11]; 3]; 8]; 4];

/// The token of each level up to the first of the last category.
const TOKENS: [u8; 68] = {
    let mut tokens = [0; 68];
    let mut level = 1;
    while level < 68 {
        let mut token = if level < 5 { level } else { 4 };
        let mut category = 0;
        while category < 6 {
            if level >= CATEGORIES[category].base as usize {
                token = 5 + category;
            }
            category += 1;
        }
        tokens[level] = token as u8;
        level += 1;
    }
    tokens
};

/// The token that ends a block.
const END: usize = 11;

impl TokenCounts {
    /// No tokens yet.
    pub fn new() -> TokenCounts {
        TokenCounts {
            tokens: Box::new([[[[0; 12]; 3]; 8]; 4]),
            starts: [0; 4],
        }
    }

    /// Counts the tokens of a block; arguments as of [`write_block`].
    #[inline]
    pub fn count_block(
        &mut self,
        kind: BlockKind,
        levels: &[i16; 16],
        count: usize,
        context: usize,
    ) {
        let first = kind.first();
        let bands = &mut self.tokens[kind as usize];
        let mut tokens = &mut bands[BANDS[first]][context];
        if count <= first {
            tokens[END] += 1;
            return;
        }
        self.starts[kind as usize] += u32::from(context == 0);
        let sent = levels.iter().zip(&BANDS[1..]).take(count).skip(first);
        for (level, &next_band) in sent {
            let magnitude = usize::from(level.unsigned_abs());
            tokens[usize::from(TOKENS[magnitude.min(TOKENS.len() - 1)])] += 1;
            tokens = &mut bands[next_band][magnitude.min(2)];
        }
        if count < 16 {
            tokens[END] += 1;
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &TokenCounts) {
        let ours = self.tokens.as_flattened_mut().as_flattened_mut();
        let theirs = other.tokens.as_flattened().as_flattened();
        for (a, b) in ours
            .as_flattened_mut()
            .iter_mut()
            .zip(theirs.as_flattened())
        {
            *a += b;
        }
        for (a, b) in self.starts.iter_mut().zip(other.starts) {
            *a += b;
        }
    }

    /// The nodes that [`write_block`] takes for the tokens.
    pub fn nodes(&self) -> Box<NodeCounts> {
        let mut nodes: Box<NodeCounts> = Box::new([[[[[0; 2]; 11]; 3]; 8]; 4]);
        for (kind, bands) in self.tokens.iter().enumerate() {
            for (band, contexts) in bands.iter().enumerate() {
                for (context, tokens) in contexts.iter().enumerate() {
                    nodes[kind][band][context] = nodes_of(tokens);
                }
                nodes[kind][band][0][0][1] = 0;
            }
        }
        for kind in [
            BlockKind::LumaAfterY2,
            BlockKind::Y2,
            BlockKind::Chroma,
            BlockKind::Luma,
        ] {
            nodes[kind as usize][BANDS[kind.first()]][0][0][1] =
                u64::from(self.starts[kind as usize]);
        }
        nodes
    }
}

/// How often tokens take each node to either side, where a block may end before each of them.
fn nodes_of(tokens: &[u32; 12]) -> [[u64; 2]; 11] {
    let sum = |range: std::ops::Range<usize>| tokens[range].iter().copied().map(u64::from).sum();
    [
        [sum(END..12), sum(0..END)],
        [sum(0..1), sum(1..END)],
        [sum(1..2), sum(2..END)],
        [sum(2..5), sum(5..END)],
        [sum(2..3), sum(3..5)],
        [sum(3..4), sum(4..5)],
        [sum(5..7), sum(7..END)],
        [sum(5..6), sum(6..7)],
        [sum(7..9), sum(9..END)],
        [sum(7..8), sum(8..9)],
        [sum(9..10), sum(10..END)],
    ]
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

    /// Counts the blocks' tokens, appends the blocks to `packed`, and moves the contexts on. In about a byte for each
    /// coefficient that is sent: each block as its count and its levels, each level as one byte or, beyond ±127, as
    /// [`ESCAPE`] and two.
    pub fn pack(
        &self,
        has_y2: bool,
        above: &mut NonZero,
        left: &mut NonZero,
        counts: &mut TokenCounts,
        packed: &mut Vec<u8>,
    ) {
        for_each_block(has_y2, above, left, |kind, index, context| {
            let (levels, count) = match kind {
                BlockKind::Y2 => (&self.y2, self.y2_count),
                BlockKind::Luma | BlockKind::LumaAfterY2 => {
                    (&self.luma[index], self.luma_counts[index])
                }
                BlockKind::Chroma => (
                    &self.chroma.as_flattened()[index],
                    self.chroma_counts.as_flattened()[index],
                ),
            };
            let count = usize::from(count);
            counts.count_block(kind, levels, count, context);
            pack_block(levels, kind.first(), count, packed);
            count
        });
    }
}

/// Says that a level of two bytes follows.
const ESCAPE: i8 = i8::MIN;

fn pack_block(levels: &[i16; 16], first: usize, count: usize, packed: &mut Vec<u8>) {
    let mut block = [0; 17];
    block[0] = count as u8;
    let mut is_small = true;
    for (byte, &level) in block[1..].iter_mut().zip(levels) {
        is_small &= (-127..=127).contains(&level);
        *byte = level as u8;
    }
    if is_small {
        // Whole blocks of a fixed length are quicker to copy. The count stands where a first level is not sent.
        let length = packed.len() + 1 + count.saturating_sub(first);
        block[first] = count as u8;
        packed.extend_from_slice(&block[first..]);
        packed.truncate(length);
        return;
    }
    packed.push(count as u8);
    for &level in levels.iter().take(count).skip(first) {
        match i8::try_from(level) {
            Ok(small) if small != ESCAPE => packed.push(small as u8),
            _ => {
                packed.push(ESCAPE as u8);
                packed.extend(level.to_le_bytes());
            }
        }
    }
}

/// Writes the blocks of a macroblock, which [`Levels::pack`] appended, from the front of `packed`, and moves the contexts on.
pub fn write_packed(
    packed: &mut &[u8],
    encoder: &mut BoolEncoder,
    probabilities: &CoefficientProbabilities,
    has_y2: bool,
    above: &mut NonZero,
    left: &mut NonZero,
) {
    for_each_block(has_y2, above, left, |kind, _, context| {
        let first = kind.first();
        let (levels, count) = unpack_block(packed, first);
        let probabilities = &probabilities[kind as usize];
        write_block(encoder, probabilities, &levels, first, count, context);
        count
    });
}

/// Takes a block from the front of `packed`: its levels and its count.
fn unpack_block(packed: &mut &[u8], first: usize) -> ([i16; 16], usize) {
    let mut next = || {
        let (&byte, rest) = packed
            .split_first()
            .expect("as many bytes were packed as are unpacked");
        *packed = rest;
        byte
    };
    let count = usize::from(next());
    let mut levels = [0; 16];
    for level in levels.iter_mut().take(count).skip(first) {
        let byte = next() as i8;
        *level = if byte == ESCAPE {
            i16::from_le_bytes([next(), next()])
        } else {
            i16::from(byte)
        };
    }
    (levels, count)
}

/// Calls `visit` with the kind, the index within the kind and the context of each block of a macroblock, in the order in
/// which blocks are sent. It gives the block's count, by which `above` and `left` move on.
#[inline(always)]
fn for_each_block(
    has_y2: bool,
    above: &mut NonZero,
    left: &mut NonZero,
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

/// One past the last position of `levels` that is not zero.
pub fn count_of(levels: &[i16; 16]) -> u8 {
    levels
        .iter()
        .rposition(|&level| level != 0)
        .map_or(0, |last| last as u8 + 1)
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
        let mut packed = Vec::new();
        let mut contexts = (NonZero::default(), NonZero::default());
        let counts = &mut TokenCounts::new();
        levels.pack(true, &mut contexts.0, &mut contexts.1, counts, &mut packed);
        let mut rest = packed.as_slice();
        let y2 = (&levels.y2, levels.y2_count, 0);
        let luma = levels.luma.iter().zip(levels.luma_counts);
        let chroma = levels.chroma.as_flattened().iter();
        let chroma = chroma.zip(levels.chroma_counts.into_iter().flatten());
        let blocks = [y2]
            .into_iter()
            .chain(luma.map(|(levels, count)| (levels, count, 1)))
            .chain(chroma.map(|(levels, count)| (levels, count, 0)));
        for (levels, count, first) in blocks {
            assert_eq!(
                unpack_block(&mut rest, first),
                (*levels, usize::from(count))
            );
        }
        assert!(rest.is_empty(), "{} bytes left", rest.len());
    }

    #[test]
    fn counting_takes_the_nodes_that_writing_takes() {
        // Writing asks for a probability at each node that it takes.
        let places = [
            (BlockKind::LumaAfterY2, 1),
            (BlockKind::Luma, 0),
            (BlockKind::Chroma, 2),
        ];
        for (kind, context) in places {
            for level in (0..300).chain([2047]) {
                let mut levels = [level; 16];
                levels[3] = 0;
                levels[9..].fill(0);
                let count = usize::from(count_of(&levels));
                let mut counts = TokenCounts::new();
                counts.count_block(kind, &levels, count, context);
                let nodes = counts.nodes();

                // A probability of its own for each node shows in what is written.
                let cost_of = |bands: &BandProbabilities| {
                    let mut encoder = BoolEncoder::with_capacity(0);
                    write_block(&mut encoder, bands, &levels, kind.first(), count, context);
                    encoder.finish()
                };
                let even = cost_of(&[[[128; 11]; 3]; 8]);
                for band in 0..8 {
                    for context in 0..3 {
                        for node in 0..11 {
                            let mut bands = [[[128; 11]; 3]; 8];
                            bands[band][context][node] = 7;
                            let [zeros, ones] = nodes[kind as usize][band][context][node];
                            assert_eq!(
                                cost_of(&bands) != even,
                                zeros + ones > 0,
                                "{kind:?}, level {level}: node {node} of band {band}, context {context}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn counted_nodes_give_the_length_of_what_is_written() {
        let mut state = 5u32;
        let mut counts = TokenCounts::new();
        let mut encoder = BoolEncoder::with_capacity(0);
        let bands = &crate::webp::vp8::tables::DEFAULT_PROBABILITIES[BlockKind::Luma as usize];
        let mut fixed = 0;
        for block in 0..4000 {
            let levels: [i16; 16] = std::array::from_fn(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let magnitude = (state >> 20) as i16 >> (i / 2 + (state >> 16 & 7) as usize);
                magnitude.min(66)
            });
            let count = usize::from(count_of(&levels));
            counts.count_block(BlockKind::Luma, &levels, count, block % 3);
            write_block(&mut encoder, bands, &levels, 0, count, block % 3);
            for level in levels.into_iter().take(count) {
                let mut extra = 0;
                write_level(level, &[0; 11], &mut |_, probability| {
                    extra += if probability == 0 { 0 } else { 1 };
                });
                fixed += extra;
            }
        }
        let nodes = counts.nodes();
        let mut bits = 0.0;
        for band in 0..8 {
            for context in 0..3 {
                for node in 0..11 {
                    let p = f64::from(bands[band][context][node]) / 256.0;
                    let [zeros, ones] = nodes[BlockKind::Luma as usize][band][context][node];
                    bits -= zeros as f64 * p.log2() + ones as f64 * (1.0 - p).log2();
                }
            }
        }
        // Signs cost a bit, extra bits a little less.
        let written = encoder.finish().len() as f64 * 8.0;
        let most = bits + f64::from(fixed);
        assert!(
            (most * 0.98..=most * 1.005).contains(&written),
            "{written} bits written, {most} counted"
        );
    }
}
