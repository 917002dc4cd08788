//! Prefix codes: RFC 9649, section 3.7.2.1. Code lengths from counts, codes from lengths, and the
//! writing of lengths.

use super::bit_writer::BitWriter;
use std::ops::Range;

/// Longest code.
pub const MAX_CODE_LENGTH: u8 = 15;
/// Longest code of a code length, which is sent in three bits.
const MAX_LENGTH_CODE_LENGTH: u8 = 7;

/// The code of a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The bits, the first one lowest.
    pub bits: u16,
    /// Number of bits, 0 to [`MAX_CODE_LENGTH`].
    pub length: u8,
}

/// Returns the code lengths that minimize the bits of symbols with these counts, at most `limit`
/// each. Unused symbols get 0. A single symbol gets 1, though it takes no bits.
///
/// If a code is longer than `limit`, rare symbols are counted as more frequent ones, until none is.
pub fn code_lengths(counts: &[u32], limit: u8) -> Vec<u8> {
    let mut lengths = vec![0; counts.len()];
    // Sorted by count, then by symbol, so that every sorting algorithm gives the same order.
    let mut symbols: Vec<(u32, u32)> = (0..)
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, count)| (*count, symbol))
        .collect();
    if let [(_, symbol)] = symbols[..] {
        lengths[symbol as usize] = 1;
        return lengths;
    }
    symbols.sort_unstable();
    let mut least = 1;
    loop {
        let weights: Vec<u64> = symbols
            .iter()
            .map(|(count, _)| u64::from((*count).max(least)))
            .collect();
        let depths = depths(&weights);
        if depths.iter().all(|depth| *depth <= u32::from(limit)) {
            for ((_, symbol), depth) in symbols.iter().zip(depths) {
                lengths[*symbol as usize] = depth as u8;
            }
            return lengths;
        }
        least = least.saturating_mul(2);
    }
}

/// Returns the best of several sets of code lengths: the one that minimizes the bits of the symbols
/// plus the bits that [`write_lengths`] writes.
///
/// Huffman's lengths minimize the bits of the symbols alone. With few symbols, lower limits, and
/// counts that are made equal where they are similar, give lengths that repeat. These take less to
/// write than the symbols then lose: 1 to 3 % of pictures of up to 64 x 64 pixels, and 0.2 % of
/// those of 128 x 128.
pub fn cheapest_lengths(counts: &[u32]) -> Vec<u8> {
    /// With more symbols than this, the lengths are a negligible part.
    const MAX_SYMBOLS: u32 = 1 << 14;
    /// The largest difference of counts that are made equal.
    const TOLERANCES: [u32; 2] = [2, 6];
    /// Additional bits of the longest code, beyond those of a code with equal lengths.
    const MARGINS: Range<u32> = 0..3;
    let mut best = code_lengths(counts, MAX_CODE_LENGTH);
    let used = counts.iter().filter(|count| **count > 0).count();
    let is_simple = used < 3;
    if is_simple || counts.iter().sum::<u32>() > MAX_SYMBOLS {
        return best;
    }
    let mut least = total_bits(counts, &best);
    let mut consider = |lengths: Vec<u8>| {
        let bits = total_bits(counts, &lengths);
        if bits < least {
            least = bits;
            best = lengths;
        }
    };
    for margin in MARGINS {
        let limit = used.next_power_of_two().ilog2() + margin;
        consider(code_lengths(
            counts,
            limit.min(MAX_CODE_LENGTH.into()) as u8,
        ));
    }
    for tolerance in TOLERANCES {
        consider(code_lengths(&evened(counts, tolerance), MAX_CODE_LENGTH));
    }
    best
}

/// Returns the bits of the symbols and of the lengths; the code has at least two symbols.
fn total_bits(counts: &[u32], lengths: &[u8]) -> u64 {
    let mut bits = BitWriter::default();
    write_lengths(&mut bits, lengths);
    let symbols = counts.iter().zip(lengths);
    let symbols = symbols.map(|(count, length)| u64::from(*count) * u64::from(*length));
    bits.bits() as u64 + symbols.sum::<u64>()
}

