//! What booleans and coefficients cost: RFC 6386, sections 7.1, 13.2 and 13.3.

use super::tables::{BANDS, CoefficientProbabilities};
use super::token::{BlockKind, CATEGORIES};

/// A number of bits times 256.
pub type BitCost = u32;

/// Cost of a boolean that had probability `n / 256`.
const COSTS: [u16; 257] = {
    let mut costs = [0; 257];
    let mut n = 1;
    while n <= 256 {
        costs[n] = negative_log2(n as u64);
        n += 1;
    }
    costs
};

/// `-256 log2(n / 256)`, rounded, by integer arithmetic: the same on every machine.
const fn negative_log2(n: u64) -> u16 {
    // n = mantissa * 2^whole with the mantissa in [1, 2), at 31 fractional bits.
    let whole = n.ilog2();
    let mut mantissa = n << (31 - whole);
    let mut fraction = 0u64;
    let mut bit = 0;
    while bit < 16 {
        // Squaring doubles the logarithm: its whole bit is the next bit of the fraction.
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

/// What [`BoolEncoder::write`](super::bool_encoder::BoolEncoder::write) costs.
#[inline(always)]
pub const fn bit_cost(value: bool, probability: u8) -> BitCost {
    let likelihood = if value {
        256 - probability as usize
    } else {
        probability as usize
    };
    COSTS[likelihood] as BitCost
}

/// Largest level with a table entry of its own: the first of the last category. What levels above
/// it cost more is in [`EXTRA_COSTS`].
const TABLED_LEVELS: usize = 68;

/// Largest level that a token can carry: 67 and eleven bits (RFC 6386, section 13.2).
pub const MAX_LEVEL: i32 = 2047;

/// Costs of the eleven extra bits of the last category, by how far the level is above 67, less the
/// cost for none that the tables already hold.
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

/// Cost of the token and extra bits of a level, without its sign and without the boolean that says
/// that the block goes on.
fn level_cost(probabilities: &[u8; 11], level: usize) -> BitCost {
    let p = |node: usize, value: bool| bit_cost(value, probabilities[node]);
    if level == 0 {
        return p(1, false);
    }
    let more = p(1, true);
    if level == 1 {
        return more + p(2, false);
    }
    let more = more + p(2, true);
    if level <= 4 {
        let more = more + p(3, false);
        return if level == 2 {
            more + p(4, false)
        } else {
            more + p(4, true) + p(5, level == 4)
        };
    }
    let category = CATEGORIES
        .iter()
        .rposition(|c| level >= c.base as usize)
        .expect("categories start at 5");
    let more = more + p(3, true);
    let branches = match category {
        0 | 1 => p(6, false) + p(7, category == 1),
        2 | 3 => p(6, true) + p(8, false) + p(9, category == 3),
        _ => p(6, true) + p(8, true) + p(10, category == 5),
    };
    more + branches + extra_cost(category, level as u32 - CATEGORIES[category].base)
}

/// Costs of every level in every place, by one set of probabilities.
pub struct CoefficientCosts {
    kinds: Box<[KindCosts; 4]>,
}

/// Costs within one kind of block.
pub struct KindCosts {
    /// By band, context, level. Includes the sign, and "the block goes on" where it is sent: after
    /// a coefficient that was not zero, that is for contexts 1 and 2.
    levels: [[[u16; TABLED_LEVELS]; 3]; 8],
    /// "The block goes on" and "the block ends", by band and context.
    goes_on: [[u16; 3]; 8],
    ends: [[u16; 3]; 8],
}

impl CoefficientCosts {
    /// Tabulates the costs by `probabilities`.
    pub fn new(probabilities: &CoefficientProbabilities) -> CoefficientCosts {
        let kinds = std::array::from_fn(|kind| KindCosts::new(&probabilities[kind]));
        CoefficientCosts {
            kinds: Box::new(kinds),
        }
    }

    /// The costs within blocks of `kind`.
    #[inline(always)]
    pub fn of(&self, kind: BlockKind) -> &KindCosts {
        &self.kinds[kind as usize]
    }
}

impl KindCosts {
    fn new(probabilities: &[[[u8; 11]; 3]; 8]) -> KindCosts {
        let mut costs = KindCosts {
            levels: [[[0; TABLED_LEVELS]; 3]; 8],
            goes_on: [[0; 3]; 8],
            ends: [[0; 3]; 8],
        };
        for (band, contexts) in probabilities.iter().enumerate() {
            for (context, p) in contexts.iter().enumerate() {
                let goes_on = bit_cost(true, p[0]);
                costs.goes_on[band][context] = goes_on as u16;
                costs.ends[band][context] = bit_cost(false, p[0]) as u16;
                let base = if context > 0 { goes_on } else { 0 };
                for (level, cost) in costs.levels[band][context].iter_mut().enumerate() {
                    let sign = if level > 0 { 256 } else { 0 };
                    *cost = (base + level_cost(p, level) + sign) as u16;
                }
            }
        }
        costs
    }

    /// Cost of a level of magnitude `level` (0..=[`MAX_LEVEL`]) at zigzag position `position`, where the
    /// level before it, or at the block's start its neighbours, gave `context`. At the start with
    /// context 0, [`KindCosts::start`] comes on top.
    #[inline(always)]
    pub fn level(&self, position: usize, context: usize, level: usize) -> BitCost {
        let row = &self.levels[BANDS[position]][context];
        if level < TABLED_LEVELS {
            return BitCost::from(row[level]);
        }
        let extra = EXTRA_COSTS[level - (TABLED_LEVELS - 1)];
        (i32::from(row[TABLED_LEVELS - 1]) + i32::from(extra)) as BitCost
    }

    /// What the first level costs beyond [`KindCosts::level`].
    #[inline(always)]
    pub fn start(&self, first: usize, context: usize) -> BitCost {
        if context == 0 {
            BitCost::from(self.goes_on[BANDS[first]][0])
        } else {
            0
        }
    }

    /// Cost of ending the block before zigzag position `position` (0..=15).
    #[inline(always)]
    pub fn end(&self, position: usize, context: usize) -> BitCost {
        BitCost::from(self.ends[BANDS[position]][context])
    }

    /// Cost of a block's `levels` in zigzag order from `first`, of which `count` positions (from 0)
    /// are sent: all from there on are zero.
    #[inline(always)]
    pub fn block(&self, levels: &[i16; 16], first: usize, count: usize, context: usize) -> BitCost {
        if count <= first {
            return self.end(first, context);
        }
        let mut cost = self.start(first, context);
        let mut context = context;
        for (position, &level) in levels.iter().enumerate().take(count).skip(first) {
            let magnitude = usize::from(level.unsigned_abs());
            cost += self.level(position, context, magnitude);
            context = magnitude.min(2);
        }
        if count < 16 {
            cost + self.end(count, context)
        } else {
            cost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::vp8::tables::DEFAULT_PROBABILITIES;

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
        // Writes each level as the tokens of section 13.2 and adds up.
        for kind in [BlockKind::LumaAfterY2, BlockKind::Luma] {
            let costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
            for (position, context) in [(1, 0), (1, 2), (5, 1), (15, 2)] {
                let p = &DEFAULT_PROBABILITIES[kind as usize][BANDS[position]][context];
                for level in 0..=MAX_LEVEL as usize {
                    let mut written = if context > 0 { bit_cost(true, p[0]) } else { 0 };
                    super::super::token::write_level(level as i16, p, &mut |value, probability| {
                        written += bit_cost(value, probability);
                    });
                    assert_eq!(
                        costs.of(kind).level(position, context, level),
                        written,
                        "level {level}"
                    );
                }
            }
        }
    }
}
