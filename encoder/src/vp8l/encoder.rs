//! The encoder as the list of its passes: RFC 9649, section 3.8 has the parts in the order of the file.

use super::bit_writer::BitWriter;
use super::entropy::BIT;
use super::entropy_image;
use super::estimate::Estimate;
use super::lz77::PIXELS_A_QUESTION;
use super::parse::{CostModel, Parse};
use super::token::{CacheHits, TokenImage, Tokens};
use super::transform::choice::{self, Transformed};
use super::{hash_chain, histogram, image_stream};
use crate::cpu::Simd;
use crate::threads::Workers;
use crate::{Effort, EncodeError};

#[cfg(test)]
mod tests;

/// What the caller may choose.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// How much is tried.
    pub effort: Effort,
    /// Vector instructions to use.
    pub simd: Simd,
    /// Who works on it.
    pub workers: Workers<'a>,
}

/// Encodes `pixels` (ARGB) in rows of `width`, up to 16384 a side, as the data of a `VP8L` chunk.
pub fn encode(
    pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Vec<u8>, EncodeError> {
    const SIGNATURE: u32 = 0x2F;
    const VERSION: u32 = 0;
    let height = pixels.len() / width;
    let has_alpha = has_alpha(&pixels, settings.workers)?;
    let mut bits = BitWriter::default();
    // Section 3.4.
    bits.put(SIGNATURE, 8);
    bits.put(width as u32 - 1, 14);
    bits.put(height as u32 - 1, 14);
    bits.put_flag(has_alpha);
    bits.put(VERSION, 3);
    write_stream(&mut bits, pixels, width, settings)?;
    Ok(bits.finish())
}

/// [`encode`] without the header, as an `ALPH` chunk has it (section 2.7.1.2): green is what counts.
pub fn encode_headless(
    pixels: Vec<u32>,
    width: usize,
    settings: &Settings<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bits = BitWriter::default();
    write_stream(&mut bits, pixels, width, settings)?;
    Ok(bits.finish())
}

/// What [`encode_headless`] would come to, by a quick look, in a unit that only comparisons with others tell of.
pub fn estimate(pixels: &[u32], width: usize, workers: Workers<'_>) -> Result<u64, EncodeError> {
    Ok(Estimate::new(pixels, width, 0, workers)?.total)
}

/// How much is tried after the transforms.
struct Search {
    /// Bits of the colour caches to choose from.
    cache_bits: &'static [u32],
    /// How many earlier places are compared for a copy; none looks no further than at first.
    depth: Option<usize>,
    /// How often copies are chosen, each time by what things cost the time before.
    rounds: usize,
    /// Places nearby that are looked at for each pixel, by their distance codes.
    near_codes: usize,
    /// Whether they are in every round, or in the last one alone.
    is_near_always: bool,
    /// For groups of codes; the best is taken.
    groups: &'static [entropy_image::Search],
}

impl Search {
    fn of(effort: Effort, image: &Transformed) -> Search {
        const fn groups(
            groups: usize,
            rounds: usize,
            tiles: usize,
            filling: usize,
        ) -> entropy_image::Search {
            entropy_image::Search {
                groups,
                rounds,
                tiles,
                filling,
            }
        }
        match effort {
            // Indices repeat more than the first copy that is found tells.
            Effort::Low => Search {
                cache_bits: &[0],
                depth: image.is_indexed().then_some(1),
                rounds: 1,
                near_codes: 0,
                is_near_always: false,
                groups: &[const { groups(12, 2, 500, 64) }],
            },
            Effort::Medium if image.has_little() => Search {
                cache_bits: if image.is_indexed() { &[0] } else { &[0, 4, 6] },
                depth: Some(16),
                rounds: 3,
                near_codes: 4,
                is_near_always: false,
                groups: &[const { groups(64, 6, 5000, 64) }],
            },
            // Copies are nearly all there is to a picture of few colours, and a cache would hold what its indices say.
            Effort::Medium if image.is_indexed() => Search {
                cache_bits: &[0],
                depth: Some(8),
                rounds: 2,
                near_codes: 4,
                is_near_always: false,
                groups: &[const { groups(32, 4, 5000, 32) }],
            },
            Effort::Medium => Search {
                cache_bits: &[0, 10],
                depth: Some(8),
                rounds: 1,
                near_codes: 2,
                is_near_always: true,
                groups: &[const { groups(32, 4, 5000, 32) }],
            },
            Effort::High if image.has_little() => Search {
                cache_bits: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                depth: Some(128),
                rounds: 4,
                near_codes: 32,
                is_near_always: true,
                groups: &[
                    const { groups(64, 6, 5000, 8) },
                    const { groups(64, 6, 5000, 32) },
                    const { groups(64, 6, 5000, 128) },
                ],
            },
            Effort::High => Search {
                cache_bits: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
                depth: Some(128),
                rounds: 4,
                near_codes: if image.is_indexed() { 32 } else { 2 },
                is_near_always: true,
                groups: &[const { groups(64, 6, 5000, 32) }],
            },
        }
    }
}

/// Whether any pixel is not opaque.
fn has_alpha(pixels: &[u32], workers: Workers<'_>) -> Result<bool, EncodeError> {
    for part in pixels.chunks(PIXELS_A_QUESTION) {
        workers.check()?;
        // To the end of the part, since that takes a fraction of looking whether each is the last.
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
    settings: &Settings<'_>,
) -> Result<(), EncodeError> {
    let mut smallest = None;
    for candidate in choice::candidates(pixels, width, settings)? {
        let mut trial = bits.clone();
        let search = Search::of(settings.effort, &candidate);
        write_transformed(&mut trial, candidate, &search, settings.workers)?;
        keep_smaller(&mut smallest, trial);
    }
    *bits = smallest.expect("there is a candidate");
    Ok(())
}

/// Takes `trial` if it is smaller than what there is.
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
    search: &Search,
    workers: Workers<'_>,
) -> Result<(), EncodeError> {
    transformed.write_transforms(bits, workers)?;
    let Transformed {
        pixels,
        width,
        tokens,
        ..
    } = transformed;
    let cache = choose_cache(&pixels, width, &tokens, search.cache_bits, workers)?;
    let tokens = parse(&pixels, width, &cache, tokens, search, workers)?;
    let image = TokenImage {
        pixels: &pixels,
        width,
        tokens: &tokens.0,
        cache: &cache,
    };
    let mut smallest = None;
    for groups in search.groups {
        let mut trial = bits.clone();
        let grouping = entropy_image::group(&image, *groups, workers)?;
        image_stream::write(&mut trial, &image, &grouping, workers)?;
        keep_smaller(&mut smallest, trial);
    }
    *bits = smallest.expect("there is a way to group");
    workers.release(pixels)?;
    workers.release(tokens.0)
}

/// The colour cache by which `tokens` take fewest bits.
fn choose_cache(
    pixels: &[u32],
    width: usize,
    tokens: &Tokens,
    bits: &[u32],
    workers: Workers<'_>,
) -> Result<CacheHits, EncodeError> {
    /// How much of a picture has a group of codes of its own, about, in 1 / [`BIT`] bits.
    const BITS_A_GROUP: u64 = 4096 * 8 * BIT;
    const MOST_GROUPS: u64 = 64;
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
        let further_groups = (cost / BITS_A_GROUP).min(MOST_GROUPS);
        let codes = further_groups * histogram::cache_code_cost(&counts);
        Ok((cost + codes, cache))
    })?;
    let best = caches.into_iter().min_by_key(|(cost, _)| *cost);
    Ok(best.map_or(CacheHits::NONE, |(_, cache)| cache))
}

/// Better tokens than `tokens`, which tell what things cost.
fn parse(
    pixels: &[u32],
    width: usize,
    cache: &CacheHits,
    mut tokens: Tokens,
    search: &Search,
    workers: Workers<'_>,
) -> Result<Tokens, EncodeError> {
    let Some(depth) = search.depth else {
        return Ok(tokens);
    };
    // What one round leaves of the copies found is what the next one chooses from: it converges, in no more memory.
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
        let parse = Parse {
            pixels,
            width,
            cache,
            model: &model,
            near_codes: if is_last || search.is_near_always {
                search.near_codes
            } else {
                0
            },
            shortens: is_last,
        };
        tokens = parse.cheapest(&mut copies, workers)?;
    }
    workers.release(copies)?;
    Ok(tokens)
}
