//! Groups of prefix codes, and the image that says which of them each tile of the picture uses: RFC 9649, section 3.7.2.2.
//!
//! Tiles start in groups of like cost. Then, a few times over, each goes to the group by whose codes it takes fewest bits, and groups
//! whose codes take more bits than they save are joined.

use super::entropy::{BIT, BIT_SHIFT, log2};
use super::histogram;
use super::token::{self, TokenImage};
use crate::EncodeError;
use crate::threads::Workers;

/// Which group of codes each tile uses.
#[derive(Clone, Debug)]
pub struct EntropyImage {
    /// log2 of a tile's side, 2 to 9.
    pub tile_bits: u32,
    /// Tiles across.
    pub width: usize,
    /// By tile.
    pub groups: Vec<u16>,
}

impl EntropyImage {
    /// The image as it is written: groups in red and green.
    pub fn pixels(&self) -> Vec<u32> {
        self.groups
            .iter()
            .map(|group| 0xFF00_0000 | u32::from(*group) << 8)
            .collect()
    }

    /// The group of pixel `i` in rows of `width`.
    #[inline]
    pub fn group_at(&self, i: usize, width: usize) -> usize {
        usize::from(self.groups[tile_at(i, width, self.tile_bits, self.width)])
    }

    /// The first pixel in the same row that is in another tile than pixel `i`, or the row's end.
    #[inline]
    pub fn tile_end(&self, i: usize, width: usize) -> usize {
        let x = i % width;
        let next = ((x >> self.tile_bits) + 1) << self.tile_bits;
        i - x + next.min(width)
    }
}

#[inline]
fn tile_at(i: usize, width: usize, tile_bits: u32, across: usize) -> usize {
    ((i / width) >> tile_bits) * across + ((i % width) >> tile_bits)
}

/// How groups are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Most groups at the start.
    pub groups: usize,
    /// How often tiles choose.
    pub rounds: usize,
    /// Most tiles.
    pub tiles: usize,
    /// Literals and copies that a tile has at least, on average.
    pub filling: usize,
}

/// Groups of codes for a picture.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// How often each symbol occurs in each group.
    pub histograms: Vec<Vec<u32>>,
    /// Which tile has which; none if there is one group alone.
    pub image: Option<EntropyImage>,
}

/// Divides the tiles of `image` into groups.
pub fn group(
    image: &TokenImage<'_>,
    search: Search,
    workers: Workers<'_>,
) -> Result<Grouping, EncodeError> {
    /// At the start, at least.
    const TILES_A_GROUP: usize = 4;
    let most = search
        .tiles
        .min(token::written(image.tokens) / search.filling);
    let alone = |histogram| Grouping {
        histograms: vec![histogram],
        image: None,
    };
    if most < 2 * TILES_A_GROUP {
        return Ok(alone(histogram::count(image, workers)?));
    }
    let tiles = Tiles::new(image, most, workers)?;
    let whole = tiles.whole();
    let limit = search.groups.min(tiles.filled.len() / TILES_A_GROUP);
    if limit < 2 {
        return Ok(alone(whole));
    }
    let mut groups = tiles.by_cost(&whole, limit);
    for round in 0..search.rounds {
        tiles.choose(&mut groups, workers)?;
        if round + 2 == search.rounds {
            groups.join(workers)?;
        }
    }
    let apart: u64 = groups.histograms.iter().map(|g| histogram::cost(g)).sum();
    let map = groups.map_cost() * tiles.filled.len() as u64;
    if apart + map >= histogram::cost(&whole) {
        return Ok(alone(whole));
    }
    Ok(Grouping {
        image: Some(tiles.image(&groups.of)),
        histograms: groups.histograms,
    })
}

/// The symbols of each tile.
struct Tiles {
    tile_bits: u32,
    across: usize,
    down: usize,
    symbols: usize,
    /// The tiles in which anything begins.
    filled: Vec<usize>,
    /// Where the symbols of each of them end.
    ends: Vec<usize>,
    /// 12 bits of symbol, 20 of how often.
    counts: Vec<u32>,
}

const SYMBOL_BITS: u32 = 12;