/// Replaces each run of four or more similar counts by their mean. Counts are similar if they
/// differ by at most `tolerance`, or by `tolerance / 4` of the least. A run may contain up to three
/// unused symbols in a row.
fn evened(counts: &[u32], tolerance: u32) -> Vec<u32> {
    const MIN_RUN: usize = 4;
    const MAX_GAP: usize = 3;
    let mut evened = counts.to_vec();
    let mut begin = 0;
    while begin < counts.len() {
        let (mut least, mut most) = (counts[begin], counts[begin]);
        let mut end = begin + 1;
        let following = (end..).zip(&counts[end..]);
        for (at, &count) in following.filter(|(_, count)| **count > 0) {
            (least, most) = (least.min(count), most.max(count));
            let is_apart = most - least > tolerance.max(least * tolerance / 4);
            if at - end > MAX_GAP || is_apart {
                break;
            }
            end = at + 1;
        }
        let stretch = &mut evened[begin..end];
        if counts[begin] > 0 && stretch.len() >= MIN_RUN {
            let (sum, length) = (stretch.iter().sum::<u32>(), stretch.len() as u32);
            stretch.fill(((sum + length / 2) / length).max(1));
        }
        begin = if counts[begin] > 0 { end } else { begin + 1 };
    }
    evened
}

/// Returns the depth of each weight in their Huffman tree. The weights ascend.
fn depths(weights: &[u64]) -> Vec<u32> {
    let leaves = weights.len();
    if leaves < 2 {
        return vec![0; leaves];
    }
    // Leaves come first, then inner nodes in order of creation, in which their weights ascend too.
    let mut inner: Vec<u64> = Vec::with_capacity(leaves - 1);
    let mut parents = vec![0; 2 * leaves - 1];
    let (mut next_leaf, mut next_inner) = (0, 0);
    for node in 0..leaves - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let takes_leaf = next_leaf < leaves
                && inner
                    .get(next_inner)
                    .is_none_or(|inner| weights[next_leaf] <= *inner);
            if takes_leaf {
                weight += weights[next_leaf];
                parents[next_leaf] = node;
                next_leaf += 1;
            } else {
                weight += inner[next_inner];
                parents[leaves + next_inner] = node;
                next_inner += 1;
            }
        }
        inner.push(weight);
    }
    let mut inner_depths = vec![0; leaves - 1];
    for node in (0..leaves - 2).rev() {
        inner_depths[node] = inner_depths[parents[leaves + node]] + 1;
    }
    parents[..leaves]
        .iter()
        .map(|parent| inner_depths[*parent] + 1)
        .collect()
}

/// Returns the codes with these lengths: shorter codes first, and by symbol within a length. A
/// single symbol gets no bits.
pub fn codes(lengths: &[u8]) -> Vec<Code> {
    if lengths.iter().filter(|length| **length > 0).count() == 1 {
        return vec![Code::default(); lengths.len()];
    }
    let mut of_length = [0u16; MAX_CODE_LENGTH as usize + 1];
    for length in lengths {
        of_length[usize::from(*length)] += 1;
    }
    of_length[0] = 0;
    let mut next = [0u16; MAX_CODE_LENGTH as usize + 1];
    for length in 1..next.len() {
        next[length] = (next[length - 1] + of_length[length - 1]) << 1;
    }
    let code = |&length: &u8| {
        if length == 0 {
            return Code::default();
        }
        let value = &mut next[usize::from(length)];
        let bits = value.reverse_bits() >> (16 - length);
        *value += 1;
        Code { bits, length }
    };
    lengths.iter().map(code).collect()
}

/// Writes the code lengths, from which a decoder builds the code.
pub fn write_lengths(bits: &mut BitWriter, lengths: &[u8]) {
    let mut used = (0..).zip(lengths).filter(|(_, length)| **length > 0);
    let symbols =
        [used.next(), used.next(), used.next()].map(|used| used.map(|(symbol, _)| symbol));
    match symbols {
        [None, ..] => write_simple(bits, 0, None),
        [Some(one), None, _] if one < 256 => write_simple(bits, one, None),
        [Some(one), Some(other), None] if other < 256 => write_simple(bits, one, Some(other)),
        _ => write_normal(bits, lengths),
    }
}

/// Writes a simple code length code (section 3.7.2.1.1).
fn write_simple(bits: &mut BitWriter, one: u32, other: Option<u32>) {
    bits.put_flag(true);
    bits.put_flag(other.is_some());
    let width = if one < 2 { 1 } else { 8 };
    bits.put_flag(width == 8);
    bits.put(one, width);
    if let Some(other) = other {
        bits.put(other, 8);
    }
}

/// A symbol of a normal code length code: a length, or a run of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LengthToken {
    /// The length, or the kind of run.
    symbol: u8,
    /// The length of the run, less the shortest one.
    extra: u8,
}

/// Repeats the last nonzero length three to six times.
const REPEAT: u8 = 16;
/// Three to ten zeros.
const FEW_ZEROS: u8 = 17;
/// Eleven to 138 zeros.
const MANY_ZEROS: u8 = 18;
/// Number of symbols of a code length code.
const LENGTH_CODES: usize = 19;

