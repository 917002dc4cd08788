//! Trellis quantization: chooses the levels of a block together. Each coefficient's rounding is
//! weighed against its own rate and that of the following levels, whose contexts it sets (RFC 6386,
//! section 13.3).

use super::block::{BlockKernels, Nearest, Quantized};
use super::distortion::{ERROR_WEIGHTS, WEIGHTED_ERROR_SHIFT};
use super::quantize::Quantizer;
use super::rate::{BitCost, KindCosts};
use super::tables::ZIGZAG;
use super::transform::Block;

/// Scores are squared pixel errors times 2^16.
const ERROR_SHIFT: u32 = 16 - WEIGHTED_ERROR_SHIFT;

/// A node of the trellis: the best path to one candidate level at a position.
#[derive(Clone, Copy)]
struct Node {
    /// Error plus lambda times rate of the path, relative to a block of zeros.
    score: i64,
    /// The context that the level sets for the next position.
    context: usize,
}

/// A node that no path reaches, where a position has only one candidate level.
const UNREACHABLE: Node = Node {
    score: i64::MAX / 2,
    context: 0,
};

/// Chooses the levels of `coefficients` (raster order) that minimize error plus `lambda` times
/// rate. Each coefficient may take the nearest level or the one below. Returns the block and its
/// score, in the unit of [`Lambdas::score`](super::mode_decision::Lambdas::score).
///
/// `lambda` is in squared pixel errors per bit, times 256. `context` is as in [`KindCosts::block`].
#[inline(always)]
pub fn quantize<K: BlockKernels>(
    kernels: K,
    coefficients: &Block,
    quantizer: &Quantizer,
    costs: &KindCosts,
    first: usize,
    context: usize,
    lambda: i64,
) -> (Quantized, u64) {
    let nearest = kernels.nearest(coefficients, quantizer, first);
    let mut quantized = Quantized {
        levels: [0; 16],
        eob: 0,
    };
    let energy = i64::from(nearest.energy) << ERROR_SHIFT;
    let Some(end) = search(&nearest, quantizer, costs, first, context, lambda) else {
        let rate = i64::from(costs.end(first, context));
        return (quantized, (energy + lambda * rate) as u64);
    };
    let mut choice = end.choice;
    for position in (first..=end.position).rev() {
        let magnitude = (nearest.levels[position] - choice) as i16;
        let is_negative = coefficients[ZIGZAG[position]] < 0;
        quantized.levels[position] = if is_negative { -magnitude } else { magnitude };
        choice = end.origins[usize::from(choice)] >> position & 1;
    }
    quantized.eob = end.position as u8 + 1;
    (quantized, (energy + end.score) as u64)
}

/// The last node of the best path.
struct BestEnd {
    /// The position of the last nonzero level.
    position: usize,
    /// The candidate there: 0 is the nearest level, 1 the one below.
    choice: u16,
    /// Error plus lambda times rate of the whole block, relative to a block of zeros.
    score: i64,
    /// By candidate, one bit per position: the candidate at the previous position on the best path.
    origins: [u16; 2],
}

