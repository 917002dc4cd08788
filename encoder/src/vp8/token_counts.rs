//! How often tokens occur (RFC 6386, section 13). The probabilities are fitted to these counts.

use super::tables::BANDS;
use super::token::{BlockKind, CATEGORIES};

/// How often each token occurs in each context.
#[derive(Clone)]
pub struct TokenCounts {
    /// By kind, band, context and token: the levels 0 to 4, the six categories, and the end of
    /// block. The dimensions are powers of two, and the last context and the last four tokens
    /// unused, so that the bits of an index are those of band, context and token.
    tokens: Box<[[[[u32; 16]; 4]; 8]; 4]>,
    /// By kind: nonempty blocks in context 0. Elsewhere, context 0 means that the level before is
    /// zero, after which no end of block can follow.
    starts: [u32; 4],
}

/// How often each node of the token tree takes either branch: by kind, band, context, node, branch.
///
/// A picture of the largest size has 400 million tokens.
pub type NodeCounts = [[[[[u32; 2]; 11]; 3]; 8]; 4];

/// Each level from -127 to 127, as an unsigned byte: its token, and from bit 8 on the context that
/// it sets.
static TOKENS: [u16; 256] = {
    let mut tokens = [0; 256];
    let mut level = 1;
    while level < 128 {
        let mut token = if level < 5 { level } else { 4 };
        let mut category = 0;
        while category < 6 {
            if level >= CATEGORIES[category].base as usize {
                token = 5 + category;
            }
            category += 1;
        }
        let context = if level < 2 { level } else { 2 };
        tokens[level] = (token | context << 8) as u16;
        tokens[256 - level] = tokens[level];
        level += 1;
    }
    tokens
};

/// The index of the band of each zigzag position in the counts of a kind.
const ROWS: [u16; 17] = {
    let mut rows = [0; 17];
    let mut position = 0;
    while position < 17 {
        rows[position] = (BANDS[position] << 6) as u16;
        position += 1;
    }
    rows
};

/// The index of the end-of-block token.
const END_OF_BLOCK: usize = 11;

impl TokenCounts {
    /// No tokens.
    pub fn new() -> TokenCounts {
        TokenCounts {
            tokens: Box::new([[[[0; 16]; 4]; 8]; 4]),
            starts: [0; 4],
        }
    }

