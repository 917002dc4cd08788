//! Levels chosen for the block as a whole: each coefficient's rounding is weighed with what it and its
//! successors cost in the contexts that it makes (RFC 6386, section 13.3).

use super::block::Quantized;
use super::distortion::{ERROR_WEIGHTS, WEIGHTED_ERROR_SHIFT};
use super::quantize::Quantizer;
use super::rate::{BitCost, KindCosts};
use super::tables::ZIGZAG;
use super::transform::Block;

/// Scores are in squared pixel errors times 2^16.
const ERROR_SHIFT: u32 = 16 - WEIGHTED_ERROR_SHIFT;

/// One of the levels that are considered at a position, and the cheapest way to it.
#[derive(Clone, Copy)]
struct Node {
    /// Error and rate of the block up to here, against sending zeros.
    score: i64,
    rate: BitCost,
    level: i16,
    /// Which node of the position before.
    from: u8,
}

/// No way: its score is out of the question.
const NONE: Node = Node {
    score: i64::MAX / 2,
    rate: 0,
    level: 0,
    from: 0,
};

/// A block after quantization, and its rate.
pub struct Choice {
    /// Levels, count and error.
    pub quantized: Quantized,
    /// What it costs.
    pub rate: BitCost,
}

/// Chooses the levels of `coefficients` (raster order) that minimise error plus `lambda` times rate, where each coefficient
/// may take the nearest level or the one below.
///
/// `lambda` is in squared pixel errors per bit times 256; `context` as in [`KindCosts::block`].
pub fn quantize(
    coefficients: &Block,
    quantizer: &Quantizer,
    costs: &KindCosts,
    first: usize,
    context: usize,
    lambda: i64,
) -> Choice {
    let mut magnitudes = [0u16; 16];
    let mut energy = 0;
    for (position, magnitude) in magnitudes.iter_mut().enumerate().skip(first) {
        *magnitude = coefficients[ZIGZAG[position]].unsigned_abs();
        energy += i32::from(*magnitude).pow(2) * ERROR_WEIGHTS[ZIGZAG[position]];
    }
    let empty_rate = costs.end(first, context);
    let mut choice = Choice {
        quantized: Quantized {
            levels: [0; 16],
            count: 0,
            error: energy as u32 >> WEIGHTED_ERROR_SHIFT,
        },
        rate: empty_rate,
    };
    // Beyond the last coefficient that rounds to one, zeros are best.
    let Some(last) = (first..16)
        .rev()
        .find(|&i| quantizer.nearest(magnitudes[i], i) > 0)
    else {
        return choice;
    };

    let mut nodes = [[NONE; 2]; 16];
    let mut best_score = lambda * i64::from(empty_rate);
    let mut best_end = None;
    let mut before = [
        Node {
            score: 0,
            rate: costs.start(first, context),
            level: 0,
            from: 0,
        },
        NONE,
    ];
    let mut contexts = [context, 0];
    for position in first..=last {
        let nearest = quantizer.nearest(magnitudes[position], position);
        let choices = 1 + usize::from(nearest > 0);
        for (choice, slot) in nodes[position].iter_mut().enumerate().take(choices) {
            let level = nearest - choice as i32;
            let saved = saved(magnitudes[position], level, quantizer, position);
            let mut node = NONE;
            for from in 0..2 {
                let rate =
                    before[from].rate + costs.level(position, contexts[from], level as usize);
                // The scores before hold their rates: what comes on top is the difference.
                let score = before[from].score + lambda * i64::from(rate - before[from].rate);
                if score < node.score {
                    node = Node {
                        score,
                        rate,
                        level: level as i16,
                        from: from as u8,
                    };
                }
            }
            node.score += i64::from(saved) << ERROR_SHIFT;
            *slot = node;
            if level > 0 {
                let end = if position < 15 {
                    costs.end(position + 1, (level as usize).min(2))
                } else {
                    0
                };
                let score = node.score + lambda * i64::from(end);
                if score < best_score {
                    best_score = score;
                    best_end = Some((position, choice, node.rate + end));
                }
            }
        }
        before = nodes[position];
        contexts = [
            usize::from(before[0].level.unsigned_abs()).min(2),
            usize::from(before[1].level.unsigned_abs()).min(2),
        ];
    }

    let Some((end, mut node, rate)) = best_end else {
        return choice;
    };
    let mut error = energy;
    for position in (first..=end).rev() {
        let Node { level, from, .. } = nodes[position][node];
        error += saved(magnitudes[position], i32::from(level), quantizer, position);
        let is_negative = coefficients[ZIGZAG[position]] < 0;
        choice.quantized.levels[position] = if is_negative { -level } else { level };
        node = usize::from(from);
    }
    choice.quantized.count = end as u8 + 1;
    choice.quantized.error = error as u32 >> WEIGHTED_ERROR_SHIFT;
    choice.rate = rate;
    choice
}

