//! Levels chosen for the block as a whole: each coefficient's rounding is weighed with what it and its
//! successors cost in the contexts that it makes (RFC 6386, section 13.3).

use super::quantize::Quantizer;
use super::rate::KindCosts;
use super::tables::ZIGZAG;
use super::transform::Block;

/// Scores are in squared coefficient errors times 2^14, that is squared pixel errors times 2^16.
const ERROR_SHIFT: u32 = 14;

/// One of the two levels that are considered at a position, and the cheapest way to it.
#[derive(Clone, Copy)]
struct Node {
    /// Error and rate of the block up to here, against sending zeros.
    score: i64,
    /// Which node of the position before.
    from: u8,
    level: i16,
}

/// Chooses the levels of `coefficients` (raster order) that minimise error plus `lambda` times rate, between
/// the two levels around each coefficient. Gives levels in zigzag order, and one past the last that is not zero.
///
/// `lambda` is in squared pixel errors per bit times 256; `context` as in [`KindCosts::block`].
pub fn quantize(
    coefficients: &Block,
    quantizer: &Quantizer,
    costs: &KindCosts,
    first: usize,
    context: usize,
    lambda: i64,
) -> (Block, u8) {
    let mut levels = [0; 16];
    // Beyond the last coefficient that rounds to one, zeros are best.
    let Some(last) = (first..16).rev().find(|&position| {
        2 * i32::from(coefficients[ZIGZAG[position]].unsigned_abs()) > quantizer.step(position)
    }) else {
        return (levels, 0);
    };

    let mut nodes = [[Node {
        score: 0,
        from: 0,
        level: 0,
    }; 2]; 16];
    // The empty block.
    let mut best_score = lambda * i64::from(costs.end(first, context));
    let mut best_end = None;
    for position in first..=last {
        let coefficient = i64::from(coefficients[ZIGZAG[position]].unsigned_abs());
        let step = i64::from(quantizer.step(position));
        let floor = quantizer.floor(coefficient as u32, position);
        for choice in 0..2 {
            let level = floor + choice as i32;
            let error = coefficient - i64::from(level) * step;
            let saved = (error * error - coefficient * coefficient) << ERROR_SHIFT;
            let (rate_score, from) = if position == first {
                let rate =
                    costs.start(first, context) + costs.level(position, context, level as usize);
                (lambda * i64::from(rate), 0)
            } else {
                let scores = nodes[position - 1].map(|before| {
                    let rate = costs.level(
                        position,
                        usize::from(before.level.unsigned_abs()).min(2),
                        level as usize,
                    );
                    before.score + lambda * i64::from(rate)
                });
                if scores[1] < scores[0] {
                    (scores[1], 1)
                } else {
                    (scores[0], 0)
                }
            };
            let score = rate_score + saved;
            nodes[position][choice] = Node {
                score,
                from,
                level: level as i16,
            };
            if level > 0 {
                let end = if position < 15 {
                    costs.end(position + 1, (level as usize).min(2))
                } else {
                    0
                };
                let score = score + lambda * i64::from(end);
                if score < best_score {
                    best_score = score;
                    best_end = Some((position, choice));
                }
            }
        }
    }

    let Some((end, mut choice)) = best_end else {
        return (levels, 0);
    };
    for position in (first..=end).rev() {
        let node = nodes[position][choice];
        let negative = coefficients[ZIGZAG[position]] < 0;
        levels[position] = if negative { -node.level } else { node.level };
        choice = usize::from(node.from);
    }
    (levels, end as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webp::vp8::quantize::Quantizers;
    use crate::webp::vp8::rate::CoefficientCosts;
    use crate::webp::vp8::tables::DEFAULT_PROBABILITIES;
    use crate::webp::vp8::token::BlockKind;

    fn score(
        coefficients: &Block,
        levels: &Block,
        count: u8,
        quantizer: &Quantizer,
        costs: &KindCosts,
        lambda: i64,
    ) -> i64 {
        let back = quantizer.dequantize(levels);
        let error: i64 = back
            .iter()
            .zip(coefficients)
            .map(|(a, b)| i64::from(a - b).pow(2))
            .sum();
        (error << ERROR_SHIFT) + lambda * i64::from(costs.block(levels, 0, usize::from(count), 1))
    }

    #[test]
    fn no_choice_of_roundings_is_better() {
        let quantizer = Quantizers::new(30).luma;
        let all_costs = CoefficientCosts::new(&DEFAULT_PROBABILITIES);
        let costs = all_costs.of(BlockKind::Luma);
        let lambda = 256 * 20;
        let mut state = 11u32;
        for _ in 0..300 {
            // Coefficients in the first six positions: 3^6 combinations are few enough to try all.
            let mut coefficients = [0; 16];
            for place in &ZIGZAG[..6] {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                coefficients[*place] = ((state >> 20) as i16 % 100) - 50;
            }
            let (levels, count) = quantize(&coefficients, &quantizer, costs, 0, 1, lambda);
            let ours = score(&coefficients, &levels, count, &quantizer, costs, lambda);
            for combination in 0..3usize.pow(6) {
                let mut other = [0; 16];
                for position in 0..6 {
                    let coefficient = coefficients[ZIGZAG[position]];
                    let floor =
                        quantizer.floor(u32::from(coefficient.unsigned_abs()), position) as i16;
                    // Zero, floor and floor + 1, as far as the trellis considers them.
                    let level =
                        [floor, floor + 1, 0][combination / 3usize.pow(position as u32) % 3];
                    other[position] = if coefficient < 0 { -level } else { level };
                }
                let count = crate::webp::vp8::token::count_of(&other);
                let is_considered = (0..usize::from(count)).all(|position| {
                    let magnitude = u32::from(coefficients[ZIGZAG[position]].unsigned_abs());
                    i32::from(other[position].abs()) >= quantizer.floor(magnitude, position)
                });
                let past_last = (0..usize::from(count)).rev().all(|position| {
                    2 * i32::from(coefficients[ZIGZAG[position]].unsigned_abs())
                        <= quantizer.step(position)
                });
                if is_considered && !past_last {
                    let theirs = score(&coefficients, &other, count, &quantizer, costs, lambda);
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
        let (levels, count) = quantize(
            &coefficients,
            &quantizer,
            all_costs.of(BlockKind::Luma),
            0,
            0,
            0,
        );
        assert_eq!(count, 16);
        for (position, level) in levels.into_iter().enumerate() {
            let exact =
                f64::from(coefficients[ZIGZAG[position]]) / f64::from(quantizer.step(position));
            assert!(
                (f64::from(level) - exact).abs() <= 0.5,
                "position {position}: {level} for {exact}"
            );
        }
    }
}
