//! Which copies to take: those by which the whole takes fewest bits (RFC 9649, section 3.6.2).
//!
//! From the end of the image to its start, the least cost of all that follows is known for each pixel: that of the cheapest
//! among a literal, the copies found for it, and these cut short, with what follows then.

use super::distance::{self, DistanceCodes};
use super::entropy::{BIT, BIT_SHIFT, log2};
use super::hash_chain::{Copy, MAX_KEPT};
use super::histogram;
use super::lz77::{self, PIXELS_A_QUESTION};
use super::prefix::{self, DISTANCE_SYMBOLS, LENGTH_SYMBOLS, MAX_LENGTH};
use super::token::{CacheHits, Tokens};
use crate::EncodeError;
use crate::threads::Workers;

/// What each symbol costs, in 1 / [`BIT`] bits.
#[derive(Clone, Debug)]
pub struct CostModel {
    symbols: Vec<u32>,
    /// Length symbols with their extra bits.
    lengths: [u32; LENGTH_SYMBOLS],
    /// Distance symbols with theirs.
    distances: [u32; DISTANCE_SYMBOLS],
}

impl CostModel {
    /// By how often the symbols occurred.
    pub fn new(counts: &[u32]) -> CostModel {
        let mut symbols = vec![0; counts.len()];
        for alphabet in histogram::alphabets(counts.len()) {
            let of = &counts[alphabet.clone()];
            let total: u32 = of.iter().sum();
            let used = of.iter().filter(|count| **count > 0).count();
            for (cost, &count) in symbols[alphabet].iter_mut().zip(of) {
                // One that did not occur costs as one that occurred once, in a code for both.
                *cost = if used < 2 && count > 0 {
                    0
                } else {
                    (log2(total + 1) - log2(count)) >> (16 - BIT_SHIFT)
                };
            }
        }
        let with_extra =
            |symbol: u32, at: usize| symbols[at] + (prefix::extra_bits(symbol) << BIT_SHIFT);
        CostModel {
            lengths: std::array::from_fn(|s| with_extra(s as u32, histogram::length(s as u32))),
            distances: std::array::from_fn(|s| with_extra(s as u32, histogram::distance(s as u32))),
            symbols,
        }
    }

    /// What symbols after another cost.
    #[inline]
    pub fn bits(&self, symbols: &[usize]) -> u32 {
        symbols.iter().map(|symbol| self.symbols[*symbol]).sum()
    }

    #[inline]
    fn literal(&self, color: u32) -> u32 {
        self.bits(&histogram::literal(color))
    }

    #[inline]
    fn length(&self, length: usize) -> u32 {
        self.lengths[prefix::length_symbol(length) as usize]
    }

    #[inline]
    fn distance(&self, code: u32) -> u32 {
        self.distances[prefix::prefixed(code).symbol as usize]
    }
}

/// A choice among copies at each pixel.
pub struct Parse<'a> {
    /// ARGB.
    pub pixels: &'a [u32],
    /// Pixels of a row.
    pub width: usize,
    /// The colour cache.
    pub cache: &'a CacheHits,
    /// What things cost.
    pub model: &'a CostModel,
    /// Besides the copies found, those from the places of so many distance codes are looked at: 2 are the pixel above and the
    /// one to the left.
    pub near_codes: usize,
    /// Whether copies are tried cut short, too. Before costs are known well it leads astray.
    pub shortens: bool,
}

/// A place nearby to copy from.
struct Near {
    distance: usize,
    cost: u32,
    /// The first pixel that is not alike, of those that were looked at.
    end: usize,
}

impl Near {
    /// Looks at the pixels from `i` up to `seen`, from which on they were looked at.
    #[inline]
    fn look(&mut self, pixels: &[u32], i: usize, seen: usize) {
        if pixels.get(i.wrapping_sub(self.distance)) != Some(&pixels[i]) {
            self.end = i;
        } else if i + 1 < seen {
            let alike = lz77::match_length(pixels, i - self.distance, i, seen - i);
            if i + alike < seen {
                self.end = i + alike;
            }
        }
    }
}