/// Finds the best path through the trellis, up to the last position whose nearest level is not
/// zero; zeros are best beyond. Returns its last node, or `None` if the empty block is better.
///
/// The empty block is charged for "not end of block", although it does not send it: blocks that
/// lose their last coefficients are seen to be flat. That saves 1 % at equal SSIMULACRA2.
fn search(
    nearest: &Nearest,
    quantizer: &Quantizer,
    costs: &KindCosts,
    first: usize,
    context: usize,
    lambda: i64,
) -> Option<BestEnd> {
    let rate_cost = |rate: BitCost| lambda * i64::from(rate);
    let start = rate_cost(costs.start(first, context));
    let mut best = BestEnd {
        position: 0,
        choice: 0,
        score: rate_cost(costs.end(first, context)) + start,
        origins: [0; 2],
    };
    let mut is_empty = true;
    let mut origins = [0u16; 2];
    let mut nodes = [
        Node {
            score: start,
            context,
        },
        UNREACHABLE,
    ];
    for position in first..usize::from(nearest.eob).min(16) {
        let [from_nearest, from_lower] = nodes;
        let nearest_costs = costs.levels(position, from_nearest.context);
        let lower_costs = costs.levels(position, from_lower.context);
        let reach = |level: u16| {
            let level = usize::from(level);
            let scores = (
                from_nearest.score + rate_cost(nearest_costs.of(level)),
                from_lower.score + rate_cost(lower_costs.of(level)),
            );
            (scores.0.min(scores.1), u16::from(scores.1 < scores.0))
        };
        let highest = nearest.levels[position];
        if highest == 0 {
            let (score, origin) = reach(0);
            origins[0] |= origin << position;
            nodes = [Node { score, context: 0 }, UNREACHABLE];
            continue;
        }
        let magnitude = nearest.magnitudes[position];
        for (choice, node) in nodes.iter_mut().enumerate() {
            let level = highest - choice as u16;
            let (mut score, origin) = reach(level);
            origins[choice] |= origin << position;
            score += i64::from(error_change(magnitude, level, quantizer, position)) << ERROR_SHIFT;
            let context = usize::from(level.min(2));
            let ended = score + rate_cost(costs.end(position + 1, context));
            if level > 0 && ended < best.score {
                is_empty = false;
                best.position = position;
                best.choice = choice as u16;
                best.score = ended;
            }
            *node = Node { score, context };
        }
    }
    best.origins = origins;
    (!is_empty).then_some(best)
}

/// Returns the weighted squared error of `level` less that of sending zero; mostly negative.
#[inline(always)]
fn error_change(magnitude: u16, level: u16, quantizer: &Quantizer, position: usize) -> i32 {
    let restored = i32::from(level) * quantizer.step(position);
    restored * (restored - 2 * i32::from(magnitude)) * ERROR_WEIGHTS[ZIGZAG[position]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use crate::vp8::block::Scalar;
    use crate::vp8::levels::eob_of;
    use crate::vp8::quantize::{QuantizerDeltas, Quantizers};
    use crate::vp8::rate::CoefficientCosts;
    use crate::vp8::tables::DEFAULT_PROBABILITIES;
    use crate::vp8::token::BlockKind;

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
            .map(|i| i64::from(restored[i] - coefficients[i]).pow(2) * i64::from(ERROR_WEIGHTS[i]))
            .sum();
        (
            error,
            costs.block(levels, 0, usize::from(eob_of(levels)), context),
        )
    }

    #[test]
    fn no_choice_of_roundings_is_better() {
        let quantizer = Quantizers::new(30, QuantizerDeltas::at(30)).luma;
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
            let (choice, choice_score) =
                quantize(Scalar, &coefficients, &quantizer, costs, 0, context, lambda);
            let levels = choice.levels;
            let (error, rate) = error_and_rate(&coefficients, &levels, &quantizer, costs, context);
            assert_eq!(choice.eob, eob_of(&levels));
            assert_eq!(
                choice_score as i64,
                (error << ERROR_SHIFT) + lambda * i64::from(rate),
                "score of {levels:?}"
            );
            // The search charges the empty block for "not end of block".
            let score = |error: i64, rate: BitCost, levels: &Block| {
                let charge = if eob_of(levels) == 0 {
                    costs.start(0, context)
                } else {
                    0
                };
                (error << ERROR_SHIFT) + lambda * i64::from(rate + charge)
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
        let quantizer = Quantizers::new(60, QuantizerDeltas::at(60)).luma;
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let coefficients = [
            500, -300, 40, -39, 20, 10, 0, 0, 90, 29, -31, 5, 0, 0, 33, -200,
        ];
        let (quantized, _) = quantize(
            Scalar,
            &coefficients,
            &quantizer,
            all_costs.of(BlockKind::Luma),
            0,
            0,
            0,
        );
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