impl Tiles {
    /// Counts in tiles as small as `most` of them allow.
    fn new(
        image: &TokenImage<'_>,
        most: usize,
        workers: Workers<'_>,
    ) -> Result<Tiles, EncodeError> {
        const LEAST_BITS: u32 = 4;
        const MOST_BITS: u32 = 9;
        let width = image.width;
        let height = image.pixels.len() / width;
        let size = |bits: u32| (width.div_ceil(1 << bits), height.div_ceil(1 << bits));
        let fits = |bits: &u32| size(*bits).0 * size(*bits).1 <= most;
        let tile_bits = (LEAST_BITS..MOST_BITS).find(fits).unwrap_or(MOST_BITS);
        let (across, down) = size(tile_bits);
        let symbols = histogram::symbol_count(image.cache.bits());
        let mut tiles = Tiles {
            tile_bits,
            across,
            down,
            symbols,
            filled: Vec::new(),
            ends: Vec::new(),
            counts: Vec::new(),
        };
        // One row of tiles.
        let mut row = vec![0; across * symbols];
        let mut row_end = width << tile_bits;
        let mut y = 0;
        let (mut line, mut line_end) = (0, width);
        histogram::for_each_symbol(image, workers, |i, found| {
            while i >= row_end {
                tiles.finish_row(y, &mut row);
                y += 1;
                row_end += width << tile_bits;
            }
            if i >= line_end {
                line = i - i % width;
                line_end = line + width;
            }
            let counts = &mut row[((i - line) >> tile_bits) * symbols..][..symbols];
            for symbol in found {
                counts[*symbol] += 1;
            }
        })?;
        tiles.finish_row(y, &mut row);
        Ok(tiles)
    }

    /// Takes over what was counted in a row of tiles, and clears it.
    fn finish_row(&mut self, y: usize, row: &mut [u32]) {
        for (x, counts) in row.chunks_exact_mut(self.symbols).enumerate() {
            let before = self.counts.len();
            for (first, eight) in (0..).step_by(8).zip(counts.chunks_mut(8)) {
                if eight.iter().fold(0, |any, count| any | count) == 0 {
                    continue;
                }
                for (symbol, count) in (first..).zip(eight) {
                    if *count > 0 {
                        self.counts.push(symbol | *count << SYMBOL_BITS);
                        *count = 0;
                    }
                }
            }
            if self.counts.len() > before {
                self.filled.push(y * self.across + x);
                self.ends.push(self.counts.len());
            }
        }
    }

    /// The symbols of a filled tile with how often they occur.
    fn of(&self, tile: usize) -> impl Iterator<Item = (usize, u32)> + Clone {
        let start = if tile == 0 { 0 } else { self.ends[tile - 1] };
        self.counts[start..self.ends[tile]].iter().map(|both| {
            (
                (both & ((1 << SYMBOL_BITS) - 1)) as usize,
                both >> SYMBOL_BITS,
            )
        })
    }

    /// `count` groups of tiles whose symbols cost alike, by codes for the whole.
    fn by_cost(&self, whole: &[u32], count: usize) -> Groups {
        let costs = costs(whole);
        let mut order: Vec<(u32, usize)> = (0..self.filled.len())
            .map(|tile| {
                let (bits, symbols) = self.of(tile).fold((0.0, 0), |(bits, symbols), (s, n)| {
                    (bits + f64::from(n) * f64::from(costs[s]), symbols + n)
                });
                ((bits / f64::from(symbols) * 256.0) as u32, tile)
            })
            .collect();
        order.sort_unstable();
        let mut of = vec![0; self.filled.len()];
        for (rank, (_, tile)) in order.iter().enumerate() {
            of[*tile] = (rank * count / order.len()) as u16;
        }
        self.count(of, count)
    }

    /// How often each symbol occurs in all of them.
    fn whole(&self) -> Vec<u32> {
        let mut groups = self.count(vec![0; self.filled.len()], 1);
        groups.histograms.swap_remove(0)
    }

    /// The groups' histograms, if tiles are in groups `of`.
    fn count(&self, of: Vec<u16>, count: usize) -> Groups {
        let mut histograms = vec![vec![0; self.symbols]; count];
        for (tile, group) in of.iter().enumerate() {
            let histogram = &mut histograms[usize::from(*group)];
            for (symbol, count) in self.of(tile) {
                histogram[symbol] += count;
            }
        }
        Groups { of, histograms }
    }

