//! Groups of prefix codes, and the merging of groups that save less than their codes take
//! (RFC 9649, section 3.7.2.2).

use super::entropy::{BIT, BIT_SHIFT, log2};
use super::histogram;
use crate::EncodeError;
use crate::threads::Workers;

/// A division of the tiles into groups with prefix codes of their own.
pub struct CodeGroups {
    /// Group of each filled tile.
    pub by_tile: Vec<u16>,
    pub histograms: Vec<Vec<u32>>,
}

impl CodeGroups {
    /// Merges pairs of groups, those that save most bits first, as long as that saves bits.
    pub fn merge(&mut self, workers: Workers<'_>) -> Result<(), EncodeError> {
        let mut remaining: Vec<Option<Costed>> = std::mem::take(&mut self.histograms)
            .into_iter()
            .map(|counts| Some(Costed::new(counts)))
            .collect();
        let count = remaining.len();
        // Indexed by a pair of groups, the lower index first.
        let mut savings = vec![i64::MIN; count * count];
        for a in 0..count {
            workers.check()?;
            for b in a + 1..count {
                savings[a * count + b] = saving(remaining[a].as_ref(), remaining[b].as_ref());
            }
        }
        let mut merged_into: Vec<usize> = (0..count).collect();
        loop {
            workers.check()?;
            let best = (0..savings.len()).max_by_key(|i| (savings[*i], std::cmp::Reverse(*i)));
            let Some(best) = best.filter(|best| savings[*best] > 0) else {
                break;
            };
            let (a, b) = (best / count, best % count);
            remaining[a] = remaining[a]
                .take()
                .zip(remaining[b].take())
                .map(Costed::sum);
            for other in 0..count {
                savings[other.min(b) * count + other.max(b)] = i64::MIN;
                if other != a {
                    let (low, high) = (other.min(a), other.max(a));
                    savings[low * count + high] =
                        saving(remaining[low].as_ref(), remaining[high].as_ref());
                }
            }
            for group in &mut merged_into {
                if *group == b {
                    *group = a;
                }
            }
        }
        let mut names = vec![0; count];
        let mut used = 0;
        for (name, group) in names.iter_mut().zip(&remaining) {
            *name = used;
            used += u16::from(group.is_some());
        }
        for group in &mut self.by_tile {
            *group = names[merged_into[usize::from(*group)]];
        }
        self.histograms = remaining
            .into_iter()
            .flatten()
            .map(|group| group.counts)
            .collect();
        Ok(())
    }

    /// Returns the bits that each group's index takes in the entropy image, per tile.
    pub fn member_costs(&self) -> Vec<f32> {
        let mut members = vec![0u32; self.histograms.len()];
        for group in &self.by_tile {
            members[usize::from(*group)] += 1;
        }
        let all = log2(self.by_tile.len() as u32);
        members
            .iter()
            .map(|count| (all - log2(*count)) as f32 / 65536.0)
            .collect()
    }

    /// Returns the average cost of a tile in the entropy image, in 1 / [`BIT`] bits; neighboring
    /// tiles are often in the same group.
    pub fn map_cost(&self) -> u64 {
        let changes = self
            .by_tile
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .count() as u64;
        let name = u64::from(log2(self.histograms.len() as u32) >> (16 - BIT_SHIFT));
        (changes * (name + BIT)) / self.by_tile.len() as u64
    }
}

/// A histogram and its cost.
struct Costed {
    counts: Vec<u32>,
    cost: u64,
}

impl Costed {
    fn new(counts: Vec<u32>) -> Costed {
        Costed {
            cost: histogram::cost(&counts),
            counts,
        }
    }

    fn sum((one, other): (Costed, Costed)) -> Costed {
        Costed::new(add(&one.counts, &other.counts))
    }
}

fn add(one: &[u32], other: &[u32]) -> Vec<u32> {
    one.iter().zip(other).map(|(a, b)| a + b).collect()
}

/// Returns the bits that merging two groups saves, or the least value if either is gone.
fn saving(one: Option<&Costed>, other: Option<&Costed>) -> i64 {
    let (Some(one), Some(other)) = (one, other) else {
        return i64::MIN;
    };
    let together = histogram::cost(&add(&one.counts, &other.counts));
    (one.cost + other.cost) as i64 - together as i64
}

/// Returns the bits of each symbol with codes made for `counts`.
pub fn costs(counts: &[u32]) -> Vec<f32> {
    let mut costs = vec![0.0; counts.len()];
    for alphabet in histogram::alphabets(counts.len()) {
        let of = &counts[alphabet.clone()];
        let total: u32 = of.iter().sum();
        for (cost, &count) in costs[alphabet].iter_mut().zip(of) {
            // A symbol that is new to a group also costs its code length.
            *cost = match count {
                0 => (log2(total + 1) as f32 / 65536.0) + 4.0,
                _ => (log2(total) - log2(count)) as f32 / 65536.0,
            };
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_cost_their_share_of_their_alphabet() {
        let [_, red, blue, alpha, distance] = histogram::alphabets(0).map(|symbols| symbols.start);
        let mut counts = vec![0; distance + 320];
        counts[red + 3] = 4;
        counts[red + 9] = 12;
        counts[alpha + 255] = 7;
        let costs = costs(&counts);
        for (symbol, exact, what) in [
            (red + 3, 2.0, "4 of 16"),
            (red + 9, (16.0f32 / 12.0).log2(), "12 of 16"),
            (red, 17f32.log2() + 4.0, "a new one"),
            (alpha + 255, 0.0, "the only one"),
            (alpha, 3.0 + 4.0, "one beside the only one"),
            (blue, 4.0, "the first one"),
        ] {
            let cost = costs[symbol];
            assert!((cost - exact).abs() < 1e-3, "{what}: {cost} for {exact}");
        }
    }

    #[test]
    fn a_group_costs_its_share_of_tiles_and_the_map_its_changes() {
        let groups = CodeGroups {
            by_tile: vec![0, 0, 1, 1, 0, 0, 3, 2],
            histograms: vec![Vec::new(); 4],
        };
        assert_eq!(groups.member_costs(), [1.0, 2.0, 3.0, 3.0]);
        // The group changes four times in eight tiles. A change takes a name of two bits and one
        // bit more.
        assert_eq!(groups.map_cost(), 4 * 3 * BIT / 8);
    }
}
