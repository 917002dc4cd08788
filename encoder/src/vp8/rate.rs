//! Bit costs of booleans and coefficients: RFC 6386, sections 7.1, 13.2 and 13.3.

use super::tables::{BANDS, CoefficientProbabilities};
use super::token::{BlockKind, CATEGORIES};

/// A number of bits, times 256.
pub type BitCost = u32;

/// Costs of booleans that had probability `n / 256`, by `n`.
const COSTS: [u16; 257] = {
    let mut costs = [0; 257];
    let mut n = 1;
    while n <= 256 {
        costs[n] = negative_log2(n as u64);
        n += 1;
    }
    costs
};

/// Returns `-256 log2(n / 256)`, rounded, in integer arithmetic, which is the same on every
/// machine.
const fn negative_log2(n: u64) -> u16 {
    // `n = mantissa * 2^whole` with the mantissa in [1, 2), at 31 fractional bits.
    let whole = n.ilog2();
    let mut mantissa = n << (31 - whole);
    let mut fraction = 0u64;
    let mut bit = 0;
    while bit < 16 {
        // Squaring doubles the logarithm; its integer bit is the next bit of the fraction.
        mantissa = (mantissa * mantissa) >> 31;
        fraction <<= 1;
        if mantissa >= 1 << 32 {
            mantissa >>= 1;
            fraction |= 1;
        }
        bit += 1;
    }
    let log2 = ((whole as u64) << 16) + fraction;
    (((8 << 16) - log2 + 128) >> 8) as u16
}

/// Returns the cost of [`BoolEncoder::write`](super::bool_encoder::BoolEncoder::write).
#[inline(always)]
pub const fn bit_cost(value: bool, probability: u8) -> BitCost {
    let likelihood = if value {
        256 - probability as usize
    } else {
        probability as usize
    };
    COSTS[likelihood] as BitCost
}

/// Number of levels with a table entry: up to 67, the first level of the last category. The further
/// cost of higher levels is in [`EXTRA_COSTS`].
const TABLED_LEVELS: usize = 68;

/// The largest level that a token can express: 67 and eleven bits (RFC 6386, section 13.2).
pub const MAX_LEVEL: i32 = 2047;

/// Costs of the eleven extra bits of the last category, by the level's distance from 67, less the
/// cost at distance 0, which the tables already include.
static EXTRA_COSTS: [i16; MAX_LEVEL as usize + 1 - 67] = {
    let mut costs = [0; MAX_LEVEL as usize + 1 - 67];
    let base = extra_cost(5, 0) as i32;
    let mut i = 0;
    while i < costs.len() {
        costs[i] = (extra_cost(5, i as u32) as i32 - base) as i16;
        i += 1;
    }
    costs
};

/// Cost of the extra bits `offset` of category `index` (0 to 5).
const fn extra_cost(index: usize, offset: u32) -> BitCost {
    let probabilities = CATEGORIES[index].probabilities;
    let mut cost = 0;
    let mut i = 0;
    while i < probabilities.len() {
        let bit = offset >> (probabilities.len() - 1 - i) & 1 != 0;
        cost += bit_cost(bit, probabilities[i]);
        i += 1;
    }
    cost
}

/// For each level, its token (levels 0 to 4, then the categories) and the cost of extra bits and
/// sign.
static TOKENS: [(u8, u16); TABLED_LEVELS] = {
    const SIGN: BitCost = 256;
    let mut tokens = [(0, 0); TABLED_LEVELS];
    let mut category = 0;
    let mut level = 1;
    while level < TABLED_LEVELS {
        tokens[level] = if level < 5 {
            (level as u8, SIGN as u16)
        } else {
            while category + 1 < CATEGORIES.len() && level >= CATEGORIES[category + 1].base as usize
            {
                category += 1;
            }
            let extra = extra_cost(category, level as u32 - CATEGORIES[category].base);
            (5 + category as u8, (SIGN + extra) as u16)
        };
        level += 1;
    }
    tokens
};

/// Returns the costs of the tokens, without "not end of block".
fn token_costs(probabilities: &[u8; 11]) -> [BitCost; 11] {
    let p = |node: usize, value: bool| bit_cost(value, probabilities[node]);
    let more = p(1, true);
    let several = more + p(2, true);
    let few = several + p(3, false);
    let low = several + p(3, true) + p(6, false);
    let high = several + p(3, true) + p(6, true);
    let (middle, top) = (high + p(8, false), high + p(8, true));
    [
        p(1, false),
        more + p(2, false),
        few + p(4, false),
        few + p(4, true) + p(5, false),
        few + p(4, true) + p(5, true),
        low + p(7, false),
        low + p(7, true),
        middle + p(9, false),
        middle + p(9, true),
        top + p(10, false),
        top + p(10, true),
    ]
}

