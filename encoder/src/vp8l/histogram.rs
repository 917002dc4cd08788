//! How often each symbol occurs: the five alphabets of RFC 9649, section 3.7.2.

use super::entropy;
use super::lz77::PIXELS_A_QUESTION;
use super::prefix::{self, DISTANCE_SYMBOLS, LENGTH_SYMBOLS};
use super::token::{Token, TokenImage};
use crate::EncodeError;
use crate::threads::Workers;
use std::ops::Range;

/// Where the alphabets begin in a table of all symbols. Green is last, since only its length changes.
const RED: usize = 0;
const BLUE: usize = 256;
const ALPHA: usize = 512;
const DISTANCE: usize = 768;
const GREEN: usize = DISTANCE + DISTANCE_SYMBOLS;
const LENGTH: usize = GREEN + 256;
const CACHE: usize = LENGTH + LENGTH_SYMBOLS;

/// Symbols of all alphabets, with a cache of 2^`cache_bits` colours; 0 is no cache.
pub fn symbol_count(cache_bits: u32) -> usize {
    CACHE + if cache_bits == 0 { 0 } else { 1 << cache_bits }
}

/// The parts of a table of `symbols` symbols, one for each alphabet, in the order of the bitstream.
pub fn alphabets(symbols: usize) -> [Range<usize>; 5] {
    [
        GREEN..symbols,
        RED..BLUE,
        BLUE..ALPHA,
        ALPHA..DISTANCE,
        DISTANCE..GREEN,
    ]
}

/// The symbols of a literal pixel, in the order of the bitstream.
#[inline]
pub fn literal(color: u32) -> [usize; 4] {
    let [blue, green, red, alpha] = color.to_le_bytes().map(usize::from);
    [GREEN + green, RED + red, BLUE + blue, ALPHA + alpha]
}

/// The symbol of a pixel at `index` of the cache.
#[inline]
pub fn cached(index: usize) -> usize {
    CACHE + index
}

/// The symbol of a length's symbol.
#[inline]
pub fn length(symbol: u32) -> usize {
    LENGTH + symbol as usize
}

/// The symbol of a distance's symbol.
#[inline]
pub fn distance(symbol: u32) -> usize {
    DISTANCE + symbol as usize
}

/// Hands `count` the position and symbols of everything that is written of `image`.
#[inline]
pub fn for_each_symbol(
    image: &TokenImage<'_>,
    workers: Workers<'_>,
    mut count: impl FnMut(usize, &[usize]),
) -> Result<(), EncodeError> {
    let mut i = 0;
    let mut asked = 0;
    for &token in image.tokens {
        if i >= asked {
            workers.check()?;
            asked = i + PIXELS_A_QUESTION;
        }
        if token.distance_code() == 0 {
            for (at, &color) in (i..).zip(&image.pixels[i..i + token.length()]) {
                match image.cache.index(at, color) {
                    Some(index) => count(at, &[cached(index)]),
                    None => count(at, &literal(color)),
                }
            }
        } else {
            count(i, &copy(token));
        }
        i += token.length();
    }
    Ok(())
}

/// The symbols of a copy, in the order of the bitstream.
#[inline]
fn copy(token: Token) -> [usize; 2] {
    [
        length(prefix::prefixed(token.length() as u32).symbol),
        distance(prefix::prefixed(token.distance_code()).symbol),
    ]
}

/// How often each symbol occurs in a whole image.
pub fn count(image: &TokenImage<'_>, workers: Workers<'_>) -> Result<Vec<u32>, EncodeError> {
    let mut counts = vec![0; symbol_count(image.cache.bits())];
    for_each_symbol(image, workers, |_, symbols| {
        for symbol in symbols {
            counts[*symbol] += 1;
        }
    })?;
    Ok(counts)
}

/// What so many of each symbol cost, in 1 / [`entropy::BIT`] bits, with the codes for them.
pub fn cost(counts: &[u32]) -> u64 {
    alphabets(counts.len())
        .map(|alphabet| entropy::cost(counts[alphabet].iter().copied()))
        .iter()
        .sum()
}

/// What the cache's part of a code takes, in the same unit, in each further group of codes that has it.
pub fn cache_code_cost(counts: &[u32]) -> u64 {
    let used = counts[CACHE..].iter().filter(|count| **count > 0).count();
    used as u64 * entropy::CODE_LENGTH
}

/// [`cost`] with the extra bits of lengths and distances.
pub fn total_cost(counts: &[u32]) -> u64 {
    cost(counts) + extra_cost(counts)
}

fn extra_cost(counts: &[u32]) -> u64 {
    let of = |first: usize, symbols: usize| -> u64 {
        (0..)
            .zip(&counts[first..first + symbols])
            .map(|(symbol, count)| u64::from(prefix::extra_bits(symbol)) * u64::from(*count))
            .sum()
    };
    (of(LENGTH, LENGTH_SYMBOLS) + of(DISTANCE, DISTANCE_SYMBOLS)) * entropy::BIT
}