    /// Counts the tokens of a block. `levels` are in zigzag order, clamped to ±127, and zero from
    /// `eob` on. `context` is the number of neighbors, above and to the left, that have
    /// coefficients.
    #[inline]
    pub fn count_block(&mut self, kind: BlockKind, levels: &[i8; 16], eob: usize, context: usize) {
        let first = kind.first();
        let counts = self.tokens[kind as usize]
            .as_flattened_mut()
            .as_flattened_mut();
        let mut row = ROWS[first] | (context as u16) << 4;
        if eob <= first {
            counts[usize::from(row) | END_OF_BLOCK] += 1;
            return;
        }
        self.starts[kind as usize] += u32::from(context == 0);
        let sent = levels[first..eob].iter().zip(&ROWS[first + 1..]);
        for (&level, next_row) in sent {
            let token = TOKENS[usize::from(level as u8)];
            counts[usize::from(row | token & 15)] += 1;
            row = next_row | token >> 4;
        }
        if eob < 16 {
            counts[usize::from(row) | END_OF_BLOCK] += 1;
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

    /// Returns how often each node of the token tree takes either branch.
    pub fn nodes(&self) -> Box<NodeCounts> {
        let mut nodes: Box<NodeCounts> = Box::new([[[[[0; 2]; 11]; 3]; 8]; 4]);
        for (kind, bands) in self.tokens.iter().enumerate() {
            for (band, contexts) in bands.iter().enumerate() {
                for (context, tokens) in contexts[..3].iter().enumerate() {
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
            nodes[kind as usize][BANDS[kind.first()]][0][0][1] = self.starts[kind as usize];
        }
        nodes
    }
}

/// Returns the branch counts of the nodes in a context where each token may be an end of block.
fn nodes_of(tokens: &[u32; 16]) -> [[u32; 2]; 11] {
    let sum = |range: std::ops::Range<usize>| tokens[range].iter().sum();
    [
        [sum(END_OF_BLOCK..12), sum(0..END_OF_BLOCK)],
        [sum(0..1), sum(1..END_OF_BLOCK)],
        [sum(1..2), sum(2..END_OF_BLOCK)],
        [sum(2..5), sum(5..END_OF_BLOCK)],
        [sum(2..3), sum(3..5)],
        [sum(3..4), sum(4..5)],
        [sum(5..7), sum(7..END_OF_BLOCK)],
        [sum(5..6), sum(6..7)],
        [sum(7..9), sum(9..END_OF_BLOCK)],
        [sum(7..8), sum(8..9)],
        [sum(9..10), sum(10..END_OF_BLOCK)],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Simd;
    use crate::testing::Random;
    use crate::vp8::bool_encoder::{BoolBuffer, BoolEncoder};
    use crate::vp8::levels::{eob_of, pack_block};
    use crate::vp8::tables::{BandProbabilities, DEFAULT_PROBABILITIES};
    use crate::vp8::token::write_level;
    use crate::vp8::token_writer::TokenWriter;

    #[test]
    fn counting_takes_the_nodes_that_writing_takes() {
        // The writer reads a probability at each node that a token visits.
        let places = [
            (BlockKind::LumaAfterY2, 1),
            (BlockKind::Luma, 0),
            (BlockKind::Chroma, 2),
        ];
        for (kind, context) in places {
            for level in [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 18, 19, 34, 35, 66, 67, 2047] {
                let mut levels = [level; 16];
                levels[3] = 0;
                levels[9..].fill(0);
                let eob = usize::from(eob_of(&levels));
                let mut packed = Vec::new();
                let small = pack_block(&levels, kind.first(), eob, &mut packed);
                let mut counts = TokenCounts::new();
                counts.count_block(kind, &small, eob, context);
                let nodes = counts.nodes();

                // If only one node's probability differs, the output differs only if that node is
                // visited.
                let written = |bands: BandProbabilities| {
                    let mut bools = BoolBuffer::default();
                    let probabilities = [bands; 4];
                    let writer = TokenWriter::new(&probabilities);
                    writer.append_block(&mut bools, kind, &mut packed.as_slice(), context);
                    bools.as_slice().to_vec()
                };
                let even = written([[[128; 11]; 3]; 8]);
                for band in 0..8 {
                    for context in 0..3 {
                        for node in 0..11 {
                            let mut bands = [[[128; 11]; 3]; 8];
                            bands[band][context][node] = 7;
                            let [zeros, ones] = nodes[kind as usize][band][context][node];
                            assert_eq!(
                                written(bands) != even,
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
        let mut random = Random::new(5);
        let mut counts = TokenCounts::new();
        let mut bools = BoolBuffer::default();
        let bands = &DEFAULT_PROBABILITIES[BlockKind::Luma as usize];
        let writer = TokenWriter::new(&DEFAULT_PROBABILITIES);
        let mut fixed = 0;
        for block in 0..4000 {
            let levels: [i16; 16] = std::array::from_fn(|i| {
                let magnitude = random.below(1 << 12) as i16 >> (i / 2 + random.index(8));
                magnitude.min(66)
            });
            let eob = usize::from(eob_of(&levels));
            let mut packed = Vec::new();
            let small = pack_block(&levels, 0, eob, &mut packed);
            counts.count_block(BlockKind::Luma, &small, eob, block % 3);
            let packed = &mut packed.as_slice();
            writer.append_block(&mut bools, BlockKind::Luma, packed, block % 3);
            for level in levels.into_iter().take(eob) {
                let mut extra = 0;
                write_level(level, &[0; 11], &mut |_, probability| {
                    extra += i32::from(probability != 0);
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
                    bits -= f64::from(zeros) * p.log2() + f64::from(ones) * (1.0 - p).log2();
                }
            }
        }
        // A sign costs one bit, an extra bit slightly less.
        let mut encoder = BoolEncoder::with_capacity(0);
        encoder.write_all(bools.as_slice(), Simd::SCALAR);
        let written = encoder.finish().len() as f64 * 8.0;
        let most = bits + f64::from(fixed);
        assert!(
            (most * 0.98..=most * 1.005).contains(&written),
            "{written} bits written, {most} counted"
        );
    }
}