/// Costs of every level in every context, for one set of probabilities.
pub struct CoefficientCosts {
    kinds: Box<[KindCosts; 4]>,
}

/// Costs within one kind of block.
pub struct KindCosts {
    /// By position, context and level. They include the sign, and "not end of block" where it is
    /// sent: in contexts 1 and 2, that is after a nonzero coefficient.
    levels: [[LevelCosts; 3]; 16],
    /// Cost of "not end of block" at the first position (0 or 1), in context 0.
    starts: [u16; 2],
    /// Cost of "end of block", by position and context; 0 after the last position.
    ends: [[u16; 3]; 17],
    /// Cost of "end of block" after a level, by the level's position and the context that it sets:
    /// that of zero can not end a block.
    ends_after: [[BitCost; 3]; 16],
    /// Cost of zeros at all positions before each one, in context 0.
    zeros: [BitCost; 17],
    /// Least cost in any context of level 1, of level 2, and of all levels above, by position.
    least: [[i32; 16]; 3],
}

/// The upper bound of [`KindCosts::least_by_level`]: with it, all products with a lambda fit into
/// 31 bits.
const MAX_LEAST: i32 = 8191;

/// The cost of what can not be sent: more than any block costs.
const IMPOSSIBLE: BitCost = 1 << 24;

/// Costs of the levels at one position in one context.
#[derive(Clone, Copy)]
pub struct LevelCosts([u16; TABLED_LEVELS]);

impl LevelCosts {
    /// Returns the cost of a level of magnitude `level`, 0 to [`MAX_LEVEL`].
    #[inline(always)]
    pub fn of(&self, level: usize) -> BitCost {
        if level < TABLED_LEVELS {
            return BitCost::from(self.0[level]);
        }
        let extra = EXTRA_COSTS[level - (TABLED_LEVELS - 1)];
        (i32::from(self.0[TABLED_LEVELS - 1]) + i32::from(extra)) as BitCost
    }
}

impl LevelCosts {
    /// Returns the costs of `level` and of `level - 1`; `level` is 1 to [`MAX_LEVEL`].
    #[inline(always)]
    pub fn pair(&self, level: usize) -> [BitCost; 2] {
        if level < TABLED_LEVELS {
            return [
                BitCost::from(self.0[level]),
                BitCost::from(self.0[level - 1]),
            ];
        }
        self.high_pair(level)
    }

    #[cold]
    fn high_pair(&self, level: usize) -> [BitCost; 2] {
        [self.of(level), self.of(level - 1)]
    }
}

impl CoefficientCosts {
    /// Computes the costs from `probabilities`.
    pub fn new(probabilities: &CoefficientProbabilities) -> CoefficientCosts {
        let kinds = std::array::from_fn(|kind| KindCosts::new(&probabilities[kind]));
        CoefficientCosts {
            kinds: Box::new(kinds),
        }
    }

    /// Returns the costs within blocks of `kind`.
    #[inline(always)]
    pub fn of(&self, kind: BlockKind) -> &KindCosts {
        &self.kinds[kind as usize]
    }
}

impl KindCosts {
    fn new(probabilities: &[[[u8; 11]; 3]; 8]) -> KindCosts {
        let by_band = probabilities.map(|contexts| {
            std::array::from_fn(|context| LevelCosts::new(&contexts[context], context))
        });
        let not_eob = |position: usize| bit_cost(true, probabilities[BANDS[position]][0][0]) as u16;
        let ends = |position: usize, context: usize| match position {
            16 => 0,
            _ => bit_cost(false, probabilities[BANDS[position]][context][0]) as u16,
        };
        let mut zeros = [0; 17];
        for position in 0..16 {
            zeros[position + 1] = zeros[position] + by_band[BANDS[position]][0].of(0);
        }
        KindCosts {
            levels: std::array::from_fn(|position| by_band[BANDS[position]]),
            starts: std::array::from_fn(not_eob),
            ends_after: std::array::from_fn(|position| {
                std::array::from_fn(|context| match context {
                    0 => IMPOSSIBLE,
                    _ => BitCost::from(ends(position + 1, context)),
                })
            }),
            zeros,
            least: std::array::from_fn(|i| {
                let levels = [1..2, 2..3, 3..TABLED_LEVELS][i].clone();
                std::array::from_fn(|position| {
                    let contexts = by_band[BANDS[position]].iter();
                    let costs = contexts.flat_map(|costs| &costs.0[levels.clone()]);
                    let least = costs.min().expect("there are contexts and levels");
                    i32::from(*least).min(MAX_LEAST)
                })
            }),
            ends: std::array::from_fn(|position| {
                std::array::from_fn(|context| ends(position, context))
            }),
        }
    }

