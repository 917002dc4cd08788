//! The lossless encoder as the list of its passes. RFC 9649, section 3.8, lists the parts in
//! bitstream order.

use super::bit_writer::BitWriter;
use super::cancellation::PIXELS_PER_CHECK;
use super::color_cache::CacheHits;
use super::cost_model::CostModel;
use super::entropy::BIT;
use super::estimate::Estimate;
use super::grouping::{self, GroupSearch};
use super::optimal_parse::OptimalParse;
use super::options::LosslessOptions;
use super::token::{TokenImage, Tokens};
use super::transform::choice;
use super::transform::transformed::Transformed;
use super::{hash_chain, histogram, image_stream};
use crate::threads::Workers;
use crate::{Effort, EncodeError};

#[cfg(test)]
mod tests;

/// Encodes `pixels` (ARGB, rows of `width`, up to 16384 per side) as the data of a `VP8L` chunk.
pub fn encode(
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    const SIGNATURE: u32 = 0x2F;
    const VERSION: u32 = 0;
    let height = pixels.len() / width;
    let has_alpha = has_alpha(&pixels, options.workers)?;
    let mut bits = BitWriter::default();
    // The image header (section 3.4).
    bits.put(SIGNATURE, 8);
    bits.put(width as u32 - 1, 14);
    bits.put(height as u32 - 1, 14);
    bits.put_flag(has_alpha);
    bits.put(VERSION, 3);
    write_stream(&mut bits, pixels, width, options)?;
    Ok(bits.finish())
}

/// [`encode`] without the header, as in an `ALPH` chunk (section 2.7.1.2), which stores alpha in
/// green.
pub fn encode_headless(
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bits = BitWriter::default();
    write_stream(&mut bits, pixels, width, options)?;
    Ok(bits.finish())
}

/// Estimates the size of [`encode_headless`]'s output by a greedy parse, in a unit that only serves
/// to compare estimates.
pub fn estimate(pixels: &[u32], width: usize, workers: Workers<'_>) -> Result<u64, EncodeError> {
    Ok(Estimate::new(pixels, width, 0, workers)?.total)
}

/// How much is tried after the transforms.
struct ParseSearch {
    /// Sizes of the color cache to choose from, as base-2 logarithms.
    cache_bits: &'static [u32],
    /// Number of earlier positions compared for each copy; `None` keeps the greedy parse.
    depth: Option<usize>,
    /// Number of optimal parses, each with the costs of the parse before.
    rounds: usize,
    /// Number of short distance codes that are tried at each pixel.
    short_codes: usize,
    /// Whether short distance codes are tried in all rounds, or only in the last one.
    short_codes_in_all_rounds: bool,
    /// Limits for the search for groups of codes; the best result is taken.
    groups: &'static [GroupSearch],
}

impl ParseSearch {
    fn for_effort(effort: Effort, image: &Transformed) -> ParseSearch {
        const fn groups(
            groups: usize,
            rounds: usize,
            tiles: usize,
            tokens_per_tile: usize,
        ) -> GroupSearch {
            GroupSearch {
                groups,
                rounds,
                tiles,
                tokens_per_tile,
            }
        }
        match effort {
            // Palette indices repeat more than the greedy parse finds.
            Effort::Low => ParseSearch {
                cache_bits: &[0],
                depth: image.is_indexed().then_some(1),
                rounds: 1,
                short_codes: 0,
                short_codes_in_all_rounds: false,
                groups: &[const { groups(12, 2, 500, 64) }],
            },
            Effort::Medium if image.is_simple() => ParseSearch {
                cache_bits: if image.is_indexed() { &[0] } else { &[0, 4, 6] },
                depth: Some(16),
                rounds: 3,
                short_codes: 4,
                short_codes_in_all_rounds: false,
                groups: &[const { groups(64, 6, 5000, 64) }],
            },
            // A picture of few colors consists almost only of copies, and a color cache would
            // repeat the palette.
            Effort::Medium if image.is_indexed() => ParseSearch {
                cache_bits: &[0],
                depth: Some(8),
                rounds: 2,
                short_codes: 4,
                short_codes_in_all_rounds: false,
                groups: &[const { groups(32, 4, 5000, 32) }],
            },
            Effort::Medium => ParseSearch {
                cache_bits: &[0, 10],
                depth: Some(8),
                rounds: 1,
                short_codes: 2,
                short_codes_in_all_rounds: true,
                groups: &[const { groups(32, 4, 5000, 32) }],
            },
            Effort::High | Effort::Max if image.is_simple() => ParseSearch {
                cache_bits: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                depth: Some(128),
                rounds: 4,
                short_codes: 32,
                short_codes_in_all_rounds: true,
                groups: &[
                    const { groups(64, 6, 5000, 8) },
                    const { groups(64, 6, 5000, 32) },
                    const { groups(64, 6, 5000, 128) },
                ],
            },
            Effort::High | Effort::Max => ParseSearch {
                cache_bits: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
                depth: Some(128),
                rounds: 4,
                short_codes: if image.is_indexed() { 32 } else { 2 },
                short_codes_in_all_rounds: true,
                groups: &[const { groups(64, 6, 5000, 32) }],
            },
        }
    }
}

