//! Writes coefficients as booleans: RFC 6386, sections 13.2 and 13.3.

use super::bool_encoder::{Bool, BoolBuffer, BoolRun};
use super::levels::{ESCAPE, NonzeroFlags, for_each_block};
use super::tables::{BANDS, CoefficientProbabilities};
use super::token::{BlockKind, CATEGORIES, write_level};

/// Writes tokens with one set of probabilities.
pub struct TokenWriter {
    /// By kind and context.
    kinds: Vec<[TokenRuns; 32]>,
}

/// The booleans in one context: those of the levels from -4 to 4, of the six categories without
/// their extra bits and signs, and of the end of block. Levels and categories begin with "not end
/// of block" where it is sent.
///
/// The index of a context is its band times 4, plus 0 to 2. In contexts 1 and 2, that is after a
/// nonzero coefficient, "not end of block" is sent. Index [`START`] is the start of a block in
/// context 0, where it is sent, too.
type TokenRuns = [BoolRun; 16];

const START: usize = 3;
const FIRST_CATEGORY: usize = 9;
const END_OF_BLOCK: usize = 15;

/// Of each level from -127 to 127, as an unsigned byte: its index in [`TokenRuns`], and from bit 8
/// on the context that it sets. The escape has that of the last category.
static TOKENS: [u16; 256] = {
    let mut tokens = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let level = byte as u8 as i8;
        let magnitude = level.unsigned_abs() as usize;
        let token = if magnitude <= MAX_TABULATED {
            (level + MAX_TABULATED as i8) as usize
        } else {
            FIRST_CATEGORY + category_of(magnitude)
        };
        let context = if magnitude < 2 { magnitude } else { 2 };
        tokens[byte] = (token | context << 8) as u16;
        byte += 1;
    }
    tokens
};

/// The largest magnitude that has a run of its own.
const MAX_TABULATED: usize = 4;

/// At least the booleans of a block: "not end of block", up to six of a token, eleven extra bits
/// and a sign for each of 16 levels, an end of block, and the entries that copies of runs touch.
const MAX_BOOLS: usize = 16 * 19 + 1 + 8;

/// At least the booleans of a macroblock: 25 blocks at most.
pub const MACROBLOCK_BOOLS: usize = 25 * MAX_BOOLS;

/// The extra bits and the sign of the levels 5 to 66, by sign.
static EXTRA_RUNS: [[BoolRun; 2]; 62] = {
    let mut runs = [[BoolRun::EMPTY; 2]; 62];
    let mut i = 0;
    while i < 2 * runs.len() {
        let (magnitude, is_negative) = (5 + i / 2, i % 2 != 0);
        let category = &CATEGORIES[category_of(magnitude)];
        let offset = magnitude - category.base as usize;
        let run = &mut runs[i / 2][i % 2];
        let mut bit = category.probabilities.len();
        while bit > 0 {
            bit -= 1;
            let probability = category.probabilities[category.probabilities.len() - 1 - bit];
            run.push(Bool::new(offset >> bit & 1 != 0, probability));
        }
        run.push(Bool::new(is_negative, 128));
        i += 1;
    }
    runs
};

/// Returns the category of a level of magnitude `magnitude`, 5 at least.
#[inline(always)]
const fn category_of(magnitude: usize) -> usize {
    match magnitude {
        0..=6 => 0,
        7..=10 => 1,
        11..=18 => 2,
        19..=34 => 3,
        35..=66 => 4,
        _ => 5,
    }
}

impl TokenWriter {
    /// Tabulates the booleans of all tokens.
    pub fn new(probabilities: &CoefficientProbabilities) -> TokenWriter {
        let mut kinds = vec![[[BoolRun::EMPTY; 16]; 32]; 4];
        let all_kinds = [
            BlockKind::LumaAfterY2,
            BlockKind::Y2,
            BlockKind::Chroma,
            BlockKind::Luma,
        ];
        for kind in all_kinds {
            let (contexts, bands) = (&mut kinds[kind as usize], &probabilities[kind as usize]);
            for (band, probabilities) in bands.iter().enumerate() {
                for (context, probabilities) in probabilities.iter().enumerate() {
                    contexts[band * 4 + context] = token_runs(probabilities, context > 0);
                }
            }
            contexts[START] = token_runs(&bands[BANDS[kind.first()]][0], true);
        }
        TokenWriter { kinds }
    }

    /// Appends the blocks of a macroblock to `bools`, and updates the contexts. Takes the blocks
    /// from the front of `packed`, as [`Levels::pack`](super::levels::Levels::pack) wrote them.
    pub fn append_macroblock(
        &self,
        bools: &mut BoolBuffer,
        packed: &mut &[u8],
        has_y2: bool,
        above: &mut NonzeroFlags,
        left: &mut NonzeroFlags,
    ) {
        for_each_block(has_y2, above, left, |kind, _, context| {
            self.append_block(bools, kind, packed, context)
        });
    }