    /// Lets each tile go to the group by whose codes it is cheapest. Empty groups are left out.
    fn choose(&self, groups: &mut Groups, workers: Workers<'_>) -> Result<(), EncodeError> {
        /// Groups whose costs are added up side by side.
        const LANES: usize = 8;
        const TILES_A_QUESTION: usize = 256;
        let count = groups.histograms.len();
        let stride = count.next_multiple_of(LANES);
        // Symbol by symbol, the cost in each group.
        let mut table = vec![0f32; self.symbols * stride];
        for (group, histogram) in groups.histograms.iter().enumerate() {
            for (symbol, cost) in costs(histogram).into_iter().enumerate() {
                table[symbol * stride + group] = cost;
            }
        }
        let map_cost = groups.member_costs();
        let mut sums = vec![0f32; stride];
        let mut of = vec![0; self.filled.len()];
        for (tile, chosen) in of.iter_mut().enumerate() {
            if tile % TILES_A_QUESTION == 0 {
                workers.check()?;
            }
            sums[..count].copy_from_slice(&map_cost);
            for (symbol, n) in self.of(tile) {
                let n = n as f32;
                let row = &table[symbol * stride..][..stride];
                for (sums, costs) in sums.chunks_exact_mut(LANES).zip(row.chunks_exact(LANES)) {
                    for lane in 0..LANES {
                        sums[lane] += costs[lane] * n;
                    }
                }
            }
            let mut least = f32::INFINITY;
            for (group, sum) in sums[..count].iter().enumerate() {
                if *sum < least {
                    least = *sum;
                    *chosen = group as u16;
                }
            }
        }
        let mut names = vec![u16::MAX; count];
        let mut used = 0;
        for group in &mut of {
            let name = &mut names[usize::from(*group)];
            if *name == u16::MAX {
                *name = used;
                used += 1;
            }
            *group = *name;
        }
        *groups = self.count(of, usize::from(used));
        Ok(())
    }

    /// The image, in which tiles without a symbol have the group of the one before.
    fn image(&self, of: &[u16]) -> EntropyImage {
        let mut groups = Vec::with_capacity(self.across * self.down);
        let mut filled = self.filled.iter().zip(of).peekable();
        let mut last = of.first().copied().unwrap_or(0);
        for tile in 0..self.across * self.down {
            if let Some((_, group)) = filled.next_if(|(filled, _)| **filled == tile) {
                last = *group;
            }
            groups.push(last);
        }
        EntropyImage {
            tile_bits: self.tile_bits,
            width: self.across,
            groups,
        }
    }
}

/// A division of tiles.
struct Groups {
    /// By filled tile.
    of: Vec<u16>,
    histograms: Vec<Vec<u32>>,
}

impl Groups {
    /// Joins pairs of groups as long as that saves bits, those that save most first.
    fn join(&mut self, workers: Workers<'_>) -> Result<(), EncodeError> {
        let mut left: Vec<Option<Costed>> = std::mem::take(&mut self.histograms)
            .into_iter()
            .map(|counts| Some(Costed::new(counts)))
            .collect();
        let count = left.len();
        // By pair, the lower number first.
        let mut savings = vec![i64::MIN; count * count];
        for a in 0..count {
            workers.check()?;
            for b in a + 1..count {
                savings[a * count + b] = saving(left[a].as_ref(), left[b].as_ref());
            }
        }
        let mut into: Vec<usize> = (0..count).collect();
        loop {
            workers.check()?;
            let best = (0..savings.len()).max_by_key(|i| (savings[*i], std::cmp::Reverse(*i)));
            let Some(best) = best.filter(|best| savings[*best] > 0) else {
                break;
            };
            let (a, b) = (best / count, best % count);
            left[a] = left[a].take().zip(left[b].take()).map(Costed::sum);
            for other in 0..count {
                savings[other.min(b) * count + other.max(b)] = i64::MIN;
                if other != a {
                    let (low, high) = (other.min(a), other.max(a));
                    savings[low * count + high] = saving(left[low].as_ref(), left[high].as_ref());
                }
            }
            for group in &mut into {
                if *group == b {
                    *group = a;
                }
            }
        }
        let mut names = vec![0; count];
        let mut used = 0;
        for (name, left) in names.iter_mut().zip(&left) {
            *name = used;
            used += u16::from(left.is_some());
        }
        for group in &mut self.of {
            *group = names[into[usize::from(*group)]];
        }
        self.histograms = left.into_iter().flatten().map(|left| left.counts).collect();
        Ok(())
    }

