//! The optimal parse: chooses the copies with which the image takes the fewest bits (RFC 9649,
//! section 3.6.2).
//!
//! It runs from the end of the image to its start. At each pixel, the least cost of everything
//! after it is known, and the cheapest is chosen among a literal, the copies found there, and
//! shorter parts of these copies.

use super::color_cache::CacheHits;
use super::cost_model::CostModel;
use super::distance::{self, DistanceCodes};
use super::entropy::BIT;
use super::entropy_image::EntropyImage;
use super::hash_chain::{Copy, MAX_KEPT};
use super::histogram;
use super::match_length::match_length;
use super::prefix::{self, MAX_LENGTH};
use super::token::Tokens;
use crate::EncodeError;
use crate::checks::{Checks, PIXELS_PER_CHECK};
use crate::threads::Workers;

/// The input of the optimal parse.
pub struct OptimalParse<'a> {
    /// Pixels, ARGB.
    pub pixels: &'a [u32],
    /// Number of pixels in a row.
    pub width: usize,
    /// Hits of the color cache.
    pub cache: &'a CacheHits,
    /// Costs of the symbols in each group of codes.
    pub models: &'a [CostModel],
    /// The group of each tile; `None` if there is only one group.
    pub entropy_image: Option<&'a EntropyImage>,
    /// Number of short distance codes that are tried at each pixel, in addition to the copies
    /// found. The first two mean the pixel above and the one to the left.
    pub short_codes: usize,
    /// Whether shorter parts of copies are tried too. That is harmful while costs are only roughly
    /// known.
    pub tries_shorter: bool,
}

/// A match at the distance of a short distance code.
struct ShortMatch {
    distance: usize,
    /// The first pixel that does not match, as far as pixels were compared.
    end: usize,
}

impl ShortMatch {
    /// Compares the pixels from `i` to `compared_from`; those from there on are compared already.
    #[inline]
    fn extend_to(&mut self, pixels: &[u32], i: usize, compared_from: usize) {
        if pixels.get(i.wrapping_sub(self.distance)) != Some(&pixels[i]) {
            self.end = i;
        } else if i + 1 < compared_from {
            let alike = match_length(pixels, i - self.distance, i, compared_from - i);
            if i + alike < compared_from {
                self.end = i + alike;
            }
        }
    }
}

/// Compares the pixels from `i` to `compared_from` for all matches.
#[inline(always)]
fn extend_all(matches: &mut [ShortMatch], pixels: &[u32], i: usize, compared_from: &mut usize) {
    for short in matches {
        short.extend_to(pixels, i, *compared_from);
    }
    *compared_from = i;
}

