//! Codes the pixels that the transforms leave: chooses the color cache, the copies and the groups
//! of prefix codes, each for the others (RFC 9649, sections 3.6.2 and 3.7.2.2).

use super::bit_writer::BitWriter;
use super::color_cache::CacheHits;
use super::cost_model::CostModel;
use super::entropy::BIT;
use super::entropy_image::EntropyImage;
use super::grouping::{self, Grouping};
use super::hash_chain::{self, Copy};
use super::optimal_parse::OptimalParse;
use super::options::LosslessOptions;
use super::parse_search::ParseSearch;
use super::token::{self, TokenImage, Tokens};
use super::transform::transformed::Transformed;
use super::{histogram, image_stream};
use crate::EncodeError;

/// Writes the transforms and the pixels of `transformed`, as small as `search` finds.
pub fn write(
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
    let coder = Coder {
        pixels: &pixels,
        width,
        search,
        options,
    };
    *bits = coder.code(bits, tokens)?;
    workers.release(pixels)
}

/// Finds the coding of an image.
struct Coder<'a> {
    /// Pixels after the transforms, ARGB.
    pixels: &'a [u32],
    /// Number of pixels in a row.
    width: usize,
    search: &'a ParseSearch,
    options: &'a LosslessOptions<'a>,
}

/// A coding of an image.
struct Coded {
    cache: CacheHits,
    grouping: Grouping,
    /// The header fields before the image, and the image.
    bits: BitWriter,
}