/// Returns the number of extra bits of a symbol.
fn extra_bits(symbol: u8) -> u32 {
    match symbol {
        REPEAT => 2,
        FEW_ZEROS => 3,
        MANY_ZEROS => 7,
        _ => 0,
    }
}

/// Writes a normal code length code (section 3.7.2.1.2).
fn write_normal(bits: &mut BitWriter, lengths: &[u8]) {
    /// The order in which the lengths of the code length code are sent, rare ones last.
    const ORDER: [usize; LENGTH_CODES] = [
        17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    ];
    /// Number of them that are always sent.
    const MIN_SENT: usize = 4;
    let tokens = length_tokens(lengths);
    let mut counts = [0; LENGTH_CODES];
    for token in &tokens {
        counts[usize::from(token.symbol)] += 1;
    }
    let code_lengths = code_lengths(&counts, MAX_LENGTH_CODE_LENGTH);
    let codes = codes(&code_lengths);
    let sent = ORDER
        .iter()
        .rposition(|symbol| code_lengths[*symbol] > 0)
        .map_or(MIN_SENT, |last| MIN_SENT.max(last + 1));
    bits.put_flag(false);
    bits.put((sent - MIN_SENT) as u32, 4);
    for symbol in &ORDER[..sent] {
        bits.put(u32::from(code_lengths[*symbol]), 3);
    }

    let cost = |token: &LengthToken| {
        u32::from(codes[usize::from(token.symbol)].length) + extra_bits(token.symbol)
    };
    let is_zero = |token: &LengthToken| matches!(token.symbol, 0 | FEW_ZEROS | MANY_ZEROS);
    let kept = tokens
        .iter()
        .rposition(|token| !is_zero(token))
        .map_or(0, |last| last + 1)
        .max(2);
    let zeros: u32 = tokens[kept.min(tokens.len())..].iter().map(cost).sum();
    // The number of symbols, less 2, takes an even number of bits; the three bits before it hold
    // half of that number, less 1.
    let count_bits = ((kept as u32 - 2).checked_ilog2().unwrap_or(0) / 2 + 1) * 2;
    let is_cut = zeros > 3 + count_bits;
    bits.put_flag(is_cut);
    if is_cut {
        bits.put(count_bits / 2 - 1, 3);
        bits.put(kept as u32 - 2, count_bits);
    }
    let written = if is_cut { kept } else { tokens.len() };
    for token in &tokens[..written] {
        let code = codes[usize::from(token.symbol)];
        bits.put(u32::from(code.bits), u32::from(code.length));
        bits.put(u32::from(token.extra), extra_bits(token.symbol));
    }
}