impl OptimalParse<'_> {
    /// Returns the cheapest tokens. `copies` holds the longest copy for each pixel, and afterwards
    /// the copy that is taken there.
    pub fn run(&self, copies: &mut [Copy], workers: Workers<'_>) -> Result<Tokens, EncodeError> {
        self.choose(copies, workers)?;
        let codes = DistanceCodes::new(self.width);
        let mut tokens = Tokens::default();
        let mut i = 0;
        let mut checks = Checks::new(workers);
        while i < copies.len() {
            checks.at(i)?;
            let copy = copies[i];
            if copy.length() == 0 {
                tokens.push_literal();
                i += 1;
            } else {
                tokens.push_copy(copy.length(), codes.code(copy.distance()));
                i += copy.length();
            }
        }
        Ok(tokens)
    }

    /// Returns the matches to track.
    fn short_matches(&self) -> Vec<ShortMatch> {
        let distances = distance::nearest(self.width, self.short_codes);
        let matches = distances.into_iter().map(|distance| ShortMatch {
            distance,
            end: self.pixels.len(),
        });
        matches.collect()
    }

    /// Returns, for each group, the costs of the matches' distances, the cheapest first.
    fn short_costs(&self, matches: &[ShortMatch], codes: &DistanceCodes) -> Vec<Vec<(u32, usize)>> {
        let in_group = |model: &CostModel| {
            let cost = |(at, short): (usize, &ShortMatch)| {
                (model.distance(codes.code(short.distance)), at)
            };
            let mut costs: Vec<_> = matches.iter().enumerate().map(cost).collect();
            costs.sort_unstable();
            costs
        };
        self.models.iter().map(in_group).collect()
    }

    /// Returns the cost of pixel `i` as a literal or from the color cache; `known` is the color and
    /// the cost of the last literal in the same group.
    #[inline(always)]
    fn literal_cost(&self, i: usize, model: &CostModel, known: &mut (u32, u32)) -> i32 {
        let color = self.pixels[i];
        if let Some(index) = self.cache.index(i, color) {
            return model.symbols[histogram::cached(index)] as i32;
        }
        if color != known.0 {
            *known = (color, model.literal(color));
        }
        known.1 as i32
    }

    /// Replaces each pixel's copy by the one to take there, if any.
    fn choose(&self, copies: &mut [Copy], workers: Workers<'_>) -> Result<(), EncodeError> {
        const RING: usize = MAX_LENGTH * 2;
        let (pixels, width) = (self.pixels, self.width);
        let codes = DistanceCodes::new(width);
        let mut short_matches = self.short_matches();
        let short_costs = self.short_costs(&short_matches, &codes);
        // The group of codes from `tile_begin` to the pixel that was looked at last.
        let mut group = 0;
        let mut model = &self.models[group];
        let mut tile_begin = self.entropy_image.map_or(0, |_| pixels.len());
        // Costs from each position to the end, in a ring buffer. The costs wrap around too: only
        // differences within the longest copy are used.
        let mut ring = vec![0u32; RING];
        let costs: &mut [u32; RING] = ring.as_mut_slice().try_into().expect("as many");
        let mut known = (usize::MAX, 0);
        let mut known_literal = (0, model.literal(0));
        let mut next_distance = 0;
        let mut compared_from = pixels.len();
        let mut checks = Checks::new(workers);
        let mut i = pixels.len();
        while i > 0 {
            i -= 1;
            checks.at(i)?;
            // Otherwise a flat picture would be compared all at once at the end.
            if compared_from - i > PIXELS_PER_CHECK {
                extend_all(&mut short_matches, pixels, i, &mut compared_from);
            }
            if i < tile_begin
                && let Some(map) = self.entropy_image
            {
                tile_begin = map.tile_begin(i, width);
                let after = std::mem::replace(&mut group, map.group_at(i, width));
                if group != after {
                    model = &self.models[group];
                    known.0 = usize::MAX;
                    known_literal = (0, model.literal(0));
                }
            }
            let base = costs[(i + 1) % RING];
            let after = |length: usize| costs[(i + length) % RING].wrapping_sub(base);
            let copy = copies[i];
            if copy.distance() != known.0 && copy.length() > 0 {
                known = (copy.distance(), model.distance(codes.code(copy.distance())));
            }
            let continues = copy.distance() == next_distance;
            next_distance = copy.distance();
            if continues && copy.length() >= LONG {
                let behind = costs[(i + copy.length()) % RING].wrapping_add(known.1);
                loop {
                    costs[i % RING] = behind.wrapping_add(model.length(copies[i].length()));
                    if i <= tile_begin || Some(copies[i - 1]) != copies[i].longer() {
                        break;
                    }
                    i -= 1;
                }
                continue;
            }
            extend_all(&mut short_matches, pixels, i, &mut compared_from);
            let cuts = match (self.tries_shorter, continues) {
                (false, _) => 0,
                (true, true) => CUTS,
                (true, false) => CUTS_AT_ENDS,
            };
            let mut best = (self.literal_cost(i, model, &mut known_literal), Copy::NONE);
            // Shorter copies were tried with a cheaper distance.
            let mut reached = 0;
            let mut consider = |length: usize, distance: usize, cost: u32| {
                if length <= reached {
                    return;
                }
                let longest = prefix::length_symbol(length);
                let (mut tried, mut symbol) = (length, longest);
                loop {
                    let total =
                        (cost + model.lengths[symbol as usize]).wrapping_add(after(tried)) as i32;
                    if total < best.0 {
                        best = (total, Copy::new(tried, distance));
                    }
                    // Much shorter parts gain nothing.
                    if symbol == 0 || longest - symbol >= cuts {
                        break;
                    }
                    symbol -= 1;
                    tried = prefix::first_value(symbol + 1) as usize - 1;
                    if tried <= reached {
                        break;
                    }
                }
                reached = length;
            };
            let mut is_longest_due = copy.length() > 0;
            for &(short_cost, at) in &short_costs[group] {
                let short = &short_matches[at];
                if is_longest_due && known.1 <= short_cost {
                    consider(copy.length(), copy.distance(), known.1);
                    is_longest_due = false;
                }
                consider((short.end - i).min(MAX_KEPT), short.distance, short_cost);
            }
            if is_longest_due {
                consider(copy.length(), copy.distance(), known.1);
            }
            copies[i] = best.1;
            costs[i % RING] = base.wrapping_add_signed(best.0);
        }
        Ok(())
    }
}

