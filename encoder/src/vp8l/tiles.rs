//! The symbols of each tile of a picture, by which tiles choose their group of prefix codes
//! (RFC 9649, section 3.7.2.2).

use super::code_groups::{CodeGroups, costs};
use super::entropy_image::EntropyImage;
use super::histogram;
use super::token::TokenImage;
use crate::EncodeError;
use crate::checks::Checks;
use crate::cpu::{Simd, with_instructions};
use crate::threads::Workers;

/// The symbols of each tile.
pub struct Tiles {
    /// Base-2 logarithm of a tile's side.
    tile_bits: u32,
    /// Number of tiles in a row.
    across: usize,
    /// Number of rows of tiles.
    down: usize,
    /// Number of symbols of all alphabets.
    symbols: usize,
    /// Indices of the tiles in which a token starts.
    pub filled: Vec<usize>,
    /// Where each filled tile's entries are in `counts`: row of tiles, begin and end.
    places: Vec<(u32, u32, u32)>,
    /// Entries of each row of tiles: 12 bits of symbol, and 4 bits of its count, less 1. A symbol
    /// that occurs more often has several entries.
    counts: Vec<Box<[u16]>>,
}

const SYMBOL_BITS: u32 = 12;
/// Largest count of an entry.
const MAX_COUNT: u32 = 1 << (u16::BITS - SYMBOL_BITS);

/// Number of groups whose costs are summed at a time if there are few.
const LANES: usize = 8;

/// Returns the symbol and the count of an entry of [`Tiles`].
#[inline(always)]
fn unpacked(both: u16) -> (usize, u32) {
    let symbol = both & ((1 << SYMBOL_BITS) - 1);
    (usize::from(symbol), u32::from(both >> SYMBOL_BITS) + 1)
}

/// Returns the base-2 logarithm of the side of the smallest tiles of which there are at most
/// `most`; it is at least `least`. The counts of a row of tiles must not take more memory than half
/// of the pixels.
pub fn fitting_tile_bits(image: &TokenImage<'_>, least: u32, most: usize) -> u32 {
    const MAX_TILE_BITS: u32 = 9;
    /// Number of counts that any picture may take.
    const ANY: usize = 1 << 17;
    let symbols = histogram::symbol_count(image.cache.bits());
    let fits = |bits: &u32| {
        let (across, down) = size(image, *bits);
        across * down <= most && across * symbols <= ANY.max(image.pixels.len() / 2)
    };
    (least..MAX_TILE_BITS).find(fits).unwrap_or(MAX_TILE_BITS)
}

/// Returns the number of tiles in a row and in a column.
fn size(image: &TokenImage<'_>, tile_bits: u32) -> (usize, usize) {
    let height = image.pixels.len() / image.width;
    (
        image.width.div_ceil(1 << tile_bits),
        height.div_ceil(1 << tile_bits),
    )
}

/// Adds the cost of each symbol times its count to `sums`, for each group. The table has a row of
/// costs by group for each symbol.
#[inline(always)]
fn add_costs(sums: &mut [f32], table: &[f32], symbols: &[u16]) {
    /// Number of groups whose sums stay in registers.
    const MANY: usize = 4 * LANES;
    let mut group = 0;
    while group + MANY <= sums.len() {
        add_costs_of::<MANY>(sums, group, table, symbols);
        group += MANY;
    }
    while group < sums.len() {
        add_costs_of::<LANES>(sums, group, table, symbols);
        group += LANES;
    }
}

/// [`add_costs`] for `N` groups from `first` on.
#[inline(always)]
fn add_costs_of<const N: usize>(sums: &mut [f32], first: usize, table: &[f32], symbols: &[u16]) {
    let stride = sums.len();
    let out: &mut [f32; N] = sums[first..]
        .first_chunk_mut()
        .expect("the number of groups is a multiple");
    let mut lanes = *out;
    for &both in symbols {
        let (symbol, count) = unpacked(both);
        let costs: &[f32; N] = table[symbol * stride + first..]
            .first_chunk()
            .expect("a row has as many costs as there are sums");
        for lane in 0..N {
            lanes[lane] += costs[lane] * count as f32;
        }
    }
    *out = lanes;
}

