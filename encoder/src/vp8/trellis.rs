//! Trellis quantization: chooses the levels of a block together. Each coefficient's rounding is
//! weighed against its own rate and that of the following levels, whose contexts it sets (RFC 6386,
//! section 13.3).

use super::block::{BlockKernels, Candidates, LeastRates, Nearest, Quantized};
use super::distortion::WEIGHTED_SCORE_SHIFT;
use super::quantize::Quantizer;
use super::rate::{BitCost, KindCosts};
use super::transform::Block;

/// A node of the trellis: the best path to one candidate level at a position.
#[derive(Clone, Copy)]
struct Node {
    /// Error plus lambda times rate of the path, relative to a block of zeros.
    score: i64,
    /// The choices that lead here.
    path: Path,
    /// The context that the level sets for the next position.
    context: usize,
}

/// The choices of a path: in the lower half one bit for each position with the level below the
/// nearest, in the upper half one for each position with a level other than zero.
#[derive(Clone, Copy)]
struct Path(u32);

impl Node {
    /// Returns the score and the path of going on at a cost of `rate`.
    #[inline(always)]
    fn reach(self, rate: BitCost, lambda: i64) -> (i64, Path) {
        (self.score + lambda * i64::from(rate), self.path)
    }
}

/// Returns the path with the lower score, the first of equals.
#[inline(always)]
fn better(first: (i64, Path), second: (i64, Path)) -> (i64, Path) {
    let is_second = second.0 < first.0;
    (
        if is_second { second.0 } else { first.0 },
        if is_second { second.1 } else { first.1 },
    )
}

/// The costs and the lambda that weigh the rate of a block.
#[derive(Clone, Copy)]
pub struct Rating<'a> {
    /// Costs of the levels.
    pub costs: &'a KindCosts,
    /// The first zigzag position that is sent, 0 or 1.
    pub first: usize,
    /// The context of the first level, as in [`KindCosts::block`].
    pub context: usize,
    /// Squared pixel errors per bit, times 256.
    pub lambda: u32,
}

impl Rating<'_> {
    /// Returns lambda times the rate of the empty block.
    #[inline(always)]
    fn empty(&self) -> i64 {
        i64::from(self.lambda) * i64::from(self.costs.end(self.first, self.context))
    }

    /// Returns the node before the first level.
    #[inline(always)]
    fn start(&self) -> Node {
        Node {
            score: i64::from(self.lambda) * i64::from(self.costs.start(self.first, self.context)),
            path: Path(0),
            context: self.context,
        }
    }
}

/// Chooses the levels of `coefficients` (raster order) that minimize error plus lambda times rate.
/// Each coefficient may take the nearest level or the one below. Returns the block and its score,
/// in the unit of [`Lambdas::score`](super::mode_decision::Lambdas::score); `None` if the score is
/// seen to exceed `limit` before the search. The search itself does not look at `limit`.
#[inline(always)]
pub fn quantize<K: BlockKernels>(
    kernels: K,
    coefficients: &Block,
    quantizer: &Quantizer,
    rating: Rating<'_>,
    limit: u64,
) -> Option<(Quantized, u64)> {
    let nearest = kernels.nearest(coefficients, quantizer, rating.first);
    let mut quantized = Quantized {
        levels: [0; 16],
        eob: 0,
    };
    let energy = i64::from(nearest.energy) << WEIGHTED_SCORE_SHIFT;
    let empty = energy + rating.empty();
    if nearest.nonzero == 0 {
        return Some((quantized, empty as u64));
    }
    let rates = LeastRates {
        costs: rating.costs.least_by_level(),
        lambda: rating.lambda as i32,
    };
    let candidates = kernels.candidates(&nearest, quantizer, rates);
    let Node { score: start, .. } = rating.start();
    let least = energy + start + (i64::from(candidates.least) << WEIGHTED_SCORE_SHIFT);
    if least.min(empty) as u64 > limit {
        return None;
    }
    let (path, change) = search(&nearest, &candidates, rating);
    if path.0 == 0 {
        return Some((quantized, empty as u64));
    }
    let mut rest = path.0 >> 16;
    quantized.eob = 32 - rest.leading_zeros() as u8;
    while rest != 0 {
        let position = rest.trailing_zeros() as usize & 15;
        rest &= rest - 1;
        let magnitude = (nearest.levels[position] - (path.0 >> position & 1) as u16) as i16;
        let is_negative = nearest.negative >> position & 1 != 0;
        quantized.levels[position] = if is_negative { -magnitude } else { magnitude };
    }
    Some((quantized, (energy + change) as u64))
}