/// Converts lengths to symbols of the code length code, with the longest possible runs.
fn length_tokens(lengths: &[u8]) -> Vec<LengthToken> {
    let mut tokens = Vec::new();
    let mut push = |symbol: u8, extra: usize| {
        tokens.push(LengthToken {
            symbol,
            extra: extra as u8,
        });
    };
    // The length that a repetition at the start refers to.
    let mut last = 8;
    for run in lengths.chunk_by(|a, b| a == b) {
        let (value, mut left) = (run[0], run.len());
        if value == 0 {
            while left >= 11 {
                let count = left.min(138);
                push(MANY_ZEROS, count - 11);
                left -= count;
            }
            if left >= 3 {
                push(FEW_ZEROS, left - 3);
                left = 0;
            }
        } else {
            if value != last {
                push(value, 0);
                last = value;
                left -= 1;
            }
            while left >= 3 {
                let count = left.min(6);
                push(REPEAT, count - 3);
                left -= count;
            }
        }
        for _ in 0..left {
            push(value, 0);
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn lengths_are_those_of_huffmans_tree() {
        // The tree of 5, 2, 1, 1 has depths 1, 2, 3, 3.
        assert_eq!(code_lengths(&[5, 0, 2, 1, 1], 15), [1, 0, 2, 3, 3]);
        assert_eq!(code_lengths(&[1, 1, 1, 1], 15), [2, 2, 2, 2]);
        assert_eq!(code_lengths(&[0, 7, 0], 15), [0, 1, 0]);
        assert_eq!(code_lengths(&[0, 0], 15), [0, 0]);
        assert_eq!(code_lengths(&[3, 9], 15), [1, 1]);
    }

    /// 128 symbols, some twice or three times as often as others: equal lengths of 7 take next to
    /// nothing to write.
    #[test]
    fn lengths_that_repeat_are_taken_where_that_is_cheaper() {
        let scattered: Vec<u32> = (0..128).map(|symbol| 1 + symbol * symbol / 7 % 3).collect();
        let [huffman, cheapest] = [code_lengths(&scattered, 15), cheapest_lengths(&scattered)];
        assert_eq!(cheapest, [7; 128]);
        let [most, least] = [&huffman, &cheapest].map(|lengths| total_bits(&scattered, lengths));
        assert!(least < most, "{least} bits of {most}");
        let mut random = Random::new(1);
        for symbols in 3..200 {
            let counts: Vec<u32> = (0..symbols)
                .map(|_| random.below(256).saturating_sub(200) >> random.below(8))
                .chain([1, 0, 5, 9])
                .collect();
            let lengths = cheapest_lengths(&counts);
            let space: u32 = lengths
                .iter()
                .filter(|l| **l > 0)
                .map(|l| 1 << (15 - l))
                .sum();
            assert_eq!(space, 1 << 15, "{symbols} symbols: a code that is whole");
            let has_all = counts.iter().zip(&lengths).all(|(n, l)| *n == 0 || *l > 0);
            assert!(has_all, "{symbols} symbols: all have codes");
            let huffman = code_lengths(&counts, MAX_CODE_LENGTH);
            assert!(
                total_bits(&counts, &lengths) <= total_bits(&counts, &huffman),
                "{symbols} symbols"
            );
        }
    }

    #[test]
    fn similar_counts_become_equal_except_across_wide_gaps() {
        assert_eq!(
            evened(&[0, 3, 4, 0, 0, 5, 0, 90, 1, 0, 0, 0, 0, 1], 2),
            [0, 2, 2, 2, 2, 2, 0, 90, 1, 0, 0, 0, 0, 1]
        );
        assert_eq!(evened(&[0; 5], 2), [0; 5]);
        assert_eq!(evened(&[7, 7, 7], 2), [7, 7, 7], "too short");
    }

    #[test]
    fn codes_count_up_within_a_length() {
        // The example of RFC 1951, section 3.2.2: lengths 3, 3, 3, 3, 3, 2, 4, 4.
        let expected = [0b010, 0b011, 0b100, 0b101, 0b110, 0b00, 0b1110, 0b1111];
        let lengths = [3, 3, 3, 3, 3, 2, 4, 4];
        for ((code, expected), length) in codes(&lengths).iter().zip(expected).zip(lengths) {
            assert_eq!(code.length, length);
            assert_eq!(code.bits.reverse_bits() >> (16 - length), expected);
        }
        assert_eq!(codes(&[0, 1, 0])[1].length, 0, "a single symbol");
    }

    #[test]
    fn no_code_is_longer_than_the_limit_and_all_are_used_up() {
        let mut fibonacci = vec![1u32, 1];
        while fibonacci.len() < 40 {
            fibonacci.push(fibonacci[fibonacci.len() - 1] + fibonacci[fibonacci.len() - 2]);
        }
        for limit in [7, 15] {
            for count in 2..=40.min(1 << limit) {
                let lengths = code_lengths(&fibonacci[..count], limit);
                assert!(lengths.iter().all(|l| (1..=limit).contains(l)), "{count}");
                let space: u32 = lengths.iter().map(|l| 1 << (limit - l)).sum();
                assert_eq!(space, 1 << limit, "{count} symbols, limit {limit}");
            }
        }
        assert_eq!(code_lengths(&fibonacci[..16], 15).iter().max(), Some(&15));
    }

    #[test]
    fn runs_of_lengths() {
        let token = |symbol, extra| LengthToken { symbol, extra };
        let mut lengths = vec![8; 4];
        lengths.extend([3; 8]);
        lengths.extend([0; 2]);
        lengths.extend([3; 3]);
        lengths.extend([0; 138 + 3]);
        let expected = [
            token(REPEAT, 1),
            token(3, 0),
            token(REPEAT, 3),
            token(3, 0),
            token(0, 0),
            token(0, 0),
            token(REPEAT, 0),
            token(MANY_ZEROS, 127),
            token(FEW_ZEROS, 0),
        ];
        assert_eq!(length_tokens(&lengths), expected);
    }

    #[test]
    fn simple_codes_bit_by_bit() {
        let written = |lengths: &[u8]| {
            let mut bits = BitWriter::default();
            write_lengths(&mut bits, lengths);
            bits.finish()
        };
        assert_eq!(written(&[0; 4]), [0b0001], "none: symbol 0, in one bit");
        assert_eq!(written(&[0, 1]), [0b1001], "symbol 1, in one bit");
        assert_eq!(written(&[0, 0, 0, 1]), [0b0001_1101, 0], "3, in 8 bits");
        assert_eq!(
            written(&[1, 0, 1]),
            [0b0010_0011, 0],
            "0 in one bit, 2 in 8"
        );
    }
}
