//! Which copies to take: those by which the whole takes fewest bits (RFC 9649, section 3.6.2).
//!
//! From the end of the image to its start, the least cost of all that follows is known for each pixel: that of the cheapest
//! among a literal, the copies found for it, and these cut short, with what follows then.

use super::distance::{self, DistanceCodes};
use super::entropy::{BIT, BIT_SHIFT, log2};
use super::hash_chain::{Copy, MAX_KEPT};
use super::histogram;
use super::lz77::PIXELS_A_QUESTION;
use super::prefix::{self, DISTANCE_SYMBOLS, LENGTH_SYMBOLS, MAX_LENGTH};
use super::token::{CacheHits, Tokens};
use crate::webp::EncodeError;
use crate::webp::crew::Crew;

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
    fn literal(&self, color: u32, cached: Option<usize>) -> u32 {
        match cached {
            Some(index) => self.symbols[histogram::cached(index)],
            None => self.bits(&histogram::literal(color)),
        }
    }

    #[inline]
    fn length(&self, length: usize) -> u32 {
        self.lengths[prefix::prefixed(length as u32).symbol as usize]
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
}

/// A place nearby to copy from.
struct Near {
    distance: usize,
    cost: u32,
    /// How far the copy from there goes on from the pixel before.
    run: usize,
}

impl Near {
    /// Goes on to pixel `i`, from the one that follows it.
    #[inline]
    fn step(&mut self, pixels: &[u32], i: usize) {
        self.run = if self.distance <= i && pixels[i - self.distance] == pixels[i] {
            (self.run + 1).min(MAX_KEPT)
        } else {
            0
        };
    }
}

impl Parse<'_> {
    /// The tokens that cost least. `copies` has the longest copy for each pixel and is left with those that were taken.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the crew's caller waits no more.
    pub fn cheapest(&self, copies: &mut [Copy], crew: Crew<'_>) -> Result<Tokens, EncodeError> {
        self.choose(copies, crew)?;
        let codes = DistanceCodes::new(self.width);
        let mut tokens = Tokens::default();
        let mut i = 0;
        while i < copies.len() {
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

    /// Replaces each pixel's copy by the one to take there, if any.
    fn choose(&self, copies: &mut [Copy], crew: Crew<'_>) -> Result<(), EncodeError> {
        const RING: usize = MAX_LENGTH * 2;
        let (pixels, width, model) = (self.pixels, self.width, self.model);
        let codes = DistanceCodes::new(width);
        let near = distance::nearest(width, self.near_codes).into_iter();
        let mut near: Vec<Near> = near
            .map(|distance| Near {
                distance,
                cost: model.distance(codes.code(distance)),
                run: 0,
            })
            .collect();
        near.sort_by_key(|near| near.cost);
        // Costs of what follows, by position in a ring, which wraps around as the costs do: only differences within
        // the longest copy count.
        let mut ring = vec![0u32; RING];
        let costs: &mut [u32; RING] = ring.as_mut_array().expect("as many");
        let mut known = (usize::MAX, 0);
        let mut next_distance = 0;
        let mut asked = pixels.len();
        for i in (0..pixels.len()).rev() {
            if i < asked {
                crew.check()?;
                asked = i.saturating_sub(PIXELS_A_QUESTION);
            }
            let base = costs[(i + 1) % RING];
            let after = |length: usize| costs[(i + length) % RING].wrapping_sub(base);
            let copy = copies[i];
            for near in &mut near {
                near.step(pixels, i);
            }
            if copy.distance() != known.0 && copy.length() > 0 {
                known = (copy.distance(), model.distance(codes.code(copy.distance())));
            }
            let goes_on = copy.distance() == next_distance;
            next_distance = copy.distance();
            if goes_on && copy.length() >= LONG {
                let cost = known.1 + model.length(copy.length());
                costs[i % RING] = base.wrapping_add(cost).wrapping_add(after(copy.length()));
                continue;
            }
            let color = pixels[i];
            let literal = model.literal(color, self.cache.index(i, color));
            let cuts = if goes_on { CUTS } else { CUTS_AT_ENDS };
            let mut best = (literal as i32, Copy::NONE);
            let mut consider = |length: usize, distance: usize, cost: u32| {
                let longest = prefix::prefixed(length as u32).symbol;
                let mut tried = length;
                let mut symbol = longest;
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
                }
            };
            if copy.length() > 0 {
                consider(copy.length(), known.0, known.1);
            }
            // From a place that costs more, only a longer copy can be worth it.
            let mut reached = 0;
            for near in &near {
                if near.run > reached {
                    reached = near.run;
                    if near.distance != copy.distance() {
                        consider(near.run, near.distance, near.cost);
                    }
                }
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
    use crate::webp::crew::Patient;
    use crate::webp::vp8l::hash_chain;
    use crate::webp::vp8l::token::Token;

    /// The tokens for `pixels` if literals of green take `green` counts, and each length and distance is equally likely.
    fn parse(pixels: &[u32], width: usize, literals: u32) -> Vec<Token> {
        let mut counts = vec![1; histogram::symbol_count(0)];
        for color in 0..256 {
            for symbol in histogram::literal(color * 0x0101_0101) {
                counts[symbol] = literals;
            }
        }
        let crew = Crew::new(1, &Patient);
        let parse = Parse {
            pixels,
            width,
            cache: &CacheHits::NONE,
            model: &CostModel::new(&counts),
            near_codes: 2,
        };
        let mut copies = hash_chain::longest_copies(pixels, width, 16, crew).expect("patient");
        parse.cheapest(&mut copies, crew).expect("patient").0
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
