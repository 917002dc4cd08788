//! Coefficient probabilities, fitted to the picture: RFC 6386, sections 9.9, 13.4 and 13.5.

use super::bool_encoder::BoolEncoder;
use super::rate::bit_cost;
use super::tables::{CoefficientProbabilities, DEFAULT_PROBABILITIES, UPDATE_PROBABILITIES};
use super::token_counts::NodeCounts;

/// Returns the probabilities that minimize the bits of `counts`, including those of sending the
/// probabilities. Each differs from its default only where that saves bits.
pub fn fit(counts: &NodeCounts) -> CoefficientProbabilities {
    let mut fitted = DEFAULT_PROBABILITIES;
    for_each_node(|kind, band, context, node| {
        let [zeros, ones] = counts[kind][band][context][node].map(u64::from);
        let p = &mut fitted[kind][band][context][node];
        let update = UPDATE_PROBABILITIES[kind][band][context][node];
        let own = probability_of_false(zeros, ones);
        let cost =
            |p: u8| zeros * u64::from(bit_cost(false, p)) + ones * u64::from(bit_cost(true, p));
        let kept = cost(*p) + u64::from(bit_cost(false, update));
        let sent = cost(own) + u64::from(bit_cost(true, update)) + 8 * 256;
        if sent < kept {
            *p = own;
        }
    });
    fitted
}

/// Returns probabilities for cost estimates while the picture is still being decided on: the
/// frequencies in `counts`, blended with the defaults where counts are low.
pub fn estimate(counts: &NodeCounts) -> CoefficientProbabilities {
    /// Number of booleans that the default counts as.
    const WEIGHT: u64 = 24;
    let mut estimated = DEFAULT_PROBABILITIES;
    for_each_node(|kind, band, context, node| {
        let [zeros, ones] = counts[kind][band][context][node].map(u64::from);
        let p = &mut estimated[kind][band][context][node];
        let zeros = zeros * 256 + WEIGHT * u64::from(*p);
        let all = zeros + ones * 256 + WEIGHT * (256 - u64::from(*p));
        *p = (zeros * 256 / all).clamp(1, 255) as u8;
    });
    estimated
}

/// Writes the probabilities that differ from the defaults, and a flag for each (section 13.4).
pub fn write(encoder: &mut BoolEncoder, probabilities: &CoefficientProbabilities) {
    for_each_node(|kind, band, context, node| {
        let p = probabilities[kind][band][context][node];
        let differs = p != DEFAULT_PROBABILITIES[kind][band][context][node];
        encoder.write(differs, UPDATE_PROBABILITIES[kind][band][context][node]);
        if differs {
            encoder.write_literal(u32::from(p), 8);
        }
    });
}

/// Returns the most likely probability of false, times 256, after `zeros` times false and `ones`
/// times true; 1 to 255.
pub fn probability_of_false(zeros: u64, ones: u64) -> u8 {
    let all = (zeros + ones).max(1);
    ((zeros * 256 + all / 2) / all).clamp(1, 255) as u8
}

fn for_each_node(mut visit: impl FnMut(usize, usize, usize, usize)) {
    for kind in 0..4 {
        for band in 0..8 {
            for context in 0..3 {
                for node in 0..11 {
                    visit(kind, band, context, node);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: NodeCounts = [[[[[0; 2]; 11]; 3]; 8]; 4];

    #[test]
    fn nothing_counted_sends_nothing() {
        assert_eq!(fit(&NONE), DEFAULT_PROBABILITIES);
        assert_eq!(estimate(&NONE), DEFAULT_PROBABILITIES);
    }

    #[test]
    fn a_probability_is_sent_where_it_pays() {
        let mut counts = NONE;
        counts[3][1][0][1] = [10_000, 30_000];
        counts[3][1][1][1] = [1, 2];
        let fitted = fit(&counts);
        assert_eq!(fitted[3][1][0][1], 64, "a quarter of many");
        assert_eq!(
            fitted[3][1][1][1], DEFAULT_PROBABILITIES[3][1][1][1],
            "three booleans pay for no update"
        );
    }

    #[test]
    fn probabilities_stay_within_1_to_255() {
        assert_eq!(probability_of_false(0, 1_000_000), 1);
        assert_eq!(probability_of_false(1_000_000, 0), 255);
        assert_eq!(probability_of_false(1, 1), 128);
        assert_eq!(probability_of_false(0, 0), 1);
    }
}
