//! Divides the tiles of a picture into groups with prefix codes of their own: RFC 9649, section
//! 3.7.2.2.
//!
//! Tiles of similar cost start in the same group. Then, for a few rounds, each tile moves to the
//! group whose codes take the fewest bits for it, and groups whose codes take more bits than they
//! save are merged.

use super::code_groups::CodeGroups;
use super::entropy_image::EntropyImage;
use super::histogram;
use super::tiles::{self, Tiles};
use super::token::{self, TokenImage};
use crate::EncodeError;
use crate::cpu::Simd;
use crate::threads::Workers;

/// Limits of the search for groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupSearch {
    /// Most groups at the start.
    pub groups: usize,
    /// Number of rounds in which tiles choose.
    pub rounds: usize,
    /// Most tiles.
    pub tiles: usize,
    /// Least number of literals and copies per tile, on average.
    pub tokens_per_tile: usize,
    /// Least number of tiles per group at the start.
    pub tiles_per_group: usize,
    /// Base-2 logarithm of the least side of a tile.
    pub tile_bits: u32,
}

/// The groups of prefix codes of a picture.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Counts of the symbols in each group.
    pub histograms: Vec<Vec<u32>>,
    /// The group of each tile; `None` if there is only one group.
    pub image: Option<EntropyImage>,
}

/// Divides the tiles of `image` into groups.
pub fn group(
    image: &TokenImage<'_>,
    search: GroupSearch,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Grouping, EncodeError> {
    let most = search
        .tiles
        .min(token::count_literals_and_copies(image.tokens) / search.tokens_per_tile);
    let alone = |histogram| Grouping {
        histograms: vec![histogram],
        image: None,
    };
    if most < 2 * search.tiles_per_group {
        return Ok(alone(histogram::count(image, workers)?));
    }
    let tile_bits = tiles::fitting_tile_bits(image, search.tile_bits, most);
    let tiles = Tiles::new(image, tile_bits, workers)?;
    let whole = tiles.whole();
    let limit = search
        .groups
        .min(tiles.filled.len() / search.tiles_per_group);
    if limit < 2 {
        return Ok(alone(whole));
    }
    let groups = tiles.by_cost(&whole, limit);
    improve(&tiles, groups, whole, search.rounds, simd, workers)
}

/// Divides the tiles of `image` into groups, starting from those of another parse of the same
/// pixels.
pub fn regroup(
    image: &TokenImage<'_>,
    before: &Grouping,
    rounds: usize,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Grouping, EncodeError> {
    let Some(map) = &before.image else {
        return Ok(Grouping {
            histograms: vec![histogram::count(image, workers)?],
            image: None,
        });
    };
    let tiles = Tiles::new(image, map.tile_bits, workers)?;
    let whole = tiles.whole();
    let groups = tiles.by_image(map, before.histograms.len());
    improve(&tiles, groups, whole, rounds, simd, workers)
}

/// Lets tiles choose and merges groups. Returns one group if several save nothing.
fn improve(
    tiles: &Tiles,
    mut groups: CodeGroups,
    whole: Vec<u32>,
    rounds: usize,
    simd: Simd,
    workers: Workers<'_>,
) -> Result<Grouping, EncodeError> {
    for round in 0..rounds {
        tiles.choose(&mut groups, simd, workers)?;
        if round + 2 == rounds {
            groups.merge(workers)?;
        }
    }
    let apart: u64 = groups.histograms.iter().map(|g| histogram::cost(g)).sum();
    let map = groups.map_cost() * tiles.filled.len() as u64;
    if apart + map >= histogram::cost(&whole) {
        return Ok(Grouping {
            histograms: vec![whole],
            image: None,
        });
    }
    Ok(Grouping {
        image: Some(tiles.image(&groups.by_tile)),
        histograms: groups.histograms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use crate::vp8l::color_cache::CacheHits;
    use crate::vp8l::greedy_parse;

    fn grouping(pixels: &[u32], width: usize) -> Grouping {
        let workers = Workers::unlimited(1);
        let tokens =
            greedy_parse::parse_greedily(pixels, width, workers).expect("nothing cancels it");
        let image = TokenImage {
            pixels,
            width,
            tokens: &tokens.0,
            cache: &CacheHits::NONE,
        };
        let search = GroupSearch {
            groups: 8,
            rounds: 4,
            tiles: 1000,
            tokens_per_tile: 32,
            tiles_per_group: 4,
            tile_bits: 4,
        };
        let grouping = group(&image, search, Simd::detect(), workers).expect("nothing cancels it");
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
        let mut random = Random::new(1);
        move |mask| random.next_u32() & mask | 0xFF00_0000
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