/// Whether any pixel is not opaque.
fn has_alpha(pixels: &[u32], workers: Workers<'_>) -> Result<bool, EncodeError> {
    for part in pixels.chunks(PIXELS_PER_CHECK) {
        workers.check()?;
        // The whole part is combined, which is several times faster than testing each pixel.
        let least = part.iter().fold(u32::MAX, |all, pixel| all & pixel);
        if least >> 24 != 255 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn write_stream(
    bits: &mut BitWriter,
    pixels: Vec<u32>,
    width: usize,
    options: &LosslessOptions<'_>,
) -> Result<(), EncodeError> {
    let mut smallest = None;
    for candidate in choice::list_candidates(pixels, width, options)? {
        let mut trial = bits.clone();
        let search = ParseSearch::for_effort(options.effort, &candidate);
        write_transformed(&mut trial, candidate, &search, options)?;
        keep_smaller(&mut smallest, trial);
    }
    *bits = smallest.expect("there is a candidate");
    Ok(())
}

/// Replaces `smallest` by `trial` if `trial` is smaller.
fn keep_smaller(smallest: &mut Option<BitWriter>, trial: BitWriter) {
    if smallest
        .as_ref()
        .is_none_or(|known| trial.bits() < known.bits())
    {
        *smallest = Some(trial);
    }
}

fn write_transformed(
    bits: &mut BitWriter,
    transformed: Transformed,
    search: &ParseSearch,
    options: &LosslessOptions<'_>,
) -> Result<(), EncodeError> {
    let workers = options.workers;
    transformed.write_transforms(bits, workers)?;
    let Transformed {
        pixels,
        width,
        tokens,
        ..
    } = transformed;
    let cache = choose_cache(&pixels, width, &tokens, search.cache_bits, workers)?;
    let tokens = parse_optimally(&pixels, width, &cache, tokens, search, workers)?;
    let image = TokenImage {
        pixels: &pixels,
        width,
        tokens: &tokens.0,
        cache: &cache,
    };
    let mut smallest = None;
    for groups in search.groups {
        let mut trial = bits.clone();
        let grouping = grouping::group(&image, *groups, options.simd, workers)?;
        image_stream::write(&mut trial, &image, &grouping, workers)?;
        keep_smaller(&mut smallest, trial);
    }
    *bits = smallest.expect("there is at least one grouping");
    workers.release(pixels)?;
    workers.release(tokens.0)
}

/// Chooses the color cache with which `tokens` take the fewest bits.
fn choose_cache(
    pixels: &[u32],
    width: usize,
    tokens: &Tokens,
    bits: &[u32],
    workers: Workers<'_>,
) -> Result<CacheHits, EncodeError> {
    /// Bits of data per group of codes, about, in 1 / [`BIT`] bits.
    const BITS_PER_GROUP: u64 = 4096 * 8 * BIT;
    const MAX_GROUPS: u64 = 64;
    if let [only] = bits {
        return CacheHits::new(pixels, *only, workers);
    }
    let caches = workers.run_checked(bits.len(), |i| {
        let cache = CacheHits::new(pixels, bits[i], workers)?;
        let image = TokenImage {
            pixels,
            width,
            tokens: &tokens.0,
            cache: &cache,
        };
        let counts = histogram::count(&image, workers)?;
        let cost = histogram::cost(&counts);
        let further_groups = (cost / BITS_PER_GROUP).min(MAX_GROUPS);
        let codes = further_groups * histogram::cache_code_cost(&counts);
        Ok((cost + codes, cache))
    })?;
    let best = caches.into_iter().min_by_key(|(cost, _)| *cost);
    Ok(best.map_or(CacheHits::NONE, |(_, cache)| cache))
}

/// Parses optimally, with costs that the counts of `tokens` give at first.
fn parse_optimally(
    pixels: &[u32],
    width: usize,
    cache: &CacheHits,
    mut tokens: Tokens,
    search: &ParseSearch,
    workers: Workers<'_>,
) -> Result<Tokens, EncodeError> {
    let Some(depth) = search.depth else {
        return Ok(tokens);
    };
    // Each round chooses from the copies that the round before left. That converges and needs no
    // more memory.
    let mut copies = hash_chain::longest_copies(pixels, width, depth, workers)?;
    for round in 1..=search.rounds {
        let is_last = round == search.rounds;
        let image = TokenImage {
            pixels,
            width,
            tokens: &tokens.0,
            cache,
        };
        let model = CostModel::new(&histogram::count(&image, workers)?);
        let parse = OptimalParse {
            pixels,
            width,
            cache,
            model: &model,
            short_codes: if is_last || search.short_codes_in_all_rounds {
                search.short_codes
            } else {
                0
            },
            tries_shorter: is_last,
        };
        tokens = parse.run(&mut copies, workers)?;
    }
    workers.release(copies)?;
    Ok(tokens)
}
