//! The cost of each symbol, estimated from how often it occurs (RFC 9649, section 3.7.2).

use super::entropy::{BIT_SHIFT, log2};
use super::histogram;
use super::huffman::{self, MAX_CODE_LENGTH};
use super::prefix::{self, DISTANCE_SYMBOLS, LENGTH_SYMBOLS};

/// Cost of each symbol, in 1 / [`BIT`](super::entropy::BIT) bits.
#[derive(Clone, Debug)]
pub struct CostModel {
    /// Costs of all symbols, extra bits not included.
    pub symbols: Vec<u32>,
    /// Costs of the length symbols, extra bits included.
    pub lengths: [u32; LENGTH_SYMBOLS],
    /// Costs of the distance symbols, extra bits included.
    distances: [u32; DISTANCE_SYMBOLS],
}

impl CostModel {
    /// Derives the costs from the symbols' counts, for codes that are not known yet.
    pub fn new(counts: &[u32]) -> CostModel {
        let mut symbols = vec![0; counts.len()];
        for alphabet in histogram::alphabets(counts.len()) {
            let of = &counts[alphabet.clone()];
            let total: u32 = of.iter().sum();
            let used = of.iter().filter(|count| **count > 0).count();
            for (cost, &count) in symbols[alphabet].iter_mut().zip(of) {
                // A symbol that did not occur costs as one that occurred once.
                *cost = if used < 2 && count > 0 {
                    0
                } else {
                    (log2(total + 1) - log2(count)) >> (16 - BIT_SHIFT)
                };
            }
        }
        CostModel::with_extra_bits(symbols)
    }

    /// The costs in the prefix codes for symbols with these counts.
    pub fn of_codes(counts: &[u32]) -> CostModel {
        let mut model = CostModel::new(counts);
        for alphabet in histogram::alphabets(counts.len()) {
            let of = &counts[alphabet.clone()];
            let lengths = huffman::code_lengths(of, MAX_CODE_LENGTH);
            let is_single = of.iter().filter(|count| **count > 0).count() < 2;
            for (cost, length) in model.symbols[alphabet].iter_mut().zip(lengths) {
                if length > 0 && !is_single {
                    *cost = u32::from(length) << BIT_SHIFT;
                }
            }
        }
        CostModel::with_extra_bits(model.symbols)
    }

    fn with_extra_bits(symbols: Vec<u32>) -> CostModel {
        let with_extra =
            |symbol: u32, at: usize| symbols[at] + (prefix::extra_bits(symbol) << BIT_SHIFT);
        CostModel {
            lengths: std::array::from_fn(|s| with_extra(s as u32, histogram::length(s as u32))),
            distances: std::array::from_fn(|s| with_extra(s as u32, histogram::distance(s as u32))),
            symbols,
        }
    }

    /// Returns the total cost of `symbols`.
    #[inline]
    pub fn bits(&self, symbols: &[usize]) -> u32 {
        symbols.iter().map(|symbol| self.symbols[*symbol]).sum()
    }

    #[inline]
    pub fn literal(&self, color: u32) -> u32 {
        self.bits(&histogram::literal(color))
    }

    #[inline]
    pub fn length(&self, length: usize) -> u32 {
        self.lengths[prefix::length_symbol(length) as usize]
    }

    #[inline]
    pub fn distance(&self, code: u32) -> u32 {
        self.distances[prefix::prefixed(code).symbol as usize]
    }
}
