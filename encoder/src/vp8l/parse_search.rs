//! How much is tried after the transforms: copies, color caches and groups of prefix codes
//! (RFC 9649, sections 3.6.2 and 3.7.2.2).

use super::grouping::GroupSearch;
use super::transform::transformed::{MAX_ICON_PIXELS, Transformed};
use crate::Effort;

/// How much is tried after the transforms.
#[derive(Clone, Copy, Debug)]
pub struct ParseSearch {
    /// Sizes of the color cache to choose from, as base-2 logarithms.
    pub cache_bits: &'static [u32],
    /// Number of these sizes that are tried in full, those with the lowest estimates.
    pub caches: usize,
    /// Number of earlier positions compared for each copy; `None` keeps the greedy parse.
    pub depth: Option<usize>,
    /// Number of optimal parses, each with the costs of the parse before.
    pub rounds: usize,
    /// Number of short distance codes that are tried at each pixel.
    pub short_codes: usize,
    /// Whether short distance codes are tried in all rounds, or only in the last one.
    pub short_codes_in_all_rounds: bool,
    /// Limits for the search for groups of codes; the best result is taken.
    pub groups: &'static [GroupSearch],
    /// Number of optimal parses after that, each with the codes of the groups before.
    pub group_rounds: usize,
    /// Number of rounds in which tiles choose their group after each of these.
    pub regroup_rounds: usize,
    /// Whether each of these parses considers all copies again, and not only those that the parse
    /// before left; and whether several caches and limits are tried at all.
    pub keeps_copies: bool,
}

impl ParseSearch {
    /// The search for `image`.
    pub fn for_effort(effort: Effort, image: &Transformed) -> ParseSearch {
        match effort {
            // Palette indices repeat more than the greedy parse finds.
            Effort::Low => ParseSearch {
                cache_bits: &[0],
                caches: 1,
                depth: image.is_indexed().then_some(1),
                rounds: 1,
                short_codes: 0,
                short_codes_in_all_rounds: false,
                groups: &[const { groups(12, 2, 500, 64, 4, 4) }],
                group_rounds: 0,
                regroup_rounds: 0,
                keeps_copies: false,
            },
            Effort::Medium if image.is_simple() => ParseSearch {
                cache_bits: if image.is_indexed() { &[0] } else { &[0, 4, 6] },
                caches: 1,
                depth: Some(16),
                rounds: 3,
                short_codes: 4,
                short_codes_in_all_rounds: false,
                groups: &[const { groups(64, 6, 5000, 64, 4, 4) }],
                group_rounds: 1,
                regroup_rounds: 2,
                keeps_copies: false,
            },
            // A picture of few colors consists almost only of copies, and a color cache would
            // repeat the palette.
            Effort::Medium if image.is_indexed() => ParseSearch {
                cache_bits: &[0],
                caches: 1,
                depth: Some(8),
                rounds: 2,
                short_codes: 4,
                short_codes_in_all_rounds: false,
                groups: &[const { groups(32, 4, 5000, 32, 4, 4) }],
                group_rounds: 1,
                regroup_rounds: 2,
                keeps_copies: false,
            },
            // Few pixels leave few tokens, so that a large cache and many tiles cost more than they
            // save, unless they are found to.
            Effort::Medium if image.pixels.len() <= MAX_ICON_PIXELS => ParseSearch {
                cache_bits: &[0, 2, 4, 6, 8, 10],
                caches: 1,
                depth: Some(8),
                rounds: 1,
                short_codes: 2,
                short_codes_in_all_rounds: true,
                groups: &[
                    const { groups(64, 4, 256, 1, 4, 3) },
                    const { groups(64, 3, 64, 1, 1, 3) },
                ],
                group_rounds: 1,
                regroup_rounds: 2,
                keeps_copies: true,
            },
            Effort::Medium => ParseSearch {
                cache_bits: &[0, 10],
                caches: 1,
                depth: Some(8),
                rounds: 1,
                short_codes: 2,
                short_codes_in_all_rounds: true,
                groups: &[const { groups(64, 4, 20_000, 16, 32, 3) }],
                group_rounds: 1,
                regroup_rounds: 2,
                keeps_copies: false,
            },
            Effort::High | Effort::Max if image.is_simple() => ParseSearch {
                cache_bits: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                caches: 4,
                depth: Some(128),
                rounds: 4,
                short_codes: 32,
                short_codes_in_all_rounds: true,
                groups: &[
                    const { groups(64, 6, 5000, 8, 4, 3) },
                    const { groups(64, 6, 5000, 32, 4, 4) },
                    const { groups(64, 6, 5000, 128, 4, 4) },
                ],
                group_rounds: 2,
                regroup_rounds: 4,
                keeps_copies: true,
            },
            Effort::High | Effort::Max => ParseSearch {
                cache_bits: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
                caches: 2,
                depth: Some(128),
                rounds: if image.is_indexed() { 6 } else { 2 },
                short_codes: if image.is_indexed() { 32 } else { 8 },
                short_codes_in_all_rounds: true,
                groups: &[
                    const { groups(128, 6, 20_000, 16, 32, 3) },
                    const { groups(64, 6, 5000, 32, 4, 4) },
                ],
                group_rounds: 3,
                regroup_rounds: 3,
                keeps_copies: true,
            },
        }
    }
}

/// Limits of a search, in the order of [`GroupSearch`]'s fields.
const fn groups(
    groups: usize,
    rounds: usize,
    tiles: usize,
    tokens_per_tile: usize,
    tiles_per_group: usize,
    tile_bits: u32,
) -> GroupSearch {
    GroupSearch {
        groups,
        rounds,
        tiles,
        tokens_per_tile,
        tiles_per_group,
        tile_bits,
    }
}