/// Inside a copy that continues for this many pixels, nothing else is tried.
const LONG: usize = 16;

/// Number of length symbols below the longest that are tried: inside a copy, and at its end.
const CUTS: u32 = 3;
const CUTS_AT_ENDS: u32 = 6;
const _: () = assert!(BIT == 256, "costs of the longest copy stay within 32 bits");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8l::hash_chain;
    use crate::vp8l::token::Token;

    /// Parses with a model in which green literals have `literals` counts, and all lengths and
    /// distances are equally likely.
    fn parse(pixels: &[u32], width: usize, literals: u32) -> Vec<Token> {
        let mut counts = vec![1; histogram::symbol_count(0)];
        for color in 0..256 {
            for symbol in histogram::literal(color * 0x0101_0101) {
                counts[symbol] = literals;
            }
        }
        let workers = Workers::unlimited(1);
        let parse = OptimalParse {
            pixels,
            width,
            cache: &CacheHits::NONE,
            models: &[CostModel::new(&counts)],
            entropy_image: None,
            short_codes: 2,
            tries_shorter: true,
        };
        let mut copies =
            hash_chain::longest_copies(pixels, width, 16, workers).expect("nothing cancels it");
        parse
            .run(&mut copies, workers)
            .expect("nothing cancels it")
            .0
    }

    #[test]
    fn a_match_ends_where_pixels_differ_first() {
        let pixels = [1, 2, 1, 2, 9, 2, 9, 2];
        let mut short = ShortMatch {
            distance: 2,
            end: pixels.len(),
        };
        let mut compared_from = pixels.len();
        let mut end_from = |i: usize| {
            short.extend_to(&pixels, i, compared_from);
            compared_from = i;
            short.end
        };
        // Pixels 5, 6 and 7 match to the end, pixel 4 does not, pixels 2 and 3 match up to there.
        assert_eq!([7, 5, 4, 2, 1].map(&mut end_from), [8, 8, 4, 4, 1]);
        // Pixels 2 and 3 are compared with one call that goes on to pixel 4.
        let mut short = ShortMatch {
            distance: 2,
            end: pixels.len(),
        };
        short.extend_to(&pixels, 2, pixels.len());
        assert_eq!(short.end, 4);
    }

    #[test]
    fn the_cheaper_tokens_are_chosen() {
        // Three pixels repeat from far away: 32 bits each as literals, against 13 + 5 + extra bits.
        let pixels: Vec<u32> = (0..100).chain(10..13).map(|i| i * 0x0101_0101).collect();
        let copied = [Token::literals(100), Token::copy(3, 90 + 120)];
        assert_eq!(parse(&pixels, 1000, 1), copied);
    }

    #[test]
    fn runs_take_copies_from_the_left_and_rows_from_above() {
        assert_eq!(
            parse(&[9; 50], 50, 1),
            [Token::literals(1), Token::copy(49, 2)]
        );
        let row: Vec<u32> = (0..40).map(|i| i * 0x0101_0101).collect();
        let rows = [row.as_slice(), &row, &row].concat();
        assert_eq!(
            parse(&rows, 40, 1),
            [Token::literals(40), Token::copy(80, 1)]
        );
    }
}