impl Tiles {
    /// Counts the symbols in tiles with sides of `2^tile_bits`.
    pub fn new(
        image: &TokenImage<'_>,
        tile_bits: u32,
        workers: Workers<'_>,
    ) -> Result<Tiles, EncodeError> {
        let width = image.width;
        let (across, down) = size(image, tile_bits);
        let symbols = histogram::symbol_count(image.cache.bits());
        let mut tiles = Tiles {
            tile_bits,
            across,
            down,
            symbols,
            filled: Vec::new(),
            places: Vec::new(),
            counts: Vec::new(),
        };
        // Counts of one row of tiles.
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

    /// Moves the counts of a row of tiles to `counts`, and clears it.
    fn finish_row(&mut self, y: usize, row: &mut [u32]) {
        let mut entries: Vec<u16> = Vec::new();
        for (x, counts) in row.chunks_exact_mut(self.symbols).enumerate() {
            let before = entries.len();
            for (first, eight) in (0..).step_by(8).zip(counts.chunks_mut(8)) {
                if eight.iter().fold(0, |any, count| any | count) == 0 {
                    continue;
                }
                for (symbol, count) in (first..).zip(eight) {
                    while *count > 0 {
                        let part = (*count).min(MAX_COUNT);
                        entries.push(symbol | (part as u16 - 1) << SYMBOL_BITS);
                        *count -= part;
                    }
                }
            }
            if entries.len() > before {
                self.filled.push(y * self.across + x);
                self.places
                    .push((y as u32, before as u32, entries.len() as u32));
            }
        }
        self.counts.push(entries.into_boxed_slice());
    }

    /// Returns the symbols of a filled tile with their counts.
    fn of(&self, tile: usize) -> impl Iterator<Item = (usize, u32)> {
        self.packed(tile).iter().map(|both| unpacked(*both))
    }

    /// Returns a filled tile's entries of `counts`.
    fn packed(&self, tile: usize) -> &[u16] {
        let (row, begin, end) = self.places[tile];
        &self.counts[row as usize][begin as usize..end as usize]
    }

    /// Divides the tiles into `count` groups of similar cost per symbol, measured with codes for
    /// the whole picture.
    pub fn by_cost(&self, whole: &[u32], count: usize) -> CodeGroups {
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

    /// Divides the tiles as `image` does, into `count` groups.
    pub fn by_image(&self, image: &EntropyImage, count: usize) -> CodeGroups {
        let groups = self.filled.iter().map(|tile| image.groups[*tile]);
        self.count(groups.collect(), count)
    }

    /// Counts the symbols of the whole picture.
    pub fn whole(&self) -> Vec<u32> {
        let mut groups = self.count(vec![0; self.filled.len()], 1);
        groups.histograms.swap_remove(0)
    }

    /// Counts the symbols of each group, for tiles in the groups `by_tile`.
    fn count(&self, by_tile: Vec<u16>, count: usize) -> CodeGroups {
        let mut histograms = vec![vec![0; self.symbols]; count];
        for (tile, group) in by_tile.iter().enumerate() {
            let histogram = &mut histograms[usize::from(*group)];
            for (symbol, count) in self.of(tile) {
                histogram[symbol] += count;
            }
        }
        CodeGroups {
            by_tile,
            histograms,
        }
    }

    /// Moves each tile to the group whose codes are the cheapest for it. Empty groups are dropped.
    pub fn choose(
        &self,
        groups: &mut CodeGroups,
        simd: Simd,
        workers: Workers<'_>,
    ) -> Result<(), EncodeError> {
        let count = groups.histograms.len();
        let stride = count.next_multiple_of(LANES);
        // Indexed by symbol, then by group: the cost of the symbol in the group.
        let mut table = vec![0f32; self.symbols * stride];
        for (group, histogram) in groups.histograms.iter().enumerate() {
            for (symbol, cost) in costs(histogram).into_iter().enumerate() {
                table[symbol * stride + group] = cost;
            }
        }
        let map_cost = groups.member_costs();
        let mut sums = vec![0f32; stride];
        let mut of = vec![0; self.filled.len()];
        let mut checks = Checks::every(256, workers);
        for (tile, chosen) in of.iter_mut().enumerate() {
            checks.at(tile)?;
            sums[..count].copy_from_slice(&map_cost);
            let symbols = self.packed(tile);
            with_instructions!(
                simd,
                scalar => add_costs(&mut sums, &table, symbols),
                vectors => add_costs(&mut sums, &table, symbols),
            );
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

    /// Returns the entropy image. A tile without symbols gets the group of the tile before.
    pub fn image(&self, of: &[u16]) -> EntropyImage {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8l::color_cache::CacheHits;

    #[test]
    fn tiles_are_few_and_a_row_of_their_counts_takes_no_more_than_half_of_the_pixels() {
        let bits = |width: usize, height: usize, most: usize| {
            let image = TokenImage {
                pixels: &vec![0; width * height],
                width,
                tokens: &[],
                cache: &CacheHits::NONE,
            };
            fitting_tile_bits(&image, 4, most)
        };
        // 13 x 7, 7 x 4 and 4 x 2 tiles.
        let few = [91, 90, 28, 27, 8, 7, 2, 1, 0].map(|most| bits(200, 100, most));
        assert_eq!(few, [4, 5, 5, 6, 6, 7, 7, 8, 9]);
        // 128 tiles across with counts of 1088 symbols each are 139,264.
        assert_eq!(histogram::symbol_count(0), 1088);
        assert_eq!([17, 18].map(|height| bits(16_383, height, 10_000)), [8, 7]);
    }
}