/// Finds the best path through the trellis. Returns it with its error plus lambda times rate,
/// relative to a block of zeros; the path without nonzero levels is that of the empty block.
///
/// Only the positions whose nearest level is not zero have a choice. The zeros between two of them
/// bring all paths together, since they leave context 0.
///
/// The empty block is charged for "not end of block", although it does not send it: blocks that
/// lose their last coefficients are seen to be flat. That saves 1 % at equal SSIMULACRA2.
fn search(levels: &Nearest, candidates: &Candidates, rating: Rating<'_>) -> (Path, i64) {
    let Rating { costs, first, .. } = rating;
    let lambda = i64::from(rating.lambda);
    let start = rating.start();
    let mut best = (rating.empty() + start.score, start.path);
    // The paths to the nearest level and to the one below it; the same at the start.
    let (mut nearest, mut below) = (start, start);
    let mut is_start = true;
    let mut next = first;
    let mut rest = levels.nonzero;
    while rest != 0 {
        let position = rest.trailing_zeros() as usize & 15;
        rest &= rest - 1;
        let level = usize::from(levels.levels[position]);
        let to_nearest;
        let to_below;
        if is_start || position > next {
            // Only one path leads here.
            if position > next {
                let from_nearest = nearest.reach(costs.levels(next, nearest.context).of(0), lambda);
                let from_below = below.reach(costs.levels(next, below.context).of(0), lambda);
                let (score, path) = better(from_nearest, from_below);
                nearest = Node {
                    score: score + lambda * i64::from(costs.zeros(next + 1, position)),
                    path,
                    context: 0,
                };
            }
            let rates = costs.levels(position, nearest.context).pair(level);
            to_nearest = nearest.reach(rates[0], lambda);
            to_below = nearest.reach(rates[1], lambda);
            is_start = false;
        } else {
            let nearest_rates = costs.levels(position, nearest.context).pair(level);
            let below_rates = costs.levels(position, below.context).pair(level);
            to_nearest = better(
                nearest.reach(nearest_rates[0], lambda),
                below.reach(below_rates[0], lambda),
            );
            to_below = better(
                nearest.reach(nearest_rates[1], lambda),
                below.reach(below_rates[1], lambda),
            );
        }
        next = position + 1;
        let ends = costs.ends_after(position);
        nearest = Node {
            score: to_nearest.0
                + (i64::from(candidates.changes[0][position]) << WEIGHTED_SCORE_SHIFT),
            path: Path(to_nearest.1.0 | 1 << 16 << position),
            context: level.min(2),
        };
        best = better(best, nearest.reach(ends[nearest.context], lambda));
        let is_nonzero = u32::from(level > 1);
        below = Node {
            score: to_below.0
                + (i64::from(candidates.changes[1][position]) << WEIGHTED_SCORE_SHIFT),
            path: Path(to_below.1.0 | (is_nonzero << 16 | 1) << position),
            context: (level - 1).min(2),
        };
        best = better(best, below.reach(ends[below.context], lambda));
    }
    (best.1, best.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use crate::vp8::block::Scalar;
    use crate::vp8::constants::Constants;
    use crate::vp8::levels::eob_of;
    use crate::vp8::quantize::{QuantizerDeltas, Quantizers};
    use crate::vp8::rate::CoefficientCosts;
    use crate::vp8::tables::{DEFAULT_PROBABILITIES, ZIGZAG};
    use crate::vp8::token::BlockKind;

    const CONSTANTS: Constants = Constants {
        overshoot_discount: 50,
        ..Constants::DEFAULT
    };

    /// The part of the error that does not count for a level that is too large.
    fn discount(error: i64) -> i64 {
        (error * i64::from(CONSTANTS.overshoot_discount)) >> 8
    }

    /// Error and rate of any levels, computed without the trellis's functions.
    fn error_and_rate(
        coefficients: &Block,
        levels: &Block,
        quantizer: &Quantizer,
        costs: &KindCosts,
        context: usize,
    ) -> (i64, BitCost) {
        let restored = quantizer.dequantize(levels);
        let error = (0..16)
            .map(|position| {
                let i = ZIGZAG[position];
                let squared = i64::from(restored[i] - coefficients[i]).pow(2);
                let is_larger = restored[i].abs() > coefficients[i].abs();
                let weight = i64::from(quantizer.weights.zigzag[position]);
                squared * weight - is_larger as i64 * discount(squared * weight)
            })
            .sum();
        (
            error,
            costs.block(levels, 0, usize::from(eob_of(levels)), context),
        )
    }

    /// The definition of the search: each node weighs the two nodes before it, position after
    /// position. Returns the levels, in zigzag order, and their score.
    fn quantize_plainly(
        coefficients: &Block,
        quantizer: &Quantizer,
        rating: Rating<'_>,
    ) -> (Block, u64) {
        let Rating {
            costs,
            first,
            context,
            lambda,
        } = rating;
        let lambda = i64::from(lambda);
        let weight = |position: usize| i64::from(quantizer.weights.zigzag[position]);
        let coefficient = |position: usize| i64::from(coefficients[ZIGZAG[position]]);
        let energy: i64 = (first..16).map(|i| coefficient(i).pow(2) * weight(i)).sum();
        let rate_cost = |rate: BitCost| lambda * i64::from(rate);
        let empty = rate_cost(costs.end(first, context));
        let start = rate_cost(costs.start(first, context));
        let (mut best_levels, mut best_score) = ([0; 16], empty + start);
        // Paths of the nearest levels and of those below: score, context and levels.
        let mut nodes = vec![(start, context, [0; 16])];
        for position in first..16 {
            let magnitude = coefficient(position).unsigned_abs() as u16;
            let nearest = quantizer.nearest(magnitude, position);
            let mut reached = Vec::new();
            for level in nearest.saturating_sub(1)..=nearest {
                let level = usize::from(level);
                let reach = |node: &(i64, usize, Block)| {
                    node.0 + rate_cost(costs.levels(position, node.1).of(level))
                };
                let origin = nodes.iter().min_by_key(|node| reach(node)).expect("a node");
                let restored = level as i64 * i64::from(quantizer.step(position));
                let over = (restored - i64::from(magnitude)).max(0);
                let change = restored * (restored - 2 * i64::from(magnitude)) * weight(position)
                    - discount(over * over * weight(position));
                let score = reach(origin) + (change << WEIGHTED_SCORE_SHIFT);
                let mut levels = origin.2;
                levels[position] = level as i16 * coefficient(position).signum() as i16;
                reached.insert(0, (score, level.min(2), levels));
            }
            for (score, context, levels) in &reached {
                let ended = score + rate_cost(costs.end(position + 1, *context));
                if *context > 0 && ended < best_score {
                    (best_levels, best_score) = (*levels, ended);
                }
            }
            nodes = reached;
        }
        let change = if best_levels == [0; 16] {
            empty
        } else {
            best_score
        };
        (
            best_levels,
            ((energy << WEIGHTED_SCORE_SHIFT) + change) as u64,
        )
    }

    #[test]
    fn quick_and_plain_searches_agree() {
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let mut random = Random::new(12);
        let mut excluded = 0;
        for i in 0..30_000 {
            let index = random.below(128) as u8;
            let quantizers =
                Quantizers::new(index, QuantizerDeltas::at(index, &CONSTANTS), &CONSTANTS);
            let (kind, quantizer) = match i % 3 {
                0 => (BlockKind::LumaAfterY2, quantizers.luma),
                1 => (BlockKind::Luma, quantizers.luma),
                _ => (BlockKind::Chroma, quantizers.chroma),
            };
            // Smaller towards the end of the block, and sometimes sparse.
            let (range, decay) = (1 << random.below(12), random.below(8) as usize);
            let sparsity = 1 + random.below(4);
            let mut coefficients = [0; 16];
            for (position, &place) in ZIGZAG.iter().enumerate() {
                if random.below(sparsity) == 0 {
                    let range = (range >> (position * decay / 16)).max(2);
                    coefficients[place] = random.below(range) as i16 - (range / 2) as i16;
                }
            }
            let lambda = u32::from(quantizer.steps[1]).pow(2) * random.below(43) / 16;
            let rating = Rating {
                costs: all_costs.of(kind),
                first: kind.first(),
                context: random.index(3),
                lambda,
            };
            let quick = |limit: u64| quantize(Scalar, &coefficients, &quantizer, rating, limit);
            let plain = quantize_plainly(&coefficients, &quantizer, rating);
            let (block, score) = quick(plain.1).expect("the score is not over the limit");
            assert_eq!(
                (block.levels, score),
                plain,
                "{coefficients:?} by {quantizer:?}"
            );
            assert_eq!(block.eob, eob_of(&block.levels), "{:?}", block.levels);
            excluded += usize::from(quick(plain.1 * 3 / 4).is_none());
        }
        assert!(excluded > 3000, "only {excluded} searches were excluded");
    }

    #[test]
    fn no_choice_of_roundings_is_better() {
        let quantizer = Quantizers::new(30, QuantizerDeltas::at(30, &CONSTANTS), &CONSTANTS).luma;
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let costs = all_costs.of(BlockKind::Luma);
        let lambda = 256 * 20;
        let mut random = Random::new(11);
        for context in (0..600).map(|i| i % 3) {
            // The first six positions have coefficients: 2^6 combinations are few enough to try
            // all.
            let mut coefficients = [0; 16];
            for place in &ZIGZAG[..6] {
                coefficients[*place] = random.below(140) as i16 - 70;
            }
            let rating = Rating {
                costs,
                first: 0,
                context,
                lambda: lambda as u32,
            };
            let (choice, choice_score) =
                quantize(Scalar, &coefficients, &quantizer, rating, u64::MAX)
                    .expect("no score is over the limit");
            let levels = choice.levels;
            let (error, rate) = error_and_rate(&coefficients, &levels, &quantizer, costs, context);
            assert_eq!(choice.eob, eob_of(&levels));
            assert_eq!(
                choice_score as i64,
                (error << WEIGHTED_SCORE_SHIFT) + lambda * i64::from(rate),
                "score of {levels:?}"
            );
            // The search charges the empty block for "not end of block".
            let score = |error: i64, rate: BitCost, levels: &Block| {
                let charge = if eob_of(levels) == 0 {
                    costs.start(0, context)
                } else {
                    0
                };
                (error << WEIGHTED_SCORE_SHIFT) + lambda * i64::from(rate + charge)
            };
            let ours = score(error, rate, &levels);
            for combination in 0..1 << 6 {
                for end in 0..=6 {
                    let mut other = [0; 16];
                    for position in 0..end {
                        let coefficient = coefficients[ZIGZAG[position]];
                        let nearest =
                            quantizer.nearest(coefficient.unsigned_abs(), position) as i16;
                        let level = (nearest - (combination >> position & 1)).max(0);
                        other[position] = if coefficient < 0 { -level } else { level };
                    }
                    let (error, rate) =
                        error_and_rate(&coefficients, &other, &quantizer, costs, context);
                    let theirs = score(error, rate, &other);
                    assert!(
                        ours <= theirs,
                        "{coefficients:?}: {levels:?} scores {ours}, {other:?} {theirs}"
                    );
                }
            }
        }
    }

    #[test]
    fn with_lambda_0_levels_are_nearest() {
        let quantizer = Quantizers::new(60, QuantizerDeltas::at(60, &CONSTANTS), &CONSTANTS).luma;
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let coefficients = [
            500, -300, 40, -39, 20, 10, 0, 0, 90, 29, -31, 5, 0, 0, 33, -200,
        ];
        let rating = Rating {
            costs: all_costs.of(BlockKind::Luma),
            first: 0,
            context: 0,
            lambda: 0,
        };
        let (quantized, _) = quantize(Scalar, &coefficients, &quantizer, rating, u64::MAX)
            .expect("no score is over the limit");
        assert_eq!(quantized.eob, 16);
        for (position, level) in quantized.levels.into_iter().enumerate() {
            let exact =
                f64::from(coefficients[ZIGZAG[position]]) / f64::from(quantizer.step(position));
            assert!(
                (f64::from(level) - exact).abs() <= 0.5,
                "position {position}: {level} for {exact}"
            );
        }
    }
}