    /// Appends a block to `bools`, and returns its end of block. Takes it from the front of
    /// `packed`. `context` is the number of neighbors, above and to the left, that have
    /// coefficients.
    #[inline(always)]
    pub fn append_block(
        &self,
        bools: &mut BoolBuffer,
        kind: BlockKind,
        packed: &mut &[u8],
        context: usize,
    ) -> usize {
        let contexts = &self.kinds[kind as usize];
        let first = kind.first();
        let mut bytes = *packed;
        let eob = usize::from(next_byte(&mut bytes));
        let start = match context {
            0 => START,
            _ => BANDS[first] * 4 + context,
        };
        bools.append(MAX_BOOLS, |out| {
            let mut length = 0;
            let mut runs = &contexts[start];
            for next_band in &BANDS[first + 1..=eob.max(first)] {
                let byte = next_byte(&mut bytes);
                let token = usize::from(TOKENS[usize::from(byte)]);
                let (run, context) = (token & 15, token >> 8);
                length = runs[run].write_to(out, length);
                if run >= FIRST_CATEGORY {
                    length = write_extra(byte as i8, &mut bytes, out, length);
                }
                runs = &contexts[(next_band * 4 + context) & 31];
            }
            if eob < 16 {
                length = runs[END_OF_BLOCK].write_to(out, length);
            }
            length
        });
        *packed = bytes;
        eob
    }
}

/// Returns the runs in a context with probabilities `p`. `sends_not_end` is whether tokens begin
/// with "not end of block" there.
fn token_runs(p: &[u8; 11], sends_not_end: bool) -> TokenRuns {
    let bases = CATEGORIES.each_ref().map(|category| category.base as i16);
    let tabulated = MAX_TABULATED as i16;
    let mut runs = [BoolRun::EMPTY; 16];
    for (level, run) in (-tabulated..=tabulated).chain(bases).zip(&mut runs) {
        if sends_not_end {
            run.push(Bool::new(true, p[0]));
        }
        // Of a category, only the booleans before the extra bits: five up to the second category.
        let mut kept = match level {
            5..11 => 5,
            _ => 6,
        };
        write_level(level, p, &mut |value, probability| {
            if kept > 0 {
                kept -= 1;
                run.push(Bool::new(value, probability));
            }
        });
    }
    runs[END_OF_BLOCK].push(Bool::new(false, p[0]));
    runs
}

/// Writes the extra bits and the sign of a level beyond [`MAX_TABULATED`] to `out` from entry `at`
/// on, and returns the entry after them. If `byte` is the escape, the level is taken from the front
/// of `bytes`.
#[inline(never)]
fn write_extra(byte: i8, bytes: &mut &[u8], out: &mut [Bool], at: usize) -> usize {
    let level = if byte == ESCAPE {
        i16::from_le_bytes([next_byte(bytes), next_byte(bytes)])
    } else {
        i16::from(byte)
    };
    let magnitude = usize::from(level.unsigned_abs());
    if let Some(runs) = EXTRA_RUNS.get(magnitude - 5) {
        return runs[usize::from(level < 0)].write_to(out, at);
    }
    let category = &CATEGORIES[5];
    let offset = magnitude - category.base as usize;
    let bits = (0..category.probabilities.len()).rev();
    let mut at = at;
    for (bit, &probability) in bits.zip(category.probabilities) {
        out[at] = Bool::new(offset >> bit & 1 != 0, probability);
        at += 1;
    }
    out[at] = Bool::new(level < 0, 128);
    at + 1
}

#[inline(always)]
fn next_byte(bytes: &mut &[u8]) -> u8 {
    let (&byte, rest) = bytes
        .split_first()
        .expect("as many bytes were packed as are taken");
    *bytes = rest;
    byte
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use crate::vp8::levels::{eob_of, pack_block};
    use crate::vp8::tables::DEFAULT_PROBABILITIES;

    #[test]
    fn tables_give_the_booleans_of_each_level() {
        let writer = TokenWriter::new(&DEFAULT_PROBABILITIES);
        let mut random = Random::new(6);
        for i in 0..20_000 {
            let kind = [BlockKind::LumaAfterY2, BlockKind::Luma][i % 2];
            let (first, range) = (kind.first(), 1 + random.below(12));
            let mut levels = [0; 16];
            for level in &mut levels[first..first + random.index(17 - first)] {
                let bits = random.below(range);
                let magnitude = random.below(1 << bits) as i16;
                *level = if random.below(2) == 0 {
                    magnitude
                } else {
                    -magnitude
                };
            }
            let (eob, start) = (usize::from(eob_of(&levels)), random.index(3));
            let mut packed = Vec::new();
            pack_block(&levels, first, eob, &mut packed);
            packed.push(77);
            let mut rest = packed.as_slice();
            let mut bools = BoolBuffer::default();
            bools.push(Bool::new(true, 9));
            assert_eq!(writer.append_block(&mut bools, kind, &mut rest, start), eob);
            assert_eq!(rest, [77], "what follows the block");

            let probabilities = &DEFAULT_PROBABILITIES[kind as usize];
            let mut expected = vec![Bool::new(true, 9)];
            let (mut context, mut may_end) = (start, true);
            for position in first..eob {
                let p = &probabilities[BANDS[position]][context];
                if may_end {
                    expected.push(Bool::new(true, p[0]));
                }
                let level = levels[position];
                write_level(level, p, &mut |value, probability| {
                    expected.push(Bool::new(value, probability));
                });
                context = usize::from(level.unsigned_abs()).min(2);
                may_end = level != 0;
            }
            if eob < 16 {
                let position = eob.max(first);
                expected.push(Bool::new(false, probabilities[BANDS[position]][context][0]));
            }
            assert_eq!(
                bools.as_slice(),
                expected,
                "{kind:?}, {levels:?} in context {start}"
            );
        }
    }
}