impl Parse<'_> {
    /// The tokens that cost least. `copies` has the longest copy for each pixel and is left with those that were taken.
    pub fn cheapest(
        &self,
        copies: &mut [Copy],
        workers: Workers<'_>,
    ) -> Result<Tokens, EncodeError> {
        self.choose(copies, workers)?;
        let codes = DistanceCodes::new(self.width);
        let mut tokens = Tokens::default();
        let mut i = 0;
        let mut asked = 0;
        while i < copies.len() {
            if i >= asked {
                workers.check()?;
                asked = i + PIXELS_A_QUESTION;
            }
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

    /// The places nearby, those that cost least first.
    fn near(&self, codes: &DistanceCodes) -> Vec<Near> {
        let distances = distance::nearest(self.width, self.near_codes);
        let mut near: Vec<Near> = distances
            .into_iter()
            .map(|distance| Near {
                distance,
                cost: self.model.distance(codes.code(distance)),
                end: self.pixels.len(),
            })
            .collect();
        near.sort_by_key(|near| near.cost);
        near
    }

    /// Replaces each pixel's copy by the one to take there, if any.
    fn choose(&self, copies: &mut [Copy], workers: Workers<'_>) -> Result<(), EncodeError> {
        const RING: usize = MAX_LENGTH * 2;
        let (pixels, width, model) = (self.pixels, self.width, self.model);
        let codes = DistanceCodes::new(width);
        let mut near = self.near(&codes);
        // Costs of what follows, by position in a ring, which wraps around as the costs do: only differences within
        // the longest copy count.
        let mut ring = vec![0u32; RING];
        let costs: &mut [u32; RING] = ring.as_mut_slice().try_into().expect("as many");
        let mut known = (usize::MAX, 0);
        let mut known_literal = (0, model.literal(0));
        let mut next_distance = 0;
        let mut seen = pixels.len();
        let mut asked = pixels.len();
        let mut i = pixels.len();
        while i > 0 {
            i -= 1;
            if i < asked {
                workers.check()?;
                asked = i.saturating_sub(PIXELS_A_QUESTION);
                // Not all of a flat picture at its end.
                for near in &mut near {
                    near.look(pixels, i, seen);
                }
                seen = i;
            }
            let base = costs[(i + 1) % RING];
            let after = |length: usize| costs[(i + length) % RING].wrapping_sub(base);
            let copy = copies[i];
            if copy.distance() != known.0 && copy.length() > 0 {
                known = (copy.distance(), model.distance(codes.code(copy.distance())));
            }
            let goes_on = copy.distance() == next_distance;
            next_distance = copy.distance();
            if goes_on && copy.length() >= LONG {
                let behind = costs[(i + copy.length()) % RING].wrapping_add(known.1);
                loop {
                    costs[i % RING] = behind.wrapping_add(model.length(copies[i].length()));
                    if i == 0 || Some(copies[i - 1]) != copies[i].longer() {
                        break;
                    }
                    i -= 1;
                }
                continue;
            }
            for near in &mut near {
                near.look(pixels, i, seen);
            }
            seen = i;
            let color = pixels[i];
            let literal = match self.cache.index(i, color) {
                None if color == known_literal.0 => known_literal.1,
                None => {
                    known_literal = (color, model.literal(color));
                    known_literal.1
                }
                Some(index) => model.symbols[histogram::cached(index)],
            };
            let cuts = match (self.shortens, goes_on) {
                (false, _) => 0,
                (true, true) => CUTS,
                (true, false) => CUTS_AT_ENDS,
            };
            let mut best = (literal as i32, Copy::NONE);
            // Shorter ones were looked at from a place that costs less.
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
                    // Far below the longest nothing is gained.
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
            let mut is_due = copy.length() > 0;
            for near in &near {
                if is_due && known.1 <= near.cost {
                    consider(copy.length(), copy.distance(), known.1);
                    is_due = false;
                }
                consider((near.end - i).min(MAX_KEPT), near.distance, near.cost);
            }
            if is_due {
                consider(copy.length(), copy.distance(), known.1);
            }
            copies[i] = best.1;
            costs[i % RING] = base.wrapping_add_signed(best.0);
        }
        Ok(())
    }
}

/// Within a copy that goes on for so many pixels, nothing else is looked at.
const LONG: usize = 16;

/// So many symbols shorter than the longest, copies are tried within what repeats, and where it ends.
const CUTS: u32 = 3;
const CUTS_AT_ENDS: u32 = 6;
const _: () = assert!(BIT == 256, "costs of the longest copy stay within 32 bits");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vp8l::hash_chain;
    use crate::vp8l::token::Token;

    /// The tokens for `pixels` if literals of green take `green` counts, and each length and distance is equally likely.
    fn parse(pixels: &[u32], width: usize, literals: u32) -> Vec<Token> {
        let mut counts = vec![1; histogram::symbol_count(0)];
        for color in 0..256 {
            for symbol in histogram::literal(color * 0x0101_0101) {
                counts[symbol] = literals;
            }
        }
        let workers = Workers::unlimited(1);
        let parse = Parse {
            pixels,
            width,
            cache: &CacheHits::NONE,
            model: &CostModel::new(&counts),
            near_codes: 2,
            shortens: true,
        };
        let mut copies =
            hash_chain::longest_copies(pixels, width, 16, workers).expect("nothing cancels it");
        parse
            .cheapest(&mut copies, workers)
            .expect("nothing cancels it")
            .0
    }

    #[test]
    fn what_is_cheaper_is_taken() {
        // Three pixels again from far away: 32 bits each by themselves, against 13 + 5 + extra bits.
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