    /// Returns the costs at zigzag position `position` in `context`, which the level before sets,
    /// or the neighbors at the start of the block. At the start in context 0, [`KindCosts::start`]
    /// is added.
    #[inline(always)]
    pub fn levels(&self, position: usize, context: usize) -> &LevelCosts {
        &self.levels[position][context]
    }

    /// Returns the cost of the first level in addition to [`KindCosts::levels`].
    #[inline(always)]
    pub fn start(&self, first: usize, context: usize) -> BitCost {
        if context == 0 {
            BitCost::from(self.starts[first])
        } else {
            0
        }
    }

    /// Returns the cost of an end of block before zigzag position `position`, 0 to 16.
    #[inline(always)]
    pub fn end(&self, position: usize, context: usize) -> BitCost {
        BitCost::from(self.ends[position][context])
    }

    /// Returns the costs of an end of block after a level at zigzag position `position`, 0 to 15,
    /// by the context that the level sets. After a zero it is higher than that of any block.
    #[inline(always)]
    pub fn ends_after(&self, position: usize) -> &[BitCost; 3] {
        &self.ends_after[position]
    }

    /// Returns the cost of zeros from zigzag position `start` up to `end`, in context 0.
    #[inline(always)]
    pub fn zeros(&self, start: usize, end: usize) -> BitCost {
        self.zeros[end] - self.zeros[start]
    }

    /// Returns the least cost in any context of level 1, of level 2, and of all levels above, by
    /// zigzag position.
    #[inline(always)]
    pub fn least_by_level(&self) -> &[[i32; 16]; 3] {
        &self.least
    }

    /// Returns the cost of a block. `levels` are in zigzag order, sent from `first` on, and zero
    /// from `eob` on.
    #[inline(always)]
    pub fn block(&self, levels: &[i16; 16], first: usize, eob: usize, context: usize) -> BitCost {
        if eob <= first {
            return self.end(first, context);
        }
        let mut cost = self.start(first, context);
        let mut context = context;
        for (costs, level) in self.levels[first..eob].iter().zip(&levels[first..eob]) {
            let magnitude = usize::from(level.unsigned_abs());
            cost += costs[context].of(magnitude);
            context = magnitude.min(2);
        }
        cost + self.end(eob, context)
    }
}

impl LevelCosts {
    fn new(probabilities: &[u8; 11], context: usize) -> LevelCosts {
        let base = if context > 0 {
            bit_cost(true, probabilities[0])
        } else {
            0
        };
        let tokens = token_costs(probabilities);
        LevelCosts(
            TOKENS.map(|(token, rest)| {
                (base + tokens[usize::from(token)] + BitCost::from(rest)) as u16
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8::tables::DEFAULT_PROBABILITIES;

    #[test]
    fn costs_are_logarithms() {
        for (n, &table) in COSTS.iter().enumerate().skip(1) {
            let exact = -(n as f64 / 256.0).log2() * 256.0;
            let table = f64::from(table);
            assert!(
                (table - exact).abs() <= 0.51,
                "{n}/256: {table} for {exact}"
            );
        }
    }

    #[test]
    fn every_level_costs_what_its_booleans_cost() {
        // Compares with the sum of the booleans' costs (section 13.2).
        for kind in [BlockKind::LumaAfterY2, BlockKind::Luma] {
            let costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
            for (position, context) in [(1, 0), (1, 2), (5, 1), (15, 2)] {
                let p = &DEFAULT_PROBABILITIES[kind as usize][BANDS[position]][context];
                let levels = costs.of(kind).levels(position, context);
                for level in 0..=MAX_LEVEL as usize {
                    let mut written = if context > 0 { bit_cost(true, p[0]) } else { 0 };
                    super::super::token::write_level(level as i16, p, &mut |value, probability| {
                        written += bit_cost(value, probability);
                    });
                    assert_eq!(levels.of(level), written, "level {level}");
                    if level > 0 {
                        let each = [written, levels.of(level - 1)];
                        assert_eq!(levels.pair(level), each, "level {level}");
                    }
                }
            }
        }
    }
}