impl Coder<'_> {
    /// Returns `start` and the smallest coding; `tokens` are those of the greedy parse.
    fn code(&self, start: &BitWriter, tokens: Tokens) -> Result<BitWriter, EncodeError> {
        let workers = self.options.workers;
        let search = self.search;
        let Some(depth) = search.depth else {
            let caches = self.choose_caches(&tokens)?;
            let mut best = None;
            self.consider_groups(start, &tokens, &caches[0], &mut best)?;
            return Ok(best.expect("there is at least one grouping").bits);
        };
        let caches = self.choose_caches(&tokens)?;
        let mut all_copies = hash_chain::longest_copies(self.pixels, self.width, depth, workers)?;
        if !search.keeps_copies {
            return self.code_once(start, tokens, &caches[0], all_copies);
        }
        let mut copies = workers.copy(&all_copies)?;
        let mut best: Option<Coded> = None;
        for cache in caches {
            copies.copy_from_slice(&all_copies);
            let tokens = Tokens(workers.copy(&tokens.0)?);
            let tokens =
                self.parse_without_groups(tokens, &cache, &mut copies, search.group_rounds)?;
            self.consider_groups(start, &tokens, &cache, &mut best)?;
        }
        workers.release(tokens.0)?;
        let mut best = best.expect("there is at least one cache");
        for round in 1..=search.group_rounds {
            copies.copy_from_slice(&all_copies);
            if round == search.group_rounds {
                workers.release(std::mem::take(&mut all_copies))?;
            }
            let tokens = self.parse_with_groups(&best.cache, &best.grouping, &mut copies)?;
            let image = self.image(&tokens, &best.cache);
            let grouping = self.regroup(&image, &best.grouping)?;
            let mut bits = start.clone();
            image_stream::write(&mut bits, &image, &grouping, workers)?;
            let gain = best.bits.bits() as i64 - bits.bits() as i64;
            let is_enough = gain < best.bits.bits() as i64 / MIN_GAIN;
            if gain > 0 {
                best = Coded {
                    cache: best.cache,
                    grouping,
                    bits,
                };
            }
            if is_enough {
                break;
            }
        }
        workers.release(copies)?;
        workers.release(all_copies)?;
        Ok(best.bits)
    }

    /// Returns `start` and the coding that is found without going back. Photographs, which have
    /// few copies to choose from, are parsed without the codes of groups: that would save 0.5 %,
    /// beside 1.5 % of screenshots.
    fn code_once(
        &self,
        start: &BitWriter,
        tokens: Tokens,
        cache: &CacheHits,
        mut copies: Vec<Copy>,
    ) -> Result<BitWriter, EncodeError> {
        const MIN_PIXELS_PER_TOKEN: usize = 2;
        let workers = self.options.workers;
        let few = self.pixels.len() / MIN_PIXELS_PER_TOKEN;
        let rounds = if token::count_literals_and_copies(&tokens.0) <= few {
            self.search.group_rounds
        } else {
            0
        };
        let mut tokens = self.parse_without_groups(tokens, cache, &mut copies, rounds)?;
        let image = self.image(&tokens, cache);
        let limits = self.search.groups[0];
        let mut grouping = grouping::group(&image, limits, self.options.simd, workers)?;
        for _ in 0..rounds {
            tokens = self.parse_with_groups(cache, &grouping, &mut copies)?;
            grouping = self.regroup(&self.image(&tokens, cache), &grouping)?;
        }
        workers.release(copies)?;
        let mut bits = start.clone();
        image_stream::write(&mut bits, &self.image(&tokens, cache), &grouping, workers)?;
        Ok(bits)
    }

    /// Returns [`ParseSearch::caches`] color caches, those with which `tokens` take the fewest
    /// bits, the best first. If there are several, no cache and the largest one are always among
    /// them: with groups of codes they take fewer bits than a single count predicts.
    fn choose_caches(&self, tokens: &Tokens) -> Result<Vec<CacheHits>, EncodeError> {
        /// Bits of data per group of codes, about, in 1 / [`BIT`] bits.
        const BITS_PER_GROUP: u64 = 4096 * 8 * BIT;
        const MAX_GROUPS: u64 = 64;
        const MAX_CACHE_BITS: u32 = 11;
        let workers = self.options.workers;
        if let [only] = self.search.cache_bits {
            return Ok(vec![CacheHits::new(self.pixels, *only, workers)?]);
        }
        let costs = workers.run_checked(self.search.cache_bits.len(), |i| {
            let bits = self.search.cache_bits[i];
            let cache = CacheHits::new(self.pixels, bits, workers)?;
            let counts = histogram::count(&self.image(tokens, &cache), workers)?;
            let cost = histogram::cost(&counts);
            let further_groups = (cost / BITS_PER_GROUP).min(MAX_GROUPS);
            let codes = further_groups * histogram::cache_code_cost(&counts);
            Ok((cost + codes, bits))
        })?;
        let mut costs = costs;
        costs.sort_unstable();
        let ranked = costs.iter().enumerate();
        let tried = ranked.filter(|(rank, (_, bits))| {
            *rank < self.search.caches
                || self.search.caches > 1 && [0, MAX_CACHE_BITS].contains(bits)
        });
        tried
            .map(|(_, (_, bits))| CacheHits::new(self.pixels, *bits, workers))
            .collect()
    }

    /// Parses optimally, with costs that the counts of `tokens` give at first. `copies` are all
    /// copies, and afterwards those that were taken. `group_rounds` parses follow.
    fn parse_without_groups(
        &self,
        mut tokens: Tokens,
        cache: &CacheHits,
        copies: &mut [Copy],
        group_rounds: usize,
    ) -> Result<Tokens, EncodeError> {
        let (search, workers) = (self.search, self.options.workers);
        // Each round chooses from the copies that the round before left. That converges and needs
        // no more memory.
        for round in 1..=search.rounds {
            let counts = histogram::count(&self.image(&tokens, cache), workers)?;
            let is_last = round == search.rounds;
            let short_codes = if is_last || search.short_codes_in_all_rounds {
                search.short_codes
            } else {
                0
            };
            let models = [CostModel::new(&counts)];
            // If a parse with the codes of groups follows, shorter copies can wait until then.
            let tries_shorter = is_last && (search.keeps_copies || group_rounds == 0);
            let parse = self.parse(cache, &models, None, short_codes, tries_shorter);
            tokens = parse.run(copies, workers)?;
        }
        Ok(tokens)
    }

    /// Parses with the costs that each tile's codes have in `grouping`.
    fn parse_with_groups(
        &self,
        cache: &CacheHits,
        grouping: &Grouping,
        copies: &mut [Copy],
    ) -> Result<Tokens, EncodeError> {
        let models = grouping.histograms.iter();
        let models: Vec<CostModel> = models.map(|counts| CostModel::of_codes(counts)).collect();
        let map = grouping.image.as_ref();
        let parse = self.parse(cache, &models, map, self.search.short_codes, true);
        parse.run(copies, self.options.workers)
    }

    /// Divides the tiles again, after another parse.
    fn regroup(&self, image: &TokenImage<'_>, before: &Grouping) -> Result<Grouping, EncodeError> {
        let rounds = self.search.regroup_rounds;
        grouping::regroup(
            image,
            before,
            rounds,
            self.options.simd,
            self.options.workers,
        )
    }

    /// Replaces `best` by the coding of `tokens` with any of the groupings, if that is smaller.
    fn consider_groups(
        &self,
        start: &BitWriter,
        tokens: &Tokens,
        cache: &CacheHits,
        best: &mut Option<Coded>,
    ) -> Result<(), EncodeError> {
        let workers = self.options.workers;
        for limits in self.search.groups {
            let image = self.image(tokens, cache);
            let grouping = grouping::group(&image, *limits, self.options.simd, workers)?;
            let mut bits = start.clone();
            image_stream::write(&mut bits, &image, &grouping, workers)?;
            let is_smaller = |known: &Coded| bits.bits() < known.bits.bits();
            if best.as_ref().is_none_or(is_smaller) {
                *best = Some(Coded {
                    cache: cache.clone(),
                    grouping,
                    bits,
                });
            }
        }
        Ok(())
    }

    fn image<'a>(&'a self, tokens: &'a Tokens, cache: &'a CacheHits) -> TokenImage<'a> {
        TokenImage {
            pixels: self.pixels,
            width: self.width,
            tokens: &tokens.0,
            cache,
        }
    }

    fn parse<'a>(
        &'a self,
        cache: &'a CacheHits,
        models: &'a [CostModel],
        entropy_image: Option<&'a EntropyImage>,
        short_codes: usize,
        tries_shorter: bool,
    ) -> OptimalParse<'a> {
        OptimalParse {
            pixels: self.pixels,
            width: self.width,
            cache,
            models,
            entropy_image,
            short_codes,
            tries_shorter,
        }
    }
}

/// A parse that saves less than this part of the bits is the last one.
const MIN_GAIN: i64 = 2000;
