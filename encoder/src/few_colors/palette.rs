//! A palette of few colors for a picture: the colors are split where that lessens the error most,
//! and each is then replaced by the nearest (k-means).

use super::colors::{Color, Colors, Point, distance, point};
use crate::error::EncodeError;
use crate::threads::Workers;
use crate::vp8l::MAX_COLORS;
use std::ops::Range;

/// Up to [`MAX_COLORS`] colors, by their green.
#[derive(Debug)]
pub struct Palette(Vec<(Point, u32)>);

/// Colors that are replaced by one.
struct Cluster {
    /// Their indices in the list.
    range: Range<usize>,
    /// The sum of the squared distances from their mean, by weight.
    error: u64,
    /// The axis of [`Point`] along which they differ most.
    axis: usize,
}

impl Palette {
    /// Splits the colors until the sum of squared errors is at most `error`, or there are
    /// [`MAX_COLORS`] clusters, and moves each cluster's color to the middle of the colors that are
    /// nearest to it; `None` if the sum is still above `most_error`. Reorders the list.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn of(
        colors: &mut Colors,
        error: u64,
        most_error: u64,
        workers: Workers<'_>,
    ) -> Result<Option<Palette>, EncodeError> {
        /// How often the colors move. More rounds save less than one percent of the error.
        const MOVES: usize = 2;
        let clusters = split(&mut colors.list, error, workers)?;
        if total(&clusters) > most_error {
            return Ok(None);
        }
        colors.index();
        let list = &colors.list;
        let members = clusters.iter().map(|cluster| &list[cluster.range.clone()]);
        let mut palette = Palette::new(&members.map(Mean::of).collect::<Vec<_>>());
        for _ in 0..MOVES {
            let mut means = vec![Mean::default(); palette.0.len()];
            for part in list.chunks(COLORS_PER_CHECK) {
                workers.check()?;
                for color in part {
                    means[palette.nearest(color)].add(color);
                }
            }
            means.retain(|mean| mean.weight > 0);
            palette = Palette::new(&means);
        }
        Ok(Some(palette))
    }

    fn new(means: &[Mean]) -> Palette {
        let argb = means.iter().map(Mean::argb);
        let mut colors: Vec<_> = argb.map(|argb| (point(argb), argb)).collect();
        colors.sort_unstable_by_key(|&(point, argb)| (point[GREEN], argb));
        Palette(colors)
    }

    /// Replaces each color by the nearest of the palette.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn assign(&self, colors: &mut Colors, workers: Workers<'_>) -> Result<(), EncodeError> {
        for part in colors.list.chunks_mut(COLORS_PER_CHECK) {
            workers.check()?;
            for color in part {
                color.replaced = self.0[self.nearest(color)].1;
            }
        }
        Ok(())
    }

    /// The index of the nearest color. The search goes up and down from the color's own green until
    /// green alone is farther off than the nearest color so far.
    fn nearest(&self, color: &Color) -> usize {
        let green = color.point[GREEN];
        let middle = self.0.partition_point(|(point, _)| point[GREEN] < green);
        let mut best = (u32::MAX, 0);
        let mut search = |indices: &mut dyn Iterator<Item = usize>| {
            for index in indices {
                let point = &self.0[index].0;
                if (point[GREEN] - green).pow(2) as u32 >= best.0 {
                    break;
                }
                best = best.min((distance(point, &color.point), index));
            }
        };
        search(&mut (middle..self.0.len()));
        search(&mut (0..middle).rev());
        best.1
    }
}

/// The axis of green in a [`Point`].
const GREEN: usize = 1;

/// Colors between two checks for cancellation: less than a millisecond.
const COLORS_PER_CHECK: usize = 1 << 11;

/// Splits the colors into clusters.
fn split(list: &mut [Color], most: u64, workers: Workers<'_>) -> Result<Vec<Cluster>, EncodeError> {
    // The same order whatever order the pixels have.
    list.sort_unstable_by_key(|color| color.argb);
    let mut clusters = vec![Cluster::new(list, 0..list.len())];
    while clusters.len() < MAX_COLORS {
        workers.check()?;
        if total(&clusters) <= most {
            break;
        }
        let worst = (0..clusters.len()).max_by_key(|&index| clusters[index].error);
        let worst = worst.expect("there is a cluster");
        let Cluster { range, axis, .. } = &clusters[worst];
        let (range, axis) = (range.clone(), *axis);
        let members = &mut list[range.clone()];
        members.sort_unstable_by_key(|color| (color.point[axis], color.argb));
        let middle = range.start + best_cut(members, axis);
        clusters[worst] = Cluster::new(list, range.start..middle);
        clusters.push(Cluster::new(list, middle..range.end));
    }
    Ok(clusters)
}

/// The sum of squared errors.
fn total(clusters: &[Cluster]) -> u64 {
    clusters.iter().map(|cluster| cluster.error).sum()
}

impl Cluster {
    fn new(list: &[Color], range: Range<usize>) -> Cluster {
        let members = &list[range.clone()];
        let errors: [u64; 4] = std::array::from_fn(|axis| {
            let mean = mean(members, axis);
            let square = |color: &Color| color.weight * (color.point[axis] - mean).pow(2) as u64;
            members.iter().map(square).sum()
        });
        Cluster {
            range,
            error: errors.iter().sum(),
            axis: (0..4).max_by_key(|&axis| errors[axis]).expect("four axes"),
        }
    }
}

/// The rounded mean of an axis by weight.
fn mean(members: &[Color], axis: usize) -> i32 {
    let weight: u64 = members.iter().map(|color| color.weight).sum();
    let sum: u64 = members
        .iter()
        .map(|color| color.weight * color.point[axis] as u64)
        .sum();
    ((sum + weight / 2) / weight.max(1)) as i32
}