    /// What it costs to name each group for a tile, in bits.
    fn member_costs(&self) -> Vec<f32> {
        let mut members = vec![0u32; self.histograms.len()];
        for group in &self.of {
            members[usize::from(*group)] += 1;
        }
        let all = log2(self.of.len() as u32);
        members
            .iter()
            .map(|count| (all - log2(*count)) as f32 / 65536.0)
            .collect()
    }

    /// What the map costs for a tile on average, in 1 / [`BIT`] bits: neighbours are often alike.
    fn map_cost(&self) -> u64 {
        let changes = self.of.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        let name = u64::from(log2(self.histograms.len() as u32) >> (16 - BIT_SHIFT));
        (changes * (name + BIT)) / self.of.len() as u64
    }
}

/// How often each symbol occurs, and what that costs.
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

/// What it saves to join two groups that are both there.
fn saving(one: Option<&Costed>, other: Option<&Costed>) -> i64 {
    let (Some(one), Some(other)) = (one, other) else {
        return i64::MIN;
    };
    let together = histogram::cost(&add(&one.counts, &other.counts));
    (one.cost + other.cost) as i64 - together as i64
}

/// The bits of each symbol, if codes are made for such counts.
fn costs(counts: &[u32]) -> Vec<f32> {
    let mut costs = vec![0.0; counts.len()];
    for alphabet in histogram::alphabets(counts.len()) {
        let of = &counts[alphabet.clone()];
        let total: u32 = of.iter().sum();
        let used = of.iter().filter(|count| **count > 0).count();
        for (cost, &count) in costs[alphabet].iter_mut().zip(of) {
            // A symbol that is new to a group costs its code's length as well.
            *cost = match count {
                0 => (log2(total + 1) as f32 / 65536.0) + 4.0,
                _ if used == 1 => 0.0,
                _ => (log2(total) - log2(count)) as f32 / 65536.0,
            };
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8l::lz77;
    use crate::vp8l::token::CacheHits;

    fn grouping(pixels: &[u32], width: usize) -> Grouping {
        let workers = Workers::unlimited(1);
        let tokens = lz77::quick(pixels, width, workers).expect("nothing cancels it");
        let image = TokenImage {
            pixels,
            width,
            tokens: &tokens.0,
            cache: &CacheHits::NONE,
        };
        let search = Search {
            groups: 8,
            rounds: 4,
            tiles: 1000,
            filling: 32,
        };
        let grouping = group(&image, search, workers).expect("nothing cancels it");
        let sums: Vec<u32> = (0..histogram::symbol_count(0))
            .map(|symbol| grouping.histograms.iter().map(|h| h[symbol]).sum())
            .collect();
        assert_eq!(
            sums,
            histogram::count(&image, workers).expect("nothing cancels it")
        );
        grouping
    }

    fn noise() -> impl FnMut(u32) -> u32 {
        let mut state = 1u32;
        move |mask| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state >> 4 & mask | 0xFF00_0000
        }
    }

    #[test]
    fn parts_of_two_kinds_get_two_groups() {
        let mut noise = noise();
        let width = 256;
        let pixels: Vec<u32> = (0..width * 128)
            .map(|i| {
                noise(if i % width < 128 {
                    0x0000_0F0F
                } else {
                    0x00F0_00F0
                })
            })
            .collect();
        let grouping = grouping(&pixels, width);
        assert_eq!(grouping.histograms.len(), 2);
        let image = grouping.image.expect("two groups");
        assert_eq!((image.tile_bits, image.width), (4, 16));
        for (tile, group) in image.groups.iter().enumerate() {
            let expected = if tile % 16 < 8 {
                image.groups[0]
            } else {
                image.groups[8]
            };
            assert_eq!(*group, expected, "tile {tile}");
        }
        assert_eq!(image.group_at(130, width), usize::from(image.groups[8]));
        assert_eq!(image.tile_end(130, width), 144);
        assert_eq!(image.tile_end(255, width), 256);
    }

    #[test]
    fn one_kind_gets_one_group() {
        let mut noise = noise();
        let pixels: Vec<u32> = (0..256 * 128).map(|_| noise(0x00FF_FFFF)).collect();
        assert!(grouping(&pixels, 256).image.is_none());
        assert!(grouping(&[0xFF00_0000; 10], 10).image.is_none());
    }
}