/// How a level changes the weighted squared error of a coefficient against sending zero: mostly less than nothing.
#[inline]
fn saved(magnitude: u16, level: i32, quantizer: &Quantizer, position: usize) -> i32 {
    let restored = level * quantizer.step(position);
    restored * (restored - 2 * i32::from(magnitude)) * ERROR_WEIGHTS[ZIGZAG[position]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::vp8::quantize::Quantizers;
    use crate::webp::vp8::rate::CoefficientCosts;
    use crate::webp::vp8::tables::DEFAULT_PROBABILITIES;
    use crate::webp::vp8::token::{BlockKind, count_of};

    const CONTEXT: usize = 1;

    /// Error and rate of any choice of levels, by the functions that the trellis does not use.
    fn price(
        coefficients: &Block,
        levels: &Block,
        quantizer: &Quantizer,
        costs: &KindCosts,
    ) -> (i64, BitCost) {
        let restored = quantizer.dequantize(levels);
        let error = (0..16)
            .map(|i| i64::from(restored[i] - coefficients[i]).pow(2) * i64::from(ERROR_WEIGHTS[i]))
            .sum();
        (
            error,
            costs.block(levels, 0, usize::from(count_of(levels)), CONTEXT),
        )
    }

    #[test]
    fn no_choice_of_roundings_is_better() {
        let quantizer = Quantizers::new(30).luma;
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let costs = all_costs.of(BlockKind::Luma);
        let lambda = 256 * 20;
        let mut state = 11u32;
        for _ in 0..500 {
            // Coefficients in the first six positions: 2^6 combinations are few enough to try all.
            let mut coefficients = [0; 16];
            for place in &ZIGZAG[..6] {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                coefficients[*place] = ((state >> 20) as i16 % 140) - 70;
            }
            let choice = quantize(&coefficients, &quantizer, costs, 0, CONTEXT, lambda);
            let levels = choice.quantized.levels;
            let (error, rate) = price(&coefficients, &levels, &quantizer, costs);
            assert_eq!(choice.quantized.count, count_of(&levels));
            assert_eq!(
                i64::from(choice.quantized.error),
                error >> WEIGHTED_ERROR_SHIFT,
                "error of {levels:?}"
            );
            assert_eq!(choice.rate, rate, "rate of {levels:?}");
            let ours = (error << ERROR_SHIFT) + lambda * i64::from(rate);
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
                    let (error, rate) = price(&coefficients, &other, &quantizer, costs);
                    let theirs = (error << ERROR_SHIFT) + lambda * i64::from(rate);
                    assert!(
                        ours <= theirs,
                        "{coefficients:?}: {levels:?} scores {ours}, {other:?} {theirs}"
                    );
                }
            }
        }
    }

    #[test]
    fn without_a_price_on_bits_levels_are_nearest() {
        let quantizer = Quantizers::new(60).luma;
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let coefficients = [
            500, -300, 40, -39, 20, 10, 0, 0, 90, 29, -31, 5, 0, 0, 33, -200,
        ];
        let Choice { quantized, .. } = quantize(
            &coefficients,
            &quantizer,
            all_costs.of(BlockKind::Luma),
            0,
            0,
            0,
        );
        assert_eq!(quantized.count, 16);
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