/// The number of the members, which ascend along `axis`, in the first of two parts whose errors
/// along it are least.
fn best_cut(members: &[Color], axis: usize) -> usize {
    let mean = mean(members, axis);
    let offset = |color: &Color| color.weight as i64 * i64::from(color.point[axis] - mean);
    let all: i64 = members.iter().map(offset).sum();
    let weight: i64 = members.iter().map(|color| color.weight as i64).sum();
    // What a part takes off the error: its weight times the square of its mean offset, in 16ths.
    let gain = |sum: i64, weight: i64| sum * (sum * 16 / weight);
    let (mut sum, mut part) = (0, 0);
    let mut best = (i64::MIN, 1);
    for (count, color) in (1..members.len()).zip(members) {
        sum += offset(color);
        part += color.weight as i64;
        let gain = gain(sum, part) + gain(all - sum, weight - part);
        if gain > best.0 {
            best = (gain, count);
        }
    }
    best.1
}

/// The mean of some colors.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    weight: u64,
    /// Sums by weight: blue, green and red times alpha, and alpha.
    sums: [u64; 4],
    /// The color of the largest weight.
    main: (u64, u32),
}

impl Mean {
    fn of(members: &[Color]) -> Mean {
        let mut mean = Mean::default();
        for color in members {
            mean.add(color);
        }
        mean
    }

    fn add(&mut self, color: &Color) {
        let [samples @ .., alpha] = color.argb.to_le_bytes().map(u64::from);
        self.weight += color.weight;
        for (sum, sample) in self.sums.iter_mut().zip(samples) {
            *sum += sample * alpha * color.weight;
        }
        self.sums[3] += alpha * color.weight;
        self.main = self.main.max((color.weight, color.argb));
    }

    /// The color of more than half of the weight, if there is one, so that backgrounds stay exact.
    fn argb(&self) -> u32 {
        let [samples @ .., alpha] = self.sums;
        if self.main.0 * 2 >= self.weight || alpha == 0 {
            return self.main.1;
        }
        let [blue, green, red] = samples.map(|sum| ((sum + alpha / 2) / alpha) as u8);
        let alpha = ((alpha + self.weight / 2) / self.weight) as u8;
        u32::from_le_bytes([blue, green, red, alpha])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn color(argb: u32, weight: u64) -> Color {
        Color {
            weight,
            ..Color::new(argb)
        }
    }

    #[test]
    fn a_mean_weighs_samples_by_alpha_and_number() {
        let members = [
            color(0xff00_00c8, 2),
            color(0x8064_0a00, 2),
            color(0x4000_ff00, 1),
        ];
        // Their alphas times weights are 510, 256 and 64, together 830.
        let [blue, green, red] = [200 * 510, 10 * 256 + 255 * 64, 100 * 256]
            .map(|sum: u32| (f64::from(sum) / 830.0).round() as u8);
        let expected = u32::from_le_bytes([blue, green, red, 166]);
        assert_eq!(Mean::of(&members).argb(), expected);
    }

    #[test]
    fn a_color_of_half_of_the_weight_stays_exact() {
        let [main, other, third] = [0xff12_3456, 0xff65_4321, 0xff00_0000];
        let mean = |weight| Mean::of(&[color(other, 2), color(main, weight), color(third, 2)]);
        assert_eq!(mean(4).argb(), main);
        assert_ne!(mean(3).argb(), main);
        // Transparent colors have no mean: the last of the heaviest ones stands for them.
        let clear = [
            color(0x0000_0001, 1),
            color(0x0000_0002, 1),
            color(0x0000_0003, 1),
        ];
        assert_eq!(Mean::of(&clear).argb(), 0x0000_0003);
    }

    #[test]
    fn clusters_are_cut_where_the_errors_of_the_parts_are_least() {
        for (greens, weights) in [
            ([0, 1, 2, 50, 51, 52], [1; 6]),
            ([0, 40, 41, 42, 43, 44], [1; 6]),
            ([0, 1, 2, 3, 4, 60], [1; 6]),
            // Weights move the cut away from the middle.
            ([0, 10, 20, 30, 40, 50], [1, 1, 30, 1, 1, 1]),
            ([0, 10, 20, 30, 40, 50], [20, 1, 1, 1, 1, 1]),
        ] {
            let members: Vec<Color> = greens
                .iter()
                .zip(weights)
                .map(|(&green, weight)| color(0xff00_0000 | green << 8, weight))
                .collect();
            let error = |part: &[Color]| Cluster::new(part, 0..part.len()).error;
            let least = (1..members.len())
                .min_by_key(|&cut| error(&members[..cut]) + error(&members[cut..]));
            let cut = best_cut(&members, GREEN);
            assert_eq!(
                cut,
                least.expect("five cuts"),
                "of {greens:?} by {weights:?}"
            );
        }
    }

    #[test]
    fn the_nearest_color_is_the_one_of_least_distance() {
        let mut random = Random::new(3);
        let mut colors = |count: usize| -> Vec<Color> {
            (0..count)
                .map(|_| color(random.below(u32::MAX) | 0xff00_0000, 1))
                .collect()
        };
        let means: Vec<Mean> = colors(40)
            .iter()
            .map(|color| Mean::of(std::slice::from_ref(color)))
            .collect();
        let palette = Palette::new(&means);
        for color in colors(300) {
            let distances = palette
                .0
                .iter()
                .map(|(point, _)| distance(point, &color.point));
            let least = distances.min().expect("40 colors");
            let found = &palette.0[palette.nearest(&color)].0;
            assert_eq!(distance(found, &color.point), least, "{:08x}", color.argb);
        }
    }
}
